/*
 * handlers.c - error handlers of files: who is called, for which file, with which class, how often.
 *
 * usage: handlers FILE                     every wrong call in turn; FILE names the files to be made
 *        handlers FILE denied              opens FILE, which may not be opened for writing
 *        handlers FILE alone               calls that are wrong on the last rank only
 *        handlers FILE alone-blocking      the same without nonblocking collectives
 *        handlers FILE late                nonblocking calls whose errors may come as late as MPI_Wait
 *        handlers FILE die KIND HOW        the handler KIND (fatal, abort, null) ends the job in the call HOW
 *
 * Rank 0 prints a line for each call and rank: "call NAME; RANK CALLS RIGHT_FILE CLASS HANDLER_CLASS", where CALLS is
 * how often the user's handler ran, RIGHT_FILE whether it got the file's handle, CLASS what the call returned; and
 * "ok"/ "FAILED" lines as in report.h.
 */
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "report.h"

enum { LIMIT = 1 << 16, BYTES = 4096, PATH_BYTES = 600 };

static struct {
    int calls, error_class, right_text, inside;
    MPI_File file;
} seen;

static char path[PATH_BYTES], other[PATH_BYTES];
static unsigned char data[BYTES];

/* A user's handler: it calls MPI itself, as real ones do to print what happened. */
static void handler(MPI_File *file, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Offset size;

    if (seen.inside) /* OMPIO may not know the size of a file in trouble */
        return;
    seen.calls++;
    seen.file = *file;
    MPI_Error_class(*code, &seen.error_class);
    MPI_Error_string(*code, text, &length);
    seen.right_text = length > 0 && (int)strlen(text) == length;
    seen.inside = 1;
    if (*file != MPI_FILE_NULL)
        MPI_File_get_size(*file, &size);
    seen.inside = 0;
}

static int others_calls;

static void other_handler(MPI_File *file, int *code, ...)
{
    (void)file;
    (void)code;
    others_calls++;
}

