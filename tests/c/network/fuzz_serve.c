/*
 * fuzz_serve.c - libFuzzer harness of mpiox_remote_serve(): whatever a peer sends, the delegate reads, writes and
 * computes nothing out of bounds, and serves the next one.
 *
 * An eighth of the inputs is sent as they are. The others are turned into messages that begin as the format wants, with
 * views that are valid or nearly so, records whose numbers are at the edges, and bodies that are too short or too long.
 */
#include <pthread.h>
#include <sys/socket.h>

#include "../typemap/random_trees.h"
#include "mock.h"
#include "mpiox_remote_serve.h"

enum { PAGE = 4096, MAX_BYTES = 60000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

typedef struct message_buffer {
    int64_t used;
    char bytes[MAX_BYTES];
} message_buffer;

static void append(message_buffer *out, const void *bytes, int64_t count)
{
    if (out->used + count <= MAX_BYTES) {
        memcpy(out->bytes + out->used, bytes, (size_t)count);
        out->used += count;
    }
}

static int64_t edge(choices *c)
{
    static const int64_t values[] = {0,
                                     1,
                                     2,
                                     3,
                                     7,
                                     40,
                                     4095,
                                     4096,
                                     4097,
                                     100000,
                                     -1,
                                     INT32_MAX,
                                     INT64_MAX,
                                     INT64_MIN,
                                     INT64_C(1) << 60,
                                     (INT64_C(1) << 60) + 1,
                                     -(INT64_C(1) << 60)};
    return values[choose(c, 0, 16)];
}

static void append_head(message_buffer *out, choices *c, int op, int64_t bytes)
{
    mpiox_link_message head = {
        .magic = MPIOX_LINK_MAGIC, .version = MPIOX_LINK_VERSION, .op = (uint16_t)op, .number = 1, .bytes = bytes};
    for (int i = 0; i < 5; i++)
        head.words[i] = choose(c, 0, 3) == 0 ? edge(c) : choose(c, 0, 2);
    if (choose(c, 0, 40) == 1)
        head.bytes = edge(c);
    append(out, &head, sizeof head);
}

static void append_view(message_buffer *out, choices *c)
{
    pair *p = random_pair(c, 3);
    const int64_t bytes = mpiox_typemap_blob_bytes(p->typemap);
    int64_t *blob = malloc((size_t)bytes);
    REQUIRE(blob != NULL && mpiox_typemap_to_blob(p->typemap, blob, bytes) == MPIOX_OK);
    if (choose(c, 0, 5) == 1)
        blob[choose(c, 0, 250) % (bytes / 8)] = edge(c);
    append_head(out, c, MPIOX_LINK_VIEW, bytes);
    append(out, blob, bytes);
    free(blob);
    pair_free(p);
}

static void append_filter(message_buffer *out, choices *c)
{
    mpiox_link_filter filter = {.unit_bytes = PAGE, .ranges = (int32_t)choose(c, 1, 4)};
    for (int i = 0; i < 4; i++)
        filter.owner[i] = (int16_t)choose(c, 0, 1);
    if (choose(c, 0, 5) == 1)
        filter.unit_bytes = edge(c);
    if (choose(c, 0, 9) == 1)
        filter.ranges = (int32_t)edge(c);
    append_head(out, c, MPIOX_LINK_FILTER, sizeof filter);
    append(out, &filter, sizeof filter);
}

static void append_record(message_buffer *out, choices *c, int op)
{
    static const char data[25600];
    mpiox_link_record record = {.view = (int16_t)choose(c, -1, 1), .filter = (int16_t)choose(c, 0, 1)};
    record.position = choose(c, 0, 2) == 0 ? edge(c) : 100 * choose(c, 0, 100);
    record.origin = choose(c, 0, 4) == 0 ? edge(c) : 100 * choose(c, 0, 100);
    record.length = choose(c, 0, 4) == 0 ? edge(c) : 100 * choose(c, 0, 250);
    record.bytes = choose(c, 0, 3) == 0 ? edge(c) : choose(c, 0, 2) == 0 ? record.length / 2 : record.length;
    if (choose(c, 0, 9) == 1)
        record.file = (int32_t)edge(c);
    const int64_t follow = op == MPIOX_LINK_READ                                     ? 8 * choose(c, 0, 2)
                           : record.bytes < 0 || record.bytes > (int64_t)sizeof data ? 80
                                                                                     : record.bytes;
    append_head(out, c, op, (int64_t)sizeof record + mpiox_link_padded(follow));
    append(out, &record, sizeof record);
    append(out, data, mpiox_link_padded(follow));
}

static const uint8_t session[MPIOX_HANDSHAKE_KEY] = {7};

static void append_call(message_buffer *out, choices *c)
{
    mpiox_link_call_body call = {
        .op = (int32_t)choose(c, 0, MPIOX_OP_DETACH), .text_bytes = (int32_t)choose(c, 0, 9), .text = "/f"};
    int64_t words[sizeof call.question / 8] = {0};
    for (int i = 0; i < 12; i++)
        words[i] = choose(c, 0, 2) == 0 ? edge(c) : choose(c, 0, 3);
    memcpy(&call.question, words, sizeof words);
    if (choose(c, 0, 9) == 1)
        call.file = (int32_t)edge(c);
    if (choose(c, 0, 9) == 1)
        call.text_bytes = (int32_t)edge(c);
    if (choose(c, 0, 9) != 1)
        mpiox_link_seal_call(session, (uint64_t)choose(c, 0, 1), &call);
    append_head(out, c, MPIOX_LINK_CALL, sizeof call);
    append(out, &call, sizeof call);
}

static void make_messages(message_buffer *out, choices *c)
{
    append_filter(out, c);
    for (int64_t n = choose(c, 1, 6); n > 0; n--) {
        const int op = (int)choose(c, MPIOX_LINK_HELLO, MPIOX_LINK_OPS);
        if (op == MPIOX_LINK_VIEW)
            append_view(out, c);
        else if (op == MPIOX_LINK_FILTER)
            append_filter(out, c);
        else if (op == MPIOX_LINK_READ || op == MPIOX_LINK_WRITE)
            append_record(out, c, op);
        else if (op == MPIOX_LINK_CALL)
            append_call(out, c);
        else
            append_head(out, c, op, 0);
    }
}

/* The peer: sends it all, takes what comes until it has had enough. */
typedef struct peer {
    int fd;
    const char *bytes;
    int64_t count;
} peer;

static void *play_peer(void *context)
{
    const peer *p = context;
    char buffer[65536];
    int64_t enough = 1 << 20;
    for (int64_t sent = 0; sent < p->count;) {
        const ssize_t got = send(p->fd, p->bytes + sent, (size_t)(p->count - sent), MSG_NOSIGNAL);
        if (got <= 0)
            break;
        sent += got;
    }
    shutdown(p->fd, SHUT_WR);
    while (enough > 0) {
        const ssize_t got = recv(p->fd, buffer, sizeof buffer, 0);
        if (got <= 0)
            break;
        enough -= got;
    }
    close(p->fd);
    return NULL;
}

static mock delegate;
static mpiox_remote_store store;

static void start(void)
{
    mock_start(&delegate, PAGE, 40, 0, 1);
    mpiox_remote_store_init(&store, 20000);
    mpiox_slot *slot = mpiox_ring_take(&delegate.cache);
    slot->op = MPIOX_OP_OPEN;
    slot->question.open.unit_pages = slot->question.open.owners = 1;
    strcpy(slot->text, "/file");
    REQUIRE(mpiox_ring_call(&delegate.cache, slot, NULL) == MPIOX_OK);
    atomic_fetch_add(&delegate.cache.header->files[0].openers, INT32_MAX / 2); /* the input may close it */
    mpiox_ring_give_back(slot);
}

static void serve(const char *bytes, int64_t count)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_t thread;
    int ends[2];
    pthread_once(&once, start);
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    peer p = {ends[0], bytes, count};
    REQUIRE(pthread_create(&thread, NULL, play_peer, &p) == 0);
    REQUIRE(mpiox_remote_serve(&delegate.cache, &store, ends[1], 0, session) == MPIOX_OK);
    close(ends[1]);
    pthread_join(thread, NULL);
    REQUIRE(store.free_count == store.made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static message_buffer messages;
    choices c = {data, bytes};
    messages.used = 0;
    if (choose(&c, 0, 7) == 0) {
        serve((const char *)c.data, (int64_t)c.left);
    } else {
        make_messages(&messages, &c);
        serve(messages.bytes, messages.used);
    }
    return 0;
}

#include "../typemap/fuzz_main.h"
