/*
 * mpiox_trace_stdio.c - streams of the C library.
 *
 * Problem.   A stream's transfers to its file happen inside the C library, unseen; the tracer sees the program's
 *            requests here. Some functions are macros, which move single characters within the buffer.
 * Algorithm. Opening, closing, positions, blocks, lines, characters and formats are recorded. The start of a transfer
 *            follows from the stream's own position behind it, so unrecorded calls in between do no harm. What
 *            formatted input has read follows from the positions before and behind it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mpiox_trace_descriptors.h"
#include "mpiox_trace_sink.h"
#include "mpiox_trace_streams.h"
#include "mpiox_trace_wrap.h"

BEHIND(off_t, ftello, (FILE *))

static bool started(mpiox_tracefile_record *call, int operation, FILE *stream)
{
    const int32_t file = mpiox_trace_enabled() ? mpiox_trace_handle_file((int64_t)(intptr_t)stream) : 0;

    if (file == 0)
        return false;
    mpiox_trace_start_on(call, operation, MPIOX_TRACEFILE_STDIO, file, (int64_t)(intptr_t)stream);
    mpiox_trace_stream_begin(stream);
    return true;
}

static int64_t place_of(FILE *stream)
{
    mpiox_trace_self.inside++;
    const int64_t place = NEXT(ftello)(stream);
    mpiox_trace_self.inside--;
    return place;
}

static void moved(mpiox_tracefile_record *call, FILE *stream, int64_t asked, int64_t done)
{
    const int error = errno;

    mpiox_trace_stop(call);
    int64_t now = mpiox_trace_stream_moved(stream, done);
    if (now < 0) {
        now = place_of(stream);
        mpiox_trace_stream_learned(stream, now);
    }
    call->size = asked;
    if (now >= 0 && done >= 0 && now >= done)
        call->offset = now - done;
    if (done >= 0 && done < asked && mpiox_trace_sink_chosen->counts && (done == 0 || call->operation != OP_fgets) &&
        ferror(stream))
        mpiox_trace_extra(call, MPIOX_KEY_ERRNO, error); /* not the end of the file */
    errno = error;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int flags_of(const char *mode)
{
    const int access = strchr(mode, '+') != NULL ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;

    return access | (mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0);
}

static FILE *opened(mpiox_tracefile_record *call, FILE *stream, int32_t file, const char *mode)
{
    const int error = errno;

    mpiox_trace_stop(call);
    if (stream != NULL) {
        call->handle = (int64_t)(intptr_t)stream;
        mpiox_trace_handle_open(call->handle, file);
        if (mpiox_trace_descriptor_file(fileno(stream)) == 0)
            mpiox_trace_descriptor_open(fileno(stream), file,
                                        flags_of(mode) | O_APPEND); /* its position is asked for */
        mpiox_trace_descriptor_ask(fileno(stream)); /* also that of fdopen: the stream moves it unseen */
        if (call->operation != OP_fdopen)           /* streams of C++ go on with it */
            mpiox_trace_extra(call, MPIOX_KEY_HANDLE2, fileno(stream));
    }
    mpiox_trace_extra(call, MPIOX_KEY_FLAGS, flags_of(mode));
    errno = error;
    mpiox_trace_commit(call, stream != NULL ? 0 : -1);
    return stream;
}

WRAP(FILE *, fopen, (const char *path, const char *mode))
{
    const int error = errno;
    const int32_t file = mpiox_trace_enabled() ? mpiox_trace_file_number(AT_FDCWD, path) : -1;
    mpiox_tracefile_record call;

    errno = error;
    if (file < 0)
        return NEXT(fopen)(path, mode);
    mpiox_trace_start(&call, OP_fopen, MPIOX_TRACEFILE_STDIO, file);
    return opened(&call, NEXT(fopen)(path, mode), file, mode);
}
ALIAS(fopen64, fopen);

static void forget(FILE *stream)
{
    if (mpiox_trace_handle_file((int64_t)(intptr_t)stream) > 0) {
        mpiox_trace_descriptor_close(fileno(stream));
        mpiox_trace_handle_close((int64_t)(intptr_t)stream);
    }
}

