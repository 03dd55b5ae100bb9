/*
 * mpiio_ext.h - the public C interface of libmpiio_ext.so, and the one declaration file of the Python binding.
 *
 * Everything between the two cffi markers is read by build.py, which generates the binding's source from it; that part
 * therefore uses only <stdint.h> types, opaque and plain structs, and no preprocessor lines. MPI handles cross this
 * interface as the address of the handle (`const void *`), because their C type differs between MPI libraries.
 * Functions return 0 or a negative MPIOX_E_* code (see mpiio_ext_error_name) and are local unless stated otherwise. The
 * library owns returned pointers unless the comment names another owner.
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
/* MPI family the library was built for: "openmpi", "mpich", or "mpiabi" for the standard ABI of MPI 5. */
const char *mpiio_ext_mpi_family(void);
/* 1 when this process resolves MPI_File_open to this library, else 0. */
int mpiio_ext_interposed(void);
/* A short English name for a negative result code. */
const char *mpiio_ext_error_name(int code);

/* ---- partitioning ---- */

/* Methods that cut a file region into one domain per I/O aggregator; see docs/explanation/file-domains.md.
 * Pure: no MPI, no I/O. */
typedef struct mpiio_ext_plan mpiio_ext_plan;

/* A region of a file, and between whom it is divided. Limits: docs/explanation/file-domains.md. */
typedef struct mpiio_ext_geometry {
    int64_t start, end;  /* half-open access region, bytes */
    int64_t stripe_size; /* bytes, 1 or more */
    int32_t servers;     /* number of I/O servers that the file's stripes lie on in turn, 1 or more */
    int32_t aggregators; /* number of I/O aggregators, 1 or more */
} mpiio_ext_geometry;

/* Number of methods; name and one-line description of method `index`, or NULL when there is none. */
int mpiio_ext_partition_count(void);
const char *mpiio_ext_partition_name(int index);
const char *mpiio_ext_partition_description(int index);
/* The method that "auto" takes for a lock protocol ("local", "server", "token", "none") and a geometry; coherent: 1
 * when one page cache serves every process. *reason gets a sentence (reason may be NULL). NULL when the protocol is
 * unknown or the geometry bad. */
const char *mpiio_ext_partition_choose(const char *lock, int coherent, const mpiio_ext_geometry *geometry,
                                       const char **reason);

/* What "auto" decides from. The caller owns the texts. */
typedef struct mpiio_ext_partition_facts {
    mpiio_ext_geometry geometry; /* start == end: no access yet, a file is being opened; aggregators: at most so many */
    /* the file system */
    const char *lock;     /* who grants locks: "local", "server", "token" or "none" */
    int32_t coherent;     /* 1: one page cache serves every process; else 0 */
    int32_t stripe_known; /* 0: geometry.stripe_size is only a guess; else 1 */
    /* the job */
    int32_t write; /* 1: the access writes; 0: it reads */
    int32_t nodes; /* number of nodes that the aggregators may lie on; 0: geometry.aggregators is settled */
    int32_t nics;  /* number of cards of the fast network that each node has; 0: not known */
    /* requests of hints */
    int32_t aggregators_asked; /* cb_nodes; 0: open */
    int64_t window_asked;      /* cb_buffer_size, bytes; 0: open */
    const char *method;        /* mpiox_partition, the name of a method; NULL: open */
    int32_t stripe_size_io;    /* mpiox_stripe_size_io; 0: no, 1: yes, 2: open */
    /* the state that the file's earlier collectives left */
    const char *held;   /* name of their method; NULL: there were none */
    int64_t held_bytes; /* bytes of the region that were written under it */
} mpiio_ext_partition_facts;

/* What "auto" has decided. The texts are static. */
typedef struct mpiio_ext_partition_decision {
    const char *method;      /* name of the file-domain method */
    const char *source;      /* where the rule that chose the method comes from */
    int32_t aggregators;     /* number of aggregators */
    int32_t aggregators_use; /* number of them that have file domains after the method's own adjustment */
    int64_t window_bytes;    /* size of a collective buffer */
    int64_t alignment_bytes; /* no file domain begins inside such a unit of the file: the stripe size, or 1 */
    int32_t stripe_size_io;  /* 1: no request is larger than a stripe or crosses a stripe's end; else 0 */
} mpiio_ext_partition_decision;

