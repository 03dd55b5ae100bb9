/*
 * mpiox_choose.c - direct or two-phase, and over which file domains.
 *
 * Rule.  Direct (every rank moves its own pieces, no exchange) wins where an exchange only adds a copy or a wait. On a
 *        coherent local file system that is so if the pieces are large, or if each rank has one that is not tiny; if
 *        they are read and not small; or if so little is written that rounds do not overlap. On any file system it is
 *        so if the accesses are so sparse that windows would mostly contain unrequested bytes. Nodes that share a local
 *        file system are containers of one machine: their network pays for tiny pieces only. On a file system that is
 *        shared by several nodes large pieces go direct only if ranks do not interleave. Then clients meet in a stripe
 *        only at the ends of their ranges (its locks keep that right; without locks such files stay native, see
 *        file/mpiox_file_open.c). Subfiles on servers without client locks accept interleaved pieces of all clients
 *        side by side: an exchange would send each byte twice over a client's link. A method named by hint always means
 *        two-phase. The thresholds: docs/reference/rules.md; the statistics have the decision and its reason. Every
 *        rank computes the same answer from the reduction, the hints and rank 0's layout.
 * Ahead. A rank computes whether all ranks would go direct if they had pieces like its own, and reports this. If all
 *        ranks report it, the call needs only one agreement (mpiox_collective_call.c). On one node the rank accesses
 *        its pieces before the agreement. Whatever the other ranks bring, the same bytes reach the same places; at
 *        worst ranks move them twice. No rank goes ahead in the call after a two-phase one, nor in reads of a file
 *        system that nodes share: many ranks may read the same bytes there, and an error is expensive.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_collective_impl.h"

enum {
    DIRECT_PIECE_BYTES = 256 * 1024,
    SINGLE_PIECE_BYTES = 4096,     /* between nodes, when no rank has more than one */
    READ_PIECE_BYTES = 24 * 1024,  /* below, windows that several ranks share are read with fewer requests */
    OVERLAP_ROUNDS = 8,            /* an exchange that writes needs so many for its waits not to show */
    SHORT_PIECE_BYTES = 12 * 1024, /* of a write that has fewer */
    FEW_PIECES = 4,
    FEW_PIECE_BYTES = 4096,           /* or so few a rank */
    NODES_READ_PIECE_BYTES = 768,     /* between nodes of one page cache: 512 bytes are exchanged faster, 1 KiB not; */
    NODES_WRITE_PIECE_BYTES = 3072,   /* 2 KiB are, 4 KiB not */
    NODES_LISTED_BYTES = 32,          /* of a list that is written: its description weighs as much as the data */
    SUBFILES_READ_BYTES = 64 * 1024,  /* on servers without client locks: 64 KiB are accessed 2.3 times as fast as in */
    SUBFILES_WRITE_BYTES = 16 * 1024, /* two-phase, read and written, 16 KiB are written so and read at 0.6 */
    NODE_BYTES = 4096,                /* of a domain, for each node */
    SPARSE_FACTOR = 8,
    SPARSE_SPACING_BYTES = 4096
};

/* The file ranges of ranks: those of their accesses, or that of one rank with its wide gaps. */
static int64_t range_bytes(const mpiox_reduction *s)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < s->n_occupied; i++)
        bytes += s->occupied[i].last - s->occupied[i].first;
    return bytes > s->widest ? bytes : s->widest;
}

/* A write of tmpfs that ends before its rounds overlap. (Elsewhere writers of one file wait for each other's
 * requests: there fewer and larger ones win, measured on ext4.) */
static bool is_short(const mpiox_call *call, int64_t piece)
{
    const mpiox_buffers *b = call->b;
    const mpiox_reduction *s = &call->reduction;
    return b->file->layout.fs == MPIOX_FS_TMPFS && s->bytes < OVERLAP_ROUNDS * b->n_aggregators * b->window_bytes &&
           (piece >= SHORT_PIECE_BYTES ||
            (piece >= FEW_PIECE_BYTES && s->pieces <= FEW_PIECES * b->file->topology->size));
}

/* The same for ranks on several nodes that share a local file system: containers of one machine. An exchange uses their
 * network, which pays for tiny pieces only. */
static const char *nodes_reason(bool write, int32_t flags, int64_t piece)
{
    if ((flags & MPIOX_CONTRIBUTION_LIST) && (!write || piece < NODES_LISTED_BYTES))
        return "direct: lists of pieces, between nodes that share a page cache";
    if (piece >= (write ? NODES_WRITE_PIECE_BYTES : NODES_READ_PIECE_BYTES))
        return "direct: pieces that are not tiny, between nodes that share a page cache";
    return NULL;
}

