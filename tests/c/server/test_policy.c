/*
 * test_policy.c - what reaches the file system: how large, in which order, how often; what stays in the cache; what is
 * read ahead; how much memory it takes.
 *
 *   test_policy PATH
 */
#include "harness.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

enum { PAGE = 65536, SMALL = 4096, TOGETHER = 16, MOST_CALLS = 100000, PATIENCE = 600000 /* of 100 us */ };

/* Every write of the process goes through these instead of the C library's. */
typedef struct write_call {
    int64_t offset, bytes;
} write_call;

static write_call calls[MOST_CALLS];
static _Atomic int call_count;
static _Atomic int call_delay_us;
static _Atomic bool calls_wait; /* until this is false again */

static void record(int64_t offset, int64_t bytes)
{
    const int i = atomic_fetch_add(&call_count, 1);
    if (i < MOST_CALLS)
        calls[i] = (write_call){offset, bytes};
    while (calls_wait)
        usleep(1000);
    if (call_delay_us > 0)
        usleep((useconds_t)call_delay_us);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
    const ssize_t done = syscall(SYS_pwrite64, fd, bytes, count, offset);
    record(offset, done);
    return done;
}

ssize_t pwritev(int fd, const struct iovec *iov, int count, off_t offset)
{
    const ssize_t done = syscall(SYS_pwritev, fd, iov, count, (long)offset, 0L);
    record(offset, done);
    return done;
}

static const char *path;

static mpiox_cache_counters sum_of(const mpiox_cache *cache)
{
    mpiox_cache_counters sum;
    mpiox_cache_sum(cache, &sum);
    return sum;
}

/* ---- large requests from small pieces ---------------------------------------------------------------------------- */

typedef struct piece_writer {
    const mpiox_cache *cache;
    int file, index, count;
    int64_t bytes, piece;
    pthread_barrier_t *barrier;
    pthread_t thread;
} piece_writer;

static void *write_pieces(void *context)
{
    const piece_writer *self = context;
    char bytes[4096];
    const int id = mpiox_ring_join(self->cache);
    memset(bytes, self->index + 1, sizeof bytes);
    pthread_barrier_wait(self->barrier);
    for (int64_t at = self->index * self->piece, pages = 0; at < self->bytes; at += self->count * self->piece) {
        if (at / PAGE / TOGETHER > pages) { /* on a machine with too few cores one may fall behind by any distance */
            pages = at / PAGE / TOGETHER;
            pthread_barrier_wait(self->barrier);
        }
        const int64_t length = at + self->piece <= self->bytes ? self->piece : self->bytes - at;
        if (access_bytes(self->cache, self->file, true, bytes, at, length, NULL) != MPIOX_OK)
            abort();
    }
    pthread_barrier_wait(self->barrier);
    leave(self->cache, id);
    return NULL;
}

/* At least 95 % of the bytes of interleaved small writes reach the file system in requests of a page or more, and each
 * byte once; the delegate's own histogram says the same. */
static void interleaved(int flags)
{
    enum { WRITERS = 4 };
    const int64_t bytes = 24 * INT64_C(1048576) + 4321;
    mpiox_server_options options = options_for(PAGE, 64);
    running delegate;
    piece_writer writers[WRITERS];
    pthread_barrier_t barrier;
    make_file(path, NULL, 0);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache), file = open_shared(cache, path, flags, 1, 1);
    pthread_barrier_init(&barrier, NULL, WRITERS);
    call_count = 0;
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (piece_writer){cache, file, i, WRITERS, bytes, 500, &barrier, 0};
        pthread_create(&writers[i].thread, NULL, write_pieces, &writers[i]);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    int64_t large = 0, all = 0, histogram = 0, histogram_large = 0;
    for (int i = 0; i < call_count && i < MOST_CALLS; i++) {
        all += calls[i].bytes;
        large += calls[i].bytes >= PAGE ? calls[i].bytes : 0;
    }
    const mpiox_cache_counters sum = sum_of(cache);
    for (int k = 0; k < 48; k++) {
        histogram += counter(&sum.flush_size_log2[k]);
        histogram_large += k >= 16 ? counter(&sum.flush_size_log2[k]) : 0;
    }
    printf("interleaved: %d requests, %.2f %% of %lld bytes in large ones\n", (int)call_count,
           100.0 * (double)large / (double)all, (long long)all);
    CHECK(large >= bytes * 95 / 100);
    CHECK_EQUAL(all, bytes);
    CHECK_EQUAL(counter(&sum.flush_bytes), bytes);
    CHECK_EQUAL(counter(&sum.flush_requests), call_count);
    CHECK_EQUAL(histogram, call_count);
    CHECK(histogram_large * PAGE >= bytes * 95 / 100 || histogram_large > 0);
    static char found[1 << 16];
    const int fd = open(path, O_RDONLY);
    for (int64_t at = 0, count; (count = pread(fd, found, sizeof found, at)) > 0; at += count) {
        for (int64_t i = 0; i < count; i++) {
            if (found[i] != (at + i) / 500 % WRITERS + 1) {
                CHECK_EQUAL(at + i, -1);
                break;
            }
        }
    }
    close(fd);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* Pages written in any order while the file system is busy are written in file order, neighbours in one request. */
