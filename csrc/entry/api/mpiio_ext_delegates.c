/*
 * mpiio_ext_delegates.c - reading the memory of a running delegate.
 *
 * Problem.   A user wants to see what the delegates of a running job do, without a request to the job: it may be stuck,
 *            and requests would disturb it. The memory that is found may be another program's, or of a delegate that
 *            starts, ends or has another version.
 * Algorithm. The delegate's segment is mapped for reading only, checked as a client checks it, and its numbers are
 *            loaded one by one as the atomics that they are. Texts are copied byte by byte up to their bound.
 * Guarantee. The job is not touched: no lock is taken, nothing is written. Whatever lies in the memory, reads stay
 *            inside it. Of memory that is truncated before or during the read, nothing is reported.
 */
#include "mpiio_ext_delegates_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_ring.h"
#include "mpiox_segment_guard.h"
#include "mpiox_text.h"

typedef struct frame_sums {
    int64_t used, dirty, dirty_bytes, prefetched;
    int64_t dirty_bytes_of[MPIOX_CACHE_MAX_FILES];
} frame_sums;

enum {
    FRAMES_LOOKED_AT = 1 << 20, /* of a larger cache every n-th frame is read */
    FLUSH_SIZES = 48
};

static const struct {
    const char *name, *unit, *meaning;
} counters[] = {
#define X(name, unit, meaning) {#name, unit, meaning},
    MPIOX_CACHE_COUNTERS(X)
#undef X
};