/* All decisions of "auto". reason gets one line that explains them, cut off at reason_bytes (1 or more). 0;
 * MPIOX_E_ARG (-2): a name is unknown, or a number out of range; MPIOX_E_NOMEM (-1). */
int mpiio_ext_partition_decide(const mpiio_ext_partition_facts *facts, mpiio_ext_partition_decision *decision,
                               char *reason, int64_t reason_bytes);
/* The rules of "auto", in the order in which they are tried: their number; then for rule `index` its topic
 * ("aggregators", "window", "method", "again", ...), condition, choice, reason, and source. The first three are written
 * to text, one a line. 0 or MPIOX_E_ARG (-2). */
int mpiio_ext_partition_rule_count(void);
int mpiio_ext_partition_rule(int index, char *text, int64_t text_bytes, const char **reason, const char **source);

/* Plan a region. MPIOX_E_ARG (-2) for an unknown method or a bad geometry. Free with mpiio_ext_plan_free()
 * (NULL-safe). */
int mpiio_ext_plan_create(const char *method, const mpiio_ext_geometry *geometry, mpiio_ext_plan **plan);
void mpiio_ext_plan_free(mpiio_ext_plan *plan);
/* Aggregators after the method's adjustment; domains of the others are empty. */
int32_t mpiio_ext_plan_aggregators_used(const mpiio_ext_plan *plan);
/* Number of stripe sets of an aggregator's domain; up to max_sets of them are stored in sets, four numbers each:
 * offset, length, stride (bytes), count. Negative: MPIOX_E_ARG. */
int64_t mpiio_ext_plan_sets(const mpiio_ext_plan *plan, int32_t aggregator, int64_t *sets, int64_t max_sets);
/* The whole plan at once. Number of stripe sets of all domains; then all of them in the order of the aggregators, four
 * numbers each as above: those of aggregator a are rows first[a] up to, not including, first[a + 1]. sets has room for
 * the returned number, first for aggregators + 1. */
int64_t mpiio_ext_plan_set_count(const mpiio_ext_plan *plan);
void mpiio_ext_plan_flat(const mpiio_ext_plan *plan, int64_t *sets, int64_t *first);
/* For each aggregator: bytes of its domain, clipped to the region, and the number of different servers that they lie
 * on. Room for all aggregators. 0 or MPIOX_E_NOMEM (-1). */
int mpiio_ext_plan_totals(const mpiio_ext_plan *plan, int64_t *bytes, int32_t *servers);
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

/* ---- layouts of files ---- */

/* All facts of a file system about the layout of a file on its servers, with the source of each fact
 * (docs/reference/layout.md). */
typedef struct mpiio_ext_layout mpiio_ext_layout;

/* Number of facts; name, unit ("bytes", "count", "boolean", "text") and meaning of fact `index`, or NULL. */
int mpiio_ext_layout_fact_count(void);
const char *mpiio_ext_layout_fact_name(int index);
const char *mpiio_ext_layout_fact_unit(int index);
const char *mpiio_ext_layout_fact_meaning(int index);
/* Query a file, or a folder: the layout of new files in it. Hints override facts; 0 (start_iodevice: -1) means no hint,
 * and a striping_factor of -1 (all servers) overrides nothing. Blocking, as it may query servers; not for every open.
 * 0, MPIOX_E_NOMEM (-1), or MPIOX_E_IO (-3) with the reason in *sys_errno (EINVAL: neither a file nor a folder). Free
 * with mpiio_ext_layout_free() (NULL-safe). */
int mpiio_ext_layout_inspect(const char *path, int64_t striping_unit, int32_t striping_factor, int32_t start_iodevice,
                             mpiio_ext_layout **layout, int *sys_errno);
void mpiio_ext_layout_free(mpiio_ext_layout *layout);
int mpiio_ext_layout_is_folder(const mpiio_ext_layout *layout);
/* A fact as text (sizes in bytes, "true" and "false") and its source; NULL: not known. */
const char *mpiio_ext_layout_value(const mpiio_ext_layout *layout, int index);
const char *mpiio_ext_layout_source(const mpiio_ext_layout *layout, int index);
/* Parts of the file with a striping of their own (Lustre: components). Seven numbers of part `index`: start, end
 * (bytes, half open; INT64_MAX: no end), stripe size (0: not known), stripe count (0: not known, -1: all), different
 * servers (0: not known), mirror, number of named targets. Texts: pattern (0), flags (1), pool (2), "" if there is
 * none. 0 or MPIOX_E_ARG (-2); NULL. */
