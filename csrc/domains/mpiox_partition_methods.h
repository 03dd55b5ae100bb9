/*
 * mpiox_partition_methods.h - the methods, one per C file. Private to csrc/domains: others go by the registry.
 */
#ifndef MPIOX_PARTITION_METHODS_H
#define MPIOX_PARTITION_METHODS_H

#include "mpiox_partition.h"

extern const mpiox_partition_method mpiox_partition_even;
extern const mpiox_partition_method mpiox_partition_aligned;
extern const mpiox_partition_method mpiox_partition_static_cyclic;
extern const mpiox_partition_method mpiox_partition_group_cyclic;
extern const mpiox_partition_method mpiox_partition_transpose;

#endif
