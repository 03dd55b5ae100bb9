/*
 * mpiox_opener.h - the ways in which a file can be opened, each a table of functions.
 *
 * Problem.   A file may have another name until all of it is written, be stored as several, or be made with a striping.
 *            Each way reaches from before MPI_File_open to the close, on rank 0 and on all ranks, and ways combine.
 * Algorithm. An opener is one way (the drivers of PnetCDF are alike). mpiox_mpi_open.c walks mpiox_openers in order:
 *            rank 0 decides, and tells the others all of it at once; what rank 0 cannot do alone is started by all;
 *            the MPI library opens the file by the name that came of it; then each opener learns what came of it, or
 *            is told to abandon the file. The first error that one meets ends the walk, on all ranks.
 * Guarantee. Every rank opens the file in the same way, or gets an error. What was made for an opening that fails is
 *            taken away. A hook may be NULL: then there is nothing to do.
 */
#ifndef MPIOX_OPENER_H
#define MPIOX_OPENER_H

#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"
#include "mpiox_hints.h"

enum { MPIOX_OPENERS = 4 };

/* What rank 0 tells the others. Plain data. */
typedef struct mpiox_told {
    bool hidden;       /* it is opened by another name than its own, until all of it is written; */
    bool unwritten;    /* it keeps that name, and is never written */
    bool held;         /* delegates have bytes of it, which they keep until all ranks have opened it */
    bool made;         /* it was made for this opening: MPI_MODE_EXCL is done, and would refuse it */
    bool striped;      /* with the hints' striping */
    bool container;    /* it is stored as several: the MPI library opens the index, and gets no access */
    bool is_there;     /* MPI_MODE_EXCL will refuse the file, and must not delete it */
    bool looks;        /* it may be a container, or none, when it is opened: it is looked at again */
    bool late;         /* the first opener that has not decided has to be started by all ranks, as those after it; */
    int32_t decided;   /* so many have decided */
    int32_t unnamed;   /* errno: why it has its own name, where it should have had another; 0: not so */
    int32_t parts;     /* > 0: it is still to be made by its hidden name, as a container, for so many delegates */
    uint64_t device;   /* > 0: what was made by its hidden name: the path may lead to another folder by now. Not of a */
    uint64_t inode;    /* container, */
    uint64_t id;       /* which has this number */
    mpiox_error error; /* it cannot be opened */
} mpiox_told;

typedef struct mpiox_opening {
    MPI_Comm comm;
    int rank, amode;
    const char *filename;                         /* the program's */
    const char *bare;                             /* without a file-system prefix; NULL: POSIX calls do not reach it */
    const char *(*path_of)(const char *filename); /* by which POSIX calls know the file now; NULL: not known */
    bool prefixed;                                /* the name has a file-system prefix */
    const mpiox_hints *hints;
    bool wanted;         /* the file is to be taken over; */
    const char *why_not; /* else: why not; later: why it is not, or why accesses do not go `through`; NULL: no reason */
    mpiox_told *told;
    const char *name; /* by which it is opened: the program's, or one that lies in `room`; the same on all ranks */
    char room[PATH_MAX];
    void *state[MPIOX_OPENERS]; /* of each opener, on rank 0; else NULL */
    /* Once the MPI library has opened it, or has failed to: */
    bool opened, all_opened; /* on this rank, and on all of them */
    const char *found;       /* the path of what was opened; NULL: not known */
    struct mpiox_file *file; /* this library carries out accesses; NULL: it does not. On all ranks or on none: */
    struct mpiox_forwarded *through; /* delegates, by which accesses go; NULL: they do not */
} mpiox_opening;

/* By which POSIX calls know it now, as the name or by all of it; NULL: not at all, or not known. */
static inline const char *mpiox_opening_path(const mpiox_opening *opening)
{
    return opening->bare != NULL ? opening->path_of(opening->filename) : NULL;
}

/* It was made by its hidden name, and is not there for some rank that came later: its folder was renamed. */
static inline bool mpiox_opening_is_partial(const mpiox_opening *opening)
{
    return opening->told->hidden && opening->told->made && !opening->all_opened;
}

