/*
 * mpiox_hints_registry.c - the table of hints, with one parser and one formatter per type.
 *
 * A new hint is one field of mpiox_hints, one accessor line and one table line here; everything else (sources, reports,
 * MPI_File_get_info, the command line, the documentation) follows the table.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mpiox_hints.h"
#include "mpiox_hints_text.h"
#include "mpiox_partition.h"

enum { MAX_DELEGATES = 576 }; /* MPIOX_FILE_RANGES: each owns at least one range of a file */

static const int64_t MIB = INT64_C(1) << 20, GIB = INT64_C(1) << 30, TIB = INT64_C(1) << 40;

typedef struct choice {
    const char *word;
    int value;
} choice;

static const choice switch_words[] = {
    {"enable", MPIOX_ON}, {"disable", MPIOX_OFF}, {"automatic", MPIOX_AUTO}, {NULL, 0}};
/* What was once a flag still is one. */
static const choice stripe_size_io_words[] = {{"enable", MPIOX_ON}, {"disable", MPIOX_OFF}, {"automatic", MPIOX_AUTO},
                                              {"true", MPIOX_ON},   {"false", MPIOX_OFF},   {"1", MPIOX_ON},
                                              {"0", MPIOX_OFF},     {"yes", MPIOX_ON},      {"no", MPIOX_OFF},
                                              {"on", MPIOX_ON},     {"off", MPIOX_OFF},     {NULL, 0}};
static const choice exchange_words[] = {{"auto", MPIOX_EXCHANGE_AUTO},
                                        {"two_phase", MPIOX_EXCHANGE_TWO_PHASE},
                                        {"direct", MPIOX_EXCHANGE_DIRECT},
                                        {NULL, 0}};
static const choice storage_words[] = {
    {"auto", MPIOX_BACKEND_AUTO}, {"posix", MPIOX_BACKEND_POSIX}, {"io_uring", MPIOX_BACKEND_IO_URING}, {NULL, 0}};
static const choice io_rank_words[] = {{"any", MPIOX_IO_ANY}, {"owner", MPIOX_IO_OWNER}, {NULL, 0}};
static const choice coherence_words[] = {{"auto", MPIOX_COHERENCE_AUTO},
                                         {"refresh", MPIOX_COHERENCE_REFRESH},
                                         {"native", MPIOX_COHERENCE_NATIVE},
                                         {NULL, 0}};
static const choice start_words[] = {{"spawn", MPIOX_START_SPAWN},
                                     {"split", MPIOX_START_SPLIT},
                                     {"thread", MPIOX_START_THREAD},
                                     {"auto", MPIOX_START_AUTO},
                                     {NULL, 0}};
static const choice ack_words[] = {{"memory", MPIOX_ACK_MEMORY},
                                   {"replica", MPIOX_ACK_REPLICA},
                                   {"buddy", MPIOX_ACK_REPLICA}, /* alias */
                                   {"disk", MPIOX_ACK_DISK},
                                   {NULL, 0}};
static const choice order_words[] = {{"elevator", MPIOX_ORDER_ELEVATOR}, {"fifo", MPIOX_ORDER_FIFO},
                                     {"sjf", MPIOX_ORDER_SJF},           {"to_agg", MPIOX_ORDER_TO_AGG},
                                     {"aioli", MPIOX_ORDER_AIOLI},       {"mlf", MPIOX_ORDER_MLF},
                                     {"hbrr", MPIOX_ORDER_HBRR},         {"twins", MPIOX_ORDER_TWINS},
                                     {"wfq", MPIOX_ORDER_WFQ},           {NULL, 0}};
/* The first word of each value is the one that is written. */
static const choice boolean_words[] = {{"true", 1}, {"false", 0}, {"1", 1},      {"0", 0},       {"yes", 1}, {"no", 0},
                                       {"on", 1},   {"off", 0},   {"enable", 1}, {"disable", 0}, {NULL, 0}};

