/*
 * types.c - datatypes: freed, reused, with attributes of the program's own, of every strange shape.
 */
#include "strangers.h"

#include <stdint.h>

enum { BLOCK = 48, TURNS = 64 };

/* ---- freed and made again ---------------------------------------------------------------------------------------- */

/* The view's type goes before the first access, the memory type between iwrite and wait. */
static void freed_at_once(void)
{
    char path[PATH_BYTES];
    unsigned char buffer[2 * BLOCK * TURNS];
    MPI_Datatype view = turns_type(BLOCK, ranks), memory;
    MPI_Request request;
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    FINE(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, view, "native", MPI_INFO_NULL));
    MPI_Type_free(&view);
    MPI_Type_vector(TURNS, BLOCK, 2 * BLOCK, MPI_BYTE, &memory);
    MPI_Type_commit(&memory);
    for (int i = 0; i < TURNS; i++)
        fill_from(buffer + 2 * i * BLOCK, ((long long)i * ranks + rank) * BLOCK, BLOCK, 1);
    FINE(MPI_File_iwrite_at(file, 0, buffer, 1, memory, &request));
    MPI_Type_free(&memory);
    FINE(MPI_Wait(&request, MPI_STATUS_IGNORE));
    FINE(MPI_File_close(&file));
    expect_file(path, (long long)BLOCK * TURNS * ranks, 1);
}

/* The MPI library gives the handle of a freed type to the next one, which has another layout. */
static void handle_recycled(void)
{
    char path[PATH_BYTES];
    unsigned char buffer[4096], back[4096];
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    for (int i = 1; i <= 40; i++) {
        const int length = 1 + i % 7, stride = length + 1 + i % 5, n = 40;
        MPI_Datatype memory, view;
        MPI_Status status;

        MPI_Type_vector(n, length, stride, MPI_BYTE, &memory);
        MPI_Type_commit(&memory);
        memset(buffer, 0, sizeof buffer);
        for (int j = 0; j < n; j++)
            fill_from(buffer + j * stride, j * length, length, i);
        FINE(MPI_File_write_at_all(file, 4096 * rank, buffer, 1, memory, &status));
        EXPECT(moved(&status, n * length));
        MPI_Type_free(&memory);
        MPI_Type_vector(n * length / 4, 1, 2, MPI_BYTE, &view); /* the other half of the handle's life: a view */
        MPI_Type_commit(&view);
        FINE(MPI_File_set_view(file, 4096 * rank, MPI_BYTE, view, "native", MPI_INFO_NULL));
        memset(back, 0, sizeof back);
        FINE(MPI_File_read_at_all(file, 0, back, n * length / 4, MPI_BYTE, &status));
        for (int j = 0; j < n * length / 4; j++)
            EXPECT(back[j] == byte_at(2 * j, i));
        FINE(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
        MPI_Type_free(&view);
    }
    FINE(MPI_File_close(&file));
}

/* ---- attributes of the program's own on types -------------------------------------------------------------------- */

static int copies, deletions;

static int count_copy(MPI_Datatype type, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)type, (void)key, (void)extra;
    copies++;
    *(void **)copy = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int count_deletion(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type, (void)key, (void)value, (void)extra;
    deletions++;
    return MPI_SUCCESS;
}

static MPI_Datatype with_attribute(int key, void *value)
{
    MPI_Datatype type = turns_type(BLOCK, ranks);

    MPI_Type_set_attr(type, key, value);
    return type;
}

/* Who hangs data on a type wants to be told when it goes, once: nobody but the program may duplicate it. */
static void attributes(void)
{
    char path[PATH_BYTES];
    int key, found = 0;
    void *value = NULL;
    MPI_Datatype view;
    MPI_File file;

    copies = deletions = 0;
    start_anew(path_of("file", path));
    MPI_Type_create_keyval(count_copy, count_deletion, &key, NULL);
    view = with_attribute(key, path);
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    FINE(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, view, "native", MPI_INFO_NULL));
    write_turns(file, BLOCK, TURNS, rank, ranks, 3);
    FINE(MPI_Type_get_attr(view, key, &value, &found));
    EXPECT(found && value == path);
    EXPECT(copies == 0 && deletions == 0);
    FINE(MPI_Type_free(&view)); /* the file's view keeps it alive, or not */
    MPI_Type_free_keyval(&key);
    write_turns(file, BLOCK, TURNS, rank, ranks, 4);
    FINE(MPI_File_close(&file));
    EXPECT(copies == 0 && deletions == 1);
    expect_file(path, (long long)BLOCK * TURNS * ranks, 4);
}

