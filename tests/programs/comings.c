/*
 * comings.c - files, types and communicators that come and go while others stay; plain MPI.
 *
 *   comings FILE [multiple]   with MPI_THREAD_MULTIPLE, or plain MPI_Init
 *
 *   freed   a darray is the file type and freed at once; two nonblocking collectives are under way through it
 *   turns   two files in turn, the second opened, written, closed and read again while the first stays open
 *   halves  the ranks' halves, in reverse order, each with a file; the communicator is freed before the file is closed
 *
 * All of them three times, while a file of all ranks is open. Every byte is checked, in memory and in the files.
 */
#include "report.h"

enum { ROWS = 120, COLUMNS = 1207, BLOCK = 5, CELL = sizeof(int), LIFE = 3, UNIT = 24, UNITS = 5000 };

static char path[3][512];

static MPI_File opened(MPI_Comm comm, const char *name)
{
    MPI_File file = MPI_FILE_NULL;

    if (MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    return file;
}

/* ---- a darray ---------------------------------------------------------------------------------------------------- */

static void set_darray(MPI_File file)
{
    const int sizes[2] = {ROWS, COLUMNS}, parts[2] = {1, ranks}, blocks[2] = {MPI_DISTRIBUTE_DFLT_DARG, BLOCK};
    const int ways[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    MPI_Datatype kind;

    MPI_Type_create_darray(ranks, rank, 2, sizes, ways, blocks, parts, MPI_ORDER_C, MPI_INT, &kind);
    MPI_Type_commit(&kind);
    if (MPI_File_set_view(file, 0, MPI_INT, kind, "native", MPI_INFO_NULL) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Type_free(&kind);
}

/* This rank's elements of the rows, in the order of the file; set, or compared. Returns how many, negative: wrong. */
static int go_through(unsigned char *data, int first, int last, int seed, int set)
{
    int n = 0, fine = 1;

    for (int row = first; row < last; row++) {
        for (int column = 0; column < COLUMNS; column++) {
            const long long at = ((long long)row * COLUMNS + column) * CELL;

            if (column / BLOCK % ranks != rank)
                continue;
            if (set)
                fill_from(data + n * CELL, at, CELL, seed);
            else
                fine = fine && equals_from(data + n * CELL, at, CELL, seed);
            n++;
        }
    }
    return fine ? n : -1;
}

/* Two collectives under way over the halves of the rows, waited for in an order of each rank's own. */
static int two_under_way(MPI_File file, unsigned char *data, int half, int all, int writes)
{
    MPI_Request requests[2];
    MPI_Status status[2];
    int fine = 1, count;

    for (int i = 0; i < 2; i++) {
        const MPI_Offset at = i == 0 ? 0 : half;
        const int n = i == 0 ? half : all - half;
        unsigned char *from = data + at * CELL;
        const int code = writes ? MPI_File_iwrite_at_all(file, at, from, n, MPI_INT, &requests[i])
                                : MPI_File_iread_at_all(file, at, from, n, MPI_INT, &requests[i]);

        fine = fine && code == MPI_SUCCESS;
    }
    for (int i = 0; i < 2; i++) {
        const int which = rank % 2 ? 1 - i : i;

        fine = fine && MPI_Wait(&requests[which], &status[which]) == MPI_SUCCESS;
        fine = fine && MPI_Get_count(&status[which], MPI_INT, &count) == MPI_SUCCESS;
        fine = fine && count == (which == 0 ? half : all - half);
    }
    return fine;
}

static void freed(int turn)
{
    unsigned char *data = calloc((size_t)ROWS * COLUMNS, CELL), *found = calloc((size_t)ROWS * COLUMNS, CELL);
    const int all = go_through(data, 0, ROWS, turn, 1), half = go_through(found, 0, ROWS / 2, turn, 1);
    MPI_File file = opened(MPI_COMM_WORLD, path[0]);

    memset(found, 0, (size_t)ROWS * COLUMNS * CELL);
    set_darray(file);
    check("freed: written", two_under_way(file, data, half, all, 1));
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    set_darray(file);
    check("freed: read", two_under_way(file, found, half, all, 0));
    check("freed: bytes", go_through(found, 0, ROWS, turn, 0) == all);
    MPI_File_close(&file);
    check_file("freed: file", path[0], (long long)ROWS * COLUMNS * CELL, turn);
    free(data);
    free(found);
}

/* ---- units in turns ---------------------------------------------------------------------------------------------- */

/* Unit i of the rank at `place` among `n` is unit i * n + place of the file. */
static int all_units(MPI_File file, int place, int n, int seed, int writes)
{
    unsigned char *data = calloc(UNITS, UNIT);
    MPI_Datatype unit, kind;
    MPI_Status status;
    int fine = 1, count;

    MPI_Type_contiguous(UNIT, MPI_BYTE, &unit);
    MPI_Type_create_resized(unit, 0, (MPI_Aint)UNIT * n, &kind);
    MPI_Type_commit(&kind);
    fine = MPI_File_set_view(file, (MPI_Offset)place * UNIT, MPI_BYTE, kind, "native", MPI_INFO_NULL) == MPI_SUCCESS;
    MPI_Type_free(&kind);
    MPI_Type_free(&unit);
    for (int i = 0; writes && i < UNITS; i++)
        fill_from(data + i * UNIT, ((long long)i * n + place) * UNIT, UNIT, seed);
    fine = fine && (writes ? MPI_File_write_all(file, data, UNITS * UNIT, MPI_BYTE, &status)
                           : MPI_File_read_all(file, data, UNITS * UNIT, MPI_BYTE, &status)) == MPI_SUCCESS;
    fine = fine && MPI_Get_count(&status, MPI_BYTE, &count) == MPI_SUCCESS && count == UNITS * UNIT;
    for (int i = 0; !writes && i < UNITS; i++)
        fine = fine && equals_from(data + i * UNIT, ((long long)i * n + place) * UNIT, UNIT, seed);
    free(data);
    return fine;
}

static void synchronise(MPI_File file, MPI_Comm comm)
{
    MPI_File_sync(file);
    MPI_Barrier(comm);
    MPI_File_sync(file);
}

static void turns(int turn)
{
    MPI_File one = opened(MPI_COMM_WORLD, path[0]), other;

    check("turns: first written", all_units(one, rank, ranks, turn, 1));
    other = opened(MPI_COMM_WORLD, path[1]);
    check("turns: second written", all_units(other, ranks - 1 - rank, ranks, turn + 100, 1));
    check("turns: first written again", all_units(one, rank, ranks, turn + 200, 1));
    MPI_File_close(&other);
    check_file("turns: second file", path[1], (long long)UNITS * UNIT * ranks, turn + 100);
    synchronise(one, MPI_COMM_WORLD);
    check("turns: first read", all_units(one, (rank + 1) % ranks, ranks, turn + 200, 0));
    other = opened(MPI_COMM_WORLD, path[1]);
    check("turns: second read", all_units(other, rank, ranks, turn + 100, 0));
    check("turns: first read again", all_units(one, rank, ranks, turn + 200, 0));
    MPI_File_close(&other);
    MPI_File_close(&one);
}

static void halves(int turn)
{
    const int lower = rank < ranks / 2;
    char name[600];
    MPI_Comm half;
    MPI_File file;
    int place, n, fine;

    snprintf(name, sizeof name, "%s.%d.%d", path[2], turn, lower);
    MPI_Comm_split(MPI_COMM_WORLD, lower, -rank, &half);
    MPI_Comm_rank(half, &place);
    MPI_Comm_size(half, &n);
    file = opened(half, name);
    fine = all_units(file, place, n, turn, 1);
    synchronise(file, half);
    MPI_Comm_free(&half);
    check("halves: written", fine);
    check("halves: read", all_units(file, (place + 1) % n, n, turn, 0));
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    check("halves: file", place != 0 || file_is(name, (long long)UNITS * UNIT * n, turn));
}

int main(int argc, char **argv)
{
    const int threads = argc > 2 && strcmp(argv[2], "multiple") == 0;
    int provided = MPI_THREAD_SINGLE;

    if (threads)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < 3; i++)
        snprintf(path[i], sizeof path[i], "%s.%d", argv[1], i);
    snprintf(path[0] + strlen(path[0]), 8, ".open");
    MPI_File open = opened(MPI_COMM_WORLD, path[0]);
    snprintf(path[0], sizeof path[0], "%s.0", argv[1]);
    check("open: written", all_units(open, rank, ranks, 7, 1));
    for (int turn = 0; turn < LIFE; turn++) {
        freed(turn);
        if (rank == 0)
            remove(path[0]);
        MPI_Barrier(MPI_COMM_WORLD);
        turns(turn);
        halves(turn);
        if (rank == 0)
            remove(path[0]);
        MPI_Barrier(MPI_COMM_WORLD);
        check("open: written again", all_units(open, ranks - 1 - rank, ranks, 8 + turn, 1));
        synchronise(open, MPI_COMM_WORLD);
        check("open: read", all_units(open, rank, ranks, 8 + turn, 0));
    }
    MPI_File_close(&open);
    if (rank == 0)
        printf("end %s\n", provided == MPI_THREAD_MULTIPLE ? "multiple" : "single");
    MPI_Finalize();
    return failures;
}
