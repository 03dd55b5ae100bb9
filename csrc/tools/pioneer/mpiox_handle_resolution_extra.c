/* mpiox_handle_resolution_extra.c - see mpiox_handle_resolution_extra.h. */
#include "mpiox_handle_resolution_extra.h"

#include <ctype.h>
#include <string.h>

#include "mpiox_rawtrace_json.h"

enum { APPEND = 02000 }; /* O_APPEND of Linux */

typedef struct text {
    const char *p, *end;
} text;

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* Behind the value at p; NULL: it has no end. */
static const char *skip_value(const char *p, const char *end)
{
    int depth = 0;

    while (p < end) {
        if (*p == '"') {
            p = mpiox_rawtrace_skip_string(p, end);
            if (p == NULL)
                return NULL;
            continue;
        }
        if (depth == 0 && (*p == ',' || *p == '}'))
            return p;
        depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
        p++;
    }
    return NULL;
}

static bool is(text one, const char *other)
{
    const size_t bytes = strlen(other);

    return (size_t)(one.end - one.p) == bytes && memcmp(one.p, other, bytes) == 0;
}

static bool has(text one, const char *part)
{
    return memmem(one.p, (size_t)(one.end - one.p), part, strlen(part)) != NULL;
}

/* A value without its quotes. */
static text bare(text value)
{
    if (value.end - value.p >= 2 && *value.p == '"')
        return (text){value.p + 1, value.end - 1};
    return value;
}

static bool number(text value, int64_t *found)
{
    const char *p = value.p;

    return mpiox_extra_number(&p, value.end, found) && p == value.end;
}

/* 600, 602, 604 are MPI_SEEK_SET, _CUR and _END of MPICH and Open MPI. */
static int whence_of(text value)
{
    int64_t found;

    if (number(value, &found))
        return found == 1 || found == 602 ? MPIOX_WHENCE_CUR : found == 2 || found == 604 ? MPIOX_WHENCE_END : 0;
    return has(value, "SEEK_CUR") ? MPIOX_WHENCE_CUR : has(value, "SEEK_END") ? MPIOX_WHENCE_END : MPIOX_WHENCE_SET;
}

static bool appends(text value)
{
    int64_t flags;

    if (number(value, &flags))
        return (flags & APPEND) != 0;
    return has(value, "APPEND");
}

static void take(mpiox_extra *extra, text key, text quoted)
{
    const text value = bare(quoted);
    int64_t found;

    if (is(key, "whence"))
        extra->whence = whence_of(value);
    else if (is(key, "flags"))
        extra->appends |= appends(value);
    else if (is(key, "mode")) /* of fopen; of open it is a number */
        extra->appends |= value.p < value.end && *value.p == 'a';
    else if (is(key, "etype_size"))
        extra->etype = number(value, &found) && found > 0 ? found : 1;
    else if (is(key, "handle_address"))
        extra->address = number(value, &found) ? found : MPIOX_UNKNOWN;
    else if (is(key, "address"))
        extra->mapping = number(value, &found) ? found : MPIOX_UNKNOWN;
    else if (is(key, "handle2"))
        extra->descriptor = number(value, &found) ? found : MPIOX_UNKNOWN;
    else if (is(key, "object"))
        extra->object = true;
    else if (is(key, "flag"))
        extra->not_done = is(value, "0") || is(value, "[ 0 ]");
    else if (is(key, "request") || is(key, "requests")) {
        extra->requests = value.p;
        extra->requests_end = value.end;
    } else if (is(key, "args")) {
        extra->args = value.p;
        extra->args_end = value.end;
    }
}

mpiox_extra mpiox_extra_of(const char *p, const char *end)
{
    mpiox_extra extra = {.etype = 1, .address = MPIOX_UNKNOWN, .mapping = MPIOX_UNKNOWN, .descriptor = MPIOX_UNKNOWN};

    p = skip_blanks(p, end);
    if (p == end || *p != '{')
        return extra;
    p++;
    for (;;) {
        p = skip_blanks(p, end);
        const char *behind = p < end && *p == '"' ? mpiox_rawtrace_skip_string(p, end) : NULL;
        if (behind == NULL)
            return extra;
        const text key = {p + 1, behind - 1};
        p = skip_blanks(behind, end);
        if (p == end || *p != ':')
            return extra;
        p = skip_blanks(p + 1, end);
        const char *stop = skip_value(p, end);
        if (stop == NULL)
            return extra;
        text value = {p, stop};
        while (value.end > value.p && isspace((unsigned char)value.end[-1]))
            value.end--;
        take(&extra, key, value);
        if (*stop != ',')
            return extra;
        p = stop + 1;
    }
}

bool mpiox_extra_number(const char **p, const char *end, int64_t *value)
{
    const char *at = *p;

    while (at < end && !isdigit((unsigned char)*at) && !(*at == '-' && at + 1 < end && isdigit((unsigned char)at[1])))
        at++;
    const char *stop = at < end ? at + 1 : at;
    while (stop < end && isalnum((unsigned char)*stop))
        stop++;
    *p = stop;
    return at < end && mpiox_rawtrace_number(at, stop, value);
}
