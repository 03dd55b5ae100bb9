/*
 * mpiox_posix.c - wrappers of the C library's functions that take a file's name. If delegates still write the file, a
 * wrapper first waits (mpiox_posix_wait.h), then calls the next function of that name.
 *
 * Problem.   Few programs need the wrappers. So the wrappers are a library of their own, without MPI: one for all MPI
 *            libraries.
 * Algorithm. If the library is preloaded, or linked before the C library, the program and the libraries that it loads
 *            (netCDF, HDF5, Fortran's and Python's) find the wrappers. If the library is loaded later, by a program's
 *            import, it is not in front, and the wrappers do nothing.
 * Guarantee. The wrappers allocate and lock nothing, and resolve only the next function, at its first call. So a
 *            program may call them before constructors have run, in signal handlers, children and threads.
 *            Functions that list a folder wait for the files in it; those that walk a tree walk it twice.
 * Limits.    Not here: glob() of wildcards, mkdir() and its kin, readlink(), exec() and the names that other programs
 *            get, system calls that a program makes itself.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "mpiox_posix_wait.h"

#if defined(__x86_64__)
enum { OLD_STAT = 1 }; /* version of struct stat, of a C library before 2.33, which has no function stat() */
#else
enum { OLD_STAT = 0 };
#endif

static char absent; /* stands for a function that the C library does not have */

__attribute__((cold, noinline)) static void *find(_Atomic(void *) *found, const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (function == NULL)
        function = &absent;
    atomic_store_explicit(found, function, memory_order_release);
    return function;
}

