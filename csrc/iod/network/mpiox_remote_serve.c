/* mpiox_remote_serve.c - see mpiox_remote_serve.h. */
#include "mpiox_remote_serve.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_testing.h"

typedef struct remote_client {
    const mpiox_cache *cache;
    mpiox_remote_store *store;
    int client;
    const uint8_t *session;
    uint64_t openings; /* asked for */
    mpiox_link_stream stream;
    mpiox_typemap *views[MPIOX_LINK_VIEWS];
    mpiox_link_filter filters[MPIOX_LINK_FILTERS]; /* unit_bytes 0: none */
    bool has_failed;                               /* a write: */
    int64_t failed_epoch;                          /* later ones of this epoch or an older one are refused */
} remote_client;

enum { END = 1 }; /* of the connection; otherwise MPIOX_OK */

enum { FEW_BYTES = 4096, STALLED_MS = 500 };

/* ---- memory for data --------------------------------------------------------------------------------------------- */

/* Rather four small chunks than one large one: connections take turns. */
void mpiox_remote_store_init(mpiox_remote_store *store, int64_t bytes)
{
    *store = (mpiox_remote_store){.chunk_bytes = MPIOX_STORE_CHUNK_MAX};
    while (store->chunk_bytes > MPIOX_STORE_CHUNK_MIN && 4 * store->chunk_bytes > bytes)
        store->chunk_bytes /= 2;
    const int64_t chunks = bytes / store->chunk_bytes;
    store->chunks = (int32_t)(chunks < 1 ? 1 : chunks > MPIOX_STORE_CHUNKS ? MPIOX_STORE_CHUNKS : chunks);
    pthread_mutex_init(&store->lock, NULL);
    mpiox_wait_make_condition(&store->given_back);
}

void mpiox_remote_store_end(mpiox_remote_store *store)
{
    pthread_mutex_lock(&store->lock);
    store->ending = true;
    pthread_cond_broadcast(&store->given_back);
    pthread_mutex_unlock(&store->lock);
}

void mpiox_remote_store_free(mpiox_remote_store *store)
{
    while (store->free_count > 0)
        free(store->free_chunks[--store->free_count]);
    pthread_cond_destroy(&store->given_back);
    pthread_mutex_destroy(&store->lock);
}

/* Waits while all are in use. NULL: serving ends, or there is no memory. */
static char *take_chunk(mpiox_remote_store *store)
{
    char *chunk = NULL;
    pthread_mutex_lock(&store->lock);
    while (chunk == NULL && !store->ending) {
        if (store->free_count > 0)
            chunk = store->free_chunks[--store->free_count];
        else if (store->made < store->chunks && (chunk = malloc((size_t)store->chunk_bytes)) != NULL)
            store->made++;
        else if (store->made > 0)
            mpiox_wait_condition(&store->given_back, &store->lock, INFINITY);
        else
            break;
    }
    pthread_mutex_unlock(&store->lock);
    return chunk;
}

