/*
 * mpiox_link_address.h - where a delegate can be reached, and the secret that admits a connection. Plain data: it
 * travels over MPI from the delegate to the clients.
 */
#ifndef MPIOX_LINK_ADDRESS_H
#define MPIOX_LINK_ADDRESS_H

#include <stdint.h>

enum { MPIOX_LINK_ADDRESSES = 8 };

typedef struct mpiox_link_address {
    int32_t count;
    char host[MPIOX_LINK_ADDRESSES][64]; /* numeric IPv4 or IPv6 addresses, best first */
    int32_t port;
    uint64_t secret[2];
} mpiox_link_address;

#endif
