/* mpiox_storage_refresh.h - reading other clients' writes if no protocol makes the clients' caches coherent. */
#ifndef MPIOX_STORAGE_REFRESH_H
#define MPIOX_STORAGE_REFRESH_H

#include "mpiox_storage.h"

/* Send this machine's cached writes of the file to its server and drop the cache: reads then see other clients' earlier
 * writes, including the size. Local, blocking; takes a few round trips to the server. 0 or MPIOX_E_IO. Nothing to do
 * without a descriptor. */
int mpiox_storage_refresh(mpiox_storage *storage, mpiox_error *error);

/* From now on the kernel reads for this handle the requested bytes and no more. A refresh does not drop pages that are
 * being read ahead, and they have the file's old bytes. Local; before the first read. */
void mpiox_storage_read_exactly(mpiox_storage *storage);

#endif
