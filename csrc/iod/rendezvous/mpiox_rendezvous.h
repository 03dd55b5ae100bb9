/*
 * mpiox_rendezvous.h - how processes of a job connect over the network: one listener and one connector for all
 * purposes.
 *
 *   mpiox_rendezvous_listen.c   the listener: accepting, admitting, refusing
 *   mpiox_handshake.c           the proofs of both sides
 *   mpiox_rendezvous_connect.c  the connector: finding an address that leads to the listener
 *   mpiox_rendezvous_socket.c   addresses for other hosts, options
 *
 * Threats.
 *   Connecting: every process that reaches the port can connect: other users of this host, and of the hosts of its
 *   networks. A job accepts connections nowhere else: a delegate's listener admits data and heartbeats, that of its
 *   supervisor liveness queries, and rank 0's, while it spawns delegates, their calls.
 *   An unauthenticated peer can have one random number and one proof made for it, use one of at most 256 places of a
 *   listener for ten seconds at most, and see that a job of this library listens, and for which purposes: a hello for
 *   another one gets no answer. The listener reads only a hello and an answer of fixed lengths from it, and uses no
 *   memory, thread or request of the delegate for it.
 *   Both sides first prove that they know the secret, for this purpose, on this connection to this address and port
 *   (mpiox_handshake.h). A listener of another user gets a random number and the purpose.
 *   Only processes of the job know a secret. It has 128 bits. A delegate's secret admits data, heartbeats and liveness
 *   queries, and reaches the ranks by MPI. Spawned processes get another one for the call, by MPI or in their
 *   environment, which their user and root can read; a spawned delegate's own is derived from that call. A delegate
 *   that watches another gets the other's secret over such a connection (MPIOX_OP_PEER), masked by the session's key.
 *   Admitted peers are not trusted with memory: the code that serves the purpose checks their numbers.
 *   Not protected: later bytes of a connection are in clear, and only openings of files and such calls are sealed; an
 *   attacker that can change packets on their way (root of a host between) can take an admitted connection over. Any
 *   user can keep the port busy. Processes of the same user, and root, can do everything. More in
 *   docs/explanation/security.md.
 *   Not here: ranks of a delegate's host map its memory, which the kernel lets only its user open; a supervisor and its
 *   parent use a pair of sockets that they inherit. The arbiter accepts no connections: jobs and arbiter exchange
 *   files, each trusted by its owner (csrc/iod/arbiter, docs/explanation/security.md).
 *
 * Listener.  One epoll set serves all peers and the listening socket; nothing blocks. Each peer has ten seconds for the
 *            handshake, if the listener is called regularly: a supervisor does not call it while it writes a dead
 *            delegate's pages. The number of peers is limited: without room the listener drops the oldest one, unless
 *            it came within the last quarter of a second; then it stops accepting for a quarter of a second. So it
 *            serves a rush of clients in order, and silent ones make room.
 *            One descriptor is in reserve. If the process has no other left the listener drops the oldest peer; if
 *            there is none, or none older than a quarter of a second, the reserve serves one client. After that the
 *            listener only tries to accept ten times a second.
 * Connector. A host has addresses that lead nowhere from here, or to another host, and any user may listen there.
 *            Attempts start in the order of the addresses, the next one as soon as the last one has failed, or after
 *            0.2 s, and continue side by side. The first that proves itself gets the answer; the others are closed. A
 *            listener that hangs up may have had no room: the connector calls all addresses again, after a pause, when
 *            the others have had a second (twice as long each time), until the time is over. After "Happy Eyeballs",
 *            RFC 8305, section 5.
 * Guarantee. No call of the listener blocks, or accepts more than 32 connections. Peers of one listener that are not
 *            admitted use 256 descriptors at most, and a sixteenth of those that the process may have, but eight in any
 *            case. A process may have several listeners.
 */
#ifndef MPIOX_RENDEZVOUS_H
#define MPIOX_RENDEZVOUS_H

#include <stddef.h>

#include "mpiox_handshake.h"

enum { MPIOX_RENDEZVOUS_ADDRESSES = 8, MPIOX_RENDEZVOUS_INTERFACES = 64 };

typedef struct mpiox_rendezvous_address {      /* of a listener. Plain data: it travels over MPI */
    int32_t count;                             /* addresses in `host` */
    char host[MPIOX_RENDEZVOUS_ADDRESSES][64]; /* numeric IPv4 or IPv6 addresses, best first */
    int32_t port;                              /* of all addresses; 0: there is no listener */
    uint64_t secret[2];                        /* that admits a connection */
} mpiox_rendezvous_address;

