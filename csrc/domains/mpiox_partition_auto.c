/*
 * mpiox_partition_auto.c - from facts to a decision, by the rules of mpiox_partition_rules.c.
 *
 * Problem.    Four things have to be decided: how many aggregators, how large their windows, which file domains, and
 *             whether a request may span stripes. The first two are settled when a file is opened, the others for each
 *             collective.
 * Algorithm.  The facts answer the questions of the rules; each topic takes its first rule that holds, in an order in
 *             which a decision only needs those before it. What a hint says is never decided.
 * Guarantee.  Pure: the same facts, the same decision, on every rank.
 */
#include <stdio.h>
#include <string.h>

#include "mpiox_partition_auto.h"
#include "mpiox_partition_methods.h"
#include "mpiox_partition_rules.h"
#include "mpiox_plan_build.h"

/* One in so many aggregators may idle for the sake of a number that matches the servers. */
#define IDLE_TOLERATED 8

/* What the estimate takes for faster has at most this share of the other time. */
#define CLEARLY 0.95

#define MEBIBYTE (INT64_C(1) << 20)
#define LARGEST_WINDOW (16 * MEBIBYTE)

static mpiox_geometry geometry_of(const mpiox_partition_facts *facts, int32_t aggregators)
{
    return (mpiox_geometry){.start = facts->start,
                            .end = facts->end,
                            .stripe_size = facts->layout.stripe_size,
                            .servers = facts->layout.servers,
                            .aggregators = aggregators};
}

static mpiox_partition_case locks_of(const mpiox_layout *layout)
{
    switch (layout->lock) {
    case MPIOX_LOCK_SERVER:
        return MPIOX_CASE_SERVER;
    case MPIOX_LOCK_TOKEN:
        return MPIOX_CASE_TOKEN;
    case MPIOX_LOCK_NONE:
        return MPIOX_CASE_UNLOCKED;
    case MPIOX_LOCK_LOCAL:
        break;
    }
    return layout->coherent ? MPIOX_CASE_LOCAL : MPIOX_CASE_UNKNOWN;
}

static mpiox_partition_case match_of(const mpiox_geometry *geometry)
{
    const int64_t servers = geometry->servers, aggregators = geometry->aggregators;
    if (servers % aggregators == 0)
        return MPIOX_CASE_FACTOR;
    if (aggregators % servers == 0)
        return MPIOX_CASE_MULTIPLE;
    const int64_t idle = aggregators - mpiox_partition_group_cyclic.adjust(geometry);
    return idle * IDLE_TOLERATED <= aggregators ? MPIOX_CASE_NEAR : MPIOX_CASE_APART;
}

/* The answers to all questions, with so many aggregators. */
static uint32_t cases_of(const mpiox_partition_facts *facts, int32_t aggregators)
{
    const mpiox_geometry g = geometry_of(facts, aggregators);
    const mpiox_layout *layout = &facts->layout;
    int64_t stripes = 0;
    if (g.start < g.end)
        stripes = mpiox_plan_last_stripe(&g) - mpiox_plan_first_stripe(&g) + 1;
    const bool large = layout->stripe_known && layout->stripe_size > MEBIBYTE;
    const mpiox_partition_case answers[] = {
        locks_of(layout),
        g.servers == 1             ? MPIOX_CASE_ONE_SERVER
        : g.servers <= aggregators ? MPIOX_CASE_SERVERS_FIT
                                   : MPIOX_CASE_MORE_SERVERS,
        match_of(&g),
        stripes < aggregators ? MPIOX_CASE_FEW_STRIPES : MPIOX_CASE_ENOUGH_STRIPES,
        large ? MPIOX_CASE_LARGE_STRIPES : MPIOX_CASE_OTHER_STRIPES,
        facts->write ? MPIOX_CASE_WRITES : MPIOX_CASE_READS,
    };
    uint32_t cases = 0;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        cases |= UINT32_C(1) << answers[i];
    return cases;
}

/* As many as the servers, doubled as long as every aggregator has a node of its own. */
static int32_t multiple_of_servers(int32_t servers, int32_t nodes)
{
    int32_t number = servers;
    while (number <= nodes / 2)
        number *= 2;
    return number;
}

static int32_t number_of_aggregators(const mpiox_partition_facts *facts)
{
    const int32_t most = facts->aggregators;
    if (facts->nodes == 0)
        return most;
    int64_t wanted = facts->aggregators_asked;
    if (wanted == 0) {
        const mpiox_geometry offered = geometry_of(facts, most);
        switch (mpiox_partition_rule_find(MPIOX_TOPIC_AGGREGATORS, cases_of(facts, most))->take) {
        case MPIOX_TAKE_TWO_A_NODE:
            wanted = 2 * (int64_t)facts->nodes;
            break;
        case MPIOX_TAKE_SERVERS:
            wanted = multiple_of_servers(facts->layout.servers, facts->nodes);
            break;
        case MPIOX_TAKE_LOWERED:
            wanted = mpiox_partition_group_cyclic.adjust(&offered);
            break;
        default:
            wanted = most;
        }
    }
    return wanted < most ? (int32_t)wanted : most;
}

