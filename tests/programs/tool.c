/*
 * tool.c - a small profiling library as people write them: it wraps the calls that interest it by MPI's profiling
 * interface and knows nothing of other libraries. Preloaded before or after the library.
 *
 * TOOL_WAITS: it measures the time spent in MPI_Wait and its kin; TOOL_WRITES: that of collective writes; TOOL_END: it
 * prints at MPI_Finalize.
 */
#include <mpi.h>
#include <stdio.h>

static double spent;

#ifdef TOOL_WAITS
int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    const double begun = MPI_Wtime();
    const int result = PMPI_Wait(request, status);

    spent += MPI_Wtime() - begun;
    return result;
}

int MPI_Waitall(int n, MPI_Request *requests, MPI_Status *statuses)
{
    const double begun = MPI_Wtime();
    const int result = PMPI_Waitall(n, requests, statuses);

    spent += MPI_Wtime() - begun;
    return result;
}
#endif

#ifdef TOOL_WRITES
int MPI_File_write_at_all(MPI_File file, MPI_Offset offset, const void *buffer, int count, MPI_Datatype type,
                          MPI_Status *status)
{
    const double begun = MPI_Wtime();
    const int result = PMPI_File_write_at_all(file, offset, buffer, count, type, status);

    spent += MPI_Wtime() - begun;
    return result;
}
#endif

int MPI_Finalize(void)
{
    int rank;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("tool: %s\n", spent >= 0 ? "ok" : "time runs backwards");
    return PMPI_Finalize();
}
