/*
 * mpiox_trace_descriptors.c - see mpiox_trace_descriptors.h.
 *
 * Algorithm. read(2) and write(2) have no offset: the tracer follows the position from open to lseek to transfer, once
 *            for all duplicates (dup(2)) of a descriptor. If others move it, too (O_APPEND, a fork), the tracer queries
 *            the kernel after the transfer. Look-ups take no lock; changes do. Other threads read what a change writes:
 *            all of it is atomic.
 */
#include "mpiox_trace_descriptors.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>

#include "mpiox_trace_lock.h"
#include "mpiox_trace_streams.h"
#include "mpiox_trace_system.h"
#include "mpiox_tracefile.h"

enum { DESCRIPTORS = 65536, HANDLES = 8192, MAPPINGS = 1024 };

typedef struct description {
    _Atomic int32_t file;
    atomic_bool ask; /* the kernel for the position: other processes, or calls that are not recorded, move it, too */
    atomic_int uses;
    _Atomic int64_t position;
} description;

typedef struct handle {
    _Atomic int64_t key; /* 0: never used, -1: free again */
    _Atomic int32_t file;
} handle;

static _Atomic(description *) descriptors[DESCRIPTORS];
static description pool[DESCRIPTORS];
static int32_t used, free_list[DESCRIPTORS], n_free;
static atomic_int highest;
static handle handles[HANDLES];
static struct {
    int64_t start, end;
} mappings[MAPPINGS]; /* further ones are found where they begin */
static atomic_int n_mappings;

static description *of(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS ? atomic_load_explicit(&descriptors[fd], memory_order_acquire) : NULL;
}

int32_t mpiox_trace_descriptor_file(int fd)
{
    const description *d = of(fd);

    return d != NULL ? d->file : 0;
}

static void set(int fd, description *d)
{
    description *before = atomic_exchange(&descriptors[fd], d);

    if (fd >= highest)
        highest = fd + 1;
    if (before != NULL && atomic_fetch_sub(&before->uses, 1) == 1)
        free_list[n_free++] = (int32_t)(before - pool);
}

void mpiox_trace_descriptor_open(int fd, int32_t file, int flags)
{
    if (fd < 0 || fd >= DESCRIPTORS)
        return;
    if (file <= 0) {
        mpiox_trace_descriptor_close(fd);
        return;
    }
    mpiox_trace_lock();
    set(fd, NULL);
    description *d = n_free > 0 ? &pool[free_list[--n_free]] : used < DESCRIPTORS ? &pool[used++] : NULL;
    if (d != NULL) {
        d->file = file;
        d->ask = (flags & O_APPEND) != 0;
        atomic_store(&d->uses, 1);
        atomic_store(&d->position, 0);
        set(fd, d);
    }
    mpiox_trace_unlock();
}

void mpiox_trace_descriptor_close(int fd)
{
    if (of(fd) == NULL)
        return;
    mpiox_trace_lock();
    set(fd, NULL);
    mpiox_trace_unlock();
}

void mpiox_trace_descriptor_copy(int from, int to)
{
    if (from == to || to < 0 || to >= DESCRIPTORS)
        return;
    mpiox_trace_lock();
    description *d = of(from);
    if (d != NULL)
        atomic_fetch_add(&d->uses, 1);
    set(to, d);
    mpiox_trace_unlock();
}

int64_t mpiox_trace_descriptor_advance(int fd, int64_t moved)
{
    description *d = of(fd);

    if (d == NULL || moved < 0)
        return MPIOX_TRACEFILE_NONE;
    if (d->ask) {
        mpiox_trace_streams_disturb();
        const int64_t now = mpiox_trace_position(fd);

        return now < moved ? MPIOX_TRACEFILE_NONE : now - moved;
    }
    return atomic_fetch_add_explicit(&d->position, moved, memory_order_relaxed);
}

void mpiox_trace_descriptor_seek(int fd, int64_t position)
{
    description *d = of(fd);

    if (d != NULL && d->ask)
        mpiox_trace_streams_disturb();
    if (d != NULL && position >= 0)
        atomic_store_explicit(&d->position, position, memory_order_relaxed);
}