static void before(void)
{
    memset(&seen, 0, sizeof seen);
    seen.file = MPI_FILE_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 prints what the call came to on every rank. */
static void after(const char *name, MPI_File file, int code)
{
    int mine[4] = {seen.calls, memcmp(&seen.file, &file, sizeof file) == 0, class_of(code), seen.error_class};
    int *all = malloc((size_t)ranks * sizeof mine);

    MPI_Gather(mine, 4, MPI_INT, all, 4, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < ranks; i++)
        printf("call %s; %d %d %d %s %s\n", name, i, all[4 * i], all[4 * i + 1], class_name(all[4 * i + 2]),
               class_name(all[4 * i + 3]));
    free(all);
}

#define CALL(name, file, call)                                                                                         \
    do {                                                                                                               \
        before();                                                                                                      \
        after(name, file, call);                                                                                       \
    } while (0)

static MPI_File open_with(const char *name, int amode, MPI_Errhandler errhandler)
{
    MPI_File file;

    if (MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_File_set_errhandler(file, errhandler);
    return file;
}

/* Start and, when that went well, complete. */
static int complete(int code, MPI_Request *request)
{
    return code == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : code;
}

/* Ints at -8, then every 64 bytes: no file type of MPI. */
static MPI_Datatype backward(void)
{
    const int length = 1;
    const MPI_Aint at = -8;
    MPI_Datatype block, made;

    MPI_Type_create_hindexed(1, &length, &at, MPI_INT, &block);
    MPI_Type_create_resized(block, -8, 64, &made);
    MPI_Type_commit(&made);
    MPI_Type_free(&block);
    return made;
}

/* Two ints, the later one first: no file type of MPI either. */
static MPI_Datatype descending(void)
{
    const int places[2] = {1, 0};
    MPI_Datatype made;

    MPI_Type_create_indexed_block(2, 1, places, MPI_INT, &made);
    MPI_Type_commit(&made);
    return made;
}

/* ---- wrong arguments --------------------------------------------------------------------------------------------- */

static void wrong_arguments(MPI_File file)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype before_start = backward();
    MPI_Status status;

    CALL("count collective", file, MPI_File_write_at_all(file, 0, data, -1, MPI_BYTE, &status));
    CALL("count pointer collective", file, MPI_File_read_all(file, data, -1, MPI_BYTE, &status));
    CALL("count independent", file, MPI_File_write_at(file, 0, data, -1, MPI_BYTE, &status));
    CALL("count pointer", file, MPI_File_read(file, data, -1, MPI_BYTE, &status));
    CALL("count nonblocking", file, complete(MPI_File_iwrite_at(file, 0, data, -1, MPI_BYTE, &request), &request));
    CALL("count ordered", file, MPI_File_write_ordered(file, data, -1, MPI_BYTE, &status));
    CALL("count shared", file, MPI_File_write_shared(file, data, -1, MPI_BYTE, &status));
    CALL("type collective", file, MPI_File_write_at_all(file, 0, data, 1, MPI_DATATYPE_NULL, &status));
    CALL("type independent", file, MPI_File_write_at(file, 0, data, 1, MPI_DATATYPE_NULL, &status));
    CALL("type nonblocking", file,
         complete(MPI_File_iread_at(file, 0, data, 1, MPI_DATATYPE_NULL, &request), &request));
    CALL("offset collective", file, MPI_File_write_at_all(file, -1, data, 1, MPI_BYTE, &status));
    CALL("offset independent", file, MPI_File_read_at(file, -1, data, 1, MPI_BYTE, &status));
    CALL("seek", file, MPI_File_seek(file, -1, MPI_SEEK_SET));
    CALL("whence", file, MPI_File_seek(file, 0, 12345));
    CALL("size", file, MPI_File_set_size(file, -1));
    CALL("view", file, MPI_File_set_view(file, -5, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL); /* where the wrong one was taken */
    CALL("filetype", file, MPI_File_set_view(file, 0, MPI_INT, before_start, "native", MPI_INFO_NULL));
    CALL("filetype at 8", file, MPI_File_set_view(file, 8, MPI_INT, before_start, "native", MPI_INFO_NULL));
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    CALL("datarep", file, MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "no such thing", MPI_INFO_NULL));
    MPI_Type_free(&before_start);
}

/* ---- wrong on one rank only -------------------------------------------------------------------------------------- */

static int split(MPI_File file, MPI_Offset at, int write)
{
    int code = write ? MPI_File_write_at_all_begin(file, at, data, BYTES, MPI_BYTE)
                     : MPI_File_read_at_all_begin(file, at, data, BYTES, MPI_BYTE);

    if (code != MPI_SUCCESS || seen.calls > 0) /* after a user's handler MPICH's functions return MPI_SUCCESS */
        return code;
    return write ? MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE)
                 : MPI_File_read_at_all_end(file, data, MPI_STATUS_IGNORE);
}

/* The displacement of the view, or a lie when it is no view of ours. */
static MPI_Offset displacement(MPI_File file)
{
    MPI_Offset disp = -1;
    MPI_Datatype etype, filetype;
    char rep[MPI_MAX_DATAREP_STRING];

    MPI_File_get_view(file, &disp, &etype, &filetype, rep);
    return etype == MPI_BYTE && filetype == MPI_BYTE && strcmp(rep, "native") == 0 ? disp : -1;
}

/* What an MPI library may refuse on the last rank before it has heard of the others. */
static void wrong_views(MPI_File file, int last)
{
    MPI_Datatype down = descending(), odd, loose;

    MPI_Type_contiguous(6, MPI_BYTE, &odd);
    MPI_Type_contiguous(2, MPI_INT, &loose);
    MPI_Type_commit(&odd);
    CALL("filetype descending alone", file,
         MPI_File_set_view(file, 4, MPI_INT, last ? down : MPI_INT, "native", MPI_INFO_NULL));
    CALL("filetype descending beside external32", file,
         MPI_File_set_view(file, 4, MPI_INT, last ? down : MPI_INT, "external32", MPI_INFO_NULL));
    CALL("filetype and etype descending alone", file,
         MPI_File_set_view(file, 4, last ? down : MPI_INT, last ? down : MPI_INT, "native", MPI_INFO_NULL));
    CALL("view of parts of etypes alone", file,
         MPI_File_set_view(file, 4, MPI_INT, last ? odd : MPI_INT, "native", MPI_INFO_NULL));
    CALL("type not committed alone", file,
         MPI_File_set_view(file, 4, MPI_INT, last ? loose : MPI_INT, "native", MPI_INFO_NULL));
    CALL("type null alone", file,
         MPI_File_set_view(file, 4, MPI_INT, last ? MPI_DATATYPE_NULL : MPI_INT, "native", MPI_INFO_NULL));
    if (ranks > 1) {
        CALL("not the same datarep", file,
             MPI_File_set_view(file, 4, MPI_INT, MPI_INT, last ? "no such thing" : "native", MPI_INFO_NULL));
        CALL("not the same datarep, external32", file,
             MPI_File_set_view(file, 4, MPI_INT, MPI_INT, last ? "external32" : "native", MPI_INFO_NULL));
    }
    MPI_Type_free(&down);
    MPI_Type_free(&odd);
    MPI_Type_free(&loose);
}

