/* mpiox_mpi_staging.c - see mpiox_mpi_staging.h. */
#include "mpiox_mpi_staging.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_handlers.h"
#include "mpiox_layout_create.h"
#include "mpiox_mpi_error.h"
#include "mpiox_mpi_path.h"
#include "mpiox_subfiles_job.h"
#include "mpiox_storage_container.h"
#include "mpiox_storage_staging.h"

enum { fresh_s = 1 };

enum { look_pause_ms = 20, refused_pause_ms = 100 };

static const double whole_s = 10; /* so long one waits for a file that others of the job may have open, or that the file
                                     system refuses */

static bool is_there(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0;
}

/* What delegates have of a file that others have open, or of a scratch file. *hidden: it is found by its staging name.
 * One that was closed gets its own before this returns, unless *why. */
static mpiox_forwarded_hold *find(mpiox_service *service, const char *path, int how, double patience, bool *hidden,
                                  int *why)
{
    char name[PATH_MAX];

    *hidden = !is_there(path);
    *why = 0;
    if (!*hidden)
        return mpiox_forwarded_hold_file(service, path, how, patience, why);
    *hidden = mpiox_storage_staging_name(path, name, sizeof name) && is_there(name);
    if (!*hidden)
        return NULL;
    mpiox_forwarded_hold *hold = mpiox_forwarded_hold_file(service, name, how, patience, why);

    *hidden = hold != NULL || (*why == 0 && mpiox_forwarded_was_open(service, name));
    return hold;
}

/* Why an open is refused: the delegates keep what they have of the file. */
static int refuse(mpiox_error *error, int code)
{
    const char *what = "open (what I/O delegates have of it cannot be written, and stays with them)";

    if (code == EBUSY)
        what = "open (another job writes a file of this name: `mpiio-ext delegates wait`)";
    else if (code == EAGAIN)
        what = "open (its subfiles are open elsewhere: it gets its name when they are closed)";
    else if (code == ENODATA)
        what = "open (it does not get its name: see `mpiio-ext delegates wait`)";
    return mpiox_error_set(error, MPIOX_E_IO, code != 0 ? code : EIO, -1, -1, what);
}

/* All that delegates have of it is in the file, for who opens it past them. The file system may refuse it for a while.
 * 0, or why it stays with them. */
static int flush(const mpiox_forwarded_hold *hold, double patience, mpiox_error *error)
{
    const double until = mpiox_now() + patience;

    while (mpiox_forwarded_hold_flush(hold, error) != MPIOX_OK && mpiox_now() < until)
        poll(NULL, 0, refused_pause_ms);
    return error->code == MPIOX_OK ? MPIOX_OK : refuse(error, error->sys_errno);
}

/* For who looks past MPI, in any thread, and after MPI. Nothing is held, since who waits may be killed. False: others
 * of the job have it open for too long, or the file system refuses it. *scratch: or it is a scratch file. */
static bool wait_until_whole(mpiox_service *service, const char *path, bool *scratch)
{
    const double until = mpiox_now() + whole_s;
    mpiox_forwarded_hold *hold;
    bool hidden, open;
    int why;

    do {
        hold = find(service, path, MPIOX_HOLD_TO_LOOK, whole_s, &hidden, &why);
        open = hold != NULL;
        *scratch = open && mpiox_forwarded_hold_is_scratch(hold);
        mpiox_forwarded_hold_end(hold);
        if (open && !*scratch)
            poll(NULL, 0, look_pause_ms);
    } while (open && !*scratch && mpiox_now() < until);
    return !open && why == 0;
}

/* A scratch file is written where nobody has it open. */
static bool end_scratch(mpiox_service *service, const char *path)
{
    bool hidden, scratch;
    int why;

    mpiox_forwarded_hold_end_scratch(find(service, path, MPIOX_HOLD_TO_OPEN, whole_s, &hidden, &why));
    const bool whole = wait_until_whole(service, path, &scratch);

    if (whole)
        fprintf(stderr,
                "mpiio_ext: %s: a scratch file (mpiox_close=never) is looked for past MPI: it is written, and stays\n",
                path);
    return whole;
}

