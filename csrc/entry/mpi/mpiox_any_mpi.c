/* mpiox_any_mpi.c - see mpiox_any_mpi.h. */
#include "mpiox_any_mpi.h"

#ifdef MPIOX_ANY_MPI

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_other_abi.h"
#include "mpiox_print.h"

enum { CANDIDATES = 32 };

_Atomic(void *) mpiox_any_mpi_found[MPIOX_ANY_NAMES];

static const char *const names[MPIOX_ANY_NAMES] = MPIOX_ANY_TEXTS;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *library;     /* kept open */
static const char *given; /* by mpiox_any_mpi_open() */
static atomic_bool fits;  /* the first library that was found is of this build's ABI, or of an unknown one */

/* ---- the MPI library of this process ----------------------------------------------------------------------------- */

typedef struct candidates {
    char *path[CANDIDATES];
    int count;
} candidates;

/* Names only: the loader is locked here. */
static int collect(struct dl_phdr_info *info, size_t size, void *out)
{
    candidates *found = out;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *file = slash != NULL ? slash + 1 : info->dlpi_name;

    (void)size;
    if (strncmp(file, "libmpi", 6) == 0 && strncmp(file, "libmpiio_ext", 12) != 0 && found->count < CANDIDATES &&
        (found->path[found->count] = strdup(info->dlpi_name)) != NULL)
        found->count++;
    return 0;
}

static void *opened(const char *path, int mode)
{
    void *handle = path != NULL ? dlopen(path, RTLD_LAZY | mode) : NULL;

    if (handle != NULL && dlsym(handle, "PMPI_Init") == NULL) {
        dlclose(handle);
        return NULL;
    }
    return handle;
}

/* A library out of the global scope, as mpi4py opens it. It comes into that scope, behind this library, as it is where
 * this library is linked to it: what finds MPI functions by ctypes would else pass by this library. */
static void *loaded(void)
{
    candidates found = {.count = 0};
    void *handle = NULL;

    dl_iterate_phdr(collect, &found);
    for (int i = 0; i < found.count; i++) {
        if (handle == NULL)
            handle = opened(found.path[i], RTLD_NOLOAD | RTLD_GLOBAL);
        free(found.path[i]);
    }
    return handle;
}

/* For a process that starts without an MPI library: the one that it was given, else that of the linker's search path.
 */
static void *brought(void)
{
    static const char *const known[] = MPIOX_ANY_LIBRARIES;
    void *handle = opened(given, RTLD_GLOBAL);

    for (size_t i = 0; handle == NULL && i < sizeof known / sizeof known[0]; i++)
        handle = opened(known[i], RTLD_GLOBAL);
    return handle;
}

static void *find_library(void)
{
    void *handle;

    pthread_mutex_lock(&lock);
    if (library == NULL && (library = loaded()) == NULL && given != NULL)
        library = brought();
    handle = library;
    pthread_mutex_unlock(&lock);
    return handle;
}

static void *find(int index)
{
    void *found = dlsym(RTLD_DEFAULT, names[index]);
    void *handle;

    if (found == NULL && (handle = find_library()) != NULL)
        found = dlsym(handle, names[index]);
    if (found != NULL && !atomic_load_explicit(&fits, memory_order_relaxed)) {
        mpiox_other_abi_refuse(found);
        atomic_store_explicit(&fits, true, memory_order_relaxed);
    }
    return found;
}

void mpiox_any_mpi_open(const char *path)
{
    given = path;
}

const char *mpiox_any_mpi_library(void)
{
    Dl_info info;
    void *const function = find(MPIOX_ANY_PMPI_Init);

    return function != NULL && dladdr(function, &info) != 0 ? info.dli_fname : NULL;
}

/* ---- missing functions ------------------------------------------------------------------------------------------- */

/* Called with any arguments: their caller takes them away. */
static int unsupported(void)
{
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

/* MPI_Initialized and MPI_Finalized where there is no MPI library. */
static int not_yet(int *flag)
{
    *flag = 0;
    return MPI_SUCCESS;
}

static void keep(int index, void *found)
{
    atomic_store_explicit(&mpiox_any_mpi_found[index], found, memory_order_release);
}

bool mpiox_any_mpi_has(int index)
{
    void *found = atomic_load_explicit(&mpiox_any_mpi_found[index], memory_order_acquire);

    if (found == NULL && (found = find(index)) == NULL && mpiox_any_mpi_library() != NULL)
        found = (void *)unsupported; /* a caller that has checked before needs no report */
    if (found != NULL)
        keep(index, found);
    return found != NULL && found != (void *)unsupported;
}

void *mpiox_any_mpi_look_up(int index)
{
    void *found = find(index);

    if (found == NULL && (index == MPIOX_ANY_PMPI_Initialized || index == MPIOX_ANY_PMPI_Finalized))
        return (void *)not_yet; /* and asked again: a library may come */
    if (found == NULL) {
        const bool none = mpiox_any_mpi_library() == NULL;

        mpiox_print("mpiio_ext: %s was called, but %s: %s\n", names[index],
                    none ? "no MPI library is in this process" : "the MPI library of this process lacks it",
                    none ? "start the program by `mpiio-ext run`"
                         : "use a newer one, or a program that does not call it");
        if (none)
            return (void *)unsupported;
        found = (void *)unsupported;
    }
    keep(index, found);
    return found;
}

#else
typedef int mpiox_any_mpi_not_used;
#endif
