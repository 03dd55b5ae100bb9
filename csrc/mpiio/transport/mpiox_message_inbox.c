/* mpiox_message_inbox.c - see mpiox_message_inbox.h. */
#include "mpiox_message_inbox.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_message_entries.h"
#include "mpiox_exchange_rounds.h"
#include "mpiox_message_sends.h"
#include "mpiox_parts.h"
#include "mpiox_print.h"

int mpiox_inbox_begin(mpiox_messages *m)
{
    mpiox_inbox *inbox = &m->inbox;
    const mpiox_topology *topology = m->base.b->file->topology;
    inbox->expected = 0;
    if (inbox->local < 0)
        return MPIOX_OK;
    if (!inbox->buffer) {
        inbox->buffer = malloc((size_t)m->half_bytes);
        inbox->next = malloc(sizeof *inbox->next * (size_t)topology->n_nodes);
        inbox->last = malloc(sizeof *inbox->last * (size_t)topology->n_nodes);
    }
    if (!inbox->buffer || !inbox->next || !inbox->last)
        return MPIOX_E_NOMEM;
    for (int n = 0; n < topology->n_nodes; n++)
        if (n == topology->node || !mpiox_exchange_rounds_due(m->call, inbox->aggregator, m->base.b->nodes[n].range,
                                                              &inbox->next[n], &inbox->last[n]))
            inbox->next[n] = INT64_MAX;
    return MPIOX_OK;
}

/* The extents of the window and where they lie in its collective buffer. */
static void keep_extents(mpiox_messages *m, int64_t n)
{
    mpiox_inbox *inbox = &m->inbox;
    if (n > inbox->extents_max) {
        mpiox_extent *extents = realloc(inbox->extents, sizeof *extents * (size_t)n);
        inbox->extents = extents ? extents : inbox->extents;
        int64_t *offsets = extents ? realloc(inbox->offsets, sizeof *offsets * (size_t)n) : NULL;
        if (!offsets)
            mpiox_file_give_up(m->base.b->file, MPIOX_E_NOMEM, -1, -1, "receiving from other nodes");
        inbox->offsets = offsets;
        inbox->extents_max = n;
    }
    inbox->n_extents = n;
    for (int64_t i = 0, at = 0; i < n; at += inbox->extents[i++].length) {
        inbox->extents[i] = m->base.b->extents[0][i];
        inbox->offsets[i] = at;
    }
}

void mpiox_inbox_open(mpiox_messages *m)
{
    mpiox_inbox *inbox = &m->inbox;
    const mpiox_call *call = m->call;
    if (inbox->local < 0)
        return;
    assert(!inbox->open && inbox->request == MPI_REQUEST_NULL); /* that of the round before is finished */
    const int64_t n = mpiox_window_extents(call, inbox->aggregator, call->round, m->base.b->extents[0]);
    if (n == 0)
        return;
    keep_extents(m, n);
    inbox->slot = mpiox_slot_of(m->base.b, inbox->local, call->progress[inbox->local].begun - 1);
    inbox->expected = 0;
    for (int node = 0; node < m->base.b->file->topology->n_nodes; node++)
        inbox->expected += inbox->next[node] <= call->round && call->round < inbox->last[node];
    inbox->open = true;
}

/* ---- a message --------------------------------------------------------------------------------------------------- */

/* A message that is longer than any can be: the nodes do not run the same program, and no later word of the other side
 * could be trusted. Ending the job is the only end that is neither a hang nor wrong data. */
static void protocol_error(const mpiox_messages *m, int source, int64_t bytes)
{
    const mpiox_topology *topology = m->base.b->file->topology;
    mpiox_print("mpiio_ext: rank %d: %s: a message of %lld bytes from rank %d does not fit; do all ranks run the same "
                "version of libmpiio_ext.so with the same hints?\n",
                topology->rank, m->base.b->file->path, (long long)bytes, source);
    PMPI_Abort(topology->comm, 1);
}

/* The entry at `at`; false: behind the last one, or cut. */
static bool entry_at(const char *message, int64_t bytes, int64_t at, bool with_data, mpiox_message_entry *entry)
{
    if (at < 0 || at + (int64_t)sizeof *entry > bytes)
        return false;
    memcpy(entry, message + at, sizeof *entry);
    return entry->run_bytes >= 0 && entry->length >= 0 && entry->run_bytes <= bytes - at - (int64_t)sizeof *entry &&
           entry->length <= INT32_MAX &&
           (!with_data || entry->length <= bytes - at - (int64_t)sizeof *entry - entry->run_bytes);
}

