/*
 * killed.c - a rank that dies while the others are in MPI-IO. The job must end; nobody may wait for ever.
 *
 * usage: killed FILE WAY WHEN VICTIM
 *   WAY     kill (SIGKILL) or exit (_exit(3), without MPI_Finalize)
 *   WHEN    between (before its next collective), inside (from another thread, in the middle of some collective),
 *           opening (likewise, while files are opened and closed), reading (inside, collective reads),
 *           independent (while the others make independent calls and wait in a barrier)
 * Prints "ready" when all ranks are about to enter the loop, and never ends by itself within the tests' limits.
 */
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

enum { TURN = 512, TURNS = 400, STEPS = 1000000 };

static unsigned char data[TURN * TURNS];
static const char *way;

static void die(void)
{
    if (strcmp(way, "kill") == 0)
        kill(getpid(), SIGKILL);
    _exit(3);
}

static void *die_soon(void *argument)
{
    struct timespec soon = {.tv_nsec = 150 * 1000000};

    (void)argument;
    nanosleep(&soon, NULL);
    die();
    return NULL;
}

static MPI_File open_and_view(const char *path)
{
    MPI_Datatype turns;
    MPI_File file;

    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Type_vector(TURNS, TURN, TURN * ranks, MPI_BYTE, &turns);
    MPI_Type_commit(&turns);
    MPI_File_set_view(file, (MPI_Offset)rank * TURN, MPI_BYTE, turns, "native", MPI_INFO_NULL);
    MPI_Type_free(&turns);
    return file;
}

static void step(MPI_File *file, const char *path, const char *when)
{
    if (strcmp(when, "opening") == 0) {
        MPI_File_close(file);
        *file = open_and_view(path);
        MPI_File_write_at_all(*file, 0, data, TURN, MPI_BYTE, MPI_STATUS_IGNORE);
    } else if (strcmp(when, "reading") == 0) {
        MPI_File_read_at_all(*file, 0, data, (int)sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
    } else if (strcmp(when, "independent") == 0) {
        MPI_File_write_at(*file, 0, data, TURN, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_File_write_at_all(*file, 0, data, (int)sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int threads, victim;
    pthread_t thread;
    MPI_File file;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5)
        MPI_Abort(MPI_COMM_WORLD, 2);
    way = argv[2];
    victim = atoi(argv[4]);
    file = open_and_view(argv[1]);
    MPI_File_write_at_all(file, 0, data, (int)sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
    check("ready", 1);
    if (rank == victim && strcmp(argv[3], "between") != 0)
        pthread_create(&thread, NULL, die_soon, NULL);
    for (int i = 0; i < STEPS; i++) {
        if (rank == victim && i == 5 && strcmp(argv[3], "between") == 0)
            die();
        step(&file, argv[1], argv[3]);
    }
    MPI_Finalize();
    return 0;
}
