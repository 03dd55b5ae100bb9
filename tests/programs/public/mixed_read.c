/*
 * mixed_read.c - one collective read in which the ranks select very different bytes.
 *
 * Reported as open-mpi/ompi #10546: rank 0 reads five integers, rank 1 some of them through a view of a vector within
 * an indexed type, rank 2 nothing; rank 0 does not get all five. Here with longer files, too, and with every rank in
 * turn as the one that reads all.
 *
 * usage: mixed_read FILE
 */
#include <string.h>

#include "../codes/codes.h"

static int value(int at)
{
    return at * 31 + 7;
}

/* Every `every`-th integer from `first` on, of which there are `parts`. */
static MPI_Datatype some(int parts, int every, int first, int all)
{
    MPI_Datatype vector, indexed, view;
    const MPI_Aint begin = first * (MPI_Aint)sizeof(int);
    const int one = 1;

    MPI_Type_vector(parts, 1, every, MPI_INT, &vector);
    MPI_Type_create_hindexed(1, &one, &begin, vector, &indexed);
    MPI_Type_create_resized(indexed, 0, all * (MPI_Aint)sizeof(int), &view);
    MPI_Type_commit(&view);
    MPI_Type_free(&vector);
    MPI_Type_free(&indexed);
    return view;
}

/* Rank `whole` reads `all` integers, the next one every third from the second on, the others none. */
static void read_mixed(const char *path, int all, int whole)
{
    const int parts = (all - 1 + 2) / 3, viewer = (whole + 1) % ranks;
    const int count = rank == whole ? all : rank == viewer ? parts : 0;
    int *data = allocate((size_t)all * sizeof *data);
    MPI_Datatype view = some(parts, 3, 1, all);
    MPI_File file;

    memset(data, 0, (size_t)all * sizeof *data);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    MPI_File_set_view(file, 0, MPI_INT, rank == viewer ? view : MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_read_at_all(file, 0, data, count, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++)
        need(data[i] == value(rank == viewer ? 1 + 3 * i : i), "MPI_File_read_at_all: wrong value");
    MPI_File_close(&file);
    MPI_Type_free(&view);
    free(data);
}

static void write_by_rank_0(const char *path, int all)
{
    int *data = allocate((size_t)all * sizeof *data);
    MPI_File file;

    for (int i = 0; i < all; i++)
        data[i] = value(i);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    MPI_File_write_at_all(file, 0, data, rank == 0 ? all : 0, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    free(data);
}

int main(int argc, char **argv)
{
    const int sizes[] = {5, 1000, 700001};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    need(argc == 2 && ranks > 1, "usage: mixed_read FILE, on 2 ranks and more");
    for (int i = 0; i < 3; i++) {
        write_by_rank_0(argv[1], sizes[i]);
        for (int whole = 0; whole < ranks; whole++)
            read_mixed(argv[1], sizes[i], whole);
    }
    if (rank == 0)
        puts("verified");
    MPI_Finalize();
    return 0;
}
