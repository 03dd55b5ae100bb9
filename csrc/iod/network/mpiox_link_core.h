/*
 * mpiox_link_core.h - the inside of a link: one request at a time, the views that the delegate knows; only
 * csrc/iod/network includes it.
 *
 * Threads. Several threads use a link. A request, from its first message to its last answer, has the connection for
 *         itself; threads are served in the order in which they came.
 * Death.  An error on the connection ends the link: `alive` stays false, and both sockets are shut down, so that
 *         waiting threads continue immediately.
 */
#ifndef MPIOX_LINK_CORE_H
#define MPIOX_LINK_CORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "mpiox_link_message.h"
#include "mpiox_link_stream.h"

enum { MPIOX_LINK_CHUNK = 256 * 1024 }; /* of the buffer that packs and unpacks */

typedef struct mpiox_link_view_entry {
    mpiox_typemap *view; /* NULL: none */
    uint64_t used;       /* value of link->uses at its last use; the lowest one is replaced first */
} mpiox_link_view_entry;

typedef struct mpiox_link_filter_entry {
    mpiox_link_filter filter; /* unit_bytes 0: none */
    uint64_t used;            /* as in mpiox_link_view_entry */
} mpiox_link_filter_entry;

typedef struct mpiox_link_batch { /* collected writes: a message being made, or one without an answer yet */
    char *bytes;                  /* records with their data, as they are sent; NULL: not allocated */
    int64_t used;                 /* bytes of `bytes` in use */
    int64_t last;                 /* where the last record is; -1: none */
    int32_t records;              /* number of them */
    int32_t first;                /* the first one that was not carried out */
    uint32_t number;              /* of the message, when it was sent */
    bool sent;                    /* its message was sent, perhaps in vain; no answer has come yet */
} mpiox_link_batch;

typedef struct mpiox_link {
    mpiox_link_stream stream;             /* the connection for requests */
    int heartbeat;                        /* socket of the heartbeats, or -1 */
    pthread_t heartbeat_thread;           /* valid if has_heartbeat */
    bool has_heartbeat;                   /* the thread was started, and is to be joined */
    atomic_bool alive;                    /* the connection works; once false it stays false */
    int64_t page_bytes;                   /* of the delegate */
    uint8_t session[MPIOX_HANDSHAKE_KEY]; /* key of the handshake, for seals */

    pthread_mutex_t lock;       /* protects the fields from next_ticket to seen_moves */
    pthread_cond_t next_ticket; /* signalled when `serving` rises */
    uint64_t tickets, serving;  /* number of the next thread that comes; number of the thread that has the link */
    /* seconds of the monotonic clock: the start of the request, or the last passing of bytes; 0: no thread uses the
     * link */
    double request_began;
    uint64_t seen_moves; /* of the stream, under the lock */

    /* With the link acquired: */
    uint32_t number;                                     /* of the last request that is answered */
    uint32_t epoch;                                      /* of writes */
    uint64_t openings;                                   /* sealed requests that were sent */
    uint64_t uses;                                       /* uses of views and filters: the clock of their `used` */
    mpiox_link_view_entry views[MPIOX_LINK_VIEWS];       /* that the delegate knows, by number */
    mpiox_link_filter_entry filters[MPIOX_LINK_FILTERS]; /* that the delegate knows, by number */
    char *buffer;                                        /* MPIOX_LINK_CHUNK bytes, on demand */

    int64_t behind_bytes;        /* of a batch; 0: writes are not collected */
    mpiox_link_batch batches[2]; /* collected writes */
    int32_t filling;             /* which of them */
    int32_t stuck;               /* why collected writes could not be carried out, or MPIOX_OK */
    mpiox_error stuck_error;     /* of `stuck` */
} mpiox_link;

mpiox_link *mpiox_link_new(void);          /* without sockets, not alive; NULL: no memory */
void mpiox_link_acquire(mpiox_link *link); /* in the order of arrival */
void mpiox_link_release(mpiox_link *link);
/* The connection is lost, or the peer does not keep to the format. Any thread. Returns MPIOX_E_UNSUPPORTED. */
int mpiox_link_fail(mpiox_link *link);

/* The following with the link acquired. Each gives 0 or MPIOX_E_UNSUPPORTED, after mpiox_link_fail(). */

/* Make a head ready to be sent. answered: it gets a number. The caller sends it and its body. */
int mpiox_link_start(mpiox_link *link, mpiox_link_message *head, bool answered);
/* Send a head with its body; iov[0] is for the head, and all of iov is modified. more: another message follows at
 * once. */
int mpiox_link_send(mpiox_link *link, mpiox_link_message *head, struct iovec *iov, int count, bool answered, bool more);
/* The head of the next answer, which must be to request `number` of this kind and have at most max_bytes of body. */
int mpiox_link_receive(mpiox_link *link, uint16_t op, uint32_t number, int64_t max_bytes, mpiox_link_message *head);
/* Read the body of an answer: a mpiox_error if the head's result is negative (or nothing). */
int mpiox_link_receive_error(mpiox_link *link, const mpiox_link_message *head, mpiox_error *error);
/* A request without body, and its answer's head. */
int mpiox_link_ask(mpiox_link *link, mpiox_link_message *head, int64_t max_bytes, mpiox_link_message *answer);

/* The delegate's number for a view (NULL: -1) or a filter; sent to it if it does not know them. May also give
 * MPIOX_E_FULL: the view's description is too long. */
int mpiox_link_name_view(mpiox_link *link, const mpiox_typemap *view, int16_t *number);
int mpiox_link_name_filter(mpiox_link *link, const mpiox_link_filter *filter, int16_t *number);
/* Would naming them take the numbers of others away? Then requests that name those must be over first. */
bool mpiox_link_replaces(const mpiox_link *link, const mpiox_typemap *view, const mpiox_link_filter *filter);
char *mpiox_link_buffer(mpiox_link *link); /* MPIOX_LINK_CHUNK bytes; NULL: no memory */

#endif
