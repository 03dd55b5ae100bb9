/*
 * mpiox_subfiles_job.h - files that are stored as several, from their opening to their close.
 *
 * Problem.   The name that a program opens is an index. The MPI library, which opens what it is told to, must never
 *            take that for the data, and who is killed must not leave a file that looks whole.
 * Algorithm. Rank 0 looks before the file is opened, and every rank at what it has opened: if it has become an index,
 *            another one, or none, all of them close it and begin again, ten times at most. A new file for which the
 *            hint asks is made as subfiles; one that is there is what its index says, whatever the hints. Before a rank
 *            writes, the index says `writing`; rank 0 makes it whole once all ranks have closed it, unless a job before
 *            has left it unfinished. The MPI library opens the index for reading alone, and gets no access: what this
 *            library cannot carry out is an error.
 *            The index of a file that delegates write behind its close has a staging name (mpiox_mpi_staging.h). It
 *            says `writing`, until the last of them, or rank 0 at its close, gives the file its own name, as a whole
 *            one. Should the close fail it gets its own name at once, and is not whole.
 * Guarantee. Every rank opens the file in the same way, or gets the same error. A damaged index, or a subfile that is
 *            missing or has not its size, is an error of the opening, which says so.
 */
#ifndef MPIOX_SUBFILES_JOB_H
#define MPIOX_SUBFILES_JOB_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"
#include "mpiox_hints.h"

typedef struct mpiox_subfiles_writer
    mpiox_subfiles_writer; /* rank 0's: it has the file open; the index is to be made whole */

/* What rank 0 tells the others. Plain data. */
typedef struct mpiox_subfiles_job {
    bool is;           /* the file is stored as several */
    bool made;         /* it was made for this opening */
    bool late;         /* it is looked for once delegates run, or made once the number of nodes is known */
    uint64_t id;       /* of the file, where it is one */
    mpiox_error error; /* it cannot be opened */
} mpiox_subfiles_job;

typedef struct mpiox_subfiles_job_opening {
    const char *filename; /* the program's */
    const char *path;     /* that is opened: its staging name, or without a prefix; NULL: POSIX calls reach none */
    bool prefixed;        /* it has one */
    int amode;
    const mpiox_hints *hints;
    bool wanted;         /* the file is to be taken over */
    const char *why_not; /* else: why not */
    const char *staging; /* the staging name by which it is opened; NULL: it has its own */
    int32_t parts;       /* > 0: it is to be made by that name, for so many delegates */
} mpiox_subfiles_job_opening;

/* Is a file that is made to be stored as several? A scratch file is stored nowhere. */
bool mpiox_subfiles_job_are_asked_for(const mpiox_hints *hints);
/* Rank 0: is it stored as several, or shall it be? Local, blocking. nodes: of the ranks; 0: not known. *writer: to be
 * given to mpiox_subfiles_job_end(). */
mpiox_subfiles_job mpiox_subfiles_job_begin(const mpiox_subfiles_job_opening *opening, int nodes,
                                            mpiox_subfiles_writer **writer);
/* Where `late`: the same. Collective over comm. False: MPI has failed. */
bool mpiox_subfiles_job_start(MPI_Comm comm, const mpiox_subfiles_job_opening *opening, mpiox_subfiles_job *subfiles,
                              mpiox_subfiles_writer **writer);
/* Rank 0: nothing is left in it of what a job before may have left unfinished. Local; NULL-safe. */
void mpiox_subfiles_job_emptied(mpiox_subfiles_writer *writer);
/* Rank 0: all that was written is on stable storage, and what the close does shall be. Local; NULL-safe. */
void mpiox_subfiles_job_synced(mpiox_subfiles_writer *writer);
/* Rank 0, after all ranks have closed it, or could not open it: `whole`, what was written is in the subfiles. Local,
 * blocking; NULL-safe; 0 or MPIOX_E_IO. `writer` is freed. */
int mpiox_subfiles_job_end(mpiox_subfiles_writer *writer, bool whole, mpiox_error *error);
/* The same, and the file goes, unless its name is gone, or another file has it by now. */
int mpiox_subfiles_job_delete(mpiox_subfiles_writer *writer, mpiox_error *error);
/* Rank 0: no delegate serves the file that was made by its staging name; it gets its own, being written. Local. */
void mpiox_subfiles_job_reveal(mpiox_subfiles_writer *writer);
/* A file in memory that begins as a file that is stored as several does, for who looks past MPI for its format. Its
 * descriptor, to be closed; -1: it is not stored so, or cannot be read. Local, blocking. */
int mpiox_subfiles_job_beginning(const char *path);
/* Remove a file that is stored as several. 0 or an errno; EILSEQ: it is not. */
int mpiox_subfiles_job_remove(const char *path);
/* Wait until this client of the file system sees the index that rank 0 has opened or made, at most three seconds: names
 * and attributes that it has cached may be of a file that was here before. Local, blocking. */
void mpiox_subfiles_job_await(const char *path, const mpiox_subfiles_job *subfiles);
/* Not all ranks have opened the index: is that because it is no longer there, or another? Collective. */
bool mpiox_subfiles_job_have_gone(MPI_Comm comm, const char *path, const mpiox_subfiles_job *subfiles);
/* Of a file that is the MPI library's: have all ranks opened it, and is it an index by now? Collective. */
bool mpiox_subfiles_job_have_come(MPI_Comm comm, const char *path, bool opened);
/* Why a rank could not open it: the first subfile that is in its way. */
void mpiox_subfiles_job_explain(const char *path, int amode, mpiox_error *error);

#endif
