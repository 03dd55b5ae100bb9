/*
 * mpiox_auto_select.c - from facts to a decision, by the rules of mpiox_auto_rules.c.
 *
 * Problem.   There are four decisions: the number of aggregators, the size of their windows, the file domains, and
 *            whether a request may span stripes. The first two are settled when a file is opened, the others for each
 *            collective.
 * Algorithm. The facts answer the questions of the rules; for each topic the first matching rule counts. The order of
 *            the topics is such that a decision needs only earlier ones. Values of hints are never decided. Method and
 *            requests of a collective are decided together, by the lowest estimate (mpiox_auto_cost.h). The lock model
 *            itself is not run: docs/explanation/file-domains.md shows its gain and its cost.
 * Guarantee. Pure: the same facts, the same decision, on every rank. Two equal regions whose distance is a multiple of
 *            the period after which all facts repeat are decided alike.
 */
#include <stddef.h>

#include "mpiox_auto_select.h"
#include "mpiox_partition_methods.h"
#include "mpiox_auto_cost.h"
#include "mpiox_auto_rules.h"
#include "mpiox_integer.h"

/* One in so many aggregators may idle for the sake of a number that matches the servers. */
#define IDLE_TOLERATED 8

/* A method is clearly faster if it takes at most this share of the other's time. */
#define CLEARLY 0.95

/* With more servers and aggregators than these an estimate would take milliseconds: the rules alone decide. */
#define MOST_PARTIES (INT64_C(1) << 20)

#define COUNT(name) +1
enum { MOST_CANDIDATES = 2 * (MPIOX_PARTITION_METHODS(COUNT)) }; /* each method, with stripe-size I/O and without */

#define MEBIBYTE (INT64_C(1) << 20)
#define LARGEST_WINDOW (16 * MEBIBYTE)

static mpiox_geometry geometry_of(const mpiox_auto_facts *facts, int32_t aggregators)
{
    return (mpiox_geometry){.start = facts->start,
                            .end = facts->end,
                            .stripe_size = facts->layout.stripe_size,
                            .servers = facts->layout.servers,
                            .aggregators = aggregators};
}

static mpiox_auto_case locks_of(const mpiox_layout *layout)
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

static mpiox_auto_case match_of(const mpiox_geometry *geometry)
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
static uint32_t cases_of(const mpiox_auto_facts *facts, int32_t aggregators)
{
    const mpiox_geometry g = geometry_of(facts, aggregators);
    const mpiox_layout *layout = &facts->layout;
    int64_t stripes = 0;
    if (g.start < g.end)
        stripes = mpiox_auto_stripes(&g);
    const bool large = layout->stripe_known && layout->stripe_size > MEBIBYTE;
    const mpiox_auto_case answers[] = {
        locks_of(layout),
        g.servers == 1             ? MPIOX_CASE_ONE_SERVER
        : g.servers <= aggregators ? MPIOX_CASE_SERVERS_FIT
                                   : MPIOX_CASE_MORE_SERVERS,
        match_of(&g),
        stripes < aggregators ? MPIOX_CASE_FEW_STRIPES : MPIOX_CASE_ENOUGH_STRIPES,
        large ? MPIOX_CASE_LARGE_STRIPES : MPIOX_CASE_OTHER_STRIPES,
        layout->hashed ? MPIOX_CASE_HASHED : MPIOX_CASE_ROUND_ROBIN,
        facts->held != NULL ? MPIOX_CASE_HELD : MPIOX_CASE_FIRST,
        layout->container ? MPIOX_CASE_CONTAINER : MPIOX_CASE_ONE_FILE,
    };
    uint32_t cases = 0;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        cases |= UINT32_C(1) << answers[i];
    return cases;
}

/* Places on which no two aggregators share a network card. */
static int64_t cards_of(const mpiox_auto_facts *facts)
{
    return (int64_t)facts->nodes * (facts->nics > 1 ? facts->nics : 1);
}

/* As many as the servers, doubled as long as every aggregator has a card of its own. */
static int64_t multiple_of_servers(const mpiox_auto_facts *facts)
{
    int64_t number = facts->layout.servers;
    while (number <= cards_of(facts) / 2)
        number *= 2;
    return number;
}

