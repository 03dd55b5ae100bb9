/*
 * mpiox_darshan_summary.c - sums, least and greatest values of counters over the records of a log.
 *
 * Problem. What a job did is compared with what the servers saw by scalars of the whole log: bytes and requests by
 * record, the time of the slowest rank, the interface that moved most. The rows of files have neither the records of
 * single ranks nor POSIX by itself.
 *
 * Algorithm. One pass over the records, as they are read for the files. Of each observed counter of POSIX the sum, the
 * number of records, the least and the greatest value. A shared record (rank -1) gives the time of its slowest rank. Of
 * the others the times in metadata, reading and writing are added up by rank, and the greatest of these sums counts. So
 * do darshan-parser's "slowest_rank_io_time" of unique files and "time_by_slowest" of shared ones.
 *
 * Guarantees. What no record tells is absent; negative counters, which Darshan writes for what it did not measure, do
 * not count. Sums end at INT64_MAX.
 *
 * Source: darshan-util, darshan-parser.c (performance by the slowest rank); TOKIO, summarize_job (which counters).
 */
#include "mpiox_darshan_summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_error.h"

enum { FIRST_RANKS = 64 };
/* Places of an observed counter's four columns behind its first. */
enum { TOTAL, NUMBER, LEAST, GREATEST, OF_COUNTER };
/* Places of an interface's four columns. */
enum { READ_BYTES, WRITTEN_BYTES, READ_RECORDS, WRITTEN_RECORDS, OF_INTERFACE };

void mpiox_darshan_summary_clear(mpiox_darshan_summary *summary)
{
    for (int k = 0; k < MPIOX_DARSHAN_SUMMARY_WIDTH; k++)
        summary->slots[k].i = MPIOX_DARSHAN_NONE;
    summary->rank_count = 0;
    mpiox_darshan_map_free(&summary->ranks);
}

void mpiox_darshan_summary_release(mpiox_darshan_summary *summary)
{
    mpiox_darshan_map_free(&summary->ranks);
    free(summary->unique_times);
    memset(summary, 0, sizeof(*summary));
}

static double as_double(int64_t bits)
{
    mpiox_darshan_slot slot = {.i = bits};

    return slot.f;
}

static void add_integer(mpiox_darshan_slot *slot, int64_t value)
{
    if (slot->i == MPIOX_DARSHAN_NONE)
        slot->i = value;
    else if (__builtin_add_overflow(slot->i, value, &slot->i))
        slot->i = INT64_MAX;
}

static void observe_integer(mpiox_darshan_slot *slots, int64_t value)
{
    if (value < 0)
        return;
    add_integer(&slots[TOTAL], value);
    add_integer(&slots[NUMBER], 1);
    if (slots[LEAST].i == MPIOX_DARSHAN_NONE || value < slots[LEAST].i)
        slots[LEAST].i = value;
    if (slots[GREATEST].i == MPIOX_DARSHAN_NONE || value > slots[GREATEST].i)
        slots[GREATEST].i = value;
}

static void add_double(mpiox_darshan_slot *slot, double value)
{
    slot->f = (slot->i == MPIOX_DARSHAN_NONE ? 0.0 : slot->f) + value;
}

static void observe_double(mpiox_darshan_slot *slots, double value)
{
    if (!isfinite(value) || value < 0.0)
        return;
    value += 0.0; /* no -0.0 */
    add_double(&slots[TOTAL], value);
    add_integer(&slots[NUMBER], 1);
    if (slots[LEAST].i == MPIOX_DARSHAN_NONE || value < slots[LEAST].f)
        slots[LEAST].f = value;
    if (slots[GREATEST].i == MPIOX_DARSHAN_NONE || value > slots[GREATEST].f)
        slots[GREATEST].f = value;
}

/* A double of a record that is a time, or 0. */
static double time_of(const mpiox_darshan_record *record, int counter)
{
    const double value = counter >= 0 ? as_double(record->counters[counter]) : 0.0;

    return isfinite(value) && value > 0.0 ? value : 0.0;
}

static int add_unique(mpiox_darshan_summary *summary, int64_t rank, double seconds)
{
    int64_t at = mpiox_darshan_map_find(&summary->ranks, (uint64_t)rank);

    if (at < 0) {
        if (summary->rank_count == summary->rank_capacity) {
            const int64_t capacity = summary->rank_capacity > 0 ? summary->rank_capacity * 2 : FIRST_RANKS;
            double *grown = realloc(summary->unique_times, (size_t)capacity * sizeof(*grown));

            if (grown == NULL)
                return MPIOX_E_NOMEM;
            summary->unique_times = grown;
            summary->rank_capacity = capacity;
        }
        at = summary->rank_count;
        if (mpiox_darshan_map_add(&summary->ranks, (uint64_t)rank, at) != MPIOX_OK)
            return MPIOX_E_NOMEM;
        summary->unique_times[at] = 0.0;
        summary->rank_count++;
    }
    summary->unique_times[at] += seconds;
    return MPIOX_OK;
}

static void add_interface(mpiox_darshan_slot *slots, const mpiox_darshan_kind *kind, const mpiox_darshan_record *record)
{
    const int counters[] = {kind->bytes_read, kind->bytes_written};

    for (int way = 0; way < 2; way++) {
        const int64_t bytes = counters[way] >= 0 ? record->counters[counters[way]] : -1;

        if (bytes < 0)
            continue;
        add_integer(&slots[READ_BYTES + way], bytes);
        add_integer(&slots[READ_RECORDS + way], bytes > 0);
    }
}

static int add_posix(mpiox_darshan_summary *summary, const mpiox_darshan_kind *kind, const mpiox_darshan_record *record)
{
    mpiox_darshan_slot *slots = summary->slots;
    double seconds = 0.0;

    for (int k = 0; k < MPIOX_DARSHAN_OBSERVED_INTEGERS; k++)
        if (kind->observed[k] >= 0)
            observe_integer(&slots[k * OF_COUNTER], record->counters[kind->observed[k]]);
    for (int k = MPIOX_DARSHAN_OBSERVED_INTEGERS; k < MPIOX_DARSHAN_OBSERVED; k++) {
        if (kind->observed[k] >= 0)
            observe_double(&slots[k * OF_COUNTER], as_double(record->counters[kind->observed[k]]));
        seconds += time_of(record, kind->observed[k]);
    }
    if (record->rank >= 0)
        return add_unique(summary, record->rank, seconds);
    add_double(&slots[MPIOX_DARSHAN_SUMMARY_shared_time], time_of(record, kind->slowest_time));
    return MPIOX_OK;
}

int mpiox_darshan_summary_add(mpiox_darshan_summary *summary, const mpiox_darshan_library *library, int kind,
                              const mpiox_darshan_record *record)
{
    const int first = MPIOX_DARSHAN_SUMMARY_posix_bytes_read + kind * OF_INTERFACE;

    add_interface(&summary->slots[first], &library->kinds[kind], record);
    return kind == MPIOX_DARSHAN_POSIX ? add_posix(summary, &library->kinds[kind], record) : MPIOX_OK;
}

void mpiox_darshan_summary_finish(mpiox_darshan_summary *summary, int64_t log_id)
{
    double slowest = 0.0;

    for (int64_t k = 0; k < summary->rank_count; k++)
        if (summary->unique_times[k] > slowest)
            slowest = summary->unique_times[k];
    if (summary->rank_count > 0)
        summary->slots[MPIOX_DARSHAN_SUMMARY_unique_time].f = slowest;
    summary->slots[MPIOX_DARSHAN_SUMMARY_log_id].i = log_id;
}
