/*
 * mpiox_delegated_file.c - a file and its delegates: opening, size, what is told of them.
 *
 * Problem.   What is collective here must end in the same way on every rank, though any delegate may die meanwhile.
 * Algorithm. Rank 0 asks every delegate for a record of the file and tells the others.
 */
#include "mpiox_delegated.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mpiox_delegated_impl.h"
#include "mpiox_group_settings.h"
#include "mpiox_partition.h"

enum { TEXT_BYTES = 512 };

static const char no_buddy[] = "level disk, since level buddy takes two delegates with room for another file";

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* How many of the delegates own pages of a file on so many servers: a factor or a multiple of their number, so that a
 * server always meets the same delegates. */
static int32_t affine_owners(int32_t delegates, const mpiox_layout *layout)
{
    const mpiox_partition_method *method = mpiox_partition_find("group_cyclic");
    const mpiox_geometry geometry = {.start = 0,
                                     .end = layout->stripe_size,
                                     .stripe_size = layout->stripe_size,
                                     .servers = layout->servers,
                                     .aggregators = delegates};

    if (layout->lock == MPIOX_LOCK_LOCAL || !method || !method->adjust || !mpiox_geometry_is_valid(&geometry))
        return delegates;
    return method->adjust(&geometry);
}

typedef struct opening { /* what rank 0 tells the others */
    int32_t owners, unit_pages, shift;
    int32_t ok;
    int32_t index[MPIOX_FILE_RANGES];
    int16_t owner_of[MPIOX_FILE_RANGES];
} opening;

static int open_at(mpiox_delegated *delegated, int32_t owner, const char *path, opening *o)
{
    const int amode = delegated->file->amode;
    const mpiox_hints *hints = &delegated->file->hints;
    mpiox_slot slot = {.op = MPIOX_OP_OPEN};

    slot.arg[0] = (amode & MPI_MODE_WRONLY ? 0 : MPIOX_FILE_READABLE) |
                  (amode & MPI_MODE_RDONLY ? 0 : MPIOX_FILE_WRITABLE) | (o->shift > 0 ? MPIOX_FILE_REPLICA : 0) |
                  (hints->direct_read ? MPIOX_FILE_DIRECT_READ : 0) |
                  (hints->direct_write ? MPIOX_FILE_DIRECT_WRITE : 0);
    slot.arg[1] = o->unit_pages;
    slot.arg[2] = o->owners;
    slot.arg[3] = o->shift;
    slot.ahead[0] = delegated->file->layout.servers;
    slot.ahead[1] = hints->delegate_weight;
    if ((size_t)snprintf(slot.text, sizeof slot.text, "%s", path) >= sizeof slot.text)
        return MPIOX_E_ARG;
    const int code = mpiox_delegated_request(delegated, owner, &slot);
    if (code != MPIOX_OK)
        return code;
    o->index[owner] = slot.file;
    if (owner == 0) { /* open already on other ranks: as it is */
        o->unit_pages = (int32_t)slot.arg[1];
        o->owners = (int32_t)slot.arg[2];
    }
    return MPIOX_OK;
}

static void close_at(mpiox_delegated *delegated, int32_t owner, int32_t index)
{
    mpiox_slot slot = {.op = MPIOX_OP_CLOSE};

    delegated->index[owner] = index;
    mpiox_delegated_request(delegated, owner, &slot); /* nothing was written */
}

static void choose_owners(const mpiox_delegated *delegated, opening *o)
{
    const mpiox_layout *layout = &delegated->file->layout;

    const int32_t most = delegated->file->hints.delegate_owners, count = delegated->group->count;

    /* With an arbiter delegate i stands for I/O node i, and all count. */
    if (delegated->group->hints.arbiter[0] != '\0')
        o->owners = count;
    else
        o->owners = most > 0 ? (most < count ? most : count) : affine_owners(count, layout);
    if (o->owners > MPIOX_FILE_RANGES)
        o->owners = MPIOX_FILE_RANGES;
    o->unit_pages = layout->stripe_size % delegated->group->page_bytes == 0
                        ? (int32_t)(layout->stripe_size / delegated->group->page_bytes)
                        : 1;
}

