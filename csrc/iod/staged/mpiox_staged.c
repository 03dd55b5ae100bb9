/*
 * mpiox_staged.c - the opener of files with a hidden name: they have it until all of their bytes are written.
 *
 * Problem.   With mpiox_close=staged a new file has a staging name until delegates have written it. The program uses
 *            its own name all the time: it may open the file again, in another way, or delete it.
 * Algorithm. A file with a staging name is either open, or closed and being written. Then it gets its own name, and is
 *            like any other. Rank 0 searches for the file before it is opened. If the file was closed, the rank waits
 *            until it has its own name. If the file system refuses its bytes, the open fails, and the bytes stay with
 *            the delegates. If other ranks have it open, rank 0 has the delegates hold it until all ranks have opened
 *            it, and its decision names the staging name.
 *            The folder may be renamed meanwhile. Rank 0 creates the file in the folder that it found first, and
 *            compares the file that it has opened, as the delegates of its node do: if it is another one, the opening
 *            begins again.
 * Guarantee. Existing files keep their name. Without delegates no file gets another name.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_forwarded.h"
#include "mpiox_layout_create.h"
#include "mpiox_opener.h"
#include "mpiox_print.h"
#include "mpiox_storage_container.h"
#include "mpiox_storage_folder.h"
#include "mpiox_storage_staging.h"

/* Rank 0's state of an opening. */
typedef struct staged {
    mpiox_forwarded_hold *hold; /* the delegates' hold of the file, or NULL */
    double patience;            /* seconds that it waits while the file system refuses its bytes */
    int guard;  /* > 0: a descriptor whose lock shows that the file is being created, until the delegates lock it */
    int folder; /* > 0: of the folder in which it was made */
} staged;

static const char replica_waits[] = "at level replica MPI_File_close waits until all is written, where a file exists "
                                    "already or copies would be on the same node";

enum { fresh_s = 1 };

enum { look_pause_ms = 20, refused_pause_ms = 100 };

static const double whole_s = 10; /* limit on a wait for a file that other ranks have open, or that is refused */

/* Find a file that other ranks have open at the delegates. *hidden: it has its staging name. A closed file gets its own
 * name before this returns, unless *why is an errno. */
static mpiox_forwarded_hold *find(mpiox_service *service, const char *path, int how, double patience, bool *hidden,
                                  int *why)
{
    char name[PATH_MAX];

    *hidden = !mpiox_storage_staging_is_there(path);
    *why = 0;
    if (!*hidden)
        return mpiox_forwarded_hold_file(service, path, how, patience, why);
    *hidden = mpiox_storage_staging_name(path, name, sizeof name) && mpiox_storage_staging_is_there(name);
    if (!*hidden)
        return NULL;
    mpiox_forwarded_hold *hold = mpiox_forwarded_hold_file(service, name, how, patience, why);

    *hidden = hold != NULL || mpiox_storage_staging_is_of(name, service->id);
    return hold;
}

/* Refuse an open; the delegates keep their bytes of the file. */
static int refuse(mpiox_error *error, int code)
{
    const char *what = "open (I/O delegates cannot write the rest of it, which stays with them)";

    if (code == EBUSY)
        what = "open (another job writes a file of this name: `mpiio-ext delegates wait`)";
    else if (code == EAGAIN)
        what = mpiox_storage_container.open_elsewhere;
    else if (code == ENODATA)
        what = "open (it does not get its name: see `mpiio-ext delegates wait`)";
    return mpiox_error_set(error, MPIOX_E_IO, code != 0 ? code : EIO, -1, -1, what);
}

/* Write the delegates' bytes to the file, which is opened past them. The file system may refuse them for a while. 0, or
 * why they stay with the delegates. */
static int flush(const mpiox_forwarded_hold *hold, double patience, mpiox_error *error)
{
    const double until = mpiox_now() + patience;

    while (mpiox_forwarded_hold_flush(hold, error) != MPIOX_OK && mpiox_now() < until)
        poll(NULL, 0, refused_pause_ms);
    return error->code == MPIOX_OK ? MPIOX_OK : refuse(error, error->sys_errno);
}

/* For calls past MPI, in any thread, and after MPI. The delegates do not hold the file meanwhile, since the waiting
 * process may be killed. False: other ranks have it open for too long, or the file system refuses it. */