/* A node has sent all bytes of this exchange round, and announces when it sends again. */
static void take_end(mpiox_messages *m, const mpiox_message_entry *entry)
{
    mpiox_inbox *inbox = &m->inbox;
    if (entry->position <= m->call->round)
        protocol_error(m, inbox->source, inbox->bytes);
    inbox->next[m->base.b->file->topology->node_of[inbox->source]] = entry->position;
    inbox->expected--;
}

static void place_message(mpiox_messages *m)
{
    mpiox_inbox *inbox = &m->inbox;
    mpiox_message_entry entry;
    int64_t at = 0;
    while (entry_at(inbox->buffer, inbox->bytes, at, true, &entry)) {
        const char *runs = inbox->buffer + at + sizeof entry;
        at += (int64_t)sizeof entry + entry.run_bytes + mpiox_entry_padded(entry.length);
        if (entry.rank == MPIOX_ENTRY_END)
            take_end(m, &entry);
        else if (entry.rank == MPIOX_ENTRY_FAILED)
            mpiox_messages_fail(m, MPIOX_E_STOPPED, entry.length, "copying from the memory of a GPU on another node");
        else if (!mpiox_entry_place(m, &entry, runs, runs + entry.run_bytes))
            mpiox_messages_fail(m, MPIOX_E_CORRUPT, entry.length, "placing data from another node");
    }
    if (at != inbox->bytes)
        protocol_error(m, inbox->source, inbox->bytes);
}

/* Bytes of the reply: entries with data, the end not among them. */
static int64_t reply_length(const mpiox_inbox *inbox)
{
    mpiox_message_entry entry;
    int64_t length = 0, at = 0;
    while (entry_at(inbox->buffer, inbox->bytes, at, false, &entry)) {
        at += (int64_t)sizeof entry + entry.run_bytes;
        if (entry.rank != MPIOX_ENTRY_END)
            length += (int64_t)sizeof entry + entry.run_bytes + mpiox_entry_padded(entry.length);
    }
    return at == inbox->bytes ? length : -1;
}

static void send_reply(mpiox_messages *m, mpiox_reply *reply)
{
    mpiox_inbox *inbox = &m->inbox;
    mpiox_file *file = m->base.b->file;
    assert(reply->length > 0 && reply->length <= m->half_bytes);
    if (PMPI_Isend(reply->bytes, (int)reply->length, MPI_BYTE, inbox->source,
                   mpiox_messages_tag_reply(m->call->exchange_round), file->topology->comm,
                   &reply->request) != MPI_SUCCESS)
        mpiox_file_give_up(file, MPIOX_E_MPI, -1, reply->length, "answering another node");
    file->stats.messages++;
    file->stats.message_bytes += reply->length;
    reply->next = inbox->replies;
    inbox->replies = reply;
    inbox->reply_bytes += reply->length;
}

