/*
 * mpiox_file_pointer.h - the individual file pointer of a managed file.
 *
 * It lives here while our own accesses move it (the MPI libraries compute a position from a flattened view, in time that
 * grows with its pieces) and goes to the MPI library before a call that only that can do. In etypes of the view.
 */
#ifndef MPIOX_FILE_POINTER_H
#define MPIOX_FILE_POINTER_H

#include "mpiox_file.h"

void mpiox_file_pointer_lock(mpiox_file *file); /* around get and set that belong together */
void mpiox_file_pointer_unlock(mpiox_file *file);
int mpiox_file_pointer_get(mpiox_file *file, MPI_Offset *etypes); /* an MPI code: it may be fetched from the MPI library */
void mpiox_file_pointer_set(mpiox_file *file, MPI_Offset etypes);

void mpiox_file_pointer_reset(mpiox_file *file);     /* a new view: zero, on both sides */
void mpiox_file_pointer_hand_over(mpiox_file *file); /* NULL-safe; a native call follows that may use or move it */

#endif
