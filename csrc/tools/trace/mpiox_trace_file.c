/*
 * mpiox_trace_file.c - writing the trace file of this process.
 *
 * Problem.   Records must survive the death of the process, and no system call is affordable per record.
 * Algorithm. The file grows by windows of 1 MiB, whose disk space is taken before they are mapped, so that a full disk
 *            is an error of a system call rather than a deadly signal. Items are written into the mapping; then
 *            `committed` of the mapped header is stored with release order. The kernel keeps mapped pages of a process
 *            that dies. No descriptor stays open in between: programs close ones that are not their own. If the next
 *            item does not fit into a block, the block is finished with its checksum.
 * Guarantee. A reader finds whole items below `committed`, at every moment. A trace that can grow no further reports
 *            this once, and stays valid.
 */
#include "mpiox_trace_file.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_trace_clock.h"
#include "mpiox_trace_place.h"
#include "mpiox_trace_system.h"

enum {
    SLOTS_END = MPIOX_TRACEFILE_SLOTS_AT + MPIOX_TRACEFILE_SLOTS * (int)sizeof(mpiox_tracefile_slot),
    WINDOW_BLOCKS = 16,
    WINDOW_BYTES = WINDOW_BLOCKS * MPIOX_TRACEFILE_BLOCK_BYTES
};

static const char suffix[] = ".mpioxtrace";
static mpiox_tracefile_header *header; /* mapped; NULL: there is no file */
static uint8_t *window;
static int64_t window_offset; /* in the file */
static mpiox_tracefile_block *block;
static bool is_selected;

mpiox_trace_writer mpiox_trace_file;
static mpiox_trace_writer *const w = &mpiox_trace_file;
static mpiox_trace_place *const here = &mpiox_trace_here;

_Static_assert(sizeof(mpiox_tracefile_header) <= MPIOX_TRACEFILE_SLOTS_AT &&
                   (int)SLOTS_END <= (int)MPIOX_TRACEFILE_HEADER_BYTES,
               "the slots lie between the header's numbers and the first block");

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static bool map_header(int fd)
{
    header = mpiox_trace_allocate(fd, 0, SLOTS_END) == 0 && mpiox_trace_cut(fd, MPIOX_TRACEFILE_HEADER_BYTES) == 0
                 ? mpiox_trace_map(fd, 0, sizeof *header)
                 : NULL;
    if (header == NULL)
        return false;
    header->version = MPIOX_TRACEFILE_VERSION;
    header->header_bytes = MPIOX_TRACEFILE_HEADER_BYTES;
    header->block_bytes = MPIOX_TRACEFILE_BLOCK_BYTES;
    header->state = MPIOX_TRACEFILE_RUNNING;
    header->committed = MPIOX_TRACEFILE_HEADER_BYTES;
    header->started = mpiox_trace_now();
    header->unix_minus_monotonic = mpiox_trace_unix() - header->started;
    header->pid = getpid();
    header->parent = getppid();
    header->rank = here->rank;
    header->ranks = here->ranks;
    header->selected = is_selected;
    memcpy(header->host, here->host, sizeof header->host);
    mpiox_trace_place_command(header->command, sizeof header->command);
    memcpy(header->magic, MPIOX_TRACEFILE_MAGIC, sizeof header->magic);
    uint8_t *begin = mpiox_trace_map(fd, 0, SLOTS_END);
    if (begin != NULL)
        atomic_store_explicit(&w->slots, (mpiox_tracefile_slot *)(void *)(begin + MPIOX_TRACEFILE_SLOTS_AT),
                              memory_order_release);
    return true;
}

static void drop(void)
{
    atomic_store_explicit(&w->slots, NULL, memory_order_relaxed);
    mpiox_trace_unmap(window, WINDOW_BYTES);
    mpiox_trace_unmap(header, sizeof *header);
    header = NULL;
    window = w->at = w->block_end = NULL;
    w->committed = NULL;
    block = NULL;
    w->records = 0;
}

