/*
 * mpiox_testing.h - environment variables that make this library fail, or deceive it, for tests.
 *
 * Only a library that is built with MPIOX_TESTING reads such variables (MPIOX_FAULT, MPIOX_NETWORK_FAULT, MPIOX_LOCKS,
 * MPIOX_NICS, MPIOX_REPORT_S): a checkout's own, and the C tests. In production such a variable can only be a leftover
 * or an attack: an installed wheel or source distribution has no such code (tests/mpi/test_shipped.py). The files that
 * differ are MPIOX_HOOKED_SOURCES in sources.cmake.
 */
#ifndef MPIOX_TESTING_H
#define MPIOX_TESTING_H
#ifdef MPIOX_TESTING

#include "mpiox_text.h"

/* The value of such a variable; NULL when it is not set or empty. Local. */
static inline const char *mpiox_testing_variable(const char *name)
{
    return mpiox_text_variable(name);
}

#endif
#endif
