/*
 * mpiox_trace_streams.h - where a stream stands behind a transfer, mostly without asking the kernel.
 *
 * Problem.   ftell(3) on a stream that was never moved is a system call: it would be most of what recording costs.
 * Algorithm. Where the stream stood behind the last record is remembered, with where its buffer was filled to. If the
 *            buffer was filled to the same place before this call, and by what this call has written further, nothing
 *            was flushed in it and it stands that much further. Else the C library is asked.
 * Guarantee. It is asked whenever anybody else may have moved the stream: another thread that has used it once, a call
 *            on its descriptor, a process after a fork, or a function that is not recorded. Those are seen when they
 *            fill the buffer (__overflow). It is always asked for streams that append, read, or have wide characters.
 */
#ifndef MPIOX_TRACE_STREAMS_H
#define MPIOX_TRACE_STREAMS_H

#include <stdint.h>
#include <stdio.h>

/* A recorded call of this thread begins. */
void mpiox_trace_stream_begin(FILE *stream);
/* It has written so many bytes: where the stream stands now; -1: ask, and tell it by _learned. */
int64_t mpiox_trace_stream_moved(FILE *stream, int64_t bytes);
void mpiox_trace_stream_learned(FILE *stream, int64_t position);
/* Somebody does what is not recorded: nothing is known of this stream any more. */
void mpiox_trace_stream_touch(FILE *stream);
/* A descriptor of some stream has been moved. */
void mpiox_trace_streams_disturb(void);
/* Positions are shared with another process from now on. */
void mpiox_trace_streams_share(void);

#endif
