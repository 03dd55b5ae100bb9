/*
 * mpiox_hints_romio.c - scanning the file that ROMIO_HINTS names. The grammar is in mpiox_hints_text.h.
 *
 * ROMIO silently skips lines that it cannot parse. This library honours the same lines and reports the others, because
 * a line that silently does nothing costs users most time.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "mpiox_hints_text.h"

enum {
    ROMIO_BYTES = 4096,              /* HINTFILE_MAX_SIZE of adio/common/system_hints.c */
    MAX_NAMES = ROMIO_BYTES / 4 + 1, /* a name, a blank, a value, an end of line */
    MESSAGE_BYTES = 768
};

/* One pass over a file. */
typedef struct romio_scan {
    const char *file;
    int line;
    const char *names[MAX_NAMES]; /* seen so far; in the text */
    int lines[MAX_NAMES], n_names;
    mpiox_hints_visit visit;
    mpiox_hints_report report;
    void *context;
} romio_scan;

static void complain(const romio_scan *s, const char *what)
{
    char message[MESSAGE_BYTES];

    if (s->report == NULL)
        return;
    snprintf(message, sizeof message, "%.480s:%d: %s; line ignored", s->file, s->line, what);
    s->report(message, s->context);
}

static bool is_name(const char *text)
{
    if (!isalpha((unsigned char)*text))
        return false;
    while (isalnum((unsigned char)*text) || *text == '_' || *text == '-' || *text == '.')
        text++;
    return *text == '\0';
}

static void scan_line(romio_scan *s, char *line)
{
    char problem[160], where[512], *rest = NULL, *name, *value;

    snprintf(problem, sizeof problem, "expected \"NAME VALUE\" (two words, no \"=\"), found \"%.60s\"", line);
    name = strtok_r(line, " \t\r", &rest);
    if (name == NULL || *name == '#')
        return;
    value = strtok_r(NULL, " \t\r", &rest);
    if (value == NULL || strtok_r(NULL, " \t\r", &rest) != NULL || !is_name(name)) {
        complain(s, problem);
        return;
    }
    for (int i = 0; i < s->n_names; i++) {
        if (strcmp(s->names[i], name) == 0) {
            snprintf(problem, sizeof problem, "hint %.60s has a value in line %d, and the first one is in force", name,
                     s->lines[i]);
            complain(s, problem);
            return;
        }
    }
    s->names[s->n_names] = name;
    s->lines[s->n_names++] = s->line;
    snprintf(where, sizeof where, "%.480s:%d", s->file, s->line);
    s->visit(name, value, where, s->context);
}

/* The part of the file that ROMIO would read: whole lines of its first bytes, up to a null character. */
static void read_text(const romio_scan *s, FILE *stream, char *text)
{
    char message[MESSAGE_BYTES];
    size_t bytes = fread(text, 1, ROMIO_BYTES + 1, stream);
    const bool failed = ferror(stream) != 0, cut = bytes > ROMIO_BYTES;
    const int error = errno;

    text[cut ? ROMIO_BYTES : bytes] = '\0';
    if (cut && strrchr(text, '\n') != NULL)
        strrchr(text, '\n')[1] = '\0';
    if (s->report == NULL)
        return;
    if (failed) {
        snprintf(message, sizeof message, "%.480s cannot be read: %s", s->file, strerror(error));
        s->report(message, s->context);
    } else if (cut) {
        snprintf(message, sizeof message, "%.480s: has more than %d bytes, and ROMIO reads no more; shorten it",
                 s->file, (int)ROMIO_BYTES);
        s->report(message, s->context);
    } else if (strlen(text) < bytes) {
        snprintf(message, sizeof message, "%.480s: has a null character; what follows it is ignored", s->file);
        s->report(message, s->context);
    }
}

void mpiox_hints_scan_romio(FILE *stream, const char *file, mpiox_hints_visit visit, mpiox_hints_report report,
                            void *context)
{
    char text[ROMIO_BYTES + 2], *line = text;
    romio_scan s = {.file = file, .visit = visit, .report = report, .context = context};

    read_text(&s, stream, text);
    while (line != NULL) {
        char *end = strchr(line, '\n');

        if (end != NULL)
            *end = '\0';
        s.line++;
        scan_line(&s, line);
        line = end != NULL ? end + 1 : NULL;
    }
}
