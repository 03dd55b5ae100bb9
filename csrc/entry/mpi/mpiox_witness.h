/*
 * mpiox_witness.h - signals `mpiio-ext run` that calls of the program reach the library.
 *
 * Problem.   A run without statistics looks the same whether the program makes no MPI-IO call, is static, or uses
 *            another MPI. Only `mpiio-ext run` outlasts such a program, and only the library sees the calls.
 * Algorithm. `run` has a socket with a Linux abstract name for each kind of call that may reach the library, and passes
 *            the name in MPIOX_STATS_WITNESS. The library sends one byte to it without waiting: a full queue is a sign,
 *            too. Nothing is written to any file system.
 * Promise.   One system call at MPI_Init and at the first opening of a file; none without the variable.
 */
#ifndef MPIOX_WITNESS_H
#define MPIOX_WITNESS_H

#include <stdbool.h>

typedef enum mpiox_witnessed { MPIOX_WITNESSED_INIT, MPIOX_WITNESSED_FILE, MPIOX_WITNESSED } mpiox_witnessed;

void mpiox_witness_report(mpiox_witnessed what); /* once for each kind; any thread */
bool mpiox_witness_is_there(void);

#endif
