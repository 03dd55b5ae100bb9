/*
 * byte_offset.c - file views with contiguous pieces of 2 GiB and more, through individual file pointers and offsets.
 *
 * Reported as open-mpi/ompi #14379: the computation of an offset narrows the length of a piece to an int, and walks
 * through memory that is not the view's. The file is sparse: a few bytes are written behind 2^31 and 2^32 of the view.
 * Also of the kind: paboyle/Grid #381 and pmodels/mpich #2886 to #2888 (lengths and offsets beyond an int).
 *
 * usage: byte_offset FILE
 */
#include <string.h>

#include "../codes/codes.h"

enum { BYTES = 4099, PLACES = 7 };

static const MPI_Offset gib = (MPI_Offset)1 << 30;

/* A view: pieces of `piece` bytes of the ranks in turn. A piece is made of blocks of 1 MiB, so that no count of the
 * type exceeds an int. */
static void set_view(MPI_File file, MPI_Offset piece)
{
    MPI_Datatype block, run, tile;

    MPI_Type_contiguous(1 << 20, MPI_BYTE, &block);
    MPI_Type_contiguous((int)(piece >> 20), block, &run);
    MPI_Type_create_resized(run, 0, (MPI_Aint)(piece * ranks), &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(file, piece * rank, MPI_BYTE, tile, "native", MPI_INFO_NULL);
    MPI_Type_free(&tile);
    MPI_Type_free(&run);
    MPI_Type_free(&block);
}

static MPI_Offset in_file(MPI_Offset offset, MPI_Offset piece)
{
    return offset / piece * piece * ranks + piece * rank + offset % piece;
}

static char value(MPI_Offset offset, int i)
{
    return (char)(rank * 17 + (offset >> 12) + i * 3 + 1);
}

static void check(const char *data, MPI_Offset offset, const char *what)
{
    for (int i = 0; i < BYTES; i++)
        need(data[i] == value(offset, i), what);
}

static void one_place(MPI_File file, MPI_Offset offset, MPI_Offset piece, int collective, char *data)
{
    MPI_Offset at = -1;

    MPI_File_get_byte_offset(file, offset, &at);
    need(at == in_file(offset, piece), "MPI_File_get_byte_offset: another offset");
    MPI_File_seek(file, offset, MPI_SEEK_SET);
    for (int i = 0; i < BYTES; i++)
        data[i] = value(offset, i);
    if (collective)
        MPI_File_write_all(file, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    else
        MPI_File_write(file, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_get_position(file, &at);
    need(at == offset + BYTES, "MPI_File_get_position: another position");
    memset(data, 0, BYTES);
    if (collective)
        MPI_File_read_at_all(file, offset, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    else
        MPI_File_read_at(file, offset, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    check(data, offset, "wrong byte through the view");
}

/* The same bytes without a view: at their places in the file, the last piece in two where it is. */
static void check_in_file(MPI_File file, const MPI_Offset *places, MPI_Offset piece, char *data)
{
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    for (int n = 0; n < PLACES; n++) {
        const MPI_Offset left = piece - places[n] % piece;
        const int first = left < BYTES ? (int)left : BYTES;

        MPI_File_read_at(file, in_file(places[n], piece), data, first, MPI_BYTE, MPI_STATUS_IGNORE);
        if (first < BYTES)
            MPI_File_read_at(file, in_file(places[n] + first, piece), data + first, BYTES - first, MPI_BYTE,
                             MPI_STATUS_IGNORE);
        check(data, places[n], "wrong byte in the file");
    }
}

int main(int argc, char **argv)
{
    char data[BYTES];
    MPI_File file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    need(argc == 2, "usage: byte_offset FILE");
    for (int half = 3; half <= 9; half += 3) { /* pieces of 1.5, 3 and 4.5 GiB */
        const MPI_Offset piece = half * gib / 2;
        const MPI_Offset places[PLACES] = {0,       2 * gib - 2048, 2 * gib + 4097, piece - 2048,
                                           4 * gib, 4 * gib + 8190, 2 * piece + 77};

        MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
        set_view(file, piece);
        for (int n = 0; n < PLACES; n++)
            one_place(file, places[n], piece, n % 2, data);
        MPI_Barrier(MPI_COMM_WORLD);
        check_in_file(file, places, piece, data);
        MPI_File_close(&file);
        if (rank == 0)
            MPI_File_delete(argv[1], MPI_INFO_NULL);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0)
        puts("verified");
    MPI_Finalize();
    return 0;
}
