/*
 * mpiox_typemap_items.h - a list of contiguous items, made where it will stay.
 */
#ifndef MPIOX_TYPEMAP_ITEMS_H
#define MPIOX_TYPEMAP_ITEMS_H

#include "mpiox_typemap.h"

/* The room that a description of n items takes, and in it the places into which the caller writes what it is made of.
 * Freed by mpiox_items_free(), or taken over by mpiox_items_describe(). */
typedef struct mpiox_items {
    mpiox_typemap *room; /* NULL: none */
    int64_t n;
    int64_t *displacements; /* [n], bytes; the caller's to fill */
    int *lengths;           /* [n + 1], inside the room; the caller's to fill, or to leave */
} mpiox_items;

/* How long items are, in tiles of the child. Exactly one of the three. */
typedef struct mpiox_item_lengths {
    const int *narrow;   /* [n], may lie in the room's `lengths` */
    const int64_t *wide; /* [n], outside of the room */
    int64_t all;         /* where both are NULL */
} mpiox_item_lengths;

/* MPIOX_E_NOMEM, or MPIOX_E_ARG when n is negative or absurd. */
int mpiox_items_room(int64_t n, mpiox_items *items);
void mpiox_items_free(mpiox_items *items); /* nothing to do when the room was taken over */

/* Can such items be of this child? Its tiles must follow each other without a gap. */
bool mpiox_items_fit(const mpiox_typemap *child);
/* The same description as mpiox_typemap_indexed() gives. Takes the room over, also when it fails. */
int mpiox_items_describe(mpiox_items *items, mpiox_item_lengths lengths, const mpiox_typemap *child,
                         mpiox_typemap **out);
/* The same of items of single bytes, with other bounds, as of a struct; some have data. */
int mpiox_items_describe_bytes(mpiox_items *items, mpiox_item_lengths lengths, int64_t lb, int64_t extent,
                               mpiox_typemap **out);

#endif
