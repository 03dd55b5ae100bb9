/*
 * mpiox_typemap_disjoint.c - prove that two accesses share no byte.
 *
 * Problem.    Parallel programs mostly write disjoint parts of one array. A proof saves a pass over the pieces.
 * Algorithm.  A typemap is a union of boxes {o + i1*s1 + i2*s2 + ... + [0, L)}, one per path from the root to a block.
 *             Two boxes are compared in a common mixed-radix grid, whose weights are the strides of both. Every address
 *             has one expansion in digits (greedy division). A box becomes an interval per digit, and boxes with
 *             disjoint intervals for any digit are disjoint. If a box crosses a digit's range its interval becomes the
 *             whole range and the carry widens the next digit, which can only lose proofs. Endless tilings are compared
 *             modulo the common divisor of their extents. The grid may be anchored anywhere: origins and first bytes
 *             are tried. Pairs that the grid does not decide are merged, piece by piece, if that takes few steps.
 * Guarantees. True is a proof; false proves nothing. Work is bounded by a constant.
 */
#include "mpiox_typemap_impl.h"

#define MAX_BOXES 32
#define MAX_LEVELS (MPIOX_TYPEMAP_MAX_DEPTH + 3)
#define MAX_GRID (2 * MAX_LEVELS + 1)
#define MAX_MERGE_STEPS 1000

typedef struct box_level {
    int64_t stride;
    int64_t count;
} box_level;

/* Levels from the widest stride to the narrowest; the last one is the block, of stride 1. */
typedef struct box {
    int64_t offset;
    int levels;
    box_level level[MAX_LEVELS];
} box;

typedef struct box_set {
    int n;
    box box[MAX_BOXES];
} box_set;

/* ---- boxes of a typemap ------------------------------------------------------------------------------------------ */

static void push_level(box *b, int64_t stride, int64_t count)
{
    if (count > 1) {
        b->level[b->levels++] = (box_level){stride, count};
    }
}

static void push_block(box_set *set, const box *path, int64_t length)
{
    box *b = set->box + set->n++;
    *b = *path;
    b->level[b->levels++] = (box_level){1, length};
}

/* Append the boxes of a node; at most `room` of them: what would need more is replaced by its span. */
static void push_boxes(const mpiox_typemap *typemap, int64_t index, const box *path, int room, box_set *set)
{
    const mpiox_node *nodes = mpiox_typemap_nodes(typemap), *node = nodes + index;
    const int64_t *pool = mpiox_typemap_pool(typemap);
    const bool many = node->kind == MPIOX_NODE_STRUCT || node->kind == MPIOX_NODE_LIST;
    box next = *path;
    if (many && node->count > room) {
        push_block(set, path, node->hi);
        return;
    }
    if (!many) {
        push_level(&next, node->stride, node->count);
        if (node->child == MPIOX_NO_CHILD) {
            push_block(set, &next, node->length);
        } else {
            push_boxes(typemap, node->child, &next, room, set);
        }
        return;
    }
    for (int64_t i = 0; i < node->count; i++) {
        const int share = room / (int)node->count;
        next = *path;
        if (node->kind == MPIOX_NODE_STRUCT) {
            const int64_t child = pool[node->pool + i];
            next.offset += nodes[child].offset;
            push_boxes(typemap, child, &next, share, set);
            continue;
        }
        const int64_t bytes = mpiox_list_start(node, pool, i + 1) - mpiox_list_start(node, pool, i);
        next.offset += pool[node->pool + i];
        if (node->child == MPIOX_NO_CHILD) {
            push_block(set, &next, bytes);
        } else {
            push_level(&next, node->stride, bytes / nodes[node->child].size);
            push_boxes(typemap, node->child, &next, share, set);
        }
    }
}

