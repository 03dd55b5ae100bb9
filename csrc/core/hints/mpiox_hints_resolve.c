/*
 * mpiox_hints_resolve.c - from the sources to the values in force.
 *
 * Every source yields (name, value) pairs in order of rising strength; a pair overwrites what came before. Sources
 * other than MPI_Info may only name hints that exist (ours, or an MPI library's that is passed on): a person wrote
 * them, and a misspelt line that silently does nothing is the commonest reason for "hints have no effect". In MPI_Info
 * only mpiox_* names are ours to judge; in the sources of other libraries a name that is near to none of ours is
 * theirs, and passed on.
 */
#include "mpiox_hints.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mpiox_has.h"
#include "mpiox_hints_mca.h"
#include "mpiox_hints_openmpi.h"
#include "mpiox_hints_text.h"
#include "mpiox_text.h"

#define PREFIX "mpiox_"
#define SITE_FILE "/etc/mpiio_ext.conf"
#define COLLECTIVE_ONLY "romio_no_indep_rw"
#define ROMIO_SITE_FILE "/etc/romio-hints"

enum { VALUE_BYTES = 1024, LINE_BYTES = 1024 };

typedef struct scan {   /* context of one pass over the sources */
    mpiox_hints *hints; /* values to overwrite */
    FILE **collected;   /* where to put those of sources but MPI_Info, NULL: nowhere; made for the first one */
    char **text;        /* the memory that *collected writes into */
    size_t *text_bytes;
    mpiox_hint_source source;
    mpiox_hint_source collective_only; /* which has set romio_no_indep_rw last */
    bool repeat;                       /* report what was reported before, too */
    mpiox_mca mca;
    mpiox_hints_report report;
    void *context;
} scan;

/* ---- reporting --------------------------------------------------------------------------------------------------- */

/* True the first time a message is seen in this process. Remembered by hash: a rare collision hides a message, which is
 * better than an unbounded list. */
static bool first_time(const char *message)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t seen[256];
    static int used;
    uint64_t hash = UINT64_C(1469598103934665603); /* FNV-1a */
    bool first = true;

    for (; *message != '\0'; message++)
        hash = (hash ^ (unsigned char)*message) * UINT64_C(1099511628211);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < used && first; i++)
        first = seen[i] != hash;
    if (first && used < (int)(sizeof seen / sizeof seen[0]))
        seen[used++] = hash;
    pthread_mutex_unlock(&lock);
    return first;
}

static void report_once(const char *message, void *context)
{
    scan *pass = context;

    if (pass->report != NULL && (pass->repeat || first_time(message)))
        pass->report(message, pass->context);
}

int mpiox_hints_check(const char *name, const char *value, char *message, int64_t message_bytes)
{
    mpiox_hints scratch;
    const char *nearest;
    int index = mpiox_hints_find(name);
    char ignored[1];

    if (message == NULL || message_bytes <= 0) {
        message = ignored;
        message_bytes = (int64_t)sizeof ignored;
    }
    message[0] = '\0';
    if (index >= 0) {
        const mpiox_hint_spec *spec = mpiox_hints_spec(index);

        mpiox_hints_defaults(&scratch);
        const bool good = mpiox_hint_parse(spec, value, &scratch) == MPIOX_OK;
        const char *lacking = good ? mpiox_hint_lacks(&scratch) : NULL;

        if (good && lacking == NULL)
            return MPIOX_OK;
        if (good)
            snprintf(message, (size_t)message_bytes,
                     "hint %s=%.80s needs a part that this build does not have "
                     "(-D%s=OFF)",
                     name, value, lacking);
        else
            snprintf(message, (size_t)message_bytes, "hint %s has the bad value \"%.80s\"; allowed: %s", name, value,
                     spec->values);
        return MPIOX_E_ARG;
    }
    if (mpiox_hints_is_foreign(name, NULL))
        return MPIOX_OK;
    if (strncmp(name, "nc_", 3) == 0) { /* PnetCDF has read its own before it calls MPI_File_open */
        snprintf(message, (size_t)message_bytes,
                 "hint %.80s cannot reach PnetCDF from here: set PNETCDF_HINTS=\"%.80s=%.80s\"", name, name, value);
        return MPIOX_E_ARG;
    }
    nearest = mpiox_hints_nearest(name);
    if (nearest != NULL)
        snprintf(message, (size_t)message_bytes, "hint %.80s does not exist; did you mean %s?", name, nearest);
    else
        snprintf(message, (size_t)message_bytes, "hint %.80s does not exist", name);
    return MPIOX_E_ARG;
}

