/* mpiox_rendezvous_listen.c - see mpiox_rendezvous.h. */
#include "mpiox_rendezvous.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "monocypher.h"
#include "mpiox_wait.h"

enum { MOST = 256, LEAST = 8, SHARE = 16, BATCH = 32, LISTENER = -1 };

static const double handshake_s = 10; /* from accepting to the last byte */
static const double grace_s = 0.25;   /* so young a peer is not sent away for another one */
static const double pause_s = 0.1;    /* when no descriptor is left */

typedef struct peer { /* not admitted yet */
    int fd;           /* -1: a free place */
    bool challenged;
    double since;   /* accepted */
    int32_t filled; /* of `bytes` */
    uint8_t bytes[MPIOX_HANDSHAKE_ANSWER];
    mpiox_handshake handshake;
} peer;

struct mpiox_rendezvous {
    int listener, epoll, reserve; /* reserve: a descriptor that is kept; -1: in use */
    uint16_t purposes;
    uint64_t secret[2];
    bool listening;     /* the listening socket is in the set */
    double paused;      /* until then */
    int32_t room, held; /* places for peers, and how many are taken */
    peer *peers;
    mpiox_rendezvous_counts counts;
};

_Static_assert((int)MPIOX_HANDSHAKE_HELLO <= (int)MPIOX_HANDSHAKE_ANSWER, "either message fits");

/* ---- peers --------------------------------------------------------------------------------------- */

/* Returns its socket, which stays open. */
static int release(mpiox_rendezvous *a, peer *p)
{
    const int fd = p->fd;
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, fd, NULL); /* a child of the program may have it open, too */
    crypto_wipe(p, sizeof *p);
    p->fd = -1;
    a->held--;
    return fd;
}

static void drop(mpiox_rendezvous *a, peer *p, int64_t *counter)
{
    close(release(a, p));
    ++*counter;
}

static peer *oldest(const mpiox_rendezvous *a)
{
    peer *found = NULL;
    for (int32_t i = 0; i < a->room; i++) {
        peer *p = &a->peers[i];
        if (p->fd >= 0 && (found == NULL || p->since < found->since))
            found = p;
    }
    return found;
}

