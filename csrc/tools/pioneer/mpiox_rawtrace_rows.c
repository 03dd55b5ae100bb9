/* mpiox_rawtrace_rows.c - see mpiox_rawtrace_rows.h. */
#include "mpiox_rawtrace_rows.h"

#include <stdlib.h>
#include <string.h>

#include "mpiox_error.h"

/* Rows that are handed out at once: their extras have 32-bit offsets. */
enum { MAX_OUT = 1 << 17, MAX_OUT_EXTRA = 1 << 28 };

static void drop_notes(mpiox_rawtrace_rows *rows)
{
    for (int64_t i = 0; i < rows->note_count; i++)
        free(rows->notes[i].text);
    rows->note_count = 0;
}

void mpiox_rawtrace_rows_free(mpiox_rawtrace_rows *rows)
{
    for (int64_t n = rows->head; n < rows->next; n++)
        free(rows->ring[n & (rows->ring_capacity - 1)].extra);
    for (int64_t i = 0; i < rows->aside_count; i++)
        free(rows->aside[i].extra);
    drop_notes(rows);
    mpiox_rawtrace_names_free(&rows->operations);
    mpiox_rawtrace_names_free(&rows->files);
    mpiox_rawtrace_names_free(&rows->categories);
    free(rows->category_events);
    free(rows->ring);
    free(rows->aside);
    free(rows->notes);
    free(rows->out);
    free(rows->out_extra);
    free(rows->out_offsets);
    free(rows->order);
    memset(rows, 0, sizeof *rows);
}

void mpiox_rawtrace_rows_begin(mpiox_rawtrace_rows *rows)
{
    drop_notes(rows);
    rows->lines = rows->skipped = rows->made = rows->events = 0;
    rows->truncated = rows->problem_count = 0;
}

static mpiox_rawtrace_held *at(mpiox_rawtrace_rows *rows, int64_t number)
{
    return &rows->ring[number & (rows->ring_capacity - 1)];
}

static int grow_ring(mpiox_rawtrace_rows *rows)
{
    const int64_t capacity = rows->ring_capacity > 0 ? 2 * rows->ring_capacity : 1024;
    mpiox_rawtrace_held *ring = malloc((size_t)capacity * sizeof *ring);

    if (ring == NULL)
        return MPIOX_E_NOMEM;
    for (int64_t n = rows->head; n < rows->next; n++)
        ring[n & (capacity - 1)] = *at(rows, n);
    free(rows->ring);
    rows->ring = ring;
    rows->ring_capacity = capacity;
    return MPIOX_OK;
}

/* Take the row at the head, which is incomplete and holds too many up, out of the ring. */
static int set_aside(mpiox_rawtrace_rows *rows)
{
    if (rows->aside_count == rows->aside_capacity) {
        const int64_t capacity = 2 * rows->aside_capacity + 16;
        mpiox_rawtrace_held *aside = realloc(rows->aside, (size_t)capacity * sizeof *aside);
        if (aside == NULL)
            return MPIOX_E_NOMEM;
        rows->aside = aside;
        rows->aside_capacity = capacity;
    }
    rows->aside[rows->aside_count++] = *at(rows, rows->head++);
    return MPIOX_OK;
}

