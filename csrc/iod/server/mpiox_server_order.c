/*
 * mpiox_server_order.c - I/O threads: the next page, if a scheduler chooses it.
 *
 * Problem.    Which waiting page is next has many answers (csrc/iod/schedule); the work on a page, and what can be done
 *             at once, is the same for all of them.
 * Algorithm.  A page that waits to be filled or flushed is a request of the scheduler as long as it is in the queues of
 *             the built-in order, which are maintained, too. An I/O thread carries out the scheduler's batch like a run
 *             of pages from these queues. It carries out a page that is to be cut alone, and the pages behind it in its
 *             batch wait again.
 * Guarantees. In any order one thread works on a page, and flush barriers wait for their pages: no order of pages can
 *             change the contents of the file.
 */
#include "mpiox_server_order.h"

#include "mpiox_server_fill.h"
#include "mpiox_server_flush.h"

/* How many of the first ones can be carried out together. */
static int32_t count_together(const mpiox_server *server, const uint32_t *frames, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (server->info[frames[i]].wants & MPIOX_WANT_CUT)
            return i > 0 ? i : 1;
    }
    return count;
}

bool mpiox_server_order_some(mpiox_server *server, mpiox_io *io)
{
    uint32_t frames[MPIOX_RUN_FRAMES];
    bool write = false;
    const int32_t count = mpiox_server_take_batch(server, frames, &write);
    if (count == 0)
        return false;
    const int32_t now = write ? count_together(server, frames, count) : count;
    for (int32_t i = now; i < count; i++)
        mpiox_server_order_again(server, frames[i]);
    if (write)
        mpiox_server_flush_batch(server, io, frames, now);
    else
        mpiox_server_fill_batch(server, io, frames, count);
    return true;
}
