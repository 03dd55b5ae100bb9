/*
 * mpiox_service_totals.h - what the delegates of the job have counted, for the statistics of the run.
 *
 * Problem.   A delegate counts in its own memory, which only the processes of its node see; the statistics of the run
 *            are printed by one rank.
 * Algorithm. Every process writes down what it sees, a row of numbers per delegate, zeros for those of other nodes.
 *            Counters only grow: the largest value that any process has seen is the newest. Then the rows are summed.
 */
#ifndef MPIOX_SERVICE_TOTALS_H
#define MPIOX_SERVICE_TOTALS_H

#include "mpiox_service.h"
#include "mpiox_stats.h"

/* Numbers in a row. */
int mpiox_service_totals_width(void);
/* rows: [service->count * mpiox_service_totals_width()]. Local. */
void mpiox_service_totals_see(const mpiox_service *service, int64_t *rows);
void mpiox_service_totals_sum(const int64_t *rows, int delegates, mpiox_stats_delegates *out);

#endif
