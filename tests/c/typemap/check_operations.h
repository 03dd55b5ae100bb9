/*
 * check_operations.h - every operation on a random description against its reference.
 */
#ifndef CHECK_OPERATIONS_H
#define CHECK_OPERATIONS_H

#include "mpiox_copy.h"
#include "mpiox_typemap_edges.h"
#include "random_trees.h"

#define TILES 3 /* stream length looked at, in tiles */

static inline void check_summary(const pair *p)
{
    const reference *r = &p->reference;
    const mpiox_typemap *a = p->typemap;
    int64_t lo = r->n > 0 ? r->piece[0].offset : 0, hi = lo;
    const int64_t granule = mpiox_typemap_granule(a);
    REQUIRE(mpiox_typemap_size(a) == r->size);
    REQUIRE(mpiox_typemap_lb(a) == r->lb && mpiox_typemap_extent(a) == reference_extent(r));
    REQUIRE(mpiox_typemap_is_monotonic(a) == reference_is_monotonic(r));
    REQUIRE(mpiox_typemap_depth(a) <= MPIOX_TYPEMAP_MAX_DEPTH && mpiox_typemap_pieces(a) <= r->n);
    REQUIRE((granule == 0) == (r->size == 0));
    for (int64_t i = 0; i < r->n; i++) {
        const int64_t end = r->piece[i].offset + r->piece[i].length;
        lo = r->piece[i].offset < lo ? r->piece[i].offset : lo;
        hi = end > hi ? end : hi;
    }
    REQUIRE(mpiox_typemap_true_lb(a) == lo && mpiox_typemap_true_ub(a) == hi);
    bool contiguous = r->size > 0 && reference_extent(r) == r->size;
    for (int64_t k = 0; k < r->size; k++) {
        contiguous = contiguous && reference_offset(r, k) == reference_offset(r, 0) + k;
    }
    REQUIRE(!mpiox_typemap_is_contiguous(a) || contiguous);
    /* Blocks that touch inside a loop or list are recognised; this is what "fully contiguous" rests on. */
    REQUIRE(mpiox_typemap_is_contiguous(a) || !contiguous || mpiox_typemap_pieces(a) > 1);
}

static inline void check_seeks(const pair *p, choices *c)
{
    const reference *r = &p->reference;
    for (int64_t k = 0; k < 24 && r->size > 0; k++) {
        const int64_t position = choose(c, 0, 250) * choose(c, 1, 7) % (TILES * r->size);
        const int64_t offset = reference_offset(r, position);
        REQUIRE(mpiox_typemap_offset(p->typemap, position) == offset);
        if (mpiox_typemap_is_monotonic(p->typemap)) {
            const int64_t probe = offset + choose(c, 0, 20) - 10;
            int64_t below = 0;
            while (reference_offset(r, below) < probe) {
                below++;
            }
            REQUIRE(mpiox_typemap_position(p->typemap, offset) == position);
            REQUIRE(mpiox_typemap_position(p->typemap, probe) == below);
        }
    }
}

static inline void check_cursor(const pair *p, choices *c)
{
    const reference *r = &p->reference;
    mpiox_cursor cursor;
    mpiox_run run;
    if (r->size == 0) {
        return;
    }
    const int64_t origin = choose(c, 0, 100) - 50, granule = mpiox_typemap_granule(p->typemap);
    int64_t position = choose(c, 0, 250) % r->size;
    mpiox_cursor_init(&cursor, p->typemap, origin, position);
    while (position < TILES * r->size) {
        const int64_t limit = choose(c, 0, 1) == 0 ? TILES * r->size : choose(c, 1, 40);
        const int64_t start = position, bytes = mpiox_cursor_next(&cursor, limit, &run);
        REQUIRE(bytes > 0 && bytes <= limit && bytes == run.length * run.count);
        REQUIRE(cursor.position == position + bytes && (run.count > 1 || run.stride == 0));
        for (int64_t i = 0; i < run.count; i++) {
            for (int64_t k = 0; k < run.length; k++, position++) {
                REQUIRE(run.offset + i * run.stride + k == origin + reference_offset(r, position));
            }
        }
        if (run.count > 1) { /* whole blocks: the granule divides all of it */
            REQUIRE(run.length % granule == 0 && (run.offset - origin) % granule == 0 && run.stride % granule == 0);
        }
        REQUIRE(start < position);
    }
}