static int refuse_copy(MPI_Datatype type, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)type, (void)key, (void)extra, (void)value, (void)copy;
    *flag = 0;
    return MPI_ERR_OTHER;
}

/* A type that cannot be duplicated is a good view all the same. */
static void not_to_be_copied(void)
{
    char path[PATH_BYTES];
    int key;
    MPI_Datatype view;
    MPI_File file;

    start_anew(path_of("file", path));
    MPI_Type_create_keyval(refuse_copy, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    view = with_attribute(key, path);
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    FINE(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, view, "native", MPI_INFO_NULL));
    write_turns(file, BLOCK, TURNS, rank, ranks, 5);
    FINE(MPI_File_close(&file));
    FINE(MPI_Type_free(&view));
    MPI_Type_free_keyval(&key);
    expect_file(path, (long long)BLOCK * TURNS * ranks, 5);
}

static int write_a_word(MPI_Datatype type, int key, void *value, void *extra)
{
    MPI_File file = *(MPI_File *)extra;

    (void)type, (void)key;
    return MPI_File_write_at(file, 4 * rank, value, 4, MPI_BYTE, MPI_STATUS_IGNORE);
}

/* MPI_Type_free writes a file: its delete callback does. */
static void callback_does_io(void)
{
    char path[PATH_BYTES], log_path[PATH_BYTES];
    unsigned char word[4];
    int key;
    MPI_Datatype view;
    MPI_File file, log;

    start_anew(path_of("file", path));
    start_anew(path_of("log", log_path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    log = open_file(MPI_COMM_WORLD, log_path, AMODE_NEW);
    fill_from(word, 4 * rank, 4, 6);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, write_a_word, &key, &log);
    view = with_attribute(key, word);
    FINE(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, view, "native", MPI_INFO_NULL));
    FINE(MPI_Type_free(&view));
    write_turns(file, BLOCK, TURNS, rank, ranks, 5);
    FINE(MPI_File_close(&file));
    FINE(MPI_File_close(&log));
    MPI_Type_free_keyval(&key);
    expect_file(path, (long long)BLOCK * TURNS * ranks, 5);
    expect_file(log_path, 4 * ranks, 6);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static void committed_late(void)
{
    char path[PATH_BYTES];
    unsigned char buffer[BLOCK];
    MPI_Datatype type;
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    fill_from(buffer, (long long)rank * BLOCK, BLOCK, 7);
    MPI_Type_contiguous(BLOCK, MPI_BYTE, &type);
    EXPECT(class_of(MPI_File_write_at(file, rank * BLOCK, buffer, 1, type, MPI_STATUS_IGNORE)) == MPI_ERR_TYPE);
    MPI_Type_commit(&type);
    FINE(MPI_File_write_at_all(file, rank * BLOCK, buffer, 1, type, MPI_STATUS_IGNORE));
    MPI_Type_free(&type);
    FINE(MPI_File_close(&file));
    expect_file(path, (long long)BLOCK * ranks, 7);
}

/* What MPI_File_get_view gives may be freed unless it is named, and is as good as the original. */
static void view_given_back(void)
{
    char path[PATH_BYTES], datarep[MPI_MAX_DATAREP_STRING];
    MPI_Datatype view = turns_type(BLOCK, ranks), etype, filetype, bytes;
    MPI_Offset displacement;
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    MPI_Type_dup(MPI_BYTE, &bytes);
    FINE(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, bytes, view, "native", MPI_INFO_NULL));
    MPI_Type_free(&bytes);
    MPI_Type_free(&view);
    for (int i = 0; i < 50; i++) {
        MPI_Datatype given[2];

        FINE(MPI_File_get_view(file, &displacement, &etype, &filetype, datarep));
        EXPECT(displacement == (MPI_Offset)rank * BLOCK && strcmp(datarep, "native") == 0);
        FINE(MPI_File_set_view(file, displacement, etype, filetype, datarep, MPI_INFO_NULL));
        given[0] = etype, given[1] = filetype;
        for (int j = 0; j < 2; j++) {
            int integers, addresses, types, combiner;

            MPI_Type_get_envelope(given[j], &integers, &addresses, &types, &combiner);
            if (combiner != MPI_COMBINER_NAMED)
                FINE(MPI_Type_free(&given[j]));
        }
    }
    write_turns(file, BLOCK, TURNS, rank, ranks, 8);
    FINE(MPI_File_close(&file));
    expect_file(path, (long long)BLOCK * TURNS * ranks, 8);
}

