/*
 * mpiox_subfiles_index.h - one logical file that is stored as several: its index, the places of its bytes. Pure.
 *
 * Problem.   On many file systems one shared file is the limit, under any file domains: its locks, its server, its
 *            inode are shared.
 * Algorithm. Unit u of the logical file lies in subfile u mod count, at offset (u div count) * unit: the static-cyclic
 *            file domain, so that an aggregator of a domain has subfiles of its own. A small text file, the index, has
 *            the logical name; it contains the unit and count, the place of the subfiles, and the command that merges
 *            them. Processes replace the index as a whole, and never change it in place. Its state is `writing`, with
 *            the number of programs that have the file open for writing if there are several, and `whole` once all of
 *            them have closed it. A process that has the file open has a shared lock on a byte of the first subfile,
 *            far behind all data.
 * Guarantee. The state of a file that a killed job was writing stays `writing`, even if other programs close it. The
 *            subfiles of a complete file have exactly their shares, so that a missing, short or too long one is
 *            detected. Subfiles are called ID.NUMBER or ID.NUMBER.TAG, after the random ID of the index. An index that
 *            names other files is refused, and those files are not touched.
 */
#ifndef MPIOX_SUBFILES_INDEX_H
#define MPIOX_SUBFILES_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"

enum {
    MPIOX_SUBFILES_MOST = 4096,
    MPIOX_SUBFILES_NAME_MOST = 214
}; /* bytes: of theirs and the index's while it is made */
#define MPIOX_SUBFILES_UNIT_MOST (INT64_C(1) << 62)

typedef struct mpiox_subfiles {
    int64_t unit, size; /* bytes; size -1: it is being written, */
    int32_t writers;    /* so many programs have opened it and not closed it, or were ended before */
    uint64_t id;        /* of the file, random */
    int32_t count;      /* subfiles, 1 .. MPIOX_SUBFILES_MOST */
    char **names;       /* [count], absolute or relative to the index's folder */
    char *text;         /* owned: the memory of the names */
    char *index;        /* absolute path of the index; NULL: it does not exist yet */
} mpiox_subfiles;

/* ---- where bytes lie. Pure --------------------------------------------------------------------------------------- */

typedef struct mpiox_subfiles_spot {
    int32_t subfile;      /* index of the subfile */
    int64_t offset, left; /* in the subfile; bytes up to the end of the unit */
} mpiox_subfiles_spot;

mpiox_subfiles_spot mpiox_subfiles_place(int64_t unit, int32_t count, int64_t offset);
/* Bytes of a logical file of `size` bytes that lie in a subfile. */
int64_t mpiox_subfiles_share(int64_t unit, int32_t count, int32_t subfile, int64_t size);
/* The least end of the logical file, from the size of a subfile; INT64_MAX: beyond the largest possible file. */
int64_t mpiox_subfiles_reach(int64_t unit, int32_t count, int32_t subfile, int64_t bytes);

/* ---- the index (mpiox_subfiles_index.c) ------------------------------------------------------------------ */

/* Parse a text of `bytes` bytes, and free it in any case. 0, MPIOX_E_NOMEM, or MPIOX_E_ARG: *why is the mistake (static
 * text). */
int mpiox_subfiles_parse(char *text, int64_t bytes, mpiox_subfiles *out, const char **why);
/* The text of an index for a file of that base name; free it. NULL: no memory. */
char *mpiox_subfiles_format(const mpiox_subfiles *subfiles, const char *name);
void mpiox_subfiles_free(mpiox_subfiles *subfiles); /* its contents; NULL-safe */

#endif
