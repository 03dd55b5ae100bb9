/*
 * mpiox_typemap_tree.c - normalising constructors of typemap trees: blocks, loops, structs.
 *
 * Problem.    Applications describe the same bytes in many ways (vector of contiguous, struct of vectors, subarray).
 *             The cursor is fast only where a regular access looks regular.
 * Algorithm.  Each constructor rewrites its result on the spot, bottom up: touching blocks merge, a loop over a
 *             seamless child becomes that child with more copies, structs flatten, equal members at equal steps become
 *             a loop, structs of blocks become a list. Trees that are too deep are listed when they are small.
 * Guarantees. Stream order never changes. Every sum is checked. Rebuilding a normalised tree from its own parts yields
 *             it unchanged, which is how serialized input is validated.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_typemap_impl.h"

static int64_t saturating_mul(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t saturating_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

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

static mpiox_tree *tree_new(int32_t kind)
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
    mpiox_tree *tree = tree_new(MPIOX_NODE_BLOCK);
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

static bool arrays_equal(const int64_t *a, const int64_t *b, int64_t n)
{
    return (a == NULL) == (b == NULL) && (a == NULL || memcmp(a, b, (size_t)n * sizeof *a) == 0);
}

static bool tree_equal(const mpiox_tree *a, const mpiox_tree *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    if (a->kind != b->kind || a->size != b->size || a->count != b->count || a->stride != b->stride ||
        a->length != b->length || a->lo != b->lo || a->hi != b->hi || !tree_equal(a->child, b->child)) {
        return false;
    }
    if (a->kind == MPIOX_NODE_LIST) {
        return arrays_equal(a->displacements, b->displacements, a->count) &&
               arrays_equal(a->prefix, b->prefix, a->count + 1);
    }
    if (a->kind == MPIOX_NODE_STRUCT) {
        for (int64_t i = 0; i < a->count; i++) {
            if (a->members[i]->offset != b->members[i]->offset || !tree_equal(a->members[i], b->members[i])) {
                return false;
            }
        }
    }
    return true;
}

/* ---- too deep: list the pieces ----------------------------------------------------------------------------------- */

typedef struct piece_sink {
    int64_t n;
    int64_t *displacements;
    int64_t *prefix;
} piece_sink;

