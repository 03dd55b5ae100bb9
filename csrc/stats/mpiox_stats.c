/*
 * mpiox_stats.c - sums and texts of statistics. Every name comes from the X-macro lists of mpiox_stats.h.
 */
#include "mpiox_stats.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct writer { /* appends like snprintf: counts what it could not store */
    char *text;
    int64_t capacity, used;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *out, const char *format, ...)
{
    int64_t room = out->capacity > out->used ? out->capacity - out->used : 0;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(room > 0 ? out->text + out->used : NULL, (size_t)room, format, arguments);
    va_end(arguments);
    out->used += length > 0 ? length : 0;
}

void mpiox_stats_add(mpiox_stats *into, const mpiox_stats *from)
{
#define X(name, unit, over_ranks, meaning) into->name += from->name;
    MPIOX_STATS_COUNTERS(X)
#undef X
#define X(name, meaning) into->name += from->name;
    MPIOX_STATS_TIMES(X)
#undef X
    for (int i = 0; i < MPIOX_STATS_SIZE_BUCKETS; i++)
        into->request_size_log2[i] += from->request_size_log2[i];
    if (from->partition[0] != '\0')
        memcpy(into->partition, from->partition, sizeof into->partition);
    if (from->reason[0] != '\0')
        memcpy(into->reason, from->reason, sizeof into->reason);
}

void mpiox_stats_set_delegated(mpiox_stats *into, const mpiox_stats_delegated *from)
{
#define X(name, unit, over_ranks, meaning) into->name = atomic_load_explicit(&from->name, memory_order_relaxed);
    MPIOX_STATS_DELEGATED(X)
#undef X
    into->delegated_s = 1e-9 * (double)atomic_load_explicit(&from->nanoseconds, memory_order_relaxed);
}

int mpiox_stats_is_max(int index)
{
    enum { SUM = 0, MAX = 1 };
    static const unsigned char is_max[] = {
#define X(name, unit, over_ranks, meaning) over_ranks,
        MPIOX_STATS_COUNTERS(X)
#undef X
    };

    return index >= 0 && index < (int)sizeof is_max && is_max[index] == MAX;
}

/* A JSON string. File names are bytes: what is not valid UTF-8 is written as U+00XX, byte by byte. */
static int utf8_length(const unsigned char *p)
{
    int length = p[0] >= 0xF0 && p[0] < 0xF5 ? 4 : p[0] >= 0xE0 ? 3 : p[0] >= 0xC2 ? 2 : 0;

    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xF5)
        return 0;
    for (int i = 1; i < length; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    }
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF0 && p[1] < 0x90) ||
        (p[0] == 0xF4 && p[1] > 0x8F))
        return 0;
    return length;
}

static void put_string(writer *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    put(out, "\"");
    while (*p != '\0') {
        int length = utf8_length(p);

        if (*p == '"' || *p == '\\')
            put(out, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7F || length == 0)
            put(out, "\\u%04x", *p);
        else
            put(out, "%.*s", length, (const char *)p);
        p += length > 0 ? length : 1;
    }
    put(out, "\"");
}

static int last_bucket(const mpiox_stats *stats)
{
    int last = MPIOX_STATS_SIZE_BUCKETS - 1;

    while (last >= 0 && stats->request_size_log2[last] == 0)
        last--;
    return last;
}

static void put_hints(writer *out, const mpiox_stats_subject *about)
{
    put(out, ", \"hints\": {");
    for (int i = 0; i < about->hint_count; i++) {
        put(out, "%s\"%s\": {\"value\": ", i > 0 ? ", " : "", about->hints[i].name);
        put_string(out, about->hints[i].value);
        put(out, ", \"source\": ");
        put_string(out, about->hints[i].source);
        put(out, "}");
    }
    put(out, "}");
}

int64_t mpiox_stats_json(const mpiox_stats *stats, const mpiox_stats_subject *about, char *text, int64_t text_bytes)
{
    writer out = {text, text_bytes, 0};
    int last = last_bucket(stats);

    put(&out, "{\"kind\": \"%s\", ", about->path != NULL ? "file" : "run");
    if (about->path != NULL) {
        put(&out, "\"path\": ");
        put_string(&out, about->path);
        put(&out, ", ");
    }
    put(&out, "\"ranks\": %d", about->ranks);
#define X(name, unit, over_ranks, meaning) put(&out, ", \"" #name "\": %" PRId64, stats->name);
    MPIOX_STATS_COUNTERS(X)
#undef X
#define X(name, meaning) put(&out, ", \"" #name "\": %.9g", stats->name);
    MPIOX_STATS_TIMES(X)
#undef X
    put(&out, ", \"request_size_log2\": [");
    for (int i = 0; i <= last; i++)
        put(&out, "%s%" PRId64, i > 0 ? ", " : "", stats->request_size_log2[i]);
    put(&out, "], \"partition\": ");
    put_string(&out, stats->partition);
    put(&out, ", \"reason\": ");
    put_string(&out, stats->reason);
    if (about->path != NULL)
        put_hints(&out, about);
    put(&out, "}");
    return out.used;
}

static void put_counter(writer *out, const char *name, int64_t value, const char *unit, const char *meaning)
{
    if (value != 0)
        put(out, "  %-20s %18" PRId64 " %-9s %s\n", name, value, unit, meaning);
}

static void put_time(writer *out, const char *name, double seconds, int ranks, const char *meaning)
{
    if (seconds > 0.0)
        put(out, "  %-20s %18.6f %-9s %s\n", name, seconds / (ranks > 0 ? ranks : 1), "s/rank", meaning);
}

static void put_size(writer *out, int power)
{
    static const char units[][4] = {"B", "KiB", "MiB", "GiB", "TiB"};

    put(out, "%d %s", 1 << (power % 10), units[power / 10]);
}

int64_t mpiox_stats_table(const mpiox_stats *stats, const mpiox_stats_subject *about, char *text, int64_t text_bytes)
{
    writer out = {text, text_bytes, 0};
    const char *separator = "";

    put(&out, "mpiio_ext: statistics of %s, summed over %d rank%s\n", about->path != NULL ? about->path : "the run",
        about->ranks, about->ranks == 1 ? "" : "s");
#define X(name, unit, over_ranks, meaning) put_counter(&out, #name, stats->name, unit, meaning);
    MPIOX_STATS_COUNTERS(X)
#undef X
#define X(name, meaning) put_time(&out, #name, stats->name, about->ranks, meaning);
    MPIOX_STATS_TIMES(X)
#undef X
    if (last_bucket(stats) >= 0) {
        put(&out, "  %-20s ", "request sizes");
        for (int i = 0; i <= last_bucket(stats); i++) {
            if (stats->request_size_log2[i] == 0)
                continue;
            put(&out, "%s%" PRId64 " of ", separator, stats->request_size_log2[i]);
            put_size(&out, i);
            separator = ", ";
        }
        put(&out, " or more\n");
    }
    if (stats->partition[0] != '\0')
        put(&out, "  %-20s %s\n", "partition", stats->partition);
    if (stats->reason[0] != '\0')
        put(&out, "  %-20s %s\n", "reason", stats->reason);
    for (int i = 0; i < about->hint_count; i++)
        put(&out, "  %-20s %s=%s (%s)\n", i == 0 ? "hints" : "", about->hints[i].name, about->hints[i].value,
            about->hints[i].source);
    return out.used;
}