#define NEXT(type, name, parameters)                                                                                   \
    typedef type type_of_##name parameters;                                                                            \
    static inline type_of_##name *next_##name(void)                                                                    \
    {                                                                                                                  \
        static _Atomic(void *) found;                                                                                  \
        void *function = atomic_load_explicit(&found, memory_order_acquire);                                           \
        if (__builtin_expect(function == NULL, 0))                                                                     \
            function = find(&found, #name);                                                                            \
        return (type_of_##name *)(function != &absent ? function : NULL);                                              \
    }
#define WAIT(folder, path) mpiox_posix_wait(__builtin_return_address(0), folder, path, false)
#define LIST(fd) mpiox_posix_list(__builtin_return_address(0), fd)
#define WAIT_BELOW(folder, path) mpiox_posix_wait(__builtin_return_address(0), folder, path, true)

/* A function that waits first, one that waits for one name, and one that waits for two. */
#define AFTER(type, failed, name, parameters, arguments, waits)                                                        \
    NEXT(type, name, parameters)                                                                                       \
    extern type name parameters;                                                                                       \
    type name parameters                                                                                               \
    {                                                                                                                  \
        waits;                                                                                                         \
        type_of_##name *next = next_##name();                                                                          \
        return next != NULL ? next arguments : (errno = ENOSYS, failed);                                               \
    }
#define ONE(type, failed, name, parameters, arguments, folder, path)                                                   \
    AFTER(type, failed, name, parameters, arguments, WAIT(folder, path))
#define TWO(name, parameters, arguments, waits_for_old, waits_for_new)                                                 \
    NEXT(int, name, parameters)                                                                                        \
    extern int name parameters;                                                                                        \
    int name parameters                                                                                                \
    {                                                                                                                  \
        waits_for_old;                                                                                                 \
        waits_for_new;                                                                                                 \
        type_of_##name *next = next_##name();                                                                          \
        return next != NULL ? next arguments : (errno = ENOSYS, -1);                                                   \
    }
/* A function that only queries; a C library may have it, or an older one. Its result shows whether to wait, and to
 * query again; if it finds nothing, the file may just have got its name. */
#define LOOK(name, parameters, folder, path, call)                                                                     \
    NEXT(int, name, parameters)                                                                                        \
    extern int name parameters;                                                                                        \
    int name parameters                                                                                                \
    {                                                                                                                  \
        const bool may = mpiox_posix_may(__builtin_return_address(0), path);                                           \
        type_of_##name *next = next_##name();                                                                          \
        int result = call;                                                                                             \
        if (may && (result == 0 || errno == ENOENT)) {                                                                 \
            const struct stat known = {.st_dev = result == 0 ? out->st_dev : 0,                                        \
                                       .st_ino = result == 0 ? out->st_ino : 0};                                       \
            if (mpiox_posix_wait_for(folder, path, &known, false) || result != 0)                                      \
                result = call;                                                                                         \
        }                                                                                                              \
        return result;                                                                                                 \
    }
#define STAT(name, parameters, arguments, folder, path, older, older_parameters, older_arguments)                      \
    LOOK(older, older_parameters, folder, path, next != NULL ? next(version, BARE arguments) : (errno = ENOSYS, -1))   \
    LOOK(name, parameters, folder, path, next != NULL ? next arguments : older older_arguments)
#define BARE(...) __VA_ARGS__

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* The mode is there where a file may be made. */
#define MODE_OF(flags, mode)                                                                                           \
    do {                                                                                                               \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        mode = ((flags) & O_CREAT) != 0 || ((flags) & O_TMPFILE) == O_TMPFILE ? va_arg(list, mode_t) : 0;              \
        va_end(list);                                                                                                  \
    } while (0)
/* The rest of a function that opens. A folder to be read has its files before the program reads its times. */
#define OPENED(name, folder, arguments)                                                                                \
    do {                                                                                                               \
        const bool may = mpiox_posix_may(__builtin_return_address(0), path);                                           \
        if (may)                                                                                                       \
            mpiox_posix_wait_for(folder, path, NULL, false);                                                           \
        type_of_##name *next = next_##name();                                                                          \
        const int fd = next != NULL ? next arguments : (errno = ENOSYS, -1);                                           \
        if (may && (flags & O_ACCMODE) == O_RDONLY)                                                                    \
            mpiox_posix_list_of(fd);                                                                                   \
        return fd;                                                                                                     \
    } while (0)
#define OPEN(name)                                                                                                     \
    NEXT(int, name, (const char *, int, ...))                                                                          \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        mode_t mode;                                                                                                   \
        MODE_OF(flags, mode);                                                                                          \
        OPENED(name, AT_FDCWD, (path, flags, mode));                                                                   \
    }
#define OPENAT(name)                                                                                                   \
    NEXT(int, name, (int, const char *, int, ...))                                                                     \
    int name(int folder, const char *path, int flags, ...)                                                             \
    {                                                                                                                  \
        mode_t mode;                                                                                                   \
        MODE_OF(flags, mode);                                                                                          \
        OPENED(name, folder, (folder, path, flags, mode));                                                             \
    }
#define CHECKED(name, parameters, arguments, folder)                                                                   \
    NEXT(int, name, parameters)                                                                                        \
    extern int name parameters;                                                                                        \
    int name parameters                                                                                                \
    {                                                                                                                  \
        OPENED(name, folder, arguments);                                                                               \
    }
#define FOPEN(name)                                                                                                    \
    ONE(FILE *, NULL, name, (const char *restrict path, const char *restrict mode), (path, mode), AT_FDCWD, path)
#define FREOPEN(name)                                                                                                  \
    ONE(FILE *, NULL, name, (const char *restrict path, const char *restrict mode, FILE *restrict stream),             \
        (path, mode, stream), AT_FDCWD, path)
#define OF_PATH(name, type, value) ONE(int, -1, name, (const char *path, type value), (path, value), AT_FDCWD, path)

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
CHECKED(__open_2, (const char *path, int flags), (path, flags), AT_FDCWD)
CHECKED(__open64_2, (const char *path, int flags), (path, flags), AT_FDCWD)
CHECKED(__openat_2, (int folder, const char *path, int flags), (folder, path, flags), folder)
CHECKED(__openat64_2, (int folder, const char *path, int flags), (folder, path, flags), folder)
OF_PATH(creat, mode_t, mode)
OF_PATH(creat64, mode_t, mode)
FOPEN(fopen)
FOPEN(fopen64)
FREOPEN(freopen)
FREOPEN(freopen64)

/* ---- folders ----------------------------------------------------------------------------------------------------- */

#define LISTED(name, parameters, arguments, waits)                                                                     \
    NEXT(DIR *, name, parameters)                                                                                      \
    DIR *name parameters                                                                                               \
    {                                                                                                                  \
        waits;                                                                                                         \
        type_of_##name *next = next_##name();                                                                          \
        DIR *result = next != NULL ? next arguments : (errno = ENOSYS, NULL);                                          \
        LIST(result != NULL ? dirfd(result) : -1);                                                                     \
        return result;                                                                                                 \
    }

LISTED(opendir, (const char *path), (path), WAIT(AT_FDCWD, path))
LISTED(fdopendir, (int folder), (folder), )

/* The C library's other functions call its own opendir(): the folder is listed here before them. */
static void list(int folder, const char *path)
{
    const int before = errno, fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);

    if (fd >= 0)
        close(fd);
    errno = before;
}

typedef int visitor(const char *path, const struct stat *status, int kind, struct FTW *place);
typedef int visitor64(const char *path, const struct stat64 *status, int kind, struct FTW *place);
enum { DESCRIPTORS = 20 }; /* of a walk */

static int visit(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)place;
    if (kind == FTW_D)
        list(AT_FDCWD, path);
    return 0;
}

