/*
 * mpiox_listener.c - see mpiox_listener.h.
 *
 * The accepting thread polls the listening socket, the connections that have not said who they are yet (they have
 * ten seconds for it), and now and then the heartbeats: a thousand clients must not keep it busy. A connection for data
 * gets a thread when it is admitted; a connection of heartbeats stands for one for data, by its token, and takes it
 * along when it breaks: so the delegate finds out, too, that a client's host has vanished (keepalive, 15 s).
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
#include <time.h>
#include <unistd.h>

#include "mpiox_listener_address.h"
#include "mpiox_listener_serve.h"

enum { LOOK_MS = 100, STACK_BYTES = 512 * 1024, MAX_STRANGERS = 256 };

static const double hello_s = 10; /* to say hello in */
static const double hearts_s = 1; /* between two looks at the heartbeats */

typedef struct connection { /* of data, with a thread of its own */
    struct connection *next;
    struct mpiox_listener *listener;
    pthread_t thread;
    int64_t token;
    int fd; /* under the listener's lock: -1 when closed */
    bool done;
    mpiox_link_message hello;
} connection;

typedef struct peer { /* that the accepting thread talks to */
    int fd;
    bool is_heart;
    int64_t token;  /* of the connection that a heart stands for */
    double since;   /* accepted */
    int32_t filled; /* bytes of `bytes` */
    char bytes[sizeof(mpiox_link_message) + sizeof(mpiox_link_hello)];
} peer;

