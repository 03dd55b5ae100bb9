/*
 * mpiox_delegated_remap.c - the arbiter gives this job other I/O nodes while its files are open.
 *
 * Problem.   The delegates of a job, one on each I/O node that it may use, are started once. Which of them serve is to
 *            change while ranks read and write, without a fence and without a byte lost.
 * Algorithm. Rank 0 of each file follows the map (mpiox_arbiter.h) and gives the file's page ranges to the delegates
 *            of the I/O nodes that the job has now, as many to each. No range leaves a delegate that stays, unless that
 *            has more than its share. A range changes hands as in mpiox_delegated_move.c. All ranks, rank 0 too, learn
 *            of it when the old owner sends them on.
 * Guarantee. A range has one owner at a time. What cannot be moved (a delegate has died, a file with copies at buddies)
 *            stays where it is. Delegates that the job does not have serve no page.
 * Source.    J. L. Bez et al., "Arbitration Policies for On-Demand User-Level I/O Forwarding on HPC Platforms", 2021,
 *            Section 4.
 */
#include <stdio.h>
#include <string.h>

#include "mpiox_arbiter.h"
#include "mpiox_delegated_impl.h"
#include "mpiox_event.h"

enum { TEXT_BYTES = 512 };

static struct {
    mpiox_arbiter *arbiter;
    bool begun;
    mpiox_map map; /* in force, if `named` */
    mpiox_delegated *first;
} all; /* between mpiox_delegated_move_lock() and _unlock() */

/* Which of the file's owners serve. Returns their number; 0: none that lives, then nothing changes. */
static int32_t choose(const mpiox_delegated *delegated, const mpiox_map *map, int16_t *chosen)
{
    bool taken[MPIOX_FILE_RANGES] = {false};
    int32_t count = 0;

    for (int32_t i = 0; i < map->count; i++) {
        const int32_t owner = map->nodes[i] % delegated->owners;

        if (taken[owner] || atomic_load(&delegated->lost[owner]) ||
            mpiox_delegate_has_died(mpiox_delegated_owner(delegated, owner)))
            continue;
        taken[owner] = true;
        chosen[count++] = (int16_t)owner;
    }
    return count;
}

/* Which of the chosen each range is to have. `keep`: those that are with one of them stay, whatever their number. */
static void assign(const mpiox_delegated *delegated, const int16_t *chosen, int32_t count, bool keep, int16_t *to)
{
    int32_t room[MPIOX_FILE_RANGES] = {0}, next = 0;

    for (int32_t i = 0; i < count; i++)
        room[chosen[i]] = keep ? delegated->ranges
                               : delegated->ranges / count + (i < delegated->ranges % count ? 1 : 0);
    for (int32_t r = 0; r < delegated->ranges; r++) {
        const int16_t from = delegated->placed[r];

        to[r] = room[from] > 0 ? from : -1;
        room[from] -= room[from] > 0;
    }
    for (int32_t r = 0; r < delegated->ranges; r++) {
        if (to[r] >= 0)
            continue;
        while (room[chosen[next]] == 0)
            next = (next + 1) % count;
        to[r] = chosen[next];
        room[chosen[next]]--;
        next = (next + 1) % count;
    }
}

/* Give a range to `to`, whoever has it. Another opening of the file may have moved it: then its owner says so. Returns
 * whether it was moved. */
static bool bring(mpiox_delegated *delegated, int32_t range, int32_t to)
{
    for (int tries = 0; tries < delegated->owners; tries++) {
        const int32_t from = delegated->placed[range];

        if (from == to || atomic_load(&delegated->lost[from]))
            return false;
        if (mpiox_delegated_move_range(delegated, range, from, to, 0))
            return true;
        mpiox_delegated_ask_owner(delegated, from);
        if (delegated->placed[range] == from && !mpiox_delegated_take_over(delegated, range, from))
            return false;
    }
    return false;
}

/* `keep`: as assign() has it. `arbiter`: whose thread this is, or NULL. */
static void remap(mpiox_delegated *delegated, const mpiox_map *map, bool keep, mpiox_arbiter *arbiter)
{
    int16_t chosen[MPIOX_FILE_RANGES], to[MPIOX_FILE_RANGES];
    const int32_t count = delegated->replica != NULL || !map->named ? 0 : choose(delegated, map, chosen);
    const int64_t event = mpiox_event_begin();
    int32_t moved = 0;

    if (count == 0)
        return;
    for (int32_t i = 0; i < delegated->owners; i++)
        delegated->idle[i] = true;
    for (int32_t i = 0; i < count; i++)
        delegated->idle[chosen[i]] = false;
    assign(delegated, chosen, count, keep, to);
    for (int32_t r = 0; r < delegated->ranges; r++) {
        moved += bring(delegated, r, to[r]);
        mpiox_arbiter_beat(arbiter);
    }
    mpiox_delegated_count_up(&delegated->stats.remapped_ranges, moved);
    if (event != 0)
        mpiox_event_end("remap", delegated->file->path, -1, -1, event,
                        "\"generation\":%lld,\"delegates\":%d,\"ranges\":%d", (long long)map->generation, count, moved);
}

/* On the thread of the arbiter. Most maps are new because of other jobs. */
static void apply(void *context, const mpiox_map *map)
{
    (void)context;
    mpiox_delegated_move_lock();
    const bool keep = all.map.named && all.map.count == map->count &&
                      memcmp(all.map.nodes, map->nodes, (size_t)map->count * sizeof map->nodes[0]) == 0;
    all.map = *map;
    for (mpiox_delegated *delegated = all.first; delegated != NULL; delegated = delegated->remapped_next)
        remap(delegated, map, keep, all.arbiter);
    mpiox_delegated_move_unlock();
}

/* The first file that this process leads, and that goes through the delegates. */
static void begin(const mpiox_delegated *delegated)
{
    const mpiox_group *group = delegated->group;
    const bool tells = group->first || delegated->file->topology->size > 1; /* else every rank that is alone would */

    const mpiox_arbiter_options options = {.folder = group->hints.arbiter,
                                           .job = group->id,
                                           .program = group->hints.arbiter_name,
                                           .ranks = group->ranks,
                                           .nodes = group->nodes,
                                           .delegates = group->count,
                                           .apply = apply};
    char text[TEXT_BYTES];
    mpiox_error error;

    if (group->hints.arbiter[0] == '\0' || all.begun)
        return;
    all.begun = true;
    if (mpiox_arbiter_start(&options, &all.arbiter, &error) != MPIOX_OK && tells)
        fprintf(stderr, "mpiio_ext: mpiox_arbiter=%s: %s; the job keeps all its I/O delegates\n", group->hints.arbiter,
                mpiox_error_text(&error, NULL, text, sizeof text));
}

void mpiox_delegated_end(void)
{
    mpiox_arbiter_stop(all.arbiter);
    all.arbiter = NULL;
}

void mpiox_delegated_follow(mpiox_delegated *delegated)
{
    if (delegated == NULL || delegated->file->topology->rank != 0)
        return;
    mpiox_delegated_move_lock();
    begin(delegated);
    delegated->remapped_next = all.first;
    all.first = delegated;
    remap(delegated, &all.map, false, NULL);
    mpiox_delegated_move_unlock();
}

void mpiox_delegated_unfollow(mpiox_delegated *delegated)
{
    if (delegated == NULL)
        return;
    mpiox_delegated_move_lock();
    for (mpiox_delegated **at = &all.first; *at != NULL; at = &(*at)->remapped_next) {
        if (*at == delegated) {
            *at = delegated->remapped_next;
            break;
        }
    }
    mpiox_delegated_move_unlock();
}