/* ---- one pair ---------------------------------------------------------------------------------------------------- */

/* The value as an MPI library understands it: numbers without suffixes. */
static void canonical(const char *name, const char *value, char *text, int64_t text_bytes)
{
    mpiox_hints scratch;
    int64_t bytes;
    int index = mpiox_hints_find(name), is_bytes = 0;

    snprintf(text, (size_t)text_bytes, "%s", value);
    if (index >= 0) {
        mpiox_hints_defaults(&scratch);
        if (mpiox_hint_parse(mpiox_hints_spec(index), value, &scratch) == MPIOX_OK)
            mpiox_hint_format(mpiox_hints_spec(index), &scratch, text, text_bytes);
    } else if (mpiox_hints_is_foreign(name, &is_bytes) && is_bytes && mpiox_hints_parse_bytes(value, &bytes) == 0) {
        snprintf(text, (size_t)text_bytes, "%" PRId64, bytes);
    }
}

/* Is this name from another library's source none of ours, and not a misspelt one of ours? */
static bool is_theirs(mpiox_hint_source source, const char *name)
{
    return (source == MPIOX_HINT_ROMIO_SITE || source == MPIOX_HINT_ROMIO || source == MPIOX_HINT_CRAY) &&
           mpiox_hints_find(name) < 0 && strncmp(name, PREFIX, sizeof PREFIX - 1) != 0 &&
           strncmp(name, "nc_", 3) != 0 && mpiox_hints_nearest(name) == NULL;
}

/* MPI_Info_set() with a longer name or value is an error, which may end the program. */
static bool fits_info(const char *name, const char *value)
{
    return strlen(name) < MPI_MAX_INFO_KEY && strlen(value) < MPI_MAX_INFO_VAL;
}

static int check(mpiox_hint_source source, const char *name, const char *value, char *problem, int64_t problem_bytes)
{
    if (!is_theirs(source, name) && mpiox_hints_check(name, value, problem, problem_bytes) != MPIOX_OK)
        return MPIOX_E_ARG;
    if (fits_info(name, value))
        return MPIOX_OK;
    snprintf(problem, (size_t)problem_bytes,
             "hint %.80s is longer than MPI takes: names below %d bytes, values below %d", name, (int)MPI_MAX_INFO_KEY,
             (int)MPI_MAX_INFO_VAL);
    return MPIOX_E_ARG;
}

/* start_iodevice is romio_lustre_start_iodevice to MPICH 4 and Cray's MPI. */
static const char *our_name(const char *name)
{
    return strcmp(name, "romio_lustre_start_iodevice") == 0 ? "start_iodevice" : name;
}

static void collect(const char *name, const char *value, bool weak, scan *pass)
{
    char text[VALUE_BYTES];

    if (*pass->collected == NULL)
        *pass->collected = open_memstream(pass->text, pass->text_bytes);
    if (*pass->collected == NULL)
        return; /* the MPI library works without the hint */
    canonical(name, value, text, (int64_t)sizeof text);
    fprintf(*pass->collected, "%c%s=%s\n", weak ? 'w' : 's', name, text);
}

/* A size above the hint's limit is in force as the limit: report that in one line. */
static void report_clamped(int index, const char *value, const char *where, scan *pass)
{
    const mpiox_hint_spec *spec = mpiox_hints_spec(index);
    mpiox_hints scratch;
    char text[VALUE_BYTES], message[2 * LINE_BYTES];
    int64_t asked = 0, used = 0;

    if (strcmp(spec->type, "bytes") != 0 || mpiox_hints_parse_bytes(value, &asked) != MPIOX_OK)
        return;
    mpiox_hints_defaults(&scratch);
    mpiox_hint_parse(spec, value, &scratch);
    mpiox_hint_format(spec, &scratch, text, (int64_t)sizeof text);
    if (mpiox_hints_parse_bytes(text, &used) != MPIOX_OK || used == asked)
        return;
    snprintf(message, sizeof message,
             "%s: hint %s=%.80s (%" PRId64 " bytes) is above its limit; %s is in force; allowed: %s", where, spec->name,
             value, asked, text, spec->values);
    report_once(message, pass);
}

static bool is_true(const char *value)
{
    return strcasecmp(value, "true") == 0;
}

