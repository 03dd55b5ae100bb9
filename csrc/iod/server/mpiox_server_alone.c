/*
 * mpiox_server_alone.c - exclusive use of a frame, also when a client that had it pinned has died.
 *
 * Problem.    A client that is killed in the middle of an access never unpins it. The frame could be neither
 *             cleaned nor reused, and a cache of one page would be lost.
 * Algorithm.  Clients pin a frame for one copy and wait for nothing meanwhile. A pin that outlasts two seconds while
 *             a client is known to have died since (or when no client is left) is taken for the dead one's, and taken
 *             away.
 * Guarantees. Without a client that died no pin is ever taken away: a client that was stopped keeps its frame, whose
 *             dirty bytes are written all the same, as often as a flush barrier asks.
 */
#include "mpiox_server_alone.h"

#include <sched.h>

static const double first_s = 1, again_s = 0.05, dead_s = 2, alone_s = 0.1;
enum { LOOKS = 200 };

/* May a pin that has lasted so long be a dead client's? Takes that client's word for it once. */
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

/* Let nobody in, see how many pins stay, and take these away. Clients that find the frame exclusive raise and lower
 * the count at any time, so the least that was seen counts. */
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
