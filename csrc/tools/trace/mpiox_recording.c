/*
 * mpiox_recording.c - see mpiox_recording.h.
 *
 * Problem.   A user's questions about a run (where the time went, which files, which sizes) need a few KiB a file; a
 *            trace of it needs some bytes for each of billions of calls.
 * Algorithm. The counters are those of Darshan's runtime, by the table of pioneer/darshan/meanings.py. Those of POSIX
 *            and stdio grow with each call, wherever it was made, those of MPI-IO with the program's own calls. Under
 *            MPI they grow from the end of MPI_Init to the beginning of MPI_Finalize. A file without room for its own
 *            record is counted in the record of the others.
 *            Programs mostly repeat themselves: the place of an access's counters is remembered by file, direction and
 *            size, so that the next one needs no search.
 * Guarantee. The same numbers as pioneer/darshan/records.py makes of a trace. Memory does not depend on the number of
 *            calls.
 */
#include "mpiox_recording.h"

#include <string.h>

#include "mpiox_recording_calls.h"
#include "mpiox_recording_file.h"
#include "mpiox_recording_names.h"
#include "mpiox_recording_tally.h"
#include "mpiox_recording_time.h"
#include "mpiox_trace_lock.h"
#include "mpiox_trace_names.h"

enum {
    NAMED = MPIOX_RECORDING_NAMED,                                                    /* no place of a record */
    SPARE = 4 * (sizeof(mpiox_recording_record) + sizeof(mpiox_recording_name) + 64), /* for those of other files */
    SIZES = 0,
    STRIDES = 1,
    REPEATED = 16 /* accesses whose counters are known */
};

_Static_assert((int)MPIOX_COUNT_POSIX_OPENS == (int)MPIOX_COUNT_STDIO_OPENS, "a duplicate is an open, too");
_Static_assert((int)MPIOX_TRACE_NAME_RECORDS == (int)MPIOX_RECORDING_MODULES, "a name has a record of each module");

/* The record that a module has used last. */
static struct {
    int64_t file;
    mpiox_recording_record *record;
} recent[MPIOX_RECORDING_MODULES];
/* The records, and the counters that depend on the size, of accesses by POSIX that were counted last. */
static struct repeated {
    _Alignas(64) int64_t file;
    int64_t size;
    mpiox_recording_record *record;
    int64_t *bucket, *often;
} repeated[2][REPEATED];
static int32_t recent_generation;
static int64_t recent_size; /* and its bucket */
static int recent_bucket;
static mpiox_recording_file *const f = &mpiox_recording;

/* ---- records ----------------------------------------------------------------------------------------------------- */

static uint32_t made(int module, int32_t file, uint32_t *records, uint64_t spare)
{
    if (!mpiox_recording_put_name(file, records, spare + (spare > 0 ? sizeof(mpiox_recording_record) : 0)))
        return 0;
    mpiox_recording_record *record = mpiox_recording_take(MPIOX_RECORDING_RECORD, sizeof *record, spare);
    if (record == NULL)
        return 0;
    record->module = (uint32_t)module;
    record->name = (uint32_t)file;
    mpiox_recording_publish();
    return mpiox_recording_place(record);
}

/* The record of all files that have no room for their own. */
static uint32_t of_others(int module, const uint32_t *mine)
{
    const int32_t file = mpiox_trace_names_others();
    uint32_t *records = mpiox_trace_names_records(file, f->generation);

    if (records == NULL)
        return 0;
    for (int m = 0; m < MPIOX_RECORDING_MODULES && mine != records; m++)
        if (mine[m] > NAMED) /* counted by another module */
            mine = records;
    f->header->others += mine != records;
    if (records[module] == 0)
        records[module] = made(module, file, records, 0);
    return records[module];
}

/* The record of a file; `makes`: which is made when it is not there. */
__attribute__((noinline)) static mpiox_recording_record *look_up(int module, int32_t file, bool makes)
{
    uint32_t *records = mpiox_trace_names_records(file, f->generation);

    if (records == NULL)
        return NULL;
    if (records[module] <= NAMED && makes)
        records[module] = made(module, file, records, SPARE);
    if (records[module] <= NAMED && makes)
        records[module] = of_others(module, records);
    if (records[module] <= NAMED)
        return NULL;
    recent[module].file = file;
    recent[module].record = mpiox_recording_at(records[module]);
    return recent[module].record;
}

