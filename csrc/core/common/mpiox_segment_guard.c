/* mpiox_segment_guard.c - see mpiox_segment_guard.h. */
#include "mpiox_segment_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 128 }; /* guarded segments */

typedef struct guarded {
    _Atomic uintptr_t base; /* 0: free */
    int64_t bytes;
    mpiox_segment_empty empty;
    _Atomic uint8_t *lost; /* a bit for each page */
} guarded;

atomic_bool mpiox_segment_lost_some;

static guarded all[MOST];
static uintptr_t page_bytes; /* a power of two */
static struct sigaction before;

static guarded *find(uintptr_t at)
{
    for (int i = 0; i < MOST; i++) {
        const uintptr_t base = atomic_load(&all[i].base);
        if (base != 0 && at >= base && at < base + (uintptr_t)all[i].bytes)
            return &all[i];
    }
    return NULL;
}

/* Noted first: who reads what was put there finds it noted. */
static bool replace(uintptr_t at)
{
    const guarded *of = find(at);
    if (of == NULL)
        return false;
    const uintptr_t start = at & ~(page_bytes - 1), end = start + page_bytes;
    const size_t page = (start - atomic_load(&of->base)) / page_bytes;
    atomic_fetch_or(&of->lost[page / 8], (uint8_t)(1 << page % 8));
    atomic_store(&mpiox_segment_lost_some, true);
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    char *put = mmap((void *)start, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (put == MAP_FAILED)
        return false;
    const uintptr_t ones = (uintptr_t)of->empty.ones, ones_end = ones + (uintptr_t)of->empty.ones_bytes;
    const uintptr_t from = ones > start ? ones : start, to = ones_end < end ? ones_end : end;
    if (from < to)
        memset(put + (from - start), 0xff, to - from);
    if ((uintptr_t)of->empty.word >= start && (uintptr_t)of->empty.word < end)
        atomic_store(of->empty.word, of->empty.value);
    return true;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    const int saved = errno;
    if (info->si_code > 0 && replace((uintptr_t)info->si_addr)) {
        errno = saved;
        return;
    }
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else { /* when this returns */
        signal(SIGBUS, SIG_DFL);
        raise(SIGBUS);
    }
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK}, now;
    sigemptyset(&action.sa_mask);
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (sigaction(SIGBUS, NULL, &now) == 0 && now.sa_sigaction != on_bus_error)
        sigaction(SIGBUS, &action, &before);
}

void mpiox_segment_guard_again(void)
{
    if (page_bytes != 0)
        install();
}

bool mpiox_segment_guard(void *base, int64_t bytes, const mpiox_segment_empty *empty)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    guarded *free_one = NULL;
    pthread_once(&once, install);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST && free_one == NULL; i++)
        free_one = atomic_load(&all[i].base) == 0 ? &all[i] : NULL;
    _Atomic uint8_t *lost = free_one != NULL ? calloc((size_t)bytes / page_bytes / 8 + 1, 1) : NULL;
    if (lost != NULL) {
        free_one->bytes = bytes;
        free_one->empty = *empty;
        free_one->lost = lost;
        atomic_store(&free_one->base, (uintptr_t)base);
    }
    pthread_mutex_unlock(&lock);
    return lost != NULL;
}

void mpiox_segment_unguard(const void *base)
{
    guarded *of = base != NULL ? find((uintptr_t)base) : NULL;
    if (of == NULL)
        return;
    free(of->lost);
    of->lost = NULL;
    atomic_store(&of->base, 0);
}

bool mpiox_segment_is_lost(const void *start, int64_t bytes)
{
    const guarded *of = atomic_load(&mpiox_segment_lost_some) && bytes > 0 ? find((uintptr_t)start) : NULL;
    if (of == NULL)
        return false;
    const uintptr_t base = atomic_load(&of->base);
    const size_t last = ((uintptr_t)start + (uintptr_t)bytes - 1 - base) / page_bytes;
    for (size_t page = ((uintptr_t)start - base) / page_bytes; page <= last; page++) {
        if (atomic_load(&of->lost[page / 8]) & 1 << page % 8)
            return true;
    }
    return false;
}
