/* mpiox_worker.c - see mpiox_worker.h. */
#include "mpiox_worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct mpiox_worker {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool running, stopping;
    mpiox_task *first, **last;
    uint32_t submitted; /* under the lock */
    mpiox_word finished; /* tasks that have run */
};

mpiox_worker *mpiox_worker_create(void) {
    mpiox_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return NULL;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->changed, NULL);
    worker->last = &worker->first;
    return worker;
}

/* Under the lock. NULL: none is left. */
static mpiox_task *take_oldest(mpiox_worker *worker) {
    mpiox_task *task = worker->first;
    if (task) {
        worker->first = task->next;
        if (!worker->first)
            worker->last = &worker->first;
    }
    return task;
}

static mpiox_task *next_task(mpiox_worker *worker) {
    pthread_mutex_lock(&worker->lock);
    while (!worker->first && !worker->stopping)
        pthread_cond_wait(&worker->changed, &worker->lock);
    mpiox_task *task = take_oldest(worker);
    pthread_mutex_unlock(&worker->lock);
    return task;
}

bool mpiox_worker_help(mpiox_worker *worker, const mpiox_task *wanted) {
    pthread_mutex_lock(&worker->lock);
    const mpiox_task *found = worker->first;
    while (found && found != wanted)
        found = found->next;
    mpiox_task *task = found ? take_oldest(worker) : NULL;
    pthread_mutex_unlock(&worker->lock);
    if (!task)
        return false;
    task->run(task);
    mpiox_word_add(&worker->finished);
    return true;
}

static void *work(void *context) {
    mpiox_worker *worker = context;
    mpiox_task *task;
    while ((task = next_task(worker))) {
        task->run(task);
        mpiox_word_add(&worker->finished);
    }
    return NULL;
}

/* The program's signals are for the program's threads. */
static bool start(mpiox_worker *worker) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    worker->running = pthread_create(&worker->thread, NULL, work, worker) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return worker->running;
}

bool mpiox_worker_submit(mpiox_worker *worker, mpiox_task *task) {
    pthread_mutex_lock(&worker->lock);
    const bool fine = worker->running || start(worker);
    if (fine) {
        task->next = NULL;
        *worker->last = task;
        worker->last = &task->next;
        worker->submitted++;
        pthread_cond_signal(&worker->changed);
    }
    pthread_mutex_unlock(&worker->lock);
    return fine;
}

void mpiox_worker_drain(mpiox_worker *worker, const mpiox_idle *idle) {
    if (!worker)
        return;
    pthread_mutex_lock(&worker->lock);
    const uint32_t target = worker->submitted;
    pthread_mutex_unlock(&worker->lock);
    mpiox_wait_reach(&worker->finished, target, idle);
}

void mpiox_worker_free(mpiox_worker *worker) {
    if (!worker)
        return;
    pthread_mutex_lock(&worker->lock);
    const bool running = worker->running;
    worker->stopping = true;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    if (running)
        pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}
