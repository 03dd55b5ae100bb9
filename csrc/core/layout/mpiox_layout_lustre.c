/*
 * mpiox_layout_lustre.c - reading a Lustre layout from the value of the lustre.lov extended attribute.
 *
 * Format (public on-disk format of Lustre, lustre_user.h, little-endian, packed):
 *   plain     u32 magic, u32 pattern, 16 bytes object id, u32 stripe_size, u16 stripe_count, u16 generation (of a
 *             folder's template and of a component without its objects: the first target), [v3: 16 bytes pool name].
 *             Then stripe_count objects of 24 bytes (none when released or only a template): 16 bytes object id, u32
 *             generation, u32 index of the target (OST). A component that waits for its objects keeps room for them,
 *             with the index 2^32 - 1 unless the user has chosen the targets.
 *   composite u32 magic, u32 size, u32 generation, u16 flags, u16 entry_count, u16 mirrors - 1, 14 bytes. Then
 *             entry_count entries of 48 bytes: u32 id (its upper half: the mirror), u32 flags, u64 extent start, u64
 *             extent end, u32 offset, u32 size, 16 bytes (generation, time stamp, erasure code). offset/size locate a
 *             plain layout inside the value.
 *   foreign   u32 magic, and what Lustre does not read.
 * The value comes from outside: every field is read through bounds-checked accessors, and offsets are compared by
 * subtraction so that no sum can wrap.
 *
 * A composite layout has no one stripe size. File domains are cut where most of the file lies, so the component that
 * covers most of its bytes counts. For an empty file, which may get any size, it is the one with the largest extent
 * (usually the last, open-ended one). Among equal components the first one counts: that of the first mirror.
 */
#include "mpiox_layout_lustre.h"

#include <stddef.h>
#include <string.h>

#include "mpiox_integer.h"
#include "mpiox_layout.h"

#define LOV_MAGIC_V1 0x0BD10BD0u
#define LOV_MAGIC_V3 0x0BD30BD0u
#define LOV_MAGIC_COMPOSITE 0x0BD60BD0u
#define LOV_MAGIC_FOREIGN 0x0BD70BD0u
#define LOV_V1_BYTES 32
#define LOV_V3_BYTES 48
#define LOV_OBJECT_BYTES 24
#define LOV_OBJECT_TARGET 20    /* where the index of the target (OST) is in an object */
#define LOV_LAST_TARGET 0xFFFFu /* indices are 16 bits wide wherever they name a target */
#define LOV_COMPOSITE_BYTES 32
#define LOV_ENTRY_BYTES 48
#define LOV_ALL_STRIPES 0xFFFFu /* a template that means every server */
#define LOV_ANY_TARGET 0xFFFFu  /* a template that leaves the first one open */
#define LOV_MOST_STRIPES 2000   /* of a file */
#define LOV_UNIT_BYTES 65536    /* stripe sizes are multiples of it */
#define LOV_MIRROR_MASK 0x7FFF0000u
#define LOV_MIRROR_SHIFT 16

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

/* A template, or a component without objects, has its first target in the head. The same field counts changes, once
 * there are objects or if there will be none (data on the metadata server, released). */
static int32_t first_of_head(bytes b, const mpiox_lustre_component *c)
{
    const uint64_t first = read_le(b, 30, 2);
    return first == LOV_ANY_TARGET || (c->pattern & (MPIOX_LUSTRE_RELEASED | MPIOX_LUSTRE_MDT)) != 0 ? -1
                                                                                                     : (int32_t)first;
}

/* Where a plain layout has objects, there must be as many as its head promises. */
static int read_objects(bytes b, uint64_t header, mpiox_lustre_component *out)
{
    uint64_t objects = out->stripe_count > 0 && (out->pattern & MPIOX_LUSTRE_RELEASED) == 0
                           ? (uint64_t)out->stripe_count
                           : 0;
    if (b.size != header && b.size - header < objects * LOV_OBJECT_BYTES)
        return MPIOX_E_CORRUPT;
    out->object_count = b.size == header ? 0 : (int32_t)objects;
    out->objects = b.data + header;
    out->first = out->object_count > 0 ? mpiox_lustre_target(out, 0) : first_of_head(b, out);
    return MPIOX_OK;
}

