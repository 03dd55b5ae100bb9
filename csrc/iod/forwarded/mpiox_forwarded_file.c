/*
 * mpiox_forwarded_file.c - a file and its delegates: opening, size, descriptions.
 *
 * Problem.   A collective operation must end in the same way on every rank, though any delegate may die meanwhile.
 * Algorithm. Rank 0 requests a record of the file from every delegate, and broadcasts the results.
 */
#include "mpiox_forwarded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "mpiox_forwarded_impl.h"
#include "mpiox_print.h"
#include "mpiox_service_settings.h"
#include "mpiox_partition.h"

enum { TEXT_BYTES = 512 };

const char mpiox_forwarded_death[] = "a delegate of the job has died";

static const char no_replica[] = "level disk, since level replica takes two delegates with room for another file";

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

typedef struct opening { /* broadcast by rank 0 */
    int32_t owners, unit_pages, shift;
    int32_t ok;
    int32_t index[MPIOX_FILE_RANGES];
    int16_t owner_of[MPIOX_FILE_RANGES];
} opening;

static int open_at(mpiox_forwarded *forwarded, int32_t owner, const char *path, opening *o)
{
    const int amode = forwarded->file->amode;
    const mpiox_hints *hints = &forwarded->file->hints;
    const bool original = o->shift == 0;
    mpiox_slot slot = {.op = MPIOX_OP_OPEN};
    struct mpiox_op_open *question = &slot.question.open;

    question->flags = (amode & MPI_MODE_WRONLY ? 0 : MPIOX_FILE_READABLE) |
                      (amode & MPI_MODE_RDONLY ? 0 : MPIOX_FILE_WRITABLE) | (original ? 0 : MPIOX_FILE_REPLICA) |
                      (forwarded->file->container ? MPIOX_FILE_CONTAINER : 0) |
                      (hints->direct_read ? MPIOX_FILE_DIRECT_READ : 0) |
                      (hints->direct_write ? MPIOX_FILE_DIRECT_WRITE : 0) |
                      (forwarded->behind_close ? MPIOX_FILE_BEHIND : MPIOX_FILE_PAST) |
                      (forwarded->behind_close && hints->delegate_ack == MPIOX_ACK_REPLICA ? MPIOX_FILE_COPIED : 0) |
                      (original && forwarded->decision.hidden ? MPIOX_FILE_HIDDEN : 0);
    question->unit_pages = o->unit_pages;
    question->owners = o->owners;
    question->shift = o->shift;
    question->servers = forwarded->file->layout.servers;
    question->weight = hints->delegate_weight;
    question->drain_rate = hints->drain_rate;
    question->drain_patience = hints->drain_patience;
    question->drain_even = hints->drain_even;
    if (mpiox_forwarded_owner(forwarded, owner)->local) { /* others may know the device by another number */
        question->device = (int64_t)forwarded->decision.device;
        question->inode = (int64_t)forwarded->decision.inode;
    }
    if ((size_t)snprintf(slot.text, sizeof slot.text, "%s", path) >= sizeof slot.text)
        return MPIOX_E_ARG;
    const int code = mpiox_forwarded_request(forwarded, owner, &slot);
    if (code != MPIOX_OK)
        return code;
    o->index[owner] = slot.file;
    if (owner == 0) { /* open already on other ranks: as it is */
        o->unit_pages = (int32_t)slot.answer.open.unit_pages;
        o->owners = (int32_t)slot.answer.open.owners;
    }
    return MPIOX_OK;
}

static void close_at(mpiox_forwarded *forwarded, int32_t owner, int32_t index)
{
    mpiox_slot slot = {.op = MPIOX_OP_CLOSE};

    forwarded->index[owner] = index;
    mpiox_forwarded_request(forwarded, owner, &slot); /* nothing was written */
}

