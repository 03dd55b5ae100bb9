/*
 * mpiox_storage_direct.c - whole blocks past the page cache, the rest through it.
 *
 * Problem.    Direct I/O saves copying data that is not read again through the page cache, but needs aligned offsets,
 *             lengths and memory, which requests of MPI programs do not have. The usual remedy, reading the blocks at
 *             both ends to write them back, destroys bytes that a neighbouring rank writes into them meanwhile.
 * Algorithm.  Two descriptors of one file. The blocks that a request covers completely go through the O_DIRECT one,
 *             straight from aligned memory or by way of an aligned buffer of bounded size; the bytes before and behind
 *             them go through the page cache. Each of these is one short transfer; the loop that finishes short
 *             transfers makes the rest. A file system that refuses direct I/O, at open or by EINVAL at a transfer, gets
 *             the page cache from then on, and rank 0 reports this once.
 * Guarantees. A block is a multiple of the page and of the file system's alignment, so that no page has bytes of both
 *             ways: the kernel flushes and drops pages around a direct transfer, but never a neighbour's half of a
 *             page. Only covered blocks are written, so that the file never ends behind the last byte written.
 *             Direct writes are always blocking calls, never requests in flight. During a blocking direct write, from
 *             the first flush to the last drop of cached pages, local file systems keep buffered writers of the same
 *             file out. During an asynchronous one they do not: a large folio that is made dirty in between would keep
 *             old data. Direct reads have no such window and may be in flight together.
 *             Memory that may change under a write (`changing`) is copied first: file systems and devices with
 *             checksums compute them from the caller's memory, and a byte that is stored meanwhile makes a block that
 *             cannot be read any more, or a write that fails.
 * Source.     open(2), section O_DIRECT; statx(2), STATX_DIOALIGN; mm/filemap.c of Linux, kiocb_invalidate_pages().
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_storage_internal.h"

enum { BOUNCE_BYTES = 1 << 20, BLOCK_MAX = 1 << 16, CUT_VECTORS = 64 };

typedef struct direct_state {
    mpiox_storage *inner; /* owned: the page cache */
    int fd, rank;
    int64_t block, memory; /* alignment of file ranges and of memory; powers of 2 */
    bool changing;         /* see mpiox_storage_options */
    atomic_bool on[2];     /* for reads, for writes */
    pthread_mutex_t lock;  /* guards the buffer */
    char *bounce;          /* BOUNCE_BYTES, made at first use */
} direct_state;

static const char refused[] = "the file system does not offer it";

static int64_t cached_transfer(direct_state *state, bool write, const struct iovec *iov, int iov_count, int64_t offset,
                               int64_t limit)
{
    struct iovec part[CUT_VECTORS];
    int n = mpiox_storage_cut(iov, iov_count, limit, part, CUT_VECTORS);
    return state->inner->backend->transfer(state->inner, write, part, n, offset);
}

/* ---- direct transfers -------------------------------------------------------------------------------------------- */

static bool aligned(const direct_state *state, const struct iovec *iov)
{
    return (uintptr_t)iov->iov_base % (uintptr_t)state->memory == 0 && iov->iov_len >= (size_t)state->block;
}

/* Copy between vectors and one buffer. */
static void copy(const struct iovec *iov, char *buffer, int64_t bytes, bool to_buffer)
{
    for (; bytes > 0; iov++) {
        size_t step = (uint64_t)bytes < iov->iov_len ? (size_t)bytes : iov->iov_len;
        if (step > 0)
            memcpy(to_buffer ? buffer : iov->iov_base, to_buffer ? iov->iov_base : buffer, step);
        buffer += step;
        bytes -= (int64_t)step;
    }
}

/* Move whole blocks by way of an aligned buffer. */
static int64_t move_through(direct_state *state, char *buffer, bool write, const struct iovec *iov, int64_t offset,
                            int64_t bytes)
{
    const struct iovec part = {.iov_base = buffer, .iov_len = (size_t)bytes};
    if (buffer == NULL)
        return -ENOMEM;
    if (write)
        copy(iov, buffer, bytes, true);
    const int64_t moved = mpiox_storage_posix_call(state->fd, write, &part, 1, offset);
    if (!write)
        copy(iov, buffer, moved, false);
    return moved;
}

/* Move `bytes` bytes, whole blocks, from or to memory that cannot be used itself: at most a buffer full. A thread that
 * finds the buffer in use makes one for this transfer, so that threads do not wait for each other's devices. */
static int64_t bounced(direct_state *state, bool write, const struct iovec *iov, int64_t offset, int64_t bytes)
{
    const int64_t step = bytes < BOUNCE_BYTES ? bytes : BOUNCE_BYTES;
    const bool mine = pthread_mutex_trylock(&state->lock) == 0;
    char *buffer = mine ? state->bounce : NULL;
    if (buffer == NULL)
        buffer = aligned_alloc(BLOCK_MAX, BOUNCE_BYTES); /* no alignment asked for is larger */
    const int64_t moved = move_through(state, buffer, write, iov, offset, step);
    if (mine) {
        state->bounce = buffer;
        pthread_mutex_unlock(&state->lock);
    } else {
        free(buffer);
    }
    return moved;
}

/* Some of `bytes` bytes, whole blocks at a block's start. -EINVAL: not here. */
static int64_t direct_call(direct_state *state, bool write, const struct iovec *iov, int64_t offset, int64_t bytes)
{
    if ((write && state->changing) || !aligned(state, iov))
        return bounced(state, write, iov, offset, bytes);
    struct iovec part;
    mpiox_storage_cut(iov, 1, bytes < MPIOX_STORAGE_CALL_BYTES ? bytes : MPIOX_STORAGE_CALL_BYTES, &part, 1);
    part.iov_len -= part.iov_len % (size_t)state->block;
    return mpiox_storage_posix_call(state->fd, write, &part, 1, offset);
}