typedef struct mpiox_rendezvous_place {           /* where to listen. Plain data */
    bool loopback;                                /* all clients are on this host: pretended nodes */
    char interfaces[MPIOX_RENDEZVOUS_INTERFACES]; /* a,b or a;b: only these are named to others; "": any of use */
} mpiox_rendezvous_place;

/* ---- the listener; one thread ------------------------------------------------------------------------------------ */

typedef struct mpiox_rendezvous mpiox_rendezvous;

typedef struct mpiox_rendezvous_peer {    /* one that is admitted */
    int fd;                               /* blocking, the caller's from now on */
    uint16_t purpose;                     /* enum mpiox_purpose; one that the listener admits */
    int64_t token;                        /* the connector's; its meaning depends on the purpose */
    uint8_t session[MPIOX_HANDSHAKE_KEY]; /* key that only the two sides know */
} mpiox_rendezvous_peer;

typedef struct mpiox_rendezvous_counts {
    int64_t accepts;  /* calls of accept() */
    int64_t admitted; /* peers that have proven themselves */
    int64_t refused;  /* peers that sent a wrong message, or have gone */
    int64_t late;     /* that took too long */
    int64_t replaced; /* that had to go for another one */
    int64_t pauses;   /* of accepting */
} mpiox_rendezvous_counts;

/* Listen on a free port of all addresses (loopback: of 127.0.0.1 or ::1 only), for a sum of purposes. *address: where,
 * with the secret. 0, MPIOX_E_NOMEM or MPIOX_E_IO (ENODEV: no interface that is named has an address here). */
int mpiox_rendezvous_open(const mpiox_rendezvous_place *place, uint16_t purposes, const uint64_t secret[2],
                          mpiox_rendezvous **out, mpiox_rendezvous_address *address, mpiox_error *error);
/* Drops peers that are not admitted. NULL-safe. */
void mpiox_rendezvous_close(mpiox_rendezvous *rendezvous);
/* Can be polled for POLLIN: there is something to do. -1 (never) for NULL. */
int mpiox_rendezvous_fd(const mpiox_rendezvous *rendezvous);
/* Call it when the descriptor is readable, and at least ten times a second: it accepts peers, checks proofs, and drops
 * peers. False: no peer is admitted now (or NULL); else call it again. */
bool mpiox_rendezvous_next(mpiox_rendezvous *rendezvous, mpiox_rendezvous_peer *out);
mpiox_rendezvous_counts mpiox_rendezvous_count(const mpiox_rendezvous *rendezvous);

/* ---- the connector ----------------------------------------------------------------------------------------------- */

typedef struct mpiox_rendezvous_wish {    /* a request, and its result */
    uint16_t purpose;                     /* enum mpiox_purpose */
    int64_t token;                        /* sent to the listener; its meaning depends on the purpose */
    void *welcome;                        /* the first bytes that the listener's side sends when it has admitted us */
    size_t welcome_bytes;                 /* bytes of `welcome`; exactly so many are read */
    uint8_t session[MPIOX_HANDSHAKE_KEY]; /* set; on some failures, too */
} mpiox_rendezvous_wish;

/* Blocking, at most `seconds`. Returns a (blocking) socket with the welcome filled in and the session's key set; or
 * MPIOX_E_IO with *error: errno EACCES: a listener answers that does not know the secret. */
int mpiox_rendezvous_connect(const mpiox_rendezvous_address *address, double seconds, mpiox_rendezvous_wish *wish,
                             mpiox_error *error);

/* Has this host one of the network interfaces of a list a,b,c or a;b;c? */
bool mpiox_rendezvous_has_interface(const char *list);

/* ---- sockets ----------------------------------------------------------------------------------------------------- */

/* A nonblocking listening socket; *address without its secret. As mpiox_rendezvous_open(), which calls it. */
int mpiox_rendezvous_bind(const mpiox_rendezvous_place *place, int *fd, mpiox_rendezvous_address *address,
                          mpiox_error *error);
bool mpiox_rendezvous_set_blocking(int fd);
/* The options of every connection: nothing is delayed, a vanished host is found out. */
void mpiox_rendezvous_tune(int fd);
/* All data must be acknowledged by the other host within so many seconds. */
void mpiox_rendezvous_limit(int fd, double seconds);

#endif
