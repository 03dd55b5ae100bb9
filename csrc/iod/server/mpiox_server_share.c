/*
 * mpiox_server_share.c - the client that gets the next frame under weighted fair queueing.
 *
 * Problem.    When the cache is full of dirty pages, clients wait for frames, and the order in which they get frames is
 *             the order in which they may write: the order of the requests to the file system has no effect then.
 * Algorithm.  Start-time fair queueing: each client has a virtual time, which each frame advances by 1 / weight of its
 *             file. The client with the least is next; of equal ones the one that has waited longest. A client that has
 *             not waited for a while begins at the time of the last one that was served, and cannot use what it has
 *             saved.
 * Guarantees. For clients that always wait, the numbers of frames, each divided by the weight, differ by at most one.
 *             No client starves: the virtual time of the others passes the one that waits.
 * Source.     P. Goyal, H. Vin and H. Cheng, "Start-time Fair Queuing: A Scheduling Algorithm for Integrated Services
 *             Packet Switching Networks", SIGCOMM 1996.
 */
#include "mpiox_server_share.h"

static int32_t client_of(int64_t client)
{
    return client > 0 && client <= MPIOX_RING_CLIENTS ? (int32_t)client : 0;
}

static double start_of(const mpiox_server *server, int32_t client)
{
    return server->share[client] > server->share_time ? server->share[client] : server->share_time;
}

void mpiox_server_share_choose(mpiox_server *server)
{
    mpiox_requests passed = {.count = 0}, rest = {.count = 0};
    mpiox_slot *slot;
    double least = 0;
    if (server->share == NULL || server->parked.count < 2)
        return;
    while ((slot = mpiox_server_requests_take(server, &server->parked)) != NULL) { /* rest begins with the least */
        const double start = start_of(server, client_of(slot->question.page.client));
        if (rest.count == 0 || start < least) {
            mpiox_server_requests_move(server, &passed, &rest);
            least = start;
        }
        mpiox_server_requests_append(server, &rest, slot);
    }
    slot = mpiox_server_requests_take(server, &rest);
    mpiox_server_requests_append(server, &server->parked, slot);
    mpiox_server_requests_move(server, &server->parked, &passed);
    mpiox_server_requests_move(server, &server->parked, &rest);
}

void mpiox_server_share_charge(mpiox_server *server, int32_t client, int32_t file)
{
    if (server->share == NULL || file < 0 || file >= MPIOX_CACHE_MAX_FILES) /* it was refused */
        return;
    client = client_of(client);
    const double start = start_of(server, client);
    server->share_time = start;
    server->share[client] = start + 1.0 / (server->files[file].weight > 0 ? server->files[file].weight : 1);
}