int mpiio_ext_layout_component_count(const mpiio_ext_layout *layout);
int mpiio_ext_layout_component(const mpiio_ext_layout *layout, int index, int64_t *numbers);
const char *mpiio_ext_layout_component_text(const mpiio_ext_layout *layout, int index, int which);
/* Name of the target that has stripe `stripe` of part `index`, e.g. an OST's number; NULL: not known. */
const char *mpiio_ext_layout_target(const mpiio_ext_layout *layout, int index, int stripe);

/* ---- hints ---- */

/* Number of hints; then, of hint `index`, its name, type ("boolean", "integer", "bytes", "choice", "text"), allowed
 * values for people, default as text and one-line description; NULL when there is none. for_speed: 1 if users set the
 * hint for speed alone, else 0. */
int mpiio_ext_hint_count(void);
const char *mpiio_ext_hint_name(int index);
const char *mpiio_ext_hint_type(int index);
const char *mpiio_ext_hint_values(int index);
const char *mpiio_ext_hint_default(int index);
const char *mpiio_ext_hint_description(int index);
int mpiio_ext_hint_for_speed(int index);
/* 0 when the hint exists (ours, or one of an MPI library that is passed on) and the value is allowed; else MPIOX_E_ARG
 * (-2) and one line that names the nearest hint or the allowed values in message. */
int mpiio_ext_hint_check(const char *name, const char *value, char *message, int64_t message_bytes);
/* The value of one of our hints in its standard form ("64k" -> "65536") into text. MPIOX_E_ARG if not allowed. */
int mpiio_ext_hint_canonical(const char *name, const char *value, char *text, int64_t text_bytes);
/* The hints that would be in force for a file of that name (NULL: of any name) opened now without MPI_Info. Values and
 * sources ("default", "/etc/romio-hints", "openmpi-mca-params.conf", "site file", "Open MPI parameter", "ROMIO_HINTS",
 * "MPI_Info", "MPICH_MPIIO_HINTS", "MPIOX_HINTS_FILE", "MPIOX_HINTS"; weakest first) by hint index; problems found in
 * files and variables, one a line. NULL when memory is exhausted; free with mpiio_ext_hints_free() (NULL-safe). */
typedef struct mpiio_ext_hints mpiio_ext_hints;
mpiio_ext_hints *mpiio_ext_hints_resolve(const char *path);
/* The hints in force for an open file, given the address of its MPI_File; NULL when the file is not known. */
mpiio_ext_hints *mpiio_ext_hints_of(const void *file);
const char *mpiio_ext_hints_value(const mpiio_ext_hints *hints, int index);
const char *mpiio_ext_hints_source(const mpiio_ext_hints *hints, int index);
const char *mpiio_ext_hints_problems(const mpiio_ext_hints *hints);
void mpiio_ext_hints_free(mpiio_ext_hints *hints);

/* ---- statistics ---- */

/* Numbers that are kept: counters first, then times. Name, unit and meaning of number `index`, or NULL. */
int mpiio_ext_stats_counter_count(void);
int mpiio_ext_stats_time_count(void);
const char *mpiio_ext_stats_name(int index);
const char *mpiio_ext_stats_unit(int index);
const char *mpiio_ext_stats_meaning(int index);
/* A copy of this rank's statistics: of an open file (address of its MPI_File), or of all files of this process so far
 * (open and closed). NULL when the file is not known or memory is exhausted; free with mpiio_ext_stats_free(). */
typedef struct mpiio_ext_stats mpiio_ext_stats;
mpiio_ext_stats *mpiio_ext_stats_of(const void *file);
mpiio_ext_stats *mpiio_ext_stats_total(void);
int64_t mpiio_ext_stats_counter(const mpiio_ext_stats *stats, int index); /* index 0 .. counters-1 */
double mpiio_ext_stats_time(const mpiio_ext_stats *stats, int index);     /* seconds; index 0 .. times-1 */
/* Requests of [2^power, 2^(power+1)) bytes; 0 for a power out of range. */
int64_t mpiio_ext_stats_requests(const mpiio_ext_stats *stats, int power);
/* The method of the last collective that had file domains, and why the last collective was carried out as it was. */
const char *mpiio_ext_stats_partition(const mpiio_ext_stats *stats);
const char *mpiio_ext_stats_reason(const mpiio_ext_stats *stats);
/* The same of the last collective that wrote (write: 1) or read (0): its method ("": no file domains, or there was
 * none), why ("": there was none), and 1 where no request was larger than a stripe. */