typedef struct mpiox_opener {
    /* Is a file that is made to be this opener's container? NULL: never. Local. */
    bool (*stores)(const mpiox_hints *hints);
    /* Rank 0: look for the file, or make it. Local, blocking. False: all ranks have to start() it. */
    bool (*decide)(mpiox_opening *opening, void **state);
    /* The same by all ranks, also where one before it was late; rank 0 tells them then. Collective. False: MPI has
     * failed. */
    bool (*start)(mpiox_opening *opening, void **state);
    /* Before it is opened: this rank finds what rank 0 has told of. Local, blocking. */
    void (*follow)(mpiox_opening *opening);
    /* It was opened, or not: is it something else than rank 0 has told of? Collective. */
    bool (*has_changed)(mpiox_opening *opening);
    /* This library carries out accesses (`file`): they go `through` delegates, or not, for the reason why_not.
     * Collective. */
    void (*attach)(mpiox_opening *opening);
    /* All ranks are to keep it. Collective; 0, or an *error on all ranks: then it is to be closed again, and *abandoned
     * says that nothing else was done, so that abandon() has to follow. */
    int (*keep)(mpiox_opening *opening, void **state, bool *abandoned, mpiox_error *error);
    /* It is not opened, or something else was: what was made goes. Collective. */
    void (*abandon)(mpiox_opening *opening, void **state);

    /* MPI_File_delete of a file: what is not in the file system yet is not written any more. Returns the name by which
     * it is there, in `room`; NULL: its own. Local, blocking. */
    const char *(*discard)(const char *path, char room[PATH_MAX], void **held);
    /* It has gone by that name; NULL: it has not, or had its own. */
    void (*discarded)(const char *name, void *held);

    /* For who looks past MPI: the file has its own name, and all that is closed is in it, also where it was never to be
     * written, which a line tells. Not where others of the job have it open for too long. False: delegates have bytes
     * of it. Local, blocking. */
    bool (*await)(const char *path);

    /* Of a file whose accesses go through delegates, which are NULL for others. */

    /* All ranks close it: all that was written is in the file, or stays with the delegates behind the close.
     * Collective, blocking; 0, or the same *error on all ranks. Its counters can be read until release(). */
    int (*detach)(struct mpiox_forwarded *through, mpiox_error *error);
    void (*release)(struct mpiox_forwarded *through); /* local */

    /* Of a file that the MPI library has no access to. `state`: rank 0's, else NULL. Local. */

    /* All ranks have closed it. fine: what was written is in it. Frees `state`; 0 or MPIOX_E_IO. NULL: it has none of
     * the kind. */
    int (*close)(void *state, int amode, bool fine, mpiox_error *error);
    void (*synced)(void *state);  /* all that was written is on stable storage */
    void (*emptied)(void *state); /* nothing is left in it of what a job before may have left unfinished */
    /* What the file is, into an info object: so many parts, with units of so many bytes; 0 parts: not this way. */
    void (*to_info)(MPI_Info info, int32_t parts, int64_t unit);
    /* Why a view cannot be set, why an access cannot be carried out, and what becomes of a file that nobody closes. */
    const char *no_view, *no_access, *unclosed;
} mpiox_opener;

extern const mpiox_opener mpiox_delegated_opener;
/* In the order in which they decide. */
extern const mpiox_opener *const mpiox_openers[MPIOX_OPENERS];

/* ---- the walks, in this order; the functions of these names of each opener --------------------------------------- */

bool mpiox_opener_stores(const mpiox_hints *hints);
void mpiox_opener_decide(mpiox_opening *opening);
/* start(), where one was late, then follow(). Collective. False: MPI has failed. */
bool mpiox_opener_start(mpiox_opening *opening);
bool mpiox_opener_has_changed(mpiox_opening *opening);
int mpiox_opener_keep(mpiox_opening *opening, mpiox_error *error, bool *abandoned);
void mpiox_opener_abandon(mpiox_opening *opening);
/* held: of each opener. */
const char *mpiox_opener_discard(const char *path, char room[PATH_MAX], void *held[MPIOX_OPENERS]);
void mpiox_opener_discarded(const char *name, void *held[MPIOX_OPENERS]);
bool mpiox_opener_await(const char *path);
/* Of a file that the MPI library has no access to: whose it is, and *state. */
const mpiox_opener *mpiox_opener_of(const mpiox_opening *opening, void **state);
/* of: whose file it is, or NULL. */
void mpiox_opener_to_info(const mpiox_opener *of, MPI_Info info, int32_t parts, int64_t unit);

#endif
