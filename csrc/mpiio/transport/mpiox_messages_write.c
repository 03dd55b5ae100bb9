/*
 * mpiox_messages_write.c - a round that writes: pack, send, receive, place. See mpiox_transport_messages.c.
 */
#include "mpiox_message_directions.h"
#include "mpiox_message_inbox.h"
#include "mpiox_exchange_rounds.h"
#include "mpiox_message_sends.h"
#include "mpiox_parts.h"

/* Send the node's packed bytes for an aggregator in this step, as one message. Synchronous: an aggregator that falls
 * behind stops its senders. */
static void send_destination(mpiox_messages *m, int64_t number, int64_t step, int to, char *bytes, int64_t length)
{
    mpiox_buffers *b = m->base.b;
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_MESSAGES);
    if (PMPI_Issend(bytes, (int)length, MPI_BYTE, to, mpiox_messages_tag_data(number), b->file->topology->comm,
                    mpiox_sends_add(m, &m->sends[step & 1], NULL)) != MPI_SUCCESS)
        mpiox_file_give_up(b->file, MPIOX_E_MPI, -1, length, "sending a message to another node");
    mpiox_parts_on(before);
    b->file->stats.messages++;
    b->file->stats.message_bytes += length;
}

static void send_step(mpiox_messages *m, const mpiox_exchange_round *round, int64_t number, int64_t step)
{
    const int half = (int)(step & 1);
    mpiox_exchange_rounds_send(m, round, number, step, send_destination);
    mpiox_sends_complete(&m->sends[half]);
    mpiox_sends_test(m, &m->sends[half], &m->exchange->released[half]);
}

void mpiox_messages_deliver(mpiox_transport *transport, mpiox_call *call)
{
    mpiox_messages *m = (mpiox_messages *)transport;
    const mpiox_topology *topology = m->base.b->file->topology;
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_COPYING);
    mpiox_inbox_open(m);
    const mpiox_exchange_round *round = mpiox_exchange_rounds_lay_out(m, call->exchange_round);
    for (int64_t step = round->first_step; step < round->first_step + round->n_steps; step++) {
        mpiox_futex *released = &m->exchange->released[step & 1];
        mpiox_sends_wait(m, &m->sends[step & 1], released); /* of two steps ago */
        mpiox_messages_reach(m, released, (uint32_t)(step / 2) * (uint32_t)topology->node_size, MPIOX_PART_MESSAGES);
        /* after an error too: other nodes must not write windows with holes */
        mpiox_exchange_rounds_pack(m, round, call->exchange_round, step);
        mpiox_futex_add(&m->exchange->packed[step & 1]);
        send_step(m, round, call->exchange_round, step);
    }
    mpiox_inbox_finish(m);
    mpiox_parts_on(before);
}

void mpiox_messages_finish(mpiox_transport *transport, mpiox_call *call)
{
    mpiox_messages *m = (mpiox_messages *)transport;
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_COPYING);
    for (int half = 0; half < 2; half++)
        mpiox_sends_wait(m, &m->sends[half], call->write ? &m->exchange->released[half] : NULL);
    mpiox_inbox_end(m);
    mpiox_parts_on(before);
}
