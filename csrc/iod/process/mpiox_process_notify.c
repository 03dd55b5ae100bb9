/* mpiox_process_notify.c - see mpiox_process_notify.h. */
#include "mpiox_process_notify.h"
#include "mpiox_print.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <syslog.h>

static bool is_logged;

void mpiox_process_notify_begin(void)
{
    openlog("mpiio-ext-delegate", LOG_PID, LOG_USER);
    is_logged = true;
}

void mpiox_process_notify(const char *format, ...)
{
    char line[2560];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    mpiox_print("mpiio_ext: %s\n", line);
    if (is_logged)
        syslog(LOG_ERR, "%s", line);
}
