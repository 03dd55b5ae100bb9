/*
 * random_trees.h - random descriptions and, built side by side in the slowest obvious way, what they must mean.
 *
 * The choices come from a byte string: a fuzzer's input or a pseudo-random one. The reference of a description is its
 * plain list of (offset, length) pieces in stream order with lower bound and extent, from which every operation can be
 * answered byte by byte.
 */
#ifndef RANDOM_TREES_H
#define RANDOM_TREES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_typemap.h"

#define MAX_PIECES 600
#define MAX_CHILDREN 5

static uint64_t case_seed; /* of the case at work, for the message; 0 under libFuzzer */

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: case seed %llu: %s does not hold\n", __FILE__, __LINE__,                           \
                    (unsigned long long)case_seed, #condition);                                                        \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef struct choices {
    const uint8_t *data;
    size_t left;
} choices;

static inline int64_t choose(choices *c, int64_t low, int64_t high)
{
    if (c->left == 0) {
        return low;
    }
    c->left--;
    return low + *c->data++ % (high - low + 1);
}

typedef struct piece {
    int64_t offset;
    int64_t length;
} piece;

typedef struct reference {
    int64_t n;
    int64_t size;
    int64_t lb;
    int64_t ub;
    bool bounded; /* lb and ub are set */
    piece piece[MAX_PIECES];
} reference;

/* Append `count` tiles of child, `stride` apart, the first displaced; false when there are too many pieces. */
static inline bool reference_place(reference *r, const reference *child, int64_t count, int64_t stride,
                                   int64_t displacement)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = displacement + i * stride;
        if (r->n + child->n > MAX_PIECES) {
            return false;
        }
        for (int64_t k = 0; k < child->n; k++) {
            r->piece[r->n++] = (piece){child->piece[k].offset + at, child->piece[k].length};
        }
        r->size += child->size;
        r->lb = !r->bounded || child->lb + at < r->lb ? child->lb + at : r->lb;
        r->ub = !r->bounded || child->ub + at > r->ub ? child->ub + at : r->ub;
        r->bounded = true;
    }
    return true;
}

/* Both sides of one random description. */
typedef struct pair {
    mpiox_typemap *typemap;
    reference reference;
} pair;

static inline void pair_free(pair *p)
{
    if (p != NULL) {
        mpiox_typemap_free(p->typemap);
        free(p);
    }
}

static inline pair *random_pair(choices *c, int depth);

static inline pair *random_block(choices *c)
{
    pair *p = calloc(1, sizeof *p);
    static const int64_t lengths[] = {4, 8, 1, 2, 3, 16, 32, 64, 12, 24, 70, 0};
    const int64_t length = lengths[choose(c, 0, 11)];
    REQUIRE(p != NULL && mpiox_typemap_block(length, &p->typemap) == MPIOX_OK);
    p->reference.bounded = true;
    p->reference.ub = p->reference.size = length;
    if (length > 0) {
        p->reference.n = 1;
        p->reference.piece[0] = (piece){0, length};
    }
    return p;
}

static inline int64_t random_stride(choices *c, const reference *child)
{
    const int64_t extent = child->ub - child->lb;
    switch (choose(c, 0, 5)) {
    case 0:
        return extent;
    case 1:
        return extent + 4 * choose(c, 0, 8);
    case 2:
        return 2 * extent;
    case 3:
        return 16 * choose(c, 0, 20) + extent;
    case 4:
        return 4 * choose(c, 0, 10);
    default:
        return -4 * choose(c, 0, 40);
    }
}

static inline bool random_vector(choices *c, pair *p, const pair *child)
{
    const int64_t count = choose(c, 0, 6);
    const int64_t stride = random_stride(c, &child->reference);
    REQUIRE(mpiox_typemap_vector(count, stride, child->typemap, &p->typemap) == MPIOX_OK);
    return reference_place(&p->reference, &child->reference, count, stride, 0);
}

static inline bool random_resized(choices *c, pair *p, const pair *child)
{
    const int64_t lb = choose(c, 0, 3) == 0 ? 4 * choose(c, 0, 10) - 20 : child->reference.lb;
    const int64_t extent = choose(c, 0, 3) == 0 ? 4 * choose(c, 0, 30) : random_stride(c, &child->reference);
    REQUIRE(mpiox_typemap_resized(lb, extent, child->typemap, &p->typemap) == MPIOX_OK);
    p->reference = child->reference;
    p->reference.lb = lb;
    p->reference.ub = lb + extent;
    return true;
}

