/*
 * mpiox_schedule_aioli.c - aIOLi: turns of files, in file order, with quanta that follow their use.
 *
 * Problem.   Interleaved streams of several files break each other's sequences, and requests of one stream arrive out
 *            of order.
 * Algorithm. Files (reads and writes apart) have turns. In a turn the requests of the file are served in file order
 *            until its quantum is used up or the next one does not fit. The next turn goes to the file whose first
 *            request, in file order, has waited longest, if the request's own quantum, which doubles with each visit,
 *            is at least its size. A turn that has used three quarters of its quantum or more, and left requests,
 *            doubles it; a turn that has used less halves it, between the quantum of the options and the size of a
 *            batch. If a file's first request lies behind the end of its last batch, by no more than a quantum, the
 *            requests between are likely to be on their way: the file waits for them, once for each such request, while
 *            others have their turns.
 * Source.    A. Lebre, G. Huard, Y. Denneulin and P. Sowa, "I/O Scheduling Service for Multi-Application Clusters",
 *            IEEE Cluster 2006; in AGIOS: F. Boito et al., 2016, which does not wait for the end of a turn's last
 *            request, nor does this. AGIOS grows a quantum only when one request was larger than it.
 */
#include "mpiox_schedule_lane.h"
#include "mpiox_schedule_policies.h"
#include "mpiox_schedule_eligible.h"

static const uint32_t none = MPIOX_SCHEDULE_NONE;

static int64_t within(int64_t value, int64_t least, int64_t most)
{
    return value > most ? most : value < least ? least : value;
}

/* The file whose turn it was is not served any more for now. */
static void end_turn(mpiox_schedule *schedule, mpiox_schedule_lane *lane)
{
    const int64_t least = schedule->options.quantum, most = schedule->options.batch_bytes;
    int64_t quantum = lane->quantum;
    if (lane->used == 0) /* it had none */
        return;
    if (lane->used < quantum - quantum / 4)
        quantum /= 2;
    else if (lane->ready.count > 0)
        quantum *= quantum <= most / 2 ? 2 : 1;
    lane->quantum = within(quantum, least, most > least ? most : least);
    lane->used = 0;
}

/* Is it worth waiting for requests before this one? */
static bool is_ahead(const mpiox_schedule *schedule, const mpiox_schedule_lane *lane, const mpiox_schedule_entry *head,
                     bool hurry)
{
    return !hurry && schedule->options.window_ns > 0 && lane->end >= 0 && head->what.offset > lane->end &&
           head->what.offset - lane->end <= lane->quantum && lane->waited_for != head->number + 1;
}

/* The next request of the turn, if it fits into the rest of the quantum; NONE. */
static uint32_t go_on(mpiox_schedule *schedule, const mpiox_schedule_lane *lane, bool hurry)
{
    if (lane->used == 0 || lane->used >= lane->quantum || lane->ready.count == 0)
        return none;
    const uint32_t head = mpiox_schedule_lane_lowest(schedule, lane);
    const mpiox_schedule_entry *at = &schedule->entries[head];
    if (at->what.length > lane->quantum - lane->used || is_ahead(schedule, lane, at, hurry))
        return none;
    schedule->allowance = lane->quantum - lane->used;
    return head;
}

/* Visit a file: its first request, if it may be served now. *ineligible: it is too large for its quantum so far. */
static uint32_t look(mpiox_schedule *schedule, mpiox_schedule_lane *lane, int64_t now, bool hurry, bool *ineligible)
{
    const uint32_t head = mpiox_schedule_lane_lowest(schedule, lane);
    const mpiox_schedule_entry *at = &schedule->entries[head];
    lane->passes++;
    if (!mpiox_schedule_is_eligible(schedule, at)) {
        *ineligible = true;
        return none;
    }
    if (is_ahead(schedule, lane, at, hurry)) {
        lane->waited_for = at->number + 1;
        lane->wait_until = now + schedule->options.window_ns;
        return none;
    }
    return head;
}

/* Visit every file that does not wait once. */
static uint32_t look_round(mpiox_schedule *schedule, int64_t now, bool hurry, int64_t *until, bool *ineligible)
{
    uint32_t best = none;
    for (int32_t i = 0; i < schedule->lane_count; i++) {
        mpiox_schedule_lane *lane = &schedule->lanes[i];
        if (lane->ready.count == 0)
            continue;
        const uint32_t head = hurry || now >= lane->wait_until ? look(schedule, lane, now, hurry, ineligible) : none;
        if (head != none && (best == none || schedule->entries[head].number < schedule->entries[best].number))
            best = head;
        else if (now < lane->wait_until && lane->wait_until < *until)
            *until = lane->wait_until;
    }
    return best;
}

static uint32_t pick(mpiox_schedule *schedule, int64_t now, bool hurry, int64_t *until)
{
    uint32_t head = go_on(schedule, &schedule->lanes[schedule->turn], hurry);
    bool ineligible = true;
    if (head != none)
        return head;
    end_turn(schedule, &schedule->lanes[schedule->turn]);
    while (head == none && ineligible) { /* ends: quanta double, sizes do not */
        ineligible = false;
        head = look_round(schedule, now, hurry, until, &ineligible);
    }
    if (head != none) {
        schedule->turn = schedule->entries[head].lane;
        schedule->lanes[schedule->turn].used = 0;
        schedule->allowance = schedule->lanes[schedule->turn].quantum;
    }
    return head;
}

static void served(mpiox_schedule *schedule, mpiox_schedule_lane *lane, int64_t end, int64_t bytes)
{
    (void)schedule;
    lane->used += bytes;
    lane->end = end;
}

const mpiox_schedule_policy mpiox_schedule_aioli = {
    .name = "aioli",
    .source = "Lebre et al., I/O Scheduling Service for Multi-Application Clusters, IEEE Cluster 2006",
    .lanes = MPIOX_LANES_STREAM,
    .join = MPIOX_JOIN_ANY,
    .pick = pick,
    .served = served,
};
