/*
 * mpiox_collective_memory.h - what the ranks of one node share during a collective: the content of the topology's
 * segment.
 *
 *   collective buffers | state | contributions[node_size] | nodes[n_nodes] | slots[local aggregators * buffers each] |
 *   coverage maps | transport's
 *
 * Only mpiox_buffers_memory.c knows the offsets. Everything is position independent: no pointers, indices only.
 * A contribution belongs to one rank and is written before the first barrier of a call; the reduction is written by the
 * rank that closes that barrier; slots are reset there too. After the last barrier of a call no rank touches them, so
 * one set is enough. Ranks that do not meet share `post` and `mixed` alone. The rank that closes the first barrier may
 * reset both.
 */
#ifndef MPIOX_COLLECTIVE_MEMORY_H
#define MPIOX_COLLECTIVE_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"
#include "mpiox_partition.h"
#include "mpiox_wait.h"

enum {
    MPIOX_LINE = 64, /* cache line */
    MPIOX_CONTRIBUTION_VIEW_BYTES =
        1024,                /* largest serialized view that a contribution carries for the disjointness proof */
    MPIOX_OCCUPIED_MAX = 64, /* intervals that approximate which parts of the region are accessed at all */
    MPIOX_SPANS_MAX = 8      /* of them that one rank brings */
};

/* Flags of a contribution and of a reduction. A reduction has a flag if any contribution has it. */
enum {
    MPIOX_CONTRIBUTION_UNUSABLE = 1, /* this rank's view or memory cannot be handled here */
    MPIOX_CONTRIBUTION_WRITE = 2,
    MPIOX_CONTRIBUTION_READ = 4,
    MPIOX_CONTRIBUTION_NEW_VIEW = 8,  /* the view changed since the last collective */
    MPIOX_CONTRIBUTION_EMPTY = 16,    /* this rank's view holds no data */
    MPIOX_CONTRIBUTION_ACROSS = 32,   /* this rank's access crosses overlapping tiles of its view */
    MPIOX_CONTRIBUTION_NO_EDGES = 64, /* this rank accesses something and has not summed its pieces' edges */
    MPIOX_CONTRIBUTION_LIST = 128,    /* this rank's view is a list too long for a contribution */
    MPIOX_CONTRIBUTION_WAITS = 256,   /* this rank accesses something and has not done so yet */
    MPIOX_CONTRIBUTION_FAILED = 512,  /* of a reduction: there is an error */
    MPIOX_CONTRIBUTION_MEETS = 1024   /* this rank could not go alone in a call like this one: mpiox_individual.c */
};

/* What one rank brings to a collective. */
typedef struct mpiox_contribution {
    _Alignas(MPIOX_LINE) mpiox_futex post; /* which collectives the rank has begun, and how: mpiox_individual.c */
    int64_t first, last;      /* half-open file range of its access; first > last when it accesses nothing */
    int64_t position, length; /* stream bytes of its view */
    int64_t pieces;           /* contiguous file pieces (estimate) */
    int64_t displacement;     /* of the view */
    int64_t stride;           /* bytes from its last access of this kind to this one; INT64_MIN: there was none */
    int64_t granule;          /* divides every offset and length of its access */
    uint64_t edges;           /* of its pieces (mpiox_typemap_edges.h) */
    int64_t period;           /* of its pieces, where a window lies between them; INT64_MAX: none is known */
    int32_t flags;            /* MPIOX_CONTRIBUTION_* */
    int32_t view_bytes;       /* serialized view in view[], or 0 when it is too large */
    mpiox_error error;        /* a local error that all ranks must report */
    int32_t n_spans;          /* intervals in spans[] */
    mpiox_interval
        spans[MPIOX_SPANS_MAX]; /* ascending, disjoint; they hold its access, and wide gaps lie between them */
    _Alignas(8) unsigned char view[MPIOX_CONTRIBUTION_VIEW_BYTES]; /* the first view_bytes bytes are valid */
} mpiox_contribution;

/* What all ranks together bring; the same on every rank. Plain data: leaders send it. */
typedef struct mpiox_reduction {
    int64_t start, end;  /* aggregate access region */
    int64_t bytes;       /* sum of lengths */
    int64_t pieces;      /* sum of the ranks' contiguous file pieces (estimate) */
    int64_t granule;     /* divides every offset and length of all accesses */
    int64_t longest;     /* largest length of one rank */
    int64_t widest;      /* largest file range of one rank, with its gaps */
    int64_t period;      /* of all ranks that know one; 0: theirs differ; INT64_MAX: no rank knows one */
    uint64_t edges;      /* sum; meaningless if flags have MPIOX_CONTRIBUTION_NO_EDGES */
    int32_t flags;       /* MPIOX_CONTRIBUTION_* that some rank has set */
    int32_t active;      /* ranks that access anything */
    int32_t disjoint;    /* 1: proven that no byte is accessed by two ranks */
    int32_t interleaved; /* 1: file ranges of ranks overlap, wide gaps left out */
    int32_t n_occupied;  /* intervals in occupied[] */
    mpiox_interval occupied[MPIOX_OCCUPIED_MAX]; /* ascending, disjoint; together they hold every access */
    mpiox_error error;                           /* of the lowest rank that has one */
} mpiox_reduction;

/* What the ranks of one node bring together; only where there are several nodes. */
typedef struct mpiox_node_access {
    mpiox_interval range; /* of the file; first > last when they access nothing */
    int64_t bytes;        /* sum of their lengths */
} mpiox_node_access;

/* A collective buffer's state. phase counts: 2k = use k may be filled (write) or loaded (read); 2k+1 = use k is full
 * (write: waits for its I/O) or loaded (read: may be copied out). */
typedef struct mpiox_buffer_slot {
    _Alignas(MPIOX_LINE) mpiox_futex phase; /* see above */
    _Atomic uint32_t arrived;               /* participants that are done with this use */
    _Atomic uint32_t claimed;               /* uses whose I/O some rank does, or has done */
    _Atomic int64_t window;                 /* the aggregator's window in this use */
    _Atomic int64_t eof;                    /* reads: file offset up to which the buffer holds data */
} mpiox_buffer_slot;

/* The collective under way. */
typedef struct mpiox_call_state {
    _Alignas(MPIOX_LINE) _Atomic uint32_t failed; /* 0, 1 = being written, 2 = error is valid */
    mpiox_error error;                            /* first error of the rounds */
    _Alignas(MPIOX_LINE) _Atomic int64_t eof;     /* reads: lowest end of file seen */
    int32_t views_disjoint;    /* whole views of the node's ranks: -1 not tried, 0 not proven, 1 proven */
    mpiox_reduction reduction; /* of all ranks; written by the rank that closes the first barrier */
    int64_t stride;            /* of every rank; INT64_MIN: they differ, or calls overlap (mpiox_individual.c) */
    _Atomic uint32_t mixed;    /* in a call some ranks went alone, and others would have met: mpiox_individual.c */
    bool huge;                 /* the buffers are in huge pages, as far as the kernel can */
} mpiox_call_state;

#endif
