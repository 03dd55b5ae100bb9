/*
 * third.c - programs of a third reader, whose first sentences were vague, wrong, or no finding of their own.
 */
#include <stdio.h>
#include <unistd.h>

#include "kernel.h"

/* Each rank writes as much; then one comes late to close the file. */
static void late_to_close(void)
{
    MPI_File file = open_shared(CREATE, NULL);

    for (int k = 0; k < 4; k++)
        MPI_File_write_at(file, ((MPI_Offset)k * ranks + rank) * MIB, data, MIB, MPI_BYTE, MPI_STATUS_IGNORE);
    if (rank == 2 % ranks)
        usleep(1000000 * (unsigned)size);
    MPI_File_close(&file);
}

/* One rank writes ten times as much as another by independent MPI-IO calls; the others wait to close the file. */
static void uneven_writes(void)
{
    MPI_File file = open_shared(CREATE, NULL);
    const int count = (rank == 1 ? 100 : 10) * size;

    for (int k = 0; k < count; k++)
        MPI_File_write_at(file, ((MPI_Offset)rank * 100 * size + k) * MIB, data, MIB, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Collective writes that one aggregator carries out with a buffer of 16 KiB. */
static void small_rounds(void)
{
    static const char *const hints[] = {"cb_buffer_size", "16384", "romio_cb_write", "enable", NULL};
    MPI_File file = open_shared(CREATE, hints);

    for (int k = 0; k < 2 * size; k++)
        MPI_File_write_at_all(file, ((MPI_Offset)k * ranks + rank) * MIB, data, MIB, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Rank 0 writes the whole file, as fill values; then each rank writes its part. */
static void fill_values(void)
{
    const int each = 16 * size;
    MPI_File file = open_shared(CREATE, NULL);

    for (int k = 0; rank == 0 && k < ranks * each; k++)
        MPI_File_write_at(file, (MPI_Offset)k * MIB, data, MIB, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < each; k++)
        MPI_File_write_at(file, ((MPI_Offset)rank * each + k) * MIB, data, MIB, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Small files are made again and again beside one that MPI-IO writes. */
static void files_beside(void)
{
    char name[NAME_BYTES];
    MPI_File file = open_shared(CREATE, NULL);

    for (int k = 0; k < 6 * size; k++) {
        MPI_File_write_at_all(file, ((MPI_Offset)k * ranks + rank) * MIB, data, MIB, MPI_BYTE, MPI_STATUS_IGNORE);
        for (int j = 0; j < 2000; j++) {
            snprintf(name, sizeof(name), "%s/beside.%d.%d", folder, rank, j % 50);
            const int small = open_posix(name, O_CREAT | O_WRONLY | O_TRUNC);
            put(small, 64, 0);
            close(small);
        }
    }
    MPI_File_close(&file);
}

/* Records of 300 B with gaps, beside a few blocks of 4 MiB. */
static void two_sizes(void)
{
    const int file = open_posix(path, O_CREAT | O_RDWR);

    for (int k = 0; k < 8 * size; k++) {
        const off_t at = ((off_t)rank * 8 * size + k) * 16 * MIB;

        put(file, 4 * MIB, at);
        for (int j = 0; j < 10000; j++)
            put(file, 300, at + 4 * MIB + (off_t)j * 400);
    }
    close(file);
}

/* Two tables of each rank, from front to back, a record of each in turn. */
static void two_tables(void)
{
    const int file = open_posix(path, O_CREAT | O_RDWR);
    const off_t first = (off_t)rank * 128 * MIB;

    for (int k = 0; k < 40000 * size; k++) {
        put(file, 2 * KIB, first + (off_t)k * 3 * KIB);
        put(file, 1 * KIB, first + 64 * MIB + (off_t)k * 3 * KIB);
    }
    close(file);
}

/* Records of all ranks, one of each in turn, of which no two ranks meet. */
static void records_of_ranks_in_turn(void)
{
    MPI_File file = open_shared(CREATE, NULL);

    for (int k = 0; k < 30000 * size; k++)
        MPI_File_write_at(file, ((MPI_Offset)k * ranks + rank) * 2 * KIB, data, 2 * KIB, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

const struct kind third_kinds[] = {
    {"late_to_close", late_to_close},
    {"uneven_writes", uneven_writes},
    {"small_rounds", small_rounds},
    {"fill_values", fill_values},
    {"files_beside", files_beside},
    {"two_sizes", two_sizes},
    {"two_tables", two_tables},
    {"records_of_ranks_in_turn", records_of_ranks_in_turn},
    {NULL, NULL},
};
