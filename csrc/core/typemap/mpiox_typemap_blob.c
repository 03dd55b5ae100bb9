/*
 * mpiox_typemap_blob.c - between trees, descriptions and bytes.
 *
 * Problem.    Descriptions travel to other processes. A received one must not be able to crash or hang this process.
 * Algorithm.  A description is its own serialized form (indices, no pointers). To validate one, import it as a tree
 *             with range checks on indices and counts only, let the normalising constructors recompute and check every
 *             derived number, export the tree, and demand that the result equals the input bit by bit. One code path
 *             therefore both defines and enforces all invariants.
 * Guarantees. Nodes are visited once, children come after parents, depth is bounded: no recursion runs away. Memory is
 *             a small multiple of the input's size.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_typemap_impl.h"

/* ---- import ------------------------------------------------------------------------------------------------------ */

typedef struct importer {
    const mpiox_typemap *typemap;
    int32_t visited;
} importer;

static int import_node(importer *in, int64_t index, int depth, mpiox_tree **out);

/* Are `words` pool words available from `start`? */
static bool pool_has(const mpiox_typemap *typemap, int64_t start, int64_t words)
{
    return start >= 0 && words >= 0 && start <= typemap->pool_words && words <= typemap->pool_words - start;
}

static int import_struct(importer *in, const mpiox_node *node, int64_t index, int depth, mpiox_tree **out)
{
    if (node->count < 2 || node->count > in->typemap->node_count ||
        !pool_has(in->typemap, node->pool, 2 * node->count + 1)) {
        return MPIOX_E_CORRUPT;
    }
    const int64_t *children = mpiox_typemap_pool(in->typemap) + node->pool;
    mpiox_tree **members = calloc((size_t)node->count, sizeof *members);
    if (members == NULL) {
        return MPIOX_E_NOMEM;
    }
    int code = MPIOX_OK;
    for (int64_t i = 0; i < node->count && code == MPIOX_OK; i++) {
        const int64_t child = children[i];
        code = child > index ? import_node(in, child, depth + 1, &members[i]) : MPIOX_E_CORRUPT;
        if (code == MPIOX_OK) {
            code = mpiox_tree_shift(members[i], mpiox_typemap_nodes(in->typemap)[child].offset);
        }
    }
    if (code == MPIOX_OK) {
        code = mpiox_tree_struct(node->count, members, out);
    }
    for (int64_t i = 0; i < node->count; i++) {
        mpiox_tree_free(members[i]);
    }
    free(members);
    return code;
}

static int import_list(const mpiox_typemap *typemap, const mpiox_node *node, mpiox_tree *child, mpiox_tree **out)
{
    const bool constant = node->length != 0;
    if (node->count < 2 || node->count > typemap->pool_words ||
        !pool_has(typemap, node->pool, constant ? node->count : 2 * node->count + 1)) {
        mpiox_tree_free(child);
        return MPIOX_E_CORRUPT;
    }
    /* Borrowed arrays are never written (mpiox_tree_list), hence the cast. */
    int64_t *displacements = (int64_t *)(uintptr_t)(mpiox_typemap_pool(typemap) + node->pool);
    const mpiox_list_items items = {node->count, displacements, constant ? NULL : displacements + node->count};
    return mpiox_tree_list(&items, node->length, node->stride, child, true, out);
}

