/*
 * mpiox_trace_streams.c - see mpiox_trace_streams.h. Fields of FILE are the GNU C library's; elsewhere the library is
 * queried.
 */
#include "mpiox_trace_streams.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "mpiox_trace_lock.h"

enum { STREAMS = 8, OWNERS = 1024, SHARED = -1 };
enum { APPENDING = 0x1000, PUTTING = 0x800 }; /* of _flags */

/* This thread's state of one stream. */
typedef struct known {
    const FILE *stream;
    const char *base, *at; /* of its buffer: where it begins, and is filled to */
    int64_t position;      /* behind the last record */
    unsigned disturbed;    /* how often others had moved descriptors then */
    bool is_valid;         /* the stream stood there when the last record ended */
    bool holds;            /* nothing has changed between that and the call that is being made */
} known;

static _Thread_local known streams[STREAMS] __attribute__((tls_model("initial-exec")));
static atomic_int owners[OWNERS]; /* number of the thread that alone has used the streams of a place; 0: none */
static atomic_uint disturbed;
static atomic_bool shared; /* with another process */

static uint64_t hash_of(const FILE *stream)
{
    return (uint64_t)(uintptr_t)stream * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

static atomic_int *owner_of(const FILE *stream)
{
    return &owners[hash_of(stream) % OWNERS];
}

/* Whether this thread alone has used the stream. Once it has not, that stays. */
static bool is_mine(const FILE *stream)
{
    atomic_int *owner = owner_of(stream);
    const int me = mpiox_trace_self.number;
    int before = atomic_load(owner);

    if (before == me)
        return true;
    if (before == 0 && me > 0 && atomic_compare_exchange_strong(owner, &before, me))
        return true;
    atomic_store(owner, SHARED);
    return false;
}

#ifdef __GLIBC__

static bool writes(const FILE *stream)
{
    return (stream->_flags & (APPENDING | PUTTING)) == PUTTING && stream->_mode <= 0;
}

static const char *base_of(const FILE *stream)
{
    return stream->_IO_write_base;
}

static const char *filled_to(const FILE *stream)
{
    return stream->_IO_write_ptr;
}

#else

static bool writes(const FILE *stream)
{
    return stream == NULL;
}

static const char *base_of(const FILE *stream)
{
    return (const char *)stream;
}

#define filled_to base_of

#endif

static known *known_of(const FILE *stream)
{
    return &streams[hash_of(stream) % STREAMS];
}

void mpiox_trace_stream_begin(FILE *stream)
{
    known *k = known_of(stream);
    const bool mine = is_mine(stream);

    k->holds = mine && k->is_valid && k->stream == stream && writes(stream) && k->base == base_of(stream) &&
               k->at == filled_to(stream);
    k->is_valid = false; /* except for calls that return its position then */
}

/* No other caller has used the stream since the call began. */
static bool is_quiet(const FILE *stream)
{
    return atomic_load(owner_of(stream)) == mpiox_trace_self.number && !atomic_load(&shared);
}

int64_t mpiox_trace_stream_moved(FILE *stream, int64_t bytes)
{
    known *k = known_of(stream);

    if (!k->holds || k->stream != stream || bytes <= 0 || !is_quiet(stream) ||
        k->disturbed != atomic_load(&disturbed) || base_of(stream) != k->base || filled_to(stream) != k->at + bytes)
        return -1;
    k->at += bytes;
    k->position += bytes;
    k->is_valid = true;
    return k->position;
}

void mpiox_trace_stream_learned(FILE *stream, int64_t position)
{
    known *k = known_of(stream);

    if (position < 0 || !writes(stream) || !is_quiet(stream))
        return;
    *k = (known){.stream = stream,
                 .base = base_of(stream),
                 .at = filled_to(stream),
                 .position = position,
                 .disturbed = atomic_load(&disturbed),
                 .is_valid = true};
}

void mpiox_trace_stream_touch(FILE *stream)
{
    atomic_store(owner_of(stream), SHARED);
}

void mpiox_trace_streams_disturb(void)
{
    atomic_fetch_add(&disturbed, 1);
}

void mpiox_trace_streams_share(void)
{
    atomic_store(&shared, true);
}
