/*
 * handlers.c - error handlers that do more than take note.
 */
#include "strangers.h"

#include <setjmp.h>

enum { BLOCK = 64, LARGE = 100 * 1024, JUMPS = 20 };

static int called;
static jmp_buf back;

static void jump(MPI_File *file, int *code, ...)
{
    (void)file, (void)code;
    called++;
    longjmp(back, 1);
}

static void note(MPI_File *file, int *code, ...)
{
    (void)file, (void)code;
    called++;
}

static void set_handler(MPI_File file, MPI_File_errhandler_function *function)
{
    MPI_Errhandler handler;

    MPI_File_create_errhandler(function, &handler);
    MPI_File_set_errhandler(file, handler);
    MPI_Errhandler_free(&handler); /* before it is used */
}

/* A collective with a bad count on one rank: all ranks jump out of it, three times, and go on with the file. */
static void jump_out_of_write(void)
{
    char path[PATH_BYTES];
    unsigned char buffer[BLOCK];
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    fill_from(buffer, (long long)rank * BLOCK, BLOCK, 1);
    set_handler(file, jump);
    called = 0;
    for (volatile int i = 0; i < 3; i++) {
        if (setjmp(back) == 0) {
            MPI_File_write_at_all(file, rank * BLOCK, buffer, -1, MPI_BYTE, MPI_STATUS_IGNORE);
            differs("the handler was not called");
        }
        if (setjmp(back) == 0) {
            MPI_File_write_at(file, rank * BLOCK, buffer, -1, MPI_BYTE, MPI_STATUS_IGNORE);
            differs("the handler was not called");
        }
    }
    EXPECT(called == 6);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    FINE(MPI_File_write_at_all(file, rank * BLOCK, buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
    FINE(MPI_File_close(&file));
    expect_file(path, (long long)BLOCK * ranks, 1);
}

/* Out of MPI_File_open, on all ranks, and again; then a good open. */
static void jump_out_of_open(void)
{
    char path[PATH_BYTES], missing[PATH_BYTES];
    unsigned char buffer[BLOCK];
    MPI_Errhandler handler, old;
    MPI_File file;
    const long before = shared_mappings();

    start_anew(path_of("file", path));
    path_of("missing", missing);
    fill_from(buffer, (long long)rank * BLOCK, BLOCK, 2);
    MPI_File_get_errhandler(MPI_FILE_NULL, &old);
    MPI_File_create_errhandler(jump, &handler);
    called = 0;
    for (volatile int i = 0; i < JUMPS; i++) {
        MPI_File_set_errhandler(MPI_FILE_NULL, handler);
        if (setjmp(back) == 0) {
            MPI_File_open(MPI_COMM_WORLD, missing, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
            differs("the handler was not called");
        }
        MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
        file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
        FINE(MPI_File_write_at_all(file, rank * BLOCK, buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
        FINE(MPI_File_close(&file));
    }
    EXPECT(called == JUMPS);
    if (shared_mappings() - before > JUMPS / 2) /* what was begun for the open must not be lost */
        differs("%ld shared memories are kept", shared_mappings() - before);
    MPI_File_set_errhandler(MPI_FILE_NULL, old);
    MPI_Errhandler_free(&handler);
    expect_file(path, (long long)BLOCK * ranks, 2);
}

/* A file inherits the handler that was the default when it was opened. */
static void inherited(void)
{
    char path[PATH_BYTES];
    MPI_Errhandler handler;
    MPI_File file;

    start_anew(path_of("file", path));
    MPI_File_create_errhandler(note, &handler);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    called = 0;
    MPI_File_write_at_all(file, 0, &called, -1, MPI_BYTE, MPI_STATUS_IGNORE);
    EXPECT(called == 1);
    MPI_File_call_errhandler(file, MPI_ERR_IO);
    EXPECT(called == 2);
    FINE(MPI_File_close(&file));
    MPI_Errhandler_free(&handler); /* MPICH 5 forgets to count the file as a user of it */
}

static MPI_File repaired;
static unsigned char repair_data[LARGE];

static void repair(MPI_File *file, int *code, ...)
{
    MPI_Request request;

    (void)code;
    called++;
    EXPECT(*file == repaired);
    FINE(MPI_File_iwrite_at(*file, (MPI_Offset)rank * LARGE, repair_data, LARGE, MPI_BYTE, &request));
    FINE(MPI_Wait(&request, MPI_STATUS_IGNORE));
    FINE(MPI_File_write_at_all(*file, (MPI_Offset)rank * LARGE, repair_data, LARGE, MPI_BYTE, MPI_STATUS_IGNORE));
}

/* A handler that repairs what went wrong by accesses of its own, of both kinds. */
static void io_in_handler(void)
{
    char path[PATH_BYTES];

    start_anew(path_of("file", path));
    repaired = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    set_handler(repaired, repair);
    called = 0;
    fill_from(repair_data, (long long)rank * LARGE, LARGE, 3);
    MPI_File_write_at_all(repaired, 0, repair_data, -1, MPI_BYTE, MPI_STATUS_IGNORE);
    EXPECT(called == 1);
    FINE(MPI_File_close(&repaired));
    expect_file(path, (long long)LARGE * ranks, 3);
}

/* The communicator's own handler, whatever it is, is left as it was, and is not the file's. */
static void of_communicators(void)
{
    char path[PATH_BYTES];
    MPI_Comm comm;
    MPI_File file;
#if MPI_VERSION >= 4
    const MPI_Errhandler handlers[] = {MPI_ERRORS_RETURN, MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ABORT};
#else
    const MPI_Errhandler handlers[] = {MPI_ERRORS_RETURN, MPI_ERRORS_ARE_FATAL};
#endif

    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
        MPI_Errhandler now;
        unsigned char buffer[BLOCK];

        start_anew(path_of("file", path));
        MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - (int)i * rank, &comm); /* a group of its own */
        MPI_Comm_set_errhandler(comm, handlers[i]);
        fill_from(buffer, (long long)rank * BLOCK, BLOCK, 4);
        file = open_file(comm, path, AMODE_NEW);
        MPI_Comm_get_errhandler(comm, &now);
        EXPECT(now == handlers[i]);
        FINE(MPI_File_write_at_all(file, rank * BLOCK, buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
        MPI_Comm_free(&comm);
        FINE(MPI_File_close(&file));
        expect_file(path, (long long)BLOCK * ranks, 4);
    }
}

const stranger handlers_cases[] = {
    {"jump_out_of_write", 1, jump_out_of_write}, {"jump_out_of_open", 1, jump_out_of_open}, {"inherited", 1, inherited},
    {"io_in_handler", 1, io_in_handler},         {"of_communicators", 1, of_communicators}, {NULL, 0, NULL},
};
