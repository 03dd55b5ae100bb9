/*
 * mpiox_auto_cost.c - an estimate of the time of a collective under a method.
 *
 * Problem.   Which method is best depends on how evenly the windows of a round lie on the servers, and on the waits for
 *            locks. A model of locking computes them, but takes as long as the access itself.
 * Algorithm. The rounds without locks are counted (mpiox_auto_rounds.h), and the waits for locks are added in closed
 *            form. Contiguous domains wait once for each server and once at each border between two domains. Parts of a
 *            stripe wait for each other's data. Domains of stripes wait for earlier owners of a lock, or at the end of
 *            a chunk; with tokens also once a round for an owner's write, and for the one manager.
 * Guarantee. Pure. Not a bound: docs/explanation/file-domains.md shows how far it is from the lock model.
 * Source.    The model of mpiio_ext.partitioning.locks.
 */
#include "mpiox_auto_cost.h"

#include <math.h>
#include <stddef.h>

#include "mpiox_partition_methods.h"

typedef struct job {
    const mpiox_auto_cost_case *c;
    const mpiox_auto_system *v;
    double servers, used, stripes, stripe, window, bytes;
    mpiox_auto_rounds rounds;
} job;

static double service(const job *j, double bytes)
{
    return mpiox_auto_service(j->v, bytes);
}

/* ---- contiguous domains ------------------------------------------------------------------------------------------ */

/* Even parts smaller than a stripe: several aggregators at each. */
static double parts_of_stripes(const job *j)
{
    const mpiox_auto_system *v = j->v;
    const double part = j->bytes / j->used, request = fmin(part, j->window), each = ceil(j->stripe / part);
    const double wait = 2 * v->round_trip + 2.25 * v->lock + service(j, request); /* for one other's data */
    double time = j->rounds.time;
    if (j->c->write && (v->server_locks || v->tokens))
        time = request / v->aggregator + fmax(time, each * wait);
    if (v->server_locks)
        time += v->round_trip + v->lock * each * ceil(j->stripes / j->servers);
    if (v->tokens)
        time += j->used * v->lock + v->round_trip;
    return time;
}

static double contiguous(const job *j, bool even)
{
    const mpiox_auto_system *v = j->v;
    const double domain = even ? j->bytes / j->used : j->stripe * ceil(j->stripes / j->used);
    const double width = fmax(1, ceil(fmin(j->window, domain) / j->stripe));
    double time = j->rounds.time;
    if (v->server_locks)
        time += fmin((double)j->rounds.rounds, fmax(1, j->servers / width)) *
                (v->round_trip + v->lock * (fmin(width, j->servers) / 4 + fmin((double)j->rounds.meet, j->used)));
    if (v->tokens)
        time += j->used * v->lock + 2 * v->round_trip;
    return time;
}

/* ---- domains of stripes ------------------------------------------------------------------------------------------ */

typedef struct deal {   /* how a method deals stripes */
    double each, round; /* stripes of the busiest aggregator, in all and in a full round */
    double rounds;
    double meet;      /* aggregators at one server at a time */
    bool interleaves; /* neighbouring stripes belong to different aggregators in every round */
    double crossing;  /* stripes that an aggregator waits for where its chunk ends */
    double visited;   /* servers of an aggregator */
} deal;

static deal deal_transpose(const job *j, double most)
{
    deal d = {.each = ceil(j->stripes / j->used), .visited = fmax(1, j->servers / j->used)};
    const bool matched = fmod(j->used, j->servers) == 0 || fmod(j->servers, j->used) == 0;
    const double rows = ceil(j->stripes / j->servers), spacing = fmax(1, floor(j->stripes / j->used));
    d.round = fmin(most, d.each);
    d.rounds = ceil(d.each / d.round);
    d.meet = j->stripes >= j->servers ? fmax(1, fmin(ceil(rows / spacing), fmin(j->used, j->stripes))) : 1;
    d.interleaves = fmod(j->stripes, j->servers) == 0 &&
                    (fmod(j->used, j->servers) == 0 ||
                     (fmod(j->stripes, j->used) == 0 && fmod(j->servers, j->used) == 0));
    if (j->stripes > j->used) {
        d.meet += fmod(j->stripes, j->servers) != 0 || !matched ? fmin(1, 2 / spacing) : 0;
        d.crossing = d.interleaves ? 0 : d.round;
    }
    return d;
}

static deal deal_groups(const job *j, double most)
{
    const double groups = floor(j->used / j->servers), part = ceil(j->stripes / groups);
    deal d = {.each = ceil(part / j->servers), .visited = 1, .interleaves = true};
    d.round = fmin(most, d.each);
    d.rounds = ceil(d.each / d.round);
    d.meet = part < j->servers ? ceil(j->stripes / j->servers) : groups;
    d.meet = fmin(d.meet, j->stripes);
    return d;
}

static deal deal_in_turn(const job *j, double most)
{
    const double divisor = (double)mpiox_auto_common_divisor((int64_t)j->servers, (int64_t)j->used);
    deal d = {.each = ceil(j->stripes / j->used), .interleaves = true};
    d.round = fmin(most, d.each);
    d.rounds = ceil(j->stripes / (j->used * d.round));
    d.meet = ceil(fmin(j->used, j->stripes) / j->servers);
    d.visited = fmin(d.each, j->servers / divisor);
    return d;
}

