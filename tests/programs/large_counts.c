/*
 * large_counts.c - sizes, extents, statuses and file pointers beyond 2^31, on a sparse file.
 *
 * usage: large_counts FILE
 *
 * Two GiB and a page are read in one call into addresses that share 64 MiB of memory, but for the page at the end.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"

#define GIB ((MPI_Offset)1 << 30)

enum { PAGE = 4096, SHARED = 64 << 20 };

static const MPI_Count TOTAL = 2 * GIB + PAGE;
static const char *path;

/* TOTAL bytes of addresses; NULL when there are none. */
static unsigned char *addresses(void)
{
    const int reserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    unsigned char *start = mmap(NULL, (size_t)TOTAL, PROT_READ | PROT_WRITE, reserve, -1, 0);
    const int memory = memfd_create("large_counts", 0);
    int fine = start != MAP_FAILED && memory >= 0 && ftruncate(memory, SHARED) == 0;

    for (MPI_Offset at = 0; fine && at < 2 * GIB; at += SHARED)
        fine = mmap(start + at, SHARED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0) != MAP_FAILED;
    close(memory);
    return fine ? start : NULL;
}

/* Every way to ask how much was moved; `type` has TOTAL bytes. */
static int says_total(MPI_Status *status, MPI_Datatype type)
{
    MPI_Count elements = -1;
    int count = -1, fine;

    MPI_Get_elements_x(status, MPI_BYTE, &elements);
    fine = elements == TOTAL;
    MPI_Get_elements_x(status, MPI_DOUBLE, &elements);
    fine &= elements == TOTAL / 8;
    MPI_Get_count(status, type, &count);
    fine &= count == 1;
    MPI_Get_count(status, MPI_DOUBLE, &count);
    fine &= count == TOTAL / 8;
    MPI_Get_count(status, MPI_BYTE, &count);
    fine &= count == MPI_UNDEFINED;
#if MPI_VERSION >= 4
    MPI_Get_count_c(status, MPI_BYTE, &elements);
    fine &= elements == TOTAL;
    MPI_Get_elements_c(status, MPI_DOUBLE, &elements);
    fine &= elements == TOTAL / 8;
#endif
    return fine;
}

