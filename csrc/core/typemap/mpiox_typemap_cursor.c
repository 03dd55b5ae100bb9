/*
 * mpiox_typemap_cursor.c - from a description to strided runs.
 *
 * Problem.    The copy loops need long runs of equal blocks; the description is a tree that is tiled without end.
 * Algorithm.  A cursor stores the path from the tiling to a leaf (block, loop of blocks, list of blocks), one level of
 *             four words each: node, index, address, tile within a list item. The innermost loop, which is the tiling
 *             itself when a tile is one block, is yielded as one run. When a leaf is used up the deepest level that has
 *             copies left advances and the path below it is rebuilt, which is O(1) amortised.
 * Guarantees. Start-up is O(depth) plus a binary search per struct or list; no allocation; addresses wrap rather than
 *             overflow.
 */
#include "mpiox_typemap_impl.h"

#include <assert.h>

#include "mpiox_cursor_impl.h"

_Static_assert(sizeof(mpiox_cursor_state) <= sizeof(((mpiox_cursor *)NULL)->state), "the cursor's state is too small");

/* Build the path from level k, whose node and address are given, to a leaf: first copy, member, item all the way. */
static void descend(mpiox_cursor_state *s, const mpiox_typemap *typemap, int64_t k, int64_t index, int64_t address)
{
    const mpiox_node *nodes = mpiox_typemap_nodes(typemap);
    for (;; k++) {
        assert(k < MPIOX_TYPEMAP_MAX_DEPTH);
        mpiox_cursor_level *level = s->level + k;
        level->node = index;
        level->index = 0;
        level->address = address;
        level->tile = 0;
        const mpiox_node *node = nodes + index;
        if (node->child == MPIOX_NO_CHILD) {
            break;
        }
        /* First members and items lie at their parent's origin. */
        index = node->kind == MPIOX_NODE_STRUCT ? mpiox_typemap_pool(typemap)[node->pool] : node->child;
    }
    s->levels = k + 1;
}

/* As descend(), to stream byte `rest` of the node; sets the offset inside the leaf's block. */
static void seek(mpiox_cursor_state *s, const mpiox_typemap *typemap, int64_t rest)
{
    const mpiox_node *nodes = mpiox_typemap_nodes(typemap);
    const int64_t *pool = mpiox_typemap_pool(typemap);
    int64_t index = typemap->tile_node, address = s->tile_address, k = 0;
    assert(rest >= 0 && rest < typemap->tile_size);
    for (;; k++) {
        assert(k < MPIOX_TYPEMAP_MAX_DEPTH);
        const mpiox_node *node = nodes + index;
        int64_t i = 0, tile = 0, child = node->child, step = 0;
        if (node->kind == MPIOX_NODE_LOOP) {
            i = rest / node->length;
            rest -= i * node->length;
            step = i * node->stride;
        } else if (node->kind == MPIOX_NODE_STRUCT) {
            i = mpiox_search(pool + node->pool + node->count, node->count, rest);
            rest -= pool[node->pool + node->count + i];
            child = pool[node->pool + i];
            step = nodes[child].offset;
        } else if (node->kind == MPIOX_NODE_LIST) {
            i = node->length > 0 ? rest / node->length
                                 : mpiox_search(pool + node->pool + node->count, node->count, rest);
            rest -= mpiox_list_start(node, pool, i);
            step = pool[node->pool + i];
            if (child != MPIOX_NO_CHILD) {
                tile = rest / nodes[child].size;
                rest -= tile * nodes[child].size;
                step += tile * node->stride;
            }
        }
        s->level[k] = (mpiox_cursor_level){index, i, address, tile};
        if (child == MPIOX_NO_CHILD) {
            break;
        }
        address = mpiox_wrap_add(address, step);
        index = child;
    }
    s->levels = k + 1;
    s->inside = rest;
}

