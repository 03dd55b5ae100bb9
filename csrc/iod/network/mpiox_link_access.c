/* mpiox_link_access.c - see mpiox_link_access.h. */
#include "mpiox_link_access.h"

#include <stdlib.h>
#include <string.h>

#include "mpiox_link_behind.h"

enum {
    DIRECT_BYTES = 16 * 1024, /* extents of contiguous memory of at least so many are not copied */
    PIECES = 2048,            /* of a part that is sent with a view of its own */
    VECTORS = 64,
    UNDER_WAY = 2 /* parts */
};

/* An access on its way. */
typedef struct transfer {
    mpiox_link *link;
    const mpiox_link_access *access;
    mpiox_link_walk left; /* positions without a part yet */
    mpiox_link_record record;
    bool own_views; /* each part is sent with a view of its own */
    int result;     /* the first that is not MPIOX_OK */
    mpiox_error *error;
} transfer;

typedef struct part {
    mpiox_link_walk walk; /* the same extents again */
    int64_t bytes;
    uint32_t number; /* of the request */
} part;

static mpiox_memory_layout memory_at(const mpiox_link_access *access, int64_t position)
{
    mpiox_memory_layout memory = access->memory;
    memory.position += position - access->position;
    return memory;
}

/* The address of stream byte `position`, if memory is contiguous. */
static char *flat_memory(const mpiox_link_access *access, int64_t position)
{
    const mpiox_memory_layout memory = memory_at(access, position);
    if (memory.typemap == NULL)
        return (char *)memory.base + memory.origin + memory.position;
    if (!mpiox_typemap_is_contiguous(memory.typemap))
        return NULL;
    return (char *)memory.base + memory.origin + mpiox_typemap_offset(memory.typemap, memory.position);
}