static void file_order(void)
{
    static char bytes[SMALL];
    const mpiox_server_options options = options_for(SMALL, 64);
    running delegate;
    make_file(path, NULL, 0);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache), file = open_shared(cache, path, MPIOX_FILE_WRITABLE, 1, 1);
    call_count = 0;
    calls_wait = true; /* the first request, for page 40, until the others are there */
    CHECK_EQUAL(access_bytes(cache, file, true, bytes, 40 * SMALL, SMALL, NULL), MPIOX_OK);
    while (call_count == 0)
        usleep(1000);
    for (int i = 0; i < 30; i++) /* pages 0 to 9, 12 to 21, 50 to 59, mixed */
        CHECK_EQUAL(
            access_bytes(cache, file, true, bytes, (int64_t[]){9, 21, 59}[i % 3] * SMALL - i / 3 * SMALL, SMALL, NULL),
            MPIOX_OK);
    usleep(500 * 1000); /* the delegate's thread takes them over */
    calls_wait = false;
    CHECK_EQUAL(flush_file(cache, file, false, false), MPIOX_OK);
    CHECK_EQUAL(call_count, 4);
    const int64_t expected[] = {40, 50, 0, 12}; /* upwards from where it was, then from the start */
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(calls[i].offset, expected[i] * SMALL);
        CHECK_EQUAL(calls[i].bytes, (i == 0 ? 1 : 10) * SMALL);
    }
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* ---- what stays in the cache ------------------------------------------------------------------------------------- */

static int64_t fills_of(const mpiox_cache *cache)
{
    const mpiox_cache_counters sum = sum_of(cache);
    return counter(&sum.fills);
}

static int64_t flushes_of(const mpiox_cache *cache)
{
    const mpiox_cache_counters sum = sum_of(cache);
    return counter(&sum.flushes);
}

static int64_t pages_read(const mpiox_cache *cache)
{
    const mpiox_cache_counters sum = sum_of(cache);
    return counter(&sum.fills) + counter(&sum.prefetched);
}

/* Pages that are used again and again survive one pass over a file that is much larger than the cache. */
static void scan(void)
{
    enum { FRAMES = 64, HOT = 12, FILE_PAGES = 600 };
    static char bytes[SMALL];
    const mpiox_server_options options = options_for(SMALL, FRAMES);
    running delegate;
    make_file(path, NULL, 0);
    CHECK_EQUAL(truncate(path, (int64_t)FILE_PAGES * SMALL), 0);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache), file = open_shared(cache, path, MPIOX_FILE_READABLE, 1, 1);
    int cold = 100;
    for (int round = 0; round < 12; round++) { /* hot pages leave and come back, among others */
        for (int i = 0; i < HOT; i++)
            CHECK_EQUAL(access_bytes(cache, file, false, bytes, i * SMALL, 100, NULL), MPIOX_OK);
        for (int i = 0; i < 20; i++)
            CHECK_EQUAL(access_bytes(cache, file, false, bytes, (int64_t)cold++ * SMALL, 100, NULL), MPIOX_OK);
    }
    for (; cold < FILE_PAGES; cold++)
        CHECK_EQUAL(access_bytes(cache, file, false, bytes, (int64_t)cold * SMALL, 100, NULL), MPIOX_OK);
    const int64_t before = fills_of(cache);
    for (int i = 0; i < HOT; i++)
        CHECK_EQUAL(access_bytes(cache, file, false, bytes, i * SMALL, 100, NULL), MPIOX_OK);
    CHECK_EQUAL(fills_of(cache) - before, 0);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* A stream of whole pages, written only, goes round in few frames: the others are never touched. */
