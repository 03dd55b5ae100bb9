/* mpiox_treap.c - see mpiox_treap.h. */
#include "mpiox_treap.h"

static mpiox_treap_node *node_of(const mpiox_treap *treap, uint32_t element)
{
    return (mpiox_treap_node *)(void *)((char *)treap->first + element * treap->stride);
}

static void renew(const mpiox_treap *treap, uint32_t element)
{
    if (treap->renew != NULL)
        treap->renew(treap->owner, element);
}

/* Cut a tree into the part before a place and the rest. */
static void split(const mpiox_treap *treap, uint32_t tree, const void *place, uint32_t *less, uint32_t *rest)
{
    if (tree == MPIOX_TREAP_NONE) {
        *less = *rest = MPIOX_TREAP_NONE;
        return;
    }
    mpiox_treap_node *at = node_of(treap, tree);
    if (treap->is_before(treap->owner, tree, place)) {
        split(treap, at->right, place, &at->right, rest);
        *less = tree;
    } else {
        split(treap, at->left, place, less, &at->left);
        *rest = tree;
    }
    renew(treap, tree);
}

/* Every element of `low` is before every one of `high`. */
static uint32_t join(const mpiox_treap *treap, uint32_t low, uint32_t high)
{
    if (low == MPIOX_TREAP_NONE || high == MPIOX_TREAP_NONE)
        return low == MPIOX_TREAP_NONE ? high : low;
    const bool above = node_of(treap, low)->priority > node_of(treap, high)->priority;
    if (above)
        node_of(treap, low)->right = join(treap, node_of(treap, low)->right, high);
    else
        node_of(treap, high)->left = join(treap, low, node_of(treap, high)->left);
    renew(treap, above ? low : high);
    return above ? low : high;
}

void mpiox_treap_insert(const mpiox_treap *treap, uint32_t *root, uint32_t element, const void *place)
{
    mpiox_treap_node *at = node_of(treap, element);
    uint32_t less, rest;
    at->left = at->right = MPIOX_TREAP_NONE;
    renew(treap, element);
    split(treap, *root, place, &less, &rest);
    *root = join(treap, join(treap, less, element), rest);
}

void mpiox_treap_remove(const mpiox_treap *treap, uint32_t *root, const void *place, const void *behind)
{
    uint32_t less, rest, gone;
    split(treap, *root, place, &less, &rest);
    split(treap, rest, behind, &gone, &rest);
    *root = join(treap, less, rest);
}
