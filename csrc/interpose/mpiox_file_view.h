/*
 * mpiox_file_view.h - file views of managed files.
 *
 * The MPI libraries flatten a view into a list of its pieces when it is set. Where this library carries out every access
 * of a file (file->all_ours, the same on all ranks) the MPI library is not told of its views at all; should it have to
 * carry out a collective after all, it is told then.
 */
#ifndef MPIOX_FILE_VIEW_H
#define MPIOX_FILE_VIEW_H

#include "mpiox_file.h"

/* After the open: MPI's initial view. all_ours: as mpiox_exchange_background() says. */
void mpiox_file_view_begin(mpiox_file *file);
/* Tell the MPI library the view in force. Collective, blocking, NULL-safe; nothing to do where it knows. */
void mpiox_file_view_tell(mpiox_file *file);
void mpiox_file_view_release(mpiox_file *file);

/* Stream position -> etypes at the end of the file, rounded up; -1 with *result set when the size is not to be had. */
MPI_Offset mpiox_file_view_end(mpiox_file *file, int *result);

#endif
