/*
 * mpiox_lock_model_systems.c - Lustre about as on the Cray XT4 of SC08, GPFS about as on its IA-64 cluster.
 *
 * The same numbers as lustre(), unlocked(lustre()) and gpfs() of Python, without caches; sources: docs/locks.md.
 */
#include "mpiox_lock_model_systems.h"

#include <stddef.h>

#define MEBIBYTE (INT64_C(1) << 20)

#define LUSTRE(locks)                                                                                                  \
    .protocol = locks, .growth_bytes = 32 * MEBIBYTE, .growth_holders = 32, .forward_holders = 4,                      \
    .rpc_bytes = MEBIBYTE, .round_trip = 20e-6, .enqueue = 5e-6, .lock_service = 20e-6, .request_overhead = 100e-6,    \
    .server_bandwidth = 250e6, .client_bandwidth = 1.7e9

static const mpiox_lock_model_system systems[] = {
    [MPIOX_LOCK_MODEL_NONE] = {LUSTRE(MPIOX_LOCK_MODEL_NONE)},
    [MPIOX_LOCK_MODEL_SERVER] = {LUSTRE(MPIOX_LOCK_MODEL_SERVER)},
    [MPIOX_LOCK_MODEL_TOKEN] = {.protocol = MPIOX_LOCK_MODEL_TOKEN,
                                .forward_holders = INT32_MAX,
                                .rpc_bytes = MEBIBYTE,
                                .round_trip = 100e-6,
                                .enqueue = 10e-6,
                                .lock_service = 50e-6,
                                .request_overhead = 100e-6,
                                .server_bandwidth = 60e6,
                                .client_bandwidth = 110e6},
};

const mpiox_lock_model_system *mpiox_lock_model_system_of(mpiox_lock_model_protocol protocol)
{
    return protocol >= MPIOX_LOCK_MODEL_NONE && protocol <= MPIOX_LOCK_MODEL_TOKEN ? &systems[protocol] : NULL;
}
