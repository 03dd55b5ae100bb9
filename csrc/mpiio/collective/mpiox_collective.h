/*
 * mpiox_collective.h - collective read and write of a file: two-phase over file domains, or straight to the file.
 *
 *   mpiox_collective_call.c  the order of the steps of a call
 *   mpiox_individual.c       calls in which no rank waits for another
 *   mpiox_contribution.c     one rank's part of a call
 *   mpiox_reduction.c        all ranks' parts together: agreement before the rounds and after them
 *   mpiox_choose.c           direct or two-phase, and over which file domains: measured rules
 *   mpiox_aggregators.c      the choice of aggregators
 *   mpiox_owners.c           the aggregator of each file domain
 *   mpiox_rounds_used.c      the rounds that have work to do
 *   mpiox_rounds.c           the rounds of a two-phase call
 *
 * Inside a node every rank copies its pieces straight between its own memory and the aggregators' collective buffers
 * (buffers/); the transport (transport/) moves pieces to and from other nodes. Everything here is collective over the
 * file's communicator and blocking, unless it is marked local.
 */
#ifndef MPIOX_COLLECTIVE_H
#define MPIOX_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_file.h"

typedef struct mpiox_collective mpiox_collective;

/* For a file that is being opened, whose layout is not certain yet: fill in the values that the ranks have to agree on
 * (see mpiox_file_companion), and *out for mpiox_collective_create(); NULL without memory, which the values show.
 * Local. False, on every rank: finding the values is collective here, so that nothing was done. */
bool mpiox_collective_prepare(mpiox_file *file, mpiox_collective **out, int values[MPIOX_FILE_COMPANION_VALUES]);
/* For a file that was just opened, which must outlive it. `prepared` (taken; may be NULL) and `agreed`: of
 * mpiox_collective_prepare(), and the lowest of all ranks' values; agreed NULL, on all ranks: it was in vain, or not
 * done. Agreed: every rank gets one, or every rank MPIOX_E_*, *out == NULL and in *why_not a reason (static text). Its
 * memory is set up here where the last file's can serve again, and where mpiox_topology_background() is true, because a
 * nonblocking collective cannot; else by the first collective. */
int mpiox_collective_create(mpiox_file *file, mpiox_collective *prepared, const int *agreed, mpiox_collective **out,
                            const char **why_not);
void mpiox_collective_free(mpiox_collective *collective); /* local; NULL-safe */

/* Collective data access. Returns outcome->error.code. In a call in which ranks do not wait for one another, outcome
 * and error are this rank's (mpiox_individual.c); else the error is the same on all ranks. MPIOX_E_UNSUPPORTED (agreed
 * by all ranks, nothing done): the caller hands the call to PMPI. */
int mpiox_collective_access(mpiox_collective *collective, const mpiox_request *request, mpiox_outcome *outcome);
/* The same from a thread of this library while the program continues: between the calls of all ranks no other call on
 * this file may be under way. Only if mpiox_topology_background() permits it. An operation that only PMPI could do is
 * an error here. */
int mpiox_collective_access_background(mpiox_collective *collective, const mpiox_request *request,
                                       mpiox_outcome *outcome);

/* Local; false: there is none to be had for it, on any rank, and mpiox_collective_access() carries nothing out. */
bool mpiox_collective_has_memory(const mpiox_collective *collective);
int mpiox_collective_aggregators(const mpiox_collective *collective);       /* local; number in force */
int mpiox_collective_aggregator(const mpiox_collective *collective, int i); /* local; rank of the i-th, from 0 */
int64_t mpiox_collective_buffer_bytes(const mpiox_collective *collective);  /* local; size of one collective buffer */

#endif
