/*
 * mpiox_forwarded_remap.c - the arbiter gives this job other I/O nodes while its files are open.
 *
 * Problem.   The delegates of a job, one on each I/O node that it may use, are started once. The set of serving
 *            delegates changes while ranks read and write, without a flush barrier and without a byte lost.
 * Algorithm. Rank 0 of each file follows the map (mpiox_arbiter.h) and distributes the file's page ranges evenly among
 *            the delegates of the I/O nodes that the job has now. No range leaves a delegate that stays, unless that
 *            has more than its share. mpiox_forwarded_migrate.c moves a range. All ranks, including rank 0, learn of it
 *            when the old owner redirects them.
 * Guarantee. A range has one owner at a time. A range that cannot move (a delegate has died, a file with copies at
 *            replica delegates) stays where it is. Delegates of I/O nodes that the job does not have serve no page.
 * Source.    J. L. Bez et al., "Arbitration Policies for On-Demand User-Level I/O Forwarding on HPC Platforms", 2021,
 *            Section 4.
 */
#include <string.h>

#include "mpiox_arbiter.h"
#include "mpiox_forwarded_impl.h"
#include "mpiox_event.h"
#include "mpiox_print.h"

enum { TEXT_BYTES = 512 };

static struct {
    mpiox_arbiter *arbiter;
    bool begun;
    mpiox_map map; /* in force, if `named` */
    mpiox_forwarded *first;
} all; /* between mpiox_forwarded_migrate_lock() and _unlock() */

/* Fill in which of the file's owners serve. Returns their number; 0: none lives, and the owners stay. */
static int32_t choose(const mpiox_forwarded *forwarded, const mpiox_map *map, int16_t *chosen)
{
    bool taken[MPIOX_FILE_RANGES] = {false};
    int32_t count = 0;

    for (int32_t i = 0; i < map->count; i++) {
        const int32_t owner = map->nodes[i] % forwarded->owners;

        if (taken[owner] || atomic_load(&forwarded->lost[owner]) ||
            mpiox_process_has_died(mpiox_forwarded_owner(forwarded, owner)))
            continue;
        taken[owner] = true;
        chosen[count++] = (int16_t)owner;
    }
    return count;
}

/* Choose an owner for each range. `keep`: a range stays if its owner is chosen, whatever their number. */
static void assign(const mpiox_forwarded *forwarded, const int16_t *chosen, int32_t count, bool keep, int16_t *to)
{
    int32_t room[MPIOX_FILE_RANGES] = {0}, next = 0;

    for (int32_t i = 0; i < count; i++)
        room[chosen[i]] = keep ? forwarded->ranges
                               : forwarded->ranges / count + (i < forwarded->ranges % count ? 1 : 0);
    for (int32_t r = 0; r < forwarded->ranges; r++) {
        const int16_t from = forwarded->placed[r];

        to[r] = room[from] > 0 ? from : -1;
        room[from] -= room[from] > 0;
    }
    for (int32_t r = 0; r < forwarded->ranges; r++) {
        if (to[r] >= 0)
            continue;
        while (room[chosen[next]] == 0)
            next = (next + 1) % count;
        to[r] = chosen[next];
        room[chosen[next]]--;
        next = (next + 1) % count;
    }
}

/* Move a range from its owner to `to`. If another opening of the file has moved it, the old owner names the present
 * one. Returns whether it was moved. */
static bool bring(mpiox_forwarded *forwarded, int32_t range, int32_t to)
{
    for (int tries = 0; tries < forwarded->owners; tries++) {
        const int32_t from = forwarded->placed[range];

        if (from == to || atomic_load(&forwarded->lost[from]))
            return false;
        if (mpiox_forwarded_migrate_range(forwarded, range, from, to, 0))
            return true;
        mpiox_forwarded_ask_owner(forwarded, from);
        if (forwarded->placed[range] == from && !mpiox_forwarded_take_over(forwarded, range, from))
            return false;
    }
    return false;
}

