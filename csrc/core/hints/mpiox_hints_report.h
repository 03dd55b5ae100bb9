/* mpiox_hints_report.h - reports of the readers of hints about ignored lines. */
#ifndef MPIOX_HINTS_REPORT_H
#define MPIOX_HINTS_REPORT_H

/* Called once per reported problem with one line of text, valid during the call; NULL = silent. */
typedef void (*mpiox_hints_report)(const char *message, void *context);

#endif
