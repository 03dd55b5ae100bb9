/*
 * modes.c - access modes, communicators and handles: what opening a file can mean.
 *
 * usage: modes PREFIX CASE...   files are PREFIX.NAME; output and exit status as in report.h.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

enum { BLOCK = 1000, PATH_BYTES = 600, MANY = 200, CREATE = MPI_MODE_RDWR | MPI_MODE_CREATE };

static const char *prefix;
static char path[PATH_BYTES];
static unsigned char data[4 * BLOCK], back[4 * BLOCK];

static const char *use(const char *name)
{
    snprintf(path, sizeof path, "%s.%s", prefix, name);
    return path;
}

static MPI_File open_on(MPI_Comm comm, const char *name, int amode)
{
    MPI_File file;

    if (MPI_File_open(comm, name, amode, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    return file;
}

/* Rank 0 makes a file of so many bytes without MPI. */
static void make(const char *name, int bytes, int seed)
{
    if (rank == 0) {
        FILE *file = fopen(name, "wb");

        for (int i = 0; file != NULL && i < bytes; i++)
            putc(byte_at(i, seed), file);
        if (file == NULL || fclose(file) != 0)
            MPI_Abort(MPI_COMM_WORLD, 4);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static int missing(const char *name)
{
    MPI_Barrier(MPI_COMM_WORLD);
    return access(name, F_OK) != 0;
}

/* Each rank of comm writes one block and reads its neighbour's, by collectives in rank order of comm. */
static int turn(MPI_Comm comm, MPI_File file, int seed)
{
    int me, size, next, code;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    next = (me + 1) % size;
    fill_from(data, (long long)me * BLOCK, BLOCK, seed);
    code = MPI_File_write_at_all(file, (MPI_Offset)me * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    code |= MPI_File_sync(file);
    MPI_Barrier(comm);
    code |= MPI_File_sync(file);
    memset(back, 0, sizeof back);
    code |= MPI_File_read_at_all(file, (MPI_Offset)next * BLOCK, back, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    return code == MPI_SUCCESS && equals_from(back, (long long)next * BLOCK, BLOCK, seed);
}

/* ---- access modes ------------------------------------------------------------------------------------------------ */

static void append(void)
{
    MPI_Offset at = -1, shared = -1, size = -1;
    MPI_File file;

    make(use("append"), 3 * BLOCK, 1);
    file = open_on(MPI_COMM_WORLD, path, MPI_MODE_WRONLY | MPI_MODE_APPEND);
    MPI_File_get_position(file, &at);
    MPI_File_get_position_shared(file, &shared);
    check("APPEND: individual pointer at the end", at == 3 * BLOCK);
    check("APPEND: shared pointer at the end", shared == 3 * BLOCK);
    fill_from(data, 3 * BLOCK, BLOCK, 1);
    check("APPEND: write_all at the end",
          MPI_File_write_all(file, data, rank == 0 ? BLOCK : 0, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_File_get_position(file, &at);
    check("APPEND: only who wrote has moved", at == 3 * BLOCK + (rank == 0 ? BLOCK : 0));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(file, &size);
    check("APPEND: size", size == 4 * BLOCK);
    fill_from(data, 0, 10, 1);
    check("APPEND: explicit offsets count from the beginning",
          MPI_File_write_at_all(file, 0, data, 10, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_File_get_position(file, &at);
    check("APPEND: a view takes the pointer to its beginning", at == 0);
    MPI_File_close(&file);
    check_file("APPEND: file", path, 4 * BLOCK, 1);
}

static void excl(void)
{
    MPI_File file = MPI_FILE_NULL;

    make(use("excl"), 10, 1);
    check("EXCL: an existing file is refused", class_of(MPI_File_open(MPI_COMM_WORLD, path, CREATE | MPI_MODE_EXCL,
                                                                      MPI_INFO_NULL, &file)) == MPI_ERR_FILE_EXISTS);
    check_file("EXCL: and stays as it was", path, 10, 1);
    use("excl.new");
    check("EXCL: a new file is made",
          MPI_File_open(MPI_COMM_WORLD, path, CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    check("EXCL: collectives", turn(MPI_COMM_WORLD, file, 2));
    MPI_File_close(&file);
    check_file("EXCL: file", path, (long long)ranks * BLOCK, 2);
}

static void unique(void)
{
    MPI_File file = open_on(MPI_COMM_WORLD, use("unique"), CREATE | MPI_MODE_UNIQUE_OPEN);
    int amode = 0;

    MPI_File_get_amode(file, &amode);
    check("UNIQUE_OPEN: mode", amode == (CREATE | MPI_MODE_UNIQUE_OPEN));
    check("UNIQUE_OPEN: collectives", turn(MPI_COMM_WORLD, file, 3));
    MPI_File_close(&file);
    check_file("UNIQUE_OPEN: file", path, (long long)ranks * BLOCK, 3);
}

static void delete_on_close(void)
{
    MPI_File file = open_on(MPI_COMM_WORLD, use("delete_on_close"), CREATE | MPI_MODE_DELETE_ON_CLOSE);

    check("DELETE_ON_CLOSE: collectives", turn(MPI_COMM_WORLD, file, 4));
    check("DELETE_ON_CLOSE: there while it is open", access(path, F_OK) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    check("DELETE_ON_CLOSE: close", MPI_File_close(&file) == MPI_SUCCESS);
    check("DELETE_ON_CLOSE: gone", missing(path));
    make(use("delete_on_close"), 10, 1);
    file = open_on(MPI_COMM_WORLD, path, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE);
    MPI_File_write_at_all(file, 0, data, -1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    check("DELETE_ON_CLOSE: gone after errors and without a write", missing(path));
    check("DELETE_ON_CLOSE: nothing to open any more",
          MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS);
}

static void sequential(void)
{
    MPI_File file = open_on(MPI_COMM_WORLD, use("sequential"), MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL);
    MPI_Offset at;

    fill_from(data, (long long)rank * BLOCK, BLOCK, 5);
    check("SEQUENTIAL: write_ordered",
          MPI_File_write_ordered(file, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    check("SEQUENTIAL: explicit offsets are refused",
          class_of(MPI_File_write_at_all(file, 0, data, 1, MPI_BYTE, MPI_STATUS_IGNORE)) ==
              MPI_ERR_UNSUPPORTED_OPERATION);
    check("SEQUENTIAL: individual pointers are refused",
          class_of(MPI_File_write_all(file, data, 1, MPI_BYTE, MPI_STATUS_IGNORE)) == MPI_ERR_UNSUPPORTED_OPERATION);
    check("SEQUENTIAL: so is get_position",
          class_of(MPI_File_get_position(file, &at)) == MPI_ERR_UNSUPPORTED_OPERATION);
    MPI_File_close(&file);
    check_file("SEQUENTIAL: file", path, (long long)ranks * BLOCK, 5);
}

/* ---- communicators ----------------------------------------------------------------------------------------------- */

static void self(void)
{
    char own[PATH_BYTES + 16];
    MPI_File mine, common;
    int fine;

    use("self");
    snprintf(own, sizeof own, "%s.%d", path, rank);
    mine = open_on(MPI_COMM_SELF, own, CREATE);
    common = open_on(MPI_COMM_SELF, path, CREATE);
    check("COMM_SELF: a file of each rank", turn(MPI_COMM_SELF, mine, 30 + rank));
    fill_from(data, (long long)rank * BLOCK, BLOCK, 6);
    fine = MPI_File_write_at_all(common, (MPI_Offset)rank * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE) ==
           MPI_SUCCESS;
    check("COMM_SELF: one file of all", fine);
    check("COMM_SELF: close", MPI_File_close(&mine) == MPI_SUCCESS && MPI_File_close(&common) == MPI_SUCCESS);
    check("COMM_SELF: own file", file_is(own, BLOCK, 30 + rank));
    check_file("COMM_SELF: file", path, (long long)ranks * BLOCK, 6);
}

static void communicators(void)
{
    MPI_Comm dup, half, reversed;
    char name[64];
    MPI_File file;

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    file = open_on(dup, use("dup"), CREATE);
    MPI_Comm_free(&dup); /* the file keeps what it needs */
    check("a communicator that is freed while its file is open", turn(MPI_COMM_WORLD, file, 7));
    MPI_File_close(&file);
    check_file("dup: file", path, (long long)ranks * BLOCK, 7);
    snprintf(name, sizeof name, "half.%d", rank % 2);
    file = open_on(half, use(name), CREATE);
    check("two halves with a file each", turn(half, file, 8));
    MPI_File_close(&file);
    check("halves: file",
          MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS && file_is(path, (ranks + 1 - rank % 2) / 2 * BLOCK, 8));
    file = open_on(reversed, use("reversed"), CREATE);
    check("ranks in reverse", turn(reversed, file, 9));
    MPI_File_close(&file);
    check_file("reversed: file", path, (long long)ranks * BLOCK, 9);
    MPI_Comm_free(&half);
    MPI_Comm_free(&reversed);
}

static void intercommunicator(void)
{
    MPI_File file = MPI_FILE_NULL;
    MPI_Comm half, both;

    if (ranks < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &both);
    check("an intercommunicator is refused",
          class_of(MPI_File_open(both, use("inter"), CREATE, MPI_INFO_NULL, &file)) == MPI_ERR_COMM);
    check("and no file is made", missing(path));
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

static void many(void)
{
    static MPI_File files[MANY];
    char name[64];
    int fine = 1;

    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "many.%d", i);
        files[i] = open_on(MPI_COMM_WORLD, use(name), CREATE | (i % 2 ? MPI_MODE_DELETE_ON_CLOSE : 0));
    }
    for (int i = MANY - 1; i >= 0; i--) {
        fill_from(data, (long long)rank * BLOCK, BLOCK, i);
        fine &= MPI_File_write_at_all(files[i], (MPI_Offset)rank * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE) ==
                MPI_SUCCESS;
    }
    for (int i = 0; i < MANY; i += 7) {
        MPI_File_read_at_all(files[i], (MPI_Offset)rank * BLOCK, back, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
        fine &= equals_from(back, (long long)rank * BLOCK, BLOCK, i);
    }
    check("many files open at once", fine);
    for (int i = 0; i < MANY; i++)
        fine &= MPI_File_close(&files[(i * 77) % MANY]) == MPI_SUCCESS;
    check("closed in another order", fine);
    for (int i = 0; i < MANY; i += 2) {
        snprintf(name, sizeof name, "many.%d", i);
        fine &= MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS && file_is(use(name), (long long)ranks * BLOCK, i);
    }
    check("many: files", fine);
    check("many: every second one is gone", missing(use("many.1")) && missing(use("many.199")));
}

static void null_handles(void)
{
    MPI_File file = open_on(MPI_COMM_WORLD, use("null"), CREATE);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Offset size;

    check("close gives MPI_FILE_NULL", MPI_File_close(&file) == MPI_SUCCESS && file == MPI_FILE_NULL);
    check("a second close is an error", class_of(MPI_File_close(&file)) == MPI_ERR_FILE);
    check("null: collective",
          class_of(MPI_File_write_at_all(file, 0, data, 1, MPI_BYTE, MPI_STATUS_IGNORE)) == MPI_ERR_FILE);
    check("null: independent",
          class_of(MPI_File_read_at(file, 0, back, 1, MPI_BYTE, MPI_STATUS_IGNORE)) == MPI_ERR_FILE);
    check("null: nonblocking", class_of(MPI_File_iread_at(file, 0, back, 1, MPI_BYTE, &request)) == MPI_ERR_FILE);
    check("null: ordered", class_of(MPI_File_read_ordered(file, back, 1, MPI_BYTE, MPI_STATUS_IGNORE)) == MPI_ERR_FILE);
    check("null: view",
          class_of(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL)) == MPI_ERR_FILE);
    check("null: atomicity", class_of(MPI_File_set_atomicity(file, 1)) == MPI_ERR_FILE);
    check("null: size", class_of(MPI_File_get_size(file, &size)) == MPI_ERR_FILE);
    check("null: sync", class_of(MPI_File_sync(file)) == MPI_ERR_FILE);
}

static void delete_open(void)
{
    MPI_File file = open_on(MPI_COMM_WORLD, use("delete_open"), CREATE), again;
    int code = MPI_SUCCESS;

    check("before it is deleted", turn(MPI_COMM_WORLD, file, 40));
    if (rank == 0)
        code = MPI_File_delete(path, MPI_INFO_NULL);
    check("MPI_File_delete of an open file", code == MPI_SUCCESS && missing(path));
    check("its name is gone",
          class_of(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &again)) == MPI_ERR_NO_SUCH_FILE);
    check("its bytes are not", turn(MPI_COMM_WORLD, file, 41));
    again = open_on(MPI_COMM_WORLD, path, CREATE);
    check("another file of that name", turn(MPI_COMM_WORLD, again, 42));
    check("the deleted one still", turn(MPI_COMM_WORLD, file, 43));
    MPI_File_close(&file);
    MPI_File_close(&again);
    check_file("delete_open: file", path, (long long)ranks * BLOCK, 42);
    if (rank == 0)
        code = MPI_File_delete(path, MPI_INFO_NULL);
    check("delete", code == MPI_SUCCESS);
    code = rank == 0 ? MPI_File_delete(path, MPI_INFO_NULL) : MPI_SUCCESS;
    check("delete of what is not there", rank != 0 || class_of(code) == MPI_ERR_NO_SUCH_FILE);
}

static void preallocate(void)
{
    MPI_File file = open_on(MPI_COMM_WORLD, use("preallocate"), CREATE);
    long long whole = (long long)ranks * BLOCK;
    MPI_Offset size = -1;

    check("preallocate: write", turn(MPI_COMM_WORLD, file, 45));
    check("preallocate", MPI_File_preallocate(file, 2 * whole) == MPI_SUCCESS);
    MPI_File_get_size(file, &size);
    check("preallocate: size", size == 2 * whole);
    memset(back, 0, sizeof back);
    MPI_File_read_at_all(file, (MPI_Offset)rank * BLOCK, back, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    check("preallocate: bytes stay", equals_from(back, (long long)rank * BLOCK, BLOCK, 45));
    check("preallocate: write again", turn(MPI_COMM_WORLD, file, 46));
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    check("preallocate: file", rank != 0 || (truncate(path, whole) == 0 && file_is(path, whole, 46)));
}

static void resize(void)
{
    MPI_File file = open_on(MPI_COMM_WORLD, use("resize"), CREATE);
    long long whole = (long long)ranks * BLOCK;
    MPI_Offset size = -1;
    MPI_Status status;
    int count = -1, fine = 1;

    check("resize: write", turn(MPI_COMM_WORLD, file, 50));
    check("set_size: shrink", MPI_File_set_size(file, BLOCK / 2) == MPI_SUCCESS);
    MPI_File_get_size(file, &size);
    check("set_size: size", size == BLOCK / 2);
    MPI_File_read_at_all(file, 0, back, BLOCK / 2, MPI_BYTE, &status);
    check("set_size: what is left can be read", equals_from(back, 0, BLOCK / 2, 50));
    check("set_size: grow", MPI_File_set_size(file, 3 * whole) == MPI_SUCCESS);
    memset(back, 0xEE, sizeof back);
    MPI_File_read_at_all(file, whole, back, BLOCK, MPI_BYTE, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    for (int i = 0; i < BLOCK; i++)
        fine &= back[i] == 0;
    check("set_size: the new bytes are zeros", fine && count == BLOCK);
    check("resize: write again", turn(MPI_COMM_WORLD, file, 51));
    check("set_size: to what was written", MPI_File_set_size(file, whole) == MPI_SUCCESS);
    MPI_File_close(&file);
    check_file("resize: file", path, whole, 51);
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"append", append},
    {"excl", excl},
    {"unique", unique},
    {"delete_on_close", delete_on_close},
    {"sequential", sequential},
    {"self", self},
    {"communicators", communicators},
    {"intercommunicator", intercommunicator},
    {"many", many},
    {"null_handles", null_handles},
    {"delete_open", delete_open},
    {"resize", resize},
    {"preallocate", preallocate},
};

int main(int argc, char **argv)
{
    int known = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    prefix = argv[1];
    for (int i = 2; i < argc; i++) {
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
            if (strcmp(argv[i], cases[k].name) == 0) {
                cases[k].run();
                known++;
            }
        }
    }
    check("every case is known", argc > 2 && known == argc - 2);
    MPI_Finalize();
    return failures;
}
