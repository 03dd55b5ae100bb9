/*
 * mpiox_nonblocking.h - nonblocking data access: a task of a worker thread, and a generalized request for the program.
 *
 * The worker makes no MPI call on one node. A call of the program that completes requests (MPI_Wait, MPI_Test...:
 * mpiox_completion.c wraps them) also completes these, so the MPI library needs no thread support.
 */
#ifndef MPIOX_NONBLOCKING_H
#define MPIOX_NONBLOCKING_H

#include "mpiox_mpi_prepare.h"

/* Start an access; takes *prepared over. A small independent access to a local file system is done on return: a thread
 * would cost more than the copy into the page cache. False: nothing has been done and the caller keeps *prepared (no
 * memory, no thread or no request). */
bool mpiox_nonblocking_start(mpiox_handle *handle, mpiox_prepared *prepared, bool collective, MPI_Request *request);
/* Wait until every access of the file that has been started is done. NULL-safe. */
void mpiox_nonblocking_drain(mpiox_handle *handle);
/* The file is about to be closed: drain, end the workers, complete the requests. */
void mpiox_nonblocking_close(mpiox_handle *handle);

/* ---- for mpiox_completion.c -------------------------------------------------------------------------------------- */

/* Does any request of this library exist? Cheap. */
bool mpiox_nonblocking_any(void);
/* Complete the requests whose access is done, so that MPI_Test and its kin find them complete. */
void mpiox_nonblocking_complete_finished(void);
/* Is this a request of this library whose access is not done? */
bool mpiox_nonblocking_is_pending(MPI_Request request);
/* If this is a request of this library, wait until its access is done; MPI makes progress meanwhile. */
void mpiox_nonblocking_wait(MPI_Request request);
/* For a caller that waits: run the access of this request in the calling thread, or the access queued first, if this
 * one is still queued and independent. False: nothing was run. */
bool mpiox_nonblocking_run_here(MPI_Request request);
/* For a caller that tests: the worker starts the access now, if it is still queued. */
void mpiox_nonblocking_start_queued(MPI_Request request);

/* Both MPI libraries pass an error that a query function returns to the error handler of MPI_COMM_WORLD. Between begin
 * and end the query functions collect errors instead, for mpiox_nonblocking_error_of(). Pairs nest; the outermost end
 * discards errors that were not fetched. inspect: the requests stay as they are (MPI_Request_get_status), and errors
 * are not collected. */
void mpiox_nonblocking_errors_begin(bool inspect);
void mpiox_nonblocking_errors_end(bool inspect);
/* Call the file's error handler for the error collected for this request. The code; MPI_SUCCESS: there is none. */
int mpiox_nonblocking_error_of(MPI_Request request);

#endif
