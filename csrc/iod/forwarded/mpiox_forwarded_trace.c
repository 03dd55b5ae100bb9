/*
 * mpiox_forwarded_trace.c - the ranges that are lost with a host that vanishes, or with the disk of a cache.
 *
 * Problem.   Acknowledgement level "memory": if a delegate is killed its pages are rescued, but if its whole host
 *            vanishes no process has them any more. The program must learn that, and where the bytes were.
 * Algorithm. For each delegate elsewhere, or whose cache is a file, a rank notes the lowest and highest offset that it
 *            has written since the last flush barrier. The flush barrier after a loss, which is collective, fails on
 *            all ranks and names the smallest range that contains all of these writes.
 * Guarantee. A lost byte lies in a range that is reported. In that range only bytes can be lost that belong to the
 *            delegate and were not in the file yet. Ranks on the host itself have vanished with it.
 */
#include <errno.h>

#include "mpiox_forwarded_impl.h"

static const int64_t none = INT64_MAX; /* `first` of an empty trace */

static void lower(atomic_int_least64_t *value, int64_t to)
{
    int64_t seen = atomic_load_explicit(value, memory_order_relaxed);

    while (to < seen && !atomic_compare_exchange_weak(value, &seen, to))
        continue;
}

static void raise(atomic_int_least64_t *value, int64_t to)
{
    int64_t seen = atomic_load_explicit(value, memory_order_relaxed);

    while (to > seen && !atomic_compare_exchange_weak(value, &seen, to))
        continue;
}

void mpiox_forwarded_trace_add(mpiox_forwarded *forwarded, int32_t owner, int64_t first, int64_t past)
{
    lower(&forwarded->traces[owner].first, first);
    raise(&forwarded->traces[owner].past, past);
}

void mpiox_forwarded_trace_clear(mpiox_forwarded *forwarded)
{
    for (int32_t i = 0; i < forwarded->owners; i++) {
        atomic_store(&forwarded->traces[i].first, none);
        atomic_store(&forwarded->traces[i].past, 0);
        atomic_store(&forwarded->traces[i].damaged, false);
    }
}

bool mpiox_forwarded_trace_knows_dead(const mpiox_forwarded *forwarded)
{
    bool knows = false;

    for (int32_t i = 0; i < forwarded->owners; i++)
        knows |= mpiox_process_has_died(mpiox_forwarded_owner(forwarded, i));
    return knows;
}

void mpiox_forwarded_trace_report(const mpiox_forwarded *forwarded, const unsigned char fates[MPIOX_FILE_RANGES],
                                  mpiox_error *error)
{
    int64_t range[2] = {none, none}; /* the first byte, and the negative of one past the last: minima, both */

    for (int32_t i = 0; i < forwarded->owners; i++) {
        const int64_t first = atomic_load(&forwarded->traces[i].first), past = atomic_load(&forwarded->traces[i].past);

        if (fates[i] != MPIOX_FATE_LOST || past == 0)
            continue;
        range[0] = first < range[0] ? first : range[0];
        range[1] = -past < range[1] ? -past : range[1];
    }
    mpiox_error_set(error, MPIOX_E_MPI, 0, -1, -1, "agreeing on what is lost");
    if (PMPI_Allreduce(MPI_IN_PLACE, range, 2, MPI_INT64_T, MPI_MIN, forwarded->file->topology->comm) != MPI_SUCCESS)
        return;
    *error = (mpiox_error){.code = MPIOX_OK, .rank = -1};
    if (range[0] != none)
        mpiox_error_set(error, MPIOX_E_IO, EIO, range[0], -range[1] - range[0],
                        "keeping bytes in a cache that is lost");
}
