/*
 * mpiox_auto_cost.c - how long a collective takes under a method, estimated.
 *
 * Problem.    Which method is best depends on how evenly the windows of a round lie on the servers, more than on locks
 *             wherever stripes are large; that is a matter of the numbers' divisors, so rules alone miss it.
 * Algorithm.  Aggregators work in rounds and wait for each other. A round takes as long as its busiest server: the
 *             stripes on it times the service of one; to which come what an aggregator's own link needs, and waiting
 *             for locks. Cyclic domains: the busiest server's stripes by division. Contiguous domains: windows begin
 *             every L stripes round a circle of S servers; how many of A cover one server is bounded by means of the
 *             convergents of L / S (points of a rotation lie in as many clusters as the denominator says). Locks: one
 *             wait for each stripe where owners interleave, one for each place where two domains meet.
 * Guarantee.  Pure arithmetic in O(log S). Median error against the lock model below 5 %, but not a bound.
 * Source.     The model of mpiio_ext.partitioning.locks; three-distance theorem (Sos, 1958) for the clusters.
 */
#include "mpiox_auto_cost.h"

#include <math.h>
#include <stddef.h>

#include "mpiox_partition_methods.h"

#define TINY 1e-9
#define CONVERGENTS 24 /* more than any 24-bit denominator has, as a rule; fewer only make the bound wider */

typedef struct speeds {        /* of a file system */
    double round_trip;         /* of a message, seconds */
    double lock;               /* to handle one lock request, at the server or token manager, seconds */
    double request;            /* of a server for one request on the wire, besides the data, seconds */
    double server, aggregator; /* bytes a second of one */
    double wire;               /* bytes of the largest request */
} speeds;

typedef struct job {
    const mpiox_auto_cost_case *c;
    const speeds *v;
    double servers, used, stripes, stripe, window, bytes, start;
    double last; /* share of the last stripe that belongs to the region */
    bool server_locks, tokens;
} job;

static double service(const job *j, double bytes)
{
    return j->v->request * ceil(bytes / j->v->wire) + bytes / j->v->server;
}

/* ---- contiguous domains ------------------------------------------------------------------------------------------ */

/* How many of `points` arcs of `width` stripes, one every `step` stripes round the servers, cover one at most. */
static double covering(double step, double servers, double points, double width)
{
    const double arc = width / servers, theta = fmod(step, servers) / servers;
    double x = theta, best = points, p = 1, p_before = 0, q = 0, q_before = 1;
    for (int i = 0; i < CONVERGENTS; i++) {
        const double a = floor(x), p_next = a * p + p_before, q_next = a * q + q_before;
        p_before = p;
        q_before = q;
        p = p_next;
        q = q_next;
        double distance = fabs(q * theta - p);
        distance = distance < TINY ? 0 : distance;
        double each = ceil(points / q); /* of a cluster, in one arc */
        if (distance > 0 && ceil(arc / distance - TINY) < each)
            each = ceil(arc / distance - TINY);
        const double clusters = ceil(arc * q + points * distance - TINY);
        best = fmin(best, fmax(1, clusters) * each);
        if (distance == 0 || q >= points || x - a < TINY)
            break;
        x = 1 / (x - a);
    }
    return fmax(best, ceil(points * arc - TINY));
}

/* Even parts smaller than a stripe: several aggregators at each. */
static double parts_of_stripes(const job *j)
{
    const speeds *v = j->v;
    const bool write = j->c->write, locks = j->server_locks || j->tokens;
    const double part = j->bytes / j->used, request = fmin(part, j->window), whole = floor(part);
    const bool nested = (j->stripes == 1 && j->window >= j->stripe) ||
                        (part == whole && fmod(j->stripe, part) == 0 && fmod(j->start, part) == 0);
    const double each = ceil(j->stripe / part) + !nested, rows = ceil(j->stripes / j->servers);
    const double wait = 2 * v->round_trip + 2.25 * v->lock + service(j, request); /* for one other's data */
    double load = rows * (each * v->request + j->stripe / v->server);
    double time = (ceil(part / j->window) + !nested) * v->round_trip;
    if (!nested) /* cut windows: what one round leaves over is a round of its own */
        load *= 1 + part / j->stripe;
    if (!write)
        time += fmax(part / v->aggregator, load);
    else if (nested && locks)
        time += request / v->aggregator + fmax(load, each * wait);
    else
        time += request / v->aggregator + load + (locks ? (each - 1) * wait : 0);
    if (j->server_locks)
        time += v->round_trip + v->lock * each * rows;
    if (j->tokens)
        time += j->used * v->lock + v->round_trip;
    return time;
}