bool mpiox_mpi_staging_await_path(const char *path)
{
    mpiox_service *service = mpiox_service_last();
    bool scratch;

    if (service == NULL || !mpiox_forwarded_may_hold(service))
        return true;
    const bool whole = wait_until_whole(service, path, &scratch);

    return scratch ? end_scratch(service, path) : whole;
}

static bool goes_through(const mpiox_mpi_staging_opening *opening)
{
    return opening->wanted && mpiox_service_wanted(opening->hints) && !(opening->amode & MPI_MODE_DELETE_ON_CLOSE);
}

/* A file that would be made, by a name that no driver of the MPI library is asked for by. */
static bool is_to_be_hidden(const mpiox_mpi_staging_opening *opening)
{
    const int access_mode = opening->amode & (MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR);

    return opening->hints->close != MPIOX_CLOSE_WRITTEN && goes_through(opening) && opening->amode & MPI_MODE_CREATE &&
           (access_mode == MPI_MODE_WRONLY || access_mode == MPI_MODE_RDWR) &&
           mpiox_mpi_path(opening->filename) == opening->filename && !is_there(opening->filename);
}

/* With the hints' striping, where the file system takes it. */
static void make_striped(const mpiox_mpi_staging_opening *opening, const char *name, mpiox_mpi_staging *out)
{
    const mpiox_hints *hints = opening->hints;
    const mpiox_layout_wish wish = {hints->striping_unit, hints->striping_factor, hints->start_iodevice};
    const mpiox_layout_made made = mpiox_layout_create(name, &wish);

    out->made = made != MPIOX_MADE_NOTHING;
    out->striped = made == MPIOX_MADE_STRIPED;
}

/* It is only half there, and the delegates that are to be started may bring the rest. */
static bool may_be_adopted(const mpiox_mpi_staging_opening *opening)
{
    char name[PATH_MAX];

    return opening->hints->close == MPIOX_CLOSE_STAGED && opening->hints->delegate_cache_dir[0] != '\0' &&
           goes_through(opening) && mpiox_mpi_path_is_posix(opening->filename) &&
           !is_there(mpiox_mpi_path(opening->filename)) &&
           mpiox_storage_staging_name(mpiox_mpi_path(opening->filename), name, sizeof name) && is_there(name);
}

/* Was the file changed just now, by this node's clock? Who makes it may not have said so yet. */
static bool is_fresh(const char *name)
{
    struct stat status;
    const time_t now = time(NULL);

    return lstat(name, &status) == 0 && status.st_ctime >= now - fresh_s && status.st_ctime <= now + fresh_s;
}

/* What a killed job has left gets another name. 0, EAGAIN: others have it, or are just making it, or EEXIST: it stays,
 * for nobody knows. */
static int set_aside(const char *filename, const char *name)
{
    char aside[PATH_MAX];
    const int code = !is_there(name)  ? ENOENT
                     : is_fresh(name) ? EAGAIN
                                      : mpiox_storage_staging_set_aside(name, aside, sizeof aside);

    if (code == 0)
        fprintf(stderr, "mpiio_ext: %s: %s was left by a job that was killed; it is called %s from now on\n", filename,
                name, aside);
    return code == 0 || code == ENOENT ? 0 : code == EAGAIN ? EAGAIN : EEXIST;
}

/* Rank 0, what it has made: by the folder in which it did, whatever that is called now. May lie in `room`. */
static const char *where_made(const mpiox_mpi_staging *staging, const char *name, char room[PATH_MAX])
{
    struct stat status;
    const bool known = staging->folder > 0 && mpiox_storage_staging_in(staging->folder, "", room, PATH_MAX) &&
                       stat(room, &status) == 0 && mpiox_storage_staging_in(staging->folder, name, room, PATH_MAX);

    return known ? room : name;
}

/* One file, in the folder that the path leads to now. 0 or an errno. */
static int make_one(const mpiox_mpi_staging_opening *opening, const mpiox_service *service, const char *name,
                    mpiox_mpi_staging *out)
{
    char room[PATH_MAX];
    struct stat status;
    const char *there = where_made(out, name, room);

    make_striped(opening, there, out);
    int code = mpiox_storage_staging_create(there, out->made, service->count);

    if (code == 0 && lstat(there, &status) != 0) {
        code = errno;
        mpiox_storage_staging_forget(there);
        unlink(there);
    }
    if (code == 0 && is_there(opening->filename)) { /* whoever had the staging name has just given the file its own */
        code = EEXIST;
        mpiox_storage_staging_remove(there, (uint64_t)status.st_dev, (uint64_t)status.st_ino);
    }
    if (code == 0) {
        out->guard = mpiox_storage_staging_guard(there);
        out->device = (uint64_t)status.st_dev;
        out->inode = (uint64_t)status.st_ino;
    }
    return code;
}

