/*
 * mpiox_mpi_report.c - statistics of a file at its close and of the run at MPI_Finalize.
 *
 * If a file's hints request statistics, they are summed over its ranks (on a duplicate of its communicator), and its
 * rank 0 prints them. If all ranks of MPI_COMM_WORLD have opened a file together, the run's totals are summed over
 * MPI_COMM_WORLD: then all ranks have the library, and rank 0 of that file has sent the others its MPIOX_STATS, which
 * may differ between ranks. Otherwise each process sums up the files that it has reported on. A file's report has the
 * hints in force and their sources. The run's report has the counts of the delegates; a run of one file does not repeat
 * the file's text.
 */
#include "mpiox_mpi_report.h"

#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_forwarded.h"
#include "mpiox_mpi_print.h"
#include "mpiox_mpi_reduce.h"
#include "mpiox_print.h"
#include "mpiox_text.h"
#include "mpiox_witness.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mpiox_stats run;      /* files closed so far, this process */
static mpiox_stats reported; /* all ranks of the files on which this process has reported */
static int reported_ranks;   /* most ranks of a reported file; 0: there is none */
static bool agreed, wanted;
static int64_t closed_files, reported_files; /* by this process; number of those that it has reported on */
static int64_t unreported_files;             /* closed ones without a report */

static int64_t loaded(const atomic_int_least64_t *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

static void add_failures(const mpiox_handle *handle, mpiox_stats *out)
{
    out->failed_writes = loaded(&handle->failed[MPIOX_SPENT_WRITE]);
    out->failed_reads = loaded(&handle->failed[MPIOX_SPENT_READ]);
    out->failed_syncs = loaded(&handle->failed[MPIOX_SPENT_SYNC]);
    out->failed_no_space = loaded(&handle->failed_with[MPIOX_FAILED_NO_SPACE]);
    out->failed_quota = loaded(&handle->failed_with[MPIOX_FAILED_QUOTA]);
    out->failed_io = loaded(&handle->failed_with[MPIOX_FAILED_IO]);
}

static void describe_delegation(const mpiox_handle *handle, mpiox_stats *out)
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
    describe_delegation(handle, out);
    add_failures(handle, out);
    out->native_calls += loaded(&handle->native_calls);
    out->nonblocking_calls = loaded(&handle->nonblocking_calls);
    out->views_set = handle->views_set;
    out->write_s = 1e-9 * (double)loaded(&handle->spent_ns[MPIOX_SPENT_WRITE]);
    out->read_s = 1e-9 * (double)loaded(&handle->spent_ns[MPIOX_SPENT_READ]);
    out->sync_s = 1e-9 * (double)loaded(&handle->spent_ns[MPIOX_SPENT_SYNC]);
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
    mpiox_mpi_hints texts;
    mpiox_stats_span span;
    mpiox_stats_slowest slowest;
    mpiox_stats_subject subject = {.path = handle->path, .hints = texts.hints, .span = &span, .slowest = &slowest};
    const bool reports = handle->comm != MPI_COMM_NULL || handle->reports_alone;
    int64_t files[2] = {0, 0};

    mpiox_mpi_stats(handle, &stats);
    pthread_mutex_lock(&lock);
    mpiox_stats_add(&run, &stats);
    closed_files++;
    unreported_files += !reports;
    pthread_mutex_unlock(&lock);
    if (!reports)
        return;
    mpiox_mpi_slowest_alone(&stats, handle, &slowest);
    if (!handle->reports_alone &&
        mpiox_mpi_reduce_stats(&stats, handle, handle->rank, handle->comm, files, &slowest) != MPI_SUCCESS)
        return;
    if (!handle->reports_alone && handle->file != NULL && mpiox_mpi_reduce_paying(handle, &stats) != MPI_SUCCESS)
        return;
    if (mpiox_mpi_reduce_span(handle, &span) != MPI_SUCCESS || (!handle->reports_alone && handle->rank != 0))
        return;
    mpiox_mpi_hint_texts(&handle->hints, &texts);
    if (handle->reports_alone)
        texts.count = 0; /* no hint of ours is in force */
    subject.ranks = handle->reports_alone ? 1 : handle->ranks;
    subject.hint_count = texts.count;
    mpiox_mpi_print(&stats, &subject, handle->hints.stats);
    if (handle->forwarded == NULL && handle->why_no_delegates == NULL)
        stats.delegation[0] = '\0'; /* an estimate for this file is none for the run */
    add_reported(&stats, subject.ranks);
}

