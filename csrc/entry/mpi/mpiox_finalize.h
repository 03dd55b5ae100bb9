/* mpiox_finalize.h - see mpiox_finalize.c. */
#ifndef MPIOX_FINALIZE_H
#define MPIOX_FINALIZE_H

/* MPI_Finalize shall clean up. After MPI_Init, and again before a file is opened, for programs whose MPI_Init did not
 * come through this library. Local; does nothing the second time, or without MPI_COMM_WORLD. */
void mpiox_finalize_prepare(void);

#endif
