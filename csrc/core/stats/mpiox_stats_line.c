/*
 * mpiox_stats_line.c - statistics of a file in one line: bytes, speed, time, and the slowest rank.
 *
 * Speeds are all ranks' bytes by the longest time of a rank inside the calls; calls that flush bytes to the file count
 * with the writes. Ranks wait for the slowest inside collectives, so that their times hide it: that rank is found by
 * its time without waiting.
 */
#include <inttypes.h>
#include <stddef.h>

#include "mpiox_stats.h"
#include "mpiox_text.h"

double mpiox_stats_in_io_s(const mpiox_stats *stats)
{
    return stats->write_s + stats->read_s + stats->sync_s;
}

double mpiox_stats_waiting_s(const mpiox_stats *stats)
{
    const double waiting = stats->wait_s, whole = mpiox_stats_in_io_s(stats);

    return waiting < whole ? waiting : whole;
}

double mpiox_stats_own_s(const mpiox_stats *stats)
{
    return mpiox_stats_in_io_s(stats) - mpiox_stats_waiting_s(stats);
}

static void put_bytes(mpiox_text *out, int64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    double value = (double)bytes;
    int unit = 0;

    while (value >= 999.95 && unit < 5) {
        value *= 1e-3;
        unit++;
    }
    mpiox_text_put(out, "%.*f %s", unit > 0, value, units[unit]);
}

static void put_seconds(mpiox_text *out, double seconds)
{
    if (seconds >= 0.9995)
        mpiox_text_put(out, "%.2f s", seconds);
    else if (seconds >= 0.9995e-3)
        mpiox_text_put(out, "%.*f ms", seconds < 0.1, 1e3 * seconds);
    else
        mpiox_text_put(out, "%.0f us", 1e6 * seconds);
}

/* Returns whether there was anything. */
static bool put_moved(mpiox_text *out, const char *verb, int64_t bytes, double longest_s)
{
    const double speed = longest_s > 0.0 ? 1e-6 * (double)bytes / longest_s : 0.0;

    if (bytes == 0)
        return false;
    mpiox_text_put(out, "%s ", verb);
    put_bytes(out, bytes);
    if (speed > 0.0)
        mpiox_text_put(out, " at %.*f MB/s", speed >= 100.0 ? 0 : speed >= 1.0 ? 1 : 3, speed);
    return true;
}

static void put_times(mpiox_text *out, const mpiox_stats *stats, const mpiox_stats_subject *about)
{
    const int ranks = about->ranks > 0 ? about->ranks : 1;

    mpiox_text_put(out, "; ");
    put_seconds(out, mpiox_stats_in_io_s(stats) / ranks);
    mpiox_text_put(out, " in I/O");
    if (ranks == 1 || about->slowest == NULL)
        return;
    mpiox_text_put(out, " a rank, ");
    put_seconds(out, mpiox_stats_waiting_s(stats) / ranks);
    mpiox_text_put(out, " of it waiting; slowest rank %d: ", about->slowest->rank);
    put_seconds(out, about->slowest->own_s);
    mpiox_text_put(out, " without waiting");
}

static int64_t failures(const mpiox_stats *stats)
{
    return stats->failed_writes + stats->failed_reads + stats->failed_syncs;
}

static void put_count(mpiox_text *out, const char **separator, int64_t count, const char *one, const char *several)
{
    if (count == 0)
        return;
    mpiox_text_put(out, "%s%" PRId64 " %s", *separator, count, count == 1 ? one : several);
    *separator = ", ";
}

/* In front of all else: the numbers are of what succeeded. */
static void put_failures(mpiox_text *out, const mpiox_stats *stats)
{
    const char *separator = "", *class = " (";

    if (failures(stats) == 0)
        return;
    put_count(out, &separator, stats->failed_writes, "write", "writes");
    put_count(out, &separator, stats->failed_reads, "read", "reads");
    put_count(out, &separator, stats->failed_syncs, "sync or resize", "syncs or resizes");
    mpiox_text_put(out, " failed");
    put_count(out, &class, stats->failed_no_space, "with MPI_ERR_NO_SPACE", "with MPI_ERR_NO_SPACE");
    put_count(out, &class, stats->failed_quota, "with MPI_ERR_QUOTA", "with MPI_ERR_QUOTA");
    put_count(out, &class, stats->failed_io, "with MPI_ERR_IO", "with MPI_ERR_IO");
    mpiox_text_put(out, "%s; ", class[0] == ',' ? ")" : "");
}

/* For a file without data: the next thing that a reader would check. */
static const char *why_nothing(const mpiox_stats *stats)
{
    if (failures(stats) > 0)
        return "";
    if (stats->native_calls > 0)
        return " by this library";
    const int64_t calls = stats->collective_writes + stats->collective_reads + stats->independent_writes +
                          stats->independent_reads;
    return calls > 0 ? "" : ": no data call reached this library";
}

int64_t mpiox_stats_line(const mpiox_stats *stats, const mpiox_stats_subject *about, char *text, int64_t text_bytes)
{
    const mpiox_stats_slowest none = {0}, *longest = about->slowest != NULL ? about->slowest : &none;
    const int64_t written = stats->bytes_written + stats->independent_bytes_written - stats->direct_bytes_written;
    const int64_t read = stats->bytes_read + stats->independent_bytes_read - stats->direct_bytes_read;
    mpiox_text out = {text, text_bytes, 0};

    mpiox_text_put(&out, "mpiio_ext: %s: ", about->path != NULL ? about->path : "the run");
    if (about->path == NULL && about->files > 0)
        mpiox_text_put(&out, "%" PRId64 " file%s, ", about->files, about->files == 1 ? "" : "s");
    put_failures(&out, stats);
    mpiox_text_put(&out, "%d rank%s ", about->ranks, about->ranks == 1 ? "" : "s");
    if (put_moved(&out, "wrote", written, longest->write_s) && read > 0)
        mpiox_text_put(&out, ", ");
    if (!put_moved(&out, "read", read, longest->read_s) && written == 0)
        mpiox_text_put(&out, "moved no data%s", why_nothing(stats));
    if (mpiox_stats_in_io_s(stats) > 0.0)
        put_times(&out, stats, about);
    if (stats->native_calls > 0)
        mpiox_text_put(&out, "; %" PRId64 " call%s of the MPI library not counted", stats->native_calls,
                       stats->native_calls == 1 ? "" : "s");
    if (stats->native_calls > 0 && stats->collective_writes + stats->collective_reads == 0 && stats->reason[0] != '\0')
        mpiox_text_put(&out, " (%s)", stats->reason); /* else it is that of a collective */
    mpiox_text_put(&out, "\n");
    return out.used;
}
