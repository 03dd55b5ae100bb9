/* mpiox_service_call.c - see mpiox_service_call.h. */
#include "mpiox_service_call.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_process_socket.h"

/* limit on a spawned process's wait for the verdict; the end of rank 0 ends the wait before */
static const double verdict_s = 600;

enum { LOOK_MS = 100 };

/* ---- rank 0 ------------------------------------------------------------------------------------------------------ */

/* "secret secret port host host ..." */
static int write_text(const mpiox_rendezvous_address *address, char *text)
{
    int used = snprintf(text, MPIOX_SERVICE_CALL_TEXT, "%" PRIx64 " %" PRIx64 " %d", address->secret[0],
                        address->secret[1], (int)address->port);

    for (int i = 0; i < address->count; i++)
        used += snprintf(text + used, (size_t)(MPIOX_SERVICE_CALL_TEXT - used), " %s", address->host[i]);
    return used < MPIOX_SERVICE_CALL_TEXT ? MPIOX_OK : MPIOX_E_FULL;
}

int mpiox_service_call_open(int32_t count, const mpiox_rendezvous_place *place, mpiox_service_call *call, char *text,
                            mpiox_error *error)
{
    mpiox_rendezvous_address address;
    uint64_t secret[2];
    int code;

    *call = (mpiox_service_call){.count = count};
    call->sockets = malloc((size_t)count * sizeof *call->sockets);
    for (int32_t i = 0; call->sockets != NULL && i < count; i++)
        call->sockets[i] = -1; /* before anything fails: whatever else stands here is closed in the end */
    call->secrets = calloc((size_t)count, sizeof *call->secrets);
    if (call->sockets == NULL || call->secrets == NULL)
        return mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "preparing to spawn delegates");
    code = mpiox_handshake_secret(secret);
    if (code != MPIOX_OK)
        return mpiox_error_set(error, code, errno, -1, -1, "getrandom, for the secret of delegates,");
    code = mpiox_rendezvous_open(place, MPIOX_PURPOSE_CALL, secret, &call->rendezvous, &address, error);
    return code == MPIOX_OK ? write_text(&address, text) : code;
}

/* True when one more has called. */
static bool admit(mpiox_service_call *call, const mpiox_rendezvous_peer *one, const mpiox_process_orders *orders)
{
    const int64_t index = one->token;

    if (index >= 0 && index < call->count && call->sockets[index] < 0 &&
        mpiox_process_socket_send(one->fd, &orders[index], sizeof *orders)) {
        call->sockets[index] = one->fd;
        mpiox_handshake_derive(one->session, call->secrets[index]);
        return true;
    }
    close(one->fd);
    return false;
}

/* All, within the time. */
static bool have_called(mpiox_service_call *call, const mpiox_process_orders *orders, double until)
{
    struct pollfd wanted = {.fd = mpiox_rendezvous_fd(call->rendezvous), .events = POLLIN};
    mpiox_rendezvous_peer one;
    int32_t called = 0;

    while (called < call->count && mpiox_now() < until) {
        poll(&wanted, 1, LOOK_MS);
        while (mpiox_rendezvous_next(call->rendezvous, &one))
            called += admit(call, &one, orders);
    }
    return called == call->count;
}

int mpiox_service_call_orders(mpiox_service_call *call, const mpiox_process_orders *orders, double seconds,
                              mpiox_announcement *announced, mpiox_error *error)
{
    double until = mpiox_now() + seconds;

    if (!have_called(call, orders, until))
        return mpiox_error_set(error, MPIOX_E_UNSUPPORTED, ETIMEDOUT, -1, -1, "waiting for spawned delegates");
    mpiox_rendezvous_close(call->rendezvous); /* no other process may call any more, and none would get an answer */
    call->rendezvous = NULL;
    until = mpiox_now() + seconds;
    for (int32_t i = 0; i < call->count; i++) {
        if (!mpiox_process_socket_receive(call->sockets[i], &announced[i], sizeof announced[i], until - mpiox_now()))
            return mpiox_error_set(error, MPIOX_E_UNSUPPORTED, ETIMEDOUT, -1, -1, "waiting for a delegate to start");
        memcpy(announced[i].link.secret, call->secrets[i], sizeof announced[i].link.secret);
        memcpy(announced[i].liveness.secret, call->secrets[i], sizeof announced[i].liveness.secret);
    }
    return MPIOX_OK;
}

void mpiox_service_call_close(mpiox_service_call *call, bool go)
{
    for (int32_t i = 0; call->sockets != NULL && i < call->count; i++) {
        if (call->sockets[i] < 0)
            continue;
        if (go)
            mpiox_process_socket_send(call->sockets[i], "G", 1);
        close(call->sockets[i]);
    }
    free(call->sockets);
    free(call->secrets);
    mpiox_rendezvous_close(call->rendezvous);
    *call = (mpiox_service_call){.count = 0};
}

/* ---- a spawned process ------------------------------------------------------------------------------------------- */

static bool read_text(const char *text, mpiox_rendezvous_address *out)
{
    int used = 0;

    memset(out, 0, sizeof *out);
    if (sscanf(text, "%" SCNx64 " %" SCNx64 " %" SCNd32 "%n", &out->secret[0], &out->secret[1], &out->port, &used) != 3)
        return false;
    for (text += used;
         out->count < MPIOX_RENDEZVOUS_ADDRESSES && sscanf(text, " %63s%n", out->host[out->count], &used) == 1;
         text += used)
        out->count++;
    return out->count > 0;
}

int mpiox_service_call_make(const char *text, int32_t index, double seconds, mpiox_process_orders *orders)
{
    mpiox_rendezvous_address address;
    mpiox_error error;
    mpiox_rendezvous_wish wish = {
        .purpose = MPIOX_PURPOSE_CALL, .token = index, .welcome = orders, .welcome_bytes = sizeof *orders};
    int fd;

    if (!read_text(text, &address))
        return -1;
    fd = mpiox_rendezvous_connect(&address, seconds, &wish, &error);
    if (fd >= 0)
        mpiox_handshake_derive(wish.session, orders->secret);
    return fd;
}

bool mpiox_service_call_answer(int socket, const mpiox_announcement *announced)
{
    mpiox_announcement sent = *announced;
    char verdict = 0;

    memset(sent.link.secret, 0, sizeof sent.link.secret); /* rank 0 knows it */
    memset(sent.liveness.secret, 0, sizeof sent.liveness.secret);
    return mpiox_process_socket_send(socket, &sent, sizeof sent) &&
           mpiox_process_socket_receive(socket, &verdict, 1, verdict_s) && verdict == 'G';
}
