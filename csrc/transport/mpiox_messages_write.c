/*
 * mpiox_messages_write.c - a round that writes: pack, send, receive, place. See mpiox_transport_messages.c.
 */
#include "mpiox_message_directions.h"
#include "mpiox_message_inbox.h"
#include "mpiox_message_turns.h"
#include "mpiox_message_sends.h"

/* This rank's channels: what the node has packed for an aggregator in this step, as one message. Synchronous: an
 * aggregator that falls behind stops those who send to it. */
static void send_area(mpiox_messages *m, int64_t turn, int64_t step, const mpiox_item *item, bool end)
{
    mpiox_buffers *b = m->base.b;
    mpiox_area *area = mpiox_messages_area(m, turn, item->aggregator);
    const int half = (int)(step & 1);
    const int64_t before = atomic_load(&area->before[half]), first = m->half_bytes - before,
                  length = atomic_load(&area->last[half]) - first;
    if (end)
        atomic_store(&area->bytes, 0);
    if (before == 0)
        return;
    atomic_store(&area->before[half], 0);
    atomic_store(&area->last[half], 0);
    if (PMPI_Issend(mpiox_messages_half(m, step) + first, (int)length, MPI_BYTE, b->aggregators[item->aggregator],
                    mpiox_messages_tag_data(turn), b->file->topology->comm,
                    mpiox_sends_add(m, &m->sends[half], NULL)) != MPI_SUCCESS)
        mpiox_file_give_up(b->file, MPIOX_E_MPI, -1, length, "sending a message to another node");
    b->file->stats.messages++;
    b->file->stats.message_bytes += length;
}

static void send_step(mpiox_messages *m, const mpiox_turn *turn, int64_t number, int64_t step)
{
    const mpiox_topology *topology = m->base.b->file->topology;
    const int half = (int)(step & 1);
    bool packed = false, end;
    for (int i = 0; i < turn->n_items; i++) {
        const mpiox_item *item = &turn->items[i];
        if (mpiox_messages_channel(m, item->aggregator) != topology->node_rank ||
            !mpiox_turns_in_step(m, turn, item, step, &end))
            continue;
        if (!packed)
            mpiox_wait_reach(&m->exchange->packed[half], (uint32_t)(step / 2 + 1) * (uint32_t)topology->node_size,
                             &m->idle);
        packed = true;
        if (end)
            mpiox_turns_end(m, turn, number, item, step);
        send_area(m, number, step, item, end);
    }
    mpiox_sends_complete(&m->sends[half]);
    mpiox_sends_test(m, &m->sends[half], &m->exchange->released[half]);
}

void mpiox_messages_deliver(mpiox_transport *transport, mpiox_call *call)
{
    mpiox_messages *m = (mpiox_messages *)transport;
    const mpiox_topology *topology = m->base.b->file->topology;
    const double begun = mpiox_now();
    mpiox_inbox_open(m);
    const mpiox_turn *turn = mpiox_turns_lay_out(m, call->turn);
    for (int64_t step = turn->first_step; step < turn->first_step + turn->n_steps; step++) {
        mpiox_word *released = &m->exchange->released[step & 1];
        mpiox_sends_wait(m, &m->sends[step & 1], released); /* of two steps ago */
        mpiox_wait_reach(released, (uint32_t)(step / 2) * (uint32_t)topology->node_size, &m->idle);
        mpiox_turns_pack(m, turn, call->turn,
                         step); /* after an error too: other nodes must not write windows with holes */
        mpiox_word_add(&m->exchange->packed[step & 1]);
        send_step(m, turn, call->turn, step);
    }
    mpiox_inbox_finish(m);
    m->base.b->file->stats.exchange_s += mpiox_now() - begun;
}

void mpiox_messages_finish(mpiox_transport *transport, mpiox_call *call)
{
    mpiox_messages *m = (mpiox_messages *)transport;
    const double begun = mpiox_now();
    for (int half = 0; half < 2; half++)
        mpiox_sends_wait(m, &m->sends[half], call->write ? &m->exchange->released[half] : NULL);
    mpiox_inbox_end(m);
    m->base.b->file->stats.exchange_s += mpiox_now() - begun;
}
