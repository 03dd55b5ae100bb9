/*
 * mpiio_ext_library.c - facts of the library itself.
 *
 * Whether a process is interposed is decided by the dynamic linker's search order, so it is queried rather than
 * inferred. The object that defines the MPI_File_open that a program would call now is compared with the object that
 * holds this function. A tracer in front of it returns what it calls. That gives the right answer for LD_PRELOAD, for
 * link order and for a global dlopen alike.
 */
#include "mpiio_ext.h"

#include <dlfcn.h>
#include <stddef.h>

#include "mpiox_event.h"

const char *mpiio_ext_version(void)
{
    return MPIOX_VERSION;
}

const char *mpiio_ext_mpi_family(void)
{
#if defined(MPIOX_MPI_OPENMPI)
    return "openmpi";
#elif defined(MPIOX_MPI_MPICH)
    return "mpich";
#elif defined(MPIOX_MPI_MPIABI)
    return "mpiabi";
#else
#error "the build defines MPIOX_MPI_OPENMPI, _MPICH or _MPIABI"
#endif
}

int mpiio_ext_interposed(void)
{
    Dl_info ours, theirs;
    void *symbol = dlsym(RTLD_DEFAULT, "MPI_File_open");

    if (symbol != NULL && mpiox_event_behind_tracer("MPI_File_open") != NULL)
        symbol = mpiox_event_behind_tracer("MPI_File_open");
    if (symbol == NULL || dladdr(symbol, &theirs) == 0)
        return 0;
    if (dladdr((const void *)&mpiio_ext_version, &ours) == 0)
        return 0;
    return ours.dli_fbase == theirs.dli_fbase;
}