static int challenge(mpiox_rendezvous *a, peer *p)
{
    struct sockaddr_storage end;
    socklen_t bytes = sizeof end;
    uint8_t out[MPIOX_HANDSHAKE_CHALLENGE];
    if (getsockname(p->fd, (struct sockaddr *)&end, &bytes) != 0 ||
        mpiox_handshake_start(a->secret, 0, &end, &p->handshake) != MPIOX_OK ||
        mpiox_handshake_challenge(&p->handshake, a->purposes, p->bytes, out) != MPIOX_OK ||
        send(p->fd, out, sizeof out, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof out)
        return MPIOX_E_CORRUPT;
    p->challenged = true;
    p->filled = 0;
    return MPIOX_OK;
}

/* Process a peer's bytes. True: it is admitted and in *out; false: not yet, or it was dropped. */
static bool receive(mpiox_rendezvous *a, peer *p, mpiox_rendezvous_peer *out)
{
    for (;;) {
        const int32_t wanted = p->challenged ? MPIOX_HANDSHAKE_ANSWER : MPIOX_HANDSHAKE_HELLO;
        const ssize_t got = recv(p->fd, p->bytes + p->filled, (size_t)(wanted - p->filled), MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return false;
        p->filled += got > 0 ? (int32_t)got : 0;
        if (got > 0 && p->filled < wanted)
            continue;
        if (got > 0 && !p->challenged && challenge(a, p) == MPIOX_OK)
            continue;
        if (got > 0 && p->challenged && p->filled == wanted &&
            mpiox_handshake_admit(&p->handshake, p->bytes, &out->token) == MPIOX_OK &&
            mpiox_rendezvous_set_blocking(p->fd))
            break;
        drop(a, p, &a->counts.refused);
        return false;
    }
    out->purpose = p->handshake.purpose;
    mpiox_handshake_session(&p->handshake, out->session);
    out->fd = release(a, p);
    a->counts.admitted++;
    return true;
}

/* ---- accepting --------------------------------------------------------------------------------------------------- */

static void open_reserve(mpiox_rendezvous *a)
{
    if (a->reserve < 0)
        a->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* In the set or not, as there is a place for another peer. */
static void listen_or_not(mpiox_rendezvous *a, double now)
{
    const peer *p = a->held == a->room ? oldest(a) : NULL;
    const bool wanted = now >= a->paused && (p == NULL || now >= p->since + grace_s);
    struct epoll_event event = {.events = wanted ? EPOLLIN : 0, .data.fd = LISTENER};
    if (wanted == a->listening || epoll_ctl(a->epoll, EPOLL_CTL_MOD, a->listener, &event) != 0)
        return;
    a->listening = wanted;
    a->counts.pauses += !wanted;
}

/* No descriptor is left. True: there is one again. */
static bool find_descriptor(mpiox_rendezvous *a, double now)
{
    peer *p = oldest(a);
    if (p != NULL && now >= p->since + grace_s) {
        drop(a, p, &a->counts.replaced);
        return true;
    }
    if (a->reserve >= 0) {
        close(a->reserve);
        a->reserve = -1;
        return true;
    }
    a->paused = now + pause_s;
    return false;
}

static bool is_exhaustion(int code)
{
    return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

/* Takes over the socket. */
static void add(mpiox_rendezvous *a, int fd, double now)
{
    int32_t place = 0;
    while (place < a->room && a->peers[place].fd >= 0)
        place++;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = place};
    if (place == a->room || epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        close(fd);
        return;
    }
    mpiox_rendezvous_tune(fd);
    a->peers[place] = (peer){.fd = fd, .since = now};
    a->held++;
}

static void accept_some(mpiox_rendezvous *a)
{
    const double now = mpiox_now();
    for (int i = 0; i < BATCH; i++) {
        peer *p = a->held == a->room ? oldest(a) : NULL;
        if (p != NULL && now < p->since + grace_s)
            return;
        const int fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        const int code = errno;
        a->counts.accepts++;
        if (fd < 0 && is_exhaustion(code) && find_descriptor(a, now))
            continue;
        if (fd < 0 && (code == ECONNABORTED || code == EINTR))
            continue;
        if (fd < 0) {
            if (code != EAGAIN && code != EWOULDBLOCK && a->paused < now)
                a->paused = now + pause_s; /* an error that returns at once must not be retried at once */
            return;
        }
        if (p != NULL)
            drop(a, p, &a->counts.replaced);
        add(a, fd, now);
    }
}

/* ---- the set ----------------------------------------------------------------------------------------------------- */

static void end_late(mpiox_rendezvous *a, double now)
{
    for (int32_t i = 0; a->held > 0 && i < a->room; i++) {
        peer *p = &a->peers[i];
        if (p->fd >= 0 && now > p->since + handshake_s)
            drop(a, p, &a->counts.late);
    }
}

bool mpiox_rendezvous_next(mpiox_rendezvous *a, mpiox_rendezvous_peer *out)
{
    struct epoll_event events[BATCH];
    const double now = mpiox_now();
    bool knocks = false;
    if (a == NULL)
        return false;
    end_late(a, now);
    if (now >= a->paused)
        open_reserve(a);
    listen_or_not(a, now);
    const int count = epoll_wait(a->epoll, events, BATCH, 0);
    for (int i = 0; i < count; i++) {
        if (events[i].data.fd == LISTENER)
            knocks = true;
        else if (a->peers[events[i].data.fd].fd >= 0 && receive(a, &a->peers[events[i].data.fd], out))
            return true; /* other events stay in the set */
    }
    if (knocks)
        accept_some(a);
    listen_or_not(a, now);
    return false;
}

int mpiox_rendezvous_fd(const mpiox_rendezvous *a)
{
    return a != NULL ? a->epoll : -1;
}

mpiox_rendezvous_counts mpiox_rendezvous_count(const mpiox_rendezvous *a)
{
    return a->counts;
}

/* ---- making it --------------------------------------------------------------------------------------------------- */

static int32_t room_of(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / SHARE > MOST)
        return MOST;
    const int32_t share = (int32_t)(limit.rlim_cur / SHARE);
    return share < LEAST ? LEAST : share;
}

static int prepare(mpiox_rendezvous *a)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = LISTENER};
    a->room = room_of();
    a->peers = calloc((size_t)a->room, sizeof *a->peers);
    for (int32_t i = 0; a->peers != NULL && i < a->room; i++)
        a->peers[i].fd = -1;
    a->epoll = epoll_create1(EPOLL_CLOEXEC);
    open_reserve(a);
    return a->peers != NULL && a->epoll >= 0 && epoll_ctl(a->epoll, EPOLL_CTL_ADD, a->listener, &event) == 0
               ? MPIOX_OK
               : MPIOX_E_IO;
}

int mpiox_rendezvous_open(const mpiox_rendezvous_place *place, uint16_t purposes, const uint64_t secret[2],
                          mpiox_rendezvous **out, mpiox_rendezvous_address *address, mpiox_error *error)
{
    mpiox_rendezvous *a = calloc(1, sizeof *a);
    *out = NULL;
    if (a == NULL)
        return mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "starting a listener");
    *a = (mpiox_rendezvous){.listener = -1, .epoll = -1, .reserve = -1, .purposes = purposes, .listening = true};
    memcpy(a->secret, secret, sizeof a->secret);
    int code = mpiox_rendezvous_bind(place, &a->listener, address, error);
    if (code == MPIOX_OK && prepare(a) != MPIOX_OK)
        code = mpiox_error_set(error, MPIOX_E_IO, errno, -1, -1, "starting a listener");
    memcpy(address->secret, secret, sizeof address->secret);
    if (code == MPIOX_OK)
        *out = a;
    else
        mpiox_rendezvous_close(a);
    return code;
}

void mpiox_rendezvous_close(mpiox_rendezvous *rendezvous)
{
    if (rendezvous == NULL)
        return;
    for (int32_t i = 0; rendezvous->peers != NULL && i < rendezvous->room; i++) {
        if (rendezvous->peers[i].fd >= 0)
            drop(rendezvous, &rendezvous->peers[i], &rendezvous->counts.refused);
    }
    const int open[] = {rendezvous->listener, rendezvous->reserve, rendezvous->epoll};
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
        if (open[i] >= 0)
            close(open[i]);
    }
    free(rendezvous->peers);
    crypto_wipe(rendezvous, sizeof *rendezvous);
    free(rendezvous);
}
