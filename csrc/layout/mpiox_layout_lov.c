/*
 * mpiox_layout_lov.c - reading a Lustre layout from the value of the lustre.lov extended attribute.
 *
 * Format (public on-disk format of Lustre, little-endian, packed):
 *   plain     u32 magic, u32 pattern, 16 bytes object id, u32 stripe_size, u16 stripe_count, u16 generation,
 *             [v3: 16 bytes pool name], stripe_count objects of 24 bytes (none when released or only a template): 16
 *             bytes object id, u32 generation, u32 index of the target (OST)
 *   composite u32 magic, u32 size, u32 generation, u16 flags, u16 entry_count, 16 bytes (mirrors, padding), then
 *             entry_count entries of 48 bytes: u32 id, u32 flags, u64 extent start, u64 extent end, u32 offset,
 *             u32 size, 16 bytes (generation, time stamp, padding). offset/size locate a plain layout inside the value.
 * The value comes from outside: every field is read through bounds-checked accessors, and offsets are compared by
 * subtraction so that no sum can wrap.
 *
 * A composite layout has no one stripe size. File domains are cut where most of the file lies, so the component with
 * the largest extent counts (usually the last, open-ended one); the first of equals, which is the first mirror.
 */
#include "mpiox_layout.h"

#include <stddef.h>

#define LOV_MAGIC_V1 0x0BD10BD0u
#define LOV_MAGIC_V3 0x0BD30BD0u
#define LOV_MAGIC_COMPOSITE 0x0BD60BD0u
#define LOV_V1_BYTES 32
#define LOV_V3_BYTES 48
#define LOV_OBJECT_BYTES 24
#define LOV_OBJECT_TARGET 20    /* where the index of the target (OST) is in an object */
#define LOV_LAST_TARGET 0xFFFFu /* indices are 16 bits wide wherever they name a target */
#define LOV_COMPOSITE_BYTES 32
#define LOV_ENTRY_BYTES 48
#define LOV_PATTERN_RAID0 0x001u
#define LOV_PATTERN_OVERSTRIPED 0x200u
#define LOV_PATTERN_RELEASED 0x80000000u
#define LOV_ENTRY_STALE 0x01u     /* a mirror that is out of date */
#define LOV_ENTRY_EXTENSION 0x40u /* a self-extending layout's reserve: its stripe_size is not one */
#define LOV_ENTRY_PARITY 0x80u    /* erasure code, no data */
#define LOV_ALL_STRIPES 0xFFFFu   /* a template that means every server */

typedef struct bytes {
    const unsigned char *data;
    uint64_t size;
} bytes;

static uint64_t read_le(bytes b, uint64_t offset, unsigned width)
{
    uint64_t value = 0;
    if (offset > b.size || b.size - offset < width)
        return 0; /* callers have checked; this keeps a mistake there from reading out of bounds */
    for (unsigned i = 0; i < width; i++)
        value |= (uint64_t)b.data[offset + i] << (8 * i);
    return value;
}

typedef struct plain_layout {
    int64_t stripe_size;
    int32_t servers; /* LOV_ALL_STRIPES or 0 in a template that does not say */
    bytes objects;   /* of 0 bytes: none */
} plain_layout;

static int parse_plain(bytes b, plain_layout *out)
{
    if (b.size < LOV_V1_BYTES)
        return MPIOX_E_CORRUPT;
    uint32_t magic = (uint32_t)read_le(b, 0, 4), pattern = (uint32_t)read_le(b, 4, 4);
    if (magic != LOV_MAGIC_V1 && magic != LOV_MAGIC_V3)
        return MPIOX_E_CORRUPT;
    uint64_t header = magic == LOV_MAGIC_V1 ? LOV_V1_BYTES : LOV_V3_BYTES;
    uint64_t size = read_le(b, 24, 4), count = read_le(b, 28, 2);
    if (b.size < header || size == 0)
        return MPIOX_E_CORRUPT;
    uint32_t known = LOV_PATTERN_RAID0 | LOV_PATTERN_OVERSTRIPED | LOV_PATTERN_RELEASED;
    if ((pattern & LOV_PATTERN_RAID0) == 0 || (pattern & ~known) != 0)
        return MPIOX_E_CORRUPT;
    /* Either no objects at all, or as many as the header promises. */
    uint64_t objects = (pattern & LOV_PATTERN_RELEASED) != 0 || count == LOV_ALL_STRIPES ? 0 : count;
    if (b.size != header && b.size - header < objects * LOV_OBJECT_BYTES)
        return MPIOX_E_CORRUPT;
    *out = (plain_layout){(int64_t)size, (int32_t)count, {b.data + header, b.size == header ? 0 : b.size - header}};
    if (out->objects.size > objects * LOV_OBJECT_BYTES)
        out->objects.size = objects * LOV_OBJECT_BYTES;
    return MPIOX_OK;
}