static void few_frames(int flags, bool all_touched)
{
    enum { FRAMES = 32, PAGES = 400 };
    static char bytes[SMALL];
    const mpiox_server_options options = options_for(SMALL, FRAMES);
    running delegate;
    int touched = 0;
    make_file(path, NULL, 0);
    memset(bytes, 1, sizeof bytes);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache), file = open_shared(cache, path, flags, 1, 1);
    for (int i = 0; i < PAGES; i++) {
        CHECK_EQUAL(access_bytes(cache, file, true, bytes, (int64_t)i * SMALL, SMALL, NULL), MPIOX_OK);
        for (int tries = 0; tries < PATIENCE && flushes_of(cache) + 4 < i; tries++)
            usleep(100); /* the file system keeps up */
    }
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    for (int32_t frame = 0; frame < cache->frame_count; frame++)
        touched += *mpiox_cache_bytes_of(cache, (uint32_t)frame) != 0;
    CHECK(touched > 0 && touched <= (all_touched ? cache->frame_count : cache->frame_count - 1));
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* ---- reading ahead ----------------------------------------------------------------------------------------------- */

/* A sequential reader finds nearly all pages there; one that names pages which it never reads is not followed for long.
 * */
static void reading_ahead(bool sequential)
{
    enum { FRAMES = 64, FILE_PAGES = 4000, READS = 1500 };
    static char bytes[SMALL];
    mpiox_server_options options = options_for(SMALL, FRAMES);
    running delegate;
    uint32_t random = 17;
    options.prefetch_pages = 4;
    make_file(path, NULL, 0);
    CHECK_EQUAL(truncate(path, (int64_t)FILE_PAGES * SMALL), 0);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache), file = open_shared(cache, path, MPIOX_FILE_READABLE, 1, 1);
    for (int i = 0; i < READS; i++) {
        const int64_t page = sequential ? i : (int64_t)(next_random(&random) % (FILE_PAGES - 5));
        const int64_t ahead[4] = {page + 1, page + 2, page + 3, page + 4};
        access_how how = {.ahead = ahead, .ahead_count = 4};
        CHECK_EQUAL(access_bytes(cache, file, false, bytes, page * SMALL + 1000, 100, &how), MPIOX_OK);
        for (int tries = 0; sequential && tries < 50 && pages_read(cache) < i + 2; tries++)
            usleep(100); /* the next one is there, but for one that was not named yet */
    }
    const mpiox_cache_counters sum = sum_of(cache);
    const int64_t read_ahead = counter(&sum.prefetched), used = counter(&sum.prefetch_used);
    printf("%s: %lld pages on demand, %lld ahead, %lld of them used, %lld wasted\n", sequential ? "in order" : "random",
           (long long)counter(&sum.fills), (long long)read_ahead, (long long)used,
           (long long)counter(&sum.prefetch_wasted));
    if (sequential) {
        CHECK(used >= READS * 3 / 4);
        CHECK(counter(&sum.prefetch_wasted) <= 8);
    } else {
        CHECK(read_ahead <= 300); /* of 6000 that were named */
    }
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

static void name_next(const mpiox_cache *cache, int file, const mpiox_op_ahead *ahead)
{
    mpiox_slot *slot = mpiox_ring_take(cache);
    slot->op = MPIOX_OP_AHEAD_ONLY;
    slot->file = file;
    slot->question.ahead_only = *ahead;
    mpiox_ring_post(cache, slot);
    CHECK_EQUAL(request(cache, MPIOX_OP_PING, 0, nothing, NULL), MPIOX_OK);
}

