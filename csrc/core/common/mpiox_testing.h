/*
 * mpiox_testing.h - may the environment break this library on purpose?
 *
 * What tests break it with (MPIOX_FAULT, MPIOX_NETWORK_FAULT) must do nothing in production, where such a variable can
 * only be left over or meant badly. It counts where MPIOX_TESTING=1 stands beside it, and in a library that was built
 * with the option MPIOX_TESTING.
 */
#ifndef MPIOX_TESTING_H
#define MPIOX_TESTING_H

/* The value of such a variable; NULL when it is not set, is empty, or does not count, which a line on standard error
 * then says, once in a process. Local. */
const char *mpiox_testing_variable(const char *name);

#endif
