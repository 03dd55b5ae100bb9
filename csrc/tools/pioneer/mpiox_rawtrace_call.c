/* mpiox_rawtrace_call.c - see mpiox_rawtrace_call.h. */
#include "mpiox_rawtrace_call.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mpiox_error.h"

enum { AT_CWD = -100 };

static void function_free(mpiox_rawtrace_function *function)
{
    for (int i = 0; i < function->words; i++)
        free(function->word[i].text);
}

void mpiox_rawtrace_calls_free(mpiox_rawtrace_calls *calls)
{
    for (int32_t i = 0; i < calls->described.count && i < calls->described_capacity; i++)
        function_free(&calls->by_described[i]);
    for (int64_t i = 0; i < calls->constant_count; i++) {
        free(calls->constants[i].key);
        free(calls->constants[i].text);
    }
    free(calls->by_described);
    free(calls->by_seen);
    free(calls->constants);
    free(calls->extra.bytes);
    free(calls->text.bytes);
    free(calls->joined.bytes);
    mpiox_rawtrace_names_free(&calls->described);
    mpiox_rawtrace_names_free(&calls->seen);
    memset(calls, 0, sizeof *calls);
}

/* Room for function `count - 1`; new ones are zero. */
static int reserve(mpiox_rawtrace_function **functions, int64_t *capacity, int64_t count)
{
    if (count <= *capacity)
        return MPIOX_OK;
    const int64_t larger = 2 * count + 64;
    mpiox_rawtrace_function *grown = realloc(*functions, (size_t)larger * sizeof *grown);
    if (grown == NULL)
        return MPIOX_E_NOMEM;
    memset(grown + *capacity, 0, (size_t)(larger - *capacity) * sizeof *grown);
    *functions = grown;
    *capacity = larger;
    return MPIOX_OK;
}

static int kind_of(const char *word)
{
    static const struct {
        const char *word;
        int kind;
    } kinds[] = {
        {"-", MPIOX_RAWTRACE_LEFT_OUT},    {"file", MPIOX_RAWTRACE_FILE},
        {"file2", MPIOX_RAWTRACE_SECOND},  {"to_dir", MPIOX_RAWTRACE_DIRECTORY},
        {"handle", MPIOX_RAWTRACE_HANDLE}, {"handle_address", MPIOX_RAWTRACE_VARIABLE},
        {"dir", MPIOX_RAWTRACE_DIRECTORY}, {"size", MPIOX_RAWTRACE_SIZE},
        {"offset", MPIOX_RAWTRACE_OFFSET}, {"unit", MPIOX_RAWTRACE_UNIT},
        {"iov", MPIOX_RAWTRACE_IOV},       {"datatype", MPIOX_RAWTRACE_DATATYPE},
        {"etype", MPIOX_RAWTRACE_ETYPE},   {"count", MPIOX_RAWTRACE_COUNT},
        {"...", MPIOX_RAWTRACE_REST},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].word, word) == 0)
            return kinds[i].kind;
    }
    return MPIOX_RAWTRACE_KEY;
}

static int set_words(mpiox_rawtrace_function *function, const char *signature)
{
    const char *end = signature + strcspn(signature, "=");

    function->returns_handle = strcmp(end, "=handle") == 0;
    while (signature < end) {
        const size_t length = strcspn(signature, ",=");
        if (function->words == MPIOX_RAWTRACE_WORDS)
            return MPIOX_E_ARG;
        mpiox_rawtrace_word *word = &function->word[function->words];
        word->text = strndup(signature, length);
        if (word->text == NULL)
            return MPIOX_E_NOMEM;
        word->kind = kind_of(word->text);
        function->words++;
        signature += length + (signature[length] == ',');
    }
    return MPIOX_OK;
}

