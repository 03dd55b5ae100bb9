/*
 * test_worker.c - tasks run once each, in order, from several submitting threads, and all are done after drain and
 * free; who waits for a task runs it, and what was handed in before it, when the worker is busy.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"
#include "mpiox_worker.h"

enum { TASKS = 2000, THREADS = 4 };

typedef struct job {
    mpiox_task task; /* first */
    int submitter, number;
} job;

static atomic_int done, out_of_order;
static int last[THREADS];

static void run(mpiox_task *task)
{
    job *j = (job *)(void *)task;

    if (j->number != last[j->submitter] + 1)
        atomic_fetch_add(&out_of_order, 1);
    last[j->submitter] = j->number;
    if (j->number % 500 == 0)
        nanosleep(&(struct timespec){0, 1000 * 1000}, NULL);
    atomic_fetch_add(&done, 1);
    free(j); /* a task may free itself */
}

typedef struct submitter {
    mpiox_worker *worker;
    int index;
} submitter;

static void *submit(void *context)
{
    const submitter *s = context;

    for (int i = 1; i <= TASKS; i++) {
        job *j = malloc(sizeof *j);

        *j = (job){.task = {.run = run}, .submitter = s->index, .number = i};
        if (!mpiox_worker_submit(s->worker, &j->task))
            abort();
    }
    return NULL;
}

static bool count_idle(void *context)
{
    ++*(int *)context;
    return false;
}

static atomic_int gate; /* 1: the worker stands before it, 2: it is open */
static atomic_int runs;

static void stand_at_gate(mpiox_task *task)
{
    (void)task;
    atomic_store(&gate, 1);
    while (atomic_load(&gate) != 2)
        nanosleep(&(struct timespec){0, 1000 * 100}, NULL);
}

static void count_runs(mpiox_task *task)
{
    (void)task;
    atomic_fetch_add(&runs, 1);
}

static void check_shared(void)
{
    mpiox_worker *worker = mpiox_worker_create(true);
    mpiox_task at_gate = {.run = stand_at_gate};
    mpiox_task tasks[3] = {{.run = count_runs}, {.run = count_runs}, {.run = count_runs}};

    CHECK_EQUAL(mpiox_worker_run_oldest(worker, &tasks[0]), false); /* not handed in */
    CHECK_EQUAL(mpiox_worker_submit(worker, &at_gate), true);
    while (atomic_load(&gate) != 1)
        nanosleep(&(struct timespec){0, 1000 * 100}, NULL);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(mpiox_worker_submit(worker, &tasks[i]), true);
    CHECK_EQUAL(mpiox_worker_run_oldest(worker, &at_gate), false); /* has begun: others' work is not done for it */
    CHECK_EQUAL(mpiox_worker_run_oldest(worker, &tasks[1]), true);
    CHECK_EQUAL(atomic_load(&runs), 1);
    CHECK_EQUAL(mpiox_worker_run_oldest(worker, &tasks[0]), false); /* that was it */
    CHECK_EQUAL(mpiox_worker_run_oldest(worker, &tasks[1]), true);
    CHECK_EQUAL(mpiox_worker_run_oldest(worker, &tasks[1]), false);
    CHECK_EQUAL(atomic_load(&runs), 2);
    atomic_store(&gate, 2);
    mpiox_worker_drain(worker, NULL);
    CHECK_EQUAL(atomic_load(&runs), 3);
    for (int i = 0; i < 3; i++) { /* at once or later, but without anybody who waits */
        nanosleep(&(struct timespec){0, i * 1000 * 1000 * 20}, NULL); /* asleep the second and third time */
        CHECK_EQUAL(mpiox_worker_submit(worker, &tasks[i]), true);
        while (atomic_load(&runs) != 4 + i)
            nanosleep(&(struct timespec){0, 1000 * 100}, NULL);
    }
    CHECK_EQUAL(mpiox_worker_submit(worker, &tasks[0]), true);
    mpiox_worker_free(worker);
    CHECK_EQUAL(atomic_load(&runs), 7);
}

int main(void)
{
    mpiox_worker *worker = mpiox_worker_create(false);
    pthread_t threads[THREADS];
    submitter submitters[THREADS];
    int idles = 0;
    const mpiox_idle idle = {count_idle, &idles};

    mpiox_worker_drain(NULL, NULL);
    mpiox_worker_free(NULL);
    mpiox_worker_drain(worker, NULL); /* no thread yet, nothing to wait for */
    for (int i = 0; i < THREADS; i++) {
        submitters[i] = (submitter){worker, i};
        CHECK_EQUAL(pthread_create(&threads[i], NULL, submit, &submitters[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    mpiox_worker_drain(worker, &idle);
    CHECK_EQUAL(atomic_load(&done), THREADS * TASKS);
    CHECK_EQUAL(atomic_load(&out_of_order), 0);
    for (int i = 0; i < THREADS; i++)
        last[i] = 0;
    submit(&submitters[0]);
    mpiox_worker_free(worker); /* runs what is left first */
    CHECK_EQUAL(atomic_load(&done), (THREADS + 1) * TASKS);
    check_shared();
    return check_exit();
}
