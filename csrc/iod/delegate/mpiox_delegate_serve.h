/*
 * mpiox_delegate_serve.h - what a delegate does from its start to its end, in whatever process or thread it lives.
 *
 * A delegate runs on any core that the process may use, whatever core its MPI library has bound it to: it works while
 * the ranks compute, and a rank on the same core would wait for it in every request.
 */
#ifndef MPIOX_DELEGATE_SERVE_H
#define MPIOX_DELEGATE_SERVE_H

#include "mpiox_group_plan.h"

typedef struct mpiox_delegate_service { /* start from {0} */
    mpiox_server *server;
    mpiox_listener *listener;
} mpiox_delegate_service;

/* Make its memory and take connections; *out says so, or why not. Binds the calling thread to nothing; the same thread
 * should serve. Local. Returns out->code. */
int mpiox_delegate_begin(const mpiox_delegate_orders *orders, mpiox_delegate_service *service, mpiox_announcement *out);
/* Serve until all clients have left or mpiox_delegate_stop(). Bytes that could not be brought to their file when no
 * client was left to be told are reported (mpiox_delegate_tell). Blocking. 0 or MPIOX_E_IO. */
int mpiox_delegate_serve(mpiox_delegate_service *service);
/* Everybody has attached: what has a name in a file system loses it. What has none keeps its descriptor, by which the
 * status finds it. */
void mpiox_delegate_seal(mpiox_delegate_service *service, const mpiox_announcement *said);
void mpiox_delegate_stop(mpiox_delegate_service *service); /* any thread, while it serves or before */
void mpiox_delegate_end(mpiox_delegate_service *service);  /* free; not while it serves */

#endif
