/*
 * mpiox_subfiles_opener.c - the opener of files that are stored as several, from their opening to their close.
 *
 * Problem.   The name that a program opens is an index. The MPI library, which opens the name that it gets, must never
 *            take the index for the data, and a killed process must not leave a file that looks complete.
 * Algorithm. Rank 0 checks the file before it is opened, and every rank checks the file that it has opened. If it has
 *            become an index, another one, or none, all ranks close it and begin again, ten times at most. If the hint
 *            requests it a new file is created as subfiles; an existing file is what its index describes, whatever the
 *            hints. Before a rank writes, the index gets the state `writing`. Rank 0 sets it to `whole` once all ranks
 *            have closed the file, unless an earlier job has left it unfinished. The MPI library opens the index for
 *            reading only, and gets no access: an operation that this library cannot carry out is an error.
 *            If delegates write a file behind its close, its index has a staging name (csrc/iod/staged) and the state
 *            `writing`, until the last delegate, or rank 0 at its close, gives the file its own name and the state
 *            `whole`. If the close fails the file gets its own name at once, and is not `whole`.
 * Guarantee. Every rank opens the file in the same way, or gets the same error. A damaged index, or a subfile that is
 *            missing or has the wrong size, is an error of the opening, which names it.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_layout.h"
#include "mpiox_layout_gluster.h"
#include "mpiox_layout_inspect.h"
#include "mpiox_opener.h"
#include "mpiox_print.h"
#include "mpiox_storage_staging.h"
#include "mpiox_subfiles_files.h"
#include "mpiox_wait.h"

/* Rank 0 has the file open; the index is to be made whole. */
typedef struct writer {
    mpiox_subfiles index;
    int guard;
    bool reads;  /* and nothing else */
    bool staged; /* it is whole once delegates have written it */
    bool torn;   /* a job before has not closed it, and it has not been emptied since */
    bool stable; /* it was synced */
} writer;

enum {
    TRIES = 100,
    AWAIT_S = 3, /* clients of GlusterFS, NFS and FUSE trust their caches of names for a second */
    AWAIT_PAUSE_NS = 10000000
};

static const char
    per_node[] = "per_node=",
    too_long[] = "open (names of subfiles are longer: give it one of 214 bytes at most, or a shorter path)",
    anothers[] = "open (making subfiles; if the folder NAME.subfiles is another user's: take another name)",
    no_folder[] = "open (making subfiles; if NAME.subfiles is no folder: remove it, or take another name)";

/* ---- how a new file is cut --------------------------------------------------------------------------------------- */

/* Is a file that is made to be stored as several? */
static bool stores(const mpiox_hints *hints)
{
    return strcmp(hints->subfiles, "0") != 0 && strcasecmp(hints->subfiles, "per_node=0") != 0;
}

static bool is_per_node(const mpiox_hints *hints)
{
    return strncasecmp(hints->subfiles, per_node, sizeof per_node - 1) == 0;
}

static void folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');

    snprintf(folder, PATH_MAX, "%.*s", slash == NULL || slash == path ? 1 : (int)(slash - path),
             slash == NULL ? "." : path);
}

typedef struct target {
    char name[MPIOX_LAYOUT_BRICK_BYTES];
    int32_t subfiles; /* that lie there */
} target;

/* Where new files of a folder can lie. */
typedef struct servers {
    int32_t servers; /* of all new files, as far as the file system reports it; else < 1 */
    int32_t targets; /* > 1: each file lies on one of them, by its name */
    int32_t known;   /* of them: */
    target *target;  /* [targets]; NULL: names do not matter */
} servers;

static servers servers_of(const char *folder)
{
    mpiox_layout_facts *facts = NULL;
    const mpiox_layout_wish wish = {.striping_factor = -1, .start_device = -1};
    servers out = {.servers = 1};

    if (mpiox_layout_inspect_path(folder, &wish, &facts) == MPIOX_OK) {
        out.targets = atoi(facts->fact[MPIOX_FACT_TARGETS].value);
        out.servers = out.targets > 1 ? out.targets : atoi(facts->fact[MPIOX_FACT_SERVERS].value);
    }
    if (out.targets > 1)
        out.target = calloc((size_t)out.targets, sizeof *out.target);
    mpiox_layout_facts_free(facts);
    return out;
}

