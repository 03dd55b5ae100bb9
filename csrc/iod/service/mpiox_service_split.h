/*
 * mpiox_service_split.h - delegates on ranks of the program's own launch, which serve instead of computing.
 *
 * For MPI libraries and launchers that cannot spawn: the job is started with more ranks than the program needs.
 * Delegate i lives on its node (mpiox_service_plan.h), on the highest rank that is not taken yet; where a node has no
 * rank left, on the highest free one of the job. The delegate itself is a process of its own
 * (mpiox_process_child.h), so that its death is not that of a rank; where that cannot be started, the rank serves
 * itself.
 */
#ifndef MPIOX_SERVICE_SPLIT_H
#define MPIOX_SERVICE_SPLIT_H

#include "mpiox_service_plan.h"

/* out[i]: the rank that serves as delegate i; all different. 0, or MPIOX_E_ARG: no rank would be left. Local. */
int mpiox_service_split_ranks(const mpiox_service_plan *plan, int32_t *out);
/* On a rank that serves: start delegate `index`. Local. Returns announced->code. */
int mpiox_service_split_start(const mpiox_service_plan *plan, int32_t index, mpiox_announcement *announced);
/* There: serve until all clients have left, letting MPI make progress; or end at once. Blocking. */
void mpiox_service_split_serve(bool go);

#endif
