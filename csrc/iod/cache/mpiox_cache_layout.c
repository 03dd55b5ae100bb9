/*
 * mpiox_cache_layout.c - the layout of a delegate's segment.
 *
 * Header, ring, buckets of the map, frames, dirty bytes, pages. Each part begins at a multiple of 64 bytes, the pages
 * at a multiple of 4096. The number of frames is the largest for which all parts fit into the cap, so that no later
 * event can exceed it.
 */
#include "mpiox_cache.h"
#include "mpiox_ring.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_integer.h"

static const uint64_t magic = UINT64_C(0x6d70696f78636163); /* "mpioxcac" */
static const uint64_t version = 10;

enum { LINE = 64, SMALLEST_PAGE = 4096 };

_Static_assert(sizeof(mpiox_frame) == LINE, "a frame is one cache line");

typedef struct layout {
    int64_t ring_at, buckets_at, frames_at, dirty_at, blocks_at, pages_at, total_bytes;
    uint32_t bucket_count;
} layout;

static layout lay_out(const mpiox_cache_geometry *geometry, int64_t frames)
{
    layout at = {.bucket_count = 1};
    while (at.bucket_count < 2 * frames)
        at.bucket_count *= 2;
    at.ring_at = mpiox_round_up((int64_t)sizeof(mpiox_cache_header), LINE);
    at.buckets_at = mpiox_round_up(at.ring_at + mpiox_ring_bytes(geometry->slots, (int32_t)frames), LINE);
    at.frames_at = mpiox_round_up(at.buckets_at + (int64_t)at.bucket_count * (int64_t)sizeof(uint32_t), LINE);
    at.dirty_at = at.frames_at + frames * (int64_t)sizeof(mpiox_frame);
    at.blocks_at = at.dirty_at + frames * (geometry->page_bytes / 8);
    at.pages_at = mpiox_round_up(at.blocks_at + frames * (geometry->page_bytes / 4096) * (int64_t)sizeof(uint32_t),
                                 SMALLEST_PAGE);
    at.total_bytes = at.pages_at + frames * geometry->page_bytes;
    return at;
}

/* The most frames that fit; 0: none. */
static int64_t most_frames(const mpiox_cache_geometry *geometry)
{
    int64_t fits = 0, too_many = geometry->cap_bytes / geometry->page_bytes + 1;
    if (too_many > INT32_MAX / 4)
        too_many = INT32_MAX / 4;
    while (too_many - fits > 1) {
        const int64_t middle = fits + (too_many - fits) / 2;
        if (lay_out(geometry, middle).total_bytes <= geometry->cap_bytes)
            fits = middle;
        else
            too_many = middle;
    }
    return fits;
}

int mpiox_cache_plan(mpiox_cache_geometry *geometry)
{
    const int64_t wanted = geometry->page_bytes;
    if (wanted < SMALLEST_PAGE || wanted % SMALLEST_PAGE != 0 || geometry->slots < 1 ||
        geometry->cap_bytes < wanted / 8)
        return MPIOX_E_ARG;
    mpiox_cache_geometry plan = *geometry;
    for (int64_t parts = 1; parts <= wanted / SMALLEST_PAGE; parts++) {
        if (wanted / SMALLEST_PAGE % parts != 0)
            continue; /* units of pages stay units of smaller pages */
        plan.page_bytes = wanted / parts;
        plan.frames = (int32_t)most_frames(&plan);
        if (plan.frames > 0) {
            *geometry = plan;
            return MPIOX_OK;
        }
    }
    return MPIOX_E_ARG;
}

int64_t mpiox_cache_least_bytes(const mpiox_cache_geometry *geometry)
{
    const mpiox_cache_geometry smallest = {.page_bytes = SMALLEST_PAGE, .slots = geometry->slots};
    const int64_t tables = lay_out(&smallest, 1).total_bytes, eighth = (geometry->page_bytes + 7) / 8;
    return tables > eighth ? tables : eighth;
}