void mpiox_trace_descriptor_ask(int fd)
{
    description *d = of(fd);

    if (d != NULL)
        d->ask = true;
}

void mpiox_trace_descriptors_share(void)
{
    for (int fd = 0; fd < highest; fd++) {
        description *d = of(fd);

        if (d != NULL)
            d->ask = true;
    }
    mpiox_trace_streams_share();
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

static uint32_t slot_of(int64_t key)
{
    return (uint32_t)((uint64_t)key * UINT64_C(0x9e3779b97f4a7c15) >> 40) % HANDLES;
}

static handle *find_handle(int64_t key)
{
    for (uint32_t i = 0, at = slot_of(key); i < HANDLES; i++, at = (at + 1) % HANDLES) {
        const int64_t present = atomic_load_explicit(&handles[at].key, memory_order_acquire);

        if (present == key)
            return &handles[at];
        if (present == 0)
            return NULL;
    }
    return NULL;
}

int32_t mpiox_trace_handle_file(int64_t key)
{
    const handle *found = key != 0 && key != -1 ? find_handle(key) : NULL;

    return found != NULL ? atomic_load_explicit(&found->file, memory_order_relaxed) : 0;
}

void mpiox_trace_handle_open(int64_t key, int32_t file)
{
    if (key == 0 || key == -1 || file <= 0)
        return;
    mpiox_trace_lock();
    handle *slot = find_handle(key);
    for (uint32_t i = 0, at = slot_of(key); slot == NULL && i < HANDLES; i++, at = (at + 1) % HANDLES)
        if (atomic_load(&handles[at].key) == 0 || atomic_load(&handles[at].key) == -1)
            slot = &handles[at];
    if (slot != NULL) {
        atomic_store(&slot->file, file);
        atomic_store_explicit(&slot->key, key, memory_order_release);
    }
    mpiox_trace_unlock();
}

void mpiox_trace_handle_close(int64_t key)
{
    if (key == 0 || key == -1)
        return;
    mpiox_trace_lock();
    handle *slot = find_handle(key);
    if (slot != NULL)
        atomic_store(&slot->key, -1);
    while (slot != NULL && atomic_load(&slot->key) == -1 &&
           atomic_load(&handles[(slot - handles + 1) % HANDLES].key) == 0) {
        atomic_store(&slot->key, 0); /* nothing lies behind it that is found by way of it */
        slot = slot > handles ? slot - 1 : &handles[HANDLES - 1];
    }
    mpiox_trace_unlock();
}

/* ---- mappings ---------------------------------------------------------------------------------------------------- */

/* Under the lock: nothing is mapped there any more. */
static void forget_mappings(int64_t start, int64_t end)
{
    for (int i = n_mappings - 1; i >= 0; i--)
        if (mappings[i].start < end && start < mappings[i].end)
            mappings[i] = mappings[--n_mappings];
}

void mpiox_trace_mapping_open(int64_t address, int64_t bytes, int32_t file)
{
    mpiox_trace_lock();
    forget_mappings(address, address + bytes); /* what was unmapped by another call */
    if (n_mappings < MAPPINGS) {
        mappings[n_mappings].start = address;
        mappings[n_mappings++].end = address + bytes;
    }
    mpiox_trace_unlock();
    mpiox_trace_handle_open(address, file);
}

void mpiox_trace_mapping_close(int64_t address)
{
    mpiox_trace_lock();
    forget_mappings(address, address + 1);
    mpiox_trace_unlock();
    mpiox_trace_handle_close(address);
}

int64_t mpiox_trace_mapping_of(int64_t address)
{
    int64_t start = mpiox_trace_handle_file(address) != 0 ? address : 0;

    if (start != 0 || n_mappings == 0)
        return start;
    mpiox_trace_lock();
    for (int i = 0; i < n_mappings && start == 0; i++)
        if (mappings[i].start <= address && address < mappings[i].end)
            start = mappings[i].start;
    mpiox_trace_unlock();
    return start;
}
