/*
 * mpiox_typemap_runs.c - see mpiox_typemap_runs.h.
 *
 * Repetitions are found as the pieces arrive. A small hash table finds earlier pieces. If two pieces in a row equal two
 * earlier ones, a repetition begins. It continues as long as each piece equals the one at the same distance before it,
 * as in LZ77; each piece then costs one comparison. Writing finds the same repetitions as measuring.
 * Source: Ziv and Lempel, "A universal algorithm for sequential data compression", 1977.
 */
#include "mpiox_typemap_runs.h"

#include <string.h>

enum { NUMBER_BYTES = 10, RUN_BYTES = 4 * NUMBER_BYTES, REPETITION_BYTES = 2 + 2 * NUMBER_BYTES };
enum { SEVERAL = 1, AS_LONG = 2, FLAG_BITS = 2 };
enum { PIECES = MPIOX_TYPEMAP_RUNS_PIECES, SLOT_BITS = 9, LOOKS_FROM = 16, IN_VAIN = 32, LOOKS_MAX = 256 };

/* ---- writing ----------------------------------------------------------------------------------------------------- */

typedef struct writer {
    unsigned char *out; /* NULL: only measured */
    int64_t granule;
    int shift;           /* of the granule; -1: it is no power of two */
    int64_t bytes;       /* so far, without what is being repeated */
    int64_t end, length; /* of the last run */
    int64_t n;           /* pieces since the last run of several */
    int64_t looks;       /* in vain since the last repetition; LOOKS_MAX: no more */
    int64_t next;        /* piece at which the search begins again: the further on, the more searches were in vain */
    int64_t repeated;    /* the last pieces, which are those `distance` before; 0: nothing is being repeated */
    int64_t distance;
    int64_t spared; /* their bytes, were they written out */
    mpiox_typemap_piece pieces[PIECES];
    int16_t own[PIECES];           /* bytes of each, written out */
    int64_t slots[1 << SLOT_BITS]; /* a piece's number, by it and the one before; 0: none. Not set below LOOKS_FROM */
} writer;

static void begin(writer *w, const mpiox_typemap *view, int64_t from, int64_t granule, char *bytes)
{
    w->out = (unsigned char *)bytes;
    w->granule = granule;
    w->shift = (granule & (granule - 1)) == 0 ? __builtin_ctzll((unsigned long long)granule) : -1;
    w->bytes = w->length = w->n = w->looks = w->repeated = w->spared = 0;
    w->end = mpiox_typemap_offset(view, from);
}

static void put(writer *w, uint64_t value)
{
    if (!w->out) {
        w->bytes += (63 - __builtin_clzll(value | 1)) / 7 + 1;
        return;
    }
    for (; value >= 0x80; value >>= 7)
        w->out[w->bytes++] = (unsigned char)(value | 0x80);
    w->out[w->bytes++] = (unsigned char)value;
}

static uint64_t in_granules(const writer *w, int64_t bytes)
{
    return w->shift >= 0 ? (uint64_t)bytes >> w->shift : (uint64_t)bytes / (uint64_t)w->granule;
}

static mpiox_typemap_piece *piece_of(writer *w, int64_t number)
{
    return &w->pieces[number & (PIECES - 1)];
}

static bool is_piece(const mpiox_typemap_piece *piece, int64_t gap, int64_t length)
{
    return piece->gap == gap && piece->length == length;
}

/* Behind a run whose pieces had `before` bytes. */
static void write_piece(writer *w, int64_t gap, int64_t length, int64_t before)
{
    put(w, in_granules(w, gap) << FLAG_BITS | (length == before ? AS_LONG : 0));
    if (length != before)
        put(w, in_granules(w, length));
}

static void write_several(writer *w, int64_t gap, const mpiox_run *run)
{
    put(w, in_granules(w, gap) << FLAG_BITS | (run->length == w->length ? AS_LONG : 0) | SEVERAL);
    if (run->length != w->length)
        put(w, in_granules(w, run->length));
    put(w, (uint64_t)run->count);
    put(w, in_granules(w, run->stride));
}

