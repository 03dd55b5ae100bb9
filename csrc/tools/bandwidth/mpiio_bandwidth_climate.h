/*
 * mpiio_bandwidth_climate.h - the patterns climate_tiny, climate_long and climate_mixed of mpiio_bandwidth.c.
 */
#ifndef MPIIO_BANDWIDTH_CLIMATE_H
#define MPIIO_BANDWIDTH_CLIMATE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* A number without order: everything here that looks random is a function of it, and so the same on every rank. */
static inline uint64_t bandwidth_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The data that a rank flushes. */
typedef struct climate_flush {
    const char *pattern; /* name of the pattern */
    int64_t bytes;       /* of the file, about */
    int64_t apart;  /* bytes between a rank's parts of variables in memory, the last one first; 0: one piece in order */
    int64_t room;   /* of the memory, as climate_types() returned it; 0 before */
    int rank, size; /* of the communicator */
} climate_flush;

bool climate_is(const char *pattern);

/* Calls visit(context, file offset, place in memory, length) for every piece of the rank, in the order of the file;
 * all in bytes. False: out of memory. */
bool climate_each(const climate_flush *flush, void (*visit)(void *, int64_t, int64_t, int64_t), void *context);

/* The rank's part as datatypes, not committed but for the memory's, which is MPI_DATATYPE_NULL when it is one piece;
 * its bytes, and those of its memory. False: out of memory. */
bool climate_types(const climate_flush *flush, MPI_Datatype *filetype, MPI_Datatype *memory, int64_t *bytes,
                   int64_t *room);

#endif
