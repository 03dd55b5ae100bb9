/* mpiox_rawtrace.c - see mpiox_rawtrace.h. */
#include "mpiox_rawtrace.h"

#include <stdlib.h>
#include <string.h>

#include "mpiox_error.h"

static const char *const names[] = {"", "text", "dftracer", "dftracer tables", "recorder"};

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
    mpiox_rawtrace_recorder_free(&trace->recorder);
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
    /* These write a call when it is over. */
    trace->rows.sorted = trace->form == MPIOX_RAWTRACE_DFTRACER || trace->form == MPIOX_RAWTRACE_RECORDER;
    mpiox_rawtrace_text_free(&trace->text);
    trace->dftracer.unit_ns = 0;
    trace->recorder.thread_count = 0;
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
    case MPIOX_RAWTRACE_RECORDER:
        return mpiox_rawtrace_recorder_line(&trace->recorder, &trace->calls, &trace->rows, p, end);
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

static mpiox_rawtrace_span text_at(const mpiox_rawtrace_columns *columns, int64_t column, int64_t i)
{
    const int64_t *offsets = columns->offsets[column] + i;

    return (mpiox_rawtrace_span){columns->bytes[column] + offsets[0], columns->bytes[column] + offsets[1]};
}

int mpiox_rawtrace_records(mpiox_rawtrace *trace, const mpiox_rawtrace_columns *columns)
{
    const int64_t most = columns->texts - 1 < MPIOX_RAWTRACE_RECORD_ARGUMENTS ? columns->texts - 1
                                                                              : MPIOX_RAWTRACE_RECORD_ARGUMENTS;
    int code = trace->form == MPIOX_RAWTRACE_RECORDER && columns->texts > 0 ? MPIOX_OK : MPIOX_E_ARG;

    for (int64_t i = 0; i < columns->count && code == MPIOX_OK; i++) {
        const int64_t given = columns->numbers[i];
        mpiox_rawtrace_record record;
        record.start = columns->start[i];
        record.end = columns->end[i];
        record.rank = columns->rank[i];
        record.thread = columns->thread[i];
        record.level = columns->level[i];
        record.name = text_at(columns, 0, i);
        record.count = given == MPIOX_RAWTRACE_BAD ? -1 : given < 0 ? 0 : (int)(given < most ? given : most);
        for (int k = 0; k < record.count; k++)
            record.argument[k] = text_at(columns, k + 1, i);
        code = mpiox_rawtrace_recorder_record(&trace->recorder, &trace->calls, &trace->rows, &record);
    }
    return code;
}

int mpiox_rawtrace_end(mpiox_rawtrace *trace)
{
    const bool closed = trace->form != MPIOX_RAWTRACE_RECORDER && trace->carry_bytes == 1 &&
                        trace->carry[0] == ']'; /* DFTracer's last line may have no end */
    const char *nothing = "";
    int code = MPIOX_OK;

    if (trace->too_long || trace->carry_bytes > 0) {
        trace->rows.truncated = !closed;
        code = finish_kept(trace, nothing, nothing);
    }
    const int end = mpiox_rawtrace_text_end(&trace->text, &trace->calls, &trace->rows);
    return code != MPIOX_OK ? code : end;
}
