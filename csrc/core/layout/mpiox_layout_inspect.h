/*
 * mpiox_layout_inspect.h - all known facts of a file's layout, with their sources. For people and tools: many system
 * calls, some to servers. mpiox_layout_detect() returns the facts that an open file needs.
 */
#ifndef MPIOX_LAYOUT_INSPECT_H
#define MPIOX_LAYOUT_INSPECT_H

#include <stdint.h>

#include "mpiox_error.h"
#include "mpiox_layout_facts.h"

typedef struct mpiox_layout_wish { /* hints; 0, start_device < 0: not given; striping_factor -1: all, of new files */
    int64_t striping_unit;
    int32_t striping_factor, start_device; /* servers; number of the first one */
} mpiox_layout_wish;

/* The facts of a descriptor that is open for reading (of a folder: the facts of new files in it). wish may be NULL. 0
 * and a description, which the caller frees; MPIOX_E_NOMEM; MPIOX_E_IO: a query of the descriptor failed (errno).
 * Blocking. */
int mpiox_layout_inspect(int fd, const mpiox_layout_wish *wish, mpiox_layout_facts **out);
/* The same for a path. If the process may not read the file, only facts of its file system are known, and the source of
 * the default explains why. MPIOX_E_IO with errno: the path cannot be reached, or (EINVAL) is neither a file nor a
 * folder. */
int mpiox_layout_inspect_path(const char *path, const mpiox_layout_wish *wish, mpiox_layout_facts **out);

#endif