static inline mpiox_recording_record *record_of(int module, int64_t file, bool makes)
{
    return recent[module].file == file ? recent[module].record : look_up(module, (int32_t)file, makes);
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static inline void moment(mpiox_recording_record *r, int of, int64_t start, int64_t end)
{
    if (r->first[of] == 0 || start < r->first[of])
        r->first[of] = start;
    if (end > r->last[of])
        r->last[of] = end;
}

/* Time in which at least one of the calls was under way. */
static inline void busy(mpiox_recording_record *r, int of, int64_t start, int64_t end)
{
    const int64_t from = start > r->busy_until[of] ? start : r->busy_until[of];

    if (end > from) {
        r->busy[of] += end - from;
        r->busy_until[of] = end;
    }
}

__attribute__((noinline)) static void follow_more(mpiox_recording_record *r, int which, int64_t value)
{
    mpiox_recording_values *more = r->more[which] != 0
                                       ? mpiox_recording_at(r->more[which])
                                       : mpiox_recording_take(MPIOX_RECORDING_VALUES, sizeof *more, SPARE);
    const uint32_t n = r->values[which] - MPIOX_RECORDING_FEW;

    if (more == NULL)
        return;
    if (r->more[which] == 0) {
        mpiox_recording_publish();
        r->more[which] = mpiox_recording_place(more);
    }
    for (uint32_t i = 0; i < n; i++)
        if (more->value[i] == value) {
            more->often[i]++;
            return;
        }
    if (n < MPIOX_RECORDING_MORE) {
        more->value[n] = value;
        more->often[n] = 1;
        r->values[which]++;
    }
}

/* How often each of the first values occurs. */
static inline void follow(mpiox_recording_record *r, int which, int64_t value)
{
    const uint32_t n = r->values[which] < MPIOX_RECORDING_FEW ? r->values[which] : MPIOX_RECORDING_FEW;

    for (uint32_t i = 0; i < n; i++)
        if (r->value[which][i] == value) {
            r->often[which][i]++;
            return;
        }
    if (n == MPIOX_RECORDING_FEW) {
        follow_more(r, which, value);
        return;
    }
    r->value[which][n] = value;
    r->often[which][n] = 1;
    r->values[which]++;
}

/* By the number of bits of a size: a bucket, and from which size on it is the next one. */
static inline int bucket_of(int64_t size)
{
#define FROM(bits, bucket, edge) [bits] = {bucket, edge}
#define NONE INT64_MAX
    static const struct {
        int64_t bucket, edge;
    } by_bits[64] = {
        FROM(0, 0, NONE),  FROM(1, 0, NONE),        FROM(2, 0, NONE),       FROM(3, 0, NONE),     FROM(4, 0, NONE),
        FROM(5, 0, NONE),  FROM(6, 0, NONE),        FROM(7, 0, 101),        FROM(8, 1, NONE),     FROM(9, 1, NONE),
        FROM(10, 1, NONE), FROM(11, 1, 1025),       FROM(12, 2, NONE),      FROM(13, 2, NONE),    FROM(14, 2, 10241),
        FROM(15, 3, NONE), FROM(16, 3, NONE),       FROM(17, 3, 102401),    FROM(18, 4, NONE),    FROM(19, 4, NONE),
        FROM(20, 4, NONE), FROM(21, 4, 1048577),    FROM(22, 5, NONE),      FROM(23, 5, 4194305), FROM(24, 6, 10485761),
        FROM(25, 7, NONE), FROM(26, 7, NONE),       FROM(27, 7, 104857601), FROM(28, 8, NONE),    FROM(29, 8, NONE),
        FROM(30, 8, NONE), FROM(31, 8, 1073741825),
    };
    const int bits = size > 0 ? 64 - __builtin_clzll((unsigned long long)size) : 0;

    return bits > 31 ? MPIOX_RECORDING_BUCKETS - 1 : (int)by_bits[bits].bucket + (size >= by_bits[bits].edge);
}

static inline int power_of(int64_t offset)
{
    enum { MOST = MPIOX_RECORDING_FIRST_POWER + MPIOX_RECORDING_ALIGNED - 2 };
    const int power = __builtin_ctzll((unsigned long long)offset | 1ULL << MOST);

    return power < MPIOX_RECORDING_FIRST_POWER ? 0 : power - MPIOX_RECORDING_FIRST_POWER + 1;
}

/* How an access follows the one before it of its direction. */
static inline void follows(mpiox_recording_record *r, int way, int64_t offset, int64_t size)
{
    const int64_t before = r->last_byte[way];
    const bool later = offset > before;

    r->last_byte[way] = offset + size - 1;
    r->aligned[power_of(offset)]++;
    if (offset == before + 1 && before != 0 && r->values[STRIDES] > 0 && r->value[STRIDES][0] == 0) {
        r->sequential[way]++;
        r->consecutive[way]++;
        r->often[STRIDES][0]++;
        return;
    }
    r->sequential[way] += later;
    r->consecutive[way] += offset == before + 1;
    follow(r, STRIDES, later && before != 0 ? offset - before - 1 : 0);
}

static inline void count_access(mpiox_recording_record *r, int module, int way, int64_t offset, int64_t size,
                                int64_t took)
{
    const int64_t kind = way == 0 ? MPIOX_KIND_READ : MPIOX_KIND_WRITE;

    r->bytes[way] += size;
    r->switches += r->last_kind != 0 && r->last_kind != kind;
    r->last_kind = kind;
    if (offset + size - 1 > r->max_byte[way])
        r->max_byte[way] = offset + size - 1;
    if (module != MPIOX_RECORDING_STDIO) {
        if (size != recent_size) {
            recent_size = size;
            recent_bucket = bucket_of(size);
        }
        r->buckets[way][recent_bucket]++;
        if (took > r->longest[way]) {
            r->longest[way] = took;
            r->longest_size[way] = size;
        }
        follow(r, SIZES, size);
    }
    if (module == MPIOX_RECORDING_POSIX)
        follows(r, way, offset, size);
}

/* ---- facts from the details of a call ---------------------------------------------------------------------------- */

static int64_t detail(const mpiox_tracefile_record *call, int key)
{
    for (int i = 0; i < call->extras; i++)
        if (call->extra[i].key == key)
            return call->extra[i].value;
    return 0;
}

static void renamed(int64_t source, int64_t target)
{
    mpiox_recording_record *r = target > 0 ? record_of(MPIOX_RECORDING_POSIX, target, true) : NULL;

    if (r == NULL)
        return;
    r->counts[MPIOX_COUNT_POSIX_RENAME_TARGETS]++;
    if (r->renamed_from == 0)
        r->renamed_from = source;
}

/* An open, a view, a rename: rare, and not to be made longer for the others. Returns what grows by one. */
__attribute__((noinline)) static int rare(const mpiox_tracefile_record *call, mpiox_recording_record *r,
                                          mpiox_recording_meaning *m)
{
    if (m->module == MPIOX_RECORDING_POSIX) {
        const int64_t mode = m->kind == MPIOX_KIND_OPEN ? detail(call, MPIOX_KEY_MODE) : 0;

        r->mode = mode != 0 ? mode : r->mode;
        if (m->counter == MPIOX_COUNT_POSIX_RENAME_SOURCES)
            renamed(call->file, detail(call, MPIOX_KEY_FILE2));
    } else if (m->module == MPIOX_RECORDING_MPIIO) {
        const int64_t mode = detail(call, MPIOX_KEY_AMODE);

        r->mode = mode != 0 ? mode : r->mode;
        if (detail(call, MPIOX_KEY_HINTS) != 0) {
            r->counts[MPIOX_COUNT_MPIIO_HINTS]++;
            m->kind = m->kind == MPIOX_KIND_COUNT ? MPIOX_KIND_META : m->kind;
        }
        if (m->kind == MPIOX_KIND_OPEN && detail(call, MPIOX_KEY_COMM_SIZE) == 1)
            return MPIOX_COUNT_MPIIO_INDEP_OPENS;
    }
    return m->counter;
}

static inline int64_t bytes_of(const mpiox_tracefile_record *call, int module)
{
    if (module == MPIOX_RECORDING_POSIX)
        return call->result;
    if (module == MPIOX_RECORDING_MPIIO)
        return call->size > 0 ? call->size : 0;
    const int64_t items = call->result > 0 ? detail(call, MPIOX_KEY_COUNT) : 0; /* of fread and fwrite */
    return items > 0 ? call->result * (call->size / items) : call->result;
}

/* ---- what is left of a call of MPI-IO without the calls on files in it ------------------------------------------- */

static inline int class_of(const mpiox_recording_meaning *m)
{
    return m->class == MPIOX_RECORDING_IN_MPI && mpiox_trace_self.own ? MPIOX_RECORDING_IN_LIBRARY : m->class;
}

static inline int64_t rest_of(const mpiox_tracefile_record *call)
{
    const int64_t rest = call->duration - mpiox_trace_self.in_files - mpiox_trace_self.reported;

    return rest > 0 ? rest : 0; /* threads of the library may do a part of it */
}

/* `other`: it moves no bytes. */
static inline void add_inside(mpiox_recording_record *r, int other)
{
    r->waited[other] += mpiox_trace_self.waited;
    r->unrecorded += mpiox_trace_self.unrecorded;
}

/* ---- one call ---------------------------------------------------------------------------------------------------- */

__attribute__((noinline)) static void keep(const mpiox_tracefile_record *call, const mpiox_recording_record *r, int way,
                                           int64_t offset, int64_t size)
{
    mpiox_recording_keep(&(mpiox_recording_segment){.offset = offset,
                                                    .length = size,
                                                    .start = call->start,
                                                    .duration = call->duration,
                                                    .name = r->name,
                                                    .module = r->module,
                                                    .writes = (uint32_t)way});
}

static inline struct repeated *repeated_at(int way, int64_t file, int64_t size)
{
    return &repeated[way][(uint64_t)(file + size) % REPEATED];
}

/* It has been counted: the next one like it finds its counters. */
static inline void note_repeated(mpiox_recording_record *r, int way, int64_t file, int64_t size)
{
    const uint32_t n = r->values[SIZES] < MPIOX_RECORDING_FEW ? r->values[SIZES] : MPIOX_RECORDING_FEW;

    for (uint32_t i = 0; i < n; i++)
        if (r->value[SIZES][i] == size && size > 0)
            *repeated_at(way, file, size) = (struct repeated){.file = file,
                                                              .size = size,
                                                              .record = r,
                                                              .bucket = &r->buckets[way][recent_bucket],
                                                              .often = &r->often[SIZES][i]};
}

/* `way`: once for each, so that the compiler makes code of its own for it. */
static inline __attribute__((always_inline)) bool repeat(int way, int64_t file, int64_t offset, int64_t size,
                                                         int64_t start, int64_t end)
{
    const int64_t kind = way == 0 ? MPIOX_KIND_READ : MPIOX_KIND_WRITE;
    const struct repeated *one = repeated_at(way, file, size);
    mpiox_recording_record *r = one->record;
    mpiox_recording_header *header = f->header;

    if (r == NULL || one->file != file || one->size != size || recent_generation != f->generation || offset < 0 ||
        start < r->busy_until[way] || !mpiox_recording_time_go_on(way, r->name, start, end, size))
        return false;
    r->counts[way == 0 ? MPIOX_COUNT_POSIX_READS : MPIOX_COUNT_POSIX_WRITES]++;
    r->last[1 + way] = r->busy_until[way] = end;
    r->busy[way] += end - start;
    r->bytes[way] += size;
    r->switches += r->last_kind != kind;
    r->last_kind = kind;
    if (offset + size - 1 > r->max_byte[way])
        r->max_byte[way] = offset + size - 1;
    ++*one->bucket;
    ++*one->often;
    if (end - start > r->longest[way]) {
        r->longest[way] = end - start;
        r->longest_size[way] = size;
    }
    follows(r, way, offset, size);
    header->unkept++;
    if (end > header->last)
        header->last = end;
    mpiox_trace_self.in_files += end - start;
    return true;
}

bool mpiox_recording_read_again(int64_t file, int64_t offset, int64_t size, int64_t start, int64_t end)
{
    return repeat(0, file, offset, size, start, end);
}

bool mpiox_recording_write_again(int64_t file, int64_t offset, int64_t size, int64_t start, int64_t end)
{
    return repeat(1, file, offset, size, start, end);
}

/* `module`: that of the record, once for each so that the compiler makes code of its own for it. */
static inline __attribute__((always_inline)) void count_moving(const mpiox_tracefile_record *call,
                                                               mpiox_recording_record *r,
                                                               const mpiox_recording_meaning *m, int module)
{
    const int way = m->kind == MPIOX_KIND_WRITE;
    const int64_t start = call->start, end = start + call->duration, size = bytes_of(call, module);
    int64_t offset = call->offset > 0 ? call->offset : 0;

    if (module == MPIOX_RECORDING_MPIIO &&
        (call->offset == MPIOX_TRACEFILE_NONE || r->counts[MPIOX_COUNT_MPIIO_VIEWS] > 0))
        offset = -1; /* no place in the file */
    r->counts[m->counter]++;
    moment(r, 1 + way, start, end);
    busy(r, way, start, end);
    count_access(r, module, way, offset, size, call->duration);
    if (module == MPIOX_RECORDING_MPIIO) {
        add_inside(r, 0);
        mpiox_recording_time_add(class_of(m), r->name, start, end, rest_of(call), 2 * module + way, size);
    } else
        mpiox_recording_time_add(m->class, r->name, start, end, call->duration, 2 * module + way, size);
    if (module == MPIOX_RECORDING_STDIO)
        return;
    if (__builtin_expect(f->header->unkept == 0, 0)) {
        keep(call, r, way, offset, size);
        return;
    }
    f->header->unkept++;
    if (module == MPIOX_RECORDING_POSIX)
        note_repeated(r, way, call->file, size);
}

__attribute__((noinline)) static void count_moving_else(const mpiox_tracefile_record *call, mpiox_recording_record *r,
                                                        const mpiox_recording_meaning *m)
{
    if (m->module == MPIOX_RECORDING_MPIIO)
        count_moving(call, r, m, MPIOX_RECORDING_MPIIO);
    else
        count_moving(call, r, m, MPIOX_RECORDING_STDIO);
}

__attribute__((noinline)) static void count_other(const mpiox_tracefile_record *call, mpiox_recording_record *r,
                                                  mpiox_recording_meaning m)
{
    const int64_t start = call->start, end = start + call->duration;
    const int counter = rare(call, r, &m);

    if (counter != MPIOX_RECORDING_NO_COUNTER)
        r->counts[counter]++;
    if (m.module == MPIOX_RECORDING_MPIIO)
        add_inside(r, 1);
    switch (m.kind) {
    case MPIOX_KIND_REOPEN:
        r->counts[MPIOX_COUNT_POSIX_OPENS]++; /* stdio's has the same place */
        moment(r, 0, start, end);
        break;
    case MPIOX_KIND_OPEN:
    case MPIOX_KIND_CLOSE:
        moment(r, m.kind == MPIOX_KIND_OPEN ? 0 : 3, start, end);
        r->last_byte[0] = r->last_byte[1] = 0;
        break;
    default:
        break;
    }
    if (m.kind == MPIOX_KIND_SYNC)
        busy(r, 1, start, end);
    else if (m.kind != MPIOX_KIND_COUNT)
        busy(r, 2, start, end);
}

static inline bool succeeded(const mpiox_tracefile_record *call, int module)
{
    return module == MPIOX_RECORDING_MPIIO ? call->result == 0 && call->depth == 0 : call->result >= 0;
}

/* Of a call that is no access that Darshan counts. */
static void add_time(const mpiox_tracefile_record *call, const mpiox_recording_meaning *m, uint32_t name)
{
    const bool in_mpi = m->class == MPIOX_RECORDING_IN_MPI;
    const int64_t bytes = in_mpi && call->result == 0 && call->size > 0 ? call->size : 0;

    if (!in_mpi || call->depth == 0)
        mpiox_recording_time_add(class_of(m), name, call->start, call->start + call->duration,
                                 in_mpi ? rest_of(call) : call->duration, -1, bytes);
}

__attribute__((noinline)) static void renew(void)
{
    memset(recent, 0, sizeof recent);
    memset(repeated, 0, sizeof repeated);
    recent_generation = f->generation;
    mpiox_recording_tally_renew();
    mpiox_recording_time_renew();
}

/* Returns whether the call was an access that a record counts. fcntl() is one on locks (mpiox_trace_posix.c). */
static bool count_call(const mpiox_tracefile_record *call)
{
    const mpiox_recording_meaning *m = &mpiox_recording_meanings[call->operation];
    mpiox_recording_record *r = NULL;

    if (m->class != MPIOX_RECORDING_IN_MPI)
        mpiox_trace_self.in_files += call->duration;
    if (m->kind != 0 && call->file > 0 && succeeded(call, m->module) && call->operation != OP_fcntl)
        r = record_of(m->module, call->file, m->makes);
    if (r != NULL && (m->kind == MPIOX_KIND_READ || m->kind == MPIOX_KIND_WRITE)) {
        m->module == MPIOX_RECORDING_POSIX ? count_moving(call, r, m, MPIOX_RECORDING_POSIX)
                                           : count_moving_else(call, r, m);
        return true;
    }
    if (r != NULL)
        count_other(call, r, *m);
    if (m->class != MPIOX_RECORDING_IN_MPI && (r == NULL || m->kind == MPIOX_KIND_COUNT))
        mpiox_trace_self.unrecorded += call->duration;
    add_time(call, m, r != NULL ? r->name : 0);
    return false;
}

/* A read of the one file, and then a write of the other one, where that is known (else it is no file). */
__attribute__((noinline)) static bool count_copy(const mpiox_tracefile_record *call)
{
    const int64_t target = call->result > 0 && call->file > 0 ? detail(call, MPIOX_KEY_FILE2) : 0;
    mpiox_tracefile_record part = *call;

    part.operation = OP_pread;
    if (target > 0)
        part.duration = call->duration / 2;
    bool counted = count_call(&part);
    if (target <= 0)
        return counted;
    part.operation = OP_pwrite;
    part.start += part.duration;
    part.duration = call->duration - part.duration;
    part.file = target;
    part.offset = detail(call, MPIOX_KEY_OFFSET2);
    return count_call(&part) && counted;
}

/* How a call has ended, as a tally has it. */
static inline int32_t error_of(const mpiox_tracefile_record *call, const mpiox_recording_meaning *m)
{
    const bool returns_it = call->operation == OP_posix_fallocate || call->operation == OP_posix_fadvise;
    const int64_t error = returns_it && call->result > 0 ? call->result : detail(call, MPIOX_KEY_ERRNO);
    const bool failed = m->class == MPIOX_RECORDING_IN_MPI ? call->result != 0 : call->result < 0;

    return error != 0 ? (int32_t)error : failed ? -1 : 0;
}

void mpiox_recording_add(const mpiox_tracefile_record *call)
{
    const int64_t end = call->start + call->duration;

    if (call->operation >= MPIOX_TRACE_EVENTS)
        return; /* the library's own events */
    const mpiox_recording_meaning *m = &mpiox_recording_meanings[call->operation];
    if (__builtin_expect(m->class == MPIOX_RECORDING_NO_CLASS, 0)) {
        if ((call->operation == OP_MPI_Init || call->operation == OP_MPI_Init_thread) && mpiox_recording_ready(end))
            mpiox_recording_restart(end);
        return;
    }
    if (!mpiox_recording_ready(call->start) || call->start < f->header->started || f->header->stopped != 0)
        return;
    if (__builtin_expect(recent_generation != f->generation, 0))
        renew();
    const bool counted = m->kind == MPIOX_KIND_COPY ? count_copy(call) : count_call(call);
    if (call->layer == MPIOX_TRACEFILE_MPI ? call->closes : !counted || m->class == MPIOX_RECORDING_IN_MPI)
        mpiox_recording_tally_add(call, error_of(call, m), SPARE);
    if (end > f->header->last)
        f->header->last = end;
}

void mpiox_recording_add_part(bool waiting, int64_t start, int64_t end)
{
    mpiox_recording_doing *doing = mpiox_recording_doing_of(mpiox_trace_self.number - 1, 0);

    if (doing != NULL)
        doing->part = 0;
    if (f->header == NULL || start < f->header->started || f->header->stopped != 0)
        return;
    if (recent_generation != f->generation)
        renew();
    mpiox_trace_self.reported += end - start;
    if (waiting)
        mpiox_trace_self.waited += end - start;
    mpiox_recording_time_add(waiting ? MPIOX_RECORDING_WAITING : MPIOX_RECORDING_MESSAGES, 0, start, end, end - start,
                             -1, 0);
}

bool mpiox_recording_counts(int64_t start)
{
    return f->header == NULL || (start >= f->header->started && f->header->stopped == 0);
}

bool mpiox_recording_leave_out(const mpiox_tracefile_left_out *left_out)
{
    if (f->header == NULL)
        return false;
    f->header->left_out = *left_out;
    if (!mpiox_recording_put_name_alone(left_out->name, SPARE))
        f->header->left_out.name = 0;
    return true;
}

static mpiox_recording_record *viewed(int64_t file)
{
    if (f->header == NULL || f->header->stopped != 0 || file <= 0)
        return NULL;
    if (recent_generation != f->generation)
        renew();
    return record_of(MPIOX_RECORDING_MPIIO, file, false);
}

bool mpiox_recording_wants_view(int64_t file)
{
    const mpiox_recording_record *r = viewed(file);

    return r != NULL && r->counts[MPIOX_COUNT_MPIIO_VIEWS] < MPIOX_RECORDING_VIEWS;
}

void mpiox_recording_add_view(int64_t file, const char *text)
{
    const mpiox_recording_record *r = viewed(file);
    mpiox_recording_view *view = r == NULL ? NULL
                                           : mpiox_recording_take(MPIOX_RECORDING_VIEW, sizeof *view + strlen(text) + 1,
                                                                  SPARE);

    if (view == NULL)
        return;
    view->name = r->name;
    strcpy(view->text, text);
    mpiox_recording_publish();
}

/* ---- calls in progress ------------------------------------------------------------------------------------------- */

/* A reader finds a file by its number, once the recording has its name. */
static int32_t known_name(mpiox_recording_header *page, int64_t file)
{
    int32_t number = 0;

    mpiox_trace_lock();
    const char *text = file > 0 ? mpiox_trace_names_text((int32_t)file) : NULL;
    const uint32_t *records = text != NULL ? mpiox_trace_names_records((int32_t)file, f->generation) : NULL;
    for (int module = 0; records != NULL && module < MPIOX_RECORDING_MODULES; module++)
        if (records[module] >= NAMED)
            number = (int32_t)file;
    if (text != NULL && number == 0) {
        const size_t length = strlen(text), most = MPIOX_RECORDING_OPENED_BYTES - 1;

        strcpy(page->opened, text + (length > most ? length - most : 0));
        number = -1;
    }
    mpiox_trace_unlock();
    return number;
}

void mpiox_recording_begin(const mpiox_tracefile_record *call, const char *operation)
{
    mpiox_recording_header *page = atomic_load_explicit(&mpiox_recording_page, memory_order_relaxed);

    if (page == NULL || (uint64_t)call->thread >= MPIOX_RECORDING_THREADS || (operation != NULL && call->depth > 0))
        return;
    mpiox_recording_doing *doing = &page->doing[call->thread][call->depth > 0];
    doing->start = call->start;
    doing->part = doing->own = 0;
    doing->name = mpiox_recording_known(call->file);
    if (operation != NULL) {
        strncpy(page->operation[call->thread], operation, MPIOX_RECORDING_OPERATION_BYTES - 1);
        doing->name = known_name(page, call->file);
    }
    mpiox_recording_put(doing, mpiox_recording_meanings[call->operation].class + 1);
}

void mpiox_recording_attach(void)
{
    mpiox_trace_self.doing = mpiox_recording_doing_of(mpiox_trace_self.number - 1, 0);
}

void mpiox_recording_done(int64_t thread, int64_t depth)
{
    mpiox_recording_doing *doing = mpiox_recording_doing_of(thread, depth);

    if (doing != NULL)
        mpiox_recording_put(doing, 0);
}

void mpiox_recording_in_part(bool waiting, int64_t since)
{
    mpiox_recording_doing *doing = mpiox_recording_doing_of(mpiox_trace_self.number - 1, 0);

    if (doing == NULL)
        return;
    doing->part_start = since;
    doing->part = 1 + (waiting ? MPIOX_RECORDING_WAITING : MPIOX_RECORDING_MESSAGES);
}

void mpiox_recording_in_own(void)
{
    mpiox_recording_doing *doing = mpiox_recording_doing_of(mpiox_trace_self.number - 1, 0);

    if (doing != NULL)
        doing->own = 1;
}

void mpiox_recording_stop(int64_t now)
{
    if (mpiox_recording_ready(now) && f->header->stopped == 0) {
        f->header->stopped = now;
        mpiox_recording_measure(1);
    }
    memset(repeated, 0, sizeof repeated);
}
