/*
 * mpiox_cache_errors.c - the errors of a file that its delegate has met, until they are reported.
 *
 * Problem.    A write returns before the file system has got its bytes. If the file system refuses the bytes later, the
 *             program has to get an error: from a sync or close, and before that from writes, and from reads of these
 *             bytes. A program that writes the bytes again successfully has lost nothing.
 * Algorithm.  The record of a file contains MPIOX_CACHE_ERRORS errors with their ranges; ranges that touch are one.
 *             Further errors are only counted, and their ranges lie in a table of all files. A later flush removes the
 *             ranges that it writes from the record and from the table.
 * Guarantees. Bytes that were refused and not written again are in a range. The reverse is not true if the table is
 *             full: then all bytes between a file's counted errors count as refused, until an error has been reported.
 *             An error without a place (offset < 0) is for writes, sync and close alone.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "mpiox_cache.h"

_Static_assert(MPIOX_CACHE_ERROR_BYTES >= offsetof(mpiox_error, what) + 48 &&
                   MPIOX_CACHE_ERROR_BYTES < sizeof(mpiox_error),
               "the names of the calls of csrc/core/storage and csrc/iod/server are shorter than that");

/* An owner that died leaves at worst an error that is not counted. */
static void lock_errors(mpiox_file_record *record)
{
    if (pthread_mutex_lock(&record->error_lock) == EOWNERDEAD)
        pthread_mutex_consistent(&record->error_lock);
}

static int32_t kept_of(const mpiox_file_record *record)
{
    return atomic_load(&record->error_count) - record->error_more;
}

static void set_counts(mpiox_file_record *record, int32_t kept, int32_t more)
{
    record->error_more = more;
    atomic_store(&record->error_count, kept + more);
}

static void get(const mpiox_file_record *record, int32_t i, mpiox_error *out)
{
    mpiox_error_clear(out);
    memcpy(out, record->errors[i], MPIOX_CACHE_ERROR_BYTES);
    out->what[MPIOX_CACHE_ERROR_BYTES - offsetof(mpiox_error, what)] = '\0';
}

static void put(mpiox_file_record *record, int32_t i, const mpiox_error *error)
{
    memcpy(record->errors[i], error, MPIOX_CACHE_ERROR_BYTES);
}

static void take_out(mpiox_file_record *record, int32_t first, int32_t count, int32_t kept)
{
    memmove(record->errors + first, record->errors + first + count,
            (size_t)(kept - first - count) * MPIOX_CACHE_ERROR_BYTES);
}

/* ---- the table of ranges; with the file's lock ------------------------------------------------------------------- */

static mpiox_cache_header *lock_table(const mpiox_cache *cache)
{
    if (pthread_mutex_lock(&cache->header->refused_lock) == EOWNERDEAD)
        pthread_mutex_consistent(&cache->header->refused_lock);
    return cache->header;
}

static bool append(mpiox_cache_header *table, int32_t file, int64_t first, int64_t end)
{
    if (table->refused_count == MPIOX_CACHE_REFUSED)
        return false;
    table->refused[table->refused_count++] = (mpiox_refused){first, end, file};
    return true;
}

static void remove_at(mpiox_cache_header *table, int32_t i)
{
    table->refused[i] = table->refused[--table->refused_count];
}

/* False: no room. */
static bool table_add(const mpiox_cache *cache, int32_t file, int64_t first, int64_t end)
{
    mpiox_cache_header *table = lock_table(cache);
    for (int32_t i = table->refused_count - 1; i >= 0; i--) {
        const mpiox_refused *range = &table->refused[i];
        if (range->file != file || range->first > end || range->end < first)
            continue;
        first = range->first < first ? range->first : first;
        end = range->end > end ? range->end : end;
        remove_at(table, i);
    }
    const bool added = append(table, file, first, end);
    pthread_mutex_unlock(&table->refused_lock);
    return added;
}

