/*
 * mpiox_other_abi.h - a program of another MPI ABI than the one that this library was built for.
 *
 * Problem.    `mpiio-ext run -- ./job.sh` inspects the script and not the program behind it, so its choice of an ABI is
 *             a guess; MPIIO_EXT_ABI may be wrong. Handles are numbers in one ABI and addresses in another: any call
 *             would crash or write wrong data.
 * Algorithm.  The loader runs a function of this library before main(), when the program's MPI library is mapped. If
 *             the MPI library is of another ABI, and LD_PRELOAD names this library as one of a wheel's, the process
 *             sets LD_PRELOAD to the wheel's library for that ABI, and executes its program anew. If that is
 *             impossible, the process ends with a line on stderr. If the program opens the MPI library itself (mpi4py),
 *             this library checks the MPI library when it first finds a function in it; then the process can only end.
 *             The tracer does the same.
 * Guarantees. No MPI function of another ABI is called. A library of unknown ABI counts as one that fits. The process
 *             executes its program anew at most once.
 */
#ifndef MPIOX_OTHER_ABI_H
#define MPIOX_OTHER_ABI_H

/* The MPI ABI that this library was built for, in words. */
const char *mpiox_other_abi_own(void);
/* End the process with a line on stderr if the MPI library that holds this address is of another ABI. */
void mpiox_other_abi_refuse(const void *address);

#endif
