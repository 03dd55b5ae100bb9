/* mpiox_layout_create.h - creating a file with the striping that a program requests, if the file system permits it. */
#ifndef MPIOX_LAYOUT_CREATE_H
#define MPIOX_LAYOUT_CREATE_H

#include <stdbool.h>

#include "mpiox_layout_inspect.h"

typedef enum mpiox_layout_made {
    MPIOX_MADE_NOTHING = 0, /* no file was created: it exists, there is no wish, or the file system has no striping */
    MPIOX_MADE_FILE,        /* an empty file, with the folder's striping: the file system has refused the wish */
    MPIOX_MADE_STRIPED      /* an empty file with the striping, as far as the file system has enough servers */
} mpiox_layout_made;

/* Create an empty file `path`, unless that name exists. One process, before the others open the file. Never fails: its
 * opener creates a file that is not created here. Blocking; errno is kept. On file systems without striping, and
 * without a wish, no more than one or two system calls. */
mpiox_layout_made mpiox_layout_create(const char *path, const mpiox_layout_wish *wish);

#endif
