/* mpiox_handle_resolution.c - see mpiox_handle_resolution.h. */
#include "mpiox_handle_resolution.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_error.h"
#include "mpiox_handle_resolution_handles.h"

enum { STANDARD_STREAMS = 3, MOST_THREADS = 1 << 16 };

typedef struct file_state {
    int64_t end;                      /* largest end that was seen */
    int64_t access;                   /* line of the last access of the application by MPI-IO, MPIOX_UNKNOWN */
    int64_t access_start, access_end; /* ns, of that; the end MPIOX_UNKNOWN */
} file_state;

typedef struct mpi_call {     /* the last one of a thread that was made by the application */
    int64_t line, start, end; /* end: MPIOX_UNKNOWN */
} mpi_call;

struct mpiox_handle_resolver {
    mpiox_handles handles;
    file_state *files;
    mpi_call *calls; /* by thread; line MPIOX_UNKNOWN: none */
    int64_t file_count;
    int32_t call_count;
    int64_t parent;  /* line of the last MPI call of the application */
    int64_t unbound; /* open files of MPI whose handle is not known */
    int64_t opens;   /* that were seen */
    bool requests;   /* the trace has the requests of nonblocking accesses */
};

mpiox_handle_resolver *mpiox_handle_resolver_new(void)
{
    mpiox_handle_resolver *s = calloc(1, sizeof *s);
    if (s != NULL && !mpiox_handles_make(&s->handles)) {
        free(s);
        return NULL;
    }
    if (s != NULL)
        s->parent = MPIOX_UNKNOWN;
    return s;
}

void mpiox_handle_resolver_free(mpiox_handle_resolver *s)
{
    if (s == NULL)
        return;
    mpiox_handles_free(&s->handles);
    free(s->files);
    free(s->calls);
    free(s);
}

/* ---- files and positions ----------------------------------------------------------------------------------------- */

/* NULL: no such file, or (*failed) no memory. */
static file_state *state_of(mpiox_handle_resolver *s, int32_t file, bool *failed)
{
    if (file < 0)
        return NULL;
    if (file >= s->file_count) {
        const int64_t count = file >= 2 * s->file_count ? (int64_t)file + 64 : 2 * s->file_count;
        file_state *files = realloc(s->files, (size_t)count * sizeof *files);
        if (files == NULL) {
            *failed = true;
            return NULL;
        }
        for (int64_t i = s->file_count; i < count; i++)
            files[i] = (file_state){.access = MPIOX_UNKNOWN, .access_end = MPIOX_UNKNOWN};
        s->files = files;
        s->file_count = count;
    }
    return &s->files[file];
}

static bool note_end(mpiox_handle_resolver *s, int32_t file, int64_t end)
{
    bool failed = false;
    file_state *state = end >= 0 ? state_of(s, file, &failed) : NULL;

    if (state != NULL && end > state->end)
        state->end = end;
    return !failed;
}

