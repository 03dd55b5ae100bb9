/*
 * mpiox_hints.h - every hint: its name, type, default, meaning, and the source of the value in force.
 *
 * MPI_File_open, MPI_File_get_info, `mpiio-ext hints` and docs/reference/hints.md read one registry (mpiox_hints_spec).
 * Sources, weakest first. Built-in default (MPIOX_STATS and MPIOX_RANKS_PER_NODE set two of them). The site's settings
 * for the MPI libraries (/etc/romio-hints, the parameters of the Open MPI installation). Site file (MPIOX_SITE_FILE,
 * default /etc/mpiio_ext.conf). Then the user's parameters of Open MPI, ROMIO_HINTS, the program's MPI_Info,
 * MPICH_MPIIO_HINTS, MPIOX_HINTS_FILE, MPIOX_HINTS. A source of another library is as strong, compared with MPI_Info,
 * as in that library. The library ignores unknown names and bad values, as MPI requires, AND reports each once per
 * process with the nearest valid name.
 *
 * romio_cb_write / romio_cb_read = disable mean the same as in ROMIO: collectives of that direction are carried out as
 * independent accesses, without exchange.
 */
#ifndef MPIOX_HINTS_H
#define MPIOX_HINTS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpiox_error.h"
#include "mpiox_hints_report.h"

typedef enum mpiox_hint_source {
    MPIOX_HINT_DEFAULT = 0,
    MPIOX_HINT_ROMIO_SITE,
    MPIOX_HINT_MCA_SITE,
    MPIOX_HINT_SITE,
    MPIOX_HINT_MCA,
    MPIOX_HINT_ROMIO,
    MPIOX_HINT_INFO,
    MPIOX_HINT_CRAY,
    MPIOX_HINT_FILE,
    MPIOX_HINT_ENV,
    MPIOX_HINT_CALL
} mpiox_hint_source;

typedef enum mpiox_switch { MPIOX_OFF = 0, MPIOX_ON = 1, MPIOX_AUTO = 2 } mpiox_switch; /* disable enable automatic */

typedef enum mpiox_exchange_mode {
    MPIOX_EXCHANGE_AUTO = 0,
    MPIOX_EXCHANGE_TWO_PHASE,
    MPIOX_EXCHANGE_DIRECT
} mpiox_exchange_mode;

typedef enum mpiox_backend { MPIOX_BACKEND_AUTO = 0, MPIOX_BACKEND_POSIX, MPIOX_BACKEND_IO_URING } mpiox_backend;

typedef enum mpiox_collective_way { /* of a file whose accesses go through delegates */
                                    MPIOX_COLLECTIVE_AUTO = 0,
                                    MPIOX_COLLECTIVE_TWO_PHASE,
                                    MPIOX_COLLECTIVE_CACHED
} mpiox_collective_way;

/* How several nodes see a file whose caches no protocol makes coherent. */
typedef enum mpiox_coherence {
    MPIOX_COHERENCE_AUTO = 0,
    MPIOX_COHERENCE_REFRESH,
    MPIOX_COHERENCE_NATIVE
} mpiox_coherence;
typedef enum mpiox_io_rank { MPIOX_IO_ANY = 0, MPIOX_IO_OWNER } mpiox_io_rank;

typedef enum mpiox_delegate_start {
    MPIOX_START_AUTO = 0,
    MPIOX_START_SPAWN,
    MPIOX_START_SPLIT,
    MPIOX_START_PROCESS,
    MPIOX_START_THREAD
} mpiox_delegate_start;

typedef enum mpiox_delegate_order { /* the names are those of csrc/iod/schedule, but for the first */
                                    MPIOX_ORDER_ELEVATOR = 0,
                                    MPIOX_ORDER_FIFO,
                                    MPIOX_ORDER_SJF,
                                    MPIOX_ORDER_TO_AGG,
                                    MPIOX_ORDER_AIOLI,
                                    MPIOX_ORDER_MLF,
                                    MPIOX_ORDER_HBRR,
                                    MPIOX_ORDER_TWINS,
                                    MPIOX_ORDER_WFQ
} mpiox_delegate_order;

typedef enum mpiox_stats_level { /* true: full, or json where there is a file for it */
                                 MPIOX_STATS_OFF = 0,
                                 MPIOX_STATS_ON,
                                 MPIOX_STATS_LINE,
                                 MPIOX_STATS_FULL,
                                 MPIOX_STATS_JSON
} mpiox_stats_level;

typedef enum mpiox_delegate_level { MPIOX_ACK_MEMORY = 0, MPIOX_ACK_REPLICA, MPIOX_ACK_DISK } mpiox_delegate_level;

typedef enum mpiox_close_when { MPIOX_CLOSE_WRITTEN = 0, MPIOX_CLOSE_BEHIND } mpiox_close_when;