#define MAY(path) mpiox_posix_may(__builtin_return_address(0), path)
#define LIST_AT(folder, path) MAY(path) ? list(folder, path) : (void)0
#define LIST_BELOW(path) MAY(path) ? (void)next_nftw()(path, visit, DESCRIPTORS, FTW_PHYS) : (void)0
#define LIST_ALL_BELOW(paths)                                                                                          \
    for (int i = 0; paths[i] != NULL; i++)                                                                             \
    LIST_BELOW(paths[i])

AFTER(int, -1, nftw, (const char *path, visitor *each, int descriptors, int flags), (path, each, descriptors, flags),
      LIST_BELOW(path))
AFTER(int, -1, nftw64, (const char *path, visitor64 *each, int descriptors, int flags),
      (path, each, descriptors, flags), LIST_BELOW(path))
AFTER(int, -1, ftw, (const char *path, __ftw_func_t each, int descriptors), (path, each, descriptors), LIST_BELOW(path))
AFTER(int, -1, ftw64, (const char *path, __ftw64_func_t each, int descriptors), (path, each, descriptors),
      LIST_BELOW(path))
AFTER(FTS *, NULL, fts_open, (char *const *paths, int options, int (*compare)(const FTSENT **, const FTSENT **)),
      (paths, options, compare), LIST_ALL_BELOW(paths))
AFTER(FTS64 *, NULL, fts64_open,
      (char *const *paths, int options, int (*compare)(const FTSENT64 **, const FTSENT64 **)),
      (paths, options, compare), LIST_ALL_BELOW(paths))
