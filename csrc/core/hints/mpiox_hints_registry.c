/*
 * mpiox_hints_registry.c - the table of hints.
 *
 * A new hint is one field of mpiox_hints and one line of the table here; everything else (parsing, sources, reports,
 * MPI_File_get_info, the command line, the class of Python, the search of `tune`) follows the table, and
 * docs/reference/hints.md has what `mpiio-ext hints --markdown` prints.
 */
#include <ctype.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mpiox_hints.h"
#include "mpiox_hints_text.h"
#include "mpiox_partition.h"
#include "mpiox_text.h"

enum { MAX_SUBFILES = 4096 }; /* MPIOX_SUBFILES_MOST of storage */

enum { MAX_DELEGATES = 576 }; /* MPIOX_FILE_RANGES: each owns at least one range of a file */

typedef mpiox_hint_word choice;

#define ROW(word, value) {word, value}

static const choice switch_words[] = {
    {"enable", MPIOX_ON}, {"disable", MPIOX_OFF}, {"automatic", MPIOX_AUTO}, {NULL, 0}};
/* This hint was a flag in earlier releases: the words of a flag are still valid. */
static const choice stripe_size_io_words[] = {{"enable", MPIOX_ON},
                                              {"disable", MPIOX_OFF},
                                              {"automatic", MPIOX_AUTO},
                                              MPIOX_SWITCH_WORDS(ROW, MPIOX_ON, MPIOX_OFF),
                                              {NULL, 0}};
static const choice exchange_words[] = {{"auto", MPIOX_EXCHANGE_AUTO},
                                        {"two_phase", MPIOX_EXCHANGE_TWO_PHASE},
                                        {"direct", MPIOX_EXCHANGE_DIRECT},
                                        {NULL, 0}};
static const choice collective_words[] = {{"auto", MPIOX_COLLECTIVE_AUTO},
                                          {"two_phase", MPIOX_COLLECTIVE_TWO_PHASE},
                                          {"cached", MPIOX_COLLECTIVE_CACHED},
                                          {NULL, 0}};
static const choice storage_words[] = {
    {"auto", MPIOX_BACKEND_AUTO}, {"posix", MPIOX_BACKEND_POSIX}, {"io_uring", MPIOX_BACKEND_IO_URING}, {NULL, 0}};
static const choice stats_words[] = {MPIOX_SWITCH_WORDS(ROW, MPIOX_STATS_ON, MPIOX_STATS_OFF),
                                     {"line", MPIOX_STATS_LINE},
                                     {"full", MPIOX_STATS_FULL},
                                     {"json", MPIOX_STATS_JSON},
                                     {NULL, 0}};
static const choice io_rank_words[] = {{"any", MPIOX_IO_ANY}, {"owner", MPIOX_IO_OWNER}, {NULL, 0}};
static const choice coherence_words[] = {{"auto", MPIOX_COHERENCE_AUTO},
                                         {"refresh", MPIOX_COHERENCE_REFRESH},
                                         {"native", MPIOX_COHERENCE_NATIVE},
                                         {NULL, 0}};
static const choice start_words[] = {{"spawn", MPIOX_START_SPAWN},     {"split", MPIOX_START_SPLIT},
                                     {"process", MPIOX_START_PROCESS}, {"thread", MPIOX_START_THREAD},
                                     {"auto", MPIOX_START_AUTO},       {NULL, 0}};
static const choice ack_words[] = {
    {"memory", MPIOX_ACK_MEMORY}, {"replica", MPIOX_ACK_REPLICA}, {"disk", MPIOX_ACK_DISK}, {NULL, 0}};
static const choice order_words[] = {{"elevator", MPIOX_ORDER_ELEVATOR}, {"fifo", MPIOX_ORDER_FIFO},
                                     {"sjf", MPIOX_ORDER_SJF},           {"to_agg", MPIOX_ORDER_TO_AGG},
                                     {"aioli", MPIOX_ORDER_AIOLI},       {"mlf", MPIOX_ORDER_MLF},
                                     {"hbrr", MPIOX_ORDER_HBRR},         {"twins", MPIOX_ORDER_TWINS},
                                     {"wfq", MPIOX_ORDER_WFQ},           {NULL, 0}};
static const choice close_words[] = {{"written", MPIOX_CLOSE_WRITTEN}, {"staged", MPIOX_CLOSE_BEHIND}, {NULL, 0}};
static const choice pace_words[] = {{"full", 0}, {"even", 1}, {NULL, 0}};
/* The first word of each value is the one that is written. */
static const choice boolean_words[] = {MPIOX_SWITCH_WORDS(ROW, 1, 0), {NULL, 0}};

