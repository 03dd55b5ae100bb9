/* writes.c - the least program that calls MPI-IO: what doctor is shown. usage: writes FILE */
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_File file;

    MPI_Init(&argc, &argv);
    if (argc > 1 &&
        MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) == 0)
        MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
