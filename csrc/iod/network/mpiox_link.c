/* mpiox_link.c - see mpiox_link.h. */
#include "mpiox_link.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpiox_link_behind.h"

enum { STACK_BYTES = 256 * 1024, BEAT_MS = 300, MIN_BEHIND_BYTES = 4096 };

static const double vanished_s = 1.5; /* limit on the acknowledgement of a beat, which may be 0.3 s late */

/* ---- heartbeat --------------------------------------------------------------------------------------------------- */

static bool send_beat(int fd)
{
    const mpiox_link_message beat = {.magic = MPIOX_LINK_MAGIC, .version = MPIOX_LINK_VERSION, .op = MPIOX_LINK_BEAT};
    const ssize_t sent = send(fd, &beat, sizeof beat, MSG_NOSIGNAL | MSG_DONTWAIT);
    /* No room: the delegate has not read for a while. Its host is there, or the socket would fail. */
    return sent == (ssize_t)sizeof beat || (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

/* Nothing comes, but the end of the connection. */
static bool is_open(int fd)
{
    char bytes[256];
    ssize_t got;
    do {
        got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    } while (got > 0);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static void *beat(void *context)
{
    mpiox_link *link = context;
    double next = mpiox_now();
    while (atomic_load(&link->alive)) {
        struct pollfd wanted = {.fd = link->heartbeat, .events = POLLIN};
        const double now = mpiox_now();
        if (now >= next) {
            if (!send_beat(link->heartbeat))
                break;
            next = now + 1e-3 * BEAT_MS;
        }
        if (poll(&wanted, 1, (int)((next - now) * 1e3) + 1) > 0 && !is_open(link->heartbeat))
            break;
    }
    (void)mpiox_link_fail(link);
    return NULL;
}

static int start_heartbeat(mpiox_link *link)
{
    pthread_attr_t attributes;
    sigset_t all, old;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    link->has_heartbeat = pthread_create(&link->heartbeat_thread, &attributes, beat, link) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    return link->has_heartbeat ? MPIOX_OK : MPIOX_E_NOMEM;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static void free_link(mpiox_link *link)
{
    (void)mpiox_link_fail(link);
    if (link->has_heartbeat)
        pthread_join(link->heartbeat_thread, NULL);
    if (link->heartbeat >= 0)
        close(link->heartbeat);
    if (link->stream.fd >= 0)
        close(link->stream.fd);
    for (int i = 0; i < MPIOX_LINK_VIEWS; i++)
        mpiox_typemap_free(link->views[i].view);
    for (int i = 0; i < 2; i++)
        free(link->batches[i].bytes);
    free(link->buffer);
    pthread_cond_destroy(&link->next_ticket);
    pthread_mutex_destroy(&link->lock);
    free(link);
}

/* A socket whose other end is the delegate's listener and has welcomed us; session (may be NULL): the key. Or
 * MPIOX_E_IO. */
static int send_hello(const mpiox_rendezvous_address *address, double seconds, uint16_t purpose, int64_t token,
                      uint8_t *session, mpiox_link_message *welcome, mpiox_error *error)
{
    mpiox_rendezvous_wish wish = {
        .purpose = purpose, .token = token, .welcome = welcome, .welcome_bytes = sizeof *welcome};
    const int fd = mpiox_rendezvous_connect(address, seconds, &wish, error);
    if (fd < 0)
        return fd;
    if (session != NULL)
        memcpy(session, wish.session, sizeof wish.session);
    if (welcome->magic == MPIOX_LINK_MAGIC && welcome->version == MPIOX_LINK_VERSION &&
        welcome->op == MPIOX_LINK_HELLO && welcome->bytes == 0 && welcome->result == MPIOX_OK)
        return fd;
    close(fd);
    return mpiox_error_set(error, MPIOX_E_IO, welcome->result != MPIOX_OK ? EBUSY : EPROTO, -1, -1,
                           "connecting to a delegate");
}

static int connect_link(mpiox_link *link, const mpiox_rendezvous_address *address, double seconds, mpiox_error *error)
{
    const double deadline = mpiox_now() + seconds;
    mpiox_link_message welcome, ignored;
    int code;
#ifdef MPIOX_TESTING
    mpiox_link_fault fault;
    if ((code = mpiox_link_fault_read(&fault, error)) != MPIOX_OK)
        return code;
#endif
    const int fd = send_hello(address, seconds, MPIOX_PURPOSE_DATA, 0, link->session, &welcome, error);
    if (fd < 0)
        return fd;
    mpiox_link_stream_init(&link->stream, fd);
    link->page_bytes = welcome.hello.page_bytes;
    link->heartbeat = send_hello(address, deadline - mpiox_now(), MPIOX_PURPOSE_HEARTBEAT, welcome.hello.token, NULL,
                                 &ignored, error);
    if (link->heartbeat < 0)
        return link->heartbeat;
    mpiox_rendezvous_limit(link->heartbeat, vanished_s);
    atomic_store(&link->alive, true);
    code = start_heartbeat(link);
    return code == MPIOX_OK ? MPIOX_OK : mpiox_error_set(error, code, ENOMEM, -1, -1, "starting a heartbeat");
}

int mpiox_link_open(const mpiox_rendezvous_address *address, double seconds, mpiox_link **out, mpiox_error *error)
{
    mpiox_link *link = mpiox_link_new();
    *out = NULL;
    if (link == NULL)
        return mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "opening a link");
    const int code = connect_link(link, address, seconds, error);
    if (code == MPIOX_OK)
        *out = link;
    else
        free_link(link);
    return code;
}

void mpiox_link_close(mpiox_link *link)
{
    if (link == NULL)
        return;
    mpiox_link_acquire(link);
    (void)mpiox_link_behind_settle(link, NULL);
    mpiox_link_release(link);
    free_link(link);
}

bool mpiox_link_is_alive(const mpiox_link *link)
{
    return atomic_load_explicit(&link->alive, memory_order_acquire);
}

void mpiox_link_give_up(mpiox_link *link)
{
    (void)mpiox_link_fail(link);
}

double mpiox_link_waits_s(mpiox_link *link)
{
    pthread_mutex_lock(&link->lock);
    const uint64_t moves = atomic_load_explicit(&link->stream.moves, memory_order_relaxed);
    if (link->request_began > 0 && link->seen_moves != moves)
        link->request_began = mpiox_now();
    link->seen_moves = moves;
    const double seconds = link->request_began > 0 ? mpiox_now() - link->request_began : 0;
    pthread_mutex_unlock(&link->lock);
    return seconds;
}

int64_t mpiox_link_page_bytes(const mpiox_link *link)
{
    return link->page_bytes;
}

/* ---- control requests -------------------------------------------------------------------------------------------- */

static int call(mpiox_link *link, mpiox_link_call_body *body)
{
    mpiox_link_message head = {.op = MPIOX_LINK_CALL, .bytes = sizeof *body}, answer;
    struct iovec iov[2] = {{NULL, 0}, {body, sizeof *body}};
    const bool answered = body->op != MPIOX_OP_AHEAD_ONLY;
    if (mpiox_link_is_sealed_op(body->op)) {
        mpiox_link_mask_call(link->session, link->openings, body);
        mpiox_link_seal_call(link->session, link->openings++, body);
    }
    int code = mpiox_link_send(link, &head, iov, 2, answered, false);
    if (code != MPIOX_OK || !answered)
        return code;
    code = mpiox_link_receive(link, MPIOX_LINK_CALL, head.number, sizeof *body, &answer);
    if (code == MPIOX_OK &&
        (answer.bytes != sizeof *body || mpiox_link_stream_read(&link->stream, body, sizeof *body) != MPIOX_OK))
        code = mpiox_link_fail(link);
    return code;
}

int mpiox_link_call(mpiox_link *link, mpiox_slot *slot)
{
    mpiox_link_call_body body;
    mpiox_link_pack_call(slot, &body);
    mpiox_link_acquire(link);
    (void)mpiox_link_behind_settle(link, NULL);
    int code = call(link, &body);
    mpiox_link_release(link);
    if (code != MPIOX_OK || body.op == MPIOX_OP_AHEAD_ONLY)
        return code;
    mpiox_link_unpack_call(&body, slot);
    slot->error.what[sizeof slot->error.what - 1] = '\0';
    return slot->result;
}

/* A question and its answer's body of at most max_bytes. Bytes of the body, or MPIOX_E_UNSUPPORTED. */
static int64_t ask(mpiox_link *link, mpiox_link_message question, void *body, int64_t max_bytes,
                   mpiox_link_message *answer)
{
    mpiox_link_acquire(link);
    (void)mpiox_link_behind_settle(link, NULL);
    int code = mpiox_link_ask(link, &question, max_bytes, answer);
    if (code == MPIOX_OK && answer->result != MPIOX_OK)
        code = mpiox_link_fail(link);
    if (code == MPIOX_OK && mpiox_link_stream_read(&link->stream, body, answer->bytes) != MPIOX_OK)
        code = mpiox_link_fail(link);
    mpiox_link_release(link);
    return code == MPIOX_OK ? answer->bytes : code;
}

int mpiox_link_take_errors(mpiox_link *link, int32_t file, mpiox_error *out, int max, int *more)
{
    mpiox_link_message answer;
    const int64_t bytes = ask(link, (mpiox_link_message){.op = MPIOX_LINK_ERRORS, .errors = {file, max}}, out,
                              (max > 0 ? max : 0) * (int64_t)sizeof *out, &answer);
    if (bytes < 0)
        return MPIOX_E_UNSUPPORTED;
    *more = (int)answer.value;
    const int count = (int)(bytes / (int64_t)sizeof *out);
    for (int i = 0; i < count; i++)
        out[i].what[sizeof out[i].what - 1] = '\0';
    return count;
}

int mpiox_link_end(mpiox_link *link, int32_t file, int64_t *end)
{
    mpiox_link_message answer;
    const mpiox_link_message question = {.op = MPIOX_LINK_END, .end = {file}};
    if (ask(link, question, NULL, 0, &answer) < 0)
        return MPIOX_E_UNSUPPORTED;
    *end = answer.value;
    return MPIOX_OK;
}

int mpiox_link_owners(mpiox_link *link, int32_t file, int16_t *owner, int32_t ranges)
{
    int16_t all[MPIOX_FILE_RANGES];
    mpiox_link_message answer;
    const mpiox_link_message question = {.op = MPIOX_LINK_OWNERS, .owners = {file}};
    const int64_t bytes = ask(link, question, all, sizeof all, &answer);
    if (bytes < 0)
        return MPIOX_E_UNSUPPORTED;
    if (bytes != ranges * (int64_t)sizeof all[0])
        return MPIOX_E_ARG;
    memcpy(owner, all, (size_t)bytes);
    return MPIOX_OK;
}

int mpiox_link_has_pages(mpiox_link *link, int32_t file, int64_t first, int64_t count, uint64_t *bits)
{
    while (count > 0) {
        const int64_t part = count < MPIOX_LINK_PAGES ? count : MPIOX_LINK_PAGES;
        const int64_t part_bytes = (part + 63) / 64 * 8;
        mpiox_link_message answer;
        const mpiox_link_message question = {.op = MPIOX_LINK_CACHED, .cached = {file, first, part}};
        if (ask(link, question, bits, part_bytes, &answer) != part_bytes)
            return mpiox_link_fail(link);
        first += part;
        count -= part;
        bits += part / 64;
    }
    return MPIOX_OK;
}

/* ---- write-behind ------------------------------------------------------------------------------------------------ */

int mpiox_link_drain(mpiox_link *link, mpiox_error *error)
{
    mpiox_link_acquire(link);
    const int code = mpiox_link_behind_settle(link, error);
    mpiox_link_release(link);
    return code;
}

int mpiox_link_set_write_behind(mpiox_link *link, int64_t bytes)
{
    mpiox_link_acquire(link);
    const int code = mpiox_link_behind_settle(link, NULL);
    if (code == MPIOX_OK) {
        link->behind_bytes = bytes < MIN_BEHIND_BYTES         ? 0
                             : bytes < MPIOX_LINK_MOST_BEHIND ? bytes / 8 * 8
                                                              : MPIOX_LINK_MOST_BEHIND;
        for (int i = 0; i < 2; i++) {
            free(link->batches[i].bytes);
            link->batches[i].bytes = NULL;
        }
    }
    mpiox_link_release(link);
    return code;
}

int mpiox_link_take_undelivered(mpiox_link *link, int (*visit)(void *context, const mpiox_link_access *access),
                                void *context)
{
    mpiox_link_undelivered *undelivered = malloc(sizeof *undelivered);
    int code = MPIOX_OK;
    if (undelivered == NULL)
        return MPIOX_E_NOMEM;
    mpiox_link_acquire(link);
    (void)mpiox_link_behind_settle(link, NULL);
    const bool found = mpiox_link_behind_take(link, undelivered);
    mpiox_link_release(link);
    if (found) {
        if (visit != NULL)
            code = mpiox_link_behind_visit(undelivered, visit, context);
        mpiox_link_behind_free(undelivered);
    }
    free(undelivered);
    return code;
}
