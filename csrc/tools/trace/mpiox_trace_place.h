/*
 * mpiox_trace_place.h - the place of this process's file: its folder, and its name by rank, host and number.
 *
 * Under mpiox_trace_lock().
 */
#ifndef MPIOX_TRACE_PLACE_H
#define MPIOX_TRACE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

enum { MPIOX_TRACE_FOLDER_BYTES = 3072, MPIOX_TRACE_PATH_BYTES = MPIOX_TRACE_FOLDER_BYTES + 512 };

typedef struct mpiox_trace_place {
    char folder[MPIOX_TRACE_FOLDER_BYTES], path[MPIOX_TRACE_PATH_BYTES]; /* "": there is none */
    char host[256];
    int32_t rank, ranks; /* -1, 0: not known */
    bool stopped;        /* for good: nothing is written any more */
} mpiox_trace_place;

extern mpiox_trace_place mpiox_trace_here;

/* Before everything else. Absolute; "" or too long: nothing is ever written. */
void mpiox_trace_place_folder(const char *folder);
/* A new file with that suffix, open; `path` is its name. -1: there can be none. A process has one file after another
 * when it executes another program. */
int mpiox_trace_place_create(const char *suffix);
/* Name a file that is there anew, as its rank is known now. */
void mpiox_trace_place_rename(const char *suffix);
/* The arguments of this process as a shell takes them, ended by 0; "…" is for those without room or with control
 * characters. */
void mpiox_trace_place_command(char *text, int bytes);
/* Report on stderr that nothing is written from now on. */
void mpiox_trace_place_stop(const char *why);

#endif