/* The boxes of a part, from its first to its last tile (one tile when it is endless: the caller knows the period). */
static bool boxes_of(const mpiox_range *r, box_set *set)
{
    const mpiox_typemap *a = r->typemap;
    const bool endless = r->length == INT64_MAX;
    const int64_t first = endless ? 0 : r->position / a->tile_size;
    const int64_t tiles = endless ? 1 : (r->position + r->length - 1) / a->tile_size - first + 1;
    box path = {.levels = 0};
    int64_t start, reach;
    set->n = 0;
    if (!mpiox_mul(first, a->tile_extent, &start) || !mpiox_mul(tiles, a->tile_extent, &reach) ||
        !mpiox_add(start, a->first, &start) || !mpiox_add(start, r->origin, &path.offset) ||
        !mpiox_add(path.offset, reach, &reach)) {
        return false;
    }
    push_level(&path, a->tile_extent, tiles);
    if (a->tile_node == MPIOX_NO_CHILD) {
        push_block(set, &path, a->tile_size);
    } else {
        push_boxes(a, a->tile_node, &path, MAX_BOXES, set);
    }
    return true;
}

/* ---- the grid ---------------------------------------------------------------------------------------------------- */

typedef struct grid {
    int64_t period; /* addresses are compared modulo this; 0: as they are */
    int64_t anchor; /* subtracted from every address */
    int levels;
    int64_t weight[MAX_GRID]; /* descending, the last is 1 */
} grid;

typedef struct digits {
    int64_t first[MAX_GRID];
    int64_t last[MAX_GRID]; /* inclusive */
} digits;

static void add_weight(grid *g, int64_t weight)
{
    int at = 0;
    while (at < g->levels && g->weight[at] > weight) {
        at++;
    }
    if (at < g->levels && g->weight[at] == weight) {
        return;
    }
    for (int k = g->levels++; k > at; k--) {
        g->weight[k] = g->weight[k - 1];
    }
    g->weight[at] = weight;
}

static void add_weights(grid *g, const box *b)
{
    for (int k = 0; k < b->levels; k++) {
        if (g->period == 0 || b->level[k].stride % g->period != 0) { /* multiples of the period fold away */
            add_weight(g, b->level[k].stride);
        }
    }
}

static int64_t floor_mod(int64_t value, int64_t divisor)
{
    const int64_t rest = value % divisor;
    return rest < 0 ? rest + divisor : rest;
}

/* Number of values of digit k, at least. */
static int64_t digit_range(const grid *g, int k)
{
    const int64_t above = k > 0 ? g->weight[k - 1] : g->period;
    return above / g->weight[k] + (above % g->weight[k] != 0);
}

static void expand_offset(const grid *g, const box *b, digits *d)
{
    int64_t rest = b->offset - g->anchor;
    rest = g->period > 0 ? floor_mod(rest, g->period) : rest;
    for (int k = 0; k < g->levels; k++) {
        const int64_t low = floor_mod(rest, g->weight[k]);
        d->first[k] = d->last[k] = (rest - low) / g->weight[k];
        rest = low;
    }
    for (int k = 0, i = 0; i < b->levels; i++) {
        if (g->period > 0 && b->level[i].stride % g->period == 0) {
            continue;
        }
        while (g->weight[k] != b->level[i].stride) {
            k++;
        }
        d->last[k] += b->level[i].count - 1;
    }
}

/* Intervals of the box's digits; false when nothing is known (the box wraps around a period it does not fit). */
static bool expand(const grid *g, const box *b, digits *d)
{
    int64_t most = 0; /* upper bound of what the digits below k add up to */
    expand_offset(g, b, d);
    for (int k = g->levels - 1; k >= 0; k--) {
        const int64_t weight = g->weight[k], above = k > 0 ? g->weight[k - 1] : g->period;
        if (above == 0) {
            return true; /* the top digit of an endless number line has no range */
        }
        int64_t product;
        if (!mpiox_mul(d->last[k], weight, &product)) {
            return false;
        }
        most = product + (most < weight - 1 ? most : weight - 1);
        int64_t carry = 0;
        if (above % weight == 0 && d->last[k] >= above / weight) { /* lower digits stay what they are */
            carry = d->last[k] / (above / weight);
            d->first[k] = 0;
            d->last[k] = above / weight - 1;
        } else if (above % weight != 0 && most >= above) {
            carry = most / above;
            for (int low = k; low < g->levels; low++) {
                d->first[low] = 0;
                d->last[low] = digit_range(g, low) - 1;
            }
        }
        if (carry > 0 && k == 0 && above % weight != 0) {
            return false;
        }
        if (carry > 0 && k > 0) {
            d->last[k - 1] += carry;
        }
        most = most < above - 1 ? most : above - 1;
    }
    return true;
}

