/*
 * mpiox_error.h - result codes shared by every module.
 *
 * Every internal function that can fail returns 0 or one of these negative codes, and never aborts, never prints.
 * A mpiox_error of the caller has the details that a user needs: the operation, its place, the advice.
 */
#ifndef MPIOX_ERROR_H
#define MPIOX_ERROR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    MPIOX_OK = 0,
    MPIOX_E_NOMEM = -1,       /* memory or shared memory is exhausted */
    MPIOX_E_ARG = -2,         /* an argument or a hint value is out of range */
    MPIOX_E_IO = -3,          /* a file-system call failed: see sys_errno */
    MPIOX_E_MPI = -4,         /* an MPI call failed: see mpi_code */
    MPIOX_E_UNSUPPORTED = -5, /* legal, but not carried out here: the caller passes the call to PMPI */
    MPIOX_E_CORRUPT = -6,     /* serialized input does not describe what it claims */
    MPIOX_E_FULL = -7,        /* a fixed-size table or buffer given by the caller is too small */
    MPIOX_E_STOPPED = -8,     /* the caller wanted an early end, or another node has failed and has the reason */
    MPIOX_E_DEVICE = -9       /* a copy from or to the memory of a GPU failed */
};

/* The operation that failed, and its place. Plain data: it is copied through shared memory and over MPI, so it has no
 * pointers. */
typedef struct mpiox_error {
    int32_t code;      /* MPIOX_OK or MPIOX_E_* */
    int32_t sys_errno; /* errno of the failed system call, or 0 */
    int32_t mpi_code;  /* MPI error code, or MPI_SUCCESS */
    int32_t rank;      /* rank in the file's communicator that met the error, or -1 */
    int64_t offset;    /* file offset in bytes of the failed request, or -1 */
    int64_t length;    /* length in bytes of the failed request, or -1 */
    int64_t past_last; /* others > 0: one past the last byte of all failed requests, in the file */
    int32_t others;    /* further requests that failed: this one has the lowest offset */
    int32_t delegate;  /* index + 1 of the I/O delegate that met the error, or 0 */
    char what[96];     /* the operation, e.g. "pwrite"; make lint checks that each of our texts fits */
} mpiox_error;

/* A short English name for a MPIOX_E_* code; never NULL. */
const char *mpiox_error_name(int code);

/* Clear an error: {.code = MPIOX_OK} with an empty text. The function sets field by field: to clear all bytes takes
 * longer than a small access, since compilers would use a loop in hardware, which begins slowly. */
static inline void mpiox_error_clear(mpiox_error *error)
{
    error->code = error->sys_errno = error->mpi_code = error->rank = 0;
    error->offset = error->length = error->past_last = 0;
    error->others = error->delegate = 0;
    error->what[0] = '\0';
}

/* Fill *error (may be NULL) and return `code`, so that callers can write `return mpiox_error_set(...)`. */
int mpiox_error_set(mpiox_error *error, int code, int sys_errno, int64_t offset, int64_t length, const char *what);

/* Write one line "rank R: WHAT failed at offset O, length L: strerror (errno N); ADVICE" into text; returns text. The
 * line begins with "I/O delegate D" if a delegate has met the error. It ends with the number of other errors and the
 * end of the last failed request. */
char *mpiox_error_text(const mpiox_error *error, const char *path, char *text, int64_t text_bytes);

#endif