WRAP(FILE *, freopen, (const char *path, const char *mode, FILE *stream))
{
    const int error = errno;
    const int32_t file = mpiox_trace_enabled() ? mpiox_trace_file_number(AT_FDCWD, path) : -1;
    mpiox_tracefile_record call;

    errno = error;
    if (mpiox_trace_enabled() && path != NULL)
        forget(stream);
    if (file < 0)
        return NEXT(freopen)(path, mode, stream);
    mpiox_trace_start(&call, OP_freopen, MPIOX_TRACEFILE_STDIO, file);
    return opened(&call, NEXT(freopen)(path, mode, stream), file, mode);
}
ALIAS(freopen64, freopen);

WRAP(FILE *, fdopen, (int fd, const char *mode))
{
    const int32_t file = mpiox_trace_enabled() ? mpiox_trace_descriptor_file(fd) : 0;
    mpiox_tracefile_record call;

    if (file == 0)
        return NEXT(fdopen)(fd, mode);
    mpiox_trace_start(&call, OP_fdopen, MPIOX_TRACEFILE_STDIO, file);
    mpiox_trace_extra(&call, MPIOX_KEY_HANDLE2, fd);
    return opened(&call, NEXT(fdopen)(fd, mode), file, mode);
}

WRAP(int, fclose, (FILE * stream))
{
    mpiox_tracefile_record call;

    if (!started(&call, OP_fclose, stream))
        return NEXT(fclose)(stream);
    forget(stream);
    const int result = NEXT(fclose)(stream);
    mpiox_trace_commit(&call, result);
    return result;
}

/* ---- transfers --------------------------------------------------------------------------------------------------- */

