# Pages of the documents; a modulefile; manual pages; and the help of commands that need an extra, for installations
# without it.
#
# scripts/pages.py makes the last two: a checkout's in the build folder; a source distribution carries them, as it does
# generated sources. An editable installation has none of the four: it has docs/, no share/, and all extras' packages.
if(SKBUILD_STATE STREQUAL "editable" OR MPIOX_ANY_MPI)
    return()
endif()
# What `mpiio-ext help` and pages of a run show (mpiio_ext/common/guide.py); a checkout has it in docs/.
foreach(kind tutorial howto reference explanation)
    install(DIRECTORY docs/${kind} DESTINATION ${root}/docs FILES_MATCHING PATTERN "*.md")
endforeach()
set(share share)
if(SKBUILD) # beside the program's folder
    set(share ${SKBUILD_DATA_DIR}/share)
endif()
install(FILES csrc/entry/modulefile DESTINATION ${share}/modulefiles/mpiio_ext RENAME ${PROJECT_VERSION})
if(NOT carried)
    execute_process(COMMAND ${Python_EXECUTABLE} -c "import click, numpy, pydantic, rich" RESULT_VARIABLE failed
                    OUTPUT_QUIET ERROR_QUIET)
    if(failed AND SKBUILD)
        message(FATAL_ERROR "The manual pages are made from the commands, which import packages that ${Python_EXECUTABLE} "
                            "does not have: pip install click numpy pydantic rich, or build from a source distribution, "
                            "which carries what is generated.")
    elseif(failed)
        message(STATUS "Manual pages: none, ${Python_EXECUTABLE} lacks one of click, numpy, pydantic, rich")
        return()
    endif()
    add_custom_target(pages ALL COMMAND ${Python_EXECUTABLE} -B ${here}/scripts/pages.py ${MPIOX_GENERATED}
                      COMMENT "Generating manual pages" VERBATIM)
endif()
install(DIRECTORY ${MPIOX_GENERATED}/man/ DESTINATION ${share}/man/man1)
if(SKBUILD)
    install(FILES ${MPIOX_GENERATED}/help.txt DESTINATION common)
endif()
