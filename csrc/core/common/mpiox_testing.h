/*
 * mpiox_testing.h - environment variables that make this library fail, or deceive it, for tests.
 *
 * Only a library that is built with MPIOX_TESTING reads such variables (MPIOX_FAULT, MPIOX_NETWORK_FAULT, MPIOX_LOCKS,
 * MPIOX_NICS, MPIOX_REPORT_S, MPIOX_DEATH): a checkout's own, and the C tests. In production such a variable can only
 * be a leftover or an attack: an installed wheel or source distribution has no such code (tests/mpi/test_shipped.py).
 * assert() checks in the same builds only.
 *
 * MPIOX_DEATH="DELEGATE:RULE;RULE..." kills a delegate, or its supervisor, at a point of a file's life. Each
 * MPIOX_POINT has a name. A rule is WHO,N,FILE,NAME: when a process passes the point of that name for the N-th time, it
 * creates FILE and is killed. WHO: "owner" is the delegate; "both" is the delegate, which kills its supervisor first;
 * "heir" is the supervisor. N = 0: no process is killed, but FILE gets a line with the name of each point that is
 * passed.
 */
#ifndef MPIOX_TESTING_H
#define MPIOX_TESTING_H
#ifdef MPIOX_TESTING

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_text.h"

/* The value of such a variable; NULL when it is not set or empty. Local. */
static inline const char *mpiox_testing_variable(const char *name)
{
    return mpiox_text_variable(name);
}

/* This process is that delegate (as: "owner"), or the delegate's supervisor (as: "heir"). */
static inline void mpiox_testing_serve(int delegate, const char *as)
{
    const char *death = mpiox_testing_variable("MPIOX_DEATH");
    if (death != NULL && atoi(death) == delegate)
        setenv("MPIOX_DEATH_AS", as, 1);
}

static inline void mpiox_testing_obey(const char *rule, const char *as, const char *name, atomic_int *passed)
{
    char who[8], file[1024], point[128], line[130];
    int number = 0;
    if (sscanf(rule, "%7[^,],%d,%1023[^,],%127[^;]", who, &number, file, point) != 4 ||
        (strcmp(who, "heir") == 0) != (strcmp(as, "heir") == 0) ||
        (number > 0 && (strcmp(point, name) != 0 || atomic_fetch_add(passed, 1) + 1 != number)))
        return;
    snprintf(line, sizeof line, "%s\n", name);
    const int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0)
        (void)!write(fd, line, strlen(line));
    if (number > 0 && strcmp(who, "both") == 0)
        kill(getppid(), SIGKILL);
    if (number > 0)
        kill(getpid(), SIGKILL);
    if (fd >= 0)
        close(fd);
}

/* "NAME", or "NAME OF". */
static inline void mpiox_testing_point(const char *name, const char *of, atomic_int *passed)
{
    const char *as = mpiox_testing_variable("MPIOX_DEATH_AS");
    char point[128];
    snprintf(point, sizeof point, "%s%s%s", name, of[0] != '\0' ? " " : "", of);
    for (const char *rule = as != NULL ? strchr(mpiox_testing_variable("MPIOX_DEATH"), ':') : NULL; rule != NULL;
         rule = strchr(rule + 1, ';'))
        mpiox_testing_obey(rule + 1, as, point, passed);
}

#define MPIOX_SERVES(delegate, as) mpiox_testing_serve(delegate, as)
#define MPIOX_POINT_OF(name, of)                                                                                       \
    do {                                                                                                               \
        static atomic_int passed;                                                                                      \
        mpiox_testing_point(name, of, &passed);                                                                        \
    } while (0)
#else
#define MPIOX_SERVES(delegate, as) ((void)0)
#define MPIOX_POINT_OF(name, of) ((void)(of))
#endif
#define MPIOX_POINT(name) MPIOX_POINT_OF(name, "")
#endif
