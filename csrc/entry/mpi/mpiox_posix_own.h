/*
 * mpiox_posix_own.h - calls on files that are not the program's: those of this library, and of the MPI library for it.
 *
 * Algorithm. This library is one range of addresses. Of the MPI library only what opens or deletes a file looks for it
 *            by its name; the thread notes where its stack was then. An error handler that leaves by longjmp() takes
 *            the stack back, and a call from above that place is the program's again.
 */
#ifndef MPIOX_POSIX_OWN_H
#define MPIOX_POSIX_OWN_H

#include <limits.h>
#include <stdbool.h>

/* What this thread does between the two is done by the MPI library, for this one. */
void mpiox_posix_enter(void);
void mpiox_posix_leave(void);
/* Is a call from that address one of those? Local, without a lock. */
bool mpiox_posix_is_own(const void *caller);
/* Is the caller a handler of a signal, or called by one? Whoever it has interrupted may hold any lock, that of malloc()
 * too. Local, slow (tens of microseconds); no lock, once mpiox_posix_prepare() has been called. On x86-64 and aarch64;
 * elsewhere false. */
bool mpiox_posix_is_in_handler(void);
void mpiox_posix_prepare(void); /* not in a handler; more than once does no harm */
/* Do calls of the program come to mpiox_posix.c, or was this library loaded too late? */
bool mpiox_posix_is_in_front(void);
/* A path from the current folder, without slashes at its end. False: it is too long, or none. Pure. */
bool mpiox_posix_path(int folder, const char *path, char out[PATH_MAX]);

#endif
