/*
 * memory_gap.c - one collective write and read of thousands of columns of arrays, from memory with one gap.
 *
 * Reported as pmodels/mpich #6985, after a run of PIO: each rank has a small variable and parts of many arrays, whose
 * rows are 16 bytes in the file; all are one call. Memory is two allocations, which the reproducer makes one with a gap
 * of 16 bytes: with it a write took 33 s, without it 8 s. Bandwidth is printed for both.
 *
 * usage: memory_gap FILE ROWS ARRAYS     arrays of ROWS rows, each with 16 bytes of every rank
 */
#include <string.h>

#include "../codes/codes.h"

enum { COLUMN = 16, GAP = 16 };

static unsigned char value(size_t at)
{
    return (unsigned char)((at * 2654435761u) >> 11);
}

/* The small variable, then this rank's columns of each array. */
static MPI_Datatype view_of(int rows, int arrays)
{
    int *lengths = allocate((size_t)(arrays + 1) * sizeof *lengths);
    MPI_Aint *places = allocate((size_t)(arrays + 1) * sizeof *places);
    MPI_Datatype *types = allocate((size_t)(arrays + 1) * sizeof *types), view;
    const int whole[2] = {rows, COLUMN * ranks}, own[2] = {rows, COLUMN}, begin[2] = {0, COLUMN * rank};

    for (int i = 0; i <= arrays; i++) {
        lengths[i] = 1;
        places[i] = i == 0 ? (MPI_Aint)rows * rank : (MPI_Aint)rows * ranks * (1 + COLUMN * (MPI_Aint)(i - 1));
        if (i == 0)
            MPI_Type_contiguous(rows, MPI_BYTE, &types[i]);
        else
            MPI_Type_create_subarray(2, whole, own, begin, MPI_ORDER_C, MPI_BYTE, &types[i]);
    }
    MPI_Type_create_struct(arrays + 1, lengths, places, types, &view);
    MPI_Type_commit(&view);
    for (int i = 0; i <= arrays; i++)
        MPI_Type_free(&types[i]);
    free(types);
    free(places);
    free(lengths);
    return view;
}

static MPI_Datatype memory_of(int rows, int arrays, int gap)
{
    const int lengths[2] = {rows, rows * COLUMN * arrays};
    const MPI_Aint places[2] = {0, rows + gap};
    MPI_Datatype memory;

    MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &memory);
    MPI_Type_commit(&memory);
    return memory;
}

/* What the view's byte `i` is: it lies at the place that it returns. */
static size_t place(size_t i, int rows)
{
    const size_t small = (size_t)rows, r = (size_t)rank, n = (size_t)ranks;

    if (i < small)
        return small * r + i;
    i -= small;
    return small * n + i / COLUMN * COLUMN * n + COLUMN * r + i % COLUMN;
}

static void check_file(const char *path, size_t bytes)
{
    FILE *file = fopen(path, "rb");
    int byte;

    need(file != NULL, "fopen");
    for (size_t at = 0; at < bytes; at++) {
        byte = fgetc(file);
        need(byte == value(at), "wrong byte in the file");
    }
    need(fgetc(file) == EOF, "another size of the file");
    fclose(file);
}

static void write_and_read(const char *path, int rows, int arrays, int gap)
{
    const size_t bytes = (size_t)rows * (1 + COLUMN * (size_t)arrays), small = (size_t)rows;
    unsigned char *data = allocate(bytes + (size_t)gap);
    MPI_Datatype view = view_of(rows, arrays), memory = memory_of(rows, arrays, gap);
    const char *name = gap ? "gap" : "no_gap";
    MPI_File file;

    memset(data, 0, bytes + (size_t)gap);
    for (size_t i = 0; i < bytes; i++)
        data[i < small ? i : i + (size_t)gap] = value(place(i, rows));
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    MPI_File_set_view(file, 0, MPI_BYTE, view, "native", MPI_INFO_NULL);
    start();
    MPI_File_write_at_all(file, 0, data, 1, memory, MPI_STATUS_IGNORE);
    stop();
    say_bandwidth(name, "write", (double)bytes * ranks);
    memset(data, 0, bytes + (size_t)gap);
    start();
    MPI_File_read_at_all(file, 0, data, 1, memory, MPI_STATUS_IGNORE);
    stop();
    say_bandwidth(name, "read", (double)bytes * ranks);
    for (size_t i = 0; i < bytes; i++)
        need(data[i < small ? i : i + (size_t)gap] == value(place(i, rows)), "MPI_File_read_at_all: wrong byte");
    for (int i = 0; i < gap; i++)
        need(data[small + (size_t)i] == 0, "MPI_File_read_at_all: the gap was written");
    MPI_File_close(&file);
    if (rank == 0)
        check_file(path, bytes * (size_t)ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_free(&memory);
    MPI_Type_free(&view);
    free(data);
}

int main(int argc, char **argv)
{
    int rows, arrays;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    need(argc == 4, "usage: memory_gap FILE ROWS ARRAYS");
    rows = argument(argc, argv, 2, 1);
    arrays = argument(argc, argv, 3, 1);
    write_and_read(argv[1], rows, arrays, 0);
    MPI_File_delete(argv[1], MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    write_and_read(argv[1], rows, arrays, GAP);
    if (rank == 0)
        puts("verified");
    MPI_Finalize();
    return 0;
}
