/*
 * frames.h - a delegate's frames and page ranges, in a model: what it uses of csrc/iod/cache/mpiox_cache.h and
 * csrc/iod/server/mpiox_server_state.h. A model has one frame, one bucket, and two ranges of one page each.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include "model.h"
#include "mpiox_op.h"

enum { PAGE_BYTES = 8 };
enum { MPIOX_FRAME_HIT, MPIOX_FRAME_MISS, MPIOX_FRAME_MOVED, MPIOX_FRAME_QUEUED = 2, MPIOX_CACHE_NO_FRAME = 99 };
enum { MPIOX_OK, MPIOX_PAGE_GONE, MPIOX_E_ARG = -1, MPIOX_RANGE_MOVING = -1 };
#define MPIOX_FRAME_EXCLUSIVE (UINT32_C(1) << 31)

typedef struct mpiox_frame {
    ATOMIC(uint32_t) pins, next, flags;
    ATOMIC(int32_t) file;
    ATOMIC(int64_t) page, dirty, known_end;
    ATOMIC(uint32_t) writes;
    ATOMIC(int32_t) client;
} mpiox_frame;
typedef struct mpiox_file_record {
    int32_t unit_pages, ranges;
    ATOMIC(int16_t) owner_of[2];
} mpiox_file_record;
typedef struct mpiox_cache_header {
    int32_t delegate;
    ATOMIC(uint32_t) table_changes;
    ATOMIC(int32_t) dirty_frames;
    mpiox_file_record files[1];
} mpiox_cache_header;
typedef struct mpiox_cache {
    mpiox_cache_header *header;
    mpiox_frame *frames;
    int32_t frame_count;
    int64_t page_bytes;
} mpiox_cache;

typedef struct mpiox_slot {
    int32_t op, file, client;
    mpiox_op_question question;
    mpiox_op_answer answer;
} mpiox_slot;
typedef struct mpiox_server_migration {
    uint32_t version, committed;
    int64_t committed_stamp, stamp;
    int32_t client, join;
    int16_t to;
} mpiox_server_migration;
typedef struct mpiox_server {
    mpiox_cache cache;
    struct {
        mpiox_server_migration moves[2];
        int64_t stamp;
    } files[1];
    struct {
        int32_t delegate;
    } options;
} mpiox_server;

typedef struct mpiox_page_access {
    int32_t client, file;
    int64_t page;
} mpiox_page_access;
typedef struct span {
    int64_t end;
} span;
typedef int mpiox_backoff;

#define bucket_of(cache, file, page) (&m->bucket)
#define mpiox_cache_is_serving(cache, watch) true
#define mpiox_now() 0
#define mpiox_wait_backoff(backoff) /* of the delegate, which waits for the frame */                                   \
    WAIT_WHILE(atomic_load_explicit(&m->frames[0].pins, memory_order_relaxed) != MPIOX_FRAME_EXCLUSIVE)
#define copy_bytes(cache, access, frame, span) (m->bytes[0] = NEW)
#define mark_bytes(cache, access, frame, span) 1
#define is_torn(cache) false
#define raise(value, to) ((void)0)
#define mpiox_cache_raise_end(cache, file, end) ((void)0)
#define touch(cache, frame) ((void)0)
#define mpiox_ring_push_frame(cache, frame) ((void)0)
#define take_charge(server, move, slot) ((void)0)
#define mpiox_ring_join_of(cache, client) 0
#define MPIOX_COUNT(server, name, by) ((void)0)

static void prepare_frames(mpiox_cache_header *header, mpiox_frame *frame, mpiox_server *server)
{
    header->files[0].unit_pages = 1;
    header->files[0].ranges = 2;
    atomic_store_explicit(&frame->next, MPIOX_CACHE_NO_FRAME, memory_order_relaxed);
    server->cache.header = header;
    server->cache.frames = frame;
    server->cache.frame_count = 1;
    server->cache.page_bytes = PAGE_BYTES;
}

#endif
