/* mpiox_message_turns.c - see mpiox_message_turns.h. */
#include "mpiox_message_turns.h"

#include <stdlib.h>
#include <string.h>

#include "mpiox_message_entries.h"
#include "mpiox_message_sends.h"

/* ---- who sends to whom ------------------------------------------------------------------------------------------- */

bool mpiox_turns_due(const mpiox_call *call, int aggregator, mpiox_interval range, int64_t *first, int64_t *last)
{
    const mpiox_buffers *b = call->b;
    *first = INT64_MAX;
    *last = INT64_MIN;
    for (int64_t set = 0; range.first < range.last && set < b->plan->domains[aggregator].n_sets; set++) {
        int64_t from, to;
        if (!mpiox_plan_windows_between(b->plan, aggregator, b->window_bytes, set, range.first, range.last, &from, &to))
            continue;
        *first = from < *first ? from : *first;
        *last = to > *last ? to : *last;
    }
    return *first < *last;
}

static int list_due(mpiox_messages *m)
{
    const mpiox_buffers *b = m->base.b;
    const mpiox_topology *topology = b->file->topology;
    m->n_due = 0;
    for (int a = 0; a < b->n_aggregators; a++) {
        mpiox_due *due = &m->due[m->n_due];
        due->aggregator = a;
        if (topology->node_of[b->aggregators[a]] != topology->node &&
            mpiox_turns_due(m->call, a, b->nodes[topology->node].range, &due->first, &due->last)) {
            due->announced = due->first;
            due->counted = -1;
            m->n_due++;
        }
    }
    if (m->n_due == 0)
        return MPIOX_OK;
    mpiox_item *items = realloc(m->items, sizeof *items * (size_t)m->n_due * MPIOX_TURNS);
    if (!items)
        return MPIOX_E_NOMEM;
    m->items = items;
    for (int i = 0; i < MPIOX_TURNS; i++)
        m->turns[i].items = items + (int64_t)i * m->n_due;
    return MPIOX_OK;
}

