/* mpiox_sanitize.c - see mpiox_sanitize.h. */
#include "mpiox_sanitize.h"

#include <stdbool.h>
#include <stdlib.h>

#include "mpiox_error.h"

enum { FIRST_ROOM = 64, STEPS_OF_ROOM = 2 };

/* What a handle stands for. Duplicates share it. */
typedef struct description {
    int32_t file;
    int32_t handles;  /* that stand for it */
    int64_t position; /* bytes, MPIOX_UNKNOWN */
    int64_t etype;
    bool appends, owned; /* owned: opened inside of MPI-IO */
} description;

typedef struct entry { /* of the table of handles */
    int64_t handle;
    description *is; /* NULL: free */
    uint8_t space;   /* descriptors, FILE *, MPI_File */
} entry;

struct mpiox_sanitizer {
    entry *entries; /* open addressing; room is a power of two */
    int64_t room, used;
    int64_t *ends; /* [files] largest end of a file that was seen; 0 */
    int64_t files;
    int64_t parent; /* line of the last MPI-IO call of the application */
};

mpiox_sanitizer *mpiox_sanitizer_new(void)
{
    mpiox_sanitizer *s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->entries = calloc(FIRST_ROOM, sizeof *s->entries);
        s->room = FIRST_ROOM;
        s->parent = MPIOX_UNKNOWN;
    }
    if (s != NULL && s->entries == NULL) {
        free(s);
        s = NULL;
    }
    return s;
}

static void release(description *is)
{
    if (is != NULL && --is->handles == 0)
        free(is);
}

void mpiox_sanitizer_free(mpiox_sanitizer *s)
{
    if (s == NULL)
        return;
    for (int64_t i = 0; i < s->room; i++)
        release(s->entries[i].is);
    free(s->entries);
    free(s->ends);
    free(s);
}

/* ---- the table of handles ---------------------------------------------------------------------------------------- */

static int64_t home_of(const mpiox_sanitizer *s, uint8_t space, int64_t handle)
{
    const uint64_t key = ((uint64_t)handle ^ (uint64_t)space << 56) * UINT64_C(0x9e3779b97f4a7c15);
    return (int64_t)(key >> 32) & (s->room - 1);
}

/* Its place, or the free one where it would be. */
static entry *find(const mpiox_sanitizer *s, uint8_t space, int64_t handle)
{
    int64_t i = home_of(s, space, handle);
    while (s->entries[i].is != NULL && (s->entries[i].handle != handle || s->entries[i].space != space))
        i = (i + 1) & (s->room - 1);
    return &s->entries[i];
}

static bool grow(mpiox_sanitizer *s)
{
    mpiox_sanitizer larger = {.room = STEPS_OF_ROOM * s->room};
    larger.entries = calloc((size_t)larger.room, sizeof *larger.entries);
    if (larger.entries == NULL)
        return false;
    for (int64_t i = 0; i < s->room; i++) {
        if (s->entries[i].is != NULL)
            *find(&larger, s->entries[i].space, s->entries[i].handle) = s->entries[i];
    }
    free(s->entries);
    s->entries = larger.entries;
    s->room = larger.room;
    return true;
}

/* Close the gap that a handle leaves, so that what was put behind it is found. */
static void take_out(mpiox_sanitizer *s, entry *gone)
{
    int64_t hole = gone - s->entries, i = hole;
    release(gone->is);
    gone->is = NULL;
    s->used--;
    for (;;) {
        i = (i + 1) & (s->room - 1);
        if (s->entries[i].is == NULL)
            return;
        const int64_t home = home_of(s, s->entries[i].space, s->entries[i].handle);
        if (((i - home) & (s->room - 1)) >= ((i - hole) & (s->room - 1))) {
            s->entries[hole] = s->entries[i];
            s->entries[i].is = NULL;
            hole = i;
        }
    }
}

/* The handle stands for this from now on. A trace may lack the close of what it stood for before. */
static bool put(mpiox_sanitizer *s, uint8_t space, int64_t handle, description *is)
{
    entry *at = find(s, space, handle);
    if (at->is != NULL)
        release(at->is);
    else if (2 * ++s->used > s->room && !grow(s))
        return false;
    at = find(s, space, handle);
    *at = (entry){.handle = handle, .is = is, .space = space};
    return true;
}

/* ---- positions --------------------------------------------------------------------------------------------------- */

static bool note_end(mpiox_sanitizer *s, int32_t file, int64_t end)
{
    if (file < 0 || end < 0)
        return true;
    if (file >= s->files) {
        const int64_t files = file >= 2 * s->files ? (int64_t)file + 64 : 2 * s->files;
        int64_t *ends = realloc(s->ends, (size_t)files * sizeof *ends);
        if (ends == NULL)
            return false;
        for (int64_t i = s->files; i < files; i++)
            ends[i] = 0;
        s->ends = ends;
        s->files = files;
    }
    s->ends[file] = end > s->ends[file] ? end : s->ends[file];
    return true;
}

static int64_t known_end(const mpiox_sanitizer *s, int32_t file)
{
    return file >= 0 && file < s->files ? s->ends[file] : 0;
}

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return a == MPIOX_UNKNOWN || b == MPIOX_UNKNOWN || __builtin_add_overflow(a, b, &sum) ? MPIOX_UNKNOWN : sum;
}

static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return a == MPIOX_UNKNOWN || b == MPIOX_UNKNOWN || __builtin_mul_overflow(a, b, &product) ? MPIOX_UNKNOWN : product;
}

