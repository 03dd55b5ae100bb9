/*
 * mpiox_auto_rules.c - the rules of `auto`, as data: condition, choice, reason and source.
 *
 * Problem.   The best method depends on the lock protocol, and on how aggregators, servers and stripes match: no method
 *            is best everywhere ([SDCI], [SC08] in mpiox_partition.h).
 * Algorithm. A table, read from the top: the first matching rule of a topic counts. docs/reference/rules.md prints it,
 *            a test compares.
 * Sources.   CephFS: its documentation of file layouts. Gao: Gao, Liao and others on subfiling, ICPP 2009. MPICH 7531:
 *            that report in its issue tracker. SDCI: the project's page, text and Figure 2. SC08: Liao and Choudhary.
 *            model: the lock model of mpiio_ext.partitioning.locks. measured: docs/reference/rules.md.
 */
#include "mpiox_auto_rules.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "mpiox_partition_methods.h"

#define BIT(name) (UINT32_C(1) << MPIOX_CASE_##name)

#define RULE(of, cases, taken, why, from)                                                                              \
    .topic = MPIOX_TOPIC_##of, .when = cases, .take = taken, .reason = why, .source = from
#define AGGREGATORS(when, what, why, from) {RULE(AGGREGATORS, when, MPIOX_TAKE_##what, why, from)}
#define WINDOW(when, what, why, from) {RULE(WINDOW, when, MPIOX_TAKE_##what, why, from)}
#define REQUESTS(when, what, why, from) {RULE(REQUESTS, when, MPIOX_TAKE_##what, why, from)}
#define AGAIN(when, what, why, from) {RULE(AGAIN, when, MPIOX_TAKE_##what, why, from)}
#define METHOD(when, what, why, from) {RULE(METHOD, when, MPIOX_TAKES, why, from), .method = &mpiox_partition_##what}
#define ESTIMATE(when, what, why, from, locks) {RULE(ESTIMATE, when, MPIOX_TAKE_##what, why, from), .system = locks}

static const mpiox_auto_rule rules[] = {
    AGGREGATORS(BIT(CONTAINER), FACTOR, "a factor of the subfiles: each subfile has one aggregator", "Gao"),
    AGGREGATORS(BIT(LOCAL), TWO_A_NODE, "two use the caches of two cores", "measured"),
    AGGREGATORS(BIT(ONE_SERVER), NICS, "no stripes to match; one that has a network card of its own is not slowed",
                "measured, MPICH 7531"),
    AGGREGATORS(BIT(SERVERS_FIT), SERVERS, "a multiple of the servers, spread over the nodes' network cards", "SDCI"),
    AGGREGATORS(BIT(SERVER) | BIT(NEAR), LOWERED, "a factor of the servers: each server serves one aggregator", "SDCI"),
    AGGREGATORS(0, ALL, "as many as there are, up to the servers", "SDCI"),

    WINDOW(BIT(SERVER) | BIT(TOKEN) | BIT(UNLOCKED) | BIT(UNKNOWN) | BIT(LARGE_STRIPES), STRIPE,
           "a whole stripe a request", "SC08"),
    WINDOW(0, MEBIBYTE, "large enough for the file system, small enough for the caches", "measured"),

    METHOD(BIT(CONTAINER), static_cyclic, "subfiles are assigned in turn: each has one aggregator", "Gao"),
    METHOD(BIT(SERVER) | BIT(FEW_STRIPES), static_cyclic,
           "server locks, fewer stripes than aggregators: each stripe keeps its owner between collectives", "SDCI"),
    METHOD(BIT(SERVER) | BIT(FACTOR), static_cyclic,
           "server locks, aggregators divide servers: every server serves one aggregator", "SDCI"),
    METHOD(BIT(SERVER) | BIT(MULTIPLE), group_cyclic,
           "server locks, servers divide aggregators: one sub-region per group, one server per aggregator", "SDCI"),
    METHOD(BIT(SERVER) | BIT(NEAR), group_cyclic,
           "server locks, few aggregators too many: idle ones cost less than lock conflicts", "SDCI"),
    METHOD(BIT(SERVER), transpose,
           "server locks, aggregators and servers do not match: balanced, about one change of owner per server",
           "SDCI"),
    METHOD(BIT(TOKEN), aligned, "distributed tokens: contiguous whole blocks need one token per aggregator", "SC08"),
    METHOD(BIT(UNLOCKED), aligned, "no client locks: whole blocks, so that no cached page is shared by two aggregators",
           "SDCI"),
    METHOD(BIT(LOCAL) | BIT(FEW_STRIPES), even,
           "one page cache, fewer blocks than aggregators: equal parts keep all of them busy", "measured"),
    METHOD(BIT(LOCAL), aligned, "one page cache, no lock traffic: contiguous whole blocks", "measured"),
    METHOD(0, aligned, "unknown locking: contiguous whole blocks are safe and never share a page", "SDCI"),

    AGAIN(BIT(SERVER) | BIT(HELD), KEPT,
          "server locks: the owners before have locks and cached pages, which other owners would revoke", "SDCI"),
    AGAIN(BIT(TOKEN) | BIT(HELD), KEPT,
          "distributed tokens: the owners before have tokens and cached pages, which other owners would revoke",
          "SC08"),
    AGAIN(0, ANEW, "no process has a lock that others would wait for", "model"),

    ESTIMATE(BIT(CONTAINER), RULE, "other domains would have aggregators share subfiles", "Gao", NULL),
    ESTIMATE(BIT(HASHED), RULE, "which server has which stripe is unknown", "CephFS", NULL),
    ESTIMATE(BIT(UNLOCKED) | BIT(ONE_SERVER), RULE, "no stripes to match", "SDCI", &mpiox_auto_unlocked),
    ESTIMATE(BIT(SERVER), FASTEST, "server locks: least time by busiest servers, links and lock requests", "model",
             &mpiox_auto_lustre),
    ESTIMATE(BIT(TOKEN), FASTEST, "distributed tokens: least time by busiest servers, links and token requests",
             "model", &mpiox_auto_gpfs),
    ESTIMATE(BIT(UNLOCKED), FASTEST,
             "no client locks: least time by busiest servers and links, but no parts of a block", "model",
             &mpiox_auto_unlocked),
    ESTIMATE(0, RULE, "servers are unknown", "measured", NULL),

    REQUESTS(BIT(HASHED), WHOLE, "which server has which stripe is unknown", "CephFS"),
    REQUESTS(BIT(SERVER) | BIT(TOKEN) | BIT(UNLOCKED), STRIPES, "one stripe is served while the next is on its way",
             "model"),
    REQUESTS(0, WHOLE, "as large as the window", "measured"),
};

