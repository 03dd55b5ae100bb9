/* mpiox_engine_posix.c - POSIX calls of the engine. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_engine_impl.h"

enum { MODE = 0644, FOLDER_MODE = 0755, PRIVATE = 1 << 8 /* beside the protection of a mapping */ };

#define CALL(name) static int64_t call_##name(mpiox_engine *e, int64_t i, bool *failed)

static int64_t checked(int64_t result, bool *failed)
{
    *failed = result < 0;
    return result;
}

/* Of what a program may do in vain: it asks whether a file is there, another rank has made or removed it before. Of a
 * failure like that *failed stays false. */
static int64_t perhaps(int64_t result, bool *failed)
{
    *failed = result < 0 && errno != ENOENT && errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR &&
              errno != EISDIR;
    return result;
}

static int fd_of(const mpiox_engine *e, int64_t i)
{
    const mpiox_engine_slot *slot = mpiox_engine_slot_of(e, i);
    if (slot->folder != NULL)
        return dirfd(slot->folder);
    return slot->stream != NULL ? fileno(slot->stream) : slot->fd; /* C++ moves its data through the stream's own */
}

CALL(open)
{
    mpiox_engine_slot *slot = mpiox_engine_slot_of(e, i);
    slot->fd = open(mpiox_engine_path_of(e, i), e->plan->flags[i] | O_CLOEXEC, MODE);
    slot->is_open = slot->fd >= 0;
    return checked(slot->fd, failed);
}

/* A stream whose descriptor is closed would be flushed into the next file that gets this descriptor. */
CALL(close)
{
    mpiox_engine_slot *slot = mpiox_engine_slot_of(e, i);
    slot->is_open = false;
    if (slot->folder != NULL)
        return checked(closedir(slot->folder), failed);
    return checked(slot->stream != NULL ? fclose(slot->stream) : close(slot->fd), failed);
}

CALL(read)
{
    return checked(read(fd_of(e, i), e->sink, (size_t)e->plan->size[i]), failed);
}

CALL(write)
{
    return checked(write(fd_of(e, i), mpiox_engine_data_of(e, i), (size_t)e->plan->size[i]), failed);
}

CALL(pread)
{
    return checked(pread(fd_of(e, i), e->sink, (size_t)e->plan->size[i], e->plan->offset[i]), failed);
}

CALL(pwrite)
{
    return checked(pwrite(fd_of(e, i), mpiox_engine_data_of(e, i), (size_t)e->plan->size[i], e->plan->offset[i]),
                   failed);
}

CALL(lseek)
{
    return checked(lseek(fd_of(e, i), e->plan->offset[i], e->plan->flags[i]), failed);
}

CALL(fsync)
{
    return checked(fsync(fd_of(e, i)), failed);
}

CALL(fdatasync)
{
    return checked(fdatasync(fd_of(e, i)), failed);
}

CALL(ftruncate)
{
    return checked(ftruncate(fd_of(e, i), e->plan->offset[i] >= 0 ? e->plan->offset[i] : e->plan->size[i]), failed);
}

/* Preallocation never shortens a file. */
CALL(posix_fallocate)
{
    const int64_t offset = e->plan->offset[i] > 0 ? e->plan->offset[i] : 0;
    errno = posix_fallocate(fd_of(e, i), offset, e->plan->size[i] > 0 ? e->plan->size[i] : 1);
    return checked(-errno, failed);
}

CALL(sync_file_range)
{
    const int64_t offset = e->plan->offset[i] > 0 ? e->plan->offset[i] : 0;
    const unsigned all = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    return checked(sync_file_range(fd_of(e, i), offset, e->plan->size[i], all), failed);
}

CALL(truncate)
{
    return checked(truncate(mpiox_engine_path_of(e, i), e->plan->size[i]), failed);
}

static mpiox_engine_mapping *mapping_of(const mpiox_engine *e, int64_t i)
{
    return &e->mappings[e->plan->other[i]];
}

