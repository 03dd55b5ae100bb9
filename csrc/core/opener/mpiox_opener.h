/*
 * mpiox_opener.h - the ways in which a file can be opened, each a table of functions.
 *
 * Problem.   A file may have a hidden name until all of it is written, be stored as several files, or be created with a
 *            striping. Each way has work to do from before MPI_File_open to the close, on rank 0 and on all ranks, and
 *            one file may need several ways.
 * Algorithm. An opener is one way (like a driver of PnetCDF). mpiox_mpi_open.c calls the openers in the order of
 *            mpiox_openers. Rank 0 decides, and broadcasts its mpiox_decision once; then all ranks start the openers
 *            that need all ranks. The MPI library opens the file under the name in force. Each opener attaches the
 *            file, and keeps or abandons it. The first error ends the walk on all ranks.
 * Guarantee. Every rank opens the file in the same way, or gets an error. If an opening fails, the openers remove what
 *            they created for it. If an opener has no work in one of the functions, its pointer there is NULL.
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

/* The openers of rank 0 fill the decision in, and rank 0 broadcasts it. Plain data. */
typedef struct mpiox_decision {
    bool hidden;       /* the file is opened under a hidden name, which it has until all of it is written */
    bool held;         /* delegates have bytes of the file, and keep them until all ranks have opened the file */
    bool made;         /* rank 0 created the file for this opening: MPI_MODE_EXCL is done, and would refuse the file */
    bool striped;      /* rank 0 created the file with the hints' striping */
    bool container;    /* the file is stored as several: the MPI library opens the index, and gets no access */
    bool is_there;     /* MPI_MODE_EXCL will refuse the file, and must not delete the file */
    bool recheck;      /* until the opening, the file may become a container or a plain file: each rank checks again */
    bool late;         /* all ranks have to start the opener with the number `decided`, and all openers after it */
    int32_t decided;   /* number of openers that have decided */
    int32_t unnamed;   /* errno: why the file could not get a hidden name, and has its own; 0: no failure */
    int32_t parts;     /* > 0: rank 0 still has to create a container with a hidden name, for so many delegates */
    uint64_t device;   /* device and inode of the file that rank 0 created under a hidden name: the path may lead to */
    uint64_t inode;    /* another folder by now. 0: rank 0 created no such file, or a container */
    uint64_t id;       /* the number in the index of the container that rank 0 created; 0: no container */
    mpiox_error error; /* why the file cannot be opened */
} mpiox_decision;

typedef struct mpiox_opening {
    MPI_Comm comm;
    int rank, amode;
    const char *filename;                         /* the name that the program gives */
    const char *bare;                             /* without a file-system prefix; NULL: POSIX calls do not reach it */
    const char *(*path_of)(const char *filename); /* the file's present path for POSIX calls; NULL: not known */
    bool prefixed;                                /* the name has a file-system prefix */
    const mpiox_hints *hints;
    bool wanted;         /* this library is to carry out the file's accesses */
    const char *why_not; /* why this library does not, or why accesses do not go `through` delegates; NULL: no reason */
    mpiox_decision *decision;
    const char *name; /* the name in force: the program's, or a name in `room`; the same on all ranks */
    char room[PATH_MAX];
    void *state[MPIOX_OPENERS]; /* one for each opener, on rank 0; NULL on the other ranks */
    /* Once the MPI library has opened the file, or has failed to: */
    bool opened, all_opened;         /* on this rank; on all ranks */
    const char *found;               /* the path of the file that was opened; NULL: not known */
    struct mpiox_file *file;         /* NULL: this library does not carry out accesses */
    struct mpiox_forwarded *through; /* the delegates that serve accesses, or NULL; on all ranks or on none */
} mpiox_opening;

/* The path of the file for POSIX calls; NULL: the file has no such path, or its path is not known. */
static inline const char *mpiox_opening_path(const mpiox_opening *opening)
{
    return opening->bare != NULL ? opening->path_of(opening->filename) : NULL;
}

/* Rank 0 created the file under its hidden name, and a rank that opened the file later did not find it: somebody has
 * renamed the folder. */
static inline bool mpiox_opening_is_partial(const mpiox_opening *opening)
{
    return opening->decision->hidden && opening->decision->made && !opening->all_opened;
}

