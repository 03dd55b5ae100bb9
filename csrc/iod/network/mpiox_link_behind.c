/* mpiox_link_behind.c - see mpiox_link_behind.h. */
#include "mpiox_link_behind.h"

#include <stdlib.h>
#include <string.h>

static const int64_t record_bytes = sizeof(mpiox_link_record); /* a multiple of 8 */

bool mpiox_link_behind_pending(const mpiox_link *link)
{
    return link->batches[0].records > 0 || link->batches[1].records > 0;
}

bool mpiox_link_behind_fits(const mpiox_link *link, int64_t bytes)
{
    return link->behind_bytes > 0 && bytes <= link->behind_bytes - record_bytes - 7;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static int send_batch(mpiox_link *link, mpiox_link_batch *batch)
{
    mpiox_link_message head = {
        .op = MPIOX_LINK_WRITE, .bytes = mpiox_link_padded(batch->used), .write = {link->epoch, 0}};
    struct iovec iov[2] = {{NULL, 0}, {batch->bytes, (size_t)head.bytes}};
    memset(batch->bytes + batch->used, 0, (size_t)(head.bytes - batch->used));
    const int code = mpiox_link_send(link, &head, iov, 2, true, false);
    batch->sent = true; /* or was it? It is not known whether the delegate has it */
    batch->number = link->number;
    return code;
}

static void empty(mpiox_link_batch *batch)
{
    *batch = (mpiox_link_batch){.bytes = batch->bytes, .last = -1};
}

/* Receive the answer to a batch. The first failure is the reason why the link is stuck. */
static void await_batch(mpiox_link *link, mpiox_link_batch *batch)
{
    mpiox_link_message answer;
    mpiox_error error = {.code = MPIOX_E_UNSUPPORTED, .rank = -1, .offset = -1, .length = -1};
    int code = mpiox_link_receive(link, MPIOX_LINK_WRITE, batch->number, 0, &answer);
    if (code == MPIOX_OK && answer.result < 0)
        code = mpiox_link_receive_error(link, &answer, &error);
    if (code == MPIOX_OK && (answer.value < 0 || answer.value > batch->records))
        code = mpiox_link_fail(link);
    if (code == MPIOX_OK && answer.result == MPIOX_OK) {
        empty(batch);
        return;
    }
    batch->sent = false;
    if (code == MPIOX_OK) {
        batch->first = (int32_t)answer.value;
        code = answer.result;
    }
    if (link->stuck == MPIOX_OK) {
        link->stuck = code;
        link->stuck_error = error;
    }
}

static int report_stuck(const mpiox_link *link, mpiox_error *error)
{
    if (link->stuck != MPIOX_OK && error != NULL)
        *error = link->stuck_error;
    return link->stuck;
}

int mpiox_link_behind_settle(mpiox_link *link, mpiox_error *error)
{
    mpiox_link_batch *newer = &link->batches[link->filling], *older = &link->batches[1 - link->filling];
    if (link->stuck == MPIOX_OK) {
        if (newer->records > 0)
            (void)send_batch(link, newer); /* a failure shows in the answers */
        if (older->sent)
            await_batch(link, older);
        if (newer->sent)
            await_batch(link, newer);
    }
    return report_stuck(link, error);
}

/* The batch that is filled has no room: go on with the other one. */
static int change_batch(mpiox_link *link)
{
    mpiox_link_batch *newer = &link->batches[link->filling], *older = &link->batches[1 - link->filling];
    (void)send_batch(link, newer);
    if (older->sent)
        await_batch(link, older);
    if (link->stuck != MPIOX_OK) {
        await_batch(link, newer);
        return link->stuck;
    }
    link->filling = 1 - link->filling;
    return MPIOX_OK;
}

/* ---- collecting -------------------------------------------------------------------------------------------------- */

static mpiox_link_record *last_record(const mpiox_link_batch *batch)
{
    return batch->last < 0 ? NULL : (mpiox_link_record *)(void *)(batch->bytes + batch->last);
}

static bool goes_on(const mpiox_link_record *last, const mpiox_link_record *next)
{
    return last != NULL && last->file == next->file && last->view == next->view && last->filter == next->filter &&
           last->origin == next->origin && last->position + last->length == next->position &&
           last->length - last->bytes + next->length - next->bytes <= MPIOX_LINK_MAX_SKIPS;
}

/* Where the bytes of the record are to be put; NULL: there is no room. */
static char *place(mpiox_link_batch *batch, const mpiox_link_record *record, int64_t room)
{
    mpiox_link_record *last = last_record(batch);
    if (goes_on(last, record) && batch->used + record->bytes <= room) {
        last->length += record->length;
        last->bytes += record->bytes;
    } else {
        const int64_t at = mpiox_link_padded(batch->used);
        if (at + record_bytes + record->bytes > room)
            return NULL;
        memset(batch->bytes + batch->used, 0, (size_t)(at - batch->used));
        memcpy(batch->bytes + at, record, sizeof *record);
        batch->last = at;
        batch->records++;
        batch->used = at + record_bytes;
    }
    char *to = batch->bytes + batch->used;
    batch->used += record->bytes;
    return to;
}

/* Pack the extents of the walk to `to`. */
static void pack(char *to, mpiox_link_walk walk, const mpiox_memory_layout *memory, int64_t memory_position)
{
    int64_t position, length;
    while (mpiox_link_walk_next(&walk, INT64_MAX, &position, &length)) {
        const mpiox_memory_layout target = {.base = to};
        mpiox_memory_layout source = *memory;
        source.position += position - memory_position;
        mpiox_copy(&target, &source, length);
        to += length;
    }
}

int mpiox_link_behind_add(mpiox_link *link, const mpiox_link_record *record, mpiox_link_walk walk,
                          const mpiox_memory_layout *memory, int64_t memory_position)
{
    const int64_t room = link->behind_bytes - 7; /* for the zeros at the end */
    mpiox_link_batch *batch = &link->batches[link->filling];
    char *to = batch->bytes != NULL ? place(batch, record, room) : NULL;
    if (to == NULL && batch->records > 0) {
        const int code = change_batch(link);
        if (code != MPIOX_OK)
            return code;
        batch = &link->batches[link->filling];
    }
    if (to == NULL && batch->bytes == NULL)
        batch->bytes = malloc((size_t)link->behind_bytes);
    if (batch->bytes == NULL)
        return MPIOX_E_NOMEM;
    if (to == NULL)
        to = place(batch, record, room);
    pack(to, walk, memory, memory_position);
    return MPIOX_OK;
}

/* ---- undelivered writes ------------------------------------------------------------------------------------------ */

bool mpiox_link_behind_take(mpiox_link *link, mpiox_link_undelivered *out)
{
    if (link->stuck == MPIOX_OK)
        return false;
    out->batches[0] = link->batches[1 - link->filling];
    out->batches[1] = link->batches[link->filling];
    for (int i = 0; i < 2; i++) {
        link->batches[i].bytes = NULL;
        empty(&link->batches[i]);
    }
    memcpy(out->filters, link->filters, sizeof out->filters);
    for (int i = 0; i < MPIOX_LINK_VIEWS; i++) {
        out->views[i] = link->views[i];
        mpiox_typemap_retain(out->views[i].view);
    }
    link->stuck = MPIOX_OK;
    link->epoch++;
    return true;
}

void mpiox_link_behind_free(mpiox_link_undelivered *undelivered)
{
    for (int i = 0; i < 2; i++)
        free(undelivered->batches[i].bytes);
    for (int i = 0; i < MPIOX_LINK_VIEWS; i++)
        mpiox_typemap_free(undelivered->views[i].view);
}

typedef struct visitor {
    const mpiox_link_undelivered *undelivered;
    int (*visit)(void *context, const mpiox_link_access *access);
    void *context;
    int result;
} visitor;

static void visit_record(visitor *v, const mpiox_link_record *record, char *bytes)
{
    const mpiox_link_filter *filter = &v->undelivered->filters[record->filter].filter;
    const mpiox_typemap *view = record->view < 0 ? NULL : v->undelivered->views[record->view].view;
    mpiox_link_walk walk = {.filter = filter,
                            .view = view,
                            .origin = record->origin,
                            .position = record->position,
                            .end = record->position + record->length};
    int64_t position, length;
    while (mpiox_link_walk_next(&walk, INT64_MAX, &position, &length)) {
        const mpiox_link_access access = {.file = record->file,
                                          .write = true,
                                          .view = view,
                                          .origin = record->origin,
                                          .position = position,
                                          .length = length,
                                          .memory = {.base = bytes},
                                          .unit_bytes = filter->unit_bytes,
                                          .ranges = filter->ranges,
                                          .owner = filter->owner,
                                          .delegate = filter->delegate};
        const int result = v->visit(v->context, &access);
        if (v->result == MPIOX_OK)
            v->result = result;
        bytes += length;
    }
}

int mpiox_link_behind_visit(const mpiox_link_undelivered *undelivered,
                            int (*visit)(void *context, const mpiox_link_access *access), void *context)
{
    visitor v = {undelivered, visit, context, MPIOX_OK};
    for (int i = 0; i < 2; i++) {
        const mpiox_link_batch *batch = &undelivered->batches[i];
        int64_t at = 0;
        for (int32_t k = 0; k < batch->records; k++) {
            const mpiox_link_record *record = (const mpiox_link_record *)(void *)(batch->bytes + at);
            at += record_bytes;
            if (k >= batch->first)
                visit_record(&v, record, batch->bytes + at);
            at += mpiox_link_padded(record->bytes);
        }
    }
    return v.result;
}
