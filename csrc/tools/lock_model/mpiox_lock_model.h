/*
 * mpiox_lock_model.h - a model of file locking: the cost of a collective's file-system requests under a lock protocol.
 *
 * Problem. The best file domains depend on the locks of a file system, and few people have one of ten thousand cores to
 *          try it on. The model takes the requests of the planners of csrc/core/domains, in the order in which
 *          aggregators make them, and runs a lock server (Lustre) or a token manager (GPFS) on them. It counts locks,
 *          conflicts and revocations of every server, and predicts a time. Pure: no MPI, no I/O, no clock; the same
 *          input, the same result.
 * Order.   Collective after collective, round after round (window number i of every aggregator), and in a round step
 *          after step: step k is the k-th request of every aggregator in this round. The requests of a step are
 *          concurrent. At an object (a server's part of the file) those that the aggregator's own lock covers come
 *          first, then the others in the order of the aggregators' numbers or in a random order.
 * Sources. docs/explanation/locks.md. Times are seconds, sizes bytes.
 */
#ifndef MPIOX_LOCK_MODEL_H
#define MPIOX_LOCK_MODEL_H

#include <stdbool.h>

#include "mpiox_lock_model_types.h"
#include "mpiox_partition.h"

bool mpiox_lock_model_system_is_valid(const mpiox_lock_model_system *system);

/* Run the model on the region of a geometry (with run->collectives > 1: and on as many regions behind it). MPIOX_E_ARG:
 * a value is out of range, the last region ends beyond MPIOX_PARTITION_MAX_OFFSET, or no method; MPIOX_E_NOMEM;
 * MPIOX_E_STOPPED: run->stop was set, which is checked once a step; the outcome is useless. Time: about O(pieces log
 * locks), a piece being one request's bytes on one server; memory: the locks that are granted at once, the extents of
 * one round, the pieces of one step, and one bit for each aggregator and server. */
int mpiox_lock_model_simulate(const mpiox_partition_method *method, const mpiox_geometry *geometry,
                              const mpiox_lock_model_system *system, const mpiox_lock_model_run *run,
                              mpiox_lock_model_outcome *outcome);

#endif
