/*
 * long_views.c - views whose descriptions are gigabytes in sum, of which little is accessed; plain MPI.
 *
 *   long_views FILE MEMBERS ACCESSED   MEMBERS members in the struct that is each rank's file type
 *
 * A member is two blocks of 4 B at an irregular place, so that nothing shorter than the list of all says where they
 * are: about 96 B a member. ACCESSED members in the middle are written and read by collectives. Every byte is checked.
 * Prints on rank 0 "verified" and by how much the private memory has grown in the collectives, in KiB.
 */
#include "process.h"
#include "report.h"

enum { BLOCK = 4, STEP = 8, SLOT = 24, MEMBER = 2 * BLOCK };

/* Where the rank's member lies. */
static long long place_of(long long member, int of)
{
    const unsigned long long mixed = ((unsigned long long)member * 0x9E3779B97F4A7C15ull) >> 40;

    return (member * ranks + of) * SLOT + (long long)(mixed % 4) * BLOCK;
}

static MPI_Datatype view_of(int members)
{
    int *lengths = malloc(sizeof *lengths * (size_t)members);
    MPI_Aint *places = malloc(sizeof *places * (size_t)members);
    MPI_Datatype *types = malloc(sizeof *types * (size_t)members), pair, all;

    MPI_Type_create_hvector(2, BLOCK, STEP, MPI_BYTE, &pair);
    for (int i = 0; i < members; i++) {
        lengths[i] = 1;
        places[i] = (MPI_Aint)place_of(i, rank);
        types[i] = pair;
    }
    if (MPI_Type_create_struct(members, lengths, places, types, &all) != MPI_SUCCESS ||
        MPI_Type_commit(&all) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Type_free(&pair);
    free(lengths);
    free(places);
    free(types);
    return all;
}

/* Set or compare the bytes of this rank's members [first, last). */
static int members(unsigned char *data, long long first, long long last, int set)
{
    int fine = 1;

    for (long long i = first; i < last; i++, data += MEMBER) {
        for (int block = 0; block < 2; block++) {
            const long long at = place_of(i, rank) + (long long)block * STEP;

            if (set)
                fill_from(data + block * BLOCK, at, BLOCK, 1);
            else
                fine = fine && equals_from(data + block * BLOCK, at, BLOCK, 1);
        }
    }
    return fine;
}

/* Rank 0, without MPI: all ranks' members are in the file, between them nothing. */
static int file_holds(const char *path, long long first, long long last)
{
    const long long from = first * ranks * SLOT, bytes = (last - first) * ranks * SLOT;
    unsigned char *all = calloc(1, (size_t)bytes), *found = calloc(1, (size_t)bytes);
    FILE *file = fopen(path, "rb");
    int fine = file != NULL && fseek(file, (long)from, SEEK_SET) == 0;

    for (long long i = first; i < last; i++) {
        for (int of = 0; of < ranks; of++) {
            for (int block = 0; block < 2; block++) {
                const long long at = place_of(i, of) + (long long)block * STEP;

                fill_from(all + (at - from), at, BLOCK, 1);
            }
        }
    }
    fine = fine && fread(found, 1, (size_t)bytes, file) > (size_t)(bytes - SLOT) &&
           memcmp(all, found, (size_t)bytes) == 0;
    if (file != NULL)
        fclose(file);
    free(all);
    free(found);
    return fine;
}

int main(int argc, char **argv)
{
    MPI_File file;
    long grown, most;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4)
        MPI_Abort(MPI_COMM_WORLD, 1);
    const int all = atoi(argv[2]), accessed = atoi(argv[3]), first = (all - accessed) / 2, last = first + accessed;
    MPI_Datatype view = view_of(all);
    unsigned char *data = calloc((size_t)accessed, MEMBER);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    check("view", MPI_File_set_view(file, 0, MPI_BYTE, view, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    MPI_Type_free(&view);
    members(data, first, last, 1);
    grown = process_kib("RssAnon");
    check("written", MPI_File_write_at_all(file, (MPI_Offset)first * MEMBER, data, accessed * MEMBER, MPI_BYTE,
                                           MPI_STATUS_IGNORE) == MPI_SUCCESS);
    memset(data, 0, (size_t)accessed * MEMBER);
    check("read", MPI_File_read_at_all(file, (MPI_Offset)first * MEMBER, data, accessed * MEMBER, MPI_BYTE,
                                       MPI_STATUS_IGNORE) == MPI_SUCCESS);
    grown = process_kib("RssAnon") - grown;
    check("bytes", members(data, first, last, 0));
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    check("file", rank != 0 || file_holds(argv[1], first, last));
    MPI_Reduce(&grown, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s private_kib=%ld\n", failures ? "wrong" : "verified", most);
    free(data);
    MPI_Finalize();
    return failures;
}
