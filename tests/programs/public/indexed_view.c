/*
 * indexed_view.c - file views of indexed types: many blocks, and subarrays put one behind the other.
 *
 * blocks:    open-mpi/ompi #11917. A view of blocks of equal length at irregular places, written and read collectively;
 *            data were wrong.
 * subarrays: pmodels/mpich #7169. Several subarrays joined by MPI_Type_create_hindexed are the view; bytes went to
 *            other places, and the file had another size. Written collectively and independently.
 *
 * usage: indexed_view FILE
 */
#include <string.h>

#include "../codes/codes.h"

enum { BLOCKS = 3000, LENGTH = 7, VARIABLES = 12, ROWS = 60, COLUMNS = 40 };

static int mixed(int i)
{
    return (int)((unsigned)i * 2654435761u >> 8) & 0xffffff;
}

/* Write `count` ints through a view, read them back through it, and return the size of the file. */
static MPI_Offset through(const char *path, MPI_Datatype view, int count, int collective, int seed)
{
    int *data = allocate(2 * (size_t)count * sizeof *data), *found = data + count;
    MPI_Offset size = -1;
    MPI_File file;

    for (int i = 0; i < count; i++)
        data[i] = mixed(i) ^ (rank << 24) ^ seed;
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    MPI_File_set_size(file, 0);
    MPI_File_set_view(file, 0, MPI_INT, view, "native", MPI_INFO_NULL);
    if (collective)
        MPI_File_write_all(file, data, count, MPI_INT, MPI_STATUS_IGNORE);
    else
        MPI_File_write(file, data, count, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(found, 0, (size_t)count * sizeof *found);
    if (collective)
        MPI_File_read_at_all(file, 0, found, count, MPI_INT, MPI_STATUS_IGNORE);
    else
        MPI_File_read_at(file, 0, found, count, MPI_INT, MPI_STATUS_IGNORE);
    need(memcmp(data, found, (size_t)count * sizeof *data) == 0, "wrong values through the view");
    MPI_File_get_size(file, &size);
    MPI_File_close(&file);
    free(data);
    return size;
}

/* Blocks of the ranks in turn, with gaps of changing length between them. */
static void blocks(const char *path, int collective)
{
    int places[BLOCKS], begin = 0, own_end = 0, end = 0;
    MPI_Datatype view;

    for (int i = 0; i < BLOCKS; i++) {
        places[i] = begin + rank * LENGTH;
        own_end = begin + ranks * LENGTH;
        begin = own_end + mixed(i) % 5;
    }
    end = own_end;
    MPI_Type_create_indexed_block(BLOCKS, LENGTH, places, MPI_INT, &view);
    MPI_Type_commit(&view);
    need(through(path, view, BLOCKS * LENGTH, collective, 1) == (MPI_Offset)end * 4, "another size of the file");
    MPI_Type_free(&view);
}

/* Variables of ROWS x COLUMNS, of which every rank has some columns. */
static void subarrays(const char *path, int collective)
{
    const int whole[2] = {ROWS, COLUMNS * ranks}, own[2] = {ROWS, COLUMNS}, begin[2] = {0, COLUMNS * rank};
    MPI_Datatype part, view;
    MPI_Aint places[VARIABLES];
    int lengths[VARIABLES];
    const MPI_Offset end = (MPI_Offset)VARIABLES * ROWS * COLUMNS * ranks * 4;

    MPI_Type_create_subarray(2, whole, own, begin, MPI_ORDER_C, MPI_INT, &part);
    for (int i = 0; i < VARIABLES; i++) {
        lengths[i] = 1;
        places[i] = (MPI_Aint)i * ROWS * COLUMNS * ranks * 4;
    }
    MPI_Type_create_hindexed(VARIABLES, lengths, places, part, &view);
    MPI_Type_commit(&view);
    need(through(path, view, VARIABLES * ROWS * COLUMNS, collective, 2) == end, "another size of the file");
    MPI_Type_free(&view);
    MPI_Type_free(&part);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    need(argc == 2, "usage: indexed_view FILE");
    for (int collective = 0; collective < 2; collective++) {
        blocks(argv[1], collective);
        subarrays(argv[1], collective);
    }
    if (rank == 0)
        puts("verified");
    MPI_Finalize();
    return 0;
}
