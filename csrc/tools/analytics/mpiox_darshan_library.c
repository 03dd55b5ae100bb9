/*
 * mpiox_darshan_library.c - opens libdarshan-util and looks its counters up by name.
 *
 * Problem. The width of a record and the place of a counter in it belong to the library's release; what was compiled in
 * would silently read the wrong counter of the next one. The library exports the names of its counters, ended by
 * "..._NUM_INDICES". The table below says which counter joins which column, and how; a counter that the library does
 * not know has no rule, and its column stays absent.
 */
#include "mpiox_darshan_library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "mpiox_darshan_rows.h"
#include "mpiox_error.h"

enum { MAX_COUNTERS = 1024 };

typedef struct wish {
    const char *counter; /* without the module's prefix */
    int16_t column;
    int8_t how;
    int8_t is_double;
} wish;

#define INT(counter, column, how) {counter, MPIOX_DARSHAN_FILE_##column, MPIOX_DARSHAN_##how, 0}
#define DBL(counter, column, how) {"F_" counter, MPIOX_DARSHAN_FILE_##column, MPIOX_DARSHAN_##how, 1}

/* What POSIX and STDIO have both. */
#define DATA_WISHES                                                                                                    \
    INT("OPENS", opens, SUM), INT("OPENS", ranks, OPENS), INT("READS", reads, SUM), INT("WRITES", writes, SUM),        \
        INT("BYTES_READ", bytes_read, SUM), INT("BYTES_WRITTEN", bytes_written, SUM),                                  \
        INT("MAX_BYTE_READ", max_offset_read, MAX), INT("MAX_BYTE_WRITTEN", max_offset_written, MAX),                  \
        DBL("READ_TIME", read_time, SUM), DBL("WRITE_TIME", write_time, SUM), DBL("META_TIME", meta_time, SUM),        \
        DBL("READ_START_TIMESTAMP", read_start, FIRST), DBL("READ_END_TIMESTAMP", read_end, LAST),                     \
        DBL("WRITE_START_TIMESTAMP", write_start, FIRST), DBL("WRITE_END_TIMESTAMP", write_end, LAST)

