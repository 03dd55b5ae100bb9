/* mpiox_message_entries.c - see mpiox_message_entries.h. */
#include "mpiox_message_entries.h"

#include <assert.h>
#include <string.h>

#include "mpiox_copy.h"
#include "mpiox_typemap_runs.h"

/* ---- the chunks of a window ------------------------------------------------------------------------------------ */

/* Divides every offset and length of a chunk's part of an extent: its ends and the chunk's may cut pieces. */
static int64_t granule_in(const mpiox_messages *m, mpiox_extent extent)
{
    const int64_t ends = mpiox_common_divisor(extent.offset, extent.length);
    return mpiox_common_divisor(mpiox_common_divisor(m->call->reduction.granule, m->chunk_data), ends);
}

/* Do other nodes know this rank's view? */
static bool is_known(const mpiox_messages *m)
{
    return m->known[m->base.b->file->topology->rank].at >= 0;
}

void mpiox_chunks_begin(const mpiox_messages *m, mpiox_chunks *chunks, int aggregator, int64_t round)
{
    *chunks = (mpiox_chunks){.m = m};
    chunks->n = mpiox_window_extents(m->call, aggregator, round, m->base.b->extents[0]);
}

/* The accessed part of an extent, from *from to *to. */
static bool overlap(const mpiox_messages *m, mpiox_extent extent, int64_t *from, int64_t *to)
{
    const mpiox_call *call = m->call;
    const mpiox_file *file = m->base.b->file;
    if (m->exchange->whole) {
        const mpiox_interval node = m->base.b->nodes[file->topology->node].range;
        *from = extent.offset > node.first ? extent.offset : node.first;
        *to = extent.offset + extent.length < node.last ? extent.offset + extent.length : node.last;
        return *from < *to;
    }
    return extent.offset < call->last && extent.offset + extent.length > call->first &&
           mpiox_window_overlap(file->view, file->displacement, call->request->position, call->request->length, extent,
                                from, to);
}

bool mpiox_chunks_next(mpiox_chunks *chunks, mpiox_message_entry *entry)
{
    const mpiox_messages *m = chunks->m;
    const mpiox_file *file = m->base.b->file;
    while (chunks->from >= chunks->to) {
        if (chunks->next == chunks->n)
            return false;
        chunks->extent = m->base.b->extents[0][chunks->next++];
        if (!overlap(m, chunks->extent, &chunks->from, &chunks->to))
            chunks->from = chunks->to = 0;
    }
    int64_t to = chunks->from + m->chunk_data < chunks->to ? chunks->from + m->chunk_data : chunks->to;
    *entry = (mpiox_message_entry){file->topology->rank, 0, chunks->from, 0};
    if (m->exchange->whole) {
        entry->rank = MPIOX_ENTRY_EXTENT;
    } else if (!is_known(m)) {
        entry->rank = MPIOX_ENTRY_RUNS;
        entry->position = file->displacement + mpiox_typemap_offset(file->view, chunks->from);
        const int64_t used = mpiox_typemap_runs_measure(file->view, chunks->from, &to, granule_in(m, chunks->extent),
                                                        m->chunk_data & ~(int64_t)7);
        entry->run_bytes = (int32_t)mpiox_entry_padded(used);
    }
    entry->length = to - chunks->from;
    chunks->bytes = (int64_t)sizeof *entry + entry->run_bytes + mpiox_entry_padded(entry->length);
    assert(chunks->bytes <= m->half_bytes - m->step_bytes && to > chunks->from);
    chunks->from = to;
    return true;
}

void mpiox_chunk_pack(const mpiox_chunks *chunks, const mpiox_message_entry *entry, char *bytes)
{
    const mpiox_messages *m = chunks->m;
    const mpiox_file *file = m->base.b->file;
    char *runs = bytes + sizeof *entry;
    int64_t position = entry->position;
    memcpy(bytes, entry, sizeof *entry);
    if (entry->rank == MPIOX_ENTRY_RUNS) {
        position = mpiox_typemap_position(file->view, entry->position - file->displacement);
        memset(runs + entry->run_bytes - 8, 0, 8); /* the padding: no run */
        mpiox_typemap_runs_write(file->view, position, position + entry->length, granule_in(m, chunks->extent), runs);
    }
    if (!m->call->write || entry->length == 0)
        return;
    const mpiox_memory_layout target = {runs + entry->run_bytes, NULL, 0, 0};
    if (mpiox_call_copy(m->call, &target, position, entry->length) != MPIOX_OK)
        ((mpiox_message_entry *)(void *)bytes)->rank = MPIOX_ENTRY_FAILED;
}