static int32_t number_of_aggregators(const mpiox_auto_facts *facts)
{
    const int32_t most = facts->aggregators;
    if (facts->nodes == 0)
        return most;
    int64_t wanted = facts->aggregators_asked;
    if (wanted == 0) {
        const int32_t servers = facts->layout.servers;
        const mpiox_geometry offered = geometry_of(facts, most),
                             bounded = geometry_of(facts, most < servers ? most : servers);
        switch (mpiox_auto_rule_find(MPIOX_TOPIC_AGGREGATORS, cases_of(facts, most))->take) {
        case MPIOX_TAKE_TWO_A_NODE:
            wanted = 2 * (int64_t)facts->nodes;
            break;
        case MPIOX_TAKE_NICS:
            wanted = facts->nics > 2 ? cards_of(facts) : 2 * (int64_t)facts->nodes;
            break;
        case MPIOX_TAKE_SERVERS:
            wanted = multiple_of_servers(facts);
            break;
        case MPIOX_TAKE_LOWERED:
            wanted = mpiox_partition_group_cyclic.adjust(&offered);
            break;
        case MPIOX_TAKE_FACTOR:
            wanted = mpiox_partition_group_cyclic.adjust(&bounded);
            break;
        default:
            wanted = most;
        }
    }
    return wanted < most ? (int32_t)wanted : most;
}

static int64_t window_of(const mpiox_auto_facts *facts, uint32_t cases)
{
    if (facts->window_asked > 0)
        return facts->window_asked;
    if (mpiox_auto_rule_find(MPIOX_TOPIC_WINDOW, cases)->take == MPIOX_TAKE_MEBIBYTE)
        return MEBIBYTE;
    return facts->layout.stripe_size < LARGEST_WINDOW ? facts->layout.stripe_size : LARGEST_WINDOW;
}

/* The least common multiple, or 0 where that is beyond the limits of offsets. */
static int64_t common_multiple(int64_t a, int64_t b)
{
    const int64_t times = b / mpiox_auto_common_divisor(a, b);
    return a > MPIOX_PARTITION_MAX_OFFSET / times ? 0 : a * times;
}

/* The region as far down in the file as it is the same for servers, cyclic domains and windows. */
static void move_down(mpiox_geometry *geometry, int64_t window_bytes)
{
    const int64_t stripes = common_multiple(geometry->servers, geometry->aggregators);
    if (stripes > MPIOX_PARTITION_MAX_OFFSET / geometry->stripe_size)
        return;
    const int64_t period = common_multiple(stripes * geometry->stripe_size, window_bytes);
    const int64_t by = period > 0 ? geometry->start / period * period : 0;
    geometry->start -= by;
    geometry->end -= by;
}

typedef struct candidate {
    const mpiox_partition_method *method;
    bool stripe_size_io;
    bool keep;   /* the rules' way, which the others are compared with */
    double time; /* seconds, including the cost of a change of owners */
} candidate;

typedef struct choice { /* of a collective's file domains and requests */
    const mpiox_auto_facts *facts;
    mpiox_geometry geometry;
    const mpiox_auto_rule *rule, *again, *estimate, *requests;
    const mpiox_partition_method *preferred;
    bool comparable; /* other ways have times to compare */
    double change;   /* from the owners before to others */
    mpiox_auto_cost_case cost;
    candidate candidates[MOST_CANDIDATES];
    int n;
} choice;

/* May this method be chosen, and does it differ from the other candidates? Parts of a block belong to several clients'
 * caches, which is wrong without locks. */
static bool is_open(const choice *c, const mpiox_partition_method *method)
{
    const mpiox_geometry *g = &c->geometry;
    if (method == c->preferred)
        return true;
    if (c->facts->method != NULL || !c->comparable || c->estimate->take != MPIOX_TAKE_FASTEST || g->aggregators == 1)
        return false;
    if (method == &mpiox_partition_group_cyclic) /* with all of no more aggregators than servers: static-cyclic */
        return g->aggregators > g->servers || method->adjust(g) < g->aggregators;
    return method != &mpiox_partition_even || c->facts->layout.lock != MPIOX_LOCK_NONE;
}

/* May requests of one stripe each pay? Only contiguous writes with a window that has several stripes on one server,
 * which would be one request. */
static bool stripes_are_open(const choice *c, const mpiox_partition_method *method)
{
    return c->comparable && c->facts->stripe_size_io == MPIOX_AUTO_OPEN && c->requests->take == MPIOX_TAKE_STRIPES &&
           c->facts->write && c->facts->layout.stripe_known && mpiox_auto_is_contiguous(method, &c->geometry) &&
           c->cost.window_bytes / c->geometry.stripe_size > c->geometry.servers;
}

static void add_candidate(choice *c, const mpiox_partition_method *method, bool stripe_size_io)
{
    const bool whole = !stripe_size_io || c->facts->stripe_size_io == MPIOX_AUTO_YES;
    c->candidates[c->n++] = (candidate){
        .method = method, .stripe_size_io = stripe_size_io, .keep = method == c->preferred && whole};
}

