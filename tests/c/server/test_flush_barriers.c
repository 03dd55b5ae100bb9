/*
 * test_flush_barriers.c - alone and many at once; dropping, discarding, closing; ranges of pages that change hands.
 *
 *   test_flush_barriers DIRECTORY
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

typedef struct flusher {
    const mpiox_cache *cache;
    int file;
    _Atomic int result; /* 1: not there yet */
    pthread_t thread;
} flusher;

static void *barrier(void *context)
{
    flusher *self = context;
    self->result = flush_file(self->cache, self->file, true, false);
    return NULL;
}

static void start_barrier(flusher *self, const mpiox_cache *cache, int file)
{
    *self = (flusher){.cache = cache, .file = file, .result = 1};
    pthread_create(&self->thread, NULL, barrier, self);
}

/* While the flush barrier of a file on a slow file system goes on, other files are opened, written, read, flushed and
 * closed, and pages of the slow file are used. */
static void side_by_side(void)
{
    static char bytes[PAGE], found[PAGE];
    mpiox_server_options options = options_for(PAGE, 16);
    running delegate;
    flusher slow_barrier;
    options.io_threads = 2;
    memset(bytes, 1, sizeof bytes);
    make_file(path_of("slow.dat"), NULL, 0);
    make_file(path_of("quick.dat"), NULL, 0);
    setenv("MPIOX_FAULT", "op=write,path=*slow.dat,delay_ms=2500", 1);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache);
    const int slow = open_shared(cache, path_of("slow.dat"), MPIOX_FILE_WRITABLE, 1, 1);
    CHECK_EQUAL(access_bytes(cache, slow, true, bytes, 0, 100, NULL), MPIOX_OK);
    start_barrier(&slow_barrier, cache, slow);
    const mpiox_frame *frame = &cache->frames[0];
    while (atomic_load(&((mpiox_frame *)frame)->busy) == 0) /* the first frames are taken first */
        usleep(1000);
    const int quick = open_shared(cache, path_of("quick.dat"), MPIOX_FILE_WRITABLE | MPIOX_FILE_READABLE, 1, 1);
    CHECK_EQUAL(access_bytes(cache, quick, true, bytes, 50, 100, NULL), MPIOX_OK);
    CHECK_EQUAL(access_bytes(cache, slow, true, bytes, 200, 100, NULL), MPIOX_OK);
    CHECK_EQUAL(flush_file(cache, quick, true, true), MPIOX_OK);
    CHECK_EQUAL(access_bytes(cache, quick, false, found, 50, 100, NULL), MPIOX_OK);
    CHECK(memcmp(bytes, found, 100) == 0);
    CHECK_EQUAL(close_shared(cache, quick), MPIOX_OK);
    CHECK_EQUAL(slow_barrier.result, 1);
    pthread_join(slow_barrier.thread, NULL);
    CHECK_EQUAL(slow_barrier.result, MPIOX_OK);
    unsetenv("MPIOX_FAULT");
    CHECK_EQUAL(close_shared(cache, slow), MPIOX_OK);
    CHECK_EQUAL(read_whole(path_of("slow.dat"), found, PAGE), 300);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

typedef struct hammer {
    const mpiox_cache *cache;
    int file;
    int64_t offset;
    _Atomic bool stop;
    _Atomic int64_t writes;
    pthread_t thread;
} hammer;

static void *write_one_page(void *context)
{
    hammer *self = context;
    char bytes[64] = {1};
    while (!self->stop) {
        if (access_bytes(self->cache, self->file, true, bytes, self->offset, 64, NULL) != MPIOX_OK)
            abort();
        atomic_fetch_add(&self->writes, 1);
    }
    return NULL;
}

/* Flush barriers, also dropping ones, come to an end although a page is written again all the time. */
static void restless_page(void)
{
    char byte = 7, found = 0;
    const mpiox_server_options options = options_for(PAGE, 8);
    running delegate;
    hammer hammers[2];
    make_file(path_of("restless.dat"), NULL, 0);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache);
    const int file = open_shared(cache, path_of("restless.dat"), MPIOX_FILE_WRITABLE, 1, 1);
    for (int i = 0; i < 2; i++) {
        hammers[i] = (hammer){.cache = cache, .file = file, .offset = 64 * i};
        pthread_create(&hammers[i].thread, NULL, write_one_page, &hammers[i]);
    }
    for (int i = 0; i < 40; i++) {
        byte = (char)(i + 1);
        CHECK_EQUAL(access_bytes(cache, file, true, &byte, 1000, 1, NULL), MPIOX_OK);
        CHECK_EQUAL(flush_file(cache, file, i % 5 == 0, i % 3 == 0), MPIOX_OK);
        char whole[PAGE];
        CHECK(read_whole(path_of("restless.dat"), whole, PAGE) >= 1001);
        found = whole[1000];
        CHECK_EQUAL(found, byte);
    }
    for (int i = 0; i < 2; i++) {
        hammers[i].stop = true;
        pthread_join(hammers[i].thread, NULL);
    }
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* More flush barriers at once than the delegate can have under way. */
static void many(void)
{
    enum { BARRIERS = 100 };
    static flusher flushers[BARRIERS];
    char byte = 1;
    mpiox_server_options options = options_for(PAGE, 8);
    running delegate;
    options.geometry.slots = 128;
    options.geometry.cap_bytes += 128 * sizeof(mpiox_slot);
    make_file(path_of("many.dat"), NULL, 0);
    setenv("MPIOX_FAULT", "op=write,path=*many.dat,delay_ms=200", 1);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache), file = open_shared(cache, path_of("many.dat"), MPIOX_FILE_WRITABLE, 1, 1);
    CHECK_EQUAL(access_bytes(cache, file, true, &byte, 0, 1, NULL), MPIOX_OK);
    for (int i = 0; i < BARRIERS; i++)
        start_barrier(&flushers[i], cache, file);
    for (int i = 0; i < BARRIERS; i++) {
        pthread_join(flushers[i].thread, NULL);
        CHECK_EQUAL(flushers[i].result, MPIOX_OK);
    }
    unsetenv("MPIOX_FAULT");
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* After a dropping flush barrier the file may be changed by other means: nothing of it is cached, also not what a
 * client named for reading ahead just before the flush barrier. */
