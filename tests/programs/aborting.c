/*
 * aborting.c - all ranks write by themselves; then one calls MPI_Abort while the file is open.
 *
 * usage: aborting FILE RECORDS [fortran]
 *
 * Record i of 100 bytes belongs to rank i mod ranks. The abort comes from the highest rank, after all have written; by
 * the entry of Open MPI's Fortran binding, which the preloaded library has, too, with "fortran".
 */
#include "report.h"

enum { RECORD = 100, SEED = 5 };

__attribute__((weak)) void mpi_abort_(MPI_Fint *comm, MPI_Fint *code, MPI_Fint *error);

int main(int argc, char **argv)
{
    unsigned char buffer[RECORD];
    MPI_File file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int mode = MPI_MODE_WRONLY | MPI_MODE_CREATE;
    if (argc < 3 || MPI_File_open(MPI_COMM_WORLD, argv[1], mode, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = rank; i < atoi(argv[2]); i += ranks) {
        fill_from(buffer, (long long)i * RECORD, RECORD, SEED);
        if (MPI_File_write_at(file, (MPI_Offset)i * RECORD, buffer, RECORD, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return 3;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1 && argc > 3) {
        MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD), code = 7, error;

        if (mpi_abort_ == NULL)
            return 4;
        mpi_abort_(&world, &code, &error);
    }
    if (rank == ranks - 1)
        MPI_Abort(MPI_COMM_WORLD, 7);
    MPI_Barrier(MPI_COMM_WORLD);
    return 0;
}