static void visit(const char *given, const char *value, const char *where, void *context)
{
    scan *pass = context;
    char problem[LINE_BYTES], message[2 * LINE_BYTES];
    const char *name = our_name(given);
    int index = mpiox_hints_find(name);

    if (check(pass->source, name, value, problem, (int64_t)sizeof problem) != MPIOX_OK) {
        snprintf(message, sizeof message, "%s: %s; ignored", where, problem);
        report_once(message, pass);
        return;
    }
    if (index >= 0)
        report_clamped(index, value, where, pass);
    if (index >= 0) {
        mpiox_hint_parse(mpiox_hints_spec(index), value, pass->hints);
        pass->hints->source[index] = (uint8_t)pass->source;
    }
    if (pass->collected != NULL && pass->source != MPIOX_HINT_INFO && pass->source != MPIOX_HINT_DEFAULT &&
        strncmp(name, PREFIX, sizeof PREFIX - 1) != 0 && strchr(value, '\n') == NULL) {
        collect(name, value, pass->source < MPIOX_HINT_INFO, pass);
        if (name != given) /* each MPI library takes the one that it knows */
            collect(given, value, pass->source < MPIOX_HINT_INFO, pass);
    }
    if (strcmp(name, COLLECTIVE_ONLY) == 0) {
        pass->hints->collective_only = is_true(value);
        pass->collective_only = pass->source;
    }
}

/* Cray's one switch of direct I/O is two hints here, by ROMIO's names; the others have the same names. */
static void visit_cray(const char *name, const char *value, const char *where, void *context)
{
    if (strcmp(name, "direct_io") != 0) {
        visit(name, value, where, context);
        return;
    }
    visit("direct_read", value, where, context);
    visit("direct_write", value, where, context);
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

/* The file that ROMIO_HINTS names; where it is not set, or the file cannot be read, the site's: as ROMIO does. */
static FILE *open_romio(bool *by_site, scan *pass)
{
    const char *file = mpiox_text_variable("ROMIO_HINTS");
    FILE *stream = file != NULL ? fopen(file, "re") : NULL;
    char message[LINE_BYTES];

    if (file != NULL && stream == NULL) {
        snprintf(message, sizeof message,
                 "ROMIO_HINTS: %.480s cannot be read: %s; %s is read instead if it exists, as ROMIO does", file,
                 strerror(errno), ROMIO_SITE_FILE);
        report_once(message, pass);
    }
    *by_site = stream == NULL;
    return stream != NULL ? stream : fopen(ROMIO_SITE_FILE, "re");
}

static void scan_romio(FILE *stream, bool by_site, scan *pass)
{
    if (stream == NULL)
        return;
    pass->source = by_site ? MPIOX_HINT_ROMIO_SITE : MPIOX_HINT_ROMIO;
    mpiox_hints_scan_romio(stream, by_site ? ROMIO_SITE_FILE : mpiox_text_variable("ROMIO_HINTS"), visit, report_once,
                           pass);
    fclose(stream);
}

/* The sources that are weaker than MPI_Info. */
static void scan_weak(const char *path, scan *pass)
{
    const char *file = mpiox_text_variable("MPIOX_SITE_FILE");
    bool by_site;
    FILE *romio = open_romio(&by_site, pass);

    if (by_site)
        scan_romio(romio, by_site, pass);
    mpiox_mca_gather(&pass->mca, mpiox_hints_openmpi_folder(), report_once, pass);
    pass->source = MPIOX_HINT_MCA_SITE;
    mpiox_mca_visit(&pass->mca, true, visit, pass);
    pass->source = MPIOX_HINT_SITE;
    mpiox_hints_scan_file(file != NULL ? file : SITE_FILE, file != NULL, path, visit, report_once, pass);
    pass->source = MPIOX_HINT_MCA;
    mpiox_mca_visit(&pass->mca, false, visit, pass);
    if (!by_site)
        scan_romio(romio, by_site, pass);
}

static void scan_strong(const char *path, scan *pass)
{
    const char *file = mpiox_text_variable("MPIOX_HINTS_FILE"), *text = mpiox_text_variable("MPIOX_HINTS"),
               *cray = mpiox_text_variable("MPICH_MPIIO_HINTS");

    pass->source = MPIOX_HINT_CRAY;
    if (cray != NULL)
        mpiox_hints_scan_cray(cray, path, visit_cray, report_once, pass);
    pass->source = MPIOX_HINT_FILE;
    if (file != NULL)
        mpiox_hints_scan_file(file, 1, path, visit, report_once, pass);
    pass->source = MPIOX_HINT_ENV;
    if (text != NULL)
        mpiox_hints_scan_text(text, path, visit, report_once, pass);
}

/* Variables that set defaults: statistics are wanted for a whole run, pretended nodes for a whole test. A name of a
 * file for statistics requests them, unless MPIOX_STATS refuses; so does the page of a run. */
static void scan_default_variables(scan *pass)
{
    static const struct {
        const char *variable, *hint;
    } defaults[] = {{"MPIOX_STATS", "mpiox_stats"}, {"MPIOX_RANKS_PER_NODE", "mpiox_ranks_per_node"}};

    pass->source = MPIOX_HINT_DEFAULT;
    if (mpiox_text_variable("MPIOX_STATS_FILE") != NULL)
        visit("mpiox_stats", "true", "MPIOX_STATS_FILE", pass);
    if (mpiox_text_variable("MPIOX_REPORT_STATS") != NULL)
        visit("mpiox_stats", "true", "MPIOX_REPORT_STATS", pass);
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        const char *value = mpiox_text_variable(defaults[i].variable);

        if (value != NULL)
            visit(defaults[i].hint, value, defaults[i].variable, pass);
    }
}

