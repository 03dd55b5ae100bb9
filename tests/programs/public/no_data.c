/*
 * no_data.c - collective calls in which half of the ranks have nothing to write or read.
 *
 * Reported as open-mpi/ompi #7414 (of 16 ranks eight write equal parts and eight pass a count of 0: all wait for ever),
 * #7809 (the same in reading) and #11182. Ranks without data are the upper half, every second one, all but one, and all
 * but the last; they pass a count of 0 with a null buffer, or a file view that selects nothing.
 *
 * usage: no_data FILE
 */
#include <string.h>

#include "../codes/codes.h"

enum { PART = 300007 }; /* no multiple of a page */

static int has_data(int of_rank, int who)
{
    return who == 0 ? of_rank < (ranks + 1) / 2 : who == 1 ? of_rank % 2 == 0 : of_rank == (who == 2 ? 0 : ranks - 1);
}

static MPI_Offset place(int who)
{
    MPI_Offset before = 0;

    for (int i = 0; i < rank; i++)
        before += has_data(i, who) ? PART : 0;
    return before;
}

static void check(const char *data, int mine, int who)
{
    for (int i = 0; i < (mine ? PART : 0); i++)
        need(data[i] == (char)(rank * 31 + i + who), "wrong byte");
}

static void explicit_offsets(MPI_File file, char *data, int who, int mine)
{
    MPI_Status status;
    int count = -1;

    for (int i = 0; i < PART; i++)
        data[i] = (char)(rank * 31 + i + who);
    MPI_File_write_at_all(file, place(who), mine ? data : NULL, mine ? PART : 0, MPI_BYTE, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    need(count == (mine ? PART : 0), "MPI_File_write_at_all: another count");
    memset(data, 0, PART);
    MPI_File_read_at_all(file, place(who), mine ? data : NULL, mine ? PART : 0, MPI_BYTE, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    need(count == (mine ? PART : 0), "MPI_File_read_at_all: another count");
    check(data, mine, who);
}

/* The view of a rank without data is a subarray of one element, of which it writes none. */
static void views(MPI_File file, char *data, int who, int mine)
{
    int whole = 2 * PART, half = PART, begin = 0;
    MPI_Datatype type;

    if (!mine)
        half = 1;
    MPI_Type_create_subarray(1, &whole, &half, &begin, MPI_ORDER_C, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, 2 * place(who), MPI_BYTE, type, "native", MPI_INFO_NULL);
    MPI_Type_free(&type);
    for (int i = 0; i < PART; i++)
        data[i] = (char)(rank * 31 + i + who);
    MPI_File_write_all(file, data, mine ? PART : 0, MPI_BYTE, MPI_STATUS_IGNORE);
    memset(data, 0, PART);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_read_all(file, data, mine ? PART : 0, MPI_BYTE, MPI_STATUS_IGNORE);
    check(data, mine, who);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
}

int main(int argc, char **argv)
{
    char *data;
    MPI_File file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
    need(argc == 2, "usage: no_data FILE");
    data = allocate(PART);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    for (int who = 0; who < 4; who++) {
        explicit_offsets(file, data, who, has_data(rank, who));
        MPI_Barrier(MPI_COMM_WORLD);
        views(file, data, who, has_data(rank, who));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_File_close(&file);
    free(data);
    if (rank == 0)
        puts("verified");
    MPI_Finalize();
    return 0;
}
