/*
 * mpiox_mpi_pointer.h - the individual file pointer of a managed file, in etypes of the view.
 *
 * The library keeps the pointer while its own accesses move it: the MPI libraries compute a position from a flattened
 * view, in time that grows with the pieces of the view. A call that is left to the MPI library gets the pointer first.
 */
#ifndef MPIOX_MPI_POINTER_H
#define MPIOX_MPI_POINTER_H

#include "mpiox_handle.h"

/* Lock it around a get and the set that belongs to it, and around seek_native. */
void mpiox_mpi_pointer_lock(mpiox_handle *handle);
void mpiox_mpi_pointer_unlock(mpiox_handle *handle);
/* Returns an MPI code: the MPI library may have the pointer. */
int mpiox_mpi_pointer_get(mpiox_handle *handle, MPI_Offset *etypes);
void mpiox_mpi_pointer_set(mpiox_handle *handle, MPI_Offset etypes);
int mpiox_mpi_pointer_seek_native(mpiox_handle *handle, MPI_Offset offset,
                                  int whence); /* hands the pointer over first */

void mpiox_mpi_pointer_reset(mpiox_handle *handle);     /* a new view: zero, on both sides */
void mpiox_mpi_pointer_hand_over(mpiox_handle *handle); /* a native call follows that may use or move the pointer */

#endif