/* Rounds of the busiest aggregator with a contiguous domain. */
static double contiguous_rounds(const job *j, double domain, bool same)
{
    const bool starts = fmod(j->start, j->window) == 0;
    if (j->used == 1)
        return ceil((fmod(j->start, j->window) + j->bytes) / j->window);
    if (same && starts && fmod(domain, j->window) == 0)
        return domain / j->window;
    if (same && starts && fmod(j->window, domain) == 0)
        return 1;
    return ceil(domain / j->window) + 1; /* windows are cut at multiples: the first and the last are short */
}

/* How many domains' windows of `width` stripes, fewer than servers, are at one server at most. Where domains are nearly
 * whole numbers of stripes, rounding moves those behind one place by one stripe: two rotations, of which both count. */
static double meeting(const job *j, bool even, double width)
{
    const double length = j->bytes / j->used / j->stripe, moved = j->used * (length - floor(length));
    const double first = fmod(j->start, j->stripe) / j->stripe;
    if (j->used == 1)
        return 1;
    if ((even ? first + moved >= 1 : moved >= 0.5) && moved < 1.5) {
        const double before = ceil(fmin(j->used - 1, j->used * (even ? 1 - first : 0.5) / moved)), step = floor(length);
        return covering(step, j->servers, before, width) + covering(step, j->servers, j->used - before, width);
    }
    return covering(moved < 1.5 ? floor(length) : length, j->servers, j->used, width);
}

/* Of the rounds the first and last are short: as many whole ones take as long. Where all domains are cut at nearly the
 * same places, what is left of one round is missing in another; else both may be long for somebody. */
static double full_rounds(const job *j, bool even, double domain, double window, double rounds)
{
    const bool cut = even || fmod(j->stripe, j->window) != 0;
    const double rest = cut ? fmod(even ? domain : j->stripes / j->used * j->stripe, j->window) : 0;
    const double apart = j->used * fmin(rest, j->window - rest) / j->window, full = domain / window;
    if (rounds <= full)
        return rounds;
    return apart < 0.5 ? full + apart : full + (rounds - full) / 2;
}

static double contiguous(const job *j, bool even, bool stripe_size_io)
{
    const speeds *v = j->v;
    const bool same = fmod(j->bytes, j->used) == 0 && (even || fmod(j->stripes, j->used) == 0);
    const double domain = even ? j->bytes / j->used : j->stripe * ceil(j->stripes / j->used);
    const double rounds = contiguous_rounds(j, domain, same), window = fmin(j->window, domain);
    const double width = fmax(1, ceil(window / j->stripe - TINY)), rest = fmod(width, j->servers);
    double meet = j->used * floor(width / j->servers);
    if (rest > 0)
        meet += meeting(j, even, rest);
    const double request = fmin(j->stripe, window), served = meet * service(j, request);
    const double sent = window / v->aggregator, one = request / v->aggregator;
    double round = v->round_trip + sent + served; /* windows of a round begin at the same servers */
    if (!j->c->write)
        round = v->round_trip + fmax(sent, served);
    else if (stripe_size_io) /* a stripe is served while the next one is sent */
        round = v->round_trip + one + fmax(sent - one + service(j, request), served);
    double time = full_rounds(j, even, domain, window, rounds) * round;
    if (j->server_locks)
        time += fmin(rounds, fmax(1, j->servers / width)) *
                (v->round_trip + v->lock * (fmin(width, j->servers) / 4 + fmin(meet, j->used)));
    if (j->tokens)
        time += j->used * v->lock + 2 * v->round_trip + (even && j->c->write ? service(j, request) : 0);
    return time;
}

/* ---- domains of stripes ------------------------------------------------------------------------------------------ */

typedef struct deal {   /* how a method deals stripes */
    double each, round; /* stripes of the busiest aggregator, in all and in a full round */
    double rounds;
    double load;      /* stripes on the busiest server, summed over the rounds */
    double meet;      /* aggregators at one server at a time */
    bool interleaves; /* neighbouring stripes belong to different aggregators in every round */
    double crossing;  /* stripes that an aggregator waits for where its chunk ends */
    double visited;   /* servers of an aggregator */
} deal;

static double common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return (double)a;
}