/* The plain layout inside entry `index`; *extent_bytes is what it covers. MPIOX_E_UNSUPPORTED: pass it over. */
static int parse_entry(bytes b, uint64_t index, uint64_t *extent_bytes, plain_layout *out)
{
    uint64_t at = LOV_COMPOSITE_BYTES + index * LOV_ENTRY_BYTES;
    uint32_t flags = (uint32_t)read_le(b, at + 4, 4);
    uint64_t start = read_le(b, at + 8, 8), end = read_le(b, at + 16, 8);
    uint64_t offset = read_le(b, at + 24, 4), size = read_le(b, at + 28, 4);
    if (start > end || offset > b.size || size > b.size - offset)
        return MPIOX_E_CORRUPT;
    *extent_bytes = end - start;
    if ((flags & (LOV_ENTRY_STALE | LOV_ENTRY_EXTENSION | LOV_ENTRY_PARITY)) != 0)
        return MPIOX_E_UNSUPPORTED;
    int rc = parse_plain((bytes){b.data + offset, size}, out);
    if (rc != MPIOX_OK || out->servers == 0 || out->servers == (int32_t)LOV_ALL_STRIPES)
        return MPIOX_E_UNSUPPORTED; /* data on the metadata server, foreign, or a template without numbers */
    return MPIOX_OK;
}

static int parse_composite(bytes b, plain_layout *out)
{
    if (b.size < LOV_COMPOSITE_BYTES)
        return MPIOX_E_CORRUPT;
    uint64_t size = read_le(b, 4, 4), entries = read_le(b, 14, 2);
    if (size < LOV_COMPOSITE_BYTES || size > b.size || entries == 0 ||
        (size - LOV_COMPOSITE_BYTES) / LOV_ENTRY_BYTES < entries)
        return MPIOX_E_CORRUPT;
    b.size = size;
    int found = MPIOX_E_CORRUPT;
    uint64_t best_bytes = 0;
    for (uint64_t i = 0; i < entries; i++) {
        uint64_t extent_bytes;
        plain_layout entry;
        int rc = parse_entry(b, i, &extent_bytes, &entry);
        if (rc == MPIOX_E_CORRUPT)
            return rc;
        if (rc != MPIOX_OK || (found == MPIOX_OK && extent_bytes <= best_bytes))
            continue;
        found = MPIOX_OK;
        best_bytes = extent_bytes;
        *out = entry;
    }
    return found;
}

static int parse(const void *value, int64_t value_bytes, plain_layout *out)
{
    if (value == NULL || value_bytes < 4)
        return MPIOX_E_CORRUPT;
    bytes b = {value, (uint64_t)value_bytes};
    int rc = read_le(b, 0, 4) == LOV_MAGIC_COMPOSITE ? parse_composite(b, out) : parse_plain(b, out);
    if (rc == MPIOX_OK && (out->servers < 1 || out->servers == (int32_t)LOV_ALL_STRIPES))
        rc = MPIOX_E_CORRUPT;
    return rc;
}

int mpiox_layout_parse_lov(const void *value, int64_t value_bytes, int64_t *stripe_size, int32_t *servers)
{
    plain_layout found;
    int rc = parse(value, value_bytes, &found);
    if (rc != MPIOX_OK)
        return rc;
    *stripe_size = found.stripe_size;
    *servers = found.servers;
    return MPIOX_OK;
}

int32_t mpiox_layout_lov_targets(const void *value, int64_t value_bytes, int32_t most, int32_t *targets)
{
    plain_layout found;
    if (parse(value, value_bytes, &found) != MPIOX_OK || found.objects.size == 0 || found.servers > most)
        return 0;
    for (int32_t i = 0; i < found.servers; i++) {
        uint64_t target = read_le(found.objects, (uint64_t)i * LOV_OBJECT_BYTES + LOV_OBJECT_TARGET, 4);
        if (target > LOV_LAST_TARGET)
            return 0;
        targets[i] = (int32_t)target;
    }
    return found.servers;
}
