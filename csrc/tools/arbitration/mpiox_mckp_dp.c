/*
 * mpiox_mckp_dp.c - rows, checkpoints and the walk back; see the header.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_mckp_dp.h"

/* Memory for rows above which only checkpoints are kept: what a core's share of a last-level cache is, so that the
 * second computation costs less than reading rows from memory would. */
#define ROWS_IN_MEMORY (INT64_C(1) << 18) /* doubles: 2 MiB */

#if defined(__x86_64__) && defined(__GNUC__)
#define MPIOX_MCKP_AVX2 1
#endif

void mpiox_mckp_dp_clear(mpiox_mckp_dp *dp)
{
    free(dp->rows);
    free(dp->reach);
    memset(dp, 0, sizeof *dp);
}

/* ---- one row ---- */

/* next[x] for x in 0..end from prev[0..end], four options a pass: loads and stores of `next` are what limits. */
static inline __attribute__((always_inline)) void row_body(const double *restrict prev, double *restrict next,
                                                           int64_t end, int64_t n, const int32_t *w, const double *p)
{
    int64_t w0 = w[0] <= end ? w[0] : end + 1;
    for (int64_t x = 0; x < w0; x++)
        next[x] = -INFINITY;
    for (int64_t x = w0; x <= end; x++)
        next[x] = prev[x - w0] + p[0];
    int64_t j = 1;
    for (; j + 4 <= n && w[j] <= end; j += 4) {
        int64_t w1 = w[j], w2 = w[j + 1], w3 = w[j + 2], w4 = w[j + 3];
        double p1 = p[j], p2 = p[j + 1], p3 = p[j + 2], p4 = p[j + 3];
        int64_t x = w1;
        for (; x < w4 && x <= end; x++) {
            double a = prev[x - w1] + p1, best = next[x];
            best = a > best ? a : best;
            a = x >= w2 ? prev[x - w2] + p2 : best;
            best = a > best ? a : best;
            a = x >= w3 ? prev[x - w3] + p3 : best;
            next[x] = a > best ? a : best;
        }
        for (; x <= end; x++) {
            double a = prev[x - w1] + p1, b = prev[x - w2] + p2, c = prev[x - w3] + p3, d = prev[x - w4] + p4;
            a = a > b ? a : b;
            c = c > d ? c : d;
            a = a > c ? a : c;
            next[x] = a > next[x] ? a : next[x];
        }
    }
    for (; j < n && w[j] <= end; j++) {
        int64_t w1 = w[j];
        double p1 = p[j];
        for (int64_t x = w1; x <= end; x++) {
            double a = prev[x - w1] + p1;
            next[x] = a > next[x] ? a : next[x];
        }
    }
}

static void row_plain(const double *prev, double *next, int64_t end, int64_t n, const int32_t *w, const double *p)
{
    row_body(prev, next, end, n, w, p);
}

typedef void (*row_function)(const double *, double *, int64_t, int64_t, const int32_t *, const double *);

#ifdef MPIOX_MCKP_AVX2
__attribute__((target("avx2"))) static void row_avx2(const double *prev, double *next, int64_t end, int64_t n,
                                                     const int32_t *w, const double *p)
{
    row_body(prev, next, end, n, w, p);
}
#endif

static row_function row_for_this_processor(void)
{
#ifdef MPIOX_MCKP_AVX2
    if (__builtin_cpu_supports("avx2"))
        return row_avx2;
#endif
    return row_plain;
}

/* ---- all rows ---- */

static int reserve(mpiox_mckp_dp *dp, int64_t doubles, int64_t reaches)
{
    if (doubles > dp->room) {
        free(dp->rows); /* nothing in it is needed: no realloc, which would copy */
        dp->room = 0;
        dp->rows = malloc((size_t)doubles * sizeof *dp->rows);
        if (dp->rows == NULL)
            return MPIOX_E_NOMEM;
        dp->room = doubles;
    }
    if (reaches > dp->reach_room) {
        free(dp->reach);
        dp->reach_room = 0;
        dp->reach = malloc((size_t)reaches * sizeof *dp->reach);
        if (dp->reach == NULL)
            return MPIOX_E_NOMEM;
        dp->reach_room = reaches;
    }
    return MPIOX_OK;
}

typedef struct walk {
    const mpiox_mckp_options *o;
    mpiox_mckp_dp *dp;
    row_function row;
    int64_t width;       /* of a row: capacity + 1 */
    int64_t block;       /* classes between two checkpoints */
    double *checkpoints; /* row 0, row `block`, ... */
    double *rows;        /* rows 1..block behind a checkpoint */
} walk;

