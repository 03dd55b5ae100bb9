/*
 * delegates_hosts.c - everything that a file can do, by ranks of several hosts, through delegates: plain MPI.
 *
 * usage: delegates_hosts FILE
 *
 * Says where the ranks and the delegates are ("rank 0 host node1", "delegate 0 host node3 node 2"), and then, as checks
 * of report.h: pieces of four sizes, interleaved, written independently through a view, read back by their writer at
 * once and by the next rank after sync, barrier, sync; accesses by explicit offset with holes; nonblocking ones; the
 * file's size; records by the shared pointer; collective writes and reads after independent ones; a file that is cut
 * and grows again; what the file holds after the close, seen without MPI by every rank. "end" is the last line.
 */
#include <stdint.h>
#include <unistd.h>

#include "report.h"

/* Of libmpiio_ext.so, when it is preloaded. */
__attribute__((weak)) int mpiio_ext_group_count(void);
__attribute__((weak)) const char *mpiio_ext_group_mode(void);
__attribute__((weak)) const char *mpiio_ext_group_host(int index);
__attribute__((weak)) int mpiio_ext_group_node(int index);

enum { MOST = 1 << 20, RECORD = 1000, RECORDS = 20, SEED = 5 };

static unsigned char *data;
static char path[4096];

static void check_call(const char *name, int code)
{
    check(name, code == MPI_SUCCESS);
}

static void say_places(void)
{
    char name[64] = "";
    char (*names)[64] = malloc((size_t)ranks * 64);

    gethostname(name, sizeof name - 1);
    MPI_Gather(name, 64, MPI_CHAR, names, 64, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < ranks; i++)
        printf("rank %d host %s\n", i, names[i]);
    for (int i = 0; rank == 0 && mpiio_ext_group_count && i < mpiio_ext_group_count(); i++)
        printf("delegate %d host %s node %d mode %s\n", i, mpiio_ext_group_host(i), mpiio_ext_group_node(i),
               mpiio_ext_group_mode());
    free(names);
}

static MPI_File open_file(const char *suffix, int mode)
{
    MPI_File file;
    char name[4200];

    snprintf(name, sizeof name, "%s%s", path, suffix);
    if (rank == 0 && mode & MPI_MODE_CREATE)
        unlink(name);
    MPI_Barrier(MPI_COMM_WORLD);
    check_call("open", MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file));
    return file;
}

static void sync_all(MPI_File file)
{
    int fine = MPI_File_sync(file) == MPI_SUCCESS;

    MPI_Barrier(MPI_COMM_WORLD);
    check("sync, barrier, sync", MPI_File_sync(file) == MPI_SUCCESS && fine);
}

/* Blocks of a rank: a view of every ranks-th block. */
static int set_blocks(MPI_File file, int block, int of)
{
    MPI_Datatype piece, type;
    int code;

    MPI_Type_contiguous(block, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)block * ranks, &type);
    MPI_Type_commit(&type);
    code = MPI_File_set_view(file, (MPI_Offset)block * of, MPI_BYTE, type, "native", MPI_INFO_NULL);
    MPI_Type_free(&piece);
    MPI_Type_free(&type);
    return code == MPI_SUCCESS;
}

/* Stream bytes [at, at + bytes) of the blocks of a rank. */
static void fill_blocks(int block, int of, int at, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        const long long position = at + i;

        data[i] = byte_at((position / block * ranks + of) * block + position % block, SEED);
    }
}

static int blocks_are(int block, int of, int at, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        const long long position = at + i;

        if (data[i] != byte_at((position / block * ranks + of) * block + position % block, SEED))
            return 0;
    }
    return 1;
}

static int read_blocks(MPI_File file, int block, int of, int bytes)
{
    MPI_Status status;
    int count = 0;

    memset(data, 0, (size_t)bytes);
    if (MPI_File_read_at(file, 0, data, bytes, MPI_BYTE, &status) != MPI_SUCCESS)
        return 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    return count == bytes && blocks_are(block, of, 0, bytes);
}

