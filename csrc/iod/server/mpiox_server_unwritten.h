/*
 * mpiox_server_unwritten.h - files that exist only as long as the job (MPIOX_FILE_UNWRITTEN). Private to
 * csrc/iod/server; with the lock unless the comment names another condition.
 */
#ifndef MPIOX_SERVER_UNWRITTEN_H
#define MPIOX_SERVER_UNWRITTEN_H

#include "mpiox_server_state.h"

/* Pages that such files may have, together. */
int32_t mpiox_server_unwritten_room(const mpiox_server *server);
/* May a further page of such a file be cached, to be written or read? False: *error explains why not. */
bool mpiox_server_has_unwritten_room(mpiox_server *server, bool write, mpiox_error *error);
/* Is it a request without effect: to write such a file, though no reader needs it there? */
bool mpiox_server_asks_to_keep(const mpiox_server *server, const mpiox_slot *slot);
/* The file is to be deleted: its end is that of any other file. */
void mpiox_server_end_unwritten(mpiox_server *server, int32_t file);
/* All clients have left, and no other thread runs: remove the empty files that stand for these files. */
void mpiox_server_remove_unwritten(const mpiox_server *server);

#endif
