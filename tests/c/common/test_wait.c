/* test_wait.c - a limit on waiting: what ends a wait, what does not count, and what is reported. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_wait.h"

static jmp_buf out;
static const char *reported_what;
static int64_t reported_number;
static double reported_seconds;

static void expired(void *context, const char *what, int64_t number, double seconds)
{
    *(int *)context += 1;
    reported_what = what;
    reported_number = number;
    reported_seconds = seconds;
    longjmp(out, 1);
}

static void nap(double seconds)
{
    struct timespec rest = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};

    while (nanosleep(&rest, &rest) != 0)
        ;
}

static bool nothing(void *context)
{
    (void)context;
    return false;
}

static bool useful(void *context)
{
    return ++*(int *)context < 20000;
}

/* Each kind of wait ends when nobody wakes it, and says what it was for. */
static void nobody_comes(void)
{
    int count = 0;
    const mpiox_wait_limit limit = {.seconds = 0.2, .expired = expired, .context = &count};
    const mpiox_idle idle = {nothing, NULL};
    mpiox_futex word = {0};

    CHECK(mpiox_wait_set_limit(&limit) == NULL);
    mpiox_wait_for("window", 7);
    if (setjmp(out) == 0)
        mpiox_wait_while(&word, 0, &idle);
    CHECK_EQUAL(count, 1);
    CHECK(reported_what != NULL && strcmp(reported_what, "window") == 0);
    CHECK_EQUAL(reported_number, 7);
    CHECK(reported_seconds >= 0.2);
    mpiox_wait_for(NULL, -1);
    if (setjmp(out) == 0)
        mpiox_wait_reach(&word, 3, NULL);
    CHECK_EQUAL(count, 2);
    CHECK(reported_what == NULL && reported_number == -1);
    if (setjmp(out) == 0)
        for (mpiox_backoff backoff = {0};;)
            mpiox_wait_backoff(&backoff);
    CHECK_EQUAL(count, 3);
    CHECK(mpiox_wait_set_limit(NULL) == &limit);
}

static mpiox_futex slow_word;

static void *count_slowly(void *context)
{
    (void)context;
    for (int i = 0; i < 20; i++) {
        nap(0.2);
        mpiox_futex_add(&slow_word);
    }
    return NULL;
}

/* Signs of life: a counter that goes on, useful work meanwhile. Together they take longer than the limit. */
static void signs_of_life(void)
{
    int count = 0, worked = 0;
    const mpiox_wait_limit limit = {.seconds = 2.5, .expired = expired, .context = &count};
    const mpiox_idle idle = {useful, &worked};
    pthread_t thread;
    mpiox_futex word = {0};

    mpiox_wait_set_limit(&limit);
    CHECK_EQUAL(pthread_create(&thread, NULL, count_slowly, NULL), 0);
    if (setjmp(out) == 0)
        mpiox_wait_reach(&slow_word, 20, NULL);
    CHECK_EQUAL(count, 0);
    pthread_join(thread, NULL);
    if (setjmp(out) == 0)
        mpiox_wait_while(&word, 0, &idle);
    CHECK_EQUAL(count, 1); /* only when there was no more work */
    CHECK_EQUAL(worked >= 20000, 1);
    mpiox_wait_set_limit(NULL);
}

/* Without a limit, or with one of another thread, a wait goes on until it is over. */
static void *wait_without(void *context)
{
    mpiox_wait_reach(context, 1, NULL);
    return NULL;
}

static void no_limit(void)
{
    int count = 0;
    const mpiox_wait_limit limit = {.seconds = 0.05, .expired = expired, .context = &count},
                           none = {.seconds = 0, .expired = expired, .context = &count};
    mpiox_futex word = {0};
    pthread_t thread;

    mpiox_wait_set_limit(&limit); /* of this thread */
    CHECK_EQUAL(pthread_create(&thread, NULL, wait_without, &word), 0);
    nap(0.3);
    mpiox_wait_set_limit(&none);
    mpiox_backoff backoff = {0};
    for (int i = 0; i < 2000; i++)
        mpiox_wait_backoff(&backoff);
    mpiox_futex_set(&word, 1);
    pthread_join(thread, NULL);
    mpiox_wait_set_limit(NULL);
    CHECK_EQUAL(count, 0);
}

typedef struct peer {
    mpiox_futex *word; /* what it brings before it dies; NULL: nothing */
    int looks;
} peer;

static bool is_over(void *awaited, const char *what, bool again)
{
    peer *p = awaited;

    CHECK_EQUAL(again, p->looks++ > 0);
    reported_what = what;
    if (again)
        longjmp(out, 1);
    if (p->word != NULL)
        mpiox_futex_set(p->word, 1);
    return true;
}

/* Each kind of wait ends when those that are waited for have died, unless their last act was what it waits for. */
static void dead_peers(void)
{
    peer p = {.word = NULL};
    const mpiox_wait_limit limit = {.is_over = is_over, .awaited = &p};
    mpiox_futex word = {0};

    mpiox_wait_set_limit(&limit);
    mpiox_wait_for("all ranks", -1);
    if (setjmp(out) == 0)
        mpiox_wait_while(&word, 0, NULL);
    CHECK_EQUAL(p.looks, 2);
    CHECK(strcmp(reported_what, "all ranks") == 0);
    p.looks = 0;
    if (setjmp(out) == 0)
        for (mpiox_backoff backoff = {0};;)
            mpiox_wait_backoff(&backoff);
    CHECK_EQUAL(p.looks, 2);
    p = (peer){.word = &word};
    if (setjmp(out) == 0)
        mpiox_wait_reach(&word, 1, NULL);
    CHECK_EQUAL(p.looks, 1);
    mpiox_wait_for(NULL, -1);
    mpiox_wait_set_limit(NULL);
}

/* Sleeps do not change the timer slack that the program has given its thread. */
static void slack_stays(void)
{
    enum { SLACK_NS = 77000 };
    mpiox_backoff backoff = {0};

    CHECK_EQUAL(prctl(PR_SET_TIMERSLACK, SLACK_NS), 0);
    backoff.since = mpiox_now() - 1; /* no more yielding */
    for (int i = 0; i < 100; i++)
        mpiox_wait_backoff(&backoff);
    CHECK_EQUAL(prctl(PR_GET_TIMERSLACK), SLACK_NS);
}

/* A process that was stopped has not waited. The child ends with 1 when its limit was reached. */
static void stopped(void)
{
    mpiox_futex *word = mmap(NULL, sizeof *word, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int count = 0, status = -1;
    const mpiox_wait_limit limit = {.seconds = 4, .expired = expired, .context = &count};
    const pid_t child = fork();

    if (child == 0) {
        mpiox_wait_set_limit(&limit);
        if (setjmp(out) == 0)
            mpiox_wait_while(word, 0, NULL);
        _exit(count);
    }
    nap(0.3);
    kill(child, SIGSTOP);
    nap(6);
    kill(child, SIGCONT);
    nap(0.2);
    mpiox_futex_set(word, 1);
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
}

int main(void)
{
    nobody_comes();
    signs_of_life();
    no_limit();
    dead_peers();
    slack_stays();
    stopped();
    return check_exit();
}
