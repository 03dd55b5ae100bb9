/* mpiox_process_liveness.c - see mpiox_process_liveness.h. */
#include "mpiox_process_liveness.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpiox_process_socket.h"

enum { PEERS = 1 << 16, OTHERS = 2 /* descriptors that are polled beside the peers */ };

static const double silent_s = 5; /* a host that acknowledges nothing for such a time is gone */
static const char hello = 'H', question = 'Q', all_there = 'A', not_all = 'N';

struct mpiox_liveness_peer {
    int fd;
    bool asks;
};

/* ---- beside the delegate ----------------------------------------------------------------------------------------- */

int mpiox_liveness_open(const mpiox_rendezvous_place *place, const uint64_t *secret, mpiox_liveness *liveness,
                        mpiox_rendezvous_address *address, mpiox_error *error)
{
    *liveness = (mpiox_liveness){.rendezvous = NULL};
    return mpiox_rendezvous_open(place, MPIOX_PURPOSE_LIVENESS, secret, &liveness->rendezvous, address, error);
}

static void send_word(mpiox_liveness_peer *peer, char word)
{
    if (send(peer->fd, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        shutdown(peer->fd, SHUT_RDWR); /* it is dropped when its end is read */
}

static void admit(mpiox_liveness *liveness, int fd)
{
    if (liveness->count == liveness->room && liveness->count < PEERS) {
        mpiox_liveness_peer *more = realloc(liveness->peers, sizeof *more * (size_t)(liveness->room + 64));

        liveness->peers = more != NULL ? more : liveness->peers;
        liveness->room += more != NULL ? 64 : 0;
    }
    if (liveness->count == liveness->room) {
        close(fd);
        return;
    }
    liveness->peers[liveness->count++] = (mpiox_liveness_peer){.fd = fd};
    send_word(&liveness->peers[liveness->count - 1], hello);
}

/* False: the peer is gone. */
static bool receive(mpiox_liveness *liveness, mpiox_liveness_peer *peer)
{
    char word = 0;
    const ssize_t got = recv(peer->fd, &word, 1, MSG_DONTWAIT);

    peer->asks |= got == 1 && word == question;
    liveness->asked |= peer->asks;
    if (got == 1 && peer->asks && liveness->answered)
        send_word(peer, liveness->whole ? all_there : not_all);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static void receive_all(mpiox_liveness *liveness, const struct pollfd *polls)
{
    int32_t kept = 0;

    for (int32_t i = 0; i < liveness->count; i++) {
        if (polls[i].revents == 0 || receive(liveness, &liveness->peers[i]))
            liveness->peers[kept++] = liveness->peers[i];
        else
            close(liveness->peers[i].fd);
    }
    liveness->count = kept;
}

void mpiox_liveness_step(mpiox_liveness *liveness, int also, int milliseconds)
{
    const int32_t count = liveness->count;
    struct pollfd *polls = calloc((size_t)count + OTHERS, sizeof *polls), few = {.fd = also, .events = POLLIN};
    mpiox_rendezvous_peer one;

    if (polls == NULL) {
        poll(&few, 1, milliseconds);
        return;
    }
    for (int32_t i = 0; i < count; i++)
        polls[i] = (struct pollfd){.fd = liveness->peers[i].fd, .events = POLLIN};
    polls[count] = (struct pollfd){.fd = mpiox_rendezvous_fd(liveness->rendezvous), .events = POLLIN};
    polls[count + 1] = few;
    if (poll(polls, (nfds_t)(count + OTHERS), milliseconds) > 0) /* descriptors of -1 are passed over */
        receive_all(liveness, polls);
    while (mpiox_rendezvous_next(liveness->rendezvous, &one))
        admit(liveness, one.fd);
    free(polls);
}

void mpiox_liveness_answer(mpiox_liveness *liveness, bool whole)
{
    if (liveness->answered)
        return;
    liveness->answered = true;
    liveness->whole = whole;
    for (int32_t i = 0; i < liveness->count; i++) {
        if (liveness->peers[i].asks)
            send_word(&liveness->peers[i], whole ? all_there : not_all);
    }
}

void mpiox_liveness_close(mpiox_liveness *liveness)
{
    for (int32_t i = 0; i < liveness->count; i++)
        close(liveness->peers[i].fd);
    free(liveness->peers);
    mpiox_rendezvous_close(liveness->rendezvous);
    *liveness = (mpiox_liveness){.rendezvous = NULL};
}

/* ---- clients on other nodes -------------------------------------------------------------------------------------- */

int mpiox_liveness_connect(const mpiox_rendezvous_address *address, double seconds, int *fd, mpiox_error *error)
{
    char word = 0;
    mpiox_rendezvous_wish wish = {.purpose = MPIOX_PURPOSE_LIVENESS, .welcome = &word, .welcome_bytes = 1};

    *fd = mpiox_rendezvous_connect(address, seconds, &wish, error);
    if (*fd < 0)
        return mpiox_error_set(error, MPIOX_E_IO, error->sys_errno, -1, -1,
                               "connecting to the liveness service of a delegate");
    mpiox_rendezvous_limit(*fd, silent_s);
    return MPIOX_OK;
}

bool mpiox_liveness_ask(int fd)
{
    char word = 0;

    if (fd < 0 || !mpiox_process_socket_send(fd, &question, 1))
        return false;
    for (;;) { /* however long the pages take, as long as the host is there */
        const ssize_t got = read(fd, &word, 1);

        if (got == 1 && (word == all_there || word == not_all))
            return word == all_there;
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
    }
}
