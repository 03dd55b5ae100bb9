/*
 * mpiio_ext.h - the public C interface of libmpiio_ext.so, and the one declaration file of the Python binding.
 *
 * Everything between the two cffi markers is read by build.py, which generates the binding's source from it; that part
 * therefore uses only <stdint.h> types and opaque structs, and no preprocessor lines. MPI handles cross this interface
 * as the address of the handle (`const void *`), because their C type differs between MPI libraries.
 * Functions return 0 or a negative MPIOX_E_* code (see mpiio_ext_error_name) unless they say otherwise. None of them is
 * collective unless it says so. Pointers returned are owned by the library unless the comment says who frees them.
 */
#ifndef MPIIO_EXT_H
#define MPIIO_EXT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* cffi: begin */

/* ---- library ---- */

/* Version of the library, e.g. "0.1.0". */
const char *mpiio_ext_version(void);
/* MPI family the library was built for: "openmpi" or "mpich". */
const char *mpiio_ext_mpi_family(void);
/* 1 when this process resolves MPI_File_open to this library, else 0. */
int mpiio_ext_interposed(void);
/* A short English name for a negative result code. */
const char *mpiio_ext_error_name(int code);

/* ---- partitioning ---- */

/* Methods that cut a file region into one domain per I/O aggregator; see docs/partitioning.md. Pure: no MPI, no I/O. */
typedef struct mpiio_ext_plan mpiio_ext_plan;

/* Number of methods; name and one-line description of method `index`, or NULL when there is none. */
int mpiio_ext_partition_count(void);
const char *mpiio_ext_partition_name(int index);
const char *mpiio_ext_partition_description(int index);
/* The method that "auto" takes for a lock protocol ("local", "server", "token", "none") and a geometry; coherent: 1
 * when one page cache serves every process. *reason gets a sentence (reason may be NULL). NULL when the protocol is
 * unknown or the geometry bad. */
const char *mpiio_ext_partition_choose(const char *lock, int coherent, int64_t start, int64_t end,
                                       int64_t stripe_size, int32_t servers, int32_t aggregators,
                                       const char **reason);

/* Plan the half-open byte region [start, end). MPIOX_E_ARG (-2) for an unknown method or a bad geometry: see the limits
 * in docs/partitioning.md. Free with mpiio_ext_plan_free() (NULL-safe). */
int mpiio_ext_plan_create(const char *method, int64_t start, int64_t end, int64_t stripe_size, int32_t servers,
                          int32_t aggregators, mpiio_ext_plan **plan);
void mpiio_ext_plan_free(mpiio_ext_plan *plan);
/* Aggregators after the method's adjustment; domains of the others are empty. */
int32_t mpiio_ext_plan_aggregators_used(const mpiio_ext_plan *plan);
/* Number of stripe sets of an aggregator's domain; up to max_sets of them are stored in sets, four numbers each:
 * offset, length, stride (bytes), count. Negative: MPIOX_E_ARG. */
int64_t mpiio_ext_plan_sets(const mpiio_ext_plan *plan, int32_t aggregator, int64_t *sets, int64_t max_sets);
/* owners[i] = aggregator that owns the byte at offsets[i], or -1 outside the region. */
void mpiio_ext_plan_owners(const mpiio_ext_plan *plan, const int64_t *offsets, int64_t n, int32_t *owners);
/* Number of extents (clipped pieces of the sets, in the domain's order); up to max_extents are stored, two numbers
 * each: offset, length. Negative: MPIOX_E_ARG. */
int64_t mpiio_ext_plan_extents(const mpiio_ext_plan *plan, int32_t aggregator, int64_t *extents, int64_t max_extents);
/* Number of windows in which the domain is worked off with buffers of window_bytes. Negative: MPIOX_E_ARG. */
int64_t mpiio_ext_plan_window_count(const mpiio_ext_plan *plan, int32_t aggregator, int64_t window_bytes);
/* Most extents that any window has. Negative: MPIOX_E_ARG. */
int64_t mpiio_ext_plan_window_extents_max(const mpiio_ext_plan *plan, int64_t window_bytes);
/* Extents of window `index` as above; their number, 0 behind the last window, MPIOX_E_FULL (-7) when max_extents is
 * too small. */
int64_t mpiio_ext_plan_window(const mpiio_ext_plan *plan, int32_t aggregator, int64_t window_bytes, int64_t index,
                              int64_t *extents, int64_t max_extents);

/* ---- hints ---- */

/* ---- statistics ---- */

/* ---- access descriptions ---- */

/* cffi: end */

#ifdef __cplusplus
}
#endif

#endif