static void seek(const mpiox_sanitizer *s, description *is, const mpiox_rows *rows, int64_t i)
{
    const int64_t by = times(rows->offset[i], is->etype);
    if (rows->layer[i] == MPIOX_TRACE_POSIX && rows->result[i] != MPIOX_UNKNOWN) {
        if (rows->result[i] >= 0) /* else it has failed */
            is->position = rows->result[i];
    } else if (rows->whence[i] == MPIOX_WHENCE_SET) {
        is->position = by;
    } else if (rows->whence[i] == MPIOX_WHENCE_CUR) {
        is->position = plus(is->position, by);
    } else { /* the end is known as far as this trace has written or read it */
        is->position = known_end(s, is->file) > 0 ? plus(known_end(s, is->file), by) : MPIOX_UNKNOWN;
    }
}

static bool move(mpiox_sanitizer *s, description *is, const mpiox_rows *rows, int64_t i)
{
    if (rows->step[i] == MPIOX_STEP_MOVE_AT) {
        rows->place[i] = times(rows->offset[i], is->etype);
        return note_end(s, is->file, plus(rows->place[i], rows->moved[i]));
    }
    if (is->appends)
        is->position = known_end(s, is->file);
    rows->place[i] = is->position;
    is->position = plus(is->position, rows->moved[i]);
    return note_end(s, is->file, is->position);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static uint8_t space_of(uint8_t layer)
{
    return layer == MPIOX_TRACE_OTHER ? MPIOX_TRACE_POSIX : layer;
}

static bool open_one(mpiox_sanitizer *s, const mpiox_rows *rows, int64_t i, bool inside)
{
    const uint8_t layer = rows->layer[i];
    const int64_t handle = layer == MPIOX_TRACE_POSIX ? rows->result[i] : rows->handle[i];
    const bool failed = handle == MPIOX_UNKNOWN || (layer == MPIOX_TRACE_POSIX && handle < 0) ||
                        (layer == MPIOX_TRACE_STDIO && handle == 0) ||
                        (layer == MPIOX_TRACE_MPIIO && rows->result[i] != MPIOX_UNKNOWN && rows->result[i] != 0);
    if (failed)
        return true;
    description *is = malloc(sizeof *is);
    if (is == NULL)
        return false;
    *is = (description){
        .file = rows->file[i], .handles = 1, .etype = 1, .appends = rows->flags[i] & 1, .owned = inside};
    if (put(s, space_of(rows->layer[i]), handle, is))
        return true;
    free(is);
    return false;
}

static bool duplicate(mpiox_sanitizer *s, const mpiox_rows *rows, int64_t i, description *is)
{
    if (rows->result[i] == MPIOX_UNKNOWN || rows->result[i] < 0)
        return true;
    is->handles++;
    return put(s, space_of(rows->layer[i]), rows->result[i], is);
}

/* What the row does to its handle. */
static bool act(mpiox_sanitizer *s, const mpiox_rows *rows, int64_t i, entry *at)
{
    description *is = at->is;
    switch (rows->step[i]) {
    case MPIOX_STEP_CLOSE:
        take_out(s, at);
        return true;
    case MPIOX_STEP_MOVE:
    case MPIOX_STEP_MOVE_AT:
        return move(s, is, rows, i);
    case MPIOX_STEP_SEEK: /* where it has led to */
        seek(s, is, rows, i);
        rows->place[i] = is->position;
        return true;
    case MPIOX_STEP_DUPLICATE:
        return duplicate(s, rows, i, is);
    case MPIOX_STEP_VIEW:
        is->position = 0;
        is->etype = rows->etype[i] > 0 ? rows->etype[i] : 1;
        return true;
    default:
        return true;
    }
}

static bool take(mpiox_sanitizer *s, const mpiox_rows *rows, int64_t i)
{
    const uint8_t layer = rows->layer[i], space = layer == MPIOX_TRACE_STDIO && rows->step[i] == MPIOX_STEP_DUPLICATE
                                                      ? MPIOX_TRACE_POSIX /* fdopen names a descriptor */
                                                      : space_of(layer);
    const bool ours = layer == MPIOX_TRACE_MPIIO || layer == MPIOX_TRACE_OTHER, inside = !ours && rows->depth[i] > 0;
    rows->named[i] = rows->file[i];
    rows->place[i] = rows->step[i] == MPIOX_STEP_MOVE || rows->step[i] == MPIOX_STEP_SEEK ? MPIOX_UNKNOWN
                                                                                          : rows->offset[i];
    rows->mask[i] = inside ? MPIOX_MASK_INSIDE : MPIOX_MASK_NONE;
    if (ours && rows->depth[i] <= 0)
        s->parent = rows->line[i];
    if (rows->step[i] == MPIOX_STEP_OPEN && !open_one(s, rows, i, inside))
        return false;
    entry *at = rows->step[i] == MPIOX_STEP_NONE || rows->step[i] == MPIOX_STEP_OPEN || rows->handle[i] == MPIOX_UNKNOWN
                    ? NULL
                    : find(s, space, rows->handle[i]);
    if (at != NULL && at->is != NULL) {
        rows->named[i] = at->is->file >= 0 ? at->is->file : rows->file[i];
        if (at->is->owned && !inside)
            rows->mask[i] = MPIOX_MASK_OWNED;
        if (!act(s, rows, i, at))
            return false;
    }
    rows->parent[i] = rows->mask[i] != MPIOX_MASK_NONE ? s->parent : MPIOX_UNKNOWN;
    return true;
}

int mpiox_sanitizer_feed(mpiox_sanitizer *s, const mpiox_rows *rows)
{
    for (int64_t i = 0; i < rows->count; i++) {
        if (!take(s, rows, i))
            return MPIOX_E_NOMEM;
    }
    return MPIOX_OK;
}
