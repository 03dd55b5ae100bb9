/*
 * mpiox_typemap_query.c - facts of a description, and seeking in both directions.
 *
 * Seeking walks one path from the root: O(depth), plus a binary search per struct or list of unequal items. Position ->
 * offset divides by sizes; offset -> position divides by strides, which is meaningful for monotonic descriptions only
 * (there every copy, member, item and tile lies wholly behind the one before it).
 */
#include "mpiox_integer.h"

#include <assert.h>

#include "mpiox_typemap_impl.h"

_Static_assert(sizeof(mpiox_typemap) % sizeof(int64_t) == 0 && sizeof(mpiox_node) % sizeof(int64_t) == 0,
               "nodes and pool words must be aligned");

int64_t mpiox_typemap_size(const mpiox_typemap *typemap)
{
    return typemap->size;
}
int64_t mpiox_typemap_extent(const mpiox_typemap *typemap)
{
    return typemap->extent;
}
int64_t mpiox_typemap_lb(const mpiox_typemap *typemap)
{
    return typemap->lb;
}
int64_t mpiox_typemap_pieces(const mpiox_typemap *typemap)
{
    return typemap->pieces;
}
int64_t mpiox_typemap_granule(const mpiox_typemap *typemap)
{
    return typemap->granule;
}
int mpiox_typemap_depth(const mpiox_typemap *typemap)
{
    return typemap->depth;
}

int64_t mpiox_typemap_true_lb(const mpiox_typemap *typemap)
{
    return typemap->node_count > 0 ? typemap->first + mpiox_typemap_nodes(typemap)->lo : 0;
}

int64_t mpiox_typemap_true_ub(const mpiox_typemap *typemap)
{
    return typemap->node_count > 0 ? typemap->first + mpiox_typemap_nodes(typemap)->hi : 0;
}

bool mpiox_typemap_is_contiguous(const mpiox_typemap *typemap)
{
    return (typemap->flags & MPIOX_FLAG_CONTIGUOUS) != 0;
}

bool mpiox_typemap_is_monotonic(const mpiox_typemap *typemap)
{
    return (typemap->flags & MPIOX_FLAG_MONOTONIC) != 0;
}

/* ---- position -> offset ------------------------------------------------------------------------------------------ */

int64_t mpiox_typemap_offset(const mpiox_typemap *typemap, int64_t position)
{
    assert(position >= 0);
    if (typemap->size == 0) {
        return typemap->first;
    }
    const mpiox_node *nodes = mpiox_typemap_nodes(typemap);
    const int64_t *pool = mpiox_typemap_pool(typemap);
    const int64_t tile = mpiox_wrap_madd(typemap->first, position / typemap->tile_size, typemap->tile_extent);
    int64_t at = 0, rest = position % typemap->tile_size; /* `at` is relative to the tile, hence in range */
    int32_t index = typemap->tile_node;
    while (index != MPIOX_NO_CHILD) {
        const mpiox_node *node = nodes + index;
        int64_t i;
        index = node->child;
        if (node->kind == MPIOX_NODE_LOOP) {
            i = rest / node->length;
            at += i * node->stride;
            rest -= i * node->length;
        } else if (node->kind == MPIOX_NODE_STRUCT) {
            i = mpiox_search(pool + node->pool + node->count, node->count, rest);
            rest -= pool[node->pool + node->count + i];
            index = (int32_t)pool[node->pool + i];
            at += nodes[index].offset;
        } else if (node->kind == MPIOX_NODE_LIST) {
            i = node->length > 0 ? rest / node->length
                                 : mpiox_search(pool + node->pool + node->count, node->count, rest);
            at += pool[node->pool + i];
            rest -= mpiox_list_start(node, pool, i);
            if (index != MPIOX_NO_CHILD) {
                i = rest / nodes[index].size;
                at += i * node->stride;
                rest -= i * nodes[index].size;
            }
        }
    }
    return mpiox_wrap_add(tile, at + rest);
}

/* ---- offset -> position ------------------------------------------------------------------------------------------ */

/* Last of n copies, `stride` apart from 0 on, that starts at or before `at` (0 when none does). */
static int64_t copy_before(int64_t at, int64_t stride, int64_t n)
{
    return at <= 0 || n <= 1 ? 0 : mpiox_clamp(at / stride, 0, n - 1);
}

/* Last member that starts at or before `at`. */
static int64_t member_before(const mpiox_node *nodes, const int64_t *members, int64_t n, int64_t at)
{
    int64_t low = 0;
    while (n > 1) {
        const int64_t half = n / 2;
        low += nodes[members[low + half]].offset <= at ? half : 0;
        n -= half;
    }
    return low;
}

/* Data bytes of one tile that lie below `at` (relative to the tile's first byte). */
static int64_t bytes_below(const mpiox_typemap *typemap, int64_t at)
{
    const mpiox_node *nodes = mpiox_typemap_nodes(typemap);
    const int64_t *pool = mpiox_typemap_pool(typemap);
    int64_t below = 0, length = typemap->tile_size;
    int32_t index = typemap->tile_node;
    while (index != MPIOX_NO_CHILD) {
        const mpiox_node *node = nodes + index;
        int64_t i;
        if (at >= node->hi) { /* behind all of it; also spares the divisions below */
            return below + node->size;
        }
        index = node->child;
        length = node->length;
        if (node->kind == MPIOX_NODE_LOOP) {
            i = copy_before(at, node->stride, node->count);
            below += i * node->length;
            at -= i * node->stride;
        } else if (node->kind == MPIOX_NODE_STRUCT) {
            i = member_before(nodes, pool + node->pool, node->count, at);
            below += pool[node->pool + node->count + i];
            index = (int32_t)pool[node->pool + i];
            at -= nodes[index].offset;
        } else if (node->kind == MPIOX_NODE_LIST) {
            i = at <= 0 ? 0 : mpiox_search(pool + node->pool, node->count, at);
            const int64_t start = mpiox_list_start(node, pool, i);
            length = mpiox_list_start(node, pool, i + 1) - start;
            below += start;
            at -= pool[node->pool + i];
            if (index != MPIOX_NO_CHILD) {
                i = copy_before(at, node->stride, length / nodes[index].size);
                below += i * nodes[index].size;
                at -= i * node->stride;
            }
        }
    }
    return below + mpiox_clamp(at, 0, length);
}

int64_t mpiox_typemap_position(const mpiox_typemap *typemap, int64_t offset)
{
    int64_t at, position;
    assert(mpiox_typemap_is_monotonic(typemap));
    if (typemap->size == 0 || offset <= typemap->first) {
        return 0;
    }
    if (__builtin_sub_overflow(offset, typemap->first, &at)) {
        at = INT64_MAX;
    }
    const int64_t tile = at / typemap->tile_extent;
    if (__builtin_mul_overflow(tile, typemap->tile_size, &position) ||
        __builtin_add_overflow(position, bytes_below(typemap, at - tile * typemap->tile_extent), &position)) {
        return INT64_MAX;
    }
    return position;
}
