/*
 * failing.c - all ranks write collectively; then one of them fails in a way of its own while the others write on.
 *
 * usage: failing FILE HOW RANK SECONDS
 *   HOW   kill, segv, abort (MPI_Abort with 7), exit (status 3, without MPI_Finalize), hang (does not come)
 *
 * The rank that fails sleeps so long before: the others wait for it in MPI_File_write_at_all meanwhile.
 */
#include <signal.h>
#include <unistd.h>

#include "report.h"

enum { BYTES = 1 << 16, TURNS = 10 };

static unsigned char data[BYTES];
static MPI_File file;

static void turn(int number)
{
    if (MPI_File_write_at_all(file, ((MPI_Offset)number * ranks + rank) * BYTES, data, BYTES, MPI_BYTE,
                              MPI_STATUS_IGNORE) != MPI_SUCCESS)
        _exit(4);
}

static void fail(const char *how)
{
    signal(SIGSEGV, SIG_DFL); /* Open MPI has a handler */
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "segv") == 0)
        raise(SIGSEGV);
    if (strcmp(how, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (strcmp(how, "exit") == 0)
        exit(3);
    for (;;)
        sleep(1);
}

/* Ranks wait in the collective for the one that fails, and not in the next call that needs it. */
static MPI_Info synchronous(void)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpiox_synchronous", "true");
    return info;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 5 || MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, synchronous(), &file))
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int number = 0; number < TURNS; number++)
        turn(number);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == atoi(argv[3])) {
        sleep((unsigned)atoi(argv[4]));
        fail(argv[2]);
    }
    turn(TURNS);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
