/*
 * mpiox_mpi_reduce.c - what all ranks have counted, at rank 0. See mpiox_mpi_reduce.h.
 */
#include "mpiox_mpi_reduce.h"

#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_preload_check.h"
#include "mpiox_service.h"
#include "mpiox_service_totals.h"
#include "mpiox_stats_paying.h"

enum { RANK_BITS = 22 }; /* of a number that orders ranks by their time, in us, and names the first one */

static int world_rank(const mpiox_handle *handle)
{
    int rank = handle != NULL ? handle->rank : 0;

    if (mpiox_preload_check_world())
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static void pack_slowest(const mpiox_stats *stats, int rank, int64_t values[3])
{
    const int64_t us = (int64_t)(1e6 * mpiox_stats_own_s(stats));

    values[0] = (int64_t)(1e9 * (stats->write_s + (stats->write_s > 0.0 ? stats->sync_s : 0.0)));
    values[1] = (int64_t)(1e9 * stats->read_s);
    values[2] = us << RANK_BITS | ((1 << RANK_BITS) - 1 - rank);
}

static void unpack_slowest(const int64_t values[3], mpiox_stats_slowest *out)
{
    out->write_s = 1e-9 * (double)values[0];
    out->read_s = 1e-9 * (double)values[1];
    out->rank = (1 << RANK_BITS) - 1 - (int)(values[2] & ((1 << RANK_BITS) - 1));
    out->own_s = 1e-6 * (double)(values[2] >> RANK_BITS);
}

/* The struct is a block of int64_t counters, a block of times and a histogram: four reductions, the maxima being taken
 * from a second one over the counters. */
int mpiox_mpi_reduce_stats(mpiox_stats *stats, const mpiox_handle *handle, int rank, MPI_Comm comm, int64_t files[2],
                           mpiox_stats_slowest *slowest)
{
    enum { COUNTERS = offsetof(mpiox_stats, plan_s) / sizeof(int64_t) };
    static const size_t times = offsetof(mpiox_stats, plan_s), sizes = offsetof(mpiox_stats, request_size_log2);
    int64_t maxima[COUNTERS + 3], sums[COUNTERS + 2];
    struct {
        void *values;
        int count;
        MPI_Datatype type;
        MPI_Op operation;
    } parts[] = {
        {maxima, COUNTERS + 3, MPI_INT64_T, MPI_MAX},
        {sums, COUNTERS + 2, MPI_INT64_T, MPI_SUM},
        {(char *)stats + times, (int)((sizes - times) / sizeof(double)), MPI_DOUBLE, MPI_SUM},
        {stats->request_size_log2, MPIOX_STATS_SIZE_BUCKETS, MPI_INT64_T, MPI_SUM},
    };
    int code = MPI_SUCCESS;

    memcpy(maxima, stats, COUNTERS * sizeof *maxima);
    memcpy(sums, stats, COUNTERS * sizeof *sums);
    memcpy(sums + COUNTERS, files, 2 * sizeof *sums);
    pack_slowest(stats, world_rank(handle), maxima + COUNTERS);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int result = PMPI_Reduce(rank == 0 ? MPI_IN_PLACE : parts[i].values, parts[i].values, parts[i].count,
                                 parts[i].type, parts[i].operation, 0, comm);

        code = code == MPI_SUCCESS ? result : code;
    }
    for (int i = 0; i < COUNTERS; i++)
        sums[i] = mpiox_stats_is_max(i) ? maxima[i] : sums[i];
    memcpy(stats, sums, COUNTERS * sizeof *sums);
    memcpy(files, sums + COUNTERS, 2 * sizeof *sums);
    unpack_slowest(maxima + COUNTERS, slowest);
    return code;
}

/* One reduction; a minimum is the maximum of the negative values. */
int mpiox_mpi_reduce_span(mpiox_handle *handle, mpiox_stats_span *out)
{
    enum { OPENED, CLOSED, FIRST, LAST = FIRST + 2, UNKNOWN = LAST + 2, VALUES = UNKNOWN + 2 };
    double values[VALUES] = {[OPENED] = -handle->opened, [CLOSED] = mpiox_stats_now()};
    int result = MPI_SUCCESS;

    for (int way = 0; way < 2; way++) {
        const int_least64_t first = atomic_load(&handle->first_ns[way]);

        values[FIRST + way] = first > 0 ? -1e-9 * (double)first : -HUGE_VAL;
        values[LAST + way] = 1e-9 * (double)atomic_load(&handle->last_ns[way]);
        values[UNKNOWN + way] = atomic_load(&handle->end_unknown[way]);
    }
    if (!handle->reports_alone)
        result = PMPI_Reduce(handle->rank == 0 ? MPI_IN_PLACE : values, values, VALUES, MPI_DOUBLE, MPI_MAX, 0,
                             handle->comm);
    *out = (mpiox_stats_span){.opened = -values[OPENED], .closed = values[CLOSED]};
    for (int way = 0; way < 2; way++) {
        out->first[way] = isinf(values[FIRST + way]) ? 0.0 : -values[FIRST + way];
        out->last[way] = values[UNKNOWN + way] > 0.0 ? 0.0 : values[LAST + way];
    }
    return result;
}

