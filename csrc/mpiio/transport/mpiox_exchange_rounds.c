/* mpiox_exchange_rounds.c - see mpiox_exchange_rounds.h. */
#include "mpiox_exchange_rounds.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_message_entries.h"
#include "mpiox_message_sends.h"

/* ---- senders and receivers --------------------------------------------------------------------------------------- */

bool mpiox_exchange_rounds_due(const mpiox_call *call, int aggregator, mpiox_interval range, int64_t *first,
                               int64_t *last)
{
    const mpiox_buffers *b = call->b;
    *first = INT64_MAX;
    *last = INT64_MIN;
    for (int64_t set = 0; range.first < range.last && set < b->plan->domains[aggregator].n_sets; set++) {
        mpiox_interval rounds;
        if (!mpiox_window_rounds(call, aggregator, set, range, &rounds))
            continue;
        *first = rounds.first < *first ? rounds.first : *first;
        *last = rounds.last > *last ? rounds.last : *last;
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
            mpiox_exchange_rounds_due(m->call, a, b->nodes[topology->node].range, &due->first, &due->last)) {
            due->announced = due->first;
            due->counted = -1;
            m->n_due++;
        }
    }
    if (m->n_due == 0)
        return MPIOX_OK;
    mpiox_exchange_share *shares = realloc(m->shares, sizeof *shares * (size_t)m->n_due * MPIOX_EXCHANGE_ROUNDS);
    if (!shares)
        return MPIOX_E_NOMEM;
    m->shares = shares;
    for (int i = 0; i < MPIOX_EXCHANGE_ROUNDS; i++)
        m->rounds[i].shares = shares + (int64_t)i * m->n_due;
    return MPIOX_OK;
}

static void raise_to(_Atomic int64_t *word, int64_t value)
{
    int64_t seen = atomic_load(word);
    while (value > seen && !atomic_compare_exchange_weak(word, &seen, value))
        ;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

/* Does this rank pack chunks for the aggregator? One rank requests extents, for all ranks of its node. */
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
    if (!packs(m, aggregator) || (!m->exchange->whole && call->first >= call->last))
        return INT64_MAX;
    /* windows of sets are not in the file's order */
    if (m->exchange->whole || b->plan->domains[aggregator].n_sets != 1)
        return round + 1;
    int64_t position = mpiox_typemap_position(b->file->view, last->offset + last->length - b->file->displacement);
    position = position > request->position ? position : request->position;
    return mpiox_window_round_after(call, aggregator, round,
                                    position < request->position + request->length
                                        ? b->file->displacement + mpiox_typemap_offset(b->file->view, position)
                                        : INT64_MAX);
}

static void count_destination(mpiox_messages *m, mpiox_exchange_round *round, mpiox_due *due)
{
    const int aggregator = due->aggregator;
    mpiox_destination_buffer *destination = mpiox_messages_destination(m, m->next_count, aggregator);
    mpiox_chunks chunks;
    mpiox_message_entry entry;
    mpiox_chunks_begin(m, &chunks, aggregator, round->round);
    if (chunks.n == 0)
        return; /* no rank accesses the window: it is left out everywhere */
    mpiox_exchange_share *share = &round->shares[round->n_shares++];
    *share = (mpiox_exchange_share){.aggregator = aggregator, .due = (int)(due - m->due)};
    due->counted = m->next_count;
    raise_to(&destination->sooner, INT64_MAX - round_after(m, aggregator, round->round, chunks.n));
    while (packs(m, aggregator) && mpiox_chunks_next(&chunks, &entry))
        share->bytes += chunks.bytes;
    if (share->bytes > 0)
        share->at = atomic_fetch_add(&destination->bytes, share->bytes);
}

static void count_next(mpiox_messages *m)
{
    mpiox_call *call = m->call;
    mpiox_exchange_round *round = &m->rounds[m->next_count % MPIOX_EXCHANGE_ROUNDS];
    assert(m->next_count - m->n_laid <= MPIOX_COUNTED_AHEAD);
    if (m->count_round >= call->rounds)
        return;
    *round = (mpiox_exchange_round){.round = m->count_round, .shares = round->shares};
    for (int i = 0; i < m->n_due; i++)
        if (m->due[i].first <= round->round && round->round < m->due[i].last)
            count_destination(m, round, &m->due[i]);
    mpiox_futex_add(&m->exchange->counted[m->next_count % MPIOX_EXCHANGE_ROUNDS]);
    m->next_count++;
    m->count_round = mpiox_window_next_round(call, m->count_round + 1);
}