static bool digits_differ(const grid *g, const box *a, const box *b)
{
    digits da, db;
    if (!expand(g, a, &da) || !expand(g, b, &db)) {
        return false;
    }
    for (int k = 0; k < g->levels; k++) {
        if (da.last[k] < db.first[k] || db.last[k] < da.first[k]) {
            return true;
        }
    }
    return false;
}

static int64_t common_divisor(int64_t divisor, const box *b)
{
    for (int k = 0; k + 1 < b->levels; k++) {
        divisor = mpiox_gcd(divisor, b->level[k].stride);
    }
    return divisor;
}

static bool boxes_disjoint(const box *a, const box *b, int64_t period, const int64_t *origins)
{
    const int64_t anchors[4] = {origins[0], origins[1], a->offset, b->offset};
    /* First the grid of all strides, then only the residues modulo their common divisor. */
    const int64_t periods[2] = {period, common_divisor(common_divisor(period, a), b)};
    for (int p = 0; p < 2; p++) {
        grid g = {.period = periods[p], .levels = 0};
        add_weights(&g, a);
        add_weights(&g, b);
        if (g.levels == 0 || (g.period > 0 && g.weight[0] >= g.period)) {
            continue;
        }
        for (int i = 0; i < 4; i++) {
            g.anchor = anchors[i];
            if (digits_differ(&g, a, b)) {
                return true;
            }
        }
    }
    return false;
}

