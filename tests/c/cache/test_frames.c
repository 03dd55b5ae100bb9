/*
 * test_frames.c - holds and exact misses while the delegate changes the table, exclusive use, ranges that move.
 *
 *   test_frames ROUNDS SEED
 */
#include <pthread.h>

#include "check.h"
#include "mock_delegate.h"

enum { PAGE = 4096, FRAMES = 24, THREADS = 3, LASTING = 4, COMING = 40, ABSENT = 1000, DEADLINE_S = 60 };

static mock the;
static int64_t rounds;
static _Atomic bool over;
static _Atomic int64_t wrong, hits, misses, moves;

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* On a busy machine the table may have changed so often before any thread has looked. */
static bool looked(double begun)
{
    return (hits > 0 && misses > 0) || mpiox_now() - begun > DEADLINE_S;
}

/* Pages 0 .. LASTING - 1 are always there, pages from ABSENT on never, those between come and go. */
static void *look_up(void *context)
{
    uint64_t random = (uint64_t)(uintptr_t)context * 2 + 1;
    while (!atomic_load(&over)) {
        const int64_t kind = (int64_t)(mock_random(&random) % 3), some = (int64_t)(mock_random(&random) % COMING);
        const int64_t page = kind == 0 ? some % LASTING : kind == 1 ? ABSENT + some : LASTING + some;
        uint32_t frame = MPIOX_CACHE_NO_FRAME;
        if (mock_random(&random) % 4 == 0) {
            const int found = mpiox_frame_look(&the.cache, 0, page);
            wrong += kind == 0 ? found != MPIOX_FRAME_HIT : kind == 1 && found != MPIOX_FRAME_MISS;
            continue;
        }
        const int found = mpiox_frame_pin(&the.cache, 0, page, true, &frame);
        hits += found == MPIOX_FRAME_HIT;
        misses += found == MPIOX_FRAME_MISS;
        wrong += kind == 0 ? found != MPIOX_FRAME_HIT : kind == 1 && found != MPIOX_FRAME_MISS;
        if (found != MPIOX_FRAME_HIT)
            continue;
        for (int i = 0; i < 20; i++) /* nobody may take it away while it is held */
            wrong += atomic_load(&the.cache.frames[frame].page) != page ||
                     *(int64_t *)(void *)mpiox_cache_bytes_of(&the.cache, frame) != page;
        mpiox_frame_unpin(&the.cache, frame);
    }
    return NULL;
}

static void bring(uint32_t frame, int64_t page)
{
    *(int64_t *)(void *)mpiox_cache_bytes_of(&the.cache, frame) = page;
    mpiox_frame_insert(&the.cache, frame, 0, page, false);
}

static void table_changes(uint64_t seed)
{
    pthread_t threads[THREADS];
    const double begun = mpiox_now();
    uint64_t random = seed;
    over = false;
    for (uint32_t i = 0; i < LASTING; i++)
        bring(i, i);
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, look_up, (void *)(uintptr_t)(seed + (uint64_t)t));
    for (int64_t i = 0; i < rounds || !looked(begun); i++) {
        const uint32_t frame = LASTING + (uint32_t)(mock_random(&random) % (FRAMES - LASTING));
        const int64_t page = LASTING + (int64_t)(mock_random(&random) % COMING);
        if (atomic_load(&the.cache.frames[frame].file) >= 0) {
            if (mock_random(&random) % 2 ? !mpiox_frame_try_exclusive(&the.cache, frame)
                                         : !mpiox_frame_wait_exclusive(&the.cache, frame, DEADLINE_S))
                continue;
            mpiox_frame_remove(&the.cache, frame);
        }
        if (mpiox_frame_find(&the.cache, 0, page) == MPIOX_CACHE_NO_FRAME)
            bring(frame, page);
    }
    over = true;
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    CHECK_EQUAL(wrong, 0);
    CHECK(hits > 0 && misses > 0);
    for (uint32_t i = 0; i < FRAMES; i++)
        CHECK_EQUAL(atomic_load(&the.cache.frames[i].pins) & ~MPIOX_FRAME_EXCLUSIVE, 0);
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

