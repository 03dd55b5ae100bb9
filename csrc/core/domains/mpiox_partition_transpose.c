/*
 * mpiox_partition_transpose.c - stripes dealt out column by column of the server matrix ([SDCI], Figure 2d).
 *
 * The region's stripes form a matrix: one column for each server, one row for every S stripes of the file (row s / S,
 * absolute). The file system fills it row by row; this method cuts it column by column into A chunks whose sizes differ
 * by one stripe at most. So an aggregator meets others only where its chunk ends: A - 1 changes of owner in all, less
 * those that fall between two columns, for any A and S. The first and last row may be incomplete; column heights and
 * their sums have closed forms, hence the O(1) owner.
 */
#include "mpiox_partition_methods.h"
#include "mpiox_plan_build.h"

typedef struct matrix {                /* the part of the server matrix that the region touches */
    int64_t top_row, bottom_row;       /* rows of the first and the last stripe */
    int64_t first_column, last_column; /* columns (servers) of the first and the last stripe */
    int64_t columns, stripes;
} matrix;

static matrix matrix_of(const mpiox_geometry *geometry)
{
    int64_t first = mpiox_plan_first_stripe(geometry), last = mpiox_plan_last_stripe(geometry);
    int64_t servers = geometry->servers;
    return (matrix){.top_row = first / servers,
                    .bottom_row = last / servers,
                    .first_column = first % servers,
                    .last_column = last % servers,
                    .columns = servers,
                    .stripes = last - first + 1};
}

/* First row of a column, and the row below its last: a column left of the first stripe lacks the top row, a column
 * right of the last stripe lacks the bottom row. */
static int64_t column_top(const matrix *m, int64_t column)
{
    return m->top_row + (column < m->first_column);
}

static int64_t column_end(const matrix *m, int64_t column)
{
    return m->bottom_row + 1 - (column > m->last_column);
}

/* Stripes in the columns left of `column`. */
static int64_t stripes_before(const matrix *m, int64_t column)
{
    int64_t no_top = column < m->first_column ? column : m->first_column;
    int64_t no_bottom = column > m->last_column + 1 ? column - m->last_column - 1 : 0;
    return column * (m->bottom_row - m->top_row + 1) - no_top - no_bottom;
}

static int transpose_plan(const mpiox_geometry *geometry, mpiox_plan *plan)
{
    matrix m = matrix_of(geometry);
    int64_t stripe_size = geometry->stripe_size, column = 0, row = column_top(&m, 0);
    /* One set for each chunk, and one more for each column that begins inside a chunk. */
    int64_t used_columns = m.stripes < m.columns ? m.stripes : m.columns;
    int rc = mpiox_plan_reserve(plan, geometry->aggregators + used_columns);
    for (int32_t a = 0; rc == MPIOX_OK && a < geometry->aggregators; a++) {
        int64_t left = mpiox_plan_part_start(m.stripes, geometry->aggregators, a + 1) -
                       mpiox_plan_part_start(m.stripes, geometry->aggregators, a);
        while (left > 0) {
            int64_t height = column_end(&m, column) - row;
            if (height == 0) {
                row = column_top(&m, ++column);
                continue;
            }
            int64_t count = left < height ? left : height;
            mpiox_plan_add(plan, a, (row * m.columns + column) * stripe_size, stripe_size,
                           count > 1 ? m.columns * stripe_size : 0, count);
            row += count;
            left -= count;
        }
    }
    return rc;
}

static int32_t transpose_owner(const mpiox_plan *plan, int64_t offset)
{
    matrix m = matrix_of(&plan->geometry);
    int64_t stripe = offset / plan->geometry.stripe_size;
    int64_t column = stripe % m.columns, row = stripe / m.columns;
    int64_t place = stripes_before(&m, column) + row - column_top(&m, column);
    return (int32_t)mpiox_plan_part_of(m.stripes, plan->geometry.aggregators, place);
}

const mpiox_partition_method mpiox_partition_transpose = {
    .name = "transpose",
    .description = "stripes sorted by server, then row, in equal consecutive chunks",
    .plan = transpose_plan,
    .owner = transpose_owner,
};