/* Targets fill evenly: each gets its next subfile when all have as many. */
static bool fits(int fd, int32_t subfile, bool last, void *context)
{
    servers *all = context;
    char name[MPIOX_LAYOUT_BRICK_BYTES];
    int32_t i = 0;

    if (!mpiox_layout_gluster_brick_of(fd, name))
        return true;
    while (i < all->known && strcmp(all->target[i].name, name) != 0)
        i++;
    if (i == all->targets)
        return true;
    if (i == all->known)
        strcpy(all->target[all->known++].name, name);
    if (!last && all->target[i].subfiles > subfile / all->targets)
        return false;
    all->target[i].subfiles++;
    return true;
}

static int64_t unit_of(const char *folder, const mpiox_hints *hints)
{
    mpiox_layout layout;
    const int fd = hints->subfile_unit > 0 || hints->striping_unit > 0
                       ? -1
                       : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (hints->subfile_unit > 0 || hints->striping_unit > 0)
        return hints->subfile_unit > 0 ? hints->subfile_unit : hints->striping_unit;
    if (fd < 0)
        return MPIOX_LAYOUT_DEFAULT_STRIPE_SIZE;
    mpiox_layout_detect(fd, 0, 0, &layout);
    close(fd);
    return layout.stripe_known ? layout.stripe_size : MPIOX_LAYOUT_DEFAULT_STRIPE_SIZE;
}

/* Once for a process: what the hint asks for is not what the file gets. */
static void print_note(const char *path, const mpiox_hints *hints, const char *what)
{
    static atomic_flag printed = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&printed))
        mpiox_print("mpiio_ext: %s: mpiox_subfiles=%s: %s\n", path, hints->subfiles, what);
}

static int32_t count_of(const char *path, const servers *all, const mpiox_hints *hints, int nodes)
{
    const bool each = is_per_node(hints), by_server = strcasecmp(hints->subfiles, "per_server") == 0;
    const int64_t count = by_server ? all->servers
                          : each    ? (int64_t)nodes * atoi(hints->subfiles + sizeof per_node - 1)
                                    : atoi(hints->subfiles);

    if (by_server && count < 1)
        print_note(path, hints, "how many servers there are is not known: one subfile is made");
    if (count > MPIOX_SUBFILES_MOST)
        print_note(path, hints, "that is more than a file can have: 4096 subfiles are made");
    return count < 1 ? 1 : count < MPIOX_SUBFILES_MOST ? (int32_t)count : MPIOX_SUBFILES_MOST;
}

static int create(const mpiox_opening *o, int nodes, writer *out)
{
    const mpiox_hints *hints = o->hints;
    const char *path = o->decision->parts > 0 ? o->name : o->filename; /* of the index */
    char folder[PATH_MAX];

    folder_of(path, folder);
    servers all = servers_of(folder);
    const mpiox_subfiles_places places = {fits, &all};
    const int code = mpiox_subfiles_create(path, o->filename, count_of(path, &all, hints, nodes),
                                           unit_of(folder, hints), all.target != NULL ? &places : NULL, &out->index,
                                           &out->guard);
    free(all.target);
    return code;
}

/* An index with a staging name has a file of parts beside it, which shows which delegates have bytes left. */
static int create_staged(const mpiox_opening *o, writer *out)
{
    const int code = mpiox_storage_staging_create(o->name, true, o->decision->parts);

    out->staged = code == 0;
    if (code == 0)
        return 0;
    mpiox_subfiles_remove(&out->index);
    mpiox_subfiles_free(&out->index);
    if (out->guard >= 0)
        close(out->guard);
    return code;
}

static void fail(mpiox_opening *o, int sys_errno, const char *what)
{
    mpiox_error_set(&o->decision->error, MPIOX_E_IO, sys_errno, -1, -1, what);
}

