/*
 * mpiox_forwarded_migrate.c - one page range changes owners.
 *
 * Algorithm. Three requests. The old owner lets no client access the range, writes its pages to the file and drops
 *            them; the new one takes the range over; the old one redirects clients. Accesses wait meanwhile. If the
 *            process that moves the range dies between the requests, a client that waits for the range makes the
 *            missing ones: it asks the old owner for the move now and then. csrc/iod/server/mpiox_server_ranges.h
 *            explains why no step takes effect twice, or late. If the new owner dies, it may have owned the range for a
 *            moment. So the range goes to it all the same, and mpiox_forwarded_failover.c finds that no living delegate
 *            owns it.
 * Guarantee. A range has one owner at a time; its pages are in the file before the next delegate owns it.
 */
#include <pthread.h>

#include "mpiox_forwarded_impl.h"

static pthread_mutex_t moving = PTHREAD_MUTEX_INITIALIZER;

void mpiox_forwarded_migrate_lock(void)
{
    pthread_mutex_lock(&moving);
}

void mpiox_forwarded_migrate_unlock(void)
{
    pthread_mutex_unlock(&moving);
}

/* *known_version (or NULL): if the delegate refuses, the version that it knows. */
static int commit(const mpiox_forwarded *forwarded, int32_t range, int32_t to, int64_t version, int64_t stamp,
                  int64_t *known_version)
{
    mpiox_slot slot = {.op = MPIOX_OP_COMMIT};

    slot.arg[0] = range;
    slot.arg[1] = version;
    slot.arg[2] = stamp;
    const int code = mpiox_forwarded_request(forwarded, to, &slot);

    if (known_version != NULL)
        *known_version = code == MPIOX_E_ARG ? slot.arg[3] : 0;
    return code;
}

int mpiox_forwarded_commit(const mpiox_forwarded *forwarded, int32_t range, int32_t to, int64_t version)
{
    return commit(forwarded, range, to, version, 0, NULL);
}

static int migrate(const mpiox_forwarded *forwarded, int32_t from, int64_t step, mpiox_slot *slot)
{
    slot->op = MPIOX_OP_MIGRATE;
    slot->arg[2] = step;
    return mpiox_forwarded_request(forwarded, from, slot);
}

/* The steps after the first. Returns the owner after them. *known_version: see commit(). */
static int32_t finish(const mpiox_forwarded *forwarded, int32_t from, const mpiox_slot *begun, int64_t *known_version)
{
    mpiox_slot end = *begun;
    const int32_t to = (int32_t)begun->arg[1];
    const int code = commit(forwarded, (int32_t)begun->arg[0], to, begun->arg[3], begun->arg[2], known_version);

    end.arg[1] = code == MPIOX_OK || code == MPIOX_E_UNSUPPORTED ? to : from;
    (void)migrate(forwarded, from, MPIOX_MIGRATE_END, &end); /* if it is dead no client queries it */
    return (int32_t)end.arg[1];
}

bool mpiox_forwarded_migrate_range(mpiox_forwarded *forwarded, int32_t range, int32_t from, int32_t to, int64_t least)
{
    const int64_t step = least > 0 ? MPIOX_MIGRATE_REPAIR : MPIOX_MIGRATE_BEGIN;

    for (int tries = 0; tries < 2; tries++) {
        mpiox_slot slot = {.op = MPIOX_OP_MIGRATE};
        int64_t known_version = 0;

        slot.arg[0] = range;
        slot.arg[1] = to;
        slot.arg[3] = least;
        if (migrate(forwarded, from, step, &slot) != MPIOX_OK)
            return false;
        forwarded->placed[range] = (int16_t)finish(forwarded, from, &slot, &known_version);
        if (forwarded->placed[range] == to)
            return true;
        if (known_version < least || known_version + 1 >= MPIOX_VERSION_NEVER) /* it moves there, or never will */
            return false;
        least = known_version + 1; /* its record is older than the one here, and knows of more moves */
    }
    return false;
}

bool mpiox_forwarded_take_over(const mpiox_forwarded *forwarded, int32_t range, int32_t from)
{
    mpiox_slot slot = {.op = MPIOX_OP_MIGRATE};

    slot.arg[0] = range;
    if (migrate(forwarded, from, MPIOX_MIGRATE_TAKE_OVER, &slot) != MPIOX_OK || slot.arg[1] < 0 ||
        slot.arg[1] >= forwarded->owners)
        return false;
    (void)finish(forwarded, from, &slot, NULL);
    return true;
}

/* ---- ranges that no rank has written to -------------------------------------------------------------------------- */

int mpiox_forwarded_begin_claim(const mpiox_forwarded *forwarded, int32_t range, int32_t from, int32_t to,
                                int64_t dirty, mpiox_slot *begun)
{
    *begun = (mpiox_slot){.op = MPIOX_OP_MIGRATE, .page = dirty};
    begun->arg[0] = range;
    begun->arg[1] = to;
    return migrate(forwarded, from, MPIOX_MIGRATE_CLAIM, begun);
}

void mpiox_forwarded_end_claim(mpiox_forwarded *forwarded, int32_t from, mpiox_slot *begun)
{
    forwarded->placed[begun->arg[0]] = (int16_t)finish(forwarded, from, begun, NULL);
}

void mpiox_forwarded_give_up_claim(const mpiox_forwarded *forwarded, int32_t from, mpiox_slot *begun)
{
    begun->arg[1] = from;
    (void)migrate(forwarded, from, MPIOX_MIGRATE_END, begun);
}
