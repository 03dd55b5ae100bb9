/*
 * mpiox_arbiter.h - a job's side of the arbiter: announce the job, follow the map.
 *
 * Problem.   Jobs share I/O nodes. A job's number changes whenever a job starts or ends; the job must learn this soon,
 *            without a connection that would have to survive the arbiter, and without root.
 * Algorithm. A folder that all hosts share. The job writes jobs/NAME (its facts, the generation of the map that it has
 *            applied) and touches it every second; the arbiter replaces `map` (mpiox_map.h) by renaming. A thread of
 *            the job waits for inotify, and also checks the map every 100 ms: parallel file systems do not report what
 *            another host has written. Of the job's processes that follow the map, the first one announces the job;
 *            when its announcement is removed, or no longer touched, another process announces it.
 *            The announcement also contains how long the last map took to be detected and applied.
 * Guarantee. A map that is missing, corrupt, or of an older generation changes nothing: the last good one stays in
 *            force, and one line on standard error reports it. MPI is not called. A child that the program forks does
 *            nothing. No foreign file is written, whatever the folder contains: drafts are new files with unpredictable
 *            names. A map is accepted only if it is a plain file of one name that belongs to root, to the program's
 *            user or to the owner of the folder. If the file of the job's name is another user's, the job follows no
 *            map, and one line reports it.
 * Source.    J. L. Bez et al., "Arbitration Policies for On-Demand User-Level I/O Forwarding on HPC Platforms", 2021,
 *            Section 4: the clients of GekkoFS's forwarding mode read the mapping from a file.
 */
#ifndef MPIOX_ARBITER_H
#define MPIOX_ARBITER_H

#include "mpiox_error.h"
#include "mpiox_map.h"

typedef struct mpiox_arbiter mpiox_arbiter;

typedef struct mpiox_arbiter_options {
    const char *folder;  /* where jobs and arbiter exchange files */
    const char *job;     /* name; letters, digits, '.', '_', '-' */
    const char *program; /* name that its curve has; NULL or "": as mpiox_program.h has it */
    int32_t ranks;       /* of the job */
    int32_t nodes;       /* compute nodes that they run on */
    int32_t delegates;   /* that it has, one on each I/O node that it may use */
    /* On the thread of the arbiter: a map that names the job, newer than the one before. Returns when it is applied. */
    void (*apply)(void *context, const mpiox_map *map);
    void *context; /* of apply; the caller's */
} mpiox_arbiter_options;

/* Start the thread. A map that is there already is applied by it, soon. Local. MPIOX_OK, MPIOX_E_ARG (the name or the
 * folder is too long or has characters that it must not have), MPIOX_E_IO (announcing failed: the folder is missing or
 * not writable, with *error) or MPIOX_E_NOMEM. */
int mpiox_arbiter_start(const mpiox_arbiter_options *options, mpiox_arbiter **out, mpiox_error *error);
/* Within apply(), now and then where that takes long: the job lives. NULL-safe; on the thread of the arbiter. */
void mpiox_arbiter_beat(mpiox_arbiter *arbiter);
/* End the thread, after the map that it is applying; the announcement is removed. Blocking, local. NULL-safe. */
void mpiox_arbiter_stop(mpiox_arbiter *arbiter);

#endif
