/* mpiox_subfiles_job.c - see mpiox_subfiles_job.h. */
#include "mpiox_subfiles_job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_layout.h"
#include "mpiox_layout_gluster.h"
#include "mpiox_layout_inspect.h"
#include "mpiox_storage_staging.h"
#include "mpiox_subfiles_files.h"
#include "mpiox_wait.h"

struct mpiox_subfiles_writer {
    mpiox_subfiles index;
    int guard;
    bool reads;  /* and nothing else */
    bool staged; /* it is whole once delegates have written it */
    bool torn;   /* a job before has not closed it, and it has not been emptied since */
    bool stable; /* it was synced */
};

enum {
    BEGINNING = 8192, /* bytes in which formats have their signatures */
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

bool mpiox_subfiles_job_are_asked_for(const mpiox_hints *hints)
{
    return strcmp(hints->subfiles, "0") != 0 && strcasecmp(hints->subfiles, "per_node=0") != 0 &&
           hints->close != MPIOX_CLOSE_NEVER;
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
    int32_t servers; /* of all new files, as far as the file system tells; else < 1 */
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
static void tell(const char *path, const mpiox_hints *hints, const char *what)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&told))
        fprintf(stderr, "mpiio_ext: %s: mpiox_subfiles=%s: %s\n", path, hints->subfiles, what);
}

static int32_t count_of(const char *path, const servers *all, const mpiox_hints *hints, int nodes)
{
    const bool each = is_per_node(hints), by_server = strcasecmp(hints->subfiles, "per_server") == 0;
    const int64_t count = by_server ? all->servers
                          : each    ? (int64_t)nodes * atoi(hints->subfiles + sizeof per_node - 1)
                                    : atoi(hints->subfiles);

    if (by_server && count < 1)
        tell(path, hints, "how many servers there are is not known: one subfile is made");
    if (count > MPIOX_SUBFILES_MOST)
        tell(path, hints, "that is more than a file can have: 4096 subfiles are made");
    return count < 1 ? 1 : count < MPIOX_SUBFILES_MOST ? (int32_t)count : MPIOX_SUBFILES_MOST;
}

/* path: of the index. */
static int create(const char *path, const mpiox_subfiles_job_opening *opening, int nodes, mpiox_subfiles_writer *out)
{
    const mpiox_hints *hints = opening->hints;
    char folder[PATH_MAX];

    folder_of(path, folder);
    servers all = servers_of(folder);
    const mpiox_subfiles_places places = {fits, &all};
    const int code = mpiox_subfiles_create(path, opening->filename, count_of(path, &all, hints, nodes),
                                           unit_of(folder, hints), all.target != NULL ? &places : NULL, &out->index,
                                           &out->guard);
    free(all.target);
    return code;
}

static void fail(mpiox_subfiles_job *subfiles, int sys_errno, const char *what)
{
    mpiox_error_set(&subfiles->error, MPIOX_E_IO, sys_errno, -1, -1, what);
}

/* What says which delegates have bytes left lies beside the index. */
static int create_staged(const mpiox_subfiles_job_opening *opening, int nodes, mpiox_subfiles_writer *out)
{
    int code = create(opening->staging, opening, nodes, out);

    if (code != 0)
        return code;
    out->staged = true;
    code = mpiox_storage_staging_create(opening->staging, true, opening->parts);
    if (code == 0)
        return 0;
    mpiox_subfiles_remove(&out->index);
    mpiox_subfiles_free(&out->index);
    if (out->guard >= 0)
        close(out->guard);
    return code;
}

/* What the errno of a file that could not be made means. */
static const char *why_not_made(int code)
{
    return code == ENAMETOOLONG ? too_long
           : code == EPERM      ? anothers
           : code == ENOTDIR    ? no_folder
                                : "open (making subfiles)";
}

