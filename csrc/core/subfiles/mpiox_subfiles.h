/* mpiox_subfiles.h - the back end that deals one logical file over several (mpiox_subfiles_index.h). */
#ifndef MPIOX_SUBFILES_H
#define MPIOX_SUBFILES_H

#include "mpiox_storage.h"
#include "mpiox_subfiles_index.h"

/* As mpiox_storage_open(), of the file whose index is at `path`. storage->fd is the first subfile's. */
int mpiox_subfiles_open(const char *path, int flags, int rank, const mpiox_storage_options *options,
                        mpiox_storage **out, mpiox_error *error);
/* How the file is cut; NULL: it is no file of subfiles. Borrowed. */
const mpiox_subfiles *mpiox_subfiles_of(const mpiox_storage *storage);
/* Others are told that a delegate has bytes of the file (mpiox_subfiles_files.h), until it closes it. Any
 * thread; nothing is done for what is no file of subfiles. */
void mpiox_subfiles_say_written(mpiox_storage *storage);

#endif
