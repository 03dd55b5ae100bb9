/*
 * mpiox_schedule_lane.c - READY requests in order of arrival: all of them, and those of each lane.
 *
 * Problem.   A policy chooses among files, flows or targets. Their number is unknown, and changes.
 * Algorithm. Lanes in order of their first request, found by a hash table. If there are too many, a new key gets an
 *            empty lane; if no lane is empty, keys share one, which only makes the choice coarser.
 */
#include "mpiox_schedule_lane.h"

#include <string.h>

#include "mpiox_schedule_tree.h"

static const uint32_t none = MPIOX_SCHEDULE_NONE;
enum { SLOTS = 2 * MPIOX_SCHEDULE_LANES };

static int64_t key_of(const mpiox_schedule *schedule, const mpiox_schedule_request *request)
{
    switch (schedule->policy->lanes) {
    case MPIOX_LANES_STREAM:
        return (int64_t)(2 * (uint64_t)request->file + request->write);
    case MPIOX_LANES_FLOW:
        return request->flow;
    case MPIOX_LANES_TARGET:
        return request->target;
    default:
        return 0;
    }
}

/* ---- finding lanes ----------------------------------------------------------------------------------------------- */

static uint32_t hash(int64_t key)
{
    return (uint32_t)(((uint64_t)key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) % SLOTS;
}

/* Where the key is in the table, or would be. The table is never more than half full. */
static uint32_t slot_of(const mpiox_schedule *schedule, int64_t key)
{
    uint32_t slot = hash(key);
    while (schedule->lane_of[slot] != 0 && schedule->lanes[schedule->lane_of[slot] - 1].key != key)
        slot = (slot + 1) % SLOTS;
    return slot;
}

static void begin_lane(mpiox_schedule *schedule, int32_t index, int64_t key)
{
    schedule->lanes[index] = (mpiox_schedule_lane){
        .key = key, .ready = {none, none, 0}, .quantum = schedule->options.quantum, .end = -1};
    schedule->lanes_changed = true;
}

/* Give an empty lane to another key. */
static int32_t take_over(mpiox_schedule *schedule, int64_t key)
{
    for (int32_t i = 0; i < MPIOX_SCHEDULE_LANES; i++) {
        const int32_t index = (schedule->turn + 1 + i) % MPIOX_SCHEDULE_LANES;
        if (schedule->lanes[index].ready.count > 0)
            continue;
        begin_lane(schedule, index, key);
        memset(schedule->lane_of, 0, sizeof schedule->lane_of);
        for (int32_t k = 0; k < MPIOX_SCHEDULE_LANES; k++)
            schedule->lane_of[slot_of(schedule, schedule->lanes[k].key)] = k + 1;
        return index;
    }
    return (int32_t)(hash(key) % MPIOX_SCHEDULE_LANES);
}

int32_t mpiox_schedule_lane_of(mpiox_schedule *schedule, const mpiox_schedule_request *request)
{
    const int64_t key = key_of(schedule, request);
    const uint32_t slot = slot_of(schedule, key);
    if (schedule->lane_of[slot] != 0)
        return schedule->lane_of[slot] - 1;
    if (schedule->lane_count == MPIOX_SCHEDULE_LANES)
        return take_over(schedule, key);
    begin_lane(schedule, schedule->lane_count, key);
    schedule->lane_of[slot] = ++schedule->lane_count;
    return schedule->lane_count - 1;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* In order of arrival: nearly always at the end. */
static void chain_add(mpiox_schedule *schedule, mpiox_entry_chain *chain, enum mpiox_entry_list list, uint32_t entry)
{
    mpiox_schedule_entry *entries = schedule->entries;
    uint32_t previous = chain->last;
    while (previous != none && entries[previous].number > entries[entry].number)
        previous = entries[previous].links[list].previous;
    const uint32_t next = previous == none ? chain->first : entries[previous].links[list].next;
    entries[entry].links[list].previous = previous;
    entries[entry].links[list].next = next;
    *(previous == none ? &chain->first : &entries[previous].links[list].next) = entry;
    *(next == none ? &chain->last : &entries[next].links[list].previous) = entry;
    chain->count++;
}

static void chain_remove(mpiox_schedule *schedule, mpiox_entry_chain *chain, enum mpiox_entry_list list, uint32_t entry)
{
    mpiox_schedule_entry *entries = schedule->entries;
    const uint32_t previous = entries[entry].links[list].previous, next = entries[entry].links[list].next;
    *(previous == none ? &chain->first : &entries[previous].links[list].next) = next;
    *(next == none ? &chain->last : &entries[next].links[list].previous) = previous;
    chain->count--;
}

void mpiox_schedule_lane_add(mpiox_schedule *schedule, uint32_t entry)
{
    mpiox_schedule_entry *at = &schedule->entries[entry];
    mpiox_schedule_lane *lane;
    at->lane = mpiox_schedule_lane_of(schedule, &at->what);
    lane = &schedule->lanes[at->lane];
    at->passes = lane->passes;
    lane->bytes += at->what.length;
    chain_add(schedule, &lane->ready, MPIOX_ENTRY_LANE, entry);
    chain_add(schedule, &schedule->ready, MPIOX_ENTRY_ALL, entry);
}

void mpiox_schedule_lane_remove(mpiox_schedule *schedule, uint32_t entry)
{
    mpiox_schedule_entry *at = &schedule->entries[entry];
    mpiox_schedule_lane *lane = &schedule->lanes[at->lane];
    lane->bytes -= at->what.length;
    chain_remove(schedule, &lane->ready, MPIOX_ENTRY_LANE, entry);
    chain_remove(schedule, &schedule->ready, MPIOX_ENTRY_ALL, entry);
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

uint32_t mpiox_schedule_lane_lowest(const mpiox_schedule *schedule, const mpiox_schedule_lane *lane)
{
    const mpiox_schedule_request *what = &schedule->entries[lane->ready.first].what;
    return mpiox_schedule_tree_first(schedule, what->file, what->write, 0);
}

int32_t mpiox_schedule_lane_next(const mpiox_schedule *schedule, int32_t index)
{
    do {
        index = index + 1 < schedule->lane_count ? index + 1 : 0;
    } while (schedule->lanes[index].ready.count == 0);
    return index;
}