static void answer_message(mpiox_messages *m)
{
    mpiox_inbox *inbox = &m->inbox;
    const int64_t length = reply_length(inbox);
    mpiox_message_entry entry;
    if (length < 0 || length > m->half_bytes)
        protocol_error(m, inbox->source, inbox->bytes);
    mpiox_reply *reply = length > 0 ? malloc(sizeof *reply) : NULL;
    char *out = reply ? malloc((size_t)length) : NULL;
    if (length > 0 && !out)
        mpiox_file_give_up(m->base.b->file, MPIOX_E_NOMEM, -1, length, "answering another node");
    for (int64_t at = 0, to = 0; entry_at(inbox->buffer, inbox->bytes, at, false, &entry);) {
        const char *runs = inbox->buffer + at + sizeof entry;
        at += (int64_t)sizeof entry + entry.run_bytes;
        if (entry.rank == MPIOX_ENTRY_END) {
            take_end(m, &entry);
            continue;
        }
        const int64_t room = (int64_t)sizeof entry + entry.run_bytes + mpiox_entry_padded(entry.length);
        if (!mpiox_entry_fetch(m, &entry, runs, out + to + sizeof entry + entry.run_bytes)) {
            mpiox_messages_fail(m, MPIOX_E_CORRUPT, entry.length, "collecting data for another node");
            entry.length = 0;
        }
        memcpy(out + to, &entry, sizeof entry);
        to += room;
    }
    if (reply) {
        *reply = (mpiox_reply){MPI_REQUEST_NULL, out, length, NULL};
        send_reply(m, reply);
    }
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

/* Free messages that have been sent. */
static void reap_replies(mpiox_messages *m)
{
    mpiox_inbox *inbox = &m->inbox;
    for (mpiox_reply **link = &inbox->replies; *link;) {
        mpiox_reply *reply = *link;
        int done = 0;
        if (PMPI_Test(&reply->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
            mpiox_messages_fail(m, MPIOX_E_MPI, reply->length, "answering another node");
            done = 1; /* its state cannot be queried any more */
        }
        if (!done) {
            link = &reply->next;
            continue;
        }
        *link = reply->next;
        inbox->reply_bytes -= reply->length;
        free(reply->bytes);
        free(reply);
    }
}

/* Begin to receive whatever message of the exchange round is there. A failure ends the job: whether more is to come
 * stands in the message. */
static bool receive(mpiox_messages *m)
{
    mpiox_inbox *inbox = &m->inbox;
    const mpiox_file *file = m->base.b->file;
    MPI_Message message;
    MPI_Status status;
    MPI_Count bytes = 0;
    int there = 0;
    if (PMPI_Improbe(MPI_ANY_SOURCE, mpiox_messages_tag_data(m->call->exchange_round), file->topology->comm, &there,
                     &message, &status) != MPI_SUCCESS)
        mpiox_file_give_up(file, MPIOX_E_MPI, -1, -1, "probing for a message from another node");
    if (!there)
        return false;
    if (PMPI_Get_elements_x(&status, MPI_BYTE, &bytes) != MPI_SUCCESS || bytes < 0 || bytes > m->half_bytes)
        protocol_error(m, status.MPI_SOURCE, bytes);
    inbox->source = status.MPI_SOURCE;
    inbox->bytes = bytes;
    if (PMPI_Imrecv(inbox->buffer, (int)bytes, MPI_BYTE, &message, &inbox->request) != MPI_SUCCESS)
        mpiox_file_give_up(file, MPIOX_E_MPI, -1, bytes, "receiving a message from another node");
    return true;
}

bool mpiox_inbox_progress(mpiox_messages *m)
{
    mpiox_inbox *inbox = &m->inbox;
    int done = 0;
    if (inbox->replies)
        reap_replies(m);
    if (!inbox->open)
        return false;
    if (inbox->expected == 0) {
        inbox->open = false;
        mpiox_slot_arrive(m->call, inbox->slot);
        return true;
    }
    if (inbox->request == MPI_REQUEST_NULL && (inbox->reply_bytes > m->step_bytes || !receive(m)))
        return false;
    if (PMPI_Test(&inbox->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        mpiox_file_give_up(m->base.b->file, MPIOX_E_MPI, -1, inbox->bytes, "receiving a message from another node");
    if (!done)
        return false;
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_COPYING);
    if (m->call->write)
        place_message(m);
    else
        answer_message(m);
    mpiox_parts_on(before);
    return true;
}

void mpiox_inbox_finish(mpiox_messages *m)
{
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_MESSAGES);
    mpiox_backoff backoff = {0};
    while (m->inbox.open) {
        if (m->idle.work(m))
            backoff = (mpiox_backoff){0};
        else
            mpiox_wait_backoff(&backoff);
    }
    mpiox_parts_on(before);
}

void mpiox_inbox_end(mpiox_messages *m)
{
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_MESSAGES);
    mpiox_backoff backoff = {0};
    while (m->inbox.replies)
        if (m->idle.work(m))
            backoff = (mpiox_backoff){0};
        else
            mpiox_wait_backoff(&backoff);
    mpiox_parts_on(before);
}

void mpiox_inbox_free(mpiox_inbox *inbox)
{
    free(inbox->next);
    free(inbox->last);
    free(inbox->buffer);
    free(inbox->extents);
    free(inbox->offsets);
}
