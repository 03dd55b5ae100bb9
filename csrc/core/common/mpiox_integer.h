/* mpiox_integer.h - arithmetic of offsets and sizes that several folders need. */
#ifndef MPIOX_INTEGER_H
#define MPIOX_INTEGER_H

#include <stdbool.h>
#include <stdint.h>

/* Greatest common divisor, >= 0; with 0 the result is the other number. */
static inline int64_t mpiox_common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

static inline int64_t mpiox_round_up(int64_t bytes, int64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static inline int64_t mpiox_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t mpiox_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline bool mpiox_is_within(int64_t value, int64_t low, int64_t high)
{
    return value >= low && value <= high;
}

static inline int64_t mpiox_clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

#endif
