/*
 * mpiox_storage_uring.c - the posix back end with lists of requests in flight together, by io_uring.
 *
 * Problem.    A list of small pieces by pread and pwrite is a system call each and, where the device is asked, a wait.
 * Algorithm.  The calls of a batch enter the submission queue in order, at most `depth` of them in flight. One system
 *             call submits the new ones and waits for half of those in flight (for all of them at the end), so that the
 *             queue neither runs dry nor is refilled one by one. Single requests stay pread and pwrite, large ones too:
 *             cutting direct ones into parts in flight together gained nothing (measured), and to the page cache they
 *             are copies.
 * Automatic.  What the page cache has room for, or holds, is moved faster by plain calls, one at a time, than by a ring
 *             (measured: by a factor of 3 to 10 on tmpfs); what must come from a device, faster by a ring (by 4). So
 *             writes do not fly. A read is tried by preadv2(RWF_NOWAIT), which copies what is cached and else says so
 *             at once (Linux then starts to read it ahead); only what is not cached flies, as do direct reads. The ring
 *             is made when the first read needs it. Where the file system knows no RWF_NOWAIT (tmpfs, network file
 *             systems) everything stays with plain calls.
 * Guarantees. Nothing is in flight when a batch returns, failed or not. After a failure nothing more is submitted. What
 *             the kernel would not start (EAGAIN), was interrupted or came back short is left to the caller's blocking
 *             calls, so that errors and ends of files are those of pread and pwrite. Batches of several threads take
 *             turns (one lock per ring). When the ring itself fails, what flies is awaited, the ring is given up and
 *             the handle goes on as posix.
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
    bool made, broken; /* of the ring; broken: made in vain, or given up */
    atomic_bool blind; /* the file system does not tell what is cached */
} ring_state;

typedef struct flight { /* one batch on its way */
    ring_state *state;
    mpiox_storage_call *calls;
    int fd, count, next, flying;
    bool write, failed;
} flight;

static void prepare(const flight *f, struct io_uring_sqe *sqe, const mpiox_storage_call *call)
{
    const int fd = call->fd >= 0 ? call->fd : f->fd;
    const uint64_t offset = (uint64_t)call->offset;
    const struct iovec *iov = call->iov;
    if (call->iov_count > 1) {
        if (f->write)
            io_uring_prep_writev(sqe, fd, iov, (unsigned)call->iov_count, offset);
        else
            io_uring_prep_readv(sqe, fd, iov, (unsigned)call->iov_count, offset);
        return;
    }
    const size_t most = (size_t)MPIOX_STORAGE_CALL_BYTES;
    const unsigned bytes = (unsigned)(iov->iov_len < most ? iov->iov_len : most);
    if (f->write)
        io_uring_prep_write(sqe, fd, iov->iov_base, bytes, offset);
    else
        io_uring_prep_read(sqe, fd, iov->iov_base, bytes, offset);
}

/* Fill the submission queue up to the depth. */
static void launch(flight *f)
{
    for (; f->next < f->count && f->flying < f->state->depth && !f->failed; f->next++) {
        mpiox_storage_call *call = &f->calls[f->next];
        if (call->skip)
            continue;
        struct io_uring_sqe *sqe = io_uring_get_sqe(&f->state->ring);
        if (sqe == NULL)
            return;
        prepare(f, sqe, call);
        io_uring_sqe_set_data(sqe, call);
        f->flying++;
    }
}

/* Take in what has completed; returns how many. */
static int land(flight *f)
{
    struct io_uring_cqe *cqe;
    int landed = 0;
    for (; io_uring_peek_cqe(&f->state->ring, &cqe) == 0; landed++) {
        mpiox_storage_call *call = io_uring_cqe_get_data(cqe);
        if (cqe->res == -EAGAIN || cqe->res == -EINTR || cqe->res == -ECANCELED)
            call->moved = MPIOX_STORAGE_NOT_STARTED;
        else
            call->moved = cqe->res;
        f->failed |= call->moved < 0 && call->moved != MPIOX_STORAGE_NOT_STARTED;
        io_uring_cqe_seen(&f->state->ring, cqe);
    }
    f->flying -= landed;
    return landed;
}

