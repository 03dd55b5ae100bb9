/*
 * mpiox_auto_select.h - the decisions of `auto`: aggregators and window of a file, domains and requests of a
 * collective.
 *
 * Facts in, decision out: pure functions over one table of rules (mpiox_auto_rules.c), so that all ranks that have the
 * same facts decide alike. No MPI, no I/O, no clock, local. Sizes are bytes.
 */
#ifndef MPIOX_AUTO_SELECT_H
#define MPIOX_AUTO_SELECT_H

#include "mpiox_layout.h"
#include "mpiox_partition.h"

/* The request of a hint; OPEN: no request. The values are those of mpiox_switch. */
typedef enum mpiox_auto_wish { MPIOX_AUTO_NO = 0, MPIOX_AUTO_YES, MPIOX_AUTO_OPEN } mpiox_auto_wish;

typedef struct mpiox_auto_facts {
    mpiox_layout layout; /* of the file */
    int64_t start, end;  /* half-open access region; start == end: none yet, a file is being opened */
    bool write;          /* false: the access reads */
    /* The state that the file's collectives have left, see mpiox_auto_held. */
    const mpiox_partition_method *held; /* NULL: no state */
    int64_t held_bytes;                 /* bytes of the access, written under that method */
    int32_t aggregators;                /* their largest possible number; with nodes == 0 their number */
    int32_t nodes;                      /* nodes that they may be on; 0: their number is decided */
    int32_t nics;                       /* cards of the fast network of each of these nodes; 0: not known */
    /* hints */
    int32_t aggregators_asked;            /* the hint cb_nodes; 0: open */
    int64_t window_asked;                 /* cb_buffer_size, or the window in force; 0: open */
    const mpiox_partition_method *method; /* mpiox_partition; NULL: open */
    mpiox_auto_wish stripe_size_io;       /* mpiox_stripe_size_io */
} mpiox_auto_facts;

typedef struct mpiox_auto_decision {
    const mpiox_partition_method *method;     /* of the file domains */
    int32_t aggregators;                      /* in force: geometry.aggregators of a plan */
    int32_t aggregators_use;                  /* of them after the method's own adjustment */
    int64_t window_bytes;                     /* of one collective buffer */
    int64_t alignment_bytes;                  /* no file domain begins inside such a unit: the stripe size, or 1 */
    bool stripe_size_io;                      /* no request larger than a stripe or across a stripe's end */
    const mpiox_partition_method *instead_of; /* the rules' method, if another one is faster; else NULL */
    bool instead_of_held;                     /* ... namely the method of the collectives before */
    const char *reason;                       /* of the method; static text */
    const char *source;                       /* the source of the rule; static text */
    /* to explain the decision */
    double time;                         /* of the method, seconds, estimated; 0: not estimated */
    const mpiox_partition_method *other; /* instead_of, or the fastest of the others; NULL: no other was estimated */
    double other_time;                   /* including the cost of a change of owners, if the owners change */
    bool changes;                        /* ... they do */
    mpiox_layout layout;                 /* of the facts */
    const char *locks;                   /* the protocol of the locks; static text */
} mpiox_auto_decision;

/* The owners of the locks and cached pages that a file handle's collectives have left. Zero-filled: none. The state
 * depends only on values that are the same on all ranks: the regions and methods of collectives with file domains, not
 * the accesses of one rank alone. */
typedef struct mpiox_auto_held {
    const mpiox_partition_method *method; /* of the last such collective */
    int64_t start, end;                   /* hull of the bytes written since then by that method; start == end: none */
} mpiox_auto_held;

/* Note that a collective accesses the region of the facts by this method. */
void mpiox_auto_hold(mpiox_auto_held *held, const mpiox_auto_facts *facts, const mpiox_partition_method *method);
/* Add the state to the facts, whose region is set. */
void mpiox_auto_set_held(const mpiox_auto_held *held, mpiox_auto_facts *facts);

/* Decide. MPIOX_E_ARG: no planner accepts the facts as a geometry, or there is no window; MPIOX_E_NOMEM. If methods are
 * compared, this takes as long as planning a few rounds by each of them. */
int mpiox_auto_decide(const mpiox_auto_facts *facts, mpiox_auto_decision *out);

#define MPIOX_AUTO_KEPT 4

/* The last decisions for collectives of a file, which often access as much again further on. Zero-filled: empty. */
typedef struct mpiox_auto_memory {
    mpiox_auto_facts facts[MPIOX_AUTO_KEPT];        /* the input of decisions[i] */
    mpiox_auto_decision decisions[MPIOX_AUTO_KEPT]; /* the first n are valid */
    int32_t n, oldest; /* entries in use; the entry that the next decision replaces when all are in use */
} mpiox_auto_memory;

/* The same as mpiox_auto_decide(), from a memory of recent decisions. */
int mpiox_auto_decide_again(mpiox_auto_memory *memory, const mpiox_auto_facts *facts, mpiox_auto_decision *out);

/* One line for the statistics: the method, aggregators, servers, stripe and window; the reason and its source; the
 * method's estimated time and the best other method, if these were estimated. Cut off at text_bytes, which is 1 or
 * more. */
void mpiox_auto_explain(const mpiox_auto_decision *decision, char *text, int64_t text_bytes);

#endif
