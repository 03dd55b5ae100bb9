/*
 * mpiox_typemap_edges.c - a number whose sum over all ranks shows whether their pieces fill a region exactly once.
 *
 * Problem.    If exactly one rank writes every byte of a window, the window needs no map of covered bytes. For regular
 *             descriptions that is proven from their strides (mpiox_typemap_disjoint.c). Irregular lists of many ranks
 *             would have to be gathered and merged.
 * Algorithm.  Every address has a number H(address) that looks random. A part's edges are the sum of H(end) - H(start)
 *             over its pieces, modulo 2^64. Let c(x) be the number of pieces that contain byte x. The sum over all
 *             ranks is that of H over all places where c changes, weighted by the change. It equals H(end) - H(start)
 *             of the region when c is 1 inside and 0 outside, since then all others cancel out. Any other c leaves a
 *             sum of numbers H with weights that are not all 0, which is the same by chance only: once in 2^64 for an H
 *             that is independent of the pieces. (Fingerprints of multisets: Clarke, Devadas, van Dijk, Gassend, Suh,
 *             "Incremental Multiset Hash Functions and Their Application to Memory Integrity Checking", ASIACRYPT
 *             2003.)
 * Guarantees. Exact if the pieces do fill the region. One pass over the pieces, a few nanoseconds each; no memory.
 */
#include "mpiox_typemap_edges.h"

#include "mpiox_typemap_impl.h"
#include "mpiox_cursor_impl.h"

static uint64_t edges_of_run(const mpiox_run *run)
{
    uint64_t sum = 0;
    for (int64_t i = 0, at = run->offset; i < run->count; i++, at = mpiox_wrap_add(at, run->stride)) {
        sum += mpiox_typemap_edge(mpiox_wrap_add(at, run->length)) - mpiox_typemap_edge(at);
    }
    return sum;
}

static uint64_t edges_of_list(const mpiox_list_batch *batch)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < batch->items; i++) {
        const int64_t at = batch->address + batch->displacements[i];
        const int64_t bytes = batch->prefix != NULL ? batch->prefix[i + 1] - batch->prefix[i] : batch->length;
        sum += mpiox_typemap_edge(at + bytes) - mpiox_typemap_edge(at);
    }
    return sum;
}

uint64_t mpiox_typemap_edges(const mpiox_range *range)
{
    mpiox_cursor cursor;
    mpiox_list_batch batch;
    mpiox_run run;
    uint64_t sum = 0;
    if (range->length <= 0 || range->typemap->size == 0) {
        return 0;
    }
    mpiox_cursor_init(&cursor, range->typemap, range->origin, range->position);
    for (int64_t left = range->length; left > 0;) {
        if (mpiox_cursor_next_list(&cursor, left, &batch)) {
            sum += edges_of_list(&batch);
            left -= batch.bytes;
        } else {
            left -= mpiox_cursor_next(&cursor, left, &run);
            sum += edges_of_run(&run);
        }
    }
    return sum;
}