/* Values in force for one open file. Plain data. */
typedef struct mpiox_hints {
    bool enabled;                    /* mpiox_enable: false = every call of this file goes to PMPI */
    char partition[24];              /* mpiox_partition: auto or a method's name */
    mpiox_switch stripe_size_io;     /* mpiox_stripe_size_io: one stripe per file-system request at most */
    mpiox_exchange_mode exchange;    /* mpiox_exchange: auto, two_phase, direct (no exchange) */
    mpiox_collective_way collective; /* mpiox_collective: the way of collectives if the file has delegates */
    mpiox_coherence coherence;       /* mpiox_coherence: auto, refresh (bring caches into line), native */
    mpiox_io_rank io_rank;           /* mpiox_io_rank: any rank of the aggregator's node, or owner only */
    int32_t buffers;                 /* mpiox_buffers: collective buffers per aggregator, 2.. */
    int32_t ranks_per_node;          /* mpiox_ranks_per_node: pretend nodes of n ranks; 0 = the real ones */
    int32_t wait_limit;              /* mpiox_wait_limit: seconds of one wait in a collective; 0 = any time */
    bool synchronous;                /* mpiox_synchronous: ranks meet in each collective */
    bool coverage_map;               /* mpiox_coverage_map: always mark written bytes, prove nothing (tests) */
    mpiox_stats_level stats;         /* mpiox_stats: the report at close (MPIOX_STATS sets the default) */
    mpiox_backend storage;           /* mpiox_storage: how requests reach the file system */
    int32_t io_uring_depth;          /* mpiox_io_uring_depth: requests in flight at most, 1.. */
    bool direct_read, direct_write;  /* ROMIO's names: whole blocks go past the page cache */
    int64_t cb_buffer_size;          /* bytes per collective buffer; 0 = default of this library */
    int32_t cb_nodes;                /* number of aggregators; 0 = automatic */
    char cb_config_list[256];        /* ROMIO syntax; "" = automatic */
    mpiox_switch cb_write, cb_read;  /* romio_cb_write, romio_cb_read: off = without exchange */
    mpiox_switch ds_write, ds_read;  /* romio_ds_write, romio_ds_read: data sieving of independent access */
    int64_t device_buffer; /* mpiox_device_buffer: bytes of each of the two windows of GPU memory in host memory */
    int64_t ind_wr_buffer_size, ind_rd_buffer_size; /* bytes of a sieve buffer; 0 = default of this library */
    int64_t striping_unit;                          /* bytes; 0 = as the file system reports */
    int32_t striping_factor;                        /* 0 = as the file system reports, -1 = new files: over all */
    int32_t start_iodevice;                         /* of a file that is created; -1 = any */
    char delegates[32];                             /* mpiox_delegates: "0" off, "2", "25%", "per_node=1" */
    mpiox_delegate_start delegate_mode;             /* mpiox_delegate_mode: how the job starts them */
    mpiox_delegate_level delegate_ack;              /* mpiox_delegate_ack: where bytes are when a write returns */
    int64_t delegate_cache;       /* mpiox_delegate_cache: bytes of memory of each delegate, all in all */
    char delegate_cache_dir[256]; /* mpiox_delegate_cache_dir: folders of the cache, on disks; "" = in memory */
    int64_t delegate_page;        /* mpiox_delegate_page: bytes; 0 = the stripe size, in bounds */
    int32_t delegate_threads;     /* mpiox_delegate_threads: I/O threads of each delegate */
    int32_t delegate_prefetch;    /* mpiox_delegate_prefetch: pages read ahead at most; 0 = off */
    /* mpiox_delegate_bypass: least length of a run whose whole pages go directly to the file; 0 = never */
    int64_t delegate_bypass;
    int64_t delegate_write_behind; /* mpiox_delegate_write_behind: bytes of a buffer for small writes to other nodes */
    int32_t delegate_timeout;      /* mpiox_delegate_timeout: limit of one step of their start, seconds */
    /* mpiox_delegate_report: after so many seconds a rank that waits for a delegate prints a line; 0: never */
    int32_t delegate_report;
    mpiox_delegate_order delegate_scheduler; /* mpiox_delegate_scheduler: how a delegate chooses its next request */
    int64_t delegate_quantum;                /* mpiox_delegate_quantum: bytes of a turn of a file or flow */
    int32_t delegate_time_slice;             /* mpiox_delegate_time_slice: microseconds */
    int32_t delegate_patience;   /* mpiox_delegate_patience: milliseconds that a request waits at most; 0 = any time */
    int32_t delegate_weight;     /* mpiox_delegate_weight: of this file's requests */
    mpiox_close_when close;      /* mpiox_close: where the bytes are when MPI_File_close returns */
    int32_t drain_even;          /* mpiox_drain_pace=even */
    int64_t drain_rate;          /* mpiox_drain_rate: bytes a second of each delegate behind a close; 0 = no limit */
    int32_t drain_patience;      /* mpiox_drain_patience: seconds of failures after which an ended job gives up */
    char delegate_hosts[256];    /* mpiox_delegate_hosts: hosts that spawned delegates run on; "" = spread */
    char delegate_interface[64]; /* mpiox_delegate_interface: network interface of the delegates; "" = any that fits */
    int32_t delegate_owners;     /* mpiox_delegate_owners: delegates that own pages of the file; 0 = automatic */
    char arbiter[256];           /* mpiox_arbiter: folder of the arbiter that assigns I/O nodes to the job; "" = none */
    char arbiter_name[64];       /* mpiox_arbiter_name: name of the program's curve; "" = that of its executable */
    char subfiles[32];           /* mpiox_subfiles: "0" none, "8", "per_node=1", "per_server" */
    int64_t subfile_unit;        /* mpiox_subfile_unit: bytes; 0 = the stripe size */
    bool collective_only;        /* romio_no_indep_rw: the program promises no independent access */
    uint8_t source[64];          /* mpiox_hint_source by registry index */
} mpiox_hints;