static unsigned char in_static[BLOCK];

/* Absolute addresses of static memory, the heap and the stack in one type, with MPI_BOTTOM. */
static void absolute(void)
{
    char path[PATH_BYTES];
    unsigned char *in_heap = malloc(BLOCK), in_stack[BLOCK];
    int lengths[3] = {BLOCK, BLOCK, BLOCK};
    MPI_Aint places[3];
    MPI_Datatype everywhere;
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    MPI_Get_address(in_static, &places[0]);
    MPI_Get_address(in_heap, &places[1]);
    MPI_Get_address(in_stack, &places[2]);
    MPI_Type_create_hindexed(3, lengths, places, MPI_BYTE, &everywhere);
    MPI_Type_commit(&everywhere);
    fill_from(in_static, (3ll * rank + 0) * BLOCK, BLOCK, 9);
    fill_from(in_heap, (3ll * rank + 1) * BLOCK, BLOCK, 9);
    fill_from(in_stack, (3ll * rank + 2) * BLOCK, BLOCK, 9);
    FINE(MPI_File_write_at_all(file, 3ll * rank * BLOCK, MPI_BOTTOM, 1, everywhere, MPI_STATUS_IGNORE));
    memset(in_static, 0, BLOCK), memset(in_heap, 0, BLOCK), memset(in_stack, 0, BLOCK);
    FINE(MPI_File_sync(file)); /* OMPIO's writer may be another rank, and not done yet */
    MPI_Barrier(MPI_COMM_WORLD);
    FINE(MPI_File_read_at(file, 3ll * rank * BLOCK, MPI_BOTTOM, 1, everywhere, MPI_STATUS_IGNORE));
    for (int i = 0; i < BLOCK; i++)
        EXPECT(in_static[i] == byte_at((3ll * rank + 0) * BLOCK + i, 9) &&
               in_heap[i] == byte_at((3ll * rank + 1) * BLOCK + i, 9) &&
               in_stack[i] == byte_at((3ll * rank + 2) * BLOCK + i, 9));
    free(in_heap);
    MPI_Type_free(&everywhere);
    FINE(MPI_File_close(&file));
    expect_file(path, 3ll * BLOCK * ranks, 9);
}

