/*
 * mpiox_partition_registry.c - every method by index and by name. A new method adds one line here.
 */
#include <stddef.h>
#include <string.h>

#include "mpiox_partition_methods.h"

static const mpiox_partition_method *const methods[] = {
    &mpiox_partition_even,         &mpiox_partition_aligned,   &mpiox_partition_static_cyclic,
    &mpiox_partition_group_cyclic, &mpiox_partition_transpose,
};

int mpiox_partition_count(void)
{
    return (int)(sizeof methods / sizeof methods[0]);
}

const mpiox_partition_method *mpiox_partition_get(int index)
{
    return index >= 0 && index < mpiox_partition_count() ? methods[index] : NULL;
}

const mpiox_partition_method *mpiox_partition_find(const char *name)
{
    for (int i = 0; name != NULL && i < mpiox_partition_count(); i++)
        if (strcmp(methods[i]->name, name) == 0)
            return methods[i];
    return NULL;
}
