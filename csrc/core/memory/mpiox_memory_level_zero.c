/*
 * mpiox_memory_level_zero.c - memory of Intel GPUs: an error instead of a crash.
 *
 * Level Zero answers a question about memory only to one who has the context in which it was allocated (specification,
 * zeMemGetAllocProperties), and only the program has that. Therefore such memory cannot be copied here. It is known by
 * the processor, which cannot read it.
 */
#include "mpiox_memory_driver.h"

enum { UNSUPPORTED = 1 };

static const char *const functions[] = {NULL};

static void take(void *const *found)
{
    (void)found;
}

static bool find(const void *pointer, mpiox_device *out)
{
    *out = (mpiox_device){.failure = UNSUPPORTED};
    return !mpiox_memory_is_readable(pointer);
}

static const char *result_name(int result)
{
    (void)result;
    return "not supported: copy it to the host first";
}

const mpiox_memory_kind mpiox_memory_level_zero = {
    .name = "Level Zero",
    .library = "libze_loader.so",
    .functions = functions,
    .take = take,
    .find = find,
    .result_name = result_name,
};
