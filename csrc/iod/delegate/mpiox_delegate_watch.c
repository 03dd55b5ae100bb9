/* mpiox_delegate_watch.c - see mpiox_delegate_watch.h. */
#include "mpiox_delegate_watch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpiox_delegate_socket.h"
#include "mpiox_link_connect.h"
#include "mpiox_link_stream.h"

enum { PEERS = 1 << 16, OTHERS = 2 /* descriptors that are polled beside the peers */ };

static const double unheard_s = 5; /* a host that acknowledges nothing for so long is gone */
static const char hello = 'H', question = 'Q', all_there = 'A', not_all = 'N';

struct mpiox_watch_peer {
    int fd;
    bool asks;
};

/* ---- beside the delegate ----------------------------------------------------------------------------------------- */

int mpiox_watch_open(const mpiox_listener_place *place, const uint64_t *secret, mpiox_watch *watch,
                     mpiox_link_address *address, mpiox_error *error)
{
    *watch = (mpiox_watch){.listener = -1};
    memset(address, 0, sizeof *address);
    int code = mpiox_listener_bind(place, &watch->listener, address, error);
    if (code == MPIOX_OK)
        code = mpiox_admission_create(watch->listener, MPIOX_HANDSHAKE_WATCH, secret, &watch->admission, error);
    memcpy(address->secret, secret, sizeof address->secret);
    if (code != MPIOX_OK)
        mpiox_watch_close(watch);
    return code;
}

static void say(mpiox_watch_peer *peer, char word)
{
    if (send(peer->fd, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        shutdown(peer->fd, SHUT_RDWR); /* it is dropped when its end is read */
}

static void admit(mpiox_watch *watch, int fd)
{
    if (watch->count == watch->room && watch->count < PEERS) {
        mpiox_watch_peer *more = realloc(watch->peers, sizeof *more * (size_t)(watch->room + 64));

        watch->peers = more != NULL ? more : watch->peers;
        watch->room += more != NULL ? 64 : 0;
    }
    if (watch->count == watch->room) {
        close(fd);
        return;
    }
    watch->peers[watch->count++] = (mpiox_watch_peer){.fd = fd};
    say(&watch->peers[watch->count - 1], hello);
}

/* False: the peer is gone. */
static bool hear(mpiox_watch *watch, mpiox_watch_peer *peer)
{
    char word = 0;
    const ssize_t got = read(peer->fd, &word, 1);

    peer->asks |= got == 1 && word == question;
    watch->asked |= peer->asks;
    if (got == 1 && peer->asks && watch->answered)
        say(peer, watch->whole ? all_there : not_all);
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
    struct pollfd *polls = calloc((size_t)count + OTHERS, sizeof *polls), few = {.fd = also, .events = POLLIN};
    mpiox_admitted one;

    if (polls == NULL) {
        poll(&few, 1, milliseconds);
        return;
    }
    for (int32_t i = 0; i < count; i++)
        polls[i] = (struct pollfd){.fd = watch->peers[i].fd, .events = POLLIN};
    polls[count] = (struct pollfd){.fd = -1, .events = POLLIN};
    if (watch->admission != NULL)
        polls[count].fd = mpiox_admission_fd(watch->admission);
    polls[count + 1] = few;
    if (poll(polls, (nfds_t)(count + OTHERS), milliseconds) > 0) /* descriptors of -1 are passed over */
        hear_all(watch, polls);
    while (watch->admission != NULL && mpiox_admission_next(watch->admission, &one))
        admit(watch, one.fd);
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
    mpiox_admission_free(watch->admission);
    if (watch->listener >= 0)
        close(watch->listener);
    *watch = (mpiox_watch){.listener = -1};
}

/* ---- clients on other nodes -------------------------------------------------------------------------------------- */

int mpiox_watch_connect(const mpiox_link_address *address, double seconds, int *fd, mpiox_error *error)
{
    char word = 0;
    mpiox_link_wish wish = {.protocol = MPIOX_HANDSHAKE_WATCH, .welcome = &word, .welcome_bytes = 1};

    *fd = mpiox_link_connect(address, seconds, &wish, error);
    if (*fd < 0)
        return mpiox_error_set(error, MPIOX_E_IO, error->sys_errno, -1, -1, "connecting to the watch of a delegate");
    mpiox_link_stream_limit(*fd, unheard_s);
    return MPIOX_OK;
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