/* ---- parsers and formatters, one pair per type ------------------------------------------------------------------- */

static int parse_choice(const char *text, const choice *words, int *value)
{
    for (; words->word != NULL; words++) {
        if (strcasecmp(text, words->word) == 0) {
            *value = words->value;
            return MPIOX_OK;
        }
    }
    return MPIOX_E_ARG;
}

static void format_choice(int value, const choice *words, char *text, int64_t text_bytes)
{
    while (words->word != NULL && words->value != value)
        words++;
    snprintf(text, (size_t)text_bytes, "%s", words->word != NULL ? words->word : "?");
}

static int parse_integer(const char *text, int64_t minimum, int64_t maximum, int64_t *value)
{
    char *end = NULL;
    long long number;

    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < minimum || number > maximum)
        return MPIOX_E_ARG;
    *value = number;
    return MPIOX_OK;
}

int mpiox_hints_parse_bytes(const char *text, int64_t *bytes)
{
    static const char suffixes[] = "kmgtp";
    char *end = NULL;
    long long number;
    int shift = 0;

    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || number < 0)
        return MPIOX_E_ARG;
    if (*end != '\0' && strchr(suffixes, tolower((unsigned char)*end)) != NULL) {
        shift = 10 * (int)(strchr(suffixes, tolower((unsigned char)*end)) - suffixes + 1);
        end++;
        if (strncasecmp(end, "ib", 2) == 0)
            end += 2;
        else if (*end == 'b' || *end == 'B')
            end++;
    } else if (*end == 'b' || *end == 'B') {
        end++;
    }
    if (*end != '\0' || number > (INT64_MAX >> shift))
        return MPIOX_E_ARG;
    *bytes = (int64_t)number << shift;
    return MPIOX_OK;
}

#define BOOLEAN(field)                                                                                                 \
    static int parse_##field(const char *text, mpiox_hints *hints)                                                     \
    {                                                                                                                  \
        int value = 0, code = parse_choice(text, boolean_words, &value);                                               \
        if (code == MPIOX_OK)                                                                                          \
            hints->field = value != 0;                                                                                 \
        return code;                                                                                                   \
    }                                                                                                                  \
    static void format_##field(const mpiox_hints *hints, char *text, int64_t text_bytes)                               \
    {                                                                                                                  \
        format_choice(hints->field != 0, boolean_words, text, text_bytes);                                             \
    }
#define CHOICE(field, words)                                                                                           \
    static int parse_##field(const char *text, mpiox_hints *hints)                                                     \
    {                                                                                                                  \
        int value = 0, code = parse_choice(text, words, &value);                                                       \
        if (code == MPIOX_OK)                                                                                          \
            hints->field = value;                                                                                      \
        return code;                                                                                                   \
    }                                                                                                                  \
    static void format_##field(const mpiox_hints *hints, char *text, int64_t text_bytes)                               \
    {                                                                                                                  \
        format_choice((int)hints->field, words, text, text_bytes);                                                     \
    }
#define INTEGER(field, minimum, maximum)                                                                               \
    static int parse_##field(const char *text, mpiox_hints *hints)                                                     \
    {                                                                                                                  \
        int64_t value = 0;                                                                                             \
        int code = parse_integer(text, minimum, maximum, &value);                                                      \
        if (code == MPIOX_OK)                                                                                          \
            hints->field = (int32_t)value;                                                                             \
        return code;                                                                                                   \
    }                                                                                                                  \
    static void format_##field(const mpiox_hints *hints, char *text, int64_t text_bytes)                               \
    {                                                                                                                  \
        snprintf(text, (size_t)text_bytes, "%" PRId32, hints->field);                                                  \
    }
