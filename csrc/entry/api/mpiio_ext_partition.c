/*
 * mpiio_ext_partition.c - the planners for callers outside the library: plain structs in, structs and arrays of numbers
 * out.
 *
 * A mpiio_ext_plan is a mpiox_plan under a public name; stripe sets and extents are structs of int64_t without padding,
 * so arrays of them are arrays of rows of four and two numbers.
 */
#include <stdio.h>
#include <string.h>

#include "mpiio_ext.h"
#include "mpiox_layout.h"
#include "mpiox_partition.h"
#include "mpiox_auto_select.h"
#include "mpiox_auto_rules.h"

_Static_assert(sizeof(mpiox_stripe_set) == 4 * sizeof(int64_t), "a row of four numbers");
_Static_assert(sizeof(mpiox_extent) == 2 * sizeof(int64_t), "a row of two numbers");

static const mpiox_plan *plan_of(const mpiio_ext_plan *plan)
{
    return (const mpiox_plan *)plan;
}

static const mpiox_domain *domain_of(const mpiio_ext_plan *plan, int32_t aggregator)
{
    const mpiox_plan *p = plan_of(plan);
    return aggregator >= 0 && aggregator < p->geometry.aggregators ? &p->domains[aggregator] : NULL;
}

const char *mpiio_ext_partition_name(int index)
{
    const mpiox_partition_method *method = mpiox_partition_get(index);
    return method != NULL ? method->name : NULL;
}

const char *mpiio_ext_partition_description(int index)
{
    const mpiox_partition_method *method = mpiox_partition_get(index);
    return method != NULL ? method->description : NULL;
}

const char *mpiio_ext_partition_choose(const char *lock, int coherent, const mpiio_ext_geometry *geometry,
                                       const char **reason)
{
    mpiox_auto_facts facts = {.start = geometry->start,
                              .end = geometry->end,
                              .aggregators = geometry->aggregators,
                              .write = true,
                              .stripe_size_io = MPIOX_AUTO_OPEN};
    mpiox_auto_decision decision;
    facts.layout = (mpiox_layout){.stripe_size = geometry->stripe_size,
                                  .servers = geometry->servers,
                                  .stripe_known = true,
                                  .coherent = coherent != 0};
    if (mpiox_layout_lock_find(lock, &facts.layout.lock) != MPIOX_OK ||
        mpiox_auto_decide(&facts, &decision) != MPIOX_OK)
        return NULL;
    if (reason != NULL)
        *reason = decision.reason;
    return decision.method->name;
}

int mpiio_ext_partition_decide(const mpiio_ext_partition_facts *facts, mpiio_ext_partition_decision *decision,
                               char *reason, int64_t reason_bytes)
{
    const mpiio_ext_geometry *geometry = &facts->geometry;
    mpiox_auto_facts inside = {.start = geometry->start,
                               .end = geometry->end,
                               .write = facts->write != 0,
                               .aggregators = geometry->aggregators,
                               .nodes = facts->nodes,
                               .nics = facts->nics,
                               .aggregators_asked = facts->aggregators_asked,
                               .window_asked = facts->window_asked,
                               .method = mpiox_partition_find(facts->method),
                               .held = mpiox_partition_find(facts->held),
                               .held_bytes = facts->held_bytes};
    mpiox_auto_decision decided;
    inside.layout = (mpiox_layout){.stripe_size = geometry->stripe_size,
                                   .servers = geometry->servers,
                                   .stripe_known = facts->stripe_known != 0,
                                   .coherent = facts->coherent != 0};
    if ((facts->method != NULL && inside.method == NULL) || (facts->held != NULL && inside.held == NULL) ||
        facts->stripe_size_io < MPIOX_AUTO_NO || facts->stripe_size_io > MPIOX_AUTO_OPEN ||
        mpiox_layout_lock_find(facts->lock, &inside.layout.lock) != MPIOX_OK)
        return MPIOX_E_ARG;
    inside.stripe_size_io = (mpiox_auto_wish)facts->stripe_size_io;
    const int code = mpiox_auto_decide(&inside, &decided);
    if (code != MPIOX_OK)
        return code;
    *decision = (mpiio_ext_partition_decision){.method = decided.method->name,
                                               .source = decided.source,
                                               .aggregators = decided.aggregators,
                                               .aggregators_use = decided.aggregators_use,
                                               .window_bytes = decided.window_bytes,
                                               .alignment_bytes = decided.alignment_bytes,
                                               .stripe_size_io = decided.stripe_size_io};
    mpiox_auto_explain(&decided, reason, reason_bytes);
    return MPIOX_OK;
}

