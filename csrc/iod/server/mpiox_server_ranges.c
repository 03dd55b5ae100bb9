/* mpiox_server_ranges.c - see mpiox_server_ranges.h. */
#include "mpiox_server_ranges.h"

static _Atomic int16_t *owner_of(const mpiox_server *server, const mpiox_slot *slot)
{
    return &server->cache.header->files[slot->file].owner_of[slot->question.range];
}

static mpiox_server_migration *move_of(mpiox_server *server, const mpiox_slot *slot)
{
    return &server->files[slot->file].moves[slot->question.range];
}

static bool is_range(const mpiox_server *server, const mpiox_slot *slot)
{
    return slot->file >= 0 && slot->file < MPIOX_CACHE_MAX_FILES && server->files[slot->file].storage != NULL &&
           slot->question.range >= 0 && slot->question.range < server->cache.header->files[slot->file].ranges;
}

/* ---- taking over ------------------------------------------------------------------------------------------------- */

static int judge_commit(mpiox_server *server, mpiox_slot *slot)
{
    mpiox_server_migration *move = move_of(server, slot);
    const int64_t version = slot->question.commit.version, stamp = slot->question.commit.stamp;
    const int owner = atomic_load(owner_of(server, slot));
    if (version < 1 || version >= MPIOX_VERSION_NEVER)
        return MPIOX_E_ARG;
    if (version == move->committed && stamp == move->committed_stamp)
        return MPIOX_OK;
    if (version <= move->version || owner == MPIOX_RANGE_MOVING || (stamp < 0 && owner != server->options.delegate)) {
        slot->answer.range.version = move->version;
        if (version > move->version)
            move->version = (uint32_t)version;
        return MPIOX_E_ARG;
    }
    if (owner != server->options.delegate)
        return MPIOX_MIGRATE_BARRIER;
    move->version = move->committed = (uint32_t)version; /* it was this delegate's all the time */
    move->committed_stamp = stamp;
    return MPIOX_OK;
}

void mpiox_server_end_commit(mpiox_server *server, const mpiox_slot *slot)
{
    atomic_store(owner_of(server, slot), (int16_t)server->options.delegate);
    MPIOX_COUNT(server, moved_in, 1);
}

/* ---- giving ------------------------------------------------------------------------------------------------------ */

static void take_charge(const mpiox_server *server, mpiox_server_migration *move, const mpiox_slot *slot)
{
    move->client = slot->client;
    move->join = mpiox_ring_join_of(&server->cache, slot->client);
}

/* The last step, by the client that is in charge. */
static int end_migration(mpiox_server *server, const mpiox_slot *slot)
{
    const mpiox_server_migration *move = move_of(server, slot);
    if (atomic_load(owner_of(server, slot)) != MPIOX_RANGE_MOVING || move->to == server->options.delegate ||
        move->client != slot->client || move->join != mpiox_ring_join_of(&server->cache, slot->client))
        return MPIOX_E_ARG;
    atomic_store(owner_of(server, slot), (int16_t)slot->question.migrate.to);
    if (slot->question.migrate.to != server->options.delegate)
        MPIOX_COUNT(server, moved_out, 1);
    return MPIOX_OK;
}

static int take_over(mpiox_server *server, mpiox_slot *slot)
{
    mpiox_server_migration *move = move_of(server, slot);
    if (atomic_load(owner_of(server, slot)) != MPIOX_RANGE_MOVING || move->to == server->options.delegate ||
        move->client < 0 || move->join == mpiox_ring_join_of(&server->cache, move->client))
        return MPIOX_E_ARG;
    take_charge(server, move, slot);
    slot->answer.range.owner = move->to;
    slot->answer.range.stamp = move->stamp;
    slot->answer.range.version = move->version;
    return MPIOX_OK;
}

static int judge_migration(mpiox_server *server, mpiox_slot *slot)
{
    const int64_t to = slot->question.migrate.to, step = slot->question.migrate.step;
    const int64_t least = slot->question.migrate.least_version;
    const int owner = atomic_load(owner_of(server, slot));
    if (to < 0 || to >= server->options.delegates)
        return MPIOX_E_ARG;
    if (step == MPIOX_MIGRATE_END)
        return end_migration(server, slot);
    if (step == MPIOX_MIGRATE_TAKE_OVER)
        return take_over(server, slot);
    const bool begins = step == MPIOX_MIGRATE_BEGIN || step == MPIOX_MIGRATE_REPAIR;
    const bool fine = begins && to != server->options.delegate && least >= 0 && least < MPIOX_VERSION_NEVER &&
                      move_of(server, slot)->version + 1 < MPIOX_VERSION_NEVER && owner == server->options.delegate;
    return fine ? MPIOX_MIGRATE_BARRIER : MPIOX_E_ARG;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

int mpiox_server_judge_migration(mpiox_server *server, mpiox_slot *slot)
{
    if (!is_range(server, slot))
        return MPIOX_E_ARG;
    return slot->op == MPIOX_OP_COMMIT ? judge_commit(server, slot) : judge_migration(server, slot);
}

void mpiox_server_begin_migration(mpiox_server *server, mpiox_slot *slot)
{
    mpiox_server_migration *move = move_of(server, slot);
    atomic_store(owner_of(server, slot), MPIOX_RANGE_MOVING);
    if (slot->op == MPIOX_OP_COMMIT) {
        move->version = move->committed = (uint32_t)slot->question.commit.version;
        move->committed_stamp = slot->question.commit.stamp;
        move->to = (int16_t)server->options.delegate; /* only this barrier may end it */
        return;
    }
    const int64_t least = slot->question.migrate.least_version;
    move->version = least > move->version ? (uint32_t)least : move->version + 1;
    move->to = (int16_t)slot->question.migrate.to;
    move->stamp = server->files[slot->file].stamp * (slot->question.migrate.step == MPIOX_MIGRATE_REPAIR ? -1 : 1);
    take_charge(server, move, slot);
    slot->answer.range.stamp = move->stamp;
    slot->answer.range.version = move->version;
}

int mpiox_server_answer_owner(mpiox_server *server, mpiox_slot *slot)
{
    if (!is_range(server, slot))
        return MPIOX_E_ARG;
    mpiox_server_migration *move = move_of(server, slot);
    const int owner = atomic_load(owner_of(server, slot));
    if (slot->question.owner.never == 1 && owner != server->options.delegate && owner != MPIOX_RANGE_MOVING)
        move->version = MPIOX_VERSION_NEVER;
    slot->answer.range.owner = owner;
    slot->answer.range.version = move->version;
    return MPIOX_OK;
}
