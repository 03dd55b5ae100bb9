/*
 * darshan_calls.c - one call of each kind that Darshan's modules count, in the folder given.
 *
 * Usage: mpirun -n RANKS darshan_calls FOLDER [RANK]. That rank leaves without a word when all have written.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BYTES = 300000, FAR = 5 };

static int rank;
static char data[BYTES], path[4096];

static const char *of_rank(const char *folder, const char *name)
{
    snprintf(path, sizeof path, "%s/%s.%d", folder, name, rank);
    return path;
}

static void check(int failed, const char *what)
{
    if (!failed)
        return;
    fprintf(stderr, "darshan_calls: %s failed on rank %d\n", what, rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void posix(const char *folder)
{
    char other[4096 + 8];
    struct iovec pieces[2] = {{data, 7}, {data, 100}};
    const off_t far = (off_t)FAR << 30;
    int file = open(of_rank(folder, "posix"), O_CREAT | O_RDWR | O_TRUNC, 0640);

    check(file < 0, "open");
    check(write(file, data, 101) != 101, "write");
    check(writev(file, pieces, 2) != 107, "writev");
    check(pwrite(file, data, 5000, 1000) != 5000, "pwrite");
    for (int k = 0; k < 10; k++)
        check(pwrite(file, data, 100, 20000 + k * 300) != 100, "pwrite");
    check(pwrite(file, data, BYTES, far) != BYTES, "pwrite");
    check(lseek(file, 50, SEEK_SET) != 50, "lseek");
    check(read(file, data, 51) != 51, "read");
    check(read(file, data, 100) != 100, "read");
    check(pread(file, data, 1024, far + 7) != 1024, "pread");
    const int copy = dup(file);
    check(copy < 0 || fsync(copy) != 0 || fdatasync(file) != 0, "fsync");
    check(close(copy) != 0, "close");
    check(read(file, data, 10) != 10, "read");
    check(write(file, data, 10) != 10, "write");
    check(close(file) != 0, "close");
    snprintf(other, sizeof other, "%s.new", path);
    check(rename(path, other) != 0, "rename");
    check(open(of_rank(folder, "missing"), O_RDONLY) >= 0, "open");
    file = open(other, O_RDONLY);
    check(file < 0 || read(file, data, 0) != 0 || close(file) != 0, "read");
}

static void stdio(const char *folder)
{
    char text[64];
    FILE *stream = fopen(of_rank(folder, "stdio"), "w+");

    check(stream == NULL, "fopen");
    check(fwrite(data, 8, 1000, stream) != 1000, "fwrite");
    check(fprintf(stream, "%d lines\n", 3) < 0 || fputs("a line\n", stream) < 0 || fputc('x', stream) != 'x', "fputs");
    check(fflush(stream) != 0 || fseek(stream, 8000, SEEK_SET) != 0, "fseek");
    check(fgets(text, sizeof text, stream) == NULL, "fgets");
    check(fread(text, 2, 20, stream) != 4, "fread"); /* 8 bytes are left */
    check(fclose(stream) != 0, "fclose");
}

static void independent(MPI_File file)
{
    MPI_Offset at = (MPI_Offset)rank * BYTES;
    MPI_Request request;

    check(MPI_File_write_at(file, at, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at");
    check(MPI_File_read_at(file, at, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_read_at");
    check(MPI_File_iwrite_at(file, at, data, 2048, MPI_BYTE, &request), "MPI_File_iwrite_at");
    check(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    check(MPI_File_iread_at(file, at, data, 2048, MPI_BYTE, &request), "MPI_File_iread_at");
    check(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    check(MPI_File_sync(file), "MPI_File_sync");
}

static void together(MPI_File file)
{
    MPI_Offset at = (MPI_Offset)rank * BYTES;

    check(MPI_File_write_at_all(file, at, data, BYTES / 4, MPI_INT, MPI_STATUS_IGNORE), "MPI_File_write_at_all");
    check(MPI_File_read_at_all(file, at, data, 10, MPI_DOUBLE, MPI_STATUS_IGNORE), "MPI_File_read_at_all");
    check(MPI_File_write_at_all_begin(file, at, data, 100, MPI_BYTE), "MPI_File_write_at_all_begin");
    check(MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE), "MPI_File_write_at_all_end");
    check(MPI_File_read_at_all_begin(file, at, data, 100, MPI_BYTE), "MPI_File_read_at_all_begin");
    check(MPI_File_read_at_all_end(file, data, MPI_STATUS_IGNORE), "MPI_File_read_at_all_end");
    check(MPI_File_set_view(file, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), "MPI_File_set_view");
    check(MPI_File_seek(file, 10 * rank, MPI_SEEK_SET), "MPI_File_seek");
    check(MPI_File_write_all(file, data, 10, MPI_INT, MPI_STATUS_IGNORE), "MPI_File_write_all");
}

int main(int argc, char **argv)
{
    MPI_File file;
    MPI_Info info;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    posix(argv[1]);
    stdio(argv[1]);
    snprintf(path, sizeof path, "%s/shared", argv[1]);
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_nodes", "1");
    check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file), "MPI_File_open");
    MPI_Info_free(&info);
    independent(file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 2 && rank == atoi(argv[2]))
        _exit(7);
    together(file);
    MPI_File_close(&file);
    check(MPI_File_open(MPI_COMM_SELF, of_rank(argv[1], "alone"), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                        &file),
          "MPI_File_open");
    check(MPI_File_write(file, data, 77, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write");
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
