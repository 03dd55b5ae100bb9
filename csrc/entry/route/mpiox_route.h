/*
 * mpiox_route.h - the way of an access of an open file: through the delegates, two-phase, or straight to the file.
 *
 * Independent accesses of a file that has delegates go through them, except in atomic mode. Collectives go through them
 * while some rank's accesses are cached there: a two-phase collective would first have to flush these bytes. If no
 * access is cached they are two-phase (or direct), as without delegates. The hint mpiox_collective requests one of the
 * two: two_phase or cached.
 *
 * Cached. Each rank's part of a collective goes to the delegates. Every rank computes which delegate owns a page: no
 *         rank needs another's part, nor has to wait for it.
 * Order.  In successive collectives programs write the same bytes from different ranks (fill values, then data), read
 *         bytes that other ranks wrote in the last one, and write a part alone before all write together. Hence no rank
 *         begins a collective before all have arrived, which is the one agreement of a call. On one node no rank waits
 *         at its end; between nodes they agree there on the error. If the program promises no independent access
 *         (romio_no_indep_rw), it suffices that all ranks have delivered the previous collective. On one node a counter
 *         in shared memory shows this, and a rank that is late by less than a call delays no other. Between nodes the
 *         end of the previous collective shows it. Independent accesses and sizes wait in the same way for the data of
 *         the last collective.
 * Errors. The ranks agree on a wrong argument when all have arrived. On one node other errors (with romio_no_indep_rw
 *         all errors) are returned to their rank immediately, and to the others at the next flush barrier (sync,
 *         close).
 */
#ifndef MPIOX_ROUTE_H
#define MPIOX_ROUTE_H

#include "mpiox_collective.h"
#include "mpiox_forwarded.h"

typedef struct mpiox_route {      /* all borrowed */
    mpiox_file *file;             /* the library's own path to the file */
    mpiox_collective *collective; /* for collectives that do not go through delegates */
    mpiox_forwarded *forwarded;   /* NULL: no delegates */
    bool all_ours;                /* no rank has a view that is not for this library; the same on all ranks */
} mpiox_route;

/* One rank's access. As mpiox_file_access(). */
int mpiox_route_access(const mpiox_route *route, const mpiox_request *request, mpiox_outcome *outcome);
/* Wait until any access finds all bytes that ranks have written in collectives of the file so far, as far as this rank
 * has taken part in them. Before an access by one rank, or a query of the file's size. Local, blocking: for ranks that
 * are still in the last collective. */
void mpiox_route_wait(const mpiox_route *route);
/* A collective access. As mpiox_collective_access(), or with `background` as mpiox_collective_access_background(). */
int mpiox_route_collective(const mpiox_route *route, const mpiox_request *request, bool background,
                           mpiox_outcome *outcome);

#endif
