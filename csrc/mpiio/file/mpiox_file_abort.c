/*
 * mpiox_file_abort.c - ranks that wait in vain: a rank prints a line, or ends the job if the job would hang otherwise.
 *
 * Problem.   Ranks wait for an act or message that one rank cannot give. Or they wait for dead ranks that no message
 *            reports: over a cut link TCP retransmits for a quarter of an hour, and a hanging process is never
 *            detected.
 * Algorithm. The rank that gives up prints one line with its number, the file and the reason, and calls
 *            mpiox_topology_abort().
 * Guarantee. The calling rank ends.
 */
#include <errno.h>
#include <stdio.h>

#include "mpiox_file.h"
#include "mpiox_print.h"

void mpiox_file_give_up(const mpiox_file *file, int code, int64_t offset, int64_t length, const char *what)
{
    char text[512];
    mpiox_error error = {.code = MPIOX_OK};
    const int sys_errno = code == MPIOX_E_NOMEM ? ENOMEM : code == MPIOX_E_ARG ? EINVAL : 0;
    mpiox_error_set(&error, code, sys_errno, offset, length, what);
    error.rank = file->topology->rank;
    mpiox_print("mpiio_ext: %s\n", mpiox_error_text(&error, file->path, text, sizeof text));
    mpiox_topology_abort(file->topology);
}

void mpiox_file_end_of_waiting(void *context, const char *what, int64_t number, double seconds)
{
    const mpiox_file *file = context;
    char which[32] = "";
    if (number >= 0)
        snprintf(which, sizeof which, " %lld", (long long)number);
    mpiox_print(
        "mpiio_ext: rank %d on %s: %s: waited %.0f s for %s%s: a rank, a node or the network may have failed; the "
        "job ends because of mpiox_wait_limit=%d\n",
        file->topology->rank, file->topology->node_name ? file->topology->node_name : "its node",
        file->path ? file->path : "", seconds, what ? what : "data of other ranks", which, file->hints.wait_limit);
    mpiox_topology_abort(file->topology);
}

static void report_wait(void *context, double seconds)
{
    const mpiox_file *file = context;
    char ranks[256] = "";
    mpiox_text text = {ranks, sizeof ranks, 0};
    if (!mpiox_topology_put_awaited(file->topology, &text))
        return;
    mpiox_print(
        "mpiio_ext: rank %d has waited %.0f s in MPI_File_sync of %s for %s%s: every rank of the file must call "
        "it, or the file system of a rank does not answer. The rank continues to wait\n",
        file->topology->rank, seconds, file->path ? file->path : "", ranks, text.used < text.capacity ? "" : "…");
}

void mpiox_file_report_waits(mpiox_file *file, bool on)
{
    mpiox_wait_limit *limit = &file->topology->limit;
    limit->report = report_wait;
    limit->report_s = on ? file->report_s : 0;
}
