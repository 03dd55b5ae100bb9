/* mpiox_rawtrace_dftracer.c - see mpiox_rawtrace_dftracer.h. */
#include "mpiox_rawtrace_dftracer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mpiox_error.h"

/* Phases, as numbers of later versions. */
enum { PHASE_COMPLETE = 1, PHASE_COUNTER = 2, PHASE_AGGREGATED = 3, PHASE_METADATA = 4 };

typedef mpiox_rawtrace_span span;

/* The most members of args that an event stores: a call has fewer. */
enum { MAX_MEMBERS = 24 };

typedef struct member {
    span key, value;
} member;

/* The members of an event; a member that the event lacks is empty. */
typedef struct event {
    span name, category, pid, tid, start, duration, phase, args;
    int count; /* of `members`, the members of args; -1: args has too many, or is damaged */
    member members[MAX_MEMBERS];
} event;

void mpiox_rawtrace_dftracer_free(mpiox_rawtrace_dftracer *state)
{
    mpiox_rawtrace_names_free(&state->hashes);
    free(state->file_of);
    memset(state, 0, sizeof *state);
}

static bool is(span text, const char *what)
{
    const size_t length = strlen(what);
    return (size_t)(text.end - text.start) == length && memcmp(text.start, what, length) == 0;
}

/* Compare without regard to upper and lower case. */
static bool is_word(span text, const char *what)
{
    const size_t length = strlen(what);
    return (size_t)(text.end - text.start) == length && strncasecmp(text.start, what, length) == 0;
}

/* The contents of a string without its quotes. */
static span bare(span text)
{
    if (text.end - text.start >= 2 && *text.start == '"' && text.end[-1] == '"')
        return (span){text.start + 1, text.end - 1};
    return text;
}

static bool is_string(span text)
{
    return text.start < text.end && *text.start == '"';
}

/* The place behind a number or a word. */
static const char *skip_scalar(const char *p, const char *end)
{
    static const bool stops[256] = {[','] = true, ['}'] = true, [']'] = true, [' '] = true};

    while (p < end && !stops[(unsigned char)*p])
        p++;
    return p;
}

/* The place behind the JSON value at p, or NULL. */
static const char *skip_value(const char *p, const char *end)
{
    int depth = 0;

    do {
        if (p == end)
            return NULL;
        if (*p == '"') {
            p = mpiox_rawtrace_skip_string(p, end);
            if (p == NULL)
                return NULL;
            continue;
        }
        if (*p == '{' || *p == '[') {
            depth++;
            p++;
        } else if (*p == '}' || *p == ']') {
            depth--;
            p++;
        } else if (depth > 0) {
            p++;
        } else {
            const char *from = p;
            p = skip_scalar(p, end);
            return p > from ? p : NULL;
        }
    } while (depth > 0);
    return depth == 0 ? p : NULL;
}

/* The next "key": of an object whose inside is at *p; *p is then where its value begins. 1: there is one; 0: the object
 * ends; -1: it is broken. */
static int next_key(const char **p, const char *end, span *key)
{
    const char *q = mpiox_rawtrace_skip_blanks(*p, end);

    if (q < end && *q == ',')
        q = mpiox_rawtrace_skip_blanks(q + 1, end);
    if (q == end)
        return -1;
    if (*q == '}') {
        *p = q + 1;
        return 0;
    }
    if (*q != '"')
        return -1;
    key->start = q + 1;
    q = mpiox_rawtrace_skip_string(q, end);
    if (q == NULL)
        return -1;
    key->end = q - 1;
    q = mpiox_rawtrace_skip_blanks(q, end);
    if (q == end || *q != ':')
        return -1;
    *p = mpiox_rawtrace_skip_blanks(q + 1, end);
    return 1;
}

/* Find the next key and its value; *p is then the place behind the value. */
static int next_member(const char **p, const char *end, span *key, span *value)
{
    const int more = next_key(p, end, key);

    if (more != 1)
        return more;
    value->start = *p;
    value->end = skip_value(*p, end);
    if (value->end == NULL)
        return -1;
    *p = value->end;
    return 1;
}