static void point(void *base, mpiox_cache *out)
{
    mpiox_cache_header *header = base;
    char *start = base;
    *out = (mpiox_cache){
        .header = header,
        .ring = (mpiox_ring_area *)(start + header->ring_at),
        .buckets = (_Atomic uint32_t *)(start + header->buckets_at),
        .frames = (mpiox_frame *)(start + header->frames_at),
        .dirty = (_Atomic uint64_t *)(start + header->dirty_at),
        .blocks = (_Atomic uint32_t *)(start + header->blocks_at),
        .pages = start + header->pages_at,
        .page_bytes = header->geometry.page_bytes,
        .frame_count = header->geometry.frames,
        .bucket_count = header->bucket_count,
        .disk = -1,
    };
}

static int make_mutexes(mpiox_cache_header *header)
{
    int code = mpiox_cache_make_mutex(&header->rescue_lock);
    for (int i = 0; i < MPIOX_CACHE_MAX_THREADS && code == 0; i++)
        code = mpiox_cache_make_mutex(&header->life[i].mutex);
    for (int i = 0; i < MPIOX_CACHE_MAX_FILES && code == 0; i++)
        code = mpiox_cache_make_mutex(&header->files[i].error_lock);
    if (code == 0)
        code = mpiox_cache_make_mutex(&header->refused_lock);
    return code == 0 ? MPIOX_OK : MPIOX_E_UNSUPPORTED;
}

int mpiox_cache_format(void *base, const mpiox_cache_geometry *geometry, int delegate, int delegates, mpiox_cache *out)
{
    mpiox_cache_header *header = base;
    const layout at = lay_out(geometry, geometry->frames);
    if (geometry->frames < 1 || at.total_bytes > geometry->cap_bytes)
        return MPIOX_E_ARG;
    header->geometry = *geometry;
    header->ring_at = at.ring_at;
    header->buckets_at = at.buckets_at;
    header->frames_at = at.frames_at;
    header->dirty_at = at.dirty_at;
    header->blocks_at = at.blocks_at;
    header->pages_at = at.pages_at;
    header->total_bytes = at.total_bytes;
    header->bucket_count = at.bucket_count;
    header->delegate = delegate;
    header->delegates = delegates;
    header->pid = getpid();
    (void)gethostname(header->host, sizeof header->host - 1);
    header->started = 1e-9 * (double)mpiox_wall_ns();
    atomic_store(&header->alive_ns, mpiox_wall_ns());
    if (make_mutexes(header) != MPIOX_OK)
        return MPIOX_E_UNSUPPORTED;
    point(base, out);
    if (mpiox_ring_format(out->ring, geometry->slots, geometry->frames) != MPIOX_OK)
        return MPIOX_E_UNSUPPORTED;
    for (uint32_t i = 0; i < at.bucket_count; i++)
        atomic_store_explicit(&out->buckets[i], MPIOX_CACHE_NO_FRAME, memory_order_relaxed);
    for (int32_t i = 0; i < geometry->frames; i++) {
        atomic_store_explicit(&out->frames[i].file, -1, memory_order_relaxed);
        atomic_store_explicit(&out->frames[i].next, MPIOX_CACHE_NO_FRAME, memory_order_relaxed);
    }
    header->version = version;
    header->magic = magic;
    return MPIOX_OK;
}

int mpiox_cache_attach(void *base, int64_t bytes, mpiox_cache *out)
{
    const mpiox_cache_header *header = base;
    if (bytes < (int64_t)sizeof *header || header->magic != magic || header->version != version)
        return MPIOX_E_CORRUPT;
    const mpiox_cache_geometry *geometry = &header->geometry;
    if (geometry->page_bytes < SMALLEST_PAGE || geometry->page_bytes % SMALLEST_PAGE != 0 || geometry->frames < 1 ||
        geometry->slots < 1 || geometry->page_bytes > bytes || geometry->frames > bytes / geometry->page_bytes)
        return MPIOX_E_CORRUPT;
    const layout at = lay_out(geometry, geometry->frames);
    if (at.total_bytes > bytes || header->total_bytes != at.total_bytes || header->ring_at != at.ring_at ||
        header->buckets_at != at.buckets_at || header->frames_at != at.frames_at || header->dirty_at != at.dirty_at ||
        header->blocks_at != at.blocks_at || header->pages_at != at.pages_at || header->bucket_count != at.bucket_count)
        return MPIOX_E_CORRUPT;
    point(base, out);
    return MPIOX_OK;
}
