/*
 * mpiox_file_open.c - opening and closing a file on all of its ranks or on none.
 *
 * Every rank opens the file by itself; rank 0 also queries the file system for the layout. Then the ranks agree: a rank
 * that cannot take part still takes part in every agreement, and all of them leave the file to the MPI library.
 */
#include "mpiox_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mpiox_print.h"
#include "mpiox_storage_container.h"
#include "mpiox_storage_refresh.h"
#include "mpiox_testing.h"
#include "mpiox_wait.h"

/* A file that the program only writes is opened for both where permissions allow: a mapping needs it (window I/O). */
static int open_storage(mpiox_file *file, const char *path, mpiox_error *error)
{
    const int rank = file->topology->rank;
    const mpiox_storage_options options = {.kind = (mpiox_storage_kind)file->hints.storage,
                                           .io_uring_depth = file->hints.io_uring_depth,
                                           .direct_read = file->hints.direct_read,
                                           .direct_write = file->hints.direct_write,
                                           .only_writes = (file->amode & MPI_MODE_WRONLY) != 0 &&
                                                          file->hints.ds_write != MPIOX_ON};
    _Static_assert((int)MPIOX_BACKEND_AUTO == MPIOX_STORAGE_AUTO && (int)MPIOX_BACKEND_POSIX == MPIOX_STORAGE_POSIX &&
                       (int)MPIOX_BACKEND_IO_URING == MPIOX_STORAGE_IO_URING,
                   "the hint's values are the back ends'");
    int (*const open_it)(const char *, int, int, const mpiox_storage_options *, mpiox_storage **,
                         mpiox_error *) = file->container ? mpiox_storage_container.open : mpiox_storage_open;
    if (file->amode & MPI_MODE_RDONLY)
        return open_it(path, O_RDONLY, rank, &options, &file->storage, error);
    int code = open_it(path, O_RDWR, rank, &options, &file->storage, error);
    if (code != MPIOX_OK && (file->amode & MPI_MODE_WRONLY))
        code = open_it(path, O_WRONLY, rank, &options, &file->storage, error);
    return code;
}

/* Is it no longer what rank 0 has seen before it was opened? `error`: what open_storage() has met. */
static bool has_changed(const mpiox_file *file, const char *path, const mpiox_file_choice *choice,
                        const mpiox_error *error)
{
    struct stat status;
    if (!file->storage)
        return (choice->recheck || choice->inode != 0) &&
               (error->sys_errno == ENOENT || (file->container && error->sys_errno == EILSEQ));
    if (choice->inode != 0)
        return file->topology->rank == 0 &&
               (fstat(file->storage->fd, &status) != 0 || (uint64_t)status.st_dev != choice->device ||
                (uint64_t)status.st_ino != choice->inode);
    mpiox_storage_deal deal;
    return choice->recheck && (mpiox_storage_container.deal(file->storage, &deal)
                                   ? deal.id != choice->id
                                   : mpiox_storage_container.is_open(path, file->storage->fd));
}

/* Do several nodes access the file through caches that nothing keeps coherent (NFS, FUSE, SMB...)? Ranks that open it
 * by themselves, or those of one node, may share it with ranks of other nodes all the same. */
static bool is_incoherent(const mpiox_file *file)
{
    const mpiox_topology *topology = file->topology;
    return !file->layout.coherent && file->layout.lock == MPIOX_LOCK_NONE &&
           !(mpiox_topology_one_node(topology) && mpiox_topology_world_on_one_node(topology->ranks_per_node));
}

/* Leave the file to the MPI library, unless the caches can be made coherent and that was tried, or is requested. Not
 * for sieved writes, which put back bytes that a cache may have had. */
static bool can_be_ours(mpiox_file *file)
{
    if (!is_incoherent(file))
        return true;
    file->refreshes = file->hints.coherence == MPIOX_COHERENCE_REFRESH ||
                      (file->hints.coherence == MPIOX_COHERENCE_AUTO && file->layout.refreshable);
    return file->refreshes;
}

/* Seconds. For tests MPIOX_REPORT_S=1 has ranks report earlier that they wait. */
static double report_after_s(void)
{
#ifdef MPIOX_TESTING
    const char *text = mpiox_testing_variable("MPIOX_REPORT_S");
    if (text != NULL)
        return strtod(text, NULL);
#endif
    return 30;
}

