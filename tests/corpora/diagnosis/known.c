/*
 * known.c - programs whose I/O has one known problem, or none: the rules of the diagnosis were made with these.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel.h"

static void one_writer(void)
{
    if (rank == 0) {
        int file = open_posix(path, O_CREAT | O_WRONLY);
        for (int k = 0; k < 48 * size; k++)
            put(file, MIB, (off_t)k * MIB);
        close(file);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Collective writes of interleaved 4 KiB pieces. */
static void interleaved(const char *const *hints)
{
    MPI_File file = open_shared(CREATE, hints);
    MPI_Datatype view;

    MPI_Type_vector(4 * MIB / (4 * KIB), 4 * KIB, 4 * KIB * ranks, MPI_BYTE, &view);
    MPI_Type_commit(&view);
    MPI_File_set_view(file, (MPI_Offset)rank * 4 * KIB, MPI_BYTE, view, "native", MPI_INFO_NULL);
    for (int k = 0; k < 8 * size; k++)
        MPI_File_write_all(file, data, 4 * MIB, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Type_free(&view);
    MPI_File_close(&file);
}

static void few_aggregators(void)
{
    static const char *const hints[] = {"romio_cb_write", "enable", "cb_nodes", "1", NULL};
    interleaved(hints);
}

/* Collective calls that are carried out as they are: each piece by itself. */
static void no_buffering(void)
{
    static const char *const hints[] = {"romio_cb_write", "disable", "romio_ds_write", "disable", NULL};
    interleaved(hints);
}

/* Collective calls, each piece a read-modify-write of the rank's whole range. */
static void read_modify_write(void)
{
    static const char *const hints[] = {"romio_cb_write", "disable", "romio_ds_write", "enable", NULL};
    interleaved(hints);
}

static void independent(MPI_Offset bytes, MPI_Offset first, int count)
{
    MPI_File file = open_shared(CREATE, NULL);

    for (int k = 0; k < count; k++)
        MPI_File_write_at(file, first + ((MPI_Offset)k * ranks + rank) * bytes, data, (int)bytes, MPI_BYTE,
                          MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

static void small_independent(void)
{
    independent(512, 0, 20000 * size);
}

static void unaligned(void)
{
    independent(MIB + 1000, 777, 24 * size);
}

static void large_independent(void)
{
    independent(4 * MIB, 0, 8 * size);
}

/* All write, rank 0 reads it again and again and hands it out. */
static void one_reader(void)
{
    int blocks = 32 * size * ranks, file = -1;

    large_independent();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        file = open_posix(path, O_RDONLY);
    for (int k = 0; rank == 0 && k < 20 * blocks; k++)
        check(pread(file, data, MIB, (off_t)(k % blocks) * MIB) != MIB, "pread");
    if (rank == 0)
        close(file);
    MPI_Bcast(data, MIB, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void small_posix(void)
{
    int file = open_posix(path, O_CREAT | O_WRONLY);

    for (int k = 0; k < 20000 * size; k++)
        put(file, 1000, ((off_t)k * ranks + rank) * 1000);
    close(file);
}

static void random_reads(void)
{
    MPI_File file = open_together(input, MPI_MODE_RDONLY, NULL);

    srand((unsigned)rank + 1);
    for (int k = 0; k < 100000 * size; k++)
        MPI_File_read_at(file, (MPI_Offset)(rand() % (INPUT_MIB * 256)) * 4 * KIB, data, 4 * KIB, MPI_BYTE,
                         MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Small reads with gaps, forward. */
static void strided_reads(void)
{
    int count = 1000 * 12 * size;
    MPI_File file;

    large_independent();
    MPI_Barrier(MPI_COMM_WORLD);
    file = open_shared(MPI_MODE_RDONLY, NULL);
    for (int again = 0; again < 10; again++)
        for (int k = 0; k < count; k++)
            MPI_File_read_at(file, ((MPI_Offset)k * ranks + rank) * 2500, data, 2000, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Small writes, each behind the one before: the operating system merges them. */
static void small_consecutive(void)
{
    int file = open_posix(path, O_CREAT | O_WRONLY);

    for (int k = 0; k < 20000 * size; k++)
        put(file, 1000, ((off_t)rank * 20000 * size + k) * 1000);
    close(file);
}

static void metadata_storm(void)
{
    struct stat found;

    for (int k = 0; k < 3000 * size; k++) {
        char name[PATH_BYTES + 64];
        snprintf(name, sizeof(name), "%s/m.%d.%d", folder, rank, k % 300);
        int file = open_posix(name, O_CREAT | O_WRONLY);
        check(write(file, data, 16) != 16, "write");
        close(file);
        stat(name, &found);
        unlink(name);
    }
}

/* Rank 0 alone makes and removes files; the others wait. */
static void root_metadata(void)
{
    for (int k = 0; rank == 0 && k < 5000 * size; k++) {
        char name[PATH_BYTES + 64];
        snprintf(name, sizeof(name), "%s/r.%d", folder, k % 300);
        close(open_posix(name, O_CREAT | O_WRONLY));
        unlink(name);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Single bytes through the C library. */
static void stdio_bytes(void)
{
    char name[PATH_BYTES + 64];

    snprintf(name, sizeof(name), "%s/bytes.%d", folder, rank);
    FILE *file = fopen(name, "w");
    check(file == NULL, "fopen");
    for (int k = 0; k < 1500000 * size; k++)
        fputc('a' + k % 26, file);
    fclose(file);
}

static void shared_opens(void)
{
    if (rank == 0)
        close(open_posix(path, O_CREAT | O_WRONLY));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < 20000 * size; k++) {
        int file = open_posix(path, O_RDWR);
        if (k % 100 == 0)
            put(file, 16, rank * 16);
        close(file);
    }
}

static void imbalance(void)
{
    MPI_File file = open_shared(CREATE, NULL);
    int count = (rank == ranks - 1 ? 48 : 6) * size;

    for (int k = 0; k < count; k++)
        MPI_File_write_at(file, ((MPI_Offset)rank * 48 * size + k) * 2 * MIB, data, 2 * MIB, MPI_BYTE,
                          MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* A file a rank; the last one has eight times the bytes (`uneven`), or as many as the others. */
static void own_files(int uneven)
{
    char name[PATH_BYTES + 64];

    snprintf(name, sizeof(name), "%s.%d", path, rank);
    int file = open_posix(name, O_CREAT | O_WRONLY);
    for (int k = 0; k < (uneven && rank == ranks - 1 ? 48 : 6) * size; k++)
        put(file, 4 * MIB, (off_t)k * 4 * MIB);
    close(file);
}

static void uneven_files(void)
{
    own_files(1);
}

static void even_files(void)
{
    own_files(0);
}

static void well_behaved(void)
{
    MPI_File file = open_shared(CREATE, NULL);

    for (int k = 0; k < 4 * size; k++)
        MPI_File_write_at_all(file, ((MPI_Offset)k * ranks + rank) * 8 * MIB, data, 8 * MIB, MPI_BYTE,
                              MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

static void little_io(void)
{
    usleep(3000000);
    independent(MIB, 0, 1);
}

/* Writes that overlap, in atomic mode: the MPI library locks each. */
static void atomic_writes(void)
{
    MPI_File file = open_shared(CREATE, NULL);

    MPI_File_set_atomicity(file, 1);
    for (int k = 0; k < 400 * size; k++)
        MPI_File_write_at(file, (MPI_Offset)((k * ranks + rank) % 8) * 256 * KIB, data, MIB, MPI_BYTE,
                          MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Large pieces, one rank after the other. */
static void ranks_in_turn(void)
{
    int file = open_posix(path, O_CREAT | O_WRONLY);

    for (int turn = 0; turn < ranks; turn++) {
        for (int k = 0; turn == rank && k < 48 * size; k++)
            put(file, MIB, ((off_t)rank * 48 * size + k) * MIB);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    close(file);
}

const struct kind known_kinds[] = {
    {"one_writer", one_writer},
    {"one_reader", one_reader},
    {"few_aggregators", few_aggregators},
    {"no_buffering", no_buffering},
    {"read_modify_write", read_modify_write},
    {"small_independent", small_independent},
    {"small_posix", small_posix},
    {"small_consecutive", small_consecutive},
    {"strided_reads", strided_reads},
    {"random_reads", random_reads},
    {"metadata_storm", metadata_storm},
    {"shared_opens", shared_opens},
    {"imbalance", imbalance},
    {"uneven_files", uneven_files},
    {"even_files", even_files},
    {"unaligned", unaligned},
    {"large_independent", large_independent},
    {"well_behaved", well_behaved},
    {"little_io", little_io},
    {"atomic_writes", atomic_writes},
    {"ranks_in_turn", ranks_in_turn},
    {"root_metadata", root_metadata},
    {"stdio_bytes", stdio_bytes},
    {NULL, NULL},
};
