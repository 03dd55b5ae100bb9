/*
 * pins.c - a client writes a page, and another reads it, while the page's range moves to another delegate:
 * csrc/iod/cache/mpiox_frame.h, csrc/iod/server/mpiox_server_ranges.h.
 *
 * from csrc/iod/cache/mpiox_frame.c: mpiox_frame_unpin mpiox_frame_find look_at_owner is_unchanged try_pin begin_change
 *     end_change mpiox_frame_insert mpiox_frame_remove mpiox_frame_end_exclusive mpiox_frame_wait_exclusive
 * from csrc/iod/cache/mpiox_cache_page.c: write_pinned
 * from csrc/iod/server/mpiox_server_ranges.c: owner_of move_of mpiox_server_begin_migration end_migration
 *
 * The old owner begins the move, waits until it has the page's frame alone, writes the page to the file, removes it,
 * ends the move, and uses the frame for another page. The new owner's page is the file here.
 *
 * Proved.  No byte is lost: the file has what the client wrote, through the old owner or past it. Nobody accesses the
 *          frame or the file while another writes the same byte, not even a client that finds the frame too late. No
 *          client misses the page while the range is the old owner's.
 * Mutants. mpiox_frame_unpin 1 CLIENTS=1: the delegate's read of the page meets the client's write.
 *          mpiox_frame_wait_exclusive 2 CLIENTS=2: the same.
 * Sizes.   CLIENTS=1 to 3, CLIENTS=2 to 2 preemptions.
 */
#include "frames.h"

enum { THREADS = CLIENTS + 1, TRIES = CLIENTS == 1 ? 3 : 1, OLD = 5, NEW = 7 };
struct model {
    mpiox_cache_header header;
    mpiox_frame frames[1];
    ATOMIC(uint32_t) bucket;
    PLAIN(int) bytes[2], file[2]; /* of the frame; of page 0. One client writes the first, another reads the second */
    mpiox_server server;
    int wrote;
};
MODEL

#include "functions.h"

static void write_page(const mpiox_cache *cache)
{
    const mpiox_page_access access = {0, 0, 0};
    const span all = {PAGE_BYTES};
    uint32_t frame;
    int result;
    bool moving;
    for (int tries = 0; tries < TRIES; tries++) {
        if (!try_pin(cache, 0, 0, &frame, &result, &moving))
            continue;
        CHECK(result != MPIOX_FRAME_MISS);
        if (result == MPIOX_FRAME_HIT)
            CHECK(write_pinned(cache, &access, frame, &all) == MPIOX_OK);
        else
            m->file[0] = NEW;
        m->wrote = true;
        return;
    }
}

static void read_page(const mpiox_cache *cache)
{
    uint32_t frame;
    int result;
    bool moving;
    if (!try_pin(cache, 0, 0, &frame, &result, &moving))
        return;
    CHECK(result != MPIOX_FRAME_MISS);
    CHECK((int)(result == MPIOX_FRAME_HIT ? m->bytes[1] : m->file[1]) == OLD);
    if (result == MPIOX_FRAME_HIT)
        mpiox_frame_unpin(cache, frame);
}

static void move(mpiox_server *server)
{
    const mpiox_cache *cache = &server->cache;
    mpiox_slot slot = {0};
    slot.question.migrate.to = 1;
    mpiox_server_begin_migration(server, &slot);
    CHECK(mpiox_frame_find(cache, 0, 0) == 0);
    mpiox_frame_wait_exclusive(cache, 0, 1);
    for (int i = 0; i < 2; i++)
        m->file[i] = (int)m->bytes[i];
    mpiox_frame_remove(cache, 0);
    m->bytes[0] = m->bytes[1] = 0;
    CHECK(end_migration(server, &slot) == MPIOX_OK);
    mpiox_frame_insert(cache, 0, 0, 1, false);
}

static void prepare(void)
{
    prepare_frames(&m->header, m->frames, &m->server);
    for (int i = 0; i < 2; i++)
        m->bytes[i] = m->file[i] = OLD;
    m->wrote = false;
}

static void run(int thread)
{
    if (thread == CLIENTS)
        move(&m->server);
    else if (thread == 0)
        write_page(&m->server.cache);
    else
        read_page(&m->server.cache);
}

static void verdict(void)
{
    CHECK((int)m->file[0] == (m->wrote ? NEW : OLD));
}