#define RULES ((int)(sizeof rules / sizeof rules[0]))

static const char *const topic_names[MPIOX_TOPICS] = {"aggregators", "window",   "method",
                                                      "again",       "estimate", "requests"};
static const char *const take_names[MPIOX_TAKES] = {
    "two a node",
    "two a node, or as many as it has network cards",
    "S, doubled as long as each has a node, or a network card of a node, of its own",
    "A, lowered to a factor of S",
    "the largest factor of S that is A at most",
    "A",
    "1 MiB",
    "a stripe, 16 MiB at most",
    "whole windows",
    "writes: stripe-size I/O, if 5 % faster",
    "the rule's method",
    ("the method of the collective before in place of the rule's; others are charged for revoked locks (message, "
     "answer and lock for each aggregator), and for writing what the method before has cached"),
    "the rule's method, at no charge",
    "the method of the lowest estimated time, if 5 % below that of the rule's",
};

#define CASE_QUESTION(name, question, text) MPIOX_QUESTION_##question,
#define CASE_TEXT(name, question, text) text,
static const mpiox_auto_question questions[MPIOX_CASES] = {MPIOX_AUTO_CASES(CASE_QUESTION)};
static const char *const case_texts[MPIOX_CASES] = {MPIOX_AUTO_CASES(CASE_TEXT)};

const mpiox_auto_rule *mpiox_auto_rule_find(mpiox_auto_topic topic, uint32_t cases)
{
    uint32_t asked[MPIOX_QUESTIONS] = {0}; /* the cases of each question */
    for (int i = 0; i < MPIOX_CASES; i++)
        asked[questions[i]] |= UINT32_C(1) << i;
    for (int i = 0; i < RULES; i++) {
        const uint32_t when = rules[i].when;
        bool holds = rules[i].topic == topic;
        for (int q = 0; holds && q < MPIOX_QUESTIONS; q++)
            holds = (when & asked[q]) == 0 || (when & asked[q] & cases) != 0;
        if (holds)
            return &rules[i];
    }
    return NULL;
}

const char *mpiox_auto_case_text(mpiox_auto_case which)
{
    return case_texts[which];
}

int mpiox_auto_rule_count(void)
{
    return RULES;
}

/* "locks by each server, A divides S or S divides A" */
static void describe_when(uint32_t when, char *text, size_t text_bytes)
{
    size_t used = 0;
    int last = -1;
    text[0] = '\0';
    for (int i = 0; i < MPIOX_CASES; i++) {
        if (!(when >> i & 1))
            continue;
        const char *join = last < 0 ? "" : questions[last] == questions[i] ? " or " : "; ";
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", join, case_texts[i]);
        if (used >= text_bytes)
            return;
        last = i;
    }
    if (last < 0)
        snprintf(text, text_bytes, "otherwise");
}

/* The numbers of a rule that has some. */
static void describe_numbers(const mpiox_auto_rule *rule, char *text, size_t text_bytes)
{
    const mpiox_auto_system *system = rule->system;
    if (rule->take == MPIOX_TAKE_FASTEST)
        snprintf(text, text_bytes,
                 "; message and answer %g us, lock %g us, request %g us, server %g MB/s, aggregator %g MB/s",
                 1e6 * system->round_trip, 1e6 * system->lock, 1e6 * system->request, system->server / 1e6,
                 system->aggregator / 1e6);
}

int mpiox_auto_rule_describe(int index, mpiox_auto_rule_text *out)
{
    if (index < 0 || index >= RULES)
        return MPIOX_E_ARG;
    const mpiox_auto_rule *rule = &rules[index];
    *out = (mpiox_auto_rule_text){.reason = rule->reason, .source = rule->source};
    snprintf(out->topic, sizeof out->topic, "%s", topic_names[rule->topic]);
    snprintf(out->takes, sizeof out->takes, "%s", rule->method != NULL ? rule->method->name : take_names[rule->take]);
    describe_when(rule->when, out->when, sizeof out->when);
    describe_numbers(rule, out->takes + strlen(out->takes), sizeof out->takes - strlen(out->takes));
    return MPIOX_OK;
}
