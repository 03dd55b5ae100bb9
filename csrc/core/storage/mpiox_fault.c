/*
 * mpiox_fault.c - the back end that fails on purpose (rules: mpiox_fault.h).
 *
 * It stands between the transfer loops of mpiox_storage_transfer.c and a real back end, so a test runs the code of
 * production: a short transfer really moves its first bytes, a failed call moves none. In a list every piece is a call
 * (otherwise the rules would count calls after merging). Pieces without a rule go to the inner back end together, as in
 * production.
 */
#include "mpiox_fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "mpiox_fault_rules.h"
#include "mpiox_print.h"
#include "mpiox_storage_internal.h"

typedef struct fault_state {
    mpiox_storage *inner; /* owned */
    pthread_mutex_t lock; /* guards the rules, which count */
    mpiox_fault_rules rules;
} fault_state;

static mpiox_fault_action next_action(fault_state *state, mpiox_fault_op op)
{
    pthread_mutex_lock(&state->lock);
    mpiox_fault_action action = mpiox_fault_rules_apply(&state->rules, op);
    pthread_mutex_unlock(&state->lock);
    return action;
}

static void sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (ms > 0 && nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/* Make a call on the inner back end, at most `limit` bytes of it when limit >= 0. */
static int64_t forward(fault_state *state, bool write, const struct iovec *iov, int iov_count, int64_t offset,
                       int64_t limit)
{
    struct iovec part;
    if (limit == 0)
        return 0;
    if (limit > 0) { /* the first vector alone is short enough a transfer */
        iov_count = mpiox_storage_cut(iov, 1, limit, &part, 1);
        iov = &part;
    }
    return state->inner->backend->transfer(state->inner, write, iov, iov_count, offset);
}

static int64_t fault_transfer(mpiox_storage *storage, bool write, const struct iovec *iov, int iov_count,
                              int64_t offset)
{
    fault_state *state = storage->state;
    mpiox_fault_action action = next_action(state, write ? MPIOX_FAULT_WRITE : MPIOX_FAULT_READ);
    sleep_ms(action.delay_ms);
    if (action.sys_errno != 0)
        return -action.sys_errno;
    return forward(state, write, iov, iov_count, offset, action.short_bytes);
}

/* The rules decide call by call, up to the first one that they let fail: what stands behind it is not carried out. The
 * rest goes to the inner back end together. */
static void fault_many(mpiox_storage *storage, bool write, mpiox_storage_call *calls, int count)
{
    fault_state *state = storage->state;
    int decided = 0;
    for (bool failed = false; decided < count && !failed; decided++) {
        mpiox_storage_call *call = &calls[decided];
        mpiox_fault_action action = next_action(state, write ? MPIOX_FAULT_WRITE : MPIOX_FAULT_READ);
        sleep_ms(action.delay_ms);
        failed = action.sys_errno != 0;
        call->skip = failed || action.short_bytes >= 0;
        if (failed)
            call->moved = -action.sys_errno;
        else if (call->skip)
            call->moved = forward(state, write, call->iov, call->iov_count, call->offset, action.short_bytes);
    }
    if (state->inner->backend->many != NULL)
        state->inner->backend->many(state->inner, write, calls, decided);
    for (int i = 0; i < decided; i++) { /* counted above: they must not come back as calls that are still to be made */
        if (calls[i].moved == MPIOX_STORAGE_NOT_STARTED)
            calls[i].moved = forward(state, write, calls[i].iov, calls[i].iov_count, calls[i].offset, -1);
    }
}

static void discard_state(fault_state *state)
{
    pthread_mutex_destroy(&state->lock);
    free(state);
}

/* The inner handle is closed in any case: a test of an error must not leak. */
static int fault_close(mpiox_storage *storage)
{
    fault_state *state = storage->state;
    mpiox_fault_action action = next_action(state, MPIOX_FAULT_CLOSE);
    sleep_ms(action.delay_ms);
    int rc = mpiox_storage_close(state->inner) == MPIOX_OK ? 0 : -errno;
    discard_state(state);
    return action.sys_errno != 0 ? -action.sys_errno : rc;
}

static int fault_sync(mpiox_storage *storage)
{
    fault_state *state = storage->state;
    mpiox_fault_action action = next_action(state, MPIOX_FAULT_SYNC);
    mpiox_error error;
    sleep_ms(action.delay_ms);
    if (action.sys_errno != 0)
        return -action.sys_errno;
    return mpiox_storage_sync(state->inner, &error) == MPIOX_OK ? 0 : -error.sys_errno;
}

static const mpiox_storage_backend fault_backend = {
    .name = "fault",
    .transfer = fault_transfer,
    .close = fault_close,
    .sync = fault_sync,
    .many = fault_many,
    .separate = true,
};

/* A handle whose inner one is still to be set; rules selected for path and rank. */
static int create(const char *rules, const char *path, int rank, mpiox_storage **out, char *message,
                  int64_t message_bytes)
{
    *out = NULL;
    mpiox_storage *storage = calloc(1, sizeof *storage);
    fault_state *state = calloc(1, sizeof *state);
    int rc = storage == NULL || state == NULL ? MPIOX_E_NOMEM
                                              : mpiox_fault_rules_parse(rules, &state->rules, message, message_bytes);
    if (rc != MPIOX_OK) {
        free(storage);
        free(state);
        return rc;
    }
    mpiox_fault_rules_select(&state->rules, path, rank);
    pthread_mutex_init(&state->lock, NULL);
    *storage = (mpiox_storage){.backend = &fault_backend, .fd = -1, .state = state};
    *out = storage;
    return MPIOX_OK;
}

static void discard(mpiox_storage *storage)
{
    discard_state(storage->state);
    free(storage);
}

/* A printed line names the cause of such failures: a variable left in a job script would spoil every file.
 * By every process: it may be set for some ranks only. */
static void announce(const char *rules, int rank)
{
    static atomic_flag announced = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&announced))
        mpiox_print("mpiio_ext: rank %d: fault injection is on, accesses fail on purpose (MPIOX_FAULT=\"%s\")\n", rank,
                    rules);
}

int mpiox_fault_open(const char *rules, const char *path, int flags, int rank, const mpiox_storage_options *options,
                     mpiox_storage **out, mpiox_error *error)
{
    static atomic_flag reported = ATOMIC_FLAG_INIT;
    char message[256];
    mpiox_storage *storage, *inner;
    int rc = create(rules, path, rank, &storage, message, sizeof message);
    *out = NULL;
    if (rc == MPIOX_E_ARG) {
        if (!atomic_flag_test_and_set(&reported))
            mpiox_print("mpiio_ext: MPIOX_FAULT=\"%s\": %s\n", rules, message);
        return mpiox_error_set(error, MPIOX_E_ARG, EINVAL, -1, -1, "MPIOX_FAULT");
    }
    if (rc != MPIOX_OK)
        return mpiox_error_set(error, rc, ENOMEM, -1, -1, "open");
    announce(rules, rank);
    mpiox_fault_action action = next_action(storage->state, MPIOX_FAULT_OPEN);
    sleep_ms(action.delay_ms);
    rc = action.sys_errno != 0 ? mpiox_error_set(error, MPIOX_E_IO, action.sys_errno, -1, -1, "open")
                               : mpiox_storage_open_plain(path, flags, rank, options, &inner, error);
    if (rc != MPIOX_OK) {
        discard(storage);
        return rc;
    }
    ((fault_state *)storage->state)->inner = inner;
    storage->fd = inner->fd;
    *out = storage;
    return MPIOX_OK;
}
