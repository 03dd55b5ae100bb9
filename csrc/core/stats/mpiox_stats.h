/*
 * mpiox_stats.h - statistics of the library: counters per file and rank, summed at close, and totals per process.
 *
 * Times are summed over ranks; the table shows them per rank.
 * One X-macro list is the only place that names the counters: C struct, text, JSON and the Python dataclass follow it.
 * Only the rank that owns the file handle updates them (no atomics); counts of several threads are copied from structs
 * of atomics when the statistics are read. Times in seconds, sizes in bytes.
 */
#ifndef MPIOX_STATS_H
#define MPIOX_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpiox_stats_identity.h"

/* X(name, unit, over_ranks, meaning). over_ranks: how the values of several ranks become one: SUM, or MAX for counts of
 * all ranks together (one collective is one call, however many ranks take part). */
#define MPIOX_STATS_COUNTERS(X)                                                                                        \
    X(collective_writes, "calls", MAX, "collective writes carried out by this library")                                \
    X(collective_reads, "calls", MAX, "collective reads carried out by this library")                                  \
    X(native_calls, "calls", SUM, "data-access calls of this file handed to the MPI library")                          \
    X(direct_calls, "calls", MAX, "collectives that went straight to the file without exchange")                       \
    X(individual_calls, "calls", MAX, "of those, calls in which a rank did not wait for another")                      \
    X(bytes_written, "bytes", SUM, "data bytes written by collectives")                                                \
    X(bytes_read, "bytes", SUM, "data bytes read by collectives")                                                      \
    X(direct_bytes_written, "bytes", SUM, "of those, written by each rank alone: counted with independent ones, too")  \
    X(direct_bytes_read, "bytes", SUM, "of those, read by each rank alone: counted with independent ones, too")        \
    X(pieces, "pieces", SUM, "contiguous file pieces those bytes consist of, estimated from the view")                 \
    X(rounds, "rounds", MAX, "two-phase rounds (windows of the busiest aggregator)")                                   \
    X(windows_full, "windows", SUM, "windows written by one request because every byte was covered")                   \
    X(windows_holes, "windows", SUM, "windows with holes, of which only the covered extents were written")             \
    X(messages, "messages", SUM, "messages sent between nodes")                                                        \
    X(message_bytes, "bytes", SUM, "bytes sent between nodes")                                                         \
    X(write_requests, "requests", SUM, "file-system write requests")                                                   \
    X(write_request_bytes, "bytes", SUM, "bytes of file-system write requests")                                        \
    X(read_requests, "requests", SUM, "file-system read requests")                                                     \
    X(read_request_bytes, "bytes", SUM, "bytes of file-system read requests")                                          \
    X(independent_writes, "calls", SUM, "accesses of one rank alone that wrote, in direct collectives too")            \
    X(independent_reads, "calls", SUM, "accesses of one rank alone that read, in direct collectives too")              \
    X(independent_bytes_written, "bytes", SUM, "data bytes those wrote")                                               \
    X(independent_bytes_read, "bytes", SUM, "data bytes those read")                                                   \
    X(chunks_whole, "chunks", SUM, "parts of such accesses without holes: one request each")                           \
    X(chunks_sieved, "chunks", SUM, "parts moved by data sieving: one request for a range with holes")                 \
    X(chunks_mapped, "chunks", SUM, "parts written through a mapping of the file")                                     \
    X(chunks_listed, "chunks", SUM, "parts moved by one request per piece")                                            \
    X(locks, "locks", SUM, "file ranges locked for atomic mode")                                                       \
    X(device_bytes_written, "bytes", SUM, "data bytes written from the memory of a GPU")                               \
    X(device_bytes_read, "bytes", SUM, "data bytes read into the memory of a GPU")                                     \
    X(nonblocking_calls, "calls", SUM, "nonblocking accesses carried out by this library")                             \
    X(views_set, "calls", MAX, "file views set")                                                                       \
    X(errors, "errors", MAX, "collectives that ended with an error")                                                   \
    X(failed_writes, "calls", SUM, "calls of a rank that wrote and failed, whoever carried them out")                  \
    X(failed_reads, "calls", SUM, "calls of a rank that read and failed, whoever carried them out")                    \
    X(failed_syncs, "calls", SUM, "calls of a rank to sync, preallocate or resize that failed")                        \
    X(failed_no_space, "calls", SUM, "of those, with MPI_ERR_NO_SPACE")                                                \
    X(failed_quota, "calls", SUM, "of those, with MPI_ERR_QUOTA")                                                      \
    X(failed_io, "calls", SUM, "of those, with MPI_ERR_IO")                                                            \
    MPIOX_STATS_DELEGATED(X)

