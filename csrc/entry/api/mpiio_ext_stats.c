/*
 * mpiio_ext_stats.c - statistics by index, so that Python's dataclasses follow the one list in mpiox_stats.h.
 */
#include "mpiio_ext.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_mpi_report.h"
#include "mpiox_stats.h"

struct mpiio_ext_stats {
    mpiox_stats values;
    char path[]; /* of a file; empty for the total */
};

static const struct {
    const char *name, *unit, *meaning;
} numbers[] = {
#define X(name, unit, over_ranks, meaning) {#name, unit, meaning},
    MPIOX_STATS_COUNTERS(X)
#undef X
#define X(name, meaning) {#name, "s", meaning},
        MPIOX_STATS_TIMES(X)
#undef X
};

enum {
    COUNTERS = 0
#define X(name, unit, over_ranks, meaning) +1
    MPIOX_STATS_COUNTERS(X)
#undef X
        ,
    NUMBERS = (int)(sizeof numbers / sizeof numbers[0])
};

int mpiio_ext_stats_counter_count(void)
{
    return COUNTERS;
}

int mpiio_ext_stats_time_count(void)
{
    return NUMBERS - COUNTERS;
}

const char *mpiio_ext_stats_name(int index)
{
    return index >= 0 && index < NUMBERS ? numbers[index].name : NULL;
}

const char *mpiio_ext_stats_unit(int index)
{
    return index >= 0 && index < NUMBERS ? numbers[index].unit : NULL;
}

const char *mpiio_ext_stats_meaning(int index)
{
    return index >= 0 && index < NUMBERS ? numbers[index].meaning : NULL;
}

mpiio_ext_stats *mpiio_ext_stats_of(const void *handle)
{
    mpiio_ext_stats *stats;
    mpiox_handle *file;
    MPI_File fh;

    memcpy(&fh, handle, sizeof fh);
    file = mpiox_handle_find(fh);
    stats = file != NULL ? calloc(1, sizeof *stats + strlen(file->path) + 1) : NULL;
    if (stats != NULL) {
        mpiox_mpi_stats(file, &stats->values);
        strcpy(stats->path, file->path);
    }
    return stats;
}

mpiio_ext_stats *mpiio_ext_stats_total(void)
{
    mpiio_ext_stats *stats = calloc(1, sizeof *stats + 1);

    if (stats != NULL)
        mpiox_mpi_run_stats(&stats->values);
    return stats;
}

int64_t mpiio_ext_stats_counter(const mpiio_ext_stats *stats, int index)
{
    const int64_t values[] = {
#define X(name, unit, over_ranks, meaning) stats->values.name,
        MPIOX_STATS_COUNTERS(X)
#undef X
    };

    return index >= 0 && index < COUNTERS ? values[index] : 0;
}

double mpiio_ext_stats_time(const mpiio_ext_stats *stats, int index)
{
    const double values[] = {
#define X(name, meaning) stats->values.name,
        MPIOX_STATS_TIMES(X)
#undef X
    };

    return index >= 0 && index < NUMBERS - COUNTERS ? values[index] : 0.0;
}

int64_t mpiio_ext_stats_requests(const mpiio_ext_stats *stats, int power)
{
    return power >= 0 && power < MPIOX_STATS_SIZE_BUCKETS ? stats->values.request_size_log2[power] : 0;
}

const char *mpiio_ext_stats_partition(const mpiio_ext_stats *stats)
{
    return stats->values.partition;
}

const char *mpiio_ext_stats_reason(const mpiio_ext_stats *stats)
{
    return stats->values.reason;
}

const char *mpiio_ext_stats_way_partition(const mpiio_ext_stats *stats, int write)
{
    return stats->values.ways[write != 0].partition;
}

const char *mpiio_ext_stats_way_reason(const mpiio_ext_stats *stats, int write)
{
    return stats->values.ways[write != 0].reason;
}

int mpiio_ext_stats_way_stripe_size_io(const mpiio_ext_stats *stats, int write)
{
    return stats->values.ways[write != 0].stripe_size_io;
}

const char *mpiio_ext_stats_delegation(const mpiio_ext_stats *stats)
{
    return stats->values.delegation;
}

const char *mpiio_ext_stats_path(const mpiio_ext_stats *stats)
{
    return stats->path;
}

void mpiio_ext_stats_free(mpiio_ext_stats *stats)
{
    free(stats);
}
