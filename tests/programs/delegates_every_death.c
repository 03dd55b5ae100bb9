/*
 * delegates_every_death.c - a program that writes, closes, reopens, rewrites and deletes files while a delegate dies.
 *
 * usage: delegates_every_death FOLDER
 *
 * A call that fails is printed ("error: RANK CALL FILE TEXT"), and the program goes on. After each close that has
 * succeeded on all ranks, whoever opens the file must read what was written, or get an error; other bytes are a line
 * "wrong: ...". Blocks of BYTES bytes belong to the ranks in turn. The last line is "end".
 */
#include <limits.h>

#include "report.h"

enum { BYTES = 3000, BLOCKS = 8, PAIR = 2 };

static const char *folder;
static unsigned char buffer[BYTES];

static const char *path_of(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int fine(int code, const char *call, const char *name)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (code == MPI_SUCCESS)
        return 1;
    MPI_Error_string(code, text, &length);
    printf("error: %d %s %s %s\n", rank, call, name, text);
    fflush(stdout);
    return 0;
}

static int all(int mine)
{
    int result = 0;

    MPI_Allreduce(&mine, &result, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return result;
}

static int open_it(MPI_Comm comm, const char *name, int amode, MPI_File *file)
{
    return fine(MPI_File_open(comm, path_of(name), amode, MPI_INFO_NULL, file), "open", name);
}

/* Blocks [from, to) of this rank. */
static int put(MPI_File file, const char *name, int seed, int from, int to)
{
    int written = 1;

    for (int i = from; i < to; i++) {
        const long long at = (long long)(i * ranks + rank) * BYTES;

        fill_from(buffer, at, BYTES, seed);
        written &= fine(MPI_File_write_at(file, at, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE), "write", name);
    }
    return written;
}

/* 1: the close has promised all of it; 0: a call has failed. */
static int make(const char *name, int seed, int syncs)
{
    MPI_File file;
    int good = open_it(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, &file);

    if (!all(good))
        return 0;
    good = put(file, name, seed, 0, BLOCKS / PAIR);
    if (syncs)
        good &= fine(MPI_File_sync(file), "sync", name);
    good &= put(file, name, seed, BLOCKS / PAIR, BLOCKS);
    good &= fine(MPI_File_close(&file), "close", name);
    return all(good);
}

static void look_at(MPI_File file, const char *name, int seed)
{
    MPI_Status status;
    int count = -1;

    for (int i = 0; i < BLOCKS * ranks; i++) {
        const long long at = (long long)i * BYTES;

        if (!fine(MPI_File_read_at(file, at, buffer, BYTES, MPI_BYTE, &status), "read", name))
            continue;
        MPI_Get_count(&status, MPI_BYTE, &count);
        if (count != BYTES || !equals_from(buffer, at, BYTES, seed))
            printf("wrong: %d %s block %d, count %d, first byte %d instead of %d\n", rank, name, i, count, buffer[0],
                   byte_at(at, seed));
    }
    fflush(stdout);
}

/* The file was closed, with success if `good`. */
static void check_it(MPI_Comm comm, const char *name, int seed, int good)
{
    MPI_File file;

    if (!open_it(comm, name, MPI_MODE_RDONLY, &file))
        return;
    if (good)
        look_at(file, name, seed);
    fine(MPI_File_close(&file), "close", name);
}

/* Opened once more, by all ranks, while it is open. */
static int make_twice(const char *name, int seed)
{
    MPI_File first, second;
    int good = open_it(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, &first);

    if (!all(good))
        return 0;
    good = put(first, name, seed, 0, BLOCKS / PAIR);
    good &= fine(MPI_File_sync(first), "sync", name);
    const int again = open_it(MPI_COMM_WORLD, name, MPI_MODE_RDWR, &second);

    if (all(again)) {
        good &= put(second, name, seed, BLOCKS / PAIR, BLOCKS);
        good &= fine(MPI_File_close(&second), "close", name);
    } else {
        good &= put(first, name, seed, BLOCKS / PAIR, BLOCKS);
    }
    good &= fine(MPI_File_close(&first), "close", name);
    return all(good);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    folder = argv[1];
    int a = make("a", 1, 1), b = make("b", 2, 0);

    check_it(MPI_COMM_WORLD, "a", 1, a);
    a = make("a", 3, 0);
    if (rank == ranks - 1)
        check_it(MPI_COMM_SELF, "a", 3, a);
    const int c = make_twice("c", 4);

    check_it(MPI_COMM_WORLD, "c", 4, c);
    if (rank == 0)
        b = fine(MPI_File_delete(path_of("b"), MPI_INFO_NULL), "delete", "b");
    MPI_Barrier(MPI_COMM_WORLD);
    b = make("b", 5, 0);
    if (rank == 0)
        check_it(MPI_COMM_SELF, "b", 5, b);
    const int d = make("d", 6, 0);

    if (rank == 0)
        printf("closed: %d %d %d %d\n", a, b, c, d);
    MPI_Finalize();
    if (rank == 0)
        printf("end\n");
    return argc != 2;
}
