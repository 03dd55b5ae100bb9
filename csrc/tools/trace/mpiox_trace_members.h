/*
 * mpiox_trace_members.h - numbers of ranks as a short text: "0-3,8", "0-12:4" (every fourth one).
 */
#ifndef MPIOX_TRACE_MEMBERS_H
#define MPIOX_TRACE_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>

/* The ranks in their order: ranges where they ascend evenly. Ended by 0. False: it is longer than that, or a rank is
 * negative; then the text is empty. */
bool mpiox_trace_members_text(const int *ranks, int count, char *text, size_t bytes);

#endif
