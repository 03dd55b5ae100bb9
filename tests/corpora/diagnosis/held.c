/*
 * held.c - programs whose I/O has one known problem, or none: written after the rules, and never tuned on before the
 * first result was written down.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel.h"

static void own_name(char *name, const char *stem, int number)
{
    snprintf(name, NAME_BYTES, "%s/%s.%d.%d", folder, stem, rank, number);
}

/* Small reads with gaps, through POSIX. */
static void strided_posix(void)
{
    int file = open_posix(input, O_RDONLY);

    for (int k = 0; k < 150000 * size; k++)
        get(file, 4 * KIB, ((off_t)k * ranks + rank) % (INPUT_MIB * 16) * 64 * KIB);
    close(file);
}

/* Rank 0 reads, and hands each piece out. */
static void reader_broadcast(void)
{
    int file = rank == 0 ? open_posix(input, O_RDONLY) : -1;

    for (int k = 0; k < 600 * size; k++) {
        if (rank == 0)
            get(file, MIB, (off_t)(k % INPUT_MIB) * MIB);
        MPI_Bcast(data, MIB, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        close(file);
}

/* Each record: open, append, close. */
static void open_per_record(void)
{
    char name[NAME_BYTES];

    own_name(name, "records", 0);
    for (int k = 0; k < 20000 * size; k++) {
        int file = open_posix(name, O_CREAT | O_WRONLY | O_APPEND);
        check(write(file, data, 100) != 100, "write");
        close(file);
    }
}

static void sync_per_write(void)
{
    char name[NAME_BYTES];

    own_name(name, "synced", 0);
    int file = open_posix(name, O_CREAT | O_WRONLY);
    for (int k = 0; k < 60 * size; k++) {
        put(file, 256 * KIB, (off_t)k * 256 * KIB);
        fsync(file);
    }
    close(file);
}

/* All look at the same files again and again. */
static void stat_storm(void)
{
    char name[NAME_BYTES];
    struct stat found;

    for (int k = 0; k < 200; k++) {
        snprintf(name, sizeof(name), "%s/looked.%d", folder, k);
        if (k % ranks == rank)
            close(open_posix(name, O_CREAT | O_WRONLY));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < 100000 * size; k++) {
        snprintf(name, sizeof(name), "%s/looked.%d", folder, k % 200);
        check(stat(name, &found) != 0, "stat");
    }
}

static void tiny_files(void)
{
    char name[NAME_BYTES];

    for (int k = 0; k < 500 * size; k++) {
        own_name(name, "tiny", k);
        int file = open_posix(name, O_CREAT | O_WRONLY);
        put(file, 2 * KIB, 0);
        close(file);
    }
}

/* All append short records to one file. */
static void append_all(void)
{
    int file = open_posix(path, O_CREAT | O_WRONLY | O_APPEND);

    for (int k = 0; k < 40000 * size; k++)
        check(write(file, data, 200) != 200, "write");
    close(file);
}

static void seek_writes(void)
{
    int file = open_posix(path, O_CREAT | O_WRONLY);

    srand((unsigned)rank + 1);
    for (int k = 0; k < 60000 * size; k++) {
        lseek(file, (off_t)(rand() % (32 * 512)) * 2 * KIB, SEEK_SET);
        check(write(file, data, 2 * KIB) != 2 * KIB, "write");
    }
    close(file);
}

/* One rank has ten times as much to write as each of the others. */
static void busy_rank(void)
{
    int file = open_posix(path, O_CREAT | O_WRONLY);

    for (int k = 0; k < (rank == ranks / 2 ? 120 : 12) * size; k++)
        put(file, MIB, ((off_t)rank * 120 * size + k) * MIB);
    close(file);
}

/* Independent writes through a view: 64 pieces of 2 KiB a call. */
static void view_writes(const char *const *hints)
{
    MPI_File file = open_shared(CREATE, hints);

    view_pieces(file, 2 * KIB, 4 * KIB, 64);
    for (int k = 0; k < 200 * size; k++)
        MPI_File_write(file, data, 128 * KIB, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

static void view_sieved(void)
{
    static const char *const hints[] = {"romio_ds_write", "enable", NULL};
    view_writes(hints);
}

static void view_unsieved(void)
{
    static const char *const hints[] = {"romio_ds_write", "disable", NULL};
    view_writes(hints);
}

static void one_aggregator_read(void)
{
    static const char *const hints[] = {"romio_cb_read", "enable", "cb_nodes", "1", NULL};
    MPI_File file = open_together(input, MPI_MODE_RDONLY, hints);

    for (int again = 0; again < 8 * size; again++) {
        view_pieces(file, 64 * KIB, 64 * KIB, 16);
        for (int k = 0; k < INPUT_MIB / ranks; k++)
            MPI_File_read_all(file, data, MIB, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
}

/* Collective writes that leave holes: the aggregators read them first. */
static void collective_holes(void)
{
    static const char *const hints[] = {
        "romio_cb_write", "enable", "romio_ds_write", "enable", "cb_config_list", "*:*", NULL};
    MPI_File file = open_together(input, MPI_MODE_RDWR, hints);

    for (int again = 0; again < 4 * size; again++) {
        view_pieces(file, 8 * KIB, 16 * KIB, 64);
        for (int k = 0; k < INPUT_MIB / ranks; k++)
            MPI_File_write_all(file, data, 512 * KIB, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
}

static void unaligned_posix(void)
{
    int file = open_posix(path, O_CREAT | O_WRONLY);
    const int bytes = MIB + 17;

    for (int k = 0; k < 32 * size; k++)
        put(file, (size_t)bytes, ((off_t)k * ranks + rank) * bytes);
    close(file);
}

/* Every rank reads all of the same file. */
static void redundant_reads(void)
{
    int file = open_posix(input, O_RDONLY);

    for (int k = 0; k < 4 * INPUT_MIB * size; k++)
        get(file, MIB, (off_t)(k % INPUT_MIB) * MIB);
    close(file);
}

static void mostly_compute(void)
{
    char name[NAME_BYTES];

    own_name(name, "steps", 0);
    int file = open_posix(name, O_CREAT | O_WRONLY);
    for (int k = 0; k < 50; k++) {
        usleep(60000);
        put(file, 1000, (off_t)k * 5000);
    }
    close(file);
}

static void large_own_files(void)
{
    char name[NAME_BYTES];

    own_name(name, "large", 0);
    int file = open_posix(name, O_CREAT | O_WRONLY);
    for (int k = 0; k < 12 * size; k++)
        put(file, 8 * MIB, (off_t)k * 8 * MIB);
    close(file);
}

static void collective_large(void)
{
    static const char *const hints[] = {"cb_config_list", "*:*", NULL};
    MPI_File file = open_shared(CREATE, hints);

    for (int k = 0; k < 3 * size; k++)
        MPI_File_write_at_all(file, ((MPI_Offset)rank * 3 * size + k) * DATA_BYTES, data, DATA_BYTES, MPI_BYTE,
                              MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Lines of text, which the C library gathers. */
static void stdio_lines(void)
{
    char name[NAME_BYTES];

    own_name(name, "lines", 0);
    FILE *file = fopen(name, "w");
    check(file == NULL, "fopen");
    for (int k = 0; k < 300000 * size; k++)
        fprintf(file, "rank %d step %d value %.6f of a line of text\n", rank, k, k * 0.5);
    fclose(file);
}

/* Samples of a training set, in a random order. */
static void random_samples(void)
{
    int file = open_posix(input, O_RDONLY);

    srand((unsigned)rank + 7);
    for (int k = 0; k < 8000 * size; k++)
        get(file, 100 * KIB, (off_t)(rand() % (INPUT_MIB * 10 - 10)) * 100 * KIB);
    close(file);
}

/* Many variables, one after the other in one file, each by a collective call. */
static void checkpoint(void)
{
    static const char *const hints[] = {"cb_config_list", "*:*", NULL};
    MPI_File file = open_shared(CREATE, hints);
    const int bytes = 2 * MIB;

    if (rank == 0)
        MPI_File_write_at(file, 0, data, 4 * KIB, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int k = 0; k < 20 * size; k++)
        MPI_File_write_at_all(file, 4 * KIB + ((MPI_Offset)k * ranks + rank) * bytes, data, bytes, MPI_BYTE,
                              MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* All send their data to rank 0, which writes them by MPI-IO. */
static void gather_and_write(void)
{
    char *all = rank == 0 ? malloc((size_t)ranks * MIB) : NULL;
    MPI_File file = open_shared(CREATE, NULL);

    for (int k = 0; k < 24 * size; k++) {
        MPI_Gather(data, MIB, MPI_BYTE, all, MIB, MPI_BYTE, 0, MPI_COMM_WORLD);
        if (rank == 0)
            MPI_File_write_at(file, (MPI_Offset)k * ranks * MIB, all, ranks * MIB, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
    free(all);
}

/* Four files a rank; those that lie on a slow target take longer (Python makes the folder "slow" slow). */
static void slow_target(void)
{
    char name[NAME_BYTES];

    for (int k = 0; k < 4; k++) {
        const int slow = rank == ranks - 1 && k >= 2;
        snprintf(name, sizeof(name), "%s/%s/part.%d.%d", folder, slow ? "slow" : "", rank, k);
        int file = open_posix(name, O_CREAT | O_WRONLY);
        for (int block = 0; block < 8 * size; block++)
            put(file, MIB, (off_t)block * MIB);
        close(file);
    }
}

const struct kind held_kinds[] = {
    {"strided_posix", strided_posix},
    {"reader_broadcast", reader_broadcast},
    {"open_per_record", open_per_record},
    {"sync_per_write", sync_per_write},
    {"stat_storm", stat_storm},
    {"tiny_files", tiny_files},
    {"append_all", append_all},
    {"seek_writes", seek_writes},
    {"busy_rank", busy_rank},
    {"view_sieved", view_sieved},
    {"view_unsieved", view_unsieved},
    {"one_aggregator_read", one_aggregator_read},
    {"collective_holes", collective_holes},
    {"unaligned_posix", unaligned_posix},
    {"redundant_reads", redundant_reads},
    {"mostly_compute", mostly_compute},
    {"large_own_files", large_own_files},
    {"collective_large", collective_large},
    {"stdio_lines", stdio_lines},
    {"random_samples", random_samples},
    {"checkpoint", checkpoint},
    {"gather_and_write", gather_and_write},
    {"slow_target", slow_target},
    {NULL, NULL},
};
