/*
 * test_worker.c - tasks run once each, in order, from several submitting threads, and are all done after drain and free.
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

int main(void)
{
    mpiox_worker *worker = mpiox_worker_create();
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
    return check_exit();
}
