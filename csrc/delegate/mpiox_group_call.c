/* mpiox_group_call.c - see mpiox_group_call.h. */
#include "mpiox_group_call.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpiox_delegate_socket.h"
#include "mpiox_listener_address.h"

static const double hello_s = 5;     /* for who has connected to say who it is */
static const double verdict_s = 600; /* so long a spawned process waits for the verdict; rank 0's end ends it before */

typedef struct hello {
    uint64_t secret[2];
    int64_t index;
} hello;

/* ---- rank 0 ------------------------------------------------------------------------------------------------------ */

/* "secret secret port host host ..." */
static int write_text(const mpiox_link_address *address, char *text)
{
    int used = snprintf(text, MPIOX_GROUP_CALL_TEXT, "%" PRIx64 " %" PRIx64 " %d", address->secret[0],
                        address->secret[1], (int)address->port);

    for (int i = 0; i < address->count; i++)
        used += snprintf(text + used, (size_t)(MPIOX_GROUP_CALL_TEXT - used), " %s", address->host[i]);
    return used < MPIOX_GROUP_CALL_TEXT ? MPIOX_OK : MPIOX_E_FULL;
}

int mpiox_group_call_open(int32_t count, bool loopback, mpiox_group_call *call, char *text, mpiox_error *error)
{
    mpiox_link_address address;
    int code;

    *call = (mpiox_group_call){.listener = -1, .count = count};
    call->sockets = malloc((size_t)count * sizeof *call->sockets);
    if (call->sockets == NULL || getrandom(call->secret, sizeof call->secret, 0) != (ssize_t)sizeof call->secret)
        return mpiox_error_set(error, MPIOX_E_NOMEM, errno, -1, -1, "preparing to spawn delegates");
    for (int32_t i = 0; i < count; i++)
        call->sockets[i] = -1;
    code = mpiox_listener_bind(loopback, &call->listener, &address, error);
    memcpy(address.secret, call->secret, sizeof address.secret);
    return code == MPIOX_OK ? write_text(&address, text) : code;
}

/* True when one more has called. */
static bool admit(mpiox_group_call *call, const mpiox_delegate_orders *orders)
{
    const int fd = accept4(call->listener, NULL, NULL, SOCK_CLOEXEC);
    hello said;

    if (fd >= 0 && mpiox_delegate_receive(fd, &said, sizeof said, hello_s) &&
        memcmp(said.secret, call->secret, sizeof call->secret) == 0 && said.index >= 0 && said.index < call->count &&
        call->sockets[said.index] < 0 && mpiox_delegate_send(fd, &orders[said.index], sizeof *orders)) {
        call->sockets[said.index] = fd;
        return true;
    }
    if (fd >= 0)
        close(fd);
    return false;
}

int mpiox_group_call_orders(mpiox_group_call *call, const mpiox_delegate_orders *orders, double seconds,
                            mpiox_announcement *said, mpiox_error *error)
{
    double until = mpiox_now() + seconds;
    int32_t called = 0;

    while (called < call->count && mpiox_now() < until) {
        if (mpiox_delegate_await(call->listener, until - mpiox_now()))
            called += admit(call, orders);
    }
    if (called < call->count)
        return mpiox_error_set(error, MPIOX_E_UNSUPPORTED, ETIMEDOUT, -1, -1, "waiting for spawned delegates");
    until = mpiox_now() + seconds;
    for (int32_t i = 0; i < call->count; i++) {
        if (!mpiox_delegate_receive(call->sockets[i], &said[i], sizeof said[i], until - mpiox_now()))
            return mpiox_error_set(error, MPIOX_E_UNSUPPORTED, ETIMEDOUT, -1, -1, "waiting for a delegate to start");
    }
    return MPIOX_OK;
}

void mpiox_group_call_close(mpiox_group_call *call, bool go)
{
    for (int32_t i = 0; call->sockets != NULL && i < call->count; i++) {
        if (call->sockets[i] < 0)
            continue;
        if (go)
            mpiox_delegate_send(call->sockets[i], "G", 1);
        close(call->sockets[i]);
    }
    free(call->sockets);
    if (call->listener >= 0)
        close(call->listener);
    *call = (mpiox_group_call){.listener = -1};
}

/* ---- a spawned process ------------------------------------------------------------------------------------------- */

static bool read_text(const char *text, mpiox_link_address *out)
{
    int used = 0;

    memset(out, 0, sizeof *out);
    if (sscanf(text, "%" SCNx64 " %" SCNx64 " %" SCNd32 "%n", &out->secret[0], &out->secret[1], &out->port, &used) != 3)
        return false;
    for (text += used; out->count < MPIOX_LINK_ADDRESSES && sscanf(text, " %63s%n", out->host[out->count], &used) == 1;
         text += used)
        out->count++;
    return out->count > 0;
}

int mpiox_group_call_make(const char *text, int32_t index, double seconds, mpiox_delegate_orders *orders)
{
    const double until = mpiox_now() + seconds;
    mpiox_link_address address;
    int next = 0, fd = -1;

    if (!read_text(text, &address))
        return -1;
    const hello mine = {.secret = {address.secret[0], address.secret[1]}, .index = index};
    while ((fd = mpiox_delegate_connect(&address, &next, until)) >= 0) {
        if (mpiox_delegate_send(fd, &mine, sizeof mine) &&
            mpiox_delegate_receive(fd, orders, sizeof *orders, until - mpiox_now()))
            return fd;
        close(fd);
    }
    return -1;
}

bool mpiox_group_call_answer(int socket, const mpiox_announcement *said)
{
    char verdict = 0;

    return mpiox_delegate_send(socket, said, sizeof *said) && mpiox_delegate_receive(socket, &verdict, 1, verdict_s) &&
           verdict == 'G';
}
