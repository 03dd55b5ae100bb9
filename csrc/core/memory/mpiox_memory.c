/*
 * mpiox_memory.c - which drivers of GPUs the process has loaded, and the staging buffers of their memory.
 *
 * Problem.    A driver may be loaded at any time, by any library of the program, and nobody announces it.
 * Algorithm.  The dynamic linker counts the libraries that it has loaded. Where the number has changed, the names of
 *             the libraries are read, and a driver's functions are taken. Threads that come meanwhile do the same, each
 *             for itself: none waits for another, which may be inside of dlopen(), and none goes on without a driver
 *             that is there.
 *             Staging that is given back stays in a list, with its pinned buffers: pinning takes as long as copying
 *             many megabytes. Where all of it is too small for an access, one goes before the access makes its own.
 * Guarantees. No driver is loaded or initialised here. The list is as long as the most accesses at once have been.
 */
#include "mpiox_memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpiox_wait.h"

static const double look_every_s = 0.05;
static const int64_t most_reused = 64 * 1024 * 1024; /* larger buffers, as of long atomic accesses, go at once */
static const mpiox_memory_kind *const kinds[] = {&mpiox_memory_cuda, &mpiox_memory_hip, &mpiox_memory_level_zero};
enum { KINDS = sizeof kinds / sizeof *kinds };

_Atomic double mpiox_memory_next_look;
atomic_bool mpiox_memory_loaded, mpiox_memory_mapped;

static atomic_ullong libraries; /* loaded so far, when the names were read */
static atomic_bool usable[KINDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list, and the taking of functions */
static mpiox_staging *given_back;

/* ---- drivers ----------------------------------------------------------------------------------------------------- */

static int count_loaded(struct dl_phdr_info *info, size_t bytes, void *count)
{
    (void)bytes;
    *(unsigned long long *)count = info->dlpi_adds;
    return 1;
}

/* paths[k]: of driver k, the linker's text, which stays as long as the library does. */
static int find_drivers(struct dl_phdr_info *info, size_t bytes, void *paths)
{
    const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;
    (void)bytes;
    for (int k = 0; k < KINDS; k++)
        if (strncmp(name, kinds[k]->library, strlen(kinds[k]->library)) == 0)
            ((const char **)paths)[k] = info->dlpi_name;
    return 0;
}

static void try_driver(int k, const char *path)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD), *functions[MPIOX_MEMORY_FUNCTIONS];
    if (library == NULL) /* unloaded meanwhile */
        return;
    bool taken = true;
    for (int i = 0; kinds[k]->functions[i] != NULL && taken; i++)
        taken = (functions[i] = dlsym(library, kinds[k]->functions[i])) != NULL;
    pthread_mutex_lock(&lock);
    taken = taken && !atomic_load(&usable[k]);
    if (taken) {
        kinds[k]->take(functions);
        atomic_store(&usable[k], true); /* with the handle: the driver stays */
        if (kinds[k]->is_mapped)
            atomic_store(&mpiox_memory_mapped, true);
        atomic_store(&mpiox_memory_loaded, true);
    }
    pthread_mutex_unlock(&lock);
    if (!taken)
        dlclose(library);
}

void mpiox_memory_look(double now)
{
    unsigned long long loaded;
    dl_iterate_phdr(count_loaded, &loaded);
    if (loaded != atomic_load_explicit(&libraries, memory_order_relaxed)) {
        const char *paths[KINDS] = {NULL};
        dl_iterate_phdr(find_drivers, paths);
        for (int k = 0; k < KINDS; k++)
            if (paths[k] != NULL && !atomic_load(&usable[k]))
                try_driver(k, paths[k]);
        atomic_store_explicit(&libraries, loaded, memory_order_relaxed);
    }
    atomic_store_explicit(&mpiox_memory_next_look, now + look_every_s, memory_order_relaxed);
}

bool mpiox_memory_find(const void *pointer, mpiox_device *out)
{
    for (int k = 0; k < KINDS; k++)
        if (atomic_load(&usable[k]) && kinds[k]->find(pointer, out)) {
            out->kind = kinds[k];
            return true;
        }
    return false;
}

/* ---- staging ----------------------------------------------------------------------------------------------------- */

/* The driver's name of the result is what a user finds in its manual. */
static int refused(const mpiox_memory_kind *kind, int result, const char *what, mpiox_error *error)
{
    char text[sizeof error->what];
    snprintf(text, sizeof text, "%s %s memory (%.60s)", what, kind->name, kind->result_name(result));
    return mpiox_error_set(error, MPIOX_E_DEVICE, 0, -1, -1, text);
}

static int failed(mpiox_staging *staging, int result, const char *what, mpiox_error *error)
{
    staging->broken = true;
    return refused(staging->device.kind, result, what, error);
}

