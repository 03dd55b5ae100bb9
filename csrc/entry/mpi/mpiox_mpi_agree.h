/*
 * mpiox_mpi_agree.h - rank 0's decisions about a file before any rank opens it.
 *
 * Problem.   Hints, environment and file system may look different on every rank, and the next steps are collective.
 * Algorithm. Rank 0 resolves the hints, chooses, has the openers search for the file or create it (mpiox_opener.h), and
 *            broadcasts all of it at once, or in two messages if the text of the hints is long.
 * Guarantee. All ranks continue with the same choices and, if this library is to carry out accesses, the same
 *            arguments.
 */
#ifndef MPIOX_MPI_AGREE_H
#define MPIOX_MPI_AGREE_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_file.h"
#include "mpiox_opener.h"
#include "mpiox_stats_identity.h"

enum { MPIOX_AGREED_TEXT = 1024 };

/* Rank 0 broadcasts it. Plain data. */
typedef struct mpiox_mpi_agreed {
    mpiox_hints hints;                /* in force, as rank 0 has resolved them */
    mpiox_file_choice choice;         /* for mpiox_file_open(); final after mpiox_mpi_agree_settle() */
    mpiox_decision decision;          /* of rank 0's openers */
    bool wanted;                      /* the file is to be taken over */
    bool few_descriptors;             /* it is not, so that there are enough for the MPI library */
    bool waits_hidden;                /* a tool keeps MPI_Wait and its kin from this library */
    bool run_stats;                   /* MPI_Finalize shall report on the run */
    bool recorded;                    /* a tracer records where the time of the run goes */
    char run[MPIOX_STATS_RUN_BYTES];  /* ID of the run, for the lines of statistics; empty without any */
    int amode;                        /* which the others compare theirs with, as the name behind the text */
    int64_t text_bytes;               /* hints to lay over every rank's info object; 0: none */
    char text[MPIOX_AGREED_TEXT + 1]; /* when it fits */
} mpiox_mpi_agreed;

/* Collective, blocking; an error of MPI, after which nothing can follow. opening: gets the agreement's decision and
 * hints, and all that is known before the file is opened. *merged: the info object for the MPI library, to be freed;
 * MPI_INFO_NULL: the program's own. *differs: see mpiox_mpi_same_agree(). */
int mpiox_mpi_agree(mpiox_opening *opening, mpiox_mpi_agreed *agreed, MPI_Info info, MPI_Info *merged, int *differs);
/* The openers have settled how the file is opened: the choice that mpiox_file_open() gets. Local. */
void mpiox_mpi_agree_settle(mpiox_mpi_agreed *agreed);

#endif
