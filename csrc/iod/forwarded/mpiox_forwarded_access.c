/*
 * mpiox_forwarded_access.c - one rank's access to a file through the delegates.
 *
 * Problem.   A request through a view touches pages of several delegates, on this node and elsewhere; a delegate may
 *            die or give a range of pages away in the middle; large runs gain nothing from a cache.
 * Algorithm. The stream is cut into steps. There are two kinds of steps. Whole pages of a long run go straight to the
 *            file, as far as the pages are not cached (the rank looks the pages up before the transfer, and again after
 *            it: a page that came into the cache meanwhile gets the bytes as well). Everything else goes through the
 *            delegates: by one message for each delegate elsewhere, page by page for delegates whose memory this
 *            process maps. Pages of a delegate that no longer serves are accessed in the file, after they have been
 *            rescued. The rank looks the owners of the pages up once, for the messages and for the page by page
 *            accesses. If a range has changed owners meanwhile, the rank repeats the step with the new owners:
 *            otherwise both might leave the range out.
 * Sizes.     A read queries the file's size only when a page is not known to reach far enough.
 * Guarantee. As mpiox_file_access(): bytes are reported in stream order.
 */
#include <errno.h>

#include "mpiox_device_access.h"
#include "mpiox_forwarded_impl.h"
#include "mpiox_event.h"

static const double patience_s = 0.2; /* until somebody who moves a range is asked after */

typedef struct access { /* one access under way */
    mpiox_forwarded *forwarded;
    const mpiox_request *request;
    const mpiox_typemap *view;
    int64_t origin;
    int64_t end; /* stream position at which the access ends; less than asked for at the end of the file */
    bool beyond; /* the file's size is known: bytes up to `end` exist */
    const mpiox_forwarded *original; /* not NULL: this access writes the copies; `forwarded` is the copies' record. What
                                        has no replica delegate or no original any more is left out */
    int32_t refuser;                 /* a delegate that has errors of the file which nobody knows yet, + 1; 0: none */
    bool direct;                     /* some bytes went straight to the file */
    unsigned changes;                /* before `owners` was filled */
    const int16_t *owners;           /* with delegates elsewhere: owner by range, for this step. NULL: as of now */
    bool at_once;                    /* it must not be collected */
    bool moved;                      /* a range of this step has an owner elsewhere by now */
    double waiting;                  /* for a range that is moving, or so: since when; 0: not yet */
    mpiox_error *error;
} access_t;

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static int64_t offset_of(const access_t *a, int64_t position)
{
    return a->origin + mpiox_typemap_offset(a->view, position);
}

/* The stream position of the first data byte at or after `byte` of the file, at most `limit`. */
static int64_t position_at(const access_t *a, int64_t byte, int64_t limit)
{
    const int64_t position = byte <= a->origin ? 0 : mpiox_typemap_position(a->view, byte - a->origin);

    return position < limit ? position : limit;
}

static mpiox_memory_layout memory_at(const access_t *a, int64_t position)
{
    const mpiox_request *r = a->request;

    return (mpiox_memory_layout){
        .base = r->buffer, .typemap = r->memory, .origin = 0, .position = r->memory_position + position - r->position};
}

/* ---- the size ---------------------------------------------------------------------------------------------------- */

/* A page is not known to reach as far as this access: look how long the file is, and end there. */
static int settle_size(access_t *a)
{
    int64_t size;
    const int code = mpiox_forwarded_size(a->forwarded, &size, a->error);

    if (code != MPIOX_OK)
        return code;
    const int64_t end = size <= a->origin ? 0 : mpiox_typemap_position(a->view, size - a->origin);
    if (end < a->end)
        a->end = end > a->request->position ? end : a->request->position;
    a->beyond = true;
    return MPIOX_OK;
}

/* ---- straight to the file ---------------------------------------------------------------------------------------- */

