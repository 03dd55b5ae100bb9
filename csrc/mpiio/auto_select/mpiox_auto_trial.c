/*
 * mpiox_auto_trial.c - what the lock model says of a few candidates, for the price of a few rounds.
 *
 * Problem.    The closed-form estimate errs by more than 10 % where a region's ends cut stripes, rounds are few, or
 *             tokens move. The lock model does not, by definition, but its work grows with the region.
 * Algorithm.  The budget is shared out evenly among the candidates; what one does not need goes to those behind it.
 *             Where it would end in one of the first rounds, which say little about the rest, a larger one counts. A
 *             candidate's run ends behind the round in which its share is used up. The rest is extrapolated from the
 *             second half of what was run, which is without most first locks: once by the bytes that are left, once by
 *             the rounds. The former is too low where few aggregators have work in the last rounds, the latter too high
 *             where first or last rounds are short; their geometric mean is near.
 * Guarantee.  Regions within the budget: the times of mpiio_ext.partitioning.locks.simulate(), exactly.
 */
#include "mpiox_auto_trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_lock_model.h"

/* What setting the model up costs, in data requests: once, and for so many aggregators or servers one. */
#define SET_UP_REQUESTS 64
#define SET_UP_PARTIES 4

#define FEW_ROUNDS 6                  /* fewer say too little about the rest */
#define MOST (INT64_C(1) << 40)       /* more than any budget */
#define MOST_PAIRS (INT64_C(1) << 28) /* of aggregator and server: the model has a bit for each, 32 MiB */

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t set_up(const mpiox_geometry *geometry)
{
    return SET_UP_REQUESTS + ((int64_t)geometry->aggregators + geometry->servers) / SET_UP_PARTIES;
}

/* The data requests, at most, of the first few rounds, or of all if that is less. A window of a contiguous domain may
 * begin and end inside a stripe. */
static int64_t few_rounds(const mpiox_auto_cost_case *c, const mpiox_partition_method *method)
{
    const mpiox_geometry *g = c->geometry;
    const int64_t used = method->adjust != NULL ? method->adjust(g) : g->aggregators;
    const int64_t stripes = mpiox_auto_stripes(g);
    const bool cut = c->window_bytes < g->stripe_size;
    const int64_t parts = cut ? (g->stripe_size - 1) / c->window_bytes + 1 : 1;
    const int64_t each = cut ? parts : c->window_bytes / g->stripe_size + 1; /* what a round is to whole stripes */
    if (parts > MOST / stripes || each > MOST / used || (int64_t)g->aggregators * g->servers > MOST_PAIRS)
        return MOST;
    return set_up(g) + lesser(FEW_ROUNDS * each * used, stripes * parts + used);
}

static double extrapolated(const mpiox_geometry *geometry, const mpiox_lock_model_outcome *o)
{
    const double region = (double)(geometry->end - geometry->start), time = o->time - o->half.time;
    const double bytes = (double)(o->bytes - o->half.bytes), rounds = (double)(o->rounds - o->half.rounds);
    if (o->rounds == o->rounds_wanted)
        return o->time;
    const double by_bytes = o->time + (region - (double)o->bytes) * time / bytes;
    const double by_rounds = o->time + (double)(o->rounds_wanted - o->rounds) * time / rounds;
    return sqrt(by_bytes * by_rounds);
}

int64_t mpiox_auto_first_rounds(const mpiox_auto_cost_case *c, const mpiox_auto_candidate *candidates, int n)
{
    int64_t requests = 0;
    for (int i = 0; i < n; i++)
        requests += few_rounds(c, candidates[i].method);
    return requests;
}

/* Leave out candidates from the end until the first rounds of the others, *few requests, are within the budget. */
static int cut(const mpiox_auto_cost_case *c, int64_t most, mpiox_auto_candidate *candidates, int n, int64_t *few)
{
    *few = mpiox_auto_first_rounds(c, candidates, n);
    while (n > 1 && *few > most) {
        int out = n - 1;
        while (out > 0 && candidates[out].keep)
            out--;
        if (out == 0) /* the fastest one is compared with what is kept, or with nothing */
            return 1;
        const mpiox_auto_candidate left = candidates[out];
        *few -= few_rounds(c, left.method);
        n--;
        memmove(&candidates[out], &candidates[out + 1], (size_t)(n - out) * sizeof *candidates);
        candidates[n] = left;
    }
    return n;
}

int mpiox_auto_try(const mpiox_auto_cost_case *c, int64_t requests, int64_t most, mpiox_auto_candidate *candidates,
                   int n)
{
    const mpiox_geometry *g = c->geometry;
    int64_t few;
    n = cut(c, most, candidates, n, &few);
    if (n <= 1)
        return n;
    requests = requests > few ? requests : few;
    mpiox_lock_model_outcome outcome = {.servers = malloc((size_t)g->servers * sizeof *outcome.servers)};
    if (outcome.servers == NULL)
        return MPIOX_E_NOMEM;
    int rc = MPIOX_OK;
    for (int i = 0; rc == MPIOX_OK && i < n; i++) {
        const int64_t share = requests / (n - i) - set_up(g);
        const mpiox_lock_model_run run = {.window_bytes = c->window_bytes,
                                          .stripe_size_io = candidates[i].stripe_size_io,
                                          .reads = !c->write,
                                          .synchronise = true,
                                          .collectives = 1,
                                          .requests_max = share > 1 ? share : 1};
        rc = mpiox_lock_model_simulate(candidates[i].method, g, c->system, &run, &outcome);
        candidates[i].time = candidates[i].change + extrapolated(g, &outcome);
        candidates[i].whole = outcome.rounds == outcome.rounds_wanted;
        requests -= outcome.data_requests + set_up(g);
    }
    free(outcome.servers);
    return rc == MPIOX_OK ? n : rc;
}
