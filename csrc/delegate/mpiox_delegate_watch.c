/* mpiox_delegate_watch.c - see mpiox_delegate_watch.h. */
#include "mpiox_delegate_watch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpiox_delegate_socket.h"
#include "mpiox_link_stream.h"
#include "mpiox_listener_address.h"
#include "mpiox_wait.h"

enum { PEERS = 1 << 16, SECRET_BYTES = 16 };

static const double try_s = 5;     /* for an answer, where machines are busy */
static const double unheard_s = 5; /* a host that acknowledges nothing for so long is gone */
static const char hello = 'H', question = 'Q', all_there = 'A', not_all = 'N';

struct mpiox_watch_peer {
    int fd, got; /* bytes of the secret that have come */
    char secret[SECRET_BYTES];
    bool asks;
};

/* ---- beside the delegate ----------------------------------------------------------------------------------------- */

int mpiox_watch_open(bool loopback, const uint64_t *secret, mpiox_watch *watch, mpiox_link_address *address,
                     mpiox_error *error)
{
    *watch = (mpiox_watch){.listener = -1};
    memcpy(watch->secret, secret, sizeof watch->secret);
    memset(address, 0, sizeof *address);
    const int code = mpiox_listener_bind(loopback, &watch->listener, address, error);
    memcpy(address->secret, secret, sizeof address->secret);
    return code;
}

static void say(mpiox_watch_peer *peer, char word)
{
    if (send(peer->fd, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        shutdown(peer->fd, SHUT_RDWR); /* it is dropped when its end is read */
}

static void admit(mpiox_watch *watch)
{
    const int fd = accept4(watch->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0 && watch->count == watch->room && watch->count < PEERS) {
        mpiox_watch_peer *more = realloc(watch->peers, sizeof *more * (size_t)(watch->room + 64));

        watch->peers = more != NULL ? more : watch->peers;
        watch->room += more != NULL ? 64 : 0;
    }
    if (fd >= 0 && watch->count < watch->room) {
        mpiox_link_stream_tune(fd);
        watch->peers[watch->count++] = (mpiox_watch_peer){.fd = fd};
    } else if (fd >= 0) {
        close(fd);
    }
}

/* False: the peer is gone, or none of ours. */
static bool hear(mpiox_watch *watch, mpiox_watch_peer *peer)
{
    char word = 0;
    ssize_t got;

    if (peer->got < SECRET_BYTES) {
        got = read(peer->fd, peer->secret + peer->got, (size_t)(SECRET_BYTES - peer->got));
        peer->got += got > 0 ? (int)got : 0;
        if (got > 0 && peer->got == SECRET_BYTES && memcmp(peer->secret, watch->secret, SECRET_BYTES) != 0)
            return false;
        if (got > 0 && peer->got == SECRET_BYTES)
            say(peer, hello);
    } else {
        got = read(peer->fd, &word, 1);
        peer->asks |= got == 1 && word == question;
        watch->asked |= peer->asks;
        if (peer->asks && watch->answered)
            say(peer, watch->whole ? all_there : not_all);
    }
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static void hear_all(mpiox_watch *watch, const struct pollfd *polls)
{
    int32_t kept = 0;

    for (int32_t i = 0; i < watch->count; i++) {
        if (polls[i].revents == 0 || hear(watch, &watch->peers[i]))
            watch->peers[kept++] = watch->peers[i];
        else
            close(watch->peers[i].fd);
    }
    watch->count = kept;
}

void mpiox_watch_step(mpiox_watch *watch, int also, int milliseconds)
{
    const int32_t count = watch->count;
    struct pollfd *polls = calloc((size_t)count + 2, sizeof *polls), few = {.fd = also, .events = POLLIN};

    if (polls == NULL) {
        poll(&few, 1, milliseconds);
        return;
    }
    for (int32_t i = 0; i < count; i++)
        polls[i] = (struct pollfd){.fd = watch->peers[i].fd, .events = POLLIN};
    polls[count] = (struct pollfd){.fd = watch->listener, .events = POLLIN};
    polls[count + 1] = few;
    if (poll(polls, (nfds_t)count + 2, milliseconds) > 0) { /* descriptors of -1 are passed over */
        hear_all(watch, polls);
        if (polls[count].revents != 0)
            admit(watch);
    }
    free(polls);
}

void mpiox_watch_answer(mpiox_watch *watch, bool whole)
{
    if (watch->answered)
        return;
    watch->answered = true;
    watch->whole = whole;
    for (int32_t i = 0; i < watch->count; i++) {
        if (watch->peers[i].asks)
            say(&watch->peers[i], whole ? all_there : not_all);
    }
}

void mpiox_watch_close(mpiox_watch *watch)
{
    for (int32_t i = 0; i < watch->count; i++)
        close(watch->peers[i].fd);
    free(watch->peers);
    if (watch->listener >= 0)
        close(watch->listener);
    *watch = (mpiox_watch){.listener = -1};
}

/* ---- clients on other nodes -------------------------------------------------------------------------------------- */

static bool is_admitted(int fd, const uint64_t *secret, double seconds)
{
    char word = 0;

    return mpiox_delegate_send(fd, secret, SECRET_BYTES) && mpiox_delegate_receive(fd, &word, 1, seconds) &&
           word == hello;
}

int mpiox_watch_connect(const mpiox_link_address *address, double seconds, int *fd, mpiox_error *error)
{
    const double until = mpiox_now() + seconds;
    int next = 0;

    while ((*fd = mpiox_delegate_connect(address, &next, until)) >= 0) {
        if (is_admitted(*fd, address->secret, until - mpiox_now() < try_s ? until - mpiox_now() : try_s)) {
            mpiox_link_stream_tune(*fd);
            mpiox_link_stream_limit(*fd, unheard_s);
            return MPIOX_OK;
        }
        close(*fd);
    }
    return mpiox_error_set(error, MPIOX_E_IO, ETIMEDOUT, -1, -1, "connecting to the watch of a delegate");
}

bool mpiox_watch_ask(int fd)
{
    char word = 0;

    if (fd < 0 || !mpiox_delegate_send(fd, &question, 1))
        return false;
    for (;;) { /* however long the pages take, as long as the host is there */
        ssize_t got;

        if (!mpiox_delegate_await(fd, 1))
            continue;
        got = read(fd, &word, 1);
        if (got == 1 && (word == all_there || word == not_all))
            return word == all_there;
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return false;
    }
}