/* The field for a member of an event; NULL: the reader does not need the member. */
static span *member_of(event *event, span key)
{
    switch (key.end - key.start) {
    case 2:
        return is(key, "ts") ? &event->start : is(key, "ph") ? &event->phase : NULL;
    case 3:
        return is(key, "pid")   ? &event->pid
               : is(key, "tid") ? &event->tid
               : is(key, "dur") ? &event->duration
               : is(key, "cat") ? &event->category
                                : NULL;
    case 4:
        return is(key, "name") ? &event->name : is(key, "args") ? &event->args : NULL;
    default:
        return NULL;
    }
}

/* Read the members of args at p. Returns the place behind args; NULL: the caller has to read args as a value. */
static const char *parse_args(const char *p, const char *end, event *event)
{
    int more = 1;

    if (p == end || *p != '{')
        return NULL;
    for (p++; event->count < MAX_MEMBERS; event->count++) {
        member *member = &event->members[event->count];
        more = next_member(&p, end, &member->key, &member->value);
        if (more != 1)
            break;
    }
    return more == 0 ? p : NULL;
}

static bool parse_event(const char *p, const char *end, event *event)
{
    static const span nothing;
    span key;
    int more;

    event->name = event->category = event->pid = event->tid = event->start = event->duration = event->phase = nothing;
    event->args = nothing;
    event->count = -1;
    for (p++; (more = next_key(&p, end, &key)) == 1;) {
        span *place = member_of(event, key);
        const char *behind = NULL;
        if (place == &event->args) {
            event->count = 0;
            behind = parse_args(p, end, event);
            if (behind == NULL)
                event->count = -1;
        }
        if (behind == NULL)
            behind = skip_value(p, end);
        if (behind == NULL)
            return false;
        if (place != NULL)
            *place = bare((span){p, behind});
        p = behind;
    }
    if (more < 0)
        return false;
    p = mpiox_rawtrace_skip_blanks(p, end);
    return p == end || (*p == ',' && p + 1 == end);
}

static bool integer(span text, int64_t *value)
{
    return text.start < text.end && mpiox_rawtrace_number(text.start, text.end, value);
}

/* ---- metadata -------------------------------------------------------------------------------------------------- */

/* Number of a hash as it is written; its file is -1 until its table entry. */
static int32_t hash_number(mpiox_rawtrace_dftracer *state, span hash)
{
    const int32_t before = state->hashes.count;
    const int32_t number = mpiox_rawtrace_names_add(&state->hashes, hash.start, hash.end - hash.start);

    if (number < 0 || state->hashes.count == before)
        return number;
    if (number >= state->file_capacity) {
        const int64_t capacity = 2 * state->file_capacity + 256;
        int32_t *grown = realloc(state->file_of, (size_t)capacity * sizeof *grown);
        if (grown == NULL)
            return MPIOX_E_NOMEM;
        state->file_of = grown;
        state->file_capacity = capacity;
    }
    state->file_of[number] = -1;
    return number;
}

/* The strings "name" and "value" of the args of a table's entry. */
static bool entry_of(span args, span *name, span *value)
{
    const char *p = args.start;
    span key, member;
    int more;

    *name = *value = (span){NULL, NULL};
    if (args.start == args.end || *args.start != '{')
        return false;
    for (p++; (more = next_member(&p, args.end, &key, &member)) == 1;) {
        if (is(key, "name"))
            *name = bare(member);
        else if (is(key, "value"))
            *value = bare(member);
    }
    return more == 0 && name->start != NULL && value->start != NULL;
}

/* `tables_only`: a first pass, in which the first entry of a hash counts. */
static int add_file(mpiox_rawtrace_dftracer *state, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows,
                    const event *event, bool tables_only)
{
    span name, value;

    if (!entry_of(event->args, &name, &value))
        return MPIOX_E_CORRUPT;
    const int32_t number = hash_number(state, value);
    if (number < 0)
        return MPIOX_E_NOMEM;
    if (tables_only && state->file_of[number] >= 0)
        return MPIOX_OK;
    mpiox_rawtrace_decode(&calls->text, name.start, name.end, true);
    const int32_t file = mpiox_rawtrace_names_add(&rows->files, calls->text.bytes, calls->text.used);
    if (file < 0 || calls->text.failed)
        return MPIOX_E_NOMEM;
    state->file_of[number] = file;
    return MPIOX_OK;
}