/* `keep`: as assign() has it. `arbiter`: whose thread this is, or NULL. */
static void remap(mpiox_forwarded *forwarded, const mpiox_map *map, bool keep, mpiox_arbiter *arbiter)
{
    int16_t chosen[MPIOX_FILE_RANGES], to[MPIOX_FILE_RANGES];
    const int32_t count = forwarded->replica != NULL || !map->named ? 0 : choose(forwarded, map, chosen);
    const int64_t event = mpiox_event_begin();
    int32_t moved = 0;

    if (count == 0)
        return;
    for (int32_t i = 0; i < forwarded->owners; i++)
        forwarded->idle[i] = true;
    for (int32_t i = 0; i < count; i++)
        forwarded->idle[chosen[i]] = false;
    assign(forwarded, chosen, count, keep, to);
    for (int32_t r = 0; r < forwarded->ranges; r++) {
        moved += bring(forwarded, r, to[r]);
        mpiox_arbiter_beat(arbiter);
    }
    mpiox_forwarded_count_up(&forwarded->stats.remapped_ranges, moved);
    if (event != 0)
        mpiox_event_end("remap", forwarded->file->path, -1, -1, event,
                        "\"generation\":%lld,\"delegates\":%d,\"ranges\":%d", (long long)map->generation, count, moved);
}

/* On the thread of the arbiter. Most maps are new because of other jobs. */
static void apply(void *context, const mpiox_map *map)
{
    (void)context;
    mpiox_forwarded_migrate_lock();
    const bool keep = all.map.named && all.map.count == map->count &&
                      memcmp(all.map.nodes, map->nodes, (size_t)map->count * sizeof map->nodes[0]) == 0;
    all.map = *map;
    for (mpiox_forwarded *forwarded = all.first; forwarded != NULL; forwarded = forwarded->remapped_next)
        remap(forwarded, map, keep, all.arbiter);
    mpiox_forwarded_migrate_unlock();
}

/* The first file that this process leads, and that goes through the delegates. */
static void begin(const mpiox_forwarded *forwarded)
{
    const mpiox_service *service = forwarded->service;
    const bool prints = service->first || forwarded->file->topology->size > 1; /* else every rank that is alone would */

    const mpiox_arbiter_options options = {.folder = service->hints.arbiter,
                                           .job = service->id,
                                           .program = service->hints.arbiter_name,
                                           .ranks = service->ranks,
                                           .nodes = service->nodes,
                                           .delegates = service->count,
                                           .apply = apply};
    char text[TEXT_BYTES];
    mpiox_error error;

    if (service->hints.arbiter[0] == '\0' || all.begun)
        return;
    all.begun = true;
    if (mpiox_arbiter_start(&options, &all.arbiter, &error) != MPIOX_OK && prints)
        mpiox_print("mpiio_ext: mpiox_arbiter=%s: %s; the job keeps all its I/O delegates\n", service->hints.arbiter,
                    mpiox_error_text(&error, NULL, text, sizeof text));
}

void mpiox_forwarded_end(void)
{
    mpiox_arbiter_stop(all.arbiter);
    all.arbiter = NULL;
}

void mpiox_forwarded_follow(mpiox_forwarded *forwarded)
{
    if (forwarded == NULL || forwarded->file->topology->rank != 0)
        return;
    mpiox_forwarded_migrate_lock();
    begin(forwarded);
    forwarded->remapped_next = all.first;
    all.first = forwarded;
    remap(forwarded, &all.map, false, NULL);
    mpiox_forwarded_migrate_unlock();
}

void mpiox_forwarded_unfollow(mpiox_forwarded *forwarded)
{
    if (forwarded == NULL)
        return;
    mpiox_forwarded_migrate_lock();
    for (mpiox_forwarded **at = &all.first; *at != NULL; at = &(*at)->remapped_next) {
        if (*at == forwarded) {
            *at = forwarded->remapped_next;
            break;
        }
    }
    mpiox_forwarded_migrate_unlock();
}
