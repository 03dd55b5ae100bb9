/*
 * mpiox_program.h - the name of the program, for its curve and weight.
 *
 * Problem.   An interpreter is not the program: every program in Python would be "python3", with one curve for all.
 * Algorithm. The name is the file name of the executable, argv[0]. If that is Python, it is the name of the script, or
 *            the module after -m, without ".py"; the module mpi4py is skipped, since it runs a script.
 *            mpiio_ext.common.programs has the same rule for command lines in logs.
 * Guarantee. Never empty; letters, digits and ._+- only, others become '_'.
 */
#ifndef MPIOX_PROGRAM_H
#define MPIOX_PROGRAM_H

#include <stddef.h>

/* Of a command line: words with their NULs behind each other, the last one perhaps cut. */
void mpiox_program_name(const char *words, size_t bytes, char *name, size_t name_bytes);
/* Of this process. */
void mpiox_program_own(char *name, size_t name_bytes);

#endif
