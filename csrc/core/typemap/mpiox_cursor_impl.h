/*
 * mpiox_cursor_impl.h - the inside of a cursor, shared by mpiox_typemap_cursor.c and the files that iterate over lists.
 */
#ifndef MPIOX_CURSOR_IMPL_H
#define MPIOX_CURSOR_IMPL_H

#include "mpiox_typemap.h"

typedef struct mpiox_cursor_level {
    int64_t node;    /* index */
    int64_t index;   /* copy, member, item or (leaf) block that is next */
    int64_t address; /* of the node's origin; the caller's origin is included */
    int64_t tile;    /* lists with children: tile within the item */
} mpiox_cursor_level;

typedef struct mpiox_cursor_state {
    int64_t levels;       /* path length; the last level is the leaf. 0 when a tile is one block */
    int64_t inside;       /* bytes already consumed of the leaf's next block */
    int64_t tile_address; /* address of the current tile's first byte */
    int64_t unused;       /* makes the header four words, as a level */
    mpiox_cursor_level level[MPIOX_TYPEMAP_MAX_DEPTH]; /* [levels] from the root to the leaf */
} mpiox_cursor_state;

static inline mpiox_cursor_state *mpiox_cursor_state_of(mpiox_cursor *cursor)
{
    return (mpiox_cursor_state *)(void *)cursor->state;
}

/* The leaf is used up (its index equals its count): go to the next one. */
void mpiox_cursor_next_leaf(mpiox_cursor *cursor);

/* Whole items of a list of blocks. */
typedef struct mpiox_list_batch {
    const int64_t *displacements; /* [items] relative to `address`; borrowed from the typemap */
    const int64_t *prefix;        /* NULL: every item has `length` bytes */
    int64_t length;               /* bytes of every item; 0: see prefix */
    int64_t items;                /* > 0 */
    int64_t bytes;                /* data bytes of all items */
    int64_t address;              /* of the list's origin */
} mpiox_list_batch;

/* Yield the whole items of the list under the cursor, at most max_bytes of them, and advance past them. False, without
 * any effect: the cursor is not at the start of an item, or the item is longer. */
bool mpiox_cursor_next_list(mpiox_cursor *cursor, int64_t max_bytes, mpiox_list_batch *batch);

#endif
