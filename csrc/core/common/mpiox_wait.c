/* mpiox_wait.c - see mpiox_wait.h. The futex is a shared (not process-private) one: words live in memory segments that
 * several processes map at different addresses. */
#include "mpiox_wait.h"

#include <linux/futex.h>
#include <limits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* One step counts for so much of a wait at most: between two steps the process sleeps for a millisecond, or is not on a
 * core for a while; longer, it was stopped. */
static const double step_s = 1.0;
static const double look_s = 0.5;   /* between two looks at those that are waited for */
static const double asleep_s = 1.0; /* on a condition, at most */

static _Thread_local struct {
    const mpiox_wait_limit *limit;
    const char *what;
    int64_t number;
} own = {.number = -1};

/* A sleep and its wake-up take as long as twenty yields. With 16 of them two ranks that meet in turn, each on a core,
 * slept in most calls and took 9 to 16 microseconds; with 64 they take 2, and four ranks on two cores take half. With
 * 200 and more, delegates and 64-byte exchanges are slower, since ranks that wait take cores from others. */
enum { PAUSES = 64, YIELDS = 64, SLEEP_FIRST_NS = 50 * 1000, SLEEP_MAX_NS = 1000 * 1000 };

double mpiox_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int64_t mpiox_wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

uint64_t mpiox_unique(void)
{
    static const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15); /* spreads the clock's low bits over all */
    static _Atomic uint64_t calls;
    uint64_t number;

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) == (ssize_t)sizeof number)
        return number;
    return ((uint64_t)mpiox_wall_ns() + atomic_fetch_add(&calls, 1)) * odd ^ (uint64_t)getpid() << 40;
}

const mpiox_wait_limit *mpiox_wait_set_limit(const mpiox_wait_limit *limit)
{
    const mpiox_wait_limit *before = own.limit;
    own.limit = limit;
    return before;
}

void mpiox_wait_for(const char *what, int64_t number)
{
    own.what = what;
    own.number = number;
}

static void count_step(mpiox_waited *waited, double now)
{
    const mpiox_wait_limit *limit = own.limit;
    if (waited->last != 0)
        waited->seconds += now - waited->last < step_s ? now - waited->last : step_s;
    waited->last = now;
    if (limit->report_s > 0 && waited->seconds >= limit->report_s && !waited->reported) {
        waited->reported = true;
        limit->report(limit->context, waited->seconds);
    }
    if (limit->seconds > 0 && waited->seconds >= limit->seconds)
        limit->expired(limit->context, own.what, own.number, waited->seconds);
    if (limit->is_over != NULL && waited->seconds >= waited->looked + look_s) {
        waited->looked = waited->seconds;
        waited->over = limit->is_over(limit->awaited, own.what, waited->over);
    }
}

static bool is_limited(void)
{
    return own.limit && (own.limit->seconds > 0 || own.limit->report_s > 0 || own.limit->is_over);
}

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static void sleep_on(mpiox_futex *word, uint32_t seen, int64_t nanoseconds)
{
    struct timespec limit = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
    /* Sequentially consistent on both sides: either the waker sees this sleeper or the kernel sees the new value. */
    atomic_fetch_add(&word->sleepers, 1);
    if (atomic_load(&word->value) == seen)
        syscall(SYS_futex, &word->value, FUTEX_WAIT, seen, &limit, NULL, 0);
    atomic_fetch_sub(&word->sleepers, 1);
}