/* It is open at all delegates. */
static bool tell_owners(mpiox_delegated *delegated, opening *o)
{
    delegated->owners = o->owners;
    delegated->ranges = mpiox_file_ranges(o->owners);
    memcpy(delegated->index, o->index, (size_t)o->owners * sizeof o->index[0]);
    for (int32_t r = 0; r < delegated->ranges; r++)
        delegated->placed[r] = (int16_t)((r + o->shift) % o->owners);
    if (o->shift == 0 && !mpiox_delegated_find_owners(delegated)) /* else they do not change hands */
        return false;
    memcpy(o->owner_of, delegated->placed, sizeof o->owner_of);
    return true;
}

/* Rank 0: at all delegates or at none. */
static void open_everywhere(mpiox_delegated *delegated, opening *o)
{
    char *path = realpath(delegated->file->path, NULL);
    int32_t done = 0;

    while (path && done < o->owners && open_at(delegated, done, path, o) == MPIOX_OK)
        done++;
    o->ok = path && done > 0 && done == o->owners && tell_owners(delegated, o);
    for (int32_t i = 0; !o->ok && i < done; i++)
        close_at(delegated, i, o->index[i]);
    free(path);
}

void mpiox_delegated_free(mpiox_delegated *delegated)
{
    if (!delegated)
        return;
    mpiox_delegated_free(delegated->replica);
    mpiox_delegated_delist(delegated); /* when it was not closed */
    pthread_mutex_destroy(&delegated->reader.lock);
    pthread_mutex_destroy(&delegated->refreshing);
    pthread_mutex_destroy(&delegated->ordering);
    free(delegated->traces);
    free(delegated->idle);
    free(delegated->lost);
    free(delegated->index);
    free(delegated);
}

static mpiox_delegated *allocate(mpiox_file *file, mpiox_group *group)
{
    mpiox_delegated *delegated = calloc(1, sizeof *delegated);

    if (!delegated)
        return NULL;
    delegated->index = calloc((size_t)group->count, sizeof *delegated->index);
    delegated->file = file;
    delegated->group = group;
    delegated->page_bytes = group->page_bytes;
    delegated->lost = calloc((size_t)group->count, sizeof *delegated->lost);
    delegated->idle = calloc((size_t)group->count, sizeof *delegated->idle);
    delegated->traces = calloc((size_t)group->count, sizeof *delegated->traces);
    pthread_mutex_init(&delegated->reader.lock, NULL);
    pthread_mutex_init(&delegated->refreshing, NULL);
    pthread_mutex_init(&delegated->ordering, NULL);
    if (delegated->index && delegated->lost && delegated->idle && delegated->traces)
        return delegated;
    mpiox_delegated_free(delegated);
    return NULL;
}

static void follow(mpiox_delegated *delegated, const opening *o)
{
    delegated->owners = o->owners;
    delegated->shift = o->shift;
    delegated->unit_bytes = o->unit_pages * delegated->page_bytes;
    delegated->ranges = mpiox_file_ranges(o->owners);
    delegated->collects = delegated->file->amode & MPI_MODE_WRONLY &&
                          delegated->file->hints.delegate_ack == MPIOX_ACK_MEMORY &&
                          delegated->file->hints.delegate_write_behind > 0;
    mpiox_delegated_trace_clear(delegated);
    for (int32_t r = 0; r < delegated->ranges; r++)
        atomic_init(&delegated->owner_of[r], o->owner_of[r]);
    for (int32_t i = 0; i < o->owners; i++) {
        delegated->index[i] = o->index[i];
        delegated->any_remote |= !mpiox_delegated_owner(delegated, i)->local;
        if (delegated->collects && mpiox_delegated_owner(delegated, i)->link) /* for all files, who may opt out */
            mpiox_link_set_write_behind(mpiox_delegated_owner(delegated, i)->link,
                                        delegated->file->hints.delegate_write_behind);
    }
}

/* On every rank or on none. */
static int open_records(mpiox_delegated *delegated, opening *o)
{
    const mpiox_topology *topology = delegated->file->topology;

    if (topology->rank == 0)
        open_everywhere(delegated, o);
    if (PMPI_Bcast(o, sizeof *o, MPI_BYTE, 0, topology->comm) != MPI_SUCCESS || !o->ok)
        return MPIOX_E_UNSUPPORTED;
    follow(delegated, o);
    return MPIOX_OK;
}