/* Bytes behind the end of the file, but before that of what is cached. */
static void fill_with_zeros(const access_t *a, int64_t from, int64_t to)
{
    static const char zeros[4096];

    for (int64_t at = from; at < to; at += (int64_t)sizeof zeros) {
        const mpiox_memory_layout target = memory_at(a, at), source = {.base = (void *)(uintptr_t)zeros};

        mpiox_copy(&target, &source, to - at < (int64_t)sizeof zeros ? to - at : (int64_t)sizeof zeros);
    }
}

/* All of the stream from `from` to `to`. */
static int transfer(access_t *a, int64_t from, int64_t to)
{
    mpiox_independent_file through = mpiox_file_independent(a->forwarded->file);
    mpiox_request part = *a->request;
    int64_t done = 0;

    through.view = a->view;
    through.displacement = a->origin;
    through.tile_extent = 0;
    through.counters = &a->forwarded->direct;
    part.position = from;
    part.memory_position = a->request->memory_position + from - a->request->position;
    part.length = to - from;
    a->direct = true;
    const int64_t event = mpiox_event_begin();
    int code = mpiox_independent_access(&through, &part, &done, a->error);
    if (event != 0)
        mpiox_event_end(part.write ? "direct_write" : "direct_read", a->forwarded->file->path, -1, part.length, event,
                        "\"bytes\":%lld,\"error\":%d", (long long)done, code);
    if (code != MPIOX_OK || a->request->write || done == part.length)
        return code;
    if (!a->beyond && (code = settle_size(a)) != MPIOX_OK)
        return code;
    fill_with_zeros(a, from + done, to < a->end ? to : a->end);
    return MPIOX_OK;
}

/* ---- through the delegates --------------------------------------------------------------------------------------- */

/* An owner has sent this access away: it has given a range to another, or will soon. */
static void learn_owners(access_t *a, int32_t owner)
{
    const double now = mpiox_now();
    const bool waited = a->waiting > 0 && now - a->waiting > patience_s;

    if (a->waiting <= 0 || waited)
        a->waiting = now;
    mpiox_forwarded_learn(a->forwarded, owner, waited);
}

/* The delegate is dead: its bytes are in the file, if they can be, and owner_of has the present owners of its ranges.
 * False: the writes that were collected for the delegate have to be made first. */
static bool lose(mpiox_forwarded *forwarded, int32_t owner)
{
    mpiox_forwarded_mark_failed(forwarded, owner);
    return mpiox_forwarded_failover(forwarded, owner);
}

/* Stream bytes [from, to), all in one page of a delegate whose memory is mapped here. */
static int access_local(access_t *a, int32_t owner, int64_t page, int64_t from, int64_t to)
{
    mpiox_forwarded *forwarded = a->forwarded;
    mpiox_process *delegate = mpiox_forwarded_owner(forwarded, owner);
    mpiox_page_access access = {.file = forwarded->index[owner],
                                .client = delegate->client + 1,
                                .page = page,
                                .write = a->request->write,
                                .view = a->view,
                                .origin = a->origin,
                                .position = from,
                                .length = to - from,
                                .memory = memory_at(a, from)};
    int64_t known = 0, ahead[MPIOX_OP_AHEAD];

    if (!access.write && to < a->end) {
        access.ahead = ahead;
        access.ahead_count = mpiox_forwarded_rest(forwarded, a->origin, to, a->end, owner, ahead);
    }
    const int code = mpiox_cache_access_page(&delegate->cache, &access, a->beyond, &known, a->error);

    if (code == MPIOX_OK && access.write && delegate->segment.on_disk && !a->original)
        mpiox_forwarded_trace_add(forwarded, owner, offset_of(a, from), offset_of(a, to - 1) + 1);
    if (code == MPIOX_OK && access.write && mpiox_cache_error_count(&delegate->cache, access.file) > 0)
        a->refuser = owner + 1;
    if (code != MPIOX_PAGE_GONE)
        return code;
    if (a->original)
        return MPIOX_OK;
    (void)lose(forwarded, owner); /* nothing is collected for one that is here */
    if (atomic_load(&forwarded->owner_of[mpiox_forwarded_range_of(forwarded, page * forwarded->page_bytes)]) != owner)
        return MPIOX_PAGE_MOVED;
    mpiox_forwarded_count_up(&forwarded->stats.dead_delegate_accesses, 1);
    return transfer(a, from, to);
}

