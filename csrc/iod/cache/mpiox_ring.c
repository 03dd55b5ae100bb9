/*
 * mpiox_ring.c - see mpiox_ring.h.
 *
 * Two sets of bits: a token's bit is set first, then the bit of its word in the summary, then the bell rings. The
 * delegate clears the summary's bit before it reads the word, and sets it again when it leaves tokens there, so that it
 * misses no token.
 */
#include "mpiox_ring.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_cache_waiting.h"
#include "mpiox_integer.h"
#include "mpiox_testing.h"

enum { SLOT_FREE = 0, SLOT_TAKEN = 1, SLOT_POSTED = 2 };
enum { CLIENT_FREE = 0, CLIENT_JOINED = 1, CLIENT_LEFT = 2 };
enum { ANSWERED = 1, GIVEN_UP = 2 }; /* of slot->done */

const char *mpiox_ring_op_name(int32_t op)
{
    switch (op) {
    case MPIOX_WAITS_FOR_SLOT:
        return "waits for a free request";
    case MPIOX_WAITS_FOR_FRAME:
        return "waits for a page that is in use";
    case MPIOX_WAITS_FOR_NAME:
        return "search for a file that goes to stable storage and gets its name";
    case MPIOX_WAITS_FOR_EARLIER:
        return "dirty bytes of an earlier job are written first";
    case MPIOX_OP_OPEN:
        return "open";
    case MPIOX_OP_CLOSE:
        return "close";
    case MPIOX_OP_PAGE:
        return "page";
    case MPIOX_OP_FLUSH:
        return "flush";
    case MPIOX_OP_DISCARD:
        return "discard";
    case MPIOX_OP_REPLICA_MARK:
    case MPIOX_OP_REPLICA_TRIM:
        return "replica";
    case MPIOX_OP_MIGRATE:
    case MPIOX_OP_COMMIT:
    case MPIOX_OP_OWNER:
        return "move of pages";
    case MPIOX_OP_HOLD:
        return "search for a file that is being written behind its close";
    case MPIOX_OP_PEER:
    case MPIOX_OP_PING:
        return "ping";
    default:
        return "request";
    }
}

static uint32_t words_for(uint32_t bits)
{
    return (bits + 63) / 64;
}

static int64_t slots_end(int64_t slots)
{
    return mpiox_round_up((int64_t)sizeof(mpiox_ring_area), 64) + slots * (int64_t)sizeof(mpiox_slot);
}

int64_t mpiox_ring_bytes(int32_t slots, int32_t frames)
{
    const uint32_t words = words_for((uint32_t)slots + (uint32_t)frames);
    return mpiox_round_up(slots_end(slots), 64) + 8 * ((int64_t)words + words_for(words));
}

int mpiox_ring_format(mpiox_ring_area *ring, int32_t slots, int32_t frames)
{
    ring->slots = (uint32_t)slots;
    ring->tokens = (uint32_t)slots + (uint32_t)frames;
    ring->slots_at = slots_end(0);
    ring->pending_at = mpiox_round_up(slots_end(slots), 64);
    ring->summary_at = ring->pending_at + 8 * (int64_t)words_for(ring->tokens);
    for (int i = 0; i < MPIOX_RING_CLIENTS; i++) {
        if (mpiox_cache_make_mutex(&ring->clients[i].life) != 0)
            return MPIOX_E_UNSUPPORTED;
    }
    return MPIOX_OK;
}

static mpiox_slot *slot_of(mpiox_ring_area *ring, uint32_t index)
{
    return (mpiox_slot *)(void *)((char *)ring + ring->slots_at) + index;
}

static _Atomic uint64_t *pending_of(mpiox_ring_area *ring)
{
    return (_Atomic uint64_t *)(void *)((char *)ring + ring->pending_at);
}

static _Atomic uint64_t *summary_of(mpiox_ring_area *ring)
{
    return (_Atomic uint64_t *)(void *)((char *)ring + ring->summary_at);
}

static uint64_t bit(uint32_t index)
{
    return UINT64_C(1) << index % 64;
}

/* ---- client ------------------------------------------------------------------------------------------------------ */

