/* mpiox_link_stream.c - see mpiox_link_stream.h. */
#include "mpiox_link_stream.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

void mpiox_link_stream_init(mpiox_link_stream *stream, int fd)
{
    stream->fd = fd;
    stream->start = stream->end = 0;
    stream->moves = 0;
#ifdef MPIOX_TESTING
    (void)mpiox_link_fault_read(&stream->fault, NULL); /* the opener has checked it */
#endif
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

#ifdef MPIOX_TESTING

static size_t allowed(const mpiox_link_stream *stream, size_t bytes)
{
    return bytes < (size_t)stream->fault.short_bytes ? bytes : (size_t)stream->fault.short_bytes;
}

/* So many bytes more have passed. */
static void wear_out(mpiox_link_stream *stream, int64_t bytes)
{
    if (stream->fault.left == INT64_MAX)
        return;
    stream->fault.left -= bytes;
    if (stream->fault.left <= 0)
        shutdown(stream->fd, SHUT_RDWR);
}

void mpiox_link_stream_pause(const mpiox_link_stream *stream)
{
    const int64_t ms = stream->fault.delay_ms;
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (ms > 0 && nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

#else
#define allowed(stream, bytes) (bytes)
#define wear_out(stream, bytes) ((void)(bytes))
#endif

/* ---- receiving --------------------------------------------------------------------------------------------------- */

/* So many bytes have passed. */
static void count(mpiox_link_stream *stream, int64_t bytes)
{
    const uint64_t before = atomic_load_explicit(&stream->moves, memory_order_relaxed);

    atomic_store_explicit(&stream->moves, before + 1, memory_order_relaxed); /* one thread at a time gets here */
    wear_out(stream, bytes);
}

static int64_t receive(mpiox_link_stream *stream, void *to, int64_t max, int flags)
{
    ssize_t bytes;
    do {
        bytes = recv(stream->fd, to, allowed(stream, (size_t)max), flags);
    } while (bytes < 0 && errno == EINTR);
    if (bytes < 0 && (flags & MSG_DONTWAIT) != 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (bytes <= 0)
        return MPIOX_E_UNSUPPORTED;
    count(stream, bytes);
    return bytes;
}

static int fill(mpiox_link_stream *stream)
{
    const int64_t bytes = receive(stream, stream->buffer, sizeof stream->buffer, 0);
    if (bytes < 0)
        return MPIOX_E_UNSUPPORTED;
    stream->start = 0;
    stream->end = (int32_t)bytes;
    return MPIOX_OK;
}

int mpiox_link_stream_look(mpiox_link_stream *stream, int64_t max, const char **at, int64_t *bytes)
{
    if (stream->start == stream->end && fill(stream) != MPIOX_OK)
        return MPIOX_E_UNSUPPORTED;
    *at = stream->buffer + stream->start;
    *bytes = stream->end - stream->start < max ? stream->end - stream->start : max;
    return MPIOX_OK;
}

void mpiox_link_stream_take(mpiox_link_stream *stream, int64_t bytes)
{
    stream->start += (int32_t)bytes;
}

int mpiox_link_stream_read(mpiox_link_stream *stream, void *to, int64_t bytes)
{
    char *target = to;
    while (bytes > 0) {
        int64_t got = stream->end - stream->start;
        if (got == 0 && bytes >= (int64_t)sizeof stream->buffer) {
            got = receive(stream, target, bytes, 0);
            if (got < 0)
                return MPIOX_E_UNSUPPORTED;
        } else {
            const char *at;
            if (mpiox_link_stream_look(stream, bytes, &at, &got) != MPIOX_OK)
                return MPIOX_E_UNSUPPORTED;
            memcpy(target, at, (size_t)got);
            mpiox_link_stream_take(stream, got);
        }
        target += got;
        bytes -= got;
    }
    return MPIOX_OK;
}

int mpiox_link_stream_skip(mpiox_link_stream *stream, int64_t bytes)
{
    while (bytes > 0) {
        const char *at;
        int64_t got;
        if (mpiox_link_stream_look(stream, bytes, &at, &got) != MPIOX_OK)
            return MPIOX_E_UNSUPPORTED;
        mpiox_link_stream_take(stream, got);
        bytes -= got;
    }
    return MPIOX_OK;
}

int64_t mpiox_link_stream_poll(mpiox_link_stream *stream, void *to, int64_t max)
{
    return receive(stream, to, max, MSG_DONTWAIT);
}

int mpiox_link_stream_await(mpiox_link_stream *stream, bool room)
{
    struct pollfd wanted = {.fd = stream->fd, .events = room ? POLLOUT : POLLIN};
    int found;
    do {
        found = poll(&wanted, 1, -1);
    } while (found < 0 && errno == EINTR);
    return found == 1 && (wanted.revents & (POLLERR | POLLNVAL)) == 0 ? MPIOX_OK : MPIOX_E_UNSUPPORTED;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static int64_t send_some(mpiox_link_stream *stream, struct iovec *iov, int iov_count, int flags)
{
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)iov_count};
#ifdef MPIOX_TESTING
    struct iovec one = {iov->iov_base, allowed(stream, iov->iov_len)};
    if (stream->fault.short_bytes != INT64_MAX)
        message = (struct msghdr){.msg_iov = &one, .msg_iovlen = 1};
#endif
    ssize_t bytes;
    do {
        bytes = sendmsg(stream->fd, &message, MSG_NOSIGNAL | flags);
    } while (bytes < 0 && errno == EINTR);
    if (bytes < 0 && (flags & MSG_DONTWAIT) != 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (bytes <= 0)
        return MPIOX_E_UNSUPPORTED;
    count(stream, bytes);
    return bytes;
}

/* Remove bytes that have been sent. */
static void advance(struct iovec *iov, int64_t sent)
{
    for (; sent > 0; iov++) {
        const size_t part = (size_t)sent < iov->iov_len ? (size_t)sent : iov->iov_len;
        iov->iov_base = (char *)iov->iov_base + part;
        iov->iov_len -= part;
        sent -= (int64_t)part;
    }
}

static int first_left(const struct iovec *iov, int iov_count)
{
    int at = 0;
    while (at < iov_count && iov[at].iov_len == 0)
        at++;
    return at;
}

int mpiox_link_stream_write(mpiox_link_stream *stream, struct iovec *iov, int iov_count, bool more)
{
    for (int at; (at = first_left(iov, iov_count)) < iov_count;) {
        const int64_t sent = send_some(stream, iov + at, iov_count - at, more ? MSG_MORE : 0);
        if (sent < 0)
            return MPIOX_E_UNSUPPORTED;
        advance(iov + at, sent);
    }
    return MPIOX_OK;
}

int mpiox_link_stream_write_within(mpiox_link_stream *stream, struct iovec *iov, int iov_count, int ms)
{
    for (int at; (at = first_left(iov, iov_count)) < iov_count;) {
        struct pollfd room = {.fd = stream->fd, .events = POLLOUT};
        const int64_t sent = send_some(stream, iov + at, iov_count - at, MSG_DONTWAIT);
        if (sent < 0)
            return MPIOX_E_UNSUPPORTED;
        advance(iov + at, sent);
        if (sent == 0 && poll(&room, 1, ms) == 0)
            break;
    }
    return MPIOX_OK;
}
