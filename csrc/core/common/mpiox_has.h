/*
 * mpiox_has.h - MPIOX_HAS(name): does the MPI library have this function, which mpi.h declares?
 *
 * A library that was built against one MPI has all functions that its mpi.h declares. A library for every MPI of an ABI
 * queries the process (csrc/entry/mpi/mpiox_any_mpi.h, which is included first; its names define the macro).
 */
#ifndef MPIOX_HAS_H
#define MPIOX_HAS_H

#ifndef MPIOX_HAS
#define MPIOX_HAS(name) 1
#endif

#endif
