/*
 * mpiox_finalize.c - MPI_Finalize: the last moment at which the library may communicate.
 *
 * Order matters: the run statistics use collectives on MPI_COMM_WORLD, the exchange drops communicators and shared
 * memory, the datatype cache drops its attribute key; then the MPI library goes.
 */
#include <mpi.h>

#include "mpiox_typemap_mpi.h"
#include "mpiox_datatype.h"
#include "mpiox_exchange.h"
#include "mpiox_file.h"

int mpiox_wrap_Finalize(void);

__attribute__((visibility("hidden"))) int mpiox_wrap_Finalize(void)
{
    mpiox_file_run_finalize();
    mpiox_exchange_finalize();
    mpiox_typemap_mpi_finalize();
    mpiox_datatype_finalize();
    return PMPI_Finalize();
}

__attribute__((visibility("default"))) int MPI_Finalize(void)
{
    return mpiox_wrap_Finalize();
}
