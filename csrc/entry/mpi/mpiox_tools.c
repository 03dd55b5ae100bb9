/*
 * mpiox_tools.c - see mpiox_tools.h.
 *
 * Algorithm. The library looks up every wrapped name as the linker does for the program's calls: in the order in which
 *            libraries were loaded. A definition in another library belongs to a tool. A definition in the MPI library
 *            is a function that the MPI library has gained since the release that this library was built with. If a
 *            tool wraps MPI_File_open, and the call still arrives here, the tool calls the next library's functions
 *            rather than PMPI, also in its other wrappers.
 */
#include "mpiox_tools.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "mpiox_calls.h"
#include "mpiox_print.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *hidden_file_function;
static bool hidden_by_mpi, hidden_waits;
static atomic_bool ends; /* a tool carries out MPI_Finalize */

/* The address at which the object that defines the name is loaded; NULL if no object does. A program that takes a
 * function's address may have an undefined symbol of that name, which is a reference to the definition. */
static const void *object_of(const char *name)
{
    const ElfW(Sym) *symbol = NULL;
    void *found = dlsym(RTLD_DEFAULT, name), *extra = NULL;
    Dl_info info;

    if (found == NULL || dladdr1(found, &info, &extra, RTLD_DL_SYMENT) == 0)
        return NULL;
    symbol = extra;
    return symbol != NULL && symbol->st_shndx == SHN_UNDEF ? NULL : info.dli_fbase;
}

static void look(void)
{
    Dl_info own;
    const void *opener = object_of("MPI_File_open"), *mpi = object_of("PMPI_File_open");

    if (dladdr((void *)(uintptr_t)look, &own) == 0)
        return;
    for (int i = 0; i < mpiox_calls_count(); i++) {
        const char *name = mpiox_calls_name(i);
        char large[64];

        snprintf(large, sizeof large, "%s_c", name);
        for (int form = 0; form < 2; form++) {
            const void *object = object_of(form == 0 ? name : large);

            if (object == NULL || object == own.dli_fbase || object == opener)
                continue;
            if (strncmp(name, "MPI_File_", 9) != 0) {
                hidden_waits = true;
            } else {
                hidden_file_function = name;
                hidden_by_mpi = object == mpi;
            }
        }
    }
}

bool mpiox_tools_hide_files(void)
{
    static atomic_flag printed = ATOMIC_FLAG_INIT;

    pthread_once(&once, look);
    if (hidden_file_function != NULL && !atomic_flag_test_and_set(&printed))
        mpiox_print(hidden_by_mpi
                        ? "mpiio_ext: the MPI library is newer than the one that this library was built with (a new "
                          "form of %s): files are left to the MPI library; build mpiio_ext from source with it\n"
                        : "mpiio_ext: a library in front of this one wraps %s: files are left to the MPI library; "
                          "preload libmpiio_ext.so first\n",
                    hidden_file_function);
    return hidden_file_function != NULL;
}

bool mpiox_tools_hide_waits(void)
{
    pthread_once(&once, look);
    return hidden_waits;
}

void mpiox_tools_finalize(void)
{
    atomic_store(&ends, object_of("PMPI_Finalize") != object_of("PMPI_Get_library_version"));
}

bool mpiox_tools_own_files(void)
{
    return atomic_load(&ends);
}
