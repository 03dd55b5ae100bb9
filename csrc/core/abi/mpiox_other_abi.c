/* mpiox_other_abi.c - see mpiox_other_abi.h. */
#include "mpiox_other_abi.h"
#include "mpiox_print.h"

#include <dlfcn.h>
#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct abi {
    const char *name; /* folder in a wheel, value of MPIIO_EXT_ABI */
    const char *words;
} abi;

static const abi openmpi = {"openmpi", "Open MPI"};
static const abi mpich = {"mpich", "MPICH or its kin"};
static const abi standard = {"mpiabi", "the standard ABI of MPI 5"};

#if defined(OPEN_MPI)
static const abi *const own = &openmpi;
#elif defined(MPICH)
static const abi *const own = &mpich;
#else
static const abi *const own = &standard;
#endif

const char *mpiox_other_abi_own(void)
{
    return own->words;
}

/* ---- which ABI --------------------------------------------------------------------------------------------------- */

static const char *file_of(const void *address)
{
    Dl_info info;

    return address != NULL && dladdr(address, &info) != 0 && info.dli_fname != NULL ? info.dli_fname : "";
}

/* NULL: unknown. A library of the standard ABI holds what the others of its MPI hold, so its name counts;
 * those of vendors may hide what they are made from, so theirs counts last. */
static const abi *abi_of(const void *address)
{
    const char *path = file_of(address), *slash = strrchr(path, '/'), *file = slash != NULL ? slash + 1 : path;
    const abi *found = NULL;
    void *handle;

    if (strncmp(file, "libmpi", 6) == 0 && strstr(file, "_abi.so") != NULL)
        return &standard;
    handle = *path != '\0' ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (handle != NULL) {
        if (dlsym(handle, "ompi_mpi_comm_world") != NULL)
            found = &openmpi;
        else if (dlsym(handle, "MPIR_Err_return_comm") != NULL)
            found = &mpich;
        dlclose(handle);
    }
    if (found == NULL && strncmp(file, "libmpi", 6) == 0)
        found = strstr(file, ".so.40") != NULL ? &openmpi : strstr(file, ".so.12") != NULL ? &mpich : NULL;
    return found;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Every process of a job gets here. The others wait, lest a launcher ends the first one before it has spoken. */
static bool speaks(void)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        const char *rank = getenv(ranks[i]);
        if (rank != NULL && *rank != '\0')
            return strcmp(rank, "0") == 0;
    }
    return true;
}

static _Noreturn void end(const abi *found, const void *address)
{
    const char *self = file_of((const void *)&own);
    char advice[160] = "start it with an mpiio_ext built with that MPI";

    if (strstr(self, "/abis/") != NULL)
        snprintf(advice, sizeof advice, "`export MPIIO_EXT_ABI=%s` and start it again", found->name);
    if (speaks())
        mpiox_print("mpiio_ext: this program uses %s (%s), but the library under it is for %s (%s): %s\n", found->words,
                    file_of(address), own->words, self, advice);
    else
        sleep(1);
    _exit(EXIT_FAILURE);
}

void mpiox_other_abi_refuse(const void *address)
{
    const abi *found = abi_of(address);

    if (found != NULL && found != own)
        end(found, address);
}

/* ---- before main() ----------------------------------------------------------------------------------------------- */

/* LD_PRELOAD with every library of this one's folder replaced by that of the other's; NULL: no memory. */
static char *replaced(const char *preload, const char *folder, const char *other)
{
    const size_t length = strlen(folder), added = strlen(other);
    char *text = malloc(strlen(preload) * (added / length + 1) + added + 1), *to = text;

    while (text != NULL && *preload != '\0') {
        if (strncmp(preload, folder, length) == 0) {
            to = stpcpy(to, other);
            preload += length;
        } else {
            *to++ = *preload++;
        }
    }
    if (text != NULL)
        *to = '\0';
    return text;
}

/* Execute this process's program anew, with the wheel's library for `found`; returns where that cannot be. */
static void exchange(const abi *found, const char *preload, char **arguments)
{
    char folder[PATH_MAX], other[PATH_MAX], library[PATH_MAX + 32], program[PATH_MAX], *text;
    const char *self = file_of((const void *)&own), *asked = getenv("MPIIO_EXT_ABI"), *file;
    char tail[32], *at, *behind;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

    snprintf(tail, sizeof tail, "/abis/%s/lib/", own->name);
    if (length <= 0 || strlen(self) >= sizeof folder || (at = strstr(strcpy(folder, self), tail)) == NULL)
        return;
    program[length] = '\0';
    file = strrchr(program, '/');
    if (file == NULL || strncmp(file, "/ld-", 4) == 0 || strncmp(file, "/ld.so", 6) == 0)
        return; /* the loader was given the program's name, which is lost */
    behind = at + strlen(tail);
    snprintf(library, sizeof library, "%.*s/abis/%s/lib/%s", (int)(at - folder), folder, found->name, behind);
    *behind = '\0';
    if (snprintf(other, sizeof other, "%.*s/abis/%s/lib/", (int)(at - folder), folder, found->name) >=
        (int)sizeof other)
        return;
    if (access(library, R_OK) != 0 || strstr(preload, folder) == NULL ||
        (text = replaced(preload, folder, other)) == NULL)
        return;
    if (asked != NULL && strcmp(asked, found->name) != 0 && speaks())
        mpiox_print("mpiio_ext: MPIIO_EXT_ABI=%s, but this program uses %s: the library for the latter is loaded "
                    "(%s)\n",
                    asked, found->words, library);
    setenv("LD_PRELOAD", text, 1);
    free(text);
    /* Not execv(): the tracer wraps it, and is not up yet. */
    syscall(SYS_execve, access(program, X_OK) == 0 ? program : "/proc/self/exe", arguments, environ);
    setenv("LD_PRELOAD", preload, 1);
}

/* glibc hands over what main() gets. A library that is opened later, as by `import mpiio_ext`, has been chosen for the
 * MPI library of the process, and a program that is linked to it cannot be helped. First of the tracer's functions. */
__attribute__((constructor(101))) static void begin(int count, char **arguments)
{
    const char *preload = getenv("LD_PRELOAD"), *self = file_of((const void *)&own);
    const void *function = preload != NULL && strstr(preload, self) != NULL ? dlsym(RTLD_DEFAULT, "PMPI_Init") : NULL;
    const abi *found = function != NULL ? abi_of(function) : NULL;
    char *copy;

    (void)count;
    if (found == NULL || found == own)
        return;
    copy = strdup(preload); /* setenv() may move it */
    if (copy != NULL)
        exchange(found, copy, arguments);
    free(copy);
    end(found, function);
}
