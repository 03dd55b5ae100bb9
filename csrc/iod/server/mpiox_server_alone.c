/*
 * mpiox_server_alone.c - exclusive use of a frame, even if a client that had pinned it has died.
 *
 * Problem.    A client that is killed in the middle of an access never unpins its frame. The frame could be neither
 *             cleaned nor reused, and a cache of one page would be lost.
 * Algorithm.  Clients pin a frame for one copy and wait for nothing meanwhile. If a pin lasts for two seconds after a
 *             client is known to have died (or no client is left), the delegate takes it for the dead client's, and
 *             removes it.
 * Guarantees. While no client has died no pin is ever removed: a client that was stopped keeps its frame. The frame's
 *             dirty bytes are written all the same, as often as flush barriers request it.
 */
#include "mpiox_server_alone.h"

#include <sched.h>

static const double first_s = 1, again_s = 0.05, dead_s = 2, alone_s = 0.1;
enum { LOOKS = 200 };

/* Can a pin that has lasted so long belong to a dead client? Each dead client counts once. */
static bool is_dead_pin(mpiox_server *server, double pinned_s)
{
    int32_t dead = atomic_load(&server->dead);
    if (atomic_load(&server->joined) && atomic_load(&server->clients) == 0)
        return pinned_s >= alone_s;
    if (pinned_s < dead_s)
        return false;
    while (dead > 0) {
        if (atomic_compare_exchange_weak(&server->dead, &dead, dead - 1))
            return true;
    }
    return false;
}

/* Keep new clients out, and remove the pins that stay. Clients that find the frame exclusive raise and lower the count
 * at any time, so the lowest count seen is used. */
static void take_pins_away(mpiox_server *server, uint32_t frame)
{
    _Atomic uint32_t *pins = &server->cache.frames[frame].pins;
    uint32_t least = UINT32_MAX;
    atomic_fetch_or(pins, MPIOX_FRAME_EXCLUSIVE);
    for (int i = 0; i < LOOKS; i++) {
        const uint32_t seen = atomic_load(pins) & ~MPIOX_FRAME_EXCLUSIVE;
        least = seen < least ? seen : least;
        sched_yield();
    }
    atomic_fetch_sub(pins, least);
}

bool mpiox_server_alone(mpiox_server *server, uint32_t frame)
{
    mpiox_frame_info *info = &server->info[frame];
    double wait = info->pinned_since == 0 ? first_s : again_s;
    for (;;) {
        const double since = mpiox_now(), step = wait < again_s ? wait : again_s;
        if (mpiox_frame_wait_exclusive(&server->cache, frame, step)) {
            info->pinned_since = 0;
            return true;
        }
        if (info->pinned_since == 0)
            info->pinned_since = since;
        if (is_dead_pin(server, mpiox_now() - info->pinned_since)) {
            take_pins_away(server, frame);
            wait = first_s;
            continue;
        }
        wait -= step;
        if (wait <= 0)
            return false;
    }
}
