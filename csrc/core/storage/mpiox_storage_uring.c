/*
 * mpiox_storage_uring.c - the posix back end with lists of requests in flight together, by io_uring.
 *
 * Problem.    A list of small pieces by pread and pwrite is a system call each and, if the device is needed, a wait.
 * Algorithm.  The calls of a batch enter the submission queue in order, at most `depth` of them in flight. One system
 *             call submits the new ones and waits for half of those in flight (for all of them at the end), so that the
 *             queue neither runs dry nor is refilled one by one. Single requests stay pread and pwrite, large ones too:
 *             cutting direct ones into parts in flight together gained nothing (measured), and to the page cache they
 *             are copies.
 * Automatic.  Plain calls, one at a time, are faster than a ring for bytes that are in the page cache, or have room
 *             there (measured: by a factor of 3 to 10 on tmpfs); a ring is faster for bytes that must come from a
 *             device (by 4). So writes do not use the ring. A read is tried by preadv2(RWF_NOWAIT), which copies cached
 *             bytes and fails at once otherwise (Linux then starts to read ahead); only uncached bytes go to the ring,
 *             as direct reads do. The ring is made when the first read needs it. If the file system does not support
 *             RWF_NOWAIT (tmpfs, network file systems) everything stays with plain calls.
 * Guarantees. No request is in flight when a batch returns, failed or not. After a failure no more are submitted.
 *             Requests that the kernel would not start (EAGAIN), that were interrupted or came back short are left to
 *             the caller's blocking calls, so that errors and ends of files are those of pread and pwrite. Batches of
 *             several threads take turns (one lock per ring). If the ring itself fails, requests in flight are awaited,
 *             the ring is given up and the handle continues as posix.
 * Source.     J. Axboe, "Efficient IO with io_uring"; io_uring_enter(2); liburing 2.3.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mpiox_storage_internal.h"

#ifndef MPIOX_HAVE_IO_URING

bool mpiox_storage_add_ring(mpiox_storage *storage, int depth, bool automatic, const char **reason)
{
    (void)storage, (void)depth, (void)automatic;
    *reason = "it was not built in (no liburing)";
    return false;
}

#else

#include <liburing.h>

enum { DEPTH_MAX = 4096 };

typedef struct ring_state {
    const mpiox_storage_backend *posix; /* single requests and close */
    struct io_uring ring;
    pthread_mutex_t lock; /* guards the ring and what follows */
    int depth;
    bool automatic;
    bool made, broken;     /* of the ring; broken: made in vain, or given up */
    atomic_bool no_nowait; /* the file system does not support RWF_NOWAIT */
} ring_state;

typedef struct batch { /* calls that are made together */
    ring_state *state;
    mpiox_storage_call *calls;
    int fd, count, next, in_flight;
    bool write, failed;
} batch;

static void prepare(const batch *b, struct io_uring_sqe *sqe, const mpiox_storage_call *call)
{
    const int fd = call->fd >= 0 ? call->fd : b->fd;
    const uint64_t offset = (uint64_t)call->offset;
    const struct iovec *iov = call->iov;
    if (call->iov_count > 1) {
        if (b->write)
            io_uring_prep_writev(sqe, fd, iov, (unsigned)call->iov_count, offset);
        else
            io_uring_prep_readv(sqe, fd, iov, (unsigned)call->iov_count, offset);
        return;
    }
    const size_t most = (size_t)MPIOX_STORAGE_CALL_BYTES;
    const unsigned bytes = (unsigned)(iov->iov_len < most ? iov->iov_len : most);
    if (b->write)
        io_uring_prep_write(sqe, fd, iov->iov_base, bytes, offset);
    else
        io_uring_prep_read(sqe, fd, iov->iov_base, bytes, offset);
}

/* Fill the submission queue up to the depth. */
static void submit_new(batch *b)
{
    for (; b->next < b->count && b->in_flight < b->state->depth && !b->failed; b->next++) {
        mpiox_storage_call *call = &b->calls[b->next];
        if (call->skip)
            continue;
        struct io_uring_sqe *sqe = io_uring_get_sqe(&b->state->ring);
        if (sqe == NULL)
            return;
        prepare(b, sqe, call);
        io_uring_sqe_set_data(sqe, call);
        b->in_flight++;
    }
}

/* Take the completions that have arrived; returns how many. */
static int reap(batch *b)
{
    struct io_uring_cqe *cqe;
    int reaped = 0;
    for (; io_uring_peek_cqe(&b->state->ring, &cqe) == 0; reaped++) {
        mpiox_storage_call *call = io_uring_cqe_get_data(cqe);
        if (cqe->res == -EAGAIN || cqe->res == -EINTR || cqe->res == -ECANCELED)
            call->moved = MPIOX_STORAGE_NOT_STARTED;
        else
            call->moved = cqe->res;
        b->failed |= call->moved < 0 && call->moved != MPIOX_STORAGE_NOT_STARTED;
        io_uring_cqe_seen(&b->state->ring, cqe);
    }
    b->in_flight -= reaped;
    return reaped;
}

/* The kernel refuses submissions: wait for those that it accepted, and give the ring up. The others stay in the queue
 * of a ring that gets no submissions any more, NOT_STARTED. */