/* Where there is no buddy, or no room for more files, bytes are acknowledged as at level "disk"
 * (mpiox_delegated_access.c); then delegated->replica stays NULL. */
static void open_replica(mpiox_delegated *delegated, const opening *main)
{
    opening o = {.owners = main->owners,
                 .unit_pages = main->unit_pages,
                 .shift = mpiox_replica_shift(delegated->group, main->owners)};
    mpiox_delegated *replica = o.shift > 0 ? allocate(delegated->file, delegated->group) : NULL;

    if (!mpiox_topology_all(delegated->file->topology, replica != NULL) || open_records(replica, &o) != MPIOX_OK) {
        mpiox_delegated_free(replica);
        return;
    }
    delegated->replica = replica;
}

/* Deaths that this rank knows of. */
static int32_t count_dead(const mpiox_group *group)
{
    int32_t dead = 0;

    for (int32_t i = 0; i < group->count; i++)
        dead += mpiox_delegate_has_died(&group->delegates[i]);
    return dead;
}

/* What is not as the file's hints say. Once for a process, by rank 0. */
static void tell_differences(const mpiox_delegated *delegated)
{
    static atomic_bool told_settings, told_level;
    char text[TEXT_BYTES];

    if (delegated->file->topology->rank != 0)
        return;
    if (mpiox_group_settings_ignored(delegated->group, &delegated->file->hints, text, sizeof text) &&
        !atomic_exchange(&told_settings, true))
        fprintf(stderr, "mpiio_ext: %s: %s\n", delegated->file->path, text);
    if (mpiox_delegated_level(delegated) != delegated->file->hints.delegate_ack && !atomic_exchange(&told_level, true))
        fprintf(stderr, "mpiio_ext: %s: mpiox_delegate_ack=buddy: %s\n", delegated->file->path, no_buddy);
}

int mpiox_delegated_open(mpiox_file *file, mpiox_group *group, mpiox_delegated **out, const char **reason)
{
    mpiox_delegated *delegated = allocate(file, group);
    opening o = {.ok = 0};

    *out = NULL;
    *reason = "no memory";
    if (!mpiox_topology_all(file->topology, delegated != NULL)) {
        mpiox_delegated_free(delegated);
        return MPIOX_E_UNSUPPORTED;
    }
    choose_owners(delegated, &o);
    if (open_records(delegated, &o) != MPIOX_OK) {
        *reason = count_dead(group) > 0 ? "a delegate of the job has died" : "the delegates cannot open the file";
        mpiox_delegated_free(delegated);
        return MPIOX_E_UNSUPPORTED;
    }
    if (file->hints.delegate_ack == MPIOX_ACK_BUDDY)
        open_replica(delegated, &o);
    tell_differences(delegated);
    *out = delegated;
    *reason = NULL;
    return MPIOX_OK;
}

void mpiox_delegated_lose(mpiox_delegated *delegated, int32_t owner)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* whoever comes second waits for the copies, too */
    mpiox_delegate *delegate = mpiox_delegated_owner(delegated, owner);

    if (!delegate->local && delegate->link) /* it said so itself, perhaps, while it was dying: its pages may change */
        mpiox_link_give_up(delegate->link);
    mpiox_delegate_is_serving(delegate);
    pthread_mutex_lock(&lock);
    if (!atomic_exchange(&delegated->lost[owner], true) && !mpiox_replica_restore(delegated, owner) && delegate->lost &&
        delegated->file->hints.delegate_ack != MPIOX_ACK_DISK)
        atomic_store(&delegated->traces[owner].lost, true);
    pthread_mutex_unlock(&lock);
}

/* ---- while it is open ------------------------------------------------------------------------------------------ */

int mpiox_delegated_cut(mpiox_delegated *delegated, int64_t bytes)
{
    const mpiox_topology *topology = delegated->file->topology;

    for (int32_t i = topology->rank; i < delegated->owners; i += topology->size) {
        mpiox_slot slot = {.op = MPIOX_OP_DISCARD};

        slot.arg[0] = bytes;
        mpiox_delegated_request(delegated, i, &slot);
    }
    return mpiox_topology_all(delegated->file->topology, true) ? MPIOX_OK : MPIOX_E_MPI;
}