/* A copy whose original is lost: its bytes go to the file, and an old copy must never overwrite them. */
static bool is_left_out(const access_t *a, int32_t replica)
{
    const int32_t owners = a->forwarded->owners;

    return a->original && atomic_load(&a->original->lost[(replica - a->forwarded->shift + owners) % owners]);
}

static int access_page(access_t *a, int64_t page, int64_t from, int64_t to)
{
    mpiox_forwarded *forwarded = a->forwarded;
    const int32_t range = mpiox_forwarded_range_of(forwarded, page * forwarded->page_bytes);

    int32_t owner = a->owners ? a->owners[range]
                              : atomic_load_explicit(&forwarded->owner_of[range], memory_order_relaxed);
    mpiox_backoff backoff = {0};
    int32_t sent_on = 0;

    mpiox_forwarded_count_up(&forwarded->accesses[range], 1);
    if (!mpiox_forwarded_owner(forwarded, owner)->local)
        return MPIOX_OK; /* access_remote() has done it */
    for (;;) {
        int code = MPIOX_OK;

        if (is_left_out(a, owner))
            return MPIOX_OK;
        code = access_local(a, owner, page, from, to);
        if (code == MPIOX_PAGE_MOVED) {
            const int32_t before = owner;

            learn_owners(a, owner);
            mpiox_forwarded_count_up(&forwarded->stats.redirected_pages, 1);
            owner = atomic_load(&forwarded->owner_of[range]);
            a->moved |= !mpiox_forwarded_owner(forwarded, owner)->local;
            if (a->moved)
                return MPIOX_OK;                                  /* the step is done again */
            if (owner == before || ++sent_on > forwarded->owners) /* it is moving, or faster than this rank */
                mpiox_wait_backoff(&backoff);
            continue;
        }
        if (code != MPIOX_PAGE_SHORT)
            return code;
        if ((code = settle_size(a)) != MPIOX_OK)
            return code;
        to = to < a->end ? to : a->end;
        if (from >= to)
            return MPIOX_OK;
    }
}

/* Has it given ranges away since this step began? */
static bool has_successors(const access_t *a, int32_t owner)
{
    for (int32_t r = 0; r < a->forwarded->ranges; r++)
        if (a->owners[r] == owner && atomic_load(&a->forwarded->owner_of[r]) != owner)
            return true;
    return false;
}

/* The pages of a delegate that is gone, in the file. */
static int transfer_pages(access_t *a, int32_t owner, int64_t from, int64_t to)
{
    mpiox_forwarded *forwarded = a->forwarded;
    int code = MPIOX_OK;

    for (int64_t at = from; code == MPIOX_OK && at < to && at < a->end;) {
        const int64_t page = offset_of(a, at) / forwarded->page_bytes,
                      next = position_at(a, (page + 1) * forwarded->page_bytes, to);

        if (a->owners[mpiox_forwarded_range_of(forwarded, page * forwarded->page_bytes)] == owner) {
            mpiox_forwarded_count_up(&forwarded->stats.dead_delegate_accesses, 1);
            code = transfer(a, at, next);
        }
        at = next;
    }
    return code;
}

static int write_again(mpiox_forwarded *forwarded, const mpiox_link_access *lost, mpiox_error *error);

/* One message, or one that is collected: only while the owners of this step are still those that this rank knows, lest
 * it be written when newer bytes have gone to another owner. */
static int send_or_collect(access_t *a, mpiox_link *link, const mpiox_link_access *access)
{
    const bool ordered = access->write && !access->at_once;
    int code = MPIOX_PAGE_MOVED;

    if (ordered)
        pthread_mutex_lock(&a->forwarded->ordering);
    a->moved = ordered && atomic_load(&a->forwarded->changes) != a->changes && has_successors(a, access->delegate);
    if (!a->moved)
        code = mpiox_link_access_pages(link, access, a->error);
    if (ordered)
        pthread_mutex_unlock(&a->forwarded->ordering);
    return code;
}

