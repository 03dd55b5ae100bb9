/*
 * mpiox_independent_file.c - see mpiox_independent_file.h.
 *
 * If pieces are many and small, mapping a range is faster than requests, since a page fault costs less than two system
 * calls for every piece. On tmpfs the page faults are most of the cost: there the kernel makes the pages together with
 * the mapping, and a mapping is so short that its pages are still in the processor's cache when the rank stores to
 * them.
 */
#include "mpiox_independent_file.h"

#include "mpiox_storage_lock.h"

enum {
    MAPPED_PIECES = 16,
    MAPPED_PIECE_BYTES = 1024,   /* at least so many, so short on average, are mapped */
    POPULATED_BYTES = 256 * 1024 /* one mapping whose pages are made at once */
};

bool mpiox_independent_range(const mpiox_typemap *view, int64_t displacement, int64_t position, int64_t length,
                             int64_t *first, int64_t *last)
{
    const int64_t size = mpiox_typemap_size(view), tiles = (position + length - 1) / size + 1;
    int64_t reach;
    if (__builtin_mul_overflow(tiles, mpiox_typemap_extent(view), &reach) ||
        __builtin_add_overflow(reach, mpiox_typemap_true_ub(view), &reach) ||
        __builtin_add_overflow(reach, displacement, &reach) || reach > MPIOX_INDEPENDENT_MAX_OFFSET)
        return false;
    if (!mpiox_typemap_is_monotonic(view)) { /* any piece of the tiles may be the lowest or the highest */
        *first = displacement + position / size * mpiox_typemap_extent(view) + mpiox_typemap_true_lb(view);
        *last = reach - mpiox_typemap_extent(view);
        return *first >= 0;
    }
    *first = displacement + mpiox_typemap_offset(view, position);
    *last = displacement + mpiox_typemap_offset(view, position + length - 1) + 1;
    return *first >= 0;
}

/* ---- locks ------------------------------------------------------------------------------------------------------- */

int mpiox_independent_lock(const mpiox_independent_file *file, bool exclusive, int64_t offset, int64_t length,
                           mpiox_error *error)
{
    pthread_mutex_lock(file->threads);
    const int code = mpiox_storage_lock(file->storage, exclusive, offset, length, error);
    if (code != MPIOX_OK)
        pthread_mutex_unlock(file->threads);
    return code;
}

void mpiox_independent_unlock(const mpiox_independent_file *file, int64_t offset, int64_t length)
{
    mpiox_storage_unlock(file->storage, offset, length);
    pthread_mutex_unlock(file->threads);
}

/* ---- contiguous transfers ---------------------------------------------------------------------------------------- */

/* With romio_ds_write=enable every other write of the file owns a shared lock on its range, so that no sieved write
 * puts old bytes over its bytes. True: such a lock has been taken; else *error's code shows a failed lock. */
static bool guard(const mpiox_independent_file *file, int64_t offset, int64_t length, mpiox_error *error)
{
    return !file->locked && file->hints->ds_write == MPIOX_ON &&
           mpiox_independent_lock(file, false, offset, length, error) == MPIOX_OK;
}

/* One request; *done: bytes moved, all of them in a write that succeeds. */
static int transfer_once(mpiox_storage *storage, bool write, char *buffer, int64_t offset, int64_t length,
                         int64_t *done, mpiox_error *error)
{
    int code;
    if (write) {
        code = mpiox_storage_write(storage, buffer, length, offset, error);
        *done = code == MPIOX_OK ? length : length - error->length; /* what did not arrive is a tail */
    } else {
        code = mpiox_storage_read(storage, buffer, length, offset, done, error);
    }
    *done = *done > 0 && *done <= length ? *done : 0;
    return code;
}

int mpiox_independent_transfer(const mpiox_independent_file *file, bool write, char *buffer, int64_t offset,
                               int64_t length, int64_t *moved, mpiox_error *error)
{
    if (!file->stripe_size_io && file->hints->ds_write != MPIOX_ON) /* nothing cuts it, nothing guards it */
        return transfer_once(file->storage, write, buffer, offset, length, moved, error);
    const int64_t stripe = file->layout->stripe_size;
    const bool guarded = write && guard(file, offset, length, error);
    int code = error->code;
    *moved = 0;
    while (code == MPIOX_OK && *moved < length) {
        int64_t part = length - *moved, done;
        const int64_t at = offset + *moved;
        if (file->stripe_size_io && stripe - at % stripe < part)
            part = stripe - at % stripe;
        code = transfer_once(file->storage, write, buffer + *moved, at, part, &done, error);
        *moved += done;
        if (done < part)
            break;
    }
    if (guarded)
        mpiox_independent_unlock(file, offset, length);
    return code;
}

/* ---- mappings ---------------------------------------------------------------------------------------------------- */

bool mpiox_independent_maps(const mpiox_independent_file *file, int64_t pieces, int64_t bytes)
{
    const mpiox_fs fs = file->layout->fs;
    return pieces >= MAPPED_PIECES && bytes / pieces <= MAPPED_PIECE_BYTES && file->hints->ds_write != MPIOX_ON &&
           (fs == MPIOX_FS_TMPFS || fs == MPIOX_FS_EXT || fs == MPIOX_FS_XFS);
}

int64_t mpiox_independent_map_bytes(const mpiox_independent_file *file)
{
    return file->layout->fs == MPIOX_FS_TMPFS ? POPULATED_BYTES : INT64_MAX;
}

int mpiox_independent_map(const mpiox_independent_file *file, int64_t offset, int64_t length,
                          mpiox_storage_mapping *out)
{
    return mpiox_storage_map(file->storage, offset, length, file->layout->fs == MPIOX_FS_TMPFS, out);
}
