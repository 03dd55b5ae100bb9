/*
 * mpiox_trace_streams.h - the position of a stream behind a transfer, mostly without a system call.
 *
 * Problem.   ftell(3) on a stream that was never moved is a system call: it would be most of the cost of recording.
 * Algorithm. The tracer remembers the stream's position behind the last record, and how far its buffer was filled. If
 *            the buffer is filled to the same place when a call begins, and by just the call's bytes further when it
 *            ends, the C library has not flushed it, and the stream's position has advanced by these bytes. Else the C
 *            library is queried.
 * Guarantee. It is queried whenever another caller may have moved the stream: another thread that has used it once, a
 *            call on its descriptor, a process after a fork, or a function that is not recorded. Those are detected
 *            when they fill the buffer (__overflow). It is always queried for streams that append, read, or have wide
 *            characters.
 */
#ifndef MPIOX_TRACE_STREAMS_H
#define MPIOX_TRACE_STREAMS_H

#include <stdint.h>
#include <stdio.h>

/* A recorded call of this thread begins. */
void mpiox_trace_stream_begin(FILE *stream);
/* The call has written so many bytes: the stream's position now; -1: query it, and pass it to _learned. */
int64_t mpiox_trace_stream_moved(FILE *stream, int64_t bytes);
void mpiox_trace_stream_learned(FILE *stream, int64_t position);
/* Somebody does what is not recorded: nothing is known of this stream any more. */
void mpiox_trace_stream_touch(FILE *stream);
/* A descriptor of some stream has been moved. */
void mpiox_trace_streams_disturb(void);
/* Positions are shared with another process from now on. */
void mpiox_trace_streams_share(void);

#endif