/* Why no exchange is needed on a local file system, or NULL. */
static const char *local_reason(const mpiox_call *call, int64_t piece)
{
    const mpiox_buffers *b = call->b;
    if (piece >= DIRECT_PIECE_BYTES)
        return "direct: large pieces on a local file system";
    const bool one_node = mpiox_topology_one_node(b->file->topology);
    if (call->reduction.pieces <= b->file->topology->size && (one_node || piece >= SINGLE_PIECE_BYTES))
        return "direct: one piece a rank on a local file system";
    if (!one_node)
        return nodes_reason(call->write, call->reduction.flags, piece);
    if (!call->write && piece >= READ_PIECE_BYTES)
        return "direct: reads of pieces that are not small on a local file system";
    if (call->write && is_short(call, piece))
        return "direct: a short write of pieces that are not small on a local file system";
    return NULL;
}

/* Subfiles belong to aggregators, where others would wait for their locks. */
static bool has_owners(const mpiox_layout *layout)
{
    return layout->container && layout->lock != MPIOX_LOCK_NONE;
}

static bool direct_wins(const mpiox_call *call, const char **reason)
{
    const mpiox_buffers *b = call->b;
    const mpiox_reduction *s = &call->reduction;
    const int64_t pieces = s->pieces > 0 ? s->pieces : 1, piece = s->bytes / pieces, range = range_bytes(s);
    if (b->file->topology->size == 1 && s->pieces <= 1) {
        *reason = "direct: one rank, one piece";
        return true;
    }
    if ((b->file->layout.coherent || mpiox_topology_one_node(b->file->topology)) && range / SPARSE_FACTOR > s->bytes &&
        range / pieces > SPARSE_SPACING_BYTES) {
        *reason = "direct: accesses are sparse";
        return true;
    }
    const char *local = b->file->layout.coherent ? local_reason(call, piece) : NULL;
    if (local) {
        *reason = local;
        return true;
    }
    if (!b->file->layout.coherent && !has_owners(&b->file->layout) && !s->interleaved && piece >= DIRECT_PIECE_BYTES &&
        piece >= b->file->layout.stripe_size) {
        *reason = "direct: large pieces that do not interleave";
        return true;
    }
    if (!b->file->layout.coherent && b->file->layout.container && b->file->layout.lock == MPIOX_LOCK_NONE &&
        piece >= (call->write ? SUBFILES_WRITE_BYTES : SUBFILES_READ_BYTES)) {
        *reason = "direct: pieces that are not small, in subfiles of servers without client locks";
        return true;
    }
    *reason = "two-phase: pieces are small or interleave";
    return false;
}

/* Direct or not, whatever the pieces, and why; NULL: the pieces decide. `flags` are those of a contribution or of a
 * reduction. */
static const char *settled(const mpiox_collective *collective, bool write, int32_t flags, bool *direct)
{
    const mpiox_file *file = collective->buffers.file;
    *direct = true;
    if (flags & MPIOX_CONTRIBUTION_ACROSS)
        return "direct: an access crosses overlapping tiles of its view";
    if (file->atomic)
        return "direct: atomic mode locks every rank's range";
    if ((write ? file->hints.cb_write : file->hints.cb_read) == MPIOX_OFF)
        return "direct: collective buffering is disabled by hint";
    if (file->hints.exchange == MPIOX_EXCHANGE_DIRECT)
        return "direct: requested by hint";
    *direct = false;
    if (file->hints.exchange == MPIOX_EXCHANGE_TWO_PHASE)
        return "two-phase: requested by hint";
    return collective->forced ? "two-phase: a hint names a method" : NULL;
}

bool mpiox_choose_direct(const mpiox_collective *collective, const mpiox_call *call)
{
    bool direct;
    const char *reason = settled(collective, call->write, call->reduction.flags, &direct);
    if (!reason)
        direct = direct_wins(call, &reason);
    if (!direct && !(call->reduction.flags & MPIOX_CONTRIBUTION_WAITS)) {
        reason = "direct: the pieces of every rank are large enough by themselves";
        direct = true;
    }
    mpiox_stats_set_method(&call->b->file->stats, call->write, NULL, false, reason);
    return direct;
}

