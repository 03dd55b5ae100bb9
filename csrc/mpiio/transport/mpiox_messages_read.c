/*
 * mpiox_messages_read.c - a round that reads: request, reply, copy out. See mpiox_transport_messages.c.
 *
 * If the node's ranks are ready, they request a step before the one before it has arrived: meanwhile the aggregators
 * load its windows and collect its pieces. The reply to a destination buffer goes to the place of its chunks in the
 * pool; the request consists of their entries alone, one behind the other.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_message_directions.h"
#include "mpiox_message_entries.h"
#include "mpiox_message_inbox.h"
#include "mpiox_exchange_rounds.h"
#include "mpiox_message_sends.h"
#include "mpiox_parts.h"

/* Entries and runs of the chunks in [bytes, bytes + length), without the room for data; returns their size. */
static int64_t compact(const char *bytes, int64_t length, char *out, bool *end)
{
    int64_t used = 0;
    *end = false;
    for (int64_t at = 0; at < length;) {
        mpiox_message_entry entry;
        memcpy(&entry, bytes + at, sizeof entry);
        const int64_t head = (int64_t)sizeof entry + entry.run_bytes;
        if (out)
            memcpy(out + used, bytes + at, (size_t)head);
        used += head;
        at += head + mpiox_entry_padded(entry.length);
        *end = entry.rank == MPIOX_ENTRY_END;
    }
    return used;
}

/* One of this rank's channels: begin to receive the step's bytes at the place of its entries, and send the request. */
static void ask_destination(mpiox_messages *m, int64_t number, int64_t step, int to, char *bytes, int64_t length)
{
    mpiox_buffers *b = m->base.b;
    const MPI_Comm comm = b->file->topology->comm;
    const int half = (int)(step & 1);
    bool end;
    const int64_t asked = compact(bytes, length, NULL, &end),
                  data = length - (end ? (int64_t)sizeof(mpiox_message_entry) : 0);
    char *request = malloc((size_t)asked);
    if (!request)
        mpiox_file_give_up(b->file, MPIOX_E_NOMEM, -1, asked, "sending a request to another node");
    compact(bytes, length, request, &end);
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_MESSAGES);
    if ((data > 0 && PMPI_Irecv(bytes, (int)data, MPI_BYTE, to, mpiox_messages_tag_reply(number), comm,
                                mpiox_sends_add(m, &m->receives[half], NULL)) != MPI_SUCCESS) ||
        PMPI_Isend(request, (int)asked, MPI_BYTE, to, mpiox_messages_tag_data(number), comm,
                   mpiox_sends_add(m, &m->sends[half], request)) != MPI_SUCCESS)
        mpiox_file_give_up(b->file, MPIOX_E_MPI, -1, asked, "sending a request to another node");
    mpiox_parts_on(before);
    b->file->stats.messages++;
    b->file->stats.message_bytes += asked;
}

/* The exchange round of the next step that is to be requested: the call's, or the one after it; NULL: there is none, or
 * (unless `wait`) not all ranks of the node are ready for it. */
static mpiox_exchange_round *round_to_ask(mpiox_messages *m, int64_t *number, bool wait)
{
    for (*number = m->call->exchange_round;
         *number <= m->call->exchange_round + 1 && mpiox_exchange_rounds_exists(m, *number); ++*number) {
        mpiox_exchange_round *round = &m->rounds[*number % MPIOX_EXCHANGE_ROUNDS];
        if (*number == m->n_laid) {
            if (!wait && !mpiox_exchange_rounds_ready(m, *number))
                return NULL;
            mpiox_exchange_rounds_lay_out(m, *number);
        }
        if (m->n_issued < round->first_step + round->n_steps)
            return round;
    }
    return NULL;
}

/* Ask for the next step; without `wait` only if its half of the pool is free. */
static void ask(mpiox_messages *m, bool wait)
{
    const mpiox_topology *topology = m->base.b->file->topology;
    const int64_t step = m->n_issued;
    const int half = (int)(step & 1);
    mpiox_exchange *exchange = m->exchange;
    const uint32_t free_at = (uint32_t)(step / 2) * (uint32_t)topology->node_size;
    int64_t number;
    if (!wait && (int32_t)(mpiox_futex_get(&exchange->released[half]) - free_at) < 0)
        return;
    const mpiox_exchange_round *round = round_to_ask(m, &number, wait);
    if (!round)
        return;
    mpiox_sends_wait(m, &m->sends[half], NULL); /* answered two steps ago */
    mpiox_messages_reach(m, &exchange->released[half], free_at, MPIOX_PART_MESSAGES);
    mpiox_exchange_rounds_pack(m, round, number, step);
    mpiox_futex_add(&exchange->packed[half]);
    m->n_issued++;
    mpiox_exchange_rounds_send(m, round, number, step, ask_destination);
    mpiox_sends_complete(&m->sends[half]);
    mpiox_sends_complete(&m->receives[half]);
    mpiox_sends_test(m, &m->receives[half], &exchange->arrived[half]);
}

/* Copy this rank's part of a step that has arrived. */
static void take(mpiox_messages *m, const mpiox_exchange_round *round, int64_t step)
{
    const int64_t begin = (step - round->first_step) * m->step_bytes;
    for (int i = 0; i < round->n_shares; i++) {
        const mpiox_exchange_share *share = &round->shares[i];
        const bool whole = m->exchange->whole;
        int64_t at = share->base + (whole ? 0 : share->at), bytes = whole ? share->destination_bytes : share->bytes;
        mpiox_chunks chunks;
        mpiox_message_entry entry;
        if (bytes == 0 || at >= begin + m->step_bytes || at + bytes <= begin)
            continue;
        mpiox_chunks_begin(m, &chunks, share->aggregator, round->round);
        for (; at < begin + m->step_bytes && mpiox_chunks_next(&chunks, &entry); at += chunks.bytes)
            if (at >= begin)
                mpiox_entry_take(m, mpiox_messages_half(m, step) + at - begin);
    }
}

void mpiox_messages_fetch(mpiox_transport *transport, mpiox_call *call)
{
    mpiox_messages *m = (mpiox_messages *)transport;
    const mpiox_topology *topology = m->base.b->file->topology;
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_COPYING);
    mpiox_inbox_open(m);
    const mpiox_exchange_round *round = &m->rounds[call->exchange_round % MPIOX_EXCHANGE_ROUNDS];
    if (m->n_laid <= call->exchange_round)
        mpiox_exchange_rounds_lay_out(m, call->exchange_round);
    for (int64_t step = round->first_step; step < round->first_step + round->n_steps; step++) {
        const int half = (int)(step & 1);
        if (m->n_issued == step)
            ask(m, true);
        ask(m, false);
        mpiox_sends_wait(m, &m->receives[half], &m->exchange->arrived[half]);
        mpiox_messages_reach(m, &m->exchange->arrived[half], (uint32_t)(step / 2 + 1) * (uint32_t)topology->node_size,
                             MPIOX_PART_MESSAGES);
        if (!mpiox_buffers_failed(m->base.b))
            take(m, round, step);
        mpiox_futex_add(&m->exchange->released[half]);
    }
    if (round->n_steps == 0)
        ask(m, false);
    mpiox_inbox_finish(m);
    mpiox_parts_on(before);
}
