/*
 * mpiox_typemap_tree.c - normalising constructors of typemap trees: blocks, loops, lists; pieces of trees that are too
 * deep. They call each other, which is why they share a file. Structs: mpiox_typemap_struct.c.
 *
 * Problem.    Applications describe the same bytes in many ways (vector of contiguous, struct of vectors, subarray).
 *             The cursor is fast only where a regular access looks regular.
 * Algorithm.  Each constructor rewrites its result on the spot, bottom up. Touching blocks merge. A loop over a
 *             seamless child becomes that child with more copies. Structs flatten. Equal members at equal steps become
 *             a loop, structs of blocks become a list. Trees that are too deep are listed when they are small.
 * Guarantees. Stream order never changes. Every sum is checked. Rebuilding a normalised tree from its own parts yields
 *             it unchanged, which is how serialized input is validated.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_typemap_impl.h"

void mpiox_tree_free(mpiox_tree *tree)
{
    if (tree == NULL) {
        return;
    }
    mpiox_tree_free(tree->child);
    if (tree->members != NULL) {
        for (int64_t i = 0; i < tree->count; i++) {
            mpiox_tree_free(tree->members[i]);
        }
        free(tree->members);
    }
    if (!tree->borrows) {
        free(tree->displacements);
        free(tree->prefix);
    }
    free(tree);
}

mpiox_tree *mpiox_tree_new(int32_t kind)
{
    mpiox_tree *tree = calloc(1, sizeof *tree);
    if (tree != NULL) {
        tree->kind = kind;
        tree->depth = 1;
        tree->count = 1;
        tree->monotonic = true;
        tree->pieces = 1;
    }
    return tree;
}

int mpiox_tree_block(int64_t length, mpiox_tree **out)
{
    *out = NULL;
    if (length < 0 || !mpiox_fits(length)) {
        return MPIOX_E_ARG;
    }
    if (length == 0) {
        return MPIOX_OK;
    }
    mpiox_tree *tree = mpiox_tree_new(MPIOX_NODE_BLOCK);
    if (tree == NULL) {
        return MPIOX_E_NOMEM;
    }
    tree->size = tree->length = tree->hi = tree->granule = length;
    *out = tree;
    return MPIOX_OK;
}

int mpiox_tree_shift(mpiox_tree *tree, int64_t displacement)
{
    int64_t low, high;
    if (tree == NULL) {
        return MPIOX_OK;
    }
    if (!mpiox_add(tree->offset, displacement, &tree->offset) || !mpiox_add(tree->offset, tree->lo, &low) ||
        !mpiox_add(tree->offset, tree->hi, &high)) {
        return MPIOX_E_ARG;
    }
    return MPIOX_OK;
}

/* ---- too deep: list the pieces ----------------------------------------------------------------------------------- */

void mpiox_tree_list_pieces(const mpiox_tree *tree, int64_t base, mpiox_list_items *sink)
{
    if (tree->kind == MPIOX_NODE_BLOCK) {
        sink->displacements[sink->n] = base;
        sink->prefix[sink->n + 1] = sink->prefix[sink->n] + tree->length;
        sink->n++;
        return;
    }
    for (int64_t i = 0; i < tree->count; i++) {
        if (tree->kind == MPIOX_NODE_STRUCT) {
            mpiox_tree_list_pieces(tree->members[i], base + tree->members[i]->offset, sink);
            continue;
        }
        const bool loop = tree->kind == MPIOX_NODE_LOOP;
        int64_t at = base + (loop ? i * tree->stride : tree->displacements[i]);
        int64_t bytes = tree->prefix != NULL ? tree->prefix[i + 1] - tree->prefix[i] : tree->length;
        if (tree->child == NULL) {
            const mpiox_tree block = {.kind = MPIOX_NODE_BLOCK, .length = bytes};
            mpiox_tree_list_pieces(&block, at, sink);
            continue;
        }
        for (; bytes > 0; bytes -= tree->child->size, at += tree->stride) {
            mpiox_tree_list_pieces(tree->child, at, sink);
        }
    }
}

