/*
 * mpiox_storage_pool.c - see mpiox_storage_pool.h.
 *
 * Nearly every access finds its descriptor open, and this is the frequent case: it pins and unpins the descriptor by
 * one atomic addition each, without the lock and without a system call. `pins` counts the users of the descriptor;
 * closing sets it from 0 to CLOSED, so that the next user finds a negative number and opens it again under the lock.
 */
#include "mpiox_storage_pool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_storage_internal.h"
#include "mpiox_wait.h"

enum { SHARE = 16, LEAST = 4, MOST = 1024, SCARCE = 2, MARGIN = 16, SEARCHED = 1 << 16, CLOSED = INT_MIN / 2 };

struct mpiox_storage_pooled {
    mpiox_storage *storage;
    char *path;
    int flags;
    atomic_int pins; /* < 0: there is no descriptor */
    bool only_writes;
    int other;     /* another owner's descriptor of the file in this process, this handle's alone; -1: no search yet */
    bool stays;    /* there is none: this one is not closed */
    int sys_errno; /* that a close() has met */
    dev_t device;
    ino_t inode;
    atomic_uint_least64_t used;
    struct mpiox_storage_pooled *next;
};
typedef struct mpiox_storage_pooled pooled;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unpinned; /* made with the first handle */
static pooled *all;
static atomic_int open_count; /* of them that have a descriptor */
static atomic_uint_least64_t uses;
static bool scarce;             /* at the last check the limit was near */
static atomic_int capacity;     /* how many of them may have one, at the last check */
static atomic_int waiting;      /* threads that want one */
static atomic_int reserve = -1; /* so that one of them can always be opened again, whatever the program has taken */

static int64_t limit(void)
{
    struct rlimit r;
    return getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < INT32_MAX ? (int64_t)r.rlim_cur : INT32_MAX;
}

/* The limit changes only when a program sets it, hardly ever: querying it is a system call, which accesses do not make.
 * Openings do. */
static int look(void)
{
    const int64_t share = limit() / SHARE;
    capacity = scarce ? SCARCE : share < LEAST ? LEAST : share > MOST ? MOST : (int)share;
    return capacity;
}

/* ---- who else has the file --------------------------------------------------------------------------------------- */

static bool is_same(const pooled *p, int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && status.st_dev == p->device && status.st_ino == p->inode;
}

/* Could the handle use a duplicate of this descriptor? Not of one that appends, whatever the offset, or that takes
 * whole blocks only. */
static bool stands_in(const pooled *p, int fd)
{
    const int flags = fcntl(fd, F_GETFL), mode = flags & O_ACCMODE;
    return flags >= 0 && (flags & (O_APPEND | O_DIRECT | O_PATH)) == 0 &&
           (mode == O_RDWR || mode == (p->flags & O_ACCMODE) || (p->only_writes && mode == O_WRONLY)) && is_same(p, fd);
}

/* A handle's own, or what another handle of the same file counts on: duplicates of one descriptor share its locks. */
static bool is_taken(const pooled *p, int fd)
{
    for (const pooled *q = all; q; q = q->next)
        if (q->storage->fd == fd || (q != p && q->other == fd && q->device == p->device && q->inode == p->inode))
            return true;
    return false;
}

/* As a rule the MPI library's, which opened the file just before. */
static bool find_other(pooled *p)
{
    const int64_t last = limit() < SEARCHED ? limit() : SEARCHED;
    if (p->other >= 0 && stands_in(p, p->other))
        return true;
    p->other = -1;
    for (int fd = 0; p->other < 0 && fd < last; fd++)
        if (stands_in(p, fd) && !is_taken(p, fd))
            p->other = fd;
    return p->other >= 0;
}

/* ---- closing ----------------------------------------------------------------------------------------------------- */

static void close_descriptor(pooled *p)
{
    assert(p->storage->fd >= 0 && p->pins <= 0); /* no thread uses it */
    if (close(p->storage->fd) != 0 && errno != EINTR && p->sys_errno == 0)
        p->sys_errno = errno;
    p->storage->fd = -1;
    open_count--;
}

/* Close it until it is used again; false: somebody uses it, or it would not come back for sure. */
static bool park(pooled *p)
{
    int unused = 0;
    p->stays = p->stays || !find_other(p);
    if (p->stays || !atomic_compare_exchange_strong(&p->pins, &unused, CLOSED))
        return false;
    close_descriptor(p);
    return true;
}

