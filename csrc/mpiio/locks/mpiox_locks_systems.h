/*
 * mpiox_locks_systems.h - file systems as the lock model has them where nobody gives numbers. Data; docs/locks.md says
 * what the numbers rest on.
 */
#ifndef MPIOX_LOCKS_SYSTEMS_H
#define MPIOX_LOCKS_SYSTEMS_H

#include "mpiox_locks_types.h"

/* Lustre (SERVER), GPFS (TOKEN), or Lustre without locks (NONE); NULL for another protocol. They are what lustre() and
 * gpfs() of mpiio_ext.partitioning.locks return: a test compares every number. */
const mpiox_locks_system *mpiox_locks_system_of(mpiox_locks_protocol protocol);

#endif