int64_t mpiox_choose_alone(const mpiox_collective *collective, bool write)
{
    const mpiox_file *file = collective->buffers.file;
    bool direct;
    if (settled(collective, write, 0, &direct))
        return direct ? 0 : INT64_MAX;
    if (file->layout.coherent || file->topology->size == 1)
        return 0;
    if (!write || file->refreshes || has_owners(&file->layout))
        return INT64_MAX;
    return file->layout.stripe_size > DIRECT_PIECE_BYTES ? file->layout.stripe_size : DIRECT_PIECE_BYTES;
}

/* As direct_wins(), for pieces of one rank: if it is true for each rank's pieces, it is for all. */
static bool own_pieces_win(const mpiox_file *file, bool write, const mpiox_contribution *mine)
{
    const int64_t piece = mine->length / mine->pieces;
    if (file->topology->size == 1 && mine->pieces == 1)
        return true;
    if (!file->layout.coherent)
        return write && !file->refreshes && !has_owners(&file->layout) && mine->last - mine->first == mine->length &&
               piece >= DIRECT_PIECE_BYTES && piece >= file->layout.stripe_size;
    const bool one_node = mpiox_topology_one_node(file->topology);
    if (piece >= DIRECT_PIECE_BYTES || (mine->pieces == 1 && (one_node || piece >= SINGLE_PIECE_BYTES)))
        return true;
    if (!one_node)
        return nodes_reason(write, mine->flags, piece) != NULL;
    return !write && piece >= READ_PIECE_BYTES;
}

bool mpiox_choose_ahead(const mpiox_collective *collective, const mpiox_call *call)
{
    const mpiox_file *file = call->b->file;
    const mpiox_contribution *mine = &call->b->contributions[file->topology->node_rank];
    bool direct;
    if (mine->length == 0 || mine->pieces == 0)
        return false;
    if (settled(collective, call->write, mine->flags, &direct))
        return direct;
    return !collective->exchanged[call->write] && own_pieces_win(file, call->write, mine);
}

/* Cells of the coverage map must not straddle a piece, a file domain or a window. */
static int64_t coverage_granule(const mpiox_call *call)
{
    const mpiox_buffers *b = call->b;
    int64_t granule = mpiox_common_divisor(call->reduction.granule, b->window_bytes);
    for (int32_t i = 0; i < call->reduction.n_occupied; i++) { /* end offsets of the arrays in a buffer */
        granule = mpiox_common_divisor(granule, call->reduction.occupied[i].first);
        granule = mpiox_common_divisor(granule, call->reduction.occupied[i].last);
    }
    for (int a = 0; a < b->n_aggregators; a++)
        for (int64_t i = 0; i < b->plan->domains[a].n_sets; i++) {
            const mpiox_stripe_set *set = &b->plan->domains[a].sets[i];
            granule = mpiox_common_divisor(granule, set->offset);
            granule = mpiox_common_divisor(granule, set->length);
            granule = mpiox_common_divisor(granule, set->stride);
        }
    return granule > 0 ? granule : 1;
}

static int grow_scratch(mpiox_buffers *b)
{
    const int64_t need = mpiox_plan_window_extents_max(b->plan, b->window_bytes) + MPIOX_OCCUPIED_MAX;
    if (need <= b->extents_max)
        return MPIOX_OK;
    for (int i = 0; i < 2; i++) {
        mpiox_extent *larger = realloc(b->extents[i], sizeof *larger * (size_t)need);
        if (!larger)
            return MPIOX_E_NOMEM;
        b->extents[i] = larger;
    }
    b->extents_max = need;
    return MPIOX_OK;
}

/* The hints' values for `auto`'s decisions. */
static mpiox_auto_facts facts_of(const mpiox_buffers *b)
{
    _Static_assert((int)MPIOX_AUTO_NO == MPIOX_OFF && (int)MPIOX_AUTO_YES == MPIOX_ON &&
                       (int)MPIOX_AUTO_OPEN == MPIOX_AUTO,
                   "a wish is a switch");
    const mpiox_hints *hints = &b->file->hints;
    return (mpiox_auto_facts){.layout = b->file->layout,
                              .aggregators_asked = hints->cb_nodes,
                              .stripe_size_io = (mpiox_auto_wish)hints->stripe_size_io};
}

int mpiox_choose_settings(mpiox_buffers *b, int32_t capacity, int32_t nics, int32_t *aggregators)
{
    mpiox_auto_facts facts = facts_of(b);
    mpiox_auto_decision decision;
    facts.aggregators = capacity;
    facts.nodes = b->file->topology->n_nodes;
    facts.nics = nics;
    facts.window_asked = b->window_bytes;
    const int code = mpiox_auto_decide(&facts, &decision);
    b->window_bytes = decision.window_bytes;
    *aggregators = decision.aggregators;
    return code;
}