/* What belongs to one delegate elsewhere. */
static int access_remote(access_t *a, int32_t owner, int64_t from, int64_t to)
{
    mpiox_forwarded *forwarded = a->forwarded;
    mpiox_process *delegate = mpiox_forwarded_owner(forwarded, owner);
    bool found;

    if (forwarded->collects && a->request->write)
        mpiox_forwarded_enlist(forwarded, write_again);
    for (;;) {
        const mpiox_link_access access = {.file = forwarded->index[owner],
                                          .write = a->request->write,
                                          .beyond = a->beyond,
                                          .at_once = a->at_once || !forwarded->collects,
                                          .view = a->view,
                                          .origin = a->origin,
                                          .position = from,
                                          .length = to - from,
                                          .memory = memory_at(a, from),
                                          .unit_bytes = forwarded->unit_bytes,
                                          .ranges = forwarded->ranges,
                                          .owner = a->owners,
                                          .delegate = owner};
        int code = send_or_collect(a, delegate->link, &access);

        if (a->moved)
            return MPIOX_OK; /* the step is done again */
        mpiox_forwarded_count_up(&forwarded->stats.delegated_messages, 1);
        if (code != MPIOX_OK && code != MPIOX_PAGE_SHORT) { /* perhaps for a write that was collected before */
            const int again = mpiox_forwarded_settle(forwarded, owner, &found, a->error);

            if (again != MPIOX_OK)
                return again;
            if (found)
                continue;
        }
        if (code == MPIOX_E_UNSUPPORTED) {
            if (a->original)
                return MPIOX_OK;
            if (!lose(forwarded, owner))
                continue;
            a->moved = has_successors(a, owner);
            return a->moved ? MPIOX_OK : transfer_pages(a, owner, from, to);
        }
        if (code == MPIOX_PAGE_MOVED) {
            mpiox_forwarded_count_up(&forwarded->stats.redirected_pages, 1);
            a->moved = true;
            learn_owners(a, owner);
            return MPIOX_OK;
        }
        if (code == MPIOX_OK && a->request->write && !a->original)
            mpiox_forwarded_trace_add(forwarded, owner, offset_of(a, from), offset_of(a, to - 1) + 1);
        if (code != MPIOX_PAGE_SHORT)
            return code;
        if ((code = settle_size(a)) != MPIOX_OK)
            return code;
        to = to < a->end ? to : a->end;
        if (from >= to)
            return MPIOX_OK;
    }
}

static int replicate(access_t *a, int64_t from, int64_t to);
static int make_stable(access_t *a);

enum { MOST_TRIMS = 2 };

/* Can pages of the delegate be among these stream bytes? */
static bool may_own(const access_t *a, int32_t owner, int64_t from, int64_t to)
{
    const mpiox_forwarded *forwarded = a->forwarded;
    const int64_t first = offset_of(a, from) / forwarded->unit_bytes,
                  last = offset_of(a, to - 1) / forwarded->unit_bytes;
    bool found = last - first >= forwarded->ranges;

    for (int64_t unit = first; unit <= last && !found; unit++)
        found = a->owners[unit % forwarded->ranges] == owner;
    return found;
}

/* Stream bytes [from, to) at the delegates elsewhere. */
static int access_elsewhere(access_t *a, int64_t from, int64_t to)
{
    int code = MPIOX_OK;

    for (int32_t i = 0; i < a->forwarded->owners && code == MPIOX_OK && !a->moved; i++) {
        const int64_t limit = to < a->end ? to : a->end;

        if (from < limit && !mpiox_forwarded_owner(a->forwarded, i)->local && !is_left_out(a, i) &&
            may_own(a, i, from, limit))
            code = access_remote(a, i, from, limit);
    }
    return code;
}

/* Stream bytes [from, to) at the delegates whose memory is mapped here. */
static int access_here(access_t *a, int64_t from, int64_t to, int64_t *done)
{
    const mpiox_forwarded *forwarded = a->forwarded;
    int code = MPIOX_OK;

    *done = from;
    while (code == MPIOX_OK && *done < to && *done < a->end) {
        const int64_t limit = to < a->end ? to : a->end, page = offset_of(a, *done) / forwarded->page_bytes,
                      next = position_at(a, (page + 1) * forwarded->page_bytes, limit);

        code = access_page(a, page, *done, next);
        if (code == MPIOX_OK)
            *done = next < a->end ? next : a->end;
    }
    return code;
}

