/* mpiox_storage_pool.c - see mpiox_storage_pool.h. */
#include "mpiox_storage_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_storage_internal.h"

enum { SHARE = 16, LEAST = 4, MOST = 1024, SCARCE = 2, MARGIN = 16, SEARCHED = 1 << 16 };

struct mpiox_storage_pooled {
    mpiox_storage *storage;
    char *path;
    int flags, pins;
    int sys_errno; /* that a close() has met */
    dev_t device;
    ino_t inode;
    uint64_t used;
    struct mpiox_storage_pooled *next;
};
typedef struct mpiox_storage_pooled pooled;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unpinned = PTHREAD_COND_INITIALIZER;
static pooled *all;
static int open_count; /* of them that have a descriptor */
static uint64_t uses;
static bool scarce;      /* the last time that somebody looked, the limit was near */
static int reserve = -1; /* so that one of them can always be opened again, whatever the program has taken */

static int64_t limit(void)
{
    struct rlimit r;
    return getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < INT32_MAX ? (int64_t)r.rlim_cur : INT32_MAX;
}

static int64_t capacity(void)
{
    const int64_t share = limit() / SHARE;
    return scarce ? SCARCE : share < LEAST ? LEAST : share > MOST ? MOST : share;
}

/* ---- closing ----------------------------------------------------------------------------------------------------- */

static void park(pooled *p)
{
    if (close(p->storage->fd) != 0 && errno != EINTR && p->sys_errno == 0)
        p->sys_errno = errno;
    p->storage->fd = -1;
    open_count--;
}

/* Close the one that was not used for longest. False: all are in use. */
static bool park_one(void)
{
    pooled *oldest = NULL;
    for (pooled *p = all; p; p = p->next)
        if (p->storage->fd >= 0 && p->pins == 0 && (!oldest || p->used < oldest->used))
            oldest = p;
    if (oldest)
        park(oldest);
    return oldest != NULL;
}

static void park_down_to(int64_t count)
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
    while (all && reserve < 0 && (reserve = any_descriptor()) < 0 && park_one())
        continue;
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
        park_down_to(capacity());
    }
    keep_reserve();
    pthread_mutex_unlock(&lock);
}

bool mpiox_storage_is_scarce(int descriptors)
{
    const int probe = any_descriptor(); /* they are given out from the lowest on */
    if (probe >= 0)
        close(probe);
    return probe < 0 || probe >= limit() - descriptors;
}

bool mpiox_storage_has_room(int descriptors)
{
    int found[32], n = 0;
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

/* open(2); when the process has no descriptor left, one of the pool's is closed for it. */
static int open_for_one(const char *path, int flags)
{
    int fd;
    park_down_to(capacity() - 1);
    do
        fd = mpiox_storage_descriptor(path, flags);
    while (fd == -EMFILE && (park_one() || use_reserve()));
    return fd;
}

int mpiox_storage_pool_open(const char *path, int flags)
{
    pthread_mutex_lock(&lock);
    const int fd = open_for_one(path, flags);
    pthread_mutex_unlock(&lock);
    return fd;
}

static bool is_same(const pooled *p, int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && status.st_dev == p->device && status.st_ino == p->inode;
}

static int open_same(const pooled *p, const char *path)
{
    const int fd = open_for_one(path, p->flags);
    if (fd < 0 || is_same(p, fd))
        return fd;
    close(fd);
    return -ENOENT;
}

/* By somebody else's descriptor of the file in this process. */
static int open_by_other(const pooled *p)
{
    const int64_t last = limit() < SEARCHED ? limit() : SEARCHED;
    char path[64];
    for (int other = 0; other < last; other++) {
        if (!is_same(p, other))
            continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", other);
        const int fd = open_same(p, path);
        if (fd >= 0)
            return fd;
    }
    return -ENOENT;
}

/* 0 or -errno. */
static int bring_back(pooled *p)
{
    int fd = open_same(p, p->path);
    while (fd == -EMFILE && open_count > 0 && p->storage->fd < 0) { /* all are in use, for as long as a request takes */
        pthread_cond_wait(&unpinned, &lock);
        if (p->storage->fd < 0)
            fd = open_same(p, p->path);
    }
    if (p->storage->fd >= 0) /* another thread has been faster */
        return 0;
    if (fd < 0 && fd != -EMFILE && fd != -ENFILE)
        fd = open_by_other(p);
    if (fd < 0)
        return fd;
    if (p->storage->exact)
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    p->storage->fd = fd;
    open_count++;
    return 0;
}

/* ---- use --------------------------------------------------------------------------------------------------------- */

int mpiox_storage_pin(mpiox_storage *storage, mpiox_error *error)
{
    pooled *p = storage->pooled;
    if (!p)
        return MPIOX_OK;
    pthread_mutex_lock(&lock);
    p->pins++;
    p->used = ++uses;
    const int code = storage->fd >= 0 ? 0 : bring_back(p);
    if (code != 0)
        p->pins--;
    pthread_mutex_unlock(&lock);
    return code == 0 ? MPIOX_OK : mpiox_error_set(error, MPIOX_E_IO, -code, -1, -1, "opening the file again");
}

void mpiox_storage_unpin(mpiox_storage *storage)
{
    pooled *p = storage->pooled;
    if (!p)
        return;
    pthread_mutex_lock(&lock);
    p->pins--;
    if (p->pins == 0 && open_count > capacity())
        park(p);
    keep_reserve();
    if (p->pins == 0)
        pthread_cond_broadcast(&unpinned);
    pthread_mutex_unlock(&lock);
}

void mpiox_storage_pool_add(mpiox_storage *storage, const char *path, int flags)
{
    struct stat status;
    pooled *p = calloc(1, sizeof *p);
    if (!p || fstat(storage->fd, &status) != 0 || !(p->path = strdup(path))) {
        free(p);
        return;
    }
    p->storage = storage;
    p->flags = flags;
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
        park(p);
    if (all)
        keep_reserve();
    else
        use_reserve();
    pthread_mutex_unlock(&lock);
    const int sys_errno = p->sys_errno;
    storage->pooled = NULL;
    free(p->path);
    free(p);
    return sys_errno;
}
