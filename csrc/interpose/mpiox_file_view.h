/*
 * mpiox_file_view.h - file views of managed files.
 *
 * The MPI libraries flatten a view into a list of its pieces when it is set. Where this library carries out every
 * access of a file (file->all_ours, the same on all ranks) the MPI library does not get its views at all, until it
 * has to carry out a collective after all.
 */
#ifndef MPIOX_FILE_VIEW_H
#define MPIOX_FILE_VIEW_H

#include "mpiox_file_table.h"

/* After the open: MPI's initial view. all_ours: as mpiox_exchange_background() says. */
void mpiox_file_view_begin(mpiox_file *file);
/* A native call follows: the MPI library gets the view in force, unless it has it. Collective, blocking. */
void mpiox_file_view_hand_over(mpiox_file *file);
void mpiox_file_view_release(mpiox_file *file);

/* Stream position -> etypes at the end of the file, rounded up; -1 with *result set when the size is not to be had. */
MPI_Offset mpiox_file_view_end(mpiox_file *file, int *result);

/* As their MPI namesakes. */
int mpiox_file_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep,
                        MPI_Info info);
int mpiox_file_get_view(MPI_File fh, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype, char *datarep);
int mpiox_file_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset *disp);

#endif
