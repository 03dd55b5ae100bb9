/*
 * mpiox_handle_resolution_handles.h - the objects behind the handles of a rank: descriptors, streams, files of MPI,
 * requests.
 *
 * Algorithm. Open addressing in a table whose room is a power of two; duplicates of a handle share one description.
 * Guarantee. Memory grows with the handles that are open at a time.
 */
#ifndef MPIOX_HANDLE_RESOLUTION_HANDLES_H
#define MPIOX_HANDLE_RESOLUTION_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

/* Kinds of handles: the layers' own (enum mpiox_trace_layer), and these. */
enum { MPIOX_SPACE_ADDRESS = 8, MPIOX_SPACE_REQUEST, MPIOX_SPACE_MAPPING };

/* The object of a handle. Duplicates share it. */
typedef struct mpiox_description {
    int32_t file;     /* -1: not known */
    int32_t handles;  /* that stand for it */
    int64_t position; /* bytes, MPIOX_UNKNOWN */
    int64_t etype;    /* bytes of the view's etype */
    int64_t session;  /* number of its open, MPIOX_UNKNOWN: there was none */
    /* of a file of MPI that was opened without a known handle: the handle; of a stream its descriptor, which it closes;
     * MPIOX_UNKNOWN */
    int64_t bound;
    bool appends, owned; /* owned: opened inside of MPI-IO */
    bool object;         /* no file: a pipe, a socket */
    bool unbound;        /* its handle is not known yet */
} mpiox_description;

typedef struct mpiox_named_handle {
    int64_t handle;        /* number in its space */
    mpiox_description *is; /* NULL: free */
    uint8_t space;         /* kind of the handle */
} mpiox_named_handle;

typedef struct mpiox_handles {
    mpiox_named_handle *entries; /* [room] by hash; owned */
    int64_t room, used;          /* entries; of them not free */
} mpiox_handles;

bool mpiox_handles_make(mpiox_handles *handles); /* false: no memory */
void mpiox_handles_free(mpiox_handles *handles);

/* Its place, or the free one where it would be. */
mpiox_named_handle *mpiox_handles_find(const mpiox_handles *handles, uint8_t space, int64_t handle);

/* The handle stands for this from now on, in place of what it stood for before: a trace may lack a close. false: no
 * memory, and nothing has changed. */
bool mpiox_handles_put(mpiox_handles *handles, uint8_t space, int64_t handle, mpiox_description *is);

/* It is closed. */
void mpiox_handles_take_out(mpiox_handles *handles, mpiox_named_handle *gone);

#endif