static void push(mpiox_ring_area *ring, uint32_t token)
{
    const uint32_t word = token / 64;
    assert(token < ring->tokens);
    atomic_fetch_or(&pending_of(ring)[word], bit(token));
    atomic_fetch_or(&summary_of(ring)[word / 64], bit(word));
    mpiox_futex_add(&ring->bell);
}

static bool claim_slot(mpiox_slot *slot)
{
    uint32_t free = SLOT_FREE;
    if (atomic_load_explicit(&slot->taken, memory_order_relaxed) != SLOT_FREE ||
        !atomic_compare_exchange_strong(&slot->taken, &free, SLOT_TAKEN))
        return false;
    atomic_store(&slot->done.value, 0);
    return true;
}

/* Threads begin at different slots, and at their last one, which is in their cache. */
mpiox_slot *mpiox_ring_take(const mpiox_cache *cache)
{
    static atomic_uint threads;
    static _Thread_local uint32_t start;
    mpiox_ring_area *ring = cache->ring;
    mpiox_backoff backoff = {0};
    mpiox_cache_wait wait = {0};
    if (start == 0)
        start = 1 + (uint32_t)getpid() * 7 + atomic_fetch_add(&threads, 1);
    while (mpiox_cache_is_serving(cache, false)) {
        for (uint32_t i = 0; i < ring->slots; i++) {
            mpiox_slot *slot = slot_of(ring, (start + i) % ring->slots);
            if (!claim_slot(slot))
                continue;
            start += i;
            memset(&slot->op, 0, offsetof(mpiox_slot, text) - offsetof(mpiox_slot, op));
            slot->text[0] = '\0';
            slot->client = -1;
            slot->frame = MPIOX_CACHE_NO_FRAME;
            mpiox_cache_wait_end(cache, &wait);
            return slot;
        }
        mpiox_wait_backoff(&backoff);
        mpiox_cache_wait_step(cache, &wait, MPIOX_WAITS_FOR_SLOT, -1, -1);
    }
    mpiox_cache_wait_end(cache, &wait);
    return NULL;
}

static uint32_t token_of(mpiox_ring_area *ring, const mpiox_slot *slot)
{
    return (uint32_t)(slot - slot_of(ring, 0));
}

typedef struct call_wait {
    const mpiox_cache *cache;
    mpiox_slot *slot;
    const mpiox_idle *idle;
    int32_t op, file; /* of the request: the slot is the delegate's until it has answered */
    int64_t page;
    mpiox_cache_wait wait;
} call_wait;

/* While waiting for an answer: if no process is left to answer, end the wait by setting the word. */
static bool wait_for_answer(void *context)
{
    call_wait *wait = context;
    const bool worked = wait->idle != NULL && wait->idle->work != NULL && wait->idle->work(wait->idle->context);
    mpiox_cache_wait_step(wait->cache, &wait->wait, wait->op, wait->file, wait->page);
    if (!mpiox_cache_is_serving(wait->cache, false)) {
        uint32_t none = 0;
        atomic_compare_exchange_strong(&wait->slot->done.value, &none, GIVEN_UP);
    }
    return worked;
}

static uint32_t send_and_wait(const mpiox_cache *cache, mpiox_slot *slot, const mpiox_idle *watching)
{
    atomic_store(&slot->done.value, 0);
    push(cache->ring, token_of(cache->ring, slot));
    return mpiox_wait_while(&slot->done, 0, watching);
}

int mpiox_ring_call(const mpiox_cache *cache, mpiox_slot *slot, const mpiox_idle *idle)
{
    const bool by_path = slot->op == MPIOX_OP_OPEN || slot->op == MPIOX_OP_HOLD;
    call_wait context = {.cache = cache, .slot = slot, .idle = idle, .op = slot->op};
    context.file = by_path ? -1 : slot->file;
    context.wait.path = by_path ? slot->text : NULL;
    context.page = slot->op == MPIOX_OP_PAGE ? slot->question.page.page : -1;
    const mpiox_idle watching = {wait_for_answer, &context};
    const uint32_t done = send_and_wait(cache, slot, &watching);
    mpiox_cache_wait_end(cache, &context.wait);
    if (done == GIVEN_UP)
        return MPIOX_E_UNSUPPORTED;
    return slot->result;
}

