/*
 * mpiox_mpi_report.c - statistics of a file at its close and of the run at MPI_Finalize.
 *
 * A file whose hints ask for it is summed over its ranks (PMPI_Reduce on a duplicate of its communicator) and printed
 * by its rank 0. The run's totals are summed over MPI_COMM_WORLD if all its ranks have opened a file together. Then it
 * is known that all have the library, and rank 0 of that file has told the others whether MPIOX_STATS is set, which may
 * differ between ranks. Otherwise each process sums up the files that it has reported on. Text goes to stderr: a line,
 * or the line and a table, by the level of the hint. With MPIOX_STATS_FILE, one JSON line per file and one for the run
 * are appended to that file in one write each. A file's report says which hints were in force and who had set them. The
 * run's report says what the delegates have counted; a run of one file does not repeat the file's text.
 */
#include "mpiox_mpi_report.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_forwarded.h"
#include "mpiox_preload_check.h"
#include "mpiox_service.h"
#include "mpiox_service_totals.h"
#include "mpiox_stats_paying.h"
#include "mpiox_witness.h"

enum { HINTS_MAX = sizeof(((mpiox_hints *)0)->source), VALUE_BYTES = 256 };

typedef struct hint_texts { /* the hints of one file that are not defaults */
    mpiox_stats_hint hints[HINTS_MAX];
    char values[HINTS_MAX][VALUE_BYTES];
    int count;
} hint_texts;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mpiox_stats run;      /* files closed so far, this process */
static mpiox_stats reported; /* all ranks of the files on which this process has reported */
static int reported_ranks;   /* most ranks of any of them; 0: there is none */
static bool agreed, wanted;
static int64_t closed_files, reported_files; /* by this process; on how many of them it has reported */
static int64_t untold_files;                 /* closed ones on which nobody has reported */

static void say_delegation(const mpiox_handle *handle, mpiox_stats *out)
{
    if (handle->forwarded != NULL)
        mpiox_forwarded_describe(handle->forwarded, out->delegation, sizeof out->delegation);
    else if (handle->why_no_delegates != NULL)
        snprintf(out->delegation, sizeof out->delegation, "none: %s", handle->why_no_delegates);
}

void mpiox_mpi_stats(mpiox_handle *handle, mpiox_stats *out)
{
    if (handle->file != NULL)
        *out = *mpiox_file_stats(handle->file);
    else
        memset(out, 0, sizeof *out);
    mpiox_forwarded_stats(handle->forwarded, out);
    say_delegation(handle, out);
    out->native_calls += atomic_load_explicit(&handle->native_calls, memory_order_relaxed);
    out->nonblocking_calls = atomic_load_explicit(&handle->nonblocking_calls, memory_order_relaxed);
    out->views_set = handle->views_set;
    out->write_s = 1e-9 * (double)atomic_load_explicit(&handle->spent_ns[MPIOX_SPENT_WRITE], memory_order_relaxed);
    out->read_s = 1e-9 * (double)atomic_load_explicit(&handle->spent_ns[MPIOX_SPENT_READ], memory_order_relaxed);
    out->sync_s = 1e-9 * (double)atomic_load_explicit(&handle->spent_ns[MPIOX_SPENT_SYNC], memory_order_relaxed);
    if (handle->file == NULL && out->reason[0] == '\0')
        snprintf(out->reason, sizeof out->reason, "%s",
                 !handle->hints.enabled       ? "mpiox_enable=false"
                 : handle->why_native != NULL ? handle->why_native
                                              : "left to the MPI library");
}

static void add_open_file(mpiox_handle *handle, void *context)
{
    mpiox_stats stats;

    mpiox_mpi_stats(handle, &stats);
    mpiox_stats_add(context, &stats);
}

void mpiox_mpi_run_stats(mpiox_stats *out)
{
    pthread_mutex_lock(&lock);
    *out = run;
    pthread_mutex_unlock(&lock);
    mpiox_handle_each(add_open_file, out);
}

/* ---- over ranks -------------------------------------------------------------------------------------------------- */

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