static deal deal_transpose(const job *j, double most)
{
    deal d = {.each = ceil(j->stripes / j->used), .visited = fmax(1, j->servers / j->used)};
    const bool matched = fmod(j->used, j->servers) == 0 || fmod(j->servers, j->used) == 0;
    const double rows = ceil(j->stripes / j->servers), spacing = fmax(1, floor(j->stripes / j->used));
    d.round = fmin(most, d.each);
    d.rounds = ceil(d.each / d.round);
    d.meet = j->stripes >= j->servers ? fmax(1, fmin(ceil(rows / spacing), fmin(j->used, j->stripes))) : 1;
    d.load = d.meet * d.each;
    d.interleaves = fmod(j->stripes, j->servers) == 0 &&
                    (fmod(j->used, j->servers) == 0 ||
                     (fmod(j->stripes, j->used) == 0 && fmod(j->servers, j->used) == 0));
    if (j->stripes > j->used) {
        const bool ragged = fmod(j->stripes, j->servers) != 0 || !matched;
        d.load += ragged ? fmin(d.each, 2 * d.round) : 0;
        d.meet += ragged ? fmin(1, 2 / spacing) : 0;
        d.crossing = d.interleaves ? 0 : d.round;
    }
    return d;
}

static deal deal_groups(const job *j, double most)
{
    const double groups = floor(j->used / j->servers), part = ceil(j->stripes / groups),
                 rows = ceil(j->stripes / j->servers);
    deal d = {.each = ceil(part / j->servers), .visited = 1, .interleaves = true};
    d.round = fmin(most, d.each);
    d.rounds = ceil(d.each / d.round);
    if (part < j->servers) {
        d.load = rows + (fmod(j->stripes, j->servers) != 0 && groups > 1 && j->stripes > j->servers);
        d.meet = d.load;
    } else {
        d.load = fmin(groups * d.each, rows + floor((groups + 1) / 2));
        d.meet = groups;
    }
    d.load = fmin(d.load, j->stripes);
    d.meet = fmin(d.meet, j->stripes);
    return d;
}

static deal deal_in_turn(const job *j, double most)
{
    deal d = {.each = ceil(j->stripes / j->used), .interleaves = true};
    d.round = fmin(most, d.each);
    const double row = j->used * d.round, full = floor(j->stripes / row);
    d.rounds = ceil(j->stripes / row);
    if (full > 0 && j->stripes - full * row == 1) /* the last stripe alone, which the region's end may cut */
        d.rounds = full + j->last / d.round;
    d.load = full * ceil(row / j->servers) + ceil((j->stripes - full * row) / j->servers);
    d.meet = ceil(fmin(j->used, j->stripes) / j->servers);
    d.visited = fmin(d.each, j->servers / common_divisor((int64_t)j->servers, (int64_t)j->used));
    return d;
}

/* Seconds until the locks of one stripe after another are had, where not round by round. */
static double lock_waits(const job *j, const deal *d, bool in_turn, double served)
{
    const speeds *v = j->v;
    double time = d->crossing * served;
    if (!j->c->write)
        return j->tokens ? j->used * v->lock + v->round_trip
                         : d->visited * (v->round_trip + v->lock * (0.25 + d->meet));
    if (j->tokens)
        return time;
    if (in_turn && fmod(j->servers, j->used) != 0) /* another has been there since */
        return time + d->each * (2 * v->round_trip + v->lock * (0.25 + 2 * d->meet));
    return time + d->visited * (v->round_trip + v->lock * (0.25 + d->meet));
}

static double dealt(const job *j, const deal *d, bool in_turn, bool transposed)
{
    const speeds *v = j->v;
    const double request = fmin(j->stripe, j->window), parts = ceil(j->stripe / request);
    const double served = service(j, request), sent = request / v->aggregator;
    const double steps = d->rounds * parts * d->round, turns = d->rounds * parts;
    double waits = j->server_locks || j->tokens ? lock_waits(j, d, in_turn, served) : 0;
    if (!j->c->write) {
        if (d->round > 1)
            return waits + turns * v->round_trip +
                   fmax(steps * (v->round_trip + fmax(sent, served)), parts * d->load * served);
        if (!transposed && d->meet * served > sent)
            return waits + parts * (d->load * served + d->rounds * v->round_trip);
        return waits + steps * (v->round_trip + fmax(sent, d->meet * served));
    }
    double token = 0, asked = 0, wait = 0; /* of one request: at the manager, on the way, for another's data */
    if (j->tokens) {
        const double first = floor(j->start / j->stripe);
        token = fmin(j->used, j->stripes) * v->lock / parts;
        asked = 2 * v->round_trip / parts;
        if (d->interleaves && (d->each > 1 || (in_turn && fmod(first, j->used) + j->stripes > j->used)))
            wait = (v->request + request / fmin(v->server, v->aggregator)) / parts;
        if (in_turn && d->meet > 1) /* the server has another's data to take meanwhile */
            wait = 0;
        waits -= in_turn ? 0 : wait; /* the first round waits for nobody */
    }
    const double link = (d->round - 1) * (sent + wait + asked) + served;
    return waits + turns * (v->round_trip + sent + asked + wait + (transposed ? token : 0)) +
           fmax(fmax(turns * link, parts * d->load * served), turns * (d->round * token + served));
}

