/* mpiox_admission.c - see mpiox_admission.h. */
#include "mpiox_admission.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "monocypher.h"
#include "mpiox_link_stream.h"
#include "mpiox_wait.h"

enum { MOST = 256, LEAST = 8, SHARE = 16, BATCH = 32, LISTENER = -1 };

static const double handshake_s = 10; /* from the first byte to the last */
static const double grace_s = 0.25;   /* so young an unauthenticated peer is not sent away for another one */
static const double pause_s = 0.1;    /* when no descriptor is left */

typedef struct stranger {
    int fd; /* -1: a free place */
    bool challenged;
    double since;   /* accepted */
    int32_t filled; /* of `bytes` */
    uint8_t bytes[MPIOX_HANDSHAKE_ANSWER];
    mpiox_handshake handshake;
} stranger;

struct mpiox_admission {
    int listener, epoll, reserve; /* reserve: a descriptor that is kept; -1: in use */
    mpiox_handshake_protocol protocol;
    uint64_t secret[2];
    bool listening;     /* the listening socket is in the set */
    double paused;      /* until then */
    int32_t room, held; /* places for unauthenticated peers, and how many are taken */
    stranger *strangers;
    mpiox_admission_counts counts;
};

_Static_assert((int)MPIOX_HANDSHAKE_HELLO <= (int)MPIOX_HANDSHAKE_ANSWER, "either message fits");

/* ---- unauthenticated peers --------------------------------------------------------------------------------------- */

/* Returns its socket, which stays open. */
static int release(mpiox_admission *a, stranger *s)
{
    const int fd = s->fd;
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, fd, NULL); /* a child of the program may have it open, too */
    crypto_wipe(s, sizeof *s);
    s->fd = -1;
    a->held--;
    return fd;
}

static void drop(mpiox_admission *a, stranger *s, int64_t *counter)
{
    close(release(a, s));
    ++*counter;
}

static stranger *oldest(const mpiox_admission *a)
{
    stranger *found = NULL;
    for (int32_t i = 0; i < a->room; i++) {
        stranger *s = &a->strangers[i];
        if (s->fd >= 0 && (found == NULL || s->since < found->since))
            found = s;
    }
    return found;
}

