/*
 * slot.c - ranks pass windows through one collective buffer: csrc/mpiio/buffers/mpiox_slots.c.
 *
 * from csrc/core/common/mpiox_wait.h: mpiox_futex_get
 * from csrc/core/common/mpiox_wait.c: wake mpiox_futex_set
 * from csrc/mpiio/buffers/mpiox_slots.c: claim mpiox_slot_arrive write_full load leave mpiox_slot_await
 * mpiox_slots_finish
 *
 * Proved.  A window is written once, after the last rank has copied its piece in, and no rank copies the next one in
 *          before that (WAY=1: three ranks and one window; WAY=2: two windows). A window is read once, before the first
 *          rank copies its piece out, and the next one after the last rank has done so (WAY=3: three ranks and one
 *          window; WAY=4: two windows). No rank waits for ever.
 * Mutants. mpiox_slot_arrive 1 WAY=1: the writer's reads meet the copies of the other ranks.
 *          mpiox_futex_set 1 WAY=3: a rank's read of the buffer meets that of the file.
 * Sizes.   WAY=1 to 2, WAY=2 to 1, WAY=3 to 2, WAY=4 to 1 preemptions.
 */
#define SYMMETRIC 1 /* a cell of the buffer is as good as any other */
#include "model.h"

static void write_one(void *call, uint32_t phase);
#define IDLE(idle) write_one((idle)->context, old)
#include "wait.h"

enum { WRITES = WAY <= 2, THREADS = 3, ROUNDS = WAY % 2 ? 1 : 2, MPIOX_PART_WAITING = 0 };

typedef struct mpiox_buffer_slot {
    mpiox_futex phase;
    ATOMIC(uint32_t) arrived, claimed;
    ATOMIC(int64_t) window;
} mpiox_buffer_slot;
typedef struct mpiox_buffers {
    int n_local, per_aggregator;
} mpiox_buffers;
typedef struct mpiox_progress {
    uint32_t begun;
} mpiox_progress;
typedef struct mpiox_call {
    mpiox_buffers *b;
    mpiox_progress *progress;
    bool write;
    int participants;
} mpiox_call;
typedef int mpiox_part;

struct model {
    mpiox_buffer_slot slot;
    PLAIN(int) buffer[THREADS], windows; /* windows that were written or read */
};
MODEL

#define may_do_io(call, local) true
#define mpiox_slot_local(b, slot) 0
#define mpiox_slots_idle NULL
#define mpiox_slot_of(b, local, sequence) (&m->slot)
#define mpiox_parts_on(part) 0
#define mpiox_wait_for(what, number) ((void)0)

static int piece(int window, int rank)
{
    return 10 * window + rank + 1;
}

static void mpiox_window_write(mpiox_call *call, mpiox_buffer_slot *slot)
{
    const int window = (int)m->windows;
    (void)call, (void)slot;
    for (int rank = 0; rank < THREADS; rank++)
        CHECK((int)m->buffer[rank] == piece(window, rank));
    m->windows = window + 1;
}

static void mpiox_window_read(mpiox_call *call, mpiox_buffer_slot *slot)
{
    const int window = (int)m->windows;
    (void)call, (void)slot;
    for (int rank = 0; rank < THREADS; rank++)
        m->buffer[rank] = piece(window, rank);
    m->windows = window + 1;
}

#include "functions.h"

/* The writing alone: a rank that waits for a window does not wait for MPI, nor read ahead with one buffer. It tries to
 * write only if the phase that it waits to leave is that of a full window. In the library it also tries while it waits
 * for a window to become full. Nothing is lost: here that wait ends when the window is full, and the rank then waits to
 * leave this phase, and tries. */
static void write_one(void *call, uint32_t phase)
{
    if (WRITES && phase % 2)
        write_full((mpiox_call *)call);
}

static void prepare(void)
{
    m->windows = 0;
}

static void run(int rank)
{
    mpiox_buffers buffers = {1, 1};
    mpiox_progress progress = {ROUNDS};
    mpiox_call call = {&buffers, &progress, (bool)WRITES, THREADS};
    for (int window = 0; window < ROUNDS; window++) {
        mpiox_slot_await(&call, &m->slot, (uint32_t)window, window);
        if (WRITES)
            m->buffer[rank] = piece(window, rank);
        else
            CHECK((int)m->buffer[rank] == piece(window, rank));
        mpiox_slot_arrive(&call, &m->slot);
    }
    if (WRITES)
        mpiox_slots_finish(&call);
}

static void verdict(void)
{
    CHECK((int)m->windows == ROUNDS);
}
