/*
 * mpiox_layout_ceph.h - the text of CephFS' virtual attributes ceph.file.layout and ceph.dir.layout. Pure; fuzzed.
 */
#ifndef MPIOX_LAYOUT_CEPH_H
#define MPIOX_LAYOUT_CEPH_H

#include <stdint.h>

#include "mpiox_error.h"

typedef struct mpiox_layout_ceph {
    int64_t stripe_unit;  /* bytes, > 0: a piece that is contiguous in one object */
    int64_t stripe_count; /* > 0: objects of one stripe */
    int64_t object_size;  /* bytes, a multiple of stripe_unit: when objects are full, the next set of objects begins */
    char pool[128];       /* "": unknown */
    char space[128];      /* pool_namespace, "": none */
} mpiox_layout_ceph;

/* "stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=NAME [pool_namespace=NAME]", in any order.
 * MPIOX_E_CORRUPT: the value has another form, and *out is unchanged. */
int mpiox_layout_parse_ceph(const void *value, int64_t value_bytes, mpiox_layout_ceph *out);

#endif