/* Two reductions. A minimum is the maximum of the negative values. */
int mpiox_mpi_reduce_paying(const mpiox_handle *handle, mpiox_stats *stats)
{
    enum { LAST, FIRST = LAST + 2, WAITS = FIRST + 2, MOST, NEAR = 0, TIME = NEAR + 2, RANKS = TIME + 2, SUMS };
    const mpiox_independent_counters *mine = &handle->file->independent;
    const double accesses = (double)(atomic_load(&mine->reads) + atomic_load(&mine->writes));
    double most[MOST], sums[SUMS] = {[RANKS] = accesses > 0.0};

    most[WAITS] = accesses > 0.0 ? -(double)(mpiox_stats_waits() - handle->waits) / accesses : -HUGE_VAL;
    for (int way = 0; way < 2; way++) {
        const mpiox_stats_trail *trail = &mine->trails[way];

        most[LAST + way] = (double)atomic_load(&trail->highest);
        most[FIRST + way] = -(double)(INT64_MAX - atomic_load(&trail->lowest_from_top));
        sums[NEAR + way] = (double)atomic_load(&trail->near);
        sums[TIME + way] = 1e-9 * (double)atomic_load(&trail->nanoseconds);
    }

    const bool root = handle->rank == 0;
    const int code = PMPI_Reduce(root ? MPI_IN_PLACE : most, most, MOST, MPI_DOUBLE, MPI_MAX, 0, handle->comm);
    const int other = PMPI_Reduce(root ? MPI_IN_PLACE : sums, sums, SUMS, MPI_DOUBLE, MPI_SUM, 0, handle->comm);
    mpiox_stats_paying seen = {.ranks = sums[RANKS], .waits = -most[WAITS]};

    for (int way = 0; way < 2; way++)
        seen.ways[way] = (mpiox_stats_paying_way){
            .accesses = (double)(way ? stats->independent_writes : stats->independent_reads),
            .bytes = (double)(way ? stats->independent_bytes_written : stats->independent_bytes_read),
            .near = sums[NEAR + way],
            .first = -most[FIRST + way],
            .last = most[LAST + way],
            .seconds = sums[TIME + way],
        };
    /* Collectives stay two-phase with delegates; those without exchange count as accesses of each rank alone. */
    if (root && stats->delegation[0] == '\0' && stats->direct_calls == 0 && stats->total_s < 0.1 * stats->independent_s)
        mpiox_stats_paying_text(&seen, stats->delegation, sizeof stats->delegation);
    return code != MPI_SUCCESS ? code : other;
}

void mpiox_mpi_slowest_alone(const mpiox_stats *stats, const mpiox_handle *handle, mpiox_stats_slowest *out)
{
    int64_t values[3];

    pack_slowest(stats, world_rank(handle), values);
    unpack_slowest(values, out);
}

/* The counters of all delegates that this process can read, as rows of numbers; NULL: there are none, or no memory. */
static int64_t *see_delegates(const mpiox_service *service)
{
    const size_t width = (size_t)mpiox_service_totals_width();
    int64_t *rows = service != NULL && service->count > 0 ? malloc((size_t)service->count * width * sizeof *rows)
                                                          : NULL;

    if (rows != NULL)
        mpiox_service_totals_see(service, rows);
    return rows;
}

bool mpiox_mpi_reduce_delegates(int rank, mpiox_stats_delegates *out)
{
    const mpiox_service *service = mpiox_service_current();
    int64_t *rows = see_delegates(service);
    const int count = rows != NULL ? service->count : 0;
    int mine[2] = {count, -count}, most[2] = {0, 0};
    bool done = false;

    PMPI_Allreduce(mine, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (most[0] > 0 && most[0] == -most[1]) {
        done = PMPI_Reduce(rank == 0 ? MPI_IN_PLACE : rows, rows, count * mpiox_service_totals_width(), MPI_INT64_T,
                           MPI_MAX, 0, MPI_COMM_WORLD) == MPI_SUCCESS;
        mpiox_service_totals_sum(rows, count, out);
    }
    free(rows);
    return done;
}

bool mpiox_mpi_own_delegates(mpiox_stats_delegates *out)
{
    const mpiox_service *service = mpiox_service_current();
    int64_t *rows = see_delegates(service);

    if (rows != NULL)
        mpiox_service_totals_sum(rows, service->count, out);
    free(rows);
    return rows != NULL;
}