/* OMPIO appends ".locktest.RANK" to a path in 256 bytes, and does not look: it would kill the program for what is added
 * here. */
static bool suits_library(const char *filename, const char *name)
{
#ifdef OPEN_MPI
    enum { MOST = 256 - sizeof ".locktest.0", RANK_DIGITS = 7 };

    return strlen(filename) > MOST || strlen(name) + RANK_DIGITS <= MOST;
#else
    return filename != NULL && name != NULL;
#endif
}

/* It was made by a shorter one. */
static bool does_not_suit(const mpiox_mpi_staging_opening *opening, const mpiox_mpi_staging *out)
{
    char name[PATH_MAX];

    return out->hidden && mpiox_storage_staging_name(mpiox_mpi_path(opening->filename), name, sizeof name) &&
           !suits_library(opening->filename, name);
}

/* False: others have such a file, and it is to be tried again until then. They may be ranks of this job, whose
 * delegates have it soon; else the opening is refused. */
static bool make(const mpiox_mpi_staging_opening *opening, const mpiox_service *service, double until,
                 mpiox_mpi_staging *out)
{
    char name[PATH_MAX];
    const bool fits = mpiox_storage_staging_name(opening->filename, name, sizeof name) &&
                      suits_library(opening->filename, name);
    int code = fits ? set_aside(opening->filename, name) : ENAMETOOLONG;

    out->folder = code == 0 ? mpiox_storage_staging_folder(name) : 0;
    if (code == 0 && opening->subfiles)
        out->parts = service->count;
    else if (code == 0 && (code = make_one(opening, service, name, out)) == EEXIST)
        code = EAGAIN;
    if (code != 0 && out->folder > 0) {
        close(out->folder);
        out->folder = 0;
    }
    if (code == EAGAIN && mpiox_now() > until)
        refuse(&out->error, EBUSY);
    if (code == EAGAIN) {
        out->made = out->striped = false;
        poll(NULL, 0, look_pause_ms);
        return out->error.code != MPIOX_OK;
    }
    out->hidden = code == 0;
    out->made = out->hidden && !opening->subfiles;
    out->scratch = out->made && opening->hints->close == MPIOX_CLOSE_NEVER;
    out->unnamed = code;
    return true;
}

/* It is open by its own name, by which others would take it for a whole one. */
static void tell_of_unnamed(const char *filename, int code)
{
    char name[PATH_MAX];
    const bool exists = code == EEXIST && mpiox_storage_staging_name(filename, name, sizeof name);

    fprintf(stderr,
            "mpiio_ext: %s: no name for what is not all written yet (%s%s): it has its own from the start, and "
            "MPI_File_close waits until it is written\n",
            filename, exists ? name : "", exists ? " exists" : strerror(code));
}

/* What the job's delegates have of it. */
static void look(const mpiox_mpi_staging_opening *opening, mpiox_service *service, mpiox_forwarded_hold **hold,
                 mpiox_mpi_staging *out)
{
    int why;

    if (service == NULL || !mpiox_mpi_path_is_posix(opening->filename) || !mpiox_forwarded_may_hold(service))
        return;
    *hold = find(service, mpiox_mpi_path(opening->filename), MPIOX_HOLD_TO_OPEN, out->patience, &out->hidden, &why);
    out->held = *hold != NULL;
    out->scratch = out->held && mpiox_forwarded_hold_is_scratch(*hold);
    if (why != 0)
        refuse(&out->error, why);
    else if (out->held && !goes_through(opening))
        flush(*hold, out->patience, &out->error);
    if (out->error.code == MPIOX_OK && does_not_suit(opening, out))
        mpiox_error_set(&out->error, MPIOX_E_IO, ENAMETOOLONG, -1, -1,
                        "open (by the name that it has until it is written)");
}