static int read_plain(bytes b, mpiox_lustre_component *out)
{
    uint32_t magic = (uint32_t)read_le(b, 0, 4);
    *out = (mpiox_lustre_component){.end = MPIOX_LUSTRE_NO_END, .first = -1};
    if (magic == LOV_MAGIC_FOREIGN && b.size >= 4) {
        out->pattern = MPIOX_LUSTRE_FOREIGN;
        return MPIOX_OK;
    }
    if (b.size < LOV_V1_BYTES || (magic != LOV_MAGIC_V1 && magic != LOV_MAGIC_V3))
        return MPIOX_E_CORRUPT;
    uint64_t header = magic == LOV_MAGIC_V1 ? LOV_V1_BYTES : LOV_V3_BYTES;
    if (b.size < header)
        return MPIOX_E_CORRUPT;
    uint64_t count = read_le(b, 28, 2);
    out->pattern = (uint32_t)read_le(b, 4, 4);
    out->stripe_size = (int64_t)read_le(b, 24, 4);
    out->stripe_count = count == LOV_ALL_STRIPES ? -1 : (int32_t)count;
    if (magic == LOV_MAGIC_V3)
        memcpy(out->pool, b.data + LOV_V1_BYTES, LOV_V3_BYTES - LOV_V1_BYTES);
    if ((out->pattern & MPIOX_LUSTRE_MDT) != 0)
        out->stripe_count = 0;
    return read_objects(b, header, out);
}

/* A component that no write has reached yet: it has room for objects, or none, and the size of that room shows the
 * number for which "all" and "the default" in its head stand. The head of a component that a write has reached does not
 * show it. */
static void settle_objects(bytes plain, mpiox_lustre_component *c)
{
    const uint64_t header = read_le(plain, 0, 4) == LOV_MAGIC_V3 ? LOV_V3_BYTES : LOV_V1_BYTES;
    if ((c->pattern & (MPIOX_LUSTRE_FOREIGN | MPIOX_LUSTRE_UNREADABLE)) != 0)
        return;
    if ((c->flags & MPIOX_LUSTRE_INIT) != 0) {
        if (c->object_count == 0)
            c->first = -1;
        return;
    }
    if (c->object_count > 0 && mpiox_lustre_target(c, 0) >= 0)
        return;
    const uint64_t room = (plain.size - header) / LOV_OBJECT_BYTES;
    if (c->stripe_count <= 0 && (c->pattern & MPIOX_LUSTRE_MDT) == 0 && room > 0 && room < LOV_ALL_STRIPES)
        c->stripe_count = (int32_t)room;
    c->object_count = 0;
    c->first = first_of_head(plain, c);
}

static int read_entry(bytes b, uint64_t index, mpiox_lustre_component *out)
{
    uint64_t at = LOV_COMPOSITE_BYTES + index * LOV_ENTRY_BYTES;
    uint32_t id = (uint32_t)read_le(b, at, 4), flags = (uint32_t)read_le(b, at + 4, 4);
    uint64_t start = read_le(b, at + 8, 8), end = read_le(b, at + 16, 8);
    uint64_t offset = read_le(b, at + 24, 4), size = read_le(b, at + 28, 4);
    if (start > end || offset > b.size || size > b.size - offset)
        return MPIOX_E_CORRUPT;
    const bytes plain = {b.data + offset, size};
    if (read_plain(plain, out) != MPIOX_OK)
        *out = (mpiox_lustre_component){.pattern = MPIOX_LUSTRE_UNREADABLE, .first = -1};
    out->id = id;
    out->mirror = (int32_t)((id & LOV_MIRROR_MASK) >> LOV_MIRROR_SHIFT);
    out->flags = flags;
    settle_objects(plain, out);
    out->start = start > INT64_MAX ? INT64_MAX : (int64_t)start;
    out->end = end > INT64_MAX ? MPIOX_LUSTRE_NO_END : (int64_t)end;
    return MPIOX_OK;
}