static void choose_owners(const mpiox_forwarded *forwarded, opening *o)
{
    const mpiox_layout *layout = &forwarded->file->layout;

    const int32_t most = forwarded->file->hints.delegate_owners, count = forwarded->service->count;

    /* With an arbiter delegate i stands for I/O node i, and all count. */
    if (forwarded->service->hints.arbiter[0] != '\0')
        o->owners = count;
    else
        o->owners = most > 0 ? (most < count ? most : count) : affine_owners(count, layout);
    if (o->owners > MPIOX_FILE_RANGES)
        o->owners = MPIOX_FILE_RANGES;
    o->unit_pages = layout->stripe_size % forwarded->service->page_bytes == 0
                        ? (int32_t)(layout->stripe_size / forwarded->service->page_bytes)
                        : 1;
}

/* It is open at all delegates. */
static bool set_owners(mpiox_forwarded *forwarded, opening *o)
{
    forwarded->owners = o->owners;
    forwarded->ranges = mpiox_file_ranges(o->owners);
    memcpy(forwarded->index, o->index, (size_t)o->owners * sizeof o->index[0]);
    for (int32_t r = 0; r < forwarded->ranges; r++)
        forwarded->placed[r] = (int16_t)((r + o->shift) % o->owners);
    if (o->shift == 0 && !mpiox_forwarded_find_owners(forwarded)) /* else they do not change hands */
        return false;
    memcpy(o->owner_of, forwarded->placed, sizeof o->owner_of);
    return true;
}

/* Rank 0: at all delegates or at none. */
static void open_everywhere(mpiox_forwarded *forwarded, opening *o)
{
    char *path = realpath(forwarded->file->path, NULL);
    int32_t done = 0;

    while (path && done < o->owners && open_at(forwarded, done, path, o) == MPIOX_OK)
        done++;
    o->ok = path && done > 0 && done == o->owners && set_owners(forwarded, o);
    for (int32_t i = 0; !o->ok && i < done; i++)
        close_at(forwarded, i, o->index[i]);
    free(path);
}

void mpiox_forwarded_free(mpiox_forwarded *forwarded)
{
    if (!forwarded)
        return;
    mpiox_forwarded_free(forwarded->replica);
    mpiox_forwarded_delist(forwarded); /* when it was not closed */
    pthread_mutex_destroy(&forwarded->reader.lock);
    pthread_mutex_destroy(&forwarded->refreshing);
    pthread_mutex_destroy(&forwarded->ordering);
    free(forwarded->traces);
    free(forwarded->idle);
    free(forwarded->lost);
    free(forwarded->index);
    free(forwarded);
}

static mpiox_forwarded *allocate(mpiox_file *file, mpiox_service *service, const mpiox_decision *decision)
{
    mpiox_forwarded *forwarded = calloc(1, sizeof *forwarded);

    if (!forwarded)
        return NULL;
    forwarded->index = calloc((size_t)service->count, sizeof *forwarded->index);
    forwarded->file = file;
    forwarded->service = service;
    forwarded->decision = *decision;
    forwarded->page_bytes = service->page_bytes;
    forwarded->lost = calloc((size_t)service->count, sizeof *forwarded->lost);
    forwarded->idle = calloc((size_t)service->count, sizeof *forwarded->idle);
    forwarded->traces = calloc((size_t)service->count, sizeof *forwarded->traces);
    pthread_mutex_init(&forwarded->reader.lock, NULL);
    pthread_mutex_init(&forwarded->refreshing, NULL);
    pthread_mutex_init(&forwarded->ordering, NULL);
    if (forwarded->index && forwarded->lost && forwarded->idle && forwarded->traces)
        return forwarded;
    mpiox_forwarded_free(forwarded);
    return NULL;
}