static bool grid_disjoint(const mpiox_range *a, const mpiox_range *b)
{
    box_set of_a, of_b;
    const int64_t origins[2] = {a->origin, b->origin};
    const int64_t period = mpiox_gcd(a->length == INT64_MAX ? a->typemap->tile_extent : 0,
                                     b->length == INT64_MAX ? b->typemap->tile_extent : 0);
    if (!boxes_of(a, &of_a) || !boxes_of(b, &of_b)) {
        return false;
    }
    for (int i = 0; i < of_a.n; i++) {
        for (int k = 0; k < of_b.n; k++) {
            if (!boxes_disjoint(&of_a.box[i], &of_b.box[k], period, origins)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- merging ----------------------------------------------------------------------------------------------------- */

/* The pieces of a part, one after the other. */
typedef struct piece_cursor {
    mpiox_cursor cursor;
    mpiox_run run;
    int64_t left; /* bytes behind the run */
} piece_cursor;

static void next_piece(piece_cursor *w)
{
    if (w->run.count > 1) {
        w->run.count--;
        w->run.offset = mpiox_wrap_add(w->run.offset, w->run.stride);
    } else if (w->left > 0) {
        w->left -= mpiox_cursor_next(&w->cursor, w->left, &w->run);
    } else {
        w->run.count = 0;
    }
}

static void start_pieces(piece_cursor *w, const mpiox_range *r)
{
    mpiox_cursor_init(&w->cursor, r->typemap, r->origin, r->position);
    w->run.count = 0;
    w->left = r->length;
    next_piece(w);
}

static bool merge_disjoint(const mpiox_range *a, const mpiox_range *b)
{
    piece_cursor wa, wb;
    start_pieces(&wa, a);
    start_pieces(&wb, b);
    for (int step = 0; step < MAX_MERGE_STEPS; step++) {
        if (wa.run.count == 0 || wb.run.count == 0) {
            return true;
        }
        if (wa.run.offset + wa.run.length <= wb.run.offset) {
            next_piece(&wa);
        } else if (wb.run.offset + wb.run.length <= wa.run.offset) {
            next_piece(&wb);
        } else {
            return false;
        }
    }
    return false;
}

/* Cut a part to the addresses [start, start + bytes), which must be whole periods if it is endless. */
static bool cut_to_window(mpiox_range *r, int64_t start, int64_t bytes)
{
    int64_t end;
    if (r->length != INT64_MAX) {
        return true;
    }
    const int64_t first = mpiox_typemap_position(r->typemap, start - r->origin);
    if (!mpiox_add(start, bytes, &end)) {
        return false;
    }
    const int64_t last = mpiox_typemap_position(r->typemap, end - r->origin);
    r->position = first > r->position ? first : r->position;
    r->length = last > r->position ? last - r->position : 0;
    return last < INT64_MAX;
}

/* Two endless tilings repeat after the common multiple of their extents, from where both have begun; one endless tiling
 * matters as far as the other part reaches. Then everything is finite. */
static bool merge_ranges(mpiox_range a, mpiox_range b)
{
    const bool endless_a = a.length == INT64_MAX, endless_b = b.length == INT64_MAX;
    const int64_t start_a = mpiox_wrap_add(a.origin, mpiox_typemap_offset(a.typemap, a.position));
    const int64_t start_b = mpiox_wrap_add(b.origin, mpiox_typemap_offset(b.typemap, b.position));
    int64_t start = start_a > start_b ? start_a : start_b, bytes = 0;
    if (endless_a && endless_b) {
        const int64_t step = mpiox_gcd(a.typemap->tile_extent, b.typemap->tile_extent);
        if (!mpiox_mul(a.typemap->tile_extent / step, b.typemap->tile_extent, &bytes)) {
            return false;
        }
    } else if (endless_a || endless_b) {
        const mpiox_range *finite = endless_a ? &b : &a;
        start = endless_a ? start_b : start_a;
        bytes = finite->origin + mpiox_typemap_offset(finite->typemap, finite->position + finite->length - 1) + 1 -
                start;
    }
    return cut_to_window(&a, start, bytes) && cut_to_window(&b, start, bytes) &&
           (a.length == 0 || b.length == 0 || merge_disjoint(&a, &b));
}

/* ---- the questions ----------------------------------------------------------------------------------------------- */

static bool is_empty(const mpiox_range *r)
{
    return r->typemap->size == 0 || r->length <= 0;
}

/* Address of the first byte and one past the last (INT64_MAX when endless). False when they are out of range. */
static bool bounds_of(const mpiox_range *r, int64_t *start, int64_t *end)
{
    const mpiox_typemap *a = r->typemap;
    int64_t reach;
    *end = INT64_MAX;
    if (!mpiox_mul(r->position / a->tile_size + 1, a->tile_extent, &reach) || !mpiox_add(reach, a->first, &reach) ||
        !mpiox_add(reach, r->origin, &reach)) {
        return false;
    }
    *start = r->origin + mpiox_typemap_offset(a, r->position);
    if (r->length == INT64_MAX) {
        return true;
    }
    int64_t last;
    if (!mpiox_add(r->position, r->length, &last) || !mpiox_mul(last / a->tile_size + 1, a->tile_extent, &reach) ||
        !mpiox_add(reach, a->first, &reach) || !mpiox_add(reach, r->origin, &reach)) {
        return false;
    }
    *end = r->origin + mpiox_typemap_offset(a, last - 1) + 1;
    return true;
}

bool mpiox_typemap_disjoint_ranges(const mpiox_range *a, const mpiox_range *b)
{
    int64_t start_a, end_a, start_b, end_b;
    if (is_empty(a) || is_empty(b)) {
        return true;
    }
    if (!mpiox_typemap_is_monotonic(a->typemap) || !mpiox_typemap_is_monotonic(b->typemap) ||
        !bounds_of(a, &start_a, &end_a) || !bounds_of(b, &start_b, &end_b)) {
        return false;
    }
    if (end_a <= start_b || end_b <= start_a) {
        return true;
    }
    return grid_disjoint(a, b) || merge_ranges(*a, *b);
}

bool mpiox_typemap_disjoint(const mpiox_typemap *a, int64_t origin_a, const mpiox_typemap *b, int64_t origin_b)
{
    const mpiox_range range_a = {a, origin_a, 0, INT64_MAX}, range_b = {b, origin_b, 0, INT64_MAX};
    return mpiox_typemap_disjoint_ranges(&range_a, &range_b);
}