/* Returns how many ranges of the file remain; *fits: there was room for them. */
static int32_t table_cut(const mpiox_cache *cache, int32_t file, int64_t first, int64_t end, bool *fits)
{
    mpiox_cache_header *table = lock_table(cache);
    int32_t left = 0;
    *fits = true;
    for (int32_t i = table->refused_count - 1; i >= 0; i--) {
        const mpiox_refused range = table->refused[i];
        if (range.file != file || range.first >= end || range.end <= first)
            continue;
        remove_at(table, i);
        if (range.first < first)
            *fits = append(table, file, range.first, first) && *fits;
        if (range.end > end)
            *fits = append(table, file, end, range.end) && *fits;
    }
    for (int32_t i = 0; i < table->refused_count; i++)
        left += table->refused[i].file == file;
    pthread_mutex_unlock(&table->refused_lock);
    return left;
}

static bool table_has(const mpiox_cache *cache, int32_t file, int64_t first, int64_t end)
{
    const mpiox_cache_header *table = lock_table(cache);
    bool found = false;
    for (int32_t i = 0; i < table->refused_count && !found; i++)
        found = table->refused[i].file == file && table->refused[i].first < end && table->refused[i].end > first;
    pthread_mutex_unlock(&cache->header->refused_lock);
    return found;
}

/* ---- errors that are only counted -------------------------------------------------------------------------------- */

static void count_only(const mpiox_cache *cache, int32_t file, const mpiox_error *error)
{
    mpiox_file_record *record = &cache->header->files[file];
    const int64_t first = error->offset < 0 ? 0 : error->offset, end = error->offset < 0 ? 0 : first + error->length;
    if (record->error_more == 0 || first < record->refused_first)
        record->refused_first = first;
    if (record->error_more == 0 || end > record->refused_end)
        record->refused_end = end;
    if (end <= first || !table_add(cache, file, first, end))
        record->refused_beyond = true;
    set_counts(record, kept_of(record), record->error_more + 1);
}

static void forget_counted(const mpiox_cache *cache, int32_t file)
{
    bool fits;
    if (cache->header->files[file].error_more > 0)
        (void)table_cut(cache, file, 0, INT64_MAX, &fits);
    cache->header->files[file].refused_beyond = false;
}

