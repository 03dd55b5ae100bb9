/*
 * mpiox_contribution.c - one rank's part of a collective: its range, its error, and, if it is new, its view.
 *
 * A rank that cannot take part reports this here and still takes every step, without data. Few pieces with wide gaps
 * between them are several spans, so that windows in a gap are skipped, and not read.
 */
#include <errno.h>

#include "mpiox_collective_impl.h"
#include "mpiox_typemap_edges.h"

/* Gaps that are worth a span: as wide as many windows. */
static const int64_t wide_bytes = INT64_C(64) << 20;

/* Append a piece to the spans; before the first one there is none. */
static void add_to_spans(mpiox_contribution *c, int64_t first, int64_t last)
{
    if (c->n_spans > 0 && (first - c->spans[c->n_spans - 1].last < wide_bytes || c->n_spans == MPIOX_SPANS_MAX))
        c->spans[c->n_spans - 1].last = last;
    else
        c->spans[c->n_spans++] = (mpiox_interval){first, last};
}

/* The pieces of a run; a run without wide gaps at once. */
static void add_run(mpiox_contribution *c, const mpiox_run *run)
{
    const int64_t begin = run->offset + c->displacement, spread = (run->count - 1) * run->stride;
    if (run->stride - run->length < wide_bytes) {
        add_to_spans(c, begin, begin + spread + run->length);
        return;
    }
    for (int64_t i = 0; i < run->count && i < MPIOX_SPANS_MAX; i++)
        add_to_spans(c, begin + i * run->stride, begin + i * run->stride + run->length);
    if (run->count > MPIOX_SPANS_MAX) /* no span is free: the last one contains the others */
        add_to_spans(c, begin + spread, begin + spread + run->length);
}

/* One span, as long as the pieces are not known to ascend. */
static void keep_or_join_spans(mpiox_contribution *c)
{
    const mpiox_interval *spans = c->spans;
    bool ascending = spans[0].first == c->first && spans[c->n_spans - 1].last == c->last;
    for (int32_t i = 0; ascending && i < c->n_spans; i++)
        ascending = spans[i].first < spans[i].last && (i == 0 || spans[i - 1].last < spans[i].first);
    if (ascending)
        return;
    c->n_spans = 1;
    c->spans[0] = (mpiox_interval){c->first, c->last};
}

/* Contiguous file pieces of the contribution: exact when they are few, else from their share of the view. Few ones are
 * put into its spans. */
static int64_t count_pieces(const mpiox_typemap *view, mpiox_contribution *contribution)
{
    enum { COUNTED = 64 };
    const int64_t position = contribution->position;
    int64_t length = contribution->length;
    contribution->n_spans = 1;
    contribution->spans[0] = (mpiox_interval){contribution->first, contribution->last};
    if (mpiox_typemap_is_contiguous(view))
        return 1;
    const int64_t size = mpiox_typemap_size(view);
    const double share = (double)length / (double)size;           /* pieces * length may exceed 2^63 */
    const bool torn = position % size != 0 || length % size != 0; /* the first piece and the last one, in part */
    const int64_t estimate = (int64_t)((double)mpiox_typemap_pieces(view) * share) + torn;
    if (estimate > COUNTED)
        return estimate;
    mpiox_cursor cursor;
    int64_t pieces = 0, end = INT64_MIN;
    const bool across = contribution->flags & MPIOX_CONTRIBUTION_ACROSS; /* its pieces are elsewhere */
    contribution->n_spans = across ? 1 : 0;
    mpiox_cursor_init(&cursor, view, 0, position);
    while (length > 0) {
        mpiox_run run;
        length -= mpiox_cursor_next(&cursor, length, &run);
        if (!across)
            add_run(contribution, &run);
        pieces += run.count - (run.offset == end);
        end = run.offset + (run.count - 1) * run.stride + run.length;
    }
    keep_or_join_spans(contribution);
    return pieces;
}

/* From the first piece to the first one behind a gap of a window or more: where pieces are dealt to the ranks in turn,
 * after so many bytes it is the same rank's turn. */
static int64_t find_period(const mpiox_file *file, const mpiox_contribution *contribution, int64_t window_bytes)
{
    enum { LOOKS = 64 };
    const int64_t end = contribution->position + contribution->length;
    int64_t offset = contribution->first;
    for (int i = 0; i < LOOKS; i++) {
        const int64_t position = mpiox_typemap_position(file->view, offset + window_bytes - file->displacement);
        if (position >= end)
            return INT64_MAX;
        const int64_t next = file->displacement + mpiox_typemap_offset(file->view, position);
        if (next - offset >= 2 * window_bytes)
            return next - contribution->first;
        offset = next;
    }
    return INT64_MAX;
}

