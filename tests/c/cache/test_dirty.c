/*
 * test_dirty.c - dirty marks, compared with an array of bytes; and by several threads at once.
 *
 *   test_dirty CASES SEED
 */
#include <pthread.h>

#include "check.h"
#include "mock_delegate.h"

enum { PAGE = 3 * 4096, THREADS = 4 };

static mock the;
static unsigned char expected[PAGE], source[PAGE];
static uint64_t seed;

typedef struct piece {
    int64_t offset, length, stride, count;
} piece;

static int64_t up_to(uint64_t *state, int64_t limit)
{
    return (int64_t)(mock_random(state) % (uint64_t)limit);
}

/* Pieces of all kinds inside the page: small and dense, of whole words, of whole blocks, overlapping. */
static piece any_piece(uint64_t *state)
{
    static const int64_t lengths[] = {1, 8, 63, 64, 65, 300, 4096, PAGE},
                         strides[] = {2, 8, 24, 32, 64, 130, 4096, 5000};
    piece found = {.length = 1 + up_to(state, lengths[mock_random(state) % 8])};
    if (mock_random(state) % 3 == 0)
        found.length = lengths[mock_random(state) % 8];
    found.offset = up_to(state, PAGE - found.length + 1);
    if (mock_random(state) % 3 == 0)
        found.offset = found.offset / 4096 * 4096;
    found.stride = 1 + up_to(state, strides[mock_random(state) % 8]);
    found.count = 1 + up_to(state, 1 + (PAGE - found.offset - found.length) / found.stride);
    if (found.count > 1 + 2 * PAGE / found.length) /* not too much of the same */
        found.count = 1 + 2 * PAGE / found.length;
    if (found.count > 1 && mock_random(state) % 4 == 0) { /* backwards */
        found.offset += (found.count - 1) * found.stride;
        found.stride = -found.stride;
    }
    return found;
}

static void check_runs(void)
{
    int64_t at = 0, offset = 0, length = 0, wrong = 0;
    while (mpiox_dirty_run(&the.cache, 1, at, &offset, &length)) {
        for (; at < offset; at++)
            wrong += expected[at] != 0;
        for (; at < offset + length; at++)
            wrong += expected[at] != 1;
        wrong += at < PAGE && expected[at] != 0; /* as long as can be */
    }
    for (; at < PAGE; at++)
        wrong += expected[at] != 0;
    CHECK_EQUAL(wrong, 0);
    at = up_to(&seed, PAGE);
    const bool any = mpiox_dirty_run(&the.cache, 1, at, &offset, &length);
    for (; at < PAGE && !expected[at]; at++) {
    }
    CHECK_EQUAL(any, at < PAGE);
    if (any)
        CHECK_EQUAL(offset, at);
    CHECK(!mpiox_dirty_run(&the.cache, 0, 0, &offset, &length)); /* the neighbours */
    CHECK(!mpiox_dirty_run(&the.cache, 2, 0, &offset, &length));
}

static void check_covers(void)
{
    const piece some = any_piece(&seed);
    bool all = true;
    for (int64_t i = 0; i < some.count; i++) {
        for (int64_t k = 0; k < some.length; k++)
            all = all && expected[some.offset + i * some.stride + k];
    }
    CHECK_EQUAL(mpiox_dirty_covers(&the.cache, 1, some.offset, some.length, some.stride, some.count), all);
    CHECK_EQUAL(mpiox_dirty_is_full(&the.cache, 1), memchr(expected, 0, PAGE) == NULL);
}

static void check_fill(void)
{
    unsigned char *page = (unsigned char *)mpiox_cache_bytes_of(&the.cache, 1);
    const int64_t length = up_to(&seed, PAGE + 1);
    int64_t wrong = 0;
    for (int64_t i = 0; i < PAGE; i++) {
        page[i] = (unsigned char)(i * 3 + 1);
        source[i] = (unsigned char)(i * 7 + 5);
    }
    mpiox_dirty_fill(&the.cache, 1, source, length);
    for (int64_t i = 0; i < PAGE; i++)
        wrong += page[i] != (expected[i] ? (unsigned char)(i * 3 + 1) : i < length ? source[i] : 0);
    CHECK_EQUAL(wrong, 0);
}