static bool concern_counted(const mpiox_cache *cache, int32_t file, int64_t first, int64_t end)
{
    const mpiox_file_record *record = &cache->header->files[file];
    if (record->error_more == 0 || record->refused_first >= end || record->refused_end <= first)
        return false;
    return record->refused_beyond || table_has(cache, file, first, end);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* If its bytes touch those of a kept error with the same cause, that one's range grows. */
static bool join(mpiox_file_record *record, const mpiox_error *error)
{
    for (int32_t i = kept_of(record) - 1; i >= 0; i--) {
        mpiox_error kept;
        get(record, i, &kept);
        if (kept.offset < 0 || error->offset < 0 || kept.code != error->code || kept.sys_errno != error->sys_errno ||
            kept.offset > error->offset + error->length || error->offset > kept.offset + kept.length)
            continue;
        const int64_t end = kept.offset + kept.length, other = error->offset + error->length;
        kept.offset = kept.offset < error->offset ? kept.offset : error->offset;
        kept.length = (end > other ? end : other) - kept.offset;
        put(record, i, &kept);
        return true;
    }
    return false;
}

static void add(const mpiox_cache *cache, int32_t file, const mpiox_error *error)
{
    mpiox_file_record *record = &cache->header->files[file];
    const int32_t kept = kept_of(record);
    if (kept < MPIOX_CACHE_ERRORS && record->error_more == 0) {
        put(record, kept, error);
        set_counts(record, kept + 1, 0);
    } else {
        count_only(cache, file, error);
    }
}

void mpiox_cache_add_error(const mpiox_cache *cache, int32_t file, const mpiox_error *error)
{
    assert(file >= 0 && file < MPIOX_CACHE_MAX_FILES && error->code != MPIOX_OK);
    mpiox_file_record *record = &cache->header->files[file];
    lock_errors(record);
    if (!join(record, error))
        add(cache, file, error);
    pthread_mutex_unlock(&record->error_lock);
    atomic_fetch_add_explicit(&cache->header->counters.errors, 1, memory_order_relaxed);
}

int mpiox_cache_take_errors(const mpiox_cache *cache, int32_t file, mpiox_error *out, int max, int *more)
{
    mpiox_file_record *record = &cache->header->files[file];
    *more = 0;
    if (mpiox_cache_error_count(cache, file) == 0)
        return 0;
    lock_errors(record);
    const int32_t kept = kept_of(record), taken = kept < max ? kept : max;
    for (int32_t i = 0; i < taken; i++)
        get(record, i, &out[i]);
    take_out(record, 0, taken, kept);
    forget_counted(cache, file);
    *more = record->error_more;
    set_counts(record, kept - taken, 0);
    pthread_mutex_unlock(&record->error_lock);
    return taken;
}

bool mpiox_cache_find_error(const mpiox_cache *cache, int32_t file, int64_t first, int64_t end, mpiox_error *out)
{
    mpiox_file_record *record = &cache->header->files[file];
    const bool any = first == 0 && end == INT64_MAX;
    bool found = false;
    if (mpiox_cache_error_count(cache, file) == 0)
        return false;
    lock_errors(record);
    const int32_t kept = kept_of(record);
    const bool counted = !any && concern_counted(cache, file, first, end);
    for (int32_t i = 0; i < kept && !found; i++) {
        get(record, i, out);
        found = any || counted || (out->offset >= 0 && out->offset < end && out->offset + out->length > first);
    }
    pthread_mutex_unlock(&record->error_lock);
    out->delegate = cache->header->delegate + 1;
    return found;
}

/* Cut [first, end) out of kept error i. Returns whether its range is empty now. */
static bool cut(const mpiox_cache *cache, int32_t file, int32_t i, int64_t first, int64_t end)
{
    mpiox_file_record *record = &cache->header->files[file];
    mpiox_error error;
    get(record, i, &error);
    const int64_t last = error.offset + error.length;
    if (error.offset < 0 || error.offset >= end || last <= first)
        return false;
    mpiox_error rest = error;
    rest.offset = end;
    rest.length = last - end;
    if (first <= error.offset && end >= last)
        return true;
    if (first <= error.offset) {
        put(record, i, &rest);
        return false;
    }
    error.length = first - error.offset;
    put(record, i, &error);
    if (end < last)
        add(cache, file, &rest);
    return false;
}

/* The last kept error is empty while others are only counted: keep its cause, without a place. */
static const int64_t only_why = 0; /* its length */

static void keep_why(mpiox_file_record *record, int32_t i)
{
    mpiox_error error;
    get(record, i, &error);
    error.offset = -1;
    error.length = only_why;
    put(record, i, &error);
}

/* Remove bytes from errors that are only counted. How many remain is unknown, unless none does. */
static void cut_counted(const mpiox_cache *cache, int32_t file, int64_t first, int64_t end)
{
    mpiox_file_record *record = &cache->header->files[file];
    mpiox_error error;
    bool fits;
    const int32_t left = table_cut(cache, file, first, end, &fits);
    record->refused_beyond = record->refused_beyond || !fits;
    if (left > 0 || record->refused_beyond)
        return;
    int32_t kept = kept_of(record);
    get(record, kept - 1, &error);
    kept -= error.offset < 0 && error.length == only_why;
    set_counts(record, kept, 0);
}

void mpiox_cache_mend_errors(const mpiox_cache *cache, int32_t file, int64_t first, int64_t end)
{
    mpiox_file_record *record = &cache->header->files[file];
    if (mpiox_cache_error_count(cache, file) == 0)
        return;
    lock_errors(record);
    for (int32_t i = kept_of(record) - 1; i >= 0; i--) {
        const bool gone = cut(cache, file, i, first, end);
        const int32_t kept = kept_of(record);
        if (gone && kept == 1 && record->error_more > 0) {
            keep_why(record, i);
        } else if (gone) {
            take_out(record, i, 1, kept);
            set_counts(record, kept - 1, record->error_more);
        }
    }
    if (record->error_more > 0)
        cut_counted(cache, file, first, end);
    pthread_mutex_unlock(&record->error_lock);
}

bool mpiox_cache_has_errors(const mpiox_cache *cache)
{
    bool found = false;
    for (int i = 0; i < MPIOX_CACHE_MAX_FILES && !found; i++)
        found = atomic_load(&cache->header->files[i].error_count) > 0;
    return found;
}
