/*
 * mpiox_choose.c - direct or two-phase, and over which file domains.
 *
 * Rule. Direct (every rank moves its own pieces, no exchange) wins where an exchange only adds a copy or a wait: on a
 * coherent local file system when the pieces are large, or one a rank and not tiny, when they are read and not small, or
 * when so little is written that the rounds do not come to overlap; and anywhere when the accesses are so sparse that
 * windows would mostly hold bytes nobody asked for. On a file system that is shared by several nodes large pieces go direct
 * only when ranks do not interleave, so that clients meet in a stripe at the ends of their ranges at most (its locks keep
 * that right; without locks such files stay native, see mpiox_exchange_open). A method named by hint always means
 * two-phase. The thresholds: docs/performance.md; the decision and its reason appear in the statistics.
 * Every rank computes the same answer from the summary, the hints and rank 0's layout.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_exchange_impl.h"

enum {
    DIRECT_PIECE_BYTES = 256 * 1024,
    SINGLE_PIECE_BYTES = 4096,       /* when no rank has more than one */
    READ_PIECE_BYTES = 24 * 1024,    /* below, windows that several ranks share are read with fewer requests */
    OVERLAP_ROUNDS = 8,              /* an exchange that writes needs so many for its waits not to show */
    SHORT_PIECE_BYTES = 12 * 1024,   /* of a write that has fewer */
    FEW_PIECES = 4, FEW_PIECE_BYTES = 4096, /* or so few a rank */
    SPARSE_FACTOR = 8, SPARSE_SPACING_BYTES = 4096
};

static int64_t occupied_bytes(const mpiox_summary *s) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < s->n_occupied; i++)
        bytes += s->occupied[i].last - s->occupied[i].first;
    return bytes;
}

/* A write of tmpfs that ends before its rounds overlap. (Elsewhere writers of one file wait for each other's requests: there
 * fewer and larger ones win, measured on ext4.) */
static bool is_short(const mpiox_call *call, int64_t piece) {
    const mpiox_exchange *x = call->x;
    const mpiox_summary *s = &call->summary;
    return x->layout.fs == MPIOX_FS_TMPFS && s->bytes < OVERLAP_ROUNDS * x->n_aggregators * x->window_bytes &&
           (piece >= SHORT_PIECE_BYTES || (piece >= FEW_PIECE_BYTES && s->pieces <= FEW_PIECES * x->team->size));
}

/* Why no exchange is needed on a local file system, or NULL. */
static const char *local_reason(const mpiox_call *call, int64_t piece) {
    const mpiox_exchange *x = call->x;
    if (piece >= DIRECT_PIECE_BYTES)
        return "direct: large pieces on a local file system";
    if (call->summary.pieces <= x->team->size && piece >= SINGLE_PIECE_BYTES)
        return "direct: one piece a rank on a local file system";
    if (x->team->n_nodes > 1)
        return NULL;
    if (!call->write && piece >= READ_PIECE_BYTES)
        return "direct: reads of pieces that are not small on a local file system";
    if (call->write && is_short(call, piece))
        return "direct: a short write of pieces that are not small on a local file system";
    return NULL;
}

static bool direct_wins(const mpiox_call *call, const char **reason) {
    const mpiox_exchange *x = call->x;
    const mpiox_summary *s = &call->summary;
    const int64_t pieces = s->pieces > 0 ? s->pieces : 1, piece = s->bytes / pieces, occupied = occupied_bytes(s);
    if (x->team->size == 1 && s->pieces <= 1) {
        *reason = "direct: one rank, one piece";
        return true;
    }
    if ((x->layout.coherent || x->team->n_nodes == 1) && occupied / SPARSE_FACTOR > s->bytes && occupied / pieces > SPARSE_SPACING_BYTES) {
        *reason = "direct: accesses are sparse";
        return true;
    }
    const char *local = x->layout.coherent ? local_reason(call, piece) : NULL;
    if (local) {
        *reason = local;
        return true;
    }
    if (!x->layout.coherent && !s->interleaved && piece >= DIRECT_PIECE_BYTES && piece >= x->layout.stripe_size) {
        *reason = "direct: large pieces that do not interleave";
        return true;
    }
    *reason = "two-phase: pieces are small or interleave";
    return false;
}

