/*
 * mpiox_nonblocking.c - see mpiox_nonblocking.h.
 *
 * Problem.   MPI_File_iwrite and its kin return before the access is done, MPI_Wait reports how it went, and the MPI
 *            library may have been initialised without support for threads.
 * Algorithm. An operation is a task of the file's worker thread and a generalized request. When the worker has run it,
 *            it puts it on a list; the wrappers of MPI_Wait, MPI_Test... complete the requests on the list before they
 *            call PMPI, in the program's thread. What a wrapper waits for is a word that counts finished operations, not
 *            memory of the operation, which its owner may free as soon as it is done. An independent operation whose turn has not
 *            come when somebody waits for it is carried out by who waits: where threads outnumber cores the worker may be
 *            late, and its caches are not those that hold the data.
 * Guarantee. An operation is in the table from its start until MPI frees its request. An error reaches the file's
 *            error handler once, from the call that completes the request.
 */
#include "mpiox_nonblocking.h"

#include <stdlib.h>
#include <string.h>

#include "mpiox_file_error.h"
#include "mpiox_worker.h"

typedef struct operation {
    mpiox_task task; /* first: a task is cast back to its operation */
    struct operation *next;  /* in the table's bucket */
    struct operation *ready; /* in the list of operations to complete */
    mpiox_file *file;        /* NULL once it is closed */
    mpiox_exchange *exchange;
    mpiox_prepared prepared;
    mpiox_outcome outcome;
    MPI_Request request;
    bool collective;
    atomic_bool done;
} operation;

typedef struct failure { /* an error to be returned by the wrapper that this thread is in */
    struct failure *next;
    MPI_Request request;
    MPI_File handle;
    mpiox_error error;
    char path[]; /* the file's */
} failure;

enum { BUCKETS = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static operation *buckets[BUCKETS]; /* by request handle */
static operation *ready;
static atomic_int live, ready_count;
static mpiox_word finished; /* operations done so far, wrapping around */
static _Thread_local int depth;
static _Thread_local failure *failures;

_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "MPI_Request does not fit the key");

/* Lets MPI move messages while this thread waits: other ranks may need them to get here. */
static bool poke(void *context)
{
    int flag;

    (void)context;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    return false;
}

static const mpiox_idle idle = {poke, NULL};

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

    while (o != NULL && memcmp(&o->request, &request, sizeof request) != 0)
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
    atomic_fetch_add(&live, 1);
}