int mpiox_hints_info_get(MPI_Info info, const char *key, char *value, int value_bytes, int *found)
{
#if MPI_VERSION >= 4
    int bytes = value_bytes;

    if (MPIOX_HAS(PMPI_Info_get_string))
        return PMPI_Info_get_string(info, key, &bytes, value, found);
#endif
#if MPI_VERSION < 5 || defined(MPICH) /* the standard ABI has it no more */
    return PMPI_Info_get(info, key, value_bytes - 1, value, found);
#else
    return MPI_ERR_UNSUPPORTED_OPERATION;
#endif
}

/* Did MPI_File_get_info() return this value as one that the library chose itself? */
static bool is_choice(const char *choices, const char *key, const char *value)
{
    char entry[MPI_MAX_INFO_KEY + VALUE_BYTES + 4];

    snprintf(entry, sizeof entry, ";%s=%s;", key, value);
    return strstr(choices, entry) != NULL;
}

static void scan_info(MPI_Info info, scan *pass)
{
    char key[MPI_MAX_INFO_KEY + 1], value[VALUE_BYTES], choices[VALUE_BYTES] = "";
    int keys = 0, found = 0;

    if (info == MPI_INFO_NULL || PMPI_Info_get_nkeys(info, &keys) != MPI_SUCCESS)
        return;
    pass->source = MPIOX_HINT_INFO;
    if (mpiox_hints_info_get(info, MPIOX_HINTS_CHOSEN, choices, VALUE_BYTES, &found) != MPI_SUCCESS || !found)
        choices[0] = '\0';
    for (int i = 0; i < keys; i++) {
        if (PMPI_Info_get_nthkey(info, i, key) != MPI_SUCCESS || strcmp(key, MPIOX_HINTS_CHOSEN) == 0)
            continue;
        if (mpiox_hints_find(our_name(key)) < 0 && strncmp(key, PREFIX, sizeof PREFIX - 1) != 0 &&
            strcmp(key, COLLECTIVE_ONLY) != 0)
            continue;
        if (mpiox_hints_info_get(info, key, value, VALUE_BYTES, &found) == MPI_SUCCESS && found &&
            !is_choice(choices, key, value))
            visit(key, value, "MPI_Info", pass);
    }
}

/* romio_no_indep_rw=true turns collective buffering on, from whichever sources both hints come: as in ROMIO. */
static void force_collectives(scan *pass)
{
    static const char *const forced[] = {"romio_cb_read", "romio_cb_write"};

    for (size_t i = 0; i < sizeof forced / sizeof forced[0] && pass->hints->collective_only; i++) {
        const int index = mpiox_hints_find(forced[i]);

        mpiox_hint_parse(mpiox_hints_spec(index), "enable", pass->hints);
        pass->hints->source[index] = (uint8_t)pass->collective_only;
        if (pass->collected != NULL && (*pass->collected != NULL || pass->collective_only != MPIOX_HINT_INFO))
            collect(forced[i], "enable", false, pass);
    }
}

static void resolve(const char *path, MPI_Info info, scan *pass)
{
    mpiox_hints_defaults(pass->hints);
    scan_default_variables(pass);
    scan_weak(path, pass);
    scan_info(info, pass);
    scan_strong(path, pass);
    force_collectives(pass);
}