void mpiox_cursor_init(mpiox_cursor *cursor, const mpiox_typemap *typemap, int64_t origin, int64_t position)
{
    mpiox_cursor_state *s = mpiox_cursor_state_of(cursor);
    assert(position >= 0);
    cursor->typemap = typemap;
    cursor->position = position;
    s->levels = 0;
    s->inside = 0;
    s->tile_address = mpiox_wrap_add(origin, typemap->first);
    if (typemap->size == 0) {
        return;
    }
    if (typemap->flags & MPIOX_FLAG_CONTIGUOUS) {
        s->inside = position;
        return;
    }
    const int64_t tile = position / typemap->tile_size;
    s->tile_address = mpiox_wrap_madd(s->tile_address, tile, typemap->tile_extent);
    s->inside = position - tile * typemap->tile_size;
    if (typemap->tile_node != MPIOX_NO_CHILD) {
        seek(s, typemap, s->inside);
    }
}

/* Step a level that is no leaf to its next copy, member or item; false when there is none. */
static bool step_level(mpiox_cursor_level *level, const mpiox_typemap *typemap, int64_t *child, int64_t *address)
{
    const mpiox_node *nodes = mpiox_typemap_nodes(typemap);
    const int64_t *pool = mpiox_typemap_pool(typemap);
    const mpiox_node *node = nodes + level->node;
    *child = node->child;
    if (node->kind == MPIOX_NODE_LIST) {
        const int64_t item = level->index;
        const int64_t bytes = mpiox_list_start(node, pool, item + 1) - mpiox_list_start(node, pool, item);
        if (++level->tile * nodes[node->child].size >= bytes) {
            level->tile = 0;
            level->index++;
        }
    } else {
        level->index++;
    }
    if (level->index == node->count) {
        return false;
    }
    if (node->kind == MPIOX_NODE_LOOP) {
        *address = mpiox_wrap_madd(level->address, level->index, node->stride);
    } else if (node->kind == MPIOX_NODE_LIST) {
        *address = mpiox_wrap_madd(mpiox_wrap_add(level->address, pool[node->pool + level->index]), level->tile,
                                   node->stride);
    } else {
        *child = pool[node->pool + level->index];
        *address = mpiox_wrap_add(level->address, nodes[*child].offset);
    }
    return true;
}

void mpiox_cursor_next_leaf(mpiox_cursor *cursor)
{
    mpiox_cursor_state *s = mpiox_cursor_state_of(cursor);
    const mpiox_typemap *typemap = cursor->typemap;
    assert(s->levels > 0 && s->inside == 0);
    for (int64_t k = s->levels - 2; k >= 0; k--) {
        int64_t child, address;
        if (step_level(s->level + k, typemap, &child, &address)) {
            descend(s, typemap, k + 1, child, address);
            return;
        }
    }
    s->tile_address = mpiox_wrap_add(s->tile_address, typemap->tile_extent);
    descend(s, typemap, 0, typemap->tile_node, s->tile_address);
}

/* Cut a run out of the blocks that are left, the first entered at *inside. Returns the data bytes; *blocks is the
 * number of blocks that it finishes. */
static inline int64_t cut_run(const mpiox_run *left, int64_t max_bytes, int64_t *inside, int64_t *blocks,
                              mpiox_run *run)
{
    const int64_t length = left->length;
    int64_t count = left->count;
    if (*inside > 0 || max_bytes < length) { /* part of one block */
        const int64_t rest = length - *inside;
        const int64_t bytes = rest < max_bytes ? rest : max_bytes;
        *run = (mpiox_run){mpiox_wrap_add(left->offset, *inside), bytes, 0, 1};
        *blocks = bytes == rest;
        *inside = bytes == rest ? 0 : *inside + bytes;
        return bytes;
    }
    int64_t bytes;
    if (__builtin_mul_overflow(count, length, &bytes) || bytes > max_bytes) {
        count = max_bytes / length;
        bytes = count * length;
    }
    *run = (mpiox_run){left->offset, length, count > 1 ? left->stride : 0, count};
    *blocks = count;
    return bytes;
}

