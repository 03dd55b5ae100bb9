/* mpiox_service_heap.c - see mpiox_service_heap.h. */
#include "mpiox_service_heap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { SMALLEST = 24, STEP = 16, LARGEST = 1032, KEPT = 7 }; /* of glibc's cache of a thread: sizes, blocks of each */

/* The heap grows below the program break; other threads' heaps and mappings lie above it. */
static bool is_far(uintptr_t block)
{
    return block >= (uintptr_t)sbrk(0);
}

void mpiox_service_heap_settle(void)
{
    void *probe = malloc(2 * LARGEST); /* not out of the cache */
    const bool heap = probe != NULL && !is_far((uintptr_t)probe);

    free(probe);
    for (size_t bytes = SMALLEST; heap && bytes <= LARGEST; bytes += STEP) {
        void *block[KEPT];

        for (int i = 0; i < KEPT; i++)
            block[i] = malloc(bytes);
        for (int i = KEPT - 1; i >= 0; i--)
            if (!is_far((uintptr_t)block[i]))
                free(block[i]);
    }
}
