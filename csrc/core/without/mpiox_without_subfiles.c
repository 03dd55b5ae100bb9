/*
 * mpiox_without_subfiles.c - what stands for csrc/core/subfiles in a build without it (-DMPIOX_SUBFILES=OFF).
 *
 * No file is made as subfiles: hints that request them are refused (mpiox_hint_lacks()). An existing one is recognized
 * by the first line of its index, which must not be taken for the data: it is neither opened nor deleted.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_opener.h"
#include "mpiox_storage_container.h"

static const char has_not[] = "stored as subfiles, which this build does not support";

static bool is_open_index(const char *path, int fd)
{
    static const char head_line[] = "mpiio_ext subfiles ";
    char start[sizeof head_line - 1];

    (void)path;
    return pread(fd, start, sizeof start, 0) == (ssize_t)sizeof start && memcmp(start, head_line, sizeof start) == 0;
}

static bool is_index(const char *path)
{
    struct stat status;
    const bool may_be = stat(path, &status) == 0 && S_ISREG(status.st_mode);
    const int fd = may_be ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    const bool is = fd >= 0 && is_open_index(path, fd);

    if (fd >= 0)
        close(fd);
    return is;
}

static int refuse(const char *path)
{
    return is_index(path) ? EOPNOTSUPP : EILSEQ;
}

static bool refuse_deletion(const char *path, mpiox_error *error)
{
    mpiox_error_set(error, MPIOX_E_UNSUPPORTED, 0, -1, -1, has_not);
    return is_index(path);
}

static int open_none(const char *path, int flags, int rank, const mpiox_storage_options *options, mpiox_storage **out,
                     mpiox_error *error)
{
    (void)path;
    (void)flags;
    (void)rank;
    (void)options;
    *out = NULL;
    return mpiox_error_set(error, MPIOX_E_IO, EOPNOTSUPP, -1, -1, has_not);
}

static bool no_deal(const mpiox_storage *storage, mpiox_storage_deal *out)
{
    *out = (mpiox_storage_deal){.id = 0};
    return storage == NULL;
}

static void mark_nothing(mpiox_storage *storage)
{
    (void)storage;
}

static int no_first(const char *path, char first[PATH_MAX], struct stat *status)
{
    (void)first;
    (void)status;
    return refuse(path);
}

static int refuse_name(const char *hidden, const char *name)
{
    (void)name;
    return refuse(hidden);
}

static int no_beginning(const char *path)
{
    (void)path;
    return -1;
}

const mpiox_storage_containers mpiox_storage_container = {
    .is = is_index,
    .is_open = is_open_index,
    .open = open_none,
    .deal = no_deal,
    .mark_written = mark_nothing,
    .first = no_first,
    .sync = refuse,
    .publish = refuse_name,
    .delete = refuse_deletion,
    .remove = refuse,
    .beginning = no_beginning,
    .exists_already = has_not,
    .open_elsewhere = has_not,
};

static bool refuse_index(mpiox_opening *o, void **state)
{
    (void)state;
    const char *path = o->rank == 0 ? mpiox_opening_path(o) : NULL;

    if (path != NULL && o->decision->error.code == MPIOX_OK && is_index(path))
        mpiox_error_set(&o->decision->error, MPIOX_E_UNSUPPORTED, 0, -1, -1, has_not);
    return true;
}

const mpiox_opener mpiox_subfiles_opener = {.decide = refuse_index, .start = refuse_index};
