/* mpiox_rawtrace.c - see mpiox_rawtrace.h. */
#include "mpiox_rawtrace.h"

#include <stdlib.h>
#include <string.h>

#include "mpiox_error.h"

static const char *const names[] = {"", "text", "dftracer", "dftracer tables"};

mpiox_rawtrace *mpiox_rawtrace_create(void)
{
    return calloc(1, sizeof(mpiox_rawtrace));
}

void mpiox_rawtrace_free(mpiox_rawtrace *trace)
{
    if (trace == NULL)
        return;
    mpiox_rawtrace_calls_free(&trace->calls);
    mpiox_rawtrace_rows_free(&trace->rows);
    mpiox_rawtrace_text_free(&trace->text);
    mpiox_rawtrace_dftracer_free(&trace->dftracer);
    free(trace->carry);
    free(trace);
}

int mpiox_rawtrace_begin(mpiox_rawtrace *trace, const char *form)
{
    trace->form = MPIOX_RAWTRACE_NONE;
    for (int i = 1; i < (int)(sizeof names / sizeof names[0]); i++) {
        if (strcmp(form, names[i]) == 0)
            trace->form = (mpiox_rawtrace_form)i;
    }
    mpiox_rawtrace_rows_begin(&trace->rows);
    trace->rows.sorted = trace->form == MPIOX_RAWTRACE_DFTRACER; /* which writes a call when it is over */
    mpiox_rawtrace_text_free(&trace->text);
    trace->dftracer.unit_ns = 0;
    trace->carry_bytes = 0;
    trace->too_long = false;
    return trace->form != MPIOX_RAWTRACE_NONE ? MPIOX_OK : MPIOX_E_ARG;
}

static int parse(mpiox_rawtrace *trace, const char *p, const char *end)
{
    trace->rows.lines++;
    switch (trace->form) {
    case MPIOX_RAWTRACE_TEXT:
        return mpiox_rawtrace_text_line(&trace->text, &trace->calls, &trace->rows, p, end);
    case MPIOX_RAWTRACE_DFTRACER:
    case MPIOX_RAWTRACE_DFTRACER_TABLES:
        return mpiox_rawtrace_dftracer_line(&trace->dftracer, &trace->calls, &trace->rows, p, end,
                                            trace->form == MPIOX_RAWTRACE_DFTRACER_TABLES);
    default:
        return MPIOX_E_ARG;
    }
}

/* Keep the beginning of a line that the next piece continues. */
static int keep(mpiox_rawtrace *trace, const char *p, int64_t count)
{
    if (trace->too_long || count == 0)
        return MPIOX_OK;
    if (trace->carry_bytes + count > MPIOX_RAWTRACE_MAX_LINE) {
        trace->rows.lines++;
        mpiox_rawtrace_rows_problem(&trace->rows, "longer than 1 MiB", trace->carry_bytes > 0 ? trace->carry : p,
                                    trace->carry_bytes > 0 ? trace->carry_bytes : count);
        trace->too_long = true;
        trace->carry_bytes = 0;
        return MPIOX_OK;
    }
    if (trace->carry_bytes + count > trace->carry_capacity) {
        const int64_t capacity = 2 * (trace->carry_bytes + count);
        char *grown = realloc(trace->carry, (size_t)capacity);
        if (grown == NULL)
            return MPIOX_E_NOMEM;
        trace->carry = grown;
        trace->carry_capacity = capacity;
    }
    memcpy(trace->carry + trace->carry_bytes, p, (size_t)count);
    trace->carry_bytes += count;
    return MPIOX_OK;
}

/* The end of the line that was kept. */
static int finish_kept(mpiox_rawtrace *trace, const char *p, const char *end)
{
    int code = keep(trace, p, end - p);

    if (code == MPIOX_OK && !trace->too_long)
        code = parse(trace, trace->carry, trace->carry + trace->carry_bytes);
    trace->too_long = false;
    trace->carry_bytes = 0;
    return code;
}

int mpiox_rawtrace_feed(mpiox_rawtrace *trace, const char *bytes, int64_t count)
{
    const char *p = bytes, *end = bytes + count;

    trace->text.has_zeros = trace->text.has_zeros || (count > 0 && memchr(bytes, '\0', (size_t)count) != NULL);
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        if (newline == NULL)
            return keep(trace, p, end - p);
        const bool kept = trace->carry_bytes > 0 || trace->too_long || newline - p > MPIOX_RAWTRACE_MAX_LINE;
        const int code = kept ? finish_kept(trace, p, newline) : parse(trace, p, newline);
        if (code != MPIOX_OK)
            return code;
        p = newline + 1;
    }
    return MPIOX_OK;
}

int mpiox_rawtrace_end(mpiox_rawtrace *trace)
{
    const bool closed = trace->carry_bytes == 1 && trace->carry[0] == ']'; /* DFTracer's last line may have no end */
    const char *nothing = "";
    int code = MPIOX_OK;

    if (trace->too_long || trace->carry_bytes > 0) {
        trace->rows.truncated = !closed;
        code = finish_kept(trace, nothing, nothing);
    }
    const int end = mpiox_rawtrace_text_end(&trace->text, &trace->calls, &trace->rows);
    return code != MPIOX_OK ? code : end;
}