static inline void check_blob(const pair *p)
{
    const int64_t bytes = mpiox_typemap_blob_bytes(p->typemap);
    void *blob = malloc((size_t)bytes);
    mpiox_typemap *copy = NULL;
    REQUIRE(blob != NULL && mpiox_typemap_to_blob(p->typemap, blob, bytes - 1) == MPIOX_E_FULL);
    REQUIRE(mpiox_typemap_to_blob(p->typemap, blob, bytes) == MPIOX_OK);
    REQUIRE(mpiox_typemap_from_blob(blob, bytes, &copy) == MPIOX_OK);
    REQUIRE(mpiox_typemap_equal(copy, p->typemap) && mpiox_typemap_blob_bytes(copy) == bytes);
    REQUIRE(mpiox_typemap_retain(copy) == copy);
    mpiox_typemap_free(copy);
    mpiox_typemap_free(copy);
    free(blob);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

#define ARENA 65536

/* Some stream range of a description, placed in an arena. */
static inline bool fits_arena(const pair *p, int64_t position, int64_t length, int64_t origin)
{
    for (int64_t k = position; k < position + length; k++) {
        const int64_t at = origin + reference_offset(&p->reference, k);
        if (at < 0 || at >= ARENA) {
            return false;
        }
    }
    return true;
}

static inline bool distinct_bytes(const pair *p, int64_t position, int64_t length, int64_t origin, uint8_t *seen)
{
    memset(seen, 0, ARENA);
    for (int64_t k = position; k < position + length; k++) {
        uint8_t *at = seen + origin + reference_offset(&p->reference, k);
        if (*at != 0) {
            return false;
        }
        *at = 1;
    }
    return true;
}

static inline void check_mark(const pair *p, const mpiox_memory_layout *side, int64_t length, const uint8_t *seen)
{
    static uint8_t map[ARENA];
    memset(map, 0, sizeof map);
    mpiox_copy_mark(map, 0, 1, side, length);
    REQUIRE(memcmp(map, seen, ARENA) == 0);
    const int64_t g = mpiox_typemap_granule(p->typemap);
    if (g > 1 && side->position % g == 0 && length % g == 0) {
        memset(map, 0, sizeof map);
        mpiox_copy_mark(map, side->origin % g, g, side, length);
        for (int64_t cell = 0; cell * g + side->origin % g + g <= ARENA; cell++) {
            REQUIRE(map[cell] == seen[cell * g + side->origin % g]);
        }
    }
}

/* Copy a random range of q's stream to a random range of p's (NULL: contiguous), and compare with the reference. */
static inline void check_copy(const pair *p, const pair *q, choices *c)
{
    static uint8_t target[ARENA], expected[ARENA], source[ARENA], seen[ARENA];
    const int64_t p_size = p != NULL ? p->reference.size : 1000, q_size = q != NULL ? q->reference.size : 1000;
    if (p_size == 0 || q_size == 0) {
        return;
    }
    mpiox_memory_layout t = {target, p != NULL ? p->typemap : NULL, ARENA / 2, choose(c, 0, 250) % (2 * p_size)};
    mpiox_memory_layout s = {source, q != NULL ? q->typemap : NULL, 0, choose(c, 0, 250) % (2 * q_size)};
    s.origin = ARENA / 2 + choose(c, 0, 3);
    int64_t length = choose(c, 0, 250) * choose(c, 1, 6) % (2 * (p_size < q_size ? p_size : q_size) + 1);
    if (choose(c, 0, 1) == 1 && p != NULL) { /* whole blocks more often */
        t.position = t.position / 4 * 4;
        length = length / 4 * 4;
    }
    if ((p != NULL &&
         (!fits_arena(p, t.position, length, t.origin) || !distinct_bytes(p, t.position, length, t.origin, seen))) ||
        (q != NULL && !fits_arena(q, s.position, length, s.origin))) {
        return;
    }
    for (int64_t i = 0; i < ARENA; i++) {
        source[i] = (uint8_t)(i * 7 + i / 251 + 1);
    }
    memset(target, 0, sizeof target);
    memset(expected, 0, sizeof expected);
    for (int64_t k = 0; k < length; k++) {
        const int64_t to = p != NULL ? reference_offset(&p->reference, t.position + k) : t.position + k;
        const int64_t from = q != NULL ? reference_offset(&q->reference, s.position + k) : s.position + k;
        expected[t.origin + to] = source[s.origin + from];
    }
    mpiox_copy(&t, &s, length);
    REQUIRE(memcmp(target, expected, ARENA) == 0);
    if (p != NULL) {
        check_mark(p, &t, length, seen);
    }
}

/* ---- disjointness: never claimed wrongly ------------------------------------------------------------------------- */

static inline void check_disjoint(const pair *p, const pair *q, choices *c)
{
    if (!mpiox_typemap_is_monotonic(p->typemap) || !mpiox_typemap_is_monotonic(q->typemap)) {
        return;
    }
    const int64_t origin_p = 4 * choose(c, 0, 30), origin_q = 4 * choose(c, 0, 30);
    const bool proven = mpiox_typemap_disjoint(p->typemap, origin_p, q->typemap, origin_q);
    if (!proven || p->reference.size == 0 || q->reference.size == 0) {
        return;
    }
    /* Every pair of bytes of enough tiles; offsets ascend in both, so that a merge finds a common one. */
    int64_t i = 0, k = 0;
    while (i < 60 * p->reference.size && k < 60 * q->reference.size) {
        const int64_t at_p = origin_p + reference_offset(&p->reference, i);
        const int64_t at_q = origin_q + reference_offset(&q->reference, k);
        REQUIRE(at_p != at_q);
        i += at_p < at_q;
        k += at_q < at_p;
    }
}

/* The same for parts of the streams. */
static inline void check_disjoint_ranges(const pair *p, const pair *q, choices *c)
{
    if (!mpiox_typemap_is_monotonic(p->typemap) || !mpiox_typemap_is_monotonic(q->typemap) || p->reference.size == 0 ||
        q->reference.size == 0) {
        return;
    }
    mpiox_range a = {p->typemap, 4 * choose(c, 0, 30), choose(c, 0, 250) % (2 * p->reference.size), 0};
    mpiox_range b = {q->typemap, 4 * choose(c, 0, 30), choose(c, 0, 250) % (2 * q->reference.size), 0};
    a.length = choose(c, 0, 250) % (2 * p->reference.size);
    b.length = choose(c, 0, 5) == 0 ? INT64_MAX : choose(c, 0, 250) % (2 * q->reference.size);
    const int64_t b_length = b.length == INT64_MAX ? 60 * q->reference.size : b.length;
    bool common = false;
    for (int64_t i = 0, k = 0; i < a.length && k < b_length && !common;) {
        const int64_t at_a = a.origin + reference_offset(&p->reference, a.position + i);
        const int64_t at_b = b.origin + reference_offset(&q->reference, b.position + k);
        common = at_a == at_b;
        i += at_a < at_b;
        k += at_b < at_a;
    }
    const bool proven = mpiox_typemap_disjoint_ranges(&a, &b);
    REQUIRE(!(proven && common));
    REQUIRE(proven == mpiox_typemap_disjoint_ranges(&b, &a));
    /* Small parts are merged, so that the answer is exact. */
    REQUIRE(proven || common || b.length == INT64_MAX || p->reference.n + q->reference.n > 200);
}

/* Edges of a part are those of its single bytes: what lies between neighbours cancels out. */
static inline void check_edges(const pair *p, choices *c)
{
    const reference *r = &p->reference;
    mpiox_range part = {p->typemap, 4 * choose(c, 0, 30), 0, 0};
    uint64_t sum = 0;
    if (r->size > 0) {
        part.position = choose(c, 0, 250) % (2 * r->size);
        part.length = choose(c, 0, 250) % (2 * r->size);
    }
    for (int64_t i = 0; i < part.length; i++) {
        const int64_t at = part.origin + reference_offset(r, part.position + i);
        sum += mpiox_typemap_edge(at + 1) - mpiox_typemap_edge(at);
    }
    REQUIRE(mpiox_typemap_edges(&part) == sum);
}

static inline void check_everything(const uint8_t *data, size_t bytes)
{
    choices c = {data, bytes};
    pair *p = random_pair(&c, 5), *q = random_pair(&c, 3);
    check_summary(p);
    check_seeks(p, &c);
    check_cursor(p, &c);
    check_blob(p);
    check_copy(p, NULL, &c);
    check_copy(NULL, p, &c);
    check_copy(p, q, &c);
    check_copy(q, p, &c);
    check_disjoint(p, q, &c);
    check_disjoint(p, p, &c);
    check_disjoint_ranges(p, q, &c);
    check_disjoint_ranges(p, p, &c);
    check_edges(p, &c);
    pair_free(p);
    pair_free(q);
}

#endif
