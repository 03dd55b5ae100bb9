/* mpiox_server_pages.h - the frame of each page. Private to csrc/iod/server; all functions with the lock. */
#ifndef MPIOX_SERVER_PAGES_H
#define MPIOX_SERVER_PAGES_H

#include "mpiox_server_state.h"

/* Answer a request for a page, or leave it with the frame, the range or the free frame that it waits for. */
void mpiox_server_ask_page(mpiox_server *server, mpiox_slot *slot);
/* Pages that are likely to be read next. */
void mpiox_server_read_ahead(mpiox_server *server, int32_t file, const mpiox_op_ahead *ahead);

/* Clean frame in exclusive use: take its page out of the cache. Requests for it begin anew, behind those that wait for
 * a frame already. It may be busy; then it stays so. */
void mpiox_server_drop_page(mpiox_server *server, uint32_t frame);
/* A frame is not exclusive any more: continue the requests that wait for its page. */
void mpiox_server_serve_waiting(mpiox_server *server, uint32_t frame);
/* Requests that wait for its page to be read are answered by this error. */
void mpiox_server_fail_waiting(mpiox_server *server, uint32_t frame, const mpiox_error *error);
/* Frames may have become free or clean: serve the requests that wait for one, in their order. */
void mpiox_server_serve_parked(mpiox_server *server);
/* The owner of the page: MPIOX_FRAME_HIT: this delegate; MPIOX_FRAME_MOVED: another; MPIOX_FRAME_MISS: it is moving. */
int mpiox_server_look_at_owner(const mpiox_server *server, int32_t file, int64_t page);

#endif
