/*
 * mpiox_error.c - names and texts of result codes.
 *
 * A mpiox_error is filled where a call fails and turned into one line of text where a person reads it, possibly on
 * another rank: so the text is made from the plain data of the struct alone. The last part of the line is advice for
 * the errnos that users can do something about.
 */
#include "mpiox_error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *mpiox_error_name(int code)
{
    switch (code) {
    case MPIOX_OK:
        return "success";
    case MPIOX_E_NOMEM:
        return "out of memory";
    case MPIOX_E_ARG:
        return "invalid argument";
    case MPIOX_E_IO:
        return "file-system error";
    case MPIOX_E_MPI:
        return "MPI error";
    case MPIOX_E_UNSUPPORTED:
        return "not supported";
    case MPIOX_E_CORRUPT:
        return "corrupt description";
    case MPIOX_E_FULL:
        return "buffer too small";
    case MPIOX_E_STOPPED:
        return "stopped";
    case MPIOX_E_DEVICE:
        return "the driver of the GPU reported a failure";
    default:
        return "unknown error";
    }
}

int mpiox_error_set(mpiox_error *error, int code, int sys_errno, int64_t offset, int64_t length, const char *what)
{
    if (error == NULL)
        return code;
    memset(error, 0, sizeof *error);
    error->code = code;
    error->sys_errno = sys_errno;
    error->rank = -1;
    error->offset = offset;
    error->length = length;
    snprintf(error->what, sizeof error->what, "%s", what != NULL ? what : "");
    return code;
}

static const char *advice(const mpiox_error *error)
{
    if (strncmp(error->what, "getrandom", strlen("getrandom")) == 0)
        return "a filter of system calls (seccomp) refuses the call, or the kernel is too old";
    switch (error->sys_errno) {
    case ENOENT:
        return strstr(error->what, "subfile") != NULL ? "rename index and folder together"
                                                      : "check that the directory exists on every node";
    case EACCES:
    case EPERM:
    case EROFS:
        return "check the permissions of the file and of its directory";
    case ENOSPC:
        return "free space on the file system or choose another one";
    case EDQUOT:
        return "the quota is exhausted";
    case EFBIG:
        return "the size is beyond a limit: of the process (ulimit -f) or of the file system";
    case EMFILE:
    case ENFILE:
        return "too many files are open (ulimit -n)";
    case EIO:
        return "the device or file server reported a failure; the data in this range is not reliable";
    case ESTALE:
        return "the file was removed or replaced meanwhile; open it again";
    default:
        break;
    }
    if (error->code == MPIOX_E_NOMEM)
        return "lower cb_buffer_size or cb_nodes, or enlarge /dev/shm";
    return NULL;
}

/* A bounded printf at the end of a text; what does not fit is cut off. */
__attribute__((format(printf, 3, 4))) static void append(char *text, int64_t text_bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + used, (size_t)text_bytes - used, format, arguments);
    va_end(arguments);
}

char *mpiox_error_text(const mpiox_error *error, const char *path, char *text, int64_t text_bytes)
{
    if (text == NULL || text_bytes <= 0)
        return text;
    text[0] = '\0';
    if (error == NULL || error->code == MPIOX_OK) {
        append(text, text_bytes, "%s", mpiox_error_name(MPIOX_OK));
        return text;
    }
    if (error->delegate > 0)
        append(text, text_bytes, "I/O delegate %" PRId32 ": ", error->delegate - 1);
    else if (error->rank >= 0)
        append(text, text_bytes, "rank %" PRId32 ": ", error->rank);
    append(text, text_bytes, "%s", error->what[0] != '\0' ? error->what : mpiox_error_name(error->code));
    if (path != NULL && path[0] != '\0')
        append(text, text_bytes, " of %s", path);
    append(text, text_bytes, " failed");
    if (error->offset >= 0)
        append(text, text_bytes, " at offset %" PRId64, error->offset);
    if (error->length >= 0)
        append(text, text_bytes, "%s length %" PRId64, error->offset >= 0 ? "," : " with", error->length);
    if (error->others > 0)
        append(text, text_bytes, ", and %" PRId32 " more up to byte %" PRId64, error->others, error->past_last);
    if (error->sys_errno != 0)
        append(text, text_bytes, ": %s (errno %" PRId32 ")", strerror(error->sys_errno), error->sys_errno);
    else if (error->mpi_code != 0)
        append(text, text_bytes, ": %s (MPI error code %" PRId32 ")", mpiox_error_name(error->code), error->mpi_code);
    else
        append(text, text_bytes, ": %s", mpiox_error_name(error->code));
    if (advice(error) != NULL)
        append(text, text_bytes, "; %s", advice(error));
    return text;
}
