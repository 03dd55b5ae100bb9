/*
 * mpiox_arbiter.h - a job's side of the arbiter: tell it that the job is there, follow its map.
 *
 * Problem.   Jobs share I/O nodes. Who gets how many changes whenever a job comes or goes; the job must hear of it
 *            soon, without a connection that would have to survive the arbiter, and without root.
 * Algorithm. A folder that all see. The job writes jobs/NAME (what it is, which generation of the map it has applied)
 *            and touches it every second; the arbiter writes `map` (mpiox_map.h), always as a whole, by renaming. A
 *            thread of the job waits for inotify, and looks at the map every 100 ms besides: parallel file systems
 *            tell nobody what another host has written. Of the processes of a job that follow the map one has announced
 *            it, the first to come; when its announcement goes, or is touched no more, another one does.
 *            The announcement also says how long the last map took to be noticed and applied.
 * Guarantee. A map that is missing, corrupt, or of an older generation changes nothing: the last good one stays in
 *            force, and one line on standard error says so. MPI is not called. A child that the program forks does
 *            nothing. No file of anybody else is written, whatever lies in the folder: drafts are new files of names
 *            that nobody can foresee. A map is believed where it is a plain file of one name that belongs to root, to
 *            the program's user or to the owner of the folder. Where the file of the job's name is another user's, the
 *            job follows nothing, and one line says so.
 * Source.    J. L. Bez et al., "Arbitration Policies for On-Demand User-Level I/O Forwarding on HPC Platforms", 2021,
 *            Section 4: the clients of GekkoFS's forwarding mode read the mapping from a file.
 */
#ifndef MPIOX_ARBITER_H
#define MPIOX_ARBITER_H

#include "mpiox_error.h"
#include "mpiox_map.h"

typedef struct mpiox_arbiter mpiox_arbiter;

typedef struct mpiox_arbiter_options {
    const char *folder;
    const char *job;     /* name; letters, digits, '.', '_', '-' */
    const char *program; /* name that its curve has; NULL or "": as mpiox_program.h has it */
    int32_t ranks;       /* of the job */
    int32_t nodes;       /* compute nodes that they run on */
    int32_t delegates;   /* that it has, one on each I/O node that it may use */
    /* On the thread of the arbiter: a map that names the job, newer than the one before. Returns when it is applied. */
    void (*apply)(void *context, const mpiox_map *map);
    void *context;
} mpiox_arbiter_options;

/* Start the thread. A map that is there already is applied by it, soon. Local. MPIOX_OK, MPIOX_E_ARG (the name or the
 * folder is too long or has characters that it must not have), MPIOX_E_IO (announcing failed: the folder is missing or
 * not writable, with *error) or MPIOX_E_NOMEM. */
int mpiox_arbiter_start(const mpiox_arbiter_options *options, mpiox_arbiter **out, mpiox_error *error);
/* Within apply(), now and then where that takes long: the job lives. NULL-safe; on the thread of the arbiter. */
void mpiox_arbiter_beat(mpiox_arbiter *arbiter);
/* End the thread, after what it is applying; the announcement is removed. Blocking, local. NULL-safe. */
void mpiox_arbiter_stop(mpiox_arbiter *arbiter);

#endif
