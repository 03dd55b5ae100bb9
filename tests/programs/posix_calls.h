/*
 * posix_calls.h - functions of the C library that take a file's name, as a table.
 *
 * Before it is included: feature macros, and report.h. A program sets `folder`, `name` and `other`.
 */
#ifndef POSIX_CALLS_H
#define POSIX_CALLS_H

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

enum { NAME_BYTES = 400 };

static char folder[NAME_BYTES - 100], name[NAME_BYTES], other[NAME_BYTES];

/* So that the compiler does not know it. */
static volatile int read_only = O_RDONLY;

static long long sum_of(int fd)
{
    unsigned char data[4096];
    long long sum = 0;
    ssize_t got;

    while (fd >= 0 && (got = read(fd, data, sizeof data)) > 0)
        for (ssize_t i = 0; i < got; i++)
            sum = (sum * 31 + data[i]) % 1000000007;
    return sum;
}

/* Its result is printed, and *found. */
static int opens(int fd, long long *found)
{
    *found = sum_of(fd);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : -1;
}

static int reads(FILE *file, long long *found)
{
    if (file == NULL)
        return -1;
    *found = sum_of(fileno(file));
    fclose(file);
    return 0;
}

static int size_of(int result, const struct stat *status, long long *found)
{
    *found = result == 0 ? (long long)status->st_size : -1;
    return result;
}

typedef int old_stat(int version, const char *path, struct stat *out);

/* A program of before glibc 2.33 calls it. */
static int stat_of_old(const char *path, struct stat *out)
{
    static old_stat *old;

    if (old == NULL) {
        void *function = dlsym(RTLD_DEFAULT, "__xstat");
        memcpy(&old, &function, sizeof old);
    }
    return old != NULL ? old(1, path, out) : stat(path, out);
}

static int statx_size(int at, const char *relative, long long *found)
{
    struct statx out;
    const int result = statx(at, relative, 0, STATX_SIZE, &out);

    *found = result == 0 ? (long long)out.stx_size : -1;
    return result;
}

/* result is freed. */
static int is_name(char *result, long long *found)
{
    const int error = errno;

    *found = result != NULL && strcmp(result, name) == 0;
    free(result);
    errno = error;
    return *found ? 0 : -1;
}

static int statfs_of(const char *path, long long *found)
{
    struct statfs out;
    const int result = statfs(path, &out);

    *found = result == 0 ? (long long)out.f_type : -1;
    return result;
}

static int statvfs_of(const char *path, long long *found)
{
    struct statvfs out;
    const int result = statvfs(path, &out);

    *found = result == 0 ? (long long)out.f_namemax : -1;
    return result;
}

static int handle_of(int at, const char *relative)
{
    struct file_handle none = {.handle_bytes = 0};
    int mount;

    return name_to_handle_at(at, relative, &none, &mount, 0);
}

static int matches(const char *pattern, long long *found)
{
    glob_t list = {.gl_pathc = 0};
    const int result = glob(pattern, 0, NULL, &list);

    *found = (long long)list.gl_pathc;
    globfree(&list);
    return result;
}

/* ---- the folder of `name` is listed: is the file in it by that name? --------------------------------------------- */

static int is_listed; /* by a walk */

static int is_it(const char *entry)
{
    return strcmp(strrchr(entry, '/') != NULL ? strrchr(entry, '/') + 1 : entry, strrchr(name, '/') + 1) == 0;
}

static int lists(DIR *listed, long long *found)
{
    if (listed == NULL)
        return -1;
    for (const struct dirent *entry; (entry = readdir(listed)) != NULL;)
        *found += is_it(entry->d_name);
    return closedir(listed);
}

