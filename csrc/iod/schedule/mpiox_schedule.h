/*
 * mpiox_schedule.h - the order in which requests to the file system are served.
 *
 * Problem. Requests of many clients wait for one file system. The choice of the next one decides how large the requests
 *          are that reach it, how long each client waits, and what share of the file system it gets.
 * Form.    A queue of requests (file, byte range, direction, flow, target, time of arrival) with interchangeable
 *          policies behind one vtable. mpiox_schedule_next() takes out a batch: one request, and those that continue it
 *          in the file, so that the caller makes one request of them.
 *
 *   mpiox_schedule.c         the queue: the common part of all policies
 *   mpiox_schedule_tree.c    requests by their place in the file: overlaps, neighbours
 *   mpiox_schedule_lane.c    requests that a policy keeps together: of a file, a flow, a target
 *   mpiox_schedule_POLICY.c  for each POLICY of mpiox_schedule_policies.h one file, with its source
 *
 * Guarantees, whatever the policy:
 *   - Every request that was added comes out exactly once, unless it is cancelled.
 *   - Of two requests that overlap in a file and of which one writes, the one that was added first is done before the
 *     other comes out: no policy can reorder them.
 *   - No starvation: with a patience of p, the oldest of the requests that have waited for p is in every 8th batch, or
 *     in the next one when the policy serves nothing. With n requests before it, a request waits at most for p and
 *     8 (n + 1) batches, its own included. Policies that are fair (mpiox_schedule_state.h) bound the wait themselves.
 * Pure: no MPI, no I/O, no clock (times are passed in, in nanoseconds of any clock that does not go back), no threads,
 * no memory beside that of mpiox_schedule_create().
 */
#ifndef MPIOX_SCHEDULE_H
#define MPIOX_SCHEDULE_H

#include "mpiox_error.h"
#include "mpiox_schedule_request.h"

/* Name and source of a policy, NULL if no policy has that number. */
const char *mpiox_schedule_policy_name(int index);
const char *mpiox_schedule_policy_source(int index);

/* MPIOX_OK, MPIOX_E_ARG (an option is not legal, or the policy does not exist) or MPIOX_E_NOMEM. */
int mpiox_schedule_create(const mpiox_schedule_options *options, mpiox_schedule **out);
void mpiox_schedule_free(mpiox_schedule *schedule); /* NULL-safe */

/* A request has come at time `now`; *id names it until it is done or cancelled. MPIOX_OK, MPIOX_E_ARG, MPIOX_E_FULL. */
int mpiox_schedule_add(mpiox_schedule *schedule, const mpiox_schedule_request *request, int64_t now, uint32_t *id);
/* Take the next batch out: requests of one file and direction, each beginning where the one before it ends, in that
 * order. Returns how many: up to batch_requests, for which ids must have room. 0: nothing is to be served now; ask
 * again at *until, or when a request was added or done (MPIOX_SCHEDULE_NEVER: only then). hurry: no policy waits. */
int32_t mpiox_schedule_next(mpiox_schedule *schedule, int64_t now, bool hurry, uint32_t *ids, int64_t *until);
/* A request that was taken out has been served. MPIOX_OK or MPIOX_E_ARG (it is not being served). */
int mpiox_schedule_done(mpiox_schedule *schedule, uint32_t id);
/* A request that waits is not wanted any more. MPIOX_OK or MPIOX_E_ARG (it does not wait). */
int mpiox_schedule_cancel(mpiox_schedule *schedule, uint32_t id);

/* Of a request that waits or is being served; NULL: there is none. */
const mpiox_schedule_request *mpiox_schedule_get(const mpiox_schedule *schedule, uint32_t id);
int64_t mpiox_schedule_depth(const mpiox_schedule *schedule); /* requests that wait */
void mpiox_schedule_count(const mpiox_schedule *schedule, mpiox_schedule_counters *out);

#endif
