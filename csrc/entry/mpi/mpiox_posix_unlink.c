/* mpiox_posix_unlink.c - see mpiox_posix_unlink.h. */
#include "mpiox_posix_unlink.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_posix_own.h"
#include "mpiox_storage_subfiles_files.h"

atomic_bool mpiox_posix_has_subfiles;

struct mpiox_posix_unlinking {
    mpiox_storage_subfiles subfiles;
    int guard;
    const char *kept; /* why the subfiles stay; NULL: they go */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char left[PATH_MAX]; /* a folder that was emptied; "": there is none */

/* It becomes the folder that is left, and the one before goes. */
static void leave(const char *folder)
{
    pthread_mutex_lock(&lock);
    if (left[0] != '\0' && strcmp(left, folder) != 0)
        (void)rmdir(left); /* others may have files in it */
    snprintf(left, sizeof left, "%s", folder);
    pthread_mutex_unlock(&lock);
}

void mpiox_posix_unlink_finalize(void)
{
    leave("");
}

void mpiox_posix_note_subfiles(void)
{
    atomic_store_explicit(&mpiox_posix_has_subfiles, true, memory_order_relaxed);
}

void mpiox_posix_look_for_subfiles(void)
{
    const char *hints = getenv("MPIOX_HINTS");

    if (hints != NULL && strstr(hints, "mpiox_subfiles") != NULL)
        mpiox_posix_note_subfiles();
}

mpiox_posix_unlinking *mpiox_posix_unlinking_of(const void *caller, int folder, const char *path)
{
    const int before = errno;
    char text[PATH_MAX];
    mpiox_posix_unlinking *unlinking = NULL;

    if (path != NULL && !mpiox_posix_is_own(caller) && mpiox_posix_path(folder, path, text) &&
        mpiox_storage_subfiles_is_index(text) && !mpiox_posix_is_in_handler() &&
        (unlinking = calloc(1, sizeof *unlinking)) != NULL &&
        !mpiox_storage_subfiles_begin_unlink(text, &unlinking->subfiles, &unlinking->guard, &unlinking->kept)) {
        free(unlinking);
        unlinking = NULL;
    }
    errno = before;
    return unlinking;
}

void mpiox_posix_unlinked(mpiox_posix_unlinking *unlinking, bool gone)
{
    const int before = errno;
    char folder[PATH_MAX];

    (void)mpiox_storage_subfiles_folder(&unlinking->subfiles, folder, sizeof folder);
    if (gone && unlinking->kept == NULL)
        unlinking->kept = mpiox_storage_subfiles_end_unlink(&unlinking->subfiles);
    if (gone && unlinking->kept != NULL)
        fprintf(stderr,
                "mpiio_ext: %s: %s: its subfiles stay in %s; `mpiio-ext subfiles rm --orphans` lists such ones\n",
                unlinking->subfiles.index, unlinking->kept, folder);
    else if (gone)
        leave(folder);
    if (unlinking->guard >= 0)
        close(unlinking->guard);
    mpiox_storage_subfiles_free(&unlinking->subfiles);
    free(unlinking);
    errno = before;
}
