/* mpiox_delegate_main.c - see mpiox_delegate_main.h. */
#include "mpiox_delegate_main.h"

#include <string.h>

#include "mpiox_delegate_keep.h"
#include "mpiox_group_spawn.h"

int mpiox_delegate_main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "serve") == 0)
        return mpiox_delegate_keep();
    return mpiox_group_spawn_be_child(argc > 1 ? argv[1] : NULL);
}
