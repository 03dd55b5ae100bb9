/*
 * mpiox_stats_identity.h - the run that a line of statistics belongs to, and times.
 *
 * Problem. Several jobs append to one file of statistics, and a job's processes write lines of their own. A reader must
 *          know which lines belong together, and to which job of the scheduler.
 *
 * Every process makes an ID of 128 random bits. The process that sends the hints of a file also sends its ID. If all
 * processes of the job open the file, the others always adopt the ID, so that all agree from then on. Otherwise a
 * process adopts it only if it has adopted none before.
 *
 * Times are seconds since 1970-01-01 UTC of the process's own clock.
 */
#ifndef MPIOX_STATS_IDENTITY_H
#define MPIOX_STATS_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

enum { MPIOX_STATS_RUN_BYTES = 37 };

typedef struct mpiox_stats_identity {
    char run[MPIOX_STATS_RUN_BYTES]; /* a version 4 UUID */
    const char *scheduler_job;       /* the scheduler's ID of the job; NULL: there is none */
    const char *program;             /* file name of the executable */
    char command[512];               /* command line, words separated by blanks, cut if it is longer */
    int64_t uid;                     /* of the user */
    double start;                    /* when the library was loaded: the start of a program that is linked to it */
} mpiox_stats_identity;

void mpiox_stats_identity_get(mpiox_stats_identity *out); /* of this process */
/* Another process's ID. by_all: all processes of the job get it now. */
void mpiox_stats_identity_adopt(const char *run, bool by_all);
double mpiox_stats_now(void);

#endif
