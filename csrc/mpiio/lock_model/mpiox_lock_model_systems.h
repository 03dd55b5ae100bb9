/*
 * mpiox_lock_model_systems.h - file systems as the lock model has them where nobody gives numbers. Data; docs/locks.md
 * says
 * what the numbers rest on.
 */
#ifndef MPIOX_LOCK_MODEL_SYSTEMS_H
#define MPIOX_LOCK_MODEL_SYSTEMS_H

#include "mpiox_lock_model_types.h"

/* Lustre (SERVER), GPFS (TOKEN), or Lustre without locks (NONE); NULL for another protocol. They are what lustre() and
 * gpfs() of mpiio_ext.partitioning.locks return: a test compares every number. */
const mpiox_lock_model_system *mpiox_lock_model_system_of(mpiox_lock_model_protocol protocol);

#endif
