/* mpiox_engine_posix.c - POSIX calls of the engine. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_engine_impl.h"

enum { MODE = 0644, FOLDER_MODE = 0755 };

#define CALL(name) static int64_t call_##name(mpiox_engine *e, int64_t i, bool *failed)

static int64_t checked(int64_t result, bool *failed)
{
    *failed = result < 0;
    return result;
}

static int fd_of(const mpiox_engine *e, int64_t i)
{
    return mpiox_engine_slot_of(e, i)->fd;
}

CALL(open)
{
    mpiox_engine_slot *slot = mpiox_engine_slot_of(e, i);
    slot->fd = open(mpiox_engine_path_of(e, i), e->plan->flags[i] | O_CLOEXEC, MODE);
    slot->is_open = slot->fd >= 0;
    return checked(slot->fd, failed);
}

CALL(close)
{
    mpiox_engine_slot_of(e, i)->is_open = false;
    return checked(close(fd_of(e, i)), failed);
}

CALL(read)
{
    return checked(read(fd_of(e, i), e->sink, (size_t)e->plan->size[i]), failed);
}

CALL(write)
{
    return checked(write(fd_of(e, i), e->data, (size_t)e->plan->size[i]), failed);
}

CALL(pread)
{
    return checked(pread(fd_of(e, i), e->sink, (size_t)e->plan->size[i], e->plan->offset[i]), failed);
}

CALL(pwrite)
{
    return checked(pwrite(fd_of(e, i), e->data, (size_t)e->plan->size[i], e->plan->offset[i]), failed);
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

CALL(fstat)
{
    struct stat status;
    return checked(fstat(fd_of(e, i), &status), failed);
}

CALL(stat)
{
    struct stat status;
    (void)stat(mpiox_engine_path_of(e, i), &status); /* programs ask whether a file is there, too */
    return checked(0, failed);
}

CALL(access)
{
    (void)access(mpiox_engine_path_of(e, i), F_OK);
    return checked(0, failed);
}

CALL(unlink)
{
    (void)unlink(mpiox_engine_path_of(e, i));
    return checked(0, failed);
}

CALL(mkdir)
{
    (void)mkdir(mpiox_engine_path_of(e, i), FOLDER_MODE);
    return checked(0, failed);
}

CALL(rmdir)
{
    (void)rmdir(mpiox_engine_path_of(e, i));
    return checked(0, failed);
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
    {.name = "fstat", .call = call_fstat, .needs_handle = true},
    {.name = "stat", .call = call_stat},
    {.name = "access", .call = call_access},
    {.name = "unlink", .call = call_unlink},
    {.name = "mkdir", .call = call_mkdir},
    {.name = "rmdir", .call = call_rmdir},
    {.name = NULL},
};
