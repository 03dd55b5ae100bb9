/*
 * mpiox_auto_trial.h - candidates of `auto` run through the lock model (csrc/mpiio/lock_model), within a budget of
 * requests.
 *
 * Pure: no MPI, no I/O, no clock; the same candidates and budget, the same times, on every rank. It allocates.
 */
#ifndef MPIOX_AUTO_TRIAL_H
#define MPIOX_AUTO_TRIAL_H

#include "mpiox_auto_cost.h"

typedef struct mpiox_auto_candidate {
    const mpiox_partition_method *method;
    bool stripe_size_io;
    bool keep;     /* the others are compared with it: never left out for the sake of the budget */
    double time;   /* seconds: estimated, or predicted by the model; with */
    double change; /* what the change from the owners before costs, 0 if they stay */
    bool whole;    /* the model ran all of the region; false: nothing, or first rounds */
} mpiox_auto_candidate;

/* Data requests, at most, of the first six rounds of every candidate, or of all rounds; and setting the model up. */
int64_t mpiox_auto_first_rounds(const mpiox_auto_cost_case *c, const mpiox_auto_candidate *candidates, int n);

/* Replace the times of candidates, which come in ascending order of them, by those of the lock model. requests: data
 * requests that the model may run for all of them together, what it costs to set it up counted alike; of a region with
 * more, the first rounds are run and the rest extrapolated. most: as many as it may run where that takes it through six
 * rounds of each, or all; where it does not, the last candidates are left out, but never the first one and the
 * one to keep, which then moves to the front. Returns how many are left; 1: no time is replaced, for nothing was run:
 * these two do not fit; MPIOX_E_NOMEM. */
int mpiox_auto_try(const mpiox_auto_cost_case *c, int64_t requests, int64_t most, mpiox_auto_candidate *candidates,
                   int n);

#endif