/* The part of the value that a composite layout's head claims; *entries: how many it lists, 0 for a plain layout. */
static int read_head(const void *value, int64_t value_bytes, bytes *b, uint64_t *entries)
{
    *entries = 0;
    if (value == NULL || value_bytes < 4)
        return MPIOX_E_CORRUPT;
    *b = (bytes){value, (uint64_t)value_bytes};
    if (read_le(*b, 0, 4) != LOV_MAGIC_COMPOSITE)
        return MPIOX_OK;
    if (b->size < LOV_COMPOSITE_BYTES)
        return MPIOX_E_CORRUPT;
    uint64_t size = read_le(*b, 4, 4);
    *entries = read_le(*b, 14, 2);
    if (*entries == 0 || size < LOV_COMPOSITE_BYTES || size > b->size ||
        (size - LOV_COMPOSITE_BYTES) / LOV_ENTRY_BYTES < *entries)
        return MPIOX_E_CORRUPT;
    b->size = size;
    return MPIOX_OK;
}

int32_t mpiox_lustre_count(const void *value, int64_t value_bytes)
{
    bytes b;
    uint64_t entries;
    mpiox_lustre_component plain;
    int rc = read_head(value, value_bytes, &b, &entries);
    if (rc == MPIOX_OK && entries == 0)
        rc = read_plain(b, &plain);
    return rc != MPIOX_OK ? rc : entries == 0 ? 1 : (int32_t)entries;
}

int mpiox_lustre_get(const void *value, int64_t value_bytes, int32_t index, mpiox_lustre_component *out)
{
    bytes b;
    uint64_t entries;
    int rc = read_head(value, value_bytes, &b, &entries);
    if (rc != MPIOX_OK || index < 0 || (uint64_t)index >= (entries == 0 ? 1 : entries))
        return MPIOX_E_CORRUPT;
    if (entries > 0)
        return read_entry(b, (uint64_t)index, out);
    rc = read_plain(b, out);
    out->flags = rc == MPIOX_OK && out->object_count > 0 ? MPIOX_LUSTRE_INIT : 0;
    return rc;
}

int32_t mpiox_lustre_mirrors(const void *value, int64_t value_bytes)
{
    bytes b;
    uint64_t entries;
    if (read_head(value, value_bytes, &b, &entries) != MPIOX_OK || entries == 0)
        return 1;
    return 1 + (int32_t)read_le(b, 16, 2);
}

int32_t mpiox_lustre_target(const mpiox_lustre_component *component, int32_t stripe)
{
    if (stripe < 0 || stripe >= component->object_count)
        return -1;
    bytes objects = {component->objects, (uint64_t)component->object_count * LOV_OBJECT_BYTES};
    uint64_t target = read_le(objects, (uint64_t)stripe * LOV_OBJECT_BYTES + LOV_OBJECT_TARGET, 4);
    return target > LOV_LAST_TARGET ? -1 : (int32_t)target;
}

int32_t mpiox_lustre_distinct(const mpiox_lustre_component *component)
{
    unsigned char seen[(LOV_LAST_TARGET + 1) / 8] = {0};
    int32_t distinct = 0;
    for (int32_t i = 0; i < component->object_count; i++) {
        int32_t target = mpiox_lustre_target(component, i);
        if (target < 0)
            return 0;
        unsigned char bit = (unsigned char)(1u << (target % 8));
        distinct += (seen[target / 8] & bit) == 0;
        seen[target / 8] |= bit;
    }
    return distinct;
}

/* Does it contain the place of data? */
static bool counts(const mpiox_lustre_component *c)
{
    uint32_t known = MPIOX_LUSTRE_RAID0 | MPIOX_LUSTRE_OVERSTRIPED | MPIOX_LUSTRE_COMPRESSED | MPIOX_LUSTRE_HOLE |
                     MPIOX_LUSTRE_RELEASED;
    return (c->flags & (MPIOX_LUSTRE_STALE | MPIOX_LUSTRE_EXTENSION | MPIOX_LUSTRE_PARITY)) == 0 &&
           (c->pattern & MPIOX_LUSTRE_RAID0) != 0 && (c->pattern & ~known) == 0 && c->stripe_size > 0 &&
           c->stripe_count > 0;
}

