/*
 * mpiox_worker.h - a thread that runs tasks, in the order of their submission unless waiting threads run some.
 *
 * Nonblocking data access runs here, with one worker per file and kind, so that nonblocking collectives keep their
 * order and two files never wait for each other. The first task starts the thread; signals are blocked in it. Any
 * thread may submit; a task must not submit to its own worker or drain it.
 *
 * Where the order of tasks does not matter a worker may be `shared`: a thread that waits for a task runs tasks itself.
 * Many programs wait at once, and waking a second thread for nothing costs them a tenth of a write of 448 KiB where
 * ranks fill the cores. So a shared worker begins by leaving tasks to the threads that wait: it polls every 5 ms. When
 * it finds a task that no thread has begun in 2 ms, or mpiox_worker_set_eager() is called, it begins every later one at
 * once, until a waiting thread is first again.
 */
#ifndef MPIOX_WORKER_H
#define MPIOX_WORKER_H

#include <stdbool.h>

#include "mpiox_wait.h"

typedef struct mpiox_worker mpiox_worker;

/* A task; owned by the caller, who keeps it until it has run. */
typedef struct mpiox_task {
    struct mpiox_task *next;
    double since;                         /* submitted, seconds of mpiox_now() */
    uint32_t number;                      /* in order of submission, wrapping around */
    void (*run)(struct mpiox_task *task); /* may free the task */
} mpiox_task;

mpiox_worker *mpiox_worker_create(bool shared); /* no thread yet; NULL: no memory */
/* False when no thread can be started: then nothing has happened. */
bool mpiox_worker_submit(mpiox_worker *worker, mpiox_task *task);
/* Shared workers: run the oldest task that has not begun, in the calling thread, if `wanted` has not begun either (a
 * thread that waits for `wanted` need not run later tasks). Blocking. False when no task was run. `wanted` may be done
 * and freed. */
bool mpiox_worker_run_oldest(mpiox_worker *worker, const mpiox_task *wanted);
/* Shared workers: the program tests for results without waiting, so the worker's own thread runs tasks at once. */
void mpiox_worker_set_eager(mpiox_worker *worker);
/* Wait until every task submitted so far has run. NULL-safe; idle as for mpiox_wait_while(). */
void mpiox_worker_drain(mpiox_worker *worker, const mpiox_idle *idle);
/* Run what is left, end the thread, free. Blocking; NULL-safe. */
void mpiox_worker_free(mpiox_worker *worker);

#endif
