/*
 * mpiox_recording_time.c - see mpiox_recording_time.h.
 *
 * Problem.   A job of a week has its hours, and one of a second its milliseconds, in the same few KiB.
 * Algorithm. Bins: when the run outlasts them, pairs are added up and the width doubles. Steps: a call that follows its
 *            class's last step closely lengthens it; when there are too many steps, the limit of "closely" doubles, and
 *            steps are joined. Accesses are stored one by one while they have room, which is half of the recording.
 * Guarantee. Sums over bins and over steps are exact, even after joining. Steps are in the order of their starts.
 */
#include "mpiox_recording_time.h"

#include <string.h>

#include "mpiox_recording_file.h"

enum {
    BINS = MPIOX_RECORDING_BINS,
    CLASSES = MPIOX_RECORDING_CLASSES,
    FIRST_STEP_NS = 1000000,
    LONG = 8, /* a step of one file lasts at most this multiple of the time that is not distinguished */
    FIRST_STEPS = 32,
    MOST_BYTES = 4 << 20, /* of a recording, of which the following are parts; a larger one has more files */
    STEPS_SHARE = 8,
    FIRST_SEGMENTS = 16,
    MOST_SEGMENTS = 1024,
    SEGMENTS_SHARE = 2
};

static mpiox_recording_file *const r = &mpiox_recording;
static mpiox_recording_lane *lanes[MPIOX_RECORDING_LANES];
static int64_t bin, bin_start, bin_end; /* the bin that was last in use */
static mpiox_recording_steps *steps;
static int64_t room_for_steps;
static mpiox_recording_step *last_step[CLASSES]; /* NULL: none yet */
static mpiox_recording_segments *segments;
static int64_t room_for_segments;
static uint64_t segment_bytes;
mpiox_recording_going mpiox_recording_going_on[2];

/* Bins and steps are others. */
static void stop_going_on(void)
{
    memset(mpiox_recording_going_on, 0, sizeof mpiox_recording_going_on);
}

void mpiox_recording_time_renew(void)
{
    memset(lanes, 0, sizeof lanes);
    bin_start = bin_end = 0;
    steps = NULL;
    segments = NULL;
    memset(last_step, 0, sizeof last_step);
    stop_going_on();
    room_for_steps = room_for_segments = 0;
    segment_bytes = 0;
}

static uint64_t parted(void)
{
    return r->capacity < MOST_BYTES ? r->capacity : MOST_BYTES;
}

static void change(uint32_t changing)
{
    stop_going_on();
    atomic_store_explicit((_Atomic uint32_t *)(void *)&r->header->changing, changing, memory_order_seq_cst);
}

/* ---- bins -------------------------------------------------------------------------------------------------------- */

static mpiox_recording_lane *lane_of(int lane)
{
    if (lanes[lane] == NULL) {
        lanes[lane] = mpiox_recording_take(MPIOX_RECORDING_LANE, sizeof **lanes, 0);
        if (lanes[lane] != NULL) {
            lanes[lane]->lane = lane;
            mpiox_recording_publish();
        }
    }
    return lanes[lane];
}

static void fold(int64_t *bins)
{
    for (int i = 0; i < BINS / 2; i++)
        bins[i] = bins[2 * i] + bins[2 * i + 1];
    memset(bins + BINS / 2, 0, BINS / 2 * sizeof *bins);
}

static void reach(int64_t end)
{
    mpiox_recording_header *header = r->header;

    if (end <= header->bin_ns * BINS)
        return;
    change(1);
    while (end > header->bin_ns * BINS) {
        for (int lane = 0; lane < MPIOX_RECORDING_LANES; lane++)
            if (lanes[lane] != NULL)
                fold(lanes[lane]->bin);
        header->bin_ns *= 2;
    }
    change(0);
}

static int64_t share(int64_t amount, int64_t passed, int64_t all)
{
    return (int64_t)((double)amount * ((double)passed / (double)all));
}

/* Over several bins, or in another one than before. Start and end: since the recording began. */
__attribute__((noinline)) static void spread_far(mpiox_recording_lane *lane, int64_t start, int64_t end, int64_t amount)
{
    reach(end);
    const int64_t width = r->header->bin_ns, first = start / width;
    const int64_t last = end / width < BINS - 1 ? end / width : BINS - 1;
    int64_t done = 0;

    for (int64_t i = first; i < last; i++) {
        const int64_t so_far = share(amount, (i + 1) * width - start, end - start);

        lane->bin[i] += so_far - done;
        done = so_far;
    }
    lane->bin[last] += amount - done;
    stop_going_on();
    bin = last;
    bin_start = r->header->started + last * width;
    bin_end = bin_start + width;
}

