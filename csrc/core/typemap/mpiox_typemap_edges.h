/*
 * mpiox_typemap_edges.h - do the pieces of all ranks together fill a region exactly once?
 */
#ifndef MPIOX_TYPEMAP_EDGES_H
#define MPIOX_TYPEMAP_EDGES_H

#include "mpiox_typemap.h"

/* The number of an address (the finalizer of MurmurHash3, behind a constant so that 0 is none). */
static inline uint64_t mpiox_typemap_edge(int64_t address)
{
    uint64_t x = (uint64_t)address + UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ (x >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

/* The edges of a finite part. Parts fill [start, end) exactly once when their edges add up, modulo 2^64, to
 * mpiox_typemap_edge(end) - mpiox_typemap_edge(start); otherwise they do not add up to it, with probability 1 - 2^-64.
 * O(pieces), local. */
uint64_t mpiox_typemap_edges(const mpiox_range *range);

#endif