/* Rank 0 reads the whole file. */
static void statuses(MPI_File file, unsigned char *memory)
{
    unsigned char *end = memory + TOTAL - PAGE;
    const int mine = rank == 0;
    MPI_Offset position = -1;
    MPI_Datatype type;
    MPI_Request request;
    MPI_Status status;
    int fine;

    MPI_Type_contiguous((int)(TOTAL / 8), MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    fine = !mine || MPI_File_read(file, memory, 1, type, &status) == MPI_SUCCESS;
    MPI_File_get_position(file, &position);
    fine &= !mine || (says_total(&status, type) && equals_from(end, TOTAL - PAGE, PAGE, 1) && position == TOTAL);
    check("independent read, its status and the file pointer", fine);
    memset(end, 0, PAGE);
    fine = MPI_File_iread_at_all(file, 0, memory, mine, type, &request) == MPI_SUCCESS &&
           MPI_Wait(&request, &status) == MPI_SUCCESS;
    fine &= !mine || (says_total(&status, type) && equals_from(end, TOTAL - PAGE, PAGE, 1));
    check("nonblocking collective read and its status", fine);
    MPI_Type_free(&type);
}

/* Blocks of 1.5 GiB, 2 GiB apart: 3 GiB of data in 3.5 GiB. */
static void views(MPI_File file)
{
    const int length = 3 << 29;
    const MPI_Offset at = 3 * GIB - 8 + (MPI_Offset)rank * 8;
    unsigned char data[8], back[8] = {0};
    MPI_Datatype type, etype, got;
    MPI_Offset byte = -1, position = -1;
    MPI_Count size = -1, lb = -1, extent = -1;
    char rep[MPI_MAX_DATAREP_STRING];
    int fd, fine;

    MPI_Type_create_hvector(2, length, (MPI_Aint)(2 * GIB), MPI_BYTE, &type);
    MPI_Type_commit(&type);
    fine = MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL) == MPI_SUCCESS;
    MPI_Type_free(&type);
    MPI_File_get_view(file, &position, &etype, &got, rep);
    MPI_Type_size_x(got, &size);
    MPI_Type_get_extent_x(got, &lb, &extent);
    MPI_Type_free(&got);
    check("size and extent of the view", fine && size == 3 * GIB && lb == 0 && extent == 7 * GIB / 2);
    MPI_File_get_byte_offset(file, 5 * GIB, &byte);
    check("byte offset", byte == 6 * GIB);
    fill_from(data, at, 8, 2);
    fine = MPI_File_write_at_all(file, at, data, 8, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    MPI_File_seek(file, at, MPI_SEEK_SET);
    fine &= MPI_File_read(file, back, 8, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS && memcmp(back, data, 8) == 0;
    MPI_File_get_position(file, &position);
    fd = open(path, O_RDONLY);
    fine &= pread(fd, back, 8, (off_t)(at + GIB / 2)) == 8 && memcmp(back, data, 8) == 0;
    close(fd);
    check("access across the end of the first tile", fine && position == at + 8);
}

/* An etype that is larger than 2^31 bytes. */
static void etypes(MPI_File file)
{
    MPI_Datatype type;
    MPI_Offset byte = -1, position = -1;
    int fine;

    MPI_Type_contiguous((int)(TOTAL / 8), MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    fine = MPI_File_set_view(file, 16, type, type, "native", MPI_INFO_NULL) == MPI_SUCCESS;
    MPI_Type_free(&type);
    fine &= MPI_File_seek(file, 3, MPI_SEEK_SET) == MPI_SUCCESS;
    fine &= MPI_File_get_position(file, &position) == MPI_SUCCESS;
    fine &= MPI_File_get_byte_offset(file, 3, &byte) == MPI_SUCCESS && byte == 16 + 3 * TOTAL && position == 3;
    check("etype beyond 2^31 bytes", fine);
}

/* Memory of a type nested more deeply than the library describes, which passes through a packed copy: 2^25 bytes that
 * come from 26 (several times each, which MPI allows in a write). */
static void packed(MPI_File file)
{
    enum { DEPTH = 25 };
    const int bytes = 1 << DEPTH;
    unsigned char *found = malloc((size_t)bytes), *expected = malloc((size_t)bytes), from[DEPTH + 1];
    MPI_Datatype type = MPI_BYTE;
    int at = 0, fine = found != NULL && expected != NULL;

    for (int i = 0; i < DEPTH; i++) {
        MPI_Datatype next;

        MPI_Type_create_hvector(2, 1, 1, type, &next);
        if (i > 0)
            MPI_Type_free(&type);
        type = next;
    }
    MPI_Type_commit(&type);
    fill_from(from, 0, DEPTH + 1, 3);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_Pack(from, 1, type, expected, bytes, &at, MPI_COMM_SELF);
    fine &= MPI_File_write_at_all(file, (MPI_Offset)rank * bytes, from, 1, type, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    fine &= MPI_File_read_at(file, (MPI_Offset)rank * bytes, found, bytes, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    check("memory nested too deeply", fine && memcmp(found, expected, (size_t)bytes) == 0);
    MPI_Type_free(&type);
    free(found);
    free(expected);
}

int main(int argc, char **argv)
{
    unsigned char page[PAGE], *memory;
    MPI_File file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    path = argv[1];
    memory = addresses();
    if (memory == NULL)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    fill_from(page, TOTAL - PAGE, PAGE, 1);
    if (rank == 0)
        MPI_File_write_at(file, TOTAL - PAGE, page, PAGE, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    statuses(file, memory);
    views(file);
    etypes(file);
    packed(file);
    MPI_File_close(&file);
    if (rank == 0)
        puts("end");
    MPI_Finalize();
    return failures;
}
