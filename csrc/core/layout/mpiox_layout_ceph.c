/*
 * mpiox_layout_ceph.c - reading ceph.file.layout (docs.ceph.com, "File layouts").
 *
 * A file is cut into stripe units, which go round stripe_count objects until each has object_size bytes; then the next
 * stripe_count objects follow. Objects are spread over the OSDs by a hash, so that the layout does not name servers:
 * only the number of objects over which the stripes of one set go is known. object_size has to be a multiple of
 * stripe_unit.
 */
#include "mpiox_layout_ceph.h"

#include <stddef.h>

#include "mpiox_layout_span.h"

int mpiox_layout_parse_ceph(const void *value, int64_t value_bytes, mpiox_layout_ceph *out)
{
    mpiox_span rest = {value, value == NULL || value_bytes < 0 ? 0 : value_bytes};
    mpiox_layout_ceph found = {.stripe_unit = 0};
    for (;;) {
        mpiox_span word = mpiox_span_word(&rest);
        int64_t *number = NULL;
        if (word.bytes == 0)
            break;
        if (mpiox_span_skip(&word, "stripe_unit="))
            number = &found.stripe_unit;
        else if (mpiox_span_skip(&word, "stripe_count="))
            number = &found.stripe_count;
        else if (mpiox_span_skip(&word, "object_size="))
            number = &found.object_size;
        else if (mpiox_span_skip(&word, "pool="))
            mpiox_span_copy(word, false, found.pool, (int64_t)sizeof found.pool);
        else if (mpiox_span_skip(&word, "pool_namespace="))
            mpiox_span_copy(word, false, found.space, (int64_t)sizeof found.space);
        if (number != NULL && !mpiox_span_number(mpiox_span_trim(word), number))
            return MPIOX_E_CORRUPT;
    }
    if (found.stripe_unit < 1 || found.stripe_count < 1 || found.stripe_count > INT32_MAX ||
        found.object_size < found.stripe_unit || found.object_size % found.stripe_unit != 0)
        return MPIOX_E_CORRUPT;
    *out = found;
    return MPIOX_OK;
}
