/* mpiox_process_peers.c - see mpiox_process_peers.h. */
#include "mpiox_process_peers.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LOOK_MS = 200, PORT_MOST = 65535 };

static const double connect_s = 5, silent_s = 3;

enum state { UNKNOWN = 0, NAMED, WATCHED, GONE };

typedef struct peer {
    enum state state;
    mpiox_rendezvous_address address; /* NAMED */
    int fd;                           /* WATCHED; the thread's */
    double gone_at;                   /* GONE */
} peer;

struct mpiox_process_peers {
    pthread_mutex_t lock; /* protects all but the descriptors */
    pthread_t thread;
    bool has_thread, stop;
    int32_t count;
    peer peers[];
};

mpiox_process_peers *mpiox_process_peers_new(int32_t delegates)
{
    mpiox_process_peers *peers = calloc(1, sizeof *peers + (size_t)delegates * sizeof peers->peers[0]);
    if (peers == NULL)
        return NULL;
    peers->count = delegates;
    pthread_mutex_init(&peers->lock, NULL);
    return peers;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static enum state state_of(mpiox_process_peers *peers, int32_t i)
{
    pthread_mutex_lock(&peers->lock);
    const enum state state = peers->peers[i].state;
    pthread_mutex_unlock(&peers->lock);
    return state;
}

static void set_state(mpiox_process_peers *peers, int32_t i, enum state state)
{
    pthread_mutex_lock(&peers->lock);
    peers->peers[i].state = state;
    peers->peers[i].gone_at = mpiox_now();
    pthread_mutex_unlock(&peers->lock);
}

static void connect_to(mpiox_process_peers *peers, int32_t i)
{
    peer *one = &peers->peers[i];
    char word = 0;
    mpiox_error ignored;
    mpiox_rendezvous_wish wish = {.purpose = MPIOX_PURPOSE_LIVENESS, .welcome = &word, .welcome_bytes = 1};
    one->fd = mpiox_rendezvous_connect(&one->address, connect_s, &wish, &ignored);
    if (one->fd >= 0)
        mpiox_rendezvous_limit(one->fd, silent_s);
    set_state(peers, i, one->fd >= 0 ? WATCHED : GONE);
}

/* Nothing comes, but the end of the connection. */
static void receive(mpiox_process_peers *peers, int32_t i)
{
    peer *one = &peers->peers[i];
    char word;
    const ssize_t got = recv(one->fd, &word, 1, MSG_DONTWAIT);
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    close(one->fd);
    set_state(peers, i, GONE);
}

static void *watch(void *context)
{
    mpiox_process_peers *peers = context;
    struct pollfd *polls = calloc((size_t)peers->count, sizeof *polls);
    bool stop = false;
    while (!stop) {
        for (int32_t i = 0; i < peers->count; i++) {
            if (state_of(peers, i) == NAMED)
                connect_to(peers, i);
            if (polls != NULL)
                polls[i] = (struct pollfd){.fd = state_of(peers, i) == WATCHED ? peers->peers[i].fd : -1,
                                           .events = POLLIN};
        }
        poll(polls, polls != NULL ? (nfds_t)peers->count : 0, LOOK_MS);
        for (int32_t i = 0; i < peers->count; i++) {
            if (state_of(peers, i) == WATCHED)
                receive(peers, i);
        }
        pthread_mutex_lock(&peers->lock);
        stop = peers->stop;
        pthread_mutex_unlock(&peers->lock);
    }
    for (int32_t i = 0; i < peers->count; i++) {
        if (state_of(peers, i) == WATCHED)
            close(peers->peers[i].fd);
    }
    free(polls);
    return NULL;
}

/* With the lock; all signals blocked: they are the program's. */
static bool start(mpiox_process_peers *peers)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    peers->has_thread = peers->has_thread || pthread_create(&peers->thread, NULL, watch, peers) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return peers->has_thread;
}

/* ---- others ------------------------------------------------------------------------------------------------------ */

static bool read_address(const mpiox_slot *slot, mpiox_rendezvous_address *out)
{
    char text[MPIOX_SLOT_TEXT], *rest = text;
    const int64_t port = slot->question.peer.port, *secret = slot->question.peer.secret;
    *out = (mpiox_rendezvous_address){.port = (int32_t)port, .secret = {(uint64_t)secret[0], (uint64_t)secret[1]}};
    memcpy(text, slot->text, sizeof text);
    text[sizeof text - 1] = '\0';
    for (char *host = strtok_r(rest, " ", &rest); host != NULL && out->count < MPIOX_RENDEZVOUS_ADDRESSES;
         host = strtok_r(NULL, " ", &rest)) {
        if (strlen(host) >= sizeof out->host[0])
            return false;
        strcpy(out->host[out->count++], host);
    }
    return out->count > 0 && port > 0 && port <= PORT_MOST;
}

int mpiox_process_peers_name(void *context, const mpiox_slot *slot)
{
    mpiox_process_peers *peers = context;
    mpiox_rendezvous_address address;
    int code = MPIOX_OK;
    if (peers == NULL)
        return MPIOX_E_NOMEM;
    if (slot->question.peer.delegate < 0 || slot->question.peer.delegate >= peers->count ||
        !read_address(slot, &address))
        return MPIOX_E_ARG;
    pthread_mutex_lock(&peers->lock);
    if (peers->peers[slot->question.peer.delegate].state == UNKNOWN && start(peers)) {
        peers->peers[slot->question.peer.delegate].address = address;
        peers->peers[slot->question.peer.delegate].state = NAMED;
    }
    if (peers->peers[slot->question.peer.delegate].state == UNKNOWN)
        code = MPIOX_E_NOMEM;
    pthread_mutex_unlock(&peers->lock);
    return code;
}

double mpiox_process_peers_gone_s(void *context, int32_t delegate)
{
    mpiox_process_peers *peers = context;
    double gone_s = 0;
    if (peers == NULL || delegate < 0 || delegate >= peers->count)
        return 0;
    pthread_mutex_lock(&peers->lock);
    if (peers->peers[delegate].state == GONE)
        gone_s = mpiox_now() - peers->peers[delegate].gone_at;
    pthread_mutex_unlock(&peers->lock);
    return gone_s;
}

void mpiox_process_peers_free(mpiox_process_peers *peers)
{
    if (peers == NULL)
        return;
    pthread_mutex_lock(&peers->lock);
    peers->stop = true;
    pthread_mutex_unlock(&peers->lock);
    if (peers->has_thread)
        pthread_join(peers->thread, NULL);
    pthread_mutex_destroy(&peers->lock);
    free(peers);
}