bool mpiox_auto_is_contiguous(const mpiox_partition_method *method, const mpiox_geometry *geometry)
{
    const int32_t used = method->adjust != NULL ? method->adjust(geometry) : geometry->aggregators;
    return method == &mpiox_partition_even || method == &mpiox_partition_aligned || used == 1 ||
           (geometry->servers == 1 && method != &mpiox_partition_static_cyclic);
}

double mpiox_auto_cost(const mpiox_auto_cost_case *c, const mpiox_partition_method *method, bool stripe_size_io)
{
    const mpiox_geometry *g = c->geometry;
    const bool even = method == &mpiox_partition_even, aligned = method == &mpiox_partition_aligned;
    const bool in_turn = method == &mpiox_partition_static_cyclic, transposed = method == &mpiox_partition_transpose;
    const mpiox_lock_model_system *system = c->system;
    const speeds v = {.round_trip = system->round_trip,
                      .lock = system->protocol == MPIOX_LOCK_MODEL_NONE ? 0 : system->lock_service,
                      .request = system->request_overhead,
                      .server = system->server_bandwidth,
                      .aggregator = system->client_bandwidth,
                      .wire = (double)system->rpc_bytes};
    const job j = {.c = c,
                   .v = &v,
                   .servers = g->servers,
                   .used = method->adjust != NULL ? method->adjust(g) : g->aggregators,
                   .stripes = (double)mpiox_auto_stripes(g),
                   .stripe = (double)g->stripe_size,
                   .window = (double)c->window_bytes,
                   .bytes = (double)(g->end - g->start),
                   .start = (double)g->start,
                   .last = (double)((g->end - 1) % g->stripe_size + 1) / (double)g->stripe_size,
                   .server_locks = system->protocol == MPIOX_LOCK_MODEL_SERVER,
                   .tokens = system->protocol == MPIOX_LOCK_MODEL_TOKEN};
    const double most = fmax(1, floor(j.window / j.stripe));
    if (even && j.bytes < j.used * j.stripe)
        return parts_of_stripes(&j);
    if ((aligned || j.used == 1) && j.stripes <= j.used && !stripe_size_io) { /* a stripe each, or one and a half */
        const deal d = deal_in_turn(&j, most);
        const bool whole = g->start % g->stripe_size == 0 && g->end % g->stripe_size == 0;
        return dealt(&j, &d, false, false) * (whole ? 1 : 1.4);
    }
    if (mpiox_auto_is_contiguous(method, g))
        return contiguous(&j, even, stripe_size_io);
    deal d;
    if (transposed)
        d = deal_transpose(&j, most);
    else if (!in_turn && j.used > j.servers)
        d = deal_groups(&j, most);
    else
        d = deal_in_turn(&j, most);
    return dealt(&j, &d, in_turn, transposed);
}

double mpiox_auto_cost_of_change(const mpiox_auto_cost_case *c, const mpiox_partition_method *held, int64_t unwritten)
{
    const mpiox_geometry *g = c->geometry;
    const mpiox_lock_model_system *system = c->system;
    const int64_t used = held->adjust != NULL ? held->adjust(g) : g->aggregators;
    const int64_t stripes = mpiox_auto_stripes(g);
    const int64_t writers = stripes < g->servers ? stripes : g->servers; /* servers that take what is written */
    int64_t holders = used < stripes ? used : stripes; /* that one server, or the token manager, has to call back */
    if (system->protocol == MPIOX_LOCK_MODEL_SERVER && !mpiox_auto_is_contiguous(held, g)) {
        const int64_t share = used / mpiox_auto_common_divisor(used, g->servers); /* as s mod A and s mod S meet */
        holders = share < holders ? share : holders;
    }
    if (system->protocol == MPIOX_LOCK_MODEL_NONE)
        return 0;
    return (double)holders * (system->round_trip + system->lock_service) +
           (double)unwritten / ((double)writers * system->server_bandwidth);
}
