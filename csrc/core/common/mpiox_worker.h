/*
 * mpiox_worker.h - a thread that runs tasks in the order of their submission, unless waiting threads run some of them.
 *
 * Nonblocking data access runs here, with one worker per file and kind, so that nonblocking collectives keep their
 * order and two files never wait for each other. The first task starts the thread; signals are blocked in it. Any
 * thread may submit; a task must not submit to its own worker or drain it.
 *
 * A worker whose tasks need no order may be `shared`: a thread that waits for a task runs tasks itself. Many programs
 * wait at once for a result. Then a second thread that wakes in vain costs a tenth of a write of 448 KiB if ranks fill
 * the cores. So a shared worker begins by leaving tasks to the threads that wait: it polls every 5 ms. When it finds a
 * task that no thread has begun in 2 ms, or mpiox_worker_set_eager() is called, it begins every later task at once,
 * until a waiting thread is first again.
 */
#ifndef MPIOX_WORKER_H
#define MPIOX_WORKER_H

#include <stdbool.h>

#include "mpiox_wait.h"

typedef struct mpiox_worker mpiox_worker;

/* A task. The caller owns it, and does not free it before it has run. */
typedef struct mpiox_task {
    struct mpiox_task *next;              /* for the worker: the task behind this one */
    double since;                         /* submitted, seconds of mpiox_now() */
    uint32_t number;                      /* in order of submission, wrapping around */
    void (*run)(struct mpiox_task *task); /* may free the task */
} mpiox_task;

mpiox_worker *mpiox_worker_create(bool shared); /* no thread yet; NULL: no memory */
/* False: no thread can be started, and the task does not run. */
bool mpiox_worker_submit(mpiox_worker *worker, mpiox_task *task);
/* Shared workers: run the oldest task that has not begun, in the calling thread, if `wanted` has not begun either (a
 * thread that waits for `wanted` need not run later tasks). Blocking. False: the thread ran no task. `wanted` may be
 * done and freed. */
bool mpiox_worker_run_oldest(mpiox_worker *worker, const mpiox_task *wanted);
/* Shared workers: the program tests for results without waiting, so the worker's own thread runs tasks at once. */
void mpiox_worker_set_eager(mpiox_worker *worker);
/* Wait until every task submitted so far has run. NULL-safe; idle as for mpiox_wait_while(). */
void mpiox_worker_drain(mpiox_worker *worker, const mpiox_idle *idle);
/* Run the tasks that have not begun, end the thread, free. Blocking; NULL-safe. */
void mpiox_worker_free(mpiox_worker *worker);

#endif
