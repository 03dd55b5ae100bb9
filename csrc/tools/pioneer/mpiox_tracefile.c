/* mpiox_tracefile.c - see mpiox_tracefile.h: records as bytes. */
#include "mpiox_tracefile.h"

#include <stddef.h>

static const char *const keys[MPIOX_KEYS] = {
    [MPIOX_KEY_ERRNO] = "errno",
    [MPIOX_KEY_FLAGS] = "flags",
    [MPIOX_KEY_MODE] = "mode",
    [MPIOX_KEY_WHENCE] = "whence",
    [MPIOX_KEY_AMODE] = "amode",
    [MPIOX_KEY_COUNT] = "count",
    [MPIOX_KEY_TYPE_SIZE] = "type_size",
    [MPIOX_KEY_COMM] = "comm",
    [MPIOX_KEY_COMM_SIZE] = "comm_size",
    [MPIOX_KEY_FILE2] = "file2",
    [MPIOX_KEY_DISPLACEMENT] = "displacement",
    [MPIOX_KEY_ETYPE_SIZE] = "etype_size",
    [MPIOX_KEY_FILETYPE_SIZE] = "filetype_size",
    [MPIOX_KEY_FILETYPE_EXTENT] = "filetype_extent",
    [MPIOX_KEY_DATAREP] = "datarep",
    [MPIOX_KEY_REQUEST] = "request",
    [MPIOX_KEY_REQUIRED] = "required",
    [MPIOX_KEY_PROVIDED] = "provided",
    [MPIOX_KEY_PROTECTION] = "protection",
    [MPIOX_KEY_ADDRESS] = "address",
    [MPIOX_KEY_COMMAND] = "command",
    [MPIOX_KEY_HANDLE2] = "handle2",
    [MPIOX_KEY_OFFSET2] = "offset2",
    [MPIOX_KEY_PIECES] = "pieces",
    [MPIOX_KEY_VALUE] = "value",
    [MPIOX_KEY_COMPLETE] = "complete",
    [MPIOX_KEY_DETAILS] = "details",
    [MPIOX_KEY_UNFINISHED] = "unfinished",
    [MPIOX_KEY_HINTS] = "hints",
};

const char *mpiox_tracefile_key(int key)
{
    return key >= 0 && key < MPIOX_KEYS ? keys[key] : NULL;
}

/* Sums and differences wrap: a damaged file may hold anything. */
static int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t minus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static uint64_t nullable(int64_t value)
{
    return value == MPIOX_TRACEFILE_NONE ? 0 : mpiox_zigzag(value) + 1;
}

static int64_t from_nullable(uint64_t value)
{
    return value == 0 ? MPIOX_TRACEFILE_NONE : mpiox_unzigzag(value - 1);
}

void mpiox_tracefile_reset(mpiox_tracefile_state *state, int64_t time)
{
    memset(state, 0, sizeof *state);
    state->time = time;
}

static int64_t predicted_result(const mpiox_tracefile_last *last, int64_t size)
{
    return last->result_is_size ? size : last->result;
}

/* The base of the prediction of this layer's next record. */
static void remember(mpiox_tracefile_state *state, const mpiox_tracefile_record *record)
{
    mpiox_tracefile_last *last = &state->last[record->layer];

    state->time = plus(record->start, record->duration);
    state->thread = record->thread;
    state->depth = record->depth;
    last->handle = record->handle;
    last->file = record->file;
    if (record->offset != MPIOX_TRACEFILE_NONE)
        last->next = plus(record->offset, record->size == MPIOX_TRACEFILE_NONE ? 0 : record->size);
    last->size = record->size;
    last->result_is_size = record->result == record->size;
    last->result = record->result;
}

static int flags_of(const mpiox_tracefile_state *state, const mpiox_tracefile_record *record)
{
    const mpiox_tracefile_last *last = &state->last[record->layer];
    int flags = 0;

    if (record->thread != state->thread || record->depth != state->depth)
        flags |= MPIOX_TRACEFILE_HAS_THREAD;
    if (record->handle != last->handle || record->file != last->file)
        flags |= MPIOX_TRACEFILE_HAS_HANDLE;
    if (record->offset != MPIOX_TRACEFILE_NONE)
        flags |= record->offset == last->next ? MPIOX_TRACEFILE_AS_PREDICTED : MPIOX_TRACEFILE_HAS_OFFSET;
    if (record->size != last->size)
        flags |= MPIOX_TRACEFILE_HAS_SIZE;
    if (record->result != predicted_result(last, record->size))
        flags |= MPIOX_TRACEFILE_HAS_RESULT;
    if (record->extras > 0)
        flags |= MPIOX_TRACEFILE_HAS_EXTRA;
    if (record->closes)
        flags |= MPIOX_TRACEFILE_CLOSES_BEGIN;
    return flags;
}

