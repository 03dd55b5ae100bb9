/*
 * mpiox_auto_systems.c - Lustre about as on the Cray XT4 of SC08, GPFS about as on its IA-64 cluster; sources:
 * docs/explanation/locks.md.
 */
#include "mpiox_auto_systems.h"

#define MEBIBYTE 1048576.0
#define LUSTRE .round_trip = 20e-6, .request = 100e-6, .server = 250e6, .aggregator = 1.7e9, .wire = MEBIBYTE

const mpiox_auto_system mpiox_auto_lustre = {LUSTRE, .server_locks = true, .lock = 20e-6};
const mpiox_auto_system mpiox_auto_unlocked = {LUSTRE};
const mpiox_auto_system mpiox_auto_gpfs = {.tokens = true,
                                           .round_trip = 100e-6,
                                           .lock = 50e-6,
                                           .request = 100e-6,
                                           .server = 60e6,
                                           .aggregator = 110e6,
                                           .wire = MEBIBYTE};
