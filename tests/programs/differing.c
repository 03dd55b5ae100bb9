/*
 * differing.c - collective calls whose arguments differ between ranks, which MPI forbids: an error on all of them.
 *
 * usage: differing PREFIX CASE...   files are PREFIX.NAME; output and exit status as in report.h. The last rank is the
 * one that differs.
 */
#include <sys/stat.h>

#include "report.h"

enum { PATH_BYTES = 600, BYTES = 1000, CREATE = MPI_MODE_RDWR | MPI_MODE_CREATE };

static const char *prefix;
static char path[PATH_BYTES], other[PATH_BYTES];
static int differs;
static MPI_File file;

/* Rank 0 makes a file of BYTES bytes without MPI. */
static const char *make(const char *name, char room[PATH_BYTES])
{
    snprintf(room, PATH_BYTES, "%s.%s", prefix, name);
    if (rank == 0) {
        FILE *made = fopen(room, "wb");

        for (int i = 0; made != NULL && i < BYTES; i++)
            putc(byte_at(i, 1), made);
        if (made == NULL || fclose(made) != 0)
            MPI_Abort(MPI_COMM_WORLD, 4);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return room;
}

static int open_class(const char *name, int amode)
{
    file = MPI_FILE_NULL;
    return class_of(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file));
}

