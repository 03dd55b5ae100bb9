/*
 * mpiox_darshan_rows.h - the rows that Darshan logs give, as growing buffers that NumPy takes over.
 *
 * A table of numbers is one buffer of 8-byte slots, row by row; a slot is an int64_t or a double. What is absent is
 * MPIOX_DARSHAN_NONE in both kinds: as a double these bits are -0.0, which nobody stores (a zero is +0.0). A column of
 * texts is two buffers, lengths (int32_t) and bytes (UTF-8), so that rows of many logs are joined by copying.
 */
#ifndef MPIOX_DARSHAN_ROWS_H
#define MPIOX_DARSHAN_ROWS_H

#include <stdint.h>

#define MPIOX_DARSHAN_NONE INT64_MIN

/* clang-format off */
/* Columns of numbers: I is an integer, F a double. The names are those of analytics/tables/schema.py. */
#define MPIOX_DARSHAN_ACTIVITY(I, F)                                                                                   \
    I(bytes_read) I(bytes_written) I(reads) I(writes) I(opens) I(consec_reads) I(consec_writes) I(seq_reads)           \
    I(seq_writes) F(read_time) F(write_time) F(meta_time)

#define MPIOX_DARSHAN_SIZES(I, direction)                                                                              \
    I(direction##_size_0_100) I(direction##_size_100_1k) I(direction##_size_1k_10k) I(direction##_size_10k_100k)       \
    I(direction##_size_100k_1m) I(direction##_size_1m_4m) I(direction##_size_4m_10m) I(direction##_size_10m_100m)      \
    I(direction##_size_100m_1g) I(direction##_size_1g_plus)

/* status: 0 whole, 1 partial, 2 skipped; files: rows of darshan_file */
#define MPIOX_DARSHAN_LOG_COLUMNS(I, F) I(status) I(log_id) I(files)

#define MPIOX_DARSHAN_JOB_COLUMNS(I, F)                                                                                \
    MPIOX_DARSHAN_ACTIVITY(I, F) I(job_id) I(log_id) I(uid) F(start_time) F(end_time) F(run_time) I(processes)         \
    I(partial) I(files) I(files_read) I(files_written) I(uses_posix) I(uses_stdio) I(uses_mpiio) I(uses_hdf5)          \
    I(uses_pnetcdf) I(uses_lustre)

#define MPIOX_DARSHAN_FILE_COLUMNS(I, F)                                                                               \
    MPIOX_DARSHAN_ACTIVITY(I, F) I(job_id) I(log_id) I(file_id) I(processes) I(ranks) MPIOX_DARSHAN_SIZES(I, read)     \
    MPIOX_DARSHAN_SIZES(I, write) F(read_start) F(read_end) F(write_start) F(write_end) I(max_offset_read)             \
    I(max_offset_written) I(unaligned) I(alignment) F(fastest_rank_time) F(slowest_rank_time) I(fastest_rank_bytes)    \
    I(slowest_rank_bytes) I(slowest_rank) I(root_bytes_written) I(mpiio_indep_reads) I(mpiio_indep_writes)             \
    I(mpiio_coll_reads) I(mpiio_coll_writes) I(mpiio_nb_reads) I(mpiio_nb_writes) I(mpiio_bytes_read)                  \
    I(mpiio_bytes_written) I(stripe_size) I(stripe_count) I(stripe_offset) I(components)

/* What is observed of each counter of POSIX: the sum over the records, their number, the least, the greatest. */
#define MPIOX_DARSHAN_INTEGER_SUMMARY(I, counter)                                                                      \
    I(tot_##counter) I(num_##counter) I(min_##counter) I(max_##counter)
#define MPIOX_DARSHAN_DOUBLE_SUMMARY(I, F, counter)                                                                    \
    F(tot_##counter) I(num_##counter) F(min_##counter) F(max_##counter)
/* By interface, in the order of the kinds of records: bytes, and records that moved any. */
#define MPIOX_DARSHAN_INTERFACE_SUMMARY(I, api)                                                                        \
    I(api##_bytes_read) I(api##_bytes_written) I(api##_records_read) I(api##_records_written)

/* A row a log that was not skipped. The observed counters stand in the order of mpiox_darshan_library.c. unique_time:
 * of the slowest rank on files of its own; shared_time: of the slowest ranks of shared files, added up. */
#define MPIOX_DARSHAN_SUMMARY_COLUMNS(I, F)                                                                            \
    MPIOX_DARSHAN_INTEGER_SUMMARY(I, bytes_read) MPIOX_DARSHAN_INTEGER_SUMMARY(I, bytes_written)                       \
    MPIOX_DARSHAN_INTEGER_SUMMARY(I, reads) MPIOX_DARSHAN_INTEGER_SUMMARY(I, writes)                                   \
    MPIOX_DARSHAN_INTEGER_SUMMARY(I, opens) MPIOX_DARSHAN_INTEGER_SUMMARY(I, seq_reads)                                \
    MPIOX_DARSHAN_INTEGER_SUMMARY(I, seq_writes) MPIOX_DARSHAN_INTEGER_SUMMARY(I, stats)                               \
    MPIOX_DARSHAN_INTEGER_SUMMARY(I, file_not_aligned) MPIOX_DARSHAN_INTEGER_SUMMARY(I, mem_not_aligned)               \
    MPIOX_DARSHAN_DOUBLE_SUMMARY(I, F, f_meta_time) MPIOX_DARSHAN_DOUBLE_SUMMARY(I, F, f_read_time)                    \
    MPIOX_DARSHAN_DOUBLE_SUMMARY(I, F, f_write_time) MPIOX_DARSHAN_INTERFACE_SUMMARY(I, posix)                         \
    MPIOX_DARSHAN_INTERFACE_SUMMARY(I, stdio) MPIOX_DARSHAN_INTERFACE_SUMMARY(I, mpiio) F(unique_time) F(shared_time)  \
    I(log_id)

/* The buffers. X(name): a table or values; the lengths of a text or list come right before its bytes or values. */
#define MPIOX_DARSHAN_BUFFERS(X)                                                                                       \
    X(log) X(log_reason_lengths) X(log_reason) X(job) X(job_exe_lengths) X(job_exe) X(job_app_lengths) X(job_app)      \
    X(job_log_version_lengths) X(job_log_version) X(job_modules_lengths) X(job_modules) X(file) X(file_file_lengths)   \
    X(file_file) X(file_mount_lengths) X(file_mount) X(file_fs_type_lengths) X(file_fs_type) X(file_osts_lengths)      \
    X(file_osts) X(summary)
/* clang-format on */

#define MPIOX_DARSHAN_LOG_ENUM(name) MPIOX_DARSHAN_LOG_##name,
#define MPIOX_DARSHAN_JOB_ENUM(name) MPIOX_DARSHAN_JOB_##name,
#define MPIOX_DARSHAN_FILE_ENUM(name) MPIOX_DARSHAN_FILE_##name,
#define MPIOX_DARSHAN_SUMMARY_ENUM(name) MPIOX_DARSHAN_SUMMARY_##name,
#define MPIOX_DARSHAN_BUFFER_ENUM(name) MPIOX_DARSHAN_BUFFER_##name,
enum { MPIOX_DARSHAN_LOG_COLUMNS(MPIOX_DARSHAN_LOG_ENUM, MPIOX_DARSHAN_LOG_ENUM) MPIOX_DARSHAN_LOG_WIDTH };
enum { MPIOX_DARSHAN_JOB_COLUMNS(MPIOX_DARSHAN_JOB_ENUM, MPIOX_DARSHAN_JOB_ENUM) MPIOX_DARSHAN_JOB_WIDTH };
enum { MPIOX_DARSHAN_FILE_COLUMNS(MPIOX_DARSHAN_FILE_ENUM, MPIOX_DARSHAN_FILE_ENUM) MPIOX_DARSHAN_FILE_WIDTH };
enum {
    MPIOX_DARSHAN_SUMMARY_COLUMNS(MPIOX_DARSHAN_SUMMARY_ENUM, MPIOX_DARSHAN_SUMMARY_ENUM) MPIOX_DARSHAN_SUMMARY_WIDTH
};
enum { MPIOX_DARSHAN_BUFFERS(MPIOX_DARSHAN_BUFFER_ENUM) MPIOX_DARSHAN_BUFFER_COUNT };
/* The activity stands first, at the same places in both tables. */
enum { MPIOX_DARSHAN_ACTIVITY_WIDTH = MPIOX_DARSHAN_FILE_meta_time + 1 };

typedef union mpiox_darshan_slot {
    int64_t i;
    double f;
} mpiox_darshan_slot;

typedef struct mpiox_darshan_buffer {
    char *data;
    int64_t used;     /* bytes */
    int64_t capacity; /* bytes */
} mpiox_darshan_buffer;

typedef struct mpiox_darshan_rows {
    mpiox_darshan_buffer buffers[MPIOX_DARSHAN_BUFFER_COUNT];
    int failed; /* memory was exhausted: the rows are incomplete */
} mpiox_darshan_rows;

/* Make room for `bytes` more in a buffer; NULL, and rows->failed, without memory. Counts them as used. */
void *mpiox_darshan_rows_extend(mpiox_darshan_rows *rows, int buffer, int64_t bytes);
void mpiox_darshan_rows_put(mpiox_darshan_rows *rows, int buffer, const void *data, int64_t bytes);
/* Append a text to a text column (`lengths`: its buffer of lengths); what is not UTF-8 becomes U+FFFD, byte by byte. */
void mpiox_darshan_rows_put_text(mpiox_darshan_rows *rows, int lengths, const char *text, int64_t bytes);
/* Forget the rows, keep the memory. */
void mpiox_darshan_rows_clear(mpiox_darshan_rows *rows);
void mpiox_darshan_rows_release(mpiox_darshan_rows *rows);
/* Bytes in all buffers. */
int64_t mpiox_darshan_rows_bytes(const mpiox_darshan_rows *rows);
/* Name of buffer `index`, or NULL when there is none. */
const char *mpiox_darshan_rows_buffer_name(int index);
/* Name of a column of numbers of table 0 (logs), 1 (jobs), 2 (files) or 3 (summaries), or NULL; *is_double tells its
 * kind. */
const char *mpiox_darshan_rows_column(int table, int index, int *is_double);

#endif
