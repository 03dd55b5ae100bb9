/*
 * mpiox_service_totals.h - the counters of the job's delegates, for the statistics of the run.
 *
 * Problem.   A delegate counts in its own memory, which only the processes of its node map; one rank prints the
 *            statistics of the run.
 * Algorithm. Every process copies the counters that it can read: a row of numbers per delegate, zeros for those of
 *            other nodes. Counters only grow, so the largest value of any process is the newest. Then the rows are
 *            summed.
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
