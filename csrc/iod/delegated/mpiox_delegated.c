/*
 * mpiox_delegated.c - the opener of files whose accesses go through I/O delegates.
 *
 * Problem.   The delegates of a job serve a file on all of its ranks or on none, and hints may need them in vain.
 * Algorithm. Once all ranks have the file, and this library carries out its accesses, they get the job's delegates,
 *            which are started at the first such file, and open it there. Rank 0 prints which hints of a file without
 *            delegates are not followed, and why, before the file has its own name.
 * Guarantee. All ranks go through delegates, or none does. A line is printed once for a process, and once more after a
 *            death, which holds for all later files.
 */
#include <stdatomic.h>

#include "mpiox_file.h"
#include "mpiox_forwarded.h"
#include "mpiox_hints.h"
#include "mpiox_opener.h"
#include "mpiox_print.h"
#include "mpiox_service.h"
#include "mpiox_topology.h"

/* The hints are rank 0's on every rank. */
static void attach(mpiox_opening *o)
{
    mpiox_topology *topology = o->file->topology;

    if (!mpiox_service_wanted(o->hints))
        return;
    if (o->file->refreshes) {
        o->why_not = "nothing keeps the nodes' caches coherent";
        return;
    }
    if (mpiox_topology_own_comm(topology, o->comm) != MPIOX_OK) {
        o->why_not = "no communicator is left";
        return;
    }
    mpiox_service *service = mpiox_service_get(topology->comm, o->hints, &o->why_not);

    if (service != NULL)
        mpiox_forwarded_open(o->file, service, o->decision, &o->through, &o->why_not);
    mpiox_forwarded_follow(o->through);
}

static void report_close(const mpiox_opening *o, const char *path)
{
    static atomic_flag printed = ATOMIC_FLAG_INIT, printed_death = ATOMIC_FLAG_INIT;
    const char *why = !mpiox_service_wanted(o->hints) ? "no hint requests them"
                      : o->why_not != NULL            ? o->why_not
                                                      : "not all ranks can open it";

    if (o->hints->close == MPIOX_CLOSE_WRITTEN ||
        atomic_flag_test_and_set(o->why_not == mpiox_forwarded_death ? &printed_death : &printed))
        return;
    mpiox_print(
        "mpiio_ext: %s: mpiox_close=staged needs I/O delegates (%s): MPI_File_close waits, and the file has its "
        "final name while it is written\n",
        path, why);
}

static void report_cached(const mpiox_opening *o, const char *path)
{
    static atomic_flag printed = ATOMIC_FLAG_INIT;

    if (o->hints->collective == MPIOX_COLLECTIVE_CACHED && !atomic_flag_test_and_set(&printed))
        mpiox_print("mpiio_ext: %s: mpiox_collective=cached needs I/O delegates: collectives are two-phase\n", path);
}

static int keep(mpiox_opening *o, void **state, bool *abandoned, mpiox_error *error)
{
    const char *path = o->found != NULL ? o->found : o->bare;

    (void)state;
    (void)abandoned;
    if (o->rank == 0 && o->wanted && o->opened && o->through == NULL && path != NULL &&
        (o->file != NULL || !o->decision->container) && !mpiox_opening_is_partial(o)) {
        report_close(o, path);
        report_cached(o, path);
    }
    return error->code;
}

static int detach(struct mpiox_forwarded *through, mpiox_error *error)
{
    mpiox_forwarded_unfollow(through);
    return mpiox_forwarded_close(through, error);
}

const mpiox_opener mpiox_delegated_opener = {
    .attach = attach,
    .keep = keep,
    .detach = detach,
    .release = mpiox_forwarded_free,
};