/* Seconds until the locks of one stripe after another are had, where not round by round. */
static double lock_waits(const job *j, const deal *d, bool in_turn, double served)
{
    const mpiox_auto_system *v = j->v;
    const double time = d->crossing * served;
    if (!j->c->write)
        return v->tokens ? j->used * v->lock + v->round_trip
                         : d->visited * (v->round_trip + v->lock * (0.25 + d->meet));
    if (v->tokens)
        return time;
    if (in_turn && fmod(j->servers, j->used) != 0) /* another has been there since */
        return time + d->each * (2 * v->round_trip + v->lock * (0.25 + 2 * d->meet));
    return time + d->visited * (v->round_trip + v->lock * (0.25 + d->meet));
}

/* Writes under tokens: the manager handles all requests of a step, one after the other, while the servers go on. */
static double dealt_tokens(const job *j, const deal *d, bool in_turn, bool transposed, double waits)
{
    const mpiox_auto_system *v = j->v;
    const double request = fmin(j->stripe, j->window), parts = ceil(j->stripe / request);
    const double served = service(j, request), sent = request / v->aggregator, turns = d->rounds * parts;
    const double first = floor((double)j->c->geometry->start / j->stripe);
    const double token = fmin(j->used, j->stripes) * v->lock / parts; /* of one request: at the manager, */
    const double asked = 2 * v->round_trip / parts;                   /* on the way */
    double wait = 0; /* and for data that another is writing; where servers have others' data meanwhile, for none */
    if (d->interleaves && (d->each > 1 || (in_turn && fmod(first, j->used) + j->stripes > j->used)) &&
        !(in_turn && d->meet > 1))
        wait = (v->request + request / fmin(v->server, v->aggregator)) / parts;
    waits -= in_turn ? 0 : wait; /* the first round does not wait */
    const double link = turns * ((d->round - 1) * (sent + asked) + served);
    const double load = j->rounds.time - turns * (v->round_trip + sent);
    return waits + turns * (v->round_trip + sent + asked + wait + (transposed ? token : 0)) +
           fmax(fmax(link, load), turns * (d->round * token + served));
}

static double dealt(const job *j, const mpiox_partition_method *method)
{
    const bool in_turn = method == &mpiox_partition_static_cyclic, transposed = method == &mpiox_partition_transpose;
    const double most = fmax(1, floor(j->window / j->stripe)), served = service(j, fmin(j->stripe, j->window));
    if (!j->v->server_locks && !j->v->tokens)
        return j->rounds.time;
    deal d;
    if (transposed)
        d = deal_transpose(j, most);
    else if (!in_turn && j->used > j->servers)
        d = deal_groups(j, most);
    else
        d = deal_in_turn(j, most);
    const double waits = lock_waits(j, &d, in_turn, served);
    return j->v->tokens && j->c->write ? dealt_tokens(j, &d, in_turn, transposed, waits) : j->rounds.time + waits;
}

bool mpiox_auto_is_contiguous(const mpiox_partition_method *method, const mpiox_geometry *geometry)
{
    const int32_t used = method->adjust != NULL ? method->adjust(geometry) : geometry->aggregators;
    return method == &mpiox_partition_even || method == &mpiox_partition_aligned || used == 1 ||
           (geometry->servers == 1 && method != &mpiox_partition_static_cyclic);
}

int mpiox_auto_cost(const mpiox_auto_cost_case *c, const mpiox_partition_method *method, bool stripe_size_io,
                    double *seconds)
{
    const mpiox_geometry *g = c->geometry;
    const bool even = method == &mpiox_partition_even;
    job j = {.c = c,
             .v = c->system,
             .servers = g->servers,
             .used = method->adjust != NULL ? method->adjust(g) : g->aggregators,
             .stripes = (double)mpiox_auto_stripes(g),
             .stripe = (double)g->stripe_size,
             .window = (double)c->window_bytes,
             .bytes = (double)(g->end - g->start)};
    const int rc = mpiox_auto_rounds_count(c, method, stripe_size_io, &j.rounds);
    if (rc != MPIOX_OK)
        return rc;
    if (even && j.bytes < j.used * j.stripe)
        *seconds = parts_of_stripes(&j);
    else if (mpiox_auto_is_contiguous(method, g))
        *seconds = contiguous(&j, even);
    else
        *seconds = dealt(&j, method);
    return MPIOX_OK;
}

double mpiox_auto_cost_of_change(const mpiox_auto_cost_case *c, const mpiox_partition_method *held, int64_t unwritten)
{
    const mpiox_geometry *g = c->geometry;
    const mpiox_auto_system *system = c->system;
    const int64_t used = held->adjust != NULL ? held->adjust(g) : g->aggregators;
    const int64_t stripes = mpiox_auto_stripes(g);
    const int64_t writers = stripes < g->servers ? stripes : g->servers; /* servers that get the written bytes */
    int64_t holders = used < stripes ? used : stripes; /* that one server, or the token manager, has to call back */
    if (system->server_locks && !mpiox_auto_is_contiguous(held, g)) {
        const int64_t share = used / mpiox_auto_common_divisor(used, g->servers); /* as s mod A and s mod S meet */
        holders = share < holders ? share : holders;
    }
    if (!system->server_locks && !system->tokens)
        return 0;
    return (double)holders * (system->round_trip + system->lock) +
           (double)unwritten / ((double)writers * system->server);
}
