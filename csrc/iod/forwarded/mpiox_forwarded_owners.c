/*
 * mpiox_forwarded_owners.c - the owner of each page range: querying delegates, and settling contradictions when a file
 * is opened.
 *
 * Problem.   The delegates make and release records one after the other. If one communicator opens a file while another
 *            closes it, some delegates may have a new record and some the earlier one. Then a range may have no owner,
 *            two, or one that no client is redirected to.
 * Algorithm. Rank 0 has opened the file everywhere, so that no record is released any more. It queries each delegate
 *            about each range, and broadcasts the owners. If one delegate owns a range, that is the owner; every other
 *            record leads there by complete moves. If a range is moving, its mover will give it an owner. Otherwise
 *            rank 0 queries each delegate twice: if all answers and versions are equal both times, they were true at
 *            one moment. If no delegate owns the range, its first owner takes it over, with a version above all known
 *            ones, so that a second process that tries the same changes nothing. If two own it, the second gives it to
 *            the first, which keeps it if it still owns it; otherwise rank 0 queries again.
 * Guarantee. When the first access is made each range has one owner, and each rank finds it.
 */
#include <string.h>

#include "mpiox_forwarded_impl.h"

enum { MOST_LOOKS = 400 };

/* The owners that one delegate knows. False: it is dead, or it has another file under this number. */
static bool owners_at(const mpiox_forwarded *forwarded, int32_t owner, int16_t *now)
{
    const mpiox_process *delegate = mpiox_forwarded_owner(forwarded, owner);
    const int32_t index = forwarded->index[owner];

    if (!delegate->local)
        return mpiox_link_owners(delegate->link, index, now, forwarded->ranges) == MPIOX_OK;
    for (int32_t r = 0; r < forwarded->ranges; r++)
        now[r] = atomic_load(&delegate->cache.header->files[index].owner_of[r]);
    return true;
}

bool mpiox_forwarded_begin_change(mpiox_forwarded *forwarded, int32_t owner)
{
    mpiox_link *link = mpiox_forwarded_owner(forwarded, owner)->link;
    mpiox_error ignored;

    pthread_mutex_lock(&forwarded->ordering);
    if (link == NULL || !forwarded->collects || mpiox_link_drain(link, &ignored) == MPIOX_OK)
        return true;
    pthread_mutex_unlock(&forwarded->ordering);
    return false;
}

void mpiox_forwarded_end_change(mpiox_forwarded *forwarded)
{
    atomic_fetch_add(&forwarded->changes, 1);
    pthread_mutex_unlock(&forwarded->ordering);
}

void mpiox_forwarded_learn(mpiox_forwarded *forwarded, int32_t owner, bool take_over)
{
    int16_t now[MPIOX_FILE_RANGES];

    if (!owners_at(forwarded, owner, now))
        return;
    for (int32_t r = 0; take_over && r < forwarded->ranges; r++)
        if (atomic_load(&forwarded->owner_of[r]) == owner && now[r] == MPIOX_RANGE_MOVING)
            (void)mpiox_forwarded_take_over(forwarded, r, owner);
    if (!mpiox_forwarded_begin_change(forwarded, owner))
        return;
    for (int32_t r = 0; r < forwarded->ranges; r++)
        if (atomic_load(&forwarded->owner_of[r]) == owner && now[r] >= 0 && now[r] < forwarded->owners)
            atomic_store(&forwarded->owner_of[r], now[r]);
    mpiox_forwarded_end_change(forwarded);
}

void mpiox_forwarded_ask_owner(mpiox_forwarded *forwarded, int32_t owner)
{
    int16_t now[MPIOX_FILE_RANGES];

    if (!owners_at(forwarded, owner, now))
        return;
    for (int32_t r = 0; r < forwarded->ranges; r++)
        if (forwarded->placed[r] == owner && now[r] >= 0 && now[r] < forwarded->owners)
            forwarded->placed[r] = now[r];
}

int mpiox_forwarded_ask_range(const mpiox_forwarded *forwarded, int32_t range, int32_t owner, bool never,
                              mpiox_range_state *out)
{
    mpiox_slot slot = {.op = MPIOX_OP_OWNER};

    slot.question.owner.range = range;
    slot.question.owner.never = never;
    const int code = mpiox_forwarded_request(forwarded, owner, &slot);

    *out = (mpiox_range_state){.owner = (int16_t)slot.answer.range.owner, .version = slot.answer.range.version};
    return code;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

typedef struct view {                            /* of one range */
    mpiox_range_state answer[MPIOX_FILE_RANGES]; /* by each delegate */
    int32_t owner, second;                       /* the first two that have it; -1: none */
    int32_t moving;                              /* at one; -1: at none */
    int64_t version;                             /* the highest */
} view;

static bool look(const mpiox_forwarded *forwarded, int32_t range, view *out)
{
    memset(out, 0, sizeof *out);
    out->owner = out->second = out->moving = -1;
    for (int32_t i = 0; i < forwarded->owners; i++) {
        mpiox_range_state *answer = &out->answer[i];

        if (mpiox_forwarded_ask_range(forwarded, range, i, false, answer) != MPIOX_OK)
            return false;
        if (answer->owner == i && out->owner >= 0 && out->second < 0)
            out->second = i;
        if (answer->owner == i && out->owner < 0)
            out->owner = i;
        if (answer->owner == MPIOX_RANGE_MOVING)
            out->moving = i;
        if (answer->version > out->version && answer->version < MPIOX_VERSION_NEVER)
            out->version = answer->version;
    }
    return true;
}

static bool is_same(const mpiox_forwarded *forwarded, const view *a, const view *b)
{
    for (int32_t i = 0; i < forwarded->owners; i++)
        if (a->answer[i].owner != b->answer[i].owner || a->answer[i].version != b->answer[i].version)
            return false;
    return true;
}

/* False: a delegate does not answer, or the answers never agree. */
static bool find_one(mpiox_forwarded *forwarded, int32_t range)
{
    mpiox_backoff backoff = {0};
    view now, before = {.version = -1};

    for (int looks = 0; looks < MOST_LOOKS; looks++) {
        if (!look(forwarded, range, &now))
            return false;
        if (now.second < 0 && (now.owner >= 0 || now.moving >= 0)) {
            forwarded->placed[range] = (int16_t)(now.owner >= 0 ? now.owner : now.moving);
            return true;
        }
        if (now.second >= 0)
            (void)mpiox_forwarded_migrate_range(forwarded, range, now.second, now.owner, now.version + 1);
        else if (before.version >= 0 && is_same(forwarded, &before, &now))
            (void)mpiox_forwarded_commit(forwarded, range, range % forwarded->owners, now.version + 1);
        before = now;
        mpiox_wait_backoff(&backoff);
    }
    return false;
}

bool mpiox_forwarded_find_owners(mpiox_forwarded *forwarded)
{
    int16_t now[MPIOX_FILE_RANGES], have[MPIOX_FILE_RANGES] = {0};

    for (int32_t r = 0; r < forwarded->ranges; r++)
        forwarded->placed[r] = -1;
    for (int32_t i = 0; i < forwarded->owners; i++) {
        if (!owners_at(forwarded, i, now))
            return false;
        for (int32_t r = 0; r < forwarded->ranges; r++) {
            if (now[r] != i)
                continue;
            forwarded->placed[r] = (int16_t)i;
            have[r]++;
        }
    }
    for (int32_t r = 0; r < forwarded->ranges; r++)
        if (have[r] != 1 && !find_one(forwarded, r))
            return false;
    return true;
}
