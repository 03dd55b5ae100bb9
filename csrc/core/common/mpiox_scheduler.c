/* mpiox_scheduler.c - see mpiox_scheduler.h. */
#include "mpiox_scheduler.h"

#include <stddef.h>
#include <stdlib.h>

const char *mpiox_scheduler_job(void)
{
    static const char *const variables[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "COBALT_JOBID", "JOB_ID"};

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i]);

        if (value != NULL && value[0] != '\0')
            return value;
    }
    return NULL;
}
