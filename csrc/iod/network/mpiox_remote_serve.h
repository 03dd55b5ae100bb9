/*
 * mpiox_remote_serve.h - the requests of one connection, carried out on the cache.
 *
 * Data.  Bytes that arrive with a head are deposited from the stream's buffer. Further bytes are received in chunks
 *        from a store that all connections share. A connection takes a chunk when bytes have arrived (or can be sent),
 *        and gives it back before it waits for more. If an answer does not move for half a second, its rest moves to
 *        memory of its own: a client that is stopped half way does not stop the others.
 * Trust. A file is opened only with the seal of the rank that opens it, which is valid once, on this connection.
 * Order. One request after the other. A write that fails makes the later ones of its epoch fail, too.
 */
#ifndef MPIOX_REMOTE_SERVE_H
#define MPIOX_REMOTE_SERVE_H

#include <pthread.h>

#include "mpiox_cache_page.h"
#include "mpiox_link_message.h"
#include "mpiox_link_stream.h"

enum { MPIOX_STORE_CHUNKS = 256, MPIOX_STORE_CHUNK_MIN = 8 * 1024, MPIOX_STORE_CHUNK_MAX = 256 * 1024 };

typedef struct mpiox_remote_store {        /* memory for data in flight */
    pthread_mutex_t lock;                  /* protects the free chunks and `ending` */
    pthread_cond_t given_back;             /* signalled when a chunk comes back, or `ending` is set */
    int64_t chunk_bytes;                   /* of a chunk */
    int32_t chunks;                        /* at most; made on demand */
    int32_t made, free_count;              /* chunks that exist; of them free */
    char *free_chunks[MPIOX_STORE_CHUNKS]; /* the first free_count; owned */
    bool ending;                           /* no thread waits for a chunk any more */
} mpiox_remote_store;

void mpiox_remote_store_init(mpiox_remote_store *store, int64_t bytes); /* for all chunks together */
/* a thread that waits for a chunk continues without one */
void mpiox_remote_store_end(mpiox_remote_store *store);
void mpiox_remote_store_free(mpiox_remote_store *store); /* all chunks have been given back */

/* Serve until the peer leaves or breaks the format, or the delegate no longer serves. client: of the ring; session: the
 * key of the handshake. The socket stays open. 0 or MPIOX_E_NOMEM. */
int mpiox_remote_serve(const mpiox_cache *cache, mpiox_remote_store *store, int fd, int client,
                       const uint8_t session[MPIOX_HANDSHAKE_KEY]);

#endif