static void remember(writer *w, int64_t gap, int64_t length, int64_t bytes)
{
    *piece_of(w, w->n) = (mpiox_typemap_piece){gap, length};
    w->own[w->n & (PIECES - 1)] = (int16_t)bytes;
    w->n++;
}

/* For a piece behind the last one. */
static int64_t *slot_of(writer *w, int64_t gap, int64_t length)
{
    const mpiox_typemap_piece *before = piece_of(w, w->n - 1);
    const uint64_t sum = (uint64_t)gap + 31 * (uint64_t)length + 961 * (uint64_t)before->gap +
                         29791 * (uint64_t)before->length;
    return &w->slots[sum * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SLOT_BITS)];
}

/* Does a repetition begin with this piece? */
static bool begins(writer *w, int64_t gap, int64_t length)
{
    if (w->looks == LOOKS_MAX || w->n < LOOKS_FROM || (w->n > LOOKS_FROM && w->n < w->next))
        return false;
    if (w->n == LOOKS_FROM)
        memset(w->slots, 0, sizeof w->slots);
    const mpiox_typemap_piece *before = piece_of(w, w->n - 1);
    int64_t *slot = slot_of(w, gap, length);
    const int64_t at = *slot;
    *slot = w->n;
    w->next = w->n + 1 + w->looks++ / IN_VAIN;
    w->distance = w->n - at;
    return at > 0 && w->distance < PIECES && is_piece(piece_of(w, at), gap, length) &&
           is_piece(piece_of(w, at - 1), before->gap, before->length);
}

static void repeat(writer *w, int64_t gap, int64_t length)
{
    const int64_t bytes = w->own[(w->n - w->distance) & (PIECES - 1)];
    w->spared += bytes;
    w->repeated++;
    remember(w, gap, length, bytes);
}

/* The repetition is over: into bytes, as such or, where that may be as short, piece by piece. */
static void settle(writer *w)
{
    if (w->spared > REPETITION_BYTES) {
        put(w, SEVERAL | AS_LONG);
        put(w, 1);
        put(w, (uint64_t)w->distance);
        put(w, (uint64_t)w->repeated);
        w->looks = 0;
        w->next = w->n;
    } else {
        for (int64_t i = w->n - w->repeated; i < w->n; i++)
            write_piece(w, piece_of(w, i)->gap, piece_of(w, i)->length, piece_of(w, i - 1)->length);
    }
    w->repeated = w->spared = 0;
}

static void add(writer *w, const mpiox_run *run)
{
    const int64_t gap = run->offset - w->end;
    if (run->count == 1 && w->repeated > 0 && is_piece(piece_of(w, w->n - w->distance), gap, run->length)) {
        repeat(w, gap, run->length);
    } else {
        if (w->repeated > 0)
            settle(w);
        if (run->count > 1) {
            write_several(w, gap, run);
            w->n = 0;
        } else if (begins(w, gap, run->length)) {
            repeat(w, gap, run->length);
        } else {
            const int64_t at = w->bytes;
            write_piece(w, gap, run->length, w->length);
            if (w->looks < LOOKS_MAX)
                remember(w, gap, run->length, w->bytes - at);
        }
    }
    w->length = run->length;
    w->end = run->offset + (run->count - 1) * run->stride + run->length;
}

static bool has_room(const writer *w, int64_t most)
{
    return w->bytes + (w->spared < REPETITION_BYTES ? w->spared : REPETITION_BYTES) + RUN_BYTES <= most;
}

