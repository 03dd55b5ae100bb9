/*
 * mpiox_print.h - lines on standard error that never harm the program. Local; make lint refuses every other way.
 *
 * Problem.   A program that prints nothing ends by SIGPIPE if this library prints where the reader of standard error
 *            has gone, and by SIGXFSZ if standard error is a file of the largest size allowed. Where nobody reads a
 *            pipe, a write into it waits for ever. Lines of ranks that share a pipe must not mix.
 * Algorithm. Both signals are blocked in the calling thread for the time of the write. One that the write has raised is
 *            consumed, one that was pending before stays pending. Into a pipe goes a whole line in one write(2), by a
 *            description of our own that does not block (the program's is shared with other processes, so its flags
 *            stay); a socket has a flag for that; elsewhere poll(2) comes first. If there is no room for WAIT_S
 *            seconds the rest is lost, and further lines do not wait until one has been written.
 *            System calls go past the C library: the tracer wraps its functions.
 * Guarantee. No signal, no call of the program's handlers; errno stays; at most WAIT_S seconds without room.
 * Source.    pipe(7) on PIPE_BUF; POSIX.1-2024, sigtimedwait().
 */
#ifndef MPIOX_PRINT_H
#define MPIOX_PRINT_H

#include <stdint.h>

/* A line, or several, with the ends of lines, on standard error. */
__attribute__((format(printf, 1, 2))) void mpiox_print(const char *format, ...);
/* Write a text to a descriptor in the same way. Returns the bytes that were written; if fewer, errno has the reason. */
int64_t mpiox_print_to(int fd, const char *text, int64_t bytes);

#endif
