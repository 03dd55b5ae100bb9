/*
 * mpiox_typemap_build.c - the public constructors.
 *
 * Each constructor imports its children as trees (their arrays are borrowed, not copied), combines them with the
 * normalising constructors of mpiox_typemap_tree.c, and lays the result out in one allocation. Bounds (lower bound and
 * extent) follow the rules of MPI for type constructors without alignment: they span the bounds of all tiles.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_typemap_impl.h"
#include "mpiox_typemap_items.h"

/* Lower and upper bound of what has been placed so far. */
typedef struct bounds {
    bool any;
    int64_t lb;
    int64_t ub;
} bounds;

/* Place `count` (> 0) copies of child, `stride` apart, the first at `displacement`. */
static bool place(bounds *b, int64_t count, int64_t stride, int64_t displacement, const mpiox_typemap *child)
{
    int64_t last, lb, ub;
    const int64_t child_ub = child->lb + child->extent;
    if (!mpiox_mul(count - 1, stride, &last) || !mpiox_add(displacement, child->lb, &lb) ||
        !mpiox_add(lb, last < 0 ? last : 0, &lb) || !mpiox_add(displacement, child_ub, &ub) ||
        !mpiox_add(ub, last > 0 ? last : 0, &ub)) {
        return false;
    }
    b->lb = !b->any || lb < b->lb ? lb : b->lb;
    b->ub = !b->any || ub > b->ub ? ub : b->ub;
    b->any = true;
    return true;
}

/* Export the tree if `code` is MPIOX_OK, and free it in any case. */
static int finish(int code, mpiox_tree *tree, const bounds *b, mpiox_typemap **out)
{
    int64_t extent = 0;
    if (code == MPIOX_OK && !mpiox_add(b->ub, -b->lb, &extent)) {
        code = MPIOX_E_ARG;
    }
    if (code == MPIOX_OK) {
        code = mpiox_tree_export(tree, b->lb, extent, out);
    }
    mpiox_tree_free(tree);
    return code;
}

int mpiox_typemap_block(int64_t length, mpiox_typemap **out)
{
    mpiox_tree *tree = NULL;
    const bounds b = {true, 0, length};
    *out = NULL;
    const int code = mpiox_tree_block(length, &tree);
    return finish(code, tree, &b, out);
}

int mpiox_typemap_vector(int64_t count, int64_t stride, const mpiox_typemap *child, mpiox_typemap **out)
{
    mpiox_tree *tree = NULL;
    bounds b = {false, 0, 0};
    *out = NULL;
    if (count < 0 || (count > 0 && !place(&b, count, stride, 0, child))) {
        return MPIOX_E_ARG;
    }
    int code = count > 0 ? mpiox_tree_import(child, &tree) : MPIOX_OK;
    if (code == MPIOX_OK) {
        code = mpiox_tree_loop(count, stride, tree, &tree);
    }
    return finish(code, tree, &b, out);
}

int mpiox_typemap_resized(int64_t lb, int64_t extent, const mpiox_typemap *child, mpiox_typemap **out)
{
    mpiox_tree *tree = NULL;
    *out = NULL;
    int64_t ub;
    if (!mpiox_fits(lb) || !mpiox_add(lb, extent, &ub)) {
        return MPIOX_E_ARG;
    }
    const bounds b = {true, lb, ub};
    const int code = mpiox_tree_import(child, &tree);
    return finish(code, tree, &b, out);
}

/* Bounds and prefix sums (in bytes) of the items of an indexed description. */
static int measure_items(int64_t n, const int64_t *counts, const int64_t *displacements, const mpiox_typemap *child,
                         int64_t *prefix, bounds *b)
{
    prefix[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t bytes;
        if (counts[i] < 0 || !mpiox_fits(displacements[i]) || !mpiox_mul(counts[i], child->size, &bytes) ||
            !mpiox_add(prefix[i], bytes, &prefix[i + 1]) ||
            (counts[i] > 0 && !place(b, counts[i], child->extent, displacements[i], child))) {
            return MPIOX_E_ARG;
        }
    }
    return MPIOX_OK;
}

/* The list tree of an indexed description; takes over the two arrays. */
static int list_items(const mpiox_list_items *items, const mpiox_typemap *child, mpiox_tree **out)
{
    mpiox_tree *item = NULL;
    int code = mpiox_tree_import(child, &item);
    if (code != MPIOX_OK || item == NULL) {
        free(items->displacements);
        free(items->prefix);
        return code;
    }
    if (item->kind == MPIOX_NODE_BLOCK && item->length == child->extent) { /* contiguous items need no child */
        const int64_t offset = item->offset;
        mpiox_tree_free(item);
        code = mpiox_tree_list(items, 0, 0, NULL, false, out);
        return code == MPIOX_OK ? mpiox_tree_shift(*out, offset) : code;
    }
    return mpiox_tree_list(items, 0, child->extent, item, false, out);
}

static int index_contiguous(int64_t n, const int64_t *counts, const int64_t *displacements, const mpiox_typemap *child,
                            mpiox_typemap **out)
{
    mpiox_items items;
    const int code = mpiox_items_room(n, &items);
    if (code != MPIOX_OK) {
        return code;
    }
    if (n > 0) {
        memcpy(items.displacements, displacements, (size_t)n * sizeof *displacements);
    }
    return mpiox_items_describe(&items, (mpiox_item_lengths){.wide = counts}, child, out);
}

