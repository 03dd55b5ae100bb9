/* mpiox_parts.c - see mpiox_parts.h. */
#include "mpiox_parts.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "mpiox_event.h"

typedef void part_hook(const char *part, int64_t start_ns, int64_t end_ns);
static part_hook *tracer;

static _Thread_local struct {
    mpiox_part part;
    int64_t since; /* ns */
    mpiox_parts sums;
} own;

__attribute__((constructor)) static void look_for_tracer(void)
{
    tracer = (part_hook *)dlsym(RTLD_DEFAULT, "mpiox_trace_part");
}

static const char *name_of(mpiox_part part)
{
    return part == MPIOX_PART_WAITING ? "waiting" : "messages";
}

mpiox_part mpiox_parts_on(mpiox_part part)
{
    const mpiox_part before = own.part;

    if (before == part)
        return before;
    const int64_t now = mpiox_event_clock(), since = own.since;
    own.sums.seconds[before] += 1e-9 * (double)(now - since);
    own.part = part;
    own.since = now;
    if (tracer != NULL && before >= MPIOX_PART_WAITING)
        tracer(name_of(before), since, now);
    if (tracer != NULL && part >= MPIOX_PART_WAITING)
        tracer(name_of(part), now, 0);
    return before;
}

const mpiox_parts *mpiox_parts_so_far(void)
{
    return &own.sums;
}

bool mpiox_parts_are_recorded(void)
{
    return tracer != NULL;
}

void mpiox_parts_own(void)
{
    if (tracer != NULL)
        tracer(NULL, 0, 0);
}