bool mpiox_trace_file_ready(void)
{
    if (header != NULL || here->stopped)
        return header != NULL && !here->stopped;
    const int fd = mpiox_trace_place_create(suffix);
    if (fd < 0) {
        mpiox_trace_place_stop("no file can be created here, check that the folder can be written");
        return false;
    }
    const bool mapped = map_header(fd);
    mpiox_trace_close(fd);
    if (!mapped) {
        drop();
        mpiox_trace_place_stop("no space left, or the file cannot be mapped: free space, or name another folder");
        return false;
    }
    window_offset = MPIOX_TRACEFILE_HEADER_BYTES - WINDOW_BYTES;
    w->committed = (_Atomic uint64_t *)(void *)&header->committed;
    atomic_fetch_add(&w->generation, 1);
    return true;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void finish_block(void)
{
    const uint32_t used = (uint32_t)(w->at - (uint8_t *)block);

    block->checksum = mpiox_tracefile_checksum(block, used);
    atomic_store_explicit((_Atomic uint32_t *)(void *)&block->used, used, memory_order_release);
}

static bool next_window(void)
{
    const int64_t offset = window_offset + WINDOW_BYTES;
    const int fd = mpiox_trace_open(here->path);
    uint8_t *mapped = fd >= 0 && mpiox_trace_allocate(fd, offset, offset + WINDOW_BYTES) == 0
                          ? mpiox_trace_map(fd, offset, WINDOW_BYTES)
                          : NULL;

    if (fd >= 0)
        mpiox_trace_close(fd);
    if (mapped == NULL)
        return false;
    mpiox_trace_unmap(window, WINDOW_BYTES);
    window = mapped;
    window_offset = offset;
    w->to_offset = (uint64_t)offset - (uint64_t)(uintptr_t)window;
    w->block_end = window;
    return true;
}

/* Room for `bytes` more in the present block, else in the next one. */
static bool room(int64_t bytes)
{
    if (here->stopped || header == NULL)
        return false;
    if (block != NULL && w->block_end - w->at >= bytes)
        return true;
    if (block != NULL)
        finish_block();
    if ((block == NULL || w->block_end == window + WINDOW_BYTES) && !next_window()) {
        mpiox_trace_file_end(MPIOX_TRACEFILE_FULL, false);
        mpiox_trace_place_stop("the trace cannot grow, no space is left: free space, or name another folder");
        return false;
    }
    block = (mpiox_tracefile_block *)(void *)w->block_end;
    const int64_t now = mpiox_trace_now();
    *block = (mpiox_tracefile_block){.magic = MPIOX_TRACEFILE_BLOCK_MAGIC, .first = w->records, .time = now};
    mpiox_tracefile_reset(&w->state, now);
    w->at = (uint8_t *)(block + 1);
    w->block_end += MPIOX_TRACEFILE_BLOCK_BYTES;
    mpiox_trace_file_commit();
    return true;
}

bool mpiox_trace_file_record(const mpiox_tracefile_record *record)
{
    if (!room(MPIOX_TRACEFILE_ITEM_MAX))
        return false;
    mpiox_trace_file_append(record);
    return true;
}

bool mpiox_trace_file_begin(const mpiox_tracefile_record *call)
{
    if (!room(MPIOX_TRACEFILE_ITEM_MAX))
        return false;
    uint8_t *at = w->at;
    *at++ = MPIOX_TRACEFILE_BEGIN;
    *at++ = call->operation;
    at = mpiox_put(at, (uint64_t)call->thread);
    at = mpiox_put(at, (uint64_t)call->depth);
    w->at = mpiox_put(at, mpiox_zigzag(call->start - w->state.time));
    w->state.time = call->start;
    mpiox_trace_file_commit();
    return true;
}

bool mpiox_trace_file_cancel(int64_t thread)
{
    if (!room(MPIOX_TRACEFILE_ITEM_MAX))
        return false;
    *w->at++ = MPIOX_TRACEFILE_CANCEL;
    w->at = mpiox_put(w->at, (uint64_t)thread);
    mpiox_trace_file_commit();
    return true;
}

static void put_text(const char *text, size_t length)
{
    w->at = mpiox_put(w->at, length);
    memcpy(w->at, text, length);
    w->at += length;
    mpiox_trace_file_commit();
}

bool mpiox_trace_file_text(int64_t number, const char *text)
{
    const size_t length = strnlen(text, MPIOX_TRACEFILE_TEXT_MAX);

    if (!room((int64_t)length + MPIOX_TRACEFILE_ITEM_MAX))
        return false;
    *w->at++ = MPIOX_TRACEFILE_TEXT;
    w->at = mpiox_put(w->at, (uint64_t)number);
    put_text(text, length);
    return true;
}

bool mpiox_trace_file_operation(int operation, int layer, const char *name)
{
    const size_t length = strnlen(name, MPIOX_TRACEFILE_TEXT_MAX);

    if (!room((int64_t)length + MPIOX_TRACEFILE_ITEM_MAX))
        return false;
    *w->at++ = MPIOX_TRACEFILE_OPERATION;
    *w->at++ = (uint8_t)operation;
    *w->at++ = (uint8_t)layer;
    put_text(name, length);
    return true;
}

void mpiox_trace_file_select(bool selected)
{
    is_selected = selected;
}

bool mpiox_trace_file_leave_out(const mpiox_tracefile_left_out *left_out, const char *name)
{
    const size_t length = name != NULL ? strlen(name) : 0, most = MPIOX_TRACEFILE_LEFT_OUT_BYTES - 1;

    if (header == NULL)
        return false;
    header->left_out = *left_out;
    strcpy(header->left_out_name, length > 0 ? name + (length > most ? length - most : 0) : "");
    return true;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

void mpiox_trace_file_rank(void)
{
    if (header == NULL)
        return;
    header->rank = here->rank;
    header->ranks = here->ranks;
    mpiox_trace_place_rename(suffix);
}

void mpiox_trace_file_end(int how, bool again)
{
    if (header == NULL)
        return;
    if (block != NULL && block->used == 0)
        finish_block();
    const int64_t bytes = (int64_t)header->committed;
    header->state = (uint32_t)how;
    const int fd = mpiox_trace_open(here->path);
    if (fd >= 0) {
        mpiox_trace_cut(fd, bytes);
        mpiox_trace_close(fd);
    }
    drop();
    here->stopped = here->stopped || !again;
}

void mpiox_trace_file_mark(int how)
{
    if (header == NULL)
        return;
    header->state = (uint32_t)how;
}

void mpiox_trace_file_forget(void)
{
    drop();
}
