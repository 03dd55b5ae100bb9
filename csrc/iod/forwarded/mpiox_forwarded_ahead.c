/*
 * mpiox_forwarded_ahead.c - which pages a rank will read next.
 *
 * Problem.   A file system reads ahead in the file; a rank reads ahead in its view, which only the rank knows.
 * Algorithm. Two reads in a row at the same distance in the stream make a stride. From the stride follow the positions
 *            of the next reads and, through the view, their pages. The rank sends those that it has not named yet to
 *            their owners, without waiting. The delegate decides whether it reads them, and how far ahead, by how
 *            useful earlier ones were.
 */
#include <string.h>

#include "mpiox_forwarded_impl.h"

enum { STEADY = 2 }; /* reads at the same stride before the first page is named */

typedef struct wanted { /* pages by owner, in the order in which they will be read */
    int64_t page[MPIOX_OP_AHEAD];
    int32_t count;
} wanted;

/* Learn from this read; false: no stride yet. */
static bool learn(mpiox_forwarded_reader *reader, int64_t position, int64_t length)
{
    const int64_t stride = position - reader->position;
    const bool same = stride != 0 && stride == reader->stride && length == reader->length;

    reader->streak = same ? reader->streak + 1 : 0;
    if (!same)
        reader->asked = -1;
    reader->position = position;
    reader->length = length;
    reader->stride = stride;
    return reader->streak >= STEADY;
}

static void add_pages(int64_t first, int64_t last, int64_t depth, wanted *out)
{
    for (int64_t page = first; page <= last && out->count < depth; page++)
        if (out->count == 0 || out->page[out->count - 1] != page)
            out->page[out->count++] = page;
}

/* Name the pages to their owners, a message each. */
static void send(mpiox_forwarded *forwarded, const wanted *pages)
{
    for (int32_t owner = 0; owner < forwarded->owners; owner++) {
        const mpiox_process *delegate = mpiox_forwarded_owner(forwarded, owner);
        mpiox_op_ahead mine = {0};

        for (int32_t i = 0; i < pages->count; i++)
            if (forwarded->owner_of[mpiox_forwarded_range_of(forwarded, pages->page[i] * forwarded->page_bytes)] ==
                owner)
                mine.page[mine.count++] = pages->page[i];
        if (mine.count == 0 || !delegate->local)
            continue;
        mpiox_slot *slot = mpiox_ring_take(&delegate->cache);
        if (!slot)
            continue;
        slot->op = MPIOX_OP_AHEAD_ONLY;
        slot->client = delegate->client;
        slot->file = forwarded->index[owner];
        slot->question.ahead_only = mine;
        mpiox_ring_post(&delegate->cache, slot);
    }
}

/* How many strides it takes from `position`, in `page`, to get out of the page. */
static int64_t strides_out(const mpiox_forwarded *forwarded, int64_t origin, int64_t position, int64_t stride,
                           int64_t page)
{
    const int64_t bytes = forwarded->page_bytes, border = (stride > 0 ? page + 1 : page) * bytes - origin;
    const int64_t outside = border <= 0 ? 0 : mpiox_typemap_position(forwarded->file->view, border);
    const int64_t way = stride > 0 ? outside - position + stride - 1 : position - outside + 1 - stride - 1;
    const int64_t strides = way / (stride > 0 ? stride : -stride);

    return strides > 1 ? strides : 1;
}

/* Pages of the reads that come, from the one after this page on. */
static void collect(const mpiox_forwarded *forwarded, int64_t origin, int64_t here, wanted *out)
{
    const mpiox_forwarded_reader *reader = &forwarded->reader;
    const int64_t depth = forwarded->file->hints.delegate_prefetch, stride = reader->stride;
    int64_t position = reader->position, page = here, jump;

    for (int64_t tries = 0; tries < 4 * depth && out->count < depth; tries++) {
        int64_t first, last;

        if (__builtin_mul_overflow(strides_out(forwarded, origin, position, stride, page), stride, &jump) ||
            __builtin_add_overflow(position, jump, &position) || position < 0 ||
            !mpiox_independent_range(forwarded->file->view, origin, position, reader->length, &first, &last))
            return;
        first /= forwarded->page_bytes;
        last = (last - 1) / forwarded->page_bytes;
        add_pages(first == here ? first + 1 : first, last, depth, out);
        page = stride > 0 ? last : first;
    }
}

int32_t mpiox_forwarded_rest(const mpiox_forwarded *forwarded, int64_t origin, int64_t from, int64_t to, int32_t owner,
                             int64_t *pages)
{
    const mpiox_typemap *view = forwarded->file->view;
    const int32_t depth = forwarded->file->hints.delegate_prefetch;
    int32_t count = 0;

    for (int32_t looked = 0; from < to && count < depth && looked < depth * forwarded->owners; looked++) {
        const int64_t page = (origin + mpiox_typemap_offset(view, from)) / forwarded->page_bytes,
                      border = (page + 1) * forwarded->page_bytes - origin;

        if (forwarded->owner_of[mpiox_forwarded_range_of(forwarded, page * forwarded->page_bytes)] == owner)
            pages[count++] = page;
        from = border <= 0 ? to : mpiox_typemap_position(view, border);
    }
    return count;
}

void mpiox_forwarded_read_ahead(mpiox_forwarded *forwarded, int64_t origin, int64_t position, int64_t length)
{
    mpiox_forwarded_reader *reader = &forwarded->reader;
    int64_t first, last;
    wanted pages = {.count = 0};

    if (forwarded->file->hints.delegate_prefetch == 0 || pthread_mutex_trylock(&reader->lock) != 0)
        return;
    if (learn(reader, position, length) &&
        mpiox_independent_range(forwarded->file->view, origin, position, length, &first, &last)) {
        const int64_t here = (last - 1) / forwarded->page_bytes;

        if (here != reader->asked) { /* once a page, not once a read */
            reader->asked = here;
            collect(forwarded, origin, here, &pages);
        }
    }
    pthread_mutex_unlock(&reader->lock);
    if (pages.count > 0)
        send(forwarded, &pages);
}