struct mpiox_listener {
    mpiox_cache cache;
    mpiox_listener_store store;
    mpiox_link_fault fault;
    uint64_t secret[2];
    int fd, wake; /* the listening socket; an eventfd */
    atomic_bool stopping;
    pthread_t thread;
    pthread_mutex_t lock; /* of what connection threads change: fd and done */
    connection *connections;
    int32_t peer_count, peer_room;
    peer *peers;
    struct pollfd *polled; /* [2 + peer_room] */
    double next_hearts;
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

static int welcome(int fd, const mpiox_link_message *hello, int result, int64_t token, int64_t page_bytes)
{
    const mpiox_link_message answer = {.magic = MPIOX_LINK_MAGIC,
                                       .version = MPIOX_LINK_VERSION,
                                       .op = MPIOX_LINK_HELLO,
                                       .number = hello->number,
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
    if (welcome(c->fd, &c->hello, result, c->token, cache->page_bytes) == MPIOX_OK && client >= 0)
        (void)mpiox_listener_serve(cache, &listener->store, c->fd, client, &listener->fault);
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
static void add_connection(mpiox_listener *listener, int fd, const mpiox_link_message *hello)
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
    c->hello = *hello;
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

/* ---- strangers and hearts ---------------------------------------------------------------------------------------- */

enum { KEEP = 0, DROP, HANDED_OVER };

/* A stranger has said hello. */
static int admit(mpiox_listener *listener, peer *p)
{
    mpiox_link_message head;
    mpiox_link_hello hello;
    memcpy(&head, p->bytes, sizeof head);
    memcpy(&hello, p->bytes + sizeof head, sizeof hello);
    if (mpiox_link_check_head(&head) != MPIOX_OK || head.op != MPIOX_LINK_HELLO ||
        !mpiox_link_same_secret(hello.secret, listener->secret) || !mpiox_cache_is_serving(&listener->cache, true))
        return DROP;
    p->filled = 0;
    if (hello.kind == MPIOX_LINK_DATA) {
        add_connection(listener, p->fd, &head);
        return HANDED_OVER;
    }
    if (hello.kind != MPIOX_LINK_HEART || !has_connection(listener, hello.token))
        return DROP;
    p->is_heart = true;
    p->token = hello.token;
    return welcome(p->fd, &head, MPIOX_OK, 0, 0) == MPIOX_OK ? KEEP : DROP;
}

/* Beats are not answered: that the other host's kernel acknowledges them is what the client wants to know. */
static int hear_beat(peer *p)
{
    mpiox_link_message beat;
    memcpy(&beat, p->bytes, sizeof beat);
    p->filled = 0;
    return mpiox_link_check_head(&beat) == MPIOX_OK && beat.op == MPIOX_LINK_BEAT ? KEEP : DROP;
}

/* Something has arrived. */
static int hear(mpiox_listener *listener, peer *p)
{
    for (;;) {
        const int32_t wanted = p->is_heart ? (int32_t)sizeof(mpiox_link_message) : (int32_t)sizeof p->bytes;
        const ssize_t bytes = recv(p->fd, p->bytes + p->filled, (size_t)(wanted - p->filled), MSG_DONTWAIT);
        if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return KEEP;
        if (bytes <= 0)
            return DROP;
        p->filled += (int32_t)bytes;
        if (p->filled == wanted) {
            const int what = p->is_heart ? hear_beat(p) : admit(listener, p);
            if (what != KEEP)
                return what;
        }
    }
}

static void remove_peer(mpiox_listener *listener, int32_t index, int what)
{
    peer *p = &listener->peers[index];
    if (what == DROP)
        close(p->fd);
    if (p->is_heart)
        cut(listener, p->token);
    *p = listener->peers[--listener->peer_count];
}

static bool make_room(mpiox_listener *listener)
{
    if (listener->peer_count < listener->peer_room)
        return true;
    const int32_t room = listener->peer_room < 16 ? 16 : 2 * listener->peer_room;
    peer *peers = realloc(listener->peers, (size_t)room * sizeof *peers);
    if (peers != NULL)
        listener->peers = peers;
    struct pollfd *polled = realloc(listener->polled, (size_t)(room + 2) * sizeof *polled);
    if (polled != NULL)
        listener->polled = polled;
    if (peers == NULL || polled == NULL)
        return false;
    listener->peer_room = room;
    return true;
}

static int count_strangers(const mpiox_listener *listener)
{
    int strangers = 0;
    for (int32_t i = 0; i < listener->peer_count; i++)
        strangers += !listener->peers[i].is_heart;
    return strangers;
}

static void accept_all(mpiox_listener *listener)
{
    for (int strangers = count_strangers(listener); strangers < MAX_STRANGERS && make_room(listener); strangers++) {
        const int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            const struct timespec nap = {0, 10 * 1000 * 1000};
            if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ECONNABORTED)
                nanosleep(&nap, NULL); /* no descriptors are left: whoever connects waits */
            return;
        }
        mpiox_link_stream_tune(fd);
        listener->peers[listener->peer_count++] = (peer){.fd = fd, .since = mpiox_now()};
    }
}

/* ---- the accepting thread ---------------------------------------------------------------------------------------- */

static void poll_once(mpiox_listener *listener)
{
    struct pollfd *polled = listener->polled;
    const int32_t count = listener->peer_count;
    polled[0] = (struct pollfd){.fd = listener->wake, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = listener->fd, .events = POLLIN};
    if (count_strangers(listener) >= MAX_STRANGERS)
        polled[1].fd = -1; /* until some have gone */
    const bool hearts = mpiox_now() >= listener->next_hearts;
    if (hearts)
        listener->next_hearts = mpiox_now() + hearts_s;
    for (int32_t i = 0; i < count; i++) {
        const peer *p = &listener->peers[i];
        polled[2 + i] = (struct pollfd){.fd = p->is_heart && !hearts ? -1 : p->fd, .events = POLLIN};
    }
    (void)poll(polled, (nfds_t)count + 2, LOOK_MS);
    if (polled[0].revents != 0) {
        uint64_t ignored;
        (void)!read(listener->wake, &ignored, sizeof ignored);
    }
    const double now = mpiox_now();
    const bool serving = mpiox_cache_is_serving(&listener->cache, true);
    for (int32_t i = count; i-- > 0;) { /* from the end: the last one takes the place of one that goes */
        peer *p = &listener->peers[i];
        int what = polled[2 + i].revents != 0 ? hear(listener, p) : KEEP;
        if (what == KEEP && (!serving || (!p->is_heart && now > p->since + hello_s)))
            what = DROP;
        if (what != KEEP)
            remove_peer(listener, i, what);
    }
    if (polled[1].revents != 0)
        accept_all(listener);
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
    while (listener->peer_count > 0)
        remove_peer(listener, listener->peer_count - 1, DROP);
    cut(listener, 0);
    reap(listener, true);
    return NULL;
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

static void release(mpiox_listener *listener)
{
    if (listener->fd >= 0)
        close(listener->fd);
    if (listener->wake >= 0)
        close(listener->wake);
    mpiox_listener_store_free(&listener->store);
    pthread_mutex_destroy(&listener->lock);
    free(listener->peers);
    free(listener->polled);
    free(listener);
}

static int prepare(mpiox_listener *listener, bool loopback, mpiox_link_address *address, mpiox_error *error)
{
    int code = mpiox_link_fault_read(&listener->fault, error);
    if (code == MPIOX_OK)
        code = mpiox_listener_bind(loopback, &listener->fd, address, error);
    if (code != MPIOX_OK)
        return code;
    listener->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (listener->wake < 0 || getrandom(address->secret, sizeof address->secret, 0) != (ssize_t)sizeof address->secret)
        return mpiox_error_set(error, MPIOX_E_IO, errno, -1, -1, "eventfd or getrandom");
    memcpy(listener->secret, address->secret, sizeof listener->secret);
    if (!make_room(listener) || start_thread(&listener->thread, accept_connections, listener) != 0)
        return mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "starting a listener");
    return MPIOX_OK;
}

int mpiox_listener_start(const mpiox_cache *cache, bool loopback, mpiox_listener **out, mpiox_link_address *address,
                         mpiox_error *error)
{
    mpiox_listener *listener = calloc(1, sizeof *listener);
    *out = NULL;
    if (listener == NULL)
        return mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "starting a listener");
    listener->cache = *cache;
    listener->fd = listener->wake = -1;
    pthread_mutex_init(&listener->lock, NULL);
    mpiox_listener_store_init(&listener->store, cache->header->geometry.cap_bytes / 128);
    const int code = prepare(listener, loopback, address, error);
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
