/* mpiox_count.c - see mpiox_count.h. */
#include "mpiox_count.h"

atomic_bool mpiox_count_is_plain;
static atomic_bool several;

void mpiox_count_threads(void)
{
    atomic_store(&several, true);
    atomic_store(&mpiox_count_is_plain, false);
}

void mpiox_count_one_thread(void)
{
    if (!atomic_load(&several))
        atomic_store(&mpiox_count_is_plain, true);
}