static void interleaved(int block, int bytes)
{
    MPI_File file = open_file("", MPI_MODE_RDWR | MPI_MODE_CREATE);
    const int next = (rank + 1) % ranks, part = bytes / 4;
    MPI_Offset size = 0;
    int fine = set_blocks(file, block, rank);

    for (int i = 0; i < 4; i++) {
        fill_blocks(block, rank, i * part, part);
        fine &= MPI_File_write(file, data, part, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    }
    check("interleaved writes", fine);
    check("read back by the writer", read_blocks(file, block, rank, bytes));
    MPI_Barrier(MPI_COMM_WORLD);
    check("size before a sync", MPI_File_get_size(file, &size) == MPI_SUCCESS && size == (MPI_Offset)bytes * ranks);
    sync_all(file);
    fine = set_blocks(file, block, next);
    check("read by the next rank", read_blocks(file, block, next, bytes) && fine);
    check_call("close", MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    check("the file, seen by every host", file_is(path, (long long)bytes * ranks, SEED));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Small nonblocking writes by explicit offset, in a scattered order, with a hole of `gap` bytes after each. */
static void scattered(void)
{
    enum { PIECE = 300, PIECES = 200, GAP = 77 };
    MPI_File file = open_file(".holes", MPI_MODE_RDWR | MPI_MODE_CREATE);
    MPI_Request requests[PIECES];
    int fine = 1, zeros = 1;

    for (int i = 0; i < PIECES; i++) {
        const long long at = ((long long)(i * 7 % PIECES) * ranks + rank) * (PIECE + GAP);

        fill_from(data + i * PIECE, at, PIECE, SEED);
        fine &= MPI_File_iwrite_at(file, at, data + i * PIECE, PIECE, MPI_BYTE, &requests[i]) == MPI_SUCCESS;
    }
    fine &= MPI_Waitall(PIECES, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS;
    check("scattered writes", fine);
    sync_all(file);
    for (int i = 0; i < PIECES; i++) {
        const long long at = ((long long)i * ranks + (rank + 1) % ranks) * (PIECE + GAP);
        const int last = i == PIECES - 1 && (rank + 1) % ranks == ranks - 1, bytes = last ? PIECE : PIECE + GAP;

        memset(data, 1, PIECE + GAP);
        fine &= MPI_File_read_at(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS;
        fine &= equals_from(data, at, PIECE, SEED);
        for (int j = PIECE; j < bytes; j++)
            zeros &= data[j] == 0;
    }
    check("scattered reads", fine);
    check("holes are zeros", zeros);
    check_call("close", MPI_File_close(&file));
}

static void shared_pointer(void)
{
    MPI_File file = open_file(".shared", MPI_MODE_RDWR | MPI_MODE_CREATE);
    const int total = RECORDS * ranks;
    int *seen = calloc((size_t)ranks, sizeof *seen), fine = 1;
    MPI_Offset size = 0;

    for (int i = 0; i < RECORDS; i++) { /* a record: its rank, and bytes that follow from rank and number */
        data[0] = (unsigned char)rank;
        data[1] = (unsigned char)i;
        fill_from(data + 2, (long long)rank * RECORDS + i, RECORD - 2, SEED);
        fine &= MPI_File_write_shared(file, data, RECORD, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    }
    check("shared writes", fine);
    sync_all(file);
    check("size", MPI_File_get_size(file, &size) == MPI_SUCCESS && size == (MPI_Offset)RECORD * total);
    for (int i = 0; i < total; i++) {
        fine &= MPI_File_read_at(file, (MPI_Offset)i * RECORD, data, RECORD, MPI_BYTE, MPI_STATUS_IGNORE) == 0;
        fine &= data[0] < ranks && data[1] == seen[data[0]]++; /* a rank's own in its order */
        fine &= equals_from(data + 2, (long long)data[0] * RECORDS + data[1], RECORD - 2, SEED);
    }
    check("shared records", fine);
    check_call("close", MPI_File_close(&file));
    free(seen);
}

/* Version 1 independently, then every second block collectively as version 2, read collectively and independently. */
static void mixed(void)
{
    enum { BLOCK = 3000, BLOCKS = 40 };
    MPI_File file = open_file(".mixed", MPI_MODE_RDWR | MPI_MODE_CREATE);
    int fine = 1;
    MPI_Offset size = 0;

    for (int i = 0; i < BLOCKS; i++) {
        const long long at = ((long long)i * ranks + rank) * BLOCK;

        fill_from(data, at, BLOCK, 1);
        fine &= MPI_File_write_at(file, at, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    }
    check("independent before", fine);
    MPI_Barrier(MPI_COMM_WORLD); /* the collectives overwrite what others may still be writing otherwise */
    for (int i = 0; i < BLOCKS; i += 2) {
        const long long at = ((long long)i * ranks + (rank + 1) % ranks) * BLOCK;

        fill_from(data, at, BLOCK, 2);
        fine &= MPI_File_write_at_all(file, at, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    }
    check("collective after independent", fine);
    sync_all(file);
    for (int i = 0; i < BLOCKS; i++) {
        const long long at = ((long long)i * ranks + (rank + 2) % ranks) * BLOCK;
        const int code = i % 3 == 0 ? MPI_File_read_at_all(file, at, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE)
                                    : MPI_File_read_at(file, at, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);

        fine &= code == MPI_SUCCESS && equals_from(data, at, BLOCK, i % 2 == 0 ? 2 : 1);
    }
    check("what both have written", fine);
    check_call("set_size", MPI_File_set_size(file, 10 * BLOCK));
    check("cut", MPI_File_get_size(file, &size) == MPI_SUCCESS && size == 10 * BLOCK);
    memset(data, 7, 100);
    fine = rank != 0 || MPI_File_write_at(file, 20 * BLOCK, data, 100, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    sync_all(file);
    fine &= MPI_File_read_at(file, 20 * BLOCK - 100, data, 200, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    for (int i = 0; i < 200; i++)
        fine &= data[i] == (i < 100 ? 0 : 7);
    check("grown again", fine);
    check_call("close", MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    snprintf(path, sizeof path, "%s", argv[1]);
    data = malloc(MOST);
    interleaved(8, 16 << 10);
    say_places();
    interleaved(64, 64 << 10);
    interleaved(4096, 256 << 10);
    interleaved(65536, MOST);
    scattered();
    shared_pointer();
    mixed();
    free(data);
    MPI_Finalize();
    if (rank == 0)
        puts("end");
    return failures > 0;
}