/* Close the one that was not used for longest. False: all are in use, or have to stay. */
static bool park_one(void)
{
    for (;;) {
        pooled *oldest = NULL;
        for (pooled *p = all; p; p = p->next)
            if (p->pins == 0 && !p->stays && (!oldest || p->used < oldest->used))
                oldest = p;
        if (!oldest || park(oldest))
            return oldest != NULL;
    }
}

static void park_down_to(int count)
{
    while (open_count > count && park_one())
        continue;
}

static int any_descriptor(void)
{
    return mpiox_storage_descriptor("/", O_PATH);
}

/* As long as there are handles. */
static void keep_reserve(void)
{
    while (all && reserve < 0) {
        const int fd = any_descriptor();
        reserve = fd;
        if (fd < 0 && !park_one())
            return;
    }
}

static bool use_reserve(void)
{
    const bool had = reserve >= 0;
    if (had)
        close(reserve);
    reserve = -1;
    return had;
}

void mpiox_storage_make_way(void)
{
    pthread_mutex_lock(&lock);
    if (open_count > SCARCE || scarce) {
        const int probe = any_descriptor(); /* descriptors are given out from the lowest on */
        scarce = probe < 0 || probe >= limit() - MARGIN;
        if (probe >= 0)
            close(probe);
        park_down_to(look());
    }
    keep_reserve();
    pthread_mutex_unlock(&lock);
}

/* The lowest number that is free, and enough of those behind it: what a process with few open files has. One is tried,
 * since the system may have none left. */
static bool has_plenty(int descriptors)
{
    enum { LOOKS = 64 };
    struct pollfd next[LOOKS];
    const int probe = any_descriptor();
    const int64_t most = limit() - 1 - probe;
    const int looks = most < 0 ? 0 : most < LOOKS ? (int)most : LOOKS;
    int n = 1;
    if (probe < 0)
        return false;
    for (int i = 0; i < looks; i++)
        next[i] = (struct pollfd){.fd = probe + 1 + i};
    const bool looked = poll(next, (nfds_t)looks, 0) >= 0;
    for (int i = 0; looked && i < looks; i++)
        n += (next[i].revents & POLLNVAL) != 0;
    close(probe);
    return n >= descriptors;
}