/* The meaning of the errno of a file that could not be created. */
static const char *why_not_made(int code)
{
    return code == ENAMETOOLONG ? too_long
           : code == EPERM      ? anothers
           : code == ENOTDIR    ? no_folder
                                : "open (making subfiles)";
}

/* False: something has come to have its name meanwhile. */
static bool make(mpiox_opening *o, int nodes, void **state)
{
    writer *w = calloc(1, sizeof *w);
    int code = w != NULL ? create(o, nodes, w) : ENOMEM;

    if (code == 0 && o->decision->parts > 0)
        code = create_staged(o, w);
    if (code == 0) {
        o->decision->container = o->decision->made = true;
        o->decision->id = w->index.id;
        *state = w;
        return true;
    }
    free(w);
    if (code == EEXIST && o->decision->parts == 0)
        return false;
    fail(o, code, why_not_made(code));
    return true;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool writes(int amode)
{
    return (amode & MPI_MODE_RDONLY) == 0;
}

/* Is it a mode that MPI allows? The MPI library reports errors of others. */
static bool is_good(int amode)
{
    const int access_mode = amode & (MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR);

    return (access_mode == MPI_MODE_RDONLY && !(amode & (MPI_MODE_CREATE | MPI_MODE_EXCL))) ||
           access_mode == MPI_MODE_WRONLY || access_mode == MPI_MODE_RDWR;
}

static void report_writing(const char *path)
{
    mpiox_print(
        "mpiio_ext: %s: it was never closed: a job that wrote it ended before, and bytes may be missing; it stays "
        "unfinished until it is emptied\n",
        path);
}

static void drop(writer *writer)
{
    if (writer->guard >= 0)
        close(writer->guard);
    mpiox_subfiles_free(&writer->index);
    free(writer);
}

static bool is_unused(const writer *writer)
{
    return writer->guard >= 0 && mpiox_storage_guard(writer->guard, MPIOX_GUARD_LOOK) == 0;
}

/* Delegates write the file: its index has the state already. */
static int begin(writer *writer)
{
    int code = 0;

    if (!writer->reads && !writer->staged)
        code = mpiox_subfiles_begin(&writer->index, writer->guard, &writer->torn);
    if (code == 0 &&
        (writer->torn || (writer->reads && !writer->staged && writer->index.size < 0 && is_unused(writer))))
        report_writing(writer->index.index);
    return code;
}

static void fail_of_subfile(mpiox_opening *o, const mpiox_subfiles *index, int32_t bad, int code)
{
    char what[sizeof o->decision->error.what], folder[PATH_MAX];

    if (code == ENOENT && !mpiox_subfiles_folder(index, folder, sizeof folder))
        snprintf(what, sizeof what, "open (its folder %.48s is missing)", strrchr(folder, '/') + 1);
    else
        snprintf(what, sizeof what, "open (subfile %d %s)", bad,
                 code == ENOENT    ? "is missing"
                 : code == EBADMSG ? "has another size than in its index"
                 : code == EACCES  ? "cannot be reached: chmod its folder"
                                   : "cannot be used");
    fail(o, code == EBADMSG ? EIO : code, what);
}

/* False, after fail(): something is wrong with the subfiles. */
static bool is_usable(mpiox_opening *o, const mpiox_subfiles *index)
{
    int32_t bad = 0;
    const int code = mpiox_subfiles_check(index, &bad);

    if (code != 0)
        fail_of_subfile(o, index, bad, code);
    else if (writes(o->amode) && mpiox_subfiles_is_copy(index))
        fail(o, EPERM, "open (for writing a copy of the index of another file)");
    return o->decision->error.code == MPIOX_OK;
}

/* Open the file of a good index. False: meanwhile another process has removed the file, or replaced it by another kind.
 */
static bool open_index(mpiox_opening *o, mpiox_subfiles *index, void **state)
{
    writer *w = calloc(1, sizeof *w);
    int code;

    if (w == NULL) {
        fail(o, ENOMEM, "open (the index of subfiles)");
        return true;
    }
    w->index = *index;
    *index = (mpiox_subfiles){.size = -1};
    w->reads = !writes(o->amode);
    w->staged = o->decision->hidden;
    w->guard = mpiox_subfiles_guard(&w->index, w->reads ? MPIOX_GUARD_READS : MPIOX_GUARD_SHARED);
    if (w->guard >= 0 && !mpiox_subfiles_is_current(&w->index, w->guard)) {
        drop(w);
        return false;
    }
    if (is_usable(o, &w->index) && (code = begin(w)) != 0)
        fail(o, code, "open (replacing the index of subfiles)");
    o->decision->container = o->decision->error.code == MPIOX_OK;
    o->decision->id = w->index.id;
    if (o->decision->container)
        *state = w;
    else
        drop(w);
    return true;
}

/* False: check again. */
static bool examine(mpiox_opening *o, const char *path, void **state)
{
    mpiox_subfiles index;
    char what[sizeof o->decision->error.what];
    const char *why;
    const int code = mpiox_subfiles_read(path, &index, &why);
    bool done = true;

    if (code == EBADMSG) {
        snprintf(what, sizeof what, "open (index of subfiles: %s)", why);
        fail(o, EIO, what);
    } else if (code != 0 && code != EILSEQ) {
        fail(o, code, "open (the index of subfiles)");
    } else if (code == 0 && !o->wanted) {
        snprintf(what, sizeof what, "open (stored as subfiles, and %s: mpiio-ext subfiles merge it)", o->why_not);
        mpiox_error_set(&o->decision->error, MPIOX_E_UNSUPPORTED, 0, -1, -1, what);
    } else if (code == 0) {
        done = open_index(o, &index, state);
    }
    mpiox_subfiles_free(&index);
    return done;
}

/* Of how many nodes is not known yet. */
enum { NODES_LATER = 0 };

/* Open the file at `path`, if there is one, or create it. False: check again. *late: not before the nodes are counted.
 */
static bool find_or_make(mpiox_opening *o, const char *path, int nodes, bool *late, void **state)
{
    const bool is_to_be_made = o->decision->parts > 0;
    struct stat status;

    if (!is_to_be_made && mpiox_subfiles_is_index(path))
        return examine(o, path, state);
    if (!o->wanted || !stores(o->hints) || !(o->amode & MPI_MODE_CREATE))
        return true;
    if (!o->prefixed && (is_to_be_made || lstat(path, &status) != 0 || mpiox_subfiles_drop_emptied(path))) {
        *late = is_per_node(o->hints) && nodes == NODES_LATER;
        return *late || make(o, nodes, state);
    }
    if (stat(path, &status) == 0)
        print_note(path, o->hints, "it exists as one file, and stays one");
    return true;
}

/* By which POSIX calls find it. NULL: they do not. */
static const char *place_of(const mpiox_opening *o)
{
    return o->decision->hidden ? o->name : mpiox_opening_path(o);
}

/* False: not before the nodes are counted. */
static bool look(mpiox_opening *o, int nodes, void **state)
{
    const char *path = place_of(o);
    bool late = false;

    if (path == NULL || !is_good(o->amode))
        return true;
    for (int tries = 0; tries < TRIES; tries++)
        if ((o->amode & MPI_MODE_EXCL && o->decision->parts == 0 && access(path, F_OK) == 0) ||
            find_or_make(o, path, nodes, &late, state))
            return !late;
    fail(o, ESTALE, "open (subfiles that come and go all the time)");
    return true;
}

static bool decide(mpiox_opening *o, void **state)
{
    return look(o, NODES_LATER, state);
}

/* Nodes of the communicator, as the hint has them. 0: MPI has failed. */
static int nodes_of(MPI_Comm comm, int ranks_per_node)
{
    MPI_Comm node;
    int rank = 0, size = 1, mine, nodes = 0;

    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    if (ranks_per_node > 0)
        return (size - 1) / ranks_per_node + 1;
    if (PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node) != MPI_SUCCESS)
        return 0;
    PMPI_Comm_rank(node, &rank);
    PMPI_Comm_free(&node);
    mine = rank == 0;
    return PMPI_Allreduce(&mine, &nodes, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS ? nodes : 0;
}

static bool start(mpiox_opening *o, void **state)
{
    const int nodes = is_per_node(o->hints) ? nodes_of(o->comm, o->hints->ranks_per_node) : 1;

    if (o->rank == 0 && nodes != 0 && o->decision->error.code == MPIOX_OK)
        look(o, nodes, state);
    return nodes != 0;
}

/* Wait until this client of the file system sees the index that rank 0 has opened or made: names and attributes that it
 * has cached may be of a file that was here before. */
static void follow(mpiox_opening *o)
{
    const struct timespec pause = {0, AWAIT_PAUSE_NS};
    const char *path = place_of(o);
    const double begun = mpiox_now();

    while (o->decision->container && path != NULL && !mpiox_subfiles_is_of(path, o->decision->id) &&
           mpiox_now() - begun < AWAIT_S)
        nanosleep(&pause, NULL);
}

/* Of a file that is the MPI library's: have all ranks opened it, and is it an index by now? */
static bool has_come(const mpiox_opening *o)
{
    enum { NOT_OPENED, INDEX, OTHER };
    int mine = !o->opened ? NOT_OPENED : o->found != NULL && mpiox_subfiles_is_index(o->found) ? INDEX : OTHER;
    int all = NOT_OPENED;

    return PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, o->comm) == MPI_SUCCESS && all == INDEX;
}

