/*
 * sessions.c - a file opened without MPI_Init, on a communicator made from a session; plain MPI 4.
 *
 *   sessions FILE [init]   "init": the same with MPI_Init beside the session, then once more with MPI_COMM_WORLD
 *
 * Prints one line a step and rank: what it was, the error class. A file that can be opened must hold what was written.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#if MPI_VERSION < 4
int main(void)
{
    puts("no sessions");
    return 0;
}
#else
static int rank;

static void say(const char *what, int code)
{
    int error_class = MPI_SUCCESS;

    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &error_class);
    printf("rank %d: %s %s\n", rank, what, error_class == MPI_SUCCESS ? "fine" : "refused");
    fflush(stdout);
}

static void use(MPI_Comm comm, const char *path)
{
    char data[64];
    MPI_File file;
    int code;

    memset(data, 'a' + rank, sizeof data);
    code = MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    say("open", code);
    if (code != MPI_SUCCESS)
        return;
    say("write", MPI_File_write_at_all(file, (MPI_Offset)rank * 64, data, 64, MPI_BYTE, MPI_STATUS_IGNORE));
    say("close", MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    const int init = argc > 2;
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;

    if (init)
        MPI_Init(&argc, &argv);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    use(comm, argv[1]);
    if (init)
        use(MPI_COMM_WORLD, argv[1]);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    if (init)
        MPI_Finalize();
    printf("rank %d: end\n", rank);
    return 0;
}
#endif