/* Both. Delegates elsewhere come first, since their answers may show that the file ends early. */
static int access_everywhere(access_t *a, int64_t from, int64_t to, int64_t *done)
{
    const mpiox_forwarded *forwarded = a->forwarded;
    int16_t owners[MPIOX_FILE_RANGES];
    mpiox_backoff backoff = {0};
    int code;

    a->owners = owners;
    do {
        if (a->moved) /* perhaps it is still moving */
            mpiox_wait_backoff(&backoff);
        a->moved = false;
        a->changes = atomic_load(&forwarded->changes);
        for (int32_t r = 0; r < forwarded->ranges; r++)
            owners[r] = atomic_load_explicit(&forwarded->owner_of[r], memory_order_relaxed);
        if ((code = access_elsewhere(a, from, to)) == MPIOX_OK && !a->moved)
            code = access_here(a, from, to, done);
    } while (code == MPIOX_OK && a->moved);
    a->owners = NULL;
    return code;
}

/* Stream bytes [from, to) through the delegates. */
static int through(access_t *a, int64_t from, int64_t to, int64_t *done)
{
    int code;

    *done = from;
    code = a->forwarded->any_remote ? access_everywhere(a, from, to, done) : access_here(a, from, to, done);
    return code == MPIOX_OK && a->request->write && a->forwarded->replica ? replicate(a, from, to) : code;
}

/* A write that was collected and not taken: mpiox_forwarded_rewrite. */
static int write_again(mpiox_forwarded *forwarded, const mpiox_link_access *lost, mpiox_error *error)
{
    const mpiox_request request = {
        .write = true, .position = lost->position, .length = lost->length, .buffer = lost->memory.base};
    mpiox_typemap *bytes = NULL;
    access_t a = {.forwarded = forwarded,
                  .request = &request,
                  .view = lost->view,
                  .origin = lost->origin,
                  .end = lost->position + lost->length,
                  .at_once = true,
                  .error = error};
    int64_t done;
    int code = lost->view ? MPIOX_OK : mpiox_typemap_block(1, &bytes);

    if (code != MPIOX_OK)
        return mpiox_error_set(error, code, 0, -1, -1, "no memory for writing again what a delegate did not take");
    if (!lost->view)
        a.view = bytes;
    code = through(&a, request.position, a.end, &done);
    mpiox_typemap_free(bytes);
    return code;
}

/* The same bytes to the replica delegates. */
static int replicate(access_t *a, int64_t from, int64_t to)
{
    access_t copy = *a;
    int64_t done = from;
    int code;

    copy.forwarded = a->forwarded->replica;
    copy.original = a->forwarded;
    for (int trims = 0; (code = through(&copy, from, to, &done)) == MPIOX_E_FULL; trims++) {
        if (trims == MOST_TRIMS) /* too small a memory there for this access: the originals go to the file */
            return make_stable(a);
        for (int32_t i = 0; i < copy.forwarded->owners; i++)
            if ((code = mpiox_replica_trim(a->forwarded, i, a->error)) != MPIOX_OK)
                return code;
    }
    return code;
}

/* ---- long runs --------------------------------------------------------------------------------------------------- */

/* Is the page cached, as far as can be told? Of a delegate that is gone another may have the page now. */
static bool is_cached(const mpiox_forwarded *forwarded, int64_t page)
{
    const int32_t range = mpiox_forwarded_range_of(forwarded, page * forwarded->page_bytes);
    const int32_t owner = atomic_load_explicit(&forwarded->owner_of[range], memory_order_relaxed);
    const mpiox_process *delegate = mpiox_forwarded_owner(forwarded, owner);
    uint64_t bits = 0;

    if (atomic_load(&forwarded->in_file[range]))
        return false;
    if (!delegate->local)
        return mpiox_link_has_pages(delegate->link, forwarded->index[owner], page, 1, &bits) != MPIOX_OK || bits;
    const int found = mpiox_cache_has_page(&delegate->cache, forwarded->index[owner], page);
    return found != MPIOX_FRAME_MISS; /* gone or moved: through() sorts it out */
}