static void alone(MPI_Errhandler errhandler, int nonblocking)
{
    const int last = rank == ranks - 1;
    const MPI_Offset start = 128, mine = (MPI_Offset)rank * BYTES, at = last ? -1 : mine;
    MPI_File file = open_with(path, MPI_MODE_RDWR | MPI_MODE_CREATE, errhandler);
    MPI_Datatype type = backward();
    MPI_Request request = MPI_REQUEST_NULL;
    unsigned char back[BYTES];

    MPI_File_set_view(file, start, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    CALL("view alone", file, MPI_File_set_view(file, last ? -5 : 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    CALL("view current alone", file,
         MPI_File_set_view(file, last ? MPI_DISPLACEMENT_CURRENT : 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    CALL("filetype alone", file, MPI_File_set_view(file, 4, MPI_INT, last ? type : MPI_INT, "native", MPI_INFO_NULL));
    wrong_views(file, last);
    check("alone: the view has stayed", displacement(file) == start);
    CALL("offset write", file, MPI_File_write_at_all(file, at, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    CALL("offset read", file, MPI_File_read_at_all(file, at, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    CALL("offset write split", file, split(file, at, 1));
    CALL("offset read split", file, split(file, at, 0));
    fill_from(data, mine, BYTES, 1);
    before();
    check("alone: the file works on",
          MPI_File_write_at_all(file, mine, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS && !seen.calls);
    MPI_File_read_at_all(file, mine, back, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    check("alone: and holds what was written", memcmp(back, data, BYTES) == 0);
    if (nonblocking) {
        CALL("offset iwrite", file,
             complete(MPI_File_iwrite_at_all(file, at, data, BYTES, MPI_BYTE, &request), &request));
        CALL("offset iread", file,
             complete(MPI_File_iread_at_all(file, at, data, BYTES, MPI_BYTE, &request), &request));
    }
    MPI_Type_free(&type);
    MPI_File_close(&file);
}

/* ---- the access mode forbids it ---------------------------------------------------------------------------------- */

static void read_only(MPI_Errhandler errhandler)
{
    MPI_File file = open_with(path, MPI_MODE_RDONLY, errhandler);
    MPI_Request request = MPI_REQUEST_NULL;
    int code;

    CALL("rdonly collective", file, MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    CALL("rdonly pointer collective", file, MPI_File_write_all(file, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    CALL("rdonly independent", file, MPI_File_write_at(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    CALL("rdonly nonblocking", file, complete(MPI_File_iwrite_at(file, 0, data, BYTES, MPI_BYTE, &request), &request));
    before();
    code = MPI_File_write_at_all_begin(file, 0, data, BYTES, MPI_BYTE);
    after("rdonly split", file, code);
    if (code == MPI_SUCCESS)
        MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE);
    CALL("rdonly ordered", file, MPI_File_write_ordered(file, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    check("rdonly: reading works",
          MPI_File_read_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_File_close(&file);
}

static void write_only(MPI_Errhandler errhandler)
{
    MPI_File file = open_with(path, MPI_MODE_WRONLY, errhandler);
    MPI_Request request = MPI_REQUEST_NULL;

    CALL("wronly collective", file, MPI_File_read_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    CALL("wronly pointer collective", file, MPI_File_read_all(file, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    CALL("wronly independent", file, MPI_File_read_at(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    CALL("wronly nonblocking", file, complete(MPI_File_iread_at(file, 0, data, BYTES, MPI_BYTE, &request), &request));
    check("wronly: writing works",
          MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_File_close(&file);
}

/* ---- the file system refuses: beyond RLIMIT_FSIZE ---------------------------------------------------------------- */

static void set_limit(rlim_t bytes)
{
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};

    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        MPI_Abort(MPI_COMM_WORLD, 5);
}

static void limited(MPI_Errhandler errhandler)
{
    MPI_Offset beyond = 2 * LIMIT + (MPI_Offset)rank * BYTES, within = (MPI_Offset)rank * BYTES;
    MPI_File file = open_with(path, MPI_MODE_RDWR, errhandler);
    unsigned char back[BYTES];

    fill_from(data, within, BYTES, 1);
    MPI_File_write_at_all(file, within, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE); /* whatever needs setting up */
    set_limit(LIMIT);
    CALL("limit collective", file, MPI_File_write_at_all(file, beyond, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    CALL("limit independent", file, MPI_File_write_at(file, beyond, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    before();
    check("limit: what fits is written",
          MPI_File_write_at_all(file, within, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_File_read_at_all(file, within, back, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    check("limit: and read", memcmp(back, data, BYTES) == 0 && seen.calls == 0);
    set_limit(RLIM_INFINITY);
    MPI_File_close(&file);
}

/* What only the operation itself can find out. MPI_Wait must come back although MPI_COMM_WORLD aborts on errors: the
 * error is the file's. */
static void late(MPI_Errhandler errhandler)
{
    MPI_Offset beyond = 2 * LIMIT + (MPI_Offset)rank * BYTES;
    MPI_File file = open_with(path, MPI_MODE_RDWR | MPI_MODE_CREATE, errhandler);
    MPI_Request request = MPI_REQUEST_NULL;

    MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    CALL("offset nonblocking", file, complete(MPI_File_iwrite_at(file, -1, data, 1, MPI_BYTE, &request), &request));
    set_limit(LIMIT);
    CALL("limit nonblocking", file,
         complete(MPI_File_iwrite_at(file, beyond, data, BYTES, MPI_BYTE, &request), &request));
    CALL("limit nonblocking collective", file,
         complete(MPI_File_iwrite_at_all(file, beyond, data, BYTES, MPI_BYTE, &request), &request));
    set_limit(RLIM_INFINITY);
    before();
    check("late: the file works on",
          complete(MPI_File_iwrite_at(file, 0, data, BYTES, MPI_BYTE, &request), &request) == MPI_SUCCESS &&
              !seen.calls);
    MPI_File_close(&file);
}

/* ---- opening: the handler of MPI_FILE_NULL ----------------------------------------------------------------------- */

static void opening(const char *name, const char *where, int amode)
{
    MPI_File file = MPI_FILE_NULL;
    int code;

    before();
    code = MPI_File_open(MPI_COMM_WORLD, where, amode, MPI_INFO_NULL, &file);
    after(name, MPI_FILE_NULL, code);
    if (code == MPI_SUCCESS)
        MPI_File_close(&file);
}

static void wrong_openings(void)
{
    const int create = MPI_MODE_RDWR | MPI_MODE_CREATE;
    char below[PATH_BYTES + 8];

    opening("open missing", other, MPI_MODE_RDWR);
    opening("open existing EXCL", path, create | MPI_MODE_EXCL);
    snprintf(below, sizeof below, "%s/x", path);
    opening("open below a file", below, create);
    snprintf(below, sizeof below, "%s.folder", path);
    opening("open folder", below, MPI_MODE_RDWR);
    opening("open amode none", path, 0);
    opening("open amode two", path, MPI_MODE_RDWR | MPI_MODE_RDONLY);
    opening("open amode RDONLY CREATE", path, MPI_MODE_RDONLY | MPI_MODE_CREATE);
    opening("open amode RDWR SEQUENTIAL", path, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL);
    CALL("delete missing", MPI_FILE_NULL, MPI_File_delete(other, MPI_INFO_NULL));
}

/* ---- whose handler ----------------------------------------------------------------------------------------------- */

static void whose(MPI_Errhandler mine)
{
    const int create = MPI_MODE_RDWR | MPI_MODE_CREATE;
    MPI_Errhandler initial, second, got;
    MPI_File a, b;

    MPI_File_get_errhandler(MPI_FILE_NULL, &initial);
    check("files return errors by default", initial == MPI_ERRORS_RETURN);
    MPI_File_set_errhandler(MPI_FILE_NULL, mine);
    MPI_File_open(MPI_COMM_WORLD, path, create, MPI_INFO_NULL, &a);
    MPI_File_get_errhandler(a, &got);
    check("an open file inherits the handler of MPI_FILE_NULL", got == mine);
    CALL("inherited", a, MPI_File_write_at_all(a, 0, data, -1, MPI_BYTE, MPI_STATUS_IGNORE));
    wrong_openings();
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    CALL("kept", a, MPI_File_write_at_all(a, 0, data, -1, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_File_create_errhandler(other_handler, &second);
    b = open_with(path, create, second);
    MPI_Errhandler_free(&second); /* lives on with the file */
    CALL("first of two", a, MPI_File_write_at_all(a, 0, data, -1, MPI_BYTE, MPI_STATUS_IGNORE));
    check("the other file's handler stays silent", others_calls == 0);
    before();
    MPI_File_write_at_all(b, 0, data, -1, MPI_BYTE, MPI_STATUS_IGNORE);
    check("a freed handler is called for its file", others_calls == 1 && seen.calls == 0);
    MPI_File_call_errhandler(a, MPI_ERR_NO_SPACE);
    check("MPI_File_call_errhandler", seen.calls == 1 && seen.error_class == MPI_ERR_NO_SPACE && seen.right_text);
    MPI_File_set_errhandler(a, MPI_ERRORS_RETURN);
    before();
    check("MPI_ERRORS_RETURN instead",
          class_of(MPI_File_write_at_all(a, 0, data, -1, MPI_BYTE, MPI_STATUS_IGNORE)) == MPI_ERR_COUNT &&
              seen.calls == 0);
    MPI_File_close(&a);
    MPI_File_close(&b);
}

/* ---- handlers that end the job ----------------------------------------------------------------------------------- */

static int die(const char *kind, const char *how)
{
    MPI_Errhandler errhandler = MPI_ERRORS_ARE_FATAL;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_File file;

#if MPI_VERSION >= 4
    if (strcmp(kind, "abort") == 0)
        errhandler = MPI_ERRORS_ABORT;
#endif
    if (strcmp(kind, "null") == 0)
        MPI_File_set_errhandler(MPI_FILE_NULL, errhandler);
    if (strcmp(how, "open") == 0)
        MPI_File_open(MPI_COMM_WORLD, other, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    if (strcmp(kind, "null") != 0)
        MPI_File_set_errhandler(file, errhandler);
    check("before", 1);
    if (strcmp(how, "collective") == 0) /* count -1, or the storage fails by MPIOX_FAULT */
        MPI_File_write_at_all(file, 0, data, getenv("MPIOX_FAULT") ? BYTES : -1, MPI_BYTE, MPI_STATUS_IGNORE);
    else if (strcmp(how, "independent") == 0 && rank == ranks - 1)
        MPI_File_write_at(file, 0, data, -1, MPI_BYTE, MPI_STATUS_IGNORE);
    else if (strcmp(how, "nonblocking") == 0 && rank == ranks - 1)
        MPI_File_iwrite_at(file, 0, data, -1, MPI_BYTE, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    puts("survived");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}

int main(int argc, char **argv)
{
    MPI_Errhandler mine;
    MPI_File file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(path, sizeof path, "%s", argv[1]);
    snprintf(other, sizeof other, "%s.missing", argv[1]);
    if (argc == 5)
        return die(argv[3], argv[4]);
    MPI_File_create_errhandler(handler, &mine);
    if (argc == 3 && strcmp(argv[2], "late") == 0) {
        late(mine);
    } else if (argc == 3 && strncmp(argv[2], "alone", 5) == 0) {
        alone(mine, argv[2][5] == '\0');
    } else if (argc == 3) {
        MPI_File_set_errhandler(MPI_FILE_NULL, mine);
        opening("denied", path, MPI_MODE_RDWR);
    } else {
        whose(mine);
        file = open_with(path, MPI_MODE_RDWR | MPI_MODE_CREATE, mine);
        MPI_File_write_at_all(file, (MPI_Offset)rank * BYTES, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
        wrong_arguments(file);
        before();
        check("the file works on",
              MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
                  seen.calls == 0);
        MPI_File_close(&file);
        read_only(mine);
        write_only(mine);
        limited(mine);
    }
    MPI_Errhandler_free(&mine);
    if (rank == 0)
        puts("end");
    MPI_Finalize();
    return failures;
}
