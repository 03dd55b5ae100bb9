/*
 * mpiox_process_serve.h - the work of a delegate from its start to its end, in any process or thread.
 *
 * A delegate runs on any core that the process may use, even if its MPI library has bound it to one: it works while the
 * ranks compute, and a rank on the same core would wait for it in every request.
 */
#ifndef MPIOX_PROCESS_SERVE_H
#define MPIOX_PROCESS_SERVE_H

#include "mpiox_process_orders.h"
#include "mpiox_process_peers.h"

typedef struct mpiox_process_instance { /* start from {0} */
    mpiox_server *server;               /* owned */
    mpiox_remote *remote;               /* serves clients of other nodes; owned; NULL: none */
    mpiox_process_peers *peers;         /* NULL: no copies are kept */
    char cache_dirs[256];               /* as in mpiox_server_options */
} mpiox_process_instance;

/* Create its memory and accept connections; *out is its announcement, or explains why it failed. Binds the calling
 * thread to nothing; the same thread should serve. Local. Returns out->code. */
int mpiox_process_begin(const mpiox_process_orders *orders, mpiox_process_instance *instance, mpiox_announcement *out);
/* Serve until all clients have left or mpiox_process_stop(). Where the delegate's own cache has a name in a folder,
 * what killed jobs have left there is brought to the files meanwhile. Bytes that could not be written when no client
 * was left are reported (mpiox_process_notify). Blocking. 0 or MPIOX_E_IO. */
int mpiox_process_serve(mpiox_process_instance *instance);
/* All clients have attached: remove the segment's name from the file system. A segment without name keeps its
 * descriptor, by which the status finds it. */
void mpiox_process_seal(mpiox_process_instance *instance, const mpiox_announcement *announced);
void mpiox_process_stop(mpiox_process_instance *instance); /* any thread, while it serves or before */
void mpiox_process_end(mpiox_process_instance *instance);  /* free; not while it serves */

#endif