/* Sums and maxima over ranks, of `files` too. The struct is a block of int64_t counters, a block of times and a
 * histogram: four reductions, the maxima being taken from a second one over the counters. `rank`: in comm. */
static int sum_over_ranks(mpiox_stats *stats, const mpiox_handle *handle, int rank, MPI_Comm comm, int64_t files[2],
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

/* When the file was in use on any rank, at rank 0. One reduction; a minimum is a maximum of what is negative. */
static int span_over_ranks(mpiox_handle *handle, mpiox_stats_span *out)
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

/* Say whether delegates would have paid, at rank 0; two reductions. A minimum is a maximum of what is negative. */
static int say_paying(const mpiox_handle *handle, mpiox_stats *stats)
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
        mpiox_stats_paying_say(&seen, stats->delegation, sizeof stats->delegation);
    return code != MPI_SUCCESS ? code : other;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

typedef int64_t form(const mpiox_stats *stats, const mpiox_stats_subject *about, char *text, int64_t text_bytes);

static void append_line(const char *file, const char *text, size_t bytes)
{
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    ssize_t taken = fd < 0 ? -1 : write(fd, text, bytes);

    if (taken != (ssize_t)bytes)
        fprintf(stderr, "mpiio_ext: cannot append statistics to %s: %s\n", file,
                taken < 0 ? strerror(errno) : "a part alone was taken, as where a disk becomes full");
    if (fd >= 0)
        close(fd);
}

static void collect_hints(const mpiox_hints *hints, hint_texts *out)
{
    out->count = 0;
    for (int i = 0; i < mpiox_hints_count() && out->count < HINTS_MAX; i++) {
        const mpiox_hint_spec *spec = mpiox_hints_spec(i);
        char *value = out->values[out->count];

        if (hints->source[i] == MPIOX_HINT_DEFAULT)
            continue;
        mpiox_hint_format(spec, hints, value, VALUE_BYTES);
        out->hints[out->count++] = (mpiox_stats_hint){spec->name, value, mpiox_hints_source_name(hints->source[i])};
    }
}

/* Texts one behind the other, in one write; file NULL: on standard error. */
static void put(const mpiox_stats *stats, const mpiox_stats_subject *about, form *const *forms, int count,
                const char *end, const char *file)
{
    int64_t needed = 0, used = 0;
    char *text;

    for (int i = 0; i < count; i++)
        needed += forms[i](stats, about, NULL, 0);
    text = malloc((size_t)needed + 2);
    if (text == NULL || needed == 0) {
        free(text);
        return;
    }
    for (int i = 0; i < count; i++)
        used += forms[i](stats, about, text + used, needed + 1 - used);
    strcpy(text + used, end);
    if (file != NULL)
        append_line(file, text, strlen(text));
    else
        fputs(text, stderr);
    free(text);
}

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* The page of a run has the statistics in a file of its own, and the user, who may want none, where he wants them. */
static void print(const mpiox_stats *stats, const mpiox_stats_subject *subject, mpiox_stats_level level)
{
    static form *const json[] = {mpiox_stats_json}, *const texts[] = {mpiox_stats_line, mpiox_stats_table};
    const char *file = environment("MPIOX_STATS_FILE"), *page = environment("MPIOX_REPORT_STATS");
    const bool full = level == MPIOX_STATS_FULL || level == MPIOX_STATS_ON;
    mpiox_stats_subject whole = *subject, *about = &whole;
    mpiox_stats_identity identity;

    mpiox_stats_identity_get(&identity);
    whole.identity = &identity;
    if (page != NULL)
        put(stats, about, json, 1, "\n", page);
    if (page != NULL && file == NULL && environment("MPIOX_STATS") == NULL)
        return;
    if (file != NULL || level == MPIOX_STATS_JSON)
        put(stats, about, json, 1, "\n", file);
    if (level == MPIOX_STATS_JSON || (file != NULL && level == MPIOX_STATS_ON))
        return;
    if (!about->repeats)
        put(stats, about, texts, full ? 2 : 1, "", NULL);
    else if (full)
        put(stats, about, texts + 1, 1, "", NULL); /* what the delegates counted */
}

static void add_reported(const mpiox_stats *stats, int ranks)
{
    pthread_mutex_lock(&lock);
    mpiox_stats_add(&reported, stats);
    reported_ranks = ranks > reported_ranks ? ranks : reported_ranks;
    reported_files++;
    pthread_mutex_unlock(&lock);
}

void mpiox_mpi_report_close(mpiox_handle *handle)
{
    mpiox_stats stats;
    hint_texts texts;
    mpiox_stats_span span;
    mpiox_stats_slowest slowest;
    mpiox_stats_subject subject = {.path = handle->path, .hints = texts.hints, .span = &span, .slowest = &slowest};
    const bool told = handle->comm != MPI_COMM_NULL || handle->reports_alone;
    int64_t files[2] = {0, 0}, alone[3];

    mpiox_mpi_stats(handle, &stats);
    pthread_mutex_lock(&lock);
    mpiox_stats_add(&run, &stats);
    closed_files++;
    untold_files += !told;
    pthread_mutex_unlock(&lock);
    if (!told)
        return;
    pack_slowest(&stats, world_rank(handle), alone);
    unpack_slowest(alone, &slowest);
    if (!handle->reports_alone &&
        sum_over_ranks(&stats, handle, handle->rank, handle->comm, files, &slowest) != MPI_SUCCESS)
        return;
    if (!handle->reports_alone && handle->file != NULL && say_paying(handle, &stats) != MPI_SUCCESS)
        return;
    if (span_over_ranks(handle, &span) != MPI_SUCCESS || (!handle->reports_alone && handle->rank != 0))
        return;
    collect_hints(&handle->hints, &texts);
    if (handle->reports_alone)
        texts.count = 0; /* no hint of ours is in force */
    subject.ranks = handle->reports_alone ? 1 : handle->ranks;
    subject.hint_count = texts.count;
    print(&stats, &subject, handle->hints.stats);
    if (handle->forwarded == NULL && handle->why_no_delegates == NULL)
        stats.delegation[0] = '\0'; /* an estimate for this file is none for the run */
    add_reported(&stats, subject.ranks);
}

static mpiox_stats_level run_level(void)
{
    mpiox_hints hints;

    if (environment("MPIOX_STATS") == NULL && environment("MPIOX_STATS_FILE") == NULL &&
        environment("MPIOX_REPORT_STATS") == NULL)
        return MPIOX_STATS_OFF;
    mpiox_hints_resolve("", MPI_INFO_NULL, &hints, NULL, NULL);
    return hints.stats;
}

bool mpiox_mpi_run_wanted(void)
{
    return run_level() != MPIOX_STATS_OFF;
}

void mpiox_mpi_run_agreed(bool is_wanted)
{
    pthread_mutex_lock(&lock);
    agreed = true;
    wanted |= is_wanted; /* the same on all ranks in the end: all of them take part in every such opening */
    pthread_mutex_unlock(&lock);
}

/* What the delegates counted, as rows of numbers of all that this process sees; NULL: there are none, or no memory. */
static int64_t *see_delegates(const mpiox_service *service)
{
    const size_t width = (size_t)mpiox_service_totals_width();
    int64_t *rows = service != NULL && service->count > 0 ? malloc((size_t)service->count * width * sizeof *rows)
                                                          : NULL;

    if (rows != NULL)
        mpiox_service_totals_see(service, rows);
    return rows;
}

/* Those of all ranks of MPI_COMM_WORLD, on rank 0. Collective. False: there are none (or not for all ranks). */
static bool sum_delegates(int rank, mpiox_stats_delegates *out)
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

/* Those that this process sees. */
static bool sum_own_delegates(mpiox_stats_delegates *out)
{
    const mpiox_service *service = mpiox_service_current();
    int64_t *rows = see_delegates(service);

    if (rows != NULL)
        mpiox_service_totals_sum(rows, service->count, out);
    free(rows);
    return rows != NULL;
}

static void count_open(mpiox_handle *handle, void *context)
{
    (void)handle;
    ++*(int64_t *)context;
}

/* Of this process: files on which it has reported, and those on which nobody has or will. */
static void count_files(int64_t files[2])
{
    files[0] = reported_files;
    files[1] = untold_files;
    mpiox_handle_each(count_open, &files[1]);
}

/* A program without files says so, once: the library was there. `mpiio-ext run` says it by itself. */
static void report_alone(int rank)
{
    const bool without_files = closed_files == 0 && rank == 0;
    const bool asked = reported_ranks > 0 || without_files; /* else this process does not read the hints' files */
    const mpiox_stats_level level = asked ? run_level() : MPIOX_STATS_OFF;
    mpiox_stats_delegates delegates;
    mpiox_stats_subject subject = {.ranks = without_files ? 1 : reported_ranks, .files = reported_files};
    int64_t files[2];

    if (level == MPIOX_STATS_OFF)
        return;
    count_files(files);
    subject.repeats = without_files || (files[0] == 1 && files[1] == 0);
    subject.delegates = sum_own_delegates(&delegates) ? &delegates : NULL;
    print(&reported, &subject, level);
    if (without_files && level != MPIOX_STATS_JSON && !mpiox_witness_is_there() &&
        environment("MPIOX_REPORT_STATS") == NULL)
        fputs("mpiio_ext: rank 0 opened no file through this library; why: mpiio-ext doctor -- PROGRAM\n", stderr);
}

void mpiox_mpi_run_finalize(void)
{
    mpiox_stats_delegates delegates;
    mpiox_stats_slowest slowest;
    mpiox_stats_subject subject = {.ranks = 1, .slowest = &slowest};
    mpiox_stats stats;
    int64_t files[2];
    int rank = 0;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &subject.ranks);
    if (!agreed || !wanted) {
        report_alone(rank);
        return;
    }
    mpiox_mpi_run_stats(&stats);
    subject.delegates = sum_delegates(rank, &delegates) ? &delegates : NULL;
    count_files(files);
    if (sum_over_ranks(&stats, NULL, rank, MPI_COMM_WORLD, files, &slowest) != MPI_SUCCESS || rank != 0)
        return;
    subject.files = files[0];
    subject.repeats = files[0] == 1 && files[1] == 0;

    const mpiox_stats_level level = run_level(); /* on this rank alone: it reads the hints' files */

    print(&stats, &subject, level != MPIOX_STATS_OFF ? level : MPIOX_STATS_ON);
}

