/* mpiio_ext_pioneer.c - the C part of PIONEER's phases, for Python; the functions here only pass their arguments on. */
#include "mpiio_ext_tools.h"
#include "mpiox_diff.h"
#include "mpiox_handle_resolution.h"

int mpiio_ext_diff(const mpiio_ext_diff_sequence *a, const mpiio_ext_diff_sequence *b, int32_t symbols, int32_t effort,
                   int *minimal)
{
    const mpiox_diff_sequence first = {.elements = a->elements, .count = a->count, .common = a->common};
    const mpiox_diff_sequence second = {.elements = b->elements, .count = b->count, .common = b->common};
    return mpiox_diff(&first, &second, symbols, effort, minimal);
}

static mpiox_handle_resolver *inner(mpiio_ext_handle_resolver *sanitizer)
{
    return (mpiox_handle_resolver *)(void *)sanitizer;
}

mpiio_ext_handle_resolver *mpiio_ext_handle_resolver_new(void)
{
    return (mpiio_ext_handle_resolver *)(void *)mpiox_handle_resolver_new();
}

int64_t mpiio_ext_handle_resolver_feed(mpiio_ext_handle_resolver *sanitizer, const mpiio_ext_rows *rows)
{
    const mpiox_rows inside = {.count = rows->count,
                               .step = rows->step,
                               .layer = rows->layer,
                               .depth = rows->depth,
                               .file = rows->file,
                               .thread = rows->thread,
                               .line = rows->line,
                               .start = rows->start,
                               .duration = rows->duration,
                               .handle = rows->handle,
                               .result = rows->result,
                               .offset = rows->offset,
                               .moved = rows->moved,
                               .extra = rows->extra,
                               .extra_at = rows->extra_at,
                               .is_system = rows->is_system,
                               .final = rows->final,
                               .named = rows->named,
                               .place = rows->place,
                               .mask = rows->mask,
                               .parent = rows->parent,
                               .session = rows->session};
    return mpiox_handle_resolver_feed(inner(sanitizer), &inside);
}

void mpiio_ext_handle_resolver_free(mpiio_ext_handle_resolver *sanitizer)
{
    mpiox_handle_resolver_free(inner(sanitizer));
}