/* An older one of that number, which the program has never taken back, is taken back first. */
CALL(mmap)
{
    mpiox_engine_mapping *mapping = mapping_of(e, i);
    if (mapping->at != NULL)
        munmap(mapping->at, mapping->bytes);
    const int64_t offset = e->plan->offset[i] > 0 ? e->plan->offset[i] : 0;
    const int32_t flags = e->plan->flags[i];
    void *map = mmap(NULL, (size_t)e->plan->size[i], flags & ~PRIVATE, flags & PRIVATE ? MAP_PRIVATE : MAP_SHARED,
                     fd_of(e, i), offset);
    *mapping = (mpiox_engine_mapping){map == MAP_FAILED ? NULL : map, (size_t)e->plan->size[i]};
    return checked(mapping->at == NULL ? -1 : 0, failed);
}

CALL(munmap)
{
    mpiox_engine_mapping *mapping = mapping_of(e, i);
    const int64_t result = mapping->at != NULL ? munmap(mapping->at, mapping->bytes) : -1;
    mapping->at = NULL;
    return checked(result, failed);
}

CALL(msync)
{
    const mpiox_engine_mapping *mapping = mapping_of(e, i);
    return checked(mapping->at != NULL ? msync(mapping->at, mapping->bytes, MS_SYNC) : -1, failed);
}

static int target_of(const mpiox_engine *e, int64_t i)
{
    const mpiox_engine_slot *slot = &e->slots[e->plan->other[i]];
    return slot->stream != NULL ? fileno(slot->stream) : slot->fd;
}

/* Copies move as much as they like of large sizes: the rest follows. Their target is written at its file pointer. */
CALL(sendfile)
{
    const int64_t size = e->plan->size[i];
    off_t at = e->plan->offset[i];
    int64_t done = 0;
    ssize_t moved = 0;
    do {
        moved = sendfile(target_of(e, i), fd_of(e, i), at >= 0 ? &at : NULL, (size_t)(size - done));
        done += moved > 0 ? moved : 0;
    } while (moved > 0 && done < size);
    return checked(moved < 0 ? moved : done, failed);
}

/* Where the file system does not copy by itself, or not to there, as cp does: through memory of our own. */
static int64_t copied_through_memory(mpiox_engine *e, int64_t i)
{
    enum { PIECE = 65536 };
    char piece[PIECE];
    const int64_t size = e->plan->size[i];
    int64_t done = 0;
    while (done < size) {
        const size_t most = (size_t)(size - done < PIECE ? size - done : PIECE);
        const int64_t at = e->plan->offset[i];
        const ssize_t got = at >= 0 ? pread(fd_of(e, i), piece, most, at + done) : read(fd_of(e, i), piece, most);
        if (got <= 0)
            return got < 0 ? got : done;
        for (ssize_t put = 0; put < got;) {
            const ssize_t now = write(target_of(e, i), piece + put, (size_t)(got - put));
            if (now <= 0)
                return now < 0 ? now : done + put;
            put += now;
        }
        done += got;
    }
    return done;
}

CALL(copy_file_range)
{
    const int64_t size = e->plan->size[i];
    off_t at = e->plan->offset[i];
    int64_t done = 0;
    ssize_t moved = 0;
    do {
        moved = copy_file_range(fd_of(e, i), at >= 0 ? &at : NULL, target_of(e, i), NULL, (size_t)(size - done), 0);
        done += moved > 0 ? moved : 0;
    } while (moved > 0 && done < size);
    if (moved < 0 && done == 0 && (errno == EXDEV || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL))
        return checked(copied_through_memory(e, i), failed);
    return checked(moved < 0 ? moved : done, failed);
}

CALL(opendir)
{
    mpiox_engine_slot *slot = mpiox_engine_slot_of(e, i);
    slot->folder = opendir(mpiox_engine_path_of(e, i));
    slot->is_open = slot->folder != NULL;
    return checked(slot->is_open ? 0 : -1, failed);
}

/* The folder may have other entries than that of the program: its end is no failure. */
CALL(readdir)
{
    const mpiox_engine_slot *slot = mpiox_engine_slot_of(e, i);
    if (slot->folder == NULL)
        return checked(-1, failed);
    (void)readdir(slot->folder);
    return checked(0, failed);
}

