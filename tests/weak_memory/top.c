/*
 * top.c - a rank opens and closes a file while `mpiio-ext top` reads its page: csrc/core/live/mpiox_live.h.
 *
 * from csrc/core/live/mpiox_live.c: change_begins change_ends move_to_rest mpiox_live_close
 * from csrc/tools/binding/mpiio_ext_tools.c: mpiio_ext_fence
 *
 * The reader is _calm() of mpiio_ext/top/pages.py, its barrier mpiio_ext_fence().
 *
 * Proved.  What a reader takes, because `change` was even and the same before and after, is the page of one moment: the
 *          bytes of a file that is being closed are counted once.
 * Mutants. change_begins 1 READS=1: the reader takes half of a change for the page of one moment.
 *          mpiio_ext_fence 1 READS=1: the same.
 * Sizes.   READS=1 to 3 preemptions.
 */
#include "model.h"

enum { THREADS = 2, BYTES = 6, OPENED = 9 };

typedef struct mpiox_live_counters {
    ATOMIC(int64_t) bytes[2], calls[2];
} mpiox_live_counters;
typedef struct mpiox_live_file {
    mpiox_live_counters counters;
    ATOMIC(int64_t) opened_ns;
} mpiox_live_file;
typedef struct mpiox_live_page {
    ATOMIC(uint64_t) change;
    ATOMIC(int64_t) open, unlisted;
    mpiox_live_counters rest;
} mpiox_live_page;

struct model {
    mpiox_live_page page;
    mpiox_live_file files[1];
    mpiox_live_counters none;
};
MODEL

static mpiox_live_page *page;
static mpiox_live_file *files;
static int first_free;

#define unseen (m->none)
#undef pthread_mutex_lock
#define pthread_mutex_lock(mutex) ((void)0)
#define pthread_mutex_unlock(mutex) ((void)0)

#include "functions.h"

static void read_page(void)
{
    const uint64_t before = atomic_load_explicit(&page->change, memory_order_relaxed);
    mpiio_ext_fence();
    const int64_t open = atomic_load_explicit(&page->open, memory_order_relaxed);
    const int64_t rest = atomic_load_explicit(&page->rest.bytes[1], memory_order_relaxed);
    const int64_t opened = atomic_load_explicit(&files[0].opened_ns, memory_order_relaxed);
    const int64_t bytes = atomic_load_explicit(&files[0].counters.bytes[1], memory_order_relaxed);
    mpiio_ext_fence();
    if (before % 2 != 0 || atomic_load_explicit(&page->change, memory_order_relaxed) != before)
        return;
    CHECK(bytes + rest == BYTES);
    CHECK((opened == OPENED) == (open == 1) && (opened == 0) == (rest == BYTES));
}

static void prepare(void)
{
    page = &m->page;
    files = m->files;
    first_free = 0;
    atomic_store_explicit(&page->open, 1, memory_order_relaxed);
    atomic_store_explicit(&files[0].counters.bytes[1], BYTES, memory_order_relaxed);
    atomic_store_explicit(&files[0].opened_ns, OPENED, memory_order_relaxed);
}

static void run(int thread)
{
    if (thread == 0)
        mpiox_live_close(&m->files[0].counters);
    else
        read_page();
}

static void verdict(void) {}
