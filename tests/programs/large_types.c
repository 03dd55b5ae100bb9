/*
 * large_types.c - datatypes made by large-count constructors, where the MPI library has them (else by the classic
 * ones), as file types, etypes and memory types of every kind of access.
 *
 * usage: large_types FILE
 *
 * What belongs where is computed by MPI_Unpack, which no MPI-IO library wraps.
 */
#include <fcntl.h>
#include <unistd.h>

#include "report.h"

#if MPI_VERSION >= 4
#define LARGE(name) name##_c
typedef MPI_Count number, address;
#else
#define LARGE(name) name
typedef int number;
typedef MPI_Aint address;
#endif

enum { REGION = 8192, ITEMS_MAX = 256 };

static const char *const KINDS[] = {"contiguous",     "vector", "hvector",  "indexed", "hindexed", "indexed_block",
                                    "hindexed_block", "struct", "subarray", "darray",  "resized"};
enum { N_KINDS = sizeof KINDS / sizeof *KINDS };

static const char *path;

/* Ints at displacements that go up and are never negative. */
static MPI_Datatype make(int kind)
{
    const number lengths[3] = {2, 1, 3}, items[3] = {1, 4, 7}, sizes[2] = {5, 6}, parts[2] = {3, 2}, starts[2] = {1, 3};
    const address bytes[3] = {8, 24, 40};
    const int ways[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, none[2] = {1, MPI_DISTRIBUTE_DFLT_DARG};
    const int grid[2] = {2, 2};
    const MPI_Datatype types[3] = {MPI_INT, MPI_FLOAT, MPI_INT};
    MPI_Datatype made = MPI_DATATYPE_NULL;

    switch (kind) {
    case 0:
        LARGE(MPI_Type_contiguous)(7, MPI_INT, &made);
        break;
    case 1:
        LARGE(MPI_Type_vector)(4, 2, 3, MPI_INT, &made);
        break;
    case 2:
        LARGE(MPI_Type_create_hvector)(4, 2, 12, MPI_INT, &made);
        break;
    case 3:
        LARGE(MPI_Type_indexed)(3, lengths, items, MPI_INT, &made);
        break;
    case 4:
        LARGE(MPI_Type_create_hindexed)(3, lengths, bytes, MPI_INT, &made);
        break;
    case 5:
        LARGE(MPI_Type_create_indexed_block)(3, 2, items, MPI_INT, &made);
        break;
    case 6:
        LARGE(MPI_Type_create_hindexed_block)(3, 2, bytes, MPI_INT, &made);
        break;
    case 7:
        LARGE(MPI_Type_create_struct)(3, lengths, bytes, types, &made);
        break;
    case 8:
        LARGE(MPI_Type_create_subarray)(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &made);
        break;
    case 9:
        LARGE(MPI_Type_create_darray)(4, 1, 2, sizes, ways, none, grid, MPI_ORDER_FORTRAN, MPI_INT, &made);
        break;
    default:
        LARGE(MPI_Type_create_resized)(MPI_INT, 0, 12, &made);
        break;
    }
    MPI_Type_commit(&made);
    return made;
}

/* The same type once more, as another handle; the first is gone. */
static MPI_Datatype duplicate(MPI_Datatype type)
{
    MPI_Datatype copy;

    MPI_Type_dup(type, &copy);
    MPI_Type_free(&type);
    return copy;
}

typedef struct place {
    unsigned char packed[4 * ITEMS_MAX], image[REGION]; /* data, and data where `count` of the type say */
    int bytes, count;
} place;

static void lay_out(place *p, MPI_Datatype type, int seed)
{
    MPI_Count size;
    int at = 0;

    MPI_Type_size_x(type, &size);
    p->count = 3;
    p->bytes = p->count * (int)size;
    fill_from(p->packed, rank * 100000, p->bytes, seed);
    memset(p->image, 0, sizeof p->image);
    MPI_Unpack(p->packed, p->bytes, &at, p->image, p->count, type, MPI_COMM_SELF);
}

/* This rank's region of the file, read without MPI; it is zeros again afterwards. */
static int region_is(MPI_File file, const unsigned char *expected)
{
    static const unsigned char zeros[REGION];
    unsigned char found[REGION] = {0};
    const off_t at = (off_t)rank * REGION;
    int fd, fine;

    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    fd = open(path, O_RDWR);
    fine = fd >= 0 && pread(fd, found, REGION, at) >= 0 && memcmp(found, expected, REGION) == 0;
    fine &= pwrite(fd, zeros, REGION, at) == REGION;
    close(fd);
    MPI_Barrier(MPI_COMM_WORLD);
    return fine;
}

static int wait_for(MPI_Request *request, int bytes)
{
    MPI_Status status;
    int count;

    if (MPI_Wait(request, &status) != MPI_SUCCESS)
        return 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    return count == bytes;
}

/* ---- as file type and etype -------------------------------------------------------------------------------- */

typedef enum way { TOGETHER, ALONE, LATER, LATER_TOGETHER, IN_TWO, WAYS } way;

static const char *const WAY_NAMES[WAYS] = {"collective", "independent", "nonblocking", "nonblocking collective",
                                            "split"};

static int move(MPI_File file, way how, int write, MPI_Offset at, void *data, int count, MPI_Datatype type, int bytes)
{
    MPI_Request request;
    MPI_Status status;
    int moved, code = MPI_SUCCESS;

    switch (how) {
    case TOGETHER:
        code = write ? MPI_File_write_at_all(file, at, data, count, type, &status)
                     : MPI_File_read_at_all(file, at, data, count, type, &status);
        break;
    case ALONE:
        code = write ? MPI_File_write_at(file, at, data, count, type, &status)
                     : MPI_File_read_at(file, at, data, count, type, &status);
        break;
    case LATER:
        code = write ? MPI_File_iwrite_at(file, at, data, count, type, &request)
                     : MPI_File_iread_at(file, at, data, count, type, &request);
        return code == MPI_SUCCESS && wait_for(&request, bytes);
    case LATER_TOGETHER:
        code = write ? MPI_File_iwrite_at_all(file, at, data, count, type, &request)
                     : MPI_File_iread_at_all(file, at, data, count, type, &request);
        return code == MPI_SUCCESS && wait_for(&request, bytes);
    default:
        if (write) {
            code = MPI_File_write_at_all_begin(file, at, data, count, type);
            code = code == MPI_SUCCESS ? MPI_File_write_at_all_end(file, data, &status) : code;
        } else {
            code = MPI_File_read_at_all_begin(file, at, data, count, type);
            code = code == MPI_SUCCESS ? MPI_File_read_at_all_end(file, data, &status) : code;
        }
    }
    MPI_Get_count(&status, MPI_BYTE, &moved);
    return code == MPI_SUCCESS && moved == bytes;
}

/* The view that MPI_File_get_view returns is as large as the one that was set, and what it returns can be freed. */
static int view_is(MPI_File file, MPI_Count bytes)
{
    MPI_Datatype etype, filetype;
    MPI_Offset disp;
    MPI_Count size = -1;
    char rep[MPI_MAX_DATAREP_STRING];

    if (MPI_File_get_view(file, &disp, &etype, &filetype, rep) != MPI_SUCCESS)
        return 0;
    MPI_Type_size_x(filetype, &size);
    if (etype != MPI_INT)
        MPI_Type_free(&etype);
    MPI_Type_free(&filetype);
    return disp == (MPI_Offset)rank * REGION && size == bytes;
}

/* What becomes of the handles of the view: freed at once, duplicates are passed, the type is the etype, too. */
typedef enum style { FREED, DUPLICATED, ETYPE, STYLES } style;

static const char *const STYLE_NAMES[STYLES] = {"freed", "duplicated", "etype"};

static int set_view(MPI_File file, int kind, style handles, MPI_Count *bytes)
{
    MPI_Datatype filetype = make(kind), etype = handles == ETYPE ? make(kind) : MPI_INT;
    int code;

    if (handles != FREED)
        filetype = duplicate(filetype);
    MPI_Type_commit(&filetype);
    MPI_Type_size_x(filetype, bytes);
    code = MPI_File_set_view(file, (MPI_Offset)rank * REGION, etype, filetype, "native", MPI_INFO_NULL);
    MPI_Type_free(&filetype);
    if (handles == ETYPE)
        MPI_Type_free(&etype);
    return code == MPI_SUCCESS && view_is(file, *bytes);
}

static void in_file(MPI_File file, int kind)
{
    char name[200];

    for (style handles = FREED; handles < STYLES; handles++) {
        for (way how = TOGETHER; how < WAYS; how++) {
            MPI_Datatype twin = make(kind);
            place p;
            unsigned char back[sizeof p.packed] = {0};
            MPI_Count bytes = 0;
            int fine;

            lay_out(&p, twin, kind + how);
            MPI_Type_free(&twin);
            fine = set_view(file, kind, handles, &bytes);
            fine &= move(file, how, 1, 0, p.packed, p.bytes, MPI_BYTE, p.bytes);
            MPI_Barrier(MPI_COMM_WORLD);
            fine &= move(file, how, 0, 0, back, p.bytes, MPI_BYTE, p.bytes);
            fine &= memcmp(back, p.packed, (size_t)p.bytes) == 0;
            fine &= region_is(file, p.image);
            snprintf(name, sizeof name, "file %s %s %s", KINDS[kind], STYLE_NAMES[handles], WAY_NAMES[how]);
            check(name, fine);
        }
    }
}

/* ---- as memory type -------------------------------------------------------------------------------- */

/* The type is freed as soon as MPI allows it: before the request is completed. */
static int write_from_memory(MPI_File file, way how, int kind, place *p)
{
    const MPI_Offset at = (MPI_Offset)rank * REGION;
    MPI_Datatype type = duplicate(make(kind));
    MPI_Request request;
    int fine;

    MPI_Type_commit(&type);
    if (how != LATER && how != LATER_TOGETHER) {
        fine = move(file, how, 1, at, p->image, p->count, type, p->bytes);
        MPI_Type_free(&type);
        return fine;
    }
    fine = how == LATER ? MPI_File_iwrite_at(file, at, p->image, p->count, type, &request) == MPI_SUCCESS
                        : MPI_File_iwrite_at_all(file, at, p->image, p->count, type, &request) == MPI_SUCCESS;
    MPI_Type_free(&type);
    return fine && wait_for(&request, p->bytes);
}

static void in_memory(MPI_File file, int kind)
{
    char name[200];

    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    for (way how = TOGETHER; how < WAYS; how++) {
        MPI_Datatype type = make(kind);
        place p;
        unsigned char back[REGION] = {0}, dense[REGION] = {0};
        int fine;

        lay_out(&p, type, kind + how);
        memcpy(dense, p.packed, (size_t)p.bytes);
        fine = write_from_memory(file, how, kind, &p);
        MPI_Barrier(MPI_COMM_WORLD);
        fine &= move(file, how, 0, (MPI_Offset)rank * REGION, back, p.count, type, p.bytes);
        fine &= memcmp(back, p.image, REGION) == 0;
        MPI_Type_free(&type);
        fine &= region_is(file, dense);
        snprintf(name, sizeof name, "memory %s %s", KINDS[kind], WAY_NAMES[how]);
        check(name, fine);
    }
}

int main(int argc, char **argv)
{
    MPI_File file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    path = argv[1];
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, (MPI_Offset)ranks * REGION);
    for (int kind = 0; kind < N_KINDS; kind++) {
        in_file(file, kind);
        in_memory(file, kind);
    }
    MPI_File_close(&file);
    if (rank == 0)
        puts("end");
    MPI_Finalize();
    return failures;
}
