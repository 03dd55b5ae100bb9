/* mpiox_event.c - see mpiox_event.h. */
#include "mpiox_event.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

mpiox_event_hook *mpiox_event_to;

typedef int64_t clock_function(void);
static clock_function *tracer_clock;

__attribute__((constructor)) static void look_for_tracer(void)
{
    mpiox_event_to = (mpiox_event_hook *)dlsym(RTLD_DEFAULT, "mpiox_trace_event");
    tracer_clock = (clock_function *)dlsym(RTLD_DEFAULT, "mpiox_trace_time");
}

int64_t mpiox_event_clock(void)
{
    struct timespec now;

    if (tracer_clock != NULL)
        return tracer_clock();
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void mpiox_event_end(const char *name, const char *file, int64_t offset, int64_t size, int64_t begun,
                     const char *format, ...)
{
    char details[512];
    va_list list;

    if (mpiox_event_to == NULL)
        return;
    va_start(list, format);
    vsnprintf(details, sizeof details, format, list);
    va_end(list);
    mpiox_event_to(name, file, offset, size, begun, mpiox_event_clock() - begun, details);
}

void *mpiox_event_behind_tracer(const char *name)
{
    typedef void *behind(const char *);
    behind *ask = (behind *)dlsym(RTLD_DEFAULT, "mpiox_trace_behind");

    return ask != NULL ? ask(name) : NULL;
}