CALL(closedir)
{
    mpiox_engine_slot *slot = mpiox_engine_slot_of(e, i);
    const int result = slot->folder != NULL ? closedir(slot->folder) : -1;
    slot->folder = NULL;
    slot->is_open = false;
    return checked(result, failed);
}

CALL(fstat)
{
    struct stat status;
    return checked(fstat(fd_of(e, i), &status), failed);
}

CALL(stat)
{
    struct stat status;
    return perhaps(stat(mpiox_engine_path_of(e, i), &status), failed);
}

CALL(access)
{
    return perhaps(access(mpiox_engine_path_of(e, i), F_OK), failed);
}

CALL(unlink)
{
    return perhaps(unlink(mpiox_engine_path_of(e, i)), failed);
}

CALL(mkdir)
{
    return perhaps(mkdir(mpiox_engine_path_of(e, i), FOLDER_MODE), failed);
}

CALL(rmdir)
{
    return perhaps(rmdir(mpiox_engine_path_of(e, i)), failed);
}

CALL(rename)
{
    return checked(rename(mpiox_engine_path_of(e, i), mpiox_engine_second_of(e, i)), failed);
}

/* A link of an earlier run may be there. */
CALL(link)
{
    const char *to = mpiox_engine_second_of(e, i);
    int64_t result = link(mpiox_engine_path_of(e, i), to);
    if (result < 0 && errno == EEXIST && unlink(to) == 0)
        result = link(mpiox_engine_path_of(e, i), to);
    return checked(result, failed);
}

/* Later calls must be able to open the file, and to use the folder: there is no check, which would be one more call. */
CALL(chmod)
{
    return perhaps(chmod(mpiox_engine_path_of(e, i), FOLDER_MODE), failed);
}

const mpiox_engine_operation mpiox_engine_posix[] = {
    {.name = "open", .call = call_open, .opens = true},
    {.name = "close", .call = call_close, .needs_handle = true},
    {.name = "read", .call = call_read, .needs_handle = true, .reads = true},
    {.name = "write", .call = call_write, .needs_handle = true, .writes = true},
    {.name = "pread", .call = call_pread, .needs_handle = true, .reads = true},
    {.name = "pwrite", .call = call_pwrite, .needs_handle = true, .writes = true},
    {.name = "lseek", .call = call_lseek, .needs_handle = true},
    {.name = "fsync", .call = call_fsync, .needs_handle = true},
    {.name = "fdatasync", .call = call_fdatasync, .needs_handle = true},
    {.name = "ftruncate", .call = call_ftruncate, .needs_handle = true},
    {.name = "posix_fallocate", .call = call_posix_fallocate, .needs_handle = true, .preallocates = true},
    {.name = "sync_file_range", .call = call_sync_file_range, .needs_handle = true},
    {.name = "truncate", .call = call_truncate, .named = true},
    {.name = "mmap", .call = call_mmap, .needs_handle = true, .maps = true},
    {.name = "munmap", .call = call_munmap, .maps = true},
    {.name = "msync", .call = call_msync, .maps = true},
    {.name = "sendfile", .call = call_sendfile, .needs_handle = true, .reads = true, .writes = true, .copies = true},
    {.name = "copy_file_range",
     .call = call_copy_file_range,
     .needs_handle = true,
     .reads = true,
     .writes = true,
     .copies = true},
    {.name = "opendir", .call = call_opendir, .opens = true},
    {.name = "readdir", .call = call_readdir, .needs_handle = true, .handle = FOLDER},
    {.name = "closedir", .call = call_closedir, .needs_handle = true, .handle = FOLDER},
    {.name = "rename", .call = call_rename, .named = true, .two_names = true},
    {.name = "link", .call = call_link, .named = true, .two_names = true},
    {.name = "chmod", .call = call_chmod, .named = true},
    {.name = "fstat", .call = call_fstat, .needs_handle = true},
    {.name = "stat", .call = call_stat, .named = true},
    {.name = "access", .call = call_access, .named = true},
    {.name = "unlink", .call = call_unlink, .named = true},
    {.name = "mkdir", .call = call_mkdir, .named = true},
    {.name = "rmdir", .call = call_rmdir, .named = true},
    {.name = NULL},
};