static mpiox_stats_level run_level(void)
{
    mpiox_hints hints;

    if (mpiox_text_variable("MPIOX_STATS") == NULL && mpiox_text_variable("MPIOX_STATS_FILE") == NULL &&
        mpiox_text_variable("MPIOX_REPORT_STATS") == NULL)
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

static void count_open(mpiox_handle *handle, void *context)
{
    (void)handle;
    ++*(int64_t *)context;
}

/* Of this process: files that it has reported on, and those without a report now or later. */
static void count_files(int64_t files[2])
{
    files[0] = reported_files;
    files[1] = unreported_files;
    mpiox_handle_each(count_open, &files[1]);
}

/* A program without files reports that once, which shows that the library was loaded. `mpiio-ext run` reports it by
 * itself. */
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
    subject.delegates = mpiox_mpi_own_delegates(&delegates) ? &delegates : NULL;
    mpiox_mpi_print(&reported, &subject, level);
    if (without_files && level != MPIOX_STATS_JSON && !mpiox_witness_is_there() &&
        mpiox_text_variable("MPIOX_REPORT_STATS") == NULL)
        mpiox_print("mpiio_ext: rank 0 opened no file through this library; why: mpiio-ext doctor -- PROGRAM\n");
}

/* Is this library a PnetCDF with GIO in it? Its constants are in segments that are not written. */
static int has_gio(struct dl_phdr_info *info, size_t bytes, void *context)
{
    static const char mark[] = "GIO library version";

    (void)bytes, (void)context;
    if (strstr(info->dlpi_name, "/libpnetcdf") == NULL)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == PT_LOAD && (part->p_flags & (PF_R | PF_W)) == PF_R &&
            memmem((const char *)info->dlpi_addr + part->p_vaddr, part->p_filesz, mark, sizeof mark - 1) != NULL)
            return 1;
    }
    return 0;
}

/* PnetCDF from 1.15 on opens files by open(2), unless a hint prevents that: nothing else shows it. */
static void warn_of_gio(void)
{
    const char *hints = getenv("PNETCDF_HINTS");
    int64_t files[2];

    count_files(files);
    if (closed_files + files[1] == 0 && (hints == NULL || strstr(hints, "nc_driver") == NULL) &&
        dl_iterate_phdr(has_gio, NULL) != 0)
        mpiox_print("mpiio_ext: if PnetCDF wrote files, its GIO passed MPI-IO by; set PNETCDF_HINTS=nc_driver=mpiio\n");
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
    if (rank == 0)
        warn_of_gio();
    if (!agreed || !wanted) {
        report_alone(rank);
        return;
    }
    mpiox_mpi_run_stats(&stats);
    subject.delegates = mpiox_mpi_reduce_delegates(rank, &delegates) ? &delegates : NULL;
    count_files(files);
    if (mpiox_mpi_reduce_stats(&stats, NULL, rank, MPI_COMM_WORLD, files, &slowest) != MPI_SUCCESS || rank != 0)
        return;
    subject.files = files[0];
    subject.repeats = files[0] == 1 && files[1] == 0;

    const mpiox_stats_level level = run_level(); /* on this rank alone: it reads the hints' files */

    mpiox_mpi_print(&stats, &subject, level != MPIOX_STATS_OFF ? level : MPIOX_STATS_ON);
}
