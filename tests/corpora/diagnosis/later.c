/*
 * later.c - programs whose I/O has one known problem, or none: written after the rules had been mended with held.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kernel.h"

static FILE *open_text(const char *stem, const char *mode)
{
    char name[NAME_BYTES];

    snprintf(name, sizeof(name), "%s/%s.%d", folder, stem, rank);
    FILE *file = fopen(name, mode);
    check(file == NULL, "fopen");
    return file;
}

/* Two of the ranks write all: nothing wrong with two of two. */
static void two_writers(void)
{
    if (rank < 2) {
        int file = open_posix(path, O_CREAT | O_WRONLY);
        for (int k = 0; k < 96 * size; k++)
            put(file, MIB, ((off_t)k * 2 + rank) * MIB);
        close(file);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The last rank writes what the others send it. */
static void last_rank_writes(void)
{
    const int last = ranks - 1;
    int file = rank == last ? open_posix(path, O_CREAT | O_WRONLY) : -1;

    for (int k = 0; k < 16 * size * ranks; k++) {
        const int from = k % ranks;
        if (rank == from && from != last)
            MPI_Send(data, MIB, MPI_BYTE, last, 0, MPI_COMM_WORLD);
        if (rank != last)
            continue;
        if (from != last)
            MPI_Recv(data, MIB, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        put(file, MIB, (off_t)k * MIB);
    }
    if (rank == last)
        close(file);
}

/* A table of rows that are updated: read 8 KiB, write them back, at a random place. */
static void random_updates(void)
{
    int file = open_posix(input, O_RDWR);

    srand((unsigned)rank + 3);
    for (int k = 0; k < 30000 * size; k++) {
        const off_t where = (off_t)(rand() % (INPUT_MIB * 128)) * 8 * KIB;
        get(file, 8 * KIB, where);
        put(file, 8 * KIB, where);
    }
    close(file);
}

/* Columns of a table of rows: 64 pieces of 512 B with gaps, each read by itself. */
static void column_reads(void)
{
    static const char *const hints[] = {"romio_ds_read", "disable", NULL};
    MPI_File file = open_together(input, MPI_MODE_RDONLY, hints);

    for (int k = 0; k < 2500 * size; k++) {
        MPI_File_set_view(file, ((MPI_Offset)k * ranks + rank) % INPUT_MIB * MIB / 2, MPI_BYTE, MPI_BYTE, "native",
                          MPI_INFO_NULL);
        for (int piece = 0; piece < 64; piece++)
            MPI_File_read_at(file, (MPI_Offset)piece * 4 * KIB, data, 512, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
}

/* All ranks open the same file by MPI-IO for each step, and write 64 KiB. */
static void open_per_step(void)
{
    for (int k = 0; k < 400 * size; k++) {
        MPI_File file = open_shared(CREATE, NULL);
        MPI_File_write_at(file, ((MPI_Offset)(k % 50) * ranks + rank) * 64 * KIB, data, 64 * KIB, MPI_BYTE,
                          MPI_STATUS_IGNORE);
        MPI_File_close(&file);
    }
}

/* Write a new file, and rename it over the old one: 1 KiB each. */
static void rename_each(void)
{
    char new[NAME_BYTES], old[NAME_BYTES];

    snprintf(new, sizeof(new), "%s/new.%d", folder, rank);
    snprintf(old, sizeof(old), "%s/state.%d", folder, rank);
    for (int k = 0; k < 4000 * size; k++) {
        int file = open_posix(new, O_CREAT | O_WRONLY | O_TRUNC);
        put(file, KIB, 0);
        close(file);
        check(rename(new, old) != 0, "rename");
    }
}

/* Lines that are read back one by one, each found by a seek. */
static void text_seeks(void)
{
    char line[128];
    FILE *file = fopen(input, "r");

    check(file == NULL, "fopen");
    srand((unsigned)rank + 5);
    for (int k = 0; k < 60000 * size; k++) {
        fseek(file, (long)(rand() % (INPUT_MIB * 8192)) * 128, SEEK_SET);
        check(fread(line, 1, sizeof(line), file) != sizeof(line), "fread");
    }
    fclose(file);
}

/* Each rank its own file, by the C library in blocks of 1 MiB. */
static void stdio_blocks(void)
{
    FILE *file = open_text("blocks", "w");

    for (int k = 0; k < 64 * size; k++)
        check(fwrite(data, 1, MIB, file) != MIB, "fwrite");
    fclose(file);
}

/* Collective reads by all ranks as aggregators: a restart. */
static void restart(void)
{
    static const char *const hints[] = {"cb_config_list", "*:*", "romio_cb_read", "enable", NULL};
    MPI_File file = open_together(input, MPI_MODE_RDONLY, hints);
    const int bytes = 4 * MIB;

    for (int again = 0; again < 6 * size; again++)
        for (int k = 0; k < INPUT_MIB * MIB / bytes / ranks; k++)
            MPI_File_read_at_all(file, ((MPI_Offset)k * ranks + rank) * bytes, data, bytes, MPI_BYTE,
                                 MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Collective writes of rows: 2 MiB a rank, of 256 KiB pieces that interleave; all ranks aggregate. */
static void collective_rows(void)
{
    static const char *const hints[] = {"cb_config_list", "*:*", "romio_cb_write", "enable", NULL};
    MPI_File file = open_shared(CREATE, hints);

    view_pieces(file, 256 * KIB, 256 * KIB, 8);
    for (int k = 0; k < 16 * size; k++)
        MPI_File_write_all(file, data, 2 * MIB, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* The first rank reads a third of the input again and again, the others a bit each. */
static void busy_reader(void)
{
    int file = open_posix(input, O_RDONLY);

    for (int k = 0; k < (rank == 0 ? 1600 : 100) * size; k++)
        get(file, MIB, (off_t)(k % INPUT_MIB) * MIB);
    close(file);
}

/* Vectors of 16 pieces of 100 B, at places that jump. */
static void vector_writes(void)
{
    struct iovec pieces[16];
    int file = open_posix(path, O_CREAT | O_WRONLY);

    for (int k = 0; k < 16; k++)
        pieces[k] = (struct iovec){data, 100};
    for (int k = 0; k < 30000 * size; k++)
        check(pwritev(file, pieces, 16, ((off_t)k * ranks + rank) * 4 * KIB) != 1600, "pwritev");
    close(file);
}

/* One aggregator for collective writes that interleave coarsely. */
static void one_aggregator_rows(void)
{
    static const char *const hints[] = {"cb_nodes", "1", "romio_cb_write", "enable", NULL};
    MPI_File file = open_shared(CREATE, hints);

    view_pieces(file, 128 * KIB, 128 * KIB, 16);
    for (int k = 0; k < 16 * size; k++)
        MPI_File_write_all(file, data, 2 * MIB, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Independent writes of 100 B with gaps of 28 B, through a view: sieved. */
static void sieved_records(void)
{
    static const char *const hints[] = {"romio_ds_write", "enable", "romio_cb_write", "disable", NULL};
    MPI_File file = open_shared(CREATE, hints);

    view_pieces(file, 100, 128, 2000);
    for (int k = 0; k < 60 * size; k++)
        MPI_File_write(file, data, 200000, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Computes, and writes a large checkpoint at the end. */
static void long_run(void)
{
    char name[NAME_BYTES];

    usleep(4000000);
    snprintf(name, sizeof(name), "%s/end.%d", folder, rank);
    int file = open_posix(name, O_CREAT | O_WRONLY);
    for (int k = 0; k < 4; k++)
        put(file, 2 * MIB, (off_t)k * 2 * MIB);
    close(file);
}

/* Own files, read in blocks of 4 MiB from the input: nothing wrong. */
static void own_copies(void)
{
    char name[NAME_BYTES];
    int from = open_posix(input, O_RDONLY);

    snprintf(name, sizeof(name), "%s/copy.%d", folder, rank);
    int file = open_posix(name, O_CREAT | O_WRONLY);
    for (int k = 0; k < INPUT_MIB / 4; k++) {
        get(from, 4 * MIB, (off_t)k * 4 * MIB);
        put(file, 4 * MIB, (off_t)k * 4 * MIB);
    }
    close(file);
    close(from);
}

const struct kind later_kinds[] = {
    {"two_writers", two_writers},
    {"last_rank_writes", last_rank_writes},
    {"random_updates", random_updates},
    {"column_reads", column_reads},
    {"open_per_step", open_per_step},
    {"rename_each", rename_each},
    {"text_seeks", text_seeks},
    {"stdio_blocks", stdio_blocks},
    {"restart", restart},
    {"collective_rows", collective_rows},
    {"busy_reader", busy_reader},
    {"vector_writes", vector_writes},
    {"one_aggregator_rows", one_aggregator_rows},
    {"sieved_records", sieved_records},
    {"long_run", long_run},
    {"own_copies", own_copies},
    {NULL, NULL},
};
