/*
 * mpiox_typemap_struct.c - normalising constructor of structs: members flatten, equal members at equal steps become a
 * loop, structs of blocks become a list. See mpiox_typemap_tree.c.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_typemap_impl.h"

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
        pieces = mpiox_saturating_add(pieces, member->pieces);
    }
    return pieces;
}

static int list_members(member_set *set, int64_t pieces, mpiox_tree **out)
{
    mpiox_list_items sink = {0, malloc((size_t)pieces * sizeof(int64_t)),
                             malloc((size_t)(pieces + 1) * sizeof(int64_t))};
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
        mpiox_tree_list_pieces(set->members[i], set->members[i]->offset, &sink);
    }
    return mpiox_tree_list(&sink, 0, 0, NULL, false, out);
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
        if (!mpiox_add(member->offset, -origin, &member->offset) || !mpiox_add(member->offset, member->lo, &low) ||
            !mpiox_add(member->offset, member->hi, &high) || !mpiox_add(tree->size, member->size, &tree->size)) {
            return MPIOX_E_ARG;
        }
        /* A monotonic predecessor ends at the highest byte so far. */
        tree->monotonic = tree->monotonic && member->monotonic && (i == 0 || low >= tree->hi);
        tree->lo = low < tree->lo ? low : tree->lo;
        tree->hi = high > tree->hi ? high : tree->hi;
        tree->depth = member->depth + 1 > tree->depth ? member->depth + 1 : tree->depth;
        tree->pieces = mpiox_saturating_add(tree->pieces, member->pieces);
        tree->granule = mpiox_gcd(tree->granule, mpiox_gcd(member->offset, member->granule));
    }
    return mpiox_tree_shift(tree, 0);
}

/* A struct node over the set's members, which it takes over. */
static int struct_over(member_set *set, mpiox_tree **out)
{
    mpiox_tree *tree = mpiox_tree_new(MPIOX_NODE_STRUCT);
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
