/*
 * mpiox_typemap_list.c - normalising constructor of lists, the irregular part of a description.
 *
 * Problem.    Indexed types come with millions of items, often irregular, often regular after all.
 * Algorithm.  One pass drops empty items and merges items that continue the one before. What is then evenly spaced and
 *             of one length becomes a loop; items of one length need no prefix sums (8 bytes an item, seek by
 *             division); everything else keeps displacement and prefix sum (16 bytes an item, seek by binary search).
 * Guarantees. Stream order is kept; arrays that are borrowed are only checked, never changed.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_typemap_impl.h"

static int64_t item_bytes(const mpiox_tree *list, int64_t i)
{
    return list->prefix != NULL ? list->prefix[i + 1] - list->prefix[i] : list->length;
}

/* Address just behind item i, as far as the next item could continue it. Children of one per item never merge. */
static bool item_continues(const mpiox_tree *list, int64_t displacement, int64_t bytes, int64_t next)
{
    int64_t end;
    if (list->child == NULL) {
        return mpiox_add(displacement, bytes, &end) && end == next;
    }
    return list->stride != 0 && mpiox_mul(bytes / list->child->size, list->stride, &end) &&
           mpiox_add(displacement, end, &end) && end == next;
}

/* Drop empty items and merge continuing ones, in place. */
static void compact_items(mpiox_tree *list)
{
    int64_t kept = 0, done = 0;
    for (int64_t i = 0; i < list->count; i++) {
        const int64_t bytes = list->prefix[i + 1] - done;
        done = list->prefix[i + 1];
        if (bytes == 0) {
            continue;
        }
        if (kept > 0 && item_continues(list, list->displacements[kept - 1],
                                       list->prefix[kept] - list->prefix[kept - 1], list->displacements[i])) {
            list->prefix[kept] += bytes;
            continue;
        }
        list->displacements[kept] = list->displacements[i];
        list->prefix[kept + 1] = list->prefix[kept] + bytes;
        kept++;
    }
    list->count = kept;
}

/* Borrowed arrays come from a serialized description: they must already be what compact_items() would leave. */
static bool items_are_canonical(const mpiox_tree *list)
{
    bool constant = true;
    if (list->prefix != NULL ? list->prefix[0] != 0
                             : list->length <= 0 || list->stride != 0 ||
                                   (list->child != NULL && list->child->size != list->length)) {
        return false;
    }
    for (int64_t i = 0; i < list->count; i++) {
        if (!mpiox_fits(list->displacements[i])) {
            return false;
        }
        if (list->prefix != NULL) {
            const int64_t start = list->prefix[i], end = list->prefix[i + 1];
            if (start < 0 || end <= start || !mpiox_fits(end) ||
                (list->child != NULL && (end - start) % list->child->size != 0)) {
                return false;
            }
            constant = constant && end - start == list->prefix[1];
        }
        if (i > 0 && item_continues(list, list->displacements[i - 1], item_bytes(list, i - 1),
                                    list->displacements[i])) {
            return false;
        }
    }
    return list->displacements[0] == 0 && list->count >= 2 && !(constant && list->prefix != NULL);
}

static bool items_have_one_length(const mpiox_tree *list)
{
    const int64_t bytes = item_bytes(list, 0);
    for (int64_t i = 1; list->prefix != NULL && i < list->count; i++) {
        if (item_bytes(list, i) != bytes) {
            return false;
        }
    }
    return true;
}

static bool items_are_evenly_spaced(const mpiox_tree *list, int64_t *stride)
{
    const int64_t *at = list->displacements;
    for (int64_t i = 1; i < list->count; i++) {
        if (__builtin_sub_overflow(at[i], at[i - 1], stride) || *stride != at[1] - at[0]) {
            return false;
        }
    }
    return mpiox_fits(*stride);
}

/* Lowest and highest data byte of an item relative to its displacement. */
static bool item_bounds(const mpiox_tree *list, int64_t bytes, int64_t *lo, int64_t *hi)
{
    if (list->child == NULL) {
        *lo = 0;
        *hi = bytes;
        return true;
    }
    int64_t last;
    return mpiox_mul(bytes / list->child->size - 1, list->stride, &last) &&
           mpiox_add(list->child->lo, last < 0 ? last : 0, lo) && mpiox_add(list->child->hi, last > 0 ? last : 0, hi);
}

/* Bounds, order, granule; make displacements relative to the first item. */
static int finish_list(mpiox_tree *list)
{
    const mpiox_tree *child = list->child;
    const int64_t origin = list->displacements[0];
    int64_t lo = 0, hi = 0, low, high, size = 0;
    list->lo = list->hi = list->granule = 0;
    list->monotonic = child == NULL || child->monotonic;
    if (!mpiox_add(list->offset, origin, &list->offset)) {
        return MPIOX_E_ARG;
    }
    for (int64_t i = 0; i < list->count; i++) {
        const int64_t bytes = item_bytes(list, i);
        const int64_t at = list->displacements[i] - origin;
        if (!mpiox_fits(at) || !item_bounds(list, bytes, &lo, &hi) || !mpiox_add(at, lo, &low) ||
            !mpiox_add(at, hi, &high) || !mpiox_add(size, bytes, &size)) {
            return MPIOX_E_ARG;
        }
        if (child != NULL && bytes > child->size && list->stride < child->hi - child->lo) {
            list->monotonic = false;
        }
        list->monotonic = list->monotonic && (i == 0 || low >= list->hi);
        list->lo = low < list->lo ? low : list->lo;
        list->hi = high > list->hi ? high : list->hi;
        list->granule = mpiox_gcd(mpiox_gcd(list->granule, at), child == NULL ? bytes : 0);
        if (origin != 0) {
            list->displacements[i] = at;
        }
    }
    list->size = size;
    list->depth = child != NULL ? 1 + child->depth : 1;
    list->pieces = list->count;
    if (child != NULL) {
        if (__builtin_mul_overflow(size / child->size, child->pieces, &list->pieces)) {
            list->pieces = INT64_MAX;
        }
        list->granule = mpiox_gcd(mpiox_gcd(list->granule, child->granule), list->stride);
    }
    return mpiox_tree_shift(list, 0);
}

