/*
 * test_ring.c - requests from many threads and processes, some of which are killed; who has joined.
 *
 *   test_ring threads|processes CALLS SEED [TOKENS]
 *
 * With TOKENS the ring has so many, and what has to do with few is left out.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "check.h"
#include "mock_delegate.h"

enum { PAGE = 4096, THREADS = 8, PROCESSES = 8 };

static mock the;
static int32_t frames = 100;
static int64_t calls;
static _Atomic int64_t wrong, posted, full_frames;

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* Some calls, some posts, some full frames. The answer must be to the question. */
static void *produce(void *context)
{
    uint64_t random = (uint64_t)(uintptr_t)context * 2 + 1;
    for (int64_t i = 0; i < calls; i++) {
        const uint64_t kind = mock_random(&random) % 8;
        if (kind < 2) {
            mpiox_ring_push_frame(&the.cache, (uint32_t)(mock_random(&random) % (uint64_t)frames));
            continue;
        }
        mpiox_slot *slot = mpiox_ring_take(&the.cache);
        if (slot == NULL) {
            wrong++;
            continue;
        }
        const int64_t question = (int64_t)(mock_random(&random) >> 20);
        wrong += slot->client != -1 || slot->question.range != 0 || slot->answer.range.version != 0 ||
                 slot->text[0] != '\0';
        slot->op = kind < 4 ? MPIOX_OP_AHEAD_ONLY : MPIOX_OP_PING;
        slot->question.commit.range = slot->question.commit.stamp = question;
        if (kind < 4) {
            posted++;
            mpiox_ring_post(&the.cache, slot);
            continue;
        }
        wrong += mpiox_ring_call(&the.cache, slot, NULL) != 0 || slot->answer.range.version != 2 * question + 1;
        mpiox_ring_give_back(slot);
    }
    return NULL;
}

static _Atomic int64_t served, served_posts;

/* Takes tokens until all threads are done and nothing is left. */
static void *consume(void *context)
{
    const mpiox_cache *cache = &the.cache;
    mpiox_cache_live(cache);
    mpiox_futex_set(&cache->header->state, MPIOX_CACHE_SERVING);
    for (;;) {
        const uint32_t seen = mpiox_futex_get(&cache->ring->bell);
        mpiox_slot *slot;
        uint32_t frame;
        if (!mpiox_ring_next(cache, &slot, &frame)) {
            if (atomic_load(&the.stop))
                break;
            mpiox_ring_wait(cache, seen, 0.5);
            continue;
        }
        wrong += (slot == NULL) == (frame == MPIOX_CACHE_NO_FRAME);
        if (slot == NULL) {
            wrong += frame >= (uint32_t)frames;
            full_frames++;
            continue;
        }
        served++;
        served_posts += slot->op == MPIOX_OP_AHEAD_ONLY;
        wrong += slot->question.commit.range != slot->question.commit.stamp;
        slot->answer.range.version = 2 * slot->question.range + 1;
        mpiox_ring_answer(slot, 0);
    }
    mpiox_futex_set(&cache->header->state, MPIOX_CACHE_ENDED);
    mpiox_cache_end_life(cache, 0);
    return context;
}

static void threads(uint64_t seed, int32_t slots)
{
    pthread_t producers[THREADS], consumer;
    served = posted = served_posts = 0;
    mock_make(&the, PAGE, frames, slots);
    CHECK_EQUAL(the.cache.ring->tokens, frames + slots);
    the.stop = false;
    pthread_create(&consumer, NULL, consume, NULL);
    for (int t = 0; t < THREADS; t++)
        pthread_create(&producers[t], NULL, produce, (void *)(uintptr_t)(seed * THREADS + (uint64_t)t));
    for (int t = 0; t < THREADS; t++)
        pthread_join(producers[t], NULL);
    the.stop = true;
    mpiox_futex_add(&the.cache.ring->bell);
    pthread_join(consumer, NULL);
    CHECK_EQUAL(wrong, 0);
    CHECK_EQUAL(served_posts, posted);
    CHECK(full_frames > 0);
    CHECK(mpiox_ring_take(&the.cache) == NULL); /* ended */
    mock_free(&the);
}

