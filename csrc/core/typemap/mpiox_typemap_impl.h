/*
 * mpiox_typemap_impl.h - the inside of a typemap; only csrc/core/typemap includes it.
 *
 * Canonical form. Every node's first piece (in stream order) starts at the node's origin, so that all displacement is
 * pulled up: into the header (`first`), into struct members (`offset`) and into list displacements. Equal shapes at
 * different places therefore have equal nodes, and the greatest common divisor of all strides and relative
 * displacements is exact. A loop or list whose child is one block has no child node (child == MPIOX_NO_CHILD): such
 * nodes and plain blocks are the "leaves" that a cursor turns into strided runs.
 *
 * Numbers. All addresses, sizes and strides stay strictly inside +-2^62, so that sums and differences of two never
 * overflow.
 */
#ifndef MPIOX_TYPEMAP_IMPL_H
#define MPIOX_TYPEMAP_IMPL_H

#include "mpiox_typemap.h"

#define MPIOX_TYPEMAP_MAGIC INT64_C(0x4d50494f58414331) /* "MPIOXAC1" */
#define MPIOX_TYPEMAP_LIMIT (INT64_C(1) << 62)
#define MPIOX_TYPEMAP_MAX_FLATTEN (INT64_C(1) << 20) /* pieces of a too deep subtree that may become a list */
#define MPIOX_NO_CHILD (-1)

enum { MPIOX_NODE_BLOCK = 1, MPIOX_NODE_LOOP, MPIOX_NODE_STRUCT, MPIOX_NODE_LIST };

typedef struct mpiox_node {
    int32_t kind;   /* MPIOX_NODE_* */
    int32_t child;  /* loop, list: index of the child node, or MPIOX_NO_CHILD; struct: 0 */
    int64_t offset; /* struct members: displacement from the struct's origin; otherwise 0 */
    int64_t size;   /* data bytes */
    int64_t count;  /* loop: copies; struct: members; list: items; block: 1 */
    int64_t stride; /* loop: step of the copies; list with counted children: the child's step; otherwise 0 */
    int64_t length; /* block: bytes; loop: bytes of a copy; list: bytes of every item if constant, otherwise 0 */
    int64_t lo;     /* lowest and one past the highest data byte, relative to the node's origin */
    int64_t hi;
    int64_t pool; /* struct: members[count], prefix[count + 1]; list: displacements[count], and prefix[count + 1] unless
                     length is constant (words, from the start of the pool) */
} mpiox_node;

enum { MPIOX_FLAG_MONOTONIC = 1, MPIOX_FLAG_CONTIGUOUS = 2 };

/* One allocation: this header, node_count nodes (the root first, children after their parents), pool_words words. */
struct mpiox_typemap {
    int64_t magic;      /* MPIOX_TYPEMAP_MAGIC */
    int64_t bytes;      /* of the whole allocation */
    int64_t references; /* atomic; 0 in a blob */
    int64_t size;       /* data bytes of a tile */
    int64_t lb;         /* lower bound */
    int64_t extent;     /* step of the tiling */
    int64_t first;      /* offset of the first data byte of tile 0 */
    int64_t pieces;     /* see mpiox_typemap_pieces() */
    int64_t granule;    /* see mpiox_typemap_granule() */
    /* The tiling that cursors use: equal to (root, size, extent), or finer when the root loop continues seamlessly from
     * tile to tile, so that runs cross tile boundaries. tile_node is MPIOX_NO_CHILD for a tile that is one block. */
    int64_t tile_size;
    int64_t tile_extent;
    int32_t tile_node;
    int32_t depth;      /* levels of nodes */
    int32_t node_count; /* 0 when the size is 0 */
    int32_t flags;      /* MPIOX_FLAG_* */
    int64_t pool_words; /* words of the pool behind the nodes */
};

static inline const mpiox_node *mpiox_typemap_nodes(const mpiox_typemap *typemap)
{
    return (const mpiox_node *)(typemap + 1);
}

static inline const int64_t *mpiox_typemap_pool(const mpiox_typemap *typemap)
{
    return (const int64_t *)(mpiox_typemap_nodes(typemap) + typemap->node_count);
}

/* Wrapping arithmetic: positions far beyond any file must not be undefined behaviour. */
static inline int64_t mpiox_wrap_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t mpiox_wrap_madd(int64_t a, int64_t b, int64_t c)
{
    return (int64_t)((uint64_t)a + (uint64_t)b * (uint64_t)c);
}

/* Largest i in [0, n) with values[i] <= key; values ascend and values[0] <= key. */
static inline int64_t mpiox_search(const int64_t *values, int64_t n, int64_t key)
{
    int64_t low = 0;
    while (n > 1) {
        const int64_t half = n / 2;
        low += values[low + half] <= key ? half : 0;
        n -= half;
    }
    return low;
}

