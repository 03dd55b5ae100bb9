/*
 * mpiox_copy.c - move bytes between two described streams; mark what a stream covers.
 *
 * Problem.    Every byte of a collective is copied here, often in pieces of 8 bytes.
 * Algorithm.  A contiguous side becomes a pointer. Where one side is contiguous every strided run of the other is
 *             handed to a loop for its block length; lists of blocks get a loop of their own that prefetches ahead.
 *             With two strided sides, two runs are matched: equal blocks go to a strided-to-strided loop, otherwise
 *             the longer block is the contiguous side for as many shorter blocks as fit in it. Lists of small blocks
 *             on one of two such sides go through a small buffer instead, by the two loops above.
 * Guarantees. O(1) per run besides the bytes; no allocation; the sides do not overlap.
 */
#include "mpiox_copy.h"

#include "mpiox_typemap_impl.h"
#include "mpiox_copy_loops.h"
#include "mpiox_cursor_impl.h"

#define BOUNCE_BYTES 4096
#define SMALL_PIECE 512   /* bytes on average; from here on a second copy costs more than matching */
#define PREFETCH_AHEAD 12 /* list items; covers the latency of memory at about 10 ns an item */

/* ---- equal blocks ------------------------------------------------------------------------------------------------ */

static void copy_blocks(char *target, int64_t target_stride, const char *source, int64_t source_stride, int64_t length,
                        int64_t count)
{
    switch (length) {
    case 1:
        both_1(target, target_stride, source, source_stride, count);
        return;
    case 2:
        both_2(target, target_stride, source, source_stride, count);
        return;
    case 4:
        both_4(target, target_stride, source, source_stride, count);
        return;
    case 8:
        both_8(target, target_stride, source, source_stride, count);
        return;
    case 16:
        both_16(target, target_stride, source, source_stride, count);
        return;
    case 32:
        both_32(target, target_stride, source, source_stride, count);
        return;
    case 64:
        both_64(target, target_stride, source, source_stride, count);
        return;
    default:
        for (int64_t i = 0; i < count; i++, target += target_stride, source += source_stride) {
            mpiox_copy_small(target, source, length);
        }
    }
}

static void gather(char *target, const char *source, int64_t stride, int64_t length, int64_t count)
{
    switch (count > 1 ? length : 0) {
    case 0:
        mpiox_copy_small(target, source, length);
        return;
    case 1:
        gather_1(target, source, stride, count);
        return;
    case 2:
        gather_2(target, source, stride, count);
        return;
    case 4:
        gather_4(target, source, stride, count);
        return;
    case 8:
        gather_8(target, source, stride, count);
        return;
    case 16:
        gather_16(target, source, stride, count);
        return;
    case 32:
        gather_32(target, source, stride, count);
        return;
    case 64:
        gather_64(target, source, stride, count);
        return;
    default:
        copy_blocks(target, length, source, stride, length, count);
    }
}

static void scatter(char *target, int64_t stride, const char *source, int64_t length, int64_t count)
{
    switch (count > 1 ? length : 0) {
    case 0:
        mpiox_copy_small(target, source, length);
        return;
    case 1:
        scatter_1(target, stride, source, count);
        return;
    case 2:
        scatter_2(target, stride, source, count);
        return;
    case 4:
        scatter_4(target, stride, source, count);
        return;
    case 8:
        scatter_8(target, stride, source, count);
        return;
    case 16:
        scatter_16(target, stride, source, count);
        return;
    case 32:
        scatter_32(target, stride, source, count);
        return;
    case 64:
        scatter_64(target, stride, source, count);
        return;
    default:
        copy_blocks(target, stride, source, length, length, count);
    }
}

/* ---- layouts ----------------------------------------------------------------------------------------------------- */

/* base + offset; base may be NULL (MPI_BOTTOM), offsets then are addresses. */
static inline char *at_address(const void *base, int64_t offset)
{
    return (char *)((uintptr_t)base + (uintptr_t)offset);
}

/* Pointer to the first byte of a layout that is contiguous, NULL when it is not. */
static char *flat_start(const mpiox_memory_layout *layout)
{
    int64_t at = layout->origin + layout->position;
    if (layout->typemap != NULL) {
        if (!mpiox_typemap_is_contiguous(layout->typemap)) {
            return NULL;
        }
        at += layout->typemap->first;
    }
    return at_address(layout->base, at);
}

/* One loop for both directions: `to_list` is a constant at every call, and so is `length` when it is not 0. */
static inline __attribute__((always_inline)) void copy_items(char *list, char *flat, const mpiox_list_batch *batch,
                                                             bool to_list, int64_t length)
{
    list = at_address(list, batch->address);
    for (int64_t i = 0; i < batch->items; i++) {
        char *piece = list + batch->displacements[i];
        const int64_t bytes = length > 0              ? length
                              : batch->prefix != NULL ? batch->prefix[i + 1] - batch->prefix[i]
                                                      : batch->length;
        if (i + PREFETCH_AHEAD < batch->items) {
            const char *later = list + batch->displacements[i + PREFETCH_AHEAD];
            if (to_list) {
                __builtin_prefetch(later, 1);
            } else {
                __builtin_prefetch(later, 0);
            }
        }
        char *target = to_list ? piece : flat;
        const char *source = to_list ? flat : piece;
        if (length > 0) {
            memcpy(target, source, (size_t)length);
        } else {
            mpiox_copy_small(target, source, bytes);
        }
        flat += bytes;
    }
}

