/*
 * mpiio_ext_delegates_recover.c - bringing to the files what a delegate has left in its cache on a disk.
 *
 * Problem.   All processes of a job may be killed at once, and files that they had closed be half written.
 * Algorithm. The cache is a file that says which bytes are dirty and of which file, at any moment: a delegate's memory
 *            is made so that a survivor can go on with it (mpiox_cache.h). Who recovers is such a survivor.
 * Guarantee. Only a plain file of one name that belongs to the caller, and that nobody else may open, is believed. It
 *            is removed when no byte is left in it. One whose delegate lives is left alone.
 * Limits.    What the kernel had not written to the disk when the node went down is not there.
 */
#include "mpiio_ext.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_cache.h"
#include "mpiox_text.h"

static bool is_own(int fd, struct stat *status)
{
    return fstat(fd, status) == 0 && S_ISREG(status->st_mode) && status->st_uid == geteuid() && status->st_nlink == 1 &&
           (status->st_mode & (S_IRWXG | S_IRWXO)) == 0 && status->st_size >= (off_t)sizeof(mpiox_cache_header);
}

/* Files of which it still holds bytes. */
static int put_failures(const mpiox_cache *cache, mpiox_text *out)
{
    mpiox_error error;
    int count = 0;

    mpiox_text_put(out, "[");
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        if (!mpiox_cache_find_error(cache, i, 0, INT64_MAX, &error))
            continue;
        mpiox_text_put(out, "%s{\"path\": ", count++ > 0 ? ", " : "");
        mpiox_text_put_json(out, cache->header->files[i].path);
        mpiox_text_put(out, ", \"errno\": %d}", (int)error.sys_errno);
    }
    mpiox_text_put(out, "]");
    return count;
}

int64_t mpiio_ext_delegates_recover(const char *path, char *text, int64_t text_bytes)
{
    mpiox_text out = {text, text_bytes, 0};
    const int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    mpiox_cache cache;
    int64_t bytes = MPIOX_E_CORRUPT;

    if (fd < 0)
        return MPIOX_E_IO;
    void *base = is_own(fd, &status) ? mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                                     : MAP_FAILED;

    close(fd);
    if (base == MAP_FAILED)
        return MPIOX_E_IO;
    if (mpiox_cache_attach(base, (int64_t)status.st_size, &cache) == MPIOX_OK)
        bytes = mpiox_cache_recover(&cache);
    if (bytes == -1)
        bytes = MPIOX_E_UNSUPPORTED;
    if (bytes >= 0 && put_failures(&cache, &out) == 0)
        unlink(path);
    munmap(base, (size_t)status.st_size);
    return bytes;
}