static int import_node(importer *in, int64_t index, int depth, mpiox_tree **out)
{
    mpiox_tree *child = NULL;
    int code = MPIOX_OK;
    *out = NULL;
    if (index < 0 || index >= in->typemap->node_count || depth > MPIOX_TYPEMAP_MAX_DEPTH ||
        ++in->visited > in->typemap->node_count) {
        return MPIOX_E_CORRUPT;
    }
    const mpiox_node *node = mpiox_typemap_nodes(in->typemap) + index;
    const bool may_have_child = node->kind == MPIOX_NODE_LOOP || node->kind == MPIOX_NODE_LIST;
    if (may_have_child && node->child != MPIOX_NO_CHILD) {
        code = node->child > index ? import_node(in, node->child, depth + 1, &child) : MPIOX_E_CORRUPT;
    } else if (node->kind == MPIOX_NODE_LOOP) {
        code = mpiox_tree_block(node->length, &child);
    }
    if (code != MPIOX_OK) {
        mpiox_tree_free(child);
        return code;
    }
    switch (node->kind) {
    case MPIOX_NODE_BLOCK:
        return mpiox_tree_block(node->length, out);
    case MPIOX_NODE_LOOP:
        return mpiox_tree_loop(node->count, node->stride, child, out);
    case MPIOX_NODE_STRUCT:
        return import_struct(in, node, index, depth, out);
    case MPIOX_NODE_LIST:
        return import_list(in->typemap, node, child, out);
    default:
        return MPIOX_E_CORRUPT;
    }
}

int mpiox_tree_import(const mpiox_typemap *typemap, mpiox_tree **out)
{
    importer in = {typemap, 0};
    *out = NULL;
    if (typemap->node_count == 0) {
        return MPIOX_OK;
    }
    int code = import_node(&in, 0, 1, out);
    if (code == MPIOX_OK && *out == NULL) {
        code = MPIOX_E_CORRUPT;
    }
    if (code == MPIOX_OK) {
        code = mpiox_tree_shift(*out, typemap->first);
    }
    if (code != MPIOX_OK) {
        mpiox_tree_free(*out);
        *out = NULL;
    }
    return code;
}

/* ---- export ------------------------------------------------------------------------------------------------------ */

static void count_parts(const mpiox_tree *tree, int64_t *nodes, int64_t *words)
{
    ++*nodes;
    if (tree->kind == MPIOX_NODE_LIST) {
        *words += tree->prefix != NULL ? 2 * tree->count + 1 : tree->count;
    } else if (tree->kind == MPIOX_NODE_STRUCT) {
        *words += 2 * tree->count + 1;
        for (int64_t i = 0; i < tree->count; i++) {
            count_parts(tree->members[i], nodes, words);
        }
    }
    if (tree->child != NULL) {
        count_parts(tree->child, nodes, words);
    }
}

typedef struct exporter {
    mpiox_node *nodes;
    int64_t *pool;
    int64_t node_count;
    int64_t pool_words;
} exporter;

/* Write the subtree in depth-first order; returns the index of its root. */
static int64_t export_node(exporter *ex, const mpiox_tree *tree, int64_t offset)
{
    const int64_t index = ex->node_count++;
    mpiox_node *node = ex->nodes + index;
    *node = (mpiox_node){.kind = tree->kind,
                         .child = tree->kind == MPIOX_NODE_STRUCT ? 0 : MPIOX_NO_CHILD,
                         .offset = offset,
                         .size = tree->size,
                         .count = tree->count,
                         .stride = tree->stride,
                         .length = tree->length,
                         .lo = tree->lo,
                         .hi = tree->hi,
                         .pool = 0};
    if (tree->kind == MPIOX_NODE_LIST || tree->kind == MPIOX_NODE_STRUCT) {
        node->pool = ex->pool_words;
        ex->pool_words += tree->kind == MPIOX_NODE_LIST && tree->prefix == NULL ? tree->count : 2 * tree->count + 1;
    }
    int64_t *words = ex->pool + node->pool;
    if (tree->kind == MPIOX_NODE_LIST) {
        memcpy(words, tree->displacements, (size_t)tree->count * sizeof(int64_t));
        if (tree->prefix != NULL) {
            memcpy(words + tree->count, tree->prefix, (size_t)(tree->count + 1) * sizeof(int64_t));
        }
    } else if (tree->kind == MPIOX_NODE_STRUCT) {
        words[tree->count] = 0;
        for (int64_t i = 0; i < tree->count; i++) {
            words[i] = export_node(ex, tree->members[i], tree->members[i]->offset);
            words[tree->count + 1 + i] = words[tree->count + i] + tree->members[i]->size;
        }
    }
    if (tree->child != NULL) {
        node->child = (int32_t)export_node(ex, tree->child, 0);
    }
    return index;
}

