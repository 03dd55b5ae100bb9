/*
 * tool.c - a small profiling library as people write them: it wraps the calls that interest it by MPI's profiling
 * interface and knows nothing of other libraries. Preloaded before or after the library.
 *
 * TOOL_WAITS: it measures the time spent in MPI_Wait and its kin; TOOL_WRITES: that of collective writes; TOOL_END: it
 * prints at MPI_Finalize. TOOL_NEWER: no tool, but a part of an MPI library that has gained a function.
 * TOOL_LOGS: it writes a log in MPI_Finalize as Darshan does.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

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

#ifdef TOOL_NEWER
MPI_File MPI_File_fromint(int handle);
MPI_File MPI_File_fromint(int handle)
{
    return PMPI_File_f2c(handle);
}

int PMPI_File_open(MPI_Comm comm, const char *path, int mode, MPI_Info info, MPI_File *file)
{
    int (*next)(MPI_Comm, const char *, int, MPI_Info, MPI_File *);

    *(void **)&next = dlsym(RTLD_NEXT, "PMPI_File_open");
    return next(comm, path, mode, info, file);
}
#endif

#ifdef TOOL_LOGS
int PMPI_Finalize(void)
{
    int (*next)(void), rank;
    MPI_File file;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, getenv("TOOL_LOG"), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    PMPI_File_write_at_all(file, rank, "log" + rank, 1, MPI_CHAR, MPI_STATUS_IGNORE);
    PMPI_File_close(&file);
    *(void **)&next = dlsym(RTLD_NEXT, "PMPI_Finalize");
    return next();
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
