/*
 * mpiox_file_pointer.h - the individual file pointer of a managed file, in etypes of the view.
 *
 * The library keeps the pointer while its own accesses move it: the MPI libraries compute a position from a flattened
 * view, in time that grows with the pieces of the view. A call that is left to the MPI library gets the pointer first.
 */
#ifndef MPIOX_FILE_POINTER_H
#define MPIOX_FILE_POINTER_H

#include "mpiox_file_table.h"

/* Held around a get and the set that belongs to it, and around seek_native. */
void mpiox_file_pointer_lock(mpiox_file *file);
void mpiox_file_pointer_unlock(mpiox_file *file);
/* Returns an MPI code: the MPI library may have the pointer. */
int mpiox_file_pointer_get(mpiox_file *file, MPI_Offset *etypes);
void mpiox_file_pointer_set(mpiox_file *file, MPI_Offset etypes);
int mpiox_file_pointer_seek_native(mpiox_file *file, MPI_Offset offset, int whence); /* hands the pointer over first */

void mpiox_file_pointer_reset(mpiox_file *file);     /* a new view: zero, on both sides */
void mpiox_file_pointer_hand_over(mpiox_file *file); /* a native call follows that may use or move the pointer */

#endif
