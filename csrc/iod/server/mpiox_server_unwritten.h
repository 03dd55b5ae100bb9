/*
 * mpiox_server_unwritten.h - files that exist only as long as the job (MPIOX_FILE_UNWRITTEN). Private to
 * csrc/iod/server; with the lock unless said otherwise.
 */
#ifndef MPIOX_SERVER_UNWRITTEN_H
#define MPIOX_SERVER_UNWRITTEN_H

#include "mpiox_server_state.h"

/* Pages that such files may have, together. */
int32_t mpiox_server_unwritten_room(const mpiox_server *server);
/* May a further page of such a file come into the cache, to be written or read? False: *error says so. */
bool mpiox_server_has_unwritten_room(mpiox_server *server, bool write, mpiox_error *error);
/* A request that asks for nothing: to bring such a file to the file system, though nobody comes for it there. */
bool mpiox_server_asks_to_keep(const mpiox_server *server, const mpiox_slot *slot);
/* It is to be deleted: what is left of it ends as any other file. */
void mpiox_server_end_unwritten(mpiox_server *server, int32_t file);
/* All clients have left, and nothing else runs: what stands for the files in the file system goes with them. */
void mpiox_server_remove_unwritten(const mpiox_server *server);

#endif
