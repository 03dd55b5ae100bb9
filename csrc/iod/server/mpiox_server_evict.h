/* mpiox_server_evict.h - a frame for a new page. Private to csrc/iod/server; all functions with the lock. */
#ifndef MPIOX_SERVER_EVICT_H
#define MPIOX_SERVER_EVICT_H

#include "mpiox_server_state.h"

/* A frame without a page; call mpiox_server_put_in() with it at once. It was free, or reusable, or, with `press`, could
 * leave. NO_FRAME: none. */
uint32_t mpiox_server_find_room(mpiox_server *server, bool press);
/* The page comes into such a frame; it is pinned for a client if `pin`. */
void mpiox_server_put_in(mpiox_server *server, uint32_t frame, int32_t file, int64_t page, bool ahead, bool pin);
/* Requests are parked: see to it that frames for them are on their way, or worth waiting for. */
void mpiox_server_press(mpiox_server *server);
/* Take the page of an exclusive, clean frame out: free. */
void mpiox_server_take_out(mpiox_server *server, uint32_t frame);
/* The frame has been written and is clean: is it at the disposal of other pages now? */
void mpiox_server_offer(mpiox_server *server, uint32_t frame);
/* A page that was read ahead: has it been used? Then it is like any other from now on. */
bool mpiox_server_judge(mpiox_server *server, uint32_t frame);

#endif
