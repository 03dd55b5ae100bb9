/*
 * mpiox_typemap_build.c - the public constructors.
 *
 * Each constructor imports its children as trees (their arrays are borrowed, not copied), combines them with the
 * normalising constructors of mpiox_typemap_tree.c, and lays the result out in one allocation. Bounds (lower bound and
 * extent) follow the rules of MPI for type constructors without alignment: they span the bounds of all tiles.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_typemap_impl.h"

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

/* Export and free the tree, whatever `code` says. */
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
static int list_items(int64_t n, int64_t *at, int64_t *prefix, const mpiox_typemap *child, mpiox_tree **out)
{
    mpiox_tree *item = NULL;
    int code = mpiox_tree_import(child, &item);
    if (code != MPIOX_OK || item == NULL) {
        free(at);
        free(prefix);
        return code;
    }
    if (item->kind == MPIOX_NODE_BLOCK && item->length == child->extent) { /* contiguous items need no child */
        const int64_t offset = item->offset;
        mpiox_tree_free(item);
        code = mpiox_tree_list(n, at, prefix, 0, 0, NULL, false, out);
        return code == MPIOX_OK ? mpiox_tree_shift(*out, offset) : code;
    }
    return mpiox_tree_list(n, at, prefix, 0, child->extent, item, false, out);
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
    code = list_items(n, at, prefix, child, &tree);
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
    mpiox_tree **members = calloc((size_t)n + 1, sizeof *members);
    if (members == NULL) {
        return MPIOX_E_NOMEM;
    }
    for (int64_t i = 0; i < n && code == MPIOX_OK; i++) {
        if (counts[i] < 0 || !mpiox_fits(displacements[i]) ||
            (counts[i] > 0 && !place(&b, counts[i], children[i]->extent, displacements[i], children[i]))) {
            code = MPIOX_E_ARG;
        } else if (counts[i] > 0) {
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