/* One after another: a token is in the set once; a frame that is taken out can be queued again at once. */
static void tokens(void)
{
    mpiox_slot *slot, *mine[70];
    uint32_t frame;
    mock_make(&the, PAGE, frames, 70);
    CHECK(!mpiox_ring_next(&the.cache, &slot, &frame));
    mpiox_ring_push_frame(&the.cache, 99);
    mpiox_ring_push_frame(&the.cache, 99);
    mpiox_ring_push_frame(&the.cache, 0);
    for (int i = 0; i < 70; i++) {
        mine[i] = mpiox_ring_take(&the.cache);
        CHECK(mine[i] != NULL);
        mpiox_ring_post(&the.cache, mine[i]);
    }
    int slots_seen = 0, frames_seen = 0;
    while (mpiox_ring_next(&the.cache, &slot, &frame)) {
        slots_seen += slot != NULL;
        frames_seen += slot == NULL;
        if (slot != NULL)
            mpiox_ring_answer(slot, 0); /* gives it back */
        if (frame == 99 && frames_seen < 5)
            mpiox_ring_push_frame(&the.cache, 99);
    }
    CHECK_EQUAL(slots_seen, 70);
    CHECK(frames_seen >= 5);
    for (int i = 0; i < 70; i++)
        CHECK(mpiox_ring_take(&the.cache) != NULL); /* all are free again */
    mock_free(&the);
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static int client_process(uint64_t seed)
{
    const int client = mpiox_ring_join(&the.cache);
    wrong = client < 0;
    for (int64_t i = 0; i < calls && wrong == 0; i++) {
        mpiox_slot *slot = mpiox_ring_take(&the.cache);
        if (slot == NULL)
            return 1;
        slot->client = client;
        slot->op = MPIOX_OP_PING;
        slot->question.range = (int64_t)seed * calls + i;
        wrong += mpiox_ring_call(&the.cache, slot, NULL) != 0 ||
                 slot->answer.range.version != 2 * slot->question.range + 1;
        mpiox_ring_give_back(slot);
        mpiox_ring_push_frame(&the.cache, (uint32_t)(i % frames));
    }
    mpiox_ring_leave(&the.cache, client);
    return wrong == 0 ? 0 : 1;
}

/* Half of the clients are killed somewhere; the others get all their answers. */
static void processes(uint64_t seed)
{
    pid_t clients[PROCESSES];
    uint64_t random = seed;
    pthread_t server;
    int ended = 0, died = 0, died_now = 0;
    mock_make(&the, PAGE, frames, PROCESSES);
    for (int i = 0; i < PROCESSES; i++) {
        clients[i] = fork();
        if (clients[i] == 0) {
            alarm(100);
            _exit(client_process(seed * PROCESSES + (uint64_t)i));
        }
    }
    pthread_create(&server, NULL, mock_run, &the);
    for (int i = 0; i < PROCESSES / 2; i++) {
        usleep((useconds_t)(mock_random(&random) % 4000));
        kill(clients[i], SIGKILL);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        CHECK_EQUAL(waitpid(clients[i], &status, 0), clients[i]);
        ended += WIFEXITED(status) && WEXITSTATUS(status) == 0;
        died += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    }
    CHECK_EQUAL(ended + died, PROCESSES);
    CHECK(ended >= PROCESSES / 2);
    CHECK_EQUAL(mpiox_ring_clients(&the.cache, &died_now), 0);
    CHECK(died_now <= died); /* it may have been killed before it joined or after it left */
    CHECK_EQUAL(mpiox_ring_clients(&the.cache, &died_now), 0);
    CHECK_EQUAL(died_now, 0);
    atomic_store(&the.stop, true);
    pthread_join(server, NULL);
    mock_free(&the);
}

/* ---- who has joined ---------------------------------------------------------------------------------------------- */

static void joined(void)
{
    int died, client, to_parent[2], to_child[2];
    char byte = 0;
    mock_make(&the, PAGE, 1, 1);
    CHECK_EQUAL(mpiox_ring_clients(&the.cache, &died), 0);
    CHECK_EQUAL(pipe(to_parent) + pipe(to_child), 0);
    pid_t child = fork();
    if (child == 0) {
        byte = (char)mpiox_ring_join(&the.cache);
        if (write(to_parent[1], &byte, 1) == 1 && read(to_child[0], &byte, 1) == 1)
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    CHECK_EQUAL(read(to_parent[0], &byte, 1), 1);
    CHECK_EQUAL(byte, 0);
    client = mpiox_ring_join(&the.cache);
    CHECK_EQUAL(client, 1);
    /* Not from a thread of the holder: there trylock says EBUSY as well. */
    CHECK_EQUAL(mpiox_ring_clients(&the.cache, &died), 2);
    CHECK_EQUAL(died, 0);
    mpiox_ring_leave(&the.cache, client);
    CHECK_EQUAL(mpiox_ring_clients(&the.cache, &died), 1);
    CHECK_EQUAL(atomic_load(&the.cache.ring->clients[1].state), 2);
    CHECK_EQUAL(mpiox_ring_join(&the.cache), 2); /* who has left is remembered as long as there is room */
    mpiox_ring_leave(&the.cache, 2);
    CHECK_EQUAL(write(to_child[1], "x", 1), 1);
    siginfo_t how;
    CHECK_EQUAL(waitid(P_PID, (id_t)child, &how, WEXITED | WNOWAIT), 0); /* not reaped: a zombie is dead */
    CHECK_EQUAL(mpiox_ring_clients(&the.cache, &died), 0);
    CHECK_EQUAL(died, 1);
    CHECK_EQUAL(waitpid(child, NULL, 0), child);
    CHECK_EQUAL(mpiox_ring_clients(&the.cache, &died), 0);
    CHECK_EQUAL(died, 0);
    for (int i = 3; i < MPIOX_RING_CLIENTS + 1; i++) /* free ones first, then those that were left */
        CHECK(mpiox_ring_join(&the.cache) >= 0);
    CHECK_EQUAL(mpiox_ring_join(&the.cache), 1);
    CHECK_EQUAL(mpiox_ring_join(&the.cache), 2);
    CHECK_EQUAL(mpiox_ring_join(&the.cache), MPIOX_E_FULL);
    for (int i = 0; i < MPIOX_RING_CLIENTS; i++)
        mpiox_ring_leave(&the.cache, i);
    for (int i = 0; i < 2; i++) {
        close(to_parent[i]);
        close(to_child[i]);
    }
    mock_free(&the);
}

/* A client is killed while it waits, or with its answer: its request is free as soon as the delegate has answered. */
static void killed(void)
{
    mock_make(&the, PAGE, 1, 2);
    for (int answered = 0; answered < 2; answered++) {
        mpiox_slot *slot = NULL;
        uint32_t frame;
        int died;
        const pid_t child = fork();
        if (child == 0) {
            alarm(100);
            const int client = mpiox_ring_join(&the.cache);
            slot = mpiox_ring_take(&the.cache);
            slot->op = MPIOX_OP_PING;
            slot->client = client;
            mpiox_ring_call(&the.cache, slot, NULL);
            pause();
        }
        while (!mpiox_ring_next(&the.cache, &slot, &frame))
            usleep(100);
        if (answered)
            mpiox_ring_answer(slot, MPIOX_OK);
        kill(child, SIGKILL);
        CHECK_EQUAL(waitpid(child, NULL, 0), child);
        CHECK_EQUAL(mpiox_ring_clients(&the.cache, &died), 0);
        CHECK_EQUAL(died, 1);
        CHECK(!mpiox_ring_is_awaited(slot));
        if (!answered)
            mpiox_ring_answer(slot, MPIOX_OK);
        CHECK_EQUAL(mpiox_ring_queued(&the.cache), 0);
    }
    mock_free(&the);
}

int main(int argc, char **argv)
{
    const uint64_t seed = argc > 3 ? (uint64_t)atoll(argv[3]) * 2 + 1 : 1;
    calls = argc > 2 ? atoll(argv[2]) : 2000;
    if (argc > 4) {
        frames = atoi(argv[4]) - PROCESSES;
        if (strcmp(argv[1], "processes") == 0)
            processes(seed);
        else
            threads(seed, THREADS);
        return check_exit();
    }
    if (argc > 1 && strcmp(argv[1], "processes") == 0) {
        for (uint64_t i = 0; i < 10; i++)
            processes(seed + 2 * i);
        joined();
        killed();
    } else {
        tokens();
        threads(seed, 3); /* fewer slots than threads: they take turns */
        threads(seed, 2 * THREADS);
        threads(seed, 1);
    }
    return check_exit();
}