/* Not all ranks have opened the index: is that because it is no longer there, or another? Of a file that is taken over
 * the ranks have agreed on the rest. */
static bool has_changed(mpiox_opening *o)
{
    bool gone = false;

    if (!o->decision->recheck || o->file != NULL || (o->wanted && !o->decision->container))
        return false;
    if (!o->wanted)
        return has_come(o);
    if (o->rank == 0)
        gone = !mpiox_subfiles_is_of(place_of(o), o->decision->id);
    return PMPI_Bcast(&gone, 1, MPI_C_BOOL, 0, o->comm) == MPI_SUCCESS && gone;
}

/* Why this rank could not open it: the first subfile that is in its way. */
static void explain(const mpiox_opening *o, const char *path, mpiox_error *error)
{
    mpiox_subfiles index;
    const char *why;
    char name[PATH_MAX], what[sizeof error->what];
    int code = mpiox_subfiles_read(path, &index, &why);

    mpiox_error_set(error, MPIOX_E_IO, code != 0 ? code : EOPNOTSUPP, -1, -1, "open (a file of subfiles)");
    for (int32_t i = 0; code == 0 && i < index.count; i++) {
        if (!mpiox_subfiles_path(&index, i, name, sizeof name) ||
            access(name, (o->amode & MPI_MODE_WRONLY ? 0 : R_OK) | (writes(o->amode) ? W_OK : 0)) == 0)
            continue;
        code = errno;
        snprintf(what, sizeof what,
                 code == EACCES ? "open (subfile %d: chmod it as the index is)" : "open (subfile %d)", i);
        mpiox_error_set(error, MPIOX_E_IO, code, -1, -1, what);
    }
    mpiox_subfiles_free(&index);
}

