/*
 * large_request.c - one call that moves more than 2^31 bytes, in pieces around that limit.
 *
 * Reported as pmodels/mpich #2886 to #2888 (two pieces, one of them near 2 GiB, with data sieving off: an assertion),
 * #2012 (2 GiB are written where 4 GiB are asked for, silently), #1742 (the last 4 KiB before 2^31 are wrong),
 * open-mpi/ompi #2399 (Linux writes at most 0x7ffff000 bytes in a call) and diatomic/diy #75.
 *
 * Memory is one block of 1 MiB that a datatype repeats, so that 4 GiB are written from little memory; what is read
 * goes through the file in steps of 1 MiB.
 *
 * usage: large_request FILE MIB EXTRA      one rank writes MIB * 2^20 + EXTRA bytes in one call; EXTRA may be negative
 */
#include <string.h>

#include "../codes/codes.h"

enum { MIB = 1 << 20 };

/* `blocks` times the same MiB of memory, then `extra` bytes of it. */
static MPI_Datatype repeated(int blocks, int extra)
{
    const int lengths[2] = {1, extra};
    const MPI_Aint begins[2] = {0, 0};
    MPI_Datatype block, same, all;

    MPI_Type_contiguous(MIB, MPI_BYTE, &block);
    MPI_Type_create_hvector(blocks, 1, 0, block, &same);
    MPI_Type_create_struct(2, lengths, begins, (MPI_Datatype[2]){same, MPI_BYTE}, &all);
    MPI_Type_commit(&all);
    MPI_Type_free(&same);
    MPI_Type_free(&block);
    return all;
}

static void check(const char *path, const char *memory, int blocks, int extra)
{
    char *found = allocate(MIB);
    MPI_File file;
    MPI_Offset size = -1;

    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_File_get_size(file, &size);
    need(size == (MPI_Offset)blocks * MIB + extra, "another size of the file");
    for (int n = 0; n <= blocks; n++) {
        const int bytes = n < blocks ? MIB : extra;

        MPI_File_read_at(file, (MPI_Offset)n * MIB, found, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        need(memcmp(found, memory, (size_t)bytes) == 0, "wrong bytes in the file");
    }
    MPI_File_close(&file);
    free(found);
}

int main(int argc, char **argv)
{
    char *memory;
    int blocks, extra, result;
    MPI_Datatype type;
    MPI_File file;
    MPI_Status status;
    MPI_Count written = -1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    need(argc == 4, "usage: large_request FILE MIB EXTRA");
    blocks = argument(argc, argv, 2, 1);
    extra = atoi(argv[3]);
    if (extra < 0) {
        blocks--;
        extra += MIB;
    }
    memory = allocate(MIB);
    for (int i = 0; i < MIB; i++)
        memory[i] = (char)(i % 251 + 1);
    type = repeated(blocks, extra);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    result = MPI_File_write_at_all(file, 0, memory, rank == ranks - 1, type, &status);
    need(result == MPI_SUCCESS, "MPI_File_write_at_all: an error");
    MPI_Get_elements_x(&status, MPI_BYTE, &written);
    need(written == (rank == ranks - 1 ? (MPI_Count)blocks * MIB + extra : 0),
         "the status has another number of bytes");
    MPI_File_close(&file);
    MPI_Type_free(&type);
    if (rank == 0)
        check(argv[1], memory, blocks, extra);
    free(memory);
    if (rank == 0)
        puts("verified");
    MPI_Finalize();
    return 0;
}
