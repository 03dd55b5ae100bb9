/*
 * mpiox_typemap_items.c - long lists of contiguous items, in one pass and one piece of memory.
 *
 * Problem.    A climate model flushes hundreds of variables as one indexed type of a million pieces, a new type each
 *             time. Passing it from array to array takes longer than moving its data: new memory costs more than the
 *             computation.
 * Algorithm.  The caller writes displacements and lengths into the memory that the description will occupy, where MPI
 *             can write them itself. Displacements are at their final place. Lengths (of half the size) are at the end
 *             of the place for prefix sums, which grow over them from the front. One pass drops empty items, merges
 *             items that continue the one before, sums up, and finds bounds, order and granule. Lists that turn out to
 *             be one block, or evenly spaced, become that.
 * Guarantees. The result is bit by bit that of the general constructors (mpiox_typemap_tree.c), by which descriptions
 *             from elsewhere are checked. Every sum is checked.
 */
#include "mpiox_typemap_items.h"

#include <stdlib.h>
#include <string.h>

#include "mpiox_typemap_impl.h"

/* The results of the pass for the items that it keeps. Displacements are relative to the first one. */
typedef struct survey {
    int64_t kept;
    int64_t origin;
    int64_t end; /* of the last item, relative */
    int64_t lo, hi;
    int64_t granule;
    int64_t stride; /* from the first to the second */
    bool monotonic, even, one_length;
} survey;

int mpiox_items_room(int64_t n, mpiox_items *items)
{
    *items = (mpiox_items){.n = n};
    if (n < 0 || n >= MPIOX_TYPEMAP_LIMIT / 64) {
        return MPIOX_E_ARG;
    }
    const size_t head = sizeof(mpiox_typemap) + sizeof(mpiox_node), words = 2 * (size_t)n + 3;
    items->room = malloc(head + words * sizeof(int64_t));
    if (items->room == NULL) {
        return MPIOX_E_NOMEM;
    }
    items->displacements = (int64_t *)(void *)((char *)items->room + head);
    /* One word behind the prefix sums, so that the sum of an item never reaches the length of the next one. */
    items->lengths = (int *)(items->displacements + words) - (n + 1);
    return MPIOX_OK;
}

void mpiox_items_free(mpiox_items *items)
{
    free(items->room);
    items->room = NULL;
}

/* A block of the size of its extent; nothing that an item without data could be made of. */
bool mpiox_items_fit(const mpiox_typemap *child)
{
    return mpiox_typemap_is_contiguous(child) && child->node_count == 1 && child->size == child->extent;
}

static inline int64_t length_of(const mpiox_item_lengths *lengths, int64_t i)
{
    return lengths->narrow != NULL ? lengths->narrow[i] : lengths->wide != NULL ? lengths->wide[i] : lengths->all;
}

/* The item that was kept last is complete: nothing continues it. */
static inline void close_item(survey *s, const int64_t *at, const int64_t *prefix)
{
    const int64_t last = s->kept - 1, bytes = prefix[s->kept] - prefix[last];
    s->granule = mpiox_gcd(mpiox_gcd(s->granule, at[last]), bytes);
    s->one_length = s->one_length && bytes == prefix[1];
    if (last > 0) {
        const int64_t step = at[last] - at[last - 1];
        s->stride = last == 1 ? step : s->stride;
        s->even = s->even && step == s->stride;
    }
}

static inline bool add_item(survey *s, int64_t *at, int64_t *prefix, int64_t displacement, int64_t bytes)
{
    int64_t relative, end, sum;
    s->origin = s->kept == 0 ? displacement : s->origin;
    if (!mpiox_fits(displacement) || !mpiox_add(displacement, -s->origin, &relative) ||
        !mpiox_add(relative, bytes, &end) || !mpiox_add(prefix[s->kept], bytes, &sum)) {
        return false;
    }
    if (s->kept > 0 && relative == s->end) {
        prefix[s->kept] = sum;
    } else {
        if (s->kept > 0) {
            close_item(s, at, prefix);
        }
        s->monotonic = s->monotonic && relative >= s->hi;
        at[s->kept] = relative;
        prefix[++s->kept] = sum;
    }
    s->lo = relative < s->lo ? relative : s->lo;
    s->hi = end > s->hi ? end : s->hi;
    s->end = end;
    return true;
}