/* ---- closing and removing ---------------------------------------------------------------------------------------- */

/* 0 or an errno. */
static int reveal(writer *writer)
{
    char staging[PATH_MAX], path[PATH_MAX];
    int code;

    snprintf(staging, sizeof staging, "%s", writer->index.index);
    if (!mpiox_storage_staging_final(staging, path, sizeof path))
        return EINVAL;
    code = mpiox_subfiles_reveal(&writer->index, path);
    if (code == 0)
        mpiox_storage_staging_forget(staging);
    return code;
}

/* No rank can follow the MPI library, which has opened the index, or failed to. Where no delegate serves a file that
 * was made by its staging name it gets its own, being written. */
static int keep(mpiox_opening *o, void **state, bool *abandoned, mpiox_error *error)
{
    writer *w = *state;

    if (!o->decision->container)
        return MPIOX_OK;
    if (o->file != NULL) {
        if (w != NULL && o->decision->hidden && o->decision->made && !o->through)
            w->staged = reveal(w) != 0;
        return MPIOX_OK;
    }
    *abandoned = true;
    if (o->found != NULL)
        explain(o, o->decision->hidden && access(o->name, F_OK) == 0 ? o->name : o->found, error);
    else
        mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "open (a file of subfiles)");
    error->rank = o->rank;
    return error->code;
}