void mpiox_delegated_stats(const mpiox_delegated *delegated, mpiox_stats *out)
{
    if (delegated)
        mpiox_stats_set_delegated(out, &delegated->stats);
}

int mpiox_delegated_count(const mpiox_delegated *delegated)
{
    return delegated->owners;
}

mpiox_delegate_level mpiox_delegated_level(const mpiox_delegated *delegated)
{
    const mpiox_delegate_level level = delegated->file->hints.delegate_ack;

    return level == MPIOX_ACK_BUDDY && !delegated->replica ? MPIOX_ACK_DISK : level;
}

void mpiox_delegated_to_info(const mpiox_delegated *delegated, MPI_Info info)
{
    mpiox_group_settings_to_info(delegated->group, info);
    if (mpiox_delegated_level(delegated) == MPIOX_ACK_DISK)
        PMPI_Info_set(info, "mpiox_delegate_ack", "disk");
    if (delegated->file->hints.delegate_owners > 0) {
        char owners[16];

        snprintf(owners, sizeof owners, "%d", (int)delegated->owners);
        PMPI_Info_set(info, "mpiox_delegate_owners", owners);
    }
}

void mpiox_delegated_describe(const mpiox_delegated *delegated, char *text, size_t bytes)
{
    const mpiox_group *group = delegated->group;
    const int32_t dead = count_dead(group);
    const bool lower = mpiox_delegated_level(delegated) != delegated->file->hints.delegate_ack;
    char died[64] = "", owners[64] = "", ignored[128] = "";

    if (delegated->file->hints.delegate_owners > 0 && delegated->owners < group->count)
        snprintf(owners, sizeof owners, "; %d of them own%s pages of this file", (int)delegated->owners,
                 delegated->owners == 1 ? "s" : "");
    if (dead > 0)
        snprintf(died, sizeof died, "; %d of them died", (int)dead);
    const bool other = mpiox_group_settings_ignored(group, &delegated->file->hints, ignored, sizeof ignored);
    snprintf(text, bytes, "%d delegate%s, %s%s%s%s%s%s%s", (int)group->count, group->count == 1 ? "" : "s",
             group->reason, owners, died, lower ? "; " : "", lower ? no_buddy : "", other ? "; " : "", ignored);
}

bool mpiox_delegated_is_used(const mpiox_delegated *delegated)
{
    return atomic_load_explicit(&delegated->used, memory_order_relaxed);
}

/* ---- size -------------------------------------------------------------------------------------------------------- */

static int64_t end_at(const mpiox_delegated *delegated, int32_t owner)
{
    mpiox_delegate *delegate = mpiox_delegated_owner(delegated, owner);
    const int32_t index = delegated->index[owner];
    int64_t end = 0;

    if (delegate->local)
        return atomic_load(&delegate->cache.header->files[index].end);
    return mpiox_link_end(delegate->link, index, &end) == MPIOX_OK ? end : 0;
}

int mpiox_delegated_size(mpiox_delegated *delegated, int64_t *bytes, mpiox_error *error)
{
    struct stat status;

    *error = (mpiox_error){.code = MPIOX_OK};
    if (delegated->any_remote) /* this rank's own writes count */
        mpiox_delegated_drain(delegated, error);
    *bytes = 0;
    for (int32_t i = 0; i < delegated->owners; i++) {
        const int64_t end = end_at(delegated, i);

        *bytes = end > *bytes ? end : *bytes;
    }
    /* After the delegates: what they flush meanwhile is seen here. */
    if (mpiox_storage_pin(delegated->file->storage, error) != MPIOX_OK)
        return error->code;
    const int failed = fstat(delegated->file->storage->fd, &status) == 0 ? 0 : errno;
    mpiox_storage_unpin(delegated->file->storage);
    if (failed != 0)
        return mpiox_error_set(error, MPIOX_E_IO, failed, -1, -1, "fstat");
    *bytes = status.st_size > *bytes ? status.st_size : *bytes;
    return error->code;
}