static void one_case(void)
{
    const int64_t marks = 1 + up_to(&seed, 12);
    memset(expected, 0, sizeof expected);
    for (int64_t m = 0; m < marks; m++) {
        const piece some = any_piece(&seed);
        int64_t fresh = 0;
        for (int64_t i = 0; i < some.count; i++) {
            for (int64_t k = 0; k < some.length; k++) {
                fresh += !expected[some.offset + i * some.stride + k];
                expected[some.offset + i * some.stride + k] = 1;
            }
        }
        CHECK_EQUAL(mpiox_dirty_mark(&the.cache, 1, some.offset, some.length, some.stride, some.count), fresh);
    }
    check_runs();
    check_covers();
    CHECK(mpiox_frame_try_exclusive(&the.cache, 1));
    check_fill();
    mpiox_dirty_clear(&the.cache, 1);
    mpiox_frame_end_exclusive(&the.cache, 1);
    memset(expected, 0, sizeof expected);
    check_runs();
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static pthread_barrier_t barrier;

typedef struct job {
    uint64_t random;
    int64_t fresh;
    piece pieces[8];
} job;

static void *mark_all(void *context)
{
    job *mine = context;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 8; i++) {
        const piece *p = &mine->pieces[i];
        mine->fresh += mpiox_dirty_mark(&the.cache, 1, p->offset, p->length, p->stride, p->count);
    }
    return NULL;
}

static void threads_at_once(void)
{
    pthread_t threads[THREADS];
    job jobs[THREADS];
    int64_t fresh = 0, dirty = 0;
    memset(expected, 0, sizeof expected);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int t = 0; t < THREADS; t++) {
        jobs[t].fresh = 0;
        for (int i = 0; i < 8; i++) {
            const piece p = jobs[t].pieces[i] = any_piece(&seed);
            for (int64_t k = 0; k < p.count; k++)
                memset(&expected[p.offset + k * p.stride], 1, (size_t)p.length);
        }
        if (pthread_create(&threads[t], NULL, mark_all, &jobs[t]) != 0)
            abort();
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        fresh += jobs[t].fresh;
    }
    pthread_barrier_destroy(&barrier);
    for (int64_t i = 0; i < PAGE; i++)
        dirty += expected[i];
    CHECK_EQUAL(fresh, dirty);
    check_runs();
    check_covers();
    mpiox_dirty_clear(&the.cache, 1);
    memset(expected, 0, sizeof expected);
    check_runs();
}

/* Every thread marks every fourth byte: all words are everybody's. */
static void same_words(void)
{
    pthread_t threads[THREADS];
    job jobs[THREADS];
    int64_t fresh = 0;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int t = 0; t < THREADS; t++) {
        jobs[t].fresh = 0;
        for (int i = 0; i < 8; i++) /* the second time in parts of other sizes, and nothing is new */
            jobs[t].pieces[i] = (piece){t, 1, THREADS, PAGE / THREADS / (i + 1)};
        if (pthread_create(&threads[t], NULL, mark_all, &jobs[t]) != 0)
            abort();
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        fresh += jobs[t].fresh;
    }
    pthread_barrier_destroy(&barrier);
    CHECK_EQUAL(fresh, PAGE);
    CHECK(mpiox_dirty_is_full(&the.cache, 1));
    mpiox_dirty_clear(&the.cache, 1);
}

int main(int argc, char **argv)
{
    const int64_t cases = argc > 1 ? atoll(argv[1]) : 1000;
    seed = argc > 2 ? (uint64_t)atoll(argv[2]) * 2 + 1 : 1;
    mock_make(&the, PAGE, 3, 1);
    for (int64_t i = 0; i < cases; i++)
        one_case();
    for (int64_t i = 0; i < cases / 4; i++)
        threads_at_once();
    for (int64_t i = 0; i < cases; i++)
        same_words();
    mock_free(&the);
    return check_exit();
}
