/*
 * mpiox_tracefile_reader.c - see mpiox_tracefile_reader.h.
 *
 * Problem.   A record is written when its call ends, behind those of the calls made inside of it; rows come in the
 *            order of the starts.
 * Algorithm. A beginning takes a row, which the record fills later. A batch ends where no call is open, so that sorting
 *            within a batch is enough; a batch that grows too long is ended all the same. A block whose checksum is
 *            wrong, or that cannot be parsed, is left out; the next one has the number of its records.
 *            Calls in which a process has ended are rows too: a beginning without record, and the contents of a slot.
 */
#include "mpiox_tracefile_reader.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpiox_error.h"
#include "mpiox_tracefile_texts.h"

#define NONE MPIOX_TRACEFILE_NONE

enum { ROWS_MAX = 1 << 20, OPEN_MAX = 4096, EXTRAS_MAX = 1 << 26 };
enum { DROPPED = -1 }; /* line of a row that is none */

typedef struct row {
    int64_t value[MPIOX_COLUMNS];
    int64_t extra, extra_bytes;
} row;

typedef struct begun {
    int64_t thread, start, row; /* row -1: given out already */
} begun;

typedef struct under_way { /* a slot in use */
    int64_t thread, depth;
    mpiox_tracefile_slot slot;
    bool over; /* its record is there after all */
} under_way;

struct mpiox_tracefile_reader {
    int fd;
    const uint8_t *memory;
    int64_t bytes, end, block; /* of the file; of what was committed; offset of the next block */
    mpiox_tracefile_header header;
    _Alignas(8) uint8_t block_bytes[MPIOX_TRACEFILE_BLOCK_BYTES];
    const uint8_t *at, *block_end; /* NULL: no block */
    mpiox_tracefile_state state;
    int16_t operation_index[MPIOX_TRACEFILE_OPERATIONS], operation_layer[MPIOX_TRACEFILE_OPERATIONS];
    mpiox_tracefile_texts operations, texts;
    row *rows;
    int64_t n_rows, rows_room, n_open;
    begun open[OPEN_MAX];
    mpiox_tracefile_buffer written, extras; /* as they come; in the order of the rows */
    int64_t *columns;
    int32_t *offsets;
    int64_t columns_room, n_given;
    int64_t records, lost, unread; /* unread: bytes that are there */
    bool unresolved;               /* a block was left out, and its number of records is not known yet */
    under_way slots[MPIOX_TRACEFILE_SLOTS];
    int n_slots;
    bool ended;  /* unfinished calls have their rows */
    bool broken; /* since then what is open may have ended */
    int n_problems;
    mpiox_tracefile_problem problems[MPIOX_TRACEFILE_PROBLEMS];
    bool failed; /* no memory */
};

/* ---- open -------------------------------------------------------------------------------------------------------- */

static int64_t read_at(const mpiox_tracefile_reader *r, void *target, int64_t offset, int64_t bytes)
{
    int64_t done = 0;

    if (r->memory != NULL) {
        const int64_t left = r->bytes - offset;

        done = left < bytes ? left : bytes;
        if (done > 0)
            memcpy(target, r->memory + offset, (size_t)done);
        return done;
    }
    while (done < bytes) {
        const ssize_t got = pread(r->fd, (char *)target + done, (size_t)(bytes - done), offset + done);

        if (got <= 0)
            break;
        done += got;
    }
    return done;
}

static void report(mpiox_tracefile_reader *r, const char *why)
{
    r->broken = true;
    if (r->n_problems < MPIOX_TRACEFILE_PROBLEMS)
        r->problems[r->n_problems++] = (mpiox_tracefile_problem){.line = r->records + 1, .why = why};
}

/* The calls that were under way when the process was killed. */
static void read_slots(mpiox_tracefile_reader *r)
{
    mpiox_tracefile_slot slots[MPIOX_TRACEFILE_SLOTS];

    if (r->header.state != MPIOX_TRACEFILE_RUNNING ||
        read_at(r, slots, MPIOX_TRACEFILE_SLOTS_AT, sizeof slots) != (int64_t)sizeof slots)
        return;
    for (int i = 0; i < MPIOX_TRACEFILE_SLOTS; i++)
        if (slots[i].what != 0)
            r->slots[r->n_slots++] = (under_way){
                .thread = i / MPIOX_TRACEFILE_SLOT_LEVELS, .depth = i % MPIOX_TRACEFILE_SLOT_LEVELS, .slot = slots[i]};
}