const char *mpiio_ext_stats_way_partition(const mpiio_ext_stats *stats, int write);
const char *mpiio_ext_stats_way_reason(const mpiio_ext_stats *stats, int write);
int mpiio_ext_stats_way_stripe_size_io(const mpiio_ext_stats *stats, int write);
/* Which delegates, or why there are none; "": none were asked for. */
const char *mpiio_ext_stats_delegation(const mpiio_ext_stats *stats);
const char *mpiio_ext_stats_path(const mpiio_ext_stats *stats); /* name of the file; "" for the total */
void mpiio_ext_stats_free(mpiio_ext_stats *stats);
/* MPI functions that are wrapped: their number, name of one, and how often this process called it so far. */
int mpiio_ext_call_count(void);
const char *mpiio_ext_call_name(int index);
int64_t mpiio_ext_calls(int index);

/* ---- delegates ---- */

/* The memory of a running I/O delegate, mapped for reading: a delegate shares it with the ranks of its node, and any
 * process of the same user may read it (docs/reference/delegates.md). */
typedef struct mpiio_ext_delegates mpiio_ext_delegates;

/* Map the memory behind a path, as a rule /proc/PID/fd/N. 0, or MPIOX_E_IO (-3): it cannot be opened; MPIOX_E_CORRUPT
 * (-6): it is not the whole memory of a delegate of this version; MPIOX_E_NOMEM (-1). Free it with
 * mpiio_ext_delegates_close() (NULL-safe); while it is mapped, the memory lives on. */
int mpiio_ext_delegates_open(const char *path, mpiio_ext_delegates **delegates);
void mpiio_ext_delegates_close(mpiio_ext_delegates *delegates);
/* The same of a delegate of this process's own job, or MPIOX_E_ARG (-2): there is no such delegate; MPIOX_E_UNSUPPORTED
 * (-5): it is on another node. To be closed before MPI_Finalize. */
int mpiio_ext_delegates_own(int delegate, mpiio_ext_delegates **delegates);
/* Its present state, as one JSON object into text; returns the bytes that the text has, as snprintf does, or
 * MPIOX_E_CORRUPT (-6): the memory has been shortened. Each number is read whole; they are not of one moment. */
int64_t mpiio_ext_delegates_snapshot(const mpiio_ext_delegates *delegates, char *text, int64_t text_bytes);
/* Recover a delegate's cache on a disk that stayed when all processes had been killed, or that could not be written:
 * write its remaining bytes to the files, and remove it when all are written. Later foreign writes to a file are not
 * overwritten, unless `force`; folders: where more caches of its job are (a list with ';'), or NULL. text: the files
 * that it could not write, as a JSON list of {"path", "errno", "changed", "whole", "why"}. Number of bytes written, or
 * below 0: it is another user's, is in use (-5), is of before a restart of this node (-8), or is no cache. */
int64_t mpiio_ext_delegates_recover(const char *path, const char *folders, int force, char *text, int64_t text_bytes);
/* Number of the counters in "counters"; name, unit and meaning of counter `index`, or NULL when there is none. */
int mpiio_ext_delegates_counter_count(void);
const char *mpiio_ext_delegates_counter_name(int index);
const char *mpiio_ext_delegates_counter_unit(int index);
const char *mpiio_ext_delegates_counter_meaning(int index);
/* Ask delegate `delegate` of this process's job `count` times to answer at once; seconds[i] = how long request i and
 * its answer took. 0, MPIOX_E_ARG (-2): there is no such delegate; MPIOX_E_UNSUPPORTED (-5): it no longer serves. */
int mpiio_ext_delegates_ping(int delegate, int count, double *seconds);

/* The delegates of this process's own job: how many there are (0: none), how they were started ("none", "spawn",
 * "split", "process", "thread"), why so or why there are none, and the service's name (in the status the key `group`).
 * Local. */
int mpiio_ext_group_count(void);
const char *mpiio_ext_group_mode(void);
const char *mpiio_ext_group_reason(void);
const char *mpiio_ext_group_id(void);
/* Why this library spawns no delegates under this MPI and launcher, NULL where it does. Local, before MPI_Init, too. */
const char *mpiio_ext_spawn_refusal(void);
/* Of delegate `index`: its node, as the ranks of MPI_COMM_WORLD are counted by node (-1: none of them); host; process;
 * whether this process shares its memory; whether it serves (one that has died has its pages rescued first, which may
 * take a while). Local. */