void mpiox_entry_take(const mpiox_messages *m, const char *bytes)
{
    const mpiox_file *file = m->base.b->file;
    const mpiox_request *request = m->call->request;
    mpiox_message_entry entry;
    memcpy(&entry, bytes, sizeof entry);
    char *data = (char *)(uintptr_t)bytes + sizeof entry + entry.run_bytes;
    int64_t from = entry.position, to = entry.position + entry.length;
    mpiox_memory_layout source = {data, NULL, 0, 0};
    if (entry.rank == MPIOX_ENTRY_EXTENT) {
        const mpiox_extent extent = {entry.position, entry.length};
        if (entry.length == 0 || extent.offset >= m->call->last || extent.offset + extent.length <= m->call->first ||
            !mpiox_window_overlap(file->view, file->displacement, request->position, request->length, extent, &from,
                                  &to))
            return;
        source = (mpiox_memory_layout){data, file->view, file->displacement - extent.offset, from};
    } else if (entry.rank == MPIOX_ENTRY_RUNS) {
        from = mpiox_typemap_position(file->view, entry.position - file->displacement);
        to = from + entry.length;
    }
    mpiox_call_copy(m->call, &source, from, to - from);
}

/* ---- at the aggregator ------------------------------------------------------------------------------------------- */

/* The place of the window's extent that contains [first, last) in its collective buffer; -1: no extent does. */
static int64_t find_extent(const mpiox_inbox *inbox, int64_t first, int64_t last, mpiox_extent *extent)
{
    int64_t low = 0, high = inbox->n_extents;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (inbox->extents[middle].offset <= first)
            low = middle;
        else
            high = middle;
    }
    if (high <= low || first < inbox->extents[low].offset ||
        last > inbox->extents[low].offset + inbox->extents[low].length)
        return -1;
    *extent = inbox->extents[low];
    return inbox->offsets[low];
}

/* The view that the entry is of, NULL: not known here. */
static const mpiox_typemap *view_of(const mpiox_messages *m, const mpiox_message_entry *entry, int64_t *displacement)
{
    if (entry->rank < 0 || entry->rank >= m->base.b->file->topology->size || m->known[entry->rank].at < 0)
        return NULL;
    *displacement = m->known[entry->rank].displacement;
    return (const mpiox_typemap *)(const void *)(m->store + m->known[entry->rank].at);
}

/* The same for the stream bytes of a view that an entry names; *last: where they end in the file. */
static int64_t find_part(const mpiox_inbox *inbox, const mpiox_message_entry *entry, const mpiox_typemap *view,
                         int64_t displacement, mpiox_extent *extent, int64_t *last)
{
    if (entry->position < 0 || entry->length <= 0)
        return -1;
    *last = displacement + mpiox_typemap_offset(view, entry->position + entry->length - 1) + 1;
    return find_extent(inbox, displacement + mpiox_typemap_offset(view, entry->position), *last, extent);
}

static void mark(const mpiox_messages *m, unsigned char *map, int64_t at, int64_t length)
{
    if (m->call->mark)
        memset(map + at / m->call->granule, 1, (size_t)(length / m->call->granule));
}

static inline void copy_piece(char *to, const char *from, int64_t length)
{
    if (length == 8)
        memcpy(to, from, 8);
    else
        memcpy(to, from, (size_t)length);
}

/* An extent of the window, in the collective buffer. */
typedef struct buffered {
    mpiox_extent extent; /* of the file */
    char *bytes;         /* of the extent, in the collective buffer */
    unsigned char *map;  /* of the extent, one byte for each granule: 1 if it is written; NULL: a read has none */
} buffered;

/* The pieces of an entry that lists them as `list`, between `data` and the extent. Returns the bytes moved, -1 when a
 * piece lies outside. Reads stop at `end`, a file offset. */