void mpiox_ring_post(const mpiox_cache *cache, mpiox_slot *slot)
{
    atomic_store(&slot->taken, SLOT_POSTED);
    push(cache->ring, token_of(cache->ring, slot));
}

void mpiox_ring_give_back(mpiox_slot *slot)
{
    atomic_store(&slot->taken, SLOT_FREE);
}

void mpiox_ring_push_frame(const mpiox_cache *cache, uint32_t frame)
{
    _Atomic uint32_t *flags = &cache->frames[frame].flags;
    if (!(atomic_fetch_or(flags, MPIOX_FRAME_QUEUED) & MPIOX_FRAME_QUEUED))
        push(cache->ring, cache->ring->slots + frame);
}

/* ---- delegate ---------------------------------------------------------------------------------------------------- */

/* Take the first token that is not before `from` (a bit number) out of a word. False: there is none. */
static bool take_from(mpiox_ring_area *ring, uint32_t word, uint32_t from, uint32_t *token)
{
    _Atomic uint64_t *pending = &pending_of(ring)[word], *summary = &summary_of(ring)[word / 64];
    const uint64_t later = ~UINT64_C(0) << from;
    if (!(atomic_load(summary) & bit(word)))
        return false;
    atomic_fetch_and(summary, ~bit(word));
    const uint64_t found = atomic_load(pending);
    if ((found & later) != 0) {
        const uint32_t number = (uint32_t)__builtin_ctzll(found & later);
        if (atomic_fetch_and(pending, ~bit(number)) != bit(number))
            atomic_fetch_or(summary, bit(word));
        *token = 64 * word + number;
        return true;
    }
    if (found != 0)
        atomic_fetch_or(summary, bit(word));
    return false;
}

/* Once round the set: the rest of the word where it is, the other words, then the first part of that word, which comes
 * at i == words. The last word of the summary may stand for fewer than 64 words: a leap ends with the set, because the
 * search begins again at its front there. */
static bool take_token(mpiox_ring_area *ring, uint32_t *token)
{
    const uint32_t words = words_for(ring->tokens), first = ring->cursor / 64 % words;
    if (take_from(ring, first, ring->cursor % 64, token))
        return true;
    for (uint32_t i = 1, span; i <= words; i += span) {
        const uint32_t word = (first + i) % words, group = 64 - word % 64;
        span = 1;
        if (atomic_load(&summary_of(ring)[word / 64]) == 0)
            span = group < words - word ? group : words - word; /* none in all of these words */
        else if (take_from(ring, word, 0, token))
            return true;
    }
    return false;
}

bool mpiox_ring_next(const mpiox_cache *cache, mpiox_slot **slot, uint32_t *frame)
{
    mpiox_ring_area *ring = cache->ring;
    uint32_t token;
    *slot = NULL;
    *frame = MPIOX_CACHE_NO_FRAME;
    if (!take_token(ring, &token))
        return false;
    ring->cursor = (token + 1) % (64 * words_for(ring->tokens));
    if (token < ring->slots) {
        *slot = slot_of(ring, token);
    } else {
        *frame = token - ring->slots;
        atomic_fetch_and(&cache->frames[*frame].flags, ~(uint32_t)MPIOX_FRAME_QUEUED);
    }
    return true;
}

void mpiox_ring_wait(const mpiox_cache *cache, uint32_t seen, double seconds)
{
    (void)mpiox_wait_at_most(&cache->ring->bell, seen, seconds);
}

bool mpiox_ring_is_awaited(const mpiox_slot *slot)
{
    return atomic_load(&slot->taken) == SLOT_TAKEN;
}

void mpiox_ring_answer(mpiox_slot *slot, int result)
{
    assert(mpiox_futex_get(&slot->done) != ANSWERED);
    if (atomic_load(&slot->taken) == SLOT_POSTED) {
        mpiox_ring_give_back(slot);
        return;
    }
    const char *of = mpiox_ring_op_name(slot->op);
    slot->result = result;
    MPIOX_POINT_OF("answer", of);
    mpiox_futex_set(&slot->done, ANSWERED);
    MPIOX_POINT_OF("answered", of);
}

