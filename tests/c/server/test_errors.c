/*
 * test_errors.c - what the delegate says about bytes that it could not write or read, and that it goes on afterwards.
 *
 *   test_errors DIRECTORY
 */
#include "harness.h"

enum { PAGE = 4096 };

static char folder[512];

static const char *path_of(const char *name)
{
    static char path[4][600];
    static int turn;
    char *text = path[turn++ % 4];
    snprintf(text, sizeof path[0], "%s/%s", folder, name);
    return text;
}

static void set_faults(const char *rules)
{
    setenv("MPIOX_FAULT", rules, 1);
}

static void expect_errors(const mpiox_cache *cache, int file, int sys_errno, int64_t first, int64_t end)
{
    mpiox_error errors[MPIOX_CACHE_ERRORS];
    int more;
    const int count = mpiox_cache_take_errors(cache, file, errors, MPIOX_CACHE_ERRORS, &more);
    CHECK_EQUAL(count, 1);
    CHECK_EQUAL(more, 0);
    for (int i = 0; i < count; i++) {
        CHECK_EQUAL(errors[i].code, MPIOX_E_IO);
        CHECK_EQUAL(errors[i].sys_errno, sys_errno);
        CHECK_EQUAL(errors[i].offset, first);
        CHECK_EQUAL(errors[i].offset + errors[i].length, end);
    }
}

/* The file system is full from the third request on: exactly the bytes of those are named, once, and are not tried
 * again. */
static void no_space(void)
{
    static char bytes[8 * PAGE], found[8 * PAGE];
    const char *path = path_of("nospace.dat");
    const mpiox_server_options options = options_for(PAGE, 16);
    running delegate;
    memset(bytes, 7, sizeof bytes);
    make_file(path, NULL, 0);
    set_faults("op=write,path=*nospace.dat,after=2,times=3,errno=ENOSPC");
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache), file = open_shared(cache, path, MPIOX_FILE_WRITABLE, 1, 1);
    CHECK(file >= 0);
    /* one dirty run in each of six pages: six requests at the flush barrier, in file order */
    for (int page = 5; page >= 0; page--)
        CHECK_EQUAL(access_bytes(cache, file, true, bytes, page * PAGE + 100, 1000, NULL), MPIOX_OK);
    CHECK_EQUAL(flush_file(cache, file, false, false), MPIOX_OK);
    expect_errors(cache, file, ENOSPC, 2 * PAGE + 100, 4 * PAGE + 1100);
    CHECK_EQUAL(flush_file(cache, file, false, false), MPIOX_OK);
    CHECK_EQUAL(atomic_load(&cache->header->files[file].error_count), 0);
    CHECK_EQUAL(read_whole(path, found, sizeof found), 5 * PAGE + 1100);
    for (int page = 0; page < 6; page++)
        CHECK_EQUAL(found[page * PAGE + 100], page < 2 || page > 4 ? 7 : 0);
    /* later writes of the same bytes arrive */
    CHECK_EQUAL(access_bytes(cache, file, true, bytes, 2 * PAGE + 100, 1000, NULL), MPIOX_OK);
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    CHECK_EQUAL(read_whole(path, found, sizeof found), 5 * PAGE + 1100);
    CHECK_EQUAL(found[2 * PAGE + 100], 7);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* A disk that fails for ever must not fill the cache: more pages than there are frames go through. Errors of pages that
 * touch are one; errors beyond those that a record holds are counted. */
static void dead_disk(void)
{
    static char bytes[PAGE];
    mpiox_error errors[MPIOX_CACHE_ERRORS];
    const char *path = path_of("dead.dat");
    const mpiox_server_options options = options_for(PAGE, 2);
    running delegate;
    int more;
    make_file(path, NULL, 0);
    set_faults("op=write,path=*dead.dat,errno=EIO");
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache), file = open_shared(cache, path, MPIOX_FILE_WRITABLE, 1, 1);
    for (int page = 0; page < 50; page++)
        CHECK_EQUAL(access_bytes(cache, file, true, bytes, page * 2 * PAGE, PAGE, NULL), MPIOX_OK);
    CHECK_EQUAL(flush_file(cache, file, false, false), MPIOX_OK);
    CHECK_EQUAL(mpiox_cache_take_errors(cache, file, errors, MPIOX_CACHE_ERRORS, &more), MPIOX_CACHE_ERRORS);
    CHECK_EQUAL(more, 50 - MPIOX_CACHE_ERRORS);
    for (int i = 0; i < MPIOX_CACHE_ERRORS; i++)
        CHECK_EQUAL(errors[i].length, PAGE);
    leave(cache, id); /* the file is still open */
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* Errors that nobody has taken when the last client has gone come back from mpiox_server_run(). */
static void nobody_left(void)
{
    static char bytes[PAGE];
    const char *path = path_of("nobody.dat");
    const mpiox_server_options options = options_for(PAGE, 4);
    running delegate;
    make_file(path, NULL, 0);
    set_faults("op=write,path=*nobody.dat,errno=EDQUOT");
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache), file = open_shared(cache, path, MPIOX_FILE_WRITABLE, 1, 1);
    CHECK_EQUAL(access_bytes(cache, file, true, bytes, PAGE + 10, 20, NULL), MPIOX_OK);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_E_IO);
    CHECK_EQUAL(delegate.lost_count, 1);
    CHECK_EQUAL(delegate.lost[0].error.sys_errno, EDQUOT);
    CHECK_EQUAL(delegate.lost[0].error.offset, PAGE + 10);
    CHECK_EQUAL(delegate.lost[0].error.length, 20);
}

