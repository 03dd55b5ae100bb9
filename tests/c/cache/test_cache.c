/*
 * test_cache.c - the layout of a segment, deferred errors, and what an access of a page promises case by case.
 *
 *   test_cache
 */
#include <errno.h>
#include <pthread.h>

#include "check.h"
#include "mock_delegate.h"

static mock the;

/* ---- layout ------------------------------------------------------------------------------------------------------ */

static void plans(void)
{
    mpiox_cache_geometry g = {.page_bytes = 4096, .cap_bytes = 4096, .slots = 16};
    CHECK_EQUAL(mpiox_cache_plan(&g), MPIOX_E_ARG);
    g.cap_bytes = 100 * 1024;
    CHECK_EQUAL(mpiox_cache_plan(&g), MPIOX_E_ARG);
    g.cap_bytes = 362 * 1024;
    CHECK_EQUAL(mpiox_cache_plan(&g), MPIOX_OK);
    CHECK(g.frames >= 1);
    CHECK_EQUAL(g.page_bytes, 4096);
    g.page_bytes = 15 * 4096; /* does not fit: a part of it that divides it */
    CHECK_EQUAL(mpiox_cache_plan(&g), MPIOX_OK);
    CHECK_EQUAL(15 * 4096 % g.page_bytes, 0);
    CHECK(g.page_bytes % 4096 == 0 && g.page_bytes < 15 * 4096 && g.frames >= 1);
    g.page_bytes = 4095;
    CHECK_EQUAL(mpiox_cache_plan(&g), MPIOX_E_ARG);
    g = (mpiox_cache_geometry){.page_bytes = 4096, .cap_bytes = 1 << 20, .slots = 0};
    CHECK_EQUAL(mpiox_cache_plan(&g), MPIOX_E_ARG);
    g = (mpiox_cache_geometry){.page_bytes = 1 << 20, .cap_bytes = INT64_C(1) << 40, .slots = 64};
    CHECK_EQUAL(mpiox_cache_plan(&g), MPIOX_OK);
    CHECK(g.frames > 900000 && g.frames < 1 << 20); /* most of the cap is pages */
}