int mpiox_exchange_rounds_begin(mpiox_messages *m)
{
    const int code = list_due(m);
    m->next_count = m->next_step = m->n_laid = 0;
    m->count_round = mpiox_window_next_round(m->call, 0);
    for (int i = 0; code == MPIOX_OK && i < MPIOX_COUNTED_AHEAD; i++)
        count_next(m);
    return code;
}

bool mpiox_exchange_rounds_exists(const mpiox_messages *m, int64_t number)
{
    return number < m->next_count;
}

/* counted[] when all have counted it: the word counts on through the exchange rounds that share it. */
static uint32_t all_counted(const mpiox_messages *m, int64_t number)
{
    return (uint32_t)(number / MPIOX_EXCHANGE_ROUNDS + 1) * (uint32_t)m->base.b->file->topology->node_size;
}

bool mpiox_exchange_rounds_ready(const mpiox_messages *m, int64_t number)
{
    const uint32_t counted = mpiox_futex_get(&m->exchange->counted[number % MPIOX_EXCHANGE_ROUNDS]);
    return (int32_t)(counted - all_counted(m, number)) >= 0;
}

/* ---- layout ------------------------------------------------------------------------------------------------------ */

mpiox_exchange_round *mpiox_exchange_rounds_lay_out(mpiox_messages *m, int64_t number)
{
    mpiox_exchange_round *round = &m->rounds[number % MPIOX_EXCHANGE_ROUNDS];
    int64_t base = 0;
    assert(number == m->n_laid && mpiox_exchange_rounds_exists(m, number)); /* in order */
    mpiox_messages_reach(m, &m->exchange->counted[number % MPIOX_EXCHANGE_ROUNDS], all_counted(m, number),
                         MPIOX_PART_WAITING);
    for (int i = 0; i < round->n_shares; i++) {
        mpiox_exchange_share *share = &round->shares[i];
        share->base = base;
        mpiox_destination_buffer *destination = mpiox_messages_destination(m, number, share->aggregator);
        share->destination_bytes = atomic_load(&destination->bytes);
        if (mpiox_messages_channel(m, share->aggregator) == m->base.b->file->topology->node_rank)
            /* as the exchange rounds before have announced; all have counted this one */
            atomic_store(&destination->sooner, 0);
        base += share->destination_bytes + (int64_t)sizeof(mpiox_message_entry); /* the end of it */
    }
    round->first_step = m->next_step;
    round->n_steps = base > 0 ? (base - (int64_t)sizeof(mpiox_message_entry)) / m->step_bytes + 1 : 0;
    m->next_step += round->n_steps;
    m->n_laid = number + 1;
    count_next(m); /* no rank works any more on the exchange round that had these destination buffers before */
    return round;
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

/* A step has bytes [at, at + bytes) of its half for the destination buffer. */
static void note(mpiox_messages *m, mpiox_destination_buffer *destination, int64_t step, int64_t at, int64_t bytes)
{
    assert(at >= 0 && bytes > 0 && at + bytes <= m->half_bytes);
    raise_to(&destination->before[step & 1], m->half_bytes - at);
    raise_to(&destination->last[step & 1], at + bytes);
}

/* This rank's chunks of one destination buffer that begin in [begin, begin + step_bytes) of the exchange round. */
static void pack_chunks(mpiox_messages *m, const mpiox_exchange_round *round, const mpiox_exchange_share *share,
                        mpiox_destination_buffer *destination, int64_t step, int64_t begin)
{
    int64_t at = share->base + share->at;
    mpiox_chunks chunks;
    mpiox_message_entry entry;
    if (share->bytes == 0 || at >= begin + m->step_bytes || at + share->bytes <= begin)
        return;
    mpiox_chunks_begin(m, &chunks, share->aggregator, round->round);
    for (; at < begin + m->step_bytes && mpiox_chunks_next(&chunks, &entry); at += chunks.bytes)
        if (at >= begin) {
            mpiox_chunk_pack(&chunks, &entry, mpiox_messages_half(m, step) + at - begin);
            note(m, destination, step, at - begin, chunks.bytes);
        }
}

/* Does the step have chunks of the destination buffer, and is the end among them? False if the node sends none in this
 * exchange round. */
static bool is_in_step(const mpiox_messages *m, const mpiox_exchange_round *round, const mpiox_exchange_share *share,
                       int64_t step, bool *end)
{
    const int64_t begin = (step - round->first_step) * m->step_bytes, at = share->base + share->destination_bytes;
    *end = at >= begin && at < begin + m->step_bytes;
    if (share->destination_bytes == 0 && m->due[share->due].announced > round->round) /* known to the channel only */
        return false;
    return share->base < begin + m->step_bytes && at >= begin;
}

void mpiox_exchange_rounds_pack(mpiox_messages *m, const mpiox_exchange_round *round, int64_t number, int64_t step)
{
    const int64_t begin = (step - round->first_step) * m->step_bytes;
    for (int i = 0; i < round->n_shares; i++) {
        const mpiox_exchange_share *share = &round->shares[i];
        mpiox_destination_buffer *destination = mpiox_messages_destination(m, number, share->aggregator);
        bool end;
        if (!is_in_step(m, round, share, step, &end))
            continue;
        pack_chunks(m, round, share, destination, step, begin);
        if (end && mpiox_messages_channel(m, share->aggregator) == m->base.b->file->topology->node_rank) {
            note(m, destination, step, share->base + share->destination_bytes - begin,
                 (int64_t)sizeof(mpiox_message_entry));
        }
    }
}

/* The round in which the channel's node sends again. All ranks have counted the next two exchange rounds; later ones
 * are known as far as each rank has looked ahead. */
static int64_t next_message(const mpiox_messages *m, int64_t number, const mpiox_exchange_share *share)
{
    const mpiox_due *due = &m->due[share->due];
    int64_t round = 0;
    for (int64_t next = number + 1; next <= number + MPIOX_COUNTED_AHEAD; next++) {
        if (!mpiox_exchange_rounds_exists(m, next))
            return INT64_MAX;
        round = m->rounds[next % MPIOX_EXCHANGE_ROUNDS].round;
        if (round >= due->last)
            return INT64_MAX;
        if (atomic_load(&mpiox_messages_destination(m, next, share->aggregator)->bytes) > 0)
            return round;
    }
    if (due->counted != number + MPIOX_COUNTED_AHEAD) /* no rank accesses that window */
        return round + 1;
    return INT64_MAX - atomic_load(&mpiox_messages_destination(m, due->counted, share->aggregator)->sooner);
}

/* The end of the destination buffer into the step, with the round of the next message. */
static void put_end(mpiox_messages *m, const mpiox_exchange_round *round, int64_t number,
                    const mpiox_exchange_share *share, int64_t step)
{
    const int64_t at = share->base + share->destination_bytes - (step - round->first_step) * m->step_bytes;
    const mpiox_message_entry entry = {.rank = MPIOX_ENTRY_END, .position = next_message(m, number, share)};
    m->due[share->due].announced = entry.position;
    memcpy(mpiox_messages_half(m, step) + at, &entry, sizeof entry);
}

void mpiox_exchange_rounds_send(mpiox_messages *m, const mpiox_exchange_round *round, int64_t number, int64_t step,
                                void (*send)(mpiox_messages *m, int64_t number, int64_t step, int to, char *bytes,
                                             int64_t length))
{
    const mpiox_buffers *b = m->base.b;
    const mpiox_topology *topology = b->file->topology;
    const int half = (int)(step & 1);
    bool packed = false, end;
    for (int i = 0; i < round->n_shares; i++) {
        const mpiox_exchange_share *share = &round->shares[i];
        mpiox_destination_buffer *destination = mpiox_messages_destination(m, number, share->aggregator);
        if (mpiox_messages_channel(m, share->aggregator) != topology->node_rank ||
            !is_in_step(m, round, share, step, &end))
            continue;
        if (!packed)
            mpiox_messages_reach(m, &m->exchange->packed[half],
                                 (uint32_t)(step / 2 + 1) * (uint32_t)topology->node_size, MPIOX_PART_WAITING);
        packed = true;
        if (end) {
            put_end(m, round, number, share, step);
            atomic_store(&destination->bytes, 0);
        }
        const int64_t before = atomic_exchange(&destination->before[half], 0),
                      last = atomic_exchange(&destination->last[half], 0);
        if (before > 0)
            send(m, number, step, b->aggregators[share->aggregator],
                 mpiox_messages_half(m, step) + m->half_bytes - before, last - (m->half_bytes - before));
    }
}