#ifdef MPIOX_TESTING
/* For tests of other file systems' decisions: MPIOX_LOCKS=server makes this one count as one with Lustre's locks. */
static void pretend_locks(mpiox_layout *layout)
{
    const char *name = mpiox_testing_variable("MPIOX_LOCKS");
    if (name == NULL)
        return;
    if (mpiox_layout_lock_find(name, &layout->lock) == MPIOX_OK)
        layout->coherent = layout->lock == MPIOX_LOCK_LOCAL;
    else
        mpiox_print("mpiio_ext: MPIOX_LOCKS=%s is ignored: server, token, none or local\n", name);
}
#endif

/* In writes of 2 MiB and more a new file on ext4 of Linux 6.18 takes five times as long as in writes of 1 MiB:
 * presumably, large folios need pages of that size. The others have large folios, too. */
static int64_t most_written(mpiox_fs fs)
{
    return fs == MPIOX_FS_EXT || fs == MPIOX_FS_XFS || fs == MPIOX_FS_BTRFS || fs == MPIOX_FS_F2FS ? 1 << 20 : 0;
}

/* A unit is what belongs together, whatever the file system does with each part. */
static void lay_out_container(const mpiox_storage *storage, mpiox_layout *layout)
{
    mpiox_storage_deal deal;
    if (!mpiox_storage_container.deal(storage, &deal))
        return;
    layout->container = layout->stripe_known = true;
    layout->hashed = false;
    layout->stripe_size = deal.unit;
    layout->servers = layout->stripe_count = deal.count;
    layout->start = -1;
}

/* This rank's own path to the file. The layout in force will be rank 0's, but every rank judges the file system by its
 * own view: a file server's own disk is NFS to the others. */
static int open_here(mpiox_file *file, const char *path, const mpiox_file_choice *choice, bool *changed)
{
    const bool striped = choice->striped != 0;
    mpiox_error error = {.code = MPIOX_OK};
    file->path = path ? strdup(path) : NULL;
    if (!file->path)
        return MPIOX_E_NOMEM;
    if (path[0] != '/' || !mpiox_topology_one_node(file->topology)) /* the program may change its folder */
        file->real_path = realpath(path, NULL);
    const int code = open_storage(file, mpiox_file_place(file), &error);
    if (code != MPIOX_OK) {
        *changed = has_changed(file, path, choice, &error);
        return code;
    }
    if (mpiox_storage_pin(file->storage, NULL) != MPIOX_OK)
        return MPIOX_E_IO;
    *changed = has_changed(file, path, choice, &error);
    if (file->topology->rank == 0)
        mpiox_layout_detect(file->storage->fd, striped ? 0 : file->hints.striping_unit,
                            striped ? 0 : file->hints.striping_factor, &file->layout);
    else
        mpiox_layout_detect_family(file->storage->fd, &file->layout); /* asks no metadata server */
    mpiox_storage_unpin(file->storage);
    file->storage->most_written = most_written(file->layout.fs);
#ifdef MPIOX_TESTING
    pretend_locks(&file->layout);
#endif
    lay_out_container(file->storage, &file->layout);
    if (!can_be_ours(file))
        return MPIOX_E_UNSUPPORTED;
    return mpiox_typemap_block(1, &file->view); /* MPI's initial view: bytes */
}

static void discard(mpiox_file *file)
{
    file->topology->limit.seconds = 0;
    mpiox_storage_close(file->storage);
    mpiox_shared_pointer_free(file);
    mpiox_typemap_free(file->view);
    free(file->path);
    free(file->real_path);
    pthread_mutex_destroy(&file->threads_lock);
    free(file);
}

mpiox_file_choice mpiox_file_choose(MPI_Comm comm, const mpiox_hints *hints)
{
    return (mpiox_file_choice){.topology = mpiox_topology_choose(comm, hints->ranks_per_node), .nonce = mpiox_unique()};
}

/* The values on which the ranks agree, in this order; OPENED is their progress. */
enum { NOT_OPENED, OPENED_CHANGED, OPENED_FINE };
enum { CODE, OPENED, COHERENT, AS_BEFORE, COMPANION, AGREED = COMPANION + MPIOX_FILE_COMPANION_VALUES };

