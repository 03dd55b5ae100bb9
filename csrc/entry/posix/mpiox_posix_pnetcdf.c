/*
 * mpiox_posix_pnetcdf.c - the functions of PnetCDF that access a file in the file system before they open it by MPI.
 *
 * Problem.   Until a file that is written behind its close is complete, only MPI finds it by its own name. PnetCDF, and
 *            netCDF with the classic formats, find the format of a file by open() and read(), and remove an old file by
 *            unlink(). Of a file that is stored as several, they would read the index.
 * Algorithm. These functions have PnetCDF's names: if the linker finds this library before PnetCDF, it finds them
 *            first. Rank 0, the only rank that accesses the file, waits until the file is complete. Then the function
 *            calls PnetCDF's own function: the next of that name, or, if PnetCDF was loaded out of the linker's sight
 *            (modules of Python), the one of the caller's libraries. PnetCDF finds the format of a container from a
 *            copy of the container's first bytes.
 * Needs.     The declarations of PnetCDF from 1.9 on, which are repeated here. Handles of MPI are ints or pointers, and
 *            are passed unchanged. If this library is in front of the C library, mpiox_posix.c lets these calls wait.
 * Limits.    A PnetCDF that is part of the program does not call these functions. If a program looks up addresses in
 *            PnetCDF, and calls them (ctypes), only PnetCDF's own query for the format calls a function of this
 *            library.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_posix_wait.h"

enum { NOT_BUILT = -128 }; /* PnetCDF's NC_ENOTBUILT */

typedef int opening(uintptr_t comm, const char *path, int mode, uintptr_t info, int *file);
typedef int asking(const char *path, int *format);

extern opening ncmpi_create, ncmpi_open;
extern asking ncmpi_inq_file_format;

/* Of the libraries that the caller was linked to. */
static void *of_caller(const char *name, const void *caller)
{
    Dl_info info;
    void *library = dladdr(caller, &info) != 0 ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *found = library != NULL ? dlsym(library, name) : NULL;

    if (library != NULL)
        dlclose(library);
    return found;
}

/* PnetCDF's function; NULL: there is none. */
static void *next(const char *name, const void *caller)
{
    static const char here; /* an address of this library */
    Dl_info own, info;
    void *found = dlsym(RTLD_NEXT, name);

    if (found == NULL)
        found = of_caller(name, caller);
    return found != NULL && dladdr(&here, &own) != 0 && dladdr(found, &info) != 0 && own.dli_fbase != info.dli_fbase
               ? found
               : NULL;
}

static int open_next(const char *name, const void *caller, uintptr_t comm, const char *path, int mode, uintptr_t info,
                     int *file)
{
    void *found = next(name, caller);
    const mpiox_past_mpi *library = atomic_load(&mpiox_posix_library);
    opening *function;

    memcpy(&function, &found, sizeof function);
    if (function == NULL)
        return NOT_BUILT;
    if (library != NULL)
        library->await_at_0(comm, path);
    return function(comm, path, mode, info, file);
}

/* The file that it replaces is whole: it has to find it. */
int ncmpi_create(uintptr_t comm, const char *path, int mode, uintptr_t info, int *file)
{
    return open_next("ncmpi_create", __builtin_return_address(0), comm, path, mode, info, file);
}

int ncmpi_open(uintptr_t comm, const char *path, int mode, uintptr_t info, int *file)
{
    return open_next("ncmpi_open", __builtin_return_address(0), comm, path, mode, info, file);
}

int ncmpi_inq_file_format(const char *path, int *format)
{
    void *found = next("ncmpi_inq_file_format", __builtin_return_address(0));
    const mpiox_past_mpi *library = atomic_load(&mpiox_posix_library);
    asking *function;

    memcpy(&function, &found, sizeof function);
    if (function == NULL)
        return NOT_BUILT;
    const int fd = library != NULL ? library->beginning(path) : -1;
    char name[32];

    if (fd < 0)
        return function(path, format);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    const int result = function(name, format);
    close(fd);
    return result;
}