#define SCANS(suffix)                                                                                                  \
    typedef int chosen##suffix(const struct dirent##suffix *entry);                                                    \
    typedef int ordered##suffix(const struct dirent##suffix **a, const struct dirent##suffix **b);                     \
    AFTER(int, -1, scandir##suffix,                                                                                    \
          (const char *restrict path, struct dirent##suffix ***restrict out, chosen##suffix *choose,                   \
           ordered##suffix *order),                                                                                    \
          (path, out, choose, order), LIST_AT(AT_FDCWD, path))                                                         \
    AFTER(int, -1, scandirat##suffix,                                                                                  \
          (int folder, const char *restrict path, struct dirent##suffix ***restrict out, chosen##suffix *choose,       \
           ordered##suffix *order),                                                                                    \
          (folder, path, out, choose, order), LIST_AT(folder, path))

SCANS()
SCANS(64)

/* ---- names ------------------------------------------------------------------------------------------------------- */

TWO(rename, (const char *old, const char *new), (old, new), WAIT_BELOW(AT_FDCWD, old), WAIT(AT_FDCWD, new))
TWO(renameat, (int from, const char *old, int to, const char *new), (from, old, to, new), WAIT_BELOW(from, old),
    WAIT(to, new))
TWO(renameat2, (int from, const char *old, int to, const char *new, unsigned flags), (from, old, to, new, flags),
    WAIT_BELOW(from, old), WAIT_BELOW(to, new))
TWO(link, (const char *old, const char *new), (old, new), WAIT(AT_FDCWD, old), WAIT(AT_FDCWD, new))
TWO(linkat, (int from, const char *old, int to, const char *new, int flags), (from, old, to, new, flags),
    WAIT(from, old), WAIT(to, new))
TWO(symlink, (const char *target, const char *path), (target, path), , WAIT(AT_FDCWD, path))
TWO(symlinkat, (const char *target, int folder, const char *path), (target, folder, path), , WAIT(folder, path))
ONE(int, -1, unlink, (const char *path), (path), AT_FDCWD, path)
ONE(int, -1, unlinkat, (int folder, const char *path, int flags), (folder, path, flags), folder, path)
ONE(int, -1, remove, (const char *path), (path), AT_FDCWD, path)

/* ---- queries ----------------------------------------------------------------------------------------------------- */

#define STATS(suffix)                                                                                                  \
    STAT(stat##suffix, (const char *restrict path, struct stat##suffix *restrict out), (path, out), AT_FDCWD, path,    \
         __xstat##suffix, (int version, const char *path, struct stat##suffix *out), (OLD_STAT, path, out))            \
    STAT(lstat##suffix, (const char *restrict path, struct stat##suffix *restrict out), (path, out), AT_FDCWD, path,   \
         __lxstat##suffix, (int version, const char *path, struct stat##suffix *out), (OLD_STAT, path, out))           \
    STAT(fstatat##suffix, (int folder, const char *restrict path, struct stat##suffix *restrict out, int flags),       \
         (folder, path, out, flags), folder, path, __fxstatat##suffix,                                                 \
         (int version, int folder, const char *path, struct stat##suffix *out, int flags),                             \
         (OLD_STAT, folder, path, out, flags))

STATS()
STATS(64)
ONE(int, -1, statx, (int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict out),
    (folder, path, flags, mask, out), folder, path)
OF_PATH(access, int, mode)
OF_PATH(euidaccess, int, mode)
OF_PATH(eaccess, int, mode)
ONE(int, -1, faccessat, (int folder, const char *path, int mode, int flags), (folder, path, mode, flags), folder, path)

OF_PATH(statfs, struct statfs *, out)
OF_PATH(statfs64, struct statfs64 *, out)
OF_PATH(statvfs, struct statvfs *restrict, out)
OF_PATH(statvfs64, struct statvfs64 *restrict, out)
ONE(char *, NULL, realpath, (const char *restrict path, char *restrict out), (path, out), AT_FDCWD, path)
ONE(char *, NULL, __realpath_chk, (const char *path, char *out, size_t bytes), (path, out, bytes), AT_FDCWD, path)
ONE(char *, NULL, canonicalize_file_name, (const char *path), (path), AT_FDCWD, path)
ONE(long, -1, pathconf, (const char *path, int which), (path, which), AT_FDCWD, path)
ONE(int, -1, name_to_handle_at, (int folder, const char *path, struct file_handle *handle, int *mount, int flags),
    (folder, path, handle, mount, flags), folder, path)

/* A pattern that is a name; nothing is called like another one. With functions of its own a program may be older than
 * gl_lstat (glibc 2.27), which it does not set: it gets the function that calls gl_stat alone. */
#if defined(__x86_64__)
#define BEFORE_LSTAT "GLIBC_2.2.5"
#else
#define BEFORE_LSTAT "GLIBC_2.17"
#endif
#define GLOB_PARAMETERS(type)                                                                                          \
    (const char *restrict pattern, int flags, int (*fails)(const char *, int), type *restrict out)
#define GLOB(suffix)                                                                                                   \
    NEXT(int, glob##suffix, GLOB_PARAMETERS(glob##suffix##_t))                                                         \
    int glob##suffix GLOB_PARAMETERS(glob##suffix##_t)                                                                 \
    {                                                                                                                  \
        WAIT(AT_FDCWD, pattern);                                                                                       \
        void *older = flags & GLOB_ALTDIRFUNC ? dlvsym(RTLD_NEXT, "glob" #suffix, BEFORE_LSTAT) : NULL;                \
        type_of_glob##suffix *next = older != NULL ? (type_of_glob##suffix *)older : next_glob##suffix();              \
        return next != NULL ? next(pattern, flags, fails, out) : (errno = ENOSYS, GLOB_ABORTED);                       \
    }

GLOB()
GLOB(64)

/* ---- extended attributes ----------------------------------------------------------------------------------------- */

#define ATTRIBUTES(prefix)                                                                                             \
    ONE(ssize_t, -1, prefix##getxattr, (const char *path, const char *name, void *value, size_t bytes),                \
        (path, name, value, bytes), AT_FDCWD, path)                                                                    \
    ONE(ssize_t, -1, prefix##listxattr, (const char *path, char *list, size_t bytes), (path, list, bytes), AT_FDCWD,   \
        path)                                                                                                          \
    ONE(int, -1, prefix##setxattr, (const char *path, const char *name, const void *value, size_t bytes, int flags),   \
        (path, name, value, bytes, flags), AT_FDCWD, path)                                                             \
    ONE(int, -1, prefix##removexattr, (const char *path, const char *name), (path, name), AT_FDCWD, path)

ATTRIBUTES()
ATTRIBUTES(l)

/* ---- changes ----------------------------------------------------------------------------------------------------- */

OF_PATH(truncate, off_t, bytes)
OF_PATH(truncate64, off64_t, bytes)
OF_PATH(chmod, mode_t, mode)
OF_PATH(lchmod, mode_t, mode)
ONE(int, -1, fchmodat, (int folder, const char *path, mode_t mode, int flags), (folder, path, mode, flags), folder,
    path)
ONE(int, -1, chown, (const char *path, uid_t user, gid_t group), (path, user, group), AT_FDCWD, path)
ONE(int, -1, lchown, (const char *path, uid_t user, gid_t group), (path, user, group), AT_FDCWD, path)
ONE(int, -1, fchownat, (int folder, const char *path, uid_t user, gid_t group, int flags),
    (folder, path, user, group, flags), folder, path)
OF_PATH(utime, const struct utimbuf *, times)
ONE(int, -1, utimes, (const char *path, const struct timeval times[2]), (path, times), AT_FDCWD, path)
ONE(int, -1, lutimes, (const char *path, const struct timeval times[2]), (path, times), AT_FDCWD, path)
ONE(int, -1, futimesat, (int folder, const char *path, const struct timeval times[2]), (folder, path, times), folder,
    path)
ONE(int, -1, utimensat, (int folder, const char *path, const struct timespec times[2], int flags),
    (folder, path, times, flags), folder, path)