/* ---- texts that have a form -------------------------------------------------------------------------------------- */

/* "2" or "per_node=1", up to `most`, or, where there may be some, "25%"; "0", but not "0%", is none. */
static bool is_number(const char *text, long most, bool percent)
{
    static const char per_node[] = "per_node=";
    const bool each = strncasecmp(text, per_node, sizeof per_node - 1) == 0;
    const char *number = each ? text + sizeof per_node - 1 : text;
    char *end = NULL;
    const long value = strtol(number, &end, 10);
    const bool hundred = percent && !each && *end == '%' && end[1] == '\0';

    return isdigit((unsigned char)*number) && (*end == '\0' || hundred) && value >= hundred &&
           value <= (hundred ? 100 : most);
}

/* The percentage is one of the program's ranks. */
static bool is_delegates(const char *text)
{
    return is_number(text, MAX_DELEGATES, true);
}

static bool is_subfiles(const char *text)
{
    return strcasecmp(text, "per_server") == 0 || is_number(text, MAX_SUBFILES, false);
}

/* Of ROMIO's cb_config_list.c: "NAME[:MAX],..."; NAME is a host's or "*", MAX a number or "*". */
static bool is_config_list(const char *text)
{
    bool more = *text != '\0';

    while (more) {
        const char *end = text + (*text == '*');
        while (*end != '\0' && *text != '*' && (isalnum((unsigned char)*end) || strchr("._-", *end) != NULL))
            end++;
        if (end == text)
            return false;
        if (*end == ':') {
            const size_t digits = strspn(end + 1, "0123456789");
            end += 1 + (digits > 0 ? digits : end[1] == '*');
            if (end[-1] == ':')
                return false;
        }
        if (*end != '\0' && *end != ',')
            return false;
        more = *end == ',';
        text = end + more;
    }
    return true;
}

/* One word of the announcement, as csrc/iod/arbiter writes it. */
static bool is_arbiter_name(const char *text)
{
    while (isalnum((unsigned char)*text) || (*text != '\0' && strchr("._+-", *text) != NULL))
        text++;
    return *text == '\0';
}

