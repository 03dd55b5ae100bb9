/*
 * mpiox_storage_map.c - updating many small runs of a file through its page cache.
 *
 * Problem.    A window with thousands of small holes needs thousands of pwrite calls, or a read-modify-write that also
 *             rewrites bytes which no rank wrote.
 * Algorithm.  Map the range shared and let the caller store exactly the written bytes.
 * Guarantees. Only on file systems whose page cache is the file (tmpfs, ext, XFS) and only inside the file's present
 *             size, which the caller has extended by a pwrite. The space is reserved beforehand, so that a full disk is
 *             an error here and no signal later; the caller then writes by requests, which report the error.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_storage_internal.h"

/* Of a pinned handle. */
static int map(const mpiox_storage *storage, int64_t offset, int64_t length, bool populate, mpiox_storage_mapping *out)
{
    struct stat status;
    const int64_t page = sysconf(_SC_PAGESIZE), start = offset / page * page;
    assert(offset >= 0 && length > 0);
    if (!storage->backend->mappable || (fcntl(storage->fd, F_GETFL) & O_ACCMODE) != O_RDWR)
        return MPIOX_E_UNSUPPORTED;
    if (fallocate(storage->fd, FALLOC_FL_KEEP_SIZE, start, offset + length - start) != 0)
        return MPIOX_E_UNSUPPORTED;
    if (fstat(storage->fd, &status) != 0 || status.st_size < offset + length)
        return MPIOX_E_UNSUPPORTED;
    out->bytes = offset + length - start;
    out->base = mmap(NULL, (size_t)out->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (populate ? MAP_POPULATE : 0),
                     storage->fd, start);
    if (out->base == MAP_FAILED)
        return MPIOX_E_UNSUPPORTED;
    out->data = (char *)out->base + (offset - start);
    return MPIOX_OK;
}

int mpiox_storage_map(mpiox_storage *storage, int64_t offset, int64_t length, bool populate, mpiox_storage_mapping *out)
{
    if (mpiox_storage_pin(storage, NULL) != MPIOX_OK)
        return MPIOX_E_UNSUPPORTED;
    const int code = map(storage, offset, length, populate, out);
    mpiox_storage_unpin(storage);
    return code;
}

void mpiox_storage_unmap(mpiox_storage *storage, mpiox_storage_mapping *mapping, int64_t written)
{
    assert(mapping->base != NULL && written >= 0);
    munmap(mapping->base, (size_t)mapping->bytes);
    mpiox_storage_count(storage, true, written);
}