static void list_pieces(const mpiox_tree *tree, int64_t base, piece_sink *sink)
{
    if (tree->kind == MPIOX_NODE_BLOCK) {
        sink->displacements[sink->n] = base;
        sink->prefix[sink->n + 1] = sink->prefix[sink->n] + tree->length;
        sink->n++;
        return;
    }
    for (int64_t i = 0; i < tree->count; i++) {
        if (tree->kind == MPIOX_NODE_STRUCT) {
            list_pieces(tree->members[i], base + tree->members[i]->offset, sink);
            continue;
        }
        const bool loop = tree->kind == MPIOX_NODE_LOOP;
        int64_t at = base + (loop ? i * tree->stride : tree->displacements[i]);
        int64_t bytes = tree->prefix != NULL ? tree->prefix[i + 1] - tree->prefix[i] : tree->length;
        if (tree->child == NULL) {
            const mpiox_tree block = {.kind = MPIOX_NODE_BLOCK, .length = bytes};
            list_pieces(&block, at, sink);
            continue;
        }
        for (; bytes > 0; bytes -= tree->child->size, at += tree->stride) {
            list_pieces(tree->child, at, sink);
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
    piece_sink sink = {0, malloc((size_t)old->pieces * sizeof(int64_t)),
                       malloc((size_t)(old->pieces + 1) * sizeof(int64_t))};
    if (sink.displacements == NULL || sink.prefix == NULL) {
        free(sink.displacements);
        free(sink.prefix);
        return MPIOX_E_NOMEM;
    }
    sink.prefix[0] = 0;
    list_pieces(old, offset, &sink);
    mpiox_tree_free(old);
    *tree = NULL;
    return mpiox_tree_list(sink.n, sink.displacements, sink.prefix, 0, 0, NULL, false, tree);
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
    loop->pieces = saturating_mul(loop->count, child != NULL ? child->pieces : 1);
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
    mpiox_tree *loop = tree_new(MPIOX_NODE_LOOP);
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

/* ---- structs ----------------------------------------------------------------------------------------------------- */

typedef struct member_set {
    int64_t n;
    int64_t capacity;
    mpiox_tree **members;
} member_set;

/* Append a member (taken over); a block that touches the block before it is merged into that. */
static int push_member(member_set *set, mpiox_tree *member)
{
    mpiox_tree *last = set->n > 0 ? set->members[set->n - 1] : NULL;
    if (last != NULL && last->kind == MPIOX_NODE_BLOCK && member->kind == MPIOX_NODE_BLOCK &&
        last->offset + last->length == member->offset) {
        last->size = last->length = last->hi = last->granule = last->length + member->length;
        mpiox_tree_free(member);
        return mpiox_tree_shift(last, 0);
    }
    if (set->n == set->capacity) {
        const int64_t capacity = 2 * set->capacity + 8;
        mpiox_tree **grown = realloc(set->members, (size_t)capacity * sizeof(mpiox_tree *));
        if (grown == NULL) {
            mpiox_tree_free(member);
            return MPIOX_E_NOMEM;
        }
        set->members = grown;
        set->capacity = capacity;
    }
    set->members[set->n++] = member;
    return MPIOX_OK;
}

/* Append a subtree (taken over), a struct as its members, one that is too deep as a list. */
static int push_subtree(member_set *set, mpiox_tree *tree)
{
    int code = MPIOX_OK;
    if (tree->kind != MPIOX_NODE_STRUCT) {
        if (tree->depth == MPIOX_TYPEMAP_MAX_DEPTH && (code = mpiox_tree_flatten(&tree)) != MPIOX_OK) {
            mpiox_tree_free(tree);
            return code;
        }
        return push_member(set, tree);
    }
    for (int64_t i = 0; i < tree->count; i++) {
        mpiox_tree *member = tree->members[i];
        tree->members[i] = NULL;
        if (code == MPIOX_OK) {
            code = mpiox_tree_shift(member, tree->offset);
            if (code == MPIOX_OK) {
                code = push_member(set, member);
                continue;
            }
        }
        mpiox_tree_free(member);
    }
    mpiox_tree_free(tree);
    return code;
}

static void free_set(member_set *set)
{
    for (int64_t i = 0; i < set->n; i++) {
        mpiox_tree_free(set->members[i]);
    }
    free(set->members);
    *set = (member_set){0, 0, NULL};
}

/* Number of pieces when all members are blocks or lists of blocks, otherwise 0. */
static int64_t listable_pieces(const member_set *set)
{
    int64_t pieces = 0;
    for (int64_t i = 0; i < set->n; i++) {
        const mpiox_tree *member = set->members[i];
        if (member->kind != MPIOX_NODE_BLOCK && (member->kind != MPIOX_NODE_LIST || member->child != NULL)) {
            return 0;
        }
        pieces = saturating_add(pieces, member->pieces);
    }
    return pieces;
}

static int list_members(member_set *set, int64_t pieces, mpiox_tree **out)
{
    piece_sink sink = {0, malloc((size_t)pieces * sizeof(int64_t)), malloc((size_t)(pieces + 1) * sizeof(int64_t))};
    if (sink.displacements == NULL || sink.prefix == NULL) {
        free(sink.displacements);
        free(sink.prefix);
        return MPIOX_E_NOMEM;
    }
    sink.prefix[0] = 0;
    for (int64_t i = 0; i < set->n; i++) {
        if (!mpiox_fits(sink.prefix[sink.n] + set->members[i]->size)) {
            free(sink.displacements);
            free(sink.prefix);
            return MPIOX_E_ARG;
        }
        list_pieces(set->members[i], set->members[i]->offset, &sink);
    }
    return mpiox_tree_list(sink.n, sink.displacements, sink.prefix, 0, 0, NULL, false, out);
}

/* The step between members when all are equal and equally spaced. */
static bool members_repeat(const member_set *set, int64_t *stride)
{
    *stride = set->members[1]->offset - set->members[0]->offset;
    for (int64_t i = 1; i < set->n; i++) {
        if (set->members[i]->offset - set->members[i - 1]->offset != *stride ||
            !tree_equal(set->members[i], set->members[0])) {
            return false;
        }
    }
    return mpiox_fits(*stride);
}

static int finish_struct(mpiox_tree *tree)
{
    mpiox_tree **members = tree->members;
    const int64_t origin = members[0]->offset;
    int64_t low, high;
    tree->offset = origin;
    tree->pieces = 0;
    tree->lo = tree->size = 0;
    for (int64_t i = 0; i < tree->count; i++) {
        mpiox_tree *member = members[i];
        if (!mpiox_add(member->offset, -origin, &member->offset) ||
            !mpiox_add(member->offset, member->lo, &low) || !mpiox_add(member->offset, member->hi, &high) ||
            !mpiox_add(tree->size, member->size, &tree->size)) {
            return MPIOX_E_ARG;
        }
        /* A monotonic predecessor ends at the highest byte so far. */
        tree->monotonic = tree->monotonic && member->monotonic && (i == 0 || low >= tree->hi);
        tree->lo = low < tree->lo ? low : tree->lo;
        tree->hi = high > tree->hi ? high : tree->hi;
        tree->depth = member->depth + 1 > tree->depth ? member->depth + 1 : tree->depth;
        tree->pieces = saturating_add(tree->pieces, member->pieces);
        tree->granule = mpiox_gcd(tree->granule, mpiox_gcd(member->offset, member->granule));
    }
    return mpiox_tree_shift(tree, 0);
}

/* A struct node over the set's members, which it takes over. */
static int struct_over(member_set *set, mpiox_tree **out)
{
    mpiox_tree *tree = tree_new(MPIOX_NODE_STRUCT);
    if (tree == NULL) {
        return MPIOX_E_NOMEM;
    }
    tree->count = set->n;
    tree->members = set->members;
    *set = (member_set){0, 0, NULL};
    const int code = finish_struct(tree);
    if (code != MPIOX_OK) {
        mpiox_tree_free(tree);
        return code;
    }
    *out = tree;
    return MPIOX_OK;
}

static int build_struct(member_set *set, mpiox_tree **out)
{
    int64_t stride;
    const int64_t pieces = listable_pieces(set);
    if (set->n == 0) {
        return MPIOX_OK;
    }
    if (set->n == 1) {
        *out = set->members[0];
        set->n = 0;
        return MPIOX_OK;
    }
    if (pieces > 0) {
        return list_members(set, pieces, out);
    }
    if (members_repeat(set, &stride)) {
        mpiox_tree *first = set->members[0];
        const int64_t count = set->n;
        set->members[0] = NULL;
        return mpiox_tree_loop(count, stride, first, out);
    }
    return struct_over(set, out);
}

int mpiox_tree_struct(int64_t n, mpiox_tree **members, mpiox_tree **out)
{
    member_set set = {0, 0, NULL};
    int code = MPIOX_OK;
    *out = NULL;
    for (int64_t i = 0; i < n; i++) {
        mpiox_tree *member = members[i];
        members[i] = NULL;
        if (code != MPIOX_OK) {
            mpiox_tree_free(member);
        } else if (member != NULL) {
            code = push_subtree(&set, member);
        }
    }
    if (code == MPIOX_OK) {
        code = build_struct(&set, out);
    }
    free_set(&set);
    return code;
}
