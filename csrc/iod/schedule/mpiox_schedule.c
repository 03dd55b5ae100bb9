/*
 * mpiox_schedule.c - the queue: the common part of all policies.
 *
 * Algorithm. If a request overlaps an older one, and one of them writes, the policy does not see it until the older one
 *            is done: the requests that a policy sees have no order to preserve. The policy names the next request. The
 *            queue adds requests that continue it in the file, forwards and then backwards, as far as the policy and
 *            the limits of a batch allow. If the oldest request has waited for the patience, it is served when the
 *            policy serves nothing, and after every seven batches of the policy. It is not served before all others:
 *            under a load that keeps the queue longer than the patience every request is overdue, and each policy would
 *            serve in order of arrival.
 */
#include "mpiox_schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_schedule_lane.h"
#include "mpiox_schedule_policies.h"
#include "mpiox_schedule_tree.h"

static const uint32_t none = MPIOX_SCHEDULE_NONE;
static const int64_t most_requests = INT64_C(1) << 30;

static const mpiox_schedule_policy *const policies[] = {
#define X(name) &mpiox_schedule_##name,
    MPIOX_SCHEDULE_POLICIES(X)
#undef X
};
enum { POLICIES = (int)(sizeof policies / sizeof policies[0]) };

const char *mpiox_schedule_policy_name(int index)
{
    return index >= 0 && index < POLICIES ? policies[index]->name : NULL;
}