static void copy_list(char *list, char *flat, const mpiox_list_batch *batch, bool to_list)
{
    switch (to_list ? batch->length : -batch->length) {
    case 8:
        copy_items(list, flat, batch, true, 8);
        return;
    case 16:
        copy_items(list, flat, batch, true, 16);
        return;
    case 32:
        copy_items(list, flat, batch, true, 32);
        return;
    case 64:
        copy_items(list, flat, batch, true, 64);
        return;
    case -8:
        copy_items(list, flat, batch, false, 8);
        return;
    case -16:
        copy_items(list, flat, batch, false, 16);
        return;
    case -32:
        copy_items(list, flat, batch, false, 32);
        return;
    case -64:
        copy_items(list, flat, batch, false, 64);
        return;
    default:
        if (to_list) {
            copy_items(list, flat, batch, true, 0);
        } else {
            copy_items(list, flat, batch, false, 0);
        }
    }
}

static void scatter_stream(mpiox_cursor *cursor, char *base, const char *flat, int64_t length)
{
    mpiox_run run;
    mpiox_list_batch batch;
    while (length > 0) {
        int64_t bytes;
        if (mpiox_cursor_next_list(cursor, length, &batch)) {
            copy_list(base, (char *)(uintptr_t)flat, &batch, true);
            bytes = batch.bytes;
        } else {
            bytes = mpiox_cursor_next(cursor, length, &run);
            scatter(at_address(base, run.offset), run.stride, flat, run.length, run.count);
        }
        flat += bytes;
        length -= bytes;
    }
}

static void gather_stream(char *flat, mpiox_cursor *cursor, char *base, int64_t length)
{
    mpiox_run run;
    mpiox_list_batch batch;
    while (length > 0) {
        int64_t bytes;
        if (mpiox_cursor_next_list(cursor, length, &batch)) {
            copy_list(base, flat, &batch, false);
            bytes = batch.bytes;
        } else {
            bytes = mpiox_cursor_next(cursor, length, &run);
            gather(flat, at_address(base, run.offset), run.stride, run.length, run.count);
        }
        flat += bytes;
        length -= bytes;
    }
}

/* ---- two layouts that are not contiguous ------------------------------------------------------------------------- */

/* What is left of a run: `blocks` whole blocks from `at` on, or (inside > 0) the rest of the first one. */
typedef struct run_cursor {
    mpiox_cursor cursor;
    char *at;
    int64_t length;
    int64_t stride;
    int64_t blocks;
    int64_t inside;
} run_cursor;

static void refill(run_cursor *w, char *base, int64_t max_bytes)
{
    mpiox_run run;
    if (w->blocks > 0) {
        return;
    }
    mpiox_cursor_next(&w->cursor, max_bytes, &run);
    w->at = at_address(base, run.offset);
    w->length = run.length;
    w->stride = run.stride;
    w->blocks = run.count;
    w->inside = 0;
}

static void consume_blocks(run_cursor *w, int64_t blocks)
{
    w->at += blocks * w->stride;
    w->blocks -= blocks;
}

static void consume_bytes(run_cursor *w, int64_t bytes)
{
    w->inside += bytes;
    if (w->inside == w->length) {
        w->inside = 0;
        consume_blocks(w, 1);
    }
}

/* Copy what the two runs have in common without cutting more than needed; returns its bytes. */
static int64_t copy_common(run_cursor *t, run_cursor *s)
{
    int64_t blocks, bytes;
    if (t->inside == 0 && s->inside == 0 && t->length == s->length) {
        blocks = t->blocks < s->blocks ? t->blocks : s->blocks;
        bytes = blocks * t->length;
        copy_blocks(t->at, t->stride, s->at, s->stride, t->length, blocks);
        consume_blocks(t, blocks);
        consume_blocks(s, blocks);
        return bytes;
    }
    const int64_t t_left = t->length - t->inside, s_left = s->length - s->inside;
    if (s->inside == 0 && t_left >= s->length) { /* whole source blocks into one target block */
        blocks = s->blocks > 1 ? t_left / s->length : 1;
        blocks = blocks < s->blocks ? blocks : s->blocks;
        bytes = blocks * s->length;
        gather(t->at + t->inside, s->at, s->stride, s->length, blocks);
        consume_blocks(s, blocks);
        consume_bytes(t, bytes);
        return bytes;
    }
    if (t->inside == 0 && s_left >= t->length) {
        blocks = t->blocks > 1 ? s_left / t->length : 1;
        blocks = blocks < t->blocks ? blocks : t->blocks;
        bytes = blocks * t->length;
        scatter(t->at, t->stride, s->at + s->inside, t->length, blocks);
        consume_blocks(t, blocks);
        consume_bytes(s, bytes);
        return bytes;
    }
    bytes = t_left < s_left ? t_left : s_left;
    mpiox_copy_small(t->at + t->inside, s->at + s->inside, bytes);
    consume_bytes(t, bytes);
    consume_bytes(s, bytes);
    return bytes;
}