int mpiox_hints_resolve(const char *path, MPI_Info info, mpiox_hints *out, mpiox_hints_report report, void *context)
{
    scan pass = {.hints = out, .report = report, .context = context};

    resolve(path, info, &pass);
    return MPIOX_OK;
}

int mpiox_hints_resolve_and_collect(const char *path, MPI_Info info, mpiox_hints *out, char **collected,
                                    mpiox_hints_report report, void *context)
{
    FILE *stream = NULL;
    char *text = NULL;
    size_t bytes = 0;
    scan pass = {
        .hints = out, .collected = &stream, .text = &text, .text_bytes = &bytes, .report = report, .context = context};

    resolve(path, info, &pass);
    *collected = NULL;
    if (stream == NULL)
        return MPIOX_OK;
    if (fclose(stream) == 0)
        *collected = text;
    else
        free(text);
    return MPIOX_OK;
}

int mpiox_hints_resolve_all(const char *path, MPI_Info info, mpiox_hints *out, mpiox_hints_report report, void *context)
{
    scan pass = {.hints = out, .repeat = true, .report = report, .context = context};

    resolve(path, info, &pass);
    return MPIOX_OK;
}

/* ---- info objects ------------------------------------------------------------------------------------------------ */

/* "0" of a hint whose default is 0: the library chooses. MPI libraries do not accept it (Open MPI 4.1 divides by
 * it). */
static bool leaves_open(const char *name, const char *value)
{
    int index = mpiox_hints_find(name);

    return index >= 0 && strcmp(value, "0") == 0 && strcmp(mpiox_hints_spec(index)->default_value, "0") == 0;
}

/* given: the program's object, whose entries are stronger than weak lines; out: its copy. */
static int apply_line(char *line, MPI_Info given, MPI_Info out)
{
    char *equals = strchr(line, '='), present[VALUE_BYTES];
    int found = 0;

    if (equals == NULL)
        return MPI_SUCCESS;
    *equals = '\0';
    if (line[0] == 'w' && given != MPI_INFO_NULL &&
        mpiox_hints_info_get(given, line + 1, present, VALUE_BYTES, &found) == MPI_SUCCESS && found)
        return MPI_SUCCESS;
    if (leaves_open(line + 1, equals + 1))
        return mpiox_hints_info_get(out, line + 1, present, VALUE_BYTES, &found) == MPI_SUCCESS && found
                   ? PMPI_Info_delete(out, line + 1)
                   : MPI_SUCCESS;
    return equals[1] != '\0' ? PMPI_Info_set(out, line + 1, equals + 1) : MPI_SUCCESS;
}

int mpiox_hints_apply(const char *collected, MPI_Info info, MPI_Info *out)
{
    char *copy = strdup(collected), *rest = NULL;
    int code;

    if (copy == NULL)
        return MPIOX_E_NOMEM;
    code = info == MPI_INFO_NULL ? PMPI_Info_create(out) : PMPI_Info_dup(info, out);
    if (code != MPI_SUCCESS)
        *out = MPI_INFO_NULL;
    for (char *line = copy; code == MPI_SUCCESS && (line = strtok_r(line, "\n", &rest)) != NULL; line = NULL)
        code = apply_line(line, info, *out);
    free(copy);
    if (code != MPI_SUCCESS && *out != MPI_INFO_NULL)
        PMPI_Info_free(out);
    return code == MPI_SUCCESS ? MPIOX_OK : MPIOX_E_MPI;
}

int mpiox_hints_to_info(const mpiox_hints *hints, MPI_Info info)
{
    char text[VALUE_BYTES];

    for (int i = 0; i < mpiox_hints_count(); i++) {
        const mpiox_hint_spec *spec = mpiox_hints_spec(i);

        if (strncmp(spec->name, PREFIX, sizeof PREFIX - 1) != 0 && hints->source[i] == MPIOX_HINT_DEFAULT)
            continue;
        mpiox_hint_format(spec, hints, text, (int64_t)sizeof text);
        if (strncmp(spec->name, PREFIX, sizeof PREFIX - 1) != 0 && leaves_open(spec->name, text))
            continue;
        if (text[0] != '\0' && PMPI_Info_set(info, spec->name, text) != MPI_SUCCESS)
            return MPIOX_E_MPI;
    }
    return MPIOX_OK;
}

void mpiox_hints_put_number(MPI_Info info, const char *name, int64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)value);
    PMPI_Info_set(info, name, text);
}
