/* mpiox_posix_wait.c - see mpiox_posix_wait.h. */
#include "mpiox_posix_wait.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FRAMES = 100, ENTRY_BYTES = 16384 }; /* of callers; of a folder, read at once */

_Atomic(const mpiox_past_mpi *) mpiox_posix_library;

extern mpiox_past_mpi_hook mpiio_ext_posix_begin;

static bool is_own(const mpiox_past_mpi *library, const void *caller)
{
    return (const char *)caller >= library->begin && (const char *)caller < library->end;
}

/* A handler returns to where rt_sigreturn(2) is called: in its C library, or the kernel's vDSO, always by these
 * instructions, by which debuggers know it, too. */
#if defined(__x86_64__)
#define RETURNS {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05} /* mov $15, %rax; syscall */
#elif defined(__aarch64__)
#define RETURNS {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4} /* mov x8, #139; svc #0 */
#endif

/* Is the call made by libmpiio_ext.so, by a function that it has called, or in a signal handler? The interrupted code
 * may own any lock, including that of malloc(). Tens of microseconds, no lock. */
static bool must_not_wait(const mpiox_past_mpi *library)
{
    void *callers[FRAMES];
    const int count = backtrace(callers, FRAMES);

    for (int i = 0; i < count; i++) {
        if (is_own(library, callers[i]))
            return true;
#ifdef RETURNS
        static const unsigned char returns[] = RETURNS;

        if (callers[i] != NULL && memcmp(callers[i], returns, sizeof returns) == 0)
            return true;
#endif
    }
    return false;
}

bool mpiox_posix_may_of(const void *caller, const char *path)
{
    const mpiox_past_mpi *library = atomic_load(&mpiox_posix_library);

    return path != NULL && library != NULL && !is_own(library, caller) && library->any();
}

/* This thread is in one of the two functions below. Calls of libmpiio_ext.so then come back by way of other preloaded
 * libraries, such as the tracer, whose address the caller has. */
static _Thread_local bool is_inside __attribute__((tls_model("initial-exec")));

bool mpiox_posix_wait_for(int folder, const char *path, const struct stat *known, bool below)
{
    const mpiox_past_mpi *library = is_inside ? NULL : atomic_load(&mpiox_posix_library);
    const int before = errno;
    mpiox_past_mpi_file file;

    if (library == NULL)
        return false;
    is_inside = true;
    const bool waits = library->find(folder, path, known, below, &file) && !must_not_wait(library);
    if (waits)
        library->await(&file);
    is_inside = false;
    errno = before;
    return waits;
}

void mpiox_posix_list_of(int fd)
{
    const mpiox_past_mpi *library = is_inside ? NULL : atomic_load(&mpiox_posix_library);
    const int before = errno;
    const off_t start = fd >= 0 ? lseek(fd, 0, SEEK_CUR) : -1;
    char entries[ENTRY_BYTES] __attribute__((aligned(8)));
    mpiox_past_mpi_file file;
    bool may_wait = true, read = false;
    long got;

    if (library == NULL)
        return;
    is_inside = true;
    while (may_wait && start >= 0 && (got = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
        read = true;
        for (long at = 0; at < got && may_wait; at += ((struct dirent64 *)(entries + at))->d_reclen) {
            if (!library->find_listed(fd, ((struct dirent64 *)(entries + at))->d_name, &file))
                continue;
            may_wait = !must_not_wait(library);
            if (may_wait)
                library->await(&file);
        }
    }
    if (read)
        lseek(fd, start, SEEK_SET);
    is_inside = false;
    errno = before;
}

/* The first backtrace() loads a library. */
bool mpiio_ext_posix_begin(const mpiox_past_mpi *library)
{
    if (library != NULL)
        must_not_wait(library);
    atomic_store(&mpiox_posix_library, library);
    return dlsym(RTLD_DEFAULT, "open") != dlsym(RTLD_NEXT, "open");
}