/* `within`: both are in the bin that was last in use. */
static inline void spread(int lane, bool within, int64_t start, int64_t end, int64_t amount)
{
    mpiox_recording_lane *l = lanes[lane];

    if (__builtin_expect(l != NULL && within, 1))
        l->bin[bin] += amount;
    else if (l != NULL || (l = lane_of(lane)) != NULL)
        spread_far(l, start - r->header->started, end - r->header->started, amount);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Whether what lasts from start to end belongs to a step of its class. */
static inline bool is_close(const mpiox_recording_step *s, uint32_t name, int64_t start, int64_t end, int64_t close)
{
    return start - s->end <= close && end - s->start <= (s->name == name ? LONG * close : close);
}

static inline void lengthen(mpiox_recording_step *s, uint32_t name, int64_t end, int64_t busy, int64_t bytes,
                            int64_t calls)
{
    s->end = end > s->end ? end : s->end;
    s->busy += busy;
    s->bytes += bytes;
    s->calls += calls;
    if (s->name != name)
        s->name = 0;
}

static void join_steps(void)
{
    mpiox_recording_header *header = r->header;

    change(1);
    while (steps->count > room_for_steps / 2) {
        int64_t n = 0;

        memset(last_step, 0, sizeof last_step);
        header->step_ns *= 2;
        for (int64_t i = 0; i < steps->count; i++) {
            const mpiox_recording_step s = steps->step[i];
            mpiox_recording_step *last = last_step[s.class];

            if (last != NULL && is_close(last, s.name, s.start, s.end, header->step_ns)) {
                lengthen(last, s.name, s.end, s.busy, s.bytes, s.calls);
            } else {
                last_step[s.class] = &steps->step[n];
                steps->step[n++] = s;
            }
        }
        steps->count = n;
    }
    change(0);
}

/* Twice the room, where the recording allows it. */
static bool more_steps(void)
{
    const int64_t wanted = room_for_steps == 0 ? FIRST_STEPS : 2 * room_for_steps;
    const uint64_t bytes = sizeof *steps + (uint64_t)wanted * sizeof *steps->step;
    mpiox_recording_steps *before = steps;

    if (bytes * STEPS_SHARE > parted())
        return false;
    mpiox_recording_steps *made = mpiox_recording_take(MPIOX_RECORDING_STEPS, bytes, 0);
    if (made == NULL)
        return false;
    if (before != NULL) {
        made->count = before->count;
        memcpy(made->step, before->step, (size_t)before->count * sizeof *made->step);
        before->item.kind = MPIOX_RECORDING_NOTHING;
        for (int i = 0; i < CLASSES; i++)
            if (last_step[i] != NULL)
                last_step[i] = made->step + (last_step[i] - before->step);
    } else {
        r->header->step_ns = FIRST_STEP_NS;
    }
    mpiox_recording_publish();
    stop_going_on();
    steps = made;
    room_for_steps = wanted;
    return true;
}

__attribute__((noinline)) static void new_step(int class, uint32_t name, int64_t start, int64_t end, int64_t busy,
                                               int64_t bytes)
{
    if ((steps == NULL || steps->count == room_for_steps) && !more_steps()) {
        if (steps == NULL)
            return;
        join_steps();
    }
    last_step[class] = &steps->step[steps->count];
    *last_step[class] = (mpiox_recording_step){
        .start = start, .end = end, .busy = busy, .bytes = bytes, .calls = 1, .name = name, .class = (uint32_t)class};
    atomic_store_explicit((_Atomic int64_t *)(void *)&steps->count, steps->count + 1, memory_order_release);
}

/* Where a read or write by POSIX has gone, the next one may. */
static void go_on(int class, int lane)
{
    mpiox_recording_step *s = last_step[class];

    if (class > MPIOX_RECORDING_WRITE || lane != class || s == NULL || lanes[lane] == NULL ||
        lanes[2 * MPIOX_RECORDING_MODULES + class] == NULL)
        return;
    const int64_t close = r->header->step_ns, longest = s->start + (s->name != 0 ? LONG * close : close) + 1;
    mpiox_recording_going_on[class] = (mpiox_recording_going){
        .from = bin_start,
        .until = longest < bin_end ? longest : bin_end,
        .close = close,
        .time = &lanes[2 * MPIOX_RECORDING_MODULES + class]->bin[bin],
        .bytes = &lanes[lane]->bin[bin],
        .step = s};
}

void mpiox_recording_time_add(int class, uint32_t name, int64_t start, int64_t end, int64_t busy, int lane,
                              int64_t bytes)
{
    mpiox_recording_step *s = last_step[class];
    const bool within = start >= bin_start && end < bin_end;

    spread(2 * MPIOX_RECORDING_MODULES + class, within, start, end, busy);
    if (lane >= 0 && bytes > 0) /* of the time the bin may have become another one */
        spread(lane, within || (start >= bin_start && end < bin_end), start, end, bytes);
    if (s != NULL && is_close(s, name, start, end, r->header->step_ns))
        lengthen(s, name, end, busy, bytes, 1);
    else
        new_step(class, name, start, end, busy, bytes);
    go_on(class, lane);
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

static bool more_segments(void)
{
    const int64_t wanted = room_for_segments == 0              ? FIRST_SEGMENTS
                           : room_for_segments < MOST_SEGMENTS ? 2 * room_for_segments
                                                               : MOST_SEGMENTS;
    const uint64_t bytes = sizeof *segments + (uint64_t)wanted * sizeof *segments->segment;
    const bool fits = (segment_bytes + bytes) * SEGMENTS_SHARE <= parted();
    mpiox_recording_segments *made = fits ? mpiox_recording_take(MPIOX_RECORDING_SEGMENTS, bytes, 0) : NULL;

    if (made == NULL)
        return false;
    mpiox_recording_publish();
    segments = made;
    room_for_segments = wanted;
    segment_bytes += bytes;
    return true;
}

void mpiox_recording_keep(const mpiox_recording_segment *segment)
{
    if (r->header->unkept > 0 || ((segments == NULL || segments->count == room_for_segments) && !more_segments())) {
        r->header->unkept++;
        return;
    }
    segments->segment[segments->count] = *segment;
    atomic_store_explicit((_Atomic int64_t *)(void *)&segments->count, segments->count + 1, memory_order_release);
}
