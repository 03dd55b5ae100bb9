/*
 * mpiox_nonblocking.c - see mpiox_nonblocking.h.
 *
 * Problem.   MPI_File_iwrite and its kin return before the access is done, MPI_Wait reports the outcome, and the MPI
 *            library may have been initialised without thread support.
 * Algorithm. An operation is a task of the file's worker and a generalized request. The worker puts each finished
 *            operation on a list. The wrappers of MPI_Wait, MPI_Test... complete the requests on that list in the
 *            program's thread before they call PMPI. A wrapper waits on a counter of finished operations, not on memory
 *            of the operation: the owner may free this memory as soon as the operation is done. A thread that waits for
 *            a queued independent operation runs the operation itself: if threads outnumber cores, the worker may be
 *            late, and the caches of its core do not contain the data.
 * Guarantee. An operation is in the table from its start until MPI frees its request. An error reaches the file's
 *            error handler once, from the call that completes the request.
 */
#include "mpiox_nonblocking.h"

#include <stdlib.h>
#include <string.h>

#include "mpiox_mpi_error.h"
#include "mpiox_worker.h"

typedef struct operation {
    mpiox_task task;            /* first: a task is cast back to its operation */
    struct operation *next;     /* in the table's bucket */
    struct operation *finished; /* in the list of requests to complete */
    mpiox_handle *owner;        /* NULL once it is closed */
    mpiox_route route;
    mpiox_prepared prepared;
    mpiox_outcome outcome;
    MPI_Request request;
    bool is_collective;
    atomic_bool done;
} operation;

typedef struct collected { /* an error that the wrapper in this thread is to return */
    struct collected *next;
    MPI_Request request;
    MPI_File fh;
    mpiox_error error;
    char path[]; /* the file's */
} collected;

enum { BUCKETS = 256, SMALL_BYTES = 64 * 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static operation *buckets[BUCKETS]; /* by request handle */
static operation *finished;
static atomic_int live_count, finished_count;
static mpiox_futex done_count; /* operations done so far, wrapping around */
static _Thread_local struct {  /* one variable: its address is found once a function */
    int depth[2];              /* of errors_begin(false) and errors_begin(true) */
    collected *errors;
} wrapper;

_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "MPI_Request does not fit the key");

/* Lets MPI move messages while this thread waits: other ranks may need them to finish the same access. */
static bool mpi_progress(void *context)
{
    int flag = 0;
    (void)context;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    return false;
}

static const mpiox_idle idle = {mpi_progress, NULL};

/* ---- table of live operations ------------------------------------------------------------------------------------ */

static operation **bucket_of(MPI_Request request)
{
    uint64_t key = 0;
    memcpy(&key, &request, sizeof request);
    return &buckets[(key * UINT64_C(0x9E3779B97F4A7C15)) >> 56];
}

/* Under the lock. */
static operation *find(MPI_Request request)
{
    operation *o = *bucket_of(request);
    while (o && memcmp(&o->request, &request, sizeof request) != 0)
        o = o->next;
    return o;
}

static void insert(operation *o)
{
    operation **bucket = bucket_of(o->request);
    pthread_mutex_lock(&lock);
    o->next = *bucket;
    *bucket = o;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&live_count, 1);
}

