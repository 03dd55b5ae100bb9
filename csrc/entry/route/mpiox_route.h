/*
 * mpiox_route.h - which way an access of an open file takes: through the delegates, two-phase, or straight to the file.
 *
 * Independent accesses of a file that has delegates go through them, except in atomic mode. Collectives go through them
 * while some rank's accesses are cached there: a two-phase collective would first have to bring all of that to the
 * file. When nothing is cached they are two-phase (or direct), as without delegates.
 */
#ifndef MPIOX_ROUTE_H
#define MPIOX_ROUTE_H

#include "mpiox_collective.h"
#include "mpiox_forwarded.h"

typedef struct mpiox_route { /* all borrowed */
    mpiox_file *file;
    mpiox_collective *collective;
    mpiox_forwarded *forwarded; /* NULL: no delegates */
} mpiox_route;

/* One rank's access. As mpiox_file_access(). */
int mpiox_route_access(const mpiox_route *route, const mpiox_request *request, mpiox_outcome *outcome);
/* A collective access. As mpiox_collective_access(), or with `background` as mpiox_collective_access_background(). */
int mpiox_route_collective(const mpiox_route *route, const mpiox_request *request, bool background,
                           mpiox_outcome *outcome);

#endif
