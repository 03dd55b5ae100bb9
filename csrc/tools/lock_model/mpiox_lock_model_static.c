/*
 * mpiox_lock_model_static.c - conflicts that follow from the cut alone, in any order of arrival: changes of owner,
 * shared units.
 *
 * Owner changes: the number of stripes of a server, in file order, whose owner is not the owner of the stripe before.
 * At such a stripe extent locks of two aggregators meet, the "lock extent conflict" of [SDCI]. Shared units: lock units
 * that more than one aggregator accesses. Only an access that does not cover a whole unit can share the unit. So the
 * model stores only units at the edges of accesses, in a hash table.
 */
#include <stdlib.h>

#include "mpiox_lock_model_state.h"

typedef struct locks_shared_entry {
    int64_t unit;
    int32_t object;
    int32_t aggregator; /* the first there; -1: counted as shared; -2: free */
} locks_shared_entry;

/* One past the last byte of [from, to) whose owner is that of `from`. Owners inside a stripe are contiguous. */
static int64_t owner_end(const mpiox_plan *plan, int32_t owner, int64_t from, int64_t to)
{
    while (to - from > 1) {
        int64_t middle = from + (to - from) / 2;
        if (mpiox_plan_owner(plan, middle) == owner)
            from = middle;
        else
            to = middle;
    }
    return to;
}

int mpiox_lock_model_owner_changes(locks_state *state, const mpiox_plan *plan)
{
    const mpiox_geometry *geometry = &state->geometry;
    for (int64_t at = geometry->start; at < geometry->end;) {
        const int64_t stripe = at / geometry->stripe_size;
        if (stripe % 4096 == 0 && locks_stopped(state))
            return MPIOX_E_STOPPED;
        const int32_t server = (int32_t)(stripe % geometry->servers);
        int64_t end = stripe == (geometry->end - 1) / geometry->stripe_size ? geometry->end
                                                                            : (stripe + 1) * geometry->stripe_size;
        const int32_t owner = mpiox_plan_owner(plan, at);
        if (mpiox_plan_owner(plan, end - 1) != owner)
            end = owner_end(plan, owner, at, end - 1);
        if (state->last_owners[server] >= 0 && state->last_owners[server] != owner)
            state->outcome->servers[server].owner_changes++;
        state->last_owners[server] = owner;
        at = end;
    }
    return MPIOX_OK;
}

static uint64_t hash(int64_t unit, int32_t object)
{
    uint64_t x = (uint64_t)unit * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)object * UINT64_C(0xc2b2ae3d27d4eb4f);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

static locks_shared_entry *find(const locks_shared *shared, int64_t unit, int32_t object)
{
    const uint64_t mask = (uint64_t)shared->capacity - 1;
    uint64_t i = hash(unit, object) & mask;
    while (shared->entries[i].aggregator != -2 &&
           (shared->entries[i].unit != unit || shared->entries[i].object != object))
        i = (i + 1) & mask;
    return &shared->entries[i];
}

static int widen(locks_shared *shared)
{
    locks_shared old = *shared;
    shared->capacity = old.capacity == 0 ? 1024 : 2 * old.capacity;
    shared->entries = malloc((size_t)shared->capacity * sizeof *shared->entries);
    if (shared->entries == NULL) {
        *shared = old;
        return MPIOX_E_NOMEM;
    }
    for (int64_t i = 0; i < shared->capacity; i++)
        shared->entries[i].aggregator = -2;
    for (int64_t i = 0; i < old.capacity; i++)
        if (old.entries[i].aggregator != -2)
            *find(shared, old.entries[i].unit, old.entries[i].object) = old.entries[i];
    free(old.entries);
    return MPIOX_OK;
}

static int share_unit(locks_state *state, int32_t object, int32_t aggregator, int64_t unit)
{
    locks_shared *shared = &state->shared;
    if (2 * (shared->n + 1) > shared->capacity && widen(shared) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    locks_shared_entry *entry = find(shared, unit, object);
    if (entry->aggregator == -2) {
        *entry = (locks_shared_entry){.unit = unit, .object = object, .aggregator = aggregator};
        shared->n++;
    } else if (entry->aggregator >= 0 && entry->aggregator != aggregator) {
        const mpiox_geometry *geometry = &state->geometry;
        const bool file = state->system->protocol == MPIOX_LOCK_MODEL_TOKEN;
        const int64_t server = file ? unit * state->unit / geometry->stripe_size % geometry->servers : object;
        state->outcome->servers[server].shared_units++;
        entry->aggregator = -1;
    }
    return MPIOX_OK;
}

int mpiox_lock_model_share(locks_state *state, int32_t object, int32_t aggregator, int64_t from, int64_t to)
{
    const int64_t first = from / state->unit, last = (to - 1) / state->unit;
    const bool low = from % state->unit != 0, high = to % state->unit != 0;
    if ((low || (high && first == last)) && share_unit(state, object, aggregator, first) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    if (high && first != last)
        return share_unit(state, object, aggregator, last);
    return MPIOX_OK;
}
