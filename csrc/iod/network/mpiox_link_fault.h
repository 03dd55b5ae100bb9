/*
 * mpiox_link_fault.h - connections that are slow or break on purpose, for tests.
 *
 * The environment variable MPIOX_NETWORK_FAULT of a library that is built for tests (mpiox_testing.h) holds
 * KEY=VALUE pairs separated by ':', which act on every connection that carries data and that this process opens or
 * accepts afterwards:
 *
 *   delay_ms=N      each message sleeps this long before it is sent: latency, in one direction
 *   drop_after=N    the connection breaks when N bytes have passed, both directions together
 *   short=N         no system call moves more than N bytes
 *
 * Example: MPIOX_NETWORK_FAULT="delay_ms=2:drop_after=100000"
 * Every process prints once on standard error that it is on. With a text that cannot be parsed every opening fails: a
 * test of a fault must not pass because of a typing error.
 */
#ifndef MPIOX_LINK_FAULT_H
#define MPIOX_LINK_FAULT_H

#include <stdint.h>

#include "mpiox_error.h"

typedef struct mpiox_link_fault {
    int64_t delay_ms;    /* milliseconds before each message; 0: none */
    int64_t left;        /* bytes until the connection breaks */
    int64_t short_bytes; /* INT64_MAX: any number */
} mpiox_link_fault;

/* Parse the environment variable; a text with an error has no effect. 0, or MPIOX_E_ARG with *error. */
int mpiox_link_fault_read(mpiox_link_fault *out, mpiox_error *error);

#endif
