/* mpiox_scheduler.h - the batch system's ID of this process's job. */
#ifndef MPIOX_SCHEDULER_H
#define MPIOX_SCHEDULER_H

/* The text in the environment; NULL: there is no batch system, or its ID is not known. */
const char *mpiox_scheduler_job(void);

#endif