/* ---- the clients of the delegate --------------------------------------------------------------------------------- */

/* The life mutex is locked before the state is joined: a joined client owns it or is dead. */
static bool join_as(mpiox_client_record *client, int32_t state)
{
    const int code = atomic_load(&client->state) == state ? pthread_mutex_trylock(&client->life) : EBUSY;
    if (code == EOWNERDEAD)
        pthread_mutex_consistent(&client->life);
    else if (code != 0)
        return false;
    if (atomic_load(&client->state) != state) {
        pthread_mutex_unlock(&client->life);
        return false;
    }
    client->pid = getpid();
    if (atomic_fetch_add(&client->joins, 1) == UINT32_MAX) /* 0: no client */
        atomic_fetch_add(&client->joins, 1);
    atomic_store(&client->state, CLIENT_JOINED);
    return true;
}

int mpiox_ring_join(const mpiox_cache *cache)
{
    static const int32_t order[] = {CLIENT_FREE, CLIENT_LEFT};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < MPIOX_RING_CLIENTS; i++) {
            if (join_as(&cache->ring->clients[i], order[k]))
                return i;
        }
    }
    return MPIOX_E_FULL;
}

void mpiox_ring_leave(const mpiox_cache *cache, int client)
{
    if (client < 0)
        return;
    assert(client < MPIOX_RING_CLIENTS);
    atomic_store(&cache->ring->clients[client].state, CLIENT_LEFT);
    pthread_mutex_unlock(&cache->ring->clients[client].life);
}

/* Of a client that is dead: slots that were answered are free, and no other one is awaited any more. */
static void free_slots(mpiox_ring_area *ring, int client)
{
    for (uint32_t i = 0; i < ring->slots; i++) {
        mpiox_slot *slot = slot_of(ring, i);
        if (atomic_load(&slot->taken) != SLOT_TAKEN || slot->client != client)
            continue;
        if (mpiox_futex_get(&slot->done) == ANSWERED)
            mpiox_ring_give_back(slot);
        else
            atomic_store(&slot->taken, SLOT_POSTED);
    }
}

int mpiox_ring_queued(const mpiox_cache *cache)
{
    const char *slots = (const char *)cache->ring + slots_end(0);
    int queued = 0;
    for (int32_t i = 0; i < cache->header->geometry.slots; i++) {
        const mpiox_slot *slot = (const mpiox_slot *)(const void *)slots + i;
        queued += atomic_load_explicit(&slot->taken, memory_order_relaxed) != SLOT_FREE &&
                  atomic_load_explicit(&slot->done.value, memory_order_relaxed) != ANSWERED;
    }
    return queued;
}

uint32_t mpiox_ring_join_of(const mpiox_cache *cache, int client)
{
    mpiox_client_record *record = client >= 0 && client < MPIOX_RING_CLIENTS ? &cache->ring->clients[client] : NULL;
    if (record == NULL || atomic_load(&record->state) != CLIENT_JOINED)
        return 0;
    return atomic_load(&record->joins);
}

int mpiox_ring_clients(const mpiox_cache *cache, int *died)
{
    int alive = 0;
    *died = 0;
    for (int i = 0; i < MPIOX_RING_CLIENTS; i++) {
        mpiox_client_record *client = &cache->ring->clients[i];
        if (atomic_load(&client->state) != CLIENT_JOINED)
            continue;
        const int code = pthread_mutex_trylock(&client->life);
        if (code == EBUSY) {
            alive++;
        } else if (code == 0) { /* it has just left */
            pthread_mutex_unlock(&client->life);
        } else if (code == EOWNERDEAD) {
            pthread_mutex_consistent(&client->life);
            if (atomic_load(&client->state) == CLIENT_JOINED) {
                free_slots(cache->ring, i);
                atomic_store(&client->state, CLIENT_FREE);
                ++*died;
            }
            pthread_mutex_unlock(&client->life);
        }
    }
    return alive;
}