mpiox_mpi_staging mpiox_mpi_staging_begin(const mpiox_mpi_staging_opening *opening, mpiox_forwarded_hold **hold)
{
    mpiox_service *service = mpiox_service_current();
    const int32_t patience = opening->hints->drain_patience;
    const double until = mpiox_now() + whole_s;
    mpiox_mpi_staging out = {.patience = patience < whole_s ? patience : whole_s};

    *hold = NULL;
    mpiox_error_clear(&out.error);
    do {
        look(opening, service, hold, &out);
        out.late = service == NULL && (may_be_adopted(opening) || is_to_be_hidden(opening));
    } while (service != NULL && out.error.code == MPIOX_OK && !out.held && !out.hidden && is_to_be_hidden(opening) &&
             !make(opening, service, until, &out));
    return out;
}

bool mpiox_mpi_staging_start(MPI_Comm comm, const mpiox_mpi_staging_opening *opening, mpiox_mpi_staging *staging)
{
    const char *reason;
    mpiox_service *service = mpiox_service_get(comm, opening->hints, &reason);
    const double until = mpiox_now() + whole_s;
    bool hidden;
    int rank = 0, why;

    PMPI_Comm_rank(comm, &rank);
    if (rank == 0 && service != NULL) /* when it has come, what an earlier job has left is in the files */
        mpiox_forwarded_hold_end(
            find(service, mpiox_mpi_path(opening->filename), MPIOX_HOLD_TO_LOOK, 0, &hidden, &why));
    if (rank == 0 && is_to_be_hidden(opening)) {
        while (service != NULL && is_to_be_hidden(opening) && !make(opening, service, until, staging)) {
        }
        if (!staging->hidden && staging->error.code == MPIOX_OK && !opening->subfiles)
            make_striped(opening, opening->filename, staging);
    }
    return PMPI_Bcast(staging, sizeof *staging, MPI_BYTE, 0, comm) == MPI_SUCCESS;
}

const char *mpiox_mpi_staging_name(const mpiox_mpi_staging *staging, const char *filename, char room[PATH_MAX])
{
    return staging->hidden && mpiox_storage_staging_name(mpiox_mpi_path(filename), room, PATH_MAX) ? room : filename;
}

static bool is_another(const mpiox_mpi_staging *staging, const struct stat *status)
{
    return staging->inode != 0 &&
           ((uint64_t)status->st_dev != staging->device || (uint64_t)status->st_ino != staging->inode);
}

/* It has its own name already: by a delegate that had opened it when others could not, or as a file of subfiles. */
static bool is_named(const mpiox_mpi_staging *staging, const char *there)
{
    char path[PATH_MAX];
    struct stat status;

    return mpiox_storage_staging_final(there, path, sizeof path) && lstat(path, &status) == 0 &&
           !is_another(staging, &status);
}

/* The delegates do not have it: it needs no other name. A part that one of them had begun when it died nobody else
 * ends, and none has bytes yet. 0, or *error. */
static int unhide(const mpiox_mpi_staging *staging, const char *there, mpiox_error *error)
{
    const mpiox_service *service = mpiox_service_current();
    const int parts = service != NULL ? service->count : 1;
    struct stat status;
    bool renamed = false;
    int code = lstat(there, &status) == 0 ? 0 : errno;

    if (code == 0 && is_another(staging, &status))
        code = ENOENT;
    for (int part = 0; code == 0 && !renamed && part < parts; part++)
        code = mpiox_storage_staging_end(there, part, (uint64_t)status.st_dev, (uint64_t)status.st_ino, &renamed);
    if (code == 0 || ((code == ENOENT || (code == EEXIST && staging->inode != 0)) && is_named(staging, there)))
        return MPIOX_OK;
    return mpiox_error_set(error, MPIOX_E_IO, code, -1, -1, "open (the new file does not get its own name)");
}

/* Does the path lead to another folder by now? */
static bool leads_elsewhere(const mpiox_mpi_staging *staging, const char *name)
{
    struct stat held, now;
    const int folder = mpiox_storage_staging_folder(name);
    const bool known = folder > 0 && fstat(folder, &now) == 0 && fstat(staging->folder, &held) == 0;

    if (folder > 0)
        close(folder);
    return known && (held.st_dev != now.st_dev || held.st_ino != now.st_ino);
}