/* The finest tiling that is the same stream: peel off root loops that continue into the next tile. */
static void set_tiling(mpiox_typemap *typemap)
{
    const mpiox_node *nodes = mpiox_typemap_nodes(typemap);
    int32_t index = 0;
    typemap->tile_size = typemap->size;
    typemap->tile_extent = typemap->extent;
    while (index != MPIOX_NO_CHILD && nodes[index].kind == MPIOX_NODE_LOOP &&
           nodes[index].count * nodes[index].stride == typemap->tile_extent) {
        typemap->tile_size = nodes[index].length;
        typemap->tile_extent = nodes[index].stride;
        index = nodes[index].child;
    }
    typemap->tile_node = index != MPIOX_NO_CHILD && nodes[index].kind == MPIOX_NODE_BLOCK ? MPIOX_NO_CHILD : index;
}

static void set_summary(mpiox_typemap *typemap, const mpiox_tree *tree)
{
    typemap->granule = 0;
    typemap->flags = MPIOX_FLAG_MONOTONIC;
    typemap->tile_node = MPIOX_NO_CHILD;
    if (tree == NULL) {
        return;
    }
    typemap->size = tree->size;
    typemap->first = tree->offset;
    typemap->pieces = tree->pieces;
    typemap->depth = tree->depth;
    typemap->granule = mpiox_gcd(mpiox_gcd(tree->offset, tree->granule), typemap->extent);
    const bool monotonic = tree->monotonic && typemap->extent >= tree->hi - tree->lo;
    const bool contiguous = tree->kind == MPIOX_NODE_BLOCK && typemap->extent == tree->length;
    typemap->flags = (monotonic ? MPIOX_FLAG_MONOTONIC : 0) | (contiguous ? MPIOX_FLAG_CONTIGUOUS : 0);
    set_tiling(typemap);
}

void mpiox_tree_settle(const mpiox_tree *list, int64_t bytes, int64_t lb, int64_t extent, mpiox_typemap *typemap)
{
    mpiox_node *node = (mpiox_node *)(typemap + 1);
    *typemap = (mpiox_typemap){.magic = MPIOX_TYPEMAP_MAGIC,
                               .bytes = bytes,
                               .references = 1,
                               .lb = lb,
                               .extent = extent,
                               .node_count = 1,
                               .pool_words = (bytes - (int64_t)(sizeof *typemap + sizeof *node)) / 8};
    *node = (mpiox_node){.kind = MPIOX_NODE_LIST,
                         .child = MPIOX_NO_CHILD,
                         .size = list->size,
                         .count = list->count,
                         .length = list->length,
                         .lo = list->lo,
                         .hi = list->hi};
    set_summary(typemap, list);
}

int mpiox_tree_export(const mpiox_tree *tree, int64_t lb, int64_t extent, mpiox_typemap **out)
{
    int64_t nodes = 0, words = 0;
    *out = NULL;
    if (!mpiox_fits(lb) || !mpiox_fits(extent) || !mpiox_fits(lb + extent)) {
        return MPIOX_E_ARG;
    }
    if (tree != NULL) {
        count_parts(tree, &nodes, &words);
    }
    if (nodes > INT32_MAX) {
        return MPIOX_E_UNSUPPORTED;
    }
    const size_t bytes = sizeof(mpiox_typemap) + (size_t)nodes * sizeof(mpiox_node) + (size_t)words * sizeof(int64_t);
    mpiox_typemap *typemap = malloc(bytes);
    if (typemap == NULL) {
        return MPIOX_E_NOMEM;
    }
    *typemap = (mpiox_typemap){.magic = MPIOX_TYPEMAP_MAGIC,
                               .bytes = (int64_t)bytes,
                               .references = 1,
                               .lb = lb,
                               .extent = extent,
                               .node_count = (int32_t)nodes,
                               .pool_words = words};
    if (tree != NULL) {
        exporter ex = {(mpiox_node *)(typemap + 1), NULL, 0, 0};
        ex.pool = (int64_t *)(ex.nodes + nodes);
        export_node(&ex, tree, 0);
    }
    set_summary(typemap, tree);
    *out = typemap;
    return MPIOX_OK;
}

