/*
 * trace_patterns.c - what test_pioneer_tracers_agree.py runs under two tracers: PROGRAM PATTERN FOLDER.
 *
 * The patterns are those of the kernels of mpiio_ext.bench, in the calls that programs make for them: a shared file in
 * blocks and in interleaved pieces, nonblocking accesses, files of each rank beside those of the root, file pointers.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 4096, ROUNDS = 4, PIECE = 16 };

static char name[4096];
static const char *folder;
static int rank, ranks, data[BLOCK], back[BLOCK];

static void need(int fine, const char *what)
{
    if (!fine) {
        perror(what);
        MPI_Abort(MPI_COMM_WORLD, 3);
        exit(3);
    }
}

static void use(const char *file)
{
    snprintf(name, sizeof name, "%s/%s", folder, file);
}

static MPI_File open_shared(const char *file)
{
    MPI_File opened;

    use(file);
    need(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &opened) == 0, name);
    return opened;
}

/* Each rank has a block of each round; what it has written is read by its neighbour. */
static void contiguous(void)
{
    MPI_File file = open_shared("contiguous.dat");
    const MPI_Offset round = (MPI_Offset)ranks * (MPI_Offset)sizeof data;

    for (int i = 0; i < ROUNDS; i++)
        MPI_File_write_at_all(file, i * round + rank * (MPI_Offset)sizeof data, data, BLOCK, MPI_INT,
                              MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ROUNDS; i++)
        MPI_File_read_at(file, i * round + (rank + 1) % ranks * (MPI_Offset)sizeof data, back, BLOCK, MPI_INT,
                         MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Pieces of all ranks in turn, by a view; once collectively, once by each rank alone. */
static void interleaved(void)
{
    MPI_File file = open_shared("interleaved.dat");
    MPI_Datatype pieces;

    MPI_Type_vector(BLOCK / PIECE, PIECE, PIECE * ranks, MPI_INT, &pieces);
    MPI_Type_commit(&pieces);
    MPI_File_set_view(file, (MPI_Offset)rank * PIECE * (MPI_Offset)sizeof(int), MPI_INT, pieces, "native",
                      MPI_INFO_NULL);
    for (int i = 0; i < ROUNDS; i++)
        MPI_File_write_all(file, data, BLOCK, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    for (int i = 0; i < ROUNDS; i++)
        MPI_File_read_all(file, back, BLOCK, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_seek(file, BLOCK, MPI_SEEK_SET);
    MPI_File_read(file, back, PIECE, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Type_free(&pieces);
}

static void nonblocking(void)
{
    MPI_File file = open_shared("nonblocking.dat");
    MPI_Request requests[ROUNDS];
    int flag = 0;

    for (int i = 0; i < ROUNDS; i++)
        MPI_File_iwrite_at(file, (MPI_Offset)(i * ranks + rank) * (MPI_Offset)sizeof data, data, BLOCK, MPI_INT,
                           &requests[i]);
    MPI_Waitall(ROUNDS, requests, MPI_STATUSES_IGNORE);
    MPI_File_iread_at(file, rank * (MPI_Offset)sizeof data, back, BLOCK, MPI_INT, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_File_iread_at(file, rank * (MPI_Offset)sizeof data, back, PIECE, MPI_INT, &requests[0]);
    while (!flag)
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* A file of each rank by POSIX, one of each rank by MPI-IO, and what the root alone does. */
static void files_of_ranks(void)
{
    char other[4200];
    struct stat status;
    MPI_File file;

    snprintf(name, sizeof name, "%s/part.%04d.dat", folder, rank);
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    need(fd >= 0, name);
    for (int i = 0; i < ROUNDS; i++)
        need(write(fd, data, sizeof data) == sizeof data, "write");
    need(lseek(fd, PIECE, SEEK_SET) == PIECE && read(fd, back, 100) == 100, "read");
    need(pwrite(fd, data, 10, 7) == 10 && pread(fd, back, 10, 7) == 10 && fsync(fd) == 0 && close(fd) == 0, "end");
    snprintf(name, sizeof name, "%s/self.%04d.dat", folder, rank);
    need(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) == 0, name);
    MPI_File_write(file, data, BLOCK, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    if (rank == 0) {
        use("root.log");
        fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644);
        need(fd >= 0 && write(fd, "begin\n", 6) == 6 && write(fd, "end\n", 4) == 4 && close(fd) == 0, "the log");
        snprintf(other, sizeof other, "%s.old", name);
        need(rename(name, other) == 0 && stat(other, &status) == 0 && unlink(other) == 0, "names");
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    folder = argv[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < BLOCK; i++)
        data[i] = rank * BLOCK + i;
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(argv[1], "contiguous") == 0)
        contiguous();
    else if (strcmp(argv[1], "interleaved") == 0)
        interleaved();
    else if (strcmp(argv[1], "nonblocking") == 0)
        nonblocking();
    else if (strcmp(argv[1], "files") == 0)
        files_of_ranks();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