static void find_candidates(choice *c)
{
    for (int i = 0; i < mpiox_partition_count(); i++) {
        const mpiox_partition_method *method = mpiox_partition_get(i);
        if (!is_open(c, method))
            continue;
        add_candidate(c, method, c->facts->stripe_size_io == MPIOX_AUTO_YES);
        if (stripes_are_open(c, method))
            add_candidate(c, method, true);
    }
}

/* Times, where there is something to compare. 0 or MPIOX_E_NOMEM. */
static int estimate(choice *c)
{
    int rc = MPIOX_OK;
    for (int i = 0; rc == MPIOX_OK && c->n > 1 && i < c->n; i++) {
        candidate *this = &c->candidates[i];
        rc = mpiox_auto_cost(&c->cost, this->method, this->stripe_size_io, &this->time);
        this->time += this->method == c->preferred ? 0 : c->change;
    }
    return rc;
}

/* The fastest candidate. But whole blocks are preferred unless they are clearly slower, and the rule's method, with
 * whole requests or else of one stripe each, unless it is clearly slower than these: a small difference in a model of
 * another machine may be reversed here. */
static const candidate *best_of(const choice *c)
{
    const candidate *best = &c->candidates[0], *blocks = NULL;
    for (int i = 0; i < c->n; i++) {
        const candidate *this = &c->candidates[i];
        best = this->time < best->time ? this : best;
        if (this->method != &mpiox_partition_even && (blocks == NULL || this->time < blocks->time))
            blocks = this;
    }
    if (blocks != NULL && CLEARLY * blocks->time <= best->time)
        best = blocks;
    for (int i = 0; i < c->n; i++)
        if (c->candidates[i].keep && CLEARLY * c->candidates[i].time <= best->time)
            return &c->candidates[i];
    for (int i = 0; i < c->n; i++)
        if (c->candidates[i].method == c->preferred && CLEARLY * c->candidates[i].time <= best->time)
            return &c->candidates[i];
    return best;
}

/* The alternative to the best one: that of the rules, or else the fastest other method whose time has the same origin;
 * NULL: there is none. */
static const candidate *other_of(const choice *c, const candidate *best)
{
    const candidate *other = NULL;
    for (int i = 0; i < c->n; i++) {
        const candidate *this = &c->candidates[i];
        if (this->method == best->method)
            continue;
        if (this->method == c->preferred)
            return this;
        other = other == NULL || this->time < other->time ? this : other;
    }
    return other;
}

static void take(const choice *c, const candidate *best, mpiox_auto_decision *out)
{
    const candidate *other = other_of(c, best);
    out->method = best->method;
    out->stripe_size_io = best->stripe_size_io;
    out->changes = c->change > 0;
    out->time = best->time;
    if (other != NULL) {
        out->other = other->method;
        out->other_time = other->time;
    }
    if (best->method != c->preferred) {
        out->instead_of = c->preferred;
        out->instead_of_held = c->facts->method == NULL && c->again->take == MPIOX_TAKE_KEPT;
    }
    if (c->facts->method != NULL || best->method == c->rule->method)
        return;
    out->reason = out->instead_of == NULL ? c->again->reason : c->estimate->reason;
    out->source = out->instead_of == NULL ? c->again->source : c->estimate->source;
}