static int64_t move_runs(const mpiox_messages *m, const mpiox_message_entry *entry, const char *list,
                         const buffered *place, char *data, int64_t end)
{
    const bool write = m->call->write;
    const mpiox_extent extent = place->extent;
    char *const buffer = place->bytes;
    int64_t moved = 0;
    mpiox_typemap_runs runs;
    mpiox_run run;
    mpiox_typemap_runs_begin(&runs, list, entry->run_bytes, granule_in(m, extent), entry->position);
    while (moved < entry->length) {
        if (!mpiox_typemap_runs_next(&runs, &run) || run.offset < extent.offset ||
            runs.offset > extent.offset + extent.length || run.length > (entry->length - moved) / run.count)
            return -1;
        for (int64_t i = 0, offset = run.offset; i < run.count; i++, offset += run.stride) {
            const int64_t at = offset - extent.offset, length = offset + run.length <= end ? run.length : end - offset;
            if (length <= 0)
                return moved;
            if (write)
                copy_piece(buffer + at, data + moved, length);
            else
                copy_piece(data + moved, buffer + at, length);
            if (write)
                mark(m, place->map, at, length);
            moved += length;
            if (length < run.length)
                return moved;
        }
    }
    return moved;
}

bool mpiox_entry_place(const mpiox_messages *m, const mpiox_message_entry *entry, const char *runs, const char *data)
{
    mpiox_buffers *b = m->base.b;
    const mpiox_inbox *inbox = &m->inbox;
    char *buffer = mpiox_slot_buffer(b, inbox->slot);
    unsigned char *map = mpiox_slot_map(b, inbox->slot);
    mpiox_extent extent;
    if (entry->rank == MPIOX_ENTRY_RUNS) {
        const int64_t at = find_extent(inbox, entry->position, entry->position + 1, &extent);
        if (at < 0)
            return false;
        const buffered place = {extent, buffer + at, map + at / m->call->granule};
        return move_runs(m, entry, runs, &place, (char *)(uintptr_t)data, INT64_MAX) == entry->length;
    }
    int64_t displacement, last;
    const mpiox_typemap *view = view_of(m, entry, &displacement);
    const int64_t at = view ? find_part(inbox, entry, view, displacement, &extent, &last) : -1;
    if (at < 0)
        return false;
    const mpiox_memory_layout file = {buffer + at, view, displacement - extent.offset, entry->position};
    const mpiox_memory_layout source = {(char *)(uintptr_t)data, NULL, 0, 0};
    mpiox_copy(&file, &source, entry->length);
    if (m->call->mark)
        mpiox_copy_mark(map + at / m->call->granule, 0, m->call->granule, &file, entry->length);
    return true;
}

bool mpiox_entry_fetch(const mpiox_messages *m, mpiox_message_entry *entry, const char *runs, char *data)
{
    mpiox_buffers *b = m->base.b;
    const mpiox_inbox *inbox = &m->inbox;
    const int64_t eof = atomic_load(&inbox->slot->eof);
    char *buffer = mpiox_slot_buffer(b, inbox->slot);
    mpiox_extent extent;
    if (entry->rank == MPIOX_ENTRY_RUNS) {
        const int64_t at = find_extent(inbox, entry->position, entry->position + 1, &extent);
        if (at < 0)
            return false;
        const buffered place = {extent, buffer + at, NULL};
        entry->length = move_runs(m, entry, runs, &place, data, eof);
        return entry->length >= 0;
    }
    if (entry->rank == MPIOX_ENTRY_EXTENT) {
        const int64_t at = find_extent(inbox, entry->position, entry->position + entry->length, &extent);
        if (at < 0)
            return false;
        entry->length = mpiox_clamp(eof - entry->position, 0, entry->length);
        memcpy(data, buffer + at + entry->position - extent.offset, (size_t)entry->length);
        return true;
    }
    int64_t displacement, last;
    const mpiox_typemap *view = view_of(m, entry, &displacement);
    const int64_t at = view ? find_part(inbox, entry, view, displacement, &extent, &last) : -1;
    if (at < 0)
        return false;
    if (last > eof)
        entry->length = mpiox_clamp(mpiox_typemap_position(view, eof - displacement) - entry->position, 0,
                                    entry->length);
    const mpiox_memory_layout target = {data, NULL, 0, 0};
    const mpiox_memory_layout file = {buffer + at, view, displacement - extent.offset, entry->position};
    mpiox_copy(&target, &file, entry->length);
    return true;
}