int mpiox_rawtrace_calls_describe(mpiox_rawtrace_calls *calls, mpiox_rawtrace_names *operations, const char *name,
                                  const char *operation, int layer, const char *signature)
{
    const int32_t id = mpiox_rawtrace_names_add(&calls->described, name, (int64_t)strlen(name));

    if (id < 0 || reserve(&calls->by_described, &calls->described_capacity, calls->described.count) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    mpiox_rawtrace_function *function = &calls->by_described[id];
    function_free(function);
    memset(function, 0, sizeof *function);
    function->operation = mpiox_rawtrace_names_add(operations, operation, (int64_t)strlen(operation));
    function->layer = layer;
    return function->operation < 0 ? MPIOX_E_NOMEM : set_words(function, signature);
}

int mpiox_rawtrace_calls_constant(mpiox_rawtrace_calls *calls, const char *key, int64_t value, const char *text,
                                  int64_t element_bytes)
{
    mpiox_rawtrace_constant *grown = realloc(calls->constants,
                                             ((size_t)calls->constant_count + 1) * sizeof *calls->constants);

    if (grown == NULL)
        return MPIOX_E_NOMEM;
    calls->constants = grown;
    mpiox_rawtrace_constant *constant = &grown[calls->constant_count];
    constant->key = strdup(key);
    constant->text = strdup(text);
    constant->value = value;
    constant->bytes = element_bytes;
    if (constant->key == NULL || constant->text == NULL) {
        free(constant->key);
        free(constant->text);
        return MPIOX_E_NOMEM;
    }
    calls->constant_count++;
    return MPIOX_OK;
}

static bool begins(const char *text, int64_t bytes, const char *prefix)
{
    return bytes >= (int64_t)strlen(prefix) && memcmp(text, prefix, strlen(prefix)) == 0;
}

/* Number of a described function whose name differs in the case of letters alone, or -1. */
static int32_t find_any_case(const mpiox_rawtrace_names *described, const char *name, int64_t bytes)
{
    for (int32_t i = 0; i < described->count; i++) {
        if (described->offsets[i + 1] - described->offsets[i] == bytes &&
            strncasecmp(described->bytes + described->offsets[i], name, (size_t)bytes) == 0)
            return i;
    }
    return -1;
}

/* A function that has been met for the first time. */
static int make_seen(mpiox_rawtrace_calls *calls, mpiox_rawtrace_names *operations, const char *name, int64_t bytes,
                     mpiox_rawtrace_function *function)
{
    if (begins(name, bytes, "SYS_")) {
        name += 4;
        bytes -= 4;
        function->raw = true;
    } else if (bytes > 4 && memcmp(name + bytes - 4, "@SYS", 4) == 0) {
        bytes -= 4;
        function->raw = true;
    }
    const bool raw = function->raw;
    int32_t id = mpiox_rawtrace_names_find(&calls->described, name, bytes);
    if (id < 0 && bytes > 2 && memcmp(name + bytes - 2, "64", 2) == 0) {
        bytes -= 2;
        id = mpiox_rawtrace_names_find(&calls->described, name, bytes);
    }
    if (id < 0 && begins(name, bytes, "MPI_") && memcmp(name + bytes - 2, "_c", 2) == 0) { /* large counts */
        bytes -= 2;
        id = mpiox_rawtrace_names_find(&calls->described, name, bytes);
    }
    if (id < 0 && calls->any_case)
        id = find_any_case(&calls->described, name, bytes);
    if (id >= 0) {
        *function = calls->by_described[id];
    } else {
        function->operation = mpiox_rawtrace_names_add(operations, name, bytes);
        function->layer = begins(name, bytes, "MPI_File_") ? MPIOX_LAYER_MPIIO
                          : begins(name, bytes, "MPI_")    ? MPIOX_LAYER_MPI
                                                           : MPIOX_LAYER_POSIX;
        function->words = -1;
    }
    function->raw = raw;
    function->moves = (bytes == 5 && memcmp(name, "chdir", 5) == 0) || (bytes == 6 && memcmp(name, "fchdir", 6) == 0);
    function->makes = memmem(name, (size_t)bytes, "fork", 4) != NULL ||
                      memmem(name, (size_t)bytes, "clone", 5) != NULL ||
                      (bytes == 3 && memcmp(name, "435", 3) == 0); /* clone3, where ltrace does not know it */
    return function->operation < 0 ? MPIOX_E_NOMEM : MPIOX_OK;
}

const mpiox_rawtrace_function *mpiox_rawtrace_calls_find(mpiox_rawtrace_calls *calls, mpiox_rawtrace_names *operations,
                                                         const char *name, int64_t bytes)
{
    int32_t id = mpiox_rawtrace_names_find(&calls->seen, name, bytes);

    if (id >= 0)
        return &calls->by_seen[id];
    mpiox_rawtrace_function function = {0};
    if (make_seen(calls, operations, name, bytes, &function) != MPIOX_OK ||
        reserve(&calls->by_seen, &calls->seen_capacity, calls->seen.count + 1) != MPIOX_OK)
        return NULL;
    id = mpiox_rawtrace_names_add(&calls->seen, name, bytes);
    if (id < 0)
        return NULL;
    calls->by_seen[id] = function; /* its words belong to by_described */
    return &calls->by_seen[id];
}

void mpiox_rawtrace_calls_extra(mpiox_rawtrace_calls *calls, const char *key, const char *p, const char *end)
{
    int64_t value;
    const bool number = mpiox_rawtrace_number(p, end, &value);

    mpiox_rawtrace_json_key(&calls->extra, key, (int64_t)strlen(key));
    for (int64_t i = 0; number && i < calls->constant_count; i++) {
        const mpiox_rawtrace_constant *constant = &calls->constants[i];
        if (constant->value == value && strcmp(constant->key, key) == 0) {
            mpiox_rawtrace_json_string(&calls->extra, constant->text, (int64_t)strlen(constant->text));
            return;
        }
    }
    const bool plain = number && (p[0] != '0' || end - p == 1) && !(p[0] == '-' && p[1] == '0');
    if (number && !plain && strcmp(key, "flags") == 0) { /* their bits count, in whatever base they are printed */
        char digits[24];
        mpiox_rawtrace_buffer_put(&calls->extra, digits, snprintf(digits, sizeof digits, "%" PRId64, value));
    } else if (plain) {
        mpiox_rawtrace_buffer_put(&calls->extra, p, end - p);
    } else if (p < end && *p == '"') {
        const char *behind = mpiox_rawtrace_skip_text(p, end);
        mpiox_rawtrace_decode(&calls->text, p + 1, behind != NULL ? behind - 1 : end, false);
        mpiox_rawtrace_json_string(&calls->extra, calls->text.bytes, calls->text.used);
    } else {
        mpiox_rawtrace_json_string(&calls->extra, p, end - p);
    }
}

/* Behind the <...> that follows a file descriptor; sockets have -> inside of brackets. */
static const char *skip_angle(const char *p, const char *end)
{
    const char *close = memchr(p, '>', (size_t)(end - p));
    const char *bracket = close != NULL ? memchr(p, '[', (size_t)(close - p)) : NULL;

    if (bracket != NULL && bracket > p && (bracket[-1] == ':' || bracket[-1] == '>')) {
        for (const char *q = bracket; q + 1 < end; q++) {
            if (q[0] == ']' && q[1] == '>')
                return q + 2;
        }
    }
    return close != NULL ? close + 1 : NULL;
}

const char *mpiox_rawtrace_skip_part(const char *start, const char *p, const char *end)
{
    if (*p == '"')
        return mpiox_rawtrace_skip_text(p, end);
    if (*p == '\'' && end - p > 2) {
        const char *q = p + (p[1] == '\\' ? 3 : 2);
        while (q < end && q < p + 6 && *q != '\'')
            q++;
        return q < end && *q == '\'' ? q + 1 : p + 1;
    }
    if (*p == '/' && end - p > 3 && p[1] == '*') {
        for (const char *q = p + 2; q + 1 < end; q++) {
            if (q[0] == '*' && q[1] == '/')
                return q + 2;
        }
        return p + 1;
    }
    if (*p == '<' && end - p > 1 && p[1] == '<')
        return p + 2;
    if (*p == '<' && p > start && (isalnum((unsigned char)p[-1]) || p[-1] == '_'))
        return skip_angle(p, end);
    return p + 1;
}

/* The next argument of [*p, end), without blanks around it; false: there is none. */
static bool next_argument(const char **p, const char *end, mpiox_rawtrace_span *argument)
{
    const char *start = *p;
    int depth = 0;

    while (start < end && *start == ' ')
        start++;
    if (start == end)
        return false;
    const char *q = start;
    while (q < end && !(*q == ',' && depth == 0)) {
        if (mpiox_rawtrace_is_plain(*q)) {
            q++;
            continue;
        }
        depth += (*q == '(' || *q == '[' || *q == '{') - (*q == ')' || *q == ']' || *q == '}');
        q = mpiox_rawtrace_skip_part(start, q, end);
        if (q == NULL)
            q = end;
    }
    *p = q < end ? q + 1 : end;
    while (q > start && q[-1] == ' ')
        q--;
    *argument = (mpiox_rawtrace_span){start, q};
    return true;
}

/* The number before <...>, and what stands inside. */
static bool split_handle(mpiox_rawtrace_span argument, int64_t *value, mpiox_rawtrace_span *inside)
{
    const char *angle = memchr(argument.start, '<', (size_t)(argument.end - argument.start));
    const char *end = angle != NULL ? angle : argument.end;

    *inside = (mpiox_rawtrace_span){NULL, NULL};
    if (angle != NULL && argument.end > angle + 1 && argument.end[-1] == '>')
        *inside = (mpiox_rawtrace_span){angle + 1, argument.end - 1};
    if (end - argument.start == 8 && memcmp(argument.start, "AT_FDCWD", 8) == 0) {
        *value = AT_CWD;
        return true;
    }
    if (!mpiox_rawtrace_number(argument.start, end, value))
        return false;
    if (*value > INT32_MAX && *value <= UINT32_MAX) /* ltrace knows no signed 32 bits */
        *value -= (int64_t)UINT32_MAX + 1;
    return true;
}

typedef struct filling {
    mpiox_rawtrace_calls *calls;
    mpiox_rawtrace_names *files;
    mpiox_rawtrace_row *row;
    mpiox_rawtrace_span directory; /* path of the directory of openat, if known */
    int64_t factor;
    int64_t folder;      /* its descriptor, MPIOX_RAWTRACE_NULL */
    bool counted, typed; /* a count without its datatype is no size: ltrace prints the first arguments only */
    bool has_factor, no_size, failed;
    bool given; /* the directory is an argument, and not the working folder */
} filling;

/* ---- names ------------------------------------------------------------------------------------------------------- */

static mpiox_rawtrace_span name_of(const mpiox_rawtrace_names *files, int32_t number)
{
    return (mpiox_rawtrace_span){files->bytes + files->offsets[number], files->bytes + files->offsets[number + 1]};
}

/* Put the parts of a name behind `out`, without empty ones and "."; ".." removes one if it is the first part of a name
 * behind `floor` bytes of a folder: the kernel returns folders without links, so that this is its meaning. */
static void put_parts(mpiox_rawtrace_buffer *out, const char *p, const char *end, int64_t floor)
{
    bool above = floor > 0;

    while (p < end) {
        const char *slash = memchr(p, '/', (size_t)(end - p));
        const int64_t bytes = (slash != NULL ? slash : end) - p;
        if (bytes == 2 && p[0] == '.' && p[1] == '.' && above) {
            while (out->used > 1 && out->bytes[--out->used] != '/')
                ;
        } else if (bytes > 0 && !(bytes == 1 && *p == '.')) {
            if (out->used > 0 && out->bytes[out->used - 1] != '/')
                mpiox_rawtrace_buffer_put(out, "/", 1);
            mpiox_rawtrace_buffer_put(out, p, bytes);
            above = false;
        }
        p += bytes + (slash != NULL);
    }
}

/* The whole name of [p, end) into calls->joined, below a folder (start NULL: none is known) where it is relative. */
static void join_name(mpiox_rawtrace_calls *calls, mpiox_rawtrace_span folder, const char *p, const char *end)
{
    mpiox_rawtrace_buffer *out = &calls->joined;
    const bool relative = p == end || *p != '/';

    out->used = 0;
    if (relative && folder.start != NULL && *folder.start == '/')
        mpiox_rawtrace_buffer_put(out, folder.start, folder.end - folder.start);
    else if (!relative)
        mpiox_rawtrace_buffer_put(out, "/", 1);
    put_parts(out, p, end, relative ? out->used : 0);
    if (out->used == 0 && p < end) /* "." of a folder that is not known */
        mpiox_rawtrace_buffer_put(out, ".", 1);
}

/* The directory of the name in calls->text; start NULL: not known. An empty name has only an explicit one, for which it
 * stands. */
static mpiox_rawtrace_span directory_of(const filling *f)
{
    const bool here = !f->given && f->calls->folder > 0 && f->calls->text.used > 0;

    return here ? name_of(f->files, f->calls->folder - 1) : f->directory;
}

/* Decode an argument that is a name, whole, into calls->joined; false: it is an address. */
static bool take_name(filling *f, mpiox_rawtrace_span argument, const char **behind)
{
    mpiox_rawtrace_calls *calls = f->calls;

    *behind = *argument.start == '"' ? mpiox_rawtrace_skip_text(argument.start, argument.end) : NULL;
    if (*behind == NULL)
        return false;
    mpiox_rawtrace_decode(&calls->text, argument.start + 1, *behind - 1, false);
    join_name(calls, directory_of(f), calls->text.bytes, calls->text.bytes + calls->text.used);
    f->failed |= calls->joined.failed || calls->text.failed;
    return true;
}

/* The object of a descriptor in the output of strace -y: the name of a file, or else pipe:[1234], socket... */
static void set_target(filling *f, mpiox_rawtrace_span target)
{
    if (*target.start != '/') {
        mpiox_rawtrace_calls_extra(f->calls, "object", target.start, target.end);
        return;
    }
    mpiox_rawtrace_decode(&f->calls->text, target.start, target.end, false);
    f->row->file = mpiox_rawtrace_names_add(f->files, f->calls->text.bytes, f->calls->text.used);
    f->failed |= f->row->file < 0;
}

static void set_file(filling *f, mpiox_rawtrace_span argument)
{
    mpiox_rawtrace_calls *calls = f->calls;
    const char *behind;

    if (!take_name(f, argument, &behind)) { /* an address: ltrace without the function's prototype */
        mpiox_rawtrace_calls_extra(calls, "file", argument.start, argument.end);
        return;
    }
    if (calls->text.used == 0 && f->folder != MPIOX_RAWTRACE_NULL) { /* AT_EMPTY_PATH: the descriptor itself */
        f->row->handle = f->folder;
        if (f->directory.start != NULL)
            set_target(f, f->directory);
        return;
    }
    f->row->file = mpiox_rawtrace_names_add(f->files, calls->joined.bytes, calls->joined.used);
    f->failed |= f->row->file < 0;
    if (argument.end - behind >= 3 && memcmp(behind, "...", 3) == 0) {
        mpiox_rawtrace_json_key(&calls->extra, "cut", 3);
        mpiox_rawtrace_buffer_put(&calls->extra, "true", 4);
    }
}

/* The second name of rename, link and their kin. */
static void set_second(filling *f, mpiox_rawtrace_span argument)
{
    const char *behind;

    if (!take_name(f, argument, &behind)) { /* an address is no name */
        mpiox_rawtrace_calls_extra(f->calls, "file2_address", argument.start, argument.end);
        return;
    }
    mpiox_rawtrace_json_key(&f->calls->extra, "file2", 5);
    mpiox_rawtrace_json_string(&f->calls->extra, f->calls->joined.bytes, f->calls->joined.used);
    if (argument.end - behind >= 3 && memcmp(behind, "...", 3) == 0) {
        mpiox_rawtrace_json_key(&f->calls->extra, "cut2", 4);
        mpiox_rawtrace_buffer_put(&f->calls->extra, "true", 4);
    }
}

int mpiox_rawtrace_calls_opened(mpiox_rawtrace_calls *calls, mpiox_rawtrace_names *files, mpiox_rawtrace_row *row,
                                const char *p, const char *end)
{
    static const char cut[] = "\"cut\":true";
    char *mark = calls->extra.used > 0 ? memmem(calls->extra.bytes, (size_t)calls->extra.used, cut, sizeof cut - 1)
                                       : NULL;
    const mpiox_rawtrace_span name = name_of(files, row->file);
    const int64_t bytes = name.end - name.start;
    const bool relative = bytes > 0 && *name.start != '/';

    if (mark == NULL && !relative)
        return MPIOX_OK;
    mpiox_rawtrace_decode(&calls->text, p, end, false);
    const int64_t above = calls->text.used - bytes - 1; /* of the working folder, where the name ends as the row's */
    if (relative && mark == NULL && above > 0 && calls->text.bytes[above] == '/' &&
        memcmp(calls->text.bytes + above + 1, name.start, (size_t)bytes) == 0)
        calls->folder = mpiox_rawtrace_names_add(files, calls->text.bytes, above) + 1;
    const int32_t whole = mpiox_rawtrace_names_add(files, calls->text.bytes, calls->text.used);
    if (whole < 0)
        return MPIOX_E_NOMEM;
    row->file = whole;
    if (mark != NULL)
        memcpy(mark, "\"cut\":null", sizeof cut - 1);
    return calls->text.failed ? MPIOX_E_NOMEM : MPIOX_OK;
}

/* ---- other arguments --------------------------------------------------------------------------------------------- */

static void set_handle(filling *f, mpiox_rawtrace_span argument)
{
    mpiox_rawtrace_span inside;
    int64_t value;

    if (!split_handle(argument, &value, &inside)) {
        mpiox_rawtrace_calls_extra(f->calls, "handle", argument.start, argument.end);
        return;
    }
    f->row->handle = value;
    if (inside.start != NULL)
        set_target(f, inside);
}

/* The variable of a handle: its address, or [ HANDLE ] if the tracer has read it. */
static void set_variable(filling *f, mpiox_rawtrace_span argument)
{
    const char *p = argument.start, *end = argument.end;

    if (*p == '[' && end[-1] == ']') {
        for (p++; p < end && *p == ' ';)
            p++;
        for (end--; end > p && end[-1] == ' ';)
            end--;
        if (mpiox_rawtrace_number(p, end, &f->row->handle))
            return;
    }
    mpiox_rawtrace_calls_extra(f->calls, "handle_address", argument.start, argument.end);
}

static void set_directory(filling *f, mpiox_rawtrace_span argument)
{
    int64_t value;
    const bool known = split_handle(argument, &value, &f->directory);

    f->given = !known || value != AT_CWD;
    if (!f->given && f->directory.start != NULL && *f->directory.start == '/') {
        mpiox_rawtrace_decode(&f->calls->text, f->directory.start, f->directory.end, false);
        const int32_t number = mpiox_rawtrace_names_add(f->files, f->calls->text.bytes, f->calls->text.used);
        f->failed |= number < 0;
        f->calls->folder = number + 1;
    }
    if (known && value >= 0)
        f->folder = value;
    if (!known || (value != AT_CWD && f->directory.start == NULL))
        mpiox_rawtrace_calls_extra(f->calls, "dir", argument.start, argument.end);
}

static void multiply(filling *f, int64_t value)
{
    f->has_factor = true;
    f->no_size |= value < 0 || __builtin_mul_overflow(f->factor, value, &f->factor);
}

/* The sum of iov_len of strace's [{iov_base="..", iov_len=5}, ...]. */
static void set_vector(filling *f, mpiox_rawtrace_span argument)
{
    static const char key[] = "iov_len=";
    int64_t sum = 0, one;

    for (const char *p = argument.start; p < argument.end;) {
        if (argument.end - p > 8 && memcmp(p, key, 8) == 0) {
            const char *digits = p + 8, *q = digits;
            while (q < argument.end && isdigit((unsigned char)*q))
                q++;
            if (!mpiox_rawtrace_number(digits, q, &one) || __builtin_add_overflow(sum, one, &sum))
                return;
            p = q;
            continue;
        }
        const char *next = mpiox_rawtrace_skip_part(argument.start, p, argument.end);
        const bool comma = *p == ',' && argument.end - p > 4 && memcmp(p, ", ...", 5) == 0;
        if (next == NULL || comma) /* cut: the sum is not known */
            return;
        p = next;
    }
    if (argument.end > argument.start && *argument.start == '[')
        f->row->size = sum;
    else
        mpiox_rawtrace_calls_extra(f->calls, "iov", argument.start, argument.end);
}

static void set_number(filling *f, const char *word, mpiox_rawtrace_span argument, int64_t *column)
{
    int64_t value;

    if (!mpiox_rawtrace_number(argument.start, argument.end, &value))
        mpiox_rawtrace_calls_extra(f->calls, word, argument.start, argument.end);
    else if (column != NULL)
        *column = value;
    else
        multiply(f, value);
}

/* Bytes of an element of a datatype by its handle; 0: not known. */
static int64_t element_bytes(const mpiox_rawtrace_calls *calls, mpiox_rawtrace_span argument)
{
    int64_t value;

    if (!mpiox_rawtrace_number(argument.start, argument.end, &value))
        return 0;
    if (value >> 24 == 0x4c)
        return value >> 8 & 0xff; /* MPICH: it stands in the handle of a predefined datatype */
    for (int64_t i = 0; i < calls->constant_count; i++) {
        const mpiox_rawtrace_constant *constant = &calls->constants[i];
        if (constant->bytes > 0 && constant->value == value)
            return constant->bytes;
    }
    return 0;
}

static void set_datatype(filling *f, mpiox_rawtrace_span argument)
{
    const int64_t bytes = element_bytes(f->calls, argument);

    f->typed = true;
    mpiox_rawtrace_calls_extra(f->calls, "datatype", argument.start, argument.end);
    if (bytes > 0)
        multiply(f, bytes);
    else
        f->no_size = true;
}

/* Of a view: offsets count its elements. */
static void set_etype(filling *f, mpiox_rawtrace_span argument)
{
    const int64_t bytes = element_bytes(f->calls, argument);
    char digits[24];

    mpiox_rawtrace_calls_extra(f->calls, "etype", argument.start, argument.end);
    if (bytes > 0) {
        const int count = snprintf(digits, sizeof digits, "%" PRId64, bytes);
        mpiox_rawtrace_json_key(&f->calls->extra, "etype_size", 10);
        mpiox_rawtrace_buffer_put(&f->calls->extra, digits, count);
    }
}

static void set_count(filling *f, const char *word, mpiox_rawtrace_span argument)
{
    int64_t value;

    mpiox_rawtrace_calls_extra(f->calls, word, argument.start, argument.end);
    f->counted = true;
    if (mpiox_rawtrace_number(argument.start, argument.end, &value))
        multiply(f, value);
}

static void set_argument(filling *f, const mpiox_rawtrace_word *word, mpiox_rawtrace_span argument)
{
    switch (word->kind) {
    case MPIOX_RAWTRACE_LEFT_OUT:
        return;
    case MPIOX_RAWTRACE_FILE:
        set_file(f, argument);
        return;
    case MPIOX_RAWTRACE_SECOND:
        set_second(f, argument);
        return;
    case MPIOX_RAWTRACE_HANDLE:
        set_handle(f, argument);
        return;
    case MPIOX_RAWTRACE_VARIABLE:
        set_variable(f, argument);
        return;
    case MPIOX_RAWTRACE_DIRECTORY:
        set_directory(f, argument);
        return;
    case MPIOX_RAWTRACE_SIZE:
        set_number(f, word->text, argument, &f->row->size);
        return;
    case MPIOX_RAWTRACE_OFFSET:
        set_number(f, word->text, argument, &f->row->offset);
        return;
    case MPIOX_RAWTRACE_UNIT:
        set_number(f, word->text, argument, NULL);
        return;
    case MPIOX_RAWTRACE_IOV:
        set_vector(f, argument);
        return;
    case MPIOX_RAWTRACE_DATATYPE:
        set_datatype(f, argument);
        return;
    case MPIOX_RAWTRACE_ETYPE:
        set_etype(f, argument);
        return;
    case MPIOX_RAWTRACE_COUNT:
        set_count(f, word->text, argument);
        return;
    default:
        mpiox_rawtrace_calls_extra(f->calls, word->text, argument.start, argument.end);
    }
}

/* The arguments as they stand there. */
static void keep_text(mpiox_rawtrace_calls *calls, const char *p, const char *end)
{
    while (p < end && *p == ' ')
        p++;
    if (p == end)
        return;
    mpiox_rawtrace_json_key(&calls->extra, "args", 4);
    mpiox_rawtrace_json_string(&calls->extra, p, end - p);
}

int mpiox_rawtrace_calls_fill(mpiox_rawtrace_calls *calls, const mpiox_rawtrace_function *function,
                              mpiox_rawtrace_names *files, mpiox_rawtrace_row *row, const char *p, const char *end)
{
    filling f = {.calls = calls, .files = files, .row = row, .factor = 1, .folder = MPIOX_RAWTRACE_NULL};
    mpiox_rawtrace_span argument;

    while (end > p && end[-1] == ' ')
        end--;
    if (function->words < 0)
        keep_text(calls, p, end);
    for (int i = 0; i < function->words; i++) {
        if (function->word[i].kind == MPIOX_RAWTRACE_REST) {
            keep_text(calls, p, end);
            break;
        }
        if (!next_argument(&p, end, &argument))
            break;
        if (argument.start < argument.end)
            set_argument(&f, &function->word[i], argument);
    }
    if (f.has_factor && !f.no_size && f.counted == f.typed)
        row->size = f.factor;
    return f.failed || calls->extra.failed ? MPIOX_E_NOMEM : MPIOX_OK;
}