static void remove_operation(operation *o)
{
    operation **link = bucket_of(o->request);

    pthread_mutex_lock(&lock);
    while (*link != NULL && *link != o)
        link = &(*link)->next;
    if (*link != NULL) {
        *link = o->next;
        atomic_fetch_sub(&live, 1);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- callbacks of the generalized request ------------------------------------------------------------------------ */

/* Remember the error for the wrapper; false when there is none to return it. The MPI library may ask more than once. */
static bool collect(const operation *o, const char *path)
{
    failure *f = failures;

    while (f != NULL && memcmp(&f->request, &o->request, sizeof o->request) != 0)
        f = f->next;
    if (f != NULL)
        return true;
    f = depth > 0 ? malloc(sizeof *f + strlen(path) + 1) : NULL;
    if (f == NULL)
        return false;
    f->next = failures;
    f->request = o->request;
    f->handle = o->file != NULL ? o->file->handle : MPI_FILE_NULL;
    f->error = o->outcome.error;
    strcpy(f->path, path);
    failures = f;
    return true;
}

static int query(void *extra, MPI_Status *status)
{
    operation *o = extra;
    const char *path = o->file != NULL ? o->file->path : "a file closed since";

    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    mpiox_file_fill_status(status, o->outcome.error.code == MPIOX_OK ? o->outcome.bytes : 0);
    if (o->outcome.error.code == MPIOX_OK || depth < 0) /* depth < 0: only looked at */
        return MPI_SUCCESS;
    return collect(o, path) ? MPI_SUCCESS : mpiox_file_error_code(path, &o->outcome.error);
}

static int release(void *extra)
{
    operation *o = extra;

    remove_operation(o);
    mpiox_file_prepare_release(&o->prepared);
    free(o);
    return MPI_SUCCESS;
}

/* Too late: the access is under way, and MPI lets a cancel fail silently. */
static int cancel(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

/* ---- carrying out ------------------------------------------------------------------------------------------------ */

static void carry_out(operation *o)
{
    const mpiox_request *request = &o->prepared.request;

    if (o->collective)
        mpiox_exchange_access_background(o->exchange, request, &o->outcome);
    else
        mpiox_exchange_independent(o->exchange, request, &o->outcome);
    if (o->outcome.error.code == MPIOX_OK && request->local_error.code != MPIOX_OK)
        o->outcome.error = request->local_error;
}

static void run(mpiox_task *task)
{
    operation *o = (operation *)(void *)task;

    carry_out(o);
    pthread_mutex_lock(&lock);
    o->ready = ready;
    ready = o;
    atomic_fetch_add(&ready_count, 1);
    atomic_store(&o->done, true);
    pthread_mutex_unlock(&lock);
    mpiox_word_add(&finished);
}

static bool submit(mpiox_file *file, operation *o)
{
    mpiox_worker **slot = o->collective ? &file->collective_worker : &file->independent_worker, *worker;

    pthread_mutex_lock(&file->pointer_lock);
    if (*slot == NULL)
        *slot = mpiox_worker_create(!o->collective);
    worker = *slot;
    pthread_mutex_unlock(&file->pointer_lock);
    return worker != NULL && mpiox_worker_submit(worker, &o->task);
}

bool mpiox_nonblocking_start(mpiox_file *file, mpiox_prepared *prepared, bool collective, bool at_once,
                             MPI_Request *request)
{
    operation *o = calloc(1, sizeof *o);

    if (o == NULL || PMPI_Grequest_start(query, release, cancel, o, &o->request) != MPI_SUCCESS) {
        free(o);
        return false;
    }
    o->task.run = run;
    o->file = file;
    o->exchange = file->exchange;
    o->prepared = *prepared;
    o->collective = collective;
    insert(o);
    *request = o->request; /* afterwards the operation belongs to whoever completes it */
    if (!at_once && submit(file, o)) {
        atomic_fetch_add_explicit(&file->nonblocking_calls, 1, memory_order_relaxed);
        return true;
    }
    if (!at_once && collective) { /* not to be carried out inside the call without need */
        o->prepared.memory = NULL; /* still the caller's */
        o->prepared.packed = NULL;
        PMPI_Grequest_complete(o->request);
        PMPI_Request_free(request);
        return false;
    }
    atomic_fetch_add_explicit(&file->nonblocking_calls, 1, memory_order_relaxed);
    carry_out(o);
    mpiox_file_prepare_finish(&o->prepared);
    atomic_store(&o->done, true);
    PMPI_Grequest_complete(o->request);
    return true;
}

bool mpiox_nonblocking_at_once(const mpiox_file *file, const mpiox_prepared *prepared)
{
    enum { AT_ONCE_BYTES = 64 * 1024 };

    return prepared->request.length <= AT_ONCE_BYTES && mpiox_exchange_layout(file->exchange)->coherent;
}

int mpiox_nonblocking_run_now(mpiox_file *file, mpiox_prepared *prepared, MPI_Request *request)
{
    mpiox_outcome outcome;

    *request = MPI_REQUEST_NULL;
    mpiox_nonblocking_drain(file);
    mpiox_exchange_access(file->exchange, &prepared->request, &outcome);
    mpiox_file_prepare_finish(prepared);
    mpiox_file_prepare_release(prepared);
    if (outcome.error.code == MPIOX_OK)
        return MPI_SUCCESS;
    return mpiox_file_error_raise(file->handle, file->path, &outcome.error);
}

void mpiox_nonblocking_drain(mpiox_file *file)
{
    if (file == NULL)
        return;
    mpiox_worker_drain(file->independent_worker, &idle);
    mpiox_worker_drain(file->collective_worker, &idle);
}

void mpiox_nonblocking_close(mpiox_file *file)
{
    mpiox_nonblocking_drain(file);
    mpiox_worker_free(file->independent_worker);
    mpiox_worker_free(file->collective_worker);
    file->independent_worker = file->collective_worker = NULL;
    mpiox_nonblocking_progress();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < BUCKETS; i++) {
        for (operation *o = buckets[i]; o != NULL; o = o->next)
            o->file = o->file == file ? NULL : o->file;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- for the wrappers of MPI_Wait, MPI_Test... ------------------------------------------------------------------- */

bool mpiox_nonblocking_any(void)
{
    return atomic_load_explicit(&live, memory_order_acquire) != 0;
}

void mpiox_nonblocking_progress(void)
{
    operation *list;

    if (atomic_load_explicit(&ready_count, memory_order_acquire) == 0)
        return;
    pthread_mutex_lock(&lock);
    list = ready;
    ready = NULL;
    atomic_store(&ready_count, 0);
    pthread_mutex_unlock(&lock);
    while (list != NULL) {
        operation *next = list->ready;

        mpiox_file_prepare_finish(&list->prepared);
        PMPI_Grequest_complete(list->request); /* which may free it, if the program has freed the request */
        list = next;
    }
}

bool mpiox_nonblocking_is_pending(MPI_Request request)
{
    operation *o;
    bool pending;

    if (request == MPI_REQUEST_NULL)
        return false;
    pthread_mutex_lock(&lock);
    o = find(request);
    pending = o != NULL && !atomic_load(&o->done);
    pthread_mutex_unlock(&lock);
    return pending;
}

/* The worker of an independent operation that is not done, and its task; else NULL. Such operations may be carried out in any
 * order and by several threads. */
static mpiox_worker *shared_worker(MPI_Request request, const mpiox_task **task)
{
    mpiox_worker *worker = NULL;
    operation *o;

    if (request == MPI_REQUEST_NULL)
        return NULL;
    pthread_mutex_lock(&lock);
    o = find(request);
    if (o != NULL && !o->collective && o->file != NULL && !atomic_load(&o->done)) {
        worker = o->file->independent_worker;
        *task = &o->task;
    }
    pthread_mutex_unlock(&lock);
    return worker;
}

bool mpiox_nonblocking_help(MPI_Request request)
{
    const mpiox_task *task;
    mpiox_worker *worker = shared_worker(request, &task);

    return worker != NULL && mpiox_worker_run_oldest(worker, task);
}

void mpiox_nonblocking_hurry(MPI_Request request)
{
    const mpiox_task *task;
    mpiox_worker *worker = shared_worker(request, &task);

    if (worker != NULL)
        mpiox_worker_set_eager(worker);
}

void mpiox_nonblocking_await(MPI_Request request)
{
    for (;;) {
        const uint32_t seen = mpiox_word_get(&finished);

        if (!mpiox_nonblocking_is_pending(request))
            return;
        if (mpiox_nonblocking_help(request))
            poke(NULL); /* what other ranks wait for goes on between two accesses */
        else
            mpiox_wait_while(&finished, seen, &idle);
    }
}

void mpiox_nonblocking_enter(bool look)
{
    depth += look ? -1000 : 1;
}

int mpiox_nonblocking_failure(MPI_Request request)
{
    failure **link = &failures, *f;
    int code;

    while (*link != NULL && memcmp(&(*link)->request, &request, sizeof request) != 0)
        link = &(*link)->next;
    if (*link == NULL)
        return MPI_SUCCESS;
    f = *link;
    *link = f->next;
    code = mpiox_file_error_raise(f->handle, f->path, &f->error);
    free(f);
    return code;
}

void mpiox_nonblocking_leave(bool look)
{
    depth -= look ? -1000 : 1;
    while (depth == 0 && failures != NULL) { /* of requests that are not complete with the others: asked for again later */
        failure *next = failures->next;

        free(failures);
        failures = next;
    }
}