/* The tile is one block: the endless tiling is the run. */
static int64_t next_of_tiling(mpiox_cursor_state *s, const mpiox_typemap *typemap, int64_t max_bytes, mpiox_run *run)
{
    int64_t blocks, bytes = max_bytes;
    if (typemap->flags & MPIOX_FLAG_CONTIGUOUS) {
        *run = (mpiox_run){mpiox_wrap_add(s->tile_address, s->inside), max_bytes, 0, 1};
        s->inside = mpiox_wrap_add(s->inside, max_bytes);
        return bytes;
    }
    const mpiox_run tiles = {s->tile_address, typemap->tile_size, typemap->tile_extent, INT64_MAX};
    bytes = cut_run(&tiles, max_bytes, &s->inside, &blocks, run);
    s->tile_address = mpiox_wrap_madd(s->tile_address, blocks, typemap->tile_extent);
    return bytes;
}

int64_t mpiox_cursor_next(mpiox_cursor *cursor, int64_t max_bytes, mpiox_run *run)
{
    mpiox_cursor_state *s = mpiox_cursor_state_of(cursor);
    const mpiox_typemap *typemap = cursor->typemap;
    int64_t blocks, bytes;
    assert(max_bytes > 0 && typemap->size > 0);
    if (typemap->tile_node == MPIOX_NO_CHILD) {
        bytes = next_of_tiling(s, typemap, max_bytes, run);
        cursor->position = mpiox_wrap_add(cursor->position, bytes);
        return bytes;
    }
    mpiox_cursor_level *leaf = s->level + s->levels - 1;
    const mpiox_node *node = mpiox_typemap_nodes(typemap) + leaf->node;
    if (node->kind == MPIOX_NODE_LIST) {
        const int64_t *pool = mpiox_typemap_pool(typemap);
        const int64_t i = leaf->index;
        const int64_t length = mpiox_list_start(node, pool, i + 1) - mpiox_list_start(node, pool, i);
        const mpiox_run item = {mpiox_wrap_add(leaf->address, pool[node->pool + i]), length, 0, 1};
        bytes = cut_run(&item, max_bytes, &s->inside, &blocks, run);
    } else {
        const mpiox_run rest = {mpiox_wrap_madd(leaf->address, leaf->index, node->stride), node->length, node->stride,
                                node->count - leaf->index};
        bytes = cut_run(&rest, max_bytes, &s->inside, &blocks, run);
    }
    leaf->index += blocks;
    cursor->position = mpiox_wrap_add(cursor->position, bytes);
    if (leaf->index == node->count) {
        mpiox_cursor_next_leaf(cursor);
    }
    return bytes;
}

bool mpiox_cursor_next_list(mpiox_cursor *cursor, int64_t max_bytes, mpiox_list_batch *batch)
{
    mpiox_cursor_state *s = mpiox_cursor_state_of(cursor);
    const mpiox_typemap *typemap = cursor->typemap;
    if (s->levels == 0 || s->inside != 0) {
        return false;
    }
    mpiox_cursor_level *leaf = s->level + s->levels - 1;
    const mpiox_node *node = mpiox_typemap_nodes(typemap) + leaf->node;
    if (node->kind != MPIOX_NODE_LIST) {
        return false;
    }
    const int64_t *words = mpiox_typemap_pool(typemap) + node->pool;
    const int64_t left = node->count - leaf->index;
    batch->displacements = words + leaf->index;
    batch->length = node->length;
    batch->address = leaf->address;
    if (node->length > 0) {
        const int64_t fit = max_bytes / node->length;
        batch->prefix = NULL;
        batch->items = fit < left ? fit : left;
        batch->bytes = batch->items * node->length;
    } else {
        batch->prefix = words + node->count + leaf->index;
        /* An item that only starts within max_bytes is left to the cursor. */
        batch->items = batch->prefix[left] - batch->prefix[0] <= max_bytes
                           ? left
                           : mpiox_search(batch->prefix, left + 1, batch->prefix[0] + max_bytes);
        batch->bytes = batch->prefix[batch->items] - batch->prefix[0];
    }
    if (batch->items == 0) {
        return false;
    }
    leaf->index += batch->items;
    cursor->position += batch->bytes;
    if (leaf->index == node->count) {
        mpiox_cursor_next_leaf(cursor);
    }
    return true;
}
