/*
 * mpiox_auto_explain.c - a decision of `auto` as one line.
 *
 * Problem.   A user who reads why a method was chosen needs the numbers of that decision, and the alternatives; not the
 *            facts of other file systems.
 * Algorithm. "method: aggregators for servers, stripe, window; reason (source); times". Unknown or unneeded parts are
 *            left out.
 * Guarantee. No line feeds; ends in a zero within the buffer. Pure.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "mpiox_auto_select.h"
#include "mpiox_text.h"

/* A size in the largest unit of which it is a whole number. */
static void put_size(mpiox_text *out, int64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    for (; unit < 4 && bytes % 1024 == 0; unit++)
        bytes /= 1024;
    mpiox_text_put(out, "%" PRId64 " %s", bytes, units[unit]);
}

static void put_time(mpiox_text *out, double seconds)
{
    if (seconds >= 1)
        mpiox_text_put(out, "%.3g s", seconds);
    else if (seconds >= 1e-3)
        mpiox_text_put(out, "%.3g ms", 1e3 * seconds);
    else
        mpiox_text_put(out, "%.3g us", 1e6 * seconds);
}

/* How the aggregators that are used match the servers. */
static const char *match(const mpiox_auto_decision *d)
{
    if (d->layout.hashed)
        return ", placed by a hash";
    if (d->layout.servers == 1)
        return "";
    if (d->layout.servers % d->aggregators_use == 0)
        return " (factor)";
    return d->aggregators_use % d->layout.servers == 0 ? " (multiple)" : " (neither factor nor multiple)";
}

static void put_numbers(mpiox_text *out, const mpiox_auto_decision *d)
{
    const int32_t servers = d->layout.servers;
    mpiox_text_put(out, "%s: %" PRId32 " of %" PRId32 " aggregator%s for %" PRId32 " %s%s%s, stripe ", d->method->name,
                   d->aggregators_use, d->aggregators, d->aggregators == 1 ? "" : "s", servers,
                   d->layout.hashed ? "object" : "server", servers == 1 ? "" : "s", match(d));
    put_size(out, d->layout.stripe_size);
    mpiox_text_put(out, "%s, window ", d->layout.stripe_known ? "" : " (assumed)");
    put_size(out, d->window_bytes);
    if (d->stripe_size_io)
        mpiox_text_put(out, ", one stripe a request");
}

static void put_times(mpiox_text *out, const mpiox_auto_decision *d)
{
    if (d->time <= 0 || d->other == NULL)
        return;
    mpiox_text_put(out, "; estimated ");
    put_time(out, d->time);
    const char *whose = d->other != d->instead_of ? "" : d->instead_of_held ? "the earlier " : "the rules' ";
    mpiox_text_put(out, ", %s%s ", whose, d->other->name);
    put_time(out, d->other_time);
    if (d->changes && d->instead_of == NULL)
        mpiox_text_put(out, " with a change of owners");
}

void mpiox_auto_explain(const mpiox_auto_decision *decision, char *text, int64_t text_bytes)
{
    mpiox_text out = {text, text_bytes, 0};
    put_numbers(&out, decision);
    if (strcmp(decision->source, "hint") == 0)
        mpiox_text_put(&out, "; %s, %s", decision->locks, decision->reason);
    else
        mpiox_text_put(&out, "; %s (%s)", decision->reason, decision->source);
    put_times(&out, decision);
}