static void give_up(batch *b)
{
    const struct timespec pause = {.tv_nsec = 100000};
    b->in_flight -= (int)io_uring_sq_ready(&b->state->ring);
    b->state->broken = true;
    while (b->in_flight > 0) { /* completions arrive without a system call */
        if (reap(b) == 0)
            nanosleep(&pause, NULL);
    }
}

static void run(batch *b)
{
    ring_state *state = b->state;
    while (!state->broken) {
        submit_new(b);
        if (b->in_flight == 0)
            break;
        const bool last = b->next == b->count || b->failed;
        const int awaited = last ? b->in_flight : (b->in_flight + 1) / 2;
        const int code = io_uring_submit_and_wait(&state->ring, (unsigned)awaited);
        const int reaped = reap(b);
        if (code < 0 && code != -EINTR && reaped == 0)
            give_up(b);
    }
}

/* ---- the ring ---------------------------------------------------------------------------------------------------- */

/* 0 or -errno, which is also the answer of later attempts. */
static int make_ring(ring_state *state)
{
    if (state->made || state->broken)
        return state->broken ? -EPERM : 0;
    /* Completions need not interrupt this thread, which polls for them. Kernels before 5.19 reject the flag. */
    int code = io_uring_queue_init((unsigned)state->depth, &state->ring, IORING_SETUP_COOP_TASKRUN);
    if (code == -EINVAL)
        code = io_uring_queue_init((unsigned)state->depth, &state->ring, 0);
    state->made = code == 0;
    state->broken = code < 0;
    return code;
}

/* Read what is cached; calls whose bytes are not (all) there stay NOT_STARTED. Returns whether there are any that
 * the ring should take. */
static bool read_cached(ring_state *state, int fd, mpiox_storage_call *calls, int count)
{
    bool left = false;
    for (int i = 0; i < count; i++) {
        mpiox_storage_call *call = &calls[i];
        if (call->skip)
            continue;
        if (call->fd < 0 && !atomic_load_explicit(&state->no_nowait, memory_order_relaxed)) {
            int64_t bytes = mpiox_storage_request_bytes(call->iov, call->iov_count, call->offset);
            ssize_t moved = preadv2(fd, call->iov, call->iov_count, call->offset, RWF_NOWAIT);
            if (moved == 0 || moved == bytes)
                call->moved = moved; /* 0: behind the end of the file */
            else if (moved < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL))
                atomic_store_explicit(&state->no_nowait, true, memory_order_relaxed);
        }
        call->skip = call->moved >= 0 ||
                     (call->fd < 0 && atomic_load_explicit(&state->no_nowait, memory_order_relaxed));
        left |= !call->skip;
    }
    return left;
}

static void ring_many(mpiox_storage *storage, bool write, mpiox_storage_call *calls, int count)
{
    ring_state *state = storage->state;
    batch b = {.state = state, .calls = calls, .fd = storage->fd, .count = count, .write = write};
    if (state->automatic && (write || !read_cached(state, storage->fd, calls, count)))
        return;
    pthread_mutex_lock(&state->lock);
    if (make_ring(state) == 0)
        run(&b);
    pthread_mutex_unlock(&state->lock);
}

/* ---- making and closing ------------------------------------------------------------------------------------------ */

static int ring_close(mpiox_storage *storage)
{
    ring_state *state = storage->state;
    if (state->made)
        io_uring_queue_exit(&state->ring);
    pthread_mutex_destroy(&state->lock);
    const mpiox_storage_backend *posix = state->posix;
    free(state);
    return posix->close(storage);
}

#define RING_BACKEND(text)                                                                                             \
    {                                                                                                                  \
        .name = text,                                                                                                  \
        .transfer = mpiox_storage_posix_transfer,                                                                      \
        .close = ring_close,                                                                                           \
        .many = ring_many,                                                                                             \
        .mappable = true,                                                                                              \
    }

static const mpiox_storage_backend ring_backend = RING_BACKEND("io_uring");
static const mpiox_storage_backend automatic_backend = RING_BACKEND("auto");

static const char *reason_of(int sys_errno)
{
    switch (sys_errno) {
    case ENOSYS:
        return "this kernel has none";
    case EPERM:
    case EACCES:
        return "it is not permitted (kernel.io_uring_disabled, or a container's seccomp profile)";
    case ENOMEM:
        return "the limit of locked memory is too small (ulimit -l)";
    case EMFILE:
    case ENFILE:
        return "too many files are open (ulimit -n)";
    default:
        return "the kernel cannot make a ring";
    }
}

bool mpiox_storage_add_ring(mpiox_storage *storage, int depth, bool automatic, const char **reason)
{
    ring_state *state = calloc(1, sizeof *state);
    if (state == NULL) {
        *reason = reason_of(ENOMEM);
        return false;
    }
    state->depth = depth <= 0 ? MPIOX_STORAGE_DEPTH : depth < DEPTH_MAX ? depth : DEPTH_MAX;
    state->automatic = automatic;
    int code = automatic ? 0 : make_ring(state);
    if (code < 0) {
        free(state);
        *reason = reason_of(-code);
        return false;
    }
    pthread_mutex_init(&state->lock, NULL);
    state->posix = storage->backend;
    storage->backend = automatic ? &automatic_backend : &ring_backend;
    storage->state = state;
    return true;
}

#endif