/* More than `most`: that. Who asks for it is told, by who compares what was asked for with what is in force. */
#define BYTES(field, most)                                                                                             \
    static int parse_##field(const char *text, mpiox_hints *hints)                                                     \
    {                                                                                                                  \
        int64_t bytes = 0;                                                                                             \
        const int code = mpiox_hints_parse_bytes(text, &bytes);                                                        \
        if (code == MPIOX_OK)                                                                                          \
            hints->field = bytes < (most) ? bytes : (most);                                                            \
        return code;                                                                                                   \
    }                                                                                                                  \
    static void format_##field(const mpiox_hints *hints, char *text, int64_t text_bytes)                               \
    {                                                                                                                  \
        snprintf(text, (size_t)text_bytes, "%" PRId64, hints->field);                                                  \
    }

BOOLEAN(enabled)
CHOICE(stripe_size_io, stripe_size_io_words)
CHOICE(exchange, exchange_words)
CHOICE(io_rank, io_rank_words)
CHOICE(coherence, coherence_words)
INTEGER(buffers, 2, 64)
INTEGER(ranks_per_node, 0, INT32_MAX)
INTEGER(wait_limit, 0, 1000000)
BOOLEAN(coverage_map)
BOOLEAN(stats)
CHOICE(storage, storage_words)
INTEGER(io_uring_depth, 1, 4096)
BOOLEAN(direct_read)
BOOLEAN(direct_write)
BYTES(cb_buffer_size, 1 * GIB)
INTEGER(cb_nodes, 0, INT32_MAX)
CHOICE(cb_write, switch_words)
CHOICE(cb_read, switch_words)
CHOICE(ds_write, switch_words)
CHOICE(ds_read, switch_words)
BYTES(ind_wr_buffer_size, 1 * GIB)
BYTES(ind_rd_buffer_size, 1 * GIB)
BYTES(striping_unit, 4 * GIB)
INTEGER(striping_factor, -1, INT32_MAX)
INTEGER(start_iodevice, -1, INT32_MAX)
CHOICE(delegate_mode, start_words)
CHOICE(delegate_ack, ack_words)
BYTES(delegate_cache, 1 * TIB)
BYTES(delegate_page, 256 * MIB)
INTEGER(delegate_threads, 1, 15)
INTEGER(delegate_prefetch, 0, 8)
BYTES(delegate_bypass, 1 * TIB)
BYTES(delegate_write_behind, 256 * MIB)
INTEGER(delegate_timeout, 1, 3600)
INTEGER(delegate_report, 0, 1000000)
INTEGER(delegate_owners, 0, MAX_DELEGATES)
CHOICE(delegate_scheduler, order_words)
INTEGER(delegate_window, 0, 1000000)
INTEGER(delegate_patience, 0, 3600000)
INTEGER(delegate_weight, 1, 1000)

static int parse_text(const char *text, char *field, size_t bytes)
{
    if (strlen(text) >= bytes)
        return MPIOX_E_ARG;
    snprintf(field, bytes, "%s", text);
    return MPIOX_OK;
}

/* A turn of no bytes would never end. */
static int parse_delegate_quantum(const char *text, mpiox_hints *hints)
{
    int64_t bytes = 0;
    const int code = mpiox_hints_parse_bytes(text, &bytes);
    if (code != MPIOX_OK || bytes < 1)
        return MPIOX_E_ARG;
    hints->delegate_quantum = bytes < TIB ? bytes : TIB;
    return MPIOX_OK;
}

static void format_delegate_quantum(const mpiox_hints *hints, char *text, int64_t text_bytes)
{
    snprintf(text, (size_t)text_bytes, "%" PRId64, hints->delegate_quantum);
}

/* "2", "25%" (of the program's ranks) or "per_node=1". */
static int parse_delegates(const char *text, mpiox_hints *hints)
{
    static const char per_node[] = "per_node=";
    const bool each = strncasecmp(text, per_node, sizeof per_node - 1) == 0;
    const char *number = each ? text + sizeof per_node - 1 : text;
    char *end = NULL;
    const long value = strtol(number, &end, 10);
    const bool percent = !each && *end == '%' && end[1] == '\0';

    if (end == number || (*end != '\0' && !percent) || value < 0 || value > (percent ? 100 : MAX_DELEGATES))
        return MPIOX_E_ARG;
    return parse_text(text, hints->delegates, sizeof hints->delegates);
}

