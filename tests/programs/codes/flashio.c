/*
 * flashio.c - the checkpoint of a block-structured adaptive mesh code, each rank writing its blocks by itself.
 *
 * The arrays of FLASH-IO in one plain file: of every block its place in the tree (lrefine, nodetype, gid) and in space
 * (coordinates, blocksize, bndbox), then each of the unknowns, an array of doubles over all blocks. In memory a rank
 * has one array of all unknowns with guard cells, `unk`, in which an unknown is every 24th double; it is handed to
 * MPI_File_write_at as it lies there, one block and one unknown a call. The blocks lie along a space-filling curve and
 * are dealt to the ranks in turn. Nothing is collective between open and close. A restart reads it in the same way,
 * each rank what its neighbour wrote.
 *
 * usage: flashio FILE ZONES BLOCKS [CHECKPOINTS]      ZONES a side of a block, BLOCKS per rank; FILE, FILE.1, FILE.2...
 */
#include <string.h>

#include "codes.h"

enum { UNKNOWNS = 24, GUARD = 4, DIMENSIONS = 3, GID = 15, TREE = 6, LONGEST = 64 };

static const int tree_bytes[TREE] = {4, 4, 4 * GID, 8 * DIMENSIONS, 8 * DIMENSIONS, 8 * 2 * DIMENSIONS};
static int zones, blocks, total;
static MPI_Datatype inner; /* one unknown of one block in `unk` */

static int side(void)
{
    return zones + 2 * GUARD;
}

static size_t block_doubles(void) /* of one block in memory, guard cells and all unknowns */
{
    return (size_t)side() * side() * side() * UNKNOWNS;
}

static MPI_Offset unknown_bytes(void) /* of one unknown of one block in the file */
{
    return (MPI_Offset)8 * zones * zones * zones;
}

static MPI_Offset tree_at(int array, int block)
{
    MPI_Offset at = 0;

    for (int i = 0; i < array; i++)
        at += (MPI_Offset)tree_bytes[i] * total;
    return at + (MPI_Offset)tree_bytes[array] * block;
}

static MPI_Offset unknown_at(int unknown, int block)
{
    return tree_at(TREE - 1, total) + unknown_bytes() * ((MPI_Offset)unknown * total + block);
}

static double value(int block, int unknown, int z, int y, int x)
{
    return (((double)block * UNKNOWNS + unknown) * zones + z) * zones * zones + y * zones + x + 0.25;
}

static void make_tree(int array, int block, unsigned char *record)
{
    memset(record, 0, LONGEST);
    for (int i = 0; i < tree_bytes[array]; i++)
        record[i] = (unsigned char)(block * 31 + array * 7 + i + 1);
}

/* The unknowns of a block in memory, guard cells excepted: filled, or the wrong values counted. */
static long long visit(double *unk, int block, int compare)
{
    long long wrong = 0;

    for (int z = 0; z < zones; z++)
        for (int y = 0; y < zones; y++)
            for (int x = 0; x < zones; x++) {
                double *cell = unk + ((((size_t)z + GUARD) * side() + y + GUARD) * side() + x + GUARD) * UNKNOWNS;

                for (int u = 0; u < UNKNOWNS; u++)
                    if (!compare)
                        cell[u] = value(block, u, z, y, x);
                    else
                        wrong += cell[u] != value(block, u, z, y, x);
            }
    return wrong;
}

static void make_type(void)
{
    int sizes[4] = {side(), side(), side(), UNKNOWNS}, counts[4] = {zones, zones, zones, 1};
    int starts[4] = {GUARD, GUARD, GUARD, 0};

    MPI_Type_create_subarray(4, sizes, counts, starts, MPI_ORDER_C, MPI_DOUBLE, &inner);
    MPI_Type_commit(&inner);
}

static void fine(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
    need(0, what);
}

