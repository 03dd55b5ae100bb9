/*
 * mpiox_agree.c - how ranks agree: the node barrier, the summary of a collective, its error.
 *
 * Problem.   Before the rounds all ranks need the aggregate access region and must know of each other's errors; after
 *            them nobody may leave before the outcome is known to all.
 * Algorithm. A generation-counting barrier in shared memory whose closing rank works on the board while the others
 *            wait. With one node the last to arrive closes (no wake-up on the way); with several the leader does, since
 *            it talks to the other leaders: one MPI_Allgather of summaries, reduced in node order everywhere alike.
 * Guarantee. Every rank returns with the same summary and the same error; a rank with a local error takes part.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_exchange_impl.h"

bool mpiox_agree_poke(void *exchange) {
    mpiox_exchange *x = exchange;
    int flag;
    if (x->in_background && !x->threads) /* the program's thread lets MPI make progress */
        return false;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, x->team->comm, &flag, MPI_STATUS_IGNORE);
    return false;
}

/* One by one, not by MPI_Testall: whose failure ended it says only a status each. */
int mpiox_agree_finish(int n, MPI_Request *requests, bool (*work)(void *), void *context) {
    mpiox_backoff backoff = {0};
    int code = MPIOX_OK;
    for (int i = 0; i < n;) {
        int done = 0;
        if (requests[i] != MPI_REQUEST_NULL && PMPI_Test(&requests[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
            requests[i] = MPI_REQUEST_NULL; /* nothing more can be learnt of it */
            code = MPIOX_E_MPI;
        }
        if (requests[i] == MPI_REQUEST_NULL)
            i++;
        else if (!work || !work(context))
            mpiox_wait_backoff(&backoff);
    }
    return code;
}

void mpiox_agree_give_up(mpiox_exchange *x, int code, int64_t offset, int64_t length, const char *what) {
    char text[512];
    mpiox_error error = {.code = MPIOX_OK};
    const int sys_errno = code == MPIOX_E_NOMEM ? ENOMEM : code == MPIOX_E_ARG ? EINVAL : 0;
    mpiox_error_set(&error, code, sys_errno, offset, length, what);
    error.rank = x->team->rank;
    fprintf(stderr, "mpiio_ext: %s\n", mpiox_error_text(&error, x->path, text, sizeof text));
    PMPI_Abort(x->team->comm, 1);
}

/* MPI_Allgather of `bytes` bytes a rank. */
static bool gather(const void *mine, size_t bytes, void *all, MPI_Comm comm) {
    MPI_Request request;
    return PMPI_Iallgather(mine, (int) bytes, MPI_BYTE, all, (int) bytes, MPI_BYTE, comm, &request) == MPI_SUCCESS &&
           mpiox_agree_finish(1, &request, NULL, NULL) == MPIOX_OK;
}

/* Barrier over the node; `serial` (may be NULL) runs on one rank when all have arrived and before any leaves. */
static void barrier(mpiox_exchange *x, void (*serial)(void *), void *context) {
    mpiox_board *board = x->board;
    mpiox_team *team = x->team;
    const mpiox_idle idle = {mpiox_agree_poke, x};
    const bool by_leader = team->n_nodes > 1;
    const uint32_t next = mpiox_word_get(&board->generation) + 1;
    if (atomic_fetch_add(&board->arrived, 1) + 1 == (uint32_t) team->node_size) {
        atomic_store(&board->arrived, 0);
        if (!by_leader) {
            if (serial)
                serial(context);
            mpiox_word_set(&board->generation, next);
            return;
        }
        mpiox_word_set(&board->gathered, next);
    }
    if (by_leader && team->node_rank == 0) {
        mpiox_wait_reach(&board->gathered, next, &idle);
        if (serial)
            serial(context);
        mpiox_word_set(&board->generation, next);
    } else {
        mpiox_wait_reach(&board->generation, next, &idle);
    }
}

static void close_vote(void *context) {
    mpiox_board *board = ((mpiox_exchange *) context)->board;
    board->verdict = atomic_load(&board->against) == 0;
    atomic_store(&board->against, 0);
}

bool mpiox_agree_all(mpiox_exchange *x, bool mine) {
    bool all = mine;
    if (x->team->size == 1)
        return mine;
    if (x->team->n_nodes > 1 || !x->board) {
        return PMPI_Allreduce(&mine, &all, 1, MPI_C_BOOL, MPI_LAND, x->team->comm) == MPI_SUCCESS && all;
    }
    if (!mine)
        atomic_fetch_add(&x->board->against, 1);
    barrier(x, close_vote, x);
    return x->board->verdict != 0;
}

int mpiox_agree_lowest(mpiox_exchange *x, int mine) {
    int values[MPIOX_LOBBY_VOTES] = {mine}, nothing = 0;
    if (x->team->size == 1)
        return mine;
    if (x->team->lobby.page)
        mpiox_lobby_vote(&x->team->lobby, values, &nothing, sizeof nothing);
    else if (PMPI_Allreduce(&mine, values, 1, MPI_INT, MPI_MIN, x->team->comm) != MPI_SUCCESS)
        return mine < MPIOX_E_MPI ? mine : MPIOX_E_MPI;
    return values[0];
}

/* ---- posts ------------------------------------------------------------------------------------------------------- */

/* Contiguous file pieces of a part of the stream: exact when they are few, else from their share of the view. */
static int64_t count_pieces(const mpiox_typemap *view, int64_t position, int64_t length) {
    enum { COUNTED = 64 };
    if (mpiox_typemap_is_contiguous(view))
        return 1;
    const double share = (double) length / (double) mpiox_typemap_size(view); /* pieces * length may exceed 2^63 */
    const int64_t estimate = (int64_t) ((double) mpiox_typemap_pieces(view) * share) + 1;
    if (estimate > COUNTED)
        return estimate;
    mpiox_cursor cursor;
    int64_t pieces = 0, end = INT64_MIN;
    mpiox_cursor_init(&cursor, view, 0, position);
    while (length > 0) {
        mpiox_run run;
        length -= mpiox_cursor_next(&cursor, length, &run);
        pieces += run.count - (run.offset == end);
        end = run.offset + (run.count - 1) * run.stride + run.length;
    }
    return pieces;
}

/* Everything about this rank's access that other ranks need. */
void mpiox_agree_post(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    const mpiox_request *request = call->request;
    mpiox_post *post = &x->posts[x->team->node_rank];
    post->flags = (request->write ? MPIOX_POST_WRITE : MPIOX_POST_READ) | (x->new_view ? MPIOX_POST_NEW_VIEW : 0);
    post->error = request->local_error;
    post->position = request->position;
    post->length = request->local_error.code == MPIOX_OK ? request->length : 0;
    post->displacement = x->displacement;
    post->first = INT64_MAX;
    post->last = INT64_MIN;
    post->pieces = post->granule = 0;
    if (x->empty_view) {
        post->flags |= MPIOX_POST_EMPTY;
        if (post->length > 0)
            mpiox_error_set(&post->error, MPIOX_E_ARG, 0, -1, request->length, "access through a view without data");
        post->length = 0;
    } else if (!x->view) {
        post->flags |= MPIOX_POST_UNUSABLE;
        post->length = 0;
    }
    if (post->length > 0 && mpiox_view_across(x, request))
        post->flags |= MPIOX_POST_ACROSS; /* ranges and pieces below are then those of tiles that lie apart: estimates */
    if (post->length > 0 && !mpiox_independent_range(x->view, x->displacement, request->position, request->length,
                                                     &post->first, &post->last)) {
        post->first = INT64_MAX;
        post->last = INT64_MIN;
        mpiox_error_set(&post->error, MPIOX_E_ARG, EFBIG, request->position, request->length,
                        "access outside of bytes 0 to 2^62");
        post->error.rank = x->team->rank;
        post->length = 0;
    }
    if (post->length > 0) {
        post->pieces = count_pieces(x->view, post->position, post->length);
        int64_t granule = mpiox_common_divisor(post->first, post->last);
        if (!mpiox_typemap_is_contiguous(x->view)) {
            granule = mpiox_common_divisor(granule, mpiox_typemap_granule(x->view));
            granule = mpiox_common_divisor(granule, x->displacement);
        }
        post->granule = granule;
    }
    call->first = post->first;
    call->last = post->last;
    if (x->new_view) {
        post->view_bytes = 0;
        if (x->view && mpiox_typemap_blob_bytes(x->view) <= MPIOX_POST_VIEW_BYTES &&
            mpiox_typemap_to_blob(x->view, post->view, MPIOX_POST_VIEW_BYTES) == MPIOX_OK)
            post->view_bytes = (int32_t) mpiox_typemap_blob_bytes(x->view);
    }
}

/* ---- summary ----------------------------------------------------------------------------------------------------- */

static int by_first(const void *a, const void *b) {
    const mpiox_interval *p = a, *q = b;
    return p->first < q->first ? -1 : p->first > q->first;
}

/* Sort and merge intervals in place, then close the smallest gaps until at most `max` are left; *overlap is set when
 * two of them shared a byte. Returns their number. */
static int32_t merge_intervals(mpiox_interval *list, int32_t n, int32_t max, int32_t *overlap) {
    int32_t kept = 0;
    qsort(list, (size_t) n, sizeof *list, by_first);
    for (int32_t i = 0; i < n; i++) {
        if (kept && list[i].first <= list[kept - 1].last) {
            if (list[i].first < list[kept - 1].last)
                *overlap = 1;
            if (list[i].last > list[kept - 1].last)
                list[kept - 1].last = list[i].last;
        } else {
            list[kept++] = list[i];
        }
    }
    while (kept > max) {
        int32_t best = 1;
        for (int32_t i = 2; i < kept; i++)
            if (list[i].first - list[i - 1].last < list[best].first - list[best - 1].last)
                best = i;
        list[best - 1].last = list[best].last;
        memmove(&list[best], &list[best + 1], sizeof *list * (size_t) (kept - best - 1));
        kept--;
    }
    return kept;
}

static void add_intervals(mpiox_summary *into, const mpiox_interval *more, int32_t n, int32_t *overlap) {
    mpiox_interval both[2 * MPIOX_OCCUPIED_MAX];
    memcpy(both, into->occupied, sizeof *both * (size_t) into->n_occupied);
    memcpy(both + into->n_occupied, more, sizeof *both * (size_t) n);
    into->n_occupied = merge_intervals(both, into->n_occupied + n, MPIOX_OCCUPIED_MAX, overlap);
    memcpy(into->occupied, both, sizeof *both * (size_t) into->n_occupied);
}

static void summary_clear(mpiox_summary *s) {
    memset(s, 0, sizeof *s);
    s->start = INT64_MAX;
    s->end = INT64_MIN;
    s->disjoint = 1;
}

/* *overlap is set when the accesses of the two sides have file ranges that overlap. */
static void summary_add(mpiox_summary *into, const mpiox_summary *s, int32_t *overlap) {
    into->start = s->start < into->start ? s->start : into->start;
    into->end = s->end > into->end ? s->end : into->end;
    into->bytes += s->bytes;
    into->pieces += s->pieces;
    into->granule = mpiox_common_divisor(into->granule, s->granule);
    into->longest = s->longest > into->longest ? s->longest : into->longest;
    into->flags |= s->flags;
    into->active += s->active;
    into->disjoint &= s->disjoint;
    into->interleaved |= s->interleaved;
    if (into->error.code == MPIOX_OK)
        into->error = s->error;
    add_intervals(into, s->occupied, s->n_occupied, overlap);
}

/* Descriptions of the node's ranks from their posts, NULL for views without data; false when one is too large for a post. */
static bool views_of_posts(mpiox_exchange *x, mpiox_typemap **views) {
    for (int i = 0; i < x->team->node_size; i++)
        if (!(x->posts[i].flags & MPIOX_POST_EMPTY) &&
            (x->posts[i].view_bytes == 0 ||
             mpiox_typemap_from_blob(x->posts[i].view, x->posts[i].view_bytes, &views[i]) != MPIOX_OK))
            return false;
    return true;
}

/* Does a pair of ranks share a byte, as far as can be proven: whole views, or only what this call accesses of them? */
static bool pair_disjoint(const mpiox_post *p, const mpiox_typemap *a, const mpiox_post *q, const mpiox_typemap *b,
                          bool whole) {
    if (!a || !b)
        return true;
    if (whole)
        return mpiox_typemap_disjoint(a, p->displacement, b, q->displacement);
    if (p->length == 0 || q->length == 0 || p->last <= q->first || q->last <= p->first)
        return true;
    const mpiox_range mine = {a, p->displacement, p->position, p->length};
    const mpiox_range other = {b, q->displacement, q->position, q->length};
    return mpiox_typemap_disjoint_ranges(&mine, &other);
}

static bool all_pairs_disjoint(mpiox_exchange *x, mpiox_typemap **views, bool whole) {
    for (int i = 0; i < x->team->node_size; i++)
        for (int j = i + 1; j < x->team->node_size; j++)
            if (!pair_disjoint(&x->posts[i], views[i], &x->posts[j], views[j], whole))
                return false;
    return true;
}

/* Is it proven that no two ranks of this node access the same byte? Whole views are compared once per view, since most
 * programs access one view many times; if that fails (tiles that run into each other, say), this call's ranges. Bounded:
 * about a microsecond a pair, for at most 91 and 32 ranks' pairs; beyond that, coverage is marked. */
static int32_t views_disjoint(mpiox_exchange *x) {
    enum { RANKS_WHOLE = 91, RANKS_RANGES = 32 };
    const int n = x->team->node_size;
    mpiox_board *board = x->board;
    if (n > RANKS_WHOLE || board->views_disjoint > 0 || (board->views_disjoint == 0 && n > RANKS_RANGES))
        return board->views_disjoint > 0;
    mpiox_typemap **views = calloc((size_t) n, sizeof *views);
    int32_t proven = views && views_of_posts(x, views);
    if (proven && board->views_disjoint < 0)
        board->views_disjoint = all_pairs_disjoint(x, views, true);
    if (proven && board->views_disjoint <= 0)
        proven = n <= RANKS_RANGES && all_pairs_disjoint(x, views, false);
    for (int i = 0; i < n && views; i++)
        mpiox_typemap_free(views[i]);
    free(views);
    return proven;
}

static void summarize_node(mpiox_exchange *x, mpiox_summary *s) {
    summary_clear(s);
    for (int i = 0; i < x->team->node_size; i++) {
        const mpiox_post *post = &x->posts[i];
        mpiox_summary one;
        summary_clear(&one);
        one.flags = post->flags;
        one.error = post->error;
        if (post->length > 0) {
            one.start = post->first;
            one.end = post->last;
            one.bytes = one.longest = post->length;
            one.pieces = post->pieces;
            one.granule = post->granule;
            one.active = 1;
            one.n_occupied = 1;
            one.occupied[0] = (mpiox_interval) {post->first, post->last};
        }
        summary_add(s, &one, &s->interleaved);
    }
    if (s->flags & MPIOX_POST_NEW_VIEW)
        x->board->views_disjoint = -1;
    if (s->interleaved && (s->flags & MPIOX_POST_WRITE))
        s->disjoint = views_disjoint(x);
}

/* The closing rank: node summary, all nodes' summaries, a clean board for the rounds. */
static void close_posts(void *context) {
    mpiox_exchange *x = context;
    mpiox_board *board = x->board;
    mpiox_team *team = x->team;
    mpiox_summary *s = &board->summary;
    summarize_node(x, s);
    if (team->n_nodes > 1) {
        mpiox_summary *all = mpiox_messages_scratch(x);
        int32_t overlap = 0;
        /* Without the others' summaries nobody here knows what they go on to do; they would wait for this node. */
        if (!gather(s, sizeof *s, all, team->leader_comm))
            mpiox_agree_give_up(x, MPIOX_E_MPI, -1, -1, "agreeing on the access region");
        summary_clear(s);
        for (int n = 0; n < team->n_nodes; n++)
            summary_add(s, &all[n], &overlap);
        s->interleaved |= overlap;
        if (overlap) /* views are compared inside a node only */
            s->disjoint = 0;
    }
    atomic_store(&board->failed, 0);
    atomic_store(&board->eof, INT64_MAX);
    mpiox_memory_reset(x);
}

int mpiox_agree_summary(mpiox_call *call) {
    barrier(call->x, close_posts, call->x);
    call->summary = call->x->board->summary;
    return call->summary.error.code;
}

/* ---- errors and end ---------------------------------------------------------------------------------------------- */

void mpiox_agree_fail(mpiox_exchange *x, const mpiox_error *error) {
    uint32_t none = 0;
    if (atomic_compare_exchange_strong(&x->board->failed, &none, 1)) {
        x->board->error = *error;
        x->board->error.rank = x->team->rank;
        atomic_store(&x->board->failed, 2);
    }
}

bool mpiox_agree_failed(mpiox_exchange *x) { return atomic_load_explicit(&x->board->failed, memory_order_relaxed) != 0; }

typedef struct verdict { /* what leaders tell each other at the end; no larger than a summary */
    int64_t eof;
    mpiox_error error;
} verdict;

static void close_call(void *context) {
    mpiox_exchange *x = context;
    mpiox_board *board = x->board;
    mpiox_team *team = x->team;
    if (team->n_nodes == 1)
        return;
    verdict mine = {atomic_load(&board->eof), {.code = MPIOX_OK}}, *all = mpiox_messages_scratch(x);
    _Static_assert(sizeof mine <= sizeof(mpiox_summary), "they share the scratch");
    if (atomic_load(&board->failed))
        mine.error = board->error;
    if (!gather(&mine, sizeof mine, all, team->leader_comm)) {
        mpiox_error_set(&mine.error, MPIOX_E_MPI, 0, -1, -1, "agreeing on the outcome");
        mpiox_agree_fail(x, &mine.error);
    } else {
        for (int n = 0; n < team->n_nodes; n++) {
            if (all[n].error.code == MPIOX_OK)
                continue;
            board->error = all[n].error; /* the lowest node's error, on every node */
            atomic_store(&board->failed, 2);
            break;
        }
        for (int n = 0; n < team->n_nodes; n++)
            if (all[n].eof < atomic_load(&board->eof))
                atomic_store(&board->eof, all[n].eof);
    }
}

void mpiox_agree_end(mpiox_call *call, mpiox_outcome *outcome) {
    mpiox_exchange *x = call->x;
    barrier(x, close_call, x);
    if (atomic_load(&x->board->failed))
        outcome->error = x->board->error;
}