#define SIZE_WISHES(direction, column)                                                                                 \
    INT("SIZE_" direction "_0_100", column##_size_0_100, SUM),                                                         \
        INT("SIZE_" direction "_100_1K", column##_size_100_1k, SUM),                                                   \
        INT("SIZE_" direction "_1K_10K", column##_size_1k_10k, SUM),                                                   \
        INT("SIZE_" direction "_10K_100K", column##_size_10k_100k, SUM),                                               \
        INT("SIZE_" direction "_100K_1M", column##_size_100k_1m, SUM),                                                 \
        INT("SIZE_" direction "_1M_4M", column##_size_1m_4m, SUM),                                                     \
        INT("SIZE_" direction "_4M_10M", column##_size_4m_10m, SUM),                                                   \
        INT("SIZE_" direction "_10M_100M", column##_size_10m_100m, SUM),                                               \
        INT("SIZE_" direction "_100M_1G", column##_size_100m_1g, SUM),                                                 \
        INT("SIZE_" direction "_1G_PLUS", column##_size_1g_plus, SUM)

static const wish posix_wishes[] = {
    DATA_WISHES,
    SIZE_WISHES("READ", read),
    SIZE_WISHES("WRITE", write),
    INT("CONSEC_READS", consec_reads, SUM),
    INT("CONSEC_WRITES", consec_writes, SUM),
    INT("SEQ_READS", seq_reads, SUM),
    INT("SEQ_WRITES", seq_writes, SUM),
    INT("FILE_NOT_ALIGNED", unaligned, SUM),
    INT("FILE_ALIGNMENT", alignment, MAX),
    {NULL, 0, 0, 0},
};

static const wish stdio_wishes[] = {DATA_WISHES, {NULL, 0, 0, 0}};

static const wish mpiio_wishes[] = {
    INT("INDEP_OPENS", ranks, OPENS),
    INT("COLL_OPENS", ranks, OPENS),
    INT("INDEP_READS", mpiio_indep_reads, SUM),
    INT("INDEP_WRITES", mpiio_indep_writes, SUM),
    INT("COLL_READS", mpiio_coll_reads, SUM),
    INT("COLL_WRITES", mpiio_coll_writes, SUM),
    INT("SPLIT_READS", mpiio_coll_reads, SUM),
    INT("SPLIT_WRITES", mpiio_coll_writes, SUM),
    INT("NB_READS", mpiio_nb_reads, SUM),
    INT("NB_WRITES", mpiio_nb_writes, SUM),
    INT("BYTES_READ", mpiio_bytes_read, SUM),
    INT("BYTES_WRITTEN", mpiio_bytes_written, SUM),
    {NULL, 0, 0, 0},
};

/* In the order of MPIOX_DARSHAN_SUMMARY_COLUMNS. */
static const char *const observed[MPIOX_DARSHAN_OBSERVED] = {
    "BYTES_READ", "BYTES_WRITTEN",    "READS",           "WRITES",      "OPENS",       "SEQ_READS",    "SEQ_WRITES",
    "STATS",      "FILE_NOT_ALIGNED", "MEM_NOT_ALIGNED", "F_META_TIME", "F_READ_TIME", "F_WRITE_TIME",
};

/* Number of names up to "..._NUM_INDICES", or -1. */
static int count_names(char *const *names)
{
    for (int k = 0; names != NULL && k < MAX_COUNTERS && names[k] != NULL; k++) {
        const size_t length = strlen(names[k]);

        if (length > 12 && strcmp(names[k] + length - 12, "_NUM_INDICES") == 0)
            return k;
    }
    return -1;
}

/* Index of PREFIX_counter, or -1. */
static int find_name(char *const *names, int count, const char *prefix, const char *counter)
{
    const size_t length = strlen(prefix);

    for (int k = 0; k < count; k++)
        if (strncmp(names[k], prefix, length) == 0 && names[k][length] == '_' &&
            strcmp(names[k] + length + 1, counter) == 0)
            return k;
    return -1;
}

static int resolve(void *handle, mpiox_darshan_kind *kind, const char *prefix, const char *symbol, const wish *wishes)
{
    char name[64];

    snprintf(name, sizeof(name), "%s_counter_names", symbol);
    char *const *integers = dlsym(handle, name);
    snprintf(name, sizeof(name), "%s_f_counter_names", symbol);
    char *const *doubles = dlsym(handle, name);
    kind->counters = count_names(integers);
    kind->doubles = count_names(doubles);
    if (kind->counters < 0 || kind->doubles < 0)
        return -1;
    kind->rules = 0;
    for (const wish *each = wishes; each->counter != NULL; each++) {
        const int at = each->is_double ? find_name(doubles, kind->doubles, prefix, each->counter)
                                       : find_name(integers, kind->counters, prefix, each->counter);
        if (at < 0 || kind->rules == MPIOX_DARSHAN_MAX_RULES)
            continue;
        const int counter = each->is_double ? kind->counters + at : at;
        kind->rule[kind->rules++] = (mpiox_darshan_rule){(int16_t)counter, each->column, each->how, each->is_double};
    }
    const int fastest = find_name(doubles, kind->doubles, prefix, "F_FASTEST_RANK_TIME");
    const int slowest = find_name(doubles, kind->doubles, prefix, "F_SLOWEST_RANK_TIME");
    kind->fastest_time = fastest < 0 ? -1 : kind->counters + fastest;
    kind->slowest_time = slowest < 0 ? -1 : kind->counters + slowest;
    kind->fastest_bytes = find_name(integers, kind->counters, prefix, "FASTEST_RANK_BYTES");
    kind->slowest_bytes = find_name(integers, kind->counters, prefix, "SLOWEST_RANK_BYTES");
    kind->slowest_rank = find_name(integers, kind->counters, prefix, "SLOWEST_RANK");
    for (int k = 0; k < MPIOX_DARSHAN_OBSERVED; k++) {
        const int is_double = k >= MPIOX_DARSHAN_OBSERVED_INTEGERS;
        const int at = find_name(is_double ? doubles : integers, is_double ? kind->doubles : kind->counters, prefix,
                                 observed[k]);

        kind->observed[k] = at < 0 ? -1 : is_double ? kind->counters + at : at;
    }
    kind->syncs[0] = find_name(integers, kind->counters, prefix, "FSYNCS");
    kind->syncs[1] = find_name(integers, kind->counters, prefix, "FDSYNCS");
    kind->bytes_read = find_name(integers, kind->counters, prefix, "BYTES_READ");
    kind->bytes_written = find_name(integers, kind->counters, prefix, "BYTES_WRITTEN");
    return 0;
}

/* dlsym gives an object pointer; POSIX says that it may be used as a function's. */
static int find_functions(mpiox_darshan_library *library)
{
    const struct {
        const char *symbol;
        void *to;
    } functions[] = {
        {"darshan_log_open", &library->open},
        {"darshan_log_close", &library->close},
        {"darshan_log_get_job", &library->get_job},
        {"darshan_log_get_job_runtime", &library->get_runtime},
        {"darshan_log_get_exe", &library->get_exe},
        {"darshan_log_get_mounts", &library->get_mounts},
        {"darshan_log_get_modules", &library->get_modules},
        {"darshan_log_get_name_records", &library->get_names},
        {"darshan_log_get_record", &library->get_record},
        {"darshan_log_get_mod", &library->get_mod},
        {"darshan_free", &library->free},
    };

    for (size_t k = 0; k < sizeof(functions) / sizeof(functions[0]); k++) {
        void *found = dlsym(library->handle, functions[k].symbol);
        if (found == NULL)
            return -1;
        memcpy(functions[k].to, &found, sizeof(found));
    }
    return 0;
}

int mpiox_darshan_library_open(const char *path, mpiox_darshan_library *library, char *problem, int64_t problem_bytes)
{
    memset(library, 0, sizeof(*library));
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library->handle == NULL) {
        snprintf(problem, (size_t)problem_bytes, "cannot open libdarshan-util: %s", dlerror());
        return MPIOX_E_UNSUPPORTED;
    }
    char *(*version)(void) = NULL;
    void *found = dlsym(library->handle, "darshan_log_get_lib_version");
    memcpy(&version, &found, sizeof(found));
    if (version == NULL || find_functions(library) != 0 ||
        resolve(library->handle, &library->kinds[MPIOX_DARSHAN_POSIX], "POSIX", "posix", posix_wishes) != 0 ||
        resolve(library->handle, &library->kinds[MPIOX_DARSHAN_STDIO], "STDIO", "stdio", stdio_wishes) != 0 ||
        resolve(library->handle, &library->kinds[MPIOX_DARSHAN_MPIIO], "MPIIO", "mpiio", mpiio_wishes) != 0) {
        snprintf(problem, (size_t)problem_bytes,
                 "%s is no libdarshan-util of 3.4 or newer: install the package darshan", path);
        mpiox_darshan_library_close(library);
        return MPIOX_E_UNSUPPORTED;
    }
    library->version = version();
    return MPIOX_OK;
}

void mpiox_darshan_library_close(mpiox_darshan_library *library)
{
    if (library != NULL && library->handle != NULL)
        dlclose(library->handle);
    if (library != NULL)
        memset(library, 0, sizeof(*library));
}
