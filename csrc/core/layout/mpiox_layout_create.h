/* mpiox_layout_create.h - creating a file with the striping that a program requests, if the file system permits it. */
#ifndef MPIOX_LAYOUT_CREATE_H
#define MPIOX_LAYOUT_CREATE_H

#include <stdbool.h>

#include "mpiox_layout_inspect.h"

typedef enum mpiox_layout_made {
    MPIOX_MADE_NOTHING = 0, /* no file was made: there is one, no wish, or a file system without such a thing */
    MPIOX_MADE_FILE,        /* an empty file, whose striping was refused: it has that of its folder */
    MPIOX_MADE_STRIPED      /* an empty file with the striping, as far as the file system has enough servers */
} mpiox_layout_made;

/* Make `path`, empty, unless there is something of that name. One process, before the others open it. Never fails: a
 * file that is not created here is left to its opener. Blocking; errno is kept. On file systems without striping, and
 * without a wish, no more than one or two system calls. */
mpiox_layout_made mpiox_layout_create(const char *path, const mpiox_layout_wish *wish);

#endif
