/*
 * mpiox_calls.h - how often this process called each MPI function that the library wraps.
 *
 * The proof that a program's calls come through us. The counters are kept by the generated wrappers; an entry counts a
 * function and its large-count form, from C and from Fortran. Safe to call from any thread.
 */
#ifndef MPIOX_CALLS_H
#define MPIOX_CALLS_H

#include <stdint.h>

int mpiox_calls_count(void);             /* number of wrapped functions */
const char *mpiox_calls_name(int index); /* "MPI_File_open"...; NULL when out of range */
int64_t mpiox_calls_value(int index);    /* calls so far; 0 when out of range */

#endif