/* Items of one length: one tile chain per item, so that the child needs no count of its own. */
static int make_constant(mpiox_tree *list, bool *done, mpiox_tree **out)
{
    const int64_t bytes = item_bytes(list, 0);
    mpiox_tree *item = list->child;
    int64_t stride = 0;
    int code = item != NULL ? mpiox_tree_loop(bytes / item->size, list->stride, item, &item)
                            : mpiox_tree_block(bytes, &item);
    list->child = NULL;
    if (code == MPIOX_OK && item != NULL) {
        code = mpiox_add(list->offset, item->offset, &list->offset) ? MPIOX_OK : MPIOX_E_ARG;
        item->offset = 0;
    }
    if (code != MPIOX_OK || items_are_evenly_spaced(list, &stride)) {
        const int64_t count = list->count;
        code = code == MPIOX_OK ? mpiox_tree_shift(item, list->offset) : code;
        code = code == MPIOX_OK ? mpiox_tree_shift(item, list->displacements[0]) : code;
        mpiox_tree_free(list);
        *done = true;
        if (code != MPIOX_OK) {
            mpiox_tree_free(item);
            return code;
        }
        return mpiox_tree_loop(count, stride, item, out);
    }
    if (item->kind == MPIOX_NODE_BLOCK) {
        mpiox_tree_free(item);
    } else {
        list->child = item;
    }
    if (!list->borrows) {
        free(list->prefix);
    }
    list->prefix = NULL;
    list->length = bytes;
    list->stride = 0;
    return MPIOX_OK;
}

/* Items that are one block each: the child is a block, and single or seamless in every item. */
static bool items_are_blocks(const mpiox_tree *list)
{
    if (list->child == NULL || list->child->kind != MPIOX_NODE_BLOCK) {
        return false;
    }
    for (int64_t i = 0; i < list->count && list->stride != list->child->size; i++) {
        const int64_t bytes = item_bytes(list, i);
        if (bytes != 0 && bytes != list->child->size) {
            return false;
        }
    }
    return true;
}

/* Everything after the list node exists and owns its parts. */
static int normalise(mpiox_tree *list, mpiox_tree **out)
{
    bool done = false;
    int code = MPIOX_OK;
    if (list->borrows) {
        code = items_are_canonical(list) && !items_are_blocks(list) ? MPIOX_OK : MPIOX_E_CORRUPT;
    } else {
        if (items_are_blocks(list)) {
            mpiox_tree_free(list->child);
            list->child = NULL;
            list->stride = 0;
        }
        compact_items(list);
    }
    if (code == MPIOX_OK && list->count == 0) {
        mpiox_tree_free(list);
        return MPIOX_OK;
    }
    /* One level for this list, one for tiles that make_constant() turns into a loop. */
    if (code == MPIOX_OK && !list->borrows && list->child != NULL &&
        list->child->depth >= MPIOX_TYPEMAP_MAX_DEPTH - 1) {
        code = mpiox_tree_flatten(&list->child);
    }
    if (code == MPIOX_OK && items_have_one_length(list)) {
        code = make_constant(list, &done, out);
        if (done) {
            return code;
        }
    }
    if (code == MPIOX_OK) {
        code = finish_list(list);
    }
    if (code != MPIOX_OK) {
        mpiox_tree_free(list);
        return code;
    }
    if (!list->borrows) { /* give back what compaction freed */
        int64_t *smaller = realloc(list->displacements, (size_t)list->count * sizeof(int64_t));
        list->displacements = smaller != NULL ? smaller : list->displacements;
    }
    *out = list;
    return MPIOX_OK;
}

int mpiox_tree_list(int64_t n, int64_t *displacements, int64_t *prefix, int64_t length, int64_t stride,
                    mpiox_tree *child, bool borrows, mpiox_tree **out)
{
    *out = NULL;
    mpiox_tree *list = calloc(1, sizeof *list);
    if (list == NULL) {
        mpiox_tree_free(child);
        if (!borrows) {
            free(displacements);
            free(prefix);
        }
        return MPIOX_E_NOMEM;
    }
    list->kind = MPIOX_NODE_LIST;
    list->count = n;
    list->displacements = displacements;
    list->prefix = prefix;
    list->length = prefix == NULL ? length : 0;
    list->stride = child != NULL ? stride : 0;
    list->child = child;
    list->borrows = borrows;
    if (child != NULL) { /* canonical children start at their origin */
        list->offset = child->offset;
        child->offset = 0;
    }
    return normalise(list, out);
}