/* The pass. Writing prefix[kept] never overtakes the lengths that are still to be read. */
static int survey_items(const mpiox_items *items, const mpiox_item_lengths *lengths, int64_t unit, survey *s)
{
    int64_t *at = items->displacements, *prefix = at + items->n;
    *s = (survey){.monotonic = true, .even = true, .one_length = true};
    prefix[0] = 0;
    for (int64_t i = 0; i < items->n; i++) {
        const int64_t length = length_of(lengths, i), displacement = at[i];
        int64_t bytes;
        if (length < 0 || !mpiox_mul(length, unit, &bytes) || !mpiox_fits(displacement)) {
            return MPIOX_E_ARG;
        }
        if (bytes > 0 && !add_item(s, at, prefix, displacement, bytes)) {
            return MPIOX_E_ARG;
        }
    }
    if (s->kept > 0) {
        close_item(s, at, prefix);
    }
    return MPIOX_OK;
}

/* A block, or a loop of blocks. */
static int describe_regular(const survey *s, int64_t bytes, int64_t first, int64_t lb, int64_t extent,
                            mpiox_typemap **out)
{
    mpiox_tree *tree = NULL;
    int code = mpiox_tree_block(bytes, &tree);
    if (code == MPIOX_OK) {
        code = mpiox_tree_loop(s->kept, s->stride, tree, &tree);
    }
    if (code == MPIOX_OK) {
        code = mpiox_tree_shift(tree, first);
    }
    if (code == MPIOX_OK) {
        code = mpiox_tree_export(tree, lb, extent, out);
    }
    mpiox_tree_free(tree);
    return code;
}

/* The list, in the room. */
static int describe_list(mpiox_items *items, const survey *s, int64_t first, int64_t lb, int64_t extent,
                         mpiox_typemap **out)
{
    int64_t *at = items->displacements, *prefix = at + items->n;
    mpiox_typemap *typemap = items->room;
    mpiox_tree tree = {.kind = MPIOX_NODE_LIST,
                       .depth = 1,
                       .monotonic = s->monotonic,
                       .offset = first,
                       .size = prefix[s->kept],
                       .count = s->kept,
                       .length = s->one_length ? prefix[1] : 0,
                       .lo = s->lo,
                       .hi = s->hi,
                       .pieces = s->kept,
                       .granule = s->granule};
    const int64_t words = s->one_length ? s->kept : 2 * s->kept + 1;
    const size_t bytes = sizeof *typemap + sizeof(mpiox_node) + (size_t)words * sizeof(int64_t);
    if (!mpiox_fits(lb) || !mpiox_fits(extent) || !mpiox_fits(lb + extent) || mpiox_tree_shift(&tree, 0) != MPIOX_OK) {
        return MPIOX_E_ARG;
    }
    if (!s->one_length && s->kept < items->n) {
        memmove(at + s->kept, prefix, (size_t)(s->kept + 1) * sizeof *prefix);
    }
    mpiox_typemap *smaller = realloc(typemap, bytes);
    typemap = smaller != NULL ? smaller : typemap;
    items->room = NULL;
    mpiox_tree_settle(&tree, (int64_t)bytes, lb, extent, typemap);
    *out = typemap;
    return MPIOX_OK;
}

static int describe_kept(mpiox_items *items, const survey *s, int64_t first, int64_t lb, int64_t extent,
                         mpiox_typemap **out)
{
    if (s->kept == 0) {
        return mpiox_tree_export(NULL, lb, extent, out);
    }
    if (s->kept == 1 || (s->one_length && s->even && mpiox_fits(s->stride))) {
        return describe_regular(s, items->displacements[items->n + 1], first, lb, extent, out);
    }
    return describe_list(items, s, first, lb, extent, out);
}

int mpiox_items_describe(mpiox_items *items, mpiox_item_lengths lengths, const mpiox_typemap *child,
                         mpiox_typemap **out)
{
    int64_t first = 0, lb = 0, extent = 0;
    survey s;
    *out = NULL;
    int code = survey_items(items, &lengths, child->size, &s);
    if (code == MPIOX_OK && s.kept > 0 &&
        (!mpiox_add(s.origin, child->first, &first) || !mpiox_add(s.origin, s.lo, &lb) ||
         !mpiox_add(lb, child->lb, &lb) || !mpiox_add(s.hi, -s.lo, &extent))) {
        code = MPIOX_E_ARG;
    }
    if (code == MPIOX_OK) {
        code = describe_kept(items, &s, first, lb, extent, out);
    }
    mpiox_items_free(items);
    return code;
}

int mpiox_items_describe_bytes(mpiox_items *items, mpiox_item_lengths lengths, int64_t lb, int64_t extent,
                               mpiox_typemap **out)
{
    survey s;
    *out = NULL;
    int code = survey_items(items, &lengths, 1, &s);
    if (code == MPIOX_OK) {
        code = describe_kept(items, &s, s.origin, lb, extent, out);
    }
    mpiox_items_free(items);
    return code;
}
