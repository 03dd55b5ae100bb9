/*
 * test_pool.c - handles whose descriptors are closed while nobody uses them: afterwards it is the same file, whatever
 * has become of its name, of its permissions and of the process's.
 *
 *   test_pool FOLDER [threads]
 *
 * What stands in for the MPI library is a plain open(2) beside every handle.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_storage.h"
#include "mpiox_storage_lock.h"

enum { LIMIT = 64, CROWD = 12, BYTES = 100, NOBODY = 65534, SECONDS = 60 };

static const char *folder;

typedef struct opened {
    mpiox_storage *storage;
    int other; /* the MPI library's; -1: none */
    char path[512];
} opened;

static const mpiox_storage_options plain = {.kind = MPIOX_STORAGE_POSIX};

static void name(opened *file, const char *what, int number)
{
    snprintf(file->path, sizeof file->path, "%s/%s.%d", folder, what, number);
}

/* mode: the handle's; other: the descriptor's beside it, -1: none. */
static void open_as(opened *file, int mode, int other, const mpiox_storage_options *options)
{
    mpiox_error error;

    file->other = other >= 0 ? open(file->path, other | O_CREAT, 0600) : -1;
    CHECK((file->other >= 0) == (other >= 0));
    CHECK_EQUAL(mpiox_storage_open(file->path, mode, 0, options, &file->storage, &error), MPIOX_OK);
}

