/*
 * mpiox_forwarded_errors.c - reporting bytes that delegates had accepted and could not write.
 *
 * Problem.   A delegate writes after the calls that brought the bytes have returned. The file system may refuse many
 *            ranges, at many delegates, but the program gets one code of a sync or close, which it may ignore.
 * Algorithm. At a flush barrier each rank takes the errors of its share of the delegates, and prints each range on
 *            standard error (the first MOST_LINES of a flush barrier). Then the ranks agree: all get the error at the
 *            lowest offset, with the number of the others and the end of the last one.
 * Guarantee. Every range is counted; none is printed twice.
 */
#include <stdio.h>

#include "mpiox_process_notify.h"
#include "mpiox_forwarded_impl.h"

enum { MOST_LINES = 8, TEXT_BYTES = 1024 };

static const int64_t none = INT64_MAX;

void mpiox_forwarded_late_add(mpiox_forwarded_late *late, const mpiox_error *error)
{
    const int64_t past = error->offset + (error->length > 0 ? error->length : 0);

    if (late->count++ == 0 || (error->offset >= 0 && error->offset < late->lowest.offset))
        late->lowest = *error;
    late->past = past > late->past ? past : late->past;
}

void mpiox_forwarded_late_take(mpiox_forwarded *forwarded, int32_t owner, mpiox_forwarded_late *late)
{
    mpiox_process *delegate = mpiox_forwarded_owner(forwarded, owner);
    mpiox_error found[MPIOX_CACHE_ERRORS];
    char text[TEXT_BYTES];
    int more = 0, count;

    if (delegate->local)
        count = mpiox_cache_take_errors(&delegate->cache, forwarded->index[owner], found, MPIOX_CACHE_ERRORS, &more);
    else
        count = mpiox_link_take_errors(delegate->link, forwarded->index[owner], found, MPIOX_CACHE_ERRORS, &more);
    if (count < 0) /* it has died since the flush: its bytes may be lost */
        mpiox_forwarded_mark_failed(forwarded, owner);
    for (int i = 0; i < count; i++) {
        found[i].delegate = owner + 1;
        if (late->count < MOST_LINES)
            mpiox_process_notify("lost bytes: %s",
                                 mpiox_error_text(&found[i], forwarded->file->path, text, TEXT_BYTES));
        mpiox_forwarded_late_add(late, &found[i]);
    }
    late->count += count > 0 ? more : 0;
}

void mpiox_forwarded_late_end(const mpiox_forwarded_late *late)
{
    if (late->count > MOST_LINES)
        mpiox_process_notify("lost bytes: %lld more ranges of %s, up to byte %lld", (long long)late->count - MOST_LINES,
                             late->path, (long long)late->past);
}

static mpiox_error joined(const mpiox_error *lowest, int64_t count, int64_t past)
{
    mpiox_error all = *lowest;

    all.others = (int32_t)(count - 1 < INT32_MAX ? count - 1 : INT32_MAX);
    all.past_last = past;
    return all;
}

mpiox_error mpiox_forwarded_late_alone(mpiox_forwarded *forwarded, const mpiox_forwarded_late *late)
{
    mpiox_forwarded_count_up(&forwarded->stats.deferred_errors, late->count);
    return late->count > 0 ? joined(&late->lowest, late->count, late->past) : late->request;
}

void mpiox_forwarded_late_agree(mpiox_forwarded *forwarded, const mpiox_forwarded_late *late, mpiox_error *error)
{
    MPI_Comm comm = forwarded->file->topology->comm;
    const int64_t own = late->count > 0 ? late->lowest.offset : none;
    int64_t ends[2] = {own, -late->past}, count = late->count;
    int place[2] = {1, forwarded->file->topology->rank}, first[2] = {1, 0};

    *error = (mpiox_error){.code = MPIOX_OK, .rank = -1};
    if (PMPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_INT64_T, MPI_SUM, comm) != MPI_SUCCESS || count == 0 ||
        PMPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_INT64_T, MPI_MIN, comm) != MPI_SUCCESS)
        return;
    place[0] = late->count == 0 || own > ends[0];
    if (PMPI_Allreduce(place, first, 1, MPI_2INT, MPI_MINLOC, comm) != MPI_SUCCESS)
        return;
    *error = late->lowest;
    if (PMPI_Bcast(error, sizeof *error, MPI_BYTE, first[1], comm) == MPI_SUCCESS)
        *error = joined(error, count, -ends[1]);
    mpiox_forwarded_count_up(&forwarded->stats.deferred_errors, count);
}
