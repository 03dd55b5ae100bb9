/*
 * lists.c - long lists: `lists [cases [seed]]`.
 *
 * A region is dealt to a few owners byte by byte, in runs of random length. The owners' lists, made in place as of a
 * datatype and through the other constructors, must be the same descriptions, and a struct of them their bytes; their
 * edges must say that the region is filled; and must not say so any more when one item is moved, made longer or
 * shorter, or left out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_typemap.h"
#include "mpiox_typemap_edges.h"
#include "mpiox_typemap_items.h"

enum { MOST_ITEMS = 400, OWNERS = 4 };

static uint64_t state;

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                              \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static int64_t choose(int64_t low, int64_t high)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return low + (int64_t)((state * UINT64_C(2685821657736338717) >> 33) % (uint64_t)(high - low + 1));
}

/* Items in units of `unit` bytes; some are empty, some continue the one before. */
typedef struct list {
    int64_t n;
    int64_t at[MOST_ITEMS], lengths[MOST_ITEMS];
} list;

static mpiox_typemap *in_place(const list *l, const mpiox_typemap *child)
{
    mpiox_items items;
    mpiox_typemap *out;
    REQUIRE(mpiox_items_room(l->n, &items) == MPIOX_OK);
    memcpy(items.displacements, l->at, (size_t)l->n * sizeof *l->at);
    items.lengths[0] = (int)l->n; /* where MPI has the number of items */
    for (int64_t i = 0; i < l->n; i++) {
        items.lengths[i + 1] = (int)l->lengths[i];
    }
    REQUIRE(mpiox_items_describe(&items, (mpiox_item_lengths){.narrow = items.lengths + 1}, child, &out) == MPIOX_OK);
    REQUIRE(items.room == NULL);
    return out;
}

/* The trees of the general constructors, from which a serialized description is made again to validate it. */
static void check_general(const mpiox_typemap *typemap)
{
    const int64_t bytes = mpiox_typemap_blob_bytes(typemap);
    mpiox_typemap *again;
    void *blob = malloc((size_t)bytes);
    REQUIRE(blob != NULL && mpiox_typemap_to_blob(typemap, blob, bytes) == MPIOX_OK);
    REQUIRE(mpiox_typemap_from_blob(blob, bytes, &again) == MPIOX_OK);
    mpiox_typemap_free(again);
    free(blob);
}

/* A struct of blocks. */
static mpiox_typemap *of_blocks(const list *l, const mpiox_typemap *child)
{
    const mpiox_typemap *children[MOST_ITEMS];
    mpiox_typemap *out;
    for (int64_t i = 0; i < l->n; i++) {
        children[i] = child;
    }
    REQUIRE(mpiox_typemap_struct(l->n, l->lengths, l->at, children, &out) == MPIOX_OK);
    return out;
}

static mpiox_typemap *describe(const list *l, const mpiox_typemap *child)
{
    mpiox_typemap *one = in_place(l, child), *other = of_blocks(l, child), *third;
    REQUIRE(mpiox_typemap_equal(one, other));
    REQUIRE(mpiox_typemap_indexed(l->n, l->lengths, l->at, child, &third) == MPIOX_OK);
    REQUIRE(mpiox_typemap_equal(one, third));
    check_general(one);
    mpiox_typemap_free(other);
    mpiox_typemap_free(third);
    return one;
}

/* A struct of the lists of all owners, as of all that is flushed. */
static void check_struct(list *owner, const mpiox_typemap *child)
{
    mpiox_typemap *part[OWNERS], *whole;
    const mpiox_typemap *parts[OWNERS];
    int64_t counts[OWNERS], at[OWNERS], position = 0;
    for (int i = 0; i < OWNERS; i++) {
        parts[i] = part[i] = in_place(&owner[i], child);
        counts[i] = choose(0, 9) > 0;
        at[i] = choose(-100, 100000);
    }
    REQUIRE(mpiox_typemap_struct(OWNERS, counts, at, parts, &whole) == MPIOX_OK);
    check_general(whole);
    for (int i = 0; i < OWNERS; i++) {
        for (int64_t k = 0; counts[i] > 0 && k < mpiox_typemap_size(part[i]); k++) {
            REQUIRE(mpiox_typemap_offset(whole, position++) == at[i] + mpiox_typemap_offset(part[i], k));
        }
    }
    REQUIRE(mpiox_typemap_size(whole) == position);
    for (int i = 0; i < OWNERS; i++) {
        mpiox_typemap_free(part[i]);
    }
    mpiox_typemap_free(whole);
}

static uint64_t edges_of(const list *l, const mpiox_typemap *child, int64_t origin)
{
    mpiox_typemap *typemap = describe(l, child);
    const mpiox_range range = {typemap, origin, 0, mpiox_typemap_size(typemap)};
    const uint64_t edges = mpiox_typemap_edges(&range);
    mpiox_typemap_free(typemap);
    return edges;
}

static bool filled(list *owner, const mpiox_typemap *child, int64_t origin, int64_t start, int64_t end)
{
    uint64_t sum = 0;
    for (int i = 0; i < OWNERS; i++) {
        sum += edges_of(&owner[i], child, origin);
    }
    return sum == mpiox_typemap_edge(origin + end) - mpiox_typemap_edge(origin + start);
}

/* Spoil one item that has data; false when the list has none. */
static bool spoil(list *l, int64_t unit)
{
    int64_t i = l->n > 0 ? choose(0, l->n - 1) : 0;
    while (i < l->n && l->lengths[i] == 0) {
        i++;
    }
    if (i >= l->n) {
        return false;
    }
    switch (choose(0, 3)) {
    case 0:
        l->at[i] += unit * choose(1, 3);
        break;
    case 1:
        l->lengths[i]++;
        break;
    case 2:
        l->lengths[i]--;
        break;
    default:
        l->at[i] -= unit;
        l->lengths[i] += 2;
    }
    return true;
}

static void check_case(void)
{
    static list owner[OWNERS];
    mpiox_typemap *child;
    const int64_t unit = choose(1, 9), start = unit * choose(0, 5), origin = choose(0, 1000), runs = choose(1, 600);
    const int64_t longest = choose(1, 6), one = choose(0, 3);
    int64_t end = start;
    REQUIRE(mpiox_typemap_block(unit, &child) == MPIOX_OK);
    memset(owner, 0, sizeof owner);
    for (int64_t run = 0; run < runs; run++) {
        list *l = &owner[choose(0, OWNERS - 1)];
        if (l->n + 1 >= MOST_ITEMS) {
            continue;
        }
        if (choose(0, 9) == 0) { /* nothing, anywhere */
            l->at[l->n] = unit * choose(0, 100);
            l->lengths[l->n++] = 0;
        }
        l->at[l->n] = end;
        l->lengths[l->n] = one == 0 ? longest : choose(1, longest);
        end += unit * l->lengths[l->n++];
    }
    REQUIRE(end == start || filled(owner, child, origin, start, end));
    check_struct(owner, child);
    list *spoilt = &owner[choose(0, OWNERS - 1)];
    if (spoil(spoilt, unit)) {
        REQUIRE(!filled(owner, child, origin, start, end));
    }
    mpiox_typemap_free(child);
}

int main(int argc, char **argv)
{
    const long cases = argc > 1 ? atol(argv[1]) : 1000;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (long i = 0; i < cases; i++) {
        state = (seed + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15) + 1;
        check_case();
    }
    printf("%ld cases passed\n", cases);
    return 0;
}
