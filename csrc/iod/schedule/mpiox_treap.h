/*
 * mpiox_treap.h - an ordered set of elements of an array: a search tree whose shape is random, whatever the order of
 * insertions. The nodes lie in the elements; nothing is allocated.
 *
 * Guarantees. Logarithmic time, expected. With `renew` every element knows its subtree at all times.
 * Source.     R. Seidel and C. Aragon, "Randomized search trees", Algorithmica 16, 1996.
 */
#ifndef MPIOX_TREAP_H
#define MPIOX_TREAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MPIOX_TREAP_NONE UINT32_MAX

typedef struct mpiox_treap_node {
    uint32_t left, right; /* elements */
    uint32_t priority;    /* random, set before the element is inserted */
} mpiox_treap_node;

typedef struct mpiox_treap { /* an array of elements */
    void *owner;             /* of the array; passed to the functions */
    mpiox_treap_node *first; /* of element 0 */
    size_t stride;           /* bytes from one element to the next */
    bool (*is_before)(const void *owner, uint32_t element, const void *place); /* the order of the tree */
    void (*renew)(void *owner, uint32_t element);                              /* its subtree is another one; or NULL */
} mpiox_treap;

/* The element's place is at `place`, in no tree of this root before. */
void mpiox_treap_insert(const mpiox_treap *treap, uint32_t *root, uint32_t element, const void *place);
/* All from `place` on that are before `behind` go. */
void mpiox_treap_remove(const mpiox_treap *treap, uint32_t *root, const void *place, const void *behind);

#endif
