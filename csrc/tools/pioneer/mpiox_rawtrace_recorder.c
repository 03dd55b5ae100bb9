/* mpiox_rawtrace_recorder.c - see mpiox_rawtrace_recorder.h. */
#include "mpiox_rawtrace_recorder.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_error.h"

enum { NS_DIGITS = 9, MOST_NUMBER = 64, FIRST_HANDLE = 1 << 20 /* above all descriptors that are printed */ };

#define NS INT64_C(1000000000)
#define MOST_SECONDS INT64_C(4000000000) /* more, and the difference of two times would not fit into a column */

typedef mpiox_rawtrace_span span;

void mpiox_rawtrace_recorder_free(mpiox_rawtrace_recorder *state)
{
    mpiox_rawtrace_names_free(&state->datatypes);
    mpiox_rawtrace_names_free(&state->mpi_files);
    free(state->element_bytes);
    free(state->threads);
    memset(state, 0, sizeof *state);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static const char *digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

typedef struct filling {
    mpiox_rawtrace_recorder *state;
    mpiox_rawtrace_calls *calls;
    mpiox_rawtrace_names *files;
    mpiox_rawtrace_row *row;
    int64_t factor;
    bool counted, typed, has_factor, no_size, failed;
} filling;

/* A key of extra; unlike in strace and ltrace, a quote is a byte like others. */
static void keep(filling *f, const char *key, span text)
{
    if (*text.start != '"') {
        mpiox_rawtrace_calls_extra(f->calls, key, text.start, text.end);
        return;
    }
    mpiox_rawtrace_json_key(&f->calls->extra, key, (int64_t)strlen(key));
    mpiox_rawtrace_json_string(&f->calls->extra, text.start, text.end - text.start);
}

static void set_file(filling *f, span text)
{
    f->row->file = mpiox_rawtrace_names_add(f->files, text.start, text.end - text.start);
    f->failed |= f->row->file < 0;
}

static void multiply(filling *f, int64_t value)
{
    f->has_factor = true;
    f->no_size |= value < 0 || __builtin_mul_overflow(f->factor, value, &f->factor);
}

/* Bytes of an element of a datatype that has been described by this name; 0: not known. */
static int64_t described_bytes(const mpiox_rawtrace_calls *calls, span name)
{
    const size_t length = (size_t)(name.end - name.start);

    for (int64_t i = 0; i < calls->constant_count; i++) {
        const mpiox_rawtrace_constant *constant = &calls->constants[i];
        if (constant->bytes > 0 && strlen(constant->text) == length && memcmp(constant->text, name.start, length) == 0)
            return constant->bytes;
    }
    return 0;
}

/* The same, looked up once for each name; MPIOX_E_NOMEM (-1). */
static int64_t element_bytes(filling *f, span name)
{
    mpiox_rawtrace_recorder *state = f->state;
    const int32_t before = state->datatypes.count;
    const int32_t number = mpiox_rawtrace_names_add(&state->datatypes, name.start, name.end - name.start);

    if (number < 0)
        return MPIOX_E_NOMEM;
    if (number >= state->capacity) {
        const int64_t capacity = 2 * state->capacity + 16;
        int64_t *grown = realloc(state->element_bytes, (size_t)capacity * sizeof *grown);
        if (grown == NULL) {
            mpiox_rawtrace_names_free(&state->datatypes); /* a name without its number would be found later */
            return MPIOX_E_NOMEM;
        }
        state->element_bytes = grown;
        state->capacity = capacity;
    }
    if (state->datatypes.count > before)
        state->element_bytes[number] = described_bytes(f->calls, name);
    return state->element_bytes[number];
}

/* The same of a name that may end in _C; 0 and f->failed where memory is exhausted. */
static int64_t datatype_bytes(filling *f, span name)
{
    if (name.end - name.start > 2 && memcmp(name.end - 2, "_C", 2) == 0)
        name.end -= 2;
    const int64_t bytes = element_bytes(f, name);
    f->failed |= bytes < 0;
    return bytes < 0 ? 0 : bytes;
}

static void set_datatype(filling *f, span text)
{
    const int64_t bytes = datatype_bytes(f, text);

    f->typed = true;
    keep(f, "datatype", text);
    if (bytes > 0)
        multiply(f, bytes);
    else
        f->no_size = true;
}

/* A number into its column, or as a factor of the size (column NULL). */
static void set_number(filling *f, const char *word, span text, int64_t *column)
{
    int64_t value;

    if (!mpiox_rawtrace_number(text.start, text.end, &value)) {
        f->no_size |= column == NULL;
        keep(f, word, text);
    } else if (column != NULL) {
        *column = value;
    } else {
        multiply(f, value);
    }
}

/* The handle of the row's file: its name stands for all descriptors of it, but for those of the MPI library. */
static void set_handle_of_file(filling *f)
{
    if (f->row->file >= 0)
        f->row->handle = FIRST_HANDLE + 2 * (int64_t)f->row->file + (f->row->depth > 0);
}

/* "0-2", or what stands in its place: MPI_FILE_NULL, MPI_FILE_UNKNOWN. */
static void set_mpi_file(filling *f, const char *word, span text)
{
    const bool known = is_digit(*text.start);
    const int32_t number = known ? mpiox_rawtrace_names_add(&f->state->mpi_files, text.start, text.end - text.start)
                                 : -1;

    if (number >= 0)
        f->row->handle = FIRST_HANDLE + (int64_t)number;
    else
        keep(f, word, text);
    f->failed |= known && number < 0;
}

static void set_handle(filling *f, const char *word, span text)
{
    int64_t value;

    if (mpiox_rawtrace_number(text.start, text.end, &value)) {
        f->row->handle = value;
    } else if (f->row->layer == MPIOX_LAYER_MPIIO) {
        set_mpi_file(f, word, text);
    } else {
        set_file(f, text);
        set_handle_of_file(f);
    }
}

/* The MPI file of an open or a close; in releases before 2.3 the address of its variable. */
static void set_variable(filling *f, const char *word, span text)
{
    int64_t value;

    if (mpiox_rawtrace_number(text.start, text.end, &value))
        keep(f, word, text);
    else
        set_mpi_file(f, word, text);
}

/* Of a view: offsets count its elements. */
static void set_etype(filling *f, span text)
{
    char digits_of[24];
    const int64_t bytes = datatype_bytes(f, text);

    keep(f, "etype", text);
    if (bytes <= 0)
        return;
    mpiox_rawtrace_json_key(&f->calls->extra, "etype_size", 10);
    mpiox_rawtrace_buffer_put(&f->calls->extra, digits_of, snprintf(digits_of, sizeof digits_of, "%" PRId64, bytes));
}

static void set_argument(filling *f, const mpiox_rawtrace_word *word, span text)
{
    int64_t value;

    switch (word->kind) {
    case MPIOX_RAWTRACE_LEFT_OUT:
        return;
    case MPIOX_RAWTRACE_FILE:
        set_file(f, text);
        return;
    case MPIOX_RAWTRACE_SECOND: /* a name of digits is a name as well */
        mpiox_rawtrace_json_key(&f->calls->extra, word->text, (int64_t)strlen(word->text));
        mpiox_rawtrace_json_string(&f->calls->extra, text.start, text.end - text.start);
        return;
    case MPIOX_RAWTRACE_HANDLE:
        set_handle(f, word->text, text);
        return;
    case MPIOX_RAWTRACE_VARIABLE:
        set_variable(f, word->text, text);
        return;
    case MPIOX_RAWTRACE_ETYPE:
        set_etype(f, text);
        return;
    case MPIOX_RAWTRACE_SIZE:
        set_number(f, word->text, text, &f->row->size);
        return;
    case MPIOX_RAWTRACE_OFFSET:
        set_number(f, word->text, text, &f->row->offset);
        return;
    case MPIOX_RAWTRACE_UNIT:
        set_number(f, word->text, text, NULL);
        return;
    case MPIOX_RAWTRACE_COUNT:
        keep(f, word->text, text);
        f->counted = true;
        if (mpiox_rawtrace_number(text.start, text.end, &value))
            multiply(f, value);
        else
            f->no_size = true;
        return;
    case MPIOX_RAWTRACE_DATATYPE:
        set_datatype(f, text);
        return;
    default:
        keep(f, word->text, text);
    }
}

/* Arguments of which the meaning is not known, as they stand there. */
static void keep_all(filling *f, const span *arguments, int count)
{
    mpiox_rawtrace_buffer *text = &f->calls->text;

    text->used = 0;
    for (int i = 0; i < count; i++) {
        if (i > 0)
            mpiox_rawtrace_buffer_put(text, ", ", 2);
        mpiox_rawtrace_buffer_put(text, arguments[i].start, arguments[i].end - arguments[i].start);
    }
    f->failed |= text->failed;
    if (text->used == 0)
        return;
    mpiox_rawtrace_json_key(&f->calls->extra, "args", 4);
    mpiox_rawtrace_json_string(&f->calls->extra, text->bytes, text->used);
}

static void fill(filling *f, const mpiox_rawtrace_function *function, const span *arguments, int count)
{
    int i = 0;

    for (; i < function->words && i < count && function->word[i].kind != MPIOX_RAWTRACE_REST; i++) {
        if (arguments[i].end > arguments[i].start)
            set_argument(f, &function->word[i], arguments[i]);
    }
    if (i < count)
        keep_all(f, function->words > i ? &arguments[i] : arguments, function->words > i ? count - i : count);
    if (f->has_factor && !f->no_size && f->counted == f->typed)
        f->row->size = f->factor;
    if (function->returns_handle && f->row->handle == MPIOX_RAWTRACE_NULL)
        set_handle_of_file(f);
}

/* ---- levels ------------------------------------------------------------------------------------------------------ */

/* NULL: memory is exhausted. */
static mpiox_rawtrace_recorder_thread *thread_of(mpiox_rawtrace_recorder *state, int64_t rank, int64_t thread)
{
    for (int64_t i = state->thread_count - 1; i >= 0; i--) {
        if (state->threads[i].rank == rank && state->threads[i].thread == thread)
            return &state->threads[i];
    }
    if (state->thread_count > 0 && state->threads[0].rank != rank) /* one rank follows the other */
        state->thread_count = 0;
    if (state->thread_count == state->thread_capacity) {
        const int64_t capacity = 2 * state->thread_capacity + 4;
        mpiox_rawtrace_recorder_thread *grown = realloc(state->threads, (size_t)capacity * sizeof *grown);
        if (grown == NULL)
            return NULL;
        state->threads = grown;
        state->thread_capacity = capacity;
    }
    mpiox_rawtrace_recorder_thread *made = &state->threads[state->thread_count++];
    *made = (mpiox_rawtrace_recorder_thread){.rank = rank, .thread = thread, .start = 0, .end = INT64_MIN};
    return made;
}

/* The MPI calls around one of a level; -1: not known. */
static int32_t depth_of(mpiox_rawtrace_recorder_thread *thread, int64_t level, bool mpi, int64_t start, int64_t end)
{
    if (level < 0 || level > thread->levels || level >= MPIOX_RAWTRACE_RECORD_LEVELS)
        return -1;
    const bool within = level == 0 && !mpi && start >= thread->start && start < thread->end;
    thread->levels = (int)level + 1;
    thread->mpi[level + 1] = (int16_t)(thread->mpi[level] + mpi);
    if (level == 0 && mpi) {
        thread->start = start;
        thread->end = end;
    }
    return within ? -1 : thread->mpi[level];
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* HDF5, netCDF and the like: no calls of the layers of the table. */
static bool is_other(span name)
{
    static const char *const prefixes[] = {"H5", "nc_", "ncmpi_", "adios", "RECORDER_", "user_"};

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const size_t length = strlen(prefixes[i]);
        if ((size_t)(name.end - name.start) >= length && memcmp(name.start, prefixes[i], length) == 0)
            return true;
    }
    return false;
}

/* Complete a row that has times, rank and thread, from name, level and arguments of the record, and add it, unless the
 * record is of another layer. */
static int add_row(mpiox_rawtrace_recorder *state, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows,
                   const mpiox_rawtrace_record *record, mpiox_rawtrace_row *row)
{
    const span name = record->name;
    const mpiox_rawtrace_function *function = mpiox_rawtrace_calls_find(calls, &rows->operations, name.start,
                                                                        name.end - name.start);
    mpiox_rawtrace_recorder_thread *thread = thread_of(state, row->process, row->thread);
    filling f = {.state = state, .calls = calls, .files = &rows->files, .row = row, .factor = 1};

    if (function == NULL || thread == NULL)
        return MPIOX_E_NOMEM;
    const bool mpi = function->layer == MPIOX_LAYER_MPIIO || function->layer == MPIOX_LAYER_MPI;
    row->depth = depth_of(thread, record->level, mpi, row->timestamp, row->timestamp + row->duration);
    if (is_other(name))
        return mpiox_rawtrace_rows_other(rows, name.start, name.end - name.start);
    row->operation = function->operation;
    row->layer = function->layer;
    calls->extra.used = 0;
    fill(&f, function, record->argument, record->count);
    const int64_t number = f.failed ? MPIOX_E_NOMEM : mpiox_rawtrace_rows_push(rows);
    if (number < 0)
        return MPIOX_E_NOMEM;
    row->line = rows->lines;
    mpiox_rawtrace_rows_get(rows, number)->row = *row;
    (void)mpiox_rawtrace_rows_done(rows, number, mpiox_rawtrace_json_end(&calls->extra));
    return calls->extra.failed ? MPIOX_E_NOMEM : MPIOX_OK;
}

static mpiox_rawtrace_row no_row(void)
{
    return (mpiox_rawtrace_row){.offset = MPIOX_RAWTRACE_NULL,
                                .size = MPIOX_RAWTRACE_NULL,
                                .result = MPIOX_RAWTRACE_NULL,
                                .handle = MPIOX_RAWTRACE_NULL,
                                .file = -1,
                                .depth = -1};
}

static bool nanoseconds(double seconds, int64_t *ns)
{
    if (!(seconds < (double)MOST_SECONDS && seconds > -(double)MOST_SECONDS))
        return false;
    *ns = (int64_t)(seconds * 1e9 + (seconds < 0 ? -0.5 : 0.5));
    return true;
}

int mpiox_rawtrace_recorder_record(mpiox_rawtrace_recorder *state, mpiox_rawtrace_calls *calls,
                                   mpiox_rawtrace_rows *rows, const mpiox_rawtrace_record *record)
{
    const span name = record->name;
    const char *why = NULL;
    int64_t end;
    mpiox_rawtrace_row row = no_row();

    rows->lines++;
    if (name.start == name.end || isnan(record->start) || isnan(record->end))
        why = "cannot be parsed: no name or no times";
    else if (!nanoseconds(record->start, &row.timestamp) || !nanoseconds(record->end, &end))
        why = "cannot be parsed: times";
    else if (record->rank != MPIOX_RAWTRACE_NULL && (record->rank < -1 || record->rank > INT32_MAX))
        why = "cannot be parsed: rank";
    else if (record->thread == MPIOX_RAWTRACE_BAD || record->count < 0)
        why = "cannot be parsed: a number";
    if (why != NULL) {
        mpiox_rawtrace_rows_problem(rows, why, name.start, name.end - name.start);
        return MPIOX_OK;
    }
    row.duration = end - row.timestamp;
    row.process = record->rank;
    row.thread = record->thread;
    return add_row(state, calls, rows, record, &row);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* A number of seconds with an exponent, which hardly any trace has. */
static bool with_exponent(const char *p, const char *end, int64_t *ns)
{
    char text[MOST_NUMBER];

    if (end - p >= MOST_NUMBER)
        return false;
    memcpy(text, p, (size_t)(end - p));
    text[end - p] = '\0';
    return nanoseconds(strtod(text, NULL), ns);
}

/* Behind the number of seconds at p: [-] digits [. digits] [e [-] digits]; NULL: there is none. *valid: it fits, and is
 * *ns. */
static const char *seconds(const char *p, const char *end, int64_t *ns, bool *valid)
{
    const char *const start = p;
    const bool negative = p < end && *p == '-';
    int64_t whole = 0, part = 0;
    int count = 0;

    p += negative;
    if (p == end || !is_digit(*p))
        return NULL;
    for (; p < end && is_digit(*p); p++)
        whole = whole < MOST_SECONDS ? 10 * whole + (*p - '0') : whole;
    if (p < end && *p == '.') {
        for (p++; p < end && is_digit(*p) && count < NS_DIGITS; p++, count++)
            part = 10 * part + (*p - '0');
        part += count == NS_DIGITS && p < end && is_digit(*p) && *p >= '5';
        p = digits(p, end);
    }
    for (; count < NS_DIGITS; count++)
        part *= 10;
    *valid = whole < MOST_SECONDS;
    *ns = *valid ? (negative ? -1 : 1) * (whole * NS + part) : 0;
    const char *exponent = p < end && *p == 'e' ? p + 1 + (p + 1 < end && p[1] == '-') : end;
    if (exponent < end && is_digit(*exponent)) {
        p = digits(exponent, end);
        *valid = with_exponent(start, p, ns);
    }
    return p;
}

/* Behind the whole number at p and the blank that follows it; NULL: there is none. */
static const char *whole_number(const char *p, const char *end, span *number)
{
    number->start = p;
    p += p < end && *p == '-';
    number->end = digits(p, end);
    return number->end > p && number->end < end && *number->end == ' ' ? number->end + 1 : NULL;
}

static const char *word(const char *p, const char *end, span *name)
{
    name->start = p;
    while (p < end && (is_digit(*p) || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') || *p == '_'))
        p++;
    name->end = p;
    return p > name->start && p < end && *p == ' ' ? p + 1 : NULL;
}

/* The parts of a line. */
typedef struct line_parts {
    int64_t start, end;
    bool valid; /* both times */
    span name, level, type, arguments;
} line_parts;

/* Cut a line; false: it is none of Recorder's. */
static bool cut(const char *p, const char *end, line_parts *parts)
{
    bool valid[2] = {false, false};

    while (end > p && is_blank(end[-1]))
        end--;
    p = seconds(p, end, &parts->start, &valid[0]);
    p = p != NULL && p < end && *p == ' ' ? seconds(p + 1, end, &parts->end, &valid[1]) : NULL;
    p = p != NULL && p < end && *p == ' ' ? word(p + 1, end, &parts->name) : NULL;
    p = p != NULL ? whole_number(p, end, &parts->level) : NULL;
    p = p != NULL ? whole_number(p, end, &parts->type) : NULL;
    if (p == NULL || end - p < 3 || *p != '(' || end[-1] != ')' || end[-2] != ' ')
        return false;
    parts->valid = valid[0] && valid[1];
    parts->arguments = (span){p + 1, end - 2};
    return true;
}

static int split(span text, span *arguments)
{
    int count = 0;

    for (const char *p = text.start; count < MPIOX_RAWTRACE_RECORD_ARGUMENTS; count++) {
        while (p < text.end && is_blank(*p))
            p++;
        if (p == text.end)
            break;
        arguments[count].start = p;
        while (p < text.end && !is_blank(*p))
            p++;
        arguments[count].end = p;
        if (count == MPIOX_RAWTRACE_RECORD_ARGUMENTS - 1)
            arguments[count].end = text.end; /* all that follow */
    }
    return count;
}

static bool is_empty(const char *p, const char *end)
{
    while (p < end && is_blank(*p))
        p++;
    return p == end;
}

int mpiox_rawtrace_recorder_line(mpiox_rawtrace_recorder *state, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows,
                                 const char *p, const char *end)
{
    mpiox_rawtrace_record record; /* set as far as add_row() reads it: for each line of a trace, zeros cost time */
    line_parts parts;
    const char *why = NULL;
    mpiox_rawtrace_row row = no_row();

    if (!cut(p, end, &parts)) {
        if (!is_empty(p, end))
            mpiox_rawtrace_rows_problem(rows, "cannot be parsed: no record of Recorder", p, end - p);
        return MPIOX_OK;
    }
    if (!mpiox_rawtrace_number(parts.level.start, parts.level.end, &record.level))
        why = "cannot be parsed: level";
    else if (!parts.valid)
        why = "cannot be parsed: times";
    if (why != NULL) {
        mpiox_rawtrace_rows_problem(rows, why, p, end - p);
        return MPIOX_OK;
    }
    row.timestamp = parts.start;
    row.duration = parts.end - parts.start;
    record.name = parts.name;
    record.count = split(parts.arguments, record.argument);
    return add_row(state, calls, rows, &record, &row);
}
