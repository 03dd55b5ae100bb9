/*
 * mpiox_trace_names.h - names of files as numbers, and which are not recorded. Under mpiox_trace_lock().
 */
#ifndef MPIOX_TRACE_NAMES_H
#define MPIOX_TRACE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    MPIOX_TRACE_NAME_BYTES = 4352,
    MPIOX_TRACE_NAME_RECORDS = 3,
    MPIOX_TRACE_LEFT_OUT = 1 << 30 /* with the number of a file that is the system's, whose calls are only counted */
};

void mpiox_trace_names_keep_system(bool keep); /* record files of the system, too */
/* Patterns of fnmatch(), one a line; NULL: none. `only`: these files and no others, also the system's. */
void mpiox_trace_names_select(const char *only, const char *skip);
/* Names take so many bytes; further ones all are `others`, a text that stays. */
void mpiox_trace_names_bound(int64_t bytes, const char *others);
int32_t mpiox_trace_names_others(void); /* its number; 0: there is no bound */
/* A recording's notes for a name, all 0 at first; NULL: there is no such name. Of a trace, or of recordings. */
uint32_t *mpiox_trace_names_records(int32_t number, int32_t generation);
/* Number of a text, from 1 on. 0: no memory. */
int32_t mpiox_trace_names_number(const char *text);
const char *mpiox_trace_names_text(int32_t number); /* NULL: there is none */
/* Define it in the trace file, unless that has been done. False: the trace is full. */
bool mpiox_trace_names_define(int32_t number);
/* Make the name absolute: under `folder` (NULL: the working folder) when it is not. */
void mpiox_trace_names_absolute(const char *name, const char *folder, char *text);
/* Number of a file by its absolute name. -1: not to be recorded, by the selection, or it is none; with
 * MPIOX_TRACE_LEFT_OUT where it is the system's by the rules of pioneer/sanitize/system_files.py, alone where it has no
 * name here. */
int32_t mpiox_trace_names_file(const char *path);
/* Number of the same file as the program's from now on, since MPI-IO opens it; -1: it has none. */
int32_t mpiox_trace_names_claim(int32_t number);
/* Whether a file of the system is asked for the first time since `time`, a number, is another one. */
bool mpiox_trace_names_is_new(int32_t number, int32_t time);

#endif