int64_t mpiox_rawtrace_rows_push(mpiox_rawtrace_rows *rows)
{
    static const mpiox_rawtrace_row nothing = {
        .timestamp = MPIOX_RAWTRACE_NULL,
        .offset = MPIOX_RAWTRACE_NULL,
        .size = MPIOX_RAWTRACE_NULL,
        .duration = MPIOX_RAWTRACE_NULL,
        .result = MPIOX_RAWTRACE_NULL,
        .handle = MPIOX_RAWTRACE_NULL,
        .file = -1,
        .depth = -1,
    };
    if (rows->next - rows->head >= MPIOX_RAWTRACE_HELD && !at(rows, rows->head)->done && set_aside(rows) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    if (rows->next - rows->head == rows->ring_capacity && grow_ring(rows) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    mpiox_rawtrace_held *held = at(rows, rows->next);
    held->row = nothing;
    held->row.line = rows->lines;
    held->extra = NULL;
    held->number = rows->next;
    held->done = false;
    rows->made++;
    return rows->next++;
}

mpiox_rawtrace_held *mpiox_rawtrace_rows_get(mpiox_rawtrace_rows *rows, int64_t number)
{
    if (number >= rows->head && number < rows->next)
        return at(rows, number);
    for (int64_t i = 0; i < rows->aside_count; i++) {
        if (rows->aside[i].number == number)
            return &rows->aside[i];
    }
    return NULL;
}

int mpiox_rawtrace_rows_done(mpiox_rawtrace_rows *rows, int64_t number, char *extra)
{
    mpiox_rawtrace_held *held = mpiox_rawtrace_rows_get(rows, number);

    if (held == NULL) {
        free(extra);
        return MPIOX_E_ARG;
    }
    held->extra = extra;
    held->done = true;
    if (number >= rows->head)
        return MPIOX_OK;
    mpiox_rawtrace_held late = *held; /* it follows the rows that have overtaken it */
    *held = rows->aside[--rows->aside_count];
    if (rows->next - rows->head == rows->ring_capacity && grow_ring(rows) != MPIOX_OK) {
        free(extra);
        return MPIOX_E_NOMEM;
    }
    late.number = rows->next;
    *at(rows, rows->next++) = late;
    return MPIOX_OK;
}

static int reserve_out(mpiox_rawtrace_rows *rows, int64_t count, int64_t extra_bytes)
{
    if (count > rows->out_capacity) {
        free(rows->out);
        free(rows->out_offsets);
        rows->out_capacity = 0;
        rows->out = malloc((size_t)count * sizeof *rows->out);
        rows->out_offsets = malloc(((size_t)count + 1) * sizeof *rows->out_offsets);
        if (rows->out == NULL || rows->out_offsets == NULL)
            return MPIOX_E_NOMEM;
        rows->out_capacity = count;
    }
    if (extra_bytes > rows->out_extra_capacity) {
        free(rows->out_extra);
        rows->out_extra_capacity = 0;
        rows->out_extra = malloc((size_t)extra_bytes);
        if (rows->out_extra == NULL)
            return MPIOX_E_NOMEM;
        rows->out_extra_capacity = extra_bytes;
    }
    return MPIOX_OK;
}

static int by_time(const void *a, const void *b)
{
    const mpiox_rawtrace_moment *one = a, *other = b;

    return one->timestamp != other->timestamp
               ? (one->timestamp > other->timestamp) - (one->timestamp < other->timestamp)
               : (one->place > other->place) - (one->place < other->place);
}

/* Set rows->order of the first `count` rows: as they are, or by time, which nearly are in order. */
static int put_in_order(mpiox_rawtrace_rows *rows, int64_t count)
{
    int64_t moves = 16 * count; /* more, and they are far from it */

    if (count > rows->order_capacity) {
        mpiox_rawtrace_moment *order = realloc(rows->order, (size_t)count * sizeof *order);
        if (order == NULL)
            return MPIOX_E_NOMEM;
        rows->order = order;
        rows->order_capacity = count;
    }
    for (int64_t i = 0; i < count; i++) {
        const mpiox_rawtrace_moment one = {at(rows, rows->head + i)->row.timestamp, i};
        int64_t j = i;
        for (; rows->sorted && j > 0 && rows->order[j - 1].timestamp > one.timestamp && moves > 0; j--, moves--)
            rows->order[j] = rows->order[j - 1];
        rows->order[j] = one;
    }
    if (moves == 0)
        qsort(rows->order, (size_t)count, sizeof *rows->order, by_time);
    return MPIOX_OK;
}

int64_t mpiox_rawtrace_rows_take(mpiox_rawtrace_rows *rows)
{
    int64_t count = 0, bytes = 0;

    for (; count < MAX_OUT && rows->head + count < rows->next && at(rows, rows->head + count)->done; count++) {
        const char *extra = at(rows, rows->head + count)->extra;
        const int64_t more = extra != NULL ? (int64_t)strlen(extra) : 0;
        if (count > 0 && bytes + more > MAX_OUT_EXTRA)
            break;
        bytes += more;
    }
    if (count == 0)
        return 0;
    if (reserve_out(rows, count, bytes) != MPIOX_OK || put_in_order(rows, count) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    int64_t used = 0;
    for (int64_t i = 0; i < count; i++) {
        mpiox_rawtrace_held *held = at(rows, rows->head + rows->order[i].place);
        rows->out[i] = held->row;
        rows->out_offsets[i] = (int32_t)used;
        if (held->extra != NULL) {
            const size_t length = strlen(held->extra);
            memcpy(rows->out_extra + used, held->extra, length);
            used += (int64_t)length;
            free(held->extra);
        }
    }
    rows->out_offsets[count] = (int32_t)used;
    rows->head += count;
    return count;
}

void mpiox_rawtrace_rows_remark(mpiox_rawtrace_rows *rows, const char *why, const char *text, int64_t bytes)
{
    if (rows->problem_count == MPIOX_RAWTRACE_PROBLEMS)
        return;
    mpiox_rawtrace_problem *problem = &rows->problems[rows->problem_count++];
    problem->line = rows->lines;
    problem->why = why;
    problem->bytes = (int32_t)(bytes < MPIOX_RAWTRACE_QUOTE ? bytes : MPIOX_RAWTRACE_QUOTE);
    if (problem->bytes > 0)
        memcpy(problem->text, text, (size_t)problem->bytes);
}

void mpiox_rawtrace_rows_problem(mpiox_rawtrace_rows *rows, const char *why, const char *text, int64_t bytes)
{
    rows->skipped++;
    mpiox_rawtrace_rows_remark(rows, why, text, bytes);
}

int mpiox_rawtrace_rows_note(mpiox_rawtrace_rows *rows, const char *text, int64_t bytes)
{
    if (rows->note_count == rows->note_capacity) {
        const int64_t capacity = 2 * rows->note_capacity + 64;
        mpiox_rawtrace_note *notes = realloc(rows->notes, (size_t)capacity * sizeof *notes);
        if (notes == NULL)
            return MPIOX_E_NOMEM;
        rows->notes = notes;
        rows->note_capacity = capacity;
    }
    char *copy = malloc((size_t)bytes + 1);
    if (copy == NULL)
        return MPIOX_E_NOMEM;
    memcpy(copy, text, (size_t)bytes);
    copy[bytes] = '\0';
    rows->notes[rows->note_count++] = (mpiox_rawtrace_note){rows->lines, bytes, copy};
    return MPIOX_OK;
}

int mpiox_rawtrace_rows_other(mpiox_rawtrace_rows *rows, const char *category, int64_t bytes)
{
    const int32_t i = mpiox_rawtrace_names_add(&rows->categories, category, bytes);

    if (i >= rows->category_capacity) {
        const int64_t capacity = 2 * rows->category_capacity + 16;
        int64_t *grown = realloc(rows->category_events, (size_t)capacity * sizeof *grown);
        if (grown == NULL)
            return MPIOX_E_NOMEM;
        memset(grown + rows->category_capacity, 0, (size_t)(capacity - rows->category_capacity) * sizeof *grown);
        rows->category_events = grown;
        rows->category_capacity = capacity;
    }
    rows->events++;
    if (i >= 0)
        rows->category_events[i]++;
    return i >= 0 ? MPIOX_OK : MPIOX_E_NOMEM;
}
