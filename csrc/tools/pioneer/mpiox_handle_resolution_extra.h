/*
 * mpiox_handle_resolution_extra.h - the facts of a row's column `extra` for the sanitization.
 *
 * Problem.   The column is a JSON object whose texts differ from row to row; an interpreter takes long.
 * Algorithm. One pass over the object's own keys; values of other keys are skipped. A text that is no object, and text
 *            behind the first mistake in one, is ignored.
 */
#ifndef MPIOX_HANDLE_RESOLUTION_EXTRA_H
#define MPIOX_HANDLE_RESOLUTION_EXTRA_H

#include <stdbool.h>
#include <stdint.h>

#define MPIOX_UNKNOWN INT64_MIN

enum { MPIOX_WHENCE_SET = 0, MPIOX_WHENCE_CUR, MPIOX_WHENCE_END };

typedef struct mpiox_extra {
    int whence;                          /* MPIOX_WHENCE_* */
    bool appends;                        /* flags or mode of an open */
    bool not_done;                       /* a test that has completed nothing */
    bool object;                         /* its descriptor is a pipe, a socket: no file */
    int64_t etype;                       /* bytes, of a view; 1 */
    int64_t address;                     /* of the program's MPI_File, MPIOX_UNKNOWN */
    int64_t mapping;                     /* address of one, MPIOX_UNKNOWN */
    int64_t descriptor;                  /* of a stream that is opened, MPIOX_UNKNOWN */
    const char *requests, *requests_end; /* text with the numbers of requests; NULL */
    const char *args, *args_end;         /* arguments as the tracer has printed them; NULL */
} mpiox_extra;

/* The text [p, end), which may be empty. */
mpiox_extra mpiox_extra_of(const char *p, const char *end);

/* The next number of a text of several; false: there is none. Moves *p. */
bool mpiox_extra_number(const char **p, const char *end, int64_t *value);

#endif