#define BLOCKS(name, buffer_type)                                                                                      \
    WRAP(size_t, name, (buffer_type buffer, size_t size, size_t count, FILE *stream))                                  \
    {                                                                                                                  \
        mpiox_tracefile_record call;                                                                                   \
        if (!started(&call, OP_##name, stream))                                                                        \
            return NEXT(name)(buffer, size, count, stream);                                                            \
        const size_t result = NEXT(name)(buffer, size, count, stream);                                                 \
        moved(&call, stream, (int64_t)(size * count), (int64_t)(size * result));                                       \
        mpiox_trace_extra(&call, MPIOX_KEY_COUNT, (int64_t)count);                                                     \
        mpiox_trace_commit(&call, (int64_t)result);                                                                    \
        return result;                                                                                                 \
    }

BLOCKS(fread, void *)
BLOCKS(fwrite, const void *)
ALIAS(fread_unlocked, fread);
ALIAS(fwrite_unlocked, fwrite);

WRAP(size_t, __fread_chk, (void *buffer, size_t room, size_t size, size_t count, FILE *stream))
{
    const bool fits = size == 0 || count <= room / size;

    return fits ? fread(buffer, size, count, stream) : NEXT(__fread_chk)(buffer, room, size, count, stream);
}

WRAP(char *, fgets, (char *text, int room, FILE *stream))
{
    mpiox_tracefile_record call;

    if (!started(&call, OP_fgets, stream))
        return NEXT(fgets)(text, room, stream);
    char *result = NEXT(fgets)(text, room, stream);
    const int64_t length = result != NULL ? (int64_t)strlen(text) : 0;
    moved(&call, stream, room > 0 ? room - 1 : 0, length);
    mpiox_trace_commit(&call, length);
    return result;
}

WRAP(char *, __fgets_chk, (char *text, size_t size, int room, FILE *stream))
{
    const bool fits = room >= 0 && (size_t)room <= size;

    return fits ? fgets(text, room, stream) : NEXT(__fgets_chk)(text, size, room, stream);
}

WRAP(int, fgetc, (FILE * stream))
{
    mpiox_tracefile_record call;

    if (!started(&call, OP_fgetc, stream))
        return NEXT(fgetc)(stream);
    const int result = NEXT(fgetc)(stream);
    moved(&call, stream, 1, result != EOF);
    mpiox_trace_commit(&call, result != EOF);
    return result;
}
ALIAS(getc, fgetc);
ALIAS(_IO_getc, fgetc);

WRAP(ssize_t, getdelim, (char **text, size_t *room, int end, FILE *stream))
{
    mpiox_tracefile_record call;

    if (!started(&call, OP_getdelim, stream))
        return NEXT(getdelim)(text, room, end, stream);
    const ssize_t result = NEXT(getdelim)(text, room, end, stream);
    const int64_t length = result > 0 ? result : 0;
    moved(&call, stream, length, length);
    mpiox_trace_commit(&call, length);
    return result;
}
ALIAS(__getdelim, getdelim);

MPIOX_TRACE_EXPORT ssize_t getline(char **text, size_t *room, FILE *stream)
{
    return getdelim(text, room, '\n', stream);
}

static void scanned(mpiox_tracefile_record *call, FILE *stream, int64_t before)
{
    const int error = errno;

    mpiox_trace_stop(call);
    const int64_t now = place_of(stream), length = before >= 0 && now > before ? now - before : 0;
    call->offset = before >= 0 ? before : MPIOX_TRACEFILE_NONE;
    call->size = length;
    errno = error;
    mpiox_trace_commit(call, length);
}

/* Formatted input, by the functions of one standard: the C library's header gives their plain names to another one. */
#define SCANS(standard)                                                                                                \
    BEHIND(int, standard##vfscanf, (FILE *, const char *, va_list))                                                    \
    static int standard##scan(int operation, FILE *stream, const char *format, va_list list)                           \
    {                                                                                                                  \
        mpiox_tracefile_record call;                                                                                   \
        if (!started(&call, operation, stream))                                                                        \
            return NEXT(standard##vfscanf)(stream, format, list);                                                      \
        const int64_t before = place_of(stream);                                                                       \
        const int result = NEXT(standard##vfscanf)(stream, format, list);                                              \
        scanned(&call, stream, before);                                                                                \
        return result;                                                                                                 \
    }                                                                                                                  \
    MPIOX_TRACE_EXPORT int standard##by_list(FILE *, const char *, va_list) __asm__(#standard "vfscanf");              \
    int standard##by_list(FILE *stream, const char *format, va_list list)                                              \
    {                                                                                                                  \
        return standard##scan(OP_vfscanf, stream, format, list);                                                       \
    }                                                                                                                  \
    MPIOX_TRACE_EXPORT int standard##by_values(FILE *, const char *, ...) __asm__(#standard "fscanf");                 \
    int standard##by_values(FILE *stream, const char *format, ...)                                                     \
    {                                                                                                                  \
        va_list list;                                                                                                  \
        va_start(list, format);                                                                                        \
        const int result = standard##scan(OP_fscanf, stream, format, list);                                            \
        va_end(list);                                                                                                  \
        return result;                                                                                                 \
    }

SCANS()
SCANS(__isoc99_)
SCANS(__isoc23_)

WRAP(int, fputs, (const char *text, FILE *stream))
{
    mpiox_tracefile_record call;

    if (!started(&call, OP_fputs, stream))
        return NEXT(fputs)(text, stream);
    const int result = NEXT(fputs)(text, stream);
    const int64_t length = (int64_t)strlen(text);
    moved(&call, stream, length, result >= 0 ? length : -1);
    mpiox_trace_commit(&call, result >= 0 ? length : -1);
    return result;
}

WRAP(int, fputc, (int character, FILE *stream))
{
    mpiox_tracefile_record call;

    if (!started(&call, OP_fputc, stream))
        return NEXT(fputc)(character, stream);
    const int result = NEXT(fputc)(character, stream);
    moved(&call, stream, 1, result >= 0 ? 1 : -1);
    mpiox_trace_commit(&call, result >= 0 ? 1 : -1);
    return result;
}
ALIAS(putc, fputc);

BEHIND(int, vfprintf, (FILE *, const char *, va_list))

static int printed(int operation, FILE *stream, const char *format, va_list list)
{
    mpiox_tracefile_record call;

    if (!started(&call, operation, stream))
        return NEXT(vfprintf)(stream, format, list);
    const int result = NEXT(vfprintf)(stream, format, list);
    moved(&call, stream, result >= 0 ? result : MPIOX_TRACEFILE_NONE, result);
    mpiox_trace_commit(&call, result);
    return result;
}

FRONT(int, vfprintf, (FILE * stream, const char *format, va_list list))
{
    return printed(OP_vfprintf, stream, format, list);
}

FRONT(int, fprintf, (FILE * stream, const char *format, ...))
{
    va_list list;

    va_start(list, format);
    const int result = printed(OP_fprintf, stream, format, list);
    va_end(list);
    return result;
}

/* With the checks of _FORTIFY_SOURCE: those of the C library are kept. */
BEHIND(int, __vfprintf_chk, (FILE *, int, const char *, va_list))

FRONT(int, __vfprintf_chk, (FILE * stream, int level, const char *format, va_list list))
{
    mpiox_tracefile_record call;

    if (!started(&call, OP_vfprintf, stream))
        return NEXT(__vfprintf_chk)(stream, level, format, list);
    const int result = NEXT(__vfprintf_chk)(stream, level, format, list);
    moved(&call, stream, result >= 0 ? result : MPIOX_TRACEFILE_NONE, result);
    mpiox_trace_commit(&call, result);
    return result;
}

FRONT(int, __fprintf_chk, (FILE * stream, int level, const char *format, ...))
{
    mpiox_tracefile_record call;
    va_list list;
    int result;

    va_start(list, format);
    if (!started(&call, OP_fprintf, stream)) {
        result = NEXT(__vfprintf_chk)(stream, level, format, list);
    } else {
        result = NEXT(__vfprintf_chk)(stream, level, format, list);
        moved(&call, stream, result >= 0 ? result : MPIOX_TRACEFILE_NONE, result);
        mpiox_trace_commit(&call, result);
    }
    va_end(list);
    return result;
}

/* ---- what is not recorded ---------------------------------------------------------------------------------------- */

#define TOUCHES(type, name, parameters, arguments)                                                                     \
    WRAP(type, name, parameters)                                                                                       \
    {                                                                                                                  \
        mpiox_trace_stream_touch(stream);                                                                              \
        return NEXT(name) arguments;                                                                                   \
    }

#undef putc_unlocked
#undef fputc_unlocked
#undef fputs_unlocked
TOUCHES(int, __overflow, (FILE * stream, int character), (stream, character))
TOUCHES(int, fputc_unlocked, (int character, FILE *stream), (character, stream))
TOUCHES(int, putc_unlocked, (int character, FILE *stream), (character, stream))
TOUCHES(int, fputs_unlocked, (const char *text, FILE *stream), (text, stream))
TOUCHES(int, putw, (int word, FILE *stream), (word, stream))
TOUCHES(int, fsetpos, (FILE * stream, const fpos_t *position), (stream, position))

/* ---- positions --------------------------------------------------------------------------------------------------- */

#define SEEK(name, offset_type)                                                                                        \
    WRAP(int, name, (FILE * stream, offset_type offset, int whence))                                                   \
    {                                                                                                                  \
        mpiox_tracefile_record call;                                                                                   \
        if (!started(&call, OP_##name, stream))                                                                        \
            return NEXT(name)(stream, offset, whence);                                                                 \
        const int result = NEXT(name)(stream, offset, whence);                                                         \
        mpiox_trace_stop(&call);                                                                                       \
        call.offset = offset;                                                                                          \
        mpiox_trace_extra(&call, MPIOX_KEY_WHENCE, whence);                                                            \
        mpiox_trace_commit(&call, result);                                                                             \
        return result;                                                                                                 \
    }
#define TELL(name, type)                                                                                               \
    MPIOX_TRACE_EXPORT type name(FILE *stream)                                                                         \
    {                                                                                                                  \
        mpiox_tracefile_record call;                                                                                   \
        if (!started(&call, OP_##name, stream))                                                                        \
            return NEXT(name)(stream);                                                                                 \
        const type result = NEXT(name)(stream);                                                                        \
        mpiox_trace_commit(&call, result);                                                                             \
        return result;                                                                                                 \
    }

SEEK(fseek, long)
SEEK(fseeko, off_t)
ALIAS(fseeko64, fseeko);
BEHIND(long, ftell, (FILE *))
TELL(ftell, long)
TELL(ftello, off_t)
ALIAS(ftello64, ftello);

WRAP(void, rewind, (FILE * stream))
{
    mpiox_tracefile_record call;
    const bool recorded = started(&call, OP_rewind, stream);

    NEXT(rewind)(stream);
    if (recorded)
        mpiox_trace_commit(&call, 0);
}

WRAP(int, fflush, (FILE * stream))
{
    mpiox_tracefile_record call;

    if (stream == NULL || !started(&call, OP_fflush, stream))
        return NEXT(fflush)(stream);
    const int result = NEXT(fflush)(stream);
    mpiox_trace_commit(&call, result);
    return result;
}