static bool await(const char *path)
{
    mpiox_service *service = mpiox_service_last();
    const double until = mpiox_now() + whole_s;
    mpiox_forwarded_hold *hold;
    bool hidden, open;
    int why;

    if (service == NULL || !mpiox_forwarded_may_hold(service))
        return true;
    do {
        hold = find(service, path, MPIOX_HOLD_TO_LOOK, whole_s, &hidden, &why);
        open = hold != NULL;
        mpiox_forwarded_hold_end(hold);
        if (open)
            poll(NULL, 0, look_pause_ms);
    } while (open && mpiox_now() < until);
    return !open && why == 0;
}

static bool goes_through(const mpiox_opening *o)
{
    return o->wanted && mpiox_service_wanted(o->hints) && !(o->amode & MPI_MODE_DELETE_ON_CLOSE);
}

/* Will the file be created, under a name without a driver's prefix? */
static bool is_to_be_hidden(const mpiox_opening *o)
{
    const int access_mode = o->amode & (MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR);

    return o->hints->close != MPIOX_CLOSE_WRITTEN && goes_through(o) && o->amode & MPI_MODE_CREATE &&
           (access_mode == MPI_MODE_WRONLY || access_mode == MPI_MODE_RDWR) && !o->prefixed &&
           !mpiox_storage_staging_is_there(o->filename);
}

/* The file is incomplete, and the delegates that are about to start may have its other bytes. */
static bool may_be_adopted(const mpiox_opening *o)
{
    char name[PATH_MAX];

    return o->hints->close == MPIOX_CLOSE_BEHIND && o->hints->delegate_cache_dir[0] != '\0' && goes_through(o) &&
           o->bare != NULL && !mpiox_storage_staging_is_there(o->bare) &&
           mpiox_storage_staging_name(o->bare, name, sizeof name) && mpiox_storage_staging_is_there(name);
}

/* Was the file changed just now, by this node's clock? Its creator may not have locked it yet. */
static bool is_fresh(const char *name)
{
    struct stat status;
    const time_t now = time(NULL);

    return lstat(name, &status) == 0 && status.st_ctime >= now - fresh_s && status.st_ctime <= now + fresh_s;
}

/* Rename the leftover of a killed job. 0, EAGAIN: other processes have it, or are just creating it, or it is of this
 * job, or EEXIST: it stays, since that is not known. */
static int set_aside(const mpiox_service *service, const char *filename, const char *name)
{
    char aside[PATH_MAX];
    const int code = !mpiox_storage_staging_is_there(name) ? ENOENT
                     : is_fresh(name) || mpiox_storage_staging_is_of(name, service->id)
                         ? EAGAIN
                         : mpiox_storage_staging_set_aside(name, aside, sizeof aside);

    if (code == 0)
        mpiox_print("mpiio_ext: %s: %s was left by a job that was killed; it is called %s from now on\n", filename,
                    name, aside);
    return code == 0 || code == ENOENT ? 0 : code == EAGAIN ? EAGAIN : EEXIST;
}

/* The path of the file that rank 0 has created, by its folder's present name. May lie in `room`. */
static const char *where_made(const staged *s, const char *name, char room[PATH_MAX])
{
    struct stat status;
    const bool known = s->folder > 0 && mpiox_storage_folder_in(s->folder, "", room, PATH_MAX) &&
                       stat(room, &status) == 0 && mpiox_storage_folder_in(s->folder, name, room, PATH_MAX);

    return known ? room : name;
}

/* One file, in the folder that the path leads to now, with the hints' striping, where the file system takes it. 0 or an
 * errno. */
static int make_one(mpiox_opening *o, const mpiox_service *service, const char *name, staged *s)
{
    const mpiox_layout_wish wish = {o->hints->striping_unit, o->hints->striping_factor, o->hints->start_iodevice};
    char room[PATH_MAX];
    struct stat status;
    const char *there = where_made(s, name, room);
    const mpiox_layout_made made = mpiox_layout_create(there, &wish);
    int code = mpiox_storage_staging_create(there, made != MPIOX_MADE_NOTHING, service->count);

    if (code == 0 && lstat(there, &status) != 0) {
        code = errno;
        mpiox_storage_staging_forget(there);
        unlink(there);
    }
    if (code == 0 && mpiox_storage_staging_is_there(
                         o->filename)) { /* another process has just renamed the staging file to this name */
        code = EEXIST;
        mpiox_storage_staging_remove(there, (uint64_t)status.st_dev, (uint64_t)status.st_ino);
    }
    if (code == 0) {
        s->guard = mpiox_storage_staging_guard(there);
        o->decision->device = (uint64_t)status.st_dev;
        o->decision->inode = (uint64_t)status.st_ino;
        o->decision->striped = made == MPIOX_MADE_STRIPED;
    }
    return code;
}

