/*
 * mpiox_partition_registry.c - every method by index and by name.
 */
#include <stddef.h>
#include <string.h>

#include "mpiox_partition_methods.h"

#define ADDRESS(name) &mpiox_partition_##name,
static const mpiox_partition_method *const methods[] = {MPIOX_PARTITION_METHODS(ADDRESS)};

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
