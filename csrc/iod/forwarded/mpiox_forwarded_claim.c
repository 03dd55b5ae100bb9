/*
 * mpiox_forwarded_claim.c - pages that are never written to the file system move to a delegate of the node whose rank
 * writes them first.
 *
 * Problem.   Owners by the static-cyclic file domain are on other nodes as a rule. So written bytes cross the network,
 *            only to stay in memory there: a scratch file has no servers for which the domain is good.
 * Algorithm. Before a rank writes to the start of a unit whose owner is elsewhere, it requests the unit's range from
 *            that owner, which gives it up if it has no page of it. A delegate of the rank's node becomes the owner,
 *            and gives another range in return to which no rank has written. The old owner redirects later ranks, as
 *            after any move. A rank requests a range once: if the owner refuses, the rank writes to the range where it
 *            is, and after that no delegate can get it.
 * Room.      Units have so many pages that all ranges together cover the caches of all delegates. Only ranges that fit
 *            into the caches together are exchanged, so that each delegate keeps its share: a file that fits into all
 *            caches fits whichever rank writes it.
 * Guarantee. That of mpiox_forwarded_migrate.c. A range that cannot move is written where it is.
 * Limits.    No range moves in jobs with an arbiter, whose remapping decides where pages are. Several files written by
 *            ranks of one node must not fill its cache while others are empty: a delegate gives nothing to one whose
 *            cache is fuller, except for a part of the free frames there.
 */
#include "mpiox_forwarded_impl.h"

enum {
    LEAST_UNITS = 16, /* of a delegate's cache */
    OTHERS = 8,       /* part of the cache that such files may not use (mpiox_server_unwritten.c) */
    MOST_OWNERS = 3   /* that are asked for a range: another rank may have moved it */
};

int32_t mpiox_forwarded_claim_unit(const mpiox_service *service, int32_t owners)
{
    const int64_t pages = service->cap_bytes / service->page_bytes, units = mpiox_file_ranges(owners) / owners,
                  least = units > LEAST_UNITS ? units : LEAST_UNITS;

    return (int32_t)((pages + least - 1) / least);
}

int32_t mpiox_forwarded_claimable(const mpiox_forwarded *forwarded)
{
    const int64_t unit = forwarded->unit_bytes / forwarded->page_bytes;
    int64_t ranges = forwarded->ranges;
    bool any_here = false;

    if (!forwarded->decision.unwritten || !forwarded->any_remote || forwarded->service->hints.arbiter[0] != '\0')
        return 0;
    for (int32_t i = 0; i < forwarded->owners; i++) {
        const mpiox_process *delegate = mpiox_forwarded_owner(forwarded, i);

        if (!delegate->local)
            continue;
        const int64_t frames = delegate->cache.frame_count, fit = (frames - frames / OTHERS) / unit * forwarded->owners;

        ranges = fit < ranges ? fit : ranges;
        any_here = true;
    }
    return any_here ? (int32_t)ranges : 0;
}

/* ---- an exchange ------------------------------------------------------------------------------------------------- */

/* The range that lies k-th farthest from this one, at either side. */
static int32_t far_from(const mpiox_forwarded *forwarded, int32_t range, int32_t k)
{
    const int32_t ranges = forwarded->claimable, away = (k + 1) / 2;

    return (range + ranges / 2 + (k % 2 == 1 ? away : ranges - away)) % ranges;
}

/* Begin with one of `to`, to give for `range`. */
static bool give_another(mpiox_forwarded *forwarded, int32_t range, int32_t from, int32_t to, mpiox_slot *given)
{
    for (int32_t k = 0; k < forwarded->claimable; k++) {
        const int32_t other = far_from(forwarded, range, k);

        if (atomic_load(&forwarded->owner_of[other]) != to || atomic_load(&forwarded->claimed[other]))
            continue;
        const int code = mpiox_forwarded_begin_claim(forwarded, other, to, from, 0, given);

        if (code == MPIOX_OK)
            return true;
        if (code == MPIOX_E_ARG && given->answer.range.owner == to)
            atomic_store(&forwarded->claimed[other], true); /* a rank has written to it */
    }
    return false;
}

/* This rank accesses the range at `now` from here on, and no more at `before`. */
static void set_owner(mpiox_forwarded *forwarded, int32_t range, int32_t before, int32_t now)
{
    if (!mpiox_forwarded_begin_change(forwarded, before)) /* then it is sent on */
        return;
    atomic_store(&forwarded->owner_of[range], (int16_t)now);
    mpiox_forwarded_end_change(forwarded);
}

/* Begin both moves before either continues. Returns the range's last known owner: `to`; `from`, which does not give it
 * up; another delegate; or MPIOX_RANGE_MOVING. */
static int32_t exchange(mpiox_forwarded *forwarded, int32_t range, int32_t from, int32_t to, int64_t dirty)
{
    mpiox_slot wanted, given;
    const int code = mpiox_forwarded_begin_claim(forwarded, range, from, to, dirty, &wanted);

    if (code != MPIOX_OK)
        return code == MPIOX_E_ARG ? (int32_t)wanted.answer.range.owner : from;
    if (!give_another(forwarded, range, from, to, &given)) {
        mpiox_forwarded_give_up_claim(forwarded, from, &wanted);
        return from;
    }
    const int32_t other = (int32_t)given.question.range;

    mpiox_forwarded_end_claim(forwarded, from, &wanted);
    mpiox_forwarded_end_claim(forwarded, to, &given);
    set_owner(forwarded, other, to, forwarded->placed[other]);
    return forwarded->placed[range];
}

/* The delegate here with the fewest dirty pages; -1: there is none. */
static int32_t emptiest_here(const mpiox_forwarded *forwarded, int64_t *dirty)
{
    int32_t found = -1;

    for (int32_t i = 0; i < forwarded->owners; i++) {
        const mpiox_process *delegate = mpiox_forwarded_owner(forwarded, i);

        if (!delegate->local || atomic_load(&forwarded->lost[i]))
            continue;
        const int64_t now = atomic_load(&delegate->cache.header->dirty_frames);

        if (found >= 0 && now >= *dirty)
            continue;
        found = i;
        *dirty = now > 0 ? now : 0;
    }
    return found;
}

void mpiox_forwarded_claim(mpiox_forwarded *forwarded, int32_t range)
{
    int64_t dirty = 0;
    int32_t owner = atomic_load(&forwarded->owner_of[range]);

    if (range >= forwarded->claimable || mpiox_forwarded_owner(forwarded, owner)->local ||
        atomic_exchange(&forwarded->claimed[range], true))
        return;
    mpiox_forwarded_migrate_lock();
    const int32_t here = emptiest_here(forwarded, &dirty);

    for (int asked = 0; here >= 0 && asked < MOST_OWNERS; asked++) {
        const int32_t next = exchange(forwarded, range, owner, here, dirty);

        if (next == owner || next < 0 || next >= forwarded->owners)
            break;
        set_owner(forwarded, range, owner, next);
        if (mpiox_forwarded_owner(forwarded, next)->local)
            break;
        owner = next;
    }
    mpiox_forwarded_migrate_unlock();
}
