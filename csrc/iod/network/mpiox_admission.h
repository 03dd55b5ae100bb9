/*
 * mpiox_admission.h - a listening socket, and those who have connected and not proven yet that they belong to the job.
 *
 * Problem.   Anybody can connect, say nothing, half of a hello or anything else, and as often as he likes. Clients must
 *            come through meanwhile, and the process must keep its descriptors and its processor.
 * Algorithm. Unauthenticated peers are heard side by side, by one epoll set that also holds the listening socket;
 *            nothing blocks. Each has ten seconds for the handshake (mpiox_handshake.h). Their number is limited: when
 *            there is no room the oldest one goes, unless it came within the last quarter of a second; then accepting
 *            pauses so long. So a rush of clients is served in order, and those who only sit there make room. One whose
 *            place was taken calls again (mpiox_link_connect.h).
 *            One descriptor is kept in reserve. When the process has no other left the oldest unauthenticated peer
 *            goes; if there is none, the reserve serves one client. After that accepting pauses and is tried ten times
 *            a second.
 * Guarantee. No call blocks. A call accepts at most 32 connections. Unauthenticated peers hold 256 descriptors at most,
 *            and a sixteenth of those that the process may have, but eight in any case.
 */
#ifndef MPIOX_ADMISSION_H
#define MPIOX_ADMISSION_H

#include "mpiox_handshake.h"

typedef struct mpiox_admission mpiox_admission; /* one thread */

typedef struct mpiox_admitted { /* one of the job's */
    int fd;                     /* nonblocking, the caller's from now on */
    mpiox_handshake_wish wish;
    uint8_t session[MPIOX_HANDSHAKE_KEY];
} mpiox_admitted;

typedef struct mpiox_admission_counts {
    int64_t accepts;  /* calls of accept() */
    int64_t admitted; /* unauthenticated peers who have proven themselves */
    int64_t refused;  /* who have said something wrong, or have gone */
    int64_t late;     /* who took too long */
    int64_t replaced; /* who had to go for another one */
    int64_t pauses;   /* of accepting */
} mpiox_admission_counts;

/* For a listening, nonblocking socket, which stays the caller's and outlives it. 0, MPIOX_E_NOMEM or MPIOX_E_IO. */
int mpiox_admission_create(int listener, mpiox_handshake_protocol protocol, const uint64_t secret[2],
                           mpiox_admission **out, mpiox_error *error);
/* Drops all unauthenticated peers. NULL-safe. */
void mpiox_admission_free(mpiox_admission *admission);
/* Can be polled for POLLIN: there is something to do. */
int mpiox_admission_fd(const mpiox_admission *admission);
/* To be called when the descriptor says so, and at least ten times a second: who has come, who has proven himself, who
 * has to go. False: nobody has to be admitted now; else once more. */
bool mpiox_admission_next(mpiox_admission *admission, mpiox_admitted *out);
mpiox_admission_counts mpiox_admission_count(const mpiox_admission *admission);

#endif