/* Reading ahead takes no frame from dirty pages, and no more than half of all; none for a page whose offset no file
 * has. */
static void ahead_is_bounded(void)
{
    enum { FRAMES = 16 };
    const mpiox_op_ahead beyond = {4, {-1, MPIOX_OP_MAX_OFFSET / SMALL + 1, INT64_MAX / SMALL + 1, INT64_MAX}};
    mpiox_server_options options = options_for(SMALL, FRAMES);
    running delegate;
    options.prefetch_pages = 8;
    make_file(path, NULL, 0);
    CHECK_EQUAL(truncate(path, 1000 * SMALL), 0);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache);
    const int file = open_shared(cache, path, MPIOX_FILE_READABLE | MPIOX_FILE_WRITABLE, 1, 1);
    name_next(cache, file, &beyond);
    for (int i = 0; i < FRAMES; i++)
        CHECK_EQUAL(atomic_load(&cache->frames[i].file), -1);
    for (int i = 0; i < 10; i++) {
        mpiox_op_ahead pages = {.count = 8};
        for (int k = 0; k < 8; k++)
            pages.page[k] = 100 + 8 * i + k;
        name_next(cache, file, &pages);
    }
    CHECK_EQUAL(flush_file(cache, file, false, false), MPIOX_OK);
    int ahead = 0;
    for (int tries = 0; tries < 200 && ahead < cache->frame_count / 2; tries++) {
        const mpiox_cache_counters sum = sum_of(cache);
        ahead = (int)counter(&sum.prefetched);
        usleep(10 * 1000);
    }
    CHECK_EQUAL(ahead, cache->frame_count / 2);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int64_t status_kib(const char *key)
{
    char line[256];
    int64_t kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0)
            kib = atoll(line + strlen(key));
    }
    fclose(status);
    return kib;
}

/* While 64 MiB go through a cache of 4 MiB to a slow file system, the process grows by the segment and little else. */
static void memory(void)
{
    enum { MIB = 1 << 20 };
    mpiox_server_options options = {.geometry = {.page_bytes = PAGE, .cap_bytes = 4 * MIB, .slots = 16},
                                    .delegates = 1,
                                    .io_threads = 4,
                                    .prefetch_pages = 4,
                                    .patience_s = 20};
    static char bytes[PAGE];
    running delegate;
    memset(bytes, 1, sizeof bytes);
    make_file(path, NULL, 0);
    const int64_t before = status_kib("VmRSS:");
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache);
    const int file = open_shared(cache, path, MPIOX_FILE_READABLE | MPIOX_FILE_WRITABLE, 1, 1);
    CHECK(cache->header->total_bytes <= 4 * MIB);
    CHECK_EQUAL(cache->header->geometry.cap_bytes, 4 * MIB);
    int64_t most = 0;
    call_delay_us = 200;
    for (int64_t at = 0; at < 64 * MIB; at += PAGE) {
        CHECK_EQUAL(access_bytes(cache, file, true, bytes, at, at % (3 * PAGE) == 0 ? PAGE / 2 : PAGE, NULL), MPIOX_OK);
        if (at % MIB == 0) {
            const int64_t now = status_kib("VmRSS:");
            most = now > most ? now : most;
        }
    }
    for (int64_t at = 0; at < 64 * MIB; at += PAGE)
        CHECK_EQUAL(access_bytes(cache, file, false, bytes, at, PAGE, NULL), MPIOX_OK);
    call_delay_us = 0;
    const int64_t now = status_kib("VmRSS:");
    most = now > most ? now : most;
    printf("memory: grew by %lld KiB at most\n", (long long)(most - before));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(most - before <= 4 * 1024 + 1024);
#endif
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    path = argv[1];
    memory();
    interleaved(MPIOX_FILE_WRITABLE);
    interleaved(MPIOX_FILE_WRITABLE | MPIOX_FILE_READABLE);
    file_order();
    scan();
    few_frames(MPIOX_FILE_WRITABLE, false);
    few_frames(MPIOX_FILE_WRITABLE | MPIOX_FILE_READABLE, true);
    reading_ahead(true);
    reading_ahead(false);
    ahead_is_bounded();
    return check_exit();
}