uint32_t mpiox_wait_while(mpiox_futex *word, uint32_t old, const mpiox_idle *idle)
{
    long sleep_ns = SLEEP_FIRST_NS;
    mpiox_waited waited = {0};
    for (int step = 0;; step++) {
        uint32_t now = mpiox_futex_get(word);
        if (now != old)
            return now;
        if (step < PAUSES) {
            pause_cpu();
            continue;
        }
        if (idle && idle->work && idle->work(idle->context)) {
            step = 0;
            sleep_ns = SLEEP_FIRST_NS;
            waited = (mpiox_waited){0};
            continue;
        }
        if (step < PAUSES + YIELDS) {
            sched_yield();
            continue;
        }
        if (is_limited())
            count_step(&waited, mpiox_now());
        sleep_on(word, old, sleep_ns);
        if (sleep_ns < SLEEP_MAX_NS)
            sleep_ns *= 2;
        if (sleep_ns > SLEEP_MAX_NS)
            sleep_ns = SLEEP_MAX_NS;
    }
}

uint32_t mpiox_wait_at_most(mpiox_futex *word, uint32_t old, double seconds)
{
    double end = 0;
    for (int step = 0;; step++) {
        const uint32_t now = mpiox_futex_get(word);
        if (now != old)
            return now;
        if (step < PAUSES) {
            pause_cpu();
            continue;
        }
        if (step < PAUSES + YIELDS) {
            sched_yield();
            continue;
        }
        const double time = mpiox_now();
        if (end == 0)
            end = time + seconds;
        if (time >= end)
            return old;
        sleep_on(word, old, (int64_t)((end - time) * 1e9) + 1);
    }
}

/* Sleep for a hundredth of what has been waited, from 20 to 200 microseconds. The kernel may add a thread's timer
 * slack to a sleep, 50 microseconds by default, which is more than what is waited for takes. */
static void nap(double waited_s)
{
    enum { NAP_FIRST_NS = 20 * 1000, NAP_MAX_NS = 200 * 1000, SLACK_NS = 1000 };
    const double wanted_ns = waited_s * 1e9 / 100;
    const struct timespec length = {0, wanted_ns < NAP_FIRST_NS ? NAP_FIRST_NS
                                       : wanted_ns > NAP_MAX_NS ? NAP_MAX_NS
                                                                : (long)wanted_ns};
    const int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, SLACK_NS);
    nanosleep(&length, NULL);
    if (slack > 0)
        prctl(PR_SET_TIMERSLACK, slack);
}

/* A thread that yields runs after all others, a time slice each, and the event may have come long before. If that has
 * happened a moment ago the process sleeps at once, and is woken in time. */
void mpiox_wait_backoff(mpiox_backoff *backoff)
{
    static const double yielding_s = 200e-6, long_s = 50e-6, moment_s = 0.1;
    static _Thread_local double crowded_until;
    const double now = mpiox_now();
    if (backoff->since == 0)
        backoff->since = now;
    if (is_limited())
        count_step(&backoff->waited, now);
    if (now < crowded_until || now - backoff->since >= yielding_s) {
        nap(now - backoff->since);
        return;
    }
    sched_yield();
    const double back = mpiox_now();
    if (back - now > long_s)
        crowded_until = back + moment_s;
}

void mpiox_wait_reach(mpiox_futex *word, uint32_t target, const mpiox_idle *idle)
{
    uint32_t now = mpiox_futex_get(word);
    while ((int32_t)(now - target) < 0)
        now = mpiox_wait_while(word, now, idle);
}

void mpiox_wait_make_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

void mpiox_wait_condition(pthread_cond_t *condition, pthread_mutex_t *lock, double until)
{
    const double latest = mpiox_now() + asleep_s, end = until < latest ? until : latest;
    const struct timespec at = {(time_t)end, (long)((end - (double)(time_t)end) * 1e9)};
    pthread_cond_timedwait(condition, lock, &at);
}

static void wake(mpiox_futex *word)
{
    if (atomic_load(&word->sleepers))
        syscall(SYS_futex, &word->value, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void mpiox_futex_set(mpiox_futex *word, uint32_t value)
{
    atomic_store(&word->value, value);
    wake(word);
}

void mpiox_futex_add(mpiox_futex *word)
{
    atomic_fetch_add(&word->value, 1);
    wake(word);
}