static int open_header(mpiox_tracefile_reader *r)
{
    mpiox_tracefile_header *h = &r->header;

    for (int i = 0; i < MPIOX_TRACEFILE_OPERATIONS; i++)
        r->operation_index[i] = -1;
    if (r->bytes < (int64_t)sizeof *h || read_at(r, h, 0, sizeof *h) != (int64_t)sizeof *h ||
        memcmp(h->magic, MPIOX_TRACEFILE_MAGIC, sizeof h->magic) != 0 || h->version != MPIOX_TRACEFILE_VERSION ||
        h->header_bytes != MPIOX_TRACEFILE_HEADER_BYTES || h->block_bytes != MPIOX_TRACEFILE_BLOCK_BYTES)
        return MPIOX_E_CORRUPT;
    h->host[sizeof h->host - 1] = h->command[sizeof h->command - 1] = '\0';
    h->left_out_name[sizeof h->left_out_name - 1] = '\0';
    r->block = MPIOX_TRACEFILE_HEADER_BYTES;
    r->end = r->bytes;
    if (h->committed <= (uint64_t)r->bytes)
        r->end = (int64_t)h->committed;
    else
        report(r, "the file is shorter than its header claims");
    read_slots(r);
    return MPIOX_OK;
}

static int open_any(mpiox_tracefile_reader *r, mpiox_tracefile_reader **out)
{
    const int code = open_header(r);

    if (code == MPIOX_OK)
        *out = r;
    else
        mpiox_tracefile_reader_free(r);
    return code;
}

int mpiox_tracefile_reader_open_memory(const void *data, int64_t bytes, mpiox_tracefile_reader **out)
{
    mpiox_tracefile_reader *r = calloc(1, sizeof *r);

    if (r == NULL)
        return MPIOX_E_NOMEM;
    r->fd = -1;
    r->memory = data;
    r->bytes = bytes;
    return open_any(r, out);
}

int mpiox_tracefile_reader_open(const char *path, mpiox_tracefile_reader **out)
{
    mpiox_tracefile_reader *r = calloc(1, sizeof *r);

    if (r == NULL)
        return MPIOX_E_NOMEM;
    r->fd = open(path, O_RDONLY | O_CLOEXEC);
    r->bytes = r->fd >= 0 ? lseek(r->fd, 0, SEEK_END) : -1;
    if (r->bytes < 0) {
        mpiox_tracefile_reader_free(r);
        return MPIOX_E_IO;
    }
    return open_any(r, out);
}