static int64_t window_of(const mpiox_partition_facts *facts, uint32_t cases)
{
    if (facts->window_asked > 0)
        return facts->window_asked;
    if (mpiox_partition_rule_find(MPIOX_TOPIC_WINDOW, cases)->take == MPIOX_TAKE_MEBIBYTE)
        return MEBIBYTE;
    return facts->layout.stripe_size < LARGEST_WINDOW ? facts->layout.stripe_size : LARGEST_WINDOW;
}

static double cost(const mpiox_partition_facts *facts, const mpiox_geometry *geometry, uint32_t cases,
                   const mpiox_partition_decision *decision, const mpiox_partition_method *method, bool stripe_size_io)
{
    const mpiox_partition_cost_case c = {.geometry = geometry,
                                         .lock = facts->layout.lock,
                                         .speeds = &mpiox_partition_rule_find(MPIOX_TOPIC_ESTIMATE, cases)->speeds,
                                         .window_bytes = decision->window_bytes,
                                         .write = facts->write};
    return mpiox_partition_cost(&c, method, stripe_size_io);
}

/* The rule's method, or one that the estimate finds clearly faster. Parts of a block belong to several clients' caches,
 * which must not be where nobody locks. */
static void choose_method(const mpiox_partition_facts *facts, const mpiox_geometry *geometry, uint32_t cases,
                          mpiox_partition_decision *out)
{
    const mpiox_partition_rule *rule = mpiox_partition_rule_find(MPIOX_TOPIC_METHOD, cases),
                               *estimate = mpiox_partition_rule_find(MPIOX_TOPIC_ESTIMATE, cases);
    out->method = rule->method;
    out->reason = rule->reason;
    out->source = rule->source;
    if (estimate->take != MPIOX_TAKE_FASTEST || geometry->start == geometry->end)
        return;
    double least = CLEARLY * cost(facts, geometry, cases, out, rule->method, false);
    for (int i = 0; i < mpiox_partition_count(); i++) {
        const mpiox_partition_method *method = mpiox_partition_get(i);
        if (method == rule->method || (method == &mpiox_partition_even && facts->layout.lock == MPIOX_LOCK_NONE))
            continue;
        /* Parts of a block are worth it where they are clearly faster than that. */
        const double time = cost(facts, geometry, cases, out, method, false) /
                            (method == &mpiox_partition_even ? CLEARLY * CLEARLY : 1);
        if (time < least) {
            least = time;
            out->method = method;
            out->instead_of = rule->method;
            out->reason = estimate->reason;
            out->source = estimate->source;
        }
    }
}

/* Of requests that span stripes, contiguous domains that are written: is one stripe a request clearly faster? */
static bool stripes_are_faster(const mpiox_partition_facts *facts, const mpiox_geometry *geometry, uint32_t cases,
                               const mpiox_partition_decision *decision)
{
    const bool contiguous = decision->method == &mpiox_partition_aligned || decision->method == &mpiox_partition_even ||
                            decision->aggregators_use == 1;
    if (mpiox_partition_rule_find(MPIOX_TOPIC_REQUESTS, cases)->take != MPIOX_TAKE_STRIPES || !contiguous ||
        !facts->write || geometry->start == geometry->end ||
        decision->window_bytes / geometry->stripe_size <= geometry->servers)
        return false;
    return cost(facts, geometry, cases, decision, decision->method, true) <
           CLEARLY * cost(facts, geometry, cases, decision, decision->method, false);
}

int mpiox_partition_decide(const mpiox_partition_facts *facts, mpiox_partition_decision *out)
{
    mpiox_geometry geometry = geometry_of(facts, facts->aggregators);
    *out = (mpiox_partition_decision){.reason = "asked for by hint", .source = "hint", .method = facts->method};
    if (!mpiox_geometry_is_valid(&geometry) || facts->nodes < 0 || facts->aggregators_asked < 0 ||
        facts->window_asked < 0 || facts->window_asked > MPIOX_PARTITION_MAX_OFFSET)
        return MPIOX_E_ARG;
    geometry.aggregators = out->aggregators = number_of_aggregators(facts);
    const uint32_t cases = cases_of(facts, out->aggregators);
    out->window_bytes = window_of(facts, cases);
    if (out->method == NULL)
        choose_method(facts, &geometry, cases, out);
    out->aggregators_use = out->method->adjust != NULL ? out->method->adjust(&geometry) : out->aggregators;
    out->alignment_bytes = out->method == &mpiox_partition_even ? 1 : geometry.stripe_size;
    out->stripe_size_io = facts->stripe_size_io == MPIOX_PARTITION_YES;
    if (facts->stripe_size_io == MPIOX_PARTITION_OPEN)
        out->stripe_size_io = stripes_are_faster(facts, &geometry, cases, out);
    return MPIOX_OK;
}

void mpiox_partition_explain(const mpiox_partition_decision *decision, char *text, int64_t text_bytes)
{
    const size_t size = (size_t)text_bytes;
    size_t used = (size_t)snprintf(text, size, "%s", decision->reason);
    if (used < size && decision->instead_of != NULL)
        used += (size_t)snprintf(text + used, size - used, "; estimated faster than %s", decision->instead_of->name);
    if (used < size && decision->aggregators_use < decision->aggregators)
        used += (size_t)snprintf(text + used, size - used, "; %d of %d aggregators", (int)decision->aggregators_use,
                                 (int)decision->aggregators);
    if (used < size && decision->stripe_size_io)
        snprintf(text + used, size - used, "; one stripe a request");
}