const char *mpiox_schedule_policy_source(int index)
{
    return index >= 0 && index < POLICIES ? policies[index]->source : NULL;
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

static const mpiox_schedule_policy *find(const char *name)
{
    for (int i = 0; i < POLICIES; i++) {
        if (strcmp(policies[i]->name, name) == 0)
            return policies[i];
    }
    return NULL;
}

static bool is_legal(const mpiox_schedule_options *options)
{
    return options->policy != NULL && find(options->policy) != NULL && options->capacity >= 1 &&
           options->capacity <= most_requests && options->quantum > 0 && options->window_ns >= 0 &&
           options->patience_ns >= 0 && options->batch_bytes > 0 && options->batch_requests >= 1 &&
           options->first_target >= 0 && options->clock_offset_ns >= 0 && options->clock_offset_ns <= INT64_MAX / 2;
}

int mpiox_schedule_create(const mpiox_schedule_options *options, mpiox_schedule **out)
{
    *out = NULL;
    if (!is_legal(options))
        return MPIOX_E_ARG;
    mpiox_schedule *schedule = calloc(1, sizeof *schedule);
    if (schedule != NULL)
        schedule->entries = calloc((size_t)options->capacity, sizeof *schedule->entries);
    if (schedule == NULL || schedule->entries == NULL) {
        free(schedule);
        return MPIOX_E_NOMEM;
    }
    schedule->options = *options;
    schedule->policy = find(options->policy);
    schedule->options.policy = NULL;
    schedule->free_entry = schedule->tree = none;
    schedule->ready = (mpiox_entry_chain){none, none, 0};
    schedule->random = 1;
    schedule->turn = MPIOX_SCHEDULE_LANES - 1; /* the first lane is next */
    schedule->since_overdue = MPIOX_SCHEDULE_OVERDUE_EVERY - 1;
    schedule->waits_since = -1;
    *out = schedule;
    return MPIOX_OK;
}

void mpiox_schedule_free(mpiox_schedule *schedule)
{
    if (schedule == NULL)
        return;
    free(schedule->entries);
    free(schedule);
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static uint32_t take_entry(mpiox_schedule *schedule)
{
    const uint32_t entry = schedule->free_entry;
    if (entry != none) {
        schedule->free_entry = schedule->entries[entry].links[MPIOX_ENTRY_ALL].next;
        return entry;
    }
    return schedule->fresh < schedule->options.capacity ? schedule->fresh++ : none;
}

static mpiox_schedule_entry *entry_of(const mpiox_schedule *schedule, uint32_t id)
{
    if (id >= schedule->fresh || schedule->entries[id].state == MPIOX_ENTRY_FREE)
        return NULL;
    return &schedule->entries[id];
}

/* The policy may take it from now on. */
static void make_ready(mpiox_schedule *schedule, uint32_t entry)
{
    assert(schedule->entries[entry].state == MPIOX_ENTRY_HELD);
    mpiox_schedule_tree_set(schedule, entry, MPIOX_ENTRY_READY);
    mpiox_schedule_lane_add(schedule, entry);
    if (schedule->policy->added != NULL)
        schedule->policy->added(schedule, &schedule->entries[entry]);
}

static void release(mpiox_schedule *schedule, uint32_t entry)
{
    if (!mpiox_schedule_tree_is_blocked(schedule, entry))
        make_ready(schedule, entry);
}

/* It is not there any more; those that waited for it may be served. */
static void remove_entry(mpiox_schedule *schedule, uint32_t entry)
{
    const mpiox_schedule_request what = schedule->entries[entry].what;
    mpiox_schedule_tree_remove(schedule, entry);
    schedule->entries[entry].state = MPIOX_ENTRY_FREE;
    schedule->entries[entry].links[MPIOX_ENTRY_ALL].next = schedule->free_entry;
    schedule->free_entry = entry;
    mpiox_schedule_tree_held(schedule, &what, release);
}

int mpiox_schedule_add(mpiox_schedule *schedule, const mpiox_schedule_request *request, int64_t now, uint32_t *id)
{
    *id = none;
    if (request->length <= 0 || request->offset < 0 || request->offset > INT64_MAX - request->length ||
        request->weight < 1)
        return MPIOX_E_ARG;
    const uint32_t entry = take_entry(schedule);
    if (entry == none)
        return MPIOX_E_FULL;
    schedule->entries[entry] = (mpiox_schedule_entry){
        .what = *request, .arrival = now, .number = schedule->number++, .state = MPIOX_ENTRY_HELD};
    mpiox_schedule_tree_insert(schedule, entry);
    schedule->counters.added++;
    if (++schedule->waiting > schedule->counters.depth_max)
        schedule->counters.depth_max = schedule->waiting;
    if (mpiox_schedule_tree_is_blocked(schedule, entry))
        schedule->counters.held++;
    else
        make_ready(schedule, entry);
    *id = entry;
    return MPIOX_OK;
}

int mpiox_schedule_done(mpiox_schedule *schedule, uint32_t id)
{
    const mpiox_schedule_entry *entry = entry_of(schedule, id);
    if (entry == NULL || entry->state != MPIOX_ENTRY_ACTIVE)
        return MPIOX_E_ARG;
    remove_entry(schedule, id);
    return MPIOX_OK;
}

int mpiox_schedule_cancel(mpiox_schedule *schedule, uint32_t id)
{
    const mpiox_schedule_entry *entry = entry_of(schedule, id);
    if (entry == NULL || entry->state == MPIOX_ENTRY_ACTIVE)
        return MPIOX_E_ARG;
    if (entry->state == MPIOX_ENTRY_READY)
        mpiox_schedule_lane_remove(schedule, id);
    schedule->waiting--;
    remove_entry(schedule, id);
    return MPIOX_OK;
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

typedef struct batch {
    uint32_t *ids; /* in file order */
    int32_t count, lane;
    int64_t start, end;
} batch;

static void take(mpiox_schedule *schedule, batch *batch, uint32_t entry, bool in_front)
{
    mpiox_schedule_entry *at = &schedule->entries[entry];
    assert(at->state == MPIOX_ENTRY_READY && batch->count < schedule->options.batch_requests);
    if (schedule->ready.first != entry)
        schedule->counters.reordered++;
    mpiox_schedule_lane_remove(schedule, entry);
    mpiox_schedule_tree_set(schedule, entry, MPIOX_ENTRY_ACTIVE);
    schedule->waiting--;
    if (batch->count == 0 || in_front)
        batch->start = at->what.offset;
    if (batch->count == 0 || !in_front)
        batch->end = mpiox_entry_end(at);
    memmove(batch->ids + (in_front ? 1 : 0), batch->ids, (size_t)(in_front ? batch->count : 0) * sizeof *batch->ids);
    batch->ids[in_front ? 0 : batch->count] = entry;
    batch->count++;
}

/* May this one, which continues the batch, join it? */
static bool may_join(const mpiox_schedule *schedule, const batch *batch, uint32_t entry)
{
    const int64_t bytes = batch->end - batch->start + schedule->entries[entry].what.length;
    if (batch->count >= schedule->options.batch_requests || bytes > schedule->options.batch_bytes ||
        bytes > schedule->allowance)
        return false;
    switch (schedule->policy->join) {
    case MPIOX_JOIN_NEXT:
        return schedule->ready.first == entry;
    case MPIOX_JOIN_LANE:
        return schedule->entries[entry].lane == batch->lane;
    default:
        return true;
    }
}

static void gather(mpiox_schedule *schedule, batch *batch, uint32_t head)
{
    uint32_t next;
    batch->lane = schedule->entries[head].lane;
    take(schedule, batch, head, false);
    while ((next = mpiox_schedule_tree_after(schedule, batch->ids[batch->count - 1])) != none &&
           may_join(schedule, batch, next))
        take(schedule, batch, next, false);
    while ((next = mpiox_schedule_tree_before(schedule, batch->ids[0])) != none && may_join(schedule, batch, next))
        take(schedule, batch, next, true);
    if (schedule->policy->served != NULL)
        schedule->policy->served(schedule, &schedule->lanes[batch->lane], batch->end, batch->end - batch->start);
}

/* The policy serves nothing now, or something again. */
static void note_waiting(mpiox_schedule *schedule, int64_t now, bool waits)
{
    if (waits && schedule->waits_since < 0) {
        schedule->counters.windows++;
        schedule->waits_since = now;
    } else if (!waits && schedule->waits_since >= 0) {
        schedule->counters.waited_ns += now - schedule->waits_since;
        schedule->waits_since = -1;
    }
}

/* The time when the oldest READY request has waited for the patience, if the policy needs that. */
static int64_t due_at(const mpiox_schedule *schedule)
{
    const int64_t arrival = schedule->entries[schedule->ready.first].arrival;
    const int64_t patience = schedule->options.patience_ns;
    return schedule->policy->fair || patience == 0 || arrival > INT64_MAX - patience ? MPIOX_SCHEDULE_NEVER
                                                                                     : arrival + patience;
}

/* The policy's choice; if one is overdue, that, when it has its turn or the policy serves nothing. */
static uint32_t choose(mpiox_schedule *schedule, int64_t now, bool hurry, bool overdue, int64_t *until)
{
    const bool its_turn = overdue && schedule->since_overdue >= MPIOX_SCHEDULE_OVERDUE_EVERY - 1;
    schedule->allowance = INT64_MAX;
    const uint32_t head = its_turn ? none : schedule->policy->pick(schedule, now, hurry, until);
    if (head != none) {
        schedule->since_overdue += schedule->since_overdue < MPIOX_SCHEDULE_OVERDUE_EVERY;
        return head;
    }
    if (!overdue)
        return none;
    schedule->since_overdue = 0;
    schedule->counters.overdue++;
    schedule->allowance = schedule->options.quantum; /* an eighth of the batches shall not be most of the bytes */
    return schedule->ready.first;
}

int32_t mpiox_schedule_next(mpiox_schedule *schedule, int64_t now, bool hurry, uint32_t *ids, int64_t *until)
{
    batch batch = {.ids = ids};
    *until = MPIOX_SCHEDULE_NEVER;
    if (schedule->ready.count == 0) {
        note_waiting(schedule, now, false);
        return 0;
    }
    const int64_t due = due_at(schedule);
    const uint32_t head = choose(schedule, now, hurry, now >= due, until);
    note_waiting(schedule, now, head == none);
    if (head == none) {
        if (*until > due)
            *until = due;
        return 0;
    }
    gather(schedule, &batch, head);
    schedule->counters.served += batch.count;
    schedule->counters.merged += batch.count - 1;
    schedule->counters.batches++;
    return batch.count;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

const mpiox_schedule_request *mpiox_schedule_get(const mpiox_schedule *schedule, uint32_t id)
{
    const mpiox_schedule_entry *entry = entry_of(schedule, id);
    return entry == NULL ? NULL : &entry->what;
}

int64_t mpiox_schedule_depth(const mpiox_schedule *schedule)
{
    return schedule->waiting;
}

void mpiox_schedule_count(const mpiox_schedule *schedule, mpiox_schedule_counters *out)
{
    *out = schedule->counters;
}
