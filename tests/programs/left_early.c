/*
 * left_early.c - a rank dies in a collective write that the other ranks leave without it.
 *
 * usage: left_early FILE NOTES PLACE VICTIM NEXT
 *   PLACE   before (the victim dies before the call), agreed (at its request, which the ranks have agreed on), inside
 *           (its request has written the first half)
 *   NEXT    write, read, sync or close: what the other ranks do after the call
 *
 * In each call a rank writes one piece. In call DEADLY the victim first waits until all other ranks are as far as they
 * get without it: in the call (before), or beyond it. NOTES, a file that all ranks map, has a row of four int for each
 * rank: calls that it has begun, calls in which it has made a request, calls that have returned success and all bytes,
 * and 1 if it is beyond the deadly call; for the victim, 1 if the others did not get as far.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "report.h"

enum { PIECE = 1 << 16, DEADLY = 3, PATIENCE_MS = 60000, GRACE_MS = 200 };
enum { BEGUN, REQUESTED, DONE, BEYOND, NOTES };

static unsigned char data[PIECE];
static const char *place;
static int victim, call = -1; /* the call that is under way; -1: none */
static atomic_int (*notes)[NOTES];

static void nap(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    nanosleep(&moment, NULL);
}

static int have_all(int note, int value)
{
    int all = 1;
    for (int i = 0; i < ranks; i++)
        all &= i == victim || atomic_load(&notes[i][note]) >= value;
    return all;
}

static void die(int note, int value)
{
    for (int ms = 0; ms < PATIENCE_MS && !have_all(note, value); ms++)
        nap();
    for (int ms = 0; ms < GRACE_MS; ms++) /* a rank that does not wait for this one gets further */
        nap();
    atomic_store(&notes[rank][BEYOND], !have_all(note, value));
    kill(getpid(), SIGKILL);
}

/* In place of the C library's, for the whole process. */
ssize_t pwrite(int fd, const void *from, size_t bytes, off_t at)
{
    const int dies = call == DEADLY && rank == victim;

    if (call >= 0)
        atomic_store(&notes[rank][REQUESTED], call + 1);
    if (dies && strcmp(place, "inside") == 0)
        syscall(SYS_pwrite64, fd, from, bytes / 2, at);
    if (dies)
        die(BEYOND, 1);
    return syscall(SYS_pwrite64, fd, from, bytes, at);
}

static void map_notes(const char *path)
{
    const size_t bytes = (size_t)ranks * sizeof *notes;
    const int fd = open(path, O_RDWR | O_CREAT, 0600);

    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        MPI_Abort(MPI_COMM_WORLD, 2);
    notes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if ((void *)notes == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 2);
}

static void write_call(MPI_File file, int number)
{
    MPI_Status status;
    int count = -1;

    if (number == DEADLY && rank == victim && strcmp(place, "before") == 0)
        die(BEGUN, number + 1);
    atomic_store(&notes[rank][BEGUN], number + 1);
    fill_from(data, (long long)(number * ranks + rank) * PIECE, PIECE, 1);
    call = number;
    const int code = MPI_File_write_at_all(file, (MPI_Offset)(number * ranks + rank) * PIECE, data, PIECE, MPI_BYTE,
                                           &status);
    call = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    if (code == MPI_SUCCESS && count == PIECE)
        atomic_store(&notes[rank][DONE], number + 1);
}

int main(int argc, char **argv)
{
    MPI_File file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 6)
        MPI_Abort(MPI_COMM_WORLD, 2);
    place = argv[3];
    victim = atoi(argv[4]);
    map_notes(argv[2]);
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int number = 0; number <= DEADLY; number++)
        write_call(file, number);
    atomic_store(&notes[rank][BEYOND], 1);
    if (strcmp(argv[5], "write") == 0)
        write_call(file, DEADLY + 1);
    else if (strcmp(argv[5], "read") == 0)
        MPI_File_read_at_all(file, 0, data, PIECE, MPI_BYTE, MPI_STATUS_IGNORE);
    else if (strcmp(argv[5], "sync") == 0)
        MPI_File_sync(file);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