void mpiox_tracefile_reader_free(mpiox_tracefile_reader *r)
{
    if (r == NULL)
        return;
    if (r->fd >= 0)
        close(r->fd);
    mpiox_tracefile_texts_free(&r->operations);
    mpiox_tracefile_texts_free(&r->texts);
    free(r->rows);
    free(r->written.bytes);
    free(r->extras.bytes);
    free(r->columns);
    free(r->offsets);
    free(r);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static row *new_row(mpiox_tracefile_reader *r)
{
    if (r->n_rows == r->rows_room) {
        const int64_t room = r->rows_room > 0 ? r->rows_room * 2 : 1024;
        row *rows = realloc(r->rows, (size_t)room * sizeof *rows);

        if (rows == NULL) {
            r->failed = true;
            return NULL;
        }
        r->rows = rows;
        r->rows_room = room;
    }
    return &r->rows[r->n_rows++];
}

static void put_extra(mpiox_tracefile_reader *r, const mpiox_tracefile_extra *extra)
{
    static const char *const comms[MPIOX_COMMS] = {
        [MPIOX_COMM_OTHER] = "other", [MPIOX_COMM_WORLD] = "world", [MPIOX_COMM_SELF] = "self"};
    const char *name = mpiox_tracefile_key(extra->key);
    const char *text = mpiox_tracefile_texts_get(&r->texts, extra->value);
    mpiox_tracefile_buffer *to = &r->written;

    if (name == NULL)
        return;
    if (extra->key == MPIOX_KEY_DETAILS) {
        mpiox_tracefile_buffer_add(to, text != NULL ? text : "", text != NULL ? (int64_t)strlen(text) : 0);
    } else {
        mpiox_tracefile_buffer_string(to, name);
        mpiox_tracefile_buffer_add(to, ":", 1);
        if (extra->key == MPIOX_KEY_FILE2 || extra->key == MPIOX_KEY_DATAREP)
            mpiox_tracefile_buffer_string(to, text != NULL ? text : "");
        else if (extra->key == MPIOX_KEY_COMM && extra->value >= 0 && extra->value < MPIOX_COMMS)
            mpiox_tracefile_buffer_string(to, comms[extra->value]);
        else
            mpiox_tracefile_buffer_number(to, extra->value);
    }
    mpiox_tracefile_buffer_add(to, ",", 1);
}

static void put_extras(mpiox_tracefile_reader *r, row *to, const mpiox_tracefile_record *record)
{
    mpiox_tracefile_buffer *buffer = &r->written;

    to->extra = buffer->used;
    if (record->extras > 0) {
        mpiox_tracefile_buffer_add(buffer, "{", 1);
        for (int i = 0; i < record->extras; i++)
            put_extra(r, &record->extra[i]);
        if (!buffer->failed && buffer->bytes[buffer->used - 1] == ',')
            buffer->used--;
        mpiox_tracefile_buffer_add(buffer, "}", 1);
    }
    to->extra_bytes = buffer->used - to->extra;
}

/* The row that a record's beginning took; NULL: none did, or it has been given out. *given: the latter. */
static row *begun_row(mpiox_tracefile_reader *r, int64_t thread, bool *given)
{
    for (int64_t i = r->n_open - 1; i >= 0; i--)
        if (r->open[i].thread == thread) {
            const int64_t at = r->open[i].row;

            memmove(&r->open[i], &r->open[i + 1], (size_t)(r->n_open - i - 1) * sizeof r->open[i]);
            r->n_open--;
            *given = at < 0;
            return at < 0 ? NULL : &r->rows[at];
        }
    return NULL;
}

static void fill(mpiox_tracefile_reader *r, row *to, const mpiox_tracefile_record *record)
{
    const uint64_t unix_start = (uint64_t)record->start + (uint64_t)r->header.unix_minus_monotonic;
    const int64_t values[MPIOX_COLUMNS] = {
        [MPIOX_COLUMN_TIMESTAMP] = (int64_t)unix_start,
        [MPIOX_COLUMN_DURATION] = record->duration < 0 ? NONE : record->duration,
        [MPIOX_COLUMN_OPERATION] = r->operation_index[record->operation],
        [MPIOX_COLUMN_FILE] = mpiox_tracefile_texts_use(&r->texts, record->file),
        [MPIOX_COLUMN_OFFSET] = record->offset,
        [MPIOX_COLUMN_SIZE] = record->size,
        [MPIOX_COLUMN_HANDLE] = record->handle,
        [MPIOX_COLUMN_RESULT] = record->result,
        [MPIOX_COLUMN_THREAD] = record->thread,
        [MPIOX_COLUMN_DEPTH] = record->depth,
        [MPIOX_COLUMN_LINE] = r->records,
        [MPIOX_COLUMN_LAYER] = record->layer,
    };

    memcpy(to->value, values, sizeof values);
    put_extras(r, to, record);
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

static const uint8_t *read_operation(mpiox_tracefile_reader *r, const uint8_t *at, const uint8_t *end)
{
    uint64_t length = 0;

    if (end - at < 3)
        return NULL;
    const int operation = at[0], layer = at[1];
    at = mpiox_get(at + 2, end, &length);
    if (at == NULL || length > (uint64_t)(end - at) || layer >= MPIOX_TRACEFILE_LAYERS ||
        operation < MPIOX_TRACEFILE_FIRST)
        return NULL;
    if (r->operation_index[operation] < 0) {
        if (!mpiox_tracefile_texts_define(&r->operations, operation, at, (int64_t)length))
            r->failed = true;
        r->operation_index[operation] = (int16_t)mpiox_tracefile_texts_use(&r->operations, operation);
        r->operation_layer[operation] = (int16_t)layer;
    }
    return at + length;
}

static const uint8_t *read_text(mpiox_tracefile_reader *r, const uint8_t *at, const uint8_t *end)
{
    uint64_t number = 0, length = 0;

    at = mpiox_get(at, end, &number);
    at = mpiox_get(at, end, &length);
    if (at == NULL || length > (uint64_t)(end - at) || length > MPIOX_TRACEFILE_TEXT_MAX)
        return NULL;
    if (!mpiox_tracefile_texts_define(&r->texts, (int64_t)number, at, (int64_t)length))
        r->failed = true;
    return at + length;
}

static const uint8_t *read_begin(mpiox_tracefile_reader *r, const uint8_t *at, const uint8_t *end)
{
    mpiox_tracefile_record record = {.handle = NONE, .offset = NONE, .size = NONE, .result = NONE, .duration = -1};
    uint64_t thread = 0, depth = 0, start = 0;

    if (at >= end || r->operation_index[*at] < 0)
        return NULL;
    record.operation = *at++;
    record.layer = (uint8_t)r->operation_layer[record.operation];
    at = mpiox_get(at, end, &thread);
    at = mpiox_get(at, end, &depth);
    at = mpiox_get(at, end, &start);
    if (at == NULL)
        return NULL;
    record.thread = (int64_t)thread, record.depth = (int64_t)depth;
    record.start = (int64_t)((uint64_t)r->state.time + (uint64_t)mpiox_unzigzag(start));
    r->state.time = record.start;
    row *to = r->n_open < OPEN_MAX ? new_row(r) : NULL;
    if (to != NULL) {
        r->open[r->n_open++] = (begun){.thread = record.thread, .start = record.start, .row = r->n_rows - 1};
        fill(r, to, &record);
        to->value[MPIOX_COLUMN_LINE] = r->records + 1; /* as long as nothing ends it */
    }
    return at;
}

static const uint8_t *read_cancel(mpiox_tracefile_reader *r, const uint8_t *at, const uint8_t *end)
{
    uint64_t thread = 0;
    bool given = false;

    at = mpiox_get(at, end, &thread);
    row *gone = at != NULL ? begun_row(r, (int64_t)thread, &given) : NULL;
    if (gone != NULL)
        gone->value[MPIOX_COLUMN_LINE] = DROPPED;
    return at;
}

/* A process may be killed between the record of a call and the emptying of its slot. */
static void look_for_slot(mpiox_tracefile_reader *r, const mpiox_tracefile_record *record)
{
    for (int i = 0; i < r->n_slots; i++)
        if (r->slots[i].thread == record->thread && r->slots[i].slot.start == record->start)
            r->slots[i].over = true;
}

static const uint8_t *read_record(mpiox_tracefile_reader *r, const uint8_t *at, const uint8_t *end)
{
    mpiox_tracefile_record record;
    bool given = false;

    if (r->operation_index[*at] < 0)
        return NULL;
    record.layer = (uint8_t)r->operation_layer[*at];
    at = mpiox_tracefile_decode(&r->state, &record, at, end);
    if (at == NULL)
        return NULL;
    r->records++;
    look_for_slot(r, &record);
    row *to = record.closes ? begun_row(r, record.thread, &given) : NULL;
    if (given) { /* its row is out, without its end */
        r->lost++;
        return at;
    }
    if (to == NULL)
        to = new_row(r);
    if (to != NULL)
        fill(r, to, &record);
    return at;
}

static const uint8_t *read_item(mpiox_tracefile_reader *r, const uint8_t *at, const uint8_t *end)
{
    switch (*at) {
    case MPIOX_TRACEFILE_TEXT:
        return read_text(r, at + 1, end);
    case MPIOX_TRACEFILE_OPERATION:
        return read_operation(r, at + 1, end);
    case MPIOX_TRACEFILE_BEGIN:
        return read_begin(r, at + 1, end);
    case MPIOX_TRACEFILE_CANCEL:
        return read_cancel(r, at + 1, end);
    default:
        return read_record(r, at, end);
    }
}

/* ---- what was under way ------------------------------------------------------------------------------------------ */

static void mark(mpiox_tracefile_record *record)
{
    record->extras = 1;
    record->extra[0] = (mpiox_tracefile_extra){.key = MPIOX_KEY_UNFINISHED, .value = 1};
}

/* The row of a call in a slot: that of its beginning, which has no file and no handle yet, or a new one. */
static void put_slot(mpiox_tracefile_reader *r, const under_way *call)
{
    mpiox_tracefile_record record = {.operation = (uint8_t)(call->slot.what >> 8),
                                     .layer = (uint8_t)(call->slot.what >> 16),
                                     .start = call->slot.start,
                                     .duration = -1,
                                     .thread = call->thread,
                                     .depth = call->depth,
                                     .handle = call->slot.handle,
                                     .file = call->slot.file,
                                     .offset = NONE,
                                     .size = NONE,
                                     .result = NONE};
    row *to = NULL;

    if (call->over || r->operation_index[record.operation] < 0 || record.layer >= MPIOX_TRACEFILE_LAYERS)
        return;
    for (int64_t i = 0; i < r->n_open; i++)
        if (r->open[i].thread == record.thread && r->open[i].start == record.start) {
            if (r->open[i].row < 0) /* out already, as it was */
                return;
            to = &r->rows[r->open[i].row];
            r->open[i].row = -1;
        }
    to = to != NULL ? to : new_row(r);
    if (to == NULL)
        return;
    mark(&record);
    fill(r, to, &record);
    to->value[MPIOX_COLUMN_LINE] = r->records + 1;
}

/* Once, behind the last record. Where something was damaged, what is open may have ended in there. */
static void put_unfinished(mpiox_tracefile_reader *r)
{
    mpiox_tracefile_record record = {0};

    if (r->ended)
        return;
    r->ended = true;
    for (int i = 0; i < r->n_slots; i++)
        put_slot(r, &r->slots[i]);
    mark(&record);
    for (int64_t i = 0; i < r->n_open && !r->broken; i++)
        if (r->open[i].row >= 0)
            put_extras(r, &r->rows[r->open[i].row], &record);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* The mistake in a block of which `there` bytes are in the file; NULL: none. *used: its bytes. */
static const char *check_block(const mpiox_tracefile_block *block, int64_t there, bool last, int64_t *used)
{
    if (there < (int64_t)sizeof *block || block->magic != MPIOX_TRACEFILE_BLOCK_MAGIC)
        return "damaged: no block begins here";
    *used = block->used != 0 ? block->used : there;
    if (block->used == 0 && !last)
        return "damaged: the block is unfinished";
    if (*used < (int64_t)sizeof *block || *used > there)
        return last ? "truncated: the block has fewer bytes than its header claims"
                    : "damaged: the length of the block";
    if (block->used != 0 && mpiox_tracefile_checksum(block, block->used) != block->checksum)
        return "damaged: the checksum of the block";
    return NULL;
}

/* The next block that can be read. False: there is none. */
static bool next_block(mpiox_tracefile_reader *r)
{
    const mpiox_tracefile_block *block = (const mpiox_tracefile_block *)(const void *)r->block_bytes;
    int64_t used = 0;

    while (r->block < r->end) {
        const int64_t left = r->end - r->block;
        const int64_t want = left < MPIOX_TRACEFILE_BLOCK_BYTES ? left : MPIOX_TRACEFILE_BLOCK_BYTES;
        const int64_t there = read_at(r, r->block_bytes, r->block, want);
        const char *wrong = check_block(block, there, left <= MPIOX_TRACEFILE_BLOCK_BYTES, &used);

        r->block += MPIOX_TRACEFILE_BLOCK_BYTES;
        if (wrong != NULL) {
            report(r, wrong);
            r->unread += want;
            r->unresolved = true;
            continue;
        }
        if (block->first > (uint64_t)r->records && block->first - (uint64_t)r->records < (UINT64_C(1) << 40)) {
            r->lost += (int64_t)block->first - r->records;
            r->records = (int64_t)block->first;
            r->unresolved = false;
        }
        mpiox_tracefile_reset(&r->state, block->time);
        r->at = r->block_bytes + sizeof *block;
        r->block_end = r->block_bytes + used;
        return true;
    }
    r->lost += r->unresolved; /* of the last ones: one at least */
    r->unresolved = false;
    return false;
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const row *x = *(const row *const *)a, *y = *(const row *const *)b;
    const int64_t s = x->value[MPIOX_COLUMN_TIMESTAMP], t = y->value[MPIOX_COLUMN_TIMESTAMP];

    return s != t ? (s < t ? -1 : 1) : x < y ? -1 : x > y;
}

static bool room_for_batch(mpiox_tracefile_reader *r)
{
    if (r->n_rows <= r->columns_room)
        return true;
    int64_t *columns = realloc(r->columns, (size_t)r->n_rows * MPIOX_COLUMNS * sizeof *columns);
    if (columns != NULL)
        r->columns = columns;
    int32_t *offsets = realloc(r->offsets, ((size_t)r->n_rows + 1) * sizeof *offsets);
    if (offsets != NULL)
        r->offsets = offsets;
    if (columns == NULL || offsets == NULL)
        return false;
    r->columns_room = r->n_rows;
    return true;
}

/* The rows in the order of their starts, as columns. */
static bool give_out(mpiox_tracefile_reader *r)
{
    const row **order = malloc((size_t)(r->n_rows > 0 ? r->n_rows : 1) * sizeof *order);
    bool sorted = true;
    int64_t n = 0;

    if (order == NULL || !room_for_batch(r)) {
        free(order);
        return false;
    }
    for (int64_t i = 0; i < r->n_rows; i++)
        if (r->rows[i].value[MPIOX_COLUMN_LINE] != DROPPED) {
            order[n++] = &r->rows[i];
            sorted = sorted && (n < 2 || compare(&order[n - 2], &order[n - 1]) < 0);
        }
    if (!sorted)
        qsort(order, (size_t)n, sizeof *order, compare);
    r->extras.used = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int c = 0; c < MPIOX_COLUMNS; c++)
            r->columns[c * r->columns_room + i] = order[i]->value[c];
        r->offsets[i] = (int32_t)r->extras.used;
        if (order[i]->extra_bytes > 0)
            mpiox_tracefile_buffer_add(&r->extras, r->written.bytes + order[i]->extra, order[i]->extra_bytes);
    }
    if (r->columns_room > 0)
        r->offsets[n] = (int32_t)r->extras.used;
    free(order);
    for (int64_t i = 0; i < r->n_open; i++)
        r->open[i].row = -1;
    r->n_given = n;
    r->n_rows = r->written.used = 0;
    return !r->extras.failed;
}

static bool complete(const mpiox_tracefile_reader *r, int64_t wanted)
{
    return r->n_rows >= ROWS_MAX || r->written.used >= EXTRAS_MAX ||
           (r->n_rows >= wanted && (r->n_open == 0 || r->broken));
}

int64_t mpiox_tracefile_reader_next(mpiox_tracefile_reader *r, int64_t wanted)
{
    r->n_given = 0;
    while (r->n_given == 0) {
        while (!complete(r, wanted) && !r->failed && !r->written.failed) {
            if (r->at == NULL && !next_block(r)) {
                put_unfinished(r);
                break;
            }
            const uint8_t *next = r->at < r->block_end ? read_item(r, r->at, r->block_end) : NULL;
            if (next == NULL && r->at < r->block_end) {
                report(r, "damaged: a record cannot be parsed");
                r->unread += r->block_end - r->at;
                r->unresolved = true;
            }
            r->at = next;
        }
        const bool over = r->n_rows == 0;
        if (r->failed || r->written.failed || !give_out(r))
            return MPIOX_E_NOMEM;
        if (over)
            break;
    }
    return r->n_given;
}

/* ---- what there is ----------------------------------------------------------------------------------------------- */

const mpiox_tracefile_header *mpiox_tracefile_reader_header(const mpiox_tracefile_reader *r)
{
    return &r->header;
}

const int64_t *mpiox_tracefile_reader_column(const mpiox_tracefile_reader *r, int column)
{
    return column >= 0 && column < MPIOX_COLUMNS ? r->columns + column * r->columns_room : NULL;
}

const char *mpiox_tracefile_reader_extras(const mpiox_tracefile_reader *r, const int32_t **offsets)
{
    *offsets = r->offsets;
    return r->extras.bytes;
}

const char *mpiox_tracefile_reader_operation(const mpiox_tracefile_reader *r, int64_t index)
{
    return index >= 0 && index < r->operations.n_used ? r->operations.used[index] : NULL;
}

const char *mpiox_tracefile_reader_file(const mpiox_tracefile_reader *r, int64_t index)
{
    return index >= 0 && index < r->texts.n_used ? r->texts.used[index] : NULL;
}

int64_t mpiox_tracefile_reader_records(const mpiox_tracefile_reader *r)
{
    return r->records;
}

int64_t mpiox_tracefile_reader_lost(const mpiox_tracefile_reader *r)
{
    const uint64_t unrecorded = r->header.lost < (UINT64_C(1) << 40) ? r->header.lost : 0;

    return r->lost + (int64_t)unrecorded;
}

int64_t mpiox_tracefile_reader_unread(const mpiox_tracefile_reader *r)
{
    return r->unread;
}

int64_t mpiox_tracefile_reader_missing(const mpiox_tracefile_reader *r)
{
    const uint64_t whole = r->header.committed;

    return whole > (uint64_t)r->bytes && whole <= INT64_MAX ? (int64_t)whole - r->bytes : 0;
}

int mpiox_tracefile_reader_truncated(const mpiox_tracefile_reader *r)
{
    const uint32_t how = r->header.state;

    return how != MPIOX_TRACEFILE_CLOSED && how != MPIOX_TRACEFILE_EXECUTED;
}

const mpiox_tracefile_problem *mpiox_tracefile_reader_problem(const mpiox_tracefile_reader *r, int index)
{
    return index >= 0 && index < r->n_problems ? &r->problems[index] : NULL;
}
