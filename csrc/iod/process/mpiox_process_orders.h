/* mpiox_process_orders.h - the orders that a delegate gets before it starts. */
#ifndef MPIOX_PROCESS_ORDERS_H
#define MPIOX_PROCESS_ORDERS_H

#include "mpiox_process.h"
#include "mpiox_process_launcher_id.h"
#include "mpiox_server.h"

/* The orders for a delegate. Plain data: it travels over MPI and through pipes. */
typedef struct mpiox_process_orders {
    mpiox_server_options server;  /* .delegate is the delegate's own index */
    int32_t node;                 /* of the delegate, as in the topology of MPI_COMM_WORLD */
    double seconds;               /* that a step of its start may take */
    bool listens;                 /* clients of other nodes will connect */
    mpiox_rendezvous_place place; /* where it listens */
    uint64_t secret[2]; /* that admits them; made where it is needed, or derived: it does not travel between hosts */
    mpiox_process_launcher_id launcher_id; /* the rank on whose standard error the delegate prints */
    char service[64], mode[16];            /* for `mpiio-ext delegates status`, as in mpiox_cache_header */
} mpiox_process_orders;

#endif
