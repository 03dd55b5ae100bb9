/*
 * mpiox_darshan_rows.c - growing buffers of rows, and the names of their columns.
 *
 * Problem. Rows come log by log, and a log of which half was appended before it failed must leave nothing behind.
 * Buffers are plain bytes that only grow at their end: cutting them back to a former length undoes everything since.
 * They double, so that appending costs constant time; running out of memory is remembered and asked for once a log.
 */
#include "mpiox_darshan_rows.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 4096 };

void *mpiox_darshan_rows_extend(mpiox_darshan_rows *rows, int buffer, int64_t bytes)
{
    mpiox_darshan_buffer *to = &rows->buffers[buffer];

    if (bytes < 0 || bytes > INT64_MAX / 4 - to->used) {
        rows->failed = 1;
        return NULL;
    }
    if (to->used + bytes > to->capacity) {
        int64_t capacity = to->capacity > 0 ? to->capacity : FIRST_CAPACITY;

        while (capacity < to->used + bytes)
            capacity *= 2;
        char *grown = realloc(to->data, (size_t)capacity);
        if (grown == NULL) {
            rows->failed = 1;
            return NULL;
        }
        to->data = grown;
        to->capacity = capacity;
    }
    void *start = to->data + to->used;
    to->used += bytes;
    return start;
}

void mpiox_darshan_rows_put(mpiox_darshan_rows *rows, int buffer, const void *data, int64_t bytes)
{
    void *to = bytes > 0 ? mpiox_darshan_rows_extend(rows, buffer, bytes) : NULL;

    if (to != NULL)
        memcpy(to, data, (size_t)bytes);
}

/* Length in bytes of the UTF-8 character at text, of which `left` bytes are there; 0 when it is none. */
static int64_t character(const unsigned char *text, int64_t left)
{
    if (text[0] < 0x80)
        return 1;
    const int64_t length = text[0] >= 0xC2 && text[0] < 0xE0 ? 2 : (text[0] & 0xF0) == 0xE0 ? 3 : 4;
    if (text[0] < 0xC2 || text[0] > 0xF4 || left < length)
        return 0;
    for (int64_t k = 1; k < length; k++)
        if ((text[k] & 0xC0) != 0x80)
            return 0;
    if ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F)) /* too long a form, surrogates */
        return 0;
    if ((text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F))
        return 0;
    return length;
}

void mpiox_darshan_rows_put_text(mpiox_darshan_rows *rows, int lengths, const char *text, int64_t bytes)
{
    const unsigned char *from = (const unsigned char *)text;
    const int64_t before = rows->buffers[lengths + 1].used;

    for (int64_t at = 0, start = 0; at <= bytes;) {
        const int64_t step = at < bytes ? character(from + at, bytes - at) : 0;
        if (step > 0) {
            at += step;
            continue;
        }
        mpiox_darshan_rows_put(rows, lengths + 1, from + start, at - start);
        if (at < bytes)
            mpiox_darshan_rows_put(rows, lengths + 1, "\xEF\xBF\xBD", 3);
        start = ++at;
    }
    const int32_t length = (int32_t)(rows->buffers[lengths + 1].used - before);
    mpiox_darshan_rows_put(rows, lengths, &length, sizeof(length));
}

void mpiox_darshan_rows_clear(mpiox_darshan_rows *rows)
{
    for (int k = 0; k < MPIOX_DARSHAN_BUFFER_COUNT; k++)
        rows->buffers[k].used = 0;
    rows->failed = 0;
}

void mpiox_darshan_rows_release(mpiox_darshan_rows *rows)
{
    for (int k = 0; k < MPIOX_DARSHAN_BUFFER_COUNT; k++)
        free(rows->buffers[k].data);
    memset(rows, 0, sizeof(*rows));
}

int64_t mpiox_darshan_rows_bytes(const mpiox_darshan_rows *rows)
{
    int64_t bytes = 0;

    for (int k = 0; k < MPIOX_DARSHAN_BUFFER_COUNT; k++)
        bytes += rows->buffers[k].used;
    return bytes;
}

#define BUFFER_NAME(name) #name,
static const char *const buffer_names[] = {MPIOX_DARSHAN_BUFFERS(BUFFER_NAME)};

const char *mpiox_darshan_rows_buffer_name(int index)
{
    return index >= 0 && index < MPIOX_DARSHAN_BUFFER_COUNT ? buffer_names[index] : NULL;
}

typedef struct column {
    const char *name;
    int is_double;
} column;

#define INTEGER(name) {#name, 0},
#define DOUBLE(name) {#name, 1},
static const column log_columns[] = {MPIOX_DARSHAN_LOG_COLUMNS(INTEGER, DOUBLE)};
static const column job_columns[] = {MPIOX_DARSHAN_JOB_COLUMNS(INTEGER, DOUBLE)};
static const column file_columns[] = {MPIOX_DARSHAN_FILE_COLUMNS(INTEGER, DOUBLE)};
static const column summary_columns[] = {MPIOX_DARSHAN_SUMMARY_COLUMNS(INTEGER, DOUBLE)};

const char *mpiox_darshan_rows_column(int table, int index, int *is_double)
{
    static const column *const tables[] = {log_columns, job_columns, file_columns, summary_columns};
    static const int widths[] = {MPIOX_DARSHAN_LOG_WIDTH, MPIOX_DARSHAN_JOB_WIDTH, MPIOX_DARSHAN_FILE_WIDTH,
                                 MPIOX_DARSHAN_SUMMARY_WIDTH};

    if (table < 0 || table > 3 || index < 0 || index >= widths[table])
        return NULL;
    *is_double = tables[table][index].is_double;
    return tables[table][index].name;
}
