/* mpiox_hints_mca.c - see mpiox_hints_mca.h. */
#include "mpiox_hints_mca.h"

#include <stdlib.h>
#include <string.h>

#include "mpiox_text.h"

#define BLANKS " \t"
#define PREFIX "OMPI_MCA_"

enum { LINE_BYTES = 1024 };

/* Variables with lists of files; `mpirun --tune` of Open MPI 4 sets the second. */
#define FILES "OMPI_MCA_mca_base_param_files"
#define TUNED_FILES "OMPI_MCA_mca_base_envar_file_prefix"

typedef enum kind_of_file { OF_SITE, OF_USER, TUNED } kind_of_file;

/* How a value becomes one. */
typedef enum kind {
    ABOVE_ZERO, /* a number; 0 and less: Open MPI chooses, hence no user has set the hint */
    WHEN_FALSE, /* false: disable; true is what both do by themselves */
    INDIVIDUAL, /* "individual": disable */
    SELECTION   /* no hint: which component of the framework io is used */
} kind;

static const struct {
    const char *variable;
    kind kind;
    const char *hints[2];
} parameters[MPIOX_MCA_PARAMETERS] = {
    {PREFIX "io_ompio_num_aggregators", ABOVE_ZERO, {"cb_nodes", NULL}},
    {PREFIX "io_ompio_bytes_per_agg", ABOVE_ZERO, {"cb_buffer_size", NULL}},
    {PREFIX "fs_lustre_stripe_size", ABOVE_ZERO, {"striping_unit", NULL}},
    {PREFIX "fs_lustre_stripe_width", ABOVE_ZERO, {"striping_factor", NULL}},
    {PREFIX "fbtl_posix_max_tmpbuf_size", ABOVE_ZERO, {"ind_rd_buffer_size", "ind_wr_buffer_size"}},
    {PREFIX "fbtl_posix_read_datasieving", WHEN_FALSE, {"romio_ds_read", NULL}},
    {PREFIX "fbtl_posix_write_datasieving", WHEN_FALSE, {"romio_ds_write", NULL}},
    {PREFIX "fcoll", INDIVIDUAL, {"romio_cb_read", "romio_cb_write"}},
    {PREFIX "io", SELECTION, {NULL, NULL}},
};

static int find(const char *name)
{
    for (int i = 0; i < MPIOX_MCA_PARAMETERS; i++)
        if (strcmp(parameters[i].variable + sizeof PREFIX - 1, name) == 0)
            return i;
    return -1;
}

/* ---- looking up -------------------------------------------------------------------------------------------------- */

static void set(mpiox_mca_value *out, const char *text, const char *where, bool by_site)
{
    snprintf(out->text, sizeof out->text, "%s", text);
    snprintf(out->where, sizeof out->where, "%s", where);
    out->by_site = by_site;
}

/* Open MPI itself reports lines that are none; only one that names a parameter of ours is ours to report. */
static void report_line(char *line, const char *where, mpiox_hints_report report, void *context)
{
    char message[LINE_BYTES];

    line[strcspn(line, " \t:")] = '\0';
    if (report == NULL || find(line) < 0)
        return;
    snprintf(message, sizeof message, "%.500s: expected \"%s = VALUE\"; line ignored", where, line);
    report(message, context);
}

static void scan_assignment(mpiox_mca *mca, char *text, const char *where, bool by_site, mpiox_hints_report report,
                            void *context)
{
    char *name = NULL, *value = NULL;
    int index;

    if (!mpiox_hints_assignment(text, &name, &value))
        report_line(text, where, report, context);
    else if ((index = find(name)) >= 0)
        set(mca->values + index, value, where, by_site);
}

void mpiox_mca_scan_file(mpiox_mca *mca, FILE *stream, const char *file, bool by_site, mpiox_hints_report report,
                         void *context)
{
    char where[MPIOX_MCA_WHERE_BYTES], *line = NULL;
    size_t capacity = 0;

    for (int number = 1; getline(&line, &capacity, stream) >= 0; number++) {
        char *text = mpiox_hints_tidy(line);

        if (text[0] == '\0') /* nearly all lines are comments, and every opening reads them */
            continue;
        snprintf(where, sizeof where, "%.480s:%d", file, number);
        scan_assignment(mca, text, where, by_site, report, context);
    }
    free(line);
}

/* The words of "-mca NAME VALUE -x VARIABLE=VALUE ..."; a value may stand in double quotes. */
static void scan_options(mpiox_mca *mca, char *text, const char *where)
{
    char *rest = NULL, *word = strtok_r(text, BLANKS, &rest);

    while (word != NULL) {
        const bool is_parameter = strcmp(word, "-mca") == 0 || strcmp(word, "--mca") == 0;
        const char *name = is_parameter ? strtok_r(NULL, BLANKS, &rest) : NULL;
        char *value = name != NULL ? strtok_r(NULL, BLANKS, &rest) : NULL;
        const int index = value != NULL ? find(name) : -1;

        if (value != NULL && value[0] == '"' && strlen(value) > 1 && value[strlen(value) - 1] == '"') {
            value[strlen(value) - 1] = '\0';
            value++;
        }
        if (index >= 0)
            set(mca->values + index, value, where, false);
        word = strtok_r(NULL, BLANKS, &rest);
    }
}