static void follow(mpiox_forwarded *forwarded, const opening *o)
{
    atomic_store(&forwarded->most_bytes, mpiox_forwarded_size_limit());
    forwarded->owners = o->owners;
    forwarded->shift = o->shift;
    forwarded->unit_bytes = o->unit_pages * forwarded->page_bytes;
    forwarded->ranges = mpiox_file_ranges(o->owners);
    forwarded->collects = forwarded->file->amode & MPI_MODE_WRONLY &&
                          forwarded->file->hints.delegate_ack == MPIOX_ACK_MEMORY &&
                          forwarded->file->hints.delegate_write_behind > 0;
    mpiox_forwarded_trace_clear(forwarded);
    for (int32_t r = 0; r < forwarded->ranges; r++)
        atomic_init(&forwarded->owner_of[r], o->owner_of[r]);
    for (int32_t i = 0; i < o->owners; i++) {
        forwarded->index[i] = o->index[i];
        forwarded->any_remote |= !mpiox_forwarded_owner(forwarded, i)->local;
        if (forwarded->collects && mpiox_forwarded_owner(forwarded, i)->link) /* for all files, who may opt out */
            mpiox_link_set_write_behind(mpiox_forwarded_owner(forwarded, i)->link,
                                        forwarded->file->hints.delegate_write_behind);
    }
}

/* On every rank or on none. */
static int open_records(mpiox_forwarded *forwarded, opening *o)
{
    const mpiox_topology *topology = forwarded->file->topology;

    if (topology->rank == 0)
        open_everywhere(forwarded, o);
    if (PMPI_Bcast(o, sizeof *o, MPI_BYTE, 0, topology->comm) != MPI_SUCCESS || !o->ok)
        return MPIOX_E_UNSUPPORTED;
    follow(forwarded, o);
    return MPIOX_OK;
}

/* Where there is no replica delegate, or no room for more files, bytes are acknowledged as at level "disk"
 * (mpiox_forwarded_access.c); then forwarded->replica stays NULL. */
static void open_replica(mpiox_forwarded *forwarded, const opening *main)
{
    opening o = {.owners = main->owners,
                 .unit_pages = main->unit_pages,
                 .shift = mpiox_replica_shift(forwarded->service, main->owners)};
    mpiox_forwarded *replica = o.shift > 0 ? allocate(forwarded->file, forwarded->service, &forwarded->decision) : NULL;

    if (!mpiox_topology_all(forwarded->file->topology, replica != NULL) || open_records(replica, &o) != MPIOX_OK) {
        mpiox_forwarded_free(replica);
        return;
    }
    forwarded->replica = replica;
}

/* Does closing leave its bytes to the delegates, and copies of them to others? */
static bool closes_behind(const mpiox_forwarded *forwarded, int32_t owners)
{
    const mpiox_hints *hints = &forwarded->file->hints;
    const mpiox_decision *decision = &forwarded->decision;

    if (hints->close != MPIOX_CLOSE_BEHIND)
        return false;
    if (!decision->hidden &&
        (decision->container || decision->unnamed != 0)) /* no name shows that it is not complete */
        return false;
    return hints->delegate_ack != MPIOX_ACK_REPLICA ||
           (decision->hidden && mpiox_replica_lasts(forwarded->service, owners));
}

/* The copies are open: can they stay behind the close? */
static void settle_copies(mpiox_forwarded *forwarded)
{
    mpiox_topology *topology = forwarded->file->topology;
    bool fine = closes_behind(forwarded, forwarded->owners) && forwarded->replica;

    if (fine && topology->rank == 0)
        fine = mpiox_replica_introduce(forwarded);
    forwarded->behind_close = mpiox_topology_all(topology, fine);
}

/* Deaths that this rank knows of. */
static int32_t count_dead(const mpiox_service *service)
{
    int32_t dead = 0;

    for (int32_t i = 0; i < service->count; i++)
        dead += mpiox_process_has_died(&service->delegates[i]);
    return dead;
}

