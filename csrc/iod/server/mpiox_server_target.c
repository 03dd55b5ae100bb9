/*
 * mpiox_server_target.c - the I/O server of a page.
 *
 * Problem.   A scheduler that serves one server at a time (twins) must use the same name for a server in all delegates
 *            and for all files.
 * Algorithm. On Lustre the layout of a file names the object storage target of each stripe. The delegate reads it once,
 *            when it opens the file. On other file systems it numbers the file's stripes modulo its servers.
 * Limits.    Without a layout that names targets (another file system, or a component of a composite layout without
 *            objects at the open) server 0 is that of the file's first stripe: delegates agree on it within a file, but
 *            files that begin at different servers count them differently. In a composite layout the component with the
 *            largest extent stands for the whole file.
 */
#include "mpiox_server_target.h"

#include <stdlib.h>
#include <string.h>

#include "mpiox_layout.h"
#include "mpiox_storage_container.h"

enum { MOST_TARGETS = 2048 }; /* Lustre: 2,000 stripes of a file at most */

void mpiox_server_targets_find(const char *scheduler, const mpiox_storage *storage, mpiox_server_targets *out)
{
    int32_t found[MOST_TARGETS];
    mpiox_storage_deal deal;
    *out = (mpiox_server_targets){0};
    if (storage->fd < 0 || mpiox_storage_container.deal(storage, &deal) || strcmp(scheduler, "twins") != 0)
        return;
    const int32_t count = mpiox_layout_targets(storage->fd, &out->stripe_bytes, MOST_TARGETS, found);
    if (count > 0)
        out->index = malloc((size_t)count * sizeof *out->index);
    if (out->index == NULL)
        return;
    memcpy(out->index, found, (size_t)count * sizeof *out->index);
    out->count = count;
}

void mpiox_server_targets_free(mpiox_server_targets *targets)
{
    free(targets->index);
    *targets = (mpiox_server_targets){0};
}

int32_t mpiox_server_target_of(const mpiox_server_targets *targets, int64_t offset, int64_t unit_bytes, int32_t servers)
{
    if (targets->count > 0)
        return targets->index[offset / targets->stripe_bytes % targets->count];
    return servers > 0 ? (int32_t)(offset / unit_bytes % servers) : -1;
}