static void drop(void)
{
    static char bytes[20 * PAGE], found[20 * PAGE];
    mpiox_server_options options = options_for(PAGE, 64);
    running delegate;
    options.prefetch_pages = 8;
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache);
    for (int round = 0; round < 30; round++) {
        memset(bytes, 2 * round + 1, sizeof bytes);
        make_file(path_of("drop.dat"), bytes, sizeof bytes);
        const int file = open_shared(cache, path_of("drop.dat"), MPIOX_FILE_READABLE, 1, 1);
        CHECK_EQUAL(access_bytes(cache, file, false, found, 0, 3 * PAGE, NULL), MPIOX_OK);
        for (int i = 0; i < 2; i++) {
            mpiox_slot *slot = mpiox_ring_take(cache);
            slot->op = MPIOX_OP_AHEAD_ONLY;
            slot->file = file;
            slot->question.ahead_only.count = 8;
            for (int k = 0; k < 8; k++)
                slot->question.ahead_only.page[k] = 3 + 8 * i + k;
            mpiox_ring_post(cache, slot);
        }
        CHECK_EQUAL(flush_file(cache, file, false, true), MPIOX_OK);
        memset(bytes, 2 * round + 2, sizeof bytes);
        make_file(path_of("drop.dat"), bytes, sizeof bytes);
        CHECK_EQUAL(access_bytes(cache, file, false, found, 0, sizeof found, NULL), MPIOX_OK);
        CHECK(memcmp(bytes, found, sizeof found) == 0);
        CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    }
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* A flush barrier of some pages leaves the others; bytes that are discarded never reach the file, and those before them
 * do. */
static void ranges_and_discarding(void)
{
    static char bytes[8 * PAGE], found[8 * PAGE];
    const mpiox_server_options options = options_for(PAGE, 16);
    running delegate;
    memset(bytes, 1, sizeof bytes);
    make_file(path_of("part.dat"), NULL, 0);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache);
    const int file = open_shared(cache, path_of("part.dat"), MPIOX_FILE_READABLE | MPIOX_FILE_WRITABLE, 1, 1);
    for (int i = 0; i < 8; i++)
        CHECK_EQUAL(access_bytes(cache, file, true, bytes, i * PAGE, 3000, NULL), MPIOX_OK);
    CHECK_EQUAL(request(cache, MPIOX_OP_FLUSH, file, (mpiox_op_question){.flush = {2, 4}}, NULL), MPIOX_OK);
    CHECK_EQUAL(read_whole(path_of("part.dat"), found, sizeof found), 3 * PAGE + 3000);
    CHECK_EQUAL(found[0], 0);
    CHECK_EQUAL(found[2 * PAGE], 1);
    CHECK_EQUAL(request(cache, MPIOX_OP_DISCARD, file, (mpiox_op_question){.discard.byte = 5 * PAGE + 1000}, NULL),
                MPIOX_OK);
    CHECK_EQUAL(atomic_load(&cache->header->files[file].end), 5 * PAGE + 1000);
    CHECK_EQUAL(access_bytes(cache, file, true, bytes, 5 * PAGE + 2000, 10, NULL), MPIOX_OK);
    CHECK_EQUAL(flush_file(cache, file, false, false), MPIOX_OK);
    memset(found, 9, sizeof found);
    CHECK_EQUAL(read_whole(path_of("part.dat"), found, sizeof found), 5 * PAGE + 2010);
    CHECK_EQUAL(found[0], 1);
    CHECK_EQUAL(found[5 * PAGE + 999], 1);
    CHECK_EQUAL(found[5 * PAGE + 1000], 0);
    CHECK_EQUAL(found[5 * PAGE + 1999], 0);
    CHECK_EQUAL(found[5 * PAGE + 2009], 1);
    CHECK_EQUAL(access_bytes(cache, file, false, found, 6 * PAGE, PAGE, NULL), MPIOX_OK);
    CHECK_EQUAL(found[0], 0);
    CHECK_EQUAL(request(cache, MPIOX_OP_DISCARD, file, nothing, NULL), MPIOX_OK);
    CHECK_EQUAL(truncate(path_of("part.dat"), 0), 0);
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    CHECK_EQUAL(read_whole(path_of("part.dat"), found, sizeof found), 0);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* ---- two delegates ----------------------------------------------------------------------------------------------- */