/* OMPIO appends ".locktest.RANK" to a path in 256 bytes, without a check: a longer staging name would crash the
 * program. */
static bool suits_library(const char *filename, const char *name)
{
#ifdef OPEN_MPI
    enum { MOST = 256 - sizeof ".locktest.0", RANK_DIGITS = 7 };

    return strlen(filename) > MOST || strlen(name) + RANK_DIGITS <= MOST;
#else
    return filename != NULL && name != NULL;
#endif
}

/* Is the staging name too long for the MPI library, though another rank could create the file? */
static bool does_not_suit(const mpiox_opening *o)
{
    char name[PATH_MAX];

    return o->decision->hidden && mpiox_storage_staging_name(o->bare, name, sizeof name) &&
           !suits_library(o->filename, name);
}

/* False: another process has such a file, and the caller tries again until `until`. It may be a rank of this job, whose
 * delegates have the file soon; else the opening is refused. */
static bool make(mpiox_opening *o, const mpiox_service *service, double until, staged *s)
{
    mpiox_decision *decision = o->decision;
    char name[PATH_MAX];
    const bool fits = mpiox_storage_staging_name(o->filename, name, sizeof name) && suits_library(o->filename, name),
               stores = mpiox_opener_stores(o->hints);
    int code = fits ? set_aside(service, o->filename, name) : ENAMETOOLONG;

    s->folder = code == 0 ? mpiox_storage_folder_open(name) : 0;
    if (code == 0 && stores)
        decision->parts = service->count;
    else if (code == 0 && (code = make_one(o, service, name, s)) == EEXIST)
        code = EAGAIN;
    if (code != 0 && s->folder > 0) {
        close(s->folder);
        s->folder = 0;
    }
    if (code == EAGAIN && mpiox_now() > until)
        refuse(&decision->error, EBUSY);
    if (code == EAGAIN) {
        poll(NULL, 0, look_pause_ms);
        return decision->error.code != MPIOX_OK;
    }
    decision->hidden = code == 0;
    decision->made = decision->hidden && !stores;
    decision->unnamed = code;
    return true;
}

/* The file is open under its own name, so that readers would take it for complete. */
static void report_unnamed(const char *filename, int code)
{
    char name[PATH_MAX];
    const bool exists = code == EEXIST && mpiox_storage_staging_name(filename, name, sizeof name);

    mpiox_print("mpiio_ext: %s: no name for what is not all written yet (%s%s): it has its own from the start, and "
                "MPI_File_close waits until it is written\n",
                filename, exists ? name : "", exists ? " exists" : strerror(code));
}

/* Query the job's delegates for their bytes of the file. */
static void look(mpiox_opening *o, mpiox_service *service, staged *s)
{
    mpiox_decision *decision = o->decision;
    int why;

    if (service == NULL || o->bare == NULL || !mpiox_forwarded_may_hold(service))
        return;
    s->hold = find(service, o->bare, MPIOX_HOLD_TO_OPEN, s->patience, &decision->hidden, &why);
    decision->held = s->hold != NULL;
    if (why != 0)
        refuse(&decision->error, why);
    else if (decision->held && !goes_through(o))
        flush(s->hold, s->patience, &decision->error);
    if (decision->error.code == MPIOX_OK && does_not_suit(o))
        mpiox_error_set(&decision->error, MPIOX_E_IO, ENAMETOOLONG, -1, -1,
                        "open (by the name that it has until it is written)");
}

/* Also, this process writes the bytes of dead delegates of its node: a rank of the opening may soon read them. */
static void follow(mpiox_opening *o)
{
    mpiox_service *service = mpiox_service_current();

    for (int32_t i = 0; service != NULL && i < service->count; i++)
        if (service->delegates[i].local)
            (void)mpiox_process_is_serving(&service->delegates[i]);
    o->name = o->decision->hidden && mpiox_storage_staging_name(o->bare, o->room, PATH_MAX) ? o->room : o->filename;
}

