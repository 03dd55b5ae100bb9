/*
 * mpiox_partition.h - the owner of each stripe of a collective's access region: pure planners.
 *
 * No MPI, no I/O, local: geometry in, file domains out. Offsets and lengths are bytes. A domain is a list of strided
 * stripe sets, so that a plan's size depends on the number of aggregators and servers, never on the number of stripes.
 * Source: [SDCI] Northwestern University and Argonne National Laboratory, "NSF SDCI: Scalable I/O Optimizations for
 * Peta-scale Systems", text and Figure 2. [SC08] Liao and Choudhary, "Dynamically adapting file domain partitioning
 * methods for collective I/O based on underlying parallel file system locking protocols".
 *
 * With stripe index s (absolute in the file, s = offset / stripe_size), S servers (server of s = s mod S),
 * A aggregators, N stripes touched by the region:
 *   even          bytes of the region in A equal contiguous parts (the remainder one byte each to the first)
 *   aligned       as even, each boundary moved to the nearest stripe boundary
 *   static_cyclic s mod A, whatever the region
 *   group_cyclic  A >= S: A is lowered to a multiple of S; A/S groups of S; the region in A/S contiguous stripe-aligned
 *                 sub-regions; in sub-region g: g*S + s mod S. A < S: A lowered to a factor of S, one group: s mod A
 *   transpose     the region's stripes sorted by (server, row), cut in A consecutive parts, remainder to the first
 */
#ifndef MPIOX_PARTITION_H
#define MPIOX_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"

/* Limits of a geometry: sums of two offsets never overflow, and a typing error cannot request terabytes of plan. */
#define MPIOX_PARTITION_MAX_OFFSET (INT64_C(1) << 62)  /* largest end and largest stripe_size, bytes */
#define MPIOX_PARTITION_MAX_PARTIES (INT32_C(1) << 24) /* largest servers and largest aggregators */

typedef struct mpiox_geometry {
    int64_t start, end;  /* half-open access region, bytes; 0 <= start <= end <= MPIOX_PARTITION_MAX_OFFSET */
    int64_t stripe_size; /* bytes, 1 .. MPIOX_PARTITION_MAX_OFFSET */
    int32_t servers;     /* 1 .. MPIOX_PARTITION_MAX_PARTIES */
    int32_t aggregators; /* 1 .. MPIOX_PARTITION_MAX_PARTIES */
} mpiox_geometry;

/* `count` pieces of `length` bytes, the first at `offset`, one every `stride` bytes (whole stripes; the geometry's
 * region clips them: only a set's first and last piece can be cut, and no piece is clipped away entirely). Ascending
 * offsets inside a set; stride == 0 when count == 1, stride > length otherwise (neighbouring stripes are merged). */
typedef struct mpiox_stripe_set {
    int64_t offset, length, stride, count;
} mpiox_stripe_set;

typedef struct mpiox_domain {
    int64_t n_sets;               /* 0: the aggregator has no byte of the region */
    const mpiox_stripe_set *sets; /* owned by the plan; in the order in which the aggregator processes them */
} mpiox_domain;

typedef struct mpiox_partition_method mpiox_partition_method;

typedef struct mpiox_plan {
    mpiox_geometry geometry;              /* the region, and between whom it is divided */
    int32_t aggregators_used;             /* after the method's adjustment; domains of the rest are empty */
    mpiox_domain *domains;                /* geometry.aggregators of them */
    const mpiox_partition_method *method; /* borrowed: static */
    struct mpiox_plan_store *store;       /* private: memory of the sets, prepared window numbers */
} mpiox_plan;

typedef struct mpiox_extent {
    int64_t offset, length; /* bytes; half-open [offset, offset + length) */
} mpiox_extent;

typedef struct mpiox_interval {
    int64_t first, last; /* half-open [first, last); bytes, or numbers of windows or rounds */
} mpiox_interval;

/* A method: one C file, one line in mpiox_partition_registry.c (see mpiox_plan_build.h for what plan() may use).
 * adjust(): how many of the aggregators it uses, whatever the region; NULL = all of them.
 * plan(): pure; adds the sets of every aggregator's domain (region not empty); 0 or MPIOX_E_NOMEM.
 * owner(): the aggregator whose domain contains the byte at `offset`, start <= offset < end; must agree with plan(). */