/* The last counters: the work of delegates. An access counted here also counts as an access of one rank alone. */
#define MPIOX_STATS_DELEGATED(X)                                                                                       \
    X(delegated_calls, "calls", MAX, "collectives carried out through the delegates")                                  \
    X(delegated_writes, "calls", SUM, "accesses of one rank that wrote through the delegates")                         \
    X(delegated_reads, "calls", SUM, "accesses of one rank that read through the delegates")                           \
    X(delegated_bytes_written, "bytes", SUM, "data bytes those wrote into pages of the delegates")                     \
    X(delegated_bytes_read, "bytes", SUM, "data bytes those read from pages of the delegates")                         \
    X(delegated_misses, "pages", SUM, "pages that were not cached, so that ranks requested them")                      \
    X(delegated_messages, "messages", SUM, "requests to delegates of other nodes")                                     \
    X(delegated_message_bytes, "bytes", SUM, "bytes sent to and received from them")                                   \
    X(bypass_bytes_written, "bytes", SUM, "bytes written past the delegates: whole pages of long runs")                \
    X(bypass_bytes_read, "bytes", SUM, "bytes read past the delegates: whole pages of long runs")                      \
    X(delegated_flush_barriers, "calls", MAX, "flushes of all written bytes to the file")                              \
    X(moved_ranges, "ranges", SUM, "page ranges assigned to another delegate to balance the load")                     \
    X(remapped_ranges, "ranges", SUM, "page ranges assigned to another delegate by the arbiter's map")                 \
    X(redirected_pages, "pages", SUM, "page accesses repeated because the page had moved to another delegate")         \
    X(deferred_errors, "ranges", MAX, "ranges of bytes that delegates had accepted and could not write")               \
    X(dead_delegate_accesses, "pages", SUM, "page accesses made in the file because the page's delegate was dead")

/* X(name, meaning), seconds */
#define MPIOX_STATS_TIMES(X)                                                                                           \
    X(plan_s, "describing the accesses and planning file domains")                                                     \
    X(exchange_s, "copying pieces, and messages between nodes")                                                        \
    X(messages_s, "of those, sending to other nodes, receiving, and waiting for messages")                             \
    X(io_s, "file-system requests")                                                                                    \
    X(wait_s, "waiting for other ranks")                                                                               \
    X(total_s, "inside collectives, start to end")                                                                     \
    X(independent_s, "inside accesses of one rank alone")                                                              \
    X(delegated_s, "of those, inside accesses through delegates")                                                      \
    X(flush_barrier_s, "until bytes written through delegates were in the file: sync, close, other ways of access")    \
    X(write_s, "inside calls that wrote, start to end")                                                                \
    X(read_s, "inside calls that read, start to end")                                                                  \
    X(sync_s, "until written bytes were in the file: sync, and close with delegates")                                  \
    X(device_s, "in the driver of a GPU, for copies of its memory")

#define MPIOX_STATS_SIZE_BUCKETS 48

typedef struct mpiox_stats_way { /* how the last collective read, or the last collective write, was carried out */
    char partition[24];          /* method; empty: there were no file domains, or no such collective */
    bool stripe_size_io;         /* no request larger than a stripe or across a stripe's end */
    char reason[512];            /* why; empty: there was no such collective */
} mpiox_stats_way;

typedef struct mpiox_stats {
#define X(name, unit, over_ranks, meaning) int64_t name;
    MPIOX_STATS_COUNTERS(X)
#undef X
#define X(name, meaning) double name;
    MPIOX_STATS_TIMES(X)
#undef X
    int64_t request_size_log2[MPIOX_STATS_SIZE_BUCKETS]; /* requests of [2^k, 2^(k+1)) bytes */
    char partition[24];                                  /* method of the last collective that had file domains */
    char reason[512];                                    /* of the last collective: why that method and path */
    mpiox_stats_way ways[2];                             /* reads, writes */
    char delegation[448];                                /* the delegates, or why there are none */
} mpiox_stats;