/* Domains and requests of a collective: the rules' method, or a clearly faster one. */
static int choose(const mpiox_auto_facts *facts, const mpiox_geometry *geometry, uint32_t cases,
                  mpiox_auto_decision *out)
{
    choice c = {.facts = facts,
                .geometry = *geometry,
                .rule = mpiox_auto_rule_find(MPIOX_TOPIC_METHOD, cases),
                .again = mpiox_auto_rule_find(MPIOX_TOPIC_AGAIN, cases),
                .estimate = mpiox_auto_rule_find(MPIOX_TOPIC_ESTIMATE, cases),
                .requests = mpiox_auto_rule_find(MPIOX_TOPIC_REQUESTS, cases)};
    const bool kept = facts->method == NULL && c.again->take == MPIOX_TAKE_KEPT && geometry->start < geometry->end;
    c.cost = (mpiox_auto_cost_case){.geometry = &c.geometry,
                                    .system = c.estimate->system,
                                    .window_bytes = out->window_bytes,
                                    .write = facts->write};
    c.preferred = facts->method != NULL ? facts->method : kept ? facts->held : c.rule->method;
    out->method = c.preferred;
    out->stripe_size_io = facts->stripe_size_io == MPIOX_AUTO_YES;
    if (facts->method == NULL) {
        out->reason = c.rule->reason;
        out->source = c.rule->source;
    }
    if (geometry->start == geometry->end)
        return MPIOX_OK;
    move_down(&c.geometry, out->window_bytes);
    c.comparable = c.cost.system != NULL && (int64_t)geometry->aggregators + geometry->servers <= MOST_PARTIES;
    if (kept && c.cost.system != NULL)
        c.change = mpiox_auto_cost_of_change(&c.cost, facts->held, facts->held_bytes);
    find_candidates(&c);
    if (estimate(&c) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    take(&c, best_of(&c), out);
    return MPIOX_OK;
}

int mpiox_auto_decide(const mpiox_auto_facts *facts, mpiox_auto_decision *out)
{
    mpiox_geometry geometry = geometry_of(facts, facts->aggregators);
    *out = (mpiox_auto_decision){.reason = "requested by hint",
                                 .source = "hint",
                                 .layout = facts->layout,
                                 .locks = mpiox_auto_case_text(locks_of(&facts->layout))};
    if (!mpiox_geometry_is_valid(&geometry) || facts->nodes < 0 || facts->nics < 0 || facts->aggregators_asked < 0 ||
        facts->window_asked < 0 || facts->window_asked > MPIOX_PARTITION_MAX_OFFSET || facts->held_bytes < 0)
        return MPIOX_E_ARG;
    geometry.aggregators = out->aggregators = number_of_aggregators(facts);
    const uint32_t cases = cases_of(facts, out->aggregators);
    out->window_bytes = window_of(facts, cases);
    const int code = choose(facts, &geometry, cases, out);
    if (code != MPIOX_OK)
        return code;
    out->aggregators_use = out->method->adjust != NULL ? out->method->adjust(&geometry) : out->aggregators;
    out->alignment_bytes = out->method == &mpiox_partition_even ? 1 : geometry.stripe_size;
    return MPIOX_OK;
}

static bool same_facts(const mpiox_auto_facts *a, const mpiox_auto_facts *b)
{
    return a->start == b->start && a->end == b->end && a->write == b->write && a->aggregators == b->aggregators &&
           a->nodes == b->nodes && a->nics == b->nics && a->aggregators_asked == b->aggregators_asked &&
           a->window_asked == b->window_asked && a->method == b->method && a->stripe_size_io == b->stripe_size_io &&
           a->layout.lock == b->layout.lock && a->held == b->held && a->held_bytes == b->held_bytes &&
           a->layout.coherent == b->layout.coherent && a->layout.stripe_known == b->layout.stripe_known &&
           a->layout.stripe_size == b->layout.stripe_size && a->layout.servers == b->layout.servers;
}

int mpiox_auto_decide_again(mpiox_auto_memory *memory, const mpiox_auto_facts *facts, mpiox_auto_decision *out)
{
    mpiox_auto_facts asked = *facts;
    mpiox_geometry geometry = geometry_of(facts, facts->aggregators);
    if (mpiox_geometry_is_valid(&geometry) && facts->nodes == 0 && facts->window_asked > 0) {
        move_down(&geometry, facts->window_asked);
        asked.start = geometry.start;
        asked.end = geometry.end;
    }
    for (int32_t i = 0; i < memory->n; i++)
        if (same_facts(&memory->facts[i], &asked)) {
            *out = memory->decisions[i];
            return MPIOX_OK;
        }
    const int code = mpiox_auto_decide(&asked, out);
    if (code != MPIOX_OK)
        return code;
    const int32_t at = memory->n < MPIOX_AUTO_KEPT ? memory->n++ : memory->oldest;
    memory->oldest = (at + 1) % MPIOX_AUTO_KEPT;
    memory->facts[at] = asked;
    memory->decisions[at] = *out;
    return MPIOX_OK;
}

void mpiox_auto_hold(mpiox_auto_held *held, const mpiox_auto_facts *facts, const mpiox_partition_method *method)
{
    if (held->method != method)
        *held = (mpiox_auto_held){.method = method};
    if (!facts->write || facts->start >= facts->end)
        return;
    if (held->start < held->end) {
        held->start = mpiox_min(held->start, facts->start);
        held->end = mpiox_max(held->end, facts->end);
    } else {
        held->start = facts->start;
        held->end = facts->end;
    }
}

void mpiox_auto_set_held(const mpiox_auto_held *held, mpiox_auto_facts *facts)
{
    facts->held = held->method;
    facts->held_bytes = mpiox_max(0, mpiox_min(held->end, facts->end) - mpiox_max(held->start, facts->start));
}
