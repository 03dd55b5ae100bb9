/*
 * claim.c - a rank claims a scratch range whose pages are not written to the file, while another rank writes to it:
 * csrc/iod/forwarded/mpiox_forwarded_claim.c, csrc/iod/server/mpiox_server_ranges.h.
 *
 * from csrc/iod/cache/mpiox_frame.c: mpiox_frame_unpin mpiox_frame_find look_at_owner is_unchanged try_pin begin_change
 *     end_change mpiox_frame_insert mpiox_frame_end_exclusive mpiox_frame_wait_exclusive
 * from csrc/iod/cache/mpiox_cache_page.c: write_pinned
 * from csrc/iod/server/mpiox_server_ranges.c: owner_of move_of mpiox_server_begin_migration end_migration
 *
 * The delegate serves requests one by one, as ring.c proves. It gives the range up if no page of it is there.
 *
 * Proved.  The rank's byte is where later ranks find it: in the frame if the claim was refused, at the new owner if the
 *          rank was redirected there. A rank never writes to a frame of a range that has gone.
 * Mutants. mpiox_frame_unpin 1 SIZE=1: the delegate's read of the page meets the rank's write.
 * Sizes.   SIZE=1 to 2 preemptions.
 */
#include "frames.h"

enum { THREADS = 3, NEW = 7, PAGE = 0, CLAIM = 1, TRIES = 2, GIVEN = 1, MOVED, GRANTED, REFUSED };

struct model {
    mpiox_cache_header header;
    mpiox_frame frames[1];
    ATOMIC(uint32_t) bucket;
    PLAIN(int) bytes[1], file[1]; /* of the frame; of the page at the new owner */
    mpiox_server server;
    ATOMIC(uint32_t) asked[2], answer[2], arrived; /* requests of two ranks */
    int granted, wrote;
};
MODEL

#include "functions.h"

static uint32_t ask(int what, bool wanted)
{
    uint32_t answer = 0;
    if (wanted)
        atomic_store_explicit(&m->asked[what], 1, memory_order_seq_cst);
    atomic_fetch_add_explicit(&m->arrived, 1, memory_order_seq_cst);
    if (wanted)
        WAIT_WHILE((answer = atomic_load_explicit(&m->answer[what], memory_order_acquire)) == 0);
    return answer;
}

static void write_page(const mpiox_cache *cache)
{
    const mpiox_page_access access = {0, 0, 0};
    const span all = {PAGE_BYTES};
    uint32_t frame = 0, answer = 0;
    int result = MPIOX_FRAME_MISS;
    bool moving, decided = false;
    for (int tries = 0; tries < TRIES && !decided; tries++)
        decided = try_pin(cache, 0, 0, &frame, &result, &moving);
    CHECK(!decided || result != MPIOX_FRAME_HIT); /* nobody else puts the page in */
    answer = ask(PAGE, decided && result == MPIOX_FRAME_MISS);
    m->wrote = decided;
    if (answer == GIVEN)
        CHECK(write_pinned(cache, &access, 0, &all) == MPIOX_OK);
    else if (decided)
        m->file[0] = NEW;
}

static void serve(mpiox_server *server, int what, bool *has_page)
{
    mpiox_slot slot = {0};
    uint32_t answer;
    if (atomic_load_explicit(&m->asked[what], memory_order_acquire) == 0)
        return;
    atomic_store_explicit(&m->asked[what], 0, memory_order_relaxed);
    if (what == PAGE) {
        *has_page = look_at_owner(&server->cache, 0, 0) == MPIOX_FRAME_HIT;
        if (*has_page)
            mpiox_frame_insert(&server->cache, 0, 0, 0, true);
        answer = *has_page ? GIVEN : MOVED;
    } else if (*has_page) {
        answer = REFUSED;
    } else {
        slot.question.migrate.to = 1;
        mpiox_server_begin_migration(server, &slot);
        CHECK(end_migration(server, &slot) == MPIOX_OK);
        answer = GRANTED;
    }
    atomic_store_explicit(&m->answer[what], answer, memory_order_seq_cst);
}

static void delegate(mpiox_server *server)
{
    bool has_page = false;
    for (uint32_t seen = 0, now; seen < 2; seen = now) {
        WAIT_WHILE((now = atomic_load_explicit(&m->arrived, memory_order_acquire)) == seen);
        serve(server, PAGE, &has_page);
        serve(server, CLAIM, &has_page);
    }
    if (has_page) {
        mpiox_frame_wait_exclusive(&server->cache, 0, 1);
        CHECK((int)m->bytes[0] == NEW);
    }
}

static void prepare(void)
{
    prepare_frames(&m->header, m->frames, &m->server);
    atomic_store_explicit(&m->bucket, MPIOX_CACHE_NO_FRAME, memory_order_relaxed);
    atomic_store_explicit(&m->frames[0].file, -1, memory_order_relaxed);
    m->bytes[0] = m->file[0] = 0;
    m->granted = m->wrote = false;
}

static void run(int thread)
{
    if (thread == 0)
        write_page(&m->server.cache);
    else if (thread == 1)
        m->granted = ask(CLAIM, true) == GRANTED;
    else
        delegate(&m->server);
}

static void verdict(void)
{
    CHECK((int)m->file[0] == (m->granted && m->wrote ? NEW : 0));
    CHECK((int)m->bytes[0] == (!m->granted && m->wrote ? NEW : 0));
}