int mpiio_ext_partition_rule(int index, char *text, int64_t text_bytes, const char **reason, const char **source)
{
    mpiox_auto_rule_text rule;
    if (mpiox_auto_rule_describe(index, &rule) != MPIOX_OK)
        return MPIOX_E_ARG;
    snprintf(text, (size_t)text_bytes, "%s\n%s\n%s", rule.topic, rule.when, rule.takes);
    *reason = rule.reason;
    *source = rule.source;
    return MPIOX_OK;
}

int mpiio_ext_plan_create(const char *method, const mpiio_ext_geometry *geometry, mpiio_ext_plan **plan)
{
    const mpiox_geometry region = {.start = geometry->start,
                                   .end = geometry->end,
                                   .stripe_size = geometry->stripe_size,
                                   .servers = geometry->servers,
                                   .aggregators = geometry->aggregators};
    mpiox_plan *created;
    int rc = mpiox_plan_create(mpiox_partition_find(method), &region, &created);
    *plan = (mpiio_ext_plan *)created;
    return rc;
}

int32_t mpiio_ext_plan_aggregators_used(const mpiio_ext_plan *plan)
{
    return plan_of(plan)->aggregators_used;
}

int64_t mpiio_ext_plan_sets(const mpiio_ext_plan *plan, int32_t aggregator, int64_t *sets, int64_t max_sets)
{
    const mpiox_domain *domain = domain_of(plan, aggregator);
    if (domain == NULL)
        return MPIOX_E_ARG;
    int64_t n = domain->n_sets < max_sets ? domain->n_sets : max_sets;
    if (n > 0)
        memcpy(sets, domain->sets, (size_t)n * sizeof *domain->sets);
    return domain->n_sets;
}

int64_t mpiio_ext_plan_set_count(const mpiio_ext_plan *plan)
{
    const mpiox_stripe_set *sets;
    return mpiox_plan_flat(plan_of(plan), &sets);
}

void mpiio_ext_plan_flat(const mpiio_ext_plan *plan, int64_t *sets, int64_t *first)
{
    const mpiox_plan *p = plan_of(plan);
    const mpiox_stripe_set *all;
    const int64_t n = mpiox_plan_flat(p, &all);
    if (n > 0)
        memcpy(sets, all, (size_t)n * sizeof *all);
    first[0] = 0;
    for (int32_t a = 0; a < p->geometry.aggregators; a++)
        first[a + 1] = first[a] + p->domains[a].n_sets;
}

void mpiio_ext_plan_owners(const mpiio_ext_plan *plan, const int64_t *offsets, int64_t n, int32_t *owners)
{
    for (int64_t i = 0; i < n; i++)
        owners[i] = mpiox_plan_owner(plan_of(plan), offsets[i]);
}

int64_t mpiio_ext_plan_extents(const mpiio_ext_plan *plan, int32_t aggregator, int64_t *extents, int64_t max_extents)
{
    const mpiox_domain *domain = domain_of(plan, aggregator);
    const mpiox_geometry *geometry = &plan_of(plan)->geometry;
    int64_t total = 0;
    if (domain == NULL)
        return MPIOX_E_ARG;
    for (int64_t i = 0; i < domain->n_sets; i++) {
        const mpiox_stripe_set *set = &domain->sets[i];
        for (int64_t k = 0; k < set->count && total + k < max_extents; k++) {
            int64_t from = set->offset + k * set->stride, to = from + set->length;
            from = from < geometry->start ? geometry->start : from;
            to = to > geometry->end ? geometry->end : to;
            extents[2 * (total + k)] = from;
            extents[2 * (total + k) + 1] = to - from;
        }
        total += set->count;
    }
    return total;
}

int64_t mpiio_ext_plan_window(const mpiio_ext_plan *plan, int32_t aggregator, int64_t window_bytes, int64_t index,
                              int64_t *extents, int64_t max_extents)
{
    return mpiox_plan_window(plan_of(plan), aggregator, window_bytes, index, (mpiox_extent *)extents, max_extents);
}
