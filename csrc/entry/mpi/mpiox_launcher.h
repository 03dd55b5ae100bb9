/*
 * mpiox_launcher.h - whether the program was started by the launcher of its own MPI library.
 *
 * Under the mpirun of another MPI every process is a job of one rank: all go through the whole work, and each writes
 * the whole of every file.
 */
#ifndef MPIOX_LAUNCHER_H
#define MPIOX_LAUNCHER_H

/* After MPI_Init: a line on stderr, by the launcher's rank 0, where it has started more processes than there are ranks.
 */
void mpiox_launcher_check(void);

#endif
