/*
 * mpiox_forwarded_migrate.c - one page range changes owners.
 *
 * Algorithm. Three requests. The old owner lets no client access the range, writes its pages to the file and drops
 *            them; the new one takes the range over; the old one redirects clients. Accesses wait meanwhile. If the
 *            process that moves the range dies between the requests, a client that waits for the range makes the
 *            missing ones: it queries the old owner for the move now and then. csrc/iod/server/mpiox_server_ranges.h
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

    slot.question.commit.range = range;
    slot.question.commit.version = version;
    slot.question.commit.stamp = stamp;
    const int code = mpiox_forwarded_request(forwarded, to, &slot);

    if (known_version != NULL)
        *known_version = code == MPIOX_E_ARG ? slot.answer.range.version : 0;
    return code;
}

int mpiox_forwarded_commit(const mpiox_forwarded *forwarded, int32_t range, int32_t to, int64_t version)
{
    return commit(forwarded, range, to, version, 0, NULL);
}

static int migrate(const mpiox_forwarded *forwarded, int32_t from, int64_t step, mpiox_slot *slot)
{
    slot->op = MPIOX_OP_MIGRATE;
    slot->question.migrate.step = step;
    return mpiox_forwarded_request(forwarded, from, slot);
}

/* The steps after the first, by which `from` gives the range to `to`. Returns the owner after them. *known_version: see
 * commit(). */
static int32_t finish(const mpiox_forwarded *forwarded, int32_t from, int32_t to, const mpiox_slot *begun,
                      int64_t *known_version)
{
    mpiox_slot end = *begun;
    const int code = commit(forwarded, (int32_t)begun->question.range, to, begun->answer.range.version,
                            begun->answer.range.stamp, known_version);
    const int32_t owner = code == MPIOX_OK || code == MPIOX_E_UNSUPPORTED ? to : from;

    end.question.migrate.to = owner;
    (void)migrate(forwarded, from, MPIOX_MIGRATE_END, &end); /* if it is dead no client queries it */
    return owner;
}

bool mpiox_forwarded_migrate_range(mpiox_forwarded *forwarded, int32_t range, int32_t from, int32_t to, int64_t least)
{
    const int64_t step = least > 0 ? MPIOX_MIGRATE_REPAIR : MPIOX_MIGRATE_BEGIN;

    for (int tries = 0; tries < 2; tries++) {
        mpiox_slot slot = {.op = MPIOX_OP_MIGRATE};
        int64_t known_version = 0;

        slot.question.migrate.range = range;
        slot.question.migrate.to = to;
        slot.question.migrate.least_version = least;
        if (migrate(forwarded, from, step, &slot) != MPIOX_OK)
            return false;
        forwarded->placed[range] = (int16_t)finish(forwarded, from, to, &slot, &known_version);
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

    slot.question.migrate.range = range;
    if (migrate(forwarded, from, MPIOX_MIGRATE_TAKE_OVER, &slot) != MPIOX_OK || slot.answer.range.owner < 0 ||
        slot.answer.range.owner >= forwarded->owners)
        return false;
    (void)finish(forwarded, from, (int32_t)slot.answer.range.owner, &slot, NULL);
    return true;
}
