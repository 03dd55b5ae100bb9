/*
 * mpiox_link_stream.h - a connected stream socket: all bytes or none, in as few system calls as possible.
 *
 * One call receives a head and a small body that arrive together, into the stream's own buffer; longer bodies are
 * received straight to their place. No function raises a signal. A connection that has failed once always fails.
 */
#ifndef MPIOX_LINK_STREAM_H
#define MPIOX_LINK_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "mpiox_error.h"
#ifdef MPIOX_TESTING
#include "mpiox_link_fault.h"
#endif

typedef struct mpiox_link_stream {
    int fd;                      /* the socket */
    int32_t start, end;          /* bytes of `buffer` that have been received and not been read */
    atomic_uint_least64_t moves; /* times that bytes have passed, either way; any thread may read it */
    char buffer[8192];           /* received bytes */
#ifdef MPIOX_TESTING
    mpiox_link_fault fault; /* faults that a test has ordered */
#endif
} mpiox_link_stream;

void mpiox_link_stream_init(mpiox_link_stream *stream, int fd);
/* Blocking, exactly so many bytes. 0 or MPIOX_E_UNSUPPORTED: the connection is lost. */
int mpiox_link_stream_read(mpiox_link_stream *stream, void *to, int64_t bytes);
int mpiox_link_stream_skip(mpiox_link_stream *stream, int64_t bytes);
/* Bytes in the buffer, at least one, at most max; waits for some. *at is where they are; mpiox_link_stream_take() ends
 * their use. 0 or MPIOX_E_UNSUPPORTED. */
int mpiox_link_stream_look(mpiox_link_stream *stream, int64_t max, const char **at, int64_t *bytes);
void mpiox_link_stream_take(mpiox_link_stream *stream, int64_t bytes);
/* Bytes that have arrived, at most max, without waiting and past the (empty) buffer. Their number, 0: there are none
 * now, or MPIOX_E_UNSUPPORTED. */
int64_t mpiox_link_stream_poll(mpiox_link_stream *stream, void *to, int64_t max);
/* Wait until there is something to receive, or room for sending. 0 or MPIOX_E_UNSUPPORTED. */
int mpiox_link_stream_await(mpiox_link_stream *stream, bool room);
/* Before the first part of a message is sent: apply a fault's delay. */
#ifdef MPIOX_TESTING
void mpiox_link_stream_pause(const mpiox_link_stream *stream);
#else
#define mpiox_link_stream_pause(stream) ((void)(stream))
#endif
/* Blocking: send all bytes; iov is modified. more: another message follows at once. 0 or MPIOX_E_UNSUPPORTED. */
int mpiox_link_stream_write(mpiox_link_stream *stream, struct iovec *iov, int count, bool more);
/* The same, but give up if no byte moves for so many ms: iov then contains the rest. 0 also in that case. */
int mpiox_link_stream_write_within(mpiox_link_stream *stream, struct iovec *iov, int count, int ms);

#endif
