/* mpiox_testing.c - see mpiox_testing.h. */
#include "mpiox_testing.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool counts(void)
{
#ifdef MPIOX_TESTING
    return true;
#else
    const char *told = getenv("MPIOX_TESTING");
    return told != NULL && strcmp(told, "1") == 0;
#endif
}

const char *mpiox_testing_variable(const char *name)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    const char *value = getenv(name);
    if (value == NULL || value[0] == '\0')
        return NULL;
    if (counts())
        return value;
    if (!atomic_flag_test_and_set(&said))
        fprintf(stderr, "mpiio_ext: %s is ignored: it is for tests, and counts with MPIOX_TESTING=1 only\n", name);
    return NULL;
}
