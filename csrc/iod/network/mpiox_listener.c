/*
 * mpiox_listener.c - see mpiox_listener.h.
 *
 * The accepting thread polls those who want to be admitted (mpiox_admission.h), and now and then the heartbeats: a
 * thousand clients must not keep it busy. A connection for data gets a thread when it is admitted; a connection of
 * heartbeats stands for one for data, by its token, and takes it along when it breaks: so the delegate finds out, too,
 * that a client's host has vanished (keepalive, 15 s).
 */
#include "mpiox_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpiox_admission.h"
#include "mpiox_listener_serve.h"

enum { LOOK_MS = 100, STACK_BYTES = 512 * 1024, OTHERS = 2 /* descriptors that are polled beside the heartbeats */ };

static const double heartbeats_s = 1; /* between two looks at the heartbeats */

typedef struct connection { /* of data, with a thread of its own */
    struct connection *next;
    struct mpiox_listener *listener;
    pthread_t thread;
    int64_t token;
    int fd; /* under the listener's lock: -1 when closed */
    bool done;
    uint8_t session[MPIOX_HANDSHAKE_KEY];
} connection;

typedef struct heartbeat { /* a connection of heartbeats */
    int fd;
    int64_t token; /* of the connection that it stands for */
    int32_t filled;
    char bytes[sizeof(mpiox_link_message)];
} heartbeat;

