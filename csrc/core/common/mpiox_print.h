/*
 * mpiox_print.h - lines on standard error that never harm the program. Local; make lint refuses other ways to print.
 *
 * Problem.   If the reader of standard error has ended, a line of this library would end the program by SIGPIPE; if
 *            standard error is a file of the largest size allowed, by SIGXFSZ. If no process reads a pipe, a write into
 *            it waits for ever. Lines of ranks that share a pipe must not mix.
 * Algorithm. The calling thread blocks both signals during the write. It consumes a signal that the write has raised; a
 *            signal that was pending before stays pending. A pipe gets a whole line in one write(2), by a description
 *            of this library that does not block (other processes share the program's description, so its flags
 *            stay). A socket has a flag for that; on other files poll(2) comes first. If there is no room for WAIT_S
 *            seconds, the rest of the line is lost, and further lines do not wait until one has been written.
 *            System calls go past the C library, whose functions the tracer wraps.
 * Guarantee. No signal, no call of the program's handlers; errno stays; at most WAIT_S seconds without room.
 * Source.    pipe(7) on PIPE_BUF; POSIX.1-2024, sigtimedwait().
 */
#ifndef MPIOX_PRINT_H
#define MPIOX_PRINT_H

#include <stdint.h>

/* Print one or several lines on standard error. The text contains the ends of the lines. */
__attribute__((format(printf, 1, 2))) void mpiox_print(const char *format, ...);
/* Write a text to a descriptor in the same way. Returns the bytes that were written; if fewer, errno has the reason. */
int64_t mpiox_print_to(int fd, const char *text, int64_t bytes);

#endif
