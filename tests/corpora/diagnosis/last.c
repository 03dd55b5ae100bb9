/*
 * last.c - programs whose I/O has one known problem, or none: written after the rules had been mended with later.c, and
 * nothing was mended with them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernel.h"

/* Rank 1 reads, and gives each rank its part. */
static void middle_reader(void)
{
    int file = rank == 1 ? open_posix(input, O_RDONLY) : -1;

    for (int k = 0; k < 60 * size; k++) {
        if (rank == 1)
            for (int block = 0; block < 8; block++)
                get(file, MIB, (off_t)((8 * k + block) % INPUT_MIB) * MIB);
        MPI_Scatter(data, 64 * KIB, MPI_BYTE, rank == 1 ? MPI_IN_PLACE : data, 64 * KIB, MPI_BYTE, 1, MPI_COMM_WORLD);
    }
    if (rank == 1)
        close(file);
}

/* Look into each of many small files. */
static void walk_files(void)
{
    char name[NAME_BYTES];

    for (int k = 0; k < 8000 * size; k++) {
        snprintf(name, sizeof(name), "%s/walk.%d.%d", folder, rank, k % 100);
        int file = open_posix(name, k < 100 ? O_CREAT | O_RDWR : O_RDWR);
        if (k < 100)
            put(file, 64, 0);
        get(file, 64, 0);
        close(file);
    }
}

/* Independent MPI-IO calls of 1 KiB, each after a seek to another place. */
static void seek_mpi(void)
{
    MPI_File file = open_shared(CREATE, NULL);

    srand((unsigned)rank + 9);
    for (int k = 0; k < 50000 * size; k++) {
        MPI_File_seek(file, (MPI_Offset)(rand() % 65536) * KIB, MPI_SEEK_SET);
        MPI_File_write(file, data, KIB, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
}

/* Collective writes to which one rank gives eight times as much; all ranks aggregate, and write equal parts. */
static void uneven_collective(void)
{
    static const char *const hints[] = {"cb_config_list", "*:*", "romio_cb_write", "enable", NULL};
    MPI_File file = open_shared(CREATE, hints);
    const int mine = rank == ranks - 1 ? 8 * MIB : MIB;

    for (int k = 0; k < 10 * size; k++)
        MPI_File_write_at_all(file, ((MPI_Offset)k * (ranks + 7) + rank) * MIB, data, mine, MPI_BYTE,
                              MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Large reads at random places. */
static void large_random(void)
{
    int file = open_posix(input, O_RDONLY);

    srand((unsigned)rank + 11);
    for (int k = 0; k < 100 * size; k++)
        get(file, 4 * MIB, (off_t)(rand() % (INPUT_MIB - 4)) * MIB);
    close(file);
}

/* A checkpoint that is synced once. */
static void sync_once(void)
{
    char name[NAME_BYTES];

    snprintf(name, sizeof(name), "%s/once.%d", folder, rank);
    int file = open_posix(name, O_CREAT | O_WRONLY);
    for (int k = 0; k < 40 * size; k++)
        put(file, MIB, (off_t)k * MIB);
    fsync(file);
    close(file);
}

/* Records of 512 B and a header of 64 B before each, in turn, far apart. */
static void records_apart(void)
{
    int file = open_posix(path, O_CREAT | O_RDWR);

    for (int k = 0; k < 20000 * size; k++) {
        const off_t at = ((off_t)k * ranks + rank) * 8 * KIB;
        put(file, 64, at);
        put(file, 512, at + 4 * KIB);
    }
    close(file);
}

/* The first rank writes what it holds, all others a header of 1 KiB. */
static void one_writer_and_headers(void)
{
    int file = open_posix(path, O_CREAT | O_WRONLY);

    put(file, KIB, (off_t)rank * KIB);
    for (int k = 1; rank == 0 && k < 80 * size; k++)
        put(file, 2 * MIB, (off_t)k * 2 * MIB);
    close(file);
    MPI_Barrier(MPI_COMM_WORLD);
}

const struct kind last_kinds[] = {
    {"middle_reader", middle_reader},
    {"walk_files", walk_files},
    {"seek_mpi", seek_mpi},
    {"uneven_collective", uneven_collective},
    {"large_random", large_random},
    {"sync_once", sync_once},
    {"records_apart", records_apart},
    {"one_writer_and_headers", one_writer_and_headers},
    {NULL, NULL},
};
