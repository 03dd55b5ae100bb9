/*
 * sessions.c - a file opened without MPI_Init, on a communicator made from a session; plain MPI 4.
 *
 *   sessions FILE            by a session alone
 *   sessions FILE init       with MPI_Init beside the session, then once more with MPI_COMM_WORLD
 *   sessions FILE again      with MPI_Init, ten sessions one after the other, two at a time
 *   sessions FILE outlives   the file is opened between MPI_Init and MPI_Finalize, used and closed after MPI_Finalize
 *
 * Prints one line a step and rank: what it was, and whether it was fine. A file that can be opened must hold what was
 * written.
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

static int open_file(MPI_Comm comm, const char *path, MPI_File *file)
{
    const int code = MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, file);

    say("open", code);
    return code;
}

static void write_and_close(MPI_File file, char letter)
{
    char data[64], found[64] = "";

    memset(data, letter + rank, sizeof data);
    say("write", MPI_File_write_at_all(file, (MPI_Offset)rank * 64, data, 64, MPI_BYTE, MPI_STATUS_IGNORE));
    say("read", MPI_File_read_at_all(file, (MPI_Offset)rank * 64, found, 64, MPI_BYTE, MPI_STATUS_IGNORE));
    printf("rank %d: %s\n", rank, memcmp(data, found, sizeof data) == 0 ? "right" : "WRONG");
    say("close", MPI_File_close(&file));
}

static void use(MPI_Comm comm, const char *path)
{
    MPI_File file;

    if (open_file(comm, path, &file) == MPI_SUCCESS)
        write_and_close(file, 'a');
}

static MPI_Comm begin(MPI_Session *session, const char *tag)
{
    MPI_Group group;
    MPI_Comm comm;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session);
    MPI_Group_from_session_pset(*session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    return comm;
}

static void again(const char *path)
{
    for (int i = 0; i < 10; i++) {
        MPI_Session one, two;
        MPI_Comm first = begin(&one, "first"), second = begin(&two, "second");
        MPI_File file;

        if (open_file(first, path, &file) != MPI_SUCCESS)
            return;
        use(second, path);
        MPI_Comm_free(&second); /* while the other session's file is open */
        MPI_Session_finalize(&two);
        write_and_close(file, 'a');
        MPI_Comm_free(&first);
        MPI_Session_finalize(&one);
    }
}

static void outlives(const char *path)
{
    MPI_Session session;
    MPI_Comm comm = begin(&session, "outlives");
    MPI_File file;
    const int code = open_file(comm, path, &file);

    MPI_Finalize();
    if (code == MPI_SUCCESS)
        write_and_close(file, 'a');
    use(comm, path);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "alone";
    const int init = strcmp(how, "alone") != 0;

    if (init)
        MPI_Init(&argc, &argv);
    if (strcmp(how, "again") == 0) {
        again(argv[1]);
    } else if (strcmp(how, "outlives") == 0) {
        outlives(argv[1]);
    } else {
        MPI_Session session;
        MPI_Comm comm = begin(&session, "sessions");

        use(comm, argv[1]);
        if (init)
            use(MPI_COMM_WORLD, argv[1]);
        MPI_Comm_free(&comm);
        MPI_Session_finalize(&session);
    }
    if (init && strcmp(how, "outlives") != 0)
        MPI_Finalize();
    printf("rank %d: end\n", rank);
    return 0;
}
#endif
