/*
 * mpiox_posix_unlink.h - the index of a file that is stored as several goes past MPI: unlink(), or rename() over it.
 *
 * Problem.   Programs rotate checkpoints by POSIX calls. The index alone would go; its subfiles would stay for ever.
 * Algorithm. Memory says whether this process has had to do with subfiles. Then the functions of mpiox_posix.c that
 *            take a name away come here before and after. If the name is that of an index, the lock of who removes is
 *            taken; once the name is gone, and no other index in the folder has these subfiles, they go. Their folder
 *            goes with the next such call, or the end of MPI: who removes a tree has listed it before, and would miss
 *            it.
 * Guarantee. A process without subfiles: one load. The program's call does what it does anyway, first; nothing of a
 *            file goes that it has not taken the name of, that somebody has open, or has a copy of the index of. Then
 *            the subfiles stay, and a line says how to remove them.
 * Limits.    In a signal handler the index alone goes.
 */
#ifndef MPIOX_POSIX_UNLINK_H
#define MPIOX_POSIX_UNLINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

extern atomic_bool mpiox_posix_has_subfiles __attribute__((visibility("hidden"))); /* this process */

typedef struct mpiox_posix_unlinking mpiox_posix_unlinking;

/* Slow: the name is about to go. NULL: nothing goes with it. caller: its address. errno is kept. */
mpiox_posix_unlinking *mpiox_posix_unlinking_of(const void *caller, int folder, const char *path);
static inline mpiox_posix_unlinking *mpiox_posix_unlink(const void *caller, int folder, const char *path)
{
    return __builtin_expect(atomic_load_explicit(&mpiox_posix_has_subfiles, memory_order_relaxed), 0)
               ? mpiox_posix_unlinking_of(caller, folder, path)
               : NULL;
}
/* It is gone, or could not go. errno is kept. */
void mpiox_posix_unlinked(mpiox_posix_unlinking *unlinking, bool gone);

/* The environment's hints ask for subfiles, or a file has been opened that is stored so. Local. */
void mpiox_posix_look_for_subfiles(void);
void mpiox_posix_note_subfiles(void);
/* The end of MPI. Local. */
void mpiox_posix_unlink_finalize(void);

#endif