uint8_t *mpiox_tracefile_encode(mpiox_tracefile_state *state, const mpiox_tracefile_record *record, uint8_t *at)
{
    const mpiox_tracefile_last *last = &state->last[record->layer];
    const int flags = flags_of(state, record);

    *at++ = record->operation;
    *at++ = (uint8_t)flags;
    at = mpiox_put(at, mpiox_zigzag(minus(record->start, state->time)));
    at = mpiox_put(at, (uint64_t)record->duration);
    if (flags & MPIOX_TRACEFILE_HAS_THREAD) {
        at = mpiox_put(at, (uint64_t)record->thread);
        at = mpiox_put(at, (uint64_t)record->depth);
    }
    if (flags & MPIOX_TRACEFILE_HAS_HANDLE) {
        at = mpiox_put(at, mpiox_zigzag(minus(record->handle, last->handle)));
        at = mpiox_put(at, (uint64_t)record->file);
    }
    if (flags & MPIOX_TRACEFILE_HAS_OFFSET)
        at = mpiox_put(at, mpiox_zigzag(minus(record->offset, last->next)));
    if (flags & MPIOX_TRACEFILE_HAS_SIZE)
        at = mpiox_put(at, nullable(record->size));
    if (flags & MPIOX_TRACEFILE_HAS_RESULT)
        at = mpiox_put(at, nullable(record->result));
    if (flags & MPIOX_TRACEFILE_HAS_EXTRA) {
        *at++ = (uint8_t)record->extras;
        for (int i = 0; i < record->extras; i++) {
            *at++ = record->extra[i].key;
            at = mpiox_put(at, mpiox_zigzag(record->extra[i].value));
        }
    }
    remember(state, record);
    return at;
}

static const uint8_t *get_extras(mpiox_tracefile_record *record, const uint8_t *at, const uint8_t *end)
{
    if (at == NULL || at >= end || *at > MPIOX_TRACEFILE_EXTRAS)
        return NULL;
    record->extras = *at++;
    for (int i = 0; i < record->extras; i++) {
        uint64_t value;

        if (at >= end)
            return NULL;
        record->extra[i].key = *at++;
        at = mpiox_get(at, end, &value);
        if (at == NULL)
            return NULL;
        record->extra[i].value = mpiox_unzigzag(value);
    }
    return at;
}

const uint8_t *mpiox_tracefile_decode(mpiox_tracefile_state *state, mpiox_tracefile_record *record, const uint8_t *at,
                                      const uint8_t *end)
{
    const mpiox_tracefile_last *last = &state->last[record->layer];
    uint64_t a = 0, b = 0;

    if (end - at < 2)
        return NULL;
    record->operation = *at++;
    const int flags = *at++;
    at = mpiox_get(at, end, &a);
    at = mpiox_get(at, end, &b);
    record->start = plus(state->time, mpiox_unzigzag(a));
    record->duration = (int64_t)b;
    record->thread = state->thread, record->depth = state->depth;
    if (flags & MPIOX_TRACEFILE_HAS_THREAD) {
        at = mpiox_get(at, end, &a);
        at = mpiox_get(at, end, &b);
        record->thread = (int64_t)a, record->depth = (int64_t)b;
    }
    record->handle = last->handle, record->file = last->file;
    if (flags & MPIOX_TRACEFILE_HAS_HANDLE) {
        at = mpiox_get(at, end, &a);
        at = mpiox_get(at, end, &b);
        record->handle = plus(last->handle, mpiox_unzigzag(a)), record->file = (int64_t)b;
    }
    record->offset = flags & MPIOX_TRACEFILE_AS_PREDICTED ? last->next : MPIOX_TRACEFILE_NONE;
    if (flags & MPIOX_TRACEFILE_HAS_OFFSET) {
        at = mpiox_get(at, end, &a);
        record->offset = plus(last->next, mpiox_unzigzag(a));
    }
    record->size = last->size;
    if (flags & MPIOX_TRACEFILE_HAS_SIZE) {
        at = mpiox_get(at, end, &a);
        record->size = from_nullable(a);
    }
    record->result = predicted_result(last, record->size);
    if (flags & MPIOX_TRACEFILE_HAS_RESULT) {
        at = mpiox_get(at, end, &a);
        record->result = from_nullable(a);
    }
    record->extras = 0;
    if (flags & MPIOX_TRACEFILE_HAS_EXTRA)
        at = get_extras(record, at, end);
    record->closes = (flags & MPIOX_TRACEFILE_CLOSES_BEGIN) != 0;
    if (at != NULL)
        remember(state, record);
    return at;
}

uint64_t mpiox_tracefile_checksum(const mpiox_tracefile_block *block, uint32_t used)
{
    const size_t behind = offsetof(mpiox_tracefile_block, checksum) + sizeof block->checksum;
    const uint8_t *at = (const uint8_t *)block + behind;
    uint64_t sum = used;

    for (size_t left = used - behind; left > 0;) {
        const size_t step = left < 8 ? left : 8;
        uint64_t word = 0;

        memcpy(&word, at, step);
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 32;
        at += step;
        left -= step;
    }
    return sum;
}