static int decide(mpiox_collective *collective, const mpiox_call *call, mpiox_auto_decision *decision)
{
    mpiox_auto_facts facts = facts_of(call->b);
    facts.start = call->reduction.start;
    facts.end = call->reduction.end;
    facts.write = call->write;
    facts.aggregators = call->b->n_aggregators;
    facts.window_asked = call->b->window_bytes;
    facts.method = collective->forced;
    mpiox_auto_set_held(&collective->held, &facts);
    const int code = mpiox_auto_decide_again(&collective->decisions, &facts, decision);
    if (code == MPIOX_OK)
        mpiox_auto_hold(&collective->held, &facts, decision->method);
    return code;
}

/* Into the statistics: why two-phase, which is there already, and why this method. */
static void explain(mpiox_stats *stats, bool write, const mpiox_auto_decision *decision, bool forced)
{
    char reason[sizeof stats->reason];
    const size_t used = (size_t)snprintf(reason, sizeof reason, "%s", stats->reason), left = sizeof reason - used;
    if (!forced && left > 2) {
        memcpy(reason + used, "; ", 3);
        mpiox_auto_explain(decision, reason + used + 2, (int64_t)left - 2);
    }
    mpiox_stats_set_method(stats, write, decision->method->name, decision->stripe_size_io, reason);
}

/* Between nodes each node may send each aggregator a message a round. So contiguous domains that have less than
 * NODE_BYTES for each node become fewer and larger ones: a rank's messages grow with its data, not with the nodes. */
static void join_small_domains(const mpiox_file *file, mpiox_geometry *geometry, mpiox_auto_decision *decision)
{
    const int64_t least = (int64_t)file->topology->n_nodes * NODE_BYTES;
    const mpiox_partition_method *aligned = mpiox_partition_find("aligned");
    if (mpiox_topology_one_node(file->topology) || (geometry->end - geometry->start) / geometry->aggregators >= least ||
        (decision->method != aligned && decision->method != mpiox_partition_find("even")))
        return;
    geometry->stripe_size = file->layout.lock == MPIOX_LOCK_LOCAL ? least
                                                                  : mpiox_round_up(least, geometry->stripe_size);
    const int64_t domains = (geometry->end - geometry->start - 1) / geometry->stripe_size + 1;
    decision->aggregators_use = (int32_t)mpiox_min(domains, geometry->aggregators);
    decision->method = aligned;
    decision->reason = "few bytes for many nodes: a domain has 4 KiB of each, whose message it takes";
    decision->source = "measured";
}

int mpiox_choose_plan(mpiox_collective *collective, mpiox_call *call)
{
    mpiox_buffers *b = call->b;
    const mpiox_reduction *s = &call->reduction;
    mpiox_geometry geometry = {s->start, s->end, b->file->layout.stripe_size, b->file->layout.servers,
                               b->n_aggregators};
    mpiox_auto_decision decision;
    int code = decide(collective, call, &decision);
    if (code != MPIOX_OK)
        return code;
    if (collective->forced == NULL && b->file->hints.cb_nodes == 0)
        join_small_domains(b->file, &geometry, &decision);
    const mpiox_partition_method *method = decision.method;
    call->stripe_size_io = decision.stripe_size_io;
    if (!b->plan || collective->plan_method != method || memcmp(&b->plan->geometry, &geometry, sizeof geometry) != 0) {
        mpiox_plan_free(b->plan);
        b->plan = NULL;
        code = mpiox_plan_create(method, &geometry, &b->plan);
        if (code == MPIOX_OK)
            code = mpiox_plan_prepare(b->plan, b->window_bytes);
        if (code != MPIOX_OK)
            return code;
        collective->plan_method = method;
    }
    if (grow_scratch(b) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    explain(&b->file->stats, call->write, &decision, collective->forced != NULL);
    call->rounds = 0;
    for (int a = 0; a < b->n_aggregators; a++) {
        const int64_t windows = mpiox_plan_windows(b->plan, a, b->window_bytes);
        call->rounds = windows > call->rounds ? windows : call->rounds;
    }
    const bool full = (s->disjoint && s->bytes == s->end - s->start) || mpiox_reduction_is_filled(s);
    call->mark = call->write && (!full || b->file->hints.coverage_map);
    call->granule = call->mark ? coverage_granule(call) : 1;
    return MPIOX_OK;
}