/* Of a file that has its staging name. 0 or an errno. */
static int end_staged(writer *writer, bool whole)
{
    const int code = whole ? 0 : reveal(writer);

    if (writer->guard >= 0)
        close(writer->guard);
    writer->guard = -1;
    return whole ? mpiox_storage_staging_left(writer->index.index) : code == ENOENT ? 0 : code;
}

static void emptied(void *state)
{
    writer *w = state;

    if (!w->staged)
        mpiox_subfiles_emptied(&w->index, w->guard, &w->torn);
}

static void synced(void *state)
{
    ((writer *)state)->stable = true;
}

/* whole: what was written is in the subfiles. 0 or an errno. */
static int end(writer *w, bool whole)
{
    int code = 0;

    if (!w->reads && w->staged)
        code = end_staged(w, whole);
    else if (!w->reads && whole && !w->torn) {
        code = mpiox_subfiles_end(&w->index, w->guard, w->stable);
        if (code == 0 && w->index.size < 0 && is_unused(w))
            report_writing(w->index.index);
    }
    drop(w);
    return code;
}

/* The file goes, unless its name is gone, or another file has it by now. 0 or an errno. */
static int delete(writer *w)
{
    mpiox_subfiles now;
    const char *why;

    if (w->guard >= 0) /* NFS keeps the name of a file that is open */
        close(w->guard);
    w->guard = -1;
    int code = mpiox_subfiles_read(w->index.index, &now, &why);
    if (code == 0 && now.id == w->index.id)
        code = mpiox_subfiles_remove(&now);
    mpiox_subfiles_free(&now);
    drop(w);
    return code == ENOENT || code == EILSEQ ? 0 : code;
}

static int close_file(void *state, int amode, bool fine, mpiox_error *error)
{
    const bool deletes = (amode & MPI_MODE_DELETE_ON_CLOSE) != 0;
    const int code = state == NULL ? 0 : deletes ? delete(state) : end(state, fine);

    *error = (mpiox_error){.code = MPIOX_OK};
    return code == 0 ? MPIOX_OK
                     : mpiox_error_set(error, MPIOX_E_IO, code, -1, -1,
                                       deletes ? "deleting a file of subfiles" : "close (the index of subfiles)");
}

/* The container that was created under a staging name is removed under that name. */
static void abandon(mpiox_opening *o, void **state)
{
    const bool made = *state != NULL && o->decision->made && !o->decision->hidden;

    if (*state != NULL)
        end(*state, true);
    *state = NULL;
    if (made)
        (void)mpiox_storage_container.remove(o->name);
}

static void to_info(MPI_Info info, int32_t parts, int64_t unit)
{
    char text[32];

    snprintf(text, sizeof text, "%d", parts);
    PMPI_Info_set(info, "mpiox_subfiles", text);
    snprintf(text, sizeof text, "%lld", (long long)unit);
    if (parts > 0)
        PMPI_Info_set(info, "mpiox_subfile_unit", text);
}

const mpiox_opener mpiox_subfiles_opener = {
    .stores = stores,
    .decide = decide,
    .start = start,
    .follow = follow,
    .has_changed = has_changed,
    .keep = keep,
    .abandon = abandon,
    .close = close_file,
    .synced = synced,
    .emptied = emptied,
    .to_info = to_info,
    .no_view = "MPI_File_set_view: stored as subfiles, no such view: mpiio-ext subfiles merge it",
    .no_access = "an access of subfiles that only the MPI library could carry out",
    .unclosed = "; its subfiles stay unfinished",
};
