/*
 * wait.h - waiting for a word, in a model: csrc/core/common/mpiox_wait.h without its sleep, which the kernel ends.
 */
#ifndef WAIT_H
#define WAIT_H

#include "model.h"

typedef struct mpiox_futex {
    ATOMIC(uint32_t) value, sleepers;
} mpiox_futex;
typedef struct mpiox_idle {
    void *work, *context;
} mpiox_idle;

#define syscall(...) ((void)0)

static uint32_t mpiox_futex_get(mpiox_futex *word);

static uint32_t mpiox_wait_while(mpiox_futex *word, uint32_t old, const mpiox_idle *idle)
{
    uint32_t now;
    (void)idle;
    WAIT_WHILE((now = mpiox_futex_get(word)) == old);
    return now;
}

#endif