/* The same; of an access to the same part of another tile it is known. */
static int64_t period_of(mpiox_buffers *b, const mpiox_contribution *contribution)
{
    const mpiox_file *file = b->file;
    if (contribution->length == 0 || contribution->pieces < 2 || mpiox_topology_one_node(file->topology) ||
        (contribution->flags & MPIOX_CONTRIBUTION_ACROSS))
        return INT64_MAX;
    const int64_t place = contribution->position % mpiox_typemap_size(file->view);
    if (b->known_period.length != contribution->length || b->known_period.place != place)
        b->known_period = (mpiox_known_period){place, contribution->length,
                                               find_period(file, contribution, b->window_bytes)};
    return b->known_period.period;
}

/* Is the view a list; and the edges of the pieces, where the descriptions of views may not prove that no two ranks
 * write the same byte: where this rank's is too large for its contribution. Of few pieces in any case: it may be
 * another rank's that is too large. */
static void describe_pieces(const mpiox_file *file, mpiox_contribution *contribution)
{
    enum { FEW = 256 };
    const mpiox_range range = {file->view, file->displacement, contribution->position, contribution->length};
    contribution->edges = 0;
    if (contribution->length == 0)
        return;
    const bool list = mpiox_typemap_blob_bytes(file->view) > MPIOX_CONTRIBUTION_VIEW_BYTES;
    contribution->flags |= list ? MPIOX_CONTRIBUTION_LIST : 0;
    if (!(contribution->flags & MPIOX_CONTRIBUTION_WRITE))
        return;
    if (contribution->pieces > FEW && !list)
        contribution->flags |= MPIOX_CONTRIBUTION_NO_EDGES;
    else
        contribution->edges = mpiox_typemap_edges(&range);
}

/* Everything about this rank's access that other ranks need. */
void mpiox_contribution_write(mpiox_call *call)
{
    mpiox_buffers *b = call->b;
    mpiox_file *file = b->file;
    const mpiox_request *request = call->request;
    mpiox_contribution *contribution = &b->contributions[file->topology->node_rank];
    contribution->flags = (request->write ? MPIOX_CONTRIBUTION_WRITE : MPIOX_CONTRIBUTION_READ) |
                          (file->new_view ? MPIOX_CONTRIBUTION_NEW_VIEW : 0);
    contribution->error = request->local_error;
    contribution->position = request->position;
    contribution->length = request->local_error.code == MPIOX_OK ? request->length : 0;
    contribution->displacement = file->displacement;
    contribution->first = INT64_MAX;
    contribution->last = INT64_MIN;
    contribution->pieces = contribution->granule = 0;
    contribution->n_spans = 0;
    if (file->empty_view) {
        contribution->flags |= MPIOX_CONTRIBUTION_EMPTY;
        if (contribution->length > 0)
            mpiox_error_set(&contribution->error, MPIOX_E_ARG, 0, -1, request->length,
                            "access through a view without data");
        contribution->length = 0;
    } else if (!file->view) {
        contribution->flags |= MPIOX_CONTRIBUTION_UNUSABLE;
        contribution->length = 0;
    }
    /* Ranges and pieces of an access across tiles are those of tiles that lie apart: estimates. */
    if (contribution->length > 0 && mpiox_file_view_across(file, request))
        contribution->flags |= MPIOX_CONTRIBUTION_ACROSS;
    if (contribution->length > 0 &&
        !mpiox_independent_range(file->view, file->displacement, request->position, request->length,
                                 &contribution->first, &contribution->last)) {
        contribution->first = INT64_MAX;
        contribution->last = INT64_MIN;
        mpiox_error_set(&contribution->error, MPIOX_E_ARG, EFBIG, request->position, request->length,
                        "access beyond 2^62 bytes");
        contribution->error.rank = file->topology->rank;
        contribution->length = 0;
    }
    if (contribution->length > 0) {
        contribution->pieces = count_pieces(file->view, contribution);
        int64_t granule = mpiox_common_divisor(contribution->first, contribution->last);
        if (!mpiox_typemap_is_contiguous(file->view)) {
            granule = mpiox_common_divisor(granule, mpiox_typemap_granule(file->view));
            granule = mpiox_common_divisor(granule, file->displacement);
        }
        contribution->granule = granule;
    }
    if (file->new_view)
        b->known_period.length = 0;
    contribution->period = period_of(b, contribution);
    describe_pieces(file, contribution);
    call->first = contribution->first;
    call->last = contribution->last;
    if (file->new_view) {
        contribution->view_bytes = 0;
        if (file->view && mpiox_typemap_blob_bytes(file->view) <= MPIOX_CONTRIBUTION_VIEW_BYTES &&
            mpiox_typemap_to_blob(file->view, contribution->view, MPIOX_CONTRIBUTION_VIEW_BYTES) == MPIOX_OK)
            contribution->view_bytes = (int32_t)mpiox_typemap_blob_bytes(file->view);
    }
}