static bool is_partition(const char *text)
{
    return strcmp(text, "auto") == 0 || mpiox_partition_find(text) != NULL;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define FIELD(member) .offset = offsetof(mpiox_hints, member), .bytes = sizeof(((mpiox_hints *)0)->member)
#define FOR_SPEED .for_speed = true
#define SPEC(hint, kind, texts, value, what, member)                                                                   \
    .name = hint, .type = kind, .values = texts, .default_value = value, .description = what, FIELD(member)
/* The last argument of each, `...`: FOR_SPEED, or nothing. */
#define FLAG(hint, member, value, what, ...)                                                                           \
    {SPEC(hint, "boolean", "true | false", value, what, member), .words = boolean_words, __VA_ARGS__}
#define CHOICE(hint, member, list, texts, value, what, ...)                                                            \
    {SPEC(hint, "choice", texts, value, what, member), .words = list, __VA_ARGS__}
#define INTEGER(hint, member, lowest, highest, value, what, ...)                                                       \
    {SPEC(hint, "integer", #lowest " .. " #highest, value, what, member), .least = lowest, .most = highest, __VA_ARGS__}
#define SIZES(number) "bytes up to " number ", with k, m, g, t for powers of 1024"
/* Up to `number` MiB (m), GiB (g) or TiB (t). */
#define SIZE(hint, member, lowest, from, number, unit, value, what, ...)                                               \
    {SPEC(hint, "bytes", from SIZES(#number #unit), value, what, member), .least = lowest,                             \
     .most = INT64_C(number) * UNIT_##unit, __VA_ARGS__}
#define TEXT(hint, member, kind, texts, check, value, what, ...)                                                       \
    {SPEC(hint, kind, texts, value, what, member), .accepts = check, __VA_ARGS__}
#define UNIT_m (INT64_C(1) << 20)
#define UNIT_g (INT64_C(1) << 30)
#define UNIT_t (INT64_C(1) << 40)

static char partition_values[256]; /* "auto | even | ...", filled from the registry of methods */

static const mpiox_hint_spec specs[] = {
    FLAG("mpiox_enable", enabled, "true", "this library carries out data access; false: the MPI library does"),
    TEXT("mpiox_partition", partition, "choice", partition_values, is_partition, "auto",
         "file-domain method: which aggregator owns which stripes"),
    CHOICE("mpiox_stripe_size_io", stripe_size_io, stripe_size_io_words, "enable | disable | automatic", "automatic",
           "at most one stripe per file-system request, never across a stripe boundary; automatic: in collectives, if "
           "the rules of auto choose so",
           FOR_SPEED),
    CHOICE("mpiox_exchange", exchange, exchange_words, "auto | two_phase | direct", "auto",
           "two_phase collects data in the aggregators' buffers; direct lets every rank access its own pieces"),
    CHOICE("mpiox_collective", collective, collective_words, "auto | two_phase | cached", "auto",
           "of a file with delegates; cached: each rank sends them its part, without exchange; auto: cached if the "
           "delegates already cache the file, else two-phase"),
    CHOICE("mpiox_io_rank", io_rank, io_rank_words, "any | owner", "any",
           "which ranks of a node issue the file-system requests of an aggregator on it", FOR_SPEED),
    CHOICE("mpiox_coherence", coherence, coherence_words, "auto | refresh | native", "auto",
           "files of several nodes on NFS, FUSE and the like: refresh flushes and drops caches as MPI's rules "
           "require, native leaves the files to the MPI library; auto refreshes on GlusterFS without shards, "
           "ceph-fuse and MooseFS"),
    INTEGER("mpiox_buffers", buffers, 2, 64, "2",
            "collective buffers per aggregator: one is filled while another is written", FOR_SPEED),
    INTEGER("mpiox_ranks_per_node", ranks_per_node, 0, 2147483647, "0",
            "pretend that every n consecutive ranks are a node; 0 means the real nodes"),
    INTEGER(
        "mpiox_wait_limit", wait_limit, 0, 1000000, "0",
        "seconds that a rank waits in a collective without a sign of the others before it ends the job; 0: no limit"),
    FLAG("mpiox_synchronous", synchronous, "false",
         "a collective returns when every rank has done its part, with the error of any rank"),
    FLAG("mpiox_coverage_map", coverage_map, "false",
         "mark every written byte instead of proving that all are written (for tests)", FOR_SPEED),
    CHOICE("mpiox_stats", stats, stats_words, "true | false | line | full | json", "false",
           "print the statistics of the file when it is closed: line: one line; full: the line and every number; json: "
           "one JSON object; true: full, or json where MPIOX_STATS_FILE is set"),
    CHOICE(
        "mpiox_storage", storage, storage_words, "auto | posix | io_uring", "auto",
        "how requests reach the file system; auto: plain calls, and a ring for lists of reads that wait for a device",
        FOR_SPEED),
    INTEGER("mpiox_io_uring_depth", io_uring_depth, 1, 4096, "64", "most requests that an io_uring has in flight",
            FOR_SPEED),
    FLAG("direct_read", direct_read, "false",
         "reads of whole blocks go past the page cache (O_DIRECT), the rest through it"),
    FLAG("direct_write", direct_write, "false",
         "writes of whole blocks go past the page cache (O_DIRECT), the rest through it"),
    SIZE("cb_buffer_size", cb_buffer_size, 0, "", 1, g, "0", "size of one collective buffer; 0 lets the library choose",
         FOR_SPEED),
    INTEGER("cb_nodes", cb_nodes, 0, 2147483647, "0", "number of aggregators; 0 lets the library choose", FOR_SPEED),
    TEXT("cb_config_list", cb_config_list, "text", "ROMIO's syntax: host:n, ... or *:n or *:*", is_config_list, "",
         "which processes may be aggregators, per host", FOR_SPEED),
    CHOICE("romio_cb_write", cb_write, switch_words, "enable | disable | automatic", "automatic",
           "disable: collective writes are done as independent writes, without exchange", FOR_SPEED),
    CHOICE("romio_cb_read", cb_read, switch_words, "enable | disable | automatic", "automatic",
           "disable: collective reads are done as independent reads, without exchange", FOR_SPEED),
    CHOICE("romio_ds_write", ds_write, switch_words, "enable | disable | automatic", "automatic",
           "enable: independent writes of small pieces read, modify and write back a range of the file under a lock",
           FOR_SPEED),
    CHOICE("romio_ds_read", ds_read, switch_words, "enable | disable | automatic", "automatic",
           "data sieving: independent reads of small pieces read a range and pick; automatic where pieces lie close",
           FOR_SPEED),
    SIZE("mpiox_device_buffer", device_buffer, 1, "1 or more ", 1, g, "4194304",
         "GPU memory passes through two buffers of so many bytes in host memory, on each rank that has some",
         FOR_SPEED),
    SIZE("ind_wr_buffer_size", ind_wr_buffer_size, 0, "", 1, g, "0",
         "range of one step of an independent write; 0: 1 MiB", FOR_SPEED),
    SIZE("ind_rd_buffer_size", ind_rd_buffer_size, 0, "", 1, g, "0",
         "range of one step of an independent read; 0: 1 MiB", FOR_SPEED),
    SIZE("striping_unit", striping_unit, 0, "", 4, g, "0",
         "stripe size of the file, also when it is created; 0: as the file system has it"),
    INTEGER(
        "striping_factor", striping_factor, -1, 2147483647, "0",
        "I/O servers the file is striped over, also when it is created; 0: as the file system has it, -1: over all"),
    INTEGER("start_iodevice", start_iodevice, -1, 2147483647, "-1",
            "server of the first stripe of a file that is created, as the file system counts; -1: any", FOR_SPEED),
    TEXT("mpiox_delegates", delegates, "text", "n | n% of the ranks, 1% to 100% | per_node=n; n up to 576",
         is_delegates, "0",
         "number of I/O delegates: processes that cache and aggregate the accesses of the ranks; 0: none"),
    CHOICE("mpiox_delegate_mode", delegate_mode, start_words, "spawn | split | process | thread | auto", "spawn",
           "delegates are processes that MPI spawns, ranks of the program's own launch, or processes or threads that "
           "ranks start"),
    CHOICE("mpiox_delegate_ack", delegate_ack, ack_words, "memory | replica | disk", "memory",
           "where bytes are when a write returns: in a delegate, in two, or on stable storage"),
    SIZE("mpiox_delegate_cache", delegate_cache, 0, "", 1, t, "67108864",
         "memory of one delegate, data in flight included", FOR_SPEED),
    TEXT("mpiox_delegate_cache_dir", delegate_cache_dir, "text", "folder;folder;... or folder,folder,...", NULL, "",
         "folders on disks of the node for the caches of its delegates, in turn; empty: in memory"),
    SIZE("mpiox_delegate_page", delegate_page, 0, "", 256, m, "0",
         "page of a delegate's cache, rounded up to a multiple of 4096; 0: the stripe size, between 64 KiB and 4 MiB",
         FOR_SPEED),
    INTEGER("mpiox_delegate_threads", delegate_threads, 1, 15, "1",
            "I/O threads of a delegate: they write and read pages", FOR_SPEED),
    INTEGER("mpiox_delegate_prefetch", delegate_prefetch, 0, 8, "4",
            "most pages that a delegate reads ahead of a reader", FOR_SPEED),
    SIZE("mpiox_delegate_bypass", delegate_bypass, 0, "", 1, t, "1048576",
         "of contiguous runs of at least this many bytes, whole pages go straight to the file; 0: never", FOR_SPEED),
    SIZE("mpiox_delegate_write_behind", delegate_write_behind, 0, "", 256, m, "1048576",
         "buffer that collects small writes to a delegate of another node; 0: each is sent immediately", FOR_SPEED),
    INTEGER("mpiox_delegate_timeout", delegate_timeout, 1, 3600, "30",
            "seconds that a step of starting delegates may take"),
    INTEGER("mpiox_delegate_report", delegate_report, 0, 1000000, "20",
            "seconds that a rank waits for a live delegate before it prints a line on standard error; 0: never"),
    CHOICE("mpiox_delegate_scheduler", delegate_scheduler, order_words,
           "elevator | fifo | sjf | to_agg | aioli | mlf | hbrr | twins | wfq", "elevator",
           "which of the requests that wait for the file system a delegate serves next"),
    SIZE("mpiox_delegate_quantum", delegate_quantum, 1, "1 or more ", 1, t, "4194304",
         "bytes that a file (aioli, mlf, hbrr) or a flow (wfq) is served before another has its turn"),
    INTEGER("mpiox_delegate_time_slice", delegate_time_slice, 0, 1000000, "1000",
            "microseconds: of a server's time slice (twins), or to wait for requests in between (aioli)"),
    INTEGER("mpiox_delegate_patience", delegate_patience, 0, 3600000, "1000",
            "milliseconds after which a request is overdue: of 8 batches one is the oldest such request's; 0: never"),
    INTEGER("mpiox_delegate_weight", delegate_weight, 1, 1000, "1",
            "share of this file's requests, for each rank (wfq)"),
    CHOICE("mpiox_close", close, close_words, "written | staged", "written",
           "written: MPI_File_close returns when all bytes are in the file system; staged: delegates write them after "
           "the close (needs delegates)"),
    SIZE("mpiox_drain_rate", drain_rate, 0, "", 1, t, "0",
         "bytes a second that a delegate writes behind a staged close; 0: no limit"),
    CHOICE("mpiox_drain_pace", drain_even, pace_words, "full | even", "full",
           "how a delegate writes behind a staged close: immediately, or evenly until the next close, whose time it "
           "estimates from earlier closes"),
    INTEGER("mpiox_drain_patience", drain_patience, 0, 1000000, "60",
            "seconds that a delegate, after its job has ended, retries writes that the file system refuses"),
    TEXT("mpiox_delegate_hosts", delegate_hosts, "text", "host;host;... or host,host,...", NULL, "",
         "hosts for spawned delegates; empty: spread over the job's"),
    TEXT("mpiox_delegate_interface", delegate_interface, "text", "name;name;... or name,name,...", NULL, "",
         "network interfaces by which delegates are reached from other hosts; empty: all but private bridges"),
    INTEGER("mpiox_delegate_owners", delegate_owners, 0, 576, "0",
            "number of delegates that own pages of the file, the first ones; 0: as many as suit its servers"),
    TEXT("mpiox_arbiter", arbiter, "text", "folder", NULL, "",
         "folder of a running mpiio-ext delegates arbiter, which chooses the delegates that serve the job; empty: all "
         "serve"),
    TEXT("mpiox_arbiter_name", arbiter_name, "text", "letters, digits and ._+-", is_arbiter_name, "",
         "what the arbiter's curves and weights call the program; empty: its executable, or in Python its script"),
    TEXT("mpiox_subfiles", subfiles, "text", "n | per_node=n | per_server; n up to 4096", is_subfiles, "0",
         "number of subfiles of a file that is created; 0: it is one file"),
    SIZE("mpiox_subfile_unit", subfile_unit, 0, "", 1, t, "0",
         "bytes that lie together in a subfile; 0: striping_unit, or the stripe size of the file system, or 1 MiB"),
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

static pthread_once_t defaults_once = PTHREAD_ONCE_INIT;
static mpiox_hints defaults;

static void parse_defaults(void)
{
    for (int i = 0; i < SPECS; i++)
        mpiox_hint_parse(&specs[i], specs[i].default_value, &defaults);
}

void mpiox_hints_defaults(mpiox_hints *out)
{
    pthread_once(&defaults_once, parse_defaults);
    memcpy(out, &defaults, sizeof *out);
}

const char *mpiox_hints_source_name(int source)
{
    static const char *const names[] = {[MPIOX_HINT_DEFAULT] = "default",
                                        [MPIOX_HINT_ROMIO_SITE] = "/etc/romio-hints",
                                        [MPIOX_HINT_MCA_SITE] = "openmpi-mca-params.conf",
                                        [MPIOX_HINT_SITE] = "site file",
                                        [MPIOX_HINT_MCA] = "Open MPI parameter",
                                        [MPIOX_HINT_ROMIO] = "ROMIO_HINTS",
                                        [MPIOX_HINT_INFO] = "MPI_Info",
                                        [MPIOX_HINT_CRAY] = "MPICH_MPIIO_HINTS",
                                        [MPIOX_HINT_FILE] = "MPIOX_HINTS_FILE",
                                        [MPIOX_HINT_ENV] = "MPIOX_HINTS",
                                        [MPIOX_HINT_CALL] = "call"};
    return source >= 0 && source < (int)(sizeof names / sizeof names[0]) ? names[source] : "unknown";
}

/* ---- parts that a build may lack --------------------------------------------------------------------------------- */

const char *mpiox_hint_lacks(const mpiox_hints *hints)
{
#ifdef MPIOX_WITHOUT_SUBFILES
    if (strcmp(hints->subfiles, "0") != 0)
        return "MPIOX_SUBFILES";
#endif
#ifdef MPIOX_WITHOUT_STAGED
    if (hints->close != MPIOX_CLOSE_WRITTEN)
        return "MPIOX_STAGED";
#endif
    (void)hints;
    return NULL;
}
