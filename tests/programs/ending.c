/*
 * ending.c - files that are still open when MPI_Finalize is called; plain MPI.
 *
 *   ending FILE CASE   closed    closed, after more was written, by the delete callback of an attribute of
 *                                MPI_COMM_SELF, as HDF5 does
 *                      behind    the same, and MPI was initialised by PMPI_Init, which no library on top of MPI sees
 *                      reopened  as closed; the callback then also opens, writes and closes a new file
 *                      left      never closed; nonblocking writes that nobody waits for
 *                      plain     one file of MPI_COMM_WORLD, one of MPI_COMM_SELF per rank, both closed
 *                      alone     only the latter
 *
 * Every rank writes its blocks of every round, in turns. Byte p of a file is 1 + p % 251.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1000, BLOCKS = 20, BYTES = BLOCK * BLOCKS };

static int rank, ranks, problems, reopen;
static char name[4096];
static MPI_File file;

static void check(int code)
{
    if (code != MPI_SUCCESS) {
        fprintf(stderr, "rank %d: code %d\n", rank, code);
        problems++;
    }
}

/* What this rank writes in a round through its view. */
static unsigned char *data_of(int round)
{
    unsigned char *data = malloc(BYTES);

    for (int i = 0; i < BYTES; i++) {
        long position = (((long)round * BLOCKS + i / BLOCK) * ranks + rank) * BLOCK + i % BLOCK;

        data[i] = (unsigned char)(1 + position % 251);
    }
    return data;
}

static void open_with_view(const char *ending, MPI_File *out)
{
    MPI_Datatype turns;
    char path[sizeof name + 16];

    snprintf(path, sizeof path, "%s.%s", name, ending);
    check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, out));
    MPI_Type_vector(BLOCKS, BLOCK, BLOCK * ranks, MPI_BYTE, &turns);
    MPI_Type_create_resized(turns, 0, (MPI_Aint)BYTES * ranks, &turns);
    MPI_Type_commit(&turns);
    check(MPI_File_set_view(*out, (MPI_Offset)rank * BLOCK, MPI_BYTE, turns, "native", MPI_INFO_NULL));
    MPI_Type_free(&turns);
}

static void write_round(MPI_File to, int round)
{
    unsigned char *data = data_of(round);
    MPI_Status status;

    check(MPI_File_write_at_all(to, (MPI_Offset)round * BYTES, data, BYTES, MPI_BYTE, &status));
    free(data);
}

static int at_finalize(MPI_Comm comm, int key, void *value, void *extra)
{
    MPI_File late;

    (void)comm, (void)key, (void)value, (void)extra;
    write_round(file, 1);
    check(MPI_File_close(&file));
    if (!reopen)
        return MPI_SUCCESS;
    open_with_view("late", &late);
    write_round(late, 0);
    check(MPI_File_close(&late));
    return MPI_SUCCESS;
}

static void leave_open(void)
{
    static MPI_Request requests[2];
    MPI_File alone;
    char path[sizeof name + 16];

    check(MPI_File_iwrite_at_all(file, BYTES, data_of(1), BYTES, MPI_BYTE, &requests[0]));
    snprintf(path, sizeof path, "%s.%d", name, rank);
    check(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &alone));
    unsigned char *data = malloc(1 << 20);
    for (int i = 0; i < 1 << 20; i++)
        data[i] = (unsigned char)(1 + i % 251);
    check(MPI_File_iwrite_at(alone, 0, data, 1 << 20, MPI_BYTE, &requests[1]));
}

static void write_alone(void)
{
    MPI_File alone;
    char path[sizeof name + 16];

    snprintf(path, sizeof path, "%s.%d", name, rank);
    check(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &alone));
    check(MPI_File_write_at_all(alone, 0, "alone", 5, MPI_BYTE, MPI_STATUS_IGNORE));
    check(MPI_File_close(&alone));
}

int main(int argc, char **argv)
{
    const char *which = argc > 2 ? argv[2] : "";
    int key;

    if (strcmp(which, "behind") == 0)
        PMPI_Init(&argc, &argv);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(name, sizeof name, "%s", argv[1]);
    reopen = strcmp(which, "reopened") == 0;
    if (reopen || strcmp(which, "closed") == 0 || strcmp(which, "behind") == 0) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &key, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    }
    if (strcmp(which, "alone") != 0) {
        open_with_view("world", &file);
        write_round(file, 0);
    }
    if (strcmp(which, "left") == 0)
        leave_open();
    if (strcmp(which, "plain") == 0)
        check(MPI_File_close(&file));
    if (strcmp(which, "plain") == 0 || strcmp(which, "alone") == 0)
        write_alone();
    MPI_Finalize();
    return problems > 0;
}