/* Displacements that are often regular, often ascending. */
static inline void random_items(choices *c, int64_t n, int64_t *counts, int64_t *at, const reference *child)
{
    const int64_t style = choose(c, 0, 4), step = random_stride(c, child), one = choose(c, 0, 3);
    int64_t end = 4 * choose(c, 0, 8) - 8;
    for (int64_t i = 0; i < n; i++) {
        counts[i] = style == 0 ? one : choose(c, 0, 3);
        at[i] = end;
        if (style < 2) {
            end += step;
        } else if (style == 2) {
            end += counts[i] * (child->ub - child->lb) + 4 * choose(c, 0, 3);
        } else if (style == 3) { /* often touching, in spite of the child's extent */
            counts[i] = choose(c, 0, 5) > 0;
            end += counts[i] * child->size + 4 * (choose(c, 0, 3) == 0);
        } else {
            end = 4 * choose(c, 0, 60) - 80;
        }
    }
}

static inline bool random_indexed(choices *c, pair *p, const pair *child)
{
    int64_t counts[12], at[12];
    const int64_t n = choose(c, 0, 12);
    random_items(c, n, counts, at, &child->reference);
    REQUIRE(mpiox_typemap_indexed(n, counts, at, child->typemap, &p->typemap) == MPIOX_OK);
    for (int64_t i = 0; i < n; i++) {
        const int64_t extent = child->reference.ub - child->reference.lb;
        if (!reference_place(&p->reference, &child->reference, counts[i], extent, at[i])) {
            return false;
        }
    }
    return true;
}

static inline bool random_struct(choices *c, pair *p, const pair *first, int depth)
{
    int64_t counts[MAX_CHILDREN], at[MAX_CHILDREN];
    const mpiox_typemap *children[MAX_CHILDREN];
    pair *others[MAX_CHILDREN] = {NULL};
    const int64_t n = choose(c, 1, MAX_CHILDREN);
    const bool same = choose(c, 0, 1) == 1;
    bool fits = true;
    random_items(c, n, counts, at, &first->reference);
    for (int64_t i = 0; i < n; i++) {
        others[i] = i == 0 || same ? NULL : random_pair(c, depth - 1);
        const pair *child = others[i] != NULL ? others[i] : first;
        children[i] = child->typemap;
        fits = fits && reference_place(&p->reference, &child->reference, counts[i],
                                       child->reference.ub - child->reference.lb, at[i]);
    }
    REQUIRE(mpiox_typemap_struct(n, counts, at, children, &p->typemap) == MPIOX_OK);
    for (int64_t i = 0; i < n; i++) {
        pair_free(others[i]);
    }
    return fits;
}

/* A random description of at most `depth` constructors; one that gets too large is replaced by its child. */
static inline pair *random_pair(choices *c, int depth)
{
    const int64_t kind = depth > 0 ? choose(c, 0, 6) : 0;
    if (kind == 0) {
        return random_block(c);
    }
    pair *child = random_pair(c, depth - 1);
    pair *p = calloc(1, sizeof *p);
    REQUIRE(p != NULL);
    const bool fits = kind <= 2   ? random_vector(c, p, child)
                      : kind == 3 ? random_resized(c, p, child)
                      : kind == 4 ? random_struct(c, p, child, depth)
                                  : random_indexed(c, p, child);
    pair_free(fits ? child : p);
    return fits ? p : child;
}

/* ---- what the reference answers ---------------------------------------------------------------------------------- */

static inline int64_t reference_extent(const reference *r)
{
    return r->ub - r->lb;
}

static inline int64_t reference_offset(const reference *r, int64_t position)
{
    int64_t rest = position % r->size, i = 0;
    while (rest >= r->piece[i].length) {
        rest -= r->piece[i++].length;
    }
    return position / r->size * reference_extent(r) + r->piece[i].offset + rest;
}

static inline bool reference_is_monotonic(const reference *r)
{
    for (int64_t i = 0; i + 1 < r->n; i++) {
        if (r->piece[i].offset + r->piece[i].length > r->piece[i + 1].offset) {
            return false;
        }
    }
    return r->n == 0 ||
           r->piece[r->n - 1].offset + r->piece[r->n - 1].length <= r->piece[0].offset + reference_extent(r);
}

#endif
