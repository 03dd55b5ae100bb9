/*
 * mpiox_worker.h - a thread that carries out tasks, in the order in which they were handed in unless others help.
 *
 * Nonblocking data access runs here, a worker per file and kind, so that nonblocking collectives keep their order and two
 * files never wait for each other. The thread is started with the first task; signals are blocked in it. Submitting is
 * safe from any thread; a task must not submit to or drain its own worker.
 *
 * Where the order of tasks does not matter a worker may be `shared`: a thread that waits for a task helps. Many programs
 * wait at once, and waking a second thread for nothing costs them a tenth of a write of 448 KiB where ranks fill the cores.
 * So a shared worker begins by leaving tasks to those who wait: it looks every 5 ms. When it finds one that nobody has
 * waited for in 2 ms, or is told to hurry, it begins every later one at once, until a waiter is quicker again.
 */
#ifndef MPIOX_WORKER_H
#define MPIOX_WORKER_H

#include <stdbool.h>

#include "mpiox_wait.h"

typedef struct mpiox_worker mpiox_worker;

/* A task; lives in the caller's memory until it has run. */
typedef struct mpiox_task {
    struct mpiox_task *next;
    double since; /* handed in, seconds of mpiox_now() */
    uint32_t number; /* of those handed in, wrapping around */
    void (*run)(struct mpiox_task *task); /* may free the task */
} mpiox_task;

mpiox_worker *mpiox_worker_create(bool shared); /* no thread yet; NULL: no memory */
/* False when no thread can be started: then nothing has happened. */
bool mpiox_worker_submit(mpiox_worker *worker, mpiox_task *task);
/* Shared workers: run the oldest task that has not begun, in the calling thread, if `wanted` has not begun either (so that
 * nobody who waits for it does work that is not needed yet). False when there was nothing to do. `wanted` may be done and
 * freed. */
bool mpiox_worker_help(mpiox_worker *worker, const mpiox_task *wanted);
/* Shared workers: somebody looks for results without waiting for them, so tasks are not to be left to waiters. */
void mpiox_worker_hurry(mpiox_worker *worker);
/* Wait until every task handed in so far has run. NULL-safe; idle as for mpiox_wait_while(). */
void mpiox_worker_drain(mpiox_worker *worker, const mpiox_idle *idle);
/* Drains, ends the thread. NULL-safe. */
void mpiox_worker_free(mpiox_worker *worker);

#endif