/* Print which of the file's hints are not in force. Once for a process, by rank 0. */
static void report_differences(const mpiox_forwarded *forwarded)
{
    static atomic_bool printed_settings, printed_level;
    char text[TEXT_BYTES];

    if (forwarded->file->topology->rank != 0)
        return;
    if (mpiox_service_settings_ignored(forwarded->service, &forwarded->file->hints, text, sizeof text) &&
        !atomic_exchange(&printed_settings, true))
        mpiox_print("mpiio_ext: %s: %s\n", forwarded->file->path, text);
    if (mpiox_forwarded_level(forwarded) != forwarded->file->hints.delegate_ack &&
        !atomic_exchange(&printed_level, true))
        mpiox_print("mpiio_ext: %s: mpiox_delegate_ack=replica: %s\n", forwarded->file->path, no_replica);
}

int mpiox_forwarded_open(mpiox_file *file, mpiox_service *service, const mpiox_decision *decision,
                         mpiox_forwarded **out, const char **reason)
{
    mpiox_forwarded *forwarded = allocate(file, service, decision);
    opening o = {.ok = 0};

    *out = NULL;
    *reason = "no memory";
    if (!mpiox_topology_all(file->topology, forwarded != NULL)) {
        mpiox_forwarded_free(forwarded);
        return MPIOX_E_UNSUPPORTED;
    }
    choose_owners(forwarded, &o);
    forwarded->behind_close = closes_behind(forwarded, o.owners);
    if (forwarded->behind_close) {
        file->hints.delegate_bypass = 0;
        mpiox_forwarded_expect_holds();
    }
    if (open_records(forwarded, &o) != MPIOX_OK) {
        *reason = count_dead(service) > 0 ? mpiox_forwarded_death : "the delegates cannot open the file";
        mpiox_forwarded_free(forwarded);
        return MPIOX_E_UNSUPPORTED;
    }
    if (file->hints.delegate_ack == MPIOX_ACK_REPLICA) {
        open_replica(forwarded, &o);
        if (forwarded->behind_close)
            settle_copies(forwarded);
    }
    report_differences(forwarded);
    *out = forwarded;
    *reason = NULL;
    return MPIOX_OK;
}