int mpiio_ext_group_node(int index);
const char *mpiio_ext_group_host(int index);
int64_t mpiio_ext_group_pid(int index);
int mpiio_ext_group_is_local(int index);
int mpiio_ext_group_is_serving(int index);
/* Turn ranks of a communicator (as a rule MPI_COMM_WORLD) into delegates: these serve in this call until the others
 * have begun MPI_Finalize, and then return with MPI_COMM_NULL in *mine; the others return at once, with a communicator
 * of their own, which the program uses in place of MPI_COMM_WORLD. comm, mine: addresses of MPI_Comm. Collective, with
 * the same number on all ranks; before any file is opened. If delegates cannot be started *mine has all ranks, and a
 * line on stderr gives the reason. 0, MPIOX_E_ARG (-2): no rank would be left, or there are delegates already;
 * MPIOX_E_UNSUPPORTED (-5): not in a spawned process, nor before MPI_Init; MPIOX_E_MPI (-4). */
int mpiio_ext_group_split(const void *comm, int delegates, void *mine);

/* ---- typemaps ---- */

/* The bytes of a datatype that is tiled without end at its extent: immutable, reference counted, free of MPI once made.
 * The data bytes in type-map order form the stream, numbered by positions from 0 on
 * (csrc/core/typemap/mpiox_typemap.h). */
typedef struct mpiio_ext_typemap mpiio_ext_typemap;

/* Each returns 0 and a new typemap in *typemap (free it), or a negative code: MPIOX_E_ARG (-2) for negative counts
 * or overflow, MPIOX_E_UNSUPPORTED (-5), MPIOX_E_CORRUPT (-6), MPIOX_E_NOMEM (-1). Parts are borrowed. The first needs
 * MPI initialised and takes the address of an MPI_Datatype. */
int mpiio_ext_typemap_from_datatype(const void *datatype, mpiio_ext_typemap **typemap);
int mpiio_ext_typemap_from_blob(const void *blob, int64_t blob_bytes, mpiio_ext_typemap **typemap);
int mpiio_ext_typemap_block(int64_t length, mpiio_ext_typemap **typemap);
int mpiio_ext_typemap_vector(int64_t count, int64_t stride, const mpiio_ext_typemap *part, mpiio_ext_typemap **typemap);
int mpiio_ext_typemap_indexed(int64_t n, const int64_t *counts, const int64_t *displacements,
                              const mpiio_ext_typemap *part, mpiio_ext_typemap **typemap);
int mpiio_ext_typemap_struct(int64_t n, const int64_t *counts, const int64_t *displacements,
                             const mpiio_ext_typemap *const *parts, mpiio_ext_typemap **typemap);
int mpiio_ext_typemap_resized(int64_t lb, int64_t extent, const mpiio_ext_typemap *part, mpiio_ext_typemap **typemap);
int mpiio_ext_typemap_subarray(int32_t ndims, const int64_t *sizes, const int64_t *subsizes, const int64_t *starts,
                               int fortran_order, const mpiio_ext_typemap *part, mpiio_ext_typemap **typemap);
void mpiio_ext_typemap_free(mpiio_ext_typemap *typemap); /* NULL-safe */

/* Ten numbers: size, lb, extent, true_lb, true_ub, depth, pieces, granule, contiguous (0, 1), monotonic (0, 1). */
void mpiio_ext_typemap_summary(const mpiio_ext_typemap *typemap, int64_t *numbers);
/* Offset of a stream position (>= 0); and, for monotonic typemaps, data bytes whose offset is lower. */
int64_t mpiio_ext_typemap_offset(const mpiio_ext_typemap *typemap, int64_t position);
int64_t mpiio_ext_typemap_position(const mpiio_ext_typemap *typemap, int64_t offset);
/* Number of pieces of the stream bytes [lo, hi); the first max_pieces of them are stored (0: arrays may be NULL). */
int64_t mpiio_ext_typemap_pieces(const mpiio_ext_typemap *typemap, int64_t lo, int64_t hi, int64_t max_pieces,
                                 int64_t *offsets, int64_t *lengths);