static void give_back(mpiox_remote_store *store, char *chunk)
{
    if (chunk == NULL)
        return;
    pthread_mutex_lock(&store->lock);
    store->free_chunks[store->free_count++] = chunk;
    pthread_cond_signal(&store->given_back);
    pthread_mutex_unlock(&store->lock);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static mpiox_link_message head_of(const mpiox_link_message *request, int result, int64_t value, int64_t bytes)
{
    return (mpiox_link_message){.magic = MPIOX_LINK_MAGIC,
                                .version = MPIOX_LINK_VERSION,
                                .op = request->op,
                                .number = request->number,
                                .result = result,
                                .bytes = bytes,
                                .value = value};
}

static int answer(remote_client *s, const mpiox_link_message *request, int result, int64_t value, const void *body,
                  int64_t bytes)
{
    mpiox_link_message head = head_of(request, result, value, bytes);
    struct iovec iov[2] = {{&head, sizeof head}, {(void *)(uintptr_t)body, (size_t)bytes}};
    mpiox_link_stream_pause(&s->stream);
    return mpiox_link_stream_write(&s->stream, iov, 2, false) == MPIOX_OK ? MPIOX_OK : END;
}

static int answer_error(remote_client *s, const mpiox_link_message *request, int result, int64_t value,
                        const mpiox_error *error)
{
    return answer(s, request, result, value, error, result < 0 ? (int64_t)sizeof *error : 0);
}

static mpiox_file_record *open_file(const remote_client *s, int64_t file)
{
    if (file < 0 || file >= MPIOX_CACHE_MAX_FILES || atomic_load(&s->cache->header->files[file].openers) <= 0)
        return NULL;
    return &s->cache->header->files[file];
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* A record on its way between the connection and the pages. */
typedef struct record_work {
    mpiox_page_access access; /* of the next page */
    mpiox_link_walk walk;
    int64_t position, length; /* the rest of the extent */
    int64_t left;             /* bytes of the record that were not received, or not sent */
    bool beyond;
    int64_t ahead[MPIOX_OP_AHEAD];
    const int64_t *later; /* pages that the client expects to read after this record, */
    int32_t later_count;  /* or 0 */
    int result;           /* the first failure */
    mpiox_error error;
} record_work;

static int start_record(remote_client *s, const mpiox_link_record *record, bool write, record_work *w)
{
    const bool in_range = record->view >= -1 && record->view < MPIOX_LINK_VIEWS && record->filter >= 0 &&
                          record->filter < MPIOX_LINK_FILTERS;
    if (!in_range || (record->view >= 0 && s->views[record->view] == NULL))
        return END;
    const mpiox_typemap *view = record->view < 0 ? NULL : s->views[record->view];
    const mpiox_link_filter *filter = &s->filters[record->filter];
    if (mpiox_link_check_record(record, view, filter) != MPIOX_OK)
        return END;
    *w = (record_work){.access = {.file = record->file,
                                  .client = s->client + 1,
                                  .write = write,
                                  .view = view,
                                  .origin = record->origin,
                                  .impatient = true}, /* the range's mover may need the same connection */
                       .walk = {filter, view, record->origin, record->position, record->position + record->length, 0},
                       .left = record->bytes,
                       .error = {.code = MPIOX_OK, .rank = -1, .offset = -1, .length = -1}};
    if (open_file(s, record->file) == NULL)
        w->result = mpiox_error_set(&w->error, MPIOX_E_ARG, 0, -1, -1, "access of a file that is not open");
    return MPIOX_OK;
}

/* The pages of the next extents are likely to be wanted next. */
static void look_ahead(const remote_client *s, record_work *w, int64_t next)
{
    const int64_t page_bytes = s->cache->page_bytes;
    mpiox_link_walk walk = w->walk;
    int64_t position = next, length = w->position + w->length - next, page = w->access.page;
    w->access.ahead = w->ahead;
    w->access.ahead_count = 0;
    do {
        const int64_t end = position + length;
        while (position < end && w->access.ahead_count < MPIOX_OP_AHEAD) {
            const int64_t offset = mpiox_link_walk_offset(&walk, position);
            if (offset / page_bytes != page)
                w->ahead[w->access.ahead_count++] = page = offset / page_bytes;
            position = mpiox_link_walk_reach(&walk, (page + 1) * page_bytes, end);
        }
    } while (w->access.ahead_count < MPIOX_OP_AHEAD && mpiox_link_walk_next(&walk, INT64_MAX, &position, &length));
    for (int32_t i = 0; i < w->later_count && w->access.ahead_count < MPIOX_OP_AHEAD; i++)
        w->ahead[w->access.ahead_count++] = w->later[i];
}

/* Move the next `bytes` bytes of the record between memory and pages. END: they are not in the record, or the delegate
 * no longer serves. After a failure (w->result) nothing is moved any more. */
static int move_bytes(remote_client *s, record_work *w, char *memory, int64_t bytes)
{
    int64_t known;
    while (bytes > 0 && w->result == MPIOX_OK) {
        if (w->length == 0 && !mpiox_link_walk_next(&w->walk, INT64_MAX, &w->position, &w->length))
            return END;
        w->access.page = mpiox_link_walk_offset(&w->walk, w->position) / s->cache->page_bytes;
        const int64_t end = w->position + (w->length < bytes ? w->length : bytes);
        const int64_t until = mpiox_link_walk_reach(&w->walk, (w->access.page + 1) * s->cache->page_bytes, end);
        w->access.position = w->position;
        w->access.length = until - w->position;
        w->access.memory = (mpiox_memory_layout){.base = memory};
        if (!w->access.write && mpiox_cache_has_page(s->cache, w->access.file, w->access.page) != MPIOX_FRAME_HIT)
            look_ahead(s, w, until);
        w->result = mpiox_cache_access_page(s->cache, &w->access, w->beyond, &known, &w->error);
        memory += w->access.length;
        bytes -= w->access.length;
        w->length -= w->access.length;
        w->position = until;
    }
    return w->result == MPIOX_PAGE_GONE ? END : MPIOX_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Receive bytes of a record that did not arrive with its head: those that have arrived, without waiting for more. */
static int receive_chunk(remote_client *s, record_work *w)
{
    if (mpiox_link_stream_await(&s->stream, false) != MPIOX_OK)
        return END;
    char *chunk = take_chunk(s->store);
    if (chunk == NULL)
        return END;
    const int64_t max = w->left < s->store->chunk_bytes ? w->left : s->store->chunk_bytes;
    const int64_t bytes = mpiox_link_stream_poll(&s->stream, chunk, max);
    const int code = bytes < 0 ? END : move_bytes(s, w, chunk, bytes);
    w->left -= bytes;
    give_back(s->store, chunk);
    return code;
}

/* Deposit the record's bytes, in the order in which they come. */
static int receive_record(remote_client *s, record_work *w)
{
    int code = MPIOX_OK;
    while (w->left > 0 && w->result == MPIOX_OK && code == MPIOX_OK) {
        const bool is_empty = s->stream.start == s->stream.end;
        const char *at;
        int64_t bytes;
        if (is_empty && w->left >= (int64_t)sizeof s->stream.buffer) {
            code = receive_chunk(s, w);
        } else if (mpiox_link_stream_look(&s->stream, w->left, &at, &bytes) != MPIOX_OK) {
            code = END;
        } else {
            code = move_bytes(s, w, (char *)(uintptr_t)at, bytes); /* not written to */
            mpiox_link_stream_take(&s->stream, bytes);
            w->left -= bytes;
        }
    }
    return code;
}

/* The next record of a message of which *left bytes are left. */
static int serve_record(remote_client *s, int64_t *left, record_work *w)
{
    mpiox_link_record record;
    if (*left < (int64_t)sizeof record || mpiox_link_stream_read(&s->stream, &record, sizeof record) != MPIOX_OK)
        return END;
    *left -= (int64_t)sizeof record;
    if (start_record(s, &record, true, w) != MPIOX_OK)
        return END;
    const int64_t padding = mpiox_link_padded(record.bytes) - record.bytes;
    if (*left < record.bytes + padding || receive_record(s, w) != MPIOX_OK)
        return END;
    *left -= record.bytes - w->left;
    if (w->result != MPIOX_OK)
        return MPIOX_OK;
    *left -= padding;
    return mpiox_link_stream_skip(&s->stream, padding) == MPIOX_OK ? MPIOX_OK : END;
}

/* The write succeeded, but the file system has refused bytes of the file, and no call has reported it yet. */
static void report_refused(const remote_client *s, record_work *w)
{
    if (open_file(s, w->access.file) != NULL &&
        mpiox_cache_find_error(s->cache, w->access.file, 0, INT64_MAX, &w->error))
        w->result = w->error.code;
}

static int serve_write(remote_client *s, const mpiox_link_message *request)
{
    int64_t left = request->bytes, done = 0;
    record_work w = {.result = MPIOX_OK};
    if (s->has_failed && request->write.epoch <= s->failed_epoch)
        w.result = MPIOX_LINK_REFUSED;
    while (left > 0 && w.result == MPIOX_OK) {
        if (serve_record(s, &left, &w) != MPIOX_OK)
            return END;
        done += w.result == MPIOX_OK;
    }
    if (mpiox_link_stream_skip(&s->stream, left) != MPIOX_OK)
        return END;
    if (w.result != MPIOX_OK && w.result != MPIOX_LINK_REFUSED) {
        s->has_failed = true;
        s->failed_epoch = request->write.epoch;
    }
    if (w.result == MPIOX_OK && request->write.reports == 1)
        report_refused(s, &w);
    return answer_error(s, request, w.result, done, &w.error);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Take bytes out of the pages for the next message of the answer. END, or MPIOX_OK: with w->result a failure, *head is
 * of a message without these bytes. */
static int fetch_bytes(remote_client *s, const mpiox_link_message *request, record_work *w, char *memory, int64_t room,
                       mpiox_link_message *head)
{
    const int64_t bytes = w->left < room ? w->left : room;
    if (move_bytes(s, w, memory, bytes) != MPIOX_OK)
        return END;
    w->left -= bytes;
    *head = head_of(request, w->result, w->result != MPIOX_OK || w->left == 0, bytes);
    if (w->result != MPIOX_OK)
        head->bytes = w->result < 0 ? (int64_t)sizeof w->error : 0;
    return MPIOX_OK;
}

/* Send the rest of a message from memory of its own: its receiver does not receive. */
static int send_rest(remote_client *s, struct iovec *rest)
{
    struct iovec again = *rest;
    const int code = mpiox_link_stream_write(&s->stream, &again, 1, false) == MPIOX_OK ? MPIOX_OK : END;
    free(rest->iov_base);
    return code;
}

/* Wait for room before a chunk is taken, so that sending does not wait with it; and when it does, give it back. */
static int send_chunk(remote_client *s, const mpiox_link_message *request, record_work *w)
{
    mpiox_link_message head;
    struct iovec rest = {NULL, 0};
    if (mpiox_link_stream_await(&s->stream, true) != MPIOX_OK)
        return END;
    char *chunk = take_chunk(s->store);
    if (chunk == NULL)
        return END;
    int code = fetch_bytes(s, request, w, chunk, s->store->chunk_bytes, &head);
    if (code == MPIOX_OK) {
        struct iovec iov[2] = {{&head, sizeof head}, {w->result == MPIOX_OK ? (void *)chunk : &w->error, 0}};
        iov[1].iov_len = (size_t)head.bytes;
        mpiox_link_stream_pause(&s->stream);
        code = mpiox_link_stream_write_within(&s->stream, iov, 2, STALLED_MS) == MPIOX_OK ? MPIOX_OK : END;
        rest.iov_len = code == MPIOX_OK ? iov[0].iov_len + iov[1].iov_len : 0;
        if (rest.iov_len > 0 && (rest.iov_base = malloc(rest.iov_len)) == NULL)
            code = END;
        if (rest.iov_base != NULL) {
            memcpy(rest.iov_base, iov[0].iov_base, iov[0].iov_len);
            memcpy((char *)rest.iov_base + iov[0].iov_len, iov[1].iov_base, iov[1].iov_len);
        }
    }
    give_back(s->store, chunk);
    return rest.iov_base != NULL ? send_rest(s, &rest) : code;
}

/* Few bytes need no chunk. */
static int send_few(remote_client *s, const mpiox_link_message *request, record_work *w)
{
    char few[FEW_BYTES];
    mpiox_link_message head;
    if (fetch_bytes(s, request, w, few, sizeof few, &head) != MPIOX_OK)
        return END;
    return answer(s, request, w->result, head.value, w->result == MPIOX_OK ? (void *)few : &w->error, head.bytes);
}

static int serve_read(remote_client *s, const mpiox_link_message *request)
{
    int64_t later[MPIOX_OP_AHEAD];
    const int64_t later_bytes = request->bytes - (int64_t)sizeof(mpiox_link_record);
    mpiox_link_record record;
    record_work w;
    if (mpiox_link_stream_read(&s->stream, &record, sizeof record) != MPIOX_OK ||
        mpiox_link_stream_read(&s->stream, later, later_bytes) != MPIOX_OK ||
        start_record(s, &record, false, &w) != MPIOX_OK)
        return END;
    w.beyond = request->read.beyond != 0;
    w.later = later;
    w.later_count = (int32_t)(later_bytes / 8);
    for (int i = 0; i < w.later_count; i++) {
        if (later[i] < 0 || later[i] > MPIOX_LINK_MAX_OFFSET / s->cache->page_bytes)
            return END;
    }
    if (w.result != MPIOX_OK)
        return answer_error(s, request, w.result, 1, &w.error);
    int code = MPIOX_OK;
    while (w.left > 0 && w.result == MPIOX_OK && code == MPIOX_OK)
        code = w.left <= FEW_BYTES ? send_few(s, request, &w) : send_chunk(s, request, &w);
    return code;
}

/* ---- other requests ---------------------------------------------------------------------------------------------- */

static int serve_call(remote_client *s, const mpiox_link_message *request)
{
    mpiox_link_call_body call;
    if (mpiox_link_stream_read(&s->stream, &call, sizeof call) != MPIOX_OK)
        return END;
    if (mpiox_link_check_call(&call) != MPIOX_OK) {
        s->openings += mpiox_link_is_sealed_op(call.op);
        call.result = mpiox_error_set(&call.error, MPIOX_E_ARG, 0, -1, -1, "request of another node");
        return answer(s, request, MPIOX_OK, 0, &call, sizeof call);
    }
    if (mpiox_link_is_sealed_op(call.op)) {
        if (!mpiox_link_is_sealed(s->session, s->openings, &call)) {
            s->openings++;
            call.result = mpiox_error_set(&call.error, MPIOX_E_ARG, EACCES, -1, -1, "opening without a rank's seal");
            return answer(s, request, MPIOX_OK, 0, &call, sizeof call);
        }
        mpiox_link_mask_call(s->session, s->openings++, &call);
    }
    mpiox_slot *slot = mpiox_ring_take(s->cache);
    if (slot == NULL)
        return END;
    mpiox_link_unpack_call(&call, slot);
    slot->result = 0;
    slot->client = s->client;
    if (slot->op == MPIOX_OP_AHEAD_ONLY) {
        mpiox_ring_post(s->cache, slot);
        return MPIOX_OK;
    }
    const int result = mpiox_ring_call(s->cache, slot, NULL);
    mpiox_link_pack_call(slot, &call);
    mpiox_ring_give_back(slot);
    call.result = result;
    if (result == MPIOX_OK && call.op == MPIOX_OP_FLUSH && call.question.flush.stable == 1 &&
        mpiox_cache_find_error(s->cache, call.file, 0, INT64_MAX, &call.error))
        call.result = call.error.code; /* a write to stable storage */
    if (call.op == MPIOX_OP_PEER)      /* the answer is not masked */
        memset(call.question.peer.secret, 0, sizeof call.question.peer.secret);
    if (result == MPIOX_E_UNSUPPORTED && !mpiox_cache_is_serving(s->cache, true))
        return END;
    return answer(s, request, MPIOX_OK, 0, &call, sizeof call);
}

static int serve_view(remote_client *s, const mpiox_link_message *request)
{
    mpiox_typemap *view = NULL;
    void *blob = malloc((size_t)request->bytes);
    if (blob == NULL)
        return END;
    const bool fine = mpiox_link_stream_read(&s->stream, blob, request->bytes) == MPIOX_OK &&
                      mpiox_typemap_from_blob(blob, request->bytes, &view) == MPIOX_OK;
    free(blob);
    if (!fine)
        return END;
    mpiox_typemap_free(s->views[request->view.number]);
    s->views[request->view.number] = view;
    return MPIOX_OK;
}

static int serve_filter(remote_client *s, const mpiox_link_message *request)
{
    mpiox_link_filter *filter = &s->filters[request->filter.number];
    if (mpiox_link_stream_read(&s->stream, filter, sizeof *filter) != MPIOX_OK ||
        mpiox_link_check_filter(filter) != MPIOX_OK)
        return END;
    return MPIOX_OK;
}

static int serve_errors(remote_client *s, const mpiox_link_message *request)
{
    mpiox_error errors[MPIOX_CACHE_ERRORS];
    int count = 0, more = 0;
    const int64_t file = request->errors.file;
    const int64_t max = request->errors.most < MPIOX_CACHE_ERRORS ? request->errors.most : MPIOX_CACHE_ERRORS;
    if (open_file(s, file) != NULL && max > 0)
        count = mpiox_cache_take_errors(s->cache, (int32_t)file, errors, (int)max, &more);
    return answer(s, request, MPIOX_OK, more, errors, count * (int64_t)sizeof errors[0]);
}

static int serve_end(remote_client *s, const mpiox_link_message *request)
{
    mpiox_file_record *record = open_file(s, request->end.file);
    return answer(s, request, MPIOX_OK, record != NULL ? atomic_load(&record->end) : 0, NULL, 0);
}

static int serve_cached(remote_client *s, const mpiox_link_message *request)
{
    uint64_t bits[MPIOX_LINK_PAGES / 64] = {0};
    const int64_t file = request->cached.file, first = request->cached.first, count = request->cached.count;
    for (int64_t i = 0; i < count && open_file(s, file) != NULL; i++) {
        const int found = mpiox_cache_has_page(s->cache, (int32_t)file, first + i);
        if (found == MPIOX_FRAME_GONE)
            return END;
        if (found != MPIOX_FRAME_MISS) /* moved: it may be cached by the delegate that has it now */
            bits[i / 64] |= UINT64_C(1) << i % 64;
    }
    return answer(s, request, MPIOX_OK, 0, bits, (count + 63) / 64 * 8);
}

static int serve_owners(remote_client *s, const mpiox_link_message *request)
{
    int16_t owners[MPIOX_FILE_RANGES];
    mpiox_file_record *record = open_file(s, request->owners.file);
    const int32_t ranges = record != NULL ? record->ranges : 0;
    for (int32_t i = 0; i < ranges; i++)
        owners[i] = atomic_load(&record->owner_of[i]);
    return answer(s, request, MPIOX_OK, record != NULL ? record->unit_pages * s->cache->page_bytes : 0, owners,
                  ranges * (int64_t)sizeof owners[0]);
}

/* ---- a connection ------------------------------------------------------------------------------------------------ */

static int serve_request(remote_client *s, const mpiox_link_message *request)
{
    atomic_fetch_add_explicit(&s->cache->header->counters.messages, 1, memory_order_relaxed);
    switch (request->op) {
    case MPIOX_LINK_CALL:
        return serve_call(s, request);
    case MPIOX_LINK_VIEW:
        return serve_view(s, request);
    case MPIOX_LINK_FILTER:
        return serve_filter(s, request);
    case MPIOX_LINK_WRITE:
        return serve_write(s, request);
    case MPIOX_LINK_READ:
        return serve_read(s, request);
    case MPIOX_LINK_ERRORS:
        return serve_errors(s, request);
    case MPIOX_LINK_END:
        return serve_end(s, request);
    case MPIOX_LINK_CACHED:
        return serve_cached(s, request);
    case MPIOX_LINK_OWNERS:
        return serve_owners(s, request);
    default: /* a second hello, a beat */
        return END;
    }
}

int mpiox_remote_serve(const mpiox_cache *cache, mpiox_remote_store *store, int fd, int client,
                       const uint8_t session[MPIOX_HANDSHAKE_KEY])
{
    remote_client *s = calloc(1, sizeof *s);
    mpiox_link_message request;
    int code = MPIOX_OK;
    if (s == NULL)
        return MPIOX_E_NOMEM;
    s->cache = cache;
    s->store = store;
    s->client = client;
    s->session = session;
    mpiox_link_stream_init(&s->stream, fd);
    while (code == MPIOX_OK && mpiox_link_stream_read(&s->stream, &request, sizeof request) == MPIOX_OK) {
        MPIOX_POINT("message");
        code = mpiox_link_check_head(&request) == MPIOX_OK ? serve_request(s, &request) : END;
        MPIOX_POINT("served");
    }
    for (int i = 0; i < MPIOX_LINK_VIEWS; i++)
        mpiox_typemap_free(s->views[i]);
    free(s);
    return MPIOX_OK;
}
