/* mpiox_engine_impl.h - what the parts of the engine share. Private to csrc/engine. */
#ifndef MPIOX_ENGINE_IMPL_H
#define MPIOX_ENGINE_IMPL_H

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>

#include "mpiio_ext_engine.h"

/* One open handle. */
typedef struct mpiox_engine_slot {
    int fd;
    FILE *stream;
    MPI_File file;
    MPI_Request request; /* the last nonblocking operation that has not been waited for */
    bool is_open;
} mpiox_engine_slot;

typedef struct mpiox_engine {
    mpiio_ext_engine_plan *plan;
    mpiox_engine_slot *slots;
    char *data, *sink; /* `room` bytes each: what is written, and where to what is read goes */
    int64_t room;
    bool muted; /* the call takes part in a collective, without data */
} mpiox_engine;

/* Row i of the plan. Returns what the call returned; *failed if it says so. */
typedef int64_t mpiox_engine_call(mpiox_engine *engine, int64_t i, bool *failed);

typedef struct mpiox_engine_operation {
    const char *name;
    mpiox_engine_call *call;
    bool opens, needs_handle, collective, writes, reads;
} mpiox_engine_operation;

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

#endif