static int metadata(mpiox_rawtrace_dftracer *state, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows,
                    const event *event, span line, bool tables_only)
{
    span name, value;

    rows->events++;
    if (is(event->name, "FH"))
        return add_file(state, calls, rows, event, tables_only);
    if (is(event->name, "SH") || is(event->name, "thread_name"))
        return MPIOX_OK;
    if (is(event->name, "CM") && entry_of(event->args, &name, &value) && is(name, "time_metric"))
        state->unit_ns = is(value, "NS") ? 1 : is(value, "MS") ? 1000000 : is(value, "SEC") ? 1000000000 : 1000;
    return mpiox_rawtrace_rows_note(rows, line.start, line.end - line.start);
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

static void set_size(mpiox_rawtrace_row *row, int64_t value)
{
    int64_t product;

    if (row->size == MPIOX_RAWTRACE_NULL)
        row->size = value;
    else if (!__builtin_mul_overflow(row->size, value, &product)) /* fread: size and count */
        row->size = product;
}

/* The kind of a member of args; MEMBER_OTHER: a key of extra. Those from MEMBER_RESULT on are columns of numbers. */
enum member_kind {
    MEMBER_OTHER,
    MEMBER_NUMBER, /* a key of extra that has a number, perhaps quoted */
    MEMBER_DROPPED,
    MEMBER_FILE,
    MEMBER_NAME,
    MEMBER_OTHER_FILE, /* newpath_hash: a second name */
    MEMBER_RESULT,
    MEMBER_HANDLE,
    MEMBER_OFFSET,
    MEMBER_SIZE
};

static bool ends_in_hash(span key)
{
    return key.end - key.start > 5 && memcmp(key.end - 5, "_hash", 5) == 0;
}

static enum member_kind kind_of(span key)
{
    switch (key.end - key.start) {
    case 2:
        return is(key, "fd") ? MEMBER_HANDLE : MEMBER_OTHER;
    case 3:
        return is(key, "ret") ? MEMBER_RESULT : MEMBER_OTHER;
    case 4:
        return is(key, "size") ? MEMBER_SIZE : MEMBER_OTHER;
    case 5:
        return is(key, "fhash")                       ? MEMBER_FILE
               : is(key, "hhash") || is(key, "level") ? MEMBER_DROPPED
               : is(key, "p_idx")                     ? MEMBER_DROPPED
               : is(key, "fname")                     ? MEMBER_NAME
               : is(key, "count")                     ? MEMBER_SIZE
               : is(key, "flags")                     ? MEMBER_NUMBER
                                                      : MEMBER_OTHER;
    case 6:
        return is(key, "offset")   ? MEMBER_OFFSET
               : is(key, "length") ? MEMBER_SIZE
               : is(key, "whence") ? MEMBER_NUMBER
                                   : MEMBER_OTHER;
    case 8:
        return is(key, "hostname") ? MEMBER_DROPPED : MEMBER_OTHER; /* of 2023, in each event */
    default:
        return ends_in_hash(key) ? MEMBER_OTHER_FILE : MEMBER_OTHER;
    }
}

/* The key of extra of a second name: other readers call it so. */
static void put_key(mpiox_rawtrace_calls *calls, span key)
{
    if (is(key, "newpath"))
        mpiox_rawtrace_json_key(&calls->extra, "file2", 5);
    else
        mpiox_rawtrace_json_key(&calls->extra, key.start, key.end - key.start);
}

/* Store a member as a key of extra. */
static void keep_member(mpiox_rawtrace_calls *calls, span key, span value, bool is_number)
{
    char name[64];

    if (is_number && key.end - key.start < (int64_t)sizeof name) {
        memcpy(name, key.start, (size_t)(key.end - key.start));
        name[key.end - key.start] = '\0';
        mpiox_rawtrace_calls_extra(calls, name, value.start, value.end);
        return;
    }
    const span text = bare(value);
    put_key(calls, key);
    mpiox_rawtrace_decode(&calls->text, text.start, text.end, is_string(value));
    mpiox_rawtrace_json_string(&calls->extra, calls->text.bytes, calls->text.used);
}

/* Set the row's field from a member of args. A value null leaves it unknown. MPIOX_E_ARG: the value is no number. */
static int set_member(mpiox_rawtrace_calls *calls, const mpiox_rawtrace_function *function, mpiox_rawtrace_row *row,
                      enum member_kind kind, span key, span value)
{
    int64_t number = 0;
    const span text = kind == MEMBER_OTHER ? value : bare(value); /* 2023: large numbers have quotes */
    const bool is_number = integer(text, &number);

    if (kind < MEMBER_RESULT) {
        keep_member(calls, key, is_number ? text : value, is_number);
        return MPIOX_OK;
    }
    if (!is_number)
        return is(value, "null") ? MPIOX_OK : MPIOX_E_ARG;
    if (kind == MEMBER_RESULT) {
        row->result = number;
        if (function->returns_handle && number >= 0)
            row->handle = number;
    } else if (kind == MEMBER_HANDLE) {
        row->handle = number;
    } else if (kind == MEMBER_OFFSET) {
        row->offset = number;
    } else {
        set_size(row, number);
    }
    return MPIOX_OK;
}

static int set_file(mpiox_rawtrace_dftracer *state, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows,
                    mpiox_rawtrace_row *row, bool by_name, span value)
{
    if (by_name) {
        const span text = bare(value);
        mpiox_rawtrace_decode(&calls->text, text.start, text.end, true);
        row->file = mpiox_rawtrace_names_add(&rows->files, calls->text.bytes, calls->text.used);
        return row->file < 0 ? MPIOX_E_NOMEM : MPIOX_OK;
    }
    const span hash = bare(value);
    const int32_t number = mpiox_rawtrace_names_find(&state->hashes, hash.start, hash.end - hash.start);
    row->file = number >= 0 ? state->file_of[number] : -1;
    if (row->file < 0 && !is(hash, "0") && hash.end > hash.start) {
        mpiox_rawtrace_rows_remark(rows, "a file's hash is in no table", hash.start, hash.end - hash.start);
        mpiox_rawtrace_json_key(&calls->extra, "fhash", 5);
        mpiox_rawtrace_json_string(&calls->extra, hash.start, hash.end - hash.start);
    }
    return MPIOX_OK;
}

/* Store a second name by its hash, or the hash itself if no table has it. */
static int set_other_file(mpiox_rawtrace_dftracer *state, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows,
                          span key, span value)
{
    const span hash = bare(value);
    const int32_t number = mpiox_rawtrace_names_find(&state->hashes, hash.start, hash.end - hash.start);
    const int32_t file = number >= 0 ? state->file_of[number] : -1;

    if (file < 0) {
        mpiox_rawtrace_rows_remark(rows, "a file's hash is in no table", hash.start, hash.end - hash.start);
        keep_member(calls, key, value, false);
        return MPIOX_OK;
    }
    const mpiox_rawtrace_names *names = &rows->files;
    put_key(calls, (span){key.start, key.end - 5});
    mpiox_rawtrace_json_string(&calls->extra, names->bytes + names->offsets[file],
                               names->offsets[file + 1] - names->offsets[file]);
    return MPIOX_OK;
}

/* Fill a row from one member of the args. */
static int set_one(mpiox_rawtrace_dftracer *state, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows,
                   const mpiox_rawtrace_function *function, mpiox_rawtrace_row *row, span key, span value)
{
    const enum member_kind kind = kind_of(key);

    if (kind == MEMBER_DROPPED)
        return MPIOX_OK;
    if (kind == MEMBER_FILE || kind == MEMBER_NAME)
        return set_file(state, calls, rows, row, kind == MEMBER_NAME, value);
    if (kind == MEMBER_OTHER_FILE)
        return set_other_file(state, calls, rows, key, value);
    return set_member(calls, function, row, kind, key, value);
}

/* Fill a row from the args; MPIOX_E_CORRUPT: they are broken; MPIOX_E_ARG: something in them is no number. */
static int set_args(mpiox_rawtrace_dftracer *state, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows,
                    const mpiox_rawtrace_function *function, mpiox_rawtrace_row *row, const event *event)
{
    const span args = event->args;
    const char *p = args.start;
    span key, value;
    int more = 0, code = MPIOX_OK;

    if (args.start == args.end)
        return MPIOX_OK;
    for (int i = 0; i < event->count && code == MPIOX_OK; i++)
        code = set_one(state, calls, rows, function, row, event->members[i].key, event->members[i].value);
    if (event->count >= 0)
        return code;
    if (*p != '{')
        return MPIOX_E_CORRUPT;
    for (p++; code == MPIOX_OK && (more = next_member(&p, args.end, &key, &value)) == 1;)
        code = set_one(state, calls, rows, function, row, key, value);
    return code != MPIOX_OK ? code : more == 0 ? MPIOX_OK : MPIOX_E_CORRUPT;
}

/* For vectors only the result is the number of bytes moved. */
static void set_size_of_vector(const mpiox_rawtrace_function *function, mpiox_rawtrace_row *row)
{
    for (int i = 0; i < function->words && row->size == MPIOX_RAWTRACE_NULL && row->result >= 0; i++) {
        if (function->word[i].kind == MPIOX_RAWTRACE_IOV)
            row->size = row->result;
    }
}

static int layer_of(const event *event)
{
    const bool file = event->name.end - event->name.start > 9 && strncasecmp(event->name.start, "MPI_File_", 9) == 0;

    return is_word(event->category, "POSIX")                                      ? MPIOX_LAYER_POSIX
           : is_word(event->category, "STDIO")                                    ? MPIOX_LAYER_STDIO
           : file                                                                 ? MPIOX_LAYER_MPIIO
           : is_word(event->category, "MPI") || is_word(event->category, "MPIIO") ? MPIOX_LAYER_MPI
                                                                                  : -1;
}

/* The layer of a call: that of its category. But a function of streams belongs to their layer in any category, and so
 * does one of descriptors; else it would be an unknown operation of its file. */
static int layer_of_call(int layer, const mpiox_rawtrace_function *function)
{
    const bool file = layer == MPIOX_LAYER_POSIX || layer == MPIOX_LAYER_STDIO;
    const bool known = function->words >= 0 &&
                       (function->layer == MPIOX_LAYER_POSIX || function->layer == MPIOX_LAYER_STDIO);

    return file && known ? function->layer : layer;
}

/* Times of an event in ns; false: there are none. */
static bool set_times(const mpiox_rawtrace_dftracer *state, const event *event, mpiox_rawtrace_row *row)
{
    const int64_t unit = state->unit_ns > 0 ? state->unit_ns : 1000;
    int64_t value;

    if (!integer(event->start, &value) || __builtin_mul_overflow(value, unit, &row->timestamp))
        return false;
    if (integer(event->duration, &value) && __builtin_mul_overflow(value, unit, &row->duration))
        row->duration = MPIOX_RAWTRACE_NULL;
    return true;
}

static int call_event(mpiox_rawtrace_dftracer *state, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows,
                      const event *event, int layer, span line)
{
    mpiox_rawtrace_row filled = {.timestamp = MPIOX_RAWTRACE_NULL,
                                 .offset = MPIOX_RAWTRACE_NULL,
                                 .size = MPIOX_RAWTRACE_NULL,
                                 .duration = MPIOX_RAWTRACE_NULL,
                                 .result = MPIOX_RAWTRACE_NULL,
                                 .handle = MPIOX_RAWTRACE_NULL,
                                 .line = rows->lines,
                                 .file = -1,
                                 .depth = -1,
                                 .layer = layer};
    calls->any_case = true; /* the category shows that it is a call */
    const mpiox_rawtrace_function *function = mpiox_rawtrace_calls_find(calls, &rows->operations, event->name.start,
                                                                        event->name.end - event->name.start);

    if (function == NULL)
        return MPIOX_E_NOMEM;
    if (event->name.start == event->name.end || !set_times(state, event, &filled)) {
        mpiox_rawtrace_rows_problem(rows, "cannot be parsed: no name or no time", line.start, line.end - line.start);
        return MPIOX_OK;
    }
    filled.operation = function->operation;
    filled.layer = layer_of_call(layer, function);
    (void)integer(event->pid, &filled.process);
    (void)integer(event->tid, &filled.thread);
    calls->extra.used = 0;
    const int code = set_args(state, calls, rows, function, &filled, event);
    if (code == MPIOX_E_CORRUPT || code == MPIOX_E_ARG) {
        const char *why = code == MPIOX_E_ARG ? "a result, handle, size or offset is no number"
                                              : "cannot be parsed: args";
        mpiox_rawtrace_rows_problem(rows, why, line.start, line.end - line.start);
        return MPIOX_OK;
    }
    if (code != MPIOX_OK)
        return code;
    set_size_of_vector(function, &filled);
    const int64_t number = mpiox_rawtrace_rows_push(rows);
    if (number < 0)
        return MPIOX_E_NOMEM;
    mpiox_rawtrace_rows_get(rows, number)->row = filled;
    (void)mpiox_rawtrace_rows_done(rows, number, mpiox_rawtrace_json_end(&calls->extra));
    return calls->extra.failed ? MPIOX_E_NOMEM : MPIOX_OK;
}

static int phase_of(span phase)
{
    if (is(phase, "X") || is(phase, "1"))
        return PHASE_COMPLETE;
    if (is(phase, "M") || is(phase, "4"))
        return PHASE_METADATA;
    return is(phase, "C") || is(phase, "2") ? PHASE_COUNTER : is(phase, "A") || is(phase, "3") ? PHASE_AGGREGATED : 0;
}

/* May a line be metadata? The first pass skips all others. It searches for the h of "ph", which is rarer than its
 * neighbours: memchr() is several times as fast as memmem(). */
static bool may_be_metadata(span line)
{
    const char *h = line.start;

    for (; h < line.end && (h = memchr(h, 'h', (size_t)(line.end - h))) != NULL; h++) {
        const char *p = h + 3;
        if (h - line.start < 2 || h[-1] != 'p' || h[-2] != '"' || line.end - h < 4 || h[1] != '"' || h[2] != ':')
            continue;
        if (*p != '"' && *p != '1')
            return true;
        if (line.end - p > 1 && *p == '"' && p[1] == 'M')
            return true;
    }
    return false;
}

/* The brackets around all events; "][" where files have been joined; nothing at all. */
static bool is_bracket(const char *p, const char *end)
{
    while (p < end && (*p == '[' || *p == ']' || *p == ' '))
        p++;
    return p == end;
}

int mpiox_rawtrace_dftracer_line(mpiox_rawtrace_dftracer *state, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows,
                                 const char *p, const char *end, bool tables_only)
{
    const span line = {p, end};
    event event;

    while (end > p && (end[-1] == '\r' || end[-1] == ' '))
        end--;
    p = mpiox_rawtrace_skip_blanks(p, end);
    if (is_bracket(p, end))
        return MPIOX_OK;
    if (tables_only && !may_be_metadata(line))
        return MPIOX_OK;
    if (*p != '{' || !parse_event(p, end, &event)) {
        mpiox_rawtrace_rows_problem(rows, "cannot be parsed: no JSON object", line.start, line.end - line.start);
        return MPIOX_OK;
    }
    const int phase = phase_of(event.phase);
    int code = MPIOX_OK, layer;
    if (phase == PHASE_METADATA)
        code = metadata(state, calls, rows, &event, line, tables_only);
    else if (tables_only)
        return MPIOX_OK;
    else if (phase != PHASE_COMPLETE)
        mpiox_rawtrace_rows_problem(rows, phase == 0 ? "cannot be parsed: phase" : "counters, no single calls", p,
                                    end - p);
    else if (is(event.category, "dftracer")) {
        rows->events++;
        code = mpiox_rawtrace_rows_note(rows, line.start, line.end - line.start);
    } else if ((layer = layer_of(&event)) >= 0)
        code = call_event(state, calls, rows, &event, layer, line);
    else
        code = mpiox_rawtrace_rows_other(rows, event.category.start, event.category.end - event.category.start);
    if (code == MPIOX_E_CORRUPT) {
        mpiox_rawtrace_rows_problem(rows, "cannot be parsed: table of hashes", line.start, line.end - line.start);
        code = MPIOX_OK;
    }
    return code;
}