/* Hundreds of thousands of elements of one byte with a gap of one, in memory and in the file. */
static void tiny(void)
{
    enum { N = 200000 };
    char path[PATH_BYTES];
    unsigned char *buffer = malloc(2 * N), *back = malloc(2 * N);
    MPI_Datatype every_second, view = turns_type(1, ranks);
    MPI_Status status;
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    MPI_Type_create_resized(MPI_BYTE, 0, 2, &every_second);
    MPI_Type_commit(&every_second);
    memset(buffer, 0, 2 * N);
    memset(back, 0, 2 * N);
    for (int i = 0; i < N; i++)
        buffer[2 * i] = byte_at((long long)i * ranks + rank, 10);
    FINE(MPI_File_set_view(file, rank, MPI_BYTE, view, "native", MPI_INFO_NULL));
    FINE(MPI_File_write_all(file, buffer, N, every_second, &status));
    EXPECT(moved(&status, N));
    FINE(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    FINE(MPI_File_read_at(file, 0, back, N, every_second, &status));
    EXPECT(memcmp(buffer, back, 2 * N) == 0);
    FINE(MPI_File_close(&file));
    MPI_Type_free(&every_second);
    MPI_Type_free(&view);
    free(buffer);
    free(back);
    expect_file(path, (long long)N * ranks, 10);
}

/* Nothing, in all its forms; the file stays empty and nobody waits for anybody. */
static void nothing(void)
{
    char path[PATH_BYTES];
    int none[1] = {0};
    MPI_Datatype empty, sparse;
    MPI_Request request;
    MPI_Status status;
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    MPI_Type_contiguous(0, MPI_BYTE, &empty);
    MPI_Type_commit(&empty);
    MPI_Type_create_resized(empty, -100, 1000, &sparse);
    MPI_Type_commit(&sparse);
    FINE(MPI_File_write_all(file, NULL, 0, MPI_BYTE, &status));
    EXPECT(moved(&status, 0));
    FINE(MPI_File_write_at_all(file, 1000000, none, 0, MPI_INT, MPI_STATUS_IGNORE));
    FINE(MPI_File_write_at(file, 1000000, NULL, 0, MPI_INT, MPI_STATUS_IGNORE));
    FINE(MPI_File_read_at_all(file, 0, NULL, 0, MPI_DOUBLE, &status));
    EXPECT(moved(&status, 0));
    FINE(MPI_File_iwrite_at_all(file, 0, NULL, 0, MPI_BYTE, &request));
    FINE(MPI_Wait(&request, &status));
    FINE(MPI_File_iread(file, NULL, 0, MPI_BYTE, &request));
    FINE(MPI_Wait(&request, &status));
    FINE(MPI_File_write_ordered(file, NULL, 0, MPI_BYTE, MPI_STATUS_IGNORE));
    FINE(MPI_File_set_size(file, 0));
    FINE(MPI_File_close(&file));
    MPI_Type_free(&empty);
    MPI_Type_free(&sparse);
    expect_file(path, 0, 0);
}

/* Types of no bytes: one rank's memory is empty, another's has content, and both have an odd extent. */
static void empty_types(void)
{
    char path[PATH_BYTES];
    unsigned char buffer[BLOCK];
    MPI_Datatype empty, sparse;
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    MPI_Type_contiguous(0, MPI_BYTE, &empty);
    MPI_Type_create_resized(empty, 0, 1000, &sparse);
    MPI_Type_commit(&sparse);
    fill_from(buffer, 0, BLOCK, 2);
    FINE(MPI_File_write_at_all(file, 0, buffer, rank == 0 ? BLOCK : 17, rank == 0 ? MPI_BYTE : sparse,
                               MPI_STATUS_IGNORE));
    MPI_Type_free(&empty);
    MPI_Type_free(&sparse);
    FINE(MPI_File_close(&file));
    expect_file(path, BLOCK, 2);
}

/* So far out that no file system has a byte there: an error, for which no rank waits, and the file works on. */
static void end_of_the_world(void)
{
    static const MPI_Offset far[] = {INT64_MAX, INT64_MAX - 5, INT64_MAX / 2 + 1, INT64_MAX - 4096};
    char path[PATH_BYTES];
    unsigned char buffer[BLOCK];
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    fill_from(buffer, 0, BLOCK, 2);
    for (int i = 0; i < 4; i++) {
        EXPECT(MPI_File_write_at(file, far[i], buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS);
        FINE(MPI_File_set_view(file, far[i], MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
        EXPECT(MPI_File_write_at(file, 0, buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS);
        EXPECT(MPI_File_write_at_all(file, rank, buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS);
        FINE(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    }
    FINE(MPI_File_write_at_all(file, (MPI_Offset)rank * BLOCK, buffer, rank == 0 ? BLOCK : 0, MPI_BYTE,
                               MPI_STATUS_IGNORE));
    FINE(MPI_File_close(&file));
    expect_file(path, BLOCK, 2);
}

/* A tree of types far deeper than anybody draws by hand: such come out of generic code. */
static void deep(void)
{
    enum { DEPTH = 200 };
    char path[PATH_BYTES];
    unsigned char buffer[BLOCK], back[BLOCK];
    MPI_Datatype type, next;
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    MPI_Type_contiguous(1, MPI_BYTE, &type);
    for (int i = 0; i < DEPTH; i++) {
        int length = 1;
        MPI_Aint place = 0;

        MPI_Type_create_struct(1, &length, &place, &type, &next);
        MPI_Type_free(&type);
        type = next;
    }
    MPI_Type_commit(&type);
    fill_from(buffer, (long long)rank * BLOCK, BLOCK, 3);
    FINE(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, type, "native", MPI_INFO_NULL));
    FINE(MPI_File_write_at_all(file, 0, buffer, BLOCK, type, MPI_STATUS_IGNORE));
    FINE(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    FINE(MPI_File_read_at(file, 0, back, BLOCK, type, MPI_STATUS_IGNORE));
    EXPECT(memcmp(buffer, back, BLOCK) == 0);
    MPI_Type_free(&type);
    FINE(MPI_File_close(&file));
    expect_file(path, (long long)BLOCK * ranks, 3);
}

#if MPI_VERSION >= 4
/* Everything by large-count constructors, as PnetCDF from 1.14 on makes its types. */
static void large_counts(void)
{
    char path[PATH_BYTES];
    unsigned char buffer[BLOCK * TURNS];
    const MPI_Count one = 1, lengths[2] = {BLOCK / 2, BLOCK / 2}, places[2] = {0, BLOCK / 2};
    MPI_Datatype block, view;
    MPI_Status status;
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    MPI_Type_create_hindexed_c(2, lengths, places, MPI_BYTE, &block);
    MPI_Type_create_resized_c(block, 0, (MPI_Count)BLOCK * ranks, &view);
    MPI_Type_commit(&view);
    MPI_Type_free(&block);
    FINE(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, view, "native", MPI_INFO_NULL));
    MPI_Type_free(&view);
    MPI_Type_contiguous_c(BLOCK * TURNS, MPI_BYTE, &block);
    MPI_Type_commit(&block);
    fill_turns(buffer, BLOCK, TURNS, rank, ranks, 4);
    FINE(MPI_File_write_at_all_c(file, 0, buffer, one, block, &status));
    EXPECT(moved(&status, BLOCK * TURNS));
    MPI_Type_free(&block);
    FINE(MPI_File_close(&file));
    expect_file(path, (long long)BLOCK * TURNS * ranks, 4);
}
#endif

const stranger types_cases[] = {
    {"freed_at_once", 1, freed_at_once},
    {"handle_recycled", 1, handle_recycled},
    {"attributes", 1, attributes},
    {"not_to_be_copied", 1, not_to_be_copied},
    {"callback_does_io", 1, callback_does_io},
    {"committed_late", 1, committed_late},
    {"view_given_back", 1, view_given_back},
    {"absolute", 1, absolute},
    {"tiny", 1, tiny},
    {"nothing", 1, nothing},
    {"empty_types", 1, empty_types},
    {"end_of_the_world", 1, end_of_the_world},
    {"deep", 1, deep},
#if MPI_VERSION >= 4
    {"large_counts", 1, large_counts},
#endif
    {NULL, 0, NULL},
};
