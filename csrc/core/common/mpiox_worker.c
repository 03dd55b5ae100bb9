/* mpiox_worker.c - see mpiox_worker.h. */
#include "mpiox_worker.h"
#include "mpiox_count.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

static const double unclaimed_s = 2e-3; /* older tasks are taken for ones that no thread is about to wait for */
static const double poll_s = 5e-3;      /* between two polls of a shared worker */
static const double linger_s = 10e-3;   /* time after the last submission at which polling ends and the worker sleeps */

typedef struct running { /* a task that a thread is in, on that thread's stack */
    struct running *next;
    uint32_t number;
} running;

struct mpiox_worker {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool shared, started, stopping;
    bool eager;    /* shared: tasks are not left to waiting threads */
    bool busy;     /* the thread is in a task */
    bool asleep;   /* until it is woken */
    double active; /* the last submission, seconds of mpiox_now() */
    running *runs; /* under the lock */
    mpiox_task *first, **last;
    uint32_t submitted;   /* under the lock */
    mpiox_futex finished; /* tasks that have run */
};

mpiox_worker *mpiox_worker_create(bool shared)
{
    mpiox_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return NULL;
    pthread_mutex_init(&worker->lock, NULL);
    mpiox_wait_make_condition(&worker->changed);
    worker->last = &worker->first;
    worker->shared = shared;
    return worker;
}

/* Under the lock. NULL: none is left. */
static mpiox_task *take_oldest(mpiox_worker *worker, running *run)
{
    mpiox_task *task = worker->first;
    if (task) {
        worker->first = task->next;
        if (!worker->first)
            worker->last = &worker->first;
        *run = (running){worker->runs, task->number};
        worker->runs = run;
    }
    return task;
}

/* Under the lock: sleep until this thread is woken, or until `when` if that is not 0. */
static void sleep_until(mpiox_worker *worker, double when)
{
    worker->asleep = when <= 0;
    mpiox_wait_condition(&worker->changed, &worker->lock, when > 0 ? when : INFINITY);
    worker->asleep = false;
}

/* Under the lock, shared workers: wait for a task that shall not be left to a waiting thread, or for the end. */
static void await_unclaimed(mpiox_worker *worker)
{
    while (!worker->stopping && !(worker->first && worker->eager)) {
        const double now = mpiox_now();
        if (worker->first && now >= worker->first->since + unclaimed_s)
            worker->eager = true;
        else
            sleep_until(worker, worker->first || now < worker->active + linger_s ? now + poll_s : 0);
    }
}

/* The next task for the worker's own thread; NULL: the thread ends. */
static mpiox_task *next_task(mpiox_worker *worker, running *run)
{
    pthread_mutex_lock(&worker->lock);
    worker->busy = false;
    if (worker->shared)
        await_unclaimed(worker);
    while (!worker->first && !worker->stopping)
        sleep_until(worker, 0);
    mpiox_task *task = take_oldest(worker, run);
    worker->busy = task != NULL;
    pthread_mutex_unlock(&worker->lock);
    return task;
}

static void run_task(mpiox_worker *worker, mpiox_task *task, running *run)
{
    task->run(task);
    pthread_mutex_lock(&worker->lock);
    running **link = &worker->runs;
    while (*link != run)
        link = &(*link)->next;
    *link = run->next;
    pthread_mutex_unlock(&worker->lock);
    mpiox_futex_add(&worker->finished);
}

bool mpiox_worker_run_oldest(mpiox_worker *worker, const mpiox_task *wanted)
{
    running run;
    pthread_mutex_lock(&worker->lock);
    const mpiox_task *found = worker->first;
    while (found && found != wanted)
        found = found->next;
    mpiox_task *task = found ? take_oldest(worker, &run) : NULL;
    if (task && !worker->busy)
        worker->eager = false; /* a waiting thread was first */
    pthread_mutex_unlock(&worker->lock);
    if (task)
        run_task(worker, task, &run);
    return task != NULL;
}

void mpiox_worker_set_eager(mpiox_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    if (worker->shared && !worker->eager) {
        worker->eager = true;
        pthread_cond_signal(&worker->changed);
    }
    pthread_mutex_unlock(&worker->lock);
}

static void *work(void *context)
{
    mpiox_worker *worker = context;
    mpiox_task *task;
    running run;
    while ((task = next_task(worker, &run)))
        run_task(worker, task, &run);
    return NULL;
}

/* The program's signals are for the program's threads. */
static bool start(mpiox_worker *worker)
{
    sigset_t all, old;
    mpiox_count_threads();
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* mpiox_segment_guard.h */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    worker->started = pthread_create(&worker->thread, NULL, work, worker) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return worker->started;
}

bool mpiox_worker_submit(mpiox_worker *worker, mpiox_task *task)
{
    pthread_mutex_lock(&worker->lock);
    const bool fine = worker->started || start(worker);
    if (fine) {
        task->next = NULL;
        *worker->last = task;
        worker->last = &task->next;
        task->number = ++worker->submitted;
        task->since = worker->active = mpiox_now();
        if (worker->asleep || worker->eager)
            pthread_cond_signal(&worker->changed);
    }
    pthread_mutex_unlock(&worker->lock);
    return fine;
}

/* Under the lock: is a task up to `target` waiting or under way? */
static bool is_left(const mpiox_worker *worker, uint32_t target)
{
    bool left = worker->first && (int32_t)(worker->first->number - target) <= 0;
    for (const running *run = worker->runs; run && !left; run = run->next)
        left = (int32_t)(run->number - target) <= 0;
    return left;
}

void mpiox_worker_drain(mpiox_worker *worker, const mpiox_idle *idle)
{
    running run;
    bool left = true;
    if (!worker)
        return;
    pthread_mutex_lock(&worker->lock);
    const uint32_t target = worker->submitted;
    pthread_mutex_unlock(&worker->lock);
    while (left) {
        const uint32_t seen = mpiox_futex_get(&worker->finished);
        pthread_mutex_lock(&worker->lock);
        const bool mine = worker->shared && worker->first && (int32_t)(worker->first->number - target) <= 0;
        mpiox_task *task = mine ? take_oldest(worker, &run) : NULL;
        left = is_left(worker, target);
        pthread_mutex_unlock(&worker->lock);
        if (task)
            run_task(worker, task, &run);
        else if (left)
            mpiox_wait_while(&worker->finished, seen, idle);
    }
}

void mpiox_worker_free(mpiox_worker *worker)
{
    if (!worker)
        return;
    pthread_mutex_lock(&worker->lock);
    const bool started = worker->started;
    worker->stopping = true;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    if (started)
        pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}
