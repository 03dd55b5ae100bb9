/*
 * mpiox_server_order.c - I/O threads: what is next, where a scheduler says so.
 *
 * Problem.    Which of the pages that wait for the file system is next is a question with many answers
 * (csrc/iod/schedule);
 *             what is done with a page, and what may be done with it at once, is the same for all of them.
 * Algorithm.  A page that waits to be filled or flushed is a request of the scheduler as long as it is in the queues of
 *             the built-in order, which are kept too. A batch that it gives out is carried out like a run of pages that
 *             these would have given. A page that is to be cut off is carried out alone, and those behind it in its
 *             batch wait again.
 * Guarantees. Whatever the order, a page is worked on by one thread, and flush barriers wait for their pages: no order
 *             of pages can change what is in the file.
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