/* ---- what is not as the hints say --------------------------------------------------------------------------------*/

/* Said once, by rank 0. */
static void tell_of_cached(const mpiox_handle *handle)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    if (handle != NULL && handle->hints.collective == MPIOX_COLLECTIVE_CACHED && handle->forwarded == NULL &&
        handle->rank == 0 && !atomic_flag_test_and_set(&said))
        fprintf(stderr, "mpiio_ext: %s: mpiox_collective=cached needs I/O delegates: collectives are two-phase\n",
                handle->path);
}

/* Said once, and once more after a death, by rank 0, before the file has its name. */
static void tell_of_close(const mpiox_handle *handle)
{
    static atomic_flag said = ATOMIC_FLAG_INIT, said_of_death = ATOMIC_FLAG_INIT;
    const char *why = handle == NULL || !mpiox_service_wanted(&handle->hints) ? NULL
                      : handle->why_no_delegates != NULL                      ? handle->why_no_delegates
                      : handle->why_native != NULL                            ? handle->why_native
                                                                              : "not all ranks can open it";

    if (handle != NULL && handle->hints.close != MPIOX_CLOSE_WRITTEN && handle->forwarded == NULL &&
        handle->rank == 0 && !atomic_flag_test_and_set(why == mpiox_forwarded_death ? &said_of_death : &said))
        fprintf(stderr,
                "mpiio_ext: %s: mpiox_close=%s needs I/O delegates (%s): it has its own name while it is written, and "
                "MPI_File_close waits\n",
                handle->path, handle->hints.close == MPIOX_CLOSE_NEVER ? "never" : "staged",
                why != NULL ? why : "none are asked for");
}

void mpiox_mpi_report_no_delegates(const mpiox_handle *handle)
{
    tell_of_close(handle);
    tell_of_cached(handle);
}
