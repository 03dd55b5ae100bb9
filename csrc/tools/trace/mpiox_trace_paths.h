/* mpiox_trace_paths.h - what of the calls on names is recorded. */
#ifndef MPIOX_TRACE_PATHS_H
#define MPIOX_TRACE_PATHS_H

#include <stdbool.h>

/* Record a Python program's reads of folders, too. */
void mpiox_trace_paths_keep_folders(bool keep);
/* Are queries of folders, and readings of links, left out: in a process with Python? */
bool mpiox_trace_paths_leaves_folders(void);

#endif
