/*
 * mpiox_message_entries.h - the description in a message of one rank's pieces in one window, and moving their data.
 *
 * An entry has one of three forms. If every node knows the rank's view, it names stream bytes. If not, it lists the
 * pieces. Or it is an extent of the file. It never crosses an extent of the window. Local; nothing here calls MPI.
 */
#ifndef MPIOX_MESSAGE_ENTRIES_H
#define MPIOX_MESSAGE_ENTRIES_H

#include "mpiox_messages.h"

/* Yields the bytes of this rank (with exchange->whole: this node) in one window, in chunks of at most half_bytes -
 * step_bytes bytes; the same ones every time. Uses b->extents[0]. */
typedef struct mpiox_chunks {
    const mpiox_messages *m; /* borrowed */
    mpiox_extent extent;     /* the one that from and to lie in */
    int64_t n, next;         /* extents of the window, and the one to go on with */
    int64_t from, to;        /* the rest of the one before: stream bytes, with exchange->whole file offsets */
    int64_t bytes;           /* of the chunk that was yielded last: entry, runs and data, padded */
} mpiox_chunks;

void mpiox_chunks_begin(const mpiox_messages *m, mpiox_chunks *chunks, int aggregator, int64_t round);
/* False when there are no more. */
bool mpiox_chunks_next(mpiox_chunks *chunks, mpiox_message_entry *entry);

/* The chunk that was yielded last: entry, runs and (writes) data into `bytes`. */
void mpiox_chunk_pack(const mpiox_chunks *chunks, const mpiox_message_entry *entry, char *bytes);
/* Reads: this rank's part of the data that came for a chunk into its memory. */
void mpiox_entry_take(const mpiox_messages *m, const char *bytes);

/* At the aggregator, in the inbox's window: place data (write), or fetch it into `data` and set entry->length to the
 * part before the end of the file (read). False: the entry makes no sense. */
bool mpiox_entry_place(const mpiox_messages *m, const mpiox_message_entry *entry, const char *runs, const char *data);
bool mpiox_entry_fetch(const mpiox_messages *m, mpiox_message_entry *entry, const char *runs, char *data);

#endif