static void open_file(const char *name, int amode)
{
    if (MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void amode(void)
{
    struct stat status;

    make("amode", path);
    check("another access", open_class(path, differs ? MPI_MODE_WRONLY : MPI_MODE_RDWR) == MPI_ERR_NOT_SAME);
    check("no access", open_class(path, differs ? 0 : MPI_MODE_RDONLY) == MPI_ERR_NOT_SAME);
    check("two accesses", open_class(path, differs ? MPI_MODE_RDWR | MPI_MODE_RDONLY : CREATE) == MPI_ERR_NOT_SAME);
    check("appending", open_class(path, differs ? MPI_MODE_RDWR | MPI_MODE_APPEND : MPI_MODE_RDWR) == MPI_ERR_NOT_SAME);
    check("deleting", open_class(path, MPI_MODE_RDWR | (differs ? 0 : MPI_MODE_DELETE_ON_CLOSE)) == MPI_ERR_NOT_SAME);
    check("sequential", open_class(path, MPI_MODE_RDWR | (differs ? MPI_MODE_SEQUENTIAL : 0)) == MPI_ERR_NOT_SAME);
    check_file("amode: file", path, BYTES, 1);
    snprintf(path, sizeof path, "%s.new", prefix);
    check("exclusive", open_class(path, CREATE | (differs ? 0 : MPI_MODE_EXCL)) == MPI_ERR_NOT_SAME);
    check("the next one", open_class(path, CREATE) == MPI_SUCCESS && MPI_File_close(&file) == MPI_SUCCESS);
    check("there", stat(path, &status) == 0 && status.st_size == 0);
}

static void names(void)
{
    char alias[2 * PATH_BYTES];
    const char *slash = strrchr(make("name", path), '/');

    make("other", other);
    check("another file", open_class(differs ? other : path, MPI_MODE_RDWR) == MPI_ERR_NOT_SAME);
    snprintf(alias, sizeof alias, "%s.missing", prefix);
    check("no such file", open_class(differs ? alias : path, MPI_MODE_RDWR) == MPI_ERR_NOT_SAME);
    check("no such file to make", open_class(differs ? alias : path, CREATE) == MPI_ERR_NOT_SAME);
    check("none is made", access(alias, F_OK) != 0);
    snprintf(alias, sizeof alias, "%s.missing/folder/file", prefix);
    check("no such folder", open_class(differs ? alias : path, MPI_MODE_RDWR) == MPI_ERR_NOT_SAME);
    check("no name", open_class(differs ? NULL : path, MPI_MODE_RDWR) == MPI_ERR_NOT_SAME);
    check("no name on rank 0", open_class(rank == 0 ? NULL : path, MPI_MODE_RDWR) == MPI_ERR_NO_SUCH_FILE);
    snprintf(alias, sizeof alias, "%.*s/./%s", (int)(slash - path), path, slash + 1);
    open_file(differs ? alias : path, MPI_MODE_RDWR);
    check("another name of the file", MPI_File_set_size(file, BYTES) == MPI_SUCCESS);
    MPI_File_close(&file);
    if (rank == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
    open_file(differs ? alias : path, CREATE);
    check("another name of a new file", MPI_File_set_size(file, 0) == MPI_SUCCESS);
    MPI_File_close(&file);
    check("new file", access(path, F_OK) == 0);
    check_file("names: the other file", other, BYTES, 1);
}

/* ---- sizes, views, pointers -------------------------------------------------------------------------------------- */

static void sizes(void)
{
    MPI_Offset size = -1;

    open_file(make("sizes", path), MPI_MODE_RDWR);
    check("set_size", class_of(MPI_File_set_size(file, differs ? 10 : 20)) == MPI_ERR_ARG);
    check("set_size, far apart", class_of(MPI_File_set_size(file, differs ? 1LL << 32 : 0)) == MPI_ERR_ARG);
    check("set_size: negative", class_of(MPI_File_set_size(file, -1)) == MPI_ERR_ARG);
    check("set_size: negative on one rank", class_of(MPI_File_set_size(file, differs ? -1 : 5)) == MPI_ERR_ARG);
    check("preallocate", class_of(MPI_File_preallocate(file, differs ? 5000 : 2000)) == MPI_ERR_ARG);
    check("preallocate: negative", class_of(MPI_File_preallocate(file, -1)) == MPI_ERR_ARG);
    check("sizes: as it was", MPI_File_get_size(file, &size) == MPI_SUCCESS && size == BYTES);
    check("the same sizes", MPI_File_set_size(file, 3 * BYTES) == MPI_SUCCESS &&
                                MPI_File_preallocate(file, 4 * BYTES) == MPI_SUCCESS &&
                                MPI_File_get_size(file, &size) == MPI_SUCCESS && size == 4 * BYTES &&
                                MPI_File_set_size(file, BYTES) == MPI_SUCCESS);
    MPI_File_close(&file);
    check_file("sizes: file", path, BYTES, 1);
    open_file(path, MPI_MODE_RDONLY);
    check("set_size: read-only", MPI_File_set_size(file, 10) != MPI_SUCCESS);
    check("preallocate: read-only", MPI_File_preallocate(file, 5000) != MPI_SUCCESS);
    check("preallocate: read-only, negative", MPI_File_preallocate(file, -1) != MPI_SUCCESS);
    MPI_File_close(&file);
    check_file("sizes: read-only file", path, BYTES, 1);
}

static void pointers(void)
{
    MPI_Offset at = -1;
    int atomic = -1;

    open_file(make("pointers", path), MPI_MODE_RDWR);
    check("set_view", MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, differs ? "external32" : "native",
                                        MPI_INFO_NULL) != MPI_SUCCESS);
    check("seek_shared: same", MPI_File_seek_shared(file, 7, MPI_SEEK_SET) == MPI_SUCCESS);
    check("seek_shared: offset", MPI_File_seek_shared(file, differs ? 3 : 4, MPI_SEEK_SET) != MPI_SUCCESS);
    check("seek_shared: whence", MPI_File_seek_shared(file, 0, differs ? MPI_SEEK_CUR : MPI_SEEK_END) != MPI_SUCCESS);
    check("seek_shared: stays", MPI_File_get_position_shared(file, &at) == MPI_SUCCESS && at == 7);
    check("set_atomicity", MPI_File_set_atomicity(file, differs) != MPI_SUCCESS);
    MPI_File_get_atomicity(file, &atomic);
    check("set_atomicity: stays", atomic == 0);
    MPI_File_close(&file);
    check_file("pointers: file", path, BYTES, 1);
}

/* ---- an open that fails ------------------------------------------------------------------------------------------ */

static void failing(void)
{
    make("failing", path);
    check("exclusive and there", open_class(path, CREATE | MPI_MODE_EXCL) == MPI_ERR_FILE_EXISTS);
    check("and to be deleted",
          open_class(path, CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE) == MPI_ERR_FILE_EXISTS);
    check_file("failing: file", path, BYTES, 1);
    snprintf(other, sizeof other, "%s.missing", prefix);
    check("missing", open_class(other, MPI_MODE_RDONLY) == MPI_ERR_NO_SUCH_FILE);
    snprintf(other, sizeof other, "%s.missing/file", prefix);
    check("missing folder", open_class(other, CREATE) == MPI_ERR_NO_SUCH_FILE);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"amode", amode}, {"names", names}, {"sizes", sizes}, {"pointers", pointers}, {"failing", failing}};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    differs = rank == ranks - 1;
    prefix = argv[1];
    for (int i = 2; i < argc; i++) {
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            if (strcmp(argv[i], cases[c].name) == 0)
                cases[c].run();
        }
    }
    check("end", 1);
    MPI_Finalize();
    return failures;
}