static void *follow(void *context)
{
    (void)context;
    while (!atomic_load(&over)) {
        uint32_t frame;
        const int found = mpiox_frame_pin(&the.cache, 0, 0, true, &frame);
        if (found == MPIOX_FRAME_HIT) {
            wrong += atomic_load(&the.cache.frames[frame].page) != 0;
            mpiox_frame_unpin(&the.cache, frame);
        } else {
            wrong += found != MPIOX_FRAME_MOVED;
        }
        moves += found == MPIOX_FRAME_MOVED;
    }
    return NULL;
}

/* A range goes to another delegate and comes back: MOVING, then no holder is left when the frame has been had alone. */
static void ranges_move(void)
{
    mpiox_file_record *record = &the.cache.header->files[0];
    pthread_t threads[THREADS];
    record->unit_pages = 3;
    record->owners = 2;
    record->ranges = mpiox_file_ranges(2);
    for (int r = 0; r < record->ranges; r++)
        atomic_store(&record->owner_of[r], 0);
    over = false;
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, follow, NULL);
    for (int64_t i = 0; i < rounds / 50; i++) {
        const uint32_t frame = mpiox_frame_find(&the.cache, 0, 0);
        atomic_store(&record->owner_of[0], MPIOX_RANGE_MOVING);
        CHECK(mpiox_frame_wait_exclusive(&the.cache, frame, DEADLINE_S));
        mpiox_frame_remove(&the.cache, frame);
        atomic_store(&record->owner_of[0], 1);
        usleep(50);
        atomic_store(&record->owner_of[0], MPIOX_RANGE_MOVING);
        bring(frame, 0);
        atomic_store(&record->owner_of[0], 0);
    }
    over = true;
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    CHECK_EQUAL(wrong, 0);
    CHECK(moves > 0);
    atomic_store(&record->owner_of[1], 1);
    CHECK_EQUAL(mpiox_frame_look(&the.cache, 0, 2), MPIOX_FRAME_HIT);
    CHECK_EQUAL(mpiox_frame_look(&the.cache, 0, 3), MPIOX_FRAME_MOVED); /* it is there, but no longer to be used */
    CHECK_EQUAL(mpiox_frame_look(&the.cache, 0, 5), MPIOX_FRAME_MOVED);
    CHECK_EQUAL(mpiox_frame_look(&the.cache, 0, 6 + 3 * (int64_t)record->ranges * 1000), MPIOX_FRAME_MISS);
    CHECK_EQUAL(mpiox_frame_look(&the.cache, 0, 3 + 3 * (int64_t)record->ranges * 1000), MPIOX_FRAME_MOVED);
    record->ranges = 0;
}

/* ---- exclusive use, one by one ----------------------------------------------------------------------------------- */

static void exclusive_use(void)
{
    const mpiox_cache *cache = &the.cache;
    uint32_t frame;
    CHECK_EQUAL(mpiox_frame_pin(cache, 0, 1, true, &frame), MPIOX_FRAME_HIT);
    CHECK(!mpiox_frame_try_exclusive(cache, frame));
    CHECK(!mpiox_frame_wait_exclusive(cache, frame, 0.01)); /* somebody holds it, for ever as it seems */
    CHECK_EQUAL(atomic_load(&cache->frames[frame].pins), 1);
    mpiox_frame_unpin(cache, frame);
    CHECK(mpiox_frame_try_exclusive(cache, frame));
    CHECK(!mpiox_frame_try_exclusive(cache, frame));
    mpiox_frame_remove(cache, frame);
    CHECK_EQUAL(mpiox_frame_look(cache, 0, 1), MPIOX_FRAME_MISS);
    atomic_fetch_or(&cache->frames[frame].flags, MPIOX_FRAME_QUEUED | MPIOX_FRAME_FILLED);
    mpiox_frame_insert(cache, frame, 0, 1, true);
    CHECK_EQUAL(atomic_load(&cache->frames[frame].pins), 1);
    CHECK_EQUAL(atomic_load(&cache->frames[frame].flags), MPIOX_FRAME_QUEUED); /* its token is still in the ring */
    mpiox_frame_unpin(cache, frame);
    mpiox_futex_set(&cache->header->state, MPIOX_CACHE_ENDED);
    CHECK_EQUAL(mpiox_frame_pin(cache, 0, 1, true, &frame), MPIOX_FRAME_GONE);
    CHECK_EQUAL(mpiox_frame_pin(cache, 0, ABSENT, true, &frame), MPIOX_FRAME_GONE);
    CHECK_EQUAL(mpiox_frame_look(cache, 0, 1), MPIOX_FRAME_GONE);
    CHECK_EQUAL(atomic_load(&cache->frames[1].pins), 0);
}

