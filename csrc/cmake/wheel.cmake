# The second step of scripts/wheel: what was built per ABI, and one binding for all of them.
#
# MPIOX_WHEEL_PARTS/ABI/mpiio_ext holds lib, bin and include of one ABI. The binding asks for libmpiio_ext.so by its name
# alone, which mpiio_ext._load has opened from the folder that fits before; it uses nothing of MPI itself.
file(GLOB abis RELATIVE ${MPIOX_WHEEL_PARTS} ${MPIOX_WHEEL_PARTS}/*)
list(GET abis 0 first)
foreach(abi ${abis})
    install(DIRECTORY ${MPIOX_WHEEL_PARTS}/${abi}/mpiio_ext/lib ${MPIOX_WHEEL_PARTS}/${abi}/mpiio_ext/bin
            DESTINATION abis/${abi} USE_SOURCE_PERMISSIONS)
endforeach()
install(FILES csrc/entry/include/mpiio_ext.h csrc/tools/engine/mpiio_ext_engine.h DESTINATION include)
set(root .)
include(csrc/cmake/pages.cmake)

find_package(Python REQUIRED COMPONENTS Interpreter Development.SABIModule)
Python_add_library(_binding MODULE WITH_SOABI USE_SABI 3.10 ${MPIOX_GENERATED}/_binding.c)
add_dependencies(_binding generated_modules)
target_compile_definitions(_binding PRIVATE Py_LIMITED_API=0x030A0000)
target_include_directories(_binding PRIVATE csrc/entry/include)
target_link_libraries(_binding PRIVATE ${MPIOX_WHEEL_PARTS}/${first}/mpiio_ext/lib/libmpiio_ext.so)
set_target_properties(_binding PROPERTIES SKIP_BUILD_RPATH ON C_VISIBILITY_PRESET default)
target_link_options(_binding PRIVATE LINKER:--strip-all)
install(TARGETS _binding LIBRARY DESTINATION .)

set(MPIOX_MODULE WITH_SOABI USE_SABI 3.10)
include(csrc/cmake/tools.cmake)
target_link_options(_tools PRIVATE LINKER:--strip-all)
