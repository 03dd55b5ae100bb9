# mpiio_ext/_tools: the Python module that holds the tools (csrc/tools) and what they need of csrc/core. It calls no MPI,
# is linked to no library of this project, and nothing of it is in one. Asks for: root, MPIOX_MODULE (kind of module).
find_package(Threads REQUIRED)
Python_add_library(_tools MODULE ${MPIOX_MODULE} ${MPIOX_GENERATED}/_tools.c csrc/core/common/mpiox_error.c
                   ${MPIOX_TOOLS_SOURCES})
add_dependencies(_tools generated_modules)
target_compile_definitions(_tools PRIVATE _GNU_SOURCE)
target_include_directories(_tools PRIVATE ${tools_folders})
target_compile_options(_tools PRIVATE -Wall -Wextra $<$<BOOL:${MPIOX_WERROR}>:-Werror>)
target_link_libraries(_tools PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
set_target_properties(_tools PROPERTIES C_VISIBILITY_PRESET hidden)
install(TARGETS _tools LIBRARY DESTINATION ${root})
