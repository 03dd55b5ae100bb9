/*
 * mpiox_service_starting.h - the line that reports a rank's wait while delegates start.
 *
 * Problem.   MPI_Comm_spawn and MPI_Comm_disconnect have no time limit, and further waits of a start add up. The
 *            waiting thread is inside the MPI library, and cannot print.
 * Algorithm. A thread checks during the start, and prints one line on standard error for each cause of a wait. Of the
 *            ranks that wait for other ranks only rank 0 prints it.
 */
#ifndef MPIOX_SERVICE_STARTING_H
#define MPIOX_SERVICE_STARTING_H

#include "mpiox_service_patience.h"

/* A start begins. Local. */
void mpiox_service_starting_begin(const mpiox_service_patience *patience);
/* From now on this rank waits for this: static text; NULL: other ranks. */
void mpiox_service_starting_for(const char *what);
/* It has ended, one way or another. Local. */
void mpiox_service_starting_end(void);

#endif