enum { COUNTERS = (int)(sizeof counters / sizeof counters[0]) };

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Check the name before the open: it may lead to anything, and opening a device can have effects. */
static int open_regular(const char *path, struct stat *status)
{
    if (stat(path, status) != 0 || !S_ISREG(status->st_mode))
        return -1;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && (fstat(fd, status) != 0 || !S_ISREG(status->st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Another process can truncate the memory at any moment. Without room for a guard, SIGBUS ends the reader. */
static int attach(void *base, int64_t bytes, mpiox_cache *cache)
{
    const mpiox_segment_empty zeros = {0};

    mpiox_segment_guard(base, bytes, &zeros);
    const int code = mpiox_cache_attach(base, bytes, cache);
    return code == MPIOX_OK && mpiox_segment_is_lost(base, bytes) ? MPIOX_E_CORRUPT : code;
}

int mpiio_ext_delegates_open(const char *path, mpiio_ext_delegates **delegates)
{
    struct stat status;

    *delegates = NULL;
    const int fd = open_regular(path, &status);
    if (fd < 0)
        return MPIOX_E_IO;
    mpiio_ext_delegates *made = calloc(1, sizeof *made + strlen(path) + 1);
    const size_t bytes = (size_t)status.st_size;
    int code = made == NULL ? MPIOX_E_NOMEM : bytes < sizeof(mpiox_cache_header) ? MPIOX_E_CORRUPT : MPIOX_OK;
    void *base = code == MPIOX_OK ? mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0) : MAP_FAILED;
    close(fd);
    if (code == MPIOX_OK)
        code = base == MAP_FAILED ? MPIOX_E_NOMEM : attach(base, (int64_t)bytes, &made->cache);
    if (code != MPIOX_OK) {
        if (base != MAP_FAILED) {
            mpiox_segment_unguard(base);
            munmap(base, bytes);
        }
        free(made);
        return code;
    }
    made->base = base;
    made->bytes = (int64_t)bytes;
    made->device = status.st_dev;
    made->inode = status.st_ino;
    strcpy(made->path, path);
    *delegates = made;
    return MPIOX_OK;
}

void mpiio_ext_delegates_close(mpiio_ext_delegates *delegates)
{
    if (delegates != NULL && delegates->base != NULL) {
        mpiox_segment_unguard(delegates->base);
        munmap(delegates->base, (size_t)delegates->bytes);
    }
    free(delegates);
}

/* Only a process that has it open can shorten it, so that it is still found by its name then. */
static bool is_shortened(const mpiio_ext_delegates *delegates)
{
    struct stat status;

    return stat(delegates->path, &status) == 0 && status.st_dev == delegates->device &&
           status.st_ino == delegates->inode && (int64_t)status.st_size < delegates->bytes;
}

/* ---- the snapshot ------------------------------------------------------------------------------------------------ */

/* A text that another process may be changing: without an end of its own it ends with its field. */
static void put_text(mpiox_text *out, const char *name, const char *field, size_t bytes)
{
    const volatile char *from = field;
    char copy[MPIOX_CACHE_PATH_BYTES + 1];
    size_t length = 0;

    while (length < bytes && length < sizeof copy - 1 && (copy[length] = from[length]) != '\0')
        length++;
    copy[length] = '\0';
    mpiox_text_put(out, "\"%s\": ", name);
    mpiox_text_put_json(out, copy);
}

static const char *state_name(uint32_t state)
{
    static const char *const names[] = {"starting", "serving", "ended", "dead", "rescued"};

    return state < sizeof names / sizeof names[0] ? names[state] : "unknown";
}

static frame_sums sum_frames(const mpiox_cache *cache)
{
    const int64_t step = 1 + (cache->frame_count - 1) / FRAMES_LOOKED_AT;
    frame_sums sums = {0};

    for (int64_t i = 0; i < cache->frame_count; i += step) {
        const mpiox_frame *frame = &cache->frames[i];
        const int64_t dirty = atomic_load_explicit(&frame->dirty, memory_order_relaxed);
        const int32_t file = atomic_load_explicit(&frame->file, memory_order_relaxed);

        if (file < 0)
            continue;
        sums.used += step;
        sums.dirty += dirty > 0 ? step : 0;
        sums.dirty_bytes += dirty > 0 ? dirty * step : 0;
        if (file < MPIOX_CACHE_MAX_FILES)
            sums.dirty_bytes_of[file] += dirty > 0 ? dirty * step : 0;
        if ((atomic_load_explicit(&frame->flags, memory_order_relaxed) & MPIOX_FRAME_PREFETCHED) != 0)
            sums.prefetched += step;
    }
    sums.used = sums.used < cache->frame_count ? sums.used : cache->frame_count;
    sums.dirty = sums.dirty < sums.used ? sums.dirty : sums.used;
    return sums;
}

static void put_frames(mpiox_text *out, const mpiox_cache *cache, const frame_sums *sums)
{
    mpiox_text_put(out, ", \"page_bytes\": %" PRId64 ", \"cap_bytes\": %" PRId64 ", \"pages\": %" PRId32,
                   cache->page_bytes, cache->header->geometry.cap_bytes, cache->frame_count);
    mpiox_text_put(out, ", \"pages_used\": %" PRId64 ", \"pages_dirty\": %" PRId64, sums->used, sums->dirty);
    mpiox_text_put(out, ", \"pages_prefetched\": %" PRId64 ", \"dirty_bytes\": %" PRId64, sums->prefetched,
                   sums->dirty_bytes);
}

static int count_clients(const mpiox_cache *cache)
{
    int clients = 0;

    for (int i = 0; i < MPIOX_RING_CLIENTS; i++)
        clients += atomic_load_explicit(&cache->ring->clients[i].state, memory_order_relaxed) == 1;
    return clients;
}

static void put_counters(mpiox_text *out, const mpiox_cache_counters *from)
{
    const int64_t values[] = {
#define X(name, unit, meaning) atomic_load_explicit(&from->name, memory_order_relaxed),
        MPIOX_CACHE_COUNTERS(X)
#undef X
    };

    mpiox_text_put(out, ", \"counters\": {");
    for (int i = 0; i < COUNTERS; i++)
        mpiox_text_put(out, "%s\"%s\": %" PRId64, i > 0 ? ", " : "", counters[i].name, values[i]);
    mpiox_text_put(out, "}, \"flush_size_log2\": [");
    for (int i = 0; i < FLUSH_SIZES; i++)
        mpiox_text_put(out, "%s%" PRId64, i > 0 ? ", " : "",
                       (int64_t)atomic_load_explicit(&from->flush_size_log2[i], memory_order_relaxed));
    mpiox_text_put(out, "]");
}

static void put_files(mpiox_text *out, const mpiox_cache_header *header, const frame_sums *sums)
{
    const char *separator = "";

    mpiox_text_put(out, ", \"files\": [");
    for (int i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        const mpiox_file_record *record = &header->files[i];
        const int32_t openers = atomic_load_explicit(&record->openers, memory_order_relaxed);
        const int32_t flags = atomic_load_explicit(&record->flags, memory_order_relaxed);

        if (openers <= 0)
            continue;
        mpiox_text_put(out, "%s{", separator);
        put_text(out, "path", record->path, sizeof record->path);
        mpiox_text_put(out, ", \"openers\": %" PRId32 ", \"readable\": %s, \"writable\": %s, \"replica\": %s", openers,
                       (flags & MPIOX_FILE_READABLE) != 0 ? "true" : "false",
                       (flags & MPIOX_FILE_WRITABLE) != 0 ? "true" : "false",
                       (flags & MPIOX_FILE_REPLICA) != 0 ? "true" : "false");
        mpiox_text_put(out, ", \"hidden\": %s, \"draining\": %s, \"drain_errno\": %" PRId32,
                       (flags & MPIOX_FILE_HIDDEN) != 0 ? "true" : "false",
                       (flags & MPIOX_FILE_DRAINING) != 0 ? "true" : "false",
                       (int32_t)atomic_load_explicit(&record->drain_errno, memory_order_relaxed));
        mpiox_text_put(out, ", \"end_bytes\": %" PRId64 ", \"dirty_bytes\": %" PRId64 ", \"errors\": %" PRId32,
                       (int64_t)atomic_load_explicit(&record->end, memory_order_relaxed), sums->dirty_bytes_of[i],
                       (int32_t)atomic_load_explicit(&record->error_count, memory_order_relaxed));
        mpiox_text_put(out, ", \"collectives\": %" PRId64 "}",
                       (int64_t)atomic_load_explicit(&record->collectives, memory_order_relaxed));
        separator = ", ";
    }
    mpiox_text_put(out, "]");
}

/* Clients that have waited for more than a second; those that died meanwhile are left out. */
static void put_waiting(mpiox_text *out, const mpiox_cache_header *header)
{
    const char *separator = "";

    mpiox_text_put(out, ", \"waiting\": [");
    for (int i = 0; i < MPIOX_CACHE_WAITERS; i++) {
        const mpiox_waiter *waiter = &header->waiters[i];
        const int64_t pid = atomic_load_explicit(&waiter->pid, memory_order_acquire);
        const int32_t file = atomic_load_explicit(&waiter->file, memory_order_relaxed);

        if (pid <= 0 || pid > INT32_MAX || (kill((pid_t)pid, 0) != 0 && errno == ESRCH))
            continue;
        mpiox_text_put(out, "%s{\"rank\": %" PRId32 ", \"pid\": %" PRId64, separator,
                       (int32_t)atomic_load_explicit(&waiter->rank, memory_order_relaxed), pid);
        mpiox_text_put(out, ", \"request\": \"%s\", ",
                       mpiox_ring_op_name(atomic_load_explicit(&waiter->op, memory_order_relaxed)));
        put_text(out, "path", file >= 0 && file < MPIOX_CACHE_MAX_FILES ? header->files[file].path : "",
                 file >= 0 && file < MPIOX_CACHE_MAX_FILES ? sizeof header->files[file].path : 1);
        mpiox_text_put(out, ", \"page\": %" PRId64 ", \"since_unix_s\": %.3f}",
                       (int64_t)atomic_load_explicit(&waiter->page, memory_order_relaxed),
                       1e-6 * (double)atomic_load_explicit(&waiter->since_us, memory_order_relaxed));
        separator = ", ";
    }
    mpiox_text_put(out, "]");
}

int64_t mpiio_ext_delegates_snapshot(const mpiio_ext_delegates *delegates, char *text, int64_t text_bytes)
{
    const mpiox_cache *cache = &delegates->cache;
    const mpiox_cache_header *header = cache->header;
    frame_sums sums;
    mpiox_cache_counters total;
    mpiox_text out = {text, text_bytes, 0};

    if (is_shortened(delegates))
        return MPIOX_E_CORRUPT;
    sums = sum_frames(cache);
    mpiox_cache_sum(cache, &total);
    mpiox_text_put(&out, "{");
    put_text(&out, "group", header->service, sizeof header->service);
    mpiox_text_put(&out, ", \"delegate\": %" PRId32 ", \"delegates\": %" PRId32 ", ", header->delegate,
                   header->delegates);
    put_text(&out, "mode", header->mode, sizeof header->mode);
    mpiox_text_put(&out, ", ");
    put_text(&out, "host", header->host, sizeof header->host);
    mpiox_text_put(&out, ", ");
    put_text(&out, "kept", header->kept, sizeof header->kept);
    mpiox_text_put(&out, ", \"pid\": %" PRId64 ", \"state\": \"%s\", \"started_unix_s\": %.6f", header->pid,
                   state_name(atomic_load_explicit(&header->state.value, memory_order_acquire)),
                   isfinite(header->started) ? header->started : 0.0);
    mpiox_text_put(&out, ", \"beat\": %" PRIu32 ", \"threads\": %" PRId32 ", \"clients\": %d, \"queued\": %d",
                   (uint32_t)atomic_load_explicit(&header->beat, memory_order_relaxed),
                   (int32_t)atomic_load_explicit(&header->threads, memory_order_relaxed), count_clients(cache),
                   mpiox_ring_queued(cache));
    put_frames(&out, cache, &sums);
    put_counters(&out, &total);
    put_files(&out, header, &sums);
    put_waiting(&out, header);
    mpiox_text_put(&out, "}");
    return mpiox_segment_is_lost(delegates->base, delegates->bytes) ? MPIOX_E_CORRUPT : out.used;
}

/* ---- the list of counters ---------------------------------------------------------------------------------------- */

#define ACCESSOR(member)                                                                                               \
    const char *mpiio_ext_delegates_counter_##member(int index)                                                        \
    {                                                                                                                  \
        return index >= 0 && index < COUNTERS ? counters[index].member : NULL;                                         \
    }

ACCESSOR(name)
ACCESSOR(unit)
ACCESSOR(meaning)

int mpiio_ext_delegates_counter_count(void)
{
    return COUNTERS;
}