/* Row i + 1 from row i, which is lengthened to where row i + 1 ends. */
static void next_row(const walk *k, int64_t i, double *prev, double *next)
{
    const mpiox_mckp_options *o = k->o;
    int64_t reach = k->dp->reach[i], end = k->dp->reach[i + 1], from = o->first[i], n = o->first[i + 1] - from;
    for (int64_t x = reach + 1; x <= end; x++)
        prev[x] = prev[reach];
    k->row(prev, next, end, n, &o->weight[from], &o->value[from]);
    k->dp->operations += (end + 1) * n;
}

/* Compute the rows of a block, which begins with class `from`, behind its checkpoint; return the last row. */
static double *block_rows(const walk *k, int64_t from)
{
    double *prev = &k->checkpoints[from / k->block * k->width];
    int64_t to = from + k->block < k->o->n ? from + k->block : k->o->n;
    for (int64_t i = from; i < to; i++) {
        double *next = &k->rows[(i - from) * k->width];
        next_row(k, i, prev, next);
        prev = next;
    }
    return prev;
}

/* The smallest capacity at which the last row has its last value. */
static int64_t lightest_best(const double *row, int64_t reach)
{
    int64_t low = 0, high = reach;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (row[middle] == row[reach])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Choices of the classes of a block, from the last; x is the capacity that is left, before and after. */
static int64_t walk_back(const walk *k, int64_t from, int64_t x, int32_t *choice)
{
    const mpiox_mckp_options *o = k->o;
    int64_t to = from + k->block < o->n ? from + k->block : o->n;
    for (int64_t i = to - 1; i >= from; i--) {
        const double *row = &k->rows[(i - from) * k->width];
        const double *prev = i > from ? row - k->width : &k->checkpoints[from / k->block * k->width];
        int64_t j = o->first[i];
        while (prev[x - o->weight[j]] + o->value[j] != row[x])
            j++;
        choice[i] = (int32_t)(j - o->first[i]);
        x -= o->weight[j];
    }
    return x;
}

int mpiox_mckp_dp_solve(mpiox_mckp_dp *dp, const mpiox_mckp_options *o, int64_t capacity, int32_t *choice,
                        double *value)
{
    walk k = {.o = o, .dp = dp, .row = row_for_this_processor()};
    int64_t reach = 0, most = 0;
    dp->operations = 0;
    int rc = reserve(dp, 0, o->n + 1);
    if (rc != MPIOX_OK)
        return rc;
    for (int64_t i = 0; i <= o->n; i++) {
        dp->reach[i] = reach;
        if (i == o->n)
            break;
        reach += o->weight[o->first[i + 1] - 1];
        reach = reach < capacity ? reach : capacity;
        most = reach;
    }
    k.width = most + 1;
    k.block = o->n > 0 ? o->n : 1;
    if (k.block * k.width > ROWS_IN_MEMORY) {
        k.block = 1;
        while (k.block * k.block < o->n)
            k.block++;
    }
    int64_t blocks = (o->n + k.block - 1) / k.block;
    rc = reserve(dp, (blocks + 1 + k.block) * k.width, 0);
    if (rc != MPIOX_OK)
        return rc;
    k.checkpoints = dp->rows;
    k.rows = dp->rows + (blocks + 1) * k.width;
    k.checkpoints[0] = 0;
    double *last = k.checkpoints;
    for (int64_t b = 0; b < blocks; b++) {
        last = block_rows(&k, b * k.block);
        if (b + 1 < blocks)
            memcpy(&k.checkpoints[(b + 1) * k.width], last, (size_t)(dp->reach[(b + 1) * k.block] + 1) * sizeof *last);
    }
    *value = last[most];
    int64_t x = lightest_best(last, most);
    for (int64_t b = blocks - 1; b >= 0; b--) {
        if (b + 1 < blocks)
            block_rows(&k, b * k.block);
        x = walk_back(&k, b * k.block, x, choice);
    }
    return MPIOX_OK;
}

int mpiox_mckp_dp_profiles(mpiox_mckp_dp *dp, const mpiox_mckp_options *o, int64_t sets, int64_t n,
                           const int32_t *members, int64_t capacity, double *best)
{
    row_function row = row_for_this_processor();
    int64_t width = capacity + 1;
    int rc = reserve(dp, 2 * width, 0);
    if (rc != MPIOX_OK)
        return rc;
    dp->operations = 0;
    for (int64_t set = 0; set < sets; set++) {
        double *prev = dp->rows, *next = dp->rows + width;
        memset(prev, 0, (size_t)width * sizeof *prev);
        for (int64_t i = 0; i < n; i++) {
            int64_t class = members[set * n + i], from = o->first[class], count = o->first[class + 1] - from;
            row(prev, next, capacity, count, &o->weight[from], &o->value[from]);
            dp->operations += width * count;
            double *other = prev;
            prev = next;
            next = other;
        }
        memcpy(&best[set * width], prev, (size_t)width * sizeof *best);
    }
    return MPIOX_OK;
}