mpiox_typemap *mpiox_typemap_retain(mpiox_typemap *typemap)
{
    if (typemap != NULL) {
        __atomic_add_fetch(&typemap->references, 1, __ATOMIC_RELAXED);
    }
    return typemap;
}

void mpiox_typemap_free(mpiox_typemap *typemap)
{
    if (typemap != NULL && __atomic_sub_fetch(&typemap->references, 1, __ATOMIC_ACQ_REL) == 0) {
        free(typemap);
    }
}

/* ---- blobs ------------------------------------------------------------------------------------------------------- */

int64_t mpiox_typemap_blob_bytes(const mpiox_typemap *typemap)
{
    return typemap->bytes;
}

int mpiox_typemap_to_blob(const mpiox_typemap *typemap, void *blob, int64_t blob_bytes)
{
    const int64_t none = 0;
    if (blob_bytes < typemap->bytes) {
        return MPIOX_E_FULL;
    }
    /* The reference count changes while others use the description: it is not read here. */
    const size_t before = offsetof(mpiox_typemap, references), after = before + sizeof typemap->references;
    memcpy(blob, typemap, before);
    memcpy((char *)blob + before, &none, sizeof none);
    memcpy((char *)blob + after, (const char *)typemap + after, (size_t)typemap->bytes - after);
    return MPIOX_OK;
}

/* Same bytes, reference counts aside. */
static bool same_bytes(const mpiox_typemap *a, const mpiox_typemap *b)
{
    const size_t before = offsetof(mpiox_typemap, references), after = before + sizeof a->references;
    return a->bytes == b->bytes && memcmp(a, b, before) == 0 &&
           memcmp((const char *)a + after, (const char *)b + after, (size_t)a->bytes - after) == 0;
}

bool mpiox_typemap_equal(const mpiox_typemap *a, const mpiox_typemap *b)
{
    return a == b || same_bytes(a, b);
}

int mpiox_typemap_from_blob(const void *blob, int64_t blob_bytes, mpiox_typemap **out)
{
    const mpiox_typemap *in = blob;
    mpiox_tree *tree = NULL;
    *out = NULL;
    if (blob == NULL || (uintptr_t)blob % sizeof(int64_t) != 0 || blob_bytes < (int64_t)sizeof *in ||
        in->magic != MPIOX_TYPEMAP_MAGIC || in->bytes != blob_bytes || in->references != 0 || in->node_count < 0 ||
        in->pool_words < 0 || in->pool_words > blob_bytes / (int64_t)sizeof(int64_t) ||
        (int64_t)sizeof *in + in->node_count * (int64_t)sizeof(mpiox_node) +
                in->pool_words * (int64_t)sizeof(int64_t) !=
            blob_bytes) {
        return MPIOX_E_CORRUPT;
    }
    int code = mpiox_tree_import(in, &tree);
    if (code == MPIOX_OK) {
        code = mpiox_tree_export(tree, in->lb, in->extent, out);
    }
    mpiox_tree_free(tree);
    if (code == MPIOX_OK && !same_bytes(*out, in)) {
        code = MPIOX_E_CORRUPT;
    }
    if (code != MPIOX_OK) {
        mpiox_typemap_free(*out);
        *out = NULL;
    }
    return code == MPIOX_OK || code == MPIOX_E_NOMEM ? code : MPIOX_E_CORRUPT;
}

int mpiox_typemap_at_zero(const mpiox_typemap *typemap, int64_t *shift, mpiox_typemap **out)
{
    mpiox_tree *tree = NULL;
    *out = NULL;
    *shift = typemap->first;
    int code = mpiox_tree_import(typemap, &tree);
    if (code == MPIOX_OK)
        code = mpiox_tree_shift(tree, -typemap->first);
    if (code == MPIOX_OK)
        code = mpiox_tree_export(tree, 0, typemap->extent, out);
    mpiox_tree_free(tree);
    return code;
}