typedef struct owner_asker {
    const mpiox_cache *cache;
    int file;
    _Atomic int result; /* -100: none yet */
    pthread_t thread;
} owner_asker;

static void *write_page_0(void *context)
{
    owner_asker *self = context;
    static char bytes[10];
    self->result = access_bytes(self->cache, self->file, true, bytes, 0, sizeof bytes, NULL);
    return NULL;
}

/* A range of pages goes from one delegate to another: its bytes reach the file before the other has it, requests wait
 * meanwhile, and are sent on afterwards. */
static void change_hands(void)
{
    static char bytes[PAGE], found[PAGE];
    mpiox_server_options options = options_for(PAGE, 16);
    running delegates[2];
    const mpiox_cache *cache[2];
    int id[2], file[2];
    const int flags = MPIOX_FILE_READABLE | MPIOX_FILE_WRITABLE;
    memset(bytes, 1, sizeof bytes);
    make_file(path_of("hands.dat"), NULL, 0);
    options.delegates = 2;
    for (int i = 0; i < 2; i++) {
        options.delegate = i;
        cache[i] = start_server(&delegates[i], &options);
        id[i] = mpiox_ring_join(cache[i]);
        file[i] = open_shared(cache[i], path_of("hands.dat"), flags, 1, 2);
    }
    CHECK_EQUAL(access_bytes(cache[0], file[0], true, bytes, 10, 100, NULL), MPIOX_OK);
    CHECK_EQUAL(access_bytes(cache[0], file[0], true, bytes, PAGE, 100, NULL), MPIOX_PAGE_MOVED);
    CHECK_EQUAL(access_bytes(cache[1], file[1], true, bytes, PAGE + 10, 100, NULL), MPIOX_OK);
    CHECK_EQUAL(request(cache[1], MPIOX_OP_MIGRATE, file[1], nothing, NULL), MPIOX_E_ARG); /* not its own */
    CHECK_EQUAL(request(cache[0], MPIOX_OP_MIGRATE, file[0], (mpiox_op_question){.migrate.to = 1}, NULL), MPIOX_OK);
    CHECK_EQUAL(read_whole(path_of("hands.dat"), found, PAGE), 110);
    /* Whoever asks the delegate is sent away, so that no slot is kept; an access waits by itself. */
    CHECK_EQUAL(request(cache[0], MPIOX_OP_PAGE, file[0], nothing, NULL), MPIOX_PAGE_MOVED);
    owner_asker asker = {.cache = cache[0], .file = file[0], .result = -100};
    pthread_create(&asker.thread, NULL, write_page_0, &asker);
    CHECK_EQUAL(request(cache[0], MPIOX_OP_PING, 0, nothing, NULL), MPIOX_OK);
    usleep(20 * 1000);
    CHECK_EQUAL(asker.result, -100);
    CHECK_EQUAL(request(cache[1], MPIOX_OP_COMMIT, file[1], (mpiox_op_question){.commit.version = 1}, NULL), MPIOX_OK);
    CHECK_EQUAL(request(cache[0], MPIOX_OP_MIGRATE, file[0],
                        (mpiox_op_question){.migrate = {.to = 1, .step = MPIOX_MIGRATE_END}}, NULL),
                MPIOX_OK);
    pthread_join(asker.thread, NULL);
    CHECK_EQUAL(asker.result, MPIOX_PAGE_MOVED);
    CHECK_EQUAL(access_bytes(cache[0], file[0], true, bytes, 0, 10, NULL), MPIOX_PAGE_MOVED);
    CHECK_EQUAL(access_bytes(cache[1], file[1], false, found, 10, 100, NULL), MPIOX_OK);
    CHECK(memcmp(bytes, found, 100) == 0);
    CHECK_EQUAL(access_bytes(cache[1], file[1], true, bytes, 0, 10, NULL), MPIOX_OK);
    mpiox_cache_counters sums[2];
    for (int i = 0; i < 2; i++) {
        mpiox_cache_sum(cache[i], &sums[i]);
        CHECK_EQUAL(close_shared(cache[i], file[i]), MPIOX_OK);
        leave(cache[i], id[i]);
    }
    CHECK_EQUAL(counter(&sums[0].moved_out), 1);
    CHECK_EQUAL(counter(&sums[1].moved_in), 1);
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(end_server(&delegates[i]), MPIOX_OK);
    CHECK_EQUAL(read_whole(path_of("hands.dat"), found, PAGE), PAGE);
    for (int i = 0; i < 110; i++)
        CHECK_EQUAL(found[i], 1);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    snprintf(folder, sizeof folder, "%s", argv[1]);
    side_by_side();
    restless_page();
    many();
    drop();
    ranges_and_discarding();
    change_hands();
    return check_exit();
}
