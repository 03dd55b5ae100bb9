/*
 * mpiox_mpi_view.h - file views of managed files.
 *
 * The MPI libraries flatten a view into a list of its pieces when it is set. Where this library carries out every
 * access of a file (file->all_ours, the same on all ranks) the MPI library does not get its views at all, until it
 * has to carry out a collective after all.
 */
#ifndef MPIOX_MPI_VIEW_H
#define MPIOX_MPI_VIEW_H

#include "mpiox_handle.h"

/* After the open: MPI's initial view. all_ours: see mpiox_topology_takes_all(). */
void mpiox_mpi_view_begin(mpiox_handle *handle);
/* A native call follows: the MPI library gets the view in force, unless it has it. Collective, blocking. */
void mpiox_mpi_view_hand_over(mpiox_handle *handle);
void mpiox_mpi_view_release(mpiox_handle *handle);

/* Stream position -> etypes at the end of the file, rounded up; -1 with *result set when the size is not to be had. */
MPI_Offset mpiox_mpi_view_end(mpiox_handle *handle, int *result);

#endif