/* It was not opened, or as another one. What the MPI library has made in a folder that has got that path since goes,
 * too. */
static void unmake(const mpiox_mpi_staging *staging, const char *name, const char *there)
{
    if (!staging->hidden) {
        unlink(name);
    } else if (staging->inode != 0) {
        mpiox_storage_staging_remove(there, staging->device, staging->inode);
        if (leads_elsewhere(staging, name))
            mpiox_storage_staging_remove_empty(name);
    } else {
        if (mpiox_subfiles_job_remove(there) == EILSEQ)
            unlink(there);
        mpiox_storage_staging_forget(there);
    }
}

/* Rank 0, of what it has made. 0, or *error. */
static int settle_made(const mpiox_mpi_staging *staging, const char *name, bool opened, bool through_delegates,
                       mpiox_error *error)
{
    char room[PATH_MAX];
    const char *there = where_made(staging, name, room);

    if (!opened || (staging->hidden && !through_delegates && unhide(staging, there, error) != MPIOX_OK))
        unmake(staging, name, there);
    if (staging->guard > 0)
        close(staging->guard);
    if (staging->folder > 0)
        close(staging->folder);
    return error->code;
}

int mpiox_mpi_staging_opened(MPI_Comm comm, const mpiox_mpi_staging *staging, const char *name, bool opened,
                             bool through_delegates, mpiox_forwarded_hold *hold, mpiox_error *error)
{
    int rank = 0;

    mpiox_error_clear(error);
    PMPI_Comm_rank(comm, &rank);
    if (rank == 0 && staging->unnamed != 0 && opened) /* else the MPI library says why */
        tell_of_unnamed(name, staging->unnamed);
    if (!staging->held && !staging->made) {
        if (rank == 0 && staging->folder > 0) /* subfiles that were not made */
            close(staging->folder);
        return MPIOX_OK;
    }
    if (hold != NULL && opened && !through_delegates)
        flush(hold, staging->patience, error);
    if (rank == 0 && staging->made)
        settle_made(staging, name, opened, through_delegates, error);
    mpiox_forwarded_hold_end(hold);
    if ((staging->held || !through_delegates) && PMPI_Bcast(error, sizeof *error, MPI_BYTE, 0, comm) != MPI_SUCCESS)
        error->code = MPIOX_E_MPI;
    return error->code;
}

/* By the MPI library, unless the name is an index: it would leave the subfiles. */
static int delete_named(const char *filename, MPI_Info info)
{
    const char *path = filename != NULL && mpiox_mpi_path_is_posix(filename) ? mpiox_mpi_path_opened(filename) : NULL;
    mpiox_error error;
    const int code = path != NULL ? mpiox_storage_container.delete(path) : EILSEQ;

    if (code == EILSEQ)
        return PMPI_File_delete(filename, info);
    if (code == 0)
        return MPI_SUCCESS;
    mpiox_error_set(&error, MPIOX_E_IO, code, -1, -1,
                    code == EBUSY ? "deleting a file of subfiles that a program has open"
                                  : "deleting a file of subfiles");
    return mpiox_mpi_error_raise(MPI_FILE_NULL, path, &error);
}

/* What delegates have of it is not written any more. */
int mpiox_mpi_delete(const char *filename, MPI_Info info)
{
    mpiox_service *service = mpiox_service_current();
    mpiox_forwarded_hold *hold = NULL;
    char room[PATH_MAX];
    bool hidden = false;
    int result, why;

    if (service != NULL && filename != NULL && mpiox_mpi_path_is_posix(filename) && mpiox_forwarded_may_hold(service))
        hold = find(service, mpiox_mpi_path(filename), MPIOX_HOLD_TO_DELETE, 0, &hidden, &why);
    if (hold != NULL)
        mpiox_forwarded_hold_discard(hold);
    hidden = hidden && !is_there(mpiox_mpi_path(filename)); /* who writes it for a delegate that has died names it */
    const mpiox_mpi_staging staging = {.hidden = hidden};
    const char *name = mpiox_mpi_staging_name(&staging, filename, room);

    result = delete_named(name, info);
    if (hidden && result == MPI_SUCCESS)
        mpiox_storage_staging_forget(name);
    mpiox_forwarded_hold_end(hold);
    return result;
}
