/*
 * posix_rotation.c - checkpoints that rank 0 rotates by rename() after each close, as simulations do.
 *
 * usage: posix_rotation FOLDER COUNT   chk.new becomes chk.0, that chk.1, that chk.2, that goes. COUNT times.
 */
#include <errno.h>
#include <sys/stat.h>

#include "report.h"

enum { BLOCK = 60000, KEPT = 3 };

static void write_one(const char *path, int number)
{
    static unsigned char data[BLOCK];
    MPI_File file;

    for (int i = 0; i < BLOCK; i++)
        data[i] = byte_at((long long)rank * BLOCK + i, number);
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_File_write_at_all(file, (long long)rank * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

static void must(int result, const char *what, int number)
{
    if (result == 0)
        return;
    fprintf(stderr, "%d: %s: %s\n", number, what, strerror(errno));
    MPI_Abort(MPI_COMM_WORLD, 4);
}

static void rotate(int number)
{
    char from[32], to[32];

    if (number >= KEPT)
        must(unlink("chk.2"), "unlink", number);
    for (int i = KEPT - 2; i >= 0; i--) {
        snprintf(from, sizeof from, "chk.%d", i);
        snprintf(to, sizeof to, "chk.%d", i + 1);
        if (access(from, F_OK) == 0)
            must(rename(from, to), "rename", number);
    }
    must(rename("chk.new", "chk.0"), "rename chk.new", number);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 3 || chdir(argv[1]) != 0)
        return 2;
    for (int number = 0; number < atoi(argv[2]); number++) {
        write_one("chk.new", number);
        if (rank == 0)
            rotate(number);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
