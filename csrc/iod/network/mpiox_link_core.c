/* mpiox_link_core.c - see mpiox_link_core.h. */
#include "mpiox_link_core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* ---- making ------------------------------------------------------------------------------------------------------ */

mpiox_link *mpiox_link_new(void)
{
    mpiox_link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    link->heartbeat = link->stream.fd = -1;
    link->batches[0].last = link->batches[1].last = -1;
    pthread_mutex_init(&link->lock, NULL);
    mpiox_wait_make_condition(&link->next_ticket);
    return link;
}

/* ---- exclusion and death ----------------------------------------------------------------------------------------- */

void mpiox_link_acquire(mpiox_link *link)
{
    pthread_mutex_lock(&link->lock);
    const uint64_t ticket = link->tickets++;
    while (link->serving != ticket)
        mpiox_wait_condition(&link->next_ticket, &link->lock, INFINITY);
    link->request_began = mpiox_now();
    pthread_mutex_unlock(&link->lock);
}

void mpiox_link_release(mpiox_link *link)
{
    pthread_mutex_lock(&link->lock);
    link->serving++;
    link->request_began = 0;
    if (link->serving != link->tickets)
        pthread_cond_broadcast(&link->next_ticket);
    pthread_mutex_unlock(&link->lock);
}

int mpiox_link_fail(mpiox_link *link)
{
    if (atomic_exchange(&link->alive, false)) {
        shutdown(link->stream.fd, SHUT_RDWR);
        if (link->heartbeat >= 0)
            shutdown(link->heartbeat, SHUT_RDWR);
    }
    return MPIOX_E_UNSUPPORTED;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

int mpiox_link_start(mpiox_link *link, mpiox_link_message *head, bool answered)
{
    if (!atomic_load(&link->alive))
        return MPIOX_E_UNSUPPORTED;
    head->magic = MPIOX_LINK_MAGIC;
    head->version = MPIOX_LINK_VERSION;
    head->number = answered ? ++link->number : 0;
    mpiox_link_stream_pause(&link->stream);
    return MPIOX_OK;
}

int mpiox_link_send(mpiox_link *link, mpiox_link_message *head, struct iovec *iov, int count, bool answered, bool more)
{
    if (mpiox_link_start(link, head, answered) != MPIOX_OK)
        return MPIOX_E_UNSUPPORTED;
    iov[0] = (struct iovec){head, sizeof *head};
    return mpiox_link_stream_write(&link->stream, iov, count, more) == MPIOX_OK ? MPIOX_OK : mpiox_link_fail(link);
}

int mpiox_link_receive(mpiox_link *link, uint16_t op, uint32_t number, int64_t max_bytes, mpiox_link_message *head)
{
    if (!atomic_load(&link->alive) || mpiox_link_stream_read(&link->stream, head, sizeof *head) != MPIOX_OK)
        return mpiox_link_fail(link);
    const bool fine = head->magic == MPIOX_LINK_MAGIC && head->version == MPIOX_LINK_VERSION && head->op == op &&
                      head->number == number && head->bytes >= 0 &&
                      head->bytes <= (head->result < 0 ? (int64_t)sizeof(mpiox_error) : max_bytes);
    return fine ? MPIOX_OK : mpiox_link_fail(link);
}

int mpiox_link_receive_error(mpiox_link *link, const mpiox_link_message *head, mpiox_error *error)
{
    mpiox_error received = {.code = head->result, .rank = -1, .offset = -1, .length = -1};
    if (head->bytes > 0 && (head->bytes != sizeof received ||
                            mpiox_link_stream_read(&link->stream, &received, sizeof received) != MPIOX_OK))
        return mpiox_link_fail(link);
    received.what[sizeof received.what - 1] = '\0';
    if (error != NULL)
        *error = received;
    return MPIOX_OK;
}

int mpiox_link_ask(mpiox_link *link, mpiox_link_message *head, int64_t max_bytes, mpiox_link_message *answer)
{
    struct iovec iov[1];
    head->bytes = 0;
    const int code = mpiox_link_send(link, head, iov, 1, true, false);
    return code == MPIOX_OK ? mpiox_link_receive(link, head->op, link->number, max_bytes, answer) : code;
}

/* ---- views and filters ------------------------------------------------------------------------------------------- */

static int find_view(const mpiox_link *link, const mpiox_typemap *view)
{
    for (int i = 0; i < MPIOX_LINK_VIEWS; i++) {
        if (link->views[i].view != NULL && mpiox_typemap_equal(link->views[i].view, view))
            return i;
    }
    return -1;
}

/* The entry for a new view: one that is free, or the one that was not used for the longest time. */
static int oldest_view(const mpiox_link *link)
{
    int oldest = 0;
    for (int i = 1; i < MPIOX_LINK_VIEWS; i++) {
        if (link->views[i].used < link->views[oldest].used)
            oldest = i;
    }
    return oldest;
}

static int send_view(mpiox_link *link, const mpiox_typemap *view, int number)
{
    mpiox_link_message head = {.op = MPIOX_LINK_VIEW, .bytes = mpiox_typemap_blob_bytes(view), .view = {number}};
    void *blob = malloc((size_t)head.bytes);
    struct iovec iov[2] = {{NULL, 0}, {blob, (size_t)head.bytes}};
    if (blob == NULL)
        return MPIOX_E_NOMEM;
    int code = mpiox_typemap_to_blob(view, blob, head.bytes);
    if (code == MPIOX_OK)
        code = mpiox_link_send(link, &head, iov, 2, false, true);
    free(blob);
    return code;
}

int mpiox_link_name_view(mpiox_link *link, const mpiox_typemap *view, int16_t *number)
{
    *number = -1;
    if (view == NULL)
        return MPIOX_OK;
    int i = find_view(link, view);
    if (i < 0) {
        i = oldest_view(link);
        const int code = mpiox_typemap_blob_bytes(view) > MPIOX_LINK_BLOB_BYTES ? MPIOX_E_FULL
                                                                                : send_view(link, view, i);
        if (code != MPIOX_OK)
            return code;
        mpiox_typemap_free(link->views[i].view);
        link->views[i].view = mpiox_typemap_retain((mpiox_typemap *)(uintptr_t)view); /* only its count is written */
    }
    link->views[i].used = ++link->uses;
    *number = (int16_t)i;
    return MPIOX_OK;
}

static int find_filter(const mpiox_link *link, const mpiox_link_filter *filter)
{
    for (int i = 0; i < MPIOX_LINK_FILTERS; i++) {
        if (link->filters[i].filter.unit_bytes != 0 &&
            memcmp(&link->filters[i].filter, filter, sizeof *filter) == 0) /* without holes; zeros behind the ranges */
            return i;
    }
    return -1;
}

static int oldest_filter(const mpiox_link *link)
{
    int oldest = 0;
    for (int i = 1; i < MPIOX_LINK_FILTERS; i++) {
        if (link->filters[i].used < link->filters[oldest].used)
            oldest = i;
    }
    return oldest;
}

int mpiox_link_name_filter(mpiox_link *link, const mpiox_link_filter *filter, int16_t *number)
{
    int i = find_filter(link, filter);
    if (i < 0) {
        i = oldest_filter(link);
        mpiox_link_message head = {.op = MPIOX_LINK_FILTER, .bytes = sizeof *filter, .filter = {i}};
        struct iovec iov[2] = {{NULL, 0}, {(void *)(uintptr_t)filter, sizeof *filter}};
        const int code = mpiox_link_send(link, &head, iov, 2, false, true);
        if (code != MPIOX_OK)
            return code;
        link->filters[i].filter = *filter;
    }
    link->filters[i].used = ++link->uses;
    *number = (int16_t)i;
    return MPIOX_OK;
}

bool mpiox_link_replaces(const mpiox_link *link, const mpiox_typemap *view, const mpiox_link_filter *filter)
{
    return (view != NULL && link->views[oldest_view(link)].view != NULL && find_view(link, view) < 0) ||
           (link->filters[oldest_filter(link)].filter.unit_bytes != 0 && find_filter(link, filter) < 0);
}

char *mpiox_link_buffer(mpiox_link *link)
{
    if (link->buffer == NULL)
        link->buffer = malloc(MPIOX_LINK_CHUNK);
    return link->buffer;
}