struct mpiox_partition_method {
    const char *name;        /* as in the hint mpiox_partition */
    const char *description; /* one line, for --help and docs */
    int32_t (*adjust)(const mpiox_geometry *geometry);
    int (*plan)(const mpiox_geometry *geometry, mpiox_plan *plan);
    int32_t (*owner)(const mpiox_plan *plan, int64_t offset);
    /* True: every assignment of the domains to the aggregators costs the file's servers the same, and the domains do
     * not share places. NULL: false. */
    bool (*any_owner)(const mpiox_plan *plan);
};

int mpiox_partition_count(void);                                      /* number of methods, "auto" not counted */
const mpiox_partition_method *mpiox_partition_get(int index);         /* NULL when out of range */
const mpiox_partition_method *mpiox_partition_find(const char *name); /* NULL when unknown */

bool mpiox_geometry_is_valid(const mpiox_geometry *geometry); /* inside the limits above */

/* MPIOX_E_ARG for a bad geometry or no method. *out is freed with mpiox_plan_free(). */
int mpiox_plan_create(const mpiox_partition_method *method, const mpiox_geometry *geometry, mpiox_plan **out);
void mpiox_plan_free(mpiox_plan *plan); /* NULL-safe */

/* Windows: aggregator a's domain is processed in rounds of at most window_bytes. Cuts never depend on the clipping:
 * a contiguous set (count == 1) is cut at file offsets that are multiples of window_bytes; a strided set takes
 * max(1, window_bytes / stripe_size) whole stripes a window, and stripes larger than window_bytes are cut at multiples
 * of window_bytes counted from the start of the stripe. No window contains stripes of two sets. Windows that the region
 * clips away have no number. Windows follow the order of the sets and ascend inside a set. O(1) look-up per set, or
 * O(log sets) once prepared. window_bytes: 1 .. MPIOX_PARTITION_MAX_OFFSET. Negative results are MPIOX_E_*. */
int64_t mpiox_plan_windows(const mpiox_plan *plan, int aggregator, int64_t window_bytes); /* number of windows */
/* Extents of window `index`, clipped to the region, ascending, neighbours merged; returns their number (0 if there are
 * fewer windows), or MPIOX_E_FULL when more than max, MPIOX_E_ARG for index < 0 or no such aggregator.
 * mpiox_plan_window_extents_max() returns the largest max that is needed. */
int64_t mpiox_plan_window(const mpiox_plan *plan, int aggregator, int64_t window_bytes, int64_t index,
                          mpiox_extent *extents, int64_t max);
int64_t mpiox_plan_window_extents_max(const mpiox_plan *plan, int64_t window_bytes);
/* Those windows of the domain that include all windows with some of the bytes in its set number `set`. Returns 1, or 0
 * if there are none. O(1) once prepared. */
int mpiox_plan_windows_between(const mpiox_plan *plan, int aggregator, int64_t window_bytes, int64_t set,
                               mpiox_interval bytes, mpiox_interval *windows);
/* Optional: number the windows of every set once, for plans whose domains have many sets (transpose over many servers).
 * Later look-ups with the same window_bytes search instead of scanning the sets; results are the same. 0, MPIOX_E_ARG
 * or MPIOX_E_NOMEM. Not to be called while another thread uses the plan. */
int mpiox_plan_prepare(mpiox_plan *plan, int64_t window_bytes);

/* All sets of all domains in one array, aggregator by aggregator. Returns their number; the plan owns them. O(1). */
int64_t mpiox_plan_flat(const mpiox_plan *plan, const mpiox_stripe_set **sets);
/* For each of geometry.aggregators: the bytes of its domain, clipped to the region, and the number of different servers
 * that store them. 0 or MPIOX_E_NOMEM. */
int mpiox_plan_totals(const mpiox_plan *plan, int64_t *bytes, int32_t *servers);

/* Owner of the byte at `offset` (inside the region), or -1 outside. O(1) arithmetic; O(log aggregators) for aligned. */
int32_t mpiox_plan_owner(const mpiox_plan *plan, int64_t offset);

#endif
