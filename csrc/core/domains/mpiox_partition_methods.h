/*
 * mpiox_partition_methods.h - the methods, one per C file. A new method adds one line here. Private to
 * csrc/core/domains, and to csrc/mpiio/auto_select, whose rules name methods: other folders use the registry.
 */
#ifndef MPIOX_PARTITION_METHODS_H
#define MPIOX_PARTITION_METHODS_H

#include "mpiox_partition.h"

/* X(name) of every method, which is defined as mpiox_partition_name, in the order of their indices. */
#define MPIOX_PARTITION_METHODS(X) X(even) X(aligned) X(static_cyclic) X(group_cyclic) X(transpose)

#define MPIOX_PARTITION_DECLARE(name) extern const mpiox_partition_method mpiox_partition_##name;
MPIOX_PARTITION_METHODS(MPIOX_PARTITION_DECLARE)

#endif