int mpiox_tree_flatten(mpiox_tree **tree)
{
    mpiox_tree *old = *tree;
    const int64_t offset = old->offset;
    if (old->pieces > MPIOX_TYPEMAP_MAX_FLATTEN) {
        return MPIOX_E_UNSUPPORTED;
    }
    mpiox_list_items sink = {0, malloc((size_t)old->pieces * sizeof(int64_t)),
                             malloc((size_t)(old->pieces + 1) * sizeof(int64_t))};
    if (sink.displacements == NULL || sink.prefix == NULL) {
        free(sink.displacements);
        free(sink.prefix);
        return MPIOX_E_NOMEM;
    }
    sink.prefix[0] = 0;
    mpiox_tree_list_pieces(old, offset, &sink);
    mpiox_tree_free(old);
    *tree = NULL;
    return mpiox_tree_list(&sink, 0, 0, NULL, false, tree);
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* Fill in what follows from count, stride, length and child. */
static int finish_loop(mpiox_tree *loop)
{
    const mpiox_tree *child = loop->child;
    const int64_t child_lo = child != NULL ? child->lo : 0;
    const int64_t child_hi = child != NULL ? child->hi : loop->length;
    int64_t last;
    if (!mpiox_mul(loop->count, loop->length, &loop->size) || !mpiox_mul(loop->count - 1, loop->stride, &last) ||
        !mpiox_add(child_lo, last < 0 ? last : 0, &loop->lo) || !mpiox_add(child_hi, last > 0 ? last : 0, &loop->hi)) {
        return MPIOX_E_ARG;
    }
    loop->depth = child != NULL ? 1 + child->depth : 1;
    loop->monotonic = (child == NULL || child->monotonic) && loop->stride >= child_hi - child_lo;
    loop->pieces = mpiox_saturating_mul(loop->count, child != NULL ? child->pieces : 1);
    loop->granule = mpiox_gcd(loop->stride, child != NULL ? child->granule : loop->length);
    return MPIOX_OK;
}

/* A loop whose copies continue the child seamlessly: true when the child was made longer instead. */
static bool extend_child(int64_t count, int64_t stride, mpiox_tree *child, int *code)
{
    int64_t span, total;
    if (child->kind == MPIOX_NODE_BLOCK && stride == child->length) {
        *code = mpiox_mul(child->length, count, &total) ? MPIOX_OK : MPIOX_E_ARG;
        if (*code == MPIOX_OK) {
            child->size = child->length = child->hi = child->granule = total;
        }
        return true;
    }
    if (child->kind == MPIOX_NODE_LOOP && mpiox_mul(child->count, child->stride, &span) && span == stride) {
        *code = mpiox_mul(child->count, count, &total) ? MPIOX_OK : MPIOX_E_ARG;
        if (*code == MPIOX_OK) {
            child->count = total;
            *code = finish_loop(child);
        }
        return true;
    }
    return false;
}

static int loop_over(int64_t count, int64_t stride, mpiox_tree *child, mpiox_tree **out)
{
    mpiox_tree *loop = mpiox_tree_new(MPIOX_NODE_LOOP);
    if (loop == NULL) {
        mpiox_tree_free(child);
        return MPIOX_E_NOMEM;
    }
    loop->count = count;
    loop->stride = stride;
    loop->length = child->size;
    loop->offset = child->offset;
    if (child->kind == MPIOX_NODE_BLOCK) {
        mpiox_tree_free(child);
    } else {
        loop->child = child;
        child->offset = 0;
    }
    int code = finish_loop(loop);
    if (code == MPIOX_OK) {
        code = mpiox_tree_shift(loop, 0);
    }
    if (code != MPIOX_OK) {
        mpiox_tree_free(loop);
        return code;
    }
    *out = loop;
    return MPIOX_OK;
}

int mpiox_tree_loop(int64_t count, int64_t stride, mpiox_tree *child, mpiox_tree **out)
{
    int code = MPIOX_OK;
    *out = NULL;
    if (count < 0 || !mpiox_fits(stride)) {
        mpiox_tree_free(child);
        return MPIOX_E_ARG;
    }
    if (child == NULL || count == 0) {
        mpiox_tree_free(child);
        return MPIOX_OK;
    }
    if (count > 1 && child->depth == MPIOX_TYPEMAP_MAX_DEPTH) {
        code = mpiox_tree_flatten(&child);
    }
    if (code == MPIOX_OK && count > 1 && !extend_child(count, stride, child, &code)) {
        return loop_over(count, stride, child, out);
    }
    if (code == MPIOX_OK) {
        code = mpiox_tree_shift(child, 0);
    }
    if (code != MPIOX_OK) {
        mpiox_tree_free(child);
        return code;
    }
    *out = child;
    return MPIOX_OK;
}

/* ---- lists, the irregular part of a typemap -----------------------------------------------------------------------
 *
 * Problem.    Indexed types come with millions of items, often irregular, often regular after all.
 * Algorithm.  One pass drops empty items and merges items that continue the one before. What is then evenly spaced and
 *             of one length becomes a loop; items of one length need no prefix sums (8 bytes an item, seek by
 *             division); everything else keeps displacement and prefix sum (16 bytes an item, seek by binary search).
 * Guarantees. Stream order is kept; arrays that are borrowed are only checked, never changed. */

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
        if (kept > 0 && item_continues(list, list->displacements[kept - 1], list->prefix[kept] - list->prefix[kept - 1],
                                       list->displacements[i])) {
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
    if (list->prefix != NULL
            ? list->prefix[0] != 0
            : list->length <= 0 || list->stride != 0 || (list->child != NULL && list->child->size != list->length)) {
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
        if (i > 0 &&
            item_continues(list, list->displacements[i - 1], item_bytes(list, i - 1), list->displacements[i])) {
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

int mpiox_tree_list(const mpiox_list_items *items, int64_t length, int64_t stride, mpiox_tree *child, bool borrows,
                    mpiox_tree **out)
{
    *out = NULL;
    mpiox_tree *list = calloc(1, sizeof *list);
    if (list == NULL) {
        mpiox_tree_free(child);
        if (!borrows) {
            free(items->displacements);
            free(items->prefix);
        }
        return MPIOX_E_NOMEM;
    }
    list->kind = MPIOX_NODE_LIST;
    list->count = items->n;
    list->displacements = items->displacements;
    list->prefix = items->prefix;
    list->length = items->prefix == NULL ? length : 0;
    list->stride = child != NULL ? stride : 0;
    list->child = child;
    list->borrows = borrows;
    if (child != NULL) { /* canonical children start at their origin */
        list->offset = child->offset;
        child->offset = 0;
    }
    return normalise(list, out);
}
