/*
 * mpiox_remote.c - see mpiox_remote.h.
 *
 * The accepting thread polls connections before their admission (mpiox_rendezvous.h), and the heartbeats once a second:
 * a thousand clients must not use all of its time. A connection for data gets a thread when it is admitted. A
 * connection for heartbeats belongs to one for data, by its token, and ends it when it breaks: so the delegate, too,
 * detects that a client's host has vanished (keepalive, 15 s).
 */
#include "mpiox_remote.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpiox_remote_serve.h"

enum { LOOK_MS = 100, STACK_BYTES = 512 * 1024, OTHERS = 2 /* descriptors that are polled beside the heartbeats */ };

static const double heartbeats_s = 1; /* between two checks of the heartbeats */

typedef struct connection { /* of data, with a thread of its own */
    struct connection *next;
    struct mpiox_remote *remote;
    pthread_t thread;
    int64_t token;
    int fd; /* under the lock of `remote`: -1 when closed */
    bool done;
    uint8_t session[MPIOX_HANDSHAKE_KEY];
} connection;

typedef struct heartbeat { /* a connection of heartbeats */
    int fd;
    int64_t token; /* of the connection that it stands for */
    int32_t filled;
    char bytes[sizeof(mpiox_link_message)];
} heartbeat;

struct mpiox_remote {
    mpiox_cache cache;
    mpiox_remote_store store;
    mpiox_rendezvous *rendezvous;
    int wake; /* an eventfd */
    atomic_bool stopping;
    pthread_t thread;
    pthread_mutex_t lock; /* of what connection threads change: fd and done */
    connection *connections;
    int32_t heartbeat_count, heartbeat_room;
    heartbeat *heartbeats;
    struct pollfd *polled; /* [OTHERS + heartbeat_room] */
    double next_heartbeats;
};

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static int start_thread(pthread_t *thread, void *(*run)(void *), void *context)
{
    pthread_attr_t attributes;
    sigset_t all, old;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int code = pthread_create(thread, &attributes, run, context);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    return code;
}