static bool decide(mpiox_opening *o, void **state)
{
    mpiox_service *service = mpiox_service_current();
    const int32_t patience = o->hints->drain_patience;
    const double until = mpiox_now() + whole_s;
    mpiox_decision *decision = o->decision;
    staged *s = calloc(1, sizeof *s);
    bool late;

    *state = s;
    if (s == NULL) {
        mpiox_error_set(&decision->error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "open");
        return true;
    }
    s->patience = patience < whole_s ? patience : whole_s;
    do {
        look(o, service, s);
        late = service == NULL && (may_be_adopted(o) || is_to_be_hidden(o));
    } while (service != NULL && decision->error.code == MPIOX_OK && !decision->held && !decision->hidden &&
             is_to_be_hidden(o) && !make(o, service, until, s));
    decision->is_there |= (o->amode & MPI_MODE_EXCL) && decision->hidden && !decision->made && decision->parts == 0;
    follow(o);
    return !late;
}

/* The delegates are started before it can be made. */
static bool start(mpiox_opening *o, void **state)
{
    const char *reason;
    mpiox_service *service = mpiox_service_get(o->comm, o->hints, &reason);
    const double until = mpiox_now() + whole_s;
    bool hidden;
    int why;

    if (o->rank == 0 && service != NULL) /* when it has come, what an earlier job has left is in the files */
        mpiox_forwarded_hold_end(find(service, o->bare, MPIOX_HOLD_TO_LOOK, 0, &hidden, &why));
    if (o->rank == 0)
        while (service != NULL && is_to_be_hidden(o) && !make(o, service, until, *state))
            continue;
    if (o->rank == 0)
        follow(o);
    return true;
}

static bool is_another(const mpiox_decision *decision, const struct stat *status)
{
    return decision->inode != 0 &&
           ((uint64_t)status->st_dev != decision->device || (uint64_t)status->st_ino != decision->inode);
}

/* Does it have its own name already? A delegate may have opened it when others could not, or it is a file of subfiles.
 */
static bool is_named(const mpiox_decision *decision, const char *there)
{
    char path[PATH_MAX];
    struct stat status;

    return mpiox_storage_staging_final(there, path, sizeof path) && lstat(path, &status) == 0 &&
           !is_another(decision, &status);
}

/* No delegate has the file: it needs no hidden name. End the parts of all delegates: one may have begun its part and
 * died, and none has bytes yet. 0, or *error. */
static int unhide(const mpiox_decision *decision, const char *there, mpiox_error *error)
{
    const mpiox_service *service = mpiox_service_current();
    const int parts = service != NULL ? service->count : 1;
    struct stat status;
    bool renamed = false;
    int code = lstat(there, &status) == 0 ? 0 : errno;

    if (code == 0 && is_another(decision, &status))
        code = ENOENT;
    for (int part = 0; code == 0 && !renamed && part < parts; part++)
        code = mpiox_storage_staging_end(there, part, (uint64_t)status.st_dev, (uint64_t)status.st_ino, &renamed);
    if (code == 0 || ((code == ENOENT || (code == EEXIST && decision->inode != 0)) && is_named(decision, there)))
        return MPIOX_OK;
    return mpiox_error_set(error, MPIOX_E_IO, code, -1, -1, "open (the new file does not get its own name)");
}

/* Does the path lead to another folder by now? */
static bool leads_elsewhere(const staged *s, const char *name)
{
    struct stat held, now;
    const int folder = mpiox_storage_folder_open(name);
    const bool known = folder > 0 && fstat(folder, &now) == 0 && fstat(s->folder, &held) == 0;

    if (folder > 0)
        close(folder);
    return known && (held.st_dev != now.st_dev || held.st_ino != now.st_ino);
}

/* The file was not opened, or another one was. Also remove what the MPI library has created in a folder that has got
 * this path since. */
static void unmake(const mpiox_opening *o, const staged *s, const char *there)
{
    if (o->decision->inode != 0) {
        mpiox_storage_staging_remove(there, o->decision->device, o->decision->inode);
        if (leads_elsewhere(s, o->name))
            mpiox_storage_staging_remove_empty(o->name);
    } else {
        if (mpiox_storage_container.remove(there) == EILSEQ)
            unlink(there);
        mpiox_storage_staging_forget(there);
    }
}