static void write_checkpoint(const char *path, double *unk)
{
    unsigned char record[LONGEST];
    MPI_File file;

    fine(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), "open");
    for (int array = 0; array < TREE; array++)
        for (int i = 0; i < blocks; i++) {
            int block = i * ranks + rank;

            make_tree(array, block, record);
            fine(MPI_File_write_at(file, tree_at(array, block), record, tree_bytes[array], MPI_BYTE, MPI_STATUS_IGNORE),
                 "write_at of the tree");
        }
    for (int u = 0; u < UNKNOWNS; u++)
        for (int i = 0; i < blocks; i++)
            fine(MPI_File_write_at(file, unknown_at(u, i * ranks + rank), unk + (size_t)i * block_doubles() + u, 1,
                                   inner, MPI_STATUS_IGNORE),
                 "write_at of an unknown");
    fine(MPI_File_close(&file), "close");
}

/* Returns how many records of the tree are wrong. */
static long long read_checkpoint(const char *path, double *unk, int from)
{
    unsigned char record[LONGEST], expected[LONGEST];
    long long wrong = 0;
    MPI_File file;

    fine(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), "open");
    for (int array = 0; array < TREE; array++)
        for (int i = 0; i < blocks; i++) {
            int block = i * ranks + from;

            make_tree(array, block, expected);
            fine(MPI_File_read_at(file, tree_at(array, block), record, tree_bytes[array], MPI_BYTE, MPI_STATUS_IGNORE),
                 "read_at of the tree");
            wrong += memcmp(record, expected, (size_t)tree_bytes[array]) != 0;
        }
    for (int u = 0; u < UNKNOWNS; u++)
        for (int i = 0; i < blocks; i++)
            fine(MPI_File_read_at(file, unknown_at(u, i * ranks + from), unk + (size_t)i * block_doubles() + u, 1,
                                  inner, MPI_STATUS_IGNORE),
                 "read_at of an unknown");
    fine(MPI_File_close(&file), "close");
    return wrong;
}

static const char *name_of(const char *first, int number, char *path, size_t room)
{
    if (number == 0)
        return first;
    snprintf(path, room, "%s.%d", first, number);
    return path;
}

static void fill_all(double *unk, int number)
{
    for (int i = 0; i < blocks; i++)
        visit(unk + (size_t)i * block_doubles(), (number * blocks + i) * ranks + rank, 0);
}

static void write_all_checkpoints(const char *first, int checkpoints, double *unk)
{
    char path[4096];

    for (int number = 0; number < checkpoints; number++) {
        compute();
        fill_all(unk, number);
        start();
        write_checkpoint(name_of(first, number, path, sizeof path), unk);
        stop();
    }
    end_loop("flashio");
    say_bandwidth("flashio", "write", (double)unknown_at(UNKNOWNS - 1, total) * checkpoints);
}

static long long read_all_checkpoints(const char *first, int checkpoints, double *unk)
{
    int from = (rank + 1) % ranks;
    long long wrong = 0;
    char path[4096];

    for (int number = 0; number < checkpoints; number++) {
        memset(unk, 0xEE, (size_t)blocks * block_doubles() * sizeof *unk);
        start();
        wrong += read_checkpoint(name_of(first, number, path, sizeof path), unk, from);
        stop();
        for (int i = 0; i < blocks; i++)
            wrong += visit(unk + (size_t)i * block_doubles(), (number * blocks + i) * ranks + from, 1);
    }
    say_bandwidth("flashio", "read", (double)unknown_at(UNKNOWNS - 1, total) * checkpoints);
    return wrong;
}

int main(int argc, char **argv)
{
    int checkpoints, failed;
    long long wrong;
    double *unk;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    zones = argument(argc, argv, 2, 1);
    blocks = argument(argc, argv, 3, 1);
    checkpoints = argc > 4 ? argument(argc, argv, 4, 1) : 1;
    total = blocks * ranks;
    unk = allocate((size_t)blocks * block_doubles() * sizeof *unk);
    make_type();
    write_all_checkpoints(argv[1], checkpoints, unk);
    wrong = read_all_checkpoints(argv[1], checkpoints, unk);

    MPI_Type_free(&inner);
    free(unk);
    failed = say_verified("flashio", wrong);
    MPI_Finalize();
    return failed;
}