/* A file of `mpirun --tune`: lines "name = value", or words "-mca NAME VALUE" and "-x VARIABLE", several in a line. */
void mpiox_mca_scan_tuned(mpiox_mca *mca, FILE *stream, const char *file, mpiox_hints_report report, void *context)
{
    char where[MPIOX_MCA_WHERE_BYTES], *line = NULL;
    size_t capacity = 0;

    for (int number = 1; getline(&line, &capacity, stream) >= 0; number++) {
        char *text = mpiox_hints_tidy(line);

        snprintf(where, sizeof where, "%.480s:%d", file, number);
        if (text[0] == '-')
            scan_options(mca, text, where);
        else
            scan_assignment(mca, text, where, false, report, context);
    }
    free(line);
}

void mpiox_mca_scan_environment(mpiox_mca *mca)
{
    for (int i = 0; i < MPIOX_MCA_PARAMETERS; i++) {
        const char *text = getenv(parameters[i].variable);

        if (text != NULL)
            set(mca->values + i, text, parameters[i].variable, false);
    }
}

/* Whether there is such a file. */
static bool scan_named(mpiox_mca *mca, const char *file, kind_of_file kind, mpiox_hints_report report, void *context)
{
    FILE *stream = fopen(file, "re");

    if (stream == NULL)
        return false;
    if (kind == TUNED)
        mpiox_mca_scan_tuned(mca, stream, file, report, context);
    else
        mpiox_mca_scan_file(mca, stream, file, kind == OF_SITE, report, context);
    fclose(stream);
    return true;
}

/* The files in a variable; those to the left in the list are stronger. */
static void scan_list(mpiox_mca *mca, const char *variable, kind_of_file kind, mpiox_hints_report report, void *context)
{
    const char *list = getenv(variable);
    char *files = list != NULL ? strdup(list) : NULL, message[LINE_BYTES];

    while (files != NULL && *files != '\0') {
        char *comma = strrchr(files, ','), *file = comma != NULL ? comma + 1 : files;

        if (*file != '\0' && strcmp(file, "none") != 0 && !scan_named(mca, file, kind, report, context) &&
            report != NULL) {
            snprintf(message, sizeof message, "%s: %.480s cannot be read; ignored", variable, file);
            report(message, context);
        }
        *(comma != NULL ? comma : files) = '\0';
    }
    free(files);
}

void mpiox_mca_gather(mpiox_mca *mca, const char *folder, mpiox_hints_report report, void *context)
{
    const char *home = getenv("HOME");
    char file[LINE_BYTES];

    memset(mca, 0, sizeof *mca);
    if (folder != NULL && getenv(FILES) == NULL) {
        snprintf(file, sizeof file, "%s/openmpi-mca-params.conf", folder);
        scan_named(mca, file, OF_SITE, report, context);
        snprintf(file, sizeof file, "%s/.openmpi/mca-params.conf", home != NULL ? home : "");
        if (home != NULL)
            scan_named(mca, file, OF_USER, report, context);
    } else if (folder != NULL) {
        scan_list(mca, FILES, OF_USER, report, context);
    }
    if (folder != NULL)
        scan_list(mca, TUNED_FILES, TUNED, report, context);
    mpiox_mca_scan_environment(mca);
    if (folder != NULL) {
        snprintf(file, sizeof file, "%s/openmpi-mca-params-override.conf", folder);
        scan_named(mca, file, OF_USER, report, context);
    }
}

/* ---- as hints ---------------------------------------------------------------------------------------------------- */

/* Whether the list of components of the framework io leaves OMPIO out: its parameters then mean nothing. */
static bool leaves_out_ompio(const char *list)
{
    bool named = false;

    for (const char *at = list[0] == '^' ? list + 1 : list; *at != '\0'; at += strcspn(at, ","), at += *at == ',')
        named |= strncmp(at, "ompio", 5) == 0 && (at[5] == ',' || at[5] == '\0');
    return list[0] == '^' ? named : list[0] != '\0' && !named;
}

/* The hint's value; NULL: Open MPI is left to choose. */
static const char *hint_value(kind how, const char *text)
{
    char *end = NULL;

    switch (how) {
    case ABOVE_ZERO:
        return strtoll(text, &end, 10) <= 0 && end != text && *end == '\0' ? NULL : text;
    case WHEN_FALSE:
        return mpiox_text_is_off(text) ? "disable" : NULL;
    case INDIVIDUAL:
        return strcmp(text, "individual") == 0 ? "disable" : NULL;
    case SELECTION:
        break;
    }
    return NULL;
}

void mpiox_mca_visit(const mpiox_mca *mca, bool by_site, mpiox_hints_visit visit, void *context)
{
    if (leaves_out_ompio(mca->values[find("io")].text))
        return;
    for (int i = 0; i < MPIOX_MCA_PARAMETERS; i++) {
        const mpiox_mca_value *value = mca->values + i;
        const char *text = hint_value(parameters[i].kind, value->text);

        if (value->text[0] == '\0' || value->by_site != by_site || text == NULL)
            continue;
        for (int k = 0; k < 2 && parameters[i].hints[k] != NULL; k++)
            visit(parameters[i].hints[k], text, value->where, context);
    }
}
