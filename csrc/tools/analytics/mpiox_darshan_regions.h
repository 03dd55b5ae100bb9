/*
 * mpiox_darshan_regions.h - which regions of a Darshan log are whole.
 */
#ifndef MPIOX_DARSHAN_REGIONS_H
#define MPIOX_DARSHAN_REGIONS_H

#include <stdint.h>

#include "mpiox_darshan_library.h"

enum { MPIOX_DARSHAN_MAX_MODULES = 64 };
/* What is wrong with a region; GAP: bytes behind it belong to none, as where the header gives it too few. */
enum { MPIOX_DARSHAN_WHOLE, MPIOX_DARSHAN_GAP, MPIOX_DARSHAN_CUT, MPIOX_DARSHAN_DAMAGED };

typedef struct mpiox_darshan_regions {
    int names;
    int modules[MPIOX_DARSHAN_MAX_MODULES]; /* by the library's index */
} mpiox_darshan_regions;

/* Look at the regions of a log; of those in `inflated` (bit k: module k) and of the names every byte. What cannot be
 * looked at is whole. `beat` counts up meanwhile. */
void mpiox_darshan_regions_check(const mpiox_darshan_library *library, const char *path, uint64_t inflated,
                                 volatile int64_t *beat, mpiox_darshan_regions *found);

#endif
