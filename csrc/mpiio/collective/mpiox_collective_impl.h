/* mpiox_collective_impl.h - the state of a file's collectives and the steps of a call. Private to this folder. */
#ifndef MPIOX_COLLECTIVE_IMPL_H
#define MPIOX_COLLECTIVE_IMPL_H

#include "mpiox_buffers.h"
#include "mpiox_collective.h"
#include "mpiox_auto_select.h"
#include "mpiox_transport.h"

/* Calls in which no rank waits for another (mpiox_individual.c). */
typedef struct mpiox_individual {
    uint32_t calls; /* collectives of this file; the same on every rank within a call */
    int row;        /* of them the last ones that met, in steps of one stride; the same on every rank */
    int64_t stride; /* of these; the same on every rank */
    int64_t views;  /* that had been set then */
    bool on;        /* ranks do not meet, unless a rank posts that it meets; the same on every rank within a call */
    bool asks;      /* this rank posts so in each call, after a mixture (mpiox_individual.c) */
    bool write;     /* this rank's last access; where it began, and its length, of the last one that met */
    int64_t first, room;
    int64_t least[2]; /* bytes of a piece that is read, or written, from which on it goes alone */
} mpiox_individual;

struct mpiox_collective {
    mpiox_buffers buffers; /* of this file; ranks of the node share what its pointers lead to in topology->segment */
    mpiox_transport *transport;                /* owned */
    const mpiox_partition_method *forced;      /* the method that the hint names; NULL = choose */
    const mpiox_partition_method *plan_method; /* of buffers.plan, which is reused while the geometry is the same */
    mpiox_auto_memory decisions;               /* of `auto` */
    mpiox_auto_held held;                      /* locks and pages, for its next decision */
    /* scratch for n_nodes reductions, of the rank that closes the contributions; NULL on ranks that never do */
    char *reductions;
    int *order;                                /* [n_aggregators] aggregators as chosen first; NULL until needed */
    mpiox_node_access *owners_nodes;           /* [n_nodes] the input of the present order; NULL: none yet */
    const mpiox_partition_method *owners_plan; /* and the method */
    bool native_only;                          /* no shared memory is to be had; the same on every rank */
    bool exchanged[2];                         /* the last read, the last write was two-phase */
    bool all_ahead[2];                         /* in it every rank knew by itself that its pieces go direct */
    mpiox_individual individual;               /* this rank's state of calls in which ranks do not meet */
};

/* Which ranks are aggregators: fills b->aggregators, b->local and their numbers, and b->window_bytes where it is 0.
 * Collective, not agreed. */
int mpiox_aggregators_choose(mpiox_buffers *b);
/* Is that local? Else it is collective, and blocking. The same on every rank. */
bool mpiox_aggregators_are_local(const mpiox_file *file);

void mpiox_contribution_write(mpiox_call *call); /* this rank's contribution. Local */
/* Fills call->reduction; its error's code. Before the other ranks go on, one rank of the node calls `then`, unless all
 * ranks go ahead. */
int mpiox_reduction_agree(mpiox_collective *collective, mpiox_call *call,
                          void (*then)(const mpiox_collective *, const mpiox_call *));
/* True when it is certain, but for 1 in 2^64, that every byte of the region is written by exactly one rank. */
bool mpiox_reduction_is_filled(const mpiox_reduction *reduction);
void mpiox_reduction_end(mpiox_collective *collective, mpiox_outcome *outcome); /* the agreed error and end of file */

/* This rank accesses its own pieces, as if alone; device->kind NULL: its memory is the host's. Returns the bytes that
 * were moved. Local. */
int64_t mpiox_individual_access_own(mpiox_file *file, const mpiox_request *request, const mpiox_device *device,
                                    mpiox_error *error);

/* Every collective begins with this. True: it is over on this rank, with this outcome. False: all ranks meet. */
bool mpiox_individual_access(mpiox_collective *collective, const mpiox_request *request, mpiox_outcome *outcome);
/* Of a call in which all ranks meet: each rank, with its contribution; one rank, before the others go on; then every
 * rank. Local. */
void mpiox_individual_contribute(mpiox_collective *collective, const mpiox_request *request,
                                 mpiox_contribution *contribution);
void mpiox_individual_prepare(const mpiox_collective *collective, const mpiox_reduction *reduction);
void mpiox_individual_note(mpiox_collective *collective, const mpiox_reduction *reduction);

bool mpiox_choose_direct(const mpiox_collective *collective, const mpiox_call *call); /* local, the same on all ranks */
/* From this rank's contribution alone: were all ranks' accesses like this one, would they go direct? Local. */
bool mpiox_choose_ahead(const mpiox_collective *collective, const mpiox_call *call);
/* On one node: from how many bytes on does a single piece of a rank go direct? INT64_MAX: never. Local, the same on all
 * ranks. */
int64_t mpiox_choose_alone(const mpiox_collective *collective, bool write);
/* When the file is opened, by the rules of `auto`: the number of aggregators, of which there may be `capacity`, on
 * nodes with so many network cards (0: not known), and the size of a window, b->window_bytes, unless that is > 0
 * already. Local, the same on all ranks; 0 or MPIOX_E_ARG. */
int mpiox_choose_settings(mpiox_buffers *b, int32_t capacity, int32_t nics, int32_t *aggregators);
int mpiox_choose_plan(mpiox_collective *collective, mpiox_call *call); /* b->plan, extents, call->rounds. Local */
/* b->aggregators and b->local in the order of the domains. 0 or MPIOX_E_NOMEM. Local, the same on all ranks. */
int mpiox_owners_choose(mpiox_collective *collective);
int mpiox_interval_by_first(const void *a, const void *b); /* for qsort(): the order of two intervals */
int mpiox_rounds_used(mpiox_call *call); /* call->used, the caller's to free, and n_used. 0 or MPIOX_E_NOMEM. Local */

void mpiox_rounds_run(mpiox_transport *transport, mpiox_call *call);

#endif