static void format_delegates(const mpiox_hints *hints, char *text, int64_t text_bytes)
{
    snprintf(text, (size_t)text_bytes, "%s", hints->delegates);
}

static int parse_delegate_hosts(const char *text, mpiox_hints *hints)
{
    return parse_text(text, hints->delegate_hosts, sizeof hints->delegate_hosts);
}

static int parse_delegate_interface(const char *text, mpiox_hints *hints)
{
    return parse_text(text, hints->delegate_interface, sizeof hints->delegate_interface);
}

static void format_delegate_interface(const mpiox_hints *hints, char *text, int64_t text_bytes)
{
    snprintf(text, (size_t)text_bytes, "%s", hints->delegate_interface);
}

static void format_delegate_hosts(const mpiox_hints *hints, char *text, int64_t text_bytes)
{
    snprintf(text, (size_t)text_bytes, "%s", hints->delegate_hosts);
}

static int parse_arbiter(const char *text, mpiox_hints *hints)
{
    return parse_text(text, hints->arbiter, sizeof hints->arbiter);
}

static void format_arbiter(const mpiox_hints *hints, char *text, int64_t text_bytes)
{
    snprintf(text, (size_t)text_bytes, "%s", hints->arbiter);
}

/* One word of the announcement, as csrc/iod/arbiter writes it. */
static int parse_arbiter_name(const char *text, mpiox_hints *hints)
{
    for (const char *at = text; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && strchr("._+-", *at) == NULL)
            return MPIOX_E_ARG;
    return parse_text(text, hints->arbiter_name, sizeof hints->arbiter_name);
}

static void format_arbiter_name(const mpiox_hints *hints, char *text, int64_t text_bytes)
{
    snprintf(text, (size_t)text_bytes, "%s", hints->arbiter_name);
}

static int parse_partition(const char *text, mpiox_hints *hints)
{
    if (strcmp(text, "auto") != 0 && mpiox_partition_find(text) == NULL)
        return MPIOX_E_ARG;
    snprintf(hints->partition, sizeof hints->partition, "%s", text);
    return MPIOX_OK;
}

static void format_partition(const mpiox_hints *hints, char *text, int64_t text_bytes)
{
    snprintf(text, (size_t)text_bytes, "%s", hints->partition);
}

static int parse_cb_config_list(const char *text, mpiox_hints *hints)
{
    return parse_text(text, hints->cb_config_list, sizeof hints->cb_config_list);
}

