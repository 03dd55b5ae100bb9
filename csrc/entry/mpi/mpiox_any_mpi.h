/*
 * mpiox_any_mpi.h - calls of the MPI library that find it at run time; included in front of every source, with
 * mpiox_any_mpi_names.h behind it, in a build for an ABI in place of one MPI library (CMake: MPIOX_ANY_MPI).
 *
 * Problem.    Programs of one MPI ABI load libraries of many names (libmpi.so.12, libmpich.so.12, libmpi_gnu.so.12), in
 *             which some functions are missing. mpi4py opens its library out of the linker's sight (RTLD_LOCAL). Tools
 *             of this package use the library without any MPI. A library that is linked to one MPI library can serve
 *             only that one.
 * Algorithm.  Every name of the MPI library in the sources is a macro that reads a table (mpiox_any_mpi_names.h,
 *             generated). At the first use of an entry the function is looked up like the program's calls, then in a
 *             library libmpi* that is in the process.
 * Guarantees. No MPI library is opened while one is in the process. A function that is missing there prints one line on
 *             stderr and returns MPI_ERR_UNSUPPORTED_OPERATION; MPIOX_HAS(name) checks beforehand.
 */
#ifndef MPIOX_ANY_MPI_H
#define MPIOX_ANY_MPI_H

#ifdef MPIOX_ANY_MPI

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#if !defined(OPEN_MPI) && !defined(MPICH) /* the standard ABI leaves Fortran's handles out of C */
typedef int MPI_Fint;
extern MPI_Fint PMPI_File_c2f(MPI_File file);
extern MPI_File PMPI_File_f2c(MPI_Fint file);
#endif

/* Addresses by number; NULL: not looked up yet. */
extern _Atomic(void *) mpiox_any_mpi_found[] __attribute__((visibility("hidden")));
/* Look up number `index`; never NULL. */
void *mpiox_any_mpi_look_up(int index) __attribute__((visibility("hidden"), cold));
/* Whether the MPI library of this process has what number `index` stands for. */
bool mpiox_any_mpi_has(int index) __attribute__((visibility("hidden")));
/* The file of the MPI library that is in use; NULL: there is none in this process. */
const char *mpiox_any_mpi_library(void) __attribute__((visibility("hidden")));
/* For a process that no MPI program is in: open this file where a library is needed and none is there. */
void mpiox_any_mpi_open(const char *path) __attribute__((visibility("hidden")));

static inline void *mpiox_any_mpi(int index)
{
    void *const found = atomic_load_explicit(&mpiox_any_mpi_found[index], memory_order_acquire);
    return found != NULL ? found : mpiox_any_mpi_look_up(index);
}

#endif
#endif