/* False: something has come to have its name meanwhile. */
static bool make(const mpiox_subfiles_job_opening *opening, int nodes, mpiox_subfiles_job *out,
                 mpiox_subfiles_writer **writer)
{
    mpiox_subfiles_writer *w = calloc(1, sizeof *w);
    const int code = w == NULL            ? ENOMEM
                     : opening->parts > 0 ? create_staged(opening, nodes, w)
                                          : create(opening->filename, opening, nodes, w);

    out->is = out->made = code == 0;
    if (code == 0) {
        out->id = w->index.id;
        *writer = w;
        return true;
    }
    free(w);
    if (code == EEXIST && opening->parts == 0)
        return false;
    fail(out, code, why_not_made(code));
    return true;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool writes(int amode)
{
    return (amode & MPI_MODE_RDONLY) == 0;
}

/* A mode that MPI allows; what is wrong with another, the MPI library says. */
static bool is_good(int amode)
{
    const int access_mode = amode & (MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR);

    return (access_mode == MPI_MODE_RDONLY && !(amode & (MPI_MODE_CREATE | MPI_MODE_EXCL))) ||
           access_mode == MPI_MODE_WRONLY || access_mode == MPI_MODE_RDWR;
}

static void tell_of_writing(const char *path)
{
    fprintf(stderr,
            "mpiio_ext: %s: it was never closed: a job that wrote it ended before, and bytes may be missing; it stays "
            "unfinished until it is emptied\n",
            path);
}

static void drop(mpiox_subfiles_writer *writer)
{
    if (writer->guard >= 0)
        close(writer->guard);
    mpiox_subfiles_free(&writer->index);
    free(writer);
}

static bool is_unused(const mpiox_subfiles_writer *writer)
{
    return writer->guard >= 0 && mpiox_storage_guard(writer->guard, MPIOX_GUARD_LOOK) == 0;
}

/* Of a file that delegates write the index says so already. */
static int begin(mpiox_subfiles_writer *writer)
{
    int code = 0;

    if (!writer->reads && !writer->staged)
        code = mpiox_subfiles_begin(&writer->index, writer->guard, &writer->torn);
    if (code == 0 &&
        (writer->torn || (writer->reads && !writer->staged && writer->index.size < 0 && is_unused(writer))))
        tell_of_writing(writer->index.index);
    return code;
}

static void fail_of_subfile(const mpiox_subfiles *index, int32_t bad, int code, mpiox_subfiles_job *out)
{
    char what[sizeof out->error.what], folder[PATH_MAX];

    if (code == ENOENT && !mpiox_subfiles_folder(index, folder, sizeof folder))
        snprintf(what, sizeof what, "open (its folder %.48s is missing)", strrchr(folder, '/') + 1);
    else
        snprintf(what, sizeof what, "open (subfile %d %s)", bad,
                 code == ENOENT    ? "is missing"
                 : code == EBADMSG ? "has another size than its index says"
                 : code == EACCES  ? "cannot be reached: chmod its folder"
                                   : "cannot be used");
    fail(out, code == EBADMSG ? EIO : code, what);
}

/* What is wrong with the subfiles. 0 or an errno, after fail(). */
static int check(const mpiox_subfiles_job_opening *opening, const mpiox_subfiles *index, mpiox_subfiles_job *out)
{
    int32_t bad = 0;
    const int code = mpiox_subfiles_check(index, &bad);

    if (code != 0) {
        fail_of_subfile(index, bad, code, out);
        return code;
    }
    if (writes(opening->amode) && mpiox_subfiles_is_copy(index)) {
        fail(out, EPERM, "open (for writing a copy of the index of another file)");
        return EPERM;
    }
    return 0;
}

/* The index is good, and is taken over. False: while this looked, somebody has removed the file, or made it one. */
static bool open_index(const mpiox_subfiles_job_opening *opening, mpiox_subfiles *index, mpiox_subfiles_job *out,
                       mpiox_subfiles_writer **writer)
{
    mpiox_subfiles_writer *w = calloc(1, sizeof *w);
    int code;

    if (w == NULL) {
        fail(out, ENOMEM, "open (the index of subfiles)");
        return true;
    }
    w->index = *index;
    *index = (mpiox_subfiles){.size = -1};
    w->reads = !writes(opening->amode);
    w->staged = opening->staging != NULL;
    w->guard = mpiox_subfiles_guard(&w->index, w->reads ? MPIOX_GUARD_READS : MPIOX_GUARD_SHARED);
    if (w->guard >= 0 && !mpiox_subfiles_is_current(&w->index, w->guard)) {
        drop(w);
        return false;
    }
    code = check(opening, &w->index, out);
    if (code == 0 && (code = begin(w)) != 0)
        fail(out, code, "open (replacing the index of subfiles)");
    out->is = code == 0;
    out->id = w->index.id;
    if (code == 0)
        *writer = w;
    else
        drop(w);
    return true;
}

/* False: look again. */
static bool examine(const mpiox_subfiles_job_opening *opening, const char *path, mpiox_subfiles_job *out,
                    mpiox_subfiles_writer **writer)
{
    mpiox_subfiles index;
    char what[sizeof out->error.what];
    const char *why;
    const int code = mpiox_subfiles_read(path, &index, &why);
    bool done = true;

    if (code == EBADMSG) {
        snprintf(what, sizeof what, "open (index of subfiles: %s)", why);
        fail(out, EIO, what);
    } else if (code != 0 && code != EILSEQ) {
        fail(out, code, "open (the index of subfiles)");
    } else if (code == 0 && !opening->wanted) {
        snprintf(what, sizeof what, "open (stored as subfiles, and %s: mpiio-ext subfiles merge it)", opening->why_not);
        mpiox_error_set(&out->error, MPIOX_E_UNSUPPORTED, 0, -1, -1, what);
    } else if (code == 0) {
        done = open_index(opening, &index, out, writer);
    }
    mpiox_subfiles_free(&index);
    return done;
}

/* The file at `path`, if there is one, or a new one. False: look again. */
static bool find_or_make(const mpiox_subfiles_job_opening *opening, const char *path, int nodes,
                         mpiox_subfiles_job *out, mpiox_subfiles_writer **writer)
{
    struct stat status;

    if (opening->parts == 0 && mpiox_subfiles_is_index(path))
        return examine(opening, path, out, writer);
    if (!opening->wanted || !mpiox_subfiles_job_are_asked_for(opening->hints) || !(opening->amode & MPI_MODE_CREATE))
        return true;
    if (!opening->prefixed && (opening->parts > 0 || lstat(path, &status) != 0 || mpiox_subfiles_drop_emptied(path))) {
        out->late = is_per_node(opening->hints) && nodes == 0;
        return out->late || make(opening, nodes, out, writer);
    }
    if (stat(path, &status) == 0)
        tell(path, opening->hints, "it exists as one file, and stays one");
    return true;
}

mpiox_subfiles_job mpiox_subfiles_job_begin(const mpiox_subfiles_job_opening *opening, int nodes,
                                            mpiox_subfiles_writer **writer)
{
    const char *path = opening->path;
    mpiox_subfiles_job out = {.is = false};

    *writer = NULL;
    mpiox_error_clear(&out.error);
    if (path == NULL || !is_good(opening->amode))
        return out;
    for (int tries = 0; tries < TRIES; tries++)
        if ((opening->amode & MPI_MODE_EXCL && opening->parts == 0 && access(path, F_OK) == 0) ||
            find_or_make(opening, path, nodes, &out, writer))
            return out;
    fail(&out, ESTALE, "open (subfiles that come and go all the time)");
    return out;
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

bool mpiox_subfiles_job_start(MPI_Comm comm, const mpiox_subfiles_job_opening *opening, mpiox_subfiles_job *subfiles,
                              mpiox_subfiles_writer **writer)
{
    const int nodes = is_per_node(opening->hints) ? nodes_of(comm, opening->hints->ranks_per_node) : 1;
    int rank = 0;

    PMPI_Comm_rank(comm, &rank);
    if (nodes == 0)
        return false;
    if (rank == 0)
        *subfiles = mpiox_subfiles_job_begin(opening, nodes, writer);
    return PMPI_Bcast(subfiles, sizeof *subfiles, MPI_BYTE, 0, comm) == MPI_SUCCESS;
}

static bool sees(const char *path, uint64_t id)
{
    mpiox_subfiles index;
    const char *why;
    const bool is = mpiox_subfiles_read(path, &index, &why) == 0 && index.id == id;

    mpiox_subfiles_free(&index);
    return is;
}

bool mpiox_subfiles_job_have_gone(MPI_Comm comm, const char *path, const mpiox_subfiles_job *subfiles)
{
    bool gone = false;
    int rank = 0;

    PMPI_Comm_rank(comm, &rank);
    if (rank == 0)
        gone = !sees(path, subfiles->id);
    return PMPI_Bcast(&gone, 1, MPI_C_BOOL, 0, comm) == MPI_SUCCESS && gone;
}

bool mpiox_subfiles_job_have_come(MPI_Comm comm, const char *path, bool opened)
{
    enum { NOT_OPENED, INDEX, OTHER };
    int mine = !opened ? NOT_OPENED : path != NULL && mpiox_subfiles_is_index(path) ? INDEX : OTHER, all = NOT_OPENED;

    return PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all == INDEX;
}

void mpiox_subfiles_job_await(const char *path, const mpiox_subfiles_job *subfiles)
{
    const struct timespec pause = {0, AWAIT_PAUSE_NS};
    const double begun = mpiox_now();

    while (subfiles->is && !sees(path, subfiles->id) && mpiox_now() - begun < AWAIT_S)
        nanosleep(&pause, NULL);
}

void mpiox_subfiles_job_explain(const char *path, int amode, mpiox_error *error)
{
    mpiox_subfiles index;
    const char *why;
    char name[PATH_MAX], what[sizeof error->what];
    int code = mpiox_subfiles_read(path, &index, &why);

    mpiox_error_set(error, MPIOX_E_IO, code != 0 ? code : EOPNOTSUPP, -1, -1, "open (a file of subfiles)");
    for (int32_t i = 0; code == 0 && i < index.count; i++) {
        if (!mpiox_subfiles_path(&index, i, name, sizeof name) ||
            access(name, (amode & MPI_MODE_WRONLY ? 0 : R_OK) | (writes(amode) ? W_OK : 0)) == 0)
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
static int reveal(mpiox_subfiles_writer *writer)
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

void mpiox_subfiles_job_reveal(mpiox_subfiles_writer *writer)
{
    writer->staged = reveal(writer) != 0;
}

/* Of a file that has its staging name. 0 or an errno. */
static int end_staged(mpiox_subfiles_writer *writer, bool whole)
{
    const int code = whole ? 0 : reveal(writer);

    if (writer->guard >= 0)
        close(writer->guard);
    writer->guard = -1;
    return whole ? mpiox_storage_staging_left(writer->index.index) : code == ENOENT ? 0 : code;
}

void mpiox_subfiles_job_emptied(mpiox_subfiles_writer *writer)
{
    if (writer != NULL && !writer->staged)
        mpiox_subfiles_emptied(&writer->index, writer->guard, &writer->torn);
}

void mpiox_subfiles_job_synced(mpiox_subfiles_writer *writer)
{
    if (writer != NULL)
        writer->stable = true;
}

int mpiox_subfiles_job_end(mpiox_subfiles_writer *writer, bool whole, mpiox_error *error)
{
    int code = 0;

    *error = (mpiox_error){.code = MPIOX_OK};
    if (writer == NULL)
        return MPIOX_OK;
    if (!writer->reads && writer->staged)
        code = end_staged(writer, whole);
    else if (!writer->reads && whole && !writer->torn) {
        code = mpiox_subfiles_end(&writer->index, writer->guard, writer->stable);
        if (code == 0 && writer->index.size < 0 && is_unused(writer))
            tell_of_writing(writer->index.index);
    }
    drop(writer);
    return code == 0 ? MPIOX_OK : mpiox_error_set(error, MPIOX_E_IO, code, -1, -1, "close (the index of subfiles)");
}

int mpiox_subfiles_job_delete(mpiox_subfiles_writer *writer, mpiox_error *error)
{
    mpiox_subfiles now;
    const char *why;

    *error = (mpiox_error){.code = MPIOX_OK};
    if (writer == NULL)
        return MPIOX_OK;
    if (writer->guard >= 0) /* NFS keeps the name of a file that is open */
        close(writer->guard);
    writer->guard = -1;
    int code = mpiox_subfiles_read(writer->index.index, &now, &why);
    if (code == 0 && now.id == writer->index.id)
        code = mpiox_subfiles_remove(&now);
    mpiox_subfiles_free(&now);
    drop(writer);
    return code == 0 || code == ENOENT || code == EILSEQ
               ? MPIOX_OK
               : mpiox_error_set(error, MPIOX_E_IO, code, -1, -1, "deleting a file of subfiles");
}

/* ---- for others -------------------------------------------------------------------------------------------------- */

int mpiox_subfiles_job_beginning(const char *path)
{
    char bytes[BEGINNING];
    int64_t done = 0;
    mpiox_storage *storage = NULL;
    mpiox_error ignored;
    int fd = -1;

    if (!mpiox_subfiles_is_index(path) ||
        mpiox_storage_container.open(path, O_RDONLY, -1, NULL, &storage, &ignored) != MPIOX_OK)
        return -1;
    if (mpiox_storage_read(storage, bytes, sizeof bytes, 0, &done, &ignored) == MPIOX_OK)
        fd = memfd_create("mpiox_beginning", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, bytes, (size_t)done) != (ssize_t)done) {
        close(fd);
        fd = -1;
    }
    mpiox_storage_close(storage);
    return fd;
}

int mpiox_subfiles_job_remove(const char *path)
{
    mpiox_subfiles index;
    const char *why;
    int code = mpiox_subfiles_is_index(path) ? mpiox_subfiles_read(path, &index, &why) : EILSEQ;

    if (code != 0)
        return code;
    code = mpiox_subfiles_remove(&index);
    mpiox_subfiles_free(&index);
    return code;
}