/* Pages [*first, ..) of a long run that are not cached: their number, at most `most`. */
static int64_t uncached(const mpiox_forwarded *forwarded, int64_t first, int64_t most)
{
    int64_t count = 0;

    while (count < most && !is_cached(forwarded, first + count))
        count++;
    return count;
}

/* `count` whole pages from `page` on, which begin at stream position `at` of a run. */
static int transfer_whole(access_t *a, int64_t page, int64_t count, int64_t at)
{
    const int64_t bytes = a->forwarded->page_bytes;
    int64_t done;
    mpiox_stats_delegated *stats = &a->forwarded->stats;
    int code = transfer(a, at, at + count * bytes);

    mpiox_forwarded_count_up(a->request->write ? &stats->bypass_bytes_written : &stats->bypass_bytes_read,
                             count * bytes);
    mpiox_forwarded_count_up(a->request->write ? &stats->delegated_bytes_written : &stats->delegated_bytes_read,
                             -count * bytes); /* count() adds all of the access */
    for (int64_t i = 0; a->request->write && code == MPIOX_OK && i < count; i++)
        if (is_cached(a->forwarded, page + i))
            code = through(a, at + i * bytes, at + (i + 1) * bytes, &done);
    return code;
}

enum { MOST_PAGES = 64 }; /* looked up together, before they are transferred */

/* A long run: stream bytes [from, to) are contiguous in the file. */
static int access_run(access_t *a, int64_t from, int64_t to, int64_t *done)
{
    const int64_t bytes = a->forwarded->page_bytes, start = offset_of(a, from);
    int64_t page = (start + bytes - 1) / bytes, at = from + page * bytes - start;
    const int64_t last = (start + to - from) / bytes;
    int code = through(a, from, at < to ? at : to, done);

    while (code == MPIOX_OK && page < last && *done < a->end) {
        const int64_t most = last - page < MOST_PAGES ? last - page : MOST_PAGES,
                      count = uncached(a->forwarded, page, most);

        if (count > 0)
            code = transfer_whole(a, page, count, at);
        else
            code = through(a, at, at + bytes, done);
        page += count > 0 ? count : 1;
        at += (count > 0 ? count : 1) * bytes;
        if (code == MPIOX_OK)
            *done = at < a->end ? at : a->end;
    }
    return code == MPIOX_OK && *done < to && *done < a->end ? through(a, *done, to, done) : code;
}

/* ---- an access --------------------------------------------------------------------------------------------------- */

/* Are there runs that are worth going straight to the file? Judged by the average piece. */
static bool has_long_runs(const access_t *a, int64_t bypass)
{
    const int64_t length = a->end - a->request->position;

    if (bypass <= 0 || length < bypass || length < a->forwarded->page_bytes)
        return false;
    return mpiox_typemap_is_contiguous(a->view) ||
           mpiox_typemap_size(a->view) / mpiox_typemap_pieces(a->view) >= bypass;
}

static int access_all(access_t *a, int64_t *done)
{
    const int64_t bypass = a->forwarded->file->hints.delegate_bypass;
    int code = MPIOX_OK;

    if (!has_long_runs(a, bypass))
        return through(a, a->request->position, a->end, done);
    while (code == MPIOX_OK && *done < a->end) {
        mpiox_cursor cursor;
        mpiox_run run;
        const int64_t from = *done;

        mpiox_cursor_init(&cursor, a->view, a->origin, from);
        mpiox_cursor_next(&cursor, a->end - from, &run);
        if (run.length >= bypass)
            code = access_run(a, from, from + run.length, done);
        else
            code = through(a, from, from + run.length, done);
    }
    return code;
}

/* The file system has refused bytes of this file, perhaps of another access: this access returns the error, though its
 * own bytes are in place, and the error stays until a sync or close returns it on all ranks. */
