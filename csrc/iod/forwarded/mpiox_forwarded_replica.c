/*
 * mpiox_forwarded_replica.c - a copy of dirty pages at a replica delegate: acknowledgement level "replica".
 *
 * Problem.   If a delegate is killed, the survivors of its node have its pages. If the node vanishes, no process has
 *            them.
 * Algorithm. A rank writes the same bytes to the owner and then to its replica delegate, on another node if there is
 *            one, under a record of their own (MPIOX_FILE_REPLICA). The replica delegate does not write them to the
 *            file by itself. The original is written first, so that a copy is never newer. If a flush of the originals
 *            begins later than the copies, and ends, the copies may be discarded. A flush barrier does that, and so
 *            does a rank when the copies fill their share of the replica delegate's memory (trim).
 *            If a file has a hidden name and is written behind its close, its copies stay until the replica delegate
 *            finds that the original's part is in the file, or that its delegate is lost (mpiox_server_drain.c).
 *            When a delegate is dead, a rank first has the copies written to the file, then accesses the file itself. A
 *            rank that has not detected the death yet may still add a copy; it detects it with its next access, or at
 *            the flush barrier.
 * Guarantee. A write that has returned survives the loss of any one node.
 */
#include <string.h>

#include "mpiox_forwarded_impl.h"

int32_t mpiox_replica_shift(const mpiox_service *service, int32_t owners)
{
    int32_t best = 0, most = -1;

    for (int32_t shift = 1; shift < owners; shift++) {
        int32_t apart = 0;

        for (int32_t i = 0; i < owners; i++)
            apart += service->delegates[i].node != service->delegates[(i + shift) % owners].node;
        if (apart > most) {
            most = apart;
            best = shift;
        }
    }
    return best;
}

bool mpiox_replica_lasts(const mpiox_service *service, int32_t owners)
{
    const int32_t shift = mpiox_replica_shift(service, owners);
    bool lasts = shift > 0;

    for (int32_t i = 0; i < owners && lasts; i++)
        lasts = service->delegates[i].node != service->delegates[(i + shift) % owners].node &&
                service->delegates[i].lives_at.port > 0;
    return lasts;
}

static int32_t replica_of(const mpiox_forwarded *forwarded, int32_t owner)
{
    return (owner + forwarded->replica->shift) % forwarded->owners;
}

bool mpiox_replica_introduce(const mpiox_forwarded *forwarded)
{
    bool sent = true;

    for (int32_t i = 0; i < forwarded->owners && sent; i++) {
        const mpiox_rendezvous_address *at = &mpiox_forwarded_owner(forwarded, i)->lives_at;
        mpiox_slot slot = {.op = MPIOX_OP_PEER,
                           .question.peer = {.delegate = i,
                                             .secret = {(int64_t)at->secret[0], (int64_t)at->secret[1]},
                                             .port = at->port}};

        for (int32_t k = 0; k < at->count; k++) {
            strcat(slot.text, k > 0 ? " " : "");
            strcat(slot.text, at->host[k]);
        }
        sent = mpiox_forwarded_request_of(mpiox_forwarded_owner(forwarded, replica_of(forwarded, i)), &slot) ==
               MPIOX_OK;
    }
    return sent;
}

bool mpiox_replica_keep(const mpiox_forwarded *forwarded, int32_t owner)
{
    mpiox_slot slot = {.op = MPIOX_OP_CLOSE, .question.close.how = MPIOX_CLOSING_BEHIND};

    return mpiox_forwarded_request(forwarded->replica, replica_of(forwarded, owner), &slot) == MPIOX_OK;
}

int mpiox_replica_trim(const mpiox_forwarded *forwarded, int32_t replica, mpiox_error *error)
{
    const int32_t owner = (replica - forwarded->replica->shift + forwarded->owners) % forwarded->owners;
    mpiox_slot mark = {.op = MPIOX_OP_REPLICA_MARK}, flush = {.op = MPIOX_OP_FLUSH},
               trim = {.op = MPIOX_OP_REPLICA_TRIM};

    flush.question.flush.end = INT64_MAX;
    if (mpiox_forwarded_request(forwarded->replica, replica, &mark) != MPIOX_OK)
        return MPIOX_OK; /* no replica delegate any more */
    const int code = mpiox_forwarded_request(forwarded, owner, &flush);
    if (code == MPIOX_E_UNSUPPORTED) /* the copies are needed: mpiox_replica_restore() */
        return MPIOX_OK;
    if (code != MPIOX_OK) {
        *error = flush.error;
        return code;
    }
    mpiox_forwarded_request(forwarded->replica, replica, &trim);
    return MPIOX_OK;
}

bool mpiox_replica_restore(mpiox_forwarded *forwarded, int32_t owner)
{
    mpiox_slot slot = {.op = MPIOX_OP_FLUSH};
    mpiox_error refused;

    if (!forwarded->replica)
        return false;
    const int32_t replica = replica_of(forwarded, owner);
    const mpiox_process *delegate = mpiox_forwarded_owner(forwarded->replica, replica);
    slot.question.flush.end = INT64_MAX;
    slot.question.flush.stable =
        !delegate->local; /* one on another node reports then which bytes it could not write, too */
    slot.question.flush.then = MPIOX_FLUSH_DROPS;
    return mpiox_forwarded_request(forwarded->replica, replica, &slot) == MPIOX_OK &&
           (!delegate->local ||
            !mpiox_cache_find_error(&delegate->cache, forwarded->replica->index[replica], 0, INT64_MAX, &refused));
}

void mpiox_replica_discard(mpiox_forwarded *forwarded)
{
    const mpiox_topology *topology = forwarded->file->topology;

    for (int32_t i = topology->rank; forwarded->replica && i < forwarded->owners; i += topology->size) {
        mpiox_slot slot = {.op = MPIOX_OP_DISCARD};

        if (atomic_load(&forwarded->lost[i]))
            mpiox_replica_restore(forwarded, i);
        mpiox_forwarded_request(forwarded->replica, replica_of(forwarded, i), &slot);
    }
}