static int64_t write_all(writer *w, const mpiox_typemap *view, int64_t from, int64_t *to, int64_t most)
{
    mpiox_cursor cursor;
    mpiox_cursor_init(&cursor, view, 0, from);
    for (; from < *to && has_room(w, most);) {
        mpiox_run run;
        from += mpiox_cursor_next(&cursor, *to - from, &run);
        add(w, &run);
    }
    if (w->repeated > 0)
        settle(w);
    *to = from;
    return w->bytes;
}

int64_t mpiox_typemap_runs_measure(const mpiox_typemap *view, int64_t from, int64_t *to, int64_t granule, int64_t most)
{
    writer w;
    begin(&w, view, from, granule, NULL);
    return write_all(&w, view, from, to, most);
}

void mpiox_typemap_runs_write(const mpiox_typemap *view, int64_t from, int64_t to, int64_t granule, char *bytes)
{
    writer w;
    begin(&w, view, from, granule, bytes);
    write_all(&w, view, from, &to, INT64_MAX);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

void mpiox_typemap_runs_begin(mpiox_typemap_runs *runs, const char *bytes, int64_t n, int64_t granule, int64_t offset)
{
    runs->at = (const unsigned char *)bytes;
    runs->end = runs->at + n;
    runs->granule = granule;
    runs->offset = offset;
    runs->length = runs->n = runs->left = 0;
}

static bool get(mpiox_typemap_runs *runs, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; runs->at < runs->end && shift < 7 * NUMBER_BYTES; shift += 7) {
        const unsigned char byte = *runs->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* A count of 1 was read. */
static bool get_repetition(mpiox_typemap_runs *runs)
{
    uint64_t distance, left;
    const int64_t most = runs->n < PIECES ? runs->n : PIECES - 1;
    if (!get(runs, &distance) || !get(runs, &left) || distance == 0 || distance > (uint64_t)most || left == 0 ||
        left > INT64_MAX)
        return false;
    runs->distance = (int64_t)distance;
    runs->left = (int64_t)left;
    return true;
}

/* The next run as it is written, or the begin of a repetition. The run's offset is the gap before it. */
static bool get_run(mpiox_typemap_runs *runs, mpiox_run *run)
{
    uint64_t gap, length = (uint64_t)(runs->length / runs->granule), count = 1, stride = 0;
    if (!get(runs, &gap) || (!(gap & AS_LONG) && !get(runs, &length)) || ((gap & SEVERAL) && !get(runs, &count)))
        return false;
    if ((gap & SEVERAL) && count == 1)
        return get_repetition(runs);
    if (((gap & SEVERAL) && !get(runs, &stride)) || count == 0 || count > INT64_MAX)
        return false;
    run->count = (int64_t)count;
    return !__builtin_mul_overflow(gap >> FLAG_BITS, (uint64_t)runs->granule, &run->offset) &&
           !__builtin_mul_overflow(length, (uint64_t)runs->granule, &run->length) && run->length > 0 &&
           !__builtin_mul_overflow(stride, (uint64_t)runs->granule, &run->stride) &&
           (count == 1 || run->stride >= run->length);
}

bool mpiox_typemap_runs_next(mpiox_typemap_runs *runs, mpiox_run *run)
{
    int64_t span;
    if (runs->left == 0 && !get_run(runs, run))
        return false;
    if (runs->left > 0) {
        const mpiox_typemap_piece *piece = &runs->pieces[(runs->n - runs->distance) & (PIECES - 1)];
        *run = (mpiox_run){piece->gap, piece->length, 0, 1};
        runs->left--;
    }
    if (run->count == 1)
        runs->pieces[runs->n++ & (PIECES - 1)] = (mpiox_typemap_piece){run->offset, run->length};
    else
        runs->n = 0;
    runs->length = run->length;
    return !__builtin_add_overflow(runs->offset, run->offset, &run->offset) &&
           !__builtin_mul_overflow(run->count - 1, run->stride, &span) &&
           !__builtin_add_overflow(run->offset, span, &runs->offset) &&
           !__builtin_add_overflow(runs->offset, run->length, &runs->offset);
}
