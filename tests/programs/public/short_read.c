/*
 * short_read.c - reads that end behind the end of the file: how many bytes the status tells, and what memory holds.
 *
 * Reported as open-mpi/ompi #14015 and #12973, pmodels/mpich #1085 and #2348, cburstedde/p4est #288: the count is the
 * one asked for, so that a loop that reads until nothing comes never ends. Each rank reads its pieces of a file, which
 * ends inside them or before them; bytes that are not in the file must not be touched.
 *
 * usage: short_read FILE
 */
#include <string.h>

#include "../codes/codes.h"

enum { PIECE = 40, PIECES = 50, ASKED = PIECE * PIECES, UNTOUCHED = 99 };

typedef enum { AT_ALL, ALL, SPLIT, NONBLOCKING_ALL, ALONE, NONBLOCKING, N_CALLS } call;

static const char *const names[N_CALLS] = {"MPI_File_read_at_all",  "MPI_File_read_all", "MPI_File_read_all_begin",
                                           "MPI_File_iread_at_all", "MPI_File_read_at",  "MPI_File_iread_at"};

static unsigned char value(MPI_Offset at)
{
    return (unsigned char)(at * 7 % 97);
}

static int read_by(call by, MPI_File file, unsigned char *data)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    int count = -1;

    MPI_File_seek(file, 0, MPI_SEEK_SET);
    if (by == AT_ALL)
        MPI_File_read_at_all(file, 0, data, ASKED, MPI_BYTE, &status);
    else if (by == ALL)
        MPI_File_read_all(file, data, ASKED, MPI_BYTE, &status);
    else if (by == ALONE)
        MPI_File_read_at(file, 0, data, ASKED, MPI_BYTE, &status);
    else if (by == NONBLOCKING_ALL)
        MPI_File_iread_at_all(file, 0, data, ASKED, MPI_BYTE, &request);
    else if (by == NONBLOCKING)
        MPI_File_iread_at(file, 0, data, ASKED, MPI_BYTE, &request);
    else
        MPI_File_read_all_begin(file, data, ASKED, MPI_BYTE);
    if (by == SPLIT)
        MPI_File_read_all_end(file, data, &status);
    if (by == NONBLOCKING_ALL || by == NONBLOCKING)
        MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    return count;
}

/* Read through the view that is set; byte i of it lies at `first` + i / `length` * `stride` + i % `length`. */
static void check(MPI_File file, const char *what, MPI_Offset size, MPI_Offset first, MPI_Offset length,
                  MPI_Offset stride)
{
    unsigned char data[ASKED];
    char message[128];

    for (call by = 0; by < N_CALLS; by++) {
        memset(data, UNTOUCHED, sizeof data);
        const int count = read_by(by, file, data);
        int there = 0;

        while (there < ASKED && first + there / length * stride + there % length < size)
            there++;
        snprintf(message, sizeof message, "%s, %s: a count of %d for %d bytes", what, names[by], count, there);
        need(count == there, message);
        snprintf(message, sizeof message, "%s, %s: wrong byte", what, names[by]);
        for (int i = 0; i < ASKED; i++)
            need(data[i] == (i < there ? value(first + i / length * stride + i % length) : UNTOUCHED), message);
    }
}

static void through_views(const char *path, MPI_Offset size)
{
    MPI_Datatype view;
    MPI_File file;

    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    check(file, "no view", size, 0, ASKED, 0);
    MPI_File_set_view(file, (MPI_Offset)rank * ASKED, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    check(file, "a block a rank", size, (MPI_Offset)rank * ASKED, ASKED, 0);
    MPI_Type_vector(PIECES, PIECE, PIECE * ranks, MPI_BYTE, &view);
    MPI_Type_commit(&view);
    MPI_File_set_view(file, (MPI_Offset)rank * PIECE, MPI_BYTE, view, "native", MPI_INFO_NULL);
    check(file, "pieces in turn", size, (MPI_Offset)rank * PIECE, PIECE, (MPI_Offset)PIECE * ranks);
    MPI_Type_free(&view);
    MPI_File_close(&file);
}

/* Every rank reads through the whole file, as long as something comes. */
static void to_the_end(const char *path, MPI_Offset size)
{
    unsigned char data[ASKED];
    MPI_Status status;
    MPI_Offset all = 0;
    MPI_File file;
    int count = -1;

    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    while (count != 0) {
        MPI_File_read_all(file, data, ASKED, MPI_BYTE, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        all += count;
        need(all <= size, "MPI_File_read_all: more bytes than the file has");
    }
    need(all == size, "MPI_File_read_all: fewer bytes than the file has");
    MPI_File_close(&file);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    need(argc == 2, "usage: short_read FILE");
    const MPI_Offset sizes[] = {0, 1, ASKED - 1, ASKED, (MPI_Offset)ASKED * ranks / 2 + 7, (MPI_Offset)ASKED * ranks};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (rank == 0) {
            FILE *file = fopen(argv[1], "wb");

            need(file != NULL, "fopen");
            for (MPI_Offset at = 0; at < sizes[i]; at++)
                fputc(value(at), file);
            need(fclose(file) == 0, "fclose");
        }
        MPI_Barrier(MPI_COMM_WORLD);
        through_views(argv[1], sizes[i]);
        to_the_end(argv[1], sizes[i]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0)
        puts("verified");
    MPI_Finalize();
    return 0;
}
