/*
 * test_ring_search.c - no posted token is overlooked, whatever the number of tokens and wherever the search begins.
 *
 * The ring alone: its area in plain memory, frames of which only the flags are used. A bitmap says what is posted;
 * mpiox_ring_next() must give the first of these from the cursor on, in turn round the set, and nothing when the
 * bitmap is empty.
 *
 *   test_ring_search ROUNDS SEED
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "mpiox_ring.h"

typedef struct ring_alone {
    mpiox_cache cache;
    uint32_t slots, tokens;
    bool *posted;
    uint32_t count; /* of what is posted */
} ring_alone;

static int64_t rounds, asked, overlooked, others;

static uint64_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void make(ring_alone *self, uint32_t slots, uint32_t frames)
{
    memset(self, 0, sizeof *self);
    self->slots = slots;
    self->tokens = slots + frames;
    self->posted = calloc(self->tokens, sizeof *self->posted);
    self->cache.ring = calloc(1, (size_t)mpiox_ring_bytes((int32_t)slots, (int32_t)frames));
    self->cache.frames = calloc(frames + 1, sizeof *self->cache.frames);
    if (self->posted == NULL || self->cache.ring == NULL || self->cache.frames == NULL ||
        mpiox_ring_format(self->cache.ring, (int32_t)slots, (int32_t)frames) != 0)
        abort();
}

static void discard(ring_alone *self)
{
    free(self->cache.frames);
    free(self->cache.ring);
    free(self->posted);
}

static mpiox_slot *slot_at(const ring_alone *self, uint32_t token)
{
    return (mpiox_slot *)(void *)((char *)self->cache.ring + self->cache.ring->slots_at) + token;
}

static void post(ring_alone *self, uint32_t token)
{
    if (self->posted[token])
        return;
    self->posted[token] = true;
    self->count++;
    if (token < self->slots)
        mpiox_ring_post(&self->cache, slot_at(self, token));
    else
        mpiox_ring_push_frame(&self->cache, token - self->slots);
}

/* The first posted token from `turn` on; tokens: none. */
static uint32_t expected(const ring_alone *self, uint32_t turn)
{
    for (uint32_t i = 0; self->count > 0 && i < self->tokens; i++) {
        const uint32_t token = turn < self->tokens ? (turn + i) % self->tokens : i;
        if (self->posted[token])
            return token;
    }
    return self->tokens;
}

/* Asks once; false: nothing was found. */
static bool take(ring_alone *self)
{
    const uint32_t wanted = expected(self, self->cache.ring->cursor);
    mpiox_slot *slot;
    uint32_t frame;
    asked++;
    if (!mpiox_ring_next(&self->cache, &slot, &frame)) {
        overlooked += wanted != self->tokens;
        return false;
    }
    const uint32_t token = slot != NULL ? (uint32_t)(slot - slot_at(self, 0)) : self->slots + frame;
    others += token != wanted;
    if (token < self->tokens && self->posted[token]) {
        self->posted[token] = false;
        self->count--;
    }
    return true;
}

static void empty(ring_alone *self)
{
    while (take(self))
        ;
    if (self->count == 0)
        return;
    memset(self->posted, 0, self->tokens * sizeof *self->posted); /* overlooked: go on with a ring without them */
    for (uint32_t start = 0; start < self->tokens; start += 64) {
        mpiox_slot *slot;
        uint32_t frame;
        self->cache.ring->cursor = start;
        while (mpiox_ring_next(&self->cache, &slot, &frame))
            ;
    }
    self->count = 0;
}

/* One token, from every interesting cursor: the search must reach all of the set. */
static void one_at_a_time(ring_alone *self, uint64_t *random)
{
    const uint32_t last = self->tokens - 1;
    const uint32_t fixed[] = {0, last, last / 64 * 64, last / 4096 * 4096, 63 % self->tokens, 4095 % self->tokens};
    for (int64_t i = 0; i < rounds; i++) {
        const uint32_t token = i % 3 != 0 ? (uint32_t)(draw(random) % self->tokens) : fixed[(size_t)i / 3 % 6];
        const uint32_t turn = i % 5 != 0 ? (uint32_t)(draw(random) % self->tokens) : fixed[(size_t)i / 5 % 6];
        post(self, token);
        self->cache.ring->cursor = turn;
        empty(self);
        if (i % 7 == 0) { /* and where the last one left the cursor */
            post(self, (uint32_t)(draw(random) % self->slots));
            empty(self);
        }
    }
}

/* Some at once, taken out and posted in any order. */
static void mixed(ring_alone *self, uint64_t *random)
{
    for (int64_t i = 0; i < rounds / 20 + 1; i++) {
        const uint32_t many = 1 + (uint32_t)(draw(random) % 20), near = (uint32_t)(draw(random) % self->tokens);
        for (uint32_t k = 0; k < many; k++) {
            const uint64_t far = draw(random);
            post(self, (uint32_t)((far % 2 == 0 ? far : near + far % 130) % self->tokens));
            if (far % 3 == 0)
                (void)take(self);
        }
        empty(self);
    }
}

static void play(uint32_t slots, uint32_t frames, uint64_t seed)
{
    ring_alone self;
    uint64_t random = seed;
    make(&self, slots, frames);
    asked = overlooked = others = 0;
    one_at_a_time(&self, &random);
    mixed(&self, &random);
    if (overlooked + others != 0)
        fprintf(stderr, "%u slots, %u frames: %lld searches, %lld overlooked, %lld out of turn\n", slots, frames,
                (long long)asked, (long long)overlooked, (long long)others);
    CHECK_EQUAL(overlooked, 0);
    CHECK_EQUAL(others, 0);
    discard(&self);
}

int main(int argc, char **argv)
{
    /* Frames of caches: 64 KiB pages in 512 MiB and in 1 GiB, 1 MiB in 6 GiB, 4 KiB in 1.6 GiB, and the borders. */
    static const uint32_t frames[] = {0,     1,     47,    48,    49,    63,    64,     100,   1000, 4031,
                                      4032,  4048,  4079,  4080,  4081,  4095,  4096,   4097,  4200, 5455,
                                      6127,  7262,  8175,  8176,  8177,  8191,  8192,   8193,  9000, 12272,
                                      12300, 14531, 16368, 20000, 65520, 65521, 262144, 400001};
    uint64_t random = argc > 2 ? (uint64_t)atoll(argv[2]) * 2 + 1 : 1;
    rounds = argc > 1 ? atoll(argv[1]) : 300;
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
        play(16, frames[i], draw(&random));
    for (int i = 0; i < 40; i++)
        play(1 + (uint32_t)(draw(&random) % 130), (uint32_t)(draw(&random) % 20000), draw(&random));
    return check_exit();
}
