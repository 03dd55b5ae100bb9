/*
 * mpiox_plan.c - life of a plan, and the owner of a byte.
 *
 * A plan is three allocations whatever the number of stripes: the plan, one domain per aggregator, one array of sets
 * that all domains point into. A method appends to that array (mpiox_plan_build.h), so sets of one domain are adjacent.
 */
#include "mpiox_plan_build.h"

#include <assert.h>
#include <stdlib.h>

bool mpiox_geometry_is_valid(const mpiox_geometry *geometry)
{
    return geometry->start >= 0 && geometry->start <= geometry->end && geometry->end <= MPIOX_PARTITION_MAX_OFFSET &&
           geometry->stripe_size >= 1 && geometry->stripe_size <= MPIOX_PARTITION_MAX_OFFSET &&
           geometry->servers >= 1 && geometry->servers <= MPIOX_PARTITION_MAX_PARTIES && geometry->aggregators >= 1 &&
           geometry->aggregators <= MPIOX_PARTITION_MAX_PARTIES;
}

int mpiox_plan_reserve(mpiox_plan *plan, int64_t n_sets)
{
    struct mpiox_plan_store *store = plan->store;
    assert(store->sets == NULL && n_sets >= 0); /* once */
    store->sets = calloc((size_t)(n_sets > 0 ? n_sets : 1), sizeof *store->sets);
    if (store->sets == NULL)
        return MPIOX_E_NOMEM;
    store->capacity = n_sets;
    return MPIOX_OK;
}

void mpiox_plan_add(mpiox_plan *plan, int32_t aggregator, int64_t offset, int64_t length, int64_t stride, int64_t count)
{
    struct mpiox_plan_store *store = plan->store;
    mpiox_domain *domain = &plan->domains[aggregator];
    assert(aggregator >= 0 && aggregator < plan->aggregators_used);
    assert(offset >= 0 && length > 0 && count > 0 && (count > 1 ? stride >= length : stride == 0));
    assert(offset + length > plan->geometry.start && offset < plan->geometry.end); /* no piece is clipped away */
    if (store->n_sets == store->capacity) {
        store->overrun = true; /* the method reserved too little: mpiox_plan_create() refuses the plan */
        return;
    }
    if (count > 1 && stride == length) { /* one aggregator or one server: the stripes touch */
        length *= count;
        count = 1;
    }
    mpiox_stripe_set *set = &store->sets[store->n_sets++];
    assert(domain->n_sets == 0 || domain->sets + domain->n_sets == set); /* aggregators come in ascending order */
    *set = (mpiox_stripe_set){.offset = offset, .length = length, .stride = count > 1 ? stride : 0, .count = count};
    if (domain->n_sets++ == 0)
        domain->sets = set;
    if (count > store->max_count)
        store->max_count = count;
    if (count > 1 && (store->strided_length == 0 || length < store->strided_length))
        store->strided_length = length;
}

void mpiox_plan_add_cyclic(mpiox_plan *plan, int32_t aggregator, int64_t first, int64_t last, int64_t modulus,
                           int64_t residue)
{
    int64_t stripe_size = plan->geometry.stripe_size;
    assert(first >= 0 && residue >= 0 && residue < modulus);
    int64_t ahead = residue - first % modulus;
    int64_t stripe = first + (ahead < 0 ? ahead + modulus : ahead);
    if (stripe > last)
        return;
    int64_t count = (last - stripe) / modulus + 1;
    /* With two stripes or more the stride lies inside the file, so the product cannot overflow. */
    mpiox_plan_add(plan, aggregator, stripe * stripe_size, stripe_size, count > 1 ? modulus * stripe_size : 0, count);
}

int mpiox_plan_create(const mpiox_partition_method *method, const mpiox_geometry *geometry, mpiox_plan **out)
{
    *out = NULL;
    if (method == NULL || !mpiox_geometry_is_valid(geometry))
        return MPIOX_E_ARG;
    mpiox_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return MPIOX_E_NOMEM;
    plan->geometry = *geometry;
    plan->aggregators_used = method->adjust != NULL ? method->adjust(geometry) : geometry->aggregators;
    assert(plan->aggregators_used > 0 && plan->aggregators_used <= geometry->aggregators);
    plan->method = method;
    plan->store = calloc(1, sizeof *plan->store);
    plan->domains = calloc((size_t)geometry->aggregators, sizeof *plan->domains);
    int rc = plan->store == NULL || plan->domains == NULL ? MPIOX_E_NOMEM : MPIOX_OK;
    if (rc == MPIOX_OK)
        plan->store->max_count = 1;
    if (rc == MPIOX_OK && geometry->start < geometry->end)
        rc = method->plan(geometry, plan);
    if (rc == MPIOX_OK && plan->store->overrun)
        rc = MPIOX_E_FULL;
    if (rc != MPIOX_OK) {
        mpiox_plan_free(plan);
        return rc;
    }
    *out = plan;
    return MPIOX_OK;
}

void mpiox_plan_free(mpiox_plan *plan)
{
    if (plan == NULL)
        return;
    if (plan->store != NULL) {
        free(plan->store->sets);
        free(plan->store->window_base);
        free(plan->store);
    }
    free(plan->domains);
    free(plan);
}

int32_t mpiox_plan_owner(const mpiox_plan *plan, int64_t offset)
{
    if (offset < plan->geometry.start || offset >= plan->geometry.end)
        return -1;
    const int32_t owner = plan->method->owner(plan, offset);
    assert(owner >= 0 && owner < plan->aggregators_used);
    return owner;
}