int mpiox_typemap_indexed(int64_t n, const int64_t *counts, const int64_t *displacements, const mpiox_typemap *child,
                          mpiox_typemap **out)
{
    mpiox_tree *tree = NULL;
    bounds b = {false, 0, 0};
    *out = NULL;
    if (n < 0 || n >= MPIOX_TYPEMAP_LIMIT / 16) {
        return MPIOX_E_ARG;
    }
    if (mpiox_items_fit(child)) {
        return index_contiguous(n, counts, displacements, child, out);
    }
    int64_t *at = malloc((size_t)(n + 1) * sizeof(int64_t));
    int64_t *prefix = malloc((size_t)(n + 1) * sizeof(int64_t));
    if (at == NULL || prefix == NULL) {
        free(at);
        free(prefix);
        return MPIOX_E_NOMEM;
    }
    int code = measure_items(n, counts, displacements, child, prefix, &b);
    if (code != MPIOX_OK) {
        free(at);
        free(prefix);
        return code;
    }
    if (n > 0) {
        memcpy(at, displacements, (size_t)n * sizeof(int64_t));
    }
    code = list_items(&(mpiox_list_items){n, at, prefix}, child, &tree);
    return finish(code, tree, &b, out);
}

static int import_member(int64_t count, int64_t displacement, const mpiox_typemap *child, mpiox_tree **out)
{
    int code = mpiox_tree_import(child, out);
    if (code == MPIOX_OK) {
        code = mpiox_tree_loop(count, child->extent, *out, out);
    }
    return code == MPIOX_OK ? mpiox_tree_shift(*out, displacement) : code;
}

/* Items of a member that is a block, a list of blocks, or seamless tiles of a block; 0 when it is anything else, or
 * has items whose lengths are no int. */
static int64_t listed_items(int64_t count, const mpiox_typemap *child)
{
    int64_t bytes;
    if (child->node_count != 1 || !mpiox_mul(count, child->size, &bytes) || bytes > INT_MAX) {
        return 0;
    }
    const mpiox_node *node = mpiox_typemap_nodes(child);
    if (node->kind == MPIOX_NODE_LIST) {
        return count == 1 ? node->count : 0;
    }
    return mpiox_items_fit(child) || (node->kind == MPIOX_NODE_BLOCK && count == 1) ? 1 : 0;
}

/* Items of all members; 0 when some member cannot be listed. */
static int64_t listed_members(int64_t n, const int64_t *counts, const mpiox_typemap *const *children)
{
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t items = counts[i] > 0 && children[i]->size > 0 ? listed_items(counts[i], children[i]) : 0;
        if (items == 0 && counts[i] != 0 && (counts[i] < 0 || children[i]->size > 0)) {
            return 0;
        }
        total += items;
    }
    return total;
}

/* A struct of lists, as PnetCDF makes one of all that is flushed, is one list: without a tree for each of them. */
static int struct_of_lists(int64_t n, const int64_t *counts, const int64_t *displacements,
                           const mpiox_typemap *const *children, int64_t total, const bounds *b, mpiox_typemap **out)
{
    mpiox_items items;
    int64_t at, extent, kept = 0;
    if (!mpiox_add(b->ub, -b->lb, &extent)) {
        return MPIOX_E_ARG;
    }
    int code = mpiox_items_room(total, &items);
    for (int64_t i = 0; i < n && code == MPIOX_OK; i++) {
        if (counts[i] == 0 || children[i]->size == 0) {
            continue;
        }
        const mpiox_node *node = mpiox_typemap_nodes(children[i]);
        const int64_t *pool = mpiox_typemap_pool(children[i]);
        code = mpiox_add(displacements[i], children[i]->first, &at) ? MPIOX_OK : MPIOX_E_ARG;
        if (node->kind == MPIOX_NODE_BLOCK) {
            items.displacements[kept] = at;
            items.lengths[kept++] = (int)(counts[i] * node->length);
            continue;
        }
        for (int64_t k = 0; k < node->count && code == MPIOX_OK; k++) {
            items.displacements[kept] = at + pool[node->pool + k];
            items.lengths[kept++] = (int)(mpiox_list_start(node, pool, k + 1) - mpiox_list_start(node, pool, k));
        }
    }
    if (code != MPIOX_OK) {
        mpiox_items_free(&items);
        return code;
    }
    return mpiox_items_describe_bytes(&items, (mpiox_item_lengths){.narrow = items.lengths}, b->lb, extent, out);
}

int mpiox_typemap_struct(int64_t n, const int64_t *counts, const int64_t *displacements,
                         const mpiox_typemap *const *children, mpiox_typemap **out)
{
    mpiox_tree *tree = NULL;
    bounds b = {false, 0, 0};
    int code = MPIOX_OK;
    *out = NULL;
    if (n < 0 || n >= MPIOX_TYPEMAP_LIMIT / 16) {
        return MPIOX_E_ARG;
    }
    for (int64_t i = 0; i < n; i++) {
        if (counts[i] < 0 || !mpiox_fits(displacements[i]) ||
            (counts[i] > 0 && !place(&b, counts[i], children[i]->extent, displacements[i], children[i]))) {
            return MPIOX_E_ARG;
        }
    }
    const int64_t total = listed_members(n, counts, children);
    if (total > 0) {
        return struct_of_lists(n, counts, displacements, children, total, &b, out);
    }
    mpiox_tree **members = calloc((size_t)n + 1, sizeof *members);
    if (members == NULL) {
        return MPIOX_E_NOMEM;
    }
    for (int64_t i = 0; i < n && code == MPIOX_OK; i++) {
        if (counts[i] > 0) {
            code = import_member(counts[i], displacements[i], children[i], &members[i]);
        }
    }
    if (code == MPIOX_OK) {
        code = mpiox_tree_struct(n, members, &tree);
    }
    for (int64_t i = 0; i < n; i++) {
        mpiox_tree_free(members[i]);
    }
    free(members);
    return finish(code, tree, &b, out);
}
