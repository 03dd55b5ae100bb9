/* mpiox_scheduler.h - the batch system's ID of this process's job. */
#ifndef MPIOX_SCHEDULER_H
#define MPIOX_SCHEDULER_H

/* NULL: none, or not known. The environment's text. */
const char *mpiox_scheduler_job(void);

#endif
