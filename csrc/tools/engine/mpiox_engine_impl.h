/* mpiox_engine_impl.h - the structs that the parts of the engine share. Private to csrc/tools/engine. */
#ifndef MPIOX_ENGINE_IMPL_H
#define MPIOX_ENGINE_IMPL_H

#include <dirent.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>

#include "mpiio_ext_engine.h"

/* Handles come as integers (mpi4py's py2f()), which the standard ABI converts by functions of its own. */
#if MPI_VERSION >= 5 && !defined(MPICH) && !defined(OPEN_MPI)
#define COMM_OF(number) MPI_Comm_fromint(number)
#define INFO_OF(number) MPI_Info_fromint(number)
#define TYPE_OF(number) MPI_Type_fromint(number)
#else
#define COMM_OF(number) MPI_Comm_f2c(number)
#define INFO_OF(number) MPI_Info_f2c(number)
#define TYPE_OF(number) MPI_Type_f2c(number)
#endif

/* One open handle. */
typedef struct mpiox_engine_slot {
    int fd;              /* of POSIX */
    FILE *stream;        /* of stdio */
    DIR *folder;         /* of opendir */
    MPI_File file;       /* of MPI-IO */
    bool is_open, alone; /* alone: opened by this rank for itself */
} mpiox_engine_slot;

/* A mapping. It may last longer than its handle. */
typedef struct mpiox_engine_mapping {
    void *at;     /* NULL: nothing */
    size_t bytes; /* length of the mapping */
} mpiox_engine_mapping;

/* One nonblocking call that is under way. */
typedef struct mpiox_engine_request {
    MPI_Request request; /* of the call */
    int32_t slot;        /* of the handle that the call uses */
    int64_t bytes;       /* of `room` */
    char *room;          /* where what it reads goes to; NULL: it only writes */
} mpiox_engine_request;

typedef struct mpiox_engine {
    mpiio_ext_engine_plan *plan;    /* the caller's */
    mpiox_engine_slot *slots;       /* [plan->slots] */
    mpiox_engine_request *requests; /* [plan->requests] */
    mpiox_engine_mapping *mappings; /* [plan->mappings] */
    char *data, *sink;              /* the data of writes, of any place, and the buffer of reads */
    int64_t room;                   /* bytes of the longest call */
    bool muted;                     /* the call takes part in a collective, without data */
} mpiox_engine;

/* Carry out row i of the plan. Returns the call's result; *failed is set if the call failed. */
typedef int64_t mpiox_engine_call(mpiox_engine *engine, int64_t i, bool *failed);

/* The object of a call. A call on a descriptor may also use that of a stream. */
typedef enum mpiox_engine_handle { DESCRIPTOR, STREAM, FOLDER, FILE_OF_MPI } mpiox_engine_handle;

typedef struct mpiox_engine_operation {
    const char *name;        /* as in the table */
    mpiox_engine_call *call; /* carries it out */
    /* what the call does or needs; two_names: `second` is a name, too */
    bool opens, needs_handle, collective, writes, reads, two_names, preallocates;
    bool maps, copies;          /* `other` is a mapping; is another handle, which is open */
    bool named, starts;         /* needs its file's name, without a handle; begins a nonblocking call */
    mpiox_engine_handle handle; /* that it needs */
} mpiox_engine_operation;

enum { MPIOX_ENGINE_PATTERN = 251 };

/* The tables, each ended by a name of NULL. */
extern const mpiox_engine_operation mpiox_engine_posix[], mpiox_engine_stdio[], mpiox_engine_mpiio[];

static inline mpiox_engine_slot *mpiox_engine_slot_of(const mpiox_engine *engine, int64_t i)
{
    return &engine->slots[engine->plan->slot[i]];
}

static inline const char *mpiox_engine_path_of(const mpiox_engine *engine, int64_t i)
{
    return engine->plan->paths[engine->plan->file[i]];
}

static inline const char *mpiox_engine_second_of(const mpiox_engine *engine, int64_t i)
{
    return engine->plan->paths[engine->plan->second[i]];
}

/* The data of row i's write. */
static inline char *mpiox_engine_data_of(const mpiox_engine *engine, int64_t i)
{
    const int64_t place = engine->plan->place[i];
    return engine->data + (place > 0 ? place % MPIOX_ENGINE_PATTERN : 0);
}

/* Wait for a nonblocking call, if one is under way there. Returns what MPI_Wait has returned. */
static inline int mpiox_engine_wait(mpiox_engine_request *at)
{
    at->slot = -1;
    return at->request != MPI_REQUEST_NULL ? MPI_Wait(&at->request, MPI_STATUS_IGNORE) : MPI_SUCCESS;
}

/* The same for all of a handle; -1: for all that there are. Returns the last error. */
static inline int mpiox_engine_wait_for_slot(const mpiox_engine *engine, int32_t slot)
{
    int result = MPI_SUCCESS;
    for (int32_t k = 0; k < engine->plan->requests; k++) {
        mpiox_engine_request *at = &engine->requests[k];
        const int one = slot < 0 || at->slot == slot ? mpiox_engine_wait(at) : MPI_SUCCESS;
        result = one != MPI_SUCCESS ? one : result;
    }
    return result;
}

#endif
