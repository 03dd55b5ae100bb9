/*
 * mpiox_mpi_print.c - printing statistics. See mpiox_mpi_print.h.
 */
#include "mpiox_mpi_print.h"
#include "mpiox_print.h"
#include "mpiox_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int64_t form(const mpiox_stats *stats, const mpiox_stats_subject *about, char *text, int64_t text_bytes);

/* O_NONBLOCK: to open a named pipe without a reader would wait for one. */
static void append_line(const char *file, const char *text, int64_t bytes)
{
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    const int64_t taken = fd < 0 ? 0 : mpiox_print_to(fd, text, bytes);

    if (taken != bytes)
        mpiox_print("mpiio_ext: cannot append statistics to %s: %s\n", file,
                    taken == 0 ? strerror(errno) : "a part alone was taken, as where a disk becomes full");
    if (fd >= 0)
        close(fd);
}

void mpiox_mpi_hint_texts(const mpiox_hints *hints, mpiox_mpi_hints *out)
{
    out->count = 0;
    for (int i = 0; i < mpiox_hints_count() && out->count < MPIOX_MPI_HINTS_MAX; i++) {
        const mpiox_hint_spec *spec = mpiox_hints_spec(i);
        char *value = out->values[out->count];

        if (hints->source[i] == MPIOX_HINT_DEFAULT)
            continue;
        mpiox_hint_format(spec, hints, value, MPIOX_MPI_VALUE_BYTES);
        out->hints[out->count++] = (mpiox_stats_hint){spec->name, value, mpiox_hints_source_name(hints->source[i])};
    }
}

/* Texts one behind the other, in one write; file NULL: on standard error. */
static void put(const mpiox_stats *stats, const mpiox_stats_subject *about, form *const *forms, int count,
                const char *end, const char *file)
{
    int64_t needed = 0, used = 0;
    char *text;

    for (int i = 0; i < count; i++)
        needed += forms[i](stats, about, NULL, 0);
    text = malloc((size_t)needed + 2);
    if (text == NULL || needed == 0) {
        free(text);
        return;
    }
    for (int i = 0; i < count; i++)
        used += forms[i](stats, about, text + used, needed + 1 - used);
    strcpy(text + used, end);
    if (file != NULL)
        append_line(file, text, (int64_t)strlen(text));
    else
        mpiox_print("%s", text);
    free(text);
}

void mpiox_mpi_print(const mpiox_stats *stats, const mpiox_stats_subject *subject, mpiox_stats_level level)
{
    static form *const json[] = {mpiox_stats_json}, *const texts[] = {mpiox_stats_line, mpiox_stats_table};
    const char *file = mpiox_text_variable("MPIOX_STATS_FILE"), *page = mpiox_text_variable("MPIOX_REPORT_STATS");
    const bool full = level == MPIOX_STATS_FULL || level == MPIOX_STATS_ON;
    mpiox_stats_subject whole = *subject, *about = &whole;
    mpiox_stats_identity identity;

    mpiox_stats_identity_get(&identity);
    whole.identity = &identity;
    if (page != NULL)
        put(stats, about, json, 1, "\n", page);
    if (page != NULL && file == NULL && mpiox_text_variable("MPIOX_STATS") == NULL)
        return;
    if (file != NULL || level == MPIOX_STATS_JSON)
        put(stats, about, json, 1, "\n", file);
    if (level == MPIOX_STATS_JSON || (file != NULL && level == MPIOX_STATS_ON))
        return;
    if (!about->repeats)
        put(stats, about, texts, full ? 2 : 1, "", NULL);
    else if (full)
        put(stats, about, texts + 1, 1, "", NULL); /* the delegates' counters */
}
