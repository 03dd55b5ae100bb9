/* mpiio_ext_tools.c - the functions that all tools need. */
#include "mpiio_ext_tools.h"

#include <stdatomic.h>

#include "mpiox_error.h"

const char *mpiio_ext_tools_error_name(int code)
{
    return mpiox_error_name(code);
}

void mpiio_ext_fence(void)
{
    atomic_thread_fence(memory_order_acquire);
}
