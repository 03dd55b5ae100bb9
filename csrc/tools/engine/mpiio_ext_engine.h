/*
 * mpiio_ext_engine.h - the generation engine: carries out the operations of one rank, with their slack times.
 *
 * Problem.   Any number of processes have to make real I/O from a workload path, in the order and at the pace of the
 *            path (He, Du, Narasimhamurthy, "PIONEER", section V-E).
 * Algorithm. Python has made a plan of the path for this rank: names, offsets and communicators are its own already.
 *            One pass: sleep for the slack time, make the call, record its start, duration and result. A sleep ends
 *            late, by 50 us of the kernel's timer slack and by the way back onto a core. The engine switches the timer
 *            slack off for the calling thread. It measures the way back onto a core before the first call, and ends
 *            every sleep that much earlier. For the rest of the time it spins, or yields if ranks share cores. Before a
 *            rank changes anything that others use, all ranks meet. The calls are the public ones (MPI_File_*, open,
 *            fopen ...), so that every library under a program is under this one as well: the extension, a tracer,
 *            Darshan.
 * Data.      Byte k of written data is (place + k) modulo 251 plus 1: a file shows whether its bytes are at their
 *            places, and two ranks that write the same place through plain views write the same.
 * Guarantee. A plan with an index that is out of its range is refused on all ranks before the first call; its rank gets
 *            the number of the row. A rank goes through its whole plan: it records a failed call, and leaves out calls
 *            that need its handle, or a handle of another kind. A collective with too much data is made without data,
 *            since the other ranks wait for it. As many nonblocking calls are in flight as the plan has, each read with
 *            memory of its own. Handles that are still open at the end and belong to this rank alone are closed.
 *
 * A library of its own, libmpiio_ext_engine.so, which Python loads after the MPI library. cffi reads the part between
 * the markers.
 */
#ifndef MPIIO_EXT_ENGINE_H
#define MPIIO_EXT_ENGINE_H

#include <stdint.h>

/* engine: begin */

typedef struct mpiio_ext_engine_plan {
    int64_t count;                  /* operations of this rank */
    const unsigned char *operation; /* mpiio_ext_engine_name() */
    const int32_t *file;            /* of `paths`, -1: none */
    const int32_t *slot;            /* which of its open handles, 0 .. slots - 1, -1: none */
    const int32_t *communicator;    /* of MPI_File_open: Fortran handle */
    const int32_t *flags;           /* of an open: its flags or mode; of a seek: 0 start, 1 current, 2 end; of mmap its
                                       protection, and 256 where it is private */
    const int32_t *second;          /* of `paths`: the other name of a call with two, -1: none */
    const int32_t *request;         /* of a nonblocking call: its place among `requests`; of a wait: for which one,
                                       -1: for all of its handle, or all that there are */
    const int32_t *other;           /* of mmap, munmap and msync which mapping, 0 .. mappings - 1; of a copy the handle
                                       that it goes to; -1: none */
    const int32_t *view;            /* of MPI_File_set_view: Fortran handle of the file type, whose etype is a byte */
    const int64_t *offset, *size;   /* bytes; offset -1: at the file pointer; of a view its displacement */
    const int64_t *place; /* of writes: the origin from which its bytes are counted, so that they show their place */
    const int64_t *slack; /* ns before the call */
    const int32_t *meets; /* how often all ranks meet before the call, while its slack time goes on */
    int32_t meets_after;  /* the same behind the last call */
    int32_t everybody;    /* Fortran handle: who meets */
    const char *const *paths;
    int32_t files, slots, requests, mappings;
    int32_t info;       /* Fortran handle: hints of every MPI_File_open */
    double time_scale;  /* slack times are multiplied by it */
    int64_t spin_ns;    /* that the end of a sleep is spun for; 0: none; -1: as much as sleeps are late, measured */
    int32_t cores_free; /* not 0: each rank of this node has a core; else the end of a sleep is yielded, not spun */
    int64_t most_bytes; /* that may be written and preallocated; the rest of the plan is left out */
    int64_t *start;     /* out: ns since the engine's start */
    int64_t *duration;  /* out: ns */
    int64_t spun_ns;    /* out: that the end of each sleep was spun for */
    int64_t *result;    /* out: what the call returned; INT64_MIN: it was left out */
    int32_t *error;     /* out: why it failed: errno, of MPI-IO the error class; 0: it did not; negative, the same of a
                           call that may fail: what it asks for or removes is not there, what it makes is there */
    int64_t
        standing; /* out, while the run goes on, for other threads: 4 * row, plus 0 in its call, 1 where it waits for
                           all ranks to meet before it, 2 in its slack time; row `count`: behind the last call */
    int64_t wrong_row; /* out: what is wrong with the plan is in this row, */
    const char *wrong; /* namely this (a constant); NULL: nothing is */
    void *state;       /* out: for mpiio_ext_engine_end */
    int64_t bytes_written, bytes_read, bytes_preallocated, failed, left_out; /* out; bytes read by MPI-IO: asked for */
} mpiio_ext_engine_plan;

/* Operations that the engine can make: name of number `index`, NULL behind the last one. */
const char *mpiio_ext_engine_name(int index);
/* Carry the plan out; mpiio_ext_engine_end has to follow. Blocking, collective over `everybody`. 0; else no rank has
 * made a call: -1: a rank has no memory; -2: a rank's plan is wrong, this one's if `wrong` is set. */
int mpiio_ext_engine_run(mpiio_ext_engine_plan *plan);
/* Close what the plan has left open, and free what the run has taken. Local; calls that are no calls of the path. */
void mpiio_ext_engine_end(mpiio_ext_engine_plan *plan);

/* engine: end */

#endif
