/*
 * mpiox_live.c - see mpiox_live.h.
 *
 * A process without a page adds everything to one entry of its own memory, so that accesses need not check for a page.
 * The descriptor is never closed, nor used once the page is mapped: a program that closes descriptors which are not its
 * own can only take the page from its readers.
 */
#include "mpiox_live.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpiox_peer.h"
#include "mpiox_segment.h"
#include "mpiox_stats_identity.h"
#include "mpiox_text.h"
#include "mpiox_wait.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool begun;
static mpiox_live_page *page; /* NULL: none */
static mpiox_live_file *files;
static int first_free; /* no entry before it is free */
static mpiox_live_counters unseen;

/* ---- making the page --------------------------------------------------------------------------------------------- */

static bool is_wanted(void)
{
    const char *value = getenv("MPIOX_LIVE");

    return value == NULL || !mpiox_text_is_off(value);
}

/* A page of so many entries, its size sealed; NULL: there is none to be had. */
static mpiox_live_page *map(int entries, bool reserve)
{
    const int64_t bytes = MPIOX_LIVE_HEAD_BYTES + (int64_t)entries * (int64_t)sizeof *files;
    const int fd = mpiox_segment_allows(bytes) ? memfd_create(MPIOX_LIVE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
    void *base = MAP_FAILED;

    if (fd < 0)
        return NULL;
    if (ftruncate(fd, bytes) == 0 && (!reserve || posix_fallocate(fd, 0, bytes) == 0) &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        base = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) {
        close(fd);
        return NULL;
    }
    munlock(base, (size_t)bytes); /* under mlockall(MCL_FUTURE) all of it would take memory, used or not */
    return base;
}

static void put(char *field, size_t bytes, const char *text)
{
    snprintf(field, bytes, "%s", text != NULL ? text : "");
}

static void set_identity(mpiox_live_page *to, int rank, int ranks, int entries)
{
    mpiox_stats_identity identity;

    mpiox_stats_identity_get(&identity);
    memcpy(to->magic, MPIOX_LIVE_MAGIC, sizeof to->magic);
    to->version = MPIOX_LIVE_VERSION;
    to->head_bytes = MPIOX_LIVE_HEAD_BYTES;
    to->file_bytes = (int32_t)sizeof *files;
    to->files = entries;
    to->pid = getpid();
    to->start_ticks = mpiox_peer_began(getpid());
    to->started_ns = (int64_t)(1e9 * identity.start);
    to->rank = rank;
    to->ranks = ranks;
    gethostname(to->host, sizeof to->host - 1);
    put(to->program, sizeof to->program, identity.program);
    put(to->scheduler_job, sizeof to->scheduler_job, identity.scheduler_job);
    put(to->world, sizeof to->world, getenv("PMIX_NAMESPACE"));
    put(to->command, sizeof to->command, identity.command);
    atomic_store_explicit(&to->state, MPIOX_LIVE_RUNNING, memory_order_release);
}

void mpiox_live_begin(int rank, int ranks)
{
    pthread_mutex_lock(&lock);
    if (!begun && is_wanted()) {
        const bool strict = mpiox_segment_strict_commitment();
        int entries = strict ? MPIOX_LIVE_FILES_STRICT : MPIOX_LIVE_FILES;

        page = map(entries, strict);
        if (page == NULL && !strict) { /* as ulimit -f may have it */
            entries = MPIOX_LIVE_FILES_STRICT;
            page = map(entries, false);
        }
        if (page != NULL) {
            files = (mpiox_live_file *)((char *)page + MPIOX_LIVE_HEAD_BYTES);
            set_identity(page, rank, ranks, entries);
        }
    }
    begun = true;
    pthread_mutex_unlock(&lock);
}

void mpiox_live_end(void)
{
    if (page != NULL)
        atomic_store_explicit(&page->state, MPIOX_LIVE_FINALIZED, memory_order_release);
}

/* ---- what changes ------------------------------------------------------------------------------------------------ */

/* Under the lock. Odd before what follows is seen, and even after it. */
static void change_begins(void)
{
    atomic_fetch_add_explicit(&page->change, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static void change_ends(void)
{
    atomic_fetch_add_explicit(&page->change, 1, memory_order_release);
}

void mpiox_live_delegates(const char *service, const char *arbiter)
{
    pthread_mutex_lock(&lock);
    if (page != NULL) {
        change_begins();
        put(page->service, sizeof page->service, service);
        put(page->arbiter, sizeof page->arbiter, arbiter);
        change_ends();
    }
    pthread_mutex_unlock(&lock);
}

/* Under the lock; NULL: all are taken. */
static mpiox_live_file *take_entry(void)
{
    while (first_free < page->files && atomic_load_explicit(&files[first_free].opened_ns, memory_order_relaxed) != 0)
        first_free++;
    if (first_free == page->files)
        return NULL;
    if (atomic_load_explicit(&page->files_end, memory_order_relaxed) <= first_free)
        atomic_store_explicit(&page->files_end, first_free + 1, memory_order_relaxed);
    return &files[first_free++];
}

static void put_path(char *field, const char *path)
{
    const size_t length = strlen(path);

    if (length < MPIOX_LIVE_PATH)
        memcpy(field, path, length + 1);
    else /* its end shows which file it is */
        snprintf(field, MPIOX_LIVE_PATH, "...%s", path + length - (MPIOX_LIVE_PATH - 4));
}

mpiox_live_counters *mpiox_live_open(const char *path)
{
    mpiox_live_counters *counters = &unseen;

    pthread_mutex_lock(&lock);
    if (page != NULL) {
        change_begins();
        mpiox_live_file *file = take_entry();

        if (file != NULL) {
            put_path(file->path, path);
            atomic_store_explicit(&file->opened_ns, mpiox_wall_ns(), memory_order_relaxed);
        } else {
            atomic_fetch_add_explicit(&page->unlisted, 1, memory_order_relaxed);
        }
        counters = file != NULL ? &file->counters : &page->rest;
        atomic_fetch_add_explicit(&page->opened, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&page->open, 1, memory_order_relaxed);
        change_ends();
    }
    pthread_mutex_unlock(&lock);
    return counters;
}

static void move_to_rest(atomic_int_least64_t *from, atomic_int_least64_t *rest)
{
    atomic_fetch_add_explicit(rest, atomic_exchange_explicit(from, 0, memory_order_relaxed), memory_order_relaxed);
}

void mpiox_live_close(mpiox_live_counters *counters)
{
    if (counters == NULL || counters == &unseen)
        return;
    pthread_mutex_lock(&lock);
    change_begins();
    atomic_fetch_sub_explicit(&page->open, 1, memory_order_relaxed);
    if (counters == &page->rest) {
        atomic_fetch_sub_explicit(&page->unlisted, 1, memory_order_relaxed);
    } else {
        mpiox_live_file *file = (mpiox_live_file *)counters; /* its first member */
        const int index = (int)(file - files);

        for (int way = 0; way < 2; way++) {
            move_to_rest(&file->counters.bytes[way], &page->rest.bytes[way]);
            move_to_rest(&file->counters.calls[way], &page->rest.calls[way]);
        }
        atomic_store_explicit(&file->opened_ns, 0, memory_order_relaxed);
        first_free = index < first_free ? index : first_free;
    }
    change_ends();
    pthread_mutex_unlock(&lock);
}
