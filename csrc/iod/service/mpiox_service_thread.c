/* mpiox_service_thread.c - see mpiox_service_thread.h. */
#include "mpiox_service_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "mpiox_count.h"
#include "mpiox_process_serve.h"
#include "mpiox_process_liveness.h"

enum { STARTING, STARTED, ENDED, STEP_MS = 100 };

typedef struct hosted { /* a delegate that lives in this process */
    pthread_t thread;
    mpiox_process_orders orders;
    mpiox_process_instance instance;
    mpiox_announcement announced;
    mpiox_futex stage;
    pthread_t liveness_thread; /* if announced.listens */
    mpiox_liveness liveness;
    bool whole;       /* all its bytes are in the files; valid when it has ENDED */
    atomic_bool over; /* liveness, too */
} hosted;

static hosted *own;
static int32_t own_count;

/* Answers clients that do not reach the delegate: ends the delegate, and answers when its pages are written. */
static void *liveness(void *context)
{
    hosted *h = context;
    bool reported = false;

    while (!atomic_load(&h->over)) {
        mpiox_liveness_step(&h->liveness, -1, STEP_MS);
        if (!h->liveness.asked)
            continue;
        if (!reported)
            mpiox_process_stop(&h->instance);
        reported = true;
        if (mpiox_futex_get(&h->stage) == ENDED)
            mpiox_liveness_answer(&h->liveness, h->whole);
    }
    mpiox_liveness_close(&h->liveness);
    return NULL;
}

static bool start_liveness(hosted *h)
{
    int failed;

    h->announced.code = mpiox_liveness_open(&h->orders.place, h->announced.link.secret, &h->liveness,
                                            &h->announced.liveness, &h->announced.error);
    if (h->announced.code != MPIOX_OK)
        return false;
    failed = pthread_create(&h->liveness_thread, NULL, liveness, h);
    if (failed == 0)
        return true;
    mpiox_liveness_close(&h->liveness);
    h->announced.code = mpiox_error_set(&h->announced.error, MPIOX_E_NOMEM, failed, -1, -1,
                                        "starting a delegate's thread");
    return false;
}

static void *live(void *context)
{
    hosted *h = context;

    mpiox_process_begin(&h->orders, &h->instance, &h->announced);
    if (h->announced.code == MPIOX_OK && h->announced.listens)
        h->announced.listens = start_liveness(h);
    mpiox_futex_set(&h->stage, STARTED);
    /* The server is freed by collect(): until then it may be stopped. */
    if (h->announced.code == MPIOX_OK)
        h->whole = mpiox_process_serve(&h->instance) == MPIOX_OK &&
                   !mpiox_cache_has_errors(mpiox_server_cache(h->instance.server));
    mpiox_futex_set(&h->stage, ENDED);
    return NULL;
}

static int start_one(hosted *h)
{
    sigset_t all, before;
    int failed;

    mpiox_count_threads();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&h->thread, NULL, live, h);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed == 0) {
        while (mpiox_futex_get(&h->stage) == STARTING)
            mpiox_wait_while(&h->stage, STARTING, NULL);
        return MPIOX_OK;
    }
    h->announced.index = h->orders.server.delegate;
    h->announced.code = mpiox_error_set(&h->announced.error, MPIOX_E_NOMEM, failed, -1, -1,
                                        "starting a delegate's thread");
    return MPIOX_E_NOMEM;
}

static int32_t count_own(const mpiox_service_plan *plan)
{
    int32_t count = 0;

    for (int32_t i = 0; i < plan->count; i++)
        count += mpiox_service_plan_rank(plan, i, false) == plan->topology->rank;
    return count;
}

int mpiox_service_thread_start(const mpiox_service_plan *plan, mpiox_announcement *announced)
{
    const int32_t count = count_own(plan);
    int code = MPIOX_OK;

    own_count = 0;
    own = calloc((size_t)(count > 0 ? count : 1), sizeof *own);
    for (int32_t i = 0; i < plan->count; i++) {
        if (mpiox_service_plan_rank(plan, i, false) != plan->topology->rank)
            continue;
        if (own == NULL) {
            announced[i].code = mpiox_error_set(&announced[i].error, MPIOX_E_NOMEM, 0, -1, -1,
                                                "starting a delegate's thread");
            return MPIOX_E_NOMEM;
        }
        own[own_count].orders = mpiox_service_plan_orders(plan, i, "thread");
        if (start_one(&own[own_count]) != MPIOX_OK)
            code = MPIOX_E_NOMEM;
        announced[i] = own[own_count].announced;
        own_count += code == MPIOX_OK; /* it has a thread to be joined */
        if (code != MPIOX_OK)
            break;
    }
    return code;
}

static void collect(void)
{
    for (int32_t i = 0; i < own_count; i++) {
        pthread_join(own[i].thread, NULL);
        atomic_store(&own[i].over, true);
        if (own[i].announced.listens)
            pthread_join(own[i].liveness_thread, NULL);
        mpiox_process_end(&own[i].instance);
    }
    free(own);
    own = NULL;
    own_count = 0;
}

void mpiox_service_thread_seal(void)
{
    for (int32_t i = 0; i < own_count; i++)
        mpiox_process_seal(&own[i].instance, &own[i].announced);
}

void mpiox_service_thread_cancel(void)
{
    for (int32_t i = 0; i < own_count; i++) {
        if (own[i].instance.server != NULL)
            mpiox_process_stop(&own[i].instance);
    }
    collect();
}

void mpiox_service_thread_await(void)
{
    mpiox_backoff backoff = {0};
    int flag = 0;

    for (int32_t i = 0; i < own_count; i++) {
        while (mpiox_futex_get(&own[i].stage) != ENDED) {
            PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            mpiox_wait_backoff(&backoff);
        }
    }
    collect();
}