static void wake(const mpiox_remote *remote)
{
    const uint64_t one = 1;
    ssize_t written;
    do {
        written = write(remote->wake, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
}

/* ---- connections of data ----------------------------------------------------------------------------------------- */

static int welcome(int fd, int result, int64_t token, int64_t page_bytes)
{
    const mpiox_link_message answer = {.magic = MPIOX_LINK_MAGIC,
                                       .version = MPIOX_LINK_VERSION,
                                       .op = MPIOX_LINK_HELLO,
                                       .result = result,
                                       .hello = {token, page_bytes}};
    return send(fd, &answer, sizeof answer, MSG_NOSIGNAL) == (ssize_t)sizeof answer ? MPIOX_OK : MPIOX_E_UNSUPPORTED;
}

/* Detach this client from the ring, as a process of the node does itself. */
static void detach(const mpiox_cache *cache, int client)
{
    mpiox_slot *slot = mpiox_ring_take(cache);
    if (slot != NULL) {
        slot->op = MPIOX_OP_DETACH;
        slot->client = client;
        slot->question.detach.client = client;
        (void)mpiox_ring_call(cache, slot, NULL);
        mpiox_ring_give_back(slot);
    }
    mpiox_ring_leave(cache, client);
}

static void *serve_connection(void *context)
{
    connection *c = context;
    mpiox_remote *remote = c->remote;
    const mpiox_cache *cache = &remote->cache;
    const int client = mpiox_ring_join(cache);
    const int result = client < 0 ? client : MPIOX_OK;
    if (welcome(c->fd, result, c->token, cache->page_bytes) == MPIOX_OK && client >= 0)
        (void)mpiox_remote_serve(cache, &remote->store, c->fd, client, c->session);
    if (client >= 0)
        detach(cache, client);
    pthread_mutex_lock(&remote->lock);
    close(c->fd);
    c->fd = -1;
    c->done = true;
    pthread_mutex_unlock(&remote->lock);
    wake(remote);
    return NULL;
}

/* Takes over the socket; closes it when no thread can be started. */
static void add_connection(mpiox_remote *remote, int fd, const uint8_t session[MPIOX_HANDSHAKE_KEY])
{
    connection *c = calloc(1, sizeof *c);
    if (c == NULL || getrandom(&c->token, sizeof c->token, 0) != (ssize_t)sizeof c->token) {
        close(fd);
        free(c);
        return;
    }
    c->remote = remote;
    c->fd = fd;
    memcpy(c->session, session, sizeof c->session);
    if (start_thread(&c->thread, serve_connection, c) != 0) {
        close(fd);
        free(c);
        return;
    }
    c->next = remote->connections;
    remote->connections = c;
}

/* Ends the connection of a token (0: all connections): its thread detects that at once. */
static void cut(mpiox_remote *remote, int64_t token)
{
    pthread_mutex_lock(&remote->lock);
    for (connection *c = remote->connections; c != NULL; c = c->next) {
        if (c->fd >= 0 && (token == 0 || c->token == token))
            shutdown(c->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&remote->lock);
}

static bool has_connection(const mpiox_remote *remote, int64_t token)
{
    const connection *c = remote->connections;
    while (c != NULL && c->token != token)
        c = c->next;
    return c != NULL;
}

/* Take leave of the threads that are done; all: wait for each. */
static void reap(mpiox_remote *remote, bool all)
{
    connection **link = &remote->connections;
    while (*link != NULL) {
        connection *c = *link;
        pthread_mutex_lock(&remote->lock);
        const bool done = c->done;
        pthread_mutex_unlock(&remote->lock);
        if (!done && !all) {
            link = &c->next;
            continue;
        }
        *link = c->next;
        pthread_join(c->thread, NULL);
        free(c);
    }
}

/* ---- heartbeats -------------------------------------------------------------------------------------------------- */

static bool make_room(mpiox_remote *remote)
{
    if (remote->heartbeat_count < remote->heartbeat_room)
        return true;
    const int32_t room = remote->heartbeat_room < 16 ? 16 : 2 * remote->heartbeat_room;
    heartbeat *heartbeats = realloc(remote->heartbeats, (size_t)room * sizeof *heartbeats);
    if (heartbeats != NULL)
        remote->heartbeats = heartbeats;
    struct pollfd *polled = realloc(remote->polled, (size_t)(room + OTHERS) * sizeof *polled);
    if (polled != NULL)
        remote->polled = polled;
    if (heartbeats == NULL || polled == NULL)
        return false;
    remote->heartbeat_room = room;
    return true;
}

/* One of the job's is there. */
static void admit(mpiox_remote *remote, const mpiox_rendezvous_peer *one)
{
    const bool serving = mpiox_cache_is_serving(&remote->cache, true);
    if (serving && one->purpose == MPIOX_PURPOSE_DATA) {
        add_connection(remote, one->fd, one->session);
        return;
    }
    const bool known = serving && has_connection(remote, one->token) && make_room(remote);
    if (welcome(one->fd, known ? MPIOX_OK : MPIOX_E_UNSUPPORTED, 0, 0) != MPIOX_OK || !known) {
        close(one->fd);
        return;
    }
    remote->heartbeats[remote->heartbeat_count++] = (heartbeat){.fd = one->fd, .token = one->token};
}

/* Beats get no answer: the client only needs the acknowledgement of the other host's kernel. False: the connection is
 * over. */
static bool receive_beats(heartbeat *h)
{
    mpiox_link_message beat;
    for (;;) {
        const ssize_t bytes = recv(h->fd, h->bytes + h->filled, sizeof h->bytes - (size_t)h->filled, MSG_DONTWAIT);
        if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return true;
        if (bytes <= 0)
            return false;
        h->filled += (int32_t)bytes;
        if (h->filled < (int32_t)sizeof beat)
            continue;
        memcpy(&beat, h->bytes, sizeof beat);
        h->filled = 0;
        if (mpiox_link_check_head(&beat) != MPIOX_OK || beat.op != MPIOX_LINK_BEAT)
            return false;
    }
}

static void remove_heartbeat(mpiox_remote *remote, int32_t index)
{
    heartbeat *h = &remote->heartbeats[index];
    close(h->fd);
    cut(remote, h->token);
    *h = remote->heartbeats[--remote->heartbeat_count];
}

/* ---- the accepting thread ---------------------------------------------------------------------------------------- */

static void poll_once(mpiox_remote *remote)
{
    struct pollfd *polled = remote->polled;
    const int32_t count = remote->heartbeat_count;
    mpiox_rendezvous_peer one;
    polled[0] = (struct pollfd){.fd = remote->wake, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = mpiox_rendezvous_fd(remote->rendezvous), .events = POLLIN};
    const bool heartbeats = mpiox_now() >= remote->next_heartbeats;
    if (heartbeats)
        remote->next_heartbeats = mpiox_now() + heartbeats_s;
    for (int32_t i = 0; i < count; i++)
        polled[OTHERS + i] = (struct pollfd){.fd = heartbeats ? remote->heartbeats[i].fd : -1, .events = POLLIN};
    (void)poll(polled, (nfds_t)(count + OTHERS), LOOK_MS);
    if (polled[0].revents != 0) {
        uint64_t ignored;
        (void)!read(remote->wake, &ignored, sizeof ignored);
    }
    const bool serving = mpiox_cache_is_serving(&remote->cache, true);
    for (int32_t i = count; i-- > 0;) { /* from the end: the last one moves to the place of one that is removed */
        if ((polled[OTHERS + i].revents != 0 && !receive_beats(&remote->heartbeats[i])) || !serving)
            remove_heartbeat(remote, i);
    }
    while (mpiox_rendezvous_next(remote->rendezvous, &one))
        admit(remote, &one);
    if (!serving)
        cut(remote, 0);
    reap(remote, false);
}

static void *accept_connections(void *context)
{
    mpiox_remote *remote = context;
    while (!atomic_load(&remote->stopping))
        poll_once(remote);
    mpiox_remote_store_end(&remote->store);
    while (remote->heartbeat_count > 0)
        remove_heartbeat(remote, remote->heartbeat_count - 1);
    cut(remote, 0);
    reap(remote, true);
    return NULL;
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

static void release(mpiox_remote *remote)
{
    mpiox_rendezvous_close(remote->rendezvous);
    if (remote->wake >= 0)
        close(remote->wake);
    mpiox_remote_store_free(&remote->store);
    pthread_mutex_destroy(&remote->lock);
    free(remote->heartbeats);
    free(remote->polled);
    free(remote);
}

static int prepare(mpiox_remote *remote, const mpiox_rendezvous_place *place, const uint64_t secret[2],
                   mpiox_rendezvous_address *address, mpiox_error *error)
{
    int code;
#ifdef MPIOX_TESTING
    mpiox_link_fault fault;
    if ((code = mpiox_link_fault_read(&fault, error)) != MPIOX_OK)
        return code;
#endif
    code = mpiox_rendezvous_open(place, MPIOX_PURPOSE_DATA | MPIOX_PURPOSE_HEARTBEAT, secret, &remote->rendezvous,
                                 address, error);
    if (code != MPIOX_OK)
        return code;
    remote->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (remote->wake < 0)
        return mpiox_error_set(error, MPIOX_E_IO, errno, -1, -1, "eventfd");
    if (!make_room(remote) || start_thread(&remote->thread, accept_connections, remote) != 0)
        return mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "serving clients of other nodes");
    return MPIOX_OK;
}

int mpiox_remote_start(const mpiox_cache *cache, const mpiox_rendezvous_place *place, const uint64_t secret[2],
                       mpiox_remote **out, mpiox_rendezvous_address *address, mpiox_error *error)
{
    mpiox_remote *remote = calloc(1, sizeof *remote);
    *out = NULL;
    if (remote == NULL)
        return mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "serving clients of other nodes");
    remote->cache = *cache;
    remote->wake = -1;
    pthread_mutex_init(&remote->lock, NULL);
    mpiox_remote_store_init(&remote->store, cache->header->geometry.cap_bytes / 128);
    const int code = prepare(remote, place, secret, address, error);
    if (code == MPIOX_OK)
        *out = remote;
    else
        release(remote);
    return code;
}

void mpiox_remote_stop(mpiox_remote *remote)
{
    if (remote == NULL)
        return;
    atomic_store(&remote->stopping, true);
    wake(remote);
    pthread_join(remote->thread, NULL);
    release(remote);
}
