/*
 * mpiox_service_call.h - rank 0 and the processes that MPI has spawned for it: orders, announcements, verdict.
 *
 * Problem.   Messages between a program and its spawned processes are MPI's weakest part: with Open MPI 4.1 on a busy
 *            machine one in five handovers to three processes did not arrive (btl tcp), and MPI has no time limit for
 *            them.
 * Algorithm. The spawned processes call rank 0 by TCP instead. The spawn transports rank 0's address, and the secret
 *            that admits them: in their environment with Open MPI, by an MPI message with MPICH, whose Hydra offers
 *            nothing that other users could not read.
 *            Both sides prove that they know the secret (mpiox_handshake.h). From it both derive the secret of each
 *            delegate, which admits its clients: no secret is sent over the connection.
 * Guarantee. Every wait for a call, orders or a verdict has a deadline, except MPI's receive of rank 0's address under
 *            Hydra. In any case each side then calls MPI_Comm_disconnect.
 */
#ifndef MPIOX_SERVICE_CALL_H
#define MPIOX_SERVICE_CALL_H

#include "mpiox_rendezvous.h"
#include "mpiox_service_plan.h"

#define MPIOX_SERVICE_CALL_VARIABLE "MPIOX_DELEGATE_STARTER"

enum { MPIOX_SERVICE_CALL_TEXT = 1024 };

/* ---- rank 0 ------------------------------------------------------------------------------------------------------ */

typedef struct mpiox_service_call { /* start from {0} */
    mpiox_rendezvous *rendezvous;   /* the listener; owned */
    int32_t count;                  /* processes that are to call: one for each delegate */
    int *sockets;                   /* [count], -1: has not called */
    uint64_t (*secrets)[2];         /* [count], of the delegates */
} mpiox_service_call;

/* text: the message for the spawned processes (MPIOX_SERVICE_CALL_TEXT bytes). 0, MPIOX_E_IO or MPIOX_E_NOMEM; close
 * the call in any case. */
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