/* Died in the middle of a change of the table, or while it had a frame alone. */
static void *dead_delegate(void *context)
{
    (void)context;
    mpiox_cache_live(&the.cache);
    mpiox_futex_set(&the.cache.header->state, MPIOX_CACHE_SERVING);
    bring(0, 0);
    mpiox_frame_try_exclusive(&the.cache, 0);
    atomic_fetch_add(&the.cache.header->table_changes, 1);
    return NULL; /* with its life mutex: as if it was killed */
}

static void dies_in_a_change(void)
{
    pthread_t thread;
    uint32_t frame;
    mock_make(&the, PAGE, 2, 1);
    pthread_create(&thread, NULL, dead_delegate, NULL);
    pthread_join(thread, NULL);
    CHECK(mpiox_cache_is_serving(&the.cache, false)); /* nobody has looked yet */
    CHECK_EQUAL(mpiox_frame_pin(&the.cache, 0, 0, true, &frame), MPIOX_FRAME_GONE);
    CHECK_EQUAL(mpiox_futex_get(&the.cache.header->state), MPIOX_CACHE_DEAD);
    CHECK_EQUAL(mpiox_frame_pin(&the.cache, 0, 7, true, &frame), MPIOX_FRAME_GONE);
    CHECK_EQUAL(mpiox_cache_rescue(&the.cache), 0); /* nothing was dirty */
    CHECK_EQUAL(mpiox_futex_get(&the.cache.header->state), MPIOX_CACHE_RESCUED);
    mock_free(&the);
}

/* The service thread is dead, another thread of the delegate may still be writing: nothing is rescued before it ends.
 * */
static _Atomic bool second_lives, second_ended;

static void *second_thread(void *context)
{
    CHECK_EQUAL(mpiox_cache_live(&the.cache), 1);
    second_lives = true;
    usleep(200 * 1000);
    second_ended = true;
    return context; /* and it does not end its life either */
}

static void dies_before_its_threads(void)
{
    pthread_t first, second;
    mock_make(&the, PAGE, 2, 1);
    pthread_create(&first, NULL, dead_delegate, NULL);
    pthread_join(first, NULL);
    pthread_create(&second, NULL, second_thread, NULL);
    while (!second_lives)
        usleep(1000);
    CHECK(!mpiox_cache_is_serving(&the.cache, true));
    CHECK_EQUAL(mpiox_cache_rescue(&the.cache), 0);
    CHECK(second_ended);
    pthread_join(second, NULL);
    for (int i = 0; i < 3; i++) { /* whoever looks, and however often */
        CHECK_EQUAL(mpiox_cache_look_at_life(&the.cache.header->life[0]), MPIOX_LIFE_DEAD);
        CHECK_EQUAL(mpiox_cache_look_at_life(&the.cache.header->life[1]), MPIOX_LIFE_DEAD);
        CHECK_EQUAL(mpiox_cache_look_at_life(&the.cache.header->life[2]), MPIOX_LIFE_NONE);
    }
    mock_free(&the);
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoll(argv[1]) : 20000;
    mock_make(&the, PAGE, FRAMES, 1);
    mpiox_cache_live(&the.cache);
    mpiox_futex_set(&the.cache.header->state, MPIOX_CACHE_SERVING);
    table_changes(argc > 2 ? (uint64_t)atoll(argv[2]) * 2 + 1 : 1);
    for (uint32_t i = 0; i < FRAMES; i++) { /* from the beginning */
        if (atomic_load(&the.cache.frames[i].file) >= 0 && mpiox_frame_try_exclusive(&the.cache, i))
            mpiox_frame_remove(&the.cache, i);
    }
    for (uint32_t i = 0; i < 8; i++)
        bring(i, i);
    ranges_move();
    exclusive_use();
    mpiox_cache_end_life(&the.cache, 0);
    mock_free(&the);
    dies_in_a_change();
    dies_before_its_threads();
    return check_exit();
}