bool mpiox_choose_direct(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    const char *reason;
    bool direct = false;
    if (call->summary.flags & MPIOX_POST_ACROSS) {
        reason = "direct: an access crosses overlapping tiles of its view";
        direct = true;
    } else if (x->atomic) {
        reason = "direct: atomic mode locks every rank's range";
        direct = true;
    } else if ((call->write ? x->hints.cb_write : x->hints.cb_read) == MPIOX_OFF) {
        reason = "direct: collective buffering is disabled by hint";
        direct = true;
    } else if (x->hints.exchange == MPIOX_EXCHANGE_DIRECT) {
        reason = "direct: asked for by hint";
        direct = true;
    } else if (x->hints.exchange == MPIOX_EXCHANGE_TWO_PHASE) {
        reason = "two-phase: asked for by hint";
    } else if (x->forced) {
        reason = "two-phase: a method is named by hint";
    } else {
        direct = direct_wins(call, &reason);
    }
    snprintf(x->stats.reason, sizeof x->stats.reason, "%s", reason);
    return direct;
}

/* Cells of the coverage map must not straddle a piece, a file domain or a window. */
static int64_t coverage_granule(const mpiox_call *call) {
    const mpiox_exchange *x = call->x;
    int64_t granule = mpiox_common_divisor(call->summary.granule, x->window_bytes);
    for (int32_t i = 0; i < call->summary.n_occupied; i++) { /* ends of what is laid out in a buffer */
        granule = mpiox_common_divisor(granule, call->summary.occupied[i].first);
        granule = mpiox_common_divisor(granule, call->summary.occupied[i].last);
    }
    for (int a = 0; a < x->n_aggregators; a++)
        for (int64_t i = 0; i < x->plan->domains[a].n_sets; i++) {
            const mpiox_stripe_set *set = &x->plan->domains[a].sets[i];
            granule = mpiox_common_divisor(granule, set->offset);
            granule = mpiox_common_divisor(granule, set->length);
            granule = mpiox_common_divisor(granule, set->stride);
        }
    return granule > 0 ? granule : 1;
}

static int grow_scratch(mpiox_exchange *x) {
    const int64_t need = mpiox_plan_window_extents_max(x->plan, x->window_bytes) + MPIOX_OCCUPIED_MAX;
    if (need <= x->extents_max)
        return MPIOX_OK;
    for (int i = 0; i < 2; i++) {
        mpiox_extent *larger = realloc(x->extents[i], sizeof *larger * (size_t) need);
        if (!larger)
            return MPIOX_E_NOMEM;
        x->extents[i] = larger;
    }
    x->extents_max = need;
    return MPIOX_OK;
}

int mpiox_choose_plan(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    const mpiox_summary *s = &call->summary;
    const mpiox_geometry geometry = {s->start, s->end, x->layout.stripe_size, x->layout.servers, x->n_aggregators};
    const char *why = NULL;
    const mpiox_partition_method *method =
        x->forced ? x->forced : mpiox_partition_choose(&geometry, &x->layout, &why);
    if (!x->plan || x->plan_method != method || memcmp(&x->plan->geometry, &geometry, sizeof geometry) != 0) {
        mpiox_plan_free(x->plan);
        x->plan = NULL;
        int code = mpiox_plan_create(method, &geometry, &x->plan);
        if (code == MPIOX_OK)
            code = mpiox_plan_prepare(x->plan, x->window_bytes);
        if (code != MPIOX_OK)
            return code;
        x->plan_method = method;
    }
    if (grow_scratch(x) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    snprintf(x->stats.partition, sizeof x->stats.partition, "%s", method->name);
    if (why) {
        const size_t used = strlen(x->stats.reason);
        snprintf(x->stats.reason + used, sizeof x->stats.reason - used, "; %s", why);
    }
    call->rounds = 0;
    for (int a = 0; a < x->n_aggregators; a++) {
        const int64_t windows = mpiox_plan_windows(x->plan, a, x->window_bytes);
        call->rounds = windows > call->rounds ? windows : call->rounds;
    }
    const bool full = s->disjoint && s->bytes == s->end - s->start;
    call->mark = call->write && (!full || x->hints.coverage_map);
    call->granule = call->mark ? coverage_granule(call) : 1;
    return MPIOX_OK;
}