/* As many frames as fit, not one more; nothing overlaps; nothing lies behind the cap. */
static void layouts(void)
{
    for (int64_t cap = 320 * 1024; cap < 1 << 20; cap += 12345) {
        mpiox_cache_geometry g = {.page_bytes = 8192, .cap_bytes = cap, .slots = 3};
        mpiox_cache cache, other;
        memset(&cache, 0, sizeof cache); /* what lies between members is compared, too */
        memset(&other, 0, sizeof other);
        CHECK_EQUAL(mpiox_cache_plan(&g), MPIOX_OK);
        char *base = mmap(NULL, (size_t)cap, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK_EQUAL(mpiox_cache_format(base, &g, 1, 2, &cache), MPIOX_OK);
        CHECK_EQUAL(mpiox_cache_attach(base, cap, &other), MPIOX_OK);
        CHECK(memcmp(&cache, &other, sizeof cache) == 0);
        CHECK_EQUAL(mpiox_futex_get(&cache.header->state), MPIOX_CACHE_STARTING);
        CHECK((char *)cache.ring >= base + sizeof(mpiox_cache_header));
        CHECK((char *)cache.buckets >= (char *)cache.ring + mpiox_ring_bytes(3, g.frames));
        CHECK((char *)cache.frames >= (char *)(cache.buckets + cache.header->bucket_count));
        CHECK((char *)cache.dirty >= (char *)(cache.frames + g.frames));
        CHECK((char *)cache.blocks >= (char *)(cache.dirty + g.frames * (g.page_bytes / 64)));
        CHECK(cache.pages >= (char *)(cache.blocks + g.frames * (g.page_bytes / 4096)));
        CHECK_EQUAL((uintptr_t)cache.pages % 4096, 0);
        CHECK(cache.pages + g.frames * g.page_bytes <= base + cap);
        CHECK(cap - cache.header->total_bytes < g.page_bytes + 4096 + 4096);
        g.frames++;
        CHECK_EQUAL(mpiox_cache_format(base, &g, 1, 2, &cache), MPIOX_E_ARG);
        munmap(base, (size_t)cap);
    }
}

/* Every word of the header that says where something lies may be anything. */
static void corrupt_headers(void)
{
    mpiox_cache cache;
    mock_make(&the, 4096, 3, 2);
    mpiox_cache_header *header = the.cache.header;
    const int64_t bytes = header->geometry.cap_bytes;
    int64_t *words = (int64_t *)(void *)header;
    CHECK_EQUAL(mpiox_cache_attach(header, bytes, &cache), MPIOX_OK);
    CHECK_EQUAL(mpiox_cache_attach(header, header->total_bytes - 1, &cache), MPIOX_E_CORRUPT);
    CHECK_EQUAL(mpiox_cache_attach(header, 100, &cache), MPIOX_E_CORRUPT);
    for (size_t i = 0; i < offsetof(mpiox_cache_header, delegate) / sizeof *words; i++) {
        static const int64_t values[] = {0, -1, 1, INT64_MAX, INT64_MIN, 0x100000001, 4096, INT32_MAX};
        const int64_t right = words[i];
        for (int k = 0; k < 8; k++) {
            words[i] = values[k];
            if (mpiox_cache_attach(header, bytes, &cache) == MPIOX_OK)
                CHECK(words[i] == right || &words[i] == &header->geometry.cap_bytes);
        }
        words[i] = right;
    }
    CHECK_EQUAL(mpiox_cache_attach(header, bytes, &cache), MPIOX_OK);
    mock_free(&the);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void errors(void)
{
    mpiox_error out[MPIOX_CACHE_ERRORS];
    mpiox_cache_counters sum;
    int more = 7;
    mock_make(&the, 4096, 1, 1);
    CHECK_EQUAL(mpiox_cache_take_errors(&the.cache, 5, out, MPIOX_CACHE_ERRORS, &more), 0);
    CHECK_EQUAL(more, 0);
    for (int i = 0; i < MPIOX_CACHE_ERRORS + 3; i++) {
        (void)mpiox_error_set(&out[0], MPIOX_E_IO, i, i, 1, "test");
        mpiox_cache_add_error(&the.cache, 5, &out[0]);
    }
    CHECK_EQUAL(mpiox_cache_take_errors(&the.cache, 4, out, MPIOX_CACHE_ERRORS, &more), 0);
    CHECK_EQUAL(mpiox_cache_take_errors(&the.cache, 5, out, 2, &more), 2);
    CHECK_EQUAL(more, 3);
    CHECK_EQUAL(out[1].offset, 1);
    CHECK(strcmp(out[1].what, "test") == 0 && out[1].sys_errno == 1);
    CHECK_EQUAL(mpiox_cache_take_errors(&the.cache, 5, out, MPIOX_CACHE_ERRORS, &more), MPIOX_CACHE_ERRORS - 2);
    CHECK_EQUAL(more, 0);
    CHECK_EQUAL(out[0].offset, 2);
    CHECK_EQUAL(out[MPIOX_CACHE_ERRORS - 3].offset, MPIOX_CACHE_ERRORS - 1);
    CHECK_EQUAL(mpiox_cache_take_errors(&the.cache, 5, out, MPIOX_CACHE_ERRORS, &more), 0);
    mpiox_cache_sum(&the.cache, &sum);
    CHECK_EQUAL(sum.errors, MPIOX_CACHE_ERRORS + 3);
    mock_free(&the);
}

/* Which bytes an error concerns that nobody has taken: bytes 100 to 109 of each thousand. */
static void errors_of_bytes(void)
{
    mpiox_error out[MPIOX_CACHE_ERRORS];
    int more;
    mock_make(&the, 4096, 1, 1);
    CHECK(!mpiox_cache_find_error(&the.cache, 5, 0, INT64_MAX, &out[0]));
    for (int i = 1; i <= MPIOX_CACHE_ERRORS; i++) {
        (void)mpiox_error_set(&out[0], MPIOX_E_IO, EFBIG, 1000 * i + 100, 10, "test");
        mpiox_cache_add_error(&the.cache, 5, &out[0]);
    }
    CHECK(mpiox_cache_find_error(&the.cache, 5, 2109, 2500, &out[0]));
    CHECK_EQUAL(out[0].offset, 2100);
    CHECK(out[0].sys_errno == EFBIG && out[0].code == MPIOX_E_IO && strcmp(out[0].what, "test") == 0);
    CHECK(!mpiox_cache_find_error(&the.cache, 5, 2110, 3100, &out[0]));
    CHECK(!mpiox_cache_find_error(&the.cache, 4, 0, INT64_MAX, &out[0]));
    (void)mpiox_error_set(&out[0], MPIOX_E_IO, EFBIG, 70000, 10, "one that is not kept");
    mpiox_cache_add_error(&the.cache, 5, &out[0]);
    CHECK(!mpiox_cache_find_error(&the.cache, 5, 2110, 3100, &out[0]));
    CHECK(mpiox_cache_find_error(&the.cache, 5, 70009, 70010, &out[0]));
    CHECK(!mpiox_cache_find_error(&the.cache, 5, 0, 1100, &out[0]));
    CHECK(!mpiox_cache_find_error(&the.cache, 5, 70010, INT64_MAX, &out[0]));
    CHECK_EQUAL(mpiox_cache_take_errors(&the.cache, 5, out, MPIOX_CACHE_ERRORS, &more), MPIOX_CACHE_ERRORS);
    CHECK_EQUAL(more, 1);
    CHECK(!mpiox_cache_find_error(&the.cache, 5, 0, INT64_MAX, &out[0]));
    mock_free(&the);
}

static void refuse(int64_t offset, int64_t length)
{
    mpiox_error refused;
    (void)mpiox_error_set(&refused, MPIOX_E_IO, EFBIG, offset, length, "test");
    mpiox_cache_add_error(&the.cache, 5, &refused);
}

/* Against a list of bytes: whatever was refused and not written since is found, and with few ranges nothing else. */
static void errors_mended_at_random(uint64_t seed)
{
    enum { BYTES = 200, STEPS = 1000 };
    bool refused[BYTES] = {false};
    uint64_t random = seed;
    mpiox_error out[MPIOX_CACHE_ERRORS];
    bool exact = true;
    int more;
    mock_make(&the, 4096, 1, 1);
    for (int step = 0; step < STEPS; step++) {
        const int64_t first = (int64_t)(mock_random(&random) % BYTES);
        const int64_t most = mock_random(&random) % 8 > 0 ? 6 : BYTES,
                      length = 1 + (int64_t)(mock_random(&random) % (uint64_t)most);
        const int64_t end = first + length < BYTES ? first + length : BYTES;
        const bool mends = mock_random(&random) % 2 > 0;
        if (mends)
            mpiox_cache_mend_errors(&the.cache, 5, first, end);
        else
            refuse(first, end - first);
        for (int64_t i = first; i < end; i++)
            refused[i] = !mends;
        exact = exact && !the.cache.header->files[5].refused_beyond;
        for (int64_t i = 0; i < BYTES; i++) {
            const bool found = mpiox_cache_find_error(&the.cache, 5, i, i + 1, &out[0]);
            CHECK(found || !refused[i]);
            CHECK(!exact || found == refused[i]);
        }
        if (mock_random(&random) % 40 == 0) {
            while (mpiox_cache_take_errors(&the.cache, 5, out, MPIOX_CACHE_ERRORS, &more) > 0)
                continue;
            memset(refused, 0, sizeof refused);
            exact = true;
        }
    }
    mpiox_cache_mend_errors(&the.cache, 5, 0, BYTES);
    CHECK_EQUAL(mpiox_cache_error_count(&the.cache, 5), 0);
    mock_free(&the);
}

static void errors_are_mended(void)
{
    mpiox_error out;
    mock_make(&the, 4096, 1, 1);
    refuse(1000, 100);
    mpiox_cache_mend_errors(&the.cache, 5, 1040, 1060);
    CHECK(mpiox_cache_find_error(&the.cache, 5, 1000, 1040, &out) && out.length == 40);
    CHECK(!mpiox_cache_find_error(&the.cache, 5, 1040, 1060, &out));
    CHECK(mpiox_cache_find_error(&the.cache, 5, 1060, 1100, &out) && out.offset == 1060 && out.length == 40);
    mpiox_cache_mend_errors(&the.cache, 5, 0, 2000);
    CHECK(!mpiox_cache_find_error(&the.cache, 5, 0, INT64_MAX, &out));
    for (int i = 0; i < 3 * MPIOX_CACHE_ERRORS; i++)
        refuse(10 * i, 5);
    for (int i = 0; i < MPIOX_CACHE_ERRORS; i++)
        mpiox_cache_mend_errors(&the.cache, 5, 10 * i, 10 * i + 5);
    CHECK(!mpiox_cache_find_error(&the.cache, 5, 0, 10 * MPIOX_CACHE_ERRORS, &out));
    CHECK(!mpiox_cache_find_error(&the.cache, 5, 10 * MPIOX_CACHE_ERRORS + 5, 10 * MPIOX_CACHE_ERRORS + 10, &out));
    CHECK(mpiox_cache_find_error(&the.cache, 5, 10 * MPIOX_CACHE_ERRORS, 10 * MPIOX_CACHE_ERRORS + 1, &out));
    CHECK(out.sys_errno == EFBIG);
    mpiox_cache_mend_errors(&the.cache, 5, 0, 1000);
    CHECK_EQUAL(mpiox_cache_error_count(&the.cache, 5), 0);
    for (int i = 0; i < MPIOX_CACHE_REFUSED + 2 * MPIOX_CACHE_ERRORS; i++) /* more than there is room for */
        refuse(10 * i, 5);
    CHECK(mpiox_cache_find_error(&the.cache, 5, 1000, 1001, &out));
    mpiox_cache_mend_errors(&the.cache, 5, 0, 1000000);
    CHECK(mpiox_cache_find_error(&the.cache, 5, 1000, 1001, &out)); /* none of them is known to be mended */
    {
        mpiox_error taken[MPIOX_CACHE_ERRORS];
        int more;
        CHECK(mpiox_cache_take_errors(&the.cache, 5, taken, MPIOX_CACHE_ERRORS, &more) == 1 && more > 0);
    }
    CHECK(!mpiox_cache_find_error(&the.cache, 5, 0, INT64_MAX, &out));
    refuse(-1, -1); /* without a place */
    CHECK(!mpiox_cache_find_error(&the.cache, 5, 0, 5000, &out));
    CHECK(mpiox_cache_find_error(&the.cache, 5, 0, INT64_MAX, &out));
    mpiox_cache_mend_errors(&the.cache, 5, 0, INT64_MAX);
    CHECK_EQUAL(mpiox_cache_error_count(&the.cache, 5), 1);
    mock_free(&the);
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

static int64_t known;
static mpiox_error error;

static int access_bytes(bool write, int64_t offset, int64_t length, bool beyond, void *bytes)
{
    const mpiox_page_access access = {.page = offset / the.cache.page_bytes,
                                      .write = write,
                                      .position = offset,
                                      .length = length,
                                      .memory = {.base = bytes}};
    known = -1;
    return mpiox_cache_access_page(&the.cache, &access, beyond, &known, &error);
}

/* A file of 5000 bytes "f", pages of 4096: page 1 is known to byte 904. */
static void reads_at_the_end(void)
{
    char bytes[4096], zeros[4096] = {0};
    const int64_t page = 4096;
    CHECK_EQUAL(access_bytes(false, page + 900, 4, false, bytes), MPIOX_OK);
    CHECK(memcmp(bytes, "ffff", 4) == 0);
    CHECK_EQUAL(access_bytes(false, page + 900, 5, false, bytes), MPIOX_PAGE_SHORT);
    CHECK_EQUAL(known, 904);
    CHECK_EQUAL(access_bytes(false, page + 900, 5, true, bytes), MPIOX_OK);
    CHECK(memcmp(bytes, "ffff", 5) == 0); /* and a zero */
    CHECK_EQUAL(access_bytes(true, page + 2000, 3, false, "abc"), MPIOX_OK);
    CHECK_EQUAL(access_bytes(false, page + 1990, 13, false, bytes), MPIOX_OK);
    CHECK(memcmp(bytes, "\0\0\0\0\0\0\0\0\0\0abc", 13) == 0);
    CHECK_EQUAL(access_bytes(false, page + 2000, 4, false, bytes), MPIOX_PAGE_SHORT);
    CHECK_EQUAL(known, 2003);
    CHECK_EQUAL(atomic_load(&the.cache.header->files[0].end), page + 2003);
    CHECK_EQUAL(access_bytes(false, 2 * page, 4096, false, bytes), MPIOX_PAGE_SHORT); /* nothing of it is known */
    CHECK_EQUAL(known, 0);
    CHECK_EQUAL(access_bytes(false, 2 * page, 4096, true, bytes), MPIOX_OK);
    CHECK(memcmp(bytes, zeros, 4096) == 0);
}

/* Bytes that were written need no filling; others of the same page do. */
static void reads_of_dirty_bytes(void)
{
    char bytes[4096];
    mpiox_cache_counters before, after;
    CHECK_EQUAL(access_bytes(true, 100, 10, false, "0123456789"), MPIOX_OK);
    const uint32_t frame = mpiox_frame_find(&the.cache, 0, 0);
    CHECK(frame != MPIOX_CACHE_NO_FRAME);
    CHECK_EQUAL(atomic_load(&the.cache.frames[frame].flags) & MPIOX_FRAME_FILLED, 0);
    CHECK_EQUAL(atomic_load(&the.cache.frames[frame].dirty), 10);
    CHECK_EQUAL(atomic_load(&the.cache.frames[frame].known_end), 110);
    CHECK_EQUAL(access_bytes(false, 102, 5, false, bytes), MPIOX_OK);
    CHECK(memcmp(bytes, "23456", 5) == 0);
    CHECK_EQUAL(atomic_load(&the.cache.frames[frame].flags) & MPIOX_FRAME_FILLED, 0);
    CHECK_EQUAL(access_bytes(false, 99, 12, false, bytes), MPIOX_OK);
    CHECK(memcmp(bytes, "f0123456789f", 12) == 0);
    CHECK(atomic_load(&the.cache.frames[frame].flags) & MPIOX_FRAME_FILLED);
    CHECK_EQUAL(atomic_load(&the.cache.frames[frame].dirty), 10);
    mpiox_cache_sum(&the.cache, &before);
    atomic_fetch_or(&the.cache.frames[frame].flags, MPIOX_FRAME_PREFETCHED);
    CHECK_EQUAL(access_bytes(false, 0, 1, false, bytes), MPIOX_OK);
    CHECK_EQUAL(access_bytes(false, 0, 4096, false, bytes), MPIOX_OK);
    mpiox_cache_sum(&the.cache, &after);
    CHECK_EQUAL(after.prefetch_used - before.prefetch_used, 1);
    CHECK_EQUAL(after.hits - before.hits, 2);
    CHECK_EQUAL(after.misses - before.misses, 0);
    CHECK_EQUAL(after.bytes_read - before.bytes_read, 4097);
    CHECK_EQUAL(mpiox_cache_has_page(&the.cache, 0, 0), MPIOX_FRAME_HIT);
    CHECK_EQUAL(mpiox_cache_has_page(&the.cache, 0, 77), MPIOX_FRAME_MISS);
}

/* A page that has become full is flushed without a word; then it can become full again. */
static void full_pages(void)
{
    char bytes[4096];
    memset(bytes, 'x', sizeof bytes);
    for (int round = 0; round < 3; round++) {
        for (int64_t i = 0; i < 4096; i += 512)
            CHECK_EQUAL(access_bytes(true, 3 * 4096 + i, 512, false, bytes), MPIOX_OK);
        const uint32_t frame = mpiox_frame_find(&the.cache, 0, 3);
        for (int i = 0; i < 10000 && atomic_load(&the.cache.frames[frame].dirty) > 0; i++)
            usleep(1000);
        CHECK_EQUAL(atomic_load(&the.cache.frames[frame].dirty), 0);
    }
    CHECK_EQUAL(pread(the.fd, bytes, 4096, 3 * 4096), 4096);
    CHECK(bytes[0] == 'x' && bytes[4095] == 'x');
}

static void accesses(void)
{
    char bytes[5000];
    pthread_t server;
    FILE *file = tmpfile();
    memset(bytes, 'f', sizeof bytes);
    CHECK(file != NULL && fwrite(bytes, 1, sizeof bytes, file) == sizeof bytes && fflush(file) == 0);
    mock_make(&the, 4096, 4, 1);
    the.fd = fileno(file);
    pthread_create(&server, NULL, mock_run, &the);
    CHECK_EQUAL(access_bytes(true, 0, 0, false, bytes), MPIOX_OK); /* nothing, and nothing is asked */
    CHECK(mpiox_frame_find(&the.cache, 0, 0) == MPIOX_CACHE_NO_FRAME);
    reads_at_the_end();
    reads_of_dirty_bytes();
    full_pages();
    atomic_store(&the.stop, true);
    pthread_join(server, NULL);
    CHECK_EQUAL(access_bytes(true, 0, 10, false, bytes), MPIOX_PAGE_GONE);
    CHECK_EQUAL(mpiox_cache_has_page(&the.cache, 0, 0), MPIOX_FRAME_GONE);
    CHECK_EQUAL(mpiox_cache_rescue(&the.cache), -1); /* it has not died */
    CHECK_EQUAL(mpiox_futex_get(&the.cache.header->state), MPIOX_CACHE_ENDED);
    mock_free(&the);
    fclose(file);
}

/* Requests that come before the delegate serves wait for it; threads beyond the last one are refused. */
static void begins(void)
{
    char bytes[10] = "";
    pthread_t server;
    FILE *file = tmpfile();
    mock_make(&the, 4096, 1, 1);
    the.fd = fileno(file);
    CHECK(mpiox_cache_is_serving(&the.cache, true));
    mpiox_slot *slot = mpiox_ring_take(&the.cache);
    slot->op = MPIOX_OP_AHEAD_ONLY;
    mpiox_ring_post(&the.cache, slot);
    pthread_create(&server, NULL, mock_run, &the);
    CHECK_EQUAL(access_bytes(true, 0, 10, false, bytes), MPIOX_OK);
    for (int i = 1; i < MPIOX_CACHE_MAX_THREADS; i++)
        CHECK_EQUAL(mpiox_cache_live(&the.cache), i);
    CHECK_EQUAL(mpiox_cache_live(&the.cache), MPIOX_E_FULL);
    for (int i = 1; i < MPIOX_CACHE_MAX_THREADS; i++)
        mpiox_cache_end_life(&the.cache, i);
    atomic_store(&the.stop, true);
    pthread_join(server, NULL);
    mock_free(&the);
    fclose(file);
}

int main(void)
{
    plans();
    layouts();
    corrupt_headers();
    errors();
    errors_of_bytes();
    errors_are_mended();
    for (uint64_t seed = 1; seed <= 5; seed++)
        errors_mended_at_random(seed);
    accesses();
    begins();
    return check_exit();
}
