/*
 * mpiox_partition_auto.h - what `auto` decides: aggregators and window of a file, domains and requests of a collective.
 *
 * Facts in, decision out: pure functions over one table of rules (mpiox_partition_rules.c), so that all ranks that have
 * the same facts decide alike. No MPI, no I/O, no clock, local. Sizes are bytes.
 */
#ifndef MPIOX_PARTITION_AUTO_H
#define MPIOX_PARTITION_AUTO_H

#include "mpiox_layout.h"
#include "mpiox_partition.h"

/* What somebody has asked for by hint, or leaves open. The values are those of mpiox_switch. */
typedef enum mpiox_partition_wish {
    MPIOX_PARTITION_NO = 0,
    MPIOX_PARTITION_YES,
    MPIOX_PARTITION_OPEN
} mpiox_partition_wish;

typedef struct mpiox_partition_facts {
    mpiox_layout layout;
    int64_t start, end;  /* half-open access region; start == end: none yet, a file is being opened */
    bool write;          /* false: the access reads */
    int32_t aggregators; /* as many as there may be; with nodes == 0 as many as there are */
    int32_t nodes;       /* nodes they may lie on; 0: their number is settled */
    /* hints */
    int32_t aggregators_asked;            /* cb_nodes; 0: open */
    int64_t window_asked;                 /* cb_buffer_size, or the window in force; 0: open */
    const mpiox_partition_method *method; /* mpiox_partition; NULL: open */
    mpiox_partition_wish stripe_size_io;  /* mpiox_stripe_size_io */
} mpiox_partition_facts;

typedef struct mpiox_partition_decision {
    const mpiox_partition_method *method;
    int32_t aggregators;                      /* in force: geometry.aggregators of a plan */
    int32_t aggregators_use;                  /* of them after the method's own adjustment */
    int64_t window_bytes;                     /* of one collective buffer */
    int64_t alignment_bytes;                  /* no file domain begins inside such a unit: the stripe size, or 1 */
    bool stripe_size_io;                      /* no request larger than a stripe or across a stripe's end */
    const mpiox_partition_method *instead_of; /* what the rule says, where another one is found faster; else NULL */
    bool tried;                               /* ... by the lock model, not by the estimate alone */
    const char *reason;                       /* of the method; static text */
    const char *source;                       /* where the rule comes from; static text */
} mpiox_partition_decision;

/* Decide. MPIOX_E_ARG: the facts are no geometry that a planner takes, or no window; MPIOX_E_NOMEM. Microseconds, or
 * what the rules of topic "trial" allow; the latter not for start == end. */
int mpiox_partition_decide(const mpiox_partition_facts *facts, mpiox_partition_decision *out);

#define MPIOX_PARTITION_KEPT 4

/* The last decisions for collectives of a file, which often access as much again further on. Zero-filled: none yet. */
typedef struct mpiox_partition_memory {
    mpiox_partition_facts facts[MPIOX_PARTITION_KEPT];
    mpiox_partition_decision decisions[MPIOX_PARTITION_KEPT];
    int32_t n, oldest;
} mpiox_partition_memory;

/* The same as mpiox_partition_decide(), looked up where it was decided a short while ago. */
int mpiox_partition_decide_again(mpiox_partition_memory *memory, const mpiox_partition_facts *facts,
                                 mpiox_partition_decision *out);

/* One line for the statistics: the reason, and what differs from the usual. Cut off at text_bytes. */
void mpiox_partition_explain(const mpiox_partition_decision *decision, char *text, int64_t text_bytes);

#endif
