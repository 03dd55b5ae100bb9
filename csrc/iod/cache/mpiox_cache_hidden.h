/*
 * mpiox_cache_hidden.h - files of a cache with a hidden name until they are written.
 *
 * Problem.   A delegate dies with files that were closed and have no name of their own yet, or with copies of another
 *            delegate's pages of such files (mpiox_storage_staging.h).
 * Algorithm. A survivor that has written the dirty bytes ends the delegate's part of each file, as the delegate would
 *            have done. The process that ends the last part gives the file its name. An open file gets its name from
 *            its ranks, when they close it (mpiox_forwarded_flush_barrier.c).
 * Guarantee. A file that has lost bytes does not get its name. No other file of that name is replaced.
 */
#ifndef MPIOX_CACHE_HIDDEN_H
#define MPIOX_CACHE_HIDDEN_H

#include "mpiox_cache.h"

/* The own name of a file with this hidden name. False: this is its own name. */
bool mpiox_cache_own_name(const char *path, char *own, size_t bytes);
/* The own name of a file, whatever its present name is: for messages. May lie in `room`. */
const char *mpiox_cache_shown_name(const char *path, char *room, size_t bytes);
/* Is this a reason against naming a file that only the user can remove? The second function returns the rest of a
 * message that begins with its name. */
bool mpiox_cache_is_clash(int code);
void mpiox_cache_clash_text(const char *path, int code, char *text, size_t bytes);
/* Does the file still exist under its hidden name? */
bool mpiox_cache_is_hidden(const mpiox_file_record *record);

/* These recover the cache of a dead delegate. */

/* Mark files of which the delegate had dropped bytes that it could not write: they never get their names. */
void mpiox_cache_keep_hidden(const mpiox_cache *cache);
/* All bytes are written: give the other files their names, unless another process has bytes of them. */
void mpiox_cache_end_hidden(const mpiox_cache *cache);
/* A later job may have renamed leftovers: put their present hidden names into the records. */
void mpiox_cache_find_hidden(const mpiox_cache *cache);
/* Does the cache have copies of closed files whose originals are not in the file? */
bool mpiox_cache_has_copies(const mpiox_cache *cache);
/* From now on write the copies whose originals are not in their files. */
void mpiox_cache_take_copies(const mpiox_cache *cache);

#endif
