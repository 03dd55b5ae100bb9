/*
 * mpiio_ext_delegates_impl.h - what mpiio_ext_delegates is, for the files that make one.
 */
#ifndef MPIIO_EXT_DELEGATES_IMPL_H
#define MPIIO_EXT_DELEGATES_IMPL_H

#include <sys/types.h>

#include "mpiio_ext.h"
#include "mpiox_cache.h"

struct mpiio_ext_delegates {
    mpiox_cache cache; /* of the delegate; pointers into the mapping */
    void *base;        /* NULL: another owner's mapping, which stays */
    int64_t bytes;     /* mapped */
    dev_t device; /* of the file whose name follows: no descriptor is kept, since by it the memory would be found, by */
    ino_t inode;  /* other processes that search for delegates, after its delegate has gone */
    char path[];
};

#endif
