/*
 * delegates_crash.c - ranks that go on writing and reading while somebody kills the delegates: no byte may be lost.
 *
 * usage: delegates_crash FILE PROGRESS RECORDS PAUSE_US
 *
 * RECORDS records of 17 to 2016 bytes lie one behind the other; record i belongs to rank i mod ranks. Every rank writes
 * its records in an order of its own by independent calls, now and then reads one back that it has written, syncs in
 * the middle, and at the end reads what the next rank has written. Then the file is closed and looked at without MPI,
 * and all is done once more with a second file, FILE.2, opened when it all may have happened already. PROGRESS is a
 * file of one 32-bit counter for each rank, raised with every record, and of two more: at index `ranks` what rank 0 is
 * doing (1 opening, 2 waiting, 3 writing, 4 syncing, 5 reading, 6 closing, 7 done), behind it what it waits for when
 * the first file is open: a word that is not 0, written by whoever is to kill. Prints the lines of report.h; "end" is
 * the last one.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

enum { LEAST = 17, SPREAD = 2000, SEED = 3 };
enum phase { OPENING = 1, WAITING, WRITING, SYNCING, READING, CLOSING, DONE };

static unsigned char buffer[LEAST + SPREAD];
static volatile uint32_t *progress;
static int records, pause_us, complaints;

static void pause_for(long microseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000L}, NULL);
}

static int size_of(int record)
{
    return LEAST + (int)((unsigned)record * 7919u % SPREAD);
}

static long long *offsets_of_records(void)
{
    long long *offsets = malloc(((size_t)records + 1) * sizeof *offsets);

    offsets[0] = 0;
    for (int i = 0; i < records; i++)
        offsets[i + 1] = offsets[i] + size_of(i);
    return offsets;
}

static void enter(enum phase phase)
{
    complaints = 0;
    if (rank == 0)
        progress[ranks] = phase;
}

/* 1 if the call went well; otherwise the first complaints are printed. */
static int fine(const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (code == MPI_SUCCESS)
        return 1;
    if (complaints++ < 3) {
        MPI_Error_string(code, text, &length);
        printf("rank %d: %s: %s\n", rank, call, text);
        fflush(stdout);
    }
    return 0;
}

static int counted(const MPI_Status *status)
{
    int count = -1;

    MPI_Get_count(status, MPI_BYTE, &count);
    return count;
}

static int reads_well(MPI_File file, const long long *offsets, int record)
{
    MPI_Status status;
    const int size = size_of(record);

    memset(buffer, 0, sizeof buffer);
    if (!fine("read_at", MPI_File_read_at(file, offsets[record], buffer, size, MPI_BYTE, &status)))
        return 0;
    if (counted(&status) != size || !equals_from(buffer, offsets[record], size, SEED)) {
        if (complaints++ < 3)
            printf("rank %d: record %d at %lld: %d of %d bytes, wrong\n", rank, record, offsets[record],
                   counted(&status), size);
        return 0;
    }
    return 1;
}

/* In an order of this rank's own; the next rank's too if `all`. */
static int write_records(MPI_File file, const long long *offsets, int from, int to)
{
    const int mine = (records - rank + ranks - 1) / ranks, step = mine > 7 && mine % 7 != 0 ? 7 : 1;
    int well = 1;

    for (int k = from * mine / 100; k < to * mine / 100; k++) {
        const int record = (int)((long long)k * step % mine) * ranks + rank, size = size_of(record);
        MPI_Status status;

        fill_from(buffer, offsets[record], size, SEED);
        well &= fine("write_at", MPI_File_write_at(file, offsets[record], buffer, size, MPI_BYTE, &status));
        well &= counted(&status) == size;
        progress[rank]++;
        if (k % 16 == 5)
            well &= reads_well(file, offsets, (int)((long long)(k / 2) * step % mine) * ranks + rank);
        if (pause_us > 0)
            pause_for(pause_us);
    }
    return well;
}

static int read_the_next_ranks(MPI_File file, const long long *offsets)
{
    int well = 1;

    for (int record = (rank + 1) % ranks; record < records; record += ranks)
        well &= reads_well(file, offsets, record);
    return well;
}

static void use_file(const char *path, const long long *offsets)
{
    MPI_File file;
    int well;

    enter(OPENING);
    check("open",
          fine("open", MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file)));
    enter(WAITING);
    while (rank == 0 && progress[ranks + 1] == 0)
        pause_for(1000);
    MPI_Barrier(MPI_COMM_WORLD);
    enter(WRITING);
    well = write_records(file, offsets, 0, 50);
    check("first half", well);
    enter(SYNCING);
    check("sync in the middle", fine("sync", MPI_File_sync(file)));
    enter(WRITING);
    well = write_records(file, offsets, 50, 100);
    check("second half", well);
    enter(SYNCING);
    well = fine("sync", MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    well &= fine("sync", MPI_File_sync(file));
    check("sync, barrier, sync", well);
    enter(READING);
    well = read_the_next_ranks(file, offsets);
    check("reading what others wrote", well);
    enter(CLOSING);
    check("close", fine("close", MPI_File_close(&file)));
    check_file("the file", path, offsets[records], SEED);
}

int main(int argc, char **argv)
{
    long long *offsets;
    char second[4096];
    int held = -1, threads;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5 || (held = open(argv[2], O_RDWR)) < 0)
        MPI_Abort(MPI_COMM_WORLD, 2);
    progress = mmap(NULL, ((size_t)ranks + 2) * sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED, held, 0);
    if (progress == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 2);
    records = atoi(argv[3]);
    pause_us = atoi(argv[4]);
    offsets = offsets_of_records();
    use_file(argv[1], offsets);
    snprintf(second, sizeof second, "%s.2", argv[1]);
    use_file(second, offsets);
    enter(DONE);
    free(offsets);
    MPI_Finalize();
    if (rank == 0)
        puts("end");
    return failures != 0;
}