static int report_refused(access_t *a, int32_t owner)
{
    mpiox_process *delegate = mpiox_forwarded_owner(a->forwarded, owner);

    if (!delegate->local ||
        !mpiox_cache_find_error(&delegate->cache, a->forwarded->index[owner], 0, INT64_MAX, a->error))
        return MPIOX_OK;
    return a->error->code;
}

/* Every byte that was written is on stable storage. When a delegate is gone, what this access wrote is written again,
 * to the file: its pages may have been rescued into the page cache of another node, or not at all. */
static int make_stable(access_t *a)
{
    mpiox_forwarded *forwarded = a->forwarded;
    const mpiox_request *r = a->request;
    bool again = false;
    int code = MPIOX_OK;

    for (int32_t i = 0; i < forwarded->owners && code == MPIOX_OK; i++) {
        mpiox_slot slot = {.op = MPIOX_OP_FLUSH};

        slot.question.flush.first = offset_of(a, r->position) / forwarded->page_bytes;
        slot.question.flush.end = offset_of(a, r->position + r->length - 1) / forwarded->page_bytes + 1;
        slot.question.flush.stable = 1;
        code = mpiox_forwarded_request(forwarded, i, &slot);
        if (code == MPIOX_E_UNSUPPORTED) {
            mpiox_forwarded_mark_failed(forwarded, i);
            again = true;
            code = MPIOX_OK;
        } else if (code != MPIOX_OK) {
            *a->error = slot.error;
        } else {
            code = report_refused(a, i);
        }
    }
    if (code == MPIOX_OK && again)
        code = transfer(a, r->position, a->end);
    if (code == MPIOX_OK && a->direct)
        code = mpiox_storage_sync(forwarded->file->storage, a->error);
    return code;
}

/* The process's limit of a file's size may have changed. End the access there. */
static bool exceeds_limit(access_t *a, int64_t last)
{
    const int64_t most = mpiox_forwarded_size_limit();

    atomic_store(&a->forwarded->most_bytes, most);
    if (last > most)
        a->end = position_at(a, most, a->end);
    return last > most;
}

static int beyond_limit(const access_t *a, int64_t last)
{
    const int64_t most = atomic_load(&a->forwarded->most_bytes);

    return mpiox_error_set(a->error, MPIOX_E_IO, EFBIG, most, last - most, "write");
}

/* Through a view whose tiles lie apart. */
static int access_tile(mpiox_forwarded *forwarded, const mpiox_request *request, int64_t origin, int64_t *moved,
                       mpiox_error *error)
{
    access_t a = {.forwarded = forwarded,
                  .request = request,
                  .view = forwarded->file->view,
                  .origin = origin,
                  .end = request->position + request->length,
                  .error = error};
    int64_t done = request->position, first, last;

    *moved = 0;
    if (!mpiox_independent_range(a.view, origin, request->position, request->length, &first, &last))
        return mpiox_error_set(error, MPIOX_E_ARG, EFBIG, request->position, request->length,
                               "access outside of bytes 0 to 2^62");
    const bool exceeds = request->write && last > atomic_load(&forwarded->most_bytes) && exceeds_limit(&a, last);
    int code = a.end > request->position ? access_all(&a, &done) : MPIOX_OK;
    *moved = done - request->position;
    if (code == MPIOX_OK && request->write && mpiox_forwarded_level(forwarded) == MPIOX_ACK_DISK)
        code = make_stable(&a);
    if (code == MPIOX_OK && a.refuser > 0)
        code = report_refused(&a, a.refuser - 1);
    if (code == MPIOX_OK && exceeds)
        code = beyond_limit(&a, last);
    /* Large reads go past the cache, for which pages would come in vain: the file system reads ahead for them. */
    if (code == MPIOX_OK && !request->write && !has_long_runs(&a, forwarded->file->hints.delegate_bypass))
        mpiox_forwarded_read_ahead(forwarded, origin, request->position, request->length);
    return code;
}