/* A page that cannot be read is an error for those who ask for it, each time; the next try may succeed; pages that were
 * only to be read ahead are nobody's error. */
static void unreadable(void)
{
    static char bytes[6 * PAGE], found[PAGE];
    const char *path = path_of("unreadable.dat");
    mpiox_server_options options = options_for(PAGE, 16);
    running delegate;
    access_how how = {.ahead = NULL};
    memset(bytes, 9, sizeof bytes);
    make_file(path, bytes, sizeof bytes);
    set_faults("op=read,path=*unreadable.dat,after=1,times=2,errno=EIO");
    options.prefetch_pages = 4;
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache);
    const int file = open_shared(cache, path, MPIOX_FILE_READABLE | MPIOX_FILE_WRITABLE, 1, 1);
    CHECK_EQUAL(access_bytes(cache, file, false, found, 10, 100, &how), MPIOX_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(access_bytes(cache, file, false, found, PAGE + 10, 100, &how), MPIOX_E_IO);
        CHECK_EQUAL(how.error.sys_errno, EIO);
        CHECK_EQUAL(how.error.offset, PAGE);
    }
    CHECK_EQUAL(access_bytes(cache, file, false, found, PAGE + 10, 100, &how), MPIOX_OK);
    CHECK_EQUAL(found[0], 9);
    CHECK_EQUAL(atomic_load(&cache->header->files[file].error_count), 0);
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* A page that is dirty in part and cannot be read keeps what was written. */
static void unreadable_but_dirty(void)
{
    static char bytes[PAGE], found[PAGE];
    const char *path = path_of("dirty.dat");
    const mpiox_server_options options = options_for(PAGE, 4);
    running delegate;
    memset(bytes, 5, sizeof bytes);
    make_file(path, NULL, 0);
    set_faults("op=read,path=*dirty.dat,errno=EIO");
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache);
    const int file = open_shared(cache, path, MPIOX_FILE_READABLE | MPIOX_FILE_WRITABLE, 1, 1);
    CHECK_EQUAL(access_bytes(cache, file, true, bytes, 1000, 500, NULL), MPIOX_OK);
    CHECK_EQUAL(access_bytes(cache, file, false, found, 0, 100, NULL), MPIOX_E_IO);
    CHECK_EQUAL(access_bytes(cache, file, false, found, 1100, 100, NULL), MPIOX_OK);
    CHECK_EQUAL(found[0], 5);
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    CHECK_EQUAL(read_whole(path, found, PAGE), 1500);
    CHECK_EQUAL(found[1499], 5);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

static void opening(void)
{
    char name[32];
    mpiox_error error;
    const mpiox_server_options options = options_for(PAGE, 4);
    running delegate;
    set_faults("op=open,path=*refused.dat,errno=EACCES");
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache);
    CHECK_EQUAL(open_shared(cache, path_of("absent.dat"), MPIOX_FILE_WRITABLE, 1, 1), MPIOX_E_IO);
    make_file(path_of("refused.dat"), NULL, 0);
    CHECK_EQUAL(open_shared(cache, path_of("refused.dat"), MPIOX_FILE_READABLE, 1, 1), MPIOX_E_IO);
    for (int i = 0; i <= MPIOX_CACHE_MAX_FILES; i++) { /* one more than there are records */
        snprintf(name, sizeof name, "many%d.dat", i);
        make_file(path_of(name), NULL, 0);
        CHECK_EQUAL(open_shared(cache, path_of(name), MPIOX_FILE_WRITABLE, 1, 1),
                    i < MPIOX_CACHE_MAX_FILES ? i : MPIOX_E_FULL);
    }
    /* the same file again, under another name, is the same record; the opening counts */
    CHECK_EQUAL(link(path_of("many3.dat"), path_of("other.dat")), 0);
    CHECK_EQUAL(open_shared(cache, path_of("other.dat"), MPIOX_FILE_READABLE, 1, 1), 3);
    CHECK_EQUAL(atomic_load(&cache->header->files[3].openers), 2);
    CHECK_EQUAL(atomic_load(&cache->header->files[3].flags), MPIOX_FILE_READABLE | MPIOX_FILE_WRITABLE);
    for (int i = 0; i < MPIOX_CACHE_MAX_FILES; i++)
        CHECK_EQUAL(close_shared(cache, i), MPIOX_OK);
    CHECK_EQUAL(close_shared(cache, 3), MPIOX_OK);
    CHECK_EQUAL(close_shared(cache, 3), MPIOX_E_ARG); /* it is closed */
    CHECK_EQUAL(request(cache, MPIOX_OP_FLUSH, 99, (mpiox_op_question){.flush.end = 1}, &error), MPIOX_E_ARG);
    CHECK_EQUAL(request(cache, MPIOX_OP_PAGE, 3, nothing, &error), MPIOX_E_ARG);
    CHECK_EQUAL(request(cache, 77, 3, nothing, &error), MPIOX_E_ARG);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    snprintf(folder, sizeof folder, "%s", argv[1]);
    no_space();
    dead_disk();
    nobody_left();
    unreadable();
    unreadable_but_dirty();
    opening();
    return check_exit();
}
