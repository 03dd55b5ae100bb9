/*
 * interleaved.c - every collective of MPI-IO that the library takes over, and what a program sees of it.
 *
 * usage: interleaved FILE      run with any number of ranks; prints one line per property on rank 0, "ok NAME" or
 * "FAILED NAME", and exits with the number of failures. What it checks holds for a native MPI library too.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 1000 };

static int rank, ranks, failures;
static int data[ITEMS], back[ITEMS];

static void check(const char *name, int fine)
{
    int all = 0;

    MPI_Allreduce(&fine, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (!all)
        failures++;
    if (rank == 0)
        printf("%s %s\n", all ? "ok" : "FAILED", name);
}

static int counted(MPI_Status *status)
{
    int count = -1;

    MPI_Get_count(status, MPI_INT, &count);
    return count;
}

static void clear(void)
{
    memset(back, 0xEE, sizeof back);
}

static int same(void)
{
    return memcmp(data, back, sizeof data) == 0;
}

static void explicit_offsets(MPI_File file)
{
    MPI_Status status;
    int code;

    code = MPI_File_write_at_all(file, 0, data, ITEMS, MPI_INT, &status);
    check("write_at_all", code == MPI_SUCCESS && counted(&status) == ITEMS);
    clear();
    code = MPI_File_read_at_all(file, 0, back, ITEMS, MPI_INT, &status);
    check("read_at_all", code == MPI_SUCCESS && counted(&status) == ITEMS && same());
    clear();
    code = MPI_File_read_at_all(file, ITEMS / 2, back, ITEMS / 2, MPI_INT, MPI_STATUS_IGNORE);
    check("offset in etypes", code == MPI_SUCCESS && memcmp(back, data + ITEMS / 2, sizeof data / 2) == 0);
    code = MPI_File_write_at_all(file, 0, data, rank % 2 ? ITEMS : 0, MPI_INT, &status);
    check("some ranks with nothing", code == MPI_SUCCESS && counted(&status) == (rank % 2 ? ITEMS : 0));
}

static void file_pointer(MPI_File file)
{
    MPI_Status status;
    MPI_Offset at = -1;
    int code;

    MPI_File_seek(file, 0, MPI_SEEK_SET);
    code = MPI_File_write_all(file, data, ITEMS / 2, MPI_INT, &status);
    MPI_File_get_position(file, &at);
    check("write_all moves the pointer", code == MPI_SUCCESS && counted(&status) == ITEMS / 2 && at == ITEMS / 2);
    code = MPI_File_write_all(file, data + ITEMS / 2, ITEMS / 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    clear();
    code |= MPI_File_read_all(file, back, ITEMS, MPI_INT, &status);
    MPI_File_get_position(file, &at);
    check("read_all", code == MPI_SUCCESS && counted(&status) == ITEMS && at == ITEMS && same());
    MPI_File_seek(file, -10, MPI_SEEK_CUR);
    clear();
    code = MPI_File_read(file, back, 10, MPI_INT, &status); /* independent, by the MPI library */
    check("independent read follows", code == MPI_SUCCESS && memcmp(back, data + ITEMS - 10, 10 * sizeof(int)) == 0);
}

static void split_collectives(MPI_File file)
{
    MPI_Status status;
    int code;

    code = MPI_File_write_at_all_begin(file, 0, data, ITEMS, MPI_INT);
    code |= MPI_File_write_at_all_end(file, data, &status);
    check("write_at_all_begin/end", code == MPI_SUCCESS && counted(&status) == ITEMS);
    clear();
    code = MPI_File_read_at_all_begin(file, 0, back, ITEMS, MPI_INT);
    code |= MPI_File_read_at_all_end(file, back, &status);
    check("read_at_all_begin/end", code == MPI_SUCCESS && counted(&status) == ITEMS && same());
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    code = MPI_File_write_all_begin(file, data, ITEMS, MPI_INT);
    code |= MPI_File_write_all_end(file, data, MPI_STATUS_IGNORE);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    clear();
    code |= MPI_File_read_all_begin(file, back, ITEMS, MPI_INT);
    code |= MPI_File_read_all_end(file, back, &status);
    check("write_all, read_all begin/end", code == MPI_SUCCESS && counted(&status) == ITEMS && same());
}

#if MPI_VERSION >= 4
static void large_counts(MPI_File file)
{
    MPI_Status status;
    MPI_Count count = 0;
    int code;

    clear();
    code = MPI_File_write_at_all_c(file, 0, data, (MPI_Count)ITEMS, MPI_INT, &status);
    code |= MPI_File_read_at_all_c(file, 0, back, (MPI_Count)ITEMS, MPI_INT, &status);
    MPI_Get_count_c(&status, MPI_INT, &count);
    check("large counts", code == MPI_SUCCESS && count == ITEMS && same());
}
#endif

/* What is not taken over still works on the same handle. */
static void left_to_the_library(MPI_File file)
{
    MPI_Status status;
    MPI_Request request;
    MPI_Offset size = 0;
    int code, flag = 0;

    clear();
    code = MPI_File_iread_at(file, 0, back, ITEMS, MPI_INT, &request);
    MPI_Wait(&request, &status);
    check("iread_at", code == MPI_SUCCESS && same());
    code = MPI_File_set_atomicity(file, 1);
    MPI_File_get_atomicity(file, &flag);
    clear();
    code |= MPI_File_write_at_all(file, 0, data, ITEMS, MPI_INT, &status);
    code |= MPI_File_read_at_all(file, 0, back, ITEMS, MPI_INT, &status);
    code |= MPI_File_set_atomicity(file, 0);
    check("atomic mode", code == MPI_SUCCESS && flag && same());
    code = MPI_File_sync(file);
    code |= MPI_File_get_size(file, &size);
    check("get_size", code == MPI_SUCCESS && size == (MPI_Offset)sizeof data * ranks);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    clear();
    code = MPI_File_read_ordered(file, back, 2, MPI_INT, &status);
    check("read_ordered", code == MPI_SUCCESS && back[0] == 2 * rank && back[1] == 2 * rank + 1);
}

static void end_of_file(MPI_File file)
{
    MPI_Status status;
    MPI_Offset at = -1;
    int code;

    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_seek(file, (MPI_Offset)ITEMS * ranks - 3, MPI_SEEK_SET);
    code = MPI_File_read_all(file, back, 10, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_get_position(file, &at);
    check("pointer behind the end", code == MPI_SUCCESS && at == (MPI_Offset)ITEMS * ranks + 7);
    code = MPI_File_read_at_all(file, (MPI_Offset)ITEMS * ranks + 100, back, 10, MPI_INT, &status);
    check("read behind the end", code == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    MPI_Datatype columns;
    MPI_File file;
    int code, threads;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < ITEMS; i++)
        data[i] = i * ranks + rank;
    code = MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    check("open", code == MPI_SUCCESS);
    if (code != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_File_set_size(file, 0);
    MPI_Type_vector(ITEMS, 1, ranks, MPI_INT, &columns);
    MPI_Type_commit(&columns);
    MPI_File_set_view(file, rank * (MPI_Offset)sizeof(int), MPI_INT, columns, "native", MPI_INFO_NULL);
    explicit_offsets(file);
    file_pointer(file);
    split_collectives(file);
#if MPI_VERSION >= 4
    large_counts(file);
#endif
    left_to_the_library(file);
    end_of_file(file);
    code = MPI_File_close(&file);
    check("close", code == MPI_SUCCESS && file == MPI_FILE_NULL);
    MPI_Type_free(&columns);
    MPI_Finalize();
    return failures;
}
