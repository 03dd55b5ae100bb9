/*
 * mpiox_view.c - the view of an open file: setting it, and stream positions in it.
 *
 * Problem.   MPI asks that a file type's displacements never go down, but tiles of it may overlap when its extent is
 *            smaller than what it spans (HDF5 makes such types for chunked datasets and accesses one tile). Positions in
 *            such a stream are not ordered by file offset, which the exchange relies on.
 * Algorithm. Of a type whose tiles overlap, a description is kept whose tiles lie apart, together with the true extent. An
 *            access within one tile is shifted to the first one: the displacement moves by whole tiles. An access across
 *            tiles goes straight to the file, tile by tile (mpiox_independent_access).
 */
#include "mpiox_exchange_impl.h"

/* The same data in tiles that lie apart; NULL when even one tile is out of order, or without memory. */
static mpiox_typemap *apart(const mpiox_typemap *view) {
    const int64_t first = mpiox_typemap_true_lb(view), span = mpiox_typemap_true_ub(view) - first;
    mpiox_typemap *spread = NULL;
    if (mpiox_typemap_extent(view) <= 0 || mpiox_typemap_resized(first, span, view, &spread) != MPIOX_OK)
        return NULL;
    if (mpiox_typemap_is_monotonic(spread))
        return spread;
    mpiox_typemap_free(spread);
    return NULL;
}

bool mpiox_exchange_takes_view(const mpiox_typemap *view) {
    if (mpiox_typemap_size(view) == 0 || mpiox_typemap_is_monotonic(view))
        return true;
    mpiox_typemap *spread = apart(view);
    mpiox_typemap_free(spread);
    return spread != NULL;
}

bool mpiox_exchange_view_usable(const mpiox_exchange *x) { return x->view || x->empty_view; }

bool mpiox_exchange_agree_view(mpiox_exchange *x, bool usable) {
    if (!mpiox_exchange_background(x))
        return false;
    mpiox_shared_pointer_clear_next(x);
    usable = mpiox_agree_all(x, usable);
    x->team->turn++;
    return usable;
}

/* The pointer of the old view is the one that was in use before. */
void mpiox_exchange_keep_view(mpiox_exchange *x) {
    if (mpiox_exchange_background(x))
        x->team->turn--;
}

void mpiox_exchange_set_view(mpiox_exchange *x, mpiox_typemap *view, int64_t displacement) {
    x->empty_view = view && mpiox_typemap_size(view) == 0;
    x->tile_extent = 0;
    if (view && !x->empty_view && !mpiox_typemap_is_monotonic(view)) {
        mpiox_typemap *spread = apart(view);
        x->tile_extent = spread ? mpiox_typemap_extent(view) : 0;
        mpiox_typemap_free(view);
        view = spread;
    } else if (x->empty_view) {
        mpiox_typemap_free(view);
        view = NULL;
    }
    mpiox_typemap_free(x->view);
    x->view = view;
    x->displacement = x->set_displacement = displacement;
    x->new_view = true;
    x->stats.views_set++;
}

mpiox_request mpiox_view_shift(mpiox_exchange *x, const mpiox_request *request) {
    mpiox_request shifted = *request;
    if (!x->tile_extent || !x->view || request->length == 0)
        return shifted;
    const int64_t size = mpiox_typemap_size(x->view), tile = request->position / size;
    int64_t displacement;
    if ((request->position + request->length - 1) / size != tile)
        return shifted; /* across tiles: mpiox_view_across() */
    if (__builtin_mul_overflow(tile, x->tile_extent, &displacement) ||
        __builtin_add_overflow(displacement, x->set_displacement, &displacement) ||
        displacement > MPIOX_INDEPENDENT_MAX_OFFSET)
        displacement = MPIOX_INDEPENDENT_MAX_OFFSET; /* refused as beyond the largest offset */
    x->new_view |= x->displacement != displacement;
    x->displacement = displacement;
    shifted.position -= tile * size;
    return shifted;
}

bool mpiox_view_across(const mpiox_exchange *x, const mpiox_request *request) {
    if (!x->tile_extent || !x->view || request->length == 0)
        return false;
    const int64_t size = mpiox_typemap_size(x->view);
    return request->position / size != (request->position + request->length - 1) / size;
}

int64_t mpiox_exchange_byte_offset(const mpiox_exchange *x, int64_t position) {
    int64_t first, last, shift = 0;
    if (!x->view) /* without data */
        return position == 0 ? x->set_displacement : -1;
    if (x->tile_extent) {
        const int64_t size = mpiox_typemap_size(x->view);
        if (__builtin_mul_overflow(position / size, x->tile_extent, &shift) || shift > MPIOX_INDEPENDENT_MAX_OFFSET)
            return -1;
        position %= size;
    }
    if (__builtin_add_overflow(shift, x->set_displacement, &shift))
        return -1;
    return mpiox_independent_range(x->view, shift, position, 1, &first, &last) ? first : -1;
}

int64_t mpiox_exchange_data_before(const mpiox_exchange *x, int64_t byte) {
    int64_t at = byte - x->set_displacement, tiles = 0;
    if (!x->view || at <= 0)
        return 0;
    if (!x->tile_extent)
        return mpiox_typemap_position(x->view, at);
    tiles = at / x->tile_extent; /* tiles that begin before it, and what lies before it in the last of them */
    const int64_t size = mpiox_typemap_size(x->view), rest = mpiox_typemap_position(x->view, at - tiles * x->tile_extent);
    return tiles * size + (rest < size ? rest : size);
}