typedef struct mpiox_opener {
    /* Will this opener make a container of a file that is created with these hints? NULL: never. Local. */
    bool (*stores)(const mpiox_hints *hints);
    /* Rank 0 searches for the file, or creates it. Local, blocking. False: all ranks have to call start(). */
    bool (*decide)(mpiox_opening *opening, void **state);
    /* All ranks decide together, also if an opener before this one was late; rank 0 broadcasts its decision afterwards.
     * Collective. False: MPI has failed. */
    bool (*start)(mpiox_opening *opening, void **state);
    /* Before the file is opened, this rank finds the file that rank 0 has decided on. Local, blocking. */
    void (*follow)(mpiox_opening *opening);
    /* After the MPI library has opened the file, or failed to: is it another file than rank 0 found? Collective. */
    bool (*has_changed)(mpiox_opening *opening);
    /* This library carries out accesses (`file`): set `through` if they go through delegates, else why_not.
     * Collective. */
    void (*attach)(mpiox_opening *opening);
    /* All ranks keep the file. Collective; 0, or an *error on all ranks: then the caller closes the file again, and
     * calls abandon(), too, if *abandoned is set. */
    int (*keep)(mpiox_opening *opening, void **state, bool *abandoned, mpiox_error *error);
    /* The opening has failed, or has opened another file: remove the files that it created. Collective. */
    void (*abandon)(mpiox_opening *opening, void **state);

    /* For MPI_File_delete: discard bytes that are not in the file system yet. Returns the file's hidden name, in
     * `room`, or NULL if the file has its own name. Local, blocking. */
    const char *(*discard)(const char *path, char room[PATH_MAX], void **held);
    /* The file with that hidden name was deleted; NULL: the file had its own name, or was not deleted. */
    void (*discarded)(const char *name, void *held);

    /* For calls past MPI: wait until the file has its own name and contains all bytes that were closed. If other
     * processes of the job have the file open, the wait is limited. False: delegates still have bytes of the file.
     * Local, blocking. */
    bool (*await)(const char *path);

    /* detach() and release() serve files whose accesses go through delegates; an opener without delegates has NULL. */

    /* All ranks close the file: its bytes are in the file, or stay with delegates that write behind the close.
     * Collective, blocking; 0, or the same *error on all ranks. The counters can be read until release(). */
    int (*detach)(struct mpiox_forwarded *through, mpiox_error *error);
    void (*release)(struct mpiox_forwarded *through); /* local */

    /* The rest serves a file that the MPI library has no access to. `state`: rank 0's, else NULL. Local. */

    /* All ranks have closed the file. fine: the file contains all bytes. Frees `state`; 0 or MPIOX_E_IO. NULL: this
     * opener has no such files. */
    int (*close)(void *state, int amode, bool fine, mpiox_error *error);
    void (*synced)(void *state);  /* all bytes are on stable storage */
    void (*emptied)(void *state); /* the file has no bytes any more that an earlier job may have left unfinished */
    /* Describe the file in an info object: its number of parts, the bytes of a unit. 0 parts: it is no container. */
    void (*to_info)(MPI_Info info, int32_t parts, int64_t unit);
    /* Texts for a file of this opener: why no view can be set, why an access fails, what a missing close does. */
    const char *no_view, *no_access, *unclosed;
} mpiox_opener;

extern const mpiox_opener mpiox_delegated_opener;
/* In the order in which rank 0 calls them. */
extern const mpiox_opener *const mpiox_openers[MPIOX_OPENERS];

/* ---- the walks, in this order; each calls the function of its name in each opener ------------------------------- */

bool mpiox_opener_stores(const mpiox_hints *hints);
void mpiox_opener_decide(mpiox_opening *opening);
/* start(), if an opener was late, then follow(). Collective. False: MPI has failed. */
bool mpiox_opener_start(mpiox_opening *opening);
bool mpiox_opener_has_changed(mpiox_opening *opening);
int mpiox_opener_keep(mpiox_opening *opening, mpiox_error *error, bool *abandoned);
void mpiox_opener_abandon(mpiox_opening *opening);
/* held: one entry for each opener. */
const char *mpiox_opener_discard(const char *path, char room[PATH_MAX], void *held[MPIOX_OPENERS]);
void mpiox_opener_discarded(const char *name, void *held[MPIOX_OPENERS]);
bool mpiox_opener_await(const char *path);
/* The opener of a file that the MPI library has no access to, and its *state. */
const mpiox_opener *mpiox_opener_of(const mpiox_opening *opening, void **state);
/* of: the file's opener, or NULL. */
void mpiox_opener_to_info(const mpiox_opener *of, MPI_Info info, int32_t parts, int64_t unit);

#endif