void mpiox_forwarded_mark_failed(mpiox_forwarded *forwarded, int32_t owner)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a second thread waits for the copies, too */
    mpiox_process *delegate = mpiox_forwarded_owner(forwarded, owner);

    if (!delegate->local &&
        delegate->link) /* its own record, perhaps, written while it was dying: its pages may change */
        mpiox_link_give_up(delegate->link);
    mpiox_process_is_serving(delegate);
    pthread_mutex_lock(&lock);
    if (!atomic_exchange(&forwarded->lost[owner], true)) {
        const bool restored = mpiox_replica_restore(forwarded, owner);

        if (restored && delegate->local) /* bytes that could not be rescued are there, too */
            mpiox_cache_mend_errors(&delegate->cache, forwarded->index[owner], 0, INT64_MAX);
        if (!restored && delegate->lost && mpiox_forwarded_level(forwarded) != MPIOX_ACK_DISK)
            atomic_store(&forwarded->traces[owner].lost, true);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- while it is open -------------------------------------------------------------------------------------------- */

int mpiox_forwarded_cut(mpiox_forwarded *forwarded, int64_t bytes)
{
    const mpiox_topology *topology = forwarded->file->topology;

    for (int32_t i = topology->rank; i < forwarded->owners; i += topology->size) {
        mpiox_slot slot = {.op = MPIOX_OP_DISCARD};

        slot.question.discard.byte = bytes;
        mpiox_forwarded_request(forwarded, i, &slot);
    }
    return mpiox_topology_all(forwarded->file->topology, true) ? MPIOX_OK : MPIOX_E_MPI;
}

void mpiox_forwarded_stats(const mpiox_forwarded *forwarded, mpiox_stats *out)
{
    if (forwarded)
        mpiox_stats_set_delegated(out, &forwarded->stats);
}

int mpiox_forwarded_count(const mpiox_forwarded *forwarded)
{
    return forwarded->owners;
}

mpiox_delegate_level mpiox_forwarded_level(const mpiox_forwarded *forwarded)
{
    const mpiox_delegate_level level = forwarded->file->hints.delegate_ack;

    return level == MPIOX_ACK_REPLICA && !forwarded->replica ? MPIOX_ACK_DISK : level;
}

bool mpiox_forwarded_closes_behind(const mpiox_forwarded *forwarded)
{
    return forwarded->behind_close;
}

bool mpiox_forwarded_is_hidden(const mpiox_forwarded *forwarded)
{
    return forwarded && forwarded->decision.hidden;
}

void mpiox_forwarded_to_info(const mpiox_forwarded *forwarded, MPI_Info info)
{
    mpiox_service_settings_to_info(forwarded->service, info);
    if (!forwarded->behind_close)
        PMPI_Info_set(info, "mpiox_close", "written");
    if (mpiox_forwarded_level(forwarded) == MPIOX_ACK_DISK)
        PMPI_Info_set(info, "mpiox_delegate_ack", "disk");
    if (forwarded->file->hints.delegate_owners > 0) {
        char owners[16];

        snprintf(owners, sizeof owners, "%d", (int)forwarded->owners);
        PMPI_Info_set(info, "mpiox_delegate_owners", owners);
    }
}

void mpiox_forwarded_describe(const mpiox_forwarded *forwarded, char *text, size_t bytes)
{
    const mpiox_service *service = forwarded->service;
    const int32_t dead = count_dead(service);
    const bool lower = mpiox_forwarded_level(forwarded) != forwarded->file->hints.delegate_ack;
    char died[64] = "", owners[64] = "", ignored[128] = "";

    if (forwarded->file->hints.delegate_owners > 0 && forwarded->owners < service->count)
        snprintf(owners, sizeof owners, "; %d of them own%s pages of this file", (int)forwarded->owners,
                 forwarded->owners == 1 ? "s" : "");
    if (dead > 0)
        snprintf(died, sizeof died, "; %d of them died", (int)dead);
    const bool other = mpiox_service_settings_ignored(service, &forwarded->file->hints, ignored, sizeof ignored);
    snprintf(text, bytes, "%d delegate%s, %s%s%s%s%s%s%s", (int)service->count, service->count == 1 ? "" : "s",
             service->reason, owners, died, lower ? "; " : "", lower ? no_replica : "", other ? "; " : "", ignored);
}

bool mpiox_forwarded_is_used(const mpiox_forwarded *forwarded)
{
    return forwarded->behind_close || atomic_load_explicit(&forwarded->used, memory_order_relaxed);
}

/* ---- size -------------------------------------------------------------------------------------------------------- */

int64_t mpiox_forwarded_size_limit(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < INT64_MAX ? (int64_t)limit.rlim_cur : INT64_MAX;
}

/* The bytes of one that is dead are in the file, hence counted there. */
static int64_t end_at(mpiox_forwarded *forwarded, int32_t owner)
{
    mpiox_process *delegate = mpiox_forwarded_owner(forwarded, owner);
    const int32_t index = forwarded->index[owner];
    int64_t end = 0;

    if (delegate->local)
        return atomic_load(&delegate->cache.header->files[index].end);
    if (mpiox_link_end(delegate->link, index, &end) == MPIOX_OK)
        return end;
    mpiox_forwarded_mark_failed(forwarded, owner);
    return 0;
}

int mpiox_forwarded_size(mpiox_forwarded *forwarded, int64_t *bytes, mpiox_error *error)
{
    int64_t in_file = 0;

    *error = (mpiox_error){.code = MPIOX_OK};
    if (forwarded->any_remote) /* this rank's own writes count */
        mpiox_forwarded_drain(forwarded, error);
    *bytes = 0;
    for (int32_t i = 0; i < forwarded->owners; i++) {
        const int64_t end = end_at(forwarded, i);

        *bytes = end > *bytes ? end : *bytes;
    }
    /* After the delegates: this includes bytes that they flush meanwhile. */
    if (mpiox_storage_size(forwarded->file->storage, &in_file, error) != MPIOX_OK)
        return error->code;
    *bytes = in_file > *bytes ? in_file : *bytes;
    return error->code;
}