/* Rank 0 names, signs or removes the file that it has created. 0, or *error. */
static int settle_made(const mpiox_opening *o, const staged *s, bool opened, mpiox_error *error)
{
    char room[PATH_MAX];
    const char *there = where_made(s, o->name, room);

    if (!opened || (!o->through && unhide(o->decision, there, error) != MPIOX_OK))
        unmake(o, s, there);
    else if (o->through)
        (void)mpiox_storage_staging_sign(there, mpiox_service_current()->id);
    return error->code;
}

/* The delegates need not hold the file any more. Collective if they did, or if it was created and no delegate serves
 * it: 0, or the same *error on all ranks: decision->error, or that it does not get its own name. */
static int end(mpiox_opening *o, staged *s, bool opened, mpiox_error *error)
{
    const mpiox_decision *decision = o->decision;
    const bool made = decision->hidden && decision->made;

    mpiox_error_clear(error);
    if (s != NULL && decision->unnamed != 0 && opened) /* else the MPI library reports why */
        report_unnamed(o->name, decision->unnamed);
    if (s != NULL && s->hold != NULL && opened && !o->through)
        flush(s->hold, s->patience, error);
    if (s != NULL && made)
        settle_made(o, s, opened, error);
    if (s != NULL) {
        if (s->guard > 0)
            close(s->guard);
        if (s->folder > 0)
            close(s->folder);
        mpiox_forwarded_hold_end(s->hold);
        free(s);
    }
    if ((decision->held || (made && !o->through)) &&
        PMPI_Bcast(error, sizeof *error, MPI_BYTE, 0, o->comm) != MPI_SUCCESS)
        error->code = MPIOX_E_MPI;
    return error->code;
}

/* Why the close waits, though the hint forbids it. NULL: it does not wait. */
static const char *waits_at_close(const mpiox_opening *o)
{
    if (o->through == NULL || o->hints->close != MPIOX_CLOSE_BEHIND || mpiox_forwarded_closes_behind(o->through) ||
        o->decision->unnamed != 0 || /* already reported */ o->amode & (MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE))
        return NULL;
    if (o->decision->container && !o->decision->hidden)
        return mpiox_storage_container.exists_already;
    return mpiox_forwarded_level(o->through) == MPIOX_ACK_REPLICA ? replica_waits : NULL;
}

/* Once for a process. */
static void report_waiting(const mpiox_opening *o)
{
    static atomic_flag printed = ATOMIC_FLAG_INIT;
    const char *waits = o->rank == 0 ? waits_at_close(o) : NULL;

    if (waits != NULL && !atomic_flag_test_and_set(&printed))
        mpiox_print("mpiio_ext: %s: mpiox_close=staged: %s\n", o->decision->hidden ? o->name : o->found, waits);
}

/* A file that not all ranks have opened is removed. */
static int keep(mpiox_opening *o, void **state, bool *abandoned, mpiox_error *error)
{
    staged *s = *state;

    report_waiting(o);
    (void)abandoned;
    *state = NULL;
    return end(o, s, o->opened && !mpiox_opening_is_partial(o), error);
}

static void abandon(mpiox_opening *o, void **state)
{
    staged *s = *state;
    mpiox_error ignored;

    *state = NULL;
    end(o, s, false, &ignored);
}

static const char *discard(const char *path, char room[PATH_MAX], void **held)
{
    mpiox_service *service = mpiox_service_current();
    bool hidden = false;
    int why;

    *held = NULL;
    if (service == NULL || !mpiox_forwarded_may_hold(service))
        return NULL;
    mpiox_forwarded_hold *hold = find(service, path, MPIOX_HOLD_TO_DELETE, 0, &hidden, &why);

    if (hold != NULL)
        mpiox_forwarded_hold_discard(hold);
    *held = hold; /* a process that writes the file in place of a dead delegate gives it its own name: */
    return hidden && !mpiox_storage_staging_is_there(path) && mpiox_storage_staging_name(path, room, PATH_MAX) ? room
                                                                                                               : NULL;
}

static void discarded(const char *name, void *held)
{
    if (name != NULL)
        mpiox_storage_staging_forget(name);
    mpiox_forwarded_hold_end(held);
}

const mpiox_opener mpiox_staged_opener = {
    .decide = decide,
    .start = start,
    .follow = follow,
    .keep = keep,
    .abandon = abandon,
    .discard = discard,
    .discarded = discarded,
    .await = await,
};