static void switch_off(direct_state *state, bool write)
{
    static atomic_flag reported = ATOMIC_FLAG_INIT;
    atomic_store(&state->on[write], false);
    mpiox_storage_report(&reported, state->rank, "direct I/O is not used, but the page cache", refused);
}

/* Bytes of a request before the first block that it covers whole; all of them when there is none. */
static int64_t head_bytes(const direct_state *state, int64_t offset, int64_t bytes)
{
    int64_t head = (state->block - offset % state->block) % state->block;
    return bytes - head >= state->block ? head : bytes;
}

static int64_t direct_transfer(mpiox_storage *storage, bool write, const struct iovec *iov, int iov_count,
                               int64_t offset)
{
    direct_state *state = storage->state;
    int64_t bytes = mpiox_storage_request_bytes(iov, iov_count, offset);
    int64_t head = atomic_load(&state->on[write]) ? head_bytes(state, offset, bytes) : bytes;
    while (iov_count > 1 && iov->iov_len == 0) {
        iov++;
        iov_count--;
    }
    if (head > 0)
        return cached_transfer(state, write, iov, iov_count, offset, head);
    int64_t whole = bytes - bytes % state->block;
    int64_t moved = direct_call(state, write, iov, offset, whole);
    if (moved != -EINVAL)
        return moved;
    switch_off(state, write);
    return cached_transfer(state, write, iov, iov_count, offset, bytes);
}

/* Calls that need no cutting are in flight together: those without a whole block through the page cache, reads of
 * nothing but whole blocks into aligned memory past it. The others are left to blocking calls. */
static void direct_many(mpiox_storage *storage, bool write, mpiox_storage_call *calls, int count)
{
    direct_state *state = storage->state;
    if (state->inner->backend->many == NULL)
        return;
    for (int i = 0; i < count && atomic_load(&state->on[write]); i++) {
        mpiox_storage_call *call = &calls[i];
        int64_t bytes = mpiox_storage_request_bytes(call->iov, call->iov_count, call->offset);
        if (call->skip || head_bytes(state, call->offset, bytes) == bytes)
            continue;
        if (!write && call->iov_count == 1 && aligned(state, call->iov) && call->offset % state->block == 0 &&
            bytes % state->block == 0)
            call->fd = state->fd;
        else
            call->skip = true;
    }
    state->inner->backend->many(state->inner, write, calls, count);
    for (int i = 0; i < count; i++) {
        /* The blocking call gets the same error and switches direct I/O off. */
        if (calls[i].fd >= 0 && calls[i].moved == -EINVAL)
            calls[i].moved = MPIOX_STORAGE_NOT_STARTED;
    }
}

/* ---- making and closing ------------------------------------------------------------------------------------------ */

static int direct_close(mpiox_storage *storage)
{
    direct_state *state = storage->state;
    int rc = close(state->fd) == 0 || errno == EINTR ? 0 : -errno;
    int inner_rc = mpiox_storage_close(state->inner) == MPIOX_OK ? 0 : -errno;
    pthread_mutex_destroy(&state->lock);
    free(state->bounce);
    free(state);
    return rc != 0 ? rc : inner_rc;
}

static const mpiox_storage_backend direct_backend = {
    .name = "direct",
    .transfer = direct_transfer,
    .close = direct_close,
    .many = direct_many,
};

/* Alignments as the kernel reports them (Linux 6.1), else ones that no file system is known to exceed. False: they are
 * of no use here. */
static bool find_alignment(direct_state *state)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    state->block = state->memory = 4096;
#ifdef STATX_DIOALIGN
    struct statx status;
    if (statx(state->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 && (status.stx_mask & STATX_DIOALIGN) != 0) {
        state->block = status.stx_dio_offset_align;
        state->memory = status.stx_dio_mem_align;
    }
#endif
    if (state->block <= 0 || state->memory <= 0 || (state->block & (state->block - 1)) != 0 ||
        (state->memory & (state->memory - 1)) != 0)
        return false;
    state->block = state->block > page ? state->block : page;
    return state->block <= BLOCK_MAX && state->memory <= BLOCK_MAX;
}

/* The name may have come to mean another file since the first descriptor was opened. */
static bool same_file(int a, int b)
{
    struct stat first, second;
    return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino && S_ISREG(first.st_mode);
}

bool mpiox_storage_add_direct(mpiox_storage **storage, const char *path, int flags, int rank,
                              const mpiox_storage_options *options, const char **reason)
{
    int fd = mpiox_storage_descriptor(path, flags | O_DIRECT);
    direct_state *state = calloc(1, sizeof *state);
    mpiox_storage *outer = calloc(1, sizeof *outer);
    *reason = fd == -EINVAL ? refused : "the file could not be opened again";
    if (state != NULL)
        *state = (direct_state){.inner = *storage, .fd = fd, .rank = rank, .changing = options->changing};
    if (fd < 0 || state == NULL || outer == NULL || !same_file(fd, (*storage)->fd) || !find_alignment(state)) {
        *reason = fd >= 0 ? refused : *reason;
        if (fd >= 0)
            close(fd);
        free(state);
        free(outer);
        return false;
    }
    atomic_store(&state->on[false], options->direct_read);
    atomic_store(&state->on[true], options->direct_write);
    pthread_mutex_init(&state->lock, NULL);
    *outer = (mpiox_storage){.backend = &direct_backend, .fd = (*storage)->fd, .state = state};
    *storage = outer;
    return true;
}