static bool same_layout(const mpiox_layout *a, const mpiox_layout *b)
{
    return a->fs == b->fs && a->lock == b->lock && a->stripe_size == b->stripe_size && a->servers == b->servers &&
           a->hashed == b->hashed && a->stripe_known == b->stripe_known && a->coherent == b->coherent &&
           a->refreshable == b->refreshable && a->stripe_count == b->stripe_count && a->start == b->start &&
           a->container == b->container;
}

/* Values that depend on the layout, from that of the file before: only rank 0 knows this file's yet. */
static void prepare_companion(mpiox_file *file, mpiox_file_companion *companion, int values[AGREED])
{
    const mpiox_topology *topology = file->topology;
    const mpiox_layout own = file->layout;
    mpiox_layout before;
    values[AS_BEFORE] = topology->size > 1 && topology->knows_file_before;
    if (!values[AS_BEFORE])
        return;
    memcpy(&before, topology->file_before, sizeof before);
    file->layout = before;
    values[AS_BEFORE] = companion->prepare(file, companion->context, values + COMPANION) &&
                        (topology->rank != 0 || same_layout(&own, &before));
    file->layout = own;
}

/* The file's storage and layout, on all ranks or on none; file may be NULL (no memory): the rank still takes part. */
static int open_everywhere(mpiox_file *file, mpiox_topology *topology, const mpiox_file_call *call,
                           const mpiox_file_choice *choice, mpiox_file_companion *companion, bool *all_opened)
{
    _Static_assert(sizeof(mpiox_layout) <= MPIOX_TOPOLOGY_NOTE_BYTES, "the layout is a note");
    _Static_assert(sizeof(mpiox_layout) <= MPIOX_TOPOLOGY_BEFORE_BYTES, "and is kept for the next file");
    _Static_assert((int)AGREED <= (int)MPIOX_TOPOLOGY_VALUES, "at once");
    mpiox_layout layout = {.stripe_size = 0};
    bool changed = false;
    int values[AGREED] = {!file          ? MPIOX_E_NOMEM
                          : call->opened ? open_here(file, call->path, choice, &changed)
                                         : MPIOX_E_IO};
    values[OPENED] = !call->opened ? NOT_OPENED : changed ? OPENED_CHANGED : OPENED_FINE;
    values[COHERENT] = !file || !file->refreshes; /* one such rank is enough: coherence is made collectively */
    if (values[CODE] == MPIOX_OK)
        prepare_companion(file, companion, values);
    if (values[CODE] == MPIOX_OK && topology->rank == 0)
        layout = file->layout;
    const int code = mpiox_topology_min(topology, AGREED, values, &layout, sizeof layout);
    *all_opened = code == MPIOX_OK && values[OPENED] != NOT_OPENED;
    companion->changed = code == MPIOX_OK && values[OPENED] == OPENED_CHANGED;
    if (code != MPIOX_OK || values[CODE] != MPIOX_OK || companion->changed)
        return code != MPIOX_OK ? code : values[CODE] != MPIOX_OK ? values[CODE] : MPIOX_E_IO;
    if (topology->size > 1)
        file->layout = layout;
    companion->agreed = values[AS_BEFORE] != 0;
    memcpy(companion->values, values + COMPANION, sizeof companion->values);
    memcpy(topology->file_before, &file->layout, sizeof file->layout);
    topology->knows_file_before = true;
    file->refreshes = !values[COHERENT];
    if (file->refreshes) {
        file->hints.ds_write = MPIOX_OFF;
        mpiox_storage_read_exactly(file->storage);
    }
    return MPIOX_OK;
}

/* The file pointers of a file that is opened with MPI_MODE_APPEND begin at its end, as rank 0 found it: when other
 * ranks query it, the first may already have written. */
static int start_at_end(mpiox_file *file)
{
    mpiox_error error = {.code = MPIOX_OK};
    if (!(file->amode & MPI_MODE_APPEND))
        return MPIOX_OK;
    if (file->topology->rank == 0 && (mpiox_storage_size(file->storage, &file->append_at, &error) != MPIOX_OK ||
                                      (mpiox_topology_takes_all(file->topology) &&
                                       mpiox_shared_pointer_set(file, file->append_at, &error) != MPIOX_OK)))
        file->append_at = -1;
    const int code = mpiox_topology_spread(file->topology, 0, &file->append_at, sizeof file->append_at);
    return code == MPIOX_OK && file->append_at >= 0 ? MPIOX_OK : MPIOX_E_UNSUPPORTED;
}

