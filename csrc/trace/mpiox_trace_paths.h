/* mpiox_trace_paths.h - what of the calls on names is recorded. */
#ifndef MPIOX_TRACE_PATHS_H
#define MPIOX_TRACE_PATHS_H

#include <stdbool.h>

/* Record that a Python program looks at folders, too. */
void mpiox_trace_paths_keep_folders(bool keep);

#endif
