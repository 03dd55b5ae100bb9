/*
 * mpiox_service_starting.h - the line that says that a rank waits while delegates start.
 *
 * Problem.   MPI_Comm_spawn and MPI_Comm_disconnect have no time limit, and what a start waits for besides adds up. The
 *            thread that waits is inside the MPI library, and cannot say so.
 * Algorithm. A thread of its own looks, as long as the start lasts. It is printed on standard error once for each thing
 *            that is waited for, and says which. Of the ranks that wait for other ranks only rank 0 prints it.
 */
#ifndef MPIOX_SERVICE_STARTING_H
#define MPIOX_SERVICE_STARTING_H

#include "mpiox_service_patience.h"

/* A start begins. Local. */
void mpiox_service_starting_begin(const mpiox_service_patience *patience);
/* What this rank waits for from now on: static text; NULL: other ranks. */
void mpiox_service_starting_for(const char *what);
/* It has ended, one way or another. Local. */
void mpiox_service_starting_end(void);

#endif