static void destroy(mpiox_staging *staging)
{
    const mpiox_device *device = &staging->device;
    if (staging->queue != NULL)
        mpiox_memory_queue_free(device, staging->queue);
    for (int i = 0; i < MPIOX_STAGING_BUFFERS; i++) {
        if (staging->pinned[i])
            mpiox_memory_unpin(device, staging->buffers[i]);
        if (staging->buffers[i] != NULL)
            munmap(staging->buffers[i], (size_t)staging->bytes);
    }
    free(staging);
}

static mpiox_staging *create(const mpiox_device *device, int64_t bytes, mpiox_error *error)
{
    mpiox_staging *staging = calloc(1, sizeof *staging);
    const int64_t page = sysconf(_SC_PAGESIZE);
    int result = 0;
    if (staging != NULL) {
        staging->device = *device;
        staging->bytes = (bytes + page - 1) / page * page;
        for (int i = 0; i < MPIOX_STAGING_BUFFERS; i++) {
            void *buffer = mmap(NULL, (size_t)staging->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                0);
            staging->buffers[i] = buffer == MAP_FAILED ? NULL : buffer;
        }
    }
    if (staging == NULL || staging->buffers[0] == NULL || staging->buffers[1] == NULL) {
        if (staging != NULL)
            destroy(staging);
        mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, bytes, "allocating staging for device memory");
        return NULL;
    }
    for (int i = 0; i < MPIOX_STAGING_BUFFERS; i++) /* refused: copies are slower, and as right */
        staging->pinned[i] = mpiox_memory_pin(device, staging->buffers[i], staging->bytes);
    if ((result = mpiox_memory_queue_create(device, &staging->queue)) != 0) {
        failed(staging, result, "making a queue for", error);
        staging->queue = NULL;
        destroy(staging);
        return NULL;
    }
    return staging;
}

static bool is_of(const mpiox_staging *staging, const mpiox_device *device)
{
    return staging->device.kind == device->kind && staging->device.context == device->context &&
           staging->device.ordinal == device->ordinal;
}

/* Under the lock: where in the list there is staging of a device, of so many bytes at least; NULL: nowhere. */
static mpiox_staging **place(const mpiox_device *device, int64_t bytes)
{
    for (mpiox_staging **at = &given_back; *at != NULL; at = &(*at)->next)
        if (is_of(*at, device) && (*at)->bytes >= bytes)
            return at;
    return NULL;
}

mpiox_staging *mpiox_staging_take(const mpiox_device *device, int64_t bytes, mpiox_error *error)
{
    if (device->failure == MPIOX_MEMORY_MIXED) {
        mpiox_error_set(error, MPIOX_E_DEVICE, 0, -1, -1, "one datatype with memory of the host and of a GPU");
        return NULL;
    }
    if (device->failure != 0) {
        refused(device->kind, device->failure, "asking about", error);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    mpiox_staging **at = place(device, bytes);
    if (at == NULL)
        at = place(device, 0);
    mpiox_staging *found = at != NULL ? *at : NULL;
    if (found != NULL)
        *at = found->next;
    pthread_mutex_unlock(&lock);
    if (found != NULL && found->bytes < bytes) {
        destroy(found);
        found = NULL;
    }
    if (found == NULL)
        return create(device, bytes, error);
    found->spent_s = 0;
    return found;
}

void mpiox_staging_give(mpiox_staging *staging)
{
    if (staging == NULL)
        return;
    if (mpiox_staging_wait(staging, NULL) != MPIOX_OK || staging->broken || staging->bytes > most_reused) {
        destroy(staging);
        return;
    }
    pthread_mutex_lock(&lock);
    staging->next = given_back;
    given_back = staging;
    pthread_mutex_unlock(&lock);
}

int mpiox_staging_copy(mpiox_staging *staging, const mpiox_memory_run *run, void *host, bool to_device,
                       mpiox_error *error)
{
    const mpiox_device *device = &staging->device;
    const double begun = mpiox_now();
    const int result = mpiox_memory_queue_copy(device, staging->queue, run, host, to_device);
    staging->spent_s += mpiox_now() - begun;
    return result == 0 ? MPIOX_OK : failed(staging, result, to_device ? "copying to" : "copying from", error);
}

int mpiox_staging_wait(mpiox_staging *staging, mpiox_error *error)
{
    const mpiox_device *device = &staging->device;
    const double begun = mpiox_now();
    const int result = mpiox_memory_queue_wait(device, staging->queue);
    staging->spent_s += mpiox_now() - begun;
    return result == 0 ? MPIOX_OK : failed(staging, result, "waiting for copies of", error);
}

void mpiox_memory_finalize(void)
{
    pthread_mutex_lock(&lock);
    while (given_back != NULL) {
        mpiox_staging *staging = given_back;
        given_back = staging->next;
        destroy(staging);
    }
    pthread_mutex_unlock(&lock);
}