typedef struct mpiox_hint_word { /* the last one of a list: NULL */
    const char *word;
    int value;
} mpiox_hint_word;

typedef struct mpiox_hint_spec {
    const char *name;
    const char *type;                  /* "boolean", "integer", "bytes", "choice", "text" */
    const char *values;                /* for people: "auto | even | ..." or "1 .. 2147483647" */
    const char *default_value;         /* as text */
    const char *description;           /* one line */
    size_t offset, bytes;              /* of the hint's field in mpiox_hints */
    const mpiox_hint_word *words;      /* flags and choices; a value is written as its first word */
    int64_t least, most;               /* integers and sizes; most > 0 */
    bool (*accepts)(const char *text); /* for texts with a form, else NULL */
    bool for_speed;                    /* users set it for speed alone: `tune` may put it back to its default */
} mpiox_hint_spec;

int mpiox_hint_parse(const mpiox_hint_spec *spec, const char *text, mpiox_hints *hints); /* 0 or MPIOX_E_ARG */
/* The option of CMake that adds a part which the hints need and this build lacks; NULL: the build lacks none. */
const char *mpiox_hint_lacks(const mpiox_hints *hints);
/* The value in force as text. */
void mpiox_hint_format(const mpiox_hint_spec *spec, const mpiox_hints *hints, char *text, int64_t text_bytes);

int mpiox_hints_count(void);
const mpiox_hint_spec *mpiox_hints_spec(int index); /* NULL when out of range */
int mpiox_hints_find(const char *name);             /* registry index, or -1 */
const char *mpiox_hints_source_name(int source);    /* "default", "site file"...; never NULL */
void mpiox_hints_defaults(mpiox_hints *out);        /* built-in values, nothing from the environment */

/* Check one name and value as a source other than MPI_Info would be checked (in MPI_Info, only names mpiox_* are ours).
 * 0, or MPIOX_E_ARG and one line with the nearest valid name or the allowed values in message (may be NULL). A hint of
 * an MPI library that this library only passes on is accepted unchecked. */
int mpiox_hints_check(const char *name, const char *value, char *message, int64_t message_bytes);

/* Local; all ranks get the same result from the same environment, files and info. */
int mpiox_hints_resolve(const char *path, MPI_Info info, mpiox_hints *out, mpiox_hints_report report, void *context);
/* The same, but every problem is reported, also a repeated one (for tools that list problems). */
int mpiox_hints_resolve_all(const char *path, MPI_Info info, mpiox_hints *out, mpiox_hints_report report,
                            void *context);

/* mpiox_hints_resolve(), and the hints of every source but MPI_Info for path, as text (free it) that one rank can send
 * to the others; NULL: there are none, or memory is exhausted. mpiox_hints_apply() writes the text into an info object:
 * hints of sources stronger than MPI_Info always, hints of weaker sources if the program has not set them, sizes in
 * bytes. The text has no mpiox_* names. *out is a new object. */
int mpiox_hints_resolve_and_collect(const char *path, MPI_Info info, mpiox_hints *out, char **collected,
                                    mpiox_hints_report report, void *context);
int mpiox_hints_apply(const char *collected, MPI_Info info, MPI_Info *out);
/* Key of the info object of MPI_File_get_info: ";NAME=VALUE;NAME=VALUE;", the values that the library chose. HDF5 1.14
 * and later open another file with the same object. An entry then counts as a request only if the program has changed
 * it. */
#define MPIOX_HINTS_CHOSEN "mpiox_chosen"
/* Add the values in force to an info object (for MPI_File_get_info). If no source set a name of the standard or of
 * ROMIO, the name keeps the MPI library's own value. */
int mpiox_hints_to_info(const mpiox_hints *hints, MPI_Info info);
/* Set a key of an info object to a number. */
void mpiox_hints_put_number(MPI_Info info, const char *name, int64_t value);
/* MPI_Info_get, under every MPI library; value has room for value_bytes, the null character included. An MPI code. */
int mpiox_hints_info_get(MPI_Info info, const char *key, char *value, int value_bytes, int *found);

#endif