static int scans(int count, struct dirent **const *out, long long *found)
{
    struct dirent **entries = *out;

    for (int i = 0; i < count; i++) {
        *found += is_it(entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return count >= 0 ? 0 : -1;
}

static int sees(const char *path, const struct stat *status, int kind)
{
    (void)status, (void)kind;
    is_listed += is_it(path);
    return 0;
}

static int sees_too(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)place;
    return sees(path, status, kind);
}

static int walks(int result, long long *found)
{
    *found = is_listed;
    is_listed = 0;
    return result;
}

static int walks_tree(long long *found)
{
    char *const paths[] = {folder, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);

    if (tree == NULL)
        return -1;
    for (const FTSENT *entry; (entry = fts_read(tree)) != NULL;)
        *found += is_it(entry->fts_path);
    return fts_close(tree);
}

/* X(name, what it does with `name`, which is `relative` in the folder `at`) */
#define CALLS(X)                                                                                                       \
    X(open, opens(open(name, O_RDONLY), found))                                                                        \
    X(open_2, opens(open(name, read_only), found))                                                                     \
    X(open_excl, opens(open(name, O_RDWR | O_CREAT | O_EXCL, 0640), found))                                            \
    X(openat, opens(openat(at, relative, O_RDONLY), found))                                                            \
    X(openat_2, opens(openat(at, relative, read_only), found))                                                         \
    X(creat, opens(creat(name, 0600), found))                                                                          \
    X(fopen, reads(fopen(name, "r"), found))                                                                           \
    X(freopen, reads(freopen(name, "r", fopen("/dev/null", "r")), found))                                              \
    X(rename, rename(name, other))                                                                                     \
    X(renameat, renameat(at, relative, AT_FDCWD, other))                                                               \
    X(renameat2, renameat2(at, relative, AT_FDCWD, other, 0))                                                          \
    X(link, link(name, other))                                                                                         \
    X(linkat, linkat(at, relative, AT_FDCWD, other, 0))                                                                \
    X(symlink, symlink("anywhere", name))                                                                              \
    X(symlinkat, symlinkat("anywhere", at, relative))                                                                  \
    X(unlink, unlink(name))                                                                                            \
    X(unlinkat, unlinkat(at, relative, 0))                                                                             \
    X(remove, remove(name))                                                                                            \
    X(stat, size_of(stat(name, &status), &status, found))                                                              \
    X(lstat, size_of(lstat(name, &status), &status, found))                                                            \
    X(fstatat, size_of(fstatat(at, relative, &status, 0), &status, found))                                             \
    X(xstat, size_of(stat_of_old(name, &status), &status, found))                                                      \
    X(statx, statx_size(at, relative, found))                                                                          \
    X(access, access(name, R_OK))                                                                                      \
    X(faccessat, faccessat(at, relative, R_OK, 0))                                                                     \
    X(euidaccess, euidaccess(name, R_OK))                                                                              \
    X(truncate, truncate(name, 12345))                                                                                 \
    X(chmod, chmod(name, 0600))                                                                                        \
    X(fchmodat, fchmodat(at, relative, 0600, 0))                                                                       \
    X(chown, chown(name, (uid_t) - 1, (gid_t) - 1))                                                                    \
    X(utime, utime(name, NULL))                                                                                        \
    X(utimes, utimes(name, NULL))                                                                                      \
    X(utimensat, utimensat(at, relative, NULL, 0))                                                                     \
    X(lchmod, lchmod(name, 0600))                                                                                      \
    X(realpath, is_name(realpath(name, NULL), found))                                                                  \
    X(realpath_2, is_name(realpath(name, malloc(PATH_MAX)), found))                                                    \
    X(canonicalize_file_name, is_name(canonicalize_file_name(name), found))                                            \
    X(statfs, statfs_of(name, found))                                                                                  \
    X(statvfs, statvfs_of(name, found))                                                                                \
    X(pathconf, (int)pathconf(name, _PC_NAME_MAX))                                                                     \
    X(name_to_handle_at, handle_of(at, relative))                                                                      \
    X(opendir, lists(opendir(folder), found))                                                                          \
    X(opendir_of_file, lists(opendir(name), found))                                                                    \
    X(fdopendir, lists(fdopendir((int)syscall(SYS_openat, AT_FDCWD, folder, O_RDONLY)), found))                        \
    X(scandir, scans(scandir(folder, &entries, NULL, NULL), &entries, found))                                          \
    X(scandirat, scans(scandirat(AT_FDCWD, folder, &entries, NULL, NULL), &entries, found))                            \
    X(ftw, walks(ftw(folder, sees, 4), found))                                                                         \
    X(nftw, walks(nftw(folder, sees_too, 4, FTW_PHYS), found))                                                         \
    X(fts, walks_tree(found))                                                                                          \
    X(glob, matches(name, found))                                                                                      \
    X(setxattr, setxattr(name, "user.mpiox", "a", 1, 0))                                                               \
    X(lsetxattr, lsetxattr(name, "user.mpiox", "a", 1, 0))                                                             \
    X(getxattr, (int)getxattr(name, "user.mpiox", NULL, 0))                                                            \
    X(lgetxattr, (int)lgetxattr(name, "user.mpiox", NULL, 0))                                                          \
    X(listxattr, (int)listxattr(name, NULL, 0))                                                                        \
    X(llistxattr, (int)llistxattr(name, NULL, 0))                                                                      \
    X(removexattr, removexattr(name, "user.mpiox"))                                                                    \
    X(lremovexattr, lremovexattr(name, "user.mpiox"))

typedef int call(int at, const char *relative, long long *found);

#define FUNCTION(what, does)                                                                                           \
    static int call_##what(int at, const char *relative, long long *found)                                             \
    {                                                                                                                  \
        struct stat status;                                                                                            \
        struct dirent **entries = NULL;                                                                                \
                                                                                                                       \
        (void)at, (void)relative, (void)found, (void)status, (void)entries;                                            \
        return does;                                                                                                   \
    }
#define ENTRY(what, does) {#what, call_##what},
CALLS(FUNCTION)
static const struct {
    const char *name;
    call *function;
} calls[] = {CALLS(ENTRY)};
enum { COUNT = sizeof calls / sizeof calls[0] };

#endif