static void format_cb_config_list(const mpiox_hints *hints, char *text, int64_t text_bytes)
{
    snprintf(text, (size_t)text_bytes, "%s", hints->cb_config_list);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define FLAG_VALUES "true | false"
#define COUNT_VALUES "0 .. 2147483647"
#define BYTES_UP_TO(most) "bytes up to " most ", with k, m, g, t for powers of 1024"

static char partition_values[256]; /* "auto | even | ...", filled from the registry of methods */

static const mpiox_hint_spec specs[] = {
    {"mpiox_enable", "boolean", FLAG_VALUES, "true",
     "take over data access; false leaves every call to the MPI library", parse_enabled, format_enabled},
    {"mpiox_partition", "choice", partition_values, "auto", "file-domain method: which aggregator owns which stripes",
     parse_partition, format_partition},
    {"mpiox_stripe_size_io", "choice", "enable | disable | automatic", "automatic",
     "at most one stripe per file-system request, never across a stripe boundary; automatic: in collectives, where the "
     "rules of auto say so",
     parse_stripe_size_io, format_stripe_size_io},
    {"mpiox_exchange", "choice", "auto | two_phase | direct", "auto",
     "two_phase collects data in the aggregators' buffers; direct lets every rank access its own pieces",
     parse_exchange, format_exchange},
    {"mpiox_io_rank", "choice", "any | owner", "any",
     "which ranks of a node issue the file-system requests of an aggregator on it", parse_io_rank, format_io_rank},
    {"mpiox_coherence", "choice", "auto | refresh | native", "auto",
     "files of several nodes on NFS, FUSE and the like: refresh flushes and drops caches as MPI's rules need it, "
     "native leaves them to the MPI library; auto refreshes on GlusterFS without shards, ceph-fuse and MooseFS",
     parse_coherence, format_coherence},
    {"mpiox_buffers", "integer", "2 .. 64", "2",
     "collective buffers per aggregator: one is filled while another is written", parse_buffers, format_buffers},
    {"mpiox_ranks_per_node", "integer", COUNT_VALUES, "0",
     "pretend that every n consecutive ranks are a node; 0 means the real nodes", parse_ranks_per_node,
     format_ranks_per_node},
    {"mpiox_wait_limit", "integer", "0 .. 1000000", "0",
     "seconds that a rank waits in a collective without a sign of the others before it ends the job; 0: any time",
     parse_wait_limit, format_wait_limit},
    {"mpiox_coverage_map", "boolean", FLAG_VALUES, "false",
     "mark every byte that is written instead of proving that all are (for tests)", parse_coverage_map,
     format_coverage_map},
    {"mpiox_stats", "boolean", FLAG_VALUES, "false", "print the statistics of the file when it is closed", parse_stats,
     format_stats},
    {"mpiox_storage", "choice", "auto | posix | io_uring", "auto",
     "how requests reach the file system; auto: plain calls, and a ring for lists of reads that wait for a device",
     parse_storage, format_storage},
    {"mpiox_io_uring_depth", "integer", "1 .. 4096", "64", "requests that an io_uring keeps in flight at most",
     parse_io_uring_depth, format_io_uring_depth},
    {"direct_read", "boolean", FLAG_VALUES, "false",
     "reads of whole blocks go past the page cache (O_DIRECT), the rest through it", parse_direct_read,
     format_direct_read},
    {"direct_write", "boolean", FLAG_VALUES, "false",
     "writes of whole blocks go past the page cache (O_DIRECT), the rest through it", parse_direct_write,
     format_direct_write},
    {"cb_buffer_size", "bytes", BYTES_UP_TO("1g"), "0", "size of one collective buffer; 0 lets the library choose",
     parse_cb_buffer_size, format_cb_buffer_size},
    {"cb_nodes", "integer", COUNT_VALUES, "0", "number of aggregators; 0 lets the library choose", parse_cb_nodes,
     format_cb_nodes},
    {"cb_config_list", "text", "ROMIO's syntax: host:n, ... or *:n or *:*", "",
     "which processes may be aggregators, per host", parse_cb_config_list, format_cb_config_list},
    {"romio_cb_write", "choice", "enable | disable | automatic", "automatic",
     "disable: collective writes are done as independent writes, without exchange", parse_cb_write, format_cb_write},
    {"romio_cb_read", "choice", "enable | disable | automatic", "automatic",
     "disable: collective reads are done as independent reads, without exchange", parse_cb_read, format_cb_read},
    {"romio_ds_write", "choice", "enable | disable | automatic", "automatic",
     "enable: independent writes of small pieces read, modify and write back a range of the file under a lock",
     parse_ds_write, format_ds_write},
    {"romio_ds_read", "choice", "enable | disable | automatic", "automatic",
     "data sieving: independent reads of small pieces read a range and pick; automatic where pieces lie close",
     parse_ds_read, format_ds_read},
    {"ind_wr_buffer_size", "bytes", BYTES_UP_TO("1g"), "0", "range of one step of an independent write; 0: 1 MiB",
     parse_ind_wr_buffer_size, format_ind_wr_buffer_size},
    {"ind_rd_buffer_size", "bytes", BYTES_UP_TO("1g"), "0", "range of one step of an independent read; 0: 1 MiB",
     parse_ind_rd_buffer_size, format_ind_rd_buffer_size},
    {"striping_unit", "bytes", BYTES_UP_TO("4g"), "0",
     "stripe size of the file, also when it is made; 0 asks the file system", parse_striping_unit,
     format_striping_unit},
    {"striping_factor", "integer", "-1 .. 2147483647", "0",
     "I/O servers the file is striped over, also when it is made; 0 asks the file system, -1 makes it over all",
     parse_striping_factor, format_striping_factor},
    {"start_iodevice", "integer", "-1 .. 2147483647", "-1",
     "server of the first stripe of a file that is made, as the file system counts; -1: any", parse_start_iodevice,
     format_start_iodevice},
    {"mpiox_delegates", "text", "n | n% of the ranks, up to 100% | per_node=n; n up to 576", "0",
     "number of I/O delegates: processes that cache and aggregate the accesses of the ranks; 0: none", parse_delegates,
     format_delegates},
    {"mpiox_delegate_mode", "choice", "spawn | split | thread | auto", "spawn",
     "delegates are spawned processes, ranks of the program's own launch, or threads of its ranks", parse_delegate_mode,
     format_delegate_mode},
    {"mpiox_delegate_ack", "choice", "memory | replica | disk", "memory",
     "where bytes are when a write returns: in a delegate, in two (`buddy` is an alias), or on stable storage",
     parse_delegate_ack, format_delegate_ack},
    {"mpiox_delegate_cache", "bytes", BYTES_UP_TO("1t"), "67108864", "memory of one delegate, data in flight included",
     parse_delegate_cache, format_delegate_cache},
    {"mpiox_delegate_page", "bytes", BYTES_UP_TO("256m"), "0",
     "page of a delegate's cache, rounded up to a multiple of 4096; 0: the stripe size, between 64 KiB and 4 MiB",
     parse_delegate_page, format_delegate_page},
    {"mpiox_delegate_threads", "integer", "1 .. 15", "1", "I/O threads of a delegate: they write and read pages",
     parse_delegate_threads, format_delegate_threads},
    {"mpiox_delegate_prefetch", "integer", "0 .. 8", "4", "pages that a delegate reads ahead of a reader at most",
     parse_delegate_prefetch, format_delegate_prefetch},
    {"mpiox_delegate_bypass", "bytes", BYTES_UP_TO("1t"), "1048576",
     "contiguous runs of at least so many bytes: their whole pages go straight to the file; 0: never",
     parse_delegate_bypass, format_delegate_bypass},
    {"mpiox_delegate_write_behind", "bytes", BYTES_UP_TO("256m"), "1048576",
     "buffer in which small writes to a delegate of another node are collected; 0: each is sent at once",
     parse_delegate_write_behind, format_delegate_write_behind},
    {"mpiox_delegate_timeout", "integer", "1 .. 3600", "30", "seconds that a step of starting delegates may take",
     parse_delegate_timeout, format_delegate_timeout},
    {"mpiox_delegate_report", "integer", "0 .. 1000000", "20",
     "seconds that a rank waits for a delegate that is alive before it says so on standard error; 0: never",
     parse_delegate_report, format_delegate_report},
    {"mpiox_delegate_scheduler", "choice", "elevator | fifo | sjf | to_agg | aioli | mlf | hbrr | twins | wfq",
     "elevator", "which of the requests that wait for the file system a delegate serves next", parse_delegate_scheduler,
     format_delegate_scheduler},
    {"mpiox_delegate_quantum", "bytes", "1 or more bytes up to 1t, with k, m, g, t for powers of 1024", "4194304",
     "bytes that a file (aioli, mlf, hbrr) or a flow (wfq) is served before another has its turn",
     parse_delegate_quantum, format_delegate_quantum},
    {"mpiox_delegate_window", "integer", "0 .. 1000000", "1000",
     "microseconds: of a server's time window (twins), or to wait for requests in between (aioli)",
     parse_delegate_window, format_delegate_window},
    {"mpiox_delegate_patience", "integer", "0 .. 3600000", "1000",
     "milliseconds after which a request is overdue: of 8 batches one is the oldest such request's; 0: never",
     parse_delegate_patience, format_delegate_patience},
    {"mpiox_delegate_weight", "integer", "1 .. 1000", "1", "share of this file's requests, for each rank (wfq)",
     parse_delegate_weight, format_delegate_weight},
    {"mpiox_delegate_hosts", "text", "host;host;... or host,host,...", "",
     "hosts for spawned delegates; empty: spread over the job's", parse_delegate_hosts, format_delegate_hosts},
    {"mpiox_delegate_interface", "text", "name;name;... or name,name,...", "",
     "network interfaces by which delegates are reached from other hosts; empty: all but private bridges",
     parse_delegate_interface, format_delegate_interface},
    {"mpiox_delegate_owners", "integer", "0 .. 576", "0",
     "how many of the delegates own pages of the file, the first ones; 0: as many as suit its servers",
     parse_delegate_owners, format_delegate_owners},
    {"mpiox_arbiter", "text", "folder", "",
     "folder of a running mpiio-ext arbiter, which says which of the job's delegates serve; empty: all", parse_arbiter,
     format_arbiter},
    {"mpiox_arbiter_name", "text", "letters, digits and ._+-", "",
     "what the arbiter's curves and weights call the program; empty: its executable, or in Python its script",
     parse_arbiter_name, format_arbiter_name},
};

enum { SPECS = (int)(sizeof specs / sizeof specs[0]) };

_Static_assert((size_t)SPECS <= sizeof(((mpiox_hints *)0)->source), "mpiox_hints.source is too short");

static void fill_partition_values(void)
{
    size_t used = (size_t)snprintf(partition_values, sizeof partition_values, "auto");

    for (int i = 0; i < mpiox_partition_count() && used < sizeof partition_values; i++)
        used += (size_t)snprintf(partition_values + used, sizeof partition_values - used, " | %s",
                                 mpiox_partition_get(i)->name);
}

int mpiox_hints_count(void)
{
    return SPECS;
}

const mpiox_hint_spec *mpiox_hints_spec(int index)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, fill_partition_values);
    return index >= 0 && index < SPECS ? &specs[index] : NULL;
}

