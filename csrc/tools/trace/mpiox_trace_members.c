/*
 * mpiox_trace_members.c - see mpiox_trace_members.h.
 *
 * Algorithm. Greedy: numbers that ascend by the step of the first two are one range, of at least two numbers if the
 *            step is 1 and of three if it is larger. A communicator of consecutive ranks, or of every k-th, is one.
 */
#include "mpiox_trace_members.h"

#include <stdio.h>

enum { LEAST_EVEN = 3 };

/* How many numbers from `at` on are one range; *step is theirs. */
static int range_at(const int *ranks, int count, int at, int *step)
{
    int end = at + 1;

    *step = end < count ? ranks[end] - ranks[at] : 0;
    while (end < count && *step > 0 && ranks[end] - ranks[end - 1] == *step)
        end++;
    return *step > 1 && end - at < LEAST_EVEN ? 1 : end - at;
}

bool mpiox_trace_members_text(const int *ranks, int count, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = 0;
    for (int at = 0, length, step; at < count; at += length) {
        const char *comma = at > 0 ? "," : "";
        int written;

        length = range_at(ranks, count, at, &step);
        if (length == 1)
            written = snprintf(text + used, bytes - used, "%s%d", comma, ranks[at]);
        else if (step == 1)
            written = snprintf(text + used, bytes - used, "%s%d-%d", comma, ranks[at], ranks[at + length - 1]);
        else
            written = snprintf(text + used, bytes - used, "%s%d-%d:%d", comma, ranks[at], ranks[at + length - 1], step);
        used += written > 0 ? (size_t)written : bytes;
        if (used >= bytes || ranks[at] < 0) {
            text[0] = 0;
            return false;
        }
    }
    return true;
}