/* Data bytes before item i of a list. */
static inline int64_t mpiox_list_start(const mpiox_node *node, const int64_t *pool, int64_t i)
{
    return node->length > 0 ? i * node->length : pool[node->pool + node->count + i];
}

/* ---- trees under construction ----------------------------------------------------------------------------------- */

/* A node that owns its children. NULL stands for "no data". `offset` is the displacement from its parent's origin.
 * Fields that mpiox_node has, too, mean the same. The arrays are those of the pool, freed unless `borrows`. */
typedef struct mpiox_tree {
    int32_t kind;   /* MPIOX_NODE_* */
    int32_t depth;  /* levels of nodes, this one included */
    bool monotonic; /* as mpiox_typemap_is_monotonic() */
    bool borrows;   /* the arrays belong to a description that outlives this tree, and are canonical or corrupt */
    int64_t offset;
    int64_t size;
    int64_t count;
    int64_t stride;
    int64_t length;
    int64_t lo;
    int64_t hi;
    int64_t pieces;  /* see mpiox_typemap_pieces() */
    int64_t granule; /* see mpiox_typemap_granule() */
    struct mpiox_tree *child;
    struct mpiox_tree **members;
    int64_t *displacements;
    int64_t *prefix;
} mpiox_tree;

static inline int64_t mpiox_saturating_mul(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static inline int64_t mpiox_saturating_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Items of a list, in stream order. */
typedef struct mpiox_list_items {
    int64_t n;              /* number of items */
    int64_t *displacements; /* [n], bytes from the origin */
    int64_t *prefix;        /* [n + 1]; item i has the bytes prefix[i] .. prefix[i + 1] of the stream; or NULL */
} mpiox_list_items;

mpiox_tree *mpiox_tree_new(int32_t kind); /* zeros but for the kind; NULL without memory */
/* Append every piece of the tree, displaced by `base`; the arrays are large enough. */
void mpiox_tree_list_pieces(const mpiox_tree *tree, int64_t base, mpiox_list_items *sink);

/* Constructors that normalise. They own their subtrees from now on (also if they fail), check every sum for overflow
 * and return 0 or a negative code; *out may become NULL ("no data"). */
int mpiox_tree_block(int64_t length, mpiox_tree **out);
int mpiox_tree_loop(int64_t count, int64_t stride, mpiox_tree *child, mpiox_tree **out);
/* members: n subtrees; the array itself is borrowed. */
int mpiox_tree_struct(int64_t n, mpiox_tree **members, mpiox_tree **out);
/* Each item has `length` bytes if items->prefix is NULL. With a child an item is (bytes / child size) tiles of the
 * child, `stride` apart. The node owns the arrays of items, unless `borrows`, which also promises that they are
 * canonical: MPIOX_E_CORRUPT if they are not. */
int mpiox_tree_list(const mpiox_list_items *items, int64_t length, int64_t stride, mpiox_tree *child, bool borrows,
                    mpiox_tree **out);
/* Replace a subtree by the list of its pieces (depth 1). MPIOX_E_UNSUPPORTED: too many pieces; *tree is unchanged. */
int mpiox_tree_flatten(mpiox_tree **tree);
int mpiox_tree_shift(mpiox_tree *tree, int64_t displacement); /* NULL-safe; does not take over */
void mpiox_tree_free(mpiox_tree *tree);                       /* NULL-safe */

/* Rebuild the tree of a description; borrows its arrays. Safe for any blob whose header fits its bytes. */
int mpiox_tree_import(const mpiox_typemap *typemap, mpiox_tree **out);
/* Lay the tree out in one allocation, with one reference. The tree stays the caller's. */
int mpiox_tree_export(const mpiox_tree *tree, int64_t lb, int64_t extent, mpiox_typemap **out);

/* Fill in all but the pool of a description that is one list of blocks, whose pool is already in its place. */
void mpiox_tree_settle(const mpiox_tree *list, int64_t bytes, int64_t lb, int64_t extent, mpiox_typemap *typemap);

/* Checked arithmetic: false when the result leaves +-2^62. */
static inline bool mpiox_fits(int64_t value)
{
    return value < MPIOX_TYPEMAP_LIMIT && value > -MPIOX_TYPEMAP_LIMIT;
}

static inline bool mpiox_add(int64_t a, int64_t b, int64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum) && mpiox_fits(*sum);
}

static inline bool mpiox_mul(int64_t a, int64_t b, int64_t *product)
{
    return !__builtin_mul_overflow(a, b, product) && mpiox_fits(*product);
}

static inline int64_t mpiox_gcd(int64_t a, int64_t b)
{
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
    uint64_t y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    if (x != 0 && (x & (x - 1)) == 0 && (y & (x - 1)) == 0) { /* the usual case; divisions are slow */
        return (int64_t)x;
    }
    while (y != 0) {
        const uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return (int64_t)x;
}

#endif
