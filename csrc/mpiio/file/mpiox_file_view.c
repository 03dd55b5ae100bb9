/*
 * mpiox_file_view.c - the view of an open file: setting it, and stream positions in it.
 *
 * Problem.   MPI requires that a file type's displacements never go down, but its tiles may overlap if its extent is
 *            smaller than its span (HDF5 makes such types for chunked datasets and accesses one tile). Positions in
 *            such a stream are not ordered by file offset, on which collectives rely.
 * Algorithm. For a type whose tiles overlap, the library stores a description whose tiles lie apart, together with the
 *            true extent. An access within one tile is shifted to the first one: the displacement moves by whole tiles.
 *            An access across tiles goes straight to the file, tile by tile (mpiox_independent_access). A type that
 *            overlaps within a tile, which MPI allows for a file that is only read, is stored as it is; all its
 *            accesses go straight to the file (mpiox_overlap.h).
 */
#include "mpiox_file.h"

#include "mpiox_overlap.h"
#include "mpiox_typemap_order.h"

/* The same data in tiles that lie apart; NULL when even one tile is out of order, or without memory. */
static mpiox_typemap *apart(const mpiox_typemap *view)
{
    const int64_t first = mpiox_typemap_true_lb(view), span = mpiox_typemap_true_ub(view) - first;
    mpiox_typemap *spread = NULL;
    if (mpiox_typemap_extent(view) <= 0 || mpiox_typemap_resized(first, span, view, &spread) != MPIOX_OK)
        return NULL;
    if (mpiox_typemap_is_monotonic(spread))
        return spread;
    mpiox_typemap_free(spread);
    return NULL;
}

/* Overlaps within a tile, in a file that is only read. */
static bool may_overlap(const mpiox_file *file, const mpiox_typemap *view)
{
    return (file->amode & MPI_MODE_RDONLY) && mpiox_typemap_extent(view) > 0 && !mpiox_typemap_order_of(view).descends;
}

bool mpiox_file_takes_view(const mpiox_file *file, const mpiox_typemap *view)
{
    if (mpiox_typemap_size(view) == 0 || mpiox_typemap_is_monotonic(view))
        return true;
    mpiox_typemap *spread = apart(view);
    mpiox_typemap_free(spread);
    return spread != NULL || may_overlap(file, view);
}

bool mpiox_file_view_usable(const mpiox_file *file)
{
    return file->view || file->empty_view;
}

bool mpiox_file_view_is_fine(const mpiox_file *file)
{
    enum { FINE_PIECE_BYTES = 64 * 1024 }; /* from here on a piece is a request of its own (mpiox_independent.c) */
    return file->view && !mpiox_typemap_is_contiguous(file->view) &&
           mpiox_typemap_size(file->view) / mpiox_typemap_pieces(file->view) < FINE_PIECE_BYTES;
}

bool mpiox_file_agree_view(mpiox_file *file, bool usable, bool *any)
{
    int values[] = {usable, !*any};
    if (!mpiox_topology_takes_all(file->topology))
        return false;
    mpiox_shared_pointer_clear_next(file);
    const int code = mpiox_topology_min(file->topology, 2, values, NULL, 0);
    file->topology->views++;
    *any = code == MPIOX_OK && !values[1];
    return code == MPIOX_OK && values[0];
}

/* The pointer of the old view is the one that was used before. */
void mpiox_file_keep_view(mpiox_file *file)
{
    if (mpiox_topology_takes_all(file->topology))
        file->topology->views--;
}

void mpiox_file_set_view(mpiox_file *file, mpiox_typemap *view, int64_t displacement)
{
    file->empty_view = view && mpiox_typemap_size(view) == 0;
    file->tile_extent = 0;
    if (view && !file->empty_view && !mpiox_typemap_is_monotonic(view)) {
        mpiox_typemap *spread = apart(view);
        file->tile_extent = spread ? mpiox_typemap_extent(view) : 0;
        if (spread || !may_overlap(file, view)) {
            mpiox_typemap_free(view);
            view = spread;
        }
    } else if (file->empty_view) {
        mpiox_typemap_free(view);
        view = NULL;
    }
    mpiox_typemap_free(file->view);
    file->view = view;
    file->displacement = file->set_displacement = displacement;
    file->new_view = true;
    file->stats.views_set++;
}

mpiox_request mpiox_file_view_shift(mpiox_file *file, const mpiox_request *request)
{
    mpiox_request shifted = *request;
    if (!file->tile_extent || !file->view || request->length == 0)
        return shifted;
    const int64_t size = mpiox_typemap_size(file->view), tile = request->position / size;
    int64_t displacement;
    if ((request->position + request->length - 1) / size != tile)
        return shifted; /* across tiles: mpiox_file_view_across() */
    if (__builtin_mul_overflow(tile, file->tile_extent, &displacement) ||
        __builtin_add_overflow(displacement, file->set_displacement, &displacement) ||
        displacement > MPIOX_INDEPENDENT_MAX_OFFSET)
        displacement = MPIOX_INDEPENDENT_MAX_OFFSET; /* refused as beyond the largest offset */
    file->new_view |= file->displacement != displacement;
    file->displacement = displacement;
    shifted.position -= tile * size;
    return shifted;
}

bool mpiox_file_view_across(const mpiox_file *file, const mpiox_request *request)
{
    if (!file->view || request->length == 0 || (!file->tile_extent && mpiox_typemap_is_monotonic(file->view)))
        return false;
    const int64_t size = mpiox_typemap_size(file->view);
    return !file->tile_extent || request->position / size != (request->position + request->length - 1) / size;
}

int64_t mpiox_file_byte_offset(const mpiox_file *file, int64_t position)
{
    int64_t first, last, shift = 0;
    if (!file->view) /* without data */
        return position == 0 ? file->set_displacement : -1;
    if (file->tile_extent) {
        const int64_t size = mpiox_typemap_size(file->view);
        if (__builtin_mul_overflow(position / size, file->tile_extent, &shift) || shift > MPIOX_INDEPENDENT_MAX_OFFSET)
            return -1;
        position %= size;
    }
    if (__builtin_add_overflow(shift, file->set_displacement, &shift))
        return -1;
    return mpiox_independent_range(file->view, shift, position, 1, &first, &last)
               ? shift + mpiox_typemap_offset(file->view, position)
               : -1;
}

int64_t mpiox_file_data_before(const mpiox_file *file, int64_t byte)
{
    int64_t at = byte - file->set_displacement, tiles = 0;
    if (!file->view || at <= 0)
        return 0;
    if (!mpiox_typemap_is_monotonic(file->view)) { /* tiles that end before it, and the rest piece by piece */
        const int64_t end = mpiox_typemap_true_ub(file->view), extent = mpiox_typemap_extent(file->view);
        tiles = at >= end ? (at - end) / extent + 1 : 0;
        tiles *= mpiox_typemap_size(file->view);
        return tiles + mpiox_overlap_before(file->view, 0, tiles, INT64_MAX - tiles, at);
    }
    if (!file->tile_extent)
        return mpiox_typemap_position(file->view, at);
    tiles = at / file->tile_extent; /* tiles that begin before it, and the part of the last one before it */
    const int64_t size = mpiox_typemap_size(file->view),
                  rest = mpiox_typemap_position(file->view, at - tiles * file->tile_extent);
    return tiles * size + (rest < size ? rest : size);
}