static mpiox_file *new_file(mpiox_topology *topology, const mpiox_file_choice *choice, const mpiox_file_call *call)
{
    mpiox_file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    pthread_mutex_init(&file->threads_lock, NULL);
    file->topology = topology;
    file->amode = call->amode;
    file->hints = *call->hints;
    file->nonce = choice->nonce;
    file->container = choice->container != 0;
    topology->foreground = choice->foreground != 0;
    topology->limit.seconds = call->hints->wait_limit;
    topology->limit.expired = mpiox_file_end_of_waiting;
    topology->limit.context = file;
    file->report_s = report_after_s();
    file->new_view = true; /* the facts of the last file's views on this topology are void */
    mpiox_shared_pointer_clear_next(file);
    return file;
}

const char *mpiox_file_memory_reason(int code)
{
    switch (code) {
    case MPIOX_E_FULL:
        return "native: shared memory is full, or limited by ulimit -f";
    case MPIOX_E_UNSUPPORTED:
        return "native: ranks of a node cannot share memory";
    default:
        return "native: no shared memory";
    }
}

/* Leave the file to the MPI library, unless it is an index, which contains no data of the program. */
static int look_only(const mpiox_file_call *call, const mpiox_file_choice *choice, mpiox_file_companion *companion,
                     bool *all_opened)
{
    const bool changed = call->opened && call->path && choice->recheck && mpiox_storage_container.is(call->path);
    int state = !call->opened ? NOT_OPENED : changed ? OPENED_CHANGED : OPENED_FINE, all = NOT_OPENED;
    if (PMPI_Allreduce(&state, &all, 1, MPI_INT, MPI_MIN, call->comm) != MPI_SUCCESS)
        return MPIOX_E_MPI;
    *all_opened = all != NOT_OPENED;
    companion->changed = all == OPENED_CHANGED;
    return MPIOX_E_UNSUPPORTED;
}

int mpiox_file_open(const mpiox_file_call *call, const mpiox_file_choice *choice, mpiox_file_companion *companion,
                    mpiox_file_opened *result)
{
    mpiox_topology *topology = NULL;
    companion->agreed = companion->changed = false;
    *result = (mpiox_file_opened){.file = NULL};
    int code = mpiox_topology_join(call->comm, &choice->topology, &topology);
    if (code != MPIOX_OK) { /* on every rank */
        result->why_not = code == MPIOX_E_MPI ? "native: no communicator is left" : mpiox_file_memory_reason(code);
        return look_only(call, choice, companion, &result->all_opened);
    }
    mpiox_file *file = new_file(topology, choice, call);
    code = open_everywhere(file, topology, call, choice, companion, &result->all_opened);
    topology->views++;
    if (code == MPIOX_E_UNSUPPORTED)
        result->why_not =
            "native: several nodes may share the file, and its file system does not keep their caches coherent";
    mpiox_error error;
    if (code == MPIOX_OK)
        code = mpiox_file_refresh(file, &error);
    if (code == MPIOX_OK)
        code = start_at_end(file);
    if (code == MPIOX_OK) {
        result->file = file;
        return MPIOX_OK;
    }
    if (file)
        discard(file);
    mpiox_topology_release(topology);
    return MPIOX_E_UNSUPPORTED;
}

int mpiox_file_sync(mpiox_file *file, bool alone, mpiox_error *error)
{
    *error = (mpiox_error){.code = MPIOX_OK};
    mpiox_storage_sync(file->storage, error);
    error->rank = file->topology->rank;
    if ((alone ? error->code : mpiox_topology_agree_error(file->topology, error)) != MPIOX_OK) {
        atomic_store(&file->damaged, true);
        return error->code;
    }
    file->settled = file->storage->counters.write_requests;
    return alone ? MPIOX_OK : mpiox_file_refresh(file, error);
}

