/* mpiox_server_order.h - the next page, if a scheduler chooses it. Private to csrc/iod/server. */
#ifndef MPIOX_SERVER_ORDER_H
#define MPIOX_SERVER_ORDER_H

#include "mpiox_server_state.h"

/* I/O thread, with the lock, which is given back meanwhile: carry out the scheduler's next batch. False: there is none,
 * or not before server->order_until. */
bool mpiox_server_order_some(mpiox_server *server, mpiox_io *io);

#endif