bool mpiox_storage_has_room(int descriptors)
{
    int found[32], n = 0;
    if (has_plenty(descriptors))
        return true;
    pthread_mutex_lock(&lock);
    while (n < descriptors && n < (int)(sizeof found / sizeof *found)) {
        const int fd = any_descriptor();
        if (fd >= 0)
            found[n++] = fd;
        else if (!park_one())
            break;
    }
    const bool all_found = n == descriptors;
    while (n > 0)
        close(found[--n]);
    pthread_mutex_unlock(&lock);
    return all_found;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* open(2), or (path NULL) a duplicate of `other`; when the process has no descriptor left, one of the pool's is closed
 * for it. */
static int open_for_one(const char *path, int flags, int other)
{
    int fd;
    park_down_to(look() - 1);
    do {
        fd = path ? mpiox_storage_descriptor(path, flags) : fcntl(other, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (!path && fd < 0)
            fd = -errno;
    } while (fd == -EMFILE && (park_one() || use_reserve()));
    return fd;
}

int mpiox_storage_pool_open(const char *path, int flags)
{
    pthread_mutex_lock(&lock);
    const int fd = open_for_one(path, flags, -1);
    pthread_mutex_unlock(&lock);
    return fd;
}

/* By a name, if it leads to the file: what else it may lead to by now, a FIFO or a device, is better not opened. */
static int open_by_name(const pooled *p, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || status.st_dev != p->device || status.st_ino != p->inode)
        return -ENOENT;
    const int fd = open_for_one(path, p->flags, -1);
    if (fd < 0 || is_same(p, fd))
        return fd;
    close(fd);
    return -ENOENT;
}

/* A duplicate comes last: it shares more with the other one than the file. */
static int open_again(pooled *p)
{
    char path[64];
    int fd = open_by_name(p, p->path);
    if (fd >= 0 || fd == -EMFILE || fd == -ENFILE || !find_other(p))
        return fd;
    snprintf(path, sizeof path, "/proc/self/fd/%d", p->other);
    fd = open_by_name(p, path);
    return fd >= 0 || fd == -EMFILE || fd == -ENFILE ? fd : open_for_one(NULL, 0, p->other);
}

/* A descriptor that may be closed when a request has ended with it. */
static bool is_any_in_use(void)
{
    for (const pooled *p = all; p; p = p->next)
        if (p->pins > 0 && !p->stays)
            return true;
    return false;
}

/* 0 or -errno. Who unpins a descriptor after `waiting` was raised sees that; who did so before is seen here. */
static int bring_back(pooled *p)
{
    waiting++;
    int fd = open_again(p);
    while (fd == -EMFILE && p->storage->fd < 0 && is_any_in_use()) { /* for as long as a request takes */
        mpiox_wait_condition(&unpinned, &lock, INFINITY);
        if (p->storage->fd < 0)
            fd = open_again(p);
    }
    waiting--;
    if (p->storage->fd >= 0) /* another thread has been faster */
        return 0;
    if (fd < 0)
        return fd;
    if (p->storage->exact)
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    p->storage->fd = fd;
    open_count++;
    p->pins -= CLOSED;
    return 0;
}

/* ---- use --------------------------------------------------------------------------------------------------------- */

static int pin_closed(pooled *p, mpiox_error *error)
{
    pthread_mutex_lock(&lock);
    const int code = p->storage->fd >= 0 ? 0 : bring_back(p);
    if (code == 0)
        p->pins++;
    pthread_mutex_unlock(&lock);
    return code == 0 ? MPIOX_OK : mpiox_error_set(error, MPIOX_E_IO, -code, -1, -1, "opening the file again");
}

int mpiox_storage_pin(mpiox_storage *storage, mpiox_error *error)
{
    pooled *p = storage->pooled;
    if (!p)
        return MPIOX_OK;
    if (open_count != 1) /* else there is nothing to compare it with */
        atomic_store_explicit(&p->used, ++uses, memory_order_relaxed);
    if (p->pins++ >= 0)
        return MPIOX_OK;
    p->pins--;
    return pin_closed(p, error);
}

void mpiox_storage_unpin(mpiox_storage *storage)
{
    pooled *p = storage->pooled;
    assert(!p || p->pins > 0);
    if (!p || --p->pins != 0 || (open_count <= capacity && waiting == 0 && reserve >= 0))
        return;
    pthread_mutex_lock(&lock);
    if (open_count > capacity)
        park(p);
    keep_reserve();
    if (waiting > 0)
        pthread_cond_broadcast(&unpinned);
    pthread_mutex_unlock(&lock);
}

static void make_unpinned(void)
{
    mpiox_wait_make_condition(&unpinned);
}

void mpiox_storage_pool_add(mpiox_storage *storage, const char *path, int flags, bool only_writes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct stat status;
    assert(storage->fd >= 0 && storage->pooled == NULL);
    pooled *p = calloc(1, sizeof *p);
    pthread_once(&once, make_unpinned);
    if (!p || fstat(storage->fd, &status) != 0 || !S_ISREG(status.st_mode) || !(p->path = strdup(path))) {
        free(p);
        return;
    }
    p->storage = storage;
    p->flags = flags;
    p->only_writes = only_writes;
    p->other = -1;
    p->device = status.st_dev;
    p->inode = status.st_ino;
    pthread_mutex_lock(&lock);
    p->used = ++uses;
    p->next = all;
    all = p;
    open_count++;
    storage->pooled = p;
    keep_reserve();
    pthread_mutex_unlock(&lock);
}

int mpiox_storage_pool_error(mpiox_storage *storage)
{
    pooled *p = storage->pooled;
    if (!p)
        return 0;
    pthread_mutex_lock(&lock);
    const int sys_errno = p->sys_errno;
    p->sys_errno = 0;
    pthread_mutex_unlock(&lock);
    return sys_errno;
}

int mpiox_storage_pool_remove(mpiox_storage *storage)
{
    pooled *p = storage->pooled, **link = &all;
    if (!p)
        return 0;
    pthread_mutex_lock(&lock);
    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    if (storage->fd >= 0)
        close_descriptor(p);
    if (all)
        keep_reserve();
    else
        use_reserve();
    pthread_cond_broadcast(&unpinned);
    pthread_mutex_unlock(&lock);
    const int sys_errno = p->sys_errno;
    storage->pooled = NULL;
    free(p->path);
    free(p);
    return sys_errno;
}
