/*
 * fresh.c - programs whose I/O has one known problem, or none: written by somebody who had made no rule, and judged
 * before any rule was mended with them.
 */
#include <stdio.h>
#include <unistd.h>

#include "kernel.h"

static int open_own(const char *stem, int flags)
{
    char name[NAME_BYTES];

    snprintf(name, sizeof(name), "%s/%s.%d", folder, stem, rank);
    return open_posix(name, O_CREAT | flags);
}

/* Lines of 200 B, each by a call of its own, appended to a log of each rank. */
static void append_log(void)
{
    const int file = open_own("log", O_WRONLY | O_APPEND);

    for (int k = 0; k < 80000 * size; k++)
        check(write(file, data, 200) != 200, "write");
    close(file);
}

/* Collective writes of 512 B a rank; all ranks aggregate. */
static void tiny_collectives(void)
{
    static const char *const hints[] = {"cb_config_list", "*:*", "romio_cb_write", "enable", NULL};
    MPI_File file = open_shared(CREATE, hints);

    for (int k = 0; k < 2000 * size; k++)
        MPI_File_write_at_all(file, ((MPI_Offset)k * ranks + rank) * 512, data, 512, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Records of 4 KiB by the shared file pointer. */
static void shared_records(void)
{
    MPI_File file = open_shared(CREATE, NULL);

    for (int k = 0; k < 1500 * size; k++)
        MPI_File_write_shared(file, data, 4 * KIB, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Pieces of 1 KiB, one of 16 KiB, read through a view: sieved. */
static void sieved_reads(void)
{
    MPI_File file = open_together(input, MPI_MODE_RDONLY, NULL);

    for (int k = 0; k < 24 * size; k++) {
        MPI_Datatype view;
        MPI_Type_vector(1024, KIB, 16 * KIB, MPI_BYTE, &view);
        MPI_Type_commit(&view);
        MPI_File_set_view(file, (MPI_Offset)((rank + k) % 16) * KIB, MPI_BYTE, view, "native", MPI_INFO_NULL);
        MPI_File_read_at(file, 0, data, MIB, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_Type_free(&view);
    }
    MPI_File_close(&file);
}

/* Collective writes to which rank 1 comes 100 ms after the others; all ranks aggregate. */
static void late_to_collectives(void)
{
    static const char *const hints[] = {"cb_config_list", "*:*", "romio_cb_write", "enable", NULL};
    MPI_File file = open_shared(CREATE, hints);

    for (int k = 0; k < 12 * size; k++) {
        if (rank == 1)
            usleep(100000);
        MPI_File_write_at_all(file, ((MPI_Offset)k * ranks + rank) * MIB, data, MIB, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
}

/* Large writes by MPI-IO, each read back by POSIX at once. */
static void read_back(void)
{
    MPI_File file = open_shared(CREATE, NULL);
    const int again = open_posix(path, O_RDONLY);

    for (int k = 0; k < 16 * size; k++) {
        const MPI_Offset at = ((MPI_Offset)k * ranks + rank) * 4 * MIB;
        MPI_File_write_at(file, at, data, 4 * MIB, MPI_BYTE, MPI_STATUS_IGNORE);
        get(again, 4 * MIB, at);
    }
    close(again);
    MPI_File_close(&file);
}

/* Rank 0 fills a file by POSIX; then all write a part of it by MPI-IO. */
static void filled_before(void)
{
    const int file = rank == 0 ? open_posix(path, O_CREAT | O_WRONLY) : -1;

    for (int k = 0; rank == 0 && k < 24 * size * ranks; k++)
        put(file, 4 * MIB, (off_t)k * 4 * MIB);
    if (rank == 0)
        close(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File both = open_shared(MPI_MODE_WRONLY, NULL);
    MPI_File_write_at(both, (MPI_Offset)rank * 4 * MIB, data, 4 * MIB, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&both);
}

/* Each rank reads its own part of the input again and again. */
static void own_parts(void)
{
    const int file = open_posix(input, O_RDONLY), mine = INPUT_MIB / ranks;

    for (int k = 0; k < 6 * mine * size; k++)
        get(file, MIB, (off_t)(rank * mine + k % mine) * MIB);
    close(file);
}

/* Blocks of 16 KiB, each read before the one that was read before it. */
static void backward_reads(void)
{
    const int file = open_posix(input, O_RDONLY), blocks = INPUT_MIB * 64;

    for (int k = 0; k < 4 * blocks * size; k++)
        get(file, 16 * KIB, (off_t)(blocks - 1 - k % blocks) * 16 * KIB);
    close(file);
}

/* Blocks of 16 KiB in a file that is opened for synchronous writes. */
static void synchronous_writes(void)
{
    const int file = open_own("sync", O_WRONLY | O_SYNC);

    for (int k = 0; k < 200 * size; k++)
        put(file, 16 * KIB, (off_t)k * 16 * KIB);
    close(file);
}

/* The same small block written and read back, again and again, in a file of each rank: nothing wrong in memory. */
static void scratch_blocks(void)
{
    const int file = open_own("scratch", O_RDWR);

    for (int k = 0; k < 200 * size; k++) {
        put(file, MIB, (off_t)(k % 8) * MIB);
        get(file, MIB, (off_t)(k % 8) * MIB);
    }
    close(file);
}

/* Rank 0 reads records of 16 KiB, and broadcasts each. */
static void small_broadcasts(void)
{
    const int file = rank == 0 ? open_posix(input, O_RDONLY) : -1;

    for (int k = 0; k < INPUT_MIB * 64 * size; k++) {
        if (rank == 0)
            get(file, 16 * KIB, (off_t)(k % (INPUT_MIB * 64)) * 16 * KIB);
        MPI_Bcast(data, 16 * KIB, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        close(file);
}

/* A rank that writes ten times as much as each other, to the same file. */
static void ten_times(void)
{
    const int file = open_posix(path, O_CREAT | O_WRONLY), mine = (rank == ranks - 1 ? 200 : 20) * size;

    for (int k = 0; k < mine; k++)
        put(file, MIB, ((off_t)rank * 200 * size + k) * MIB);
    close(file);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Nothing but temporary files: made, written with 100 B, removed. */
static void temporary_files(void)
{
    char name[NAME_BYTES];

    for (int k = 0; k < 2000 * size; k++) {
        snprintf(name, sizeof(name), "%s/temporary.%d.%d", folder, rank, k);
        const int file = open_posix(name, O_CREAT | O_RDWR | O_EXCL);
        put(file, 100, 0);
        close(file);
        check(unlink(name) != 0, "unlink");
    }
}

/* A rank begins 2 s late; each writes a file of its own. */
static void late_start(void)
{
    if (rank == ranks - 1)
        usleep(2000000);
    const int file = open_own("late", O_WRONLY);
    for (int k = 0; k < 48 * size; k++)
        put(file, MIB, (off_t)k * MIB);
    close(file);
}

const struct kind fresh_kinds[] = {
    {"append_log", append_log},
    {"tiny_collectives", tiny_collectives},
    {"shared_records", shared_records},
    {"sieved_reads", sieved_reads},
    {"late_to_collectives", late_to_collectives},
    {"read_back", read_back},
    {"filled_before", filled_before},
    {"own_parts", own_parts},
    {"backward_reads", backward_reads},
    {"synchronous_writes", synchronous_writes},
    {"scratch_blocks", scratch_blocks},
    {"small_broadcasts", small_broadcasts},
    {"ten_times", ten_times},
    {"temporary_files", temporary_files},
    {"late_start", late_start},
    {NULL, NULL},
};
