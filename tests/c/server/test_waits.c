/*
 * test_waits.c - what an open of a delegate waits for: what an earlier job has left, and the end of an earlier close;
 *                that one that fails leaves nothing; and that a delegate ends, whoever its last opener was.
 *
 *   test_waits FOLDER
 */
#include "descriptors.h"
#include "harness.h"

#include "mpiox_storage_staging.h"

enum { PAGE = 4096, PAUSE_US = 100 * 1000 };

static char path[512], staging[512];

typedef struct opening {
    pthread_t thread;
    const mpiox_cache *cache;
    const char *path;
    int flags, file;
} opening;

static void *open_it(void *context)
{
    opening *self = context;
    self->file = open_shared(self->cache, self->path, self->flags, 1, 1);
    return NULL;
}

static opening *begin_open(const mpiox_cache *cache, const char *which, int flags)
{
    static opening self;
    self = (opening){.cache = cache, .path = which, .flags = flags};
    pthread_create(&self.thread, NULL, open_it, &self);
    usleep(PAUSE_US); /* one that does not wait has gone on by then */
    return &self;
}

static int end_open(opening *self)
{
    pthread_join(self->thread, NULL);
    return self->file;
}

/* It opens the file as it is when that is over. */
static void adopting(void)
{
    const mpiox_server_options options = options_for(PAGE, 4);
    running delegate;
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache);
    atomic_store(&cache->header->adopting, 1);
    opening *other = begin_open(cache, path, MPIOX_FILE_READABLE);
    make_file(path, "late", 4);
    mpiox_server_adopted(delegate.server);
    const int file = end_open(other);
    CHECK(file >= 0);
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
    unlink(path);
}

/* MPIOX_HOLD_* */
static int64_t ask(const mpiox_cache *cache, int only_looks)
{
    mpiox_slot *slot = mpiox_ring_take(cache);
    slot->op = MPIOX_OP_HOLD;
    slot->question.hold.how = only_looks ? MPIOX_HOLD_TO_LOOK : MPIOX_HOLD_TO_OPEN;
    snprintf(slot->text, sizeof slot->text, "%s", staging);
    CHECK_EQUAL(mpiox_ring_call(cache, slot, NULL), MPIOX_OK);
    const int64_t is = slot->answer.hold.state;
    mpiox_ring_give_back(slot);
    return is;
}

static int64_t look(const mpiox_cache *cache)
{
    return ask(cache, 1);
}

/* The mark that it has bytes comes after the one that it has none any more, of the close before: else the file would
 * get its name while it has them. */
static void ending(void)
{
    mpiox_server_options options = options_for(PAGE, 4);
    const int flags = MPIOX_FILE_WRITABLE | MPIOX_FILE_BEHIND | MPIOX_FILE_HIDDEN;
    char bytes[PAGE] = "bytes";
    struct stat status;
    running delegate;
    options.io_threads = 2;
    setenv("MPIOX_FAULT", "op=sync,path=*.staging,times=1,delay_ms=1000", 1);
    CHECK_EQUAL(mpiox_storage_staging_create(staging, false, 2), 0);
    CHECK_EQUAL(mpiox_storage_staging_begin(staging, 1), 0); /* another one has bytes of it, all the time */
    CHECK_EQUAL(stat(staging, &status), 0);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache), file = open_shared(cache, staging, flags, 1, 1);
    CHECK_EQUAL(access_bytes(cache, file, true, bytes, 0, PAGE, NULL), MPIOX_OK);
    CHECK_EQUAL(request(cache, MPIOX_OP_CLOSE, file, (mpiox_op_question){.close.how = MPIOX_CLOSING_BEHIND}, NULL),
                MPIOX_OK);
    while (look(cache) != MPIOX_HOLD_SOON)
        usleep(1000);
    opening *other = begin_open(cache, staging, flags);
    while (look(cache) == MPIOX_HOLD_SOON)
        usleep(1000);
    const int again = end_open(other);
    CHECK_EQUAL(again, file);
    CHECK(mpiox_storage_staging_pending(staging, 0, (uint64_t)status.st_dev, (uint64_t)status.st_ino));
    CHECK_EQUAL(request(cache, MPIOX_OP_CLOSE, again, (mpiox_op_question){.close.how = MPIOX_CLOSING_BEHIND}, NULL),
                MPIOX_OK);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
    CHECK(!mpiox_storage_staging_pending(staging, 0, (uint64_t)status.st_dev, (uint64_t)status.st_ino));
    mpiox_storage_staging_remove(staging, (uint64_t)status.st_dev, (uint64_t)status.st_ino);
}

/* More of them than there are records. */
static void opens_that_fail(void)
{
    const mpiox_server_options options = options_for(PAGE, 4);
    const int flags = MPIOX_FILE_WRITABLE | MPIOX_FILE_BEHIND | MPIOX_FILE_HIDDEN;
    char name[sizeof staging + 16];
    running delegate;
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache), before = open_descriptors();
    for (int i = 0; i < MPIOX_CACHE_MAX_FILES + 3; i++) {
        snprintf(name, sizeof name, "%s.%d", staging, i);
        make_file(name, "bytes", 5); /* nothing lies beside it */
        CHECK_EQUAL(open_shared(cache, name, flags, 1, 1), MPIOX_E_IO);
    }
    make_file(path, "bytes", 5);
    const int file = open_shared(cache, path, MPIOX_FILE_READABLE, 1, 1);
    CHECK(file >= 0);
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK); /* behind the closes of those */
    for (int i = 0; i < 2000 && open_descriptors() != before; i++)
        usleep(1000);
    CHECK_EQUAL(open_descriptors(), before);
    for (int i = 0; i < MPIOX_CACHE_MAX_FILES + 3; i++) {
        snprintf(name, sizeof name, "%s.%d", staging, i);
        CHECK_EQUAL(unlink(name), 0);
    }
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
    unlink(path);
}

/* Who holds a file that was closed leaves without a close, as one does that is killed: the delegate writes it and
 * ends. Its I/O thread sleeps by then, and nothing else wakes it. */
static void held_by_one_who_is_killed(void)
{
    const mpiox_server_options options = options_for(PAGE, 4);
    const int flags = MPIOX_FILE_WRITABLE | MPIOX_FILE_BEHIND | MPIOX_FILE_HIDDEN;
    char bytes[PAGE] = "bytes";
    running delegate;
    CHECK_EQUAL(mpiox_storage_staging_create(staging, false, 1), 0);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache), file = open_shared(cache, staging, flags, 1, 1);
    CHECK_EQUAL(access_bytes(cache, file, true, bytes, 0, PAGE / 2, NULL), MPIOX_OK);
    CHECK_EQUAL(ask(cache, 0), MPIOX_HOLD_HELD);
    CHECK_EQUAL(request(cache, MPIOX_OP_CLOSE, file, (mpiox_op_question){.close.how = MPIOX_CLOSING_BEHIND}, NULL),
                MPIOX_OK);
    usleep(PAUSE_US);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
    CHECK_EQUAL(read_whole(path, bytes, PAGE), PAGE / 2);
    unlink(path);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    snprintf(path, sizeof path, "%s/file", argv[1]);
    if (!mpiox_storage_staging_name(path, staging, sizeof staging))
        return 2;
    adopting();
    ending();
    opens_that_fail();
    held_by_one_who_is_killed();
    return check_exit();
}