typedef struct mpiox_stats_delegated { /* the same counters of one file, raised by any thread of the rank */
#define X(name, unit, over_ranks, meaning) atomic_int_least64_t name;
    MPIOX_STATS_DELEGATED(X)
#undef X
    atomic_int_least64_t nanoseconds, flush_barrier_nanoseconds; /* delegated_s, flush_barrier_s */
} mpiox_stats_delegated;

/* Set how a collective is carried out: `partition`, unless method is NULL, `reason` and the fields of its direction.
 * Texts that do not fit are cut off. */
void mpiox_stats_set_method(mpiox_stats *stats, bool write, const char *method, bool stripe_size_io,
                            const char *reason);

/* Copy the values into the counters of the same names. */
void mpiox_stats_set_delegated(mpiox_stats *into, const mpiox_stats_delegated *from);

void mpiox_stats_add(mpiox_stats *into, const mpiox_stats *from); /* sums and maxima; texts of `from` win when set */
/* Is counter `index` (order of the list) the maximum over ranks rather than the sum? */
int mpiox_stats_is_max(int index);

typedef struct mpiox_stats_hint {      /* a hint in force whose value is not the default, and its source */
    const char *name, *value, *source; /* borrowed */
} mpiox_stats_hint;

typedef struct mpiox_stats_number {
    const char *name, *unit, *meaning; /* static texts */
    int64_t value;                     /* in that unit */
} mpiox_stats_number;

enum { MPIOX_STATS_DELEGATE_NUMBERS = 48 };

typedef struct mpiox_stats_delegates {                        /* the delegates' own counts in a run, summed over them */
    int delegates, known;                                     /* all delegates; those whose numbers are in the sums */
    int died;                                                 /* delegates that a rank has found dead */
    int count;                                                /* entries of numbers[] in use */
    mpiox_stats_number numbers[MPIOX_STATS_DELEGATE_NUMBERS]; /* the first `count` */
    int64_t flush_size_log2[MPIOX_STATS_SIZE_BUCKETS];        /* their write requests by size */
} mpiox_stats_delegates;

typedef struct mpiox_stats_span { /* use of a file by any rank, seconds since 1970; 0: none, or not known */
    double opened, closed;
    double first[2], last[2]; /* reads, writes: begin of the first one, end of the last one */
} mpiox_stats_span;

typedef struct mpiox_stats_slowest { /* facts that sums over ranks hide */
    double write_s, read_s;          /* the longest time of a rank: write_s + sync_s, and read_s */
    int rank;                        /* the rank with the most time of its own (mpiox_stats_own_s) */
    double own_s;                    /* that time of this rank, seconds */
} mpiox_stats_slowest;

typedef struct mpiox_stats_subject {        /* the subject of the numbers */
    const char *path;                       /* of the file; NULL: the run */
    int ranks;                              /* whose numbers are summed */
    const mpiox_stats_hint *hints;          /* of the file */
    int hint_count;                         /* entries of `hints` */
    const mpiox_stats_delegates *delegates; /* of the run; NULL: none */
    const mpiox_stats_identity *identity;   /* of the run; for JSON */
    const mpiox_stats_span *span;           /* of the file; for JSON */
    const mpiox_stats_slowest *slowest;     /* NULL: not known */
    int64_t files;                          /* of the run; 0: not known */
    bool repeats; /* the numbers of the run are those of its only file, which has been reported */
} mpiox_stats_subject;

/* One JSON object (no newline) into text; returns the length it needs, as snprintf. */
int64_t mpiox_stats_json(const mpiox_stats *stats, const mpiox_stats_subject *about, char *text, int64_t text_bytes);
/* One line for people: bytes, speed, time in I/O, the slowest rank. */
int64_t mpiox_stats_line(const mpiox_stats *stats, const mpiox_stats_subject *about, char *text, int64_t text_bytes);
/* A table for people, several lines. */
int64_t mpiox_stats_table(const mpiox_stats *stats, const mpiox_stats_subject *about, char *text, int64_t text_bytes);

/* Times of one rank or summed over ranks, in seconds. In I/O: inside calls that access the file or flush bytes.
 * Waiting: the part of it in which the rank agrees with other ranks and waits for them. Own: the rest. */
double mpiox_stats_in_io_s(const mpiox_stats *stats);
double mpiox_stats_waiting_s(const mpiox_stats *stats);
double mpiox_stats_own_s(const mpiox_stats *stats);

#endif