struct mpiox_listener {
    mpiox_cache cache;
    mpiox_listener_store store;
    mpiox_link_fault fault;
    mpiox_admission *admission;
    int fd, wake; /* the listening socket; an eventfd */
    atomic_bool stopping;
    pthread_t thread;
    pthread_mutex_t lock; /* of what connection threads change: fd and done */
    connection *connections;
    int32_t heartbeat_count, heartbeat_room;
    heartbeat *heartbeats;
    struct pollfd *polled; /* [OTHERS + heart_room] */
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

static void wake(const mpiox_listener *listener)
{
    const uint64_t one = 1;
    ssize_t written;
    do {
        written = write(listener->wake, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
}

/* ---- connections of data ----------------------------------------------------------------------------------------- */

static int welcome(int fd, int result, int64_t token, int64_t page_bytes)
{
    const mpiox_link_message answer = {.magic = MPIOX_LINK_MAGIC,
                                       .version = MPIOX_LINK_VERSION,
                                       .op = MPIOX_LINK_HELLO,
                                       .result = result,
                                       .arg = {token, page_bytes}};
    return send(fd, &answer, sizeof answer, MSG_NOSIGNAL) == (ssize_t)sizeof answer ? MPIOX_OK : MPIOX_E_UNSUPPORTED;
}

/* This client is done, as a process of the node would say. */
static void detach(const mpiox_cache *cache, int client)
{
    mpiox_slot *slot = mpiox_ring_take(cache);
    if (slot != NULL) {
        slot->op = MPIOX_OP_DETACH;
        slot->client = client;
        slot->arg[0] = client;
        (void)mpiox_ring_call(cache, slot, NULL);
        mpiox_ring_give_back(slot);
    }
    mpiox_ring_leave(cache, client);
}

static void *serve_connection(void *context)
{
    connection *c = context;
    mpiox_listener *listener = c->listener;
    const mpiox_cache *cache = &listener->cache;
    const int client = mpiox_ring_join(cache);
    const int result = client < 0 ? client : MPIOX_OK;
    if (welcome(c->fd, result, c->token, cache->page_bytes) == MPIOX_OK && client >= 0)
        (void)mpiox_listener_serve(cache, &listener->store, c->fd, client, c->session, &listener->fault);
    if (client >= 0)
        detach(cache, client);
    pthread_mutex_lock(&listener->lock);
    close(c->fd);
    c->fd = -1;
    c->done = true;
    pthread_mutex_unlock(&listener->lock);
    wake(listener);
    return NULL;
}

/* Takes over the socket; closes it when no thread can be started. */
static void add_connection(mpiox_listener *listener, int fd, const uint8_t session[MPIOX_HANDSHAKE_KEY])
{
    connection *c = calloc(1, sizeof *c);
    const int flags = fcntl(fd, F_GETFL);
    if (c == NULL || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0 ||
        getrandom(&c->token, sizeof c->token, 0) != (ssize_t)sizeof c->token) {
        close(fd);
        free(c);
        return;
    }
    c->listener = listener;
    c->fd = fd;
    memcpy(c->session, session, sizeof c->session);
    if (start_thread(&c->thread, serve_connection, c) != 0) {
        close(fd);
        free(c);
        return;
    }
    c->next = listener->connections;
    listener->connections = c;
}

/* Ends the connection of a token (0: all of them): its thread sees that at once. */
static void cut(mpiox_listener *listener, int64_t token)
{
    pthread_mutex_lock(&listener->lock);
    for (connection *c = listener->connections; c != NULL; c = c->next) {
        if (c->fd >= 0 && (token == 0 || c->token == token))
            shutdown(c->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&listener->lock);
}

static bool has_connection(const mpiox_listener *listener, int64_t token)
{
    const connection *c = listener->connections;
    while (c != NULL && c->token != token)
        c = c->next;
    return c != NULL;
}

/* Take leave of the threads that are done; all: wait for each. */
static void reap(mpiox_listener *listener, bool all)
{
    connection **link = &listener->connections;
    while (*link != NULL) {
        connection *c = *link;
        pthread_mutex_lock(&listener->lock);
        const bool done = c->done;
        pthread_mutex_unlock(&listener->lock);
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

static bool make_room(mpiox_listener *listener)
{
    if (listener->heartbeat_count < listener->heartbeat_room)
        return true;
    const int32_t room = listener->heartbeat_room < 16 ? 16 : 2 * listener->heartbeat_room;
    heartbeat *heartbeats = realloc(listener->heartbeats, (size_t)room * sizeof *heartbeats);
    if (heartbeats != NULL)
        listener->heartbeats = heartbeats;
    struct pollfd *polled = realloc(listener->polled, (size_t)(room + OTHERS) * sizeof *polled);
    if (polled != NULL)
        listener->polled = polled;
    if (heartbeats == NULL || polled == NULL)
        return false;
    listener->heartbeat_room = room;
    return true;
}

/* One of the job's is there. */
static void admit(mpiox_listener *listener, const mpiox_admitted *one)
{
    const bool serving = mpiox_cache_is_serving(&listener->cache, true);
    if (serving && one->wish.kind == MPIOX_LINK_DATA) {
        add_connection(listener, one->fd, one->session);
        return;
    }
    const bool known = serving && one->wish.kind == MPIOX_LINK_HEARTBEAT && has_connection(listener, one->wish.token) &&
                       make_room(listener);
    if (welcome(one->fd, known ? MPIOX_OK : MPIOX_E_UNSUPPORTED, 0, 0) != MPIOX_OK || !known) {
        close(one->fd);
        return;
    }
    listener->heartbeats[listener->heartbeat_count++] = (heartbeat){.fd = one->fd, .token = one->wish.token};
}

/* Beats are not answered: that the other host's kernel acknowledges them is what the client wants to know. False: the
 * connection is over. */
static bool hear_beats(heartbeat *h)
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

static void remove_heartbeat(mpiox_listener *listener, int32_t index)
{
    heartbeat *h = &listener->heartbeats[index];
    close(h->fd);
    cut(listener, h->token);
    *h = listener->heartbeats[--listener->heartbeat_count];
}

/* ---- the accepting thread ---------------------------------------------------------------------------------------- */

static void poll_once(mpiox_listener *listener)
{
    struct pollfd *polled = listener->polled;
    const int32_t count = listener->heartbeat_count;
    mpiox_admitted one;
    polled[0] = (struct pollfd){.fd = listener->wake, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = mpiox_admission_fd(listener->admission), .events = POLLIN};
    const bool heartbeats = mpiox_now() >= listener->next_heartbeats;
    if (heartbeats)
        listener->next_heartbeats = mpiox_now() + heartbeats_s;
    for (int32_t i = 0; i < count; i++)
        polled[OTHERS + i] = (struct pollfd){.fd = heartbeats ? listener->heartbeats[i].fd : -1, .events = POLLIN};
    (void)poll(polled, (nfds_t)(count + OTHERS), LOOK_MS);
    if (polled[0].revents != 0) {
        uint64_t ignored;
        (void)!read(listener->wake, &ignored, sizeof ignored);
    }
    const bool serving = mpiox_cache_is_serving(&listener->cache, true);
    for (int32_t i = count; i-- > 0;) { /* from the end: the last one takes the place of one that goes */
        if ((polled[OTHERS + i].revents != 0 && !hear_beats(&listener->heartbeats[i])) || !serving)
            remove_heartbeat(listener, i);
    }
    while (mpiox_admission_next(listener->admission, &one))
        admit(listener, &one);
    if (!serving)
        cut(listener, 0);
    reap(listener, false);
}

static void *accept_connections(void *context)
{
    mpiox_listener *listener = context;
    while (!atomic_load(&listener->stopping))
        poll_once(listener);
    mpiox_listener_store_end(&listener->store);
    while (listener->heartbeat_count > 0)
        remove_heartbeat(listener, listener->heartbeat_count - 1);
    cut(listener, 0);
    reap(listener, true);
    return NULL;
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

static void release(mpiox_listener *listener)
{
    mpiox_admission_free(listener->admission);
    if (listener->fd >= 0)
        close(listener->fd);
    if (listener->wake >= 0)
        close(listener->wake);
    mpiox_listener_store_free(&listener->store);
    pthread_mutex_destroy(&listener->lock);
    free(listener->heartbeats);
    free(listener->polled);
    free(listener);
}

static int prepare(mpiox_listener *listener, const mpiox_listener_place *place, const uint64_t secret[2],
                   mpiox_link_address *address, mpiox_error *error)
{
    int code = mpiox_link_fault_read(&listener->fault, error);
    if (code == MPIOX_OK)
        code = mpiox_listener_bind(place, &listener->fd, address, error);
    if (code != MPIOX_OK)
        return code;
    memcpy(address->secret, secret, sizeof address->secret);
    code = mpiox_admission_create(listener->fd, MPIOX_HANDSHAKE_LINK, secret, &listener->admission, error);
    if (code != MPIOX_OK)
        return code;
    listener->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (listener->wake < 0)
        return mpiox_error_set(error, MPIOX_E_IO, errno, -1, -1, "eventfd");
    if (!make_room(listener) || start_thread(&listener->thread, accept_connections, listener) != 0)
        return mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "starting a listener");
    return MPIOX_OK;
}

int mpiox_listener_start(const mpiox_cache *cache, const mpiox_listener_place *place, const uint64_t secret[2],
                         mpiox_listener **out, mpiox_link_address *address, mpiox_error *error)
{
    mpiox_listener *listener = calloc(1, sizeof *listener);
    *out = NULL;
    if (listener == NULL)
        return mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "starting a listener");
    listener->cache = *cache;
    listener->fd = listener->wake = -1;
    pthread_mutex_init(&listener->lock, NULL);
    mpiox_listener_store_init(&listener->store, cache->header->geometry.cap_bytes / 128);
    const int code = prepare(listener, place, secret, address, error);
    if (code == MPIOX_OK)
        *out = listener;
    else
        release(listener);
    return code;
}

void mpiox_listener_stop(mpiox_listener *listener)
{
    if (listener == NULL)
        return;
    atomic_store(&listener->stopping, true);
    wake(listener);
    pthread_join(listener->thread, NULL);
    release(listener);
}