/* Tiles that may overlap, one after the other. */
static int access_tiles(mpiox_forwarded *forwarded, const mpiox_request *request, int64_t *moved, mpiox_error *error)
{
    const mpiox_file *file = forwarded->file;
    const int64_t size = mpiox_typemap_size(file->view);
    int code = MPIOX_OK;

    *moved = 0;
    while (code == MPIOX_OK && *moved < request->length) {
        const int64_t at = request->position + *moved, left = size - at % size;
        mpiox_request part = *request;
        int64_t done = 0, shift;

        if (__builtin_mul_overflow(at / size, file->tile_extent, &shift) ||
            __builtin_add_overflow(shift, file->set_displacement, &shift) || shift > MPIOX_INDEPENDENT_MAX_OFFSET)
            return mpiox_error_set(error, MPIOX_E_ARG, EFBIG, at, request->length, "access outside of bytes 0 to 2^62");
        part.position = at % size;
        part.memory_position = request->memory_position + *moved;
        part.length = request->length - *moved < left ? request->length - *moved : left;
        code = access_tile(forwarded, &part, shift, &done, error);
        *moved += done;
        if (done < part.length)
            break;
    }
    return code;
}

static void count(mpiox_forwarded *forwarded, bool write, int64_t bytes, double begun)
{
    mpiox_independent_counters *alone = &forwarded->file->independent;
    mpiox_stats_delegated *stats = &forwarded->stats;
    const int64_t nanoseconds = (int64_t)(1e9 * (mpiox_now() - begun));

    mpiox_forwarded_count_up(write ? &alone->writes : &alone->reads, 1);
    mpiox_forwarded_count_up(write ? &alone->bytes_written : &alone->bytes_read, bytes);
    mpiox_forwarded_count_up(&alone->nanoseconds, nanoseconds);
    mpiox_forwarded_count_up(write ? &stats->delegated_writes : &stats->delegated_reads, 1);
    mpiox_forwarded_count_up(write ? &stats->delegated_bytes_written : &stats->delegated_bytes_read, bytes);
    mpiox_forwarded_count_up(&stats->nanoseconds, nanoseconds);
}

/* Pieces that overlap, which are only read: past the delegates, once the file has what they hold of it. Pages are
 * looked up by ranges of the stream, and what a range of the file holds is none here (mpiox_overlap.h). */
static int access_past(mpiox_forwarded *forwarded, const mpiox_request *request, mpiox_outcome *outcome)
{
    if (mpiox_forwarded_flush_barrier_alone(forwarded, &outcome->error) != MPIOX_OK)
        return outcome->error.code;
    return mpiox_file_access(forwarded->file, request, outcome);
}

int mpiox_forwarded_access(mpiox_forwarded *forwarded, const mpiox_request *request, mpiox_outcome *outcome)
{
    mpiox_file *file = forwarded->file;
    const double begun = mpiox_now();
    mpiox_device device;
    int code;

    *outcome = (mpiox_outcome){.bytes = 0, .error = {.code = MPIOX_OK}};
    if (request->length == 0)
        return MPIOX_OK;
    if (file->empty_view || !file->view)
        return mpiox_file_access(file, request, outcome);
    if (mpiox_device_has(request, begun, &device))
        return mpiox_error_set(&outcome->error, MPIOX_E_IO, EFAULT, -1, request->length,
                               "access of the memory of a GPU");
    if (!file->tile_extent && !mpiox_typemap_is_monotonic(file->view))
        return access_past(forwarded, request, outcome);
    if (!mpiox_forwarded_is_used(forwarded))
        atomic_store(&forwarded->used, true);
    if (atomic_load(&forwarded->bypassed) && mpiox_forwarded_refresh(forwarded, &outcome->error) != MPIOX_OK)
        return outcome->error.code;
    if (file->tile_extent)
        code = access_tiles(forwarded, request, &outcome->bytes, &outcome->error);
    else
        code = access_tile(forwarded, request, file->set_displacement, &outcome->bytes, &outcome->error);
    count(forwarded, request->write, outcome->bytes, begun);
    outcome->error.code = code;
    outcome->error.rank = file->topology->rank;
    return code;
}
