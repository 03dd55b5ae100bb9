/*
 * mpiox_service_call.h - rank 0 and the processes that MPI has spawned for it: orders, announcements, verdict.
 *
 * Problem.   Messages between a program and what it spawned are MPI's weakest part: with Open MPI 4.1 on a busy machine
 *            one in five handovers to three processes did not arrive (btl tcp), for which there is no time limit.
 * Algorithm. The spawned processes call rank 0 by TCP instead. Where they find it, and the secret that admits them,
 *            goes with the spawn: Open MPI puts it into their environment; where MPICH's Hydra offers nothing that
 *            others could not read, MPI sends it.
 *            Both prove that they know it (mpiox_handshake.h). The secret of each delegate, which admits its clients,
 *            is derived on both sides: no secret is sent over the connection.
 * Guarantee. Every wait for a call, orders or a verdict has a deadline, but not MPI's receive of where to call, under
 *            Hydra. Whatever else happens each side then comes to MPI_Comm_disconnect.
 */
#ifndef MPIOX_SERVICE_CALL_H
#define MPIOX_SERVICE_CALL_H

#include "mpiox_rendezvous.h"
#include "mpiox_service_plan.h"

#define MPIOX_SERVICE_CALL_VARIABLE "MPIOX_DELEGATE_STARTER"

enum { MPIOX_SERVICE_CALL_TEXT = 1024 };

/* ---- rank 0 ------------------------------------------------------------------------------------------------------ */

typedef struct mpiox_service_call { /* start from {0} */
    mpiox_rendezvous *rendezvous;
    int32_t count;
    int *sockets;           /* [count], -1: has not called */
    uint64_t (*secrets)[2]; /* [count], of the delegates */
} mpiox_service_call;

/* text: what the spawned processes need to know (MPIOX_SERVICE_CALL_TEXT bytes). 0, MPIOX_E_IO or MPIOX_E_NOMEM; the
 * call is to be closed in any case. */
int mpiox_service_call_open(int32_t count, const mpiox_rendezvous_place *place, mpiox_service_call *call, char *text,
                            mpiox_error *error);
/* All have called within `seconds` and have their orders; then all have answered within `seconds`. 0 or
 * MPIOX_E_UNSUPPORTED. */
int mpiox_service_call_orders(mpiox_service_call *call, const mpiox_process_orders *orders, double seconds,
                              mpiox_announcement *announced, mpiox_error *error);
/* The verdict, to all that have called; and the end. */
void mpiox_service_call_close(mpiox_service_call *call, bool go);

/* ---- a spawned process ------------------------------------------------------------------------------------------- */

/* Call with that text, as number `index`: a socket, with the orders, or -1. */
int mpiox_service_call_make(const char *text, int32_t index, double seconds, mpiox_process_orders *orders);
/* The announcement; and whether the verdict is to go on. */
bool mpiox_service_call_answer(int socket, const mpiox_announcement *announced);

#endif