int mpiox_hints_find(const char *name)
{
    for (int i = 0; i < SPECS; i++) {
        if (strcmp(specs[i].name, name) == 0)
            return i;
    }
    return -1;
}

void mpiox_hints_defaults(mpiox_hints *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < SPECS; i++)
        specs[i].parse(specs[i].default_value, out);
}

const char *mpiox_hints_source_name(int source)
{
    switch (source) {
    case MPIOX_HINT_DEFAULT:
        return "default";
    case MPIOX_HINT_ROMIO_SITE:
        return "/etc/romio-hints";
    case MPIOX_HINT_MCA_SITE:
        return "openmpi-mca-params.conf";
    case MPIOX_HINT_SITE:
        return "site file";
    case MPIOX_HINT_MCA:
        return "Open MPI parameter";
    case MPIOX_HINT_ROMIO:
        return "ROMIO_HINTS";
    case MPIOX_HINT_INFO:
        return "MPI_Info";
    case MPIOX_HINT_CRAY:
        return "MPICH_MPIIO_HINTS";
    case MPIOX_HINT_FILE:
        return "MPIOX_HINTS_FILE";
    case MPIOX_HINT_ENV:
        return "MPIOX_HINTS";
    case MPIOX_HINT_CALL:
        return "call";
    default:
        return "unknown";
    }
}