/* Number of strided runs in which a cursor yields [lo, hi): the cost of a copy besides its bytes. */
int64_t mpiio_ext_typemap_runs(const mpiio_ext_typemap *typemap, int64_t lo, int64_t hi);
/* Copy the stream bytes [lo, hi) out of memory (offset 0 is at `memory`) to `packed`, or back. No checks of bounds. */
void mpiio_ext_typemap_pack(const mpiio_ext_typemap *typemap, const void *memory, int64_t lo, int64_t hi, void *packed);
void mpiio_ext_typemap_unpack(const mpiio_ext_typemap *typemap, void *memory, int64_t lo, int64_t hi,
                              const void *packed);
/* Copy `bytes` of one stream to another, each from a position on. Memories must not overlap. */
void mpiio_ext_typemap_copy(const mpiio_ext_typemap *target, void *target_memory, int64_t target_position,
                            const mpiio_ext_typemap *source, const void *source_memory, int64_t source_position,
                            int64_t bytes);
/* Set map[(offset - map_start) / granule] = 1 for every byte of [lo, hi). */
void mpiio_ext_typemap_mark(const mpiio_ext_typemap *typemap, int64_t lo, int64_t hi, int64_t map_start,
                            int64_t granule, unsigned char *map);
int64_t mpiio_ext_typemap_blob_bytes(const mpiio_ext_typemap *typemap);
int mpiio_ext_typemap_to_blob(const mpiio_ext_typemap *typemap, void *blob, int64_t blob_bytes);
/* 1: equal by structure. */
int mpiio_ext_typemap_equal(const mpiio_ext_typemap *a, const mpiio_ext_typemap *b);
/* Bytes of a stream. */
typedef struct mpiio_ext_typemap_range {
    const mpiio_ext_typemap *typemap; /* the caller's, monotonic */
    int64_t origin;                   /* bytes by which the typemap is displaced */
    int64_t position;                 /* of the first byte in the stream */
    int64_t length;                   /* bytes; INT64_MAX: endless */
} mpiio_ext_typemap_range;
/* 1: proven that the two share no byte. 0: not proven. */
int mpiio_ext_typemap_disjoint(const mpiio_ext_typemap_range *a, const mpiio_ext_typemap_range *b);

/* ---- request scheduling of the delegates ---- */

/* A queue of requests that wait for the file system, as a delegate has it, for tests and simulations; see
 * csrc/iod/schedule/mpiox_schedule.h. Pure: times are passed in, in ns. One thread at a time for each queue. */
typedef struct mpiio_ext_schedule mpiio_ext_schedule;

/* Name and source of policy `index`, or NULL when there is none. */
const char *mpiio_ext_schedule_policy_name(int index);
const char *mpiio_ext_schedule_policy_source(int index);
/* options: capacity (requests), quantum (bytes), window (ns), patience (ns, 0: none), bytes of a batch, requests of a
 * batch, number of the delegate, clock offset (ns; these two: twins). 0, MPIOX_E_ARG (-2), MPIOX_E_NOMEM (-1). Free
 * with mpiio_ext_schedule_free() (NULL-safe). */
int mpiio_ext_schedule_create(const char *policy, const int64_t *options, mpiio_ext_schedule **schedule);
void mpiio_ext_schedule_free(mpiio_ext_schedule *schedule);
/* request: file, offset, length, flow, weight, server (-1: not known), 1: write. MPIOX_E_ARG, MPIOX_E_FULL (-7). */
int mpiio_ext_schedule_add(mpiio_ext_schedule *schedule, const int64_t *request, int64_t now, uint32_t *id);
/* The next batch: how many requests, their ids in file order. 0: ask again at *until (INT64_MAX: after a change). */
int32_t mpiio_ext_schedule_next(mpiio_ext_schedule *schedule, int64_t now, int hurry, uint32_t *ids, int64_t *until);
/* A request that was taken out is served; a waiting one is cancelled. MPIOX_E_ARG: it is not in that state. */
int mpiio_ext_schedule_done(mpiio_ext_schedule *schedule, uint32_t id);
int mpiio_ext_schedule_cancel(mpiio_ext_schedule *schedule, uint32_t id);
int64_t mpiio_ext_schedule_depth(const mpiio_ext_schedule *schedule); /* requests that wait */
/* Totals; the name is NULL when there is none of that number. */
const char *mpiio_ext_schedule_counter_name(int index);
int64_t mpiio_ext_schedule_counter(const mpiio_ext_schedule *schedule, int index);

/* cffi: end */

/* The main function of the executable mpiio-ext-delegate, which the library starts. Returns the exit status. */
int mpiio_ext_delegate_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
