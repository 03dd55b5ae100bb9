/*
 * mpiox_nonblocking.h - nonblocking data access: a worker thread, and a generalized request that the program waits for.
 *
 * The worker makes no MPI call on one node. The request is completed by whichever MPI_Wait or MPI_Test of the program
 * comes first (mpiox_completion.c wraps them), so that no thread support is asked of the MPI library.
 */
#ifndef MPIOX_NONBLOCKING_H
#define MPIOX_NONBLOCKING_H

#include "mpiox_file_prepare.h"

/* Start an access; *prepared is taken over. at_once: carry it out before returning. False: nothing has been done and
 * *prepared is still the caller's (no memory, no thread, no request). */
bool mpiox_nonblocking_start(mpiox_file *file, mpiox_prepared *prepared, bool collective, bool at_once,
                             MPI_Request *request);
/* Is an independent access so small, on a local file system, that a thread would cost more than the access? */
bool mpiox_nonblocking_at_once(const mpiox_file *file, const mpiox_prepared *prepared);
/* A collective that could not be started is carried out now. Returns the MPI code; *request is a completed request. */
int mpiox_nonblocking_run_now(mpiox_file *file, mpiox_prepared *prepared, MPI_Request *request);
/* Wait until all accesses of the file that were started have been carried out. NULL-safe. */
void mpiox_nonblocking_drain(mpiox_file *file);
/* The file is about to be closed: drain, end the worker, complete its requests. */
void mpiox_nonblocking_close(mpiox_file *file);

/* ---- for mpiox_completion.c -------------------------------------------------------------------------------------- */

bool mpiox_nonblocking_any(void); /* is any request of ours unfinished or not yet handed back? Cheap */
/* Complete the requests whose access is done, so that MPI_Test and its kin see it. */
void mpiox_nonblocking_progress(void);
/* Wait until the access behind this request is done, if it is one of ours; lets MPI progress meanwhile. */
void mpiox_nonblocking_await(MPI_Request request);
/* For who waits: carry out the access behind this request, or one before it, if that has not begun and may be done here.
 * False: nothing was done. */
bool mpiox_nonblocking_help(MPI_Request request);
/* For who only looks: let the access begin, if it has not. */
void mpiox_nonblocking_hurry(MPI_Request request);
bool mpiox_nonblocking_is_pending(MPI_Request request); /* ours, and its access is not done */
/* Between enter and leave errors of our requests are collected instead of being returned by their query function, which
 * both MPI libraries would hand to MPI_COMM_WORLD's error handler. They nest; what has not
 * been asked for by mpiox_nonblocking_failure() is forgotten by the last leave. look: the requests are only looked at. */
void mpiox_nonblocking_enter(bool look);
/* The code collected for this request since enter; calls its file's error handler. MPI_SUCCESS: there is none. */
int mpiox_nonblocking_failure(MPI_Request request);
void mpiox_nonblocking_leave(bool look);

#endif
