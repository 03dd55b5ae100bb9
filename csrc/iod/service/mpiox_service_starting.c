/* mpiox_service_starting.c - see mpiox_service_starting.h. */
#include "mpiox_service_starting.h"
#include "mpiox_print.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

/* step_s: a longer time between two checks was no wait: the process was stopped */
static const double look_s = 0.25, step_s = 1;

/* Of this process, which starts delegates once. */
static struct starting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    mpiox_service_patience patience;
    const char *what;
    double seconds; /* that this has been waited for */
    bool running, over, reported;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *what_is_waited_for(void)
{
    return own.what != NULL || own.patience.rank != 0 ? own.what : "another rank has not done its part";
}

static void print(const char *what)
{
    char host[64] = "";

    gethostname(host, sizeof host - 1);
    mpiox_print(
        "mpiio_ext: rank %d (process %ld on %s) has waited %.0f s for I/O delegates to start: %s; a process or node "
        "may be stopped or overloaded. The rank continues to wait\n",
        own.patience.rank, (long)getpid(), host, own.seconds, what);
}

static void *watch(void *context)
{
    double last = mpiox_now();

    (void)context;
    pthread_mutex_lock(&own.lock);
    while (!own.over) {
        mpiox_wait_condition(&own.changed, &own.lock, mpiox_now() + look_s);
        const double now = mpiox_now();
        const char *what = what_is_waited_for();

        own.seconds += now - last < step_s ? now - last : step_s;
        last = now;
        if (!own.over && !own.reported && what != NULL && own.seconds >= own.patience.seconds) {
            own.reported = true;
            print(what);
        }
    }
    pthread_mutex_unlock(&own.lock);
    return NULL;
}

void mpiox_service_starting_begin(const mpiox_service_patience *patience)
{
    sigset_t all, before;

    own.patience = *patience;
    own.over = false;
    mpiox_service_starting_for(NULL);
    if (patience->seconds <= 0)
        return;
    mpiox_wait_make_condition(&own.changed);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    own.running = pthread_create(&own.thread, NULL, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void mpiox_service_starting_for(const char *what)
{
    pthread_mutex_lock(&own.lock);
    own.what = what;
    own.seconds = 0;
    own.reported = false;
    pthread_mutex_unlock(&own.lock);
}

void mpiox_service_starting_end(void)
{
    if (!own.running)
        return;
    pthread_mutex_lock(&own.lock);
    own.over = true;
    pthread_cond_signal(&own.changed);
    pthread_mutex_unlock(&own.lock);
    pthread_join(own.thread, NULL);
    pthread_cond_destroy(&own.changed);
    own.running = false;
}
