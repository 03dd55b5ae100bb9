/*
 * mpiox_typemap_items.h - a list of contiguous items, built in the memory in which it will stay.
 */
#ifndef MPIOX_TYPEMAP_ITEMS_H
#define MPIOX_TYPEMAP_ITEMS_H

#include "mpiox_typemap.h"

/* The memory of a description of n items, and the places in it into which the caller writes displacements and lengths.
 * mpiox_items_free() frees it, or mpiox_items_describe() turns it into the description. */
typedef struct mpiox_items {
    mpiox_typemap *room;    /* NULL: none */
    int64_t n;              /* items */
    int64_t *displacements; /* [n], bytes; the caller fills them */
    int *lengths;           /* [n + 1], inside the room; the caller may fill them */
} mpiox_items;

/* Lengths of the items, in tiles of the child. Exactly one of the three fields is used. */
typedef struct mpiox_item_lengths {
    const int *narrow;   /* [n], may lie in the room's `lengths` */
    const int64_t *wide; /* [n], outside of the room */
    int64_t all;         /* where both are NULL */
} mpiox_item_lengths;

/* MPIOX_E_NOMEM, or MPIOX_E_ARG when n is negative or absurd. */
int mpiox_items_room(int64_t n, mpiox_items *items);
void mpiox_items_free(mpiox_items *items); /* does nothing after mpiox_items_describe() */

/* Can items consist of this child? Its tiles must follow each other without a gap. */
bool mpiox_items_fit(const mpiox_typemap *child);
/* The same description as mpiox_typemap_indexed() returns. Owns the room from now on, also if it fails. */
int mpiox_items_describe(mpiox_items *items, mpiox_item_lengths lengths, const mpiox_typemap *child,
                         mpiox_typemap **out);
/* The same for items of single bytes, with other bounds, as of a struct; some items have data. */
int mpiox_items_describe_bytes(mpiox_items *items, mpiox_item_lengths lengths, int64_t lb, int64_t extent,
                               mpiox_typemap **out);

#endif
