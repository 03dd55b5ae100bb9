/*
 * ring.c - requests of two clients to a delegate: csrc/iod/cache/mpiox_ring.h.
 *
 * from csrc/core/common/mpiox_wait.h: mpiox_futex_get
 * from csrc/core/common/mpiox_wait.c: wake mpiox_futex_set mpiox_futex_add
 * from csrc/iod/cache/mpiox_ring.c: words_for bit push claim_slot send_and_wait mpiox_ring_give_back take_from
 *     take_token mpiox_ring_next mpiox_ring_is_awaited mpiox_ring_answer
 *
 * Proved.  No request is lost: the delegate, which waits for the bell after it found none, finds both. It reads what
 *          the client put into the slot, the client reads the delegate's answer, also in a slot that another client had
 *          before (SLOTS=1).
 * Mutants. mpiox_ring_give_back 1 SLOTS=1: the next client's request meets the last one's reads of the answer.
 *          push 1 SLOTS=2: the delegate's reads meet the client's request.
 * Sizes.   SLOTS=1 to 2, SLOTS=2 to 2 preemptions.
 */
#include "model.h"
#include "wait.h"

enum { THREADS = 3, CLIENTS = 2, SLOT_FREE = 0, SLOT_TAKEN = 1, SLOT_POSTED = 2, ANSWERED = 1 };
enum { MPIOX_FRAME_QUEUED = 2, MPIOX_CACHE_NO_FRAME = 99 };

typedef struct mpiox_slot {
    ATOMIC(uint32_t) taken;
    mpiox_futex done;
    PLAIN(int) page, result;
} mpiox_slot;
typedef struct mpiox_ring_area {
    mpiox_futex bell;
    uint32_t slots, tokens, cursor;
    mpiox_slot slot[SLOTS];
    ATOMIC(uint64_t) pending, summary;
} mpiox_ring_area;
typedef struct mpiox_frame {
    ATOMIC(uint32_t) flags;
} mpiox_frame;
typedef struct mpiox_cache {
    mpiox_ring_area *ring;
    mpiox_frame *frames;
} mpiox_cache;

struct model {
    mpiox_ring_area ring;
    mpiox_frame frames[1];
};
MODEL

#define slot_of(ring, index) (&(ring)->slot[index])
#define token_of(ring, at) ((uint32_t)((at) - (ring)->slot))
#define pending_of(ring) (&(ring)->pending)
#define summary_of(ring) (&(ring)->summary)
#define mpiox_ring_op_name(op) ""
#define MPIOX_POINT_OF(name, of) ((void)(of))
static void mpiox_ring_give_back(mpiox_slot *slot);

#include "functions.h"

static void client(const mpiox_cache *cache, int number)
{
    mpiox_slot *slot = &m->ring.slot[number % SLOTS];
    do {
        WAIT_WHILE(atomic_load_explicit(&slot->taken, memory_order_relaxed) != SLOT_FREE);
    } while (!claim_slot(slot));
    slot->page = 1 + number;
    CHECK(send_and_wait(cache, slot, NULL) == ANSWERED);
    CHECK(slot->result == 10 + number);
    mpiox_ring_give_back(slot);
}

static void serve(const mpiox_cache *cache)
{
    for (int answered = 0; answered < CLIENTS;) {
        const uint32_t seen = mpiox_futex_get(&cache->ring->bell);
        mpiox_slot *slot;
        uint32_t frame;
        if (mpiox_ring_next(cache, &slot, &frame)) {
            CHECK(slot != NULL && mpiox_ring_is_awaited(slot));
            mpiox_ring_answer(slot, 9 + slot->page);
            answered++;
        } else {
            mpiox_wait_while(&cache->ring->bell, seen, NULL);
        }
    }
}

static void prepare(void)
{
    m->ring.slots = SLOTS;
    m->ring.tokens = SLOTS + 1;
}

static void run(int thread)
{
    const mpiox_cache cache = {&m->ring, m->frames};
    if (thread == CLIENTS)
        serve(&cache);
    else
        client(&cache, thread);
}

static void verdict(void) {}