static int fail_with(transfer *t, int code, const mpiox_error *error)
{
    if (t->result == MPIOX_OK) {
        t->result = code;
        if (error != NULL && t->error != NULL)
            *t->error = *error;
    }
    return code;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* The next extent, wherever it is. */
static bool next_extent(mpiox_link_walk *walk, int64_t max_bytes, int64_t *position, int64_t *length)
{
    do {
        walk->skips = 0;
        if (mpiox_link_walk_next(walk, max_bytes, position, length))
            return true;
    } while (walk->position < walk->end);
    return false;
}

/* Pass over what belongs to others. False: nothing of the access is left. */
static bool find_start(mpiox_link_walk *walk)
{
    int64_t position, length;
    const bool found = next_extent(walk, 1, &position, &length);
    if (found)
        walk->position = position;
    walk->skips = 0;
    return found;
}

/* Take the next extents out of t->left, up to so many bytes. False: there are none. */
static bool next_part(transfer *t, int64_t max_bytes, part *out)
{
    int64_t position, length;
    if (!find_start(&t->left))
        return false;
    *out = (part){.walk = t->left};
    while (out->bytes < max_bytes && mpiox_link_walk_next(&t->left, max_bytes - out->bytes, &position, &length)) {
        out->bytes += length;
        out->walk.end = position + length;
    }
    t->record.position = out->walk.position;
    t->record.length = out->walk.end - out->walk.position;
    t->record.bytes = out->bytes;
    return true;
}

typedef struct piece_list {
    int64_t count;
    int64_t lengths[PIECES], offsets[PIECES];
} piece_list;

/* Add the pieces of an extent; returns how many of its bytes found room. */
static int64_t list_pieces(piece_list *list, const mpiox_link_walk *walk, int64_t position, int64_t length)
{
    mpiox_cursor cursor;
    mpiox_run run;
    int64_t done = 0;
    mpiox_cursor_init(&cursor, walk->view, walk->origin, position);
    while (done < length && list->count < PIECES) {
        (void)mpiox_cursor_next(&cursor, length - done, &run);
        for (int64_t i = 0; i < run.count && list->count < PIECES; i++) {
            list->lengths[list->count] = run.length;
            list->offsets[list->count++] = run.offset + i * run.stride;
            done += run.length;
        }
    }
    return done;
}

/* As next_part(), for a view that is too long to be sent: the part's own pieces become a view. */
static int next_part_with_view(transfer *t, part *out)
{
    mpiox_typemap *byte = NULL, *view = NULL;
    int64_t position, length;
    *out = (part){.bytes = 0};
    if (!find_start(&t->left))
        return MPIOX_OK;
    piece_list *list = malloc(sizeof *list);
    if (list == NULL)
        return MPIOX_E_NOMEM;
    list->count = 0;
    mpiox_link_walk ahead = out->walk = t->left;
    while (out->bytes < MPIOX_LINK_PART_BYTES && list->count < PIECES &&
           mpiox_link_walk_next(&ahead, MPIOX_LINK_PART_BYTES - out->bytes, &position, &length)) {
        ahead.position = position + list_pieces(list, &ahead, position, length);
        out->bytes += ahead.position - position;
        out->walk.end = ahead.position;
    }
    t->left = ahead;
    int code = mpiox_typemap_block(1, &byte);
    if (code == MPIOX_OK)
        code = mpiox_typemap_indexed(list->count, list->lengths, list->offsets, byte, &view);
    if (code == MPIOX_OK)
        code = mpiox_link_name_view(t->link, view, &t->record.view);
    t->record.origin = t->record.position = 0;
    t->record.length = t->record.bytes = out->bytes;
    mpiox_typemap_free(view);
    mpiox_typemap_free(byte);
    free(list);
    return code;
}

/* False: there is no other part, or it cannot be made (t->result). */
static bool make_part(transfer *t, part *out)
{
    if (!t->own_views)
        return next_part(t, MPIOX_LINK_PART_BYTES, out);
    const int code = next_part_with_view(t, out);
    if (code != MPIOX_OK)
        (void)fail_with(t, code, NULL);
    return code == MPIOX_OK && out->bytes > 0;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

typedef struct sender {
    mpiox_link *link;
    struct iovec iov[VECTORS];
    int count;
    char *buffer; /* MPIOX_LINK_CHUNK bytes */
    int64_t used;
} sender;

static int send_out(sender *s, bool more)
{
    int code = mpiox_link_stream_write(&s->link->stream, s->iov, s->count, more);
    s->count = 0;
    s->used = 0;
    return code == MPIOX_OK ? MPIOX_OK : mpiox_link_fail(s->link);
}

/* Bytes that stay where they are until send_out(). */
static int put(sender *s, const void *bytes, int64_t length)
{
    struct iovec *last = s->count > 0 ? &s->iov[s->count - 1] : NULL;
    if (last != NULL && (const char *)last->iov_base + last->iov_len == bytes) {
        last->iov_len += (size_t)length;
        return MPIOX_OK;
    }
    if (s->count == VECTORS && send_out(s, true) != MPIOX_OK)
        return MPIOX_E_UNSUPPORTED;
    s->iov[s->count++] = (struct iovec){(void *)(uintptr_t)bytes, (size_t)length};
    return MPIOX_OK;
}

static int put_packed(sender *s, mpiox_memory_layout memory, int64_t length)
{
    while (length > 0) {
        if ((s->used == MPIOX_LINK_CHUNK || s->count == VECTORS) && send_out(s, true) != MPIOX_OK)
            return MPIOX_E_UNSUPPORTED;
        const int64_t part = length < MPIOX_LINK_CHUNK - s->used ? length : MPIOX_LINK_CHUNK - s->used;
        const mpiox_memory_layout target = {.base = s->buffer + s->used};
        mpiox_copy(&target, &memory, part);
        s->used += part;
        if (put(s, target.base, part) != MPIOX_OK)
            return MPIOX_E_UNSUPPORTED;
        memory.position += part;
        length -= part;
    }
    return MPIOX_OK;
}

/* Send a part as a message of its own. */
static int send_part(transfer *t, part *p)
{
    static const char zeros[8];
    const int64_t padding = mpiox_link_padded(p->bytes) - p->bytes;
    mpiox_link_message head = {
        .op = MPIOX_LINK_WRITE, .bytes = (int64_t)sizeof t->record + p->bytes + padding, .write = {t->link->epoch, 1}};
    sender s = {.link = t->link, .buffer = mpiox_link_buffer(t->link)};
    int64_t position, length;
    if (s.buffer == NULL)
        return fail_with(t, MPIOX_E_NOMEM, NULL);
    int code = mpiox_link_start(t->link, &head, true);
    if (code == MPIOX_OK)
        code = put(&s, &head, sizeof head);
    if (code == MPIOX_OK)
        code = put(&s, &t->record, sizeof t->record);
    mpiox_link_walk walk = p->walk;
    while (code == MPIOX_OK && mpiox_link_walk_next(&walk, INT64_MAX, &position, &length)) {
        const char *flat = length >= DIRECT_BYTES ? flat_memory(t->access, position) : NULL;
        code = flat != NULL ? put(&s, flat, length) : put_packed(&s, memory_at(t->access, position), length);
    }
    if (code == MPIOX_OK && padding > 0)
        code = put(&s, zeros, padding);
    if (code == MPIOX_OK)
        code = send_out(&s, false);
    p->number = head.number;
    return code == MPIOX_OK ? MPIOX_OK : fail_with(t, code, NULL);
}

static int await_part(transfer *t, const part *p)
{
    mpiox_link_message answer;
    mpiox_error error;
    int code = mpiox_link_receive(t->link, MPIOX_LINK_WRITE, p->number, 0, &answer);
    if (code == MPIOX_OK && answer.result < 0)
        code = mpiox_link_receive_error(t->link, &answer, &error);
    if (code != MPIOX_OK)
        return fail_with(t, code, NULL);
    return answer.result == MPIOX_OK ? MPIOX_OK : fail_with(t, answer.result, answer.result < 0 ? &error : NULL);
}

/* Parts go out while at most UNDER_WAY wait for their answers. */
static void write_parts(transfer *t)
{
    part parts[UNDER_WAY];
    int sent = 0, answered = 0;
    while (t->result == MPIOX_OK && make_part(t, &parts[sent % UNDER_WAY])) {
        if (send_part(t, &parts[sent % UNDER_WAY]) == MPIOX_OK)
            sent++;
        if (sent - answered == UNDER_WAY)
            (void)await_part(t, &parts[answered++ % UNDER_WAY]);
    }
    while (answered < sent) /* also if the link is dead by now: a part without an answer has not arrived */
        (void)await_part(t, &parts[answered++ % UNDER_WAY]);
    if (t->result != MPIOX_OK)
        t->link->epoch++; /* the delegate refuses writes that were under way behind a failure, but no later ones */
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int ask_part(transfer *t, part *p)
{
    const mpiox_link_access *access = t->access;
    const int count = access->ahead == NULL || access->ahead_count < 0 ? 0
                      : access->ahead_count < MPIOX_OP_AHEAD           ? access->ahead_count
                                                                       : MPIOX_OP_AHEAD;
    mpiox_link_message head = {
        .op = MPIOX_LINK_READ, .bytes = (int64_t)sizeof t->record + 8 * (int64_t)count, .read = {access->beyond}};
    struct iovec iov[3] = {{NULL, 0},
                           {&t->record, sizeof t->record},
                           {(void *)(uintptr_t)access->ahead, (size_t)count * sizeof access->ahead[0]}};
    if (mpiox_link_buffer(t->link) == NULL)
        return fail_with(t, MPIOX_E_NOMEM, NULL);
    const int code = mpiox_link_send(t->link, &head, iov, 3, true, false);
    p->number = head.number;
    return code == MPIOX_OK ? MPIOX_OK : fail_with(t, code, NULL);
}

/* The next extent, or its rest. */
typedef struct unpacker {
    const mpiox_link_access *access;
    mpiox_link_walk walk;
    int64_t position, length;
} unpacker;

static bool refill(unpacker *u)
{
    return u->length > 0 || mpiox_link_walk_next(&u->walk, INT64_MAX, &u->position, &u->length);
}

static void advance(unpacker *u, int64_t bytes)
{
    u->position += bytes;
    u->length -= bytes;
}

static void unpack(unpacker *u, char *from, int64_t bytes)
{
    while (bytes > 0 && refill(u)) {
        const int64_t step = bytes < u->length ? bytes : u->length;
        const mpiox_memory_layout source = {.base = from}, target = memory_at(u->access, u->position);
        mpiox_copy(&target, &source, step);
        advance(u, step);
        from += step;
        bytes -= step;
    }
}

/* Receive the next bytes of a part, that the part does have. */
static int receive_bytes(mpiox_link *link, unpacker *u, int64_t bytes)
{
    int code = MPIOX_OK;
    while (bytes > 0 && code == MPIOX_OK && refill(u)) {
        const int64_t direct = bytes < u->length ? bytes : u->length;
        char *flat = direct >= DIRECT_BYTES ? flat_memory(u->access, u->position) : NULL;
        const int64_t step = flat != NULL ? direct : bytes < MPIOX_LINK_CHUNK ? bytes : MPIOX_LINK_CHUNK;
        code = mpiox_link_stream_read(&link->stream, flat != NULL ? flat : link->buffer, step);
        if (flat != NULL)
            advance(u, step);
        else if (code == MPIOX_OK)
            unpack(u, link->buffer, step);
        bytes -= step;
    }
    return code == MPIOX_OK ? MPIOX_OK : mpiox_link_fail(link);
}

static int receive_part(transfer *t, const part *p)
{
    unpacker u = {.access = t->access, .walk = p->walk};
    int64_t left = p->bytes;
    for (;;) {
        mpiox_link_message answer;
        mpiox_error error;
        int code = mpiox_link_receive(t->link, MPIOX_LINK_READ, p->number, left, &answer);
        if (code == MPIOX_OK && answer.result != MPIOX_OK) {
            if (answer.result < 0)
                code = mpiox_link_receive_error(t->link, &answer, &error);
            else if (answer.bytes != 0)
                code = mpiox_link_fail(t->link);
            return code == MPIOX_OK ? fail_with(t, answer.result, answer.result < 0 ? &error : NULL)
                                    : fail_with(t, code, NULL);
        }
        if (code == MPIOX_OK)
            code = receive_bytes(t->link, &u, answer.bytes);
        if (code != MPIOX_OK)
            return fail_with(t, code, NULL);
        left -= answer.bytes;
        if (answer.value != 0)
            return left == 0 ? MPIOX_OK : fail_with(t, mpiox_link_fail(t->link), NULL);
    }
}

static void read_parts(transfer *t)
{
    part parts[UNDER_WAY];
    int sent = 0, answered = 0;
    while (t->result == MPIOX_OK && make_part(t, &parts[sent % UNDER_WAY])) {
        if (ask_part(t, &parts[sent % UNDER_WAY]) == MPIOX_OK)
            sent++;
        if (sent - answered == UNDER_WAY)
            (void)receive_part(t, &parts[answered++ % UNDER_WAY]);
    }
    while (answered < sent)
        (void)receive_part(t, &parts[answered++ % UNDER_WAY]);
}

/* ---- an access --------------------------------------------------------------------------------------------------- */

/* May the write be collected? Then its record is made. */
static bool is_to_be_collected(transfer *t)
{
    if (!t->access->write || t->access->at_once || t->own_views || !mpiox_link_behind_fits(t->link, 1))
        return false;
    transfer all = *t;
    part p;
    if (!next_part(&all, t->link->behind_bytes, &p) || !mpiox_link_behind_fits(t->link, p.bytes) ||
        t->access->length - p.bytes > MPIOX_LINK_MAX_SKIPS)
        return false;
    t->record.bytes = p.bytes;
    t->record.position = t->access->position; /* a write that continues it can be joined to it */
    t->record.length = t->access->length;
    return true;
}

static void transfer_all(transfer *t, const mpiox_link_filter *filter)
{
    mpiox_link *link = t->link;
    int code = link->stuck;
    if (code == MPIOX_OK && mpiox_link_behind_pending(link) && mpiox_link_replaces(link, t->access->view, filter))
        code = mpiox_link_behind_settle(link, NULL);
    if (code == MPIOX_OK)
        code = mpiox_link_name_filter(link, filter, &t->record.filter);
    if (code == MPIOX_OK)
        code = mpiox_link_name_view(link, t->access->view, &t->record.view);
    t->own_views = code == MPIOX_E_FULL;
    if (code == MPIOX_OK && is_to_be_collected(t))
        code = mpiox_link_behind_add(link, &t->record, t->left, &t->access->memory, t->access->position);
    else if (code == MPIOX_OK || t->own_views) {
        code = mpiox_link_behind_settle(link, NULL);
        if (code == MPIOX_OK && t->access->write)
            write_parts(t);
        else if (code == MPIOX_OK)
            read_parts(t);
    }
    if (code != MPIOX_OK)
        (void)fail_with(t, code, link->stuck != MPIOX_OK ? &link->stuck_error : NULL);
}

int mpiox_link_access_pages(mpiox_link *link, const mpiox_link_access *access, mpiox_error *error)
{
    mpiox_link_filter filter = {
        .unit_bytes = access->unit_bytes, .ranges = access->ranges, .delegate = access->delegate};
    transfer t = {.link = link, .access = access, .error = error};
    if (access->length <= 0)
        return MPIOX_OK;
    if (mpiox_link_check_filter(&filter) != MPIOX_OK ||
        mpiox_link_check_range(access->view, access->origin, access->position, access->length) != MPIOX_OK)
        return mpiox_error_set(error, MPIOX_E_ARG, 0, -1, access->length, "access through a delegate");
    memcpy(filter.owner, access->owner, (size_t)access->ranges * sizeof filter.owner[0]);
    t.left = (mpiox_link_walk){.filter = &filter,
                               .view = access->view,
                               .origin = access->origin,
                               .position = access->position,
                               .end = access->position + access->length};
    t.record = (mpiox_link_record){.file = access->file, .origin = access->origin};
    if (!find_start(&t.left))
        return MPIOX_OK;
    mpiox_link_acquire(link);
    transfer_all(&t, &filter);
    mpiox_link_release(link);
    return t.result;
}
