/*
 * mpiox_cache_hidden.h - files of a cache that have another name than their own until they are written.
 *
 * Problem.   A delegate dies with files that had been closed and have no name of their own yet, or with copies of
 *            another delegate's pages of such files (mpiox_storage_staging.h).
 * Algorithm. A survivor that has written what was dirty ends the delegate's part of each file, as the delegate would
 *            have done, and whoever ends the last part gives the file its name. What is never written gets its name,
 *            too, since no delegate can tell of another.
 * Guarantee. No file of which bytes were lost gets its name. Nothing that has the name is replaced.
 */
#ifndef MPIOX_CACHE_HIDDEN_H
#define MPIOX_CACHE_HIDDEN_H

#include "mpiox_cache.h"

/* The name that a file with this one gets. False: this is its own. */
bool mpiox_cache_own_name(const char *path, char *own, size_t bytes);
/* The name by which people know a file, whatever it is called now. May lie in `room`. */
const char *mpiox_cache_shown_name(const char *path, char *room, size_t bytes);
/* Does a file not get its name for this reason, which only people can mend? What is to be said then, after its name. */
bool mpiox_cache_is_clash(int code);
void mpiox_cache_clash_text(const char *path, int code, char *text, size_t bytes);
/* Is it still there by its hidden name? */
bool mpiox_cache_is_hidden(const mpiox_file_record *record);
/* It goes, unless another file has its name. */
void mpiox_cache_remove_hidden(const mpiox_file_record *record);

/* What follows recovers the cache of a dead delegate. */

/* Files of which the delegate had dropped bytes that it could not write: nobody gives them their names. */
void mpiox_cache_keep_hidden(const mpiox_cache *cache);
/* All is written: the others, as far as the delegate alone had kept them from their names, get those. */
void mpiox_cache_end_hidden(const mpiox_cache *cache);
/* Files that a next job has set aside have another hidden name now: the records get it. */
void mpiox_cache_find_hidden(const mpiox_cache *cache);
/* Does the cache have copies of closed files whose originals are not in the file? */
bool mpiox_cache_has_copies(const mpiox_cache *cache);
/* Copies whose originals are not in their files stand for these from now on. */
void mpiox_cache_take_copies(const mpiox_cache *cache);

#endif