/* A list of small blocks under the cursor: its own loop is several times faster than matching block by block. */
static bool is_at_small_list(const mpiox_cursor *cursor)
{
    const mpiox_typemap *typemap = cursor->typemap;
    const mpiox_cursor_state *s = (const mpiox_cursor_state *)(const void *)cursor->state;
    return s->levels > 0 && mpiox_typemap_nodes(typemap)[s->level[s->levels - 1].node].kind == MPIOX_NODE_LIST &&
           typemap->size / typemap->pieces < SMALL_PIECE;
}

/* Through a buffer that stays in the first-level cache. */
static void copy_bounced(mpiox_cursor *t, char *target, mpiox_cursor *s, char *source, int64_t length)
{
    char buffer[BOUNCE_BYTES];
    while (length > 0) {
        const int64_t bytes = length < BOUNCE_BYTES ? length : BOUNCE_BYTES;
        gather_stream(buffer, s, source, bytes);
        scatter_stream(t, target, buffer, bytes);
        length -= bytes;
    }
}

static void copy_between(const mpiox_memory_layout *target, const mpiox_memory_layout *source, int64_t length)
{
    run_cursor t = {.blocks = 0}, s = {.blocks = 0};
    int64_t t_fetched = 0, s_fetched = 0, done = 0;
    mpiox_cursor_init(&t.cursor, target->typemap, target->origin, target->position);
    mpiox_cursor_init(&s.cursor, source->typemap, source->origin, source->position);
    if (is_at_small_list(&t.cursor) || is_at_small_list(&s.cursor)) {
        copy_bounced(&t.cursor, target->base, &s.cursor, source->base, length);
        return;
    }
    while (done < length) {
        t_fetched = t.cursor.position - target->position;
        s_fetched = s.cursor.position - source->position;
        refill(&t, target->base, length - t_fetched);
        refill(&s, source->base, length - s_fetched);
        done += copy_common(&t, &s);
    }
}

void mpiox_copy(const mpiox_memory_layout *target, const mpiox_memory_layout *source, int64_t length)
{
    if (length <= 0) {
        return;
    }
    mpiox_cursor cursor;
    char *flat_target = flat_start(target);
    const char *flat_source = flat_start(source);
    if (flat_target != NULL && flat_source != NULL) {
        memcpy(flat_target, flat_source, (size_t)length);
    } else if (flat_target != NULL) {
        mpiox_cursor_init(&cursor, source->typemap, source->origin, source->position);
        gather_stream(flat_target, &cursor, source->base, length);
    } else if (flat_source != NULL) {
        mpiox_cursor_init(&cursor, target->typemap, target->origin, target->position);
        scatter_stream(&cursor, target->base, flat_source, length);
    } else {
        copy_between(target, source, length);
    }
}

/* ---- coverage ---------------------------------------------------------------------------------------------------- */

static void mark_list(unsigned char *map, int64_t map_start, int64_t granule, const mpiox_list_batch *batch)
{
    const int64_t start = batch->address - map_start;
    const int shift = (granule & (granule - 1)) == 0 ? __builtin_ctzll((uint64_t)granule) : -1;
    for (int64_t i = 0; i < batch->items; i++) {
        const int64_t at = start + batch->displacements[i];
        const int64_t bytes = batch->prefix != NULL ? batch->prefix[i + 1] - batch->prefix[i] : batch->length;
        unsigned char *cell = map + (shift >= 0 ? at >> shift : at / granule);
        const int64_t cells = shift >= 0 ? bytes >> shift : bytes / granule;
        if (cells <= 8) { /* as most are, where there are many */
            for (int64_t k = 0; k < cells; k++) {
                cell[k] = 1;
            }
        } else {
            memset(cell, 1, (size_t)cells);
        }
    }
}

void mpiox_copy_mark(unsigned char *map, int64_t map_start, int64_t granule, const mpiox_memory_layout *layout,
                     int64_t length)
{
    if (length <= 0) {
        return;
    }
    if (layout->typemap == NULL) {
        memset(map + (layout->origin + layout->position - map_start) / granule, 1, (size_t)(length / granule));
        return;
    }
    mpiox_cursor cursor;
    mpiox_list_batch batch;
    mpiox_cursor_init(&cursor, layout->typemap, layout->origin, layout->position);
    while (length > 0) {
        mpiox_run run;
        if (mpiox_cursor_next_list(&cursor, length, &batch)) {
            mark_list(map, map_start, granule, &batch);
            length -= batch.bytes;
            continue;
        }
        length -= mpiox_cursor_next(&cursor, length, &run);
        unsigned char *at = map + (run.offset - map_start) / granule;
        const int64_t cells = run.length / granule, step = run.stride / granule;
        if (cells == 1) {
            for (int64_t i = 0; i < run.count; i++) {
                at[i * step] = 1;
            }
            continue;
        }
        for (int64_t i = 0; i < run.count; i++) {
            memset(at + i * step, 1, (size_t)cells);
        }
    }
}