static int challenge(mpiox_admission *a, stranger *s)
{
    struct sockaddr_storage end;
    socklen_t bytes = sizeof end;
    uint8_t out[MPIOX_HANDSHAKE_CHALLENGE];
    if (getsockname(s->fd, (struct sockaddr *)&end, &bytes) != 0 ||
        mpiox_handshake_start(a->secret, a->protocol, &end, &s->handshake) != MPIOX_OK ||
        mpiox_handshake_challenge(&s->handshake, s->bytes, out) != MPIOX_OK ||
        send(s->fd, out, sizeof out, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof out)
        return MPIOX_E_CORRUPT;
    s->challenged = true;
    s->filled = 0;
    return MPIOX_OK;
}

/* What has arrived of an unauthenticated peer. True: it is one of ours and in *out; false: not yet, or it has been
 * dropped. */
static bool hear(mpiox_admission *a, stranger *s, mpiox_admitted *out)
{
    for (;;) {
        const int32_t wanted = s->challenged ? MPIOX_HANDSHAKE_ANSWER : MPIOX_HANDSHAKE_HELLO;
        const ssize_t got = recv(s->fd, s->bytes + s->filled, (size_t)(wanted - s->filled), MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return false;
        s->filled += got > 0 ? (int32_t)got : 0;
        if (got > 0 && s->filled < wanted)
            continue;
        if (got > 0 && !s->challenged && challenge(a, s) == MPIOX_OK)
            continue;
        if (got > 0 && s->challenged && s->filled == wanted &&
            mpiox_handshake_admit(&s->handshake, s->bytes, &out->wish) == MPIOX_OK)
            break;
        drop(a, s, &a->counts.refused);
        return false;
    }
    mpiox_handshake_session(&s->handshake, out->session);
    out->fd = release(a, s);
    a->counts.admitted++;
    return true;
}

/* ---- accepting --------------------------------------------------------------------------------------------------- */

static void open_reserve(mpiox_admission *a)
{
    if (a->reserve < 0)
        a->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* In the set or not, as there is a place for another unauthenticated peer. */
static void listen_or_not(mpiox_admission *a, double now)
{
    const stranger *s = a->held == a->room ? oldest(a) : NULL;
    const bool wanted = now >= a->paused && (s == NULL || now >= s->since + grace_s);
    struct epoll_event event = {.events = wanted ? EPOLLIN : 0, .data.fd = LISTENER};
    if (wanted == a->listening || epoll_ctl(a->epoll, EPOLL_CTL_MOD, a->listener, &event) != 0)
        return;
    a->listening = wanted;
    a->counts.pauses += !wanted;
}

/* No descriptor is left. True: there is one again. */
static bool find_descriptor(mpiox_admission *a, double now)
{
    stranger *s = oldest(a);
    if (s != NULL && now >= s->since + grace_s) {
        drop(a, s, &a->counts.replaced);
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
static void add(mpiox_admission *a, int fd, double now)
{
    int32_t place = 0;
    while (place < a->room && a->strangers[place].fd >= 0)
        place++;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = place};
    if (place == a->room || epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        close(fd);
        return;
    }
    mpiox_link_stream_tune(fd);
    a->strangers[place] = (stranger){.fd = fd, .since = now};
    a->held++;
}

static void accept_some(mpiox_admission *a)
{
    const double now = mpiox_now();
    for (int i = 0; i < BATCH; i++) {
        stranger *s = a->held == a->room ? oldest(a) : NULL;
        if (s != NULL && now < s->since + grace_s)
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
                a->paused = now + pause_s; /* what comes back at once must not be tried at once */
            return;
        }
        if (s != NULL)
            drop(a, s, &a->counts.replaced);
        add(a, fd, now);
    }
}

/* ---- the set ----------------------------------------------------------------------------------------------------- */

static void end_late(mpiox_admission *a, double now)
{
    for (int32_t i = 0; a->held > 0 && i < a->room; i++) {
        stranger *s = &a->strangers[i];
        if (s->fd >= 0 && now > s->since + handshake_s)
            drop(a, s, &a->counts.late);
    }
}

bool mpiox_admission_next(mpiox_admission *admission, mpiox_admitted *out)
{
    struct epoll_event events[BATCH];
    const double now = mpiox_now();
    bool knocks = false;
    end_late(admission, now);
    if (now >= admission->paused)
        open_reserve(admission);
    listen_or_not(admission, now);
    const int count = epoll_wait(admission->epoll, events, BATCH, 0);
    for (int i = 0; i < count; i++) {
        if (events[i].data.fd == LISTENER)
            knocks = true;
        else if (admission->strangers[events[i].data.fd].fd >= 0 &&
                 hear(admission, &admission->strangers[events[i].data.fd], out))
            return true; /* what else there is stays in the set */
    }
    if (knocks)
        accept_some(admission);
    listen_or_not(admission, now);
    return false;
}

int mpiox_admission_fd(const mpiox_admission *admission)
{
    return admission->epoll;
}

mpiox_admission_counts mpiox_admission_count(const mpiox_admission *admission)
{
    return admission->counts;
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

int mpiox_admission_create(int listener, mpiox_handshake_protocol protocol, const uint64_t secret[2],
                           mpiox_admission **out, mpiox_error *error)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = LISTENER};
    mpiox_admission *a = calloc(1, sizeof *a);
    *out = NULL;
    if (a == NULL)
        return mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "starting a listener");
    *a = (mpiox_admission){.listener = listener, .reserve = -1, .protocol = protocol, .listening = true};
    memcpy(a->secret, secret, sizeof a->secret);
    a->room = room_of();
    a->strangers = calloc((size_t)a->room, sizeof *a->strangers);
    for (int32_t i = 0; a->strangers != NULL && i < a->room; i++)
        a->strangers[i].fd = -1;
    a->epoll = epoll_create1(EPOLL_CLOEXEC);
    open_reserve(a);
    if (a->strangers == NULL || a->epoll < 0 || epoll_ctl(a->epoll, EPOLL_CTL_ADD, listener, &event) != 0) {
        const int code = errno;
        mpiox_admission_free(a);
        return mpiox_error_set(error, MPIOX_E_IO, code, -1, -1, "starting a listener");
    }
    *out = a;
    return MPIOX_OK;
}

void mpiox_admission_free(mpiox_admission *admission)
{
    if (admission == NULL)
        return;
    for (int32_t i = 0; admission->strangers != NULL && i < admission->room; i++) {
        if (admission->strangers[i].fd >= 0)
            drop(admission, &admission->strangers[i], &admission->counts.refused);
    }
    if (admission->reserve >= 0)
        close(admission->reserve);
    if (admission->epoll >= 0)
        close(admission->epoll);
    free(admission->strangers);
    crypto_wipe(admission, sizeof *admission);
    free(admission);
}