int mpiox_file_set_size(mpiox_file *file, int64_t bytes, mpiox_error *error)
{
    const mpiox_topology *topology = file->topology;
    *error = (mpiox_error){.code = MPIOX_OK};
    mpiox_storage_resize(file->storage, bytes, topology->rank, topology->size, error);
    return mpiox_topology_agree_error(file->topology, error);
}

int mpiox_file_preallocate(mpiox_file *file, int64_t bytes, mpiox_error *error)
{
    *error = (mpiox_error){.code = MPIOX_OK};
    if (file->topology->rank == 0)
        mpiox_storage_reserve(file->storage, bytes, error);
    return mpiox_topology_agree_error(file->topology, error);
}

int mpiox_file_close(mpiox_file *file, mpiox_error *error)
{
    *error = (mpiox_error){.code = MPIOX_OK};
    if (!file)
        return MPIOX_OK;
    if (mpiox_storage_close(file->storage) != MPIOX_OK)
        mpiox_error_set(error, MPIOX_E_IO, errno, -1, -1, "close");
    file->storage = NULL;
    /* A local file system has nothing to report at close; with several nodes a rank may still use the shared pointer,
     * and a container is complete only when all have closed it. */
    if (file->container || !file->layout.coherent || !mpiox_topology_one_node(file->topology))
        mpiox_topology_agree_error(file->topology, error);
    const int code = error->code;
    discard(file);
    return code;
}

/* ---- access of this rank alone ----------------------------------------------------------------------------------- */

mpiox_independent_file mpiox_file_independent(mpiox_file *file)
{
    return (mpiox_independent_file){file->storage,
                                    file->view,
                                    file->set_displacement,
                                    file->tile_extent,
                                    &file->layout,
                                    &file->hints,
                                    file->atomic,
                                    false,
                                    &file->independent,
                                    &file->threads_lock,
                                    file->hints.stripe_size_io == MPIOX_ON,
                                    file->refreshes};
}

int mpiox_file_access(mpiox_file *file, const mpiox_request *request, mpiox_outcome *outcome)
{
    const mpiox_independent_file through = mpiox_file_independent(file);
    outcome->bytes = 0;
    mpiox_error_clear(&outcome->error);
    if (request->length == 0)
        return MPIOX_OK;
    if (file->empty_view)
        mpiox_error_set(&outcome->error, MPIOX_E_ARG, 0, -1, request->length, "access through a view without data");
    else
        mpiox_independent_access(&through, request, &outcome->bytes, &outcome->error);
    outcome->error.rank = file->topology->rank;
    return outcome->error.code;
}

void mpiox_file_set_atomicity(mpiox_file *file, bool atomic)
{
    file->atomic = atomic;
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static void add_independent(mpiox_file *file)
{
    mpiox_independent_counters *counters = &file->independent;
    mpiox_stats *stats = &file->stats;
    stats->independent_writes = atomic_load(&counters->writes);
    stats->independent_reads = atomic_load(&counters->reads);
    stats->independent_bytes_written = atomic_load(&counters->bytes_written);
    stats->independent_bytes_read = atomic_load(&counters->bytes_read);
    stats->chunks_whole = atomic_load(&counters->whole);
    stats->chunks_sieved = atomic_load(&counters->sieved);
    stats->chunks_mapped = atomic_load(&counters->mapped);
    stats->chunks_listed = atomic_load(&counters->listed);
    stats->device_bytes_written = atomic_load(&counters->device_written);
    stats->device_bytes_read = atomic_load(&counters->device_read);
    stats->device_s = 1e-9 * (double)atomic_load(&counters->device_ns);
    stats->locks = atomic_load(&counters->locks);
    stats->independent_s = 1e-9 * (double)atomic_load(&counters->nanoseconds);
}

const mpiox_stats *mpiox_file_stats(mpiox_file *file)
{
    const mpiox_storage_counters *counters = &file->storage->counters;
    mpiox_stats *stats = &file->stats;
    add_independent(file);
    stats->write_requests = counters->write_requests;
    stats->write_request_bytes = counters->write_bytes;
    stats->read_requests = counters->read_requests;
    stats->read_request_bytes = counters->read_bytes;
    for (int i = 0; i < MPIOX_STATS_SIZE_BUCKETS; i++)
        stats->request_size_log2[i] = counters->request_size_log2[i];
    return stats;
}