static int64_t known_end(const mpiox_handle_resolver *s, int32_t file)
{
    return file >= 0 && file < s->file_count ? s->files[file].end : 0;
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

static void seek(const mpiox_handle_resolver *s, mpiox_description *is, const mpiox_rows *rows, int64_t i, int whence)
{
    const int64_t by = times(rows->offset[i], is->etype);
    if (rows->layer[i] == MPIOX_TRACE_POSIX && rows->result[i] != MPIOX_UNKNOWN) {
        if (rows->result[i] >= 0) /* else it has failed */
            is->position = rows->result[i];
    } else if (whence == MPIOX_WHENCE_SET) {
        is->position = by;
    } else if (whence == MPIOX_WHENCE_CUR) {
        is->position = plus(is->position, by);
    } else { /* the end is known as far as this trace has written or read it */
        is->position = known_end(s, is->file) > 0 ? plus(known_end(s, is->file), by) : MPIOX_UNKNOWN;
    }
}

static bool move(mpiox_handle_resolver *s, mpiox_description *is, const mpiox_rows *rows, int64_t i)
{
    if (rows->step[i] == MPIOX_STEP_MOVE_AT) {
        rows->place[i] = times(rows->offset[i], is->etype);
        return note_end(s, is->file, plus(rows->place[i], rows->moved[i]));
    }
    if (rows->offset[i] != MPIOX_UNKNOWN) /* a tracer that asks for it knows better */
        is->position = rows->offset[i];
    else if (is->appends)
        is->position = known_end(s, is->file);
    rows->place[i] = is->position;
    is->position = plus(is->position, rows->moved[i]);
    return note_end(s, is->file, is->position);
}

/* ---- calls of MPI ------------------------------------------------------------------------------------------------ */

static bool is_mpi(const mpiox_rows *rows, int64_t i)
{
    return rows->layer[i] == MPIOX_TRACE_MPIIO || rows->layer[i] == MPIOX_TRACE_OTHER;
}

static bool note_call(mpiox_handle_resolver *s, const mpiox_rows *rows, int64_t i)
{
    const int32_t thread = rows->thread[i];

    s->parent = rows->line[i];
    if (thread < 0 || thread >= MOST_THREADS)
        return true;
    if (thread >= s->call_count) {
        const int32_t count = 2 * thread + 8;
        mpi_call *calls = realloc(s->calls, (size_t)count * sizeof *calls);
        if (calls == NULL)
            return false;
        for (int32_t k = s->call_count; k < count; k++)
            calls[k].line = MPIOX_UNKNOWN;
        s->calls = calls;
        s->call_count = count;
    }
    s->calls[thread] = (mpi_call){rows->line[i], rows->start[i], plus(rows->start[i], rows->duration[i])};
    return true;
}

static bool goes_on(const mpi_call *call, int64_t when)
{
    return call->line != MPIOX_UNKNOWN && when >= call->start && (call->end == MPIOX_UNKNOWN || when <= call->end);
}

/* The line of the call that has made row i. */
static int64_t parent_of(const mpiox_handle_resolver *s, const mpiox_rows *rows, int64_t i)
{
    const int64_t when = rows->start[i];
    const int32_t thread = rows->thread[i], file = rows->named[i];
    const mpi_call *latest = NULL;

    if (thread >= 0 && thread < s->call_count && goes_on(&s->calls[thread], when))
        return s->calls[thread].line;
    for (int32_t k = 0; k < s->call_count; k++) {
        if (goes_on(&s->calls[k], when) && (latest == NULL || s->calls[k].start > latest->start))
            latest = &s->calls[k];
    }
    if (latest != NULL)
        return latest->line;
    if (rows->depth[i] <= 0 && file >= 0 && file < s->file_count && s->files[file].access != MPIOX_UNKNOWN)
        return s->files[file].access;
    return s->parent;
}

static bool has_end(const mpiox_rows *rows, int64_t open, int64_t i)
{
    return rows->thread[i] == rows->thread[open] && rows->depth[i] <= rows->depth[open];
}

/* The file that was opened inside of a nameless MPI_File_open and stays open, -1: none. *end: the first row behind it,
 * the number of rows where that is not among them. */
static int32_t opened_inside(const mpiox_rows *rows, int64_t open, int64_t *end)
{
    int32_t file = -1;
    int64_t handle = MPIOX_UNKNOWN, i = open + 1;

    for (; i < rows->count && !has_end(rows, open, i); i++) {
        if (rows->thread[i] != rows->thread[open] || rows->layer[i] != MPIOX_TRACE_POSIX)
            continue;
        if (rows->step[i] == MPIOX_STEP_OPEN && rows->result[i] >= 0 && rows->file[i] >= 0 &&
            !rows->is_system[rows->file[i]]) {
            file = rows->file[i];
            handle = rows->result[i];
        } else if (rows->step[i] == MPIOX_STEP_CLOSE && rows->handle[i] == handle) {
            file = -1;
        }
    }
    *end = i;
    return file;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static uint8_t space_of(const mpiox_rows *rows, int64_t i)
{
    if (rows->layer[i] == MPIOX_TRACE_STDIO && rows->step[i] == MPIOX_STEP_DUPLICATE)
        return MPIOX_TRACE_POSIX; /* fdopen names a descriptor */
    return rows->layer[i] == MPIOX_TRACE_OTHER ? MPIOX_TRACE_POSIX : rows->layer[i];
}

static mpiox_description *put_new(mpiox_handle_resolver *s, uint8_t space, int64_t handle, mpiox_description what)
{
    mpiox_description *is = malloc(sizeof *is);

    if (is == NULL)
        return NULL;
    *is = what;
    is->handles = 1;
    is->bound = MPIOX_UNKNOWN;
    if (mpiox_handles_put(&s->handles, space, handle, is))
        return is;
    free(is);
    return NULL;
}

/* A call on the descriptor of a stream belongs to the stream: the C library opens and closes streams of C++, which move
 * their data themselves. */
static bool put_descriptor(mpiox_handle_resolver *s, mpiox_description *is, int64_t descriptor)
{
    if (descriptor == MPIOX_UNKNOWN || descriptor < 0)
        return true;
    is->handles++;
    if (!mpiox_handles_put(&s->handles, MPIOX_TRACE_POSIX, descriptor, is)) {
        is->handles--;
        return false;
    }
    is->bound = descriptor;
    return true;
}

/* A stream that is closed takes its descriptor with it. */
static void close_stream(mpiox_handle_resolver *s, mpiox_named_handle *stream)
{
    const mpiox_description *is = stream->is;
    const int64_t handle = stream->handle, descriptor = is->bound;
    mpiox_named_handle *at = mpiox_handles_find(&s->handles, MPIOX_TRACE_POSIX, descriptor);

    if (descriptor != MPIOX_UNKNOWN && at->is == is) /* this moves entries of the table */
        mpiox_handles_take_out(&s->handles, at);
    mpiox_handles_take_out(&s->handles, mpiox_handles_find(&s->handles, MPIOX_TRACE_STDIO, handle));
}

static bool open_one(mpiox_handle_resolver *s, const mpiox_rows *rows, int64_t i, bool inside, const mpiox_extra *extra)
{
    const uint8_t layer = rows->layer[i];
    const bool returned = layer == MPIOX_TRACE_POSIX && rows->result[i] != MPIOX_UNKNOWN;
    const int64_t handle = returned ? rows->result[i] : rows->handle[i];
    const bool by_address = layer == MPIOX_TRACE_MPIIO && handle == MPIOX_UNKNOWN && extra->address != MPIOX_UNKNOWN;
    rows->session[i] = s->opens++;
    const bool failed = (handle == MPIOX_UNKNOWN && !by_address) || (layer == MPIOX_TRACE_POSIX && handle < 0) ||
                        (layer == MPIOX_TRACE_STDIO && handle == 0) ||
                        (layer == MPIOX_TRACE_MPIIO && rows->result[i] != MPIOX_UNKNOWN && rows->result[i] != 0);
    if (failed)
        return true;
    const mpiox_description what = {.file = rows->named[i],
                                    .etype = 1,
                                    .session = rows->session[i],
                                    .appends = extra->appends,
                                    .owned = inside,
                                    .object = rows->step[i] == MPIOX_STEP_OBJECT,
                                    .unbound = by_address};
    if (!by_address) {
        mpiox_description *is = put_new(s, space_of(rows, i), handle, what);
        return is != NULL && (layer != MPIOX_TRACE_STDIO || put_descriptor(s, is, extra->descriptor));
    }
    const mpiox_named_handle *before = mpiox_handles_find(&s->handles, MPIOX_SPACE_ADDRESS, extra->address);
    s->unbound += before->is == NULL || !before->is->unbound;
    return put_new(s, MPIOX_SPACE_ADDRESS, extra->address, what) != NULL;
}

/* Both descriptors of a pipe or a socketpair, where the tracer prints them. */
static bool open_pair(mpiox_handle_resolver *s, const mpiox_rows *rows, int64_t i, bool inside,
                      const mpiox_extra *extra)
{
    const mpiox_description what = {.file = -1, .session = MPIOX_UNKNOWN, .owned = inside, .object = true};
    const char *p = extra->args != NULL ? memchr(extra->args, '[', (size_t)(extra->args_end - extra->args)) : NULL;
    int64_t handle;

    if (rows->result[i] != 0 || p == NULL)
        return true;
    for (int k = 0; k < 2 && mpiox_extra_number(&p, extra->args_end, &handle); k++) {
        if (put_new(s, MPIOX_TRACE_POSIX, handle, what) == NULL)
            return false;
        if (p < extra->args_end && *p == '<') /* strace -y: 3<pipe:[1234]> */
            p = memchr(p, ',', (size_t)(extra->args_end - p));
        if (p == NULL)
            return true;
    }
    return true;
}

/* If there is only one open without a handle, it has this one. */
static bool bind(mpiox_handle_resolver *s, int64_t handle)
{
    mpiox_description *is = NULL;

    for (int64_t k = 0; k < s->handles.room; k++) {
        const mpiox_named_handle *at = &s->handles.entries[k];
        if (at->is != NULL && at->space == MPIOX_SPACE_ADDRESS && at->is->unbound)
            is = at->is;
    }
    if (is == NULL)
        return true;
    is->unbound = false;
    is->bound = handle;
    is->handles++;
    s->unbound--;
    return mpiox_handles_put(&s->handles, MPIOX_TRACE_MPIIO, handle, is);
}

/* A close that names the program's variable: forget it and the handle that was in it. */
static void close_address(mpiox_handle_resolver *s, const mpiox_rows *rows, int64_t i, int64_t address)
{
    mpiox_named_handle *at = mpiox_handles_find(&s->handles, MPIOX_SPACE_ADDRESS, address);

    if (at->is == NULL)
        return;
    const int64_t bound = at->is->bound;
    rows->named[i] = at->is->file;
    rows->session[i] = at->is->session;
    s->unbound -= at->is->unbound;
    mpiox_handles_take_out(&s->handles, at);
    at = bound != MPIOX_UNKNOWN ? mpiox_handles_find(&s->handles, MPIOX_TRACE_MPIIO, bound) : NULL;
    if (at != NULL && at->is != NULL)
        mpiox_handles_take_out(&s->handles, at);
}

static bool duplicate(mpiox_handle_resolver *s, const mpiox_rows *rows, int64_t i, mpiox_description *is)
{
    const uint8_t space = rows->layer[i] == MPIOX_TRACE_OTHER ? MPIOX_TRACE_POSIX : rows->layer[i];

    if (rows->result[i] == MPIOX_UNKNOWN || rows->result[i] < 0)
        return true;
    is->handles++;
    if (mpiox_handles_put(&s->handles, space, rows->result[i], is))
        return true;
    is->handles--;
    return false;
}

/* Addresses: in `extra` as our tracer has them, else what mmap returned, which is -1 where it failed. */
static int64_t mapping_of(const mpiox_rows *rows, int64_t i, const mpiox_extra *extra)
{
    const int64_t returned = rows->step[i] == MPIOX_STEP_MAP && rows->result[i] > 0 ? rows->result[i] : MPIOX_UNKNOWN;

    return extra->mapping != MPIOX_UNKNOWN ? extra->mapping : returned;
}

/* Programs close a descriptor and go on with what they have mapped of it. */
static bool put_mapping(mpiox_handle_resolver *s, mpiox_description *is, int64_t address)
{
    if (address == MPIOX_UNKNOWN)
        return true;
    is->handles++;
    if (mpiox_handles_put(&s->handles, MPIOX_SPACE_MAPPING, address, is))
        return true;
    is->handles--;
    return false;
}

/* msync and munmap. */
static void use_mapping(mpiox_handle_resolver *s, const mpiox_rows *rows, int64_t i, int64_t address)
{
    mpiox_named_handle *at = mpiox_handles_find(&s->handles, MPIOX_SPACE_MAPPING, address);

    if (address == MPIOX_UNKNOWN || at->is == NULL)
        return;
    rows->session[i] = at->is->session;
    rows->named[i] = at->is->file >= 0 ? at->is->file : rows->file[i];
    if (at->is->owned && rows->mask[i] == MPIOX_MASK_NONE)
        rows->mask[i] = MPIOX_MASK_OWNED;
    if (rows->step[i] == MPIOX_STEP_UNMAP)
        mpiox_handles_take_out(&s->handles, at);
}

/* The row's effect on its handle. */
static bool act(mpiox_handle_resolver *s, const mpiox_rows *rows, int64_t i, mpiox_named_handle *at,
                const mpiox_extra *extra)
{
    mpiox_description *is = at->is;
    switch (rows->step[i]) {
    case MPIOX_STEP_CLOSE:
        if (at->space == MPIOX_TRACE_STDIO)
            close_stream(s, at);
        else
            mpiox_handles_take_out(&s->handles, at);
        return true;
    case MPIOX_STEP_MOVE:
    case MPIOX_STEP_MOVE_AT:
        return move(s, is, rows, i);
    case MPIOX_STEP_SEEK: /* where it has led to */
        seek(s, is, rows, i, extra->whence);
        rows->place[i] = is->position;
        return true;
    case MPIOX_STEP_DUPLICATE:
        return duplicate(s, rows, i, is);
    case MPIOX_STEP_MAP:
        return put_mapping(s, is, mapping_of(rows, i, extra));
    case MPIOX_STEP_VIEW:
        is->position = 0;
        is->etype = extra->etype;
        return true;
    default:
        return true;
    }
}

/* A nonblocking access, or a wait for several: the wait gets the file, and is none where it waits for messages. */
static bool note_requests(mpiox_handle_resolver *s, const mpiox_rows *rows, int64_t i, const mpiox_extra *extra)
{
    const bool waits = rows->step[i] == MPIOX_STEP_WAIT;
    const char *p = extra->requests;
    bool found = rows->named[i] >= 0;
    int64_t request;
    const mpiox_description what = {.file = rows->named[i], .session = rows->session[i]};

    if (p == NULL || (!waits && rows->layer[i] != MPIOX_TRACE_MPIIO)) {
        if (waits && s->requests && !found)
            rows->mask[i] = MPIOX_MASK_NO_IO;
        return true;
    }
    while (mpiox_extra_number(&p, extra->requests_end, &request)) {
        if (!waits) {
            s->requests = true;
            if (put_new(s, MPIOX_SPACE_REQUEST, request, what) == NULL)
                return false;
            continue;
        }
        mpiox_named_handle *at = mpiox_handles_find(&s->handles, MPIOX_SPACE_REQUEST, request);
        if (at->is == NULL)
            continue;
        if (rows->named[i] < 0)
            rows->named[i] = at->is->file;
        if (rows->session[i] == MPIOX_UNKNOWN)
            rows->session[i] = at->is->session;
        found = true;
        if (!extra->not_done)
            mpiox_handles_take_out(&s->handles, at);
    }
    if (waits && (extra->not_done || (s->requests && !found)))
        rows->mask[i] = MPIOX_MASK_NO_IO;
    return true;
}

/* Whether a row is on something that is no file: a standard stream, a socket, memory. */
static bool is_no_io(const mpiox_rows *rows, int64_t i, const mpiox_description *is, const mpiox_extra *extra)
{
    if (rows->named[i] >= 0)
        return false;
    if (rows->step[i] == MPIOX_STEP_OTHER || rows->step[i] == MPIOX_STEP_OBJECT || rows->step[i] == MPIOX_STEP_PAIR ||
        extra->object)
        return true;
    if (rows->step[i] == MPIOX_STEP_UNMAP || rows->step[i] == MPIOX_STEP_MAPPED)
        return true;
    if (rows->layer[i] != MPIOX_TRACE_POSIX || rows->step[i] < MPIOX_STEP_CLOSE)
        return false;
    return is != NULL ? is->object : rows->handle[i] >= -1 && rows->handle[i] < STANDARD_STREAMS;
}

/* A descriptor without an open that the MPI library uses: from its launcher. */
static bool is_inherited(const mpiox_rows *rows, int64_t i, bool inside)
{
    return inside && rows->layer[i] == MPIOX_TRACE_POSIX && rows->named[i] < 0 && rows->handle[i] >= STANDARD_STREAMS &&
           rows->step[i] >= MPIOX_STEP_MOVE && rows->step[i] <= MPIOX_STEP_USE;
}

/* The handle of a row, and what it does to it. *was: what the handle stood for, valid without the table. */
static bool use_handle(mpiox_handle_resolver *s, const mpiox_rows *rows, int64_t i, const mpiox_extra *extra,
                       bool inside, mpiox_description *was)
{
    const bool named = rows->step[i] != MPIOX_STEP_NONE && rows->step[i] != MPIOX_STEP_OPEN &&
                       rows->step[i] != MPIOX_STEP_OBJECT && rows->handle[i] != MPIOX_UNKNOWN;
    const uint8_t space = space_of(rows, i);

    if (rows->step[i] == MPIOX_STEP_CLOSE && rows->layer[i] == MPIOX_TRACE_MPIIO && !named) {
        close_address(s, rows, i, extra->address);
        return true;
    }
    if (rows->step[i] == MPIOX_STEP_UNMAP || rows->step[i] == MPIOX_STEP_MAPPED)
        use_mapping(s, rows, i, mapping_of(rows, i, extra));
    if (!named)
        return true;
    mpiox_named_handle *at = mpiox_handles_find(&s->handles, space, rows->handle[i]);
    if (at->is == NULL && space == MPIOX_TRACE_MPIIO && s->unbound == 1) {
        if (!bind(s, rows->handle[i]))
            return false;
        at = mpiox_handles_find(&s->handles, space, rows->handle[i]);
    }
    if (at->is == NULL)
        return !is_inherited(rows, i, inside) ||
               put_new(s, space, rows->handle[i],
                       (mpiox_description){.file = -1, .session = MPIOX_UNKNOWN, .owned = true}) != NULL;
    *was = *at->is;
    rows->session[i] = at->is->session;
    rows->named[i] = at->is->file >= 0 ? at->is->file : rows->file[i];
    if (at->is->owned && !inside && !is_mpi(rows, i))
        rows->mask[i] = MPIOX_MASK_OWNED;
    return act(s, rows, i, at, extra);
}

/* A trace without depths: the access lies within one of MPI-IO to the same file. */
static bool lies_within(const mpiox_handle_resolver *s, const mpiox_rows *rows, int64_t i)
{
    const int32_t file = rows->file[i];
    const bool moves = rows->step[i] == MPIOX_STEP_MOVE || rows->step[i] == MPIOX_STEP_MOVE_AT;

    if (rows->depth[i] >= 0 || !moves || file < 0 || file >= s->file_count)
        return false;
    const int64_t end = plus(rows->start[i], rows->duration[i]), last = s->files[file].access_end;
    return end != MPIOX_UNKNOWN && last != MPIOX_UNKNOWN && rows->start[i] >= s->files[file].access_start &&
           end <= last;
}

/* The place in the row itself, if its handle is unknown: an access has the tracer's offset, as all of Darshan DXT have;
 * a seek has its target, which lseek returns; a view has a displacement instead. */
static int64_t place_in_row(const mpiox_rows *rows, int64_t i)
{
    if (rows->step[i] == MPIOX_STEP_VIEW)
        return MPIOX_UNKNOWN;
    if (rows->step[i] != MPIOX_STEP_SEEK)
        return rows->offset[i];
    return rows->layer[i] == MPIOX_TRACE_POSIX && rows->result[i] >= 0 ? rows->result[i] : MPIOX_UNKNOWN;
}

static bool take(mpiox_handle_resolver *s, const mpiox_rows *rows, int64_t i, int32_t opened)
{
    const bool mpi = is_mpi(rows, i), inside = !mpi && (rows->depth[i] > 0 || lies_within(s, rows, i));
    const mpiox_extra extra = mpiox_extra_of(rows->extra + rows->extra_at[i], rows->extra + rows->extra_at[i + 1]);
    mpiox_description was = {.handles = 0};
    bool failed = false;

    rows->named[i] = rows->file[i] >= 0 ? rows->file[i] : opened;
    rows->place[i] = place_in_row(rows, i);
    rows->mask[i] = inside ? MPIOX_MASK_INSIDE : MPIOX_MASK_NONE;
    rows->session[i] = MPIOX_UNKNOWN;
    if (mpi && rows->depth[i] <= 0 && !note_call(s, rows, i))
        return false;
    if ((rows->step[i] == MPIOX_STEP_OPEN || rows->step[i] == MPIOX_STEP_OBJECT) &&
        !open_one(s, rows, i, inside, &extra))
        return false;
    if (rows->step[i] == MPIOX_STEP_PAIR && !open_pair(s, rows, i, inside, &extra))
        return false;
    if (!use_handle(s, rows, i, &extra, inside, &was))
        return false;
    if ((extra.requests != NULL || rows->step[i] == MPIOX_STEP_WAIT) && !note_requests(s, rows, i, &extra))
        return false;
    if (rows->layer[i] == MPIOX_TRACE_MPIIO && rows->depth[i] <= 0) {
        file_state *state = state_of(s, rows->named[i], &failed);
        if (state != NULL) {
            state->access = rows->line[i];
            state->access_start = rows->start[i];
            state->access_end = plus(rows->start[i], rows->duration[i]);
        }
    }
    if (rows->mask[i] == MPIOX_MASK_NONE && is_no_io(rows, i, was.handles > 0 ? &was : NULL, &extra))
        rows->mask[i] = MPIOX_MASK_NO_IO;
    rows->parent[i] = rows->mask[i] == MPIOX_MASK_INSIDE || rows->mask[i] == MPIOX_MASK_OWNED ? parent_of(s, rows, i)
                                                                                              : MPIOX_UNKNOWN;
    if (rows->mask[i] == MPIOX_MASK_NONE && rows->named[i] >= 0 && rows->is_system[rows->named[i]])
        rows->mask[i] = MPIOX_MASK_SYSTEM;
    return !failed;
}

int64_t mpiox_handle_resolver_feed(mpiox_handle_resolver *s, const mpiox_rows *rows)
{
    for (int64_t i = 0; i < rows->count; i++) {
        const bool nameless = rows->step[i] == MPIOX_STEP_OPEN && rows->layer[i] == MPIOX_TRACE_MPIIO &&
                              rows->file[i] < 0 && rows->depth[i] >= 0;
        int32_t opened = -1;
        if (nameless) {
            int64_t end;
            opened = opened_inside(rows, i, &end);
            if (end == rows->count && !rows->final)
                return i;
        }
        if (!take(s, rows, i, opened))
            return MPIOX_E_NOMEM;
    }
    return rows->count;
}