/* The kernel refuses to take submissions: wait for those it took, and give the ring up. What it never took stays in the
 * queue of a ring that nobody submits from again, NOT_STARTED. */
static void give_up(flight *f)
{
    const struct timespec pause = {.tv_nsec = 100000};
    f->flying -= (int)io_uring_sq_ready(&f->state->ring);
    f->state->broken = true;
    while (f->flying > 0) { /* completions come without our help; only looking is needed */
        if (land(f) == 0)
            nanosleep(&pause, NULL);
    }
}

static void fly(flight *f)
{
    ring_state *state = f->state;
    while (!state->broken) {
        launch(f);
        if (f->flying == 0)
            break;
        const bool last = f->next == f->count || f->failed;
        const int code = io_uring_submit_and_wait(&state->ring, (unsigned)(last ? f->flying : (f->flying + 1) / 2));
        const int landed = land(f);
        if (code < 0 && code != -EINTR && landed == 0)
            give_up(f);
    }
}

/* ---- the ring ---------------------------------------------------------------------------------------------------- */

/* 0 or -errno, which is also the answer of later attempts. */
static int make_ring(ring_state *state)
{
    if (state->made || state->broken)
        return state->broken ? -EPERM : 0;
    /* Completions need no interrupt of this thread: it comes for them. Kernels before 5.19 do not know that flag. */
    int code = io_uring_queue_init((unsigned)state->depth, &state->ring, IORING_SETUP_COOP_TASKRUN);
    if (code == -EINVAL)
        code = io_uring_queue_init((unsigned)state->depth, &state->ring, 0);
    state->made = code == 0;
    state->broken = code < 0;
    return code;
}

/* Read what is cached; calls whose bytes are not (all) there stay NOT_STARTED. Returns whether there are any that
 * should fly. */
static bool read_cached(ring_state *state, int fd, mpiox_storage_call *calls, int count)
{
    bool left = false;
    for (int i = 0; i < count; i++) {
        mpiox_storage_call *call = &calls[i];
        if (call->skip)
            continue;
        if (call->fd < 0 && !atomic_load_explicit(&state->blind, memory_order_relaxed)) {
            int64_t bytes = mpiox_storage_request_bytes(call->iov, call->iov_count, call->offset);
            ssize_t moved = preadv2(fd, call->iov, call->iov_count, call->offset, RWF_NOWAIT);
            if (moved == 0 || moved == bytes)
                call->moved = moved; /* 0: behind the end of the file */
            else if (moved < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL))
                atomic_store_explicit(&state->blind, true, memory_order_relaxed);
        }
        call->skip = call->moved >= 0 || (call->fd < 0 && atomic_load_explicit(&state->blind, memory_order_relaxed));
        left |= !call->skip;
    }
    return left;
}

static void ring_many(mpiox_storage *storage, bool write, mpiox_storage_call *calls, int count)
{
    ring_state *state = storage->state;
    flight f = {.state = state, .calls = calls, .fd = storage->fd, .count = count, .write = write};
    if (state->automatic && (write || !read_cached(state, storage->fd, calls, count)))
        return;
    pthread_mutex_lock(&state->lock);
    if (make_ring(state) == 0)
        fly(&f);
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

#define RING_BACKEND(text)                                                                                       \
    {                                                                                                            \
        .name = text, .transfer = mpiox_storage_posix_transfer, .close = ring_close, .many = ring_many,          \
        .mappable = true,                                                                                        \
    }

static const mpiox_storage_backend ring_backend = RING_BACKEND("io_uring");
static const mpiox_storage_backend automatic_backend = RING_BACKEND("auto");

static const char *reason_of(int sys_errno)
{
    switch (sys_errno) {
    case ENOSYS: return "this kernel has none";
    case EPERM:
    case EACCES: return "it is not permitted (kernel.io_uring_disabled, or a container's seccomp profile)";
    case ENOMEM: return "the limit of locked memory is too small (ulimit -l)";
    case EMFILE:
    case ENFILE: return "too many files are open (ulimit -n)";
    default: return "the kernel cannot make a ring";
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