static void create(const opened *file)
{
    unlink(file->path);
    const int fd = open(file->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    close(fd);
}

static void shut(opened *file)
{
    CHECK_EQUAL(mpiox_storage_close(file->storage), MPIOX_OK);
    if (file->other >= 0)
        close(file->other);
}

/* So many other files are used that whatever can be closed is closed. */
static void crowd(void)
{
    static opened files[CROWD];
    char byte = 'c';

    for (int i = 0; i < CROWD; i++) {
        name(&files[i], "crowd", i);
        create(&files[i]);
        open_as(&files[i], O_RDWR, O_RDWR, &plain);
        CHECK_EQUAL(mpiox_storage_write(files[i].storage, &byte, 1, 0, NULL), MPIOX_OK);
    }
    for (int i = 0; i < CROWD; i++)
        shut(&files[i]);
}

static void put(opened *file, char letter)
{
    char data[BYTES];
    mpiox_error error = {.code = MPIOX_OK};

    memset(data, letter, sizeof data);
    CHECK_EQUAL(mpiox_storage_write(file->storage, data, BYTES, 0, &error), MPIOX_OK);
    if (error.code != MPIOX_OK)
        fprintf(stderr, "%s: %s: %s\n", file->path, error.what, strerror(error.sys_errno));
}

/* The file that descriptor `fd` leads to holds the letter in all its bytes. */
static bool holds(int fd, char letter)
{
    char data[BYTES + 1];

    if (pread(fd, data, sizeof data, 0) != BYTES)
        return false;
    for (int i = 0; i < BYTES; i++)
        if (data[i] != letter)
            return false;
    return true;
}

static bool gets(opened *file, char letter)
{
    char data[BYTES];
    int64_t done = 0;

    if (mpiox_storage_read(file->storage, data, BYTES, 0, &done, NULL) != MPIOX_OK || done != BYTES)
        return false;
    for (int i = 0; i < BYTES; i++)
        if (data[i] != letter)
            return false;
    return true;
}

/* A file whose descriptor is closed at the moment. */
static void parked(opened *file, const char *what)
{
    name(file, what, 0);
    create(file);
    open_as(file, O_RDWR, O_RDWR, &plain);
    put(file, 'a');
    crowd();
    CHECK_EQUAL(file->storage->fd, -1);
}

static void still_works(opened *file)
{
    put(file, 'b');
    CHECK(gets(file, 'b'));
    CHECK(file->other < 0 || holds(file->other, 'b'));
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static void test_names(void)
{
    opened file, stranger;
    char moved[520];

    parked(&file, "untouched");
    still_works(&file);
    shut(&file);

    parked(&file, "removed");
    unlink(file.path);
    still_works(&file);
    CHECK(access(file.path, F_OK) != 0);
    shut(&file);

    parked(&file, "replaced"); /* the other file of that name has the same size and is never touched */
    unlink(file.path);
    name(&stranger, "replaced", 0);
    create(&stranger);
    open_as(&stranger, O_RDWR, -1, &plain);
    put(&stranger, 's');
    still_works(&file);
    CHECK(gets(&stranger, 's'));
    shut(&stranger);
    shut(&file);

    parked(&file, "renamed"); /* what has the name now is a FIFO that nobody reads */
    snprintf(moved, sizeof moved, "%s.moved", file.path);
    CHECK_EQUAL(rename(file.path, moved), 0);
    CHECK_EQUAL(mkfifo(file.path, 0600), 0);
    still_works(&file);
    shut(&file);

    name(&file, "fifo_read", 0);
    create(&file);
    open_as(&file, O_RDONLY, O_RDWR, &plain);
    CHECK_EQUAL(pwrite(file.other, moved, BYTES, 0), BYTES);
    crowd();
    CHECK_EQUAL(file.storage->fd, -1);
    unlink(file.path);
    CHECK_EQUAL(mkfifo(file.path, 0600), 0); /* open(2) of it would wait for a writer */
    memset(moved, 'r', BYTES);
    CHECK_EQUAL(pwrite(file.other, moved, BYTES, 0), BYTES);
    CHECK(gets(&file, 'r'));
    shut(&file);
}

/* ---- permissions ------------------------------------------------------------------------------------------------- */

static void forbid(opened *file)
{
    CHECK_EQUAL(chmod(file->path, 0), 0);
    if (geteuid() == 0)
        CHECK_EQUAL(seteuid(NOBODY), 0);
    CHECK(open(file->path, O_RDWR) < 0);
}

static void forbidden(void)
{
    opened file;

    parked(&file, "forbidden");
    forbid(&file);
    still_works(&file);
    shut(&file);
}

/* Two handles that have had to share what the MPI library holds still exclude each other. */
static void forbidden_locks(void)
{
    opened one, two;
    struct flock wanted = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};

    parked(&one, "forbidden");
    name(&two, "forbidden", 0);
    open_as(&two, O_RDWR, O_RDWR, &plain);
    crowd();
    forbid(&one);
    CHECK_EQUAL(two.storage->fd, -1);
    CHECK_EQUAL(mpiox_storage_lock(one.storage, true, 0, 1, NULL), MPIOX_OK);
    CHECK_EQUAL(mpiox_storage_pin(two.storage, NULL), MPIOX_OK);
    CHECK(fcntl(two.storage->fd, F_OFD_SETLK, &wanted) != 0 && (errno == EAGAIN || errno == EACCES));
    mpiox_storage_unlock(one.storage, 0, 1);
    CHECK_EQUAL(fcntl(two.storage->fd, F_OFD_SETLK, &wanted), 0);
    mpiox_storage_unpin(two.storage);
    shut(&one);
    shut(&two);
}

/* Neither the name nor /proc is there any more. */
static void moved_root(void)
{
    char empty[520];
    opened file;

    parked(&file, "confined");
    snprintf(empty, sizeof empty, "%s/empty", folder);
    CHECK_EQUAL(mkdir(empty, 0700), 0);
    if (chroot(empty) != 0) /* not as root */
        return;
    still_works(&file);
    shut(&file);
}

/* In a process of its own, since what it gives up it does not get back. */
static void apart(void (*what)(void))
{
    int status = -1;
    const pid_t child = fork();

    if (child == 0) {
        check_failures = 0;
        alarm(SECONDS);
        what();
        fflush(stderr);
        _exit(check_failures > 0);
    }
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
}

/* ---- what must not be closed ------------------------------------------------------------------------------------- */

/* Opened like that, would it come back? */
static void check_stays(const char *what, int mode, int other, const mpiox_storage_options *options, bool stays)
{
    opened file;
    char byte = 'x';
    int64_t done;

    name(&file, what, 0);
    create(&file);
    open_as(&file, mode, other, options);
    crowd();
    CHECK_EQUAL(file.storage->fd >= 0, stays);
    unlink(file.path);
    create(&file);
    if (mode == O_RDONLY)
        CHECK_EQUAL(mpiox_storage_read(file.storage, &byte, 1, 0, &done, NULL), MPIOX_OK);
    else
        CHECK_EQUAL(mpiox_storage_write(file.storage, &byte, 1, 0, NULL), MPIOX_OK);
    struct stat status;
    CHECK(stat(file.path, &status) == 0 && status.st_size == 0);
    shut(&file);
}

static void test_stays(void)
{
    static const mpiox_storage_options writer = {.kind = MPIOX_STORAGE_POSIX, .only_writes = true};

    check_stays("alone", O_RDWR, -1, &plain, true);
    check_stays("reader_alone", O_RDONLY, -1, &plain, true);
    check_stays("reader", O_RDONLY, O_RDONLY, &plain, false);
    check_stays("reader_of_written", O_RDONLY, O_RDWR, &plain, false);
    check_stays("written", O_RDONLY, O_WRONLY, &plain, true);
    check_stays("read", O_RDWR, O_RDONLY, &plain, true);
    check_stays("appended", O_RDWR, O_RDWR | O_APPEND, &plain, true); /* pwrite would ignore the offset */
    check_stays("writer", O_RDWR, O_WRONLY, &writer, false);
    check_stays("not_writer", O_RDWR, O_WRONLY, &plain, true);
}

/* Handles of one file do not count on each other. */
static void test_each_other(void)
{
    opened one, two;

    name(&one, "twice", 0);
    name(&two, "twice", 0);
    create(&one);
    open_as(&one, O_RDWR, -1, &plain);
    open_as(&two, O_RDWR, -1, &plain);
    crowd();
    CHECK(one.storage->fd >= 0 && two.storage->fd >= 0);
    unlink(one.path);
    shut(&one);
    crowd();
    still_works(&two);
    shut(&two);
}

/* Closing a FIFO, a terminal or a tape, and opening it again, is not the same as keeping it. */
static void test_no_regular_file(void)
{
    opened file;

    name(&file, "fifo", 0);
    CHECK_EQUAL(mkfifo(file.path, 0600), 0);
    open_as(&file, O_RDWR, O_RDWR, &plain);
    crowd();
    CHECK(file.storage->fd >= 0);
    shut(&file);
}

/* ---- errors of closing ------------------------------------------------------------------------------------------- */

static int full_fd = -1; /* closing it says that its last bytes have found no room */

int close(int fd)
{
    const int code = (int)syscall(SYS_close, fd);

    if (fd < 0 || fd != full_fd)
        return code;
    full_fd = -1;
    errno = EDQUOT;
    return -1;
}

/* The next sync, or else the end, returns the error of a server that refused bytes when the descriptor was closed. */
static void test_close_errors(void)
{
    mpiox_error error = {.code = MPIOX_OK};
    opened file;

    for (int synced = 0; synced < 2; synced++) {
        name(&file, "full", synced);
        create(&file);
        open_as(&file, O_RDWR, O_RDWR, &plain);
        put(&file, 'a');
        full_fd = file.storage->fd;
        crowd();
        CHECK_EQUAL(full_fd, -1);
        CHECK_EQUAL(file.storage->fd, -1);
        if (synced) {
            CHECK_EQUAL(mpiox_storage_sync(file.storage, &error), MPIOX_E_IO);
            CHECK_EQUAL(error.sys_errno, EDQUOT);
            CHECK_EQUAL(mpiox_storage_sync(file.storage, &error), MPIOX_OK);
        }
        CHECK_EQUAL(mpiox_storage_close(file.storage), synced ? MPIOX_OK : MPIOX_E_IO);
        CHECK(synced || errno == EDQUOT);
        close(file.other);
    }
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, SHARED = 10, ROUNDS = 3000 };

static opened shared[SHARED]; /* more than may have a descriptor: each access finds some closed */

/* A byte of its own in every file: what was written last is there, whichever descriptor it went by. */
static void *use_all(void *argument)
{
    const int thread = *(int *)argument;
    unsigned random = 1 + (unsigned)thread, wrong = 0;
    char expected[SHARED] = {0};

    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1664525 + 1013904223;
        const int which = (int)(random >> 16) % SHARED;
        char found = 0;
        int64_t done = 0;
        wrong += mpiox_storage_read(shared[which].storage, &found, 1, thread, &done, NULL) != MPIOX_OK ||
                 found != expected[which];
        expected[which] = (char)(i % 100);
        wrong += mpiox_storage_write(shared[which].storage, &expected[which], 1, thread, NULL) != MPIOX_OK;
    }
    return wrong > 0 ? argument : NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];

    for (int i = 0; i < SHARED; i++) {
        name(&shared[i], "shared", i);
        create(&shared[i]);
        open_as(&shared[i], O_RDWR, O_RDWR, &plain);
        CHECK_EQUAL(mpiox_storage_write(shared[i].storage, "\0\0\0\0", THREADS, 0, NULL), MPIOX_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK_EQUAL(pthread_create(&threads[i], NULL, use_all, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        CHECK(failed == NULL);
    }
    for (int i = 0; i < SHARED; i++)
        shut(&shared[i]);
}

int main(int argc, char **argv)
{
    struct rlimit limit;

    if (argc != 2 && argc != 3)
        return 2;
    folder = argv[1];
    alarm(SECONDS);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = LIMIT;
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    test_threads();
    if (argc == 3)
        return check_exit();
    test_names();
    apart(forbidden);
    apart(forbidden_locks);
    apart(moved_root);
    test_stays();
    test_each_other();
    test_no_regular_file();
    test_close_errors();
    return check_exit();
}