static void raise_to(_Atomic int64_t *word, int64_t value)
{
    int64_t seen = atomic_load(word);
    while (value > seen && !atomic_compare_exchange_weak(word, &seen, value))
        ;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

/* Does this rank pack portions for the aggregator? Extents are asked for by one rank, for all of its node. */
static bool packs(const mpiox_messages *m, int aggregator)
{
    return !m->exchange->whole || mpiox_messages_channel(m, aggregator) == m->base.b->file->topology->node_rank;
}

/* The first round after this one in which this rank may have something for the aggregator whose window of this round
 * are the n extents in b->extents[0]. */
static int64_t round_after(const mpiox_messages *m, int aggregator, int64_t round, int64_t n)
{
    const mpiox_buffers *b = m->base.b;
    const mpiox_call *call = m->call;
    const mpiox_request *request = call->request;
    const mpiox_extent *last = &b->extents[0][n - 1];
    int64_t from, to;
    if (!packs(m, aggregator) || (!m->exchange->whole && call->first >= call->last))
        return INT64_MAX;
    /* windows of sets are not in the file's order */
    if (m->exchange->whole || b->plan->domains[aggregator].n_sets != 1)
        return round + 1;
    int64_t position = mpiox_typemap_position(b->file->view, last->offset + last->length - b->file->displacement);
    position = position > request->position ? position : request->position;
    if (position >= request->position + request->length)
        return INT64_MAX;
    const int64_t offset = b->file->displacement + mpiox_typemap_offset(b->file->view, position);
    if (!mpiox_plan_windows_between(b->plan, aggregator, b->window_bytes, 0, offset, call->last, &from, &to))
        return INT64_MAX;
    return from > round ? from : round + 1;
}

static void count_area(mpiox_messages *m, mpiox_turn *turn, mpiox_due *due)
{
    const int aggregator = due->aggregator;
    mpiox_area *area = mpiox_messages_area(m, m->next_count, aggregator);
    mpiox_portions portions;
    mpiox_message_entry entry;
    mpiox_portions_begin(m, &portions, aggregator, turn->round);
    if (portions.n == 0)
        return; /* nobody accesses anything of the window: it is left out everywhere */
    mpiox_item *item = &turn->items[turn->n_items++];
    *item = (mpiox_item){.aggregator = aggregator, .due = (int)(due - m->due)};
    due->counted = m->next_count;
    raise_to(&area->sooner, INT64_MAX - round_after(m, aggregator, turn->round, portions.n));
    while (packs(m, aggregator) && mpiox_portions_next(&portions, &entry))
        item->bytes += portions.bytes;
    if (item->bytes > 0)
        item->at = atomic_fetch_add(&area->bytes, item->bytes);
}

static void count_next(mpiox_messages *m)
{
    mpiox_call *call = m->call;
    mpiox_turn *turn = &m->turns[m->next_count % MPIOX_TURNS];
    if (m->count_round >= call->rounds)
        return;
    *turn = (mpiox_turn){.round = m->count_round, .items = turn->items};
    for (int i = 0; i < m->n_due; i++)
        if (m->due[i].first <= turn->round && turn->round < m->due[i].last)
            count_area(m, turn, &m->due[i]);
    mpiox_futex_add(&m->exchange->counted[m->next_count % MPIOX_TURNS]);
    m->next_count++;
    m->count_round = mpiox_window_next_round(call, m->count_round + 1);
}

int mpiox_turns_begin(mpiox_messages *m)
{
    const int code = list_due(m);
    m->next_count = m->next_step = m->n_laid = 0;
    m->count_round = mpiox_window_next_round(m->call, 0);
    for (int i = 0; code == MPIOX_OK && i < MPIOX_COUNTED_AHEAD; i++)
        count_next(m);
    return code;
}

bool mpiox_turns_exists(const mpiox_messages *m, int64_t turn)
{
    return turn < m->next_count;
}

/* counted[] when all have counted it: the word counts on through the turns that share it. */
static uint32_t all_counted(const mpiox_messages *m, int64_t turn)
{
    return (uint32_t)(turn / MPIOX_TURNS + 1) * (uint32_t)m->base.b->file->topology->node_size;
}

bool mpiox_turns_ready(const mpiox_messages *m, int64_t turn)
{
    return (int32_t)(mpiox_futex_get(&m->exchange->counted[turn % MPIOX_TURNS]) - all_counted(m, turn)) >= 0;
}

/* ---- layout ------------------------------------------------------------------------------------------------------ */

mpiox_turn *mpiox_turns_lay_out(mpiox_messages *m, int64_t number)
{
    mpiox_turn *turn = &m->turns[number % MPIOX_TURNS];
    int64_t base = 0;
    mpiox_wait_reach(&m->exchange->counted[number % MPIOX_TURNS], all_counted(m, number), &m->idle);
    for (int i = 0; i < turn->n_items; i++) {
        mpiox_item *item = &turn->items[i];
        item->base = base;
        mpiox_area *area = mpiox_messages_area(m, number, item->aggregator);
        item->area_bytes = atomic_load(&area->bytes);
        if (mpiox_messages_channel(m, item->aggregator) == m->base.b->file->topology->node_rank)
            atomic_store(&area->sooner, 0); /* what the turns before have told; all have counted this one */
        base += item->area_bytes + (int64_t)sizeof(mpiox_message_entry); /* the end of it */
    }
    turn->first_step = m->next_step;
    turn->n_steps = base > 0 ? (base - (int64_t)sizeof(mpiox_message_entry)) / m->step_bytes + 1 : 0;
    m->next_step += turn->n_steps;
    m->n_laid = number + 1;
    count_next(m); /* nobody is at work any more on the turn that had these areas before */
    return turn;
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

/* A step holds bytes [at, at + bytes) of its half for the area. */
static void note(mpiox_messages *m, mpiox_area *area, int64_t step, int64_t at, int64_t bytes)
{
    raise_to(&area->before[step & 1], m->half_bytes - at);
    raise_to(&area->last[step & 1], at + bytes);
}

/* This rank's portions of one area that begin in [begin, begin + step_bytes) of the turn. */
static void pack_portions(mpiox_messages *m, const mpiox_turn *turn, const mpiox_item *item, mpiox_area *area,
                          int64_t step, int64_t begin)
{
    int64_t at = item->base + item->at;
    mpiox_portions portions;
    mpiox_message_entry entry;
    if (item->bytes == 0 || at >= begin + m->step_bytes || at + item->bytes <= begin)
        return;
    mpiox_portions_begin(m, &portions, item->aggregator, turn->round);
    for (; at < begin + m->step_bytes && mpiox_portions_next(&portions, &entry); at += portions.bytes)
        if (at >= begin) {
            mpiox_portion_pack(&portions, &entry, mpiox_messages_half(m, step) + at - begin);
            note(m, area, step, at - begin, portions.bytes);
        }
}

/* Does the step hold portions of the area, and is the end among them? False where nothing is sent in this turn. */
static bool is_in_step(const mpiox_messages *m, const mpiox_turn *turn, const mpiox_item *item, int64_t step, bool *end)
{
    const int64_t begin = (step - turn->first_step) * m->step_bytes, at = item->base + item->area_bytes;
    *end = at >= begin && at < begin + m->step_bytes;
    if (item->area_bytes == 0 && m->due[item->due].announced > turn->round) /* known to the channel only */
        return false;
    return item->base < begin + m->step_bytes && at >= begin;
}

void mpiox_turns_pack(mpiox_messages *m, const mpiox_turn *turn, int64_t number, int64_t step)
{
    const int64_t begin = (step - turn->first_step) * m->step_bytes;
    for (int i = 0; i < turn->n_items; i++) {
        const mpiox_item *item = &turn->items[i];
        mpiox_area *area = mpiox_messages_area(m, number, item->aggregator);
        bool end;
        if (!is_in_step(m, turn, item, step, &end))
            continue;
        pack_portions(m, turn, item, area, step, begin);
        if (end && mpiox_messages_channel(m, item->aggregator) == m->base.b->file->topology->node_rank) {
            note(m, area, step, item->base + item->area_bytes - begin, (int64_t)sizeof(mpiox_message_entry));
        }
    }
}

/* In which round the channel's node sends again. The next two turns have been counted by all ranks, what comes after
 * them is known as far as each rank has looked. */
static int64_t next_message(const mpiox_messages *m, int64_t number, const mpiox_item *item)
{
    const mpiox_due *due = &m->due[item->due];
    int64_t round = 0;
    for (int64_t turn = number + 1; turn <= number + MPIOX_COUNTED_AHEAD; turn++) {
        if (!mpiox_turns_exists(m, turn))
            return INT64_MAX;
        round = m->turns[turn % MPIOX_TURNS].round;
        if (round >= due->last)
            return INT64_MAX;
        if (atomic_load(&mpiox_messages_area(m, turn, item->aggregator)->bytes) > 0)
            return round;
    }
    if (due->counted != number + MPIOX_COUNTED_AHEAD) /* nobody accesses anything of that window */
        return round + 1;
    return INT64_MAX - atomic_load(&mpiox_messages_area(m, due->counted, item->aggregator)->sooner);
}

/* The end of the area into the step, with the round of the next message. */
static void put_end(mpiox_messages *m, const mpiox_turn *turn, int64_t number, const mpiox_item *item, int64_t step)
{
    const int64_t at = item->base + item->area_bytes - (step - turn->first_step) * m->step_bytes;
    const mpiox_message_entry entry = {.rank = MPIOX_ENTRY_END, .position = next_message(m, number, item)};
    m->due[item->due].announced = entry.position;
    memcpy(mpiox_messages_half(m, step) + at, &entry, sizeof entry);
}

void mpiox_turns_send(mpiox_messages *m, const mpiox_turn *turn, int64_t number, int64_t step,
                      void (*send)(mpiox_messages *m, int64_t number, int64_t step, int to, char *bytes,
                                   int64_t length))
{
    const mpiox_buffers *b = m->base.b;
    const mpiox_topology *topology = b->file->topology;
    const int half = (int)(step & 1);
    bool packed = false, end;
    for (int i = 0; i < turn->n_items; i++) {
        const mpiox_item *item = &turn->items[i];
        mpiox_area *area = mpiox_messages_area(m, number, item->aggregator);
        if (mpiox_messages_channel(m, item->aggregator) != topology->node_rank ||
            !is_in_step(m, turn, item, step, &end))
            continue;
        if (!packed)
            mpiox_wait_reach(&m->exchange->packed[half], (uint32_t)(step / 2 + 1) * (uint32_t)topology->node_size,
                             &m->idle);
        packed = true;
        if (end) {
            put_end(m, turn, number, item, step);
            atomic_store(&area->bytes, 0);
        }
        const int64_t before = atomic_exchange(&area->before[half], 0), last = atomic_exchange(&area->last[half], 0);
        if (before > 0)
            send(m, number, step, b->aggregators[item->aggregator],
                 mpiox_messages_half(m, step) + m->half_bytes - before, last - (m->half_bytes - before));
    }
}
