/*
 * near_heap.c - are a program's blocks of memory as near to each other as they are without delegates?
 *
 * A program that keeps the distance of two blocks in an int is wrong, and works with a heap of less than 2 GiB.
 */
#include <limits.h>
#include <stdint.h>

#include "report.h"

enum { BLOCKS = 20000, LARGEST = 2000 };

int main(int argc, char **argv)
{
    int near = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *first = malloc(LARGEST + 16);
    for (int i = 0; i < BLOCKS; i++) {
        const intptr_t distance = (intptr_t)malloc((size_t)(16 + i * 37 % LARGEST)) - (intptr_t)first;

        near &= distance > INT_MIN && distance < INT_MAX;
    }
    check("near", near);
    MPI_Finalize();
    return failures;
}
