/*
 * mpiox_independent.h - one rank's access to a file through its view, without any other rank.
 *
 * Used by independent and nonblocking data access, by collectives that every rank carries out for itself, and by
 * everything in atomic mode. Local and blocking; no MPI. Several threads may use one file at once.
 */
#ifndef MPIOX_INDEPENDENT_H
#define MPIOX_INDEPENDENT_H

#include "mpiox_independent_file.h"

/* Move request->length bytes (> 0) from stream position request->position on. *done = bytes moved, in stream order from
 * the start: all of them, or fewer at the end of the file (reads) or at an error. 0, or *error's code with the file
 * offset and length that failed. EFAULT, and nothing moved: the memory may be a GPU's (mpiox_device_access.h); the
 * function queries the drivers only if the processor would copy the memory. */
int mpiox_independent_access(const mpiox_independent_file *file, const mpiox_request *request, int64_t *done,
                             mpiox_error *error);

#endif
