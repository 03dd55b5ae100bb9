/*
 * wait.h - waiting for a word, in a model: csrc/core/common/mpiox_wait.h without its sleep, which the kernel ends. A
 * model may define IDLE(idle), the work of a rank that begins to wait.
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
#ifndef IDLE
#define IDLE(idle) ((void)(idle))
#endif

static uint32_t mpiox_futex_get(mpiox_futex *word);

static uint32_t mpiox_wait_while(mpiox_futex *word, uint32_t old, const mpiox_idle *idle)
{
    uint32_t now;
    IDLE(idle);
    WAIT_WHILE((now = mpiox_futex_get(word)) == old);
    return now;
}

#endif
