/*
 * mpiio_ext_rawtrace.c - raw traces in text for callers outside the library: arrays of rows, names and problems.
 *
 * A mpiio_ext_rawtrace is a mpiox_rawtrace under a public name, and so are its rows.
 */
#include <stddef.h>

#include "mpiio_ext_tools.h"
#include "mpiox_error.h"
#include "mpiox_rawtrace.h"

_Static_assert(sizeof(mpiio_ext_rawtrace_row) == sizeof(mpiox_rawtrace_row), "the same struct");
_Static_assert(sizeof(mpiio_ext_rawtrace_columns) == sizeof(mpiox_rawtrace_columns), "the same struct");
_Static_assert(offsetof(mpiio_ext_rawtrace_columns, offsets) == offsetof(mpiox_rawtrace_columns, offsets),
               "the same struct");
_Static_assert(offsetof(mpiio_ext_rawtrace_row, layer) == offsetof(mpiox_rawtrace_row, layer), "the same struct");

static mpiox_rawtrace *of(mpiio_ext_rawtrace *trace)
{
    return (mpiox_rawtrace *)trace;
}

static const mpiox_rawtrace *look(const mpiio_ext_rawtrace *trace)
{
    return (const mpiox_rawtrace *)trace;
}

mpiio_ext_rawtrace *mpiio_ext_rawtrace_create(void)
{
    return (mpiio_ext_rawtrace *)mpiox_rawtrace_create();
}

void mpiio_ext_rawtrace_free(mpiio_ext_rawtrace *trace)
{
    mpiox_rawtrace_free(of(trace));
}

int mpiio_ext_rawtrace_describe(mpiio_ext_rawtrace *trace, const char *name, const char *operation, int layer,
                                const char *signature)
{
    if (layer < MPIOX_LAYER_MPIIO || layer > MPIOX_LAYER_POSIX)
        return MPIOX_E_ARG;
    return mpiox_rawtrace_calls_describe(&of(trace)->calls, &of(trace)->rows.operations, name, operation, layer,
                                         signature);
}

int mpiio_ext_rawtrace_constant(mpiio_ext_rawtrace *trace, const char *key, int64_t value, const char *text)
{
    return mpiox_rawtrace_calls_constant(&of(trace)->calls, key, value, text, 0);
}

int mpiio_ext_rawtrace_datatype(mpiio_ext_rawtrace *trace, int64_t value, const char *name, int64_t element_bytes)
{
    if (element_bytes <= 0)
        return MPIOX_E_ARG;
    return mpiox_rawtrace_calls_constant(&of(trace)->calls, "datatype", value, name, element_bytes);
}

int mpiio_ext_rawtrace_begin(mpiio_ext_rawtrace *trace, const char *form)
{
    return mpiox_rawtrace_begin(of(trace), form);
}

int mpiio_ext_rawtrace_feed(mpiio_ext_rawtrace *trace, const void *bytes, int64_t count)
{
    return mpiox_rawtrace_feed(of(trace), bytes, count);
}

int mpiio_ext_rawtrace_records(mpiio_ext_rawtrace *trace, const mpiio_ext_rawtrace_columns *columns)
{
    return mpiox_rawtrace_records(of(trace), (const mpiox_rawtrace_columns *)columns);
}

int mpiio_ext_rawtrace_end(mpiio_ext_rawtrace *trace)
{
    return mpiox_rawtrace_end(of(trace));
}

int64_t mpiio_ext_rawtrace_take(mpiio_ext_rawtrace *trace, const mpiio_ext_rawtrace_row **rows, const char **extra,
                                const int32_t **offsets)
{
    mpiox_rawtrace_rows *r = &of(trace)->rows;
    const int64_t count = mpiox_rawtrace_rows_take(r);

    *rows = (const mpiio_ext_rawtrace_row *)r->out;
    *extra = r->out_extra;
    *offsets = r->out_offsets;
    return count;
}

int64_t mpiio_ext_rawtrace_names(const mpiio_ext_rawtrace *trace, int which, const char **bytes,
                                 const int64_t **offsets)
{
    const mpiox_rawtrace *t = look(trace);
    const mpiox_rawtrace_names *const tables[] = {&t->rows.operations, &t->rows.files, &t->rows.categories};

    if (which < 0 || which > 2)
        return MPIOX_E_ARG;
    *bytes = tables[which]->bytes;
    *offsets = tables[which]->offsets;
    return tables[which]->count;
}

int64_t mpiio_ext_rawtrace_category_events(const mpiio_ext_rawtrace *trace, int64_t index)
{
    const mpiox_rawtrace_rows *rows = &look(trace)->rows;
    return index >= 0 && index < rows->categories.count ? rows->category_events[index] : 0;
}

int64_t mpiio_ext_rawtrace_count(const mpiio_ext_rawtrace *trace, int what)
{
    const mpiox_rawtrace_rows *rows = &look(trace)->rows;
    const int64_t counts[] = {rows->lines,     rows->skipped,       rows->made,      rows->events,
                              rows->truncated, rows->problem_count, rows->note_count};

    return what >= 0 && what < (int)(sizeof counts / sizeof counts[0]) ? counts[what] : MPIOX_E_ARG;
}

const char *mpiio_ext_rawtrace_problem(const mpiio_ext_rawtrace *trace, int64_t index, int64_t *line, const char **text,
                                       int64_t *bytes)
{
    const mpiox_rawtrace_rows *rows = &look(trace)->rows;

    if (index < 0 || index >= rows->problem_count)
        return NULL;
    *line = rows->problems[index].line;
    *text = rows->problems[index].text;
    *bytes = rows->problems[index].bytes;
    return rows->problems[index].why;
}

const char *mpiio_ext_rawtrace_note(const mpiio_ext_rawtrace *trace, int64_t index, int64_t *line, int64_t *bytes)
{
    const mpiox_rawtrace_rows *rows = &look(trace)->rows;

    if (index < 0 || index >= rows->note_count)
        return NULL;
    *line = rows->notes[index].line;
    *bytes = rows->notes[index].bytes;
    return rows->notes[index].text;
}
