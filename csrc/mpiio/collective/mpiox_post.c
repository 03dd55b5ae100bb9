/*
 * mpiox_post.c - what one rank brings to a collective: its range, its error, and, when it is new, its view.
 *
 * A rank that cannot take part says so here and still takes part in every step, with nothing.
 */
#include <errno.h>

#include "mpiox_collective_impl.h"
#include "mpiox_typemap_edges.h"

/* Contiguous file pieces of a part of the stream: exact when they are few, else from their share of the view. */
static int64_t count_pieces(const mpiox_typemap *view, int64_t position, int64_t length)
{
    enum { COUNTED = 64 };
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
    mpiox_cursor_init(&cursor, view, 0, position);
    while (length > 0) {
        mpiox_run run;
        length -= mpiox_cursor_next(&cursor, length, &run);
        pieces += run.count - (run.offset == end);
        end = run.offset + (run.count - 1) * run.stride + run.length;
    }
    return pieces;
}

/* Is the view a list; and the edges of the pieces, where the descriptions of views may not prove that no two ranks
 * write the same byte: where this rank's is too large for its post. Of few pieces in any case: it may be another rank's
 * that is too large. */
static void describe_pieces(const mpiox_file *file, mpiox_post *post)
{
    enum { FEW = 256 };
    const mpiox_range range = {file->view, file->displacement, post->position, post->length};
    post->edges = 0;
    if (post->length == 0)
        return;
    const bool list = mpiox_typemap_blob_bytes(file->view) > MPIOX_POST_VIEW_BYTES;
    post->flags |= list ? MPIOX_POST_LIST : 0;
    if (!(post->flags & MPIOX_POST_WRITE))
        return;
    if (post->pieces > FEW && !list)
        post->flags |= MPIOX_POST_NO_EDGES;
    else
        post->edges = mpiox_typemap_edges(&range);
}

/* Everything about this rank's access that other ranks need. */
void mpiox_post_write(mpiox_call *call)
{
    mpiox_buffers *b = call->b;
    mpiox_file *file = b->file;
    const mpiox_request *request = call->request;
    mpiox_post *post = &b->posts[file->topology->node_rank];
    post->flags = (request->write ? MPIOX_POST_WRITE : MPIOX_POST_READ) | (file->new_view ? MPIOX_POST_NEW_VIEW : 0);
    post->error = request->local_error;
    post->position = request->position;
    post->length = request->local_error.code == MPIOX_OK ? request->length : 0;
    post->displacement = file->displacement;
    post->first = INT64_MAX;
    post->last = INT64_MIN;
    post->pieces = post->granule = 0;
    if (file->empty_view) {
        post->flags |= MPIOX_POST_EMPTY;
        if (post->length > 0)
            mpiox_error_set(&post->error, MPIOX_E_ARG, 0, -1, request->length, "access through a view without data");
        post->length = 0;
    } else if (!file->view) {
        post->flags |= MPIOX_POST_UNUSABLE;
        post->length = 0;
    }
    /* Ranges and pieces of an access across tiles are those of tiles that lie apart: estimates. */
    if (post->length > 0 && mpiox_file_view_across(file, request))
        post->flags |= MPIOX_POST_ACROSS;
    if (post->length > 0 && !mpiox_independent_range(file->view, file->displacement, request->position, request->length,
                                                     &post->first, &post->last)) {
        post->first = INT64_MAX;
        post->last = INT64_MIN;
        mpiox_error_set(&post->error, MPIOX_E_ARG, EFBIG, request->position, request->length,
                        "access beyond 2^62 bytes");
        post->error.rank = file->topology->rank;
        post->length = 0;
    }
    if (post->length > 0) {
        post->pieces = count_pieces(file->view, post->position, post->length);
        int64_t granule = mpiox_common_divisor(post->first, post->last);
        if (!mpiox_typemap_is_contiguous(file->view)) {
            granule = mpiox_common_divisor(granule, mpiox_typemap_granule(file->view));
            granule = mpiox_common_divisor(granule, file->displacement);
        }
        post->granule = granule;
    }
    describe_pieces(file, post);
    call->first = post->first;
    call->last = post->last;
    if (file->new_view) {
        post->view_bytes = 0;
        if (file->view && mpiox_typemap_blob_bytes(file->view) <= MPIOX_POST_VIEW_BYTES &&
            mpiox_typemap_to_blob(file->view, post->view, MPIOX_POST_VIEW_BYTES) == MPIOX_OK)
            post->view_bytes = (int32_t)mpiox_typemap_blob_bytes(file->view);
    }
}