/* Bytes of a file of that size that it covers. */
static int64_t covered(const mpiox_lustre_component *c, int64_t file_bytes)
{
    const int64_t end = c->end < file_bytes ? c->end : file_bytes;
    return end > c->start ? end - c->start : 0;
}

int mpiox_lustre_choose(const void *value, int64_t value_bytes, int64_t file_bytes, mpiox_lustre_component *out)
{
    int32_t components = mpiox_lustre_count(value, value_bytes);
    int64_t most = 0;
    int found = MPIOX_E_CORRUPT;
    for (int32_t i = 0; i < components; i++) {
        mpiox_lustre_component c;
        if (mpiox_lustre_get(value, value_bytes, i, &c) != MPIOX_OK)
            return MPIOX_E_CORRUPT; /* the table is damaged: nothing of it can be relied on */
        const int64_t here = covered(&c, file_bytes > 0 ? file_bytes : MPIOX_LUSTRE_NO_END);
        if (!counts(&c) || (found == MPIOX_OK && here <= most))
            continue;
        found = MPIOX_OK;
        most = here;
        *out = c;
    }
    if (found == MPIOX_OK && most == 0 && file_bytes > 0) /* all of it is where there are no stripes */
        return mpiox_lustre_choose(value, value_bytes, 0, out);
    return found;
}

/* Has nothing been written over the first object's place? */
static bool is_untouched(const mpiox_lustre_component *c, uint64_t header, const char *name)
{
    const uint64_t name_bytes = strlen(name);
    bool same = true;
    for (uint64_t i = 0; i < LOV_OBJECT_BYTES && same; i++)
        same = c->objects[i] == (header + i < name_bytes ? (unsigned char)name[header + i] : 0);
    return same;
}

int64_t mpiox_lustre_length(const void *block, int64_t block_bytes, const char *name, bool is_folder)
{
    bytes b;
    uint64_t entries;
    mpiox_lustre_component c;
    int code = read_head(block, block_bytes, &b, &entries);
    if (code == MPIOX_OK && entries == 0)
        code = read_plain(b, &c);
    if (code != MPIOX_OK)
        return code;
    if (entries > 0 || (c.pattern & MPIOX_LUSTRE_FOREIGN) != 0)
        return (int64_t)b.size;
    const uint64_t header = read_le(b, 0, 4) == LOV_MAGIC_V3 ? LOV_V3_BYTES : LOV_V1_BYTES;
    if (is_folder || c.object_count == 0 || is_untouched(&c, header, name))
        return (int64_t)header;
    return (int64_t)(header + (uint64_t)c.object_count * LOV_OBJECT_BYTES);
}

int32_t mpiox_lustre_template(int64_t stripe_size, int32_t stripe_count, int32_t first, unsigned char *value)
{
    const int64_t most = (INT64_C(1) << 32) - LOV_UNIT_BYTES;
    int64_t size = stripe_size <= 0 ? 0 : (stripe_size > most ? most : stripe_size);
    size = mpiox_round_up(size, LOV_UNIT_BYTES);
    uint32_t count = stripe_count < 0 ? LOV_ALL_STRIPES
                                      : (uint32_t)(stripe_count > LOV_MOST_STRIPES ? LOV_MOST_STRIPES : stripe_count);
    uint32_t start = first < 0 || first >= (int32_t)LOV_ANY_TARGET ? LOV_ANY_TARGET : (uint32_t)first;
    const uint32_t words[] = {LOV_MAGIC_V1, MPIOX_LUSTRE_RAID0, 0, 0, 0, 0, (uint32_t)size, count | start << 16};
    for (int32_t i = 0; i < LOV_V1_BYTES; i++)
        value[i] = (unsigned char)(words[i / 4] >> (8 * (i % 4)));
    return LOV_V1_BYTES;
}

int32_t mpiox_lustre_targets(const mpiox_lustre_component *component, int32_t most, int32_t *targets)
{
    if (mpiox_lustre_distinct(component) == 0 || component->object_count > most)
        return 0;
    for (int32_t i = 0; i < component->object_count; i++)
        targets[i] = mpiox_lustre_target(component, i);
    return component->object_count;
}
