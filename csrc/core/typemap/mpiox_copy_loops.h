/*
 * mpiox_copy_loops.h - loops over equal blocks, specialised by block length. Included by mpiox_copy.c only.
 *
 * A memcpy of constant size becomes one or a few register moves, so that each power of two gets a loop of its own,
 * unrolled by four to overlap the loads. Odd lengths up to 64 use two overlapping moves of the next smaller power of
 * two. Vector gathers are not used: element loads keep up with the caches.
 */
#ifndef MPIOX_COPY_LOOPS_H
#define MPIOX_COPY_LOOPS_H

#include <stdint.h>
#include <string.h>

/* Copy `length` (> 0) bytes: up to 64 by two overlapping moves, more by memcpy. */
static inline void mpiox_copy_small(char *target, const char *source, int64_t length)
{
    if (length > 64) {
        memcpy(target, source, (size_t)length);
    } else if (length > 32) {
        char head[32], tail[32];
        memcpy(head, source, 32);
        memcpy(tail, source + length - 32, 32);
        memcpy(target, head, 32);
        memcpy(target + length - 32, tail, 32);
    } else if (length > 16) {
        char head[16], tail[16];
        memcpy(head, source, 16);
        memcpy(tail, source + length - 16, 16);
        memcpy(target, head, 16);
        memcpy(target + length - 16, tail, 16);
    } else if (length >= 8) {
        uint64_t head, tail;
        memcpy(&head, source, 8);
        memcpy(&tail, source + length - 8, 8);
        memcpy(target, &head, 8);
        memcpy(target + length - 8, &tail, 8);
    } else if (length >= 4) {
        uint32_t head, tail;
        memcpy(&head, source, 4);
        memcpy(&tail, source + length - 4, 4);
        memcpy(target, &head, 4);
        memcpy(target + length - 4, &tail, 4);
    } else {
        const char head = source[0], middle = source[length / 2], tail = source[length - 1];
        target[0] = head;
        target[length / 2] = middle;
        target[length - 1] = tail;
    }
}

/* Loop over `count` blocks of the constant length L; the strides may be constants or variables. */
#define MPIOX_COPY_BLOCKS(L, target, target_stride, source, source_stride, count)                                      \
    do {                                                                                                               \
        int64_t left_ = (count);                                                                                       \
        for (; left_ >= 4; left_ -= 4) {                                                                               \
            char a_[L], b_[L], c_[L], d_[L];                                                                           \
            memcpy(a_, source, L);                                                                                     \
            memcpy(b_, (source) + (source_stride), L);                                                                 \
            memcpy(c_, (source) + 2 * (source_stride), L);                                                             \
            memcpy(d_, (source) + 3 * (source_stride), L);                                                             \
            memcpy(target, a_, L);                                                                                     \
            memcpy((target) + (target_stride), b_, L);                                                                 \
            memcpy((target) + 2 * (target_stride), c_, L);                                                             \
            memcpy((target) + 3 * (target_stride), d_, L);                                                             \
            target += 4 * (target_stride);                                                                             \
            source += 4 * (source_stride);                                                                             \
        }                                                                                                              \
        for (; left_ > 0; left_--) {                                                                                   \
            memcpy(target, source, L);                                                                                 \
            target += (target_stride);                                                                                 \
            source += (source_stride);                                                                                 \
        }                                                                                                              \
    } while (0)

/* The three forms: both strided, target contiguous (gather), source contiguous (scatter). */
#define MPIOX_COPY_LOOPS(L)                                                                                            \
    static void both_##L(char *t, int64_t t_stride, const char *s, int64_t s_stride, int64_t n)                        \
    {                                                                                                                  \
        MPIOX_COPY_BLOCKS(L, t, t_stride, s, s_stride, n);                                                             \
    }                                                                                                                  \
    static void gather_##L(char *restrict t, const char *restrict s, int64_t s_stride, int64_t n)                      \
    {                                                                                                                  \
        MPIOX_COPY_BLOCKS(L, t, (int64_t)(L), s, s_stride, n);                                                         \
    }                                                                                                                  \
    static void scatter_##L(char *restrict t, int64_t t_stride, const char *restrict s, int64_t n)                     \
    {                                                                                                                  \
        MPIOX_COPY_BLOCKS(L, t, t_stride, s, (int64_t)(L), n);                                                         \
    }

MPIOX_COPY_LOOPS(1)
MPIOX_COPY_LOOPS(2)
MPIOX_COPY_LOOPS(4)
MPIOX_COPY_LOOPS(8)
MPIOX_COPY_LOOPS(16)
MPIOX_COPY_LOOPS(32)
MPIOX_COPY_LOOPS(64)

#endif
