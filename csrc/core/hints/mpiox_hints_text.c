/*
 * mpiox_hints_text.c - scanning MPIOX_HINTS, MPICH_MPIIO_HINTS and hints files. The grammars are in mpiox_hints_text.h.
 *
 * The scanner of MPIOX_HINTS never backtracks over consumed text. Where a separator could also be part of a value it
 * looks ahead for the start of a hint or rule. A value that is not quoted cannot contain one by definition.
 */
#include "mpiox_hints_text.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_error.h"

enum { TOKEN_BYTES = 1024 };

/* The differences between the variables of the two libraries. */
typedef struct dialect {
    const char *variable;
    char quote;
    bool cray; /* one rule per file, with a glob, which is matched against the whole path and keeps its backslashes */
} dialect;

static const dialect ours = {"MPIOX_HINTS", '"', false}, cray = {"MPICH_MPIIO_HINTS", '#', true};

static bool matches(const char *glob, const char *path, bool whole)
{
    const char *base;

    if (path == NULL)
        return true;
    base = whole ? NULL : strrchr(path, '/');
    return fnmatch(glob, path, 0) == 0 || (base != NULL && fnmatch(glob, base + 1, 0) == 0);
}

static const char *skip_blanks(const char *p)
{
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

/* Is there "name =" at p? Returns the place behind the '=' or NULL. */
static const char *hint_at(const char *p)
{
    p = skip_blanks(p);
    if (!isalpha((unsigned char)*p))
        return NULL;
    while (isalnum((unsigned char)*p) || *p == '_')
        p++;
    p = skip_blanks(p);
    return *p == '=' ? p + 1 : NULL;
}

/* Is there a rule at p: a hint, or "glob :" and a hint? */
static bool rule_at(const char *p, const dialect *d)
{
    if (hint_at(p) != NULL)
        return true;
    p = skip_blanks(p);
    if (*p == '"' && !d->cray) {
        for (p++; *p != '\0' && *p != '"'; p++)
            p += *p == '\\' && p[1] != '\0';
        if (*p == '\0')
            return false;
        p++;
    } else {
        for (; *p != '\0' && strchr(d->cray ? ",:=" : ",:=\"", *p) == NULL; p++)
            p += *p == '\\' && p[1] != '\0';
    }
    p = skip_blanks(p);
    return *p == ':' && hint_at(p + 1) != NULL;
}

/* Does the separator at p end a value: a hint follows, or nothing does (scripts write "a:cb_nodes=4:,b:cb_nodes=2")? */
static bool ends_value(const char *p)
{
    const char *next = skip_blanks(p + 1);

    return hint_at(next) != NULL || strchr(":,", *next) != NULL; /* the text's end, too */
}

/* Copy one glob or value to token without quotes, backslashes and outer blanks; returns where it ends, NULL if too long
 * or a quote is not closed. */
static const char *take(const char *p, bool is_glob, const dialect *d, char *token)
{
    const bool raw = is_glob && d->cray; /* quotes and backslashes are the glob's */
    size_t used = 0, solid = 0;          /* solid: length up to the last character that is not a trailing blank */

    p = skip_blanks(p);
    while (*p != '\0') {
        bool literal = false;

        if (*p == d->quote && !raw) {
            for (p++; *p != d->quote; p++) {
                if (*p == '\\' && p[1] != '\0')
                    p++;
                if (*p == '\0' || used + 1 >= TOKEN_BYTES)
                    return NULL;
                token[used++] = *p;
            }
            solid = used;
            p++;
            continue;
        }
        if (*p == '\\' && p[1] != '\0') {
            if (raw && used + 1 < TOKEN_BYTES)
                token[used++] = *p;
            p++;
            literal = true;
        } else if (*p == ':' && (is_glob || (d->cray ? ends_value(p) : hint_at(p + 1) != NULL))) {
            break;
        } else if (*p == ',' && (is_glob || *skip_blanks(p + 1) == '\0' || rule_at(p + 1, d))) {
            break;
        }
        if (used + 1 >= TOKEN_BYTES)
            return NULL;
        token[used++] = *p;
        if (literal || !isspace((unsigned char)*p))
            solid = used;
        p++;
    }
    token[solid] = '\0';
    return p;
}

static void complain(mpiox_hints_report report, void *context, const char *where, const char *what, const char *at)
{
    char message[256];

    if (report == NULL)
        return;
    snprintf(message, sizeof message, "%s: %s at \"%.40s\"; the rest of it is ignored", where, what, at);
    report(message, context);
}

/* The state of a scan of one variable's text. */
typedef struct reader {
    const dialect *dialect;
    const char *path;
    mpiox_hints_visit visit;
    mpiox_hints_report report;
    void *context;
} reader;

/* The hint at p, whose value begins at `after`. Returns where it ends; NULL: it is ill-formed, and reported. */
static const char *scan_hint(const reader *r, const char *p, const char *after, bool counts)
{
    char name[TOKEN_BYTES], value[TOKEN_BYTES];
    const char *start = p, *where = r->dialect->variable;

    if (after == NULL || (size_t)(after - p) >= sizeof name) {
        complain(r->report, r->context, where, "expected NAME=VALUE", start);
        return NULL;
    }
    p = skip_blanks(p);
    snprintf(name, sizeof name, "%.*s", (int)(after - p - 1), p);
    name[strcspn(name, " \t\r\n")] = '\0';
    p = take(after, false, r->dialect, value);
    if (p == NULL)
        complain(r->report, r->context, where, "value too long or quote not closed", start);
    else if (counts)
        r->visit(name, value, where, r->context);
    return p;
}

/* The hint or rule behind the separator at p; Cray's hints without a name or value are passed over. */
static const char *next_item(const char *p, const dialect *d, bool *starts_rule)
{
    while (d->cray && *p == ':' && strchr(":,", *skip_blanks(p + 1)) != NULL) /* the text's end, too */
        p = skip_blanks(p + 1);
    *starts_rule = *p != ':'; /* after a ',' or at the end */
    return *p != '\0' ? skip_blanks(p + 1) : p;
}

static void scan(const reader *r, const char *text)
{
    const dialect *d = r->dialect;
    char glob[TOKEN_BYTES] = "*";
    const char *p = skip_blanks(text);
    bool starts_rule = true, done = false;

    while ((*p != '\0' || !starts_rule) && !done) {
        const char *start = p, *after = hint_at(p);

        if ((after == NULL || d->cray) && starts_rule) {
            p = take(p, true, d, glob);
            if (p == NULL || *p != ':' || glob[0] == '\0') {
                complain(r->report, r->context, d->variable, "expected GLOB:NAME=VALUE", start);
                return;
            }
            p++;
            starts_rule = false;
            continue;
        }
        if (starts_rule)
            strcpy(glob, "*");
        p = scan_hint(r, p, after, matches(glob, r->path, d->cray));
        if (p == NULL)
            return;
        p = next_item(p, d, &starts_rule);
        done = starts_rule && d->cray && r->path != NULL && matches(glob, r->path, true);
    }
}

void mpiox_hints_scan_text(const char *text, const char *path, mpiox_hints_visit visit, mpiox_hints_report report,
                           void *context)
{
    scan(&(reader){&ours, path, visit, report, context}, text);
}

void mpiox_hints_scan_cray(const char *text, const char *path, mpiox_hints_visit visit, mpiox_hints_report report,
                           void *context)
{
    scan(&(reader){&cray, path, visit, report, context}, text);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Cut a comment and outer blanks off; returns the first character that counts. */
char *mpiox_hints_tidy(char *line)
{
    bool quoted = false;
    char *end;

    line = (char *)skip_blanks(line);
    for (char *p = line; *p != '\0'; p++) {
        if (*p == '"')
            quoted = !quoted;
        if (!quoted && (*p == '#' || *p == ';') && (p == line || isspace((unsigned char)p[-1]))) {
            *p = '\0';
            break;
        }
    }
    end = line + strlen(line);
    while (end > line && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return line;
}

/* "[glob]": the glob may hold brackets itself, so the section ends at the last one. */
static bool section(char *line, char *glob)
{
    size_t length = strlen(line);

    if (line[0] != '[' || length < 3 || line[length - 1] != ']' || length - 2 >= TOKEN_BYTES)
        return false;
    snprintf(glob, TOKEN_BYTES, "%.*s", (int)(length - 2), line + 1);
    return true;
}

/* Split "name = value" in place. */
bool mpiox_hints_assignment(char *line, char **name, char **value)
{
    char *equals = strchr(line, '=');
    size_t length;

    if (hint_at(line) == NULL || equals == NULL)
        return false;
    *name = line;
    *value = (char *)skip_blanks(equals + 1);
    do
        *equals-- = '\0';
    while (equals > line && isspace((unsigned char)*equals));
    length = strlen(*value);
    if (length >= 2 && (*value)[0] == '"' && (*value)[length - 1] == '"') {
        (*value)[length - 1] = '\0';
        ++*value;
    }
    return true;
}

void mpiox_hints_scan_file(const char *file, int must_exist, const char *path, mpiox_hints_visit visit,
                           mpiox_hints_report report, void *context)
{
    char glob[TOKEN_BYTES] = "*", where[512], message[768];
    char *line = NULL;
    size_t capacity = 0;
    FILE *stream = fopen(file, "re");

    for (int number = 1; stream != NULL && getline(&line, &capacity, stream) >= 0; number++) {
        char *text = mpiox_hints_tidy(line), *name = NULL, *value = NULL;

        if (text[0] == '\0' || section(text, glob))
            continue;
        snprintf(where, sizeof where, "%.480s:%d", file, number);
        if (text[0] == '[' || !mpiox_hints_assignment(text, &name, &value)) {
            snprintf(message, sizeof message,
                     "%s: expected \"[glob]\" or \"name = value\", found \"%.60s\"; line ignored", where, text);
            if (report != NULL)
                report(message, context);
        } else if (matches(glob, path, false)) {
            visit(name, value, where, context);
        }
    }
    if (report != NULL && (stream == NULL ? must_exist || errno != ENOENT : ferror(stream) != 0)) {
        snprintf(message, sizeof message, "hints file %s cannot be read: %s", file, strerror(errno));
        report(message, context);
    }
    free(line);
    if (stream != NULL)
        fclose(stream);
}