static void remove_operation(operation *o)
{
    operation **link = bucket_of(o->request);
    pthread_mutex_lock(&lock);
    while (*link && *link != o)
        link = &(*link)->next;
    if (*link) {
        *link = o->next;
        atomic_fetch_sub(&live_count, 1);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- errors of requests ------------------------------------------------------------------------------------------ */

/* The link to the error collected for a request, or the link at the end. */
static collected **find_error(MPI_Request request)
{
    collected **link = &wrapper.errors;
    while (*link && memcmp(&(*link)->request, &request, sizeof request) != 0)
        link = &(*link)->next;
    return link;
}

/* Keep the error for the wrapper. False: no wrapper, or no memory. The MPI library may query more than once. */
static bool collect(const operation *o, const char *path)
{
    if (*find_error(o->request))
        return true;
    collected *e = wrapper.depth[false] > 0 ? malloc(sizeof *e + strlen(path) + 1) : NULL;
    if (!e)
        return false;
    e->next = wrapper.errors;
    e->request = o->request;
    e->fh = o->owner ? o->owner->fh : MPI_FILE_NULL;
    e->error = o->outcome.error;
    strcpy(e->path, path);
    wrapper.errors = e;
    return true;
}

void mpiox_nonblocking_errors_begin(bool inspect)
{
    wrapper.depth[inspect]++;
}

int mpiox_nonblocking_error_of(MPI_Request request)
{
    collected **link = find_error(request), *e = *link;
    if (!e)
        return MPI_SUCCESS;
    *link = e->next;
    const int code = mpiox_mpi_error_raise(e->fh, e->path, &e->error);
    free(e);
    return code;
}

void mpiox_nonblocking_errors_end(bool inspect)
{
    wrapper.depth[inspect]--;
    if (wrapper.depth[false] || wrapper.depth[true])
        return;
    while (wrapper.errors) { /* of requests that stay incomplete: collected again later */
        collected *next = wrapper.errors->next;
        free(wrapper.errors);
        wrapper.errors = next;
    }
}

/* ---- callbacks of the generalized request ------------------------------------------------------------------------ */

static int query(void *extra, MPI_Status *status)
{
    operation *o = extra;
    const char *path = o->owner ? o->owner->path : "a file closed since";
    const bool failed = o->outcome.error.code != MPIOX_OK;
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    mpiox_mpi_fill_status(status, failed ? 0 : o->outcome.bytes);
    if (!failed || wrapper.depth[true] || collect(o, path))
        return MPI_SUCCESS;
    return mpiox_mpi_error_code(path, &o->outcome.error);
}

static int release(void *extra)
{
    operation *o = extra;
    remove_operation(o);
    if (o->outcome.error.code != MPIOX_OK)
        mpiox_mpi_count_failure(o->owner, o->prepared.request.write ? MPIOX_SPENT_WRITE : MPIOX_SPENT_READ,
                                &o->outcome.error);
    mpiox_mpi_prepare_release(&o->prepared);
    free(o);
    return MPI_SUCCESS;
}

/* The access has started, and MPI lets a cancel fail silently. */
static int cancel(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

/* ---- running operations ------------------------------------------------------------------------------------------ */

static void run(operation *o)
{
    const mpiox_request *request = &o->prepared.request;
    const double begun = mpiox_handle_note_begin(o->owner, request->write);
    if (o->is_collective)
        mpiox_route_collective(&o->route, request, true, &o->outcome);
    else
        mpiox_route_access(&o->route, request, &o->outcome);
    mpiox_handle_note_end(o->owner, request->write, begun);
    mpiox_handle_count(o->owner, request->write, o->outcome.bytes);
    if (o->outcome.error.code == MPIOX_OK && request->local_error.code != MPIOX_OK)
        o->outcome.error = request->local_error;
}

static void run_task(mpiox_task *task)
{
    operation *o = (operation *)(void *)task;
    run(o);
    pthread_mutex_lock(&lock);
    o->finished = finished;
    finished = o;
    atomic_fetch_add(&finished_count, 1);
    atomic_store(&o->done, true);
    pthread_mutex_unlock(&lock);
    mpiox_futex_add(&done_count);
}

static bool submit(mpiox_handle *handle, operation *o)
{
    mpiox_worker **slot = o->is_collective ? &handle->collective_worker : &handle->independent_worker;
    pthread_mutex_lock(&handle->pointer_lock);
    if (!*slot)
        *slot = mpiox_worker_create(!o->is_collective);
    mpiox_worker *worker = *slot;
    pthread_mutex_unlock(&handle->pointer_lock);
    return worker && mpiox_worker_submit(worker, &o->task);
}

/* An operation in the table, with its request; NULL: no memory, or no request. */
static operation *create(mpiox_handle *handle, const mpiox_prepared *prepared, bool collective)
{
    operation *o = calloc(1, sizeof *o);
    if (!o || PMPI_Grequest_start(query, release, cancel, o, &o->request) != MPI_SUCCESS) {
        free(o);
        return NULL;
    }
    o->task.run = run_task;
    o->owner = handle;
    o->route = mpiox_handle_route(handle);
    o->prepared = *prepared;
    o->is_collective = collective;
    insert(o);
    return o;
}

/* Undo create(); the caller keeps the prepared access. */
static void destroy(operation *o)
{
    MPI_Request request = o->request;
    o->prepared.memory = NULL;
    o->prepared.packed = NULL;
    PMPI_Grequest_complete(request);
    PMPI_Request_free(&request);
}

bool mpiox_nonblocking_start(mpiox_handle *handle, mpiox_prepared *prepared, bool collective, MPI_Request *request)
{
    operation *o = create(handle, prepared, collective);
    if (!o)
        return false;
    const bool at_once = !collective && prepared->request.length <= SMALL_BYTES && handle->file->layout.coherent;
    *request = o->request; /* once submitted, the operation belongs to the thread that completes it */
    if (!at_once && submit(handle, o))
        return true;
    if (collective) {
        destroy(o);
        return false;
    }
    run(o);
    mpiox_mpi_prepare_finish(&o->prepared);
    atomic_store(&o->done, true);
    PMPI_Grequest_complete(o->request);
    return true;
}

void mpiox_nonblocking_drain(mpiox_handle *handle)
{
    if (!handle || (!handle->independent_worker && !handle->collective_worker))
        return;
    mpiox_worker_drain(handle->independent_worker, &idle);
    mpiox_worker_drain(handle->collective_worker, &idle);
}

void mpiox_nonblocking_close(mpiox_handle *handle)
{
    mpiox_nonblocking_drain(handle);
    mpiox_worker_free(handle->independent_worker);
    mpiox_worker_free(handle->collective_worker);
    handle->independent_worker = handle->collective_worker = NULL;
    mpiox_nonblocking_complete_finished();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < BUCKETS; i++) {
        for (operation *o = buckets[i]; o; o = o->next)
            o->owner = o->owner == handle ? NULL : o->owner;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- for the wrappers of MPI_Wait, MPI_Test... ------------------------------------------------------------------- */

bool mpiox_nonblocking_any(void)
{
    return atomic_load_explicit(&live_count, memory_order_acquire) != 0;
}

void mpiox_nonblocking_complete_finished(void)
{
    if (atomic_load_explicit(&finished_count, memory_order_acquire) == 0)
        return;
    pthread_mutex_lock(&lock);
    operation *list = finished;
    finished = NULL;
    atomic_store(&finished_count, 0);
    pthread_mutex_unlock(&lock);
    while (list) {
        operation *next = list->finished;
        mpiox_mpi_prepare_finish(&list->prepared);
        PMPI_Grequest_complete(list->request); /* frees the operation if the program has freed the request */
        list = next;
    }
}

bool mpiox_nonblocking_is_pending(MPI_Request request)
{
    if (request == MPI_REQUEST_NULL)
        return false;
    pthread_mutex_lock(&lock);
    const operation *o = find(request);
    const bool pending = o && !atomic_load(&o->done);
    pthread_mutex_unlock(&lock);
    return pending;
}

/* The worker of an independent operation that is not done, and its task; else NULL. Such operations may run in any
 * order and in several threads. */
static mpiox_worker *worker_of(MPI_Request request, const mpiox_task **task)
{
    mpiox_worker *worker = NULL;
    if (request == MPI_REQUEST_NULL)
        return NULL;
    pthread_mutex_lock(&lock);
    const operation *o = find(request);
    if (o && !o->is_collective && o->owner && !atomic_load(&o->done)) {
        worker = o->owner->independent_worker;
        *task = &o->task;
    }
    pthread_mutex_unlock(&lock);
    return worker;
}

bool mpiox_nonblocking_run_here(MPI_Request request)
{
    const mpiox_task *task;
    mpiox_worker *worker = worker_of(request, &task);
    return worker && mpiox_worker_run_oldest(worker, task);
}

void mpiox_nonblocking_start_queued(MPI_Request request)
{
    const mpiox_task *task;
    mpiox_worker *worker = worker_of(request, &task);
    if (worker)
        mpiox_worker_set_eager(worker);
}

void mpiox_nonblocking_wait(MPI_Request request)
{
    for (;;) {
        const uint32_t seen = mpiox_futex_get(&done_count);
        if (!mpiox_nonblocking_is_pending(request))
            return;
        if (mpiox_nonblocking_run_here(request))
            mpi_progress(NULL); /* other ranks' messages move on between two accesses */
        else
            mpiox_wait_while(&done_count, seen, &idle);
    }
}
