/*
 * mpiox_stats.c - sums and texts of statistics. Every name comes from the X-macro lists of mpiox_stats.h.
 */
#include "mpiox_stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mpiox_text.h"

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
    for (int way = 0; way < 2; way++)
        if (from->ways[way].reason[0] != '\0')
            into->ways[way] = from->ways[way];
    if (from->delegation[0] != '\0')
        memcpy(into->delegation, from->delegation, sizeof into->delegation);
}

void mpiox_stats_set_method(mpiox_stats *stats, bool write, const char *method, bool stripe_size_io, const char *reason)
{
    mpiox_stats_way *way = &stats->ways[write];

    snprintf(way->partition, sizeof way->partition, "%s", method != NULL ? method : "");
    way->stripe_size_io = stripe_size_io;
    snprintf(way->reason, sizeof way->reason, "%s", reason);
    memcpy(stats->reason, way->reason, sizeof stats->reason);
    if (method != NULL)
        memcpy(stats->partition, way->partition, sizeof stats->partition);
}

void mpiox_stats_set_delegated(mpiox_stats *into, const mpiox_stats_delegated *from)
{
#define X(name, unit, over_ranks, meaning) into->name = atomic_load_explicit(&from->name, memory_order_relaxed);
    MPIOX_STATS_DELEGATED(X)
#undef X
    into->delegated_s = 1e-9 * (double)atomic_load_explicit(&from->nanoseconds, memory_order_relaxed);
    into->flush_barrier_s = 1e-9 * (double)atomic_load_explicit(&from->flush_barrier_nanoseconds, memory_order_relaxed);
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

static int last_bucket(const int64_t *sizes)
{
    int last = MPIOX_STATS_SIZE_BUCKETS - 1;

    while (last >= 0 && sizes[last] == 0)
        last--;
    return last;
}

static void put_json_sizes(mpiox_text *out, const char *name, const int64_t *sizes)
{
    const int last = last_bucket(sizes);

    mpiox_text_put(out, ", \"%s\": [", name);
    for (int i = 0; i <= last; i++)
        mpiox_text_put(out, "%s%" PRId64, i > 0 ? ", " : "", sizes[i]);
    mpiox_text_put(out, "]");
}

static void put_json_delegates(mpiox_text *out, const mpiox_stats_delegates *delegates)
{
    mpiox_text_put(out, ", \"delegates\": {\"delegates\": %d, \"known\": %d, \"died\": %d", delegates->delegates,
                   delegates->known, delegates->died);
    for (int i = 0; i < delegates->count; i++)
        mpiox_text_put(out, ", \"%s\": %" PRId64, delegates->numbers[i].name, delegates->numbers[i].value);
    put_json_sizes(out, "flush_size_log2", delegates->flush_size_log2);
    mpiox_text_put(out, "}");
}

static void put_hints(mpiox_text *out, const mpiox_stats_subject *about)
{
    mpiox_text_put(out, ", \"hints\": {");
    for (int i = 0; i < about->hint_count; i++) {
        mpiox_text_put(out, "%s\"%s\": {\"value\": ", i > 0 ? ", " : "", about->hints[i].name);
        mpiox_text_put_json(out, about->hints[i].value);
        mpiox_text_put(out, ", \"source\": ");
        mpiox_text_put_json(out, about->hints[i].source);
        mpiox_text_put(out, "}");
    }
    mpiox_text_put(out, "}");
}

static void put_when(mpiox_text *out, const char *name, double time)
{
    if (time > 0.0)
        mpiox_text_put(out, ", \"%s\": %.6f", name, time);
    else
        mpiox_text_put(out, ", \"%s\": null", name);
}

static void put_text(mpiox_text *out, const char *name, const char *text)
{
    mpiox_text_put(out, ", \"%s\": ", name);
    if (text != NULL)
        mpiox_text_put_json(out, text);
    else
        mpiox_text_put(out, "null");
}

static void put_ways(mpiox_text *out, const mpiox_stats *stats)
{
    static const char *const names[] = {"read", "write"};

    for (int way = 1; way >= 0; way--) {
        mpiox_text_put(out, ", \"%s_partition\": ", names[way]);
        mpiox_text_put_json(out, stats->ways[way].partition);
        mpiox_text_put(out, ", \"%s_stripe_size_io\": %s", names[way],
                       stats->ways[way].stripe_size_io ? "true" : "false");
        mpiox_text_put(out, ", \"%s_reason\": ", names[way]);
        mpiox_text_put_json(out, stats->ways[way].reason);
    }
}

static void put_identity(mpiox_text *out, const mpiox_stats_identity *identity)
{
    put_text(out, "run", identity->run);
    put_text(out, "scheduler_job", identity->scheduler_job);
    put_text(out, "program", identity->program);
    put_text(out, "command", identity->command);
    mpiox_text_put(out, ", \"uid\": %" PRId64, identity->uid);
    put_when(out, "start", identity->start);
    put_when(out, "time", mpiox_stats_now());
}

static void put_span(mpiox_text *out, const mpiox_stats_span *span)
{
    put_when(out, "opened", span->opened);
    put_when(out, "closed", span->closed);
    put_when(out, "read_start", span->first[0]);
    put_when(out, "read_end", span->last[0]);
    put_when(out, "write_start", span->first[1]);
    put_when(out, "write_end", span->last[1]);
}

static void put_slowest(mpiox_text *out, const mpiox_stats_slowest *slowest)
{
    mpiox_text_put(out, ", \"write_longest_s\": %.9g, \"read_longest_s\": %.9g", slowest->write_s, slowest->read_s);
    mpiox_text_put(out, ", \"slowest_rank\": %d, \"slowest_s\": %.9g", slowest->rank, slowest->own_s);
}

int64_t mpiox_stats_json(const mpiox_stats *stats, const mpiox_stats_subject *about, char *text, int64_t text_bytes)
{
    mpiox_text out = {text, text_bytes, 0};

    mpiox_text_put(&out, "{\"kind\": \"%s\", ", about->path != NULL ? "file" : "run");
    if (about->path != NULL) {
        mpiox_text_put(&out, "\"path\": ");
        mpiox_text_put_json(&out, about->path);
        mpiox_text_put(&out, ", ");
    }
    mpiox_text_put(&out, "\"ranks\": %d", about->ranks);
    if (about->identity != NULL)
        put_identity(&out, about->identity);
    if (about->span != NULL)
        put_span(&out, about->span);
#define X(name, unit, over_ranks, meaning) mpiox_text_put(&out, ", \"" #name "\": %" PRId64, stats->name);
    MPIOX_STATS_COUNTERS(X)
#undef X
#define X(name, meaning) mpiox_text_put(&out, ", \"" #name "\": %.9g", stats->name);
    MPIOX_STATS_TIMES(X)
#undef X
    if (about->slowest != NULL)
        put_slowest(&out, about->slowest);
    put_json_sizes(&out, "request_size_log2", stats->request_size_log2);
    mpiox_text_put(&out, ", \"partition\": ");
    mpiox_text_put_json(&out, stats->partition);
    mpiox_text_put(&out, ", \"reason\": ");
    mpiox_text_put_json(&out, stats->reason);
    put_ways(&out, stats);
    mpiox_text_put(&out, ", \"delegation\": ");
    mpiox_text_put_json(&out, stats->delegation);
    if (about->path != NULL)
        put_hints(&out, about);
    if (about->delegates != NULL)
        put_json_delegates(&out, about->delegates);
    mpiox_text_put(&out, "}");
    return out.used;
}

static void put_counter(mpiox_text *out, const char *name, int64_t value, const char *unit, const char *meaning)
{
    if (value != 0)
        mpiox_text_put(out, "  %-25s %18" PRId64 " %-9s %s\n", name, value, unit, meaning);
}

static void put_time(mpiox_text *out, const char *name, double seconds, int ranks, const char *meaning)
{
    if (seconds > 0.0)
        mpiox_text_put(out, "  %-25s %18.6f %-9s %s\n", name, seconds / (ranks > 0 ? ranks : 1), "s/rank", meaning);
}

static void put_size(mpiox_text *out, int power)
{
    static const char units[][4] = {"B", "KiB", "MiB", "GiB", "TiB"};

    mpiox_text_put(out, "%d %s", 1 << (power % 10), units[power / 10]);
}

static void put_sizes(mpiox_text *out, const char *title, const int64_t *sizes)
{
    const char *separator = "";

    if (last_bucket(sizes) < 0)
        return;
    mpiox_text_put(out, "  %-25s ", title);
    for (int i = 0; i <= last_bucket(sizes); i++) {
        if (sizes[i] == 0)
            continue;
        mpiox_text_put(out, "%s%" PRId64 " of ", separator, sizes[i]);
        put_size(out, i);
        separator = ", ";
    }
    mpiox_text_put(out, " or more\n");
}

static void put_delegates(mpiox_text *out, const mpiox_stats_delegates *delegates)
{
    mpiox_text_put(out, "mpiio_ext: what the delegates counted, summed over %d of %d", delegates->known,
                   delegates->delegates);
    if (delegates->died > 0)
        mpiox_text_put(out, "; %d died", delegates->died);
    mpiox_text_put(out, "\n");
    for (int i = 0; i < delegates->count; i++)
        put_counter(out, delegates->numbers[i].name, delegates->numbers[i].value, delegates->numbers[i].unit,
                    delegates->numbers[i].meaning);
    put_sizes(out, "write request sizes", delegates->flush_size_log2);
}

static void put_line(mpiox_text *out, const char *title, const char *text, const char *more)
{
    if (text[0] != '\0')
        mpiox_text_put(out, "  %-25s %s%s\n", title, text, more);
}

/* Methods and reasons: of writes and reads apart where there were both, since they may differ. */
static void put_method(mpiox_text *out, const mpiox_stats *stats)
{
    static const char *const partitions[] = {"partition, reads", "partition, writes"};
    static const char *const reasons[] = {"reason, reads", "reason, writes"};
    const mpiox_stats_way *ways = stats->ways;

    if (ways[0].reason[0] == '\0' || ways[1].reason[0] == '\0') {
        put_line(out, "partition", stats->partition, "");
        put_line(out, "reason", stats->reason, "");
        return;
    }
    for (int way = 1; way >= 0; way--) {
        put_line(out, partitions[way], ways[way].partition,
                 ways[way].stripe_size_io ? ", one stripe a request" : ", whole windows");
        put_line(out, reasons[way], ways[way].reason, "");
    }
    if (strcmp(stats->reason, ways[0].reason) != 0 && strcmp(stats->reason, ways[1].reason) != 0)
        put_line(out, "reason", stats->reason, "");
}

static void put_numbers(mpiox_text *out, const mpiox_stats *stats, const mpiox_stats_subject *about)
{
    mpiox_text_put(out, "mpiio_ext: statistics of %s, summed over %d rank%s\n",
                   about->path != NULL ? about->path : "the run", about->ranks, about->ranks == 1 ? "" : "s");
#define X(name, unit, over_ranks, meaning) put_counter(out, #name, stats->name, unit, meaning);
    MPIOX_STATS_COUNTERS(X)
#undef X
#define X(name, meaning) put_time(out, #name, stats->name, about->ranks, meaning);
    MPIOX_STATS_TIMES(X)
#undef X
    put_sizes(out, "request sizes", stats->request_size_log2);
    put_method(out, stats);
    put_line(out, "delegates", stats->delegation, "");
    for (int i = 0; i < about->hint_count; i++)
        mpiox_text_put(out, "  %-25s %s=%s (%s)\n", i == 0 ? "hints" : "", about->hints[i].name, about->hints[i].value,
                       about->hints[i].source);
}

int64_t mpiox_stats_table(const mpiox_stats *stats, const mpiox_stats_subject *about, char *text, int64_t text_bytes)
{
    mpiox_text out = {text, text_bytes, 0};

    if (!about->repeats)
        put_numbers(&out, stats, about);
    if (about->delegates != NULL)
        put_delegates(&out, about->delegates);
    return out.used;
}
