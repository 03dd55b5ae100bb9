/* mpiox_server_replica.c - see mpiox_server_replica.h. */
#include "mpiox_server_replica.h"

#include "mpiox_server_pages.h"

static bool is_open_replica(const mpiox_server *server, int32_t file)
{
    return file >= 0 && file < MPIOX_CACHE_MAX_FILES && server->files[file].storage != NULL &&
           mpiox_server_is_replica(server, file);
}

int mpiox_server_mark_replica(mpiox_server *server, int32_t file)
{
    if (!is_open_replica(server, file))
        return MPIOX_E_ARG;
    for (uint32_t frame = server->files[file].frames.first; frame != MPIOX_CACHE_NO_FRAME;
         frame = server->info[frame].links[MPIOX_LINK_FILE].next) {
        server->info[frame].marked = true;
        server->info[frame].marked_writes = atomic_load(&server->cache.frames[frame].writes);
    }
    return MPIOX_OK;
}

/* Drop an unused frame, even a dirty one; only_marked: only if no client has written to it since it was marked. */
static void discard(mpiox_server *server, uint32_t frame, bool only_marked)
{
    mpiox_frame_info *info = &server->info[frame];
    if (info->busy || info->wants != 0 || !mpiox_frame_try_exclusive(&server->cache, frame))
        return;
    if (only_marked && (!info->marked || atomic_load(&server->cache.frames[frame].writes) != info->marked_writes)) {
        mpiox_frame_end_exclusive(&server->cache, frame);
        return;
    }
    mpiox_dirty_clear(&server->cache, frame);
    mpiox_server_drop_page(server, frame);
}

static void discard_all(mpiox_server *server, int32_t file, bool only_marked)
{
    uint32_t next;
    for (uint32_t frame = server->files[file].frames.first; frame != MPIOX_CACHE_NO_FRAME; frame = next) {
        next = server->info[frame].links[MPIOX_LINK_FILE].next;
        discard(server, frame, only_marked);
    }
}

int mpiox_server_trim_replica(mpiox_server *server, int32_t file)
{
    if (!is_open_replica(server, file))
        return MPIOX_E_ARG;
    discard_all(server, file, true);
    mpiox_server_serve_parked(server);
    return MPIOX_OK;
}

void mpiox_server_discard_copies(mpiox_server *server, int32_t file)
{
    discard_all(server, file, false);
}

void mpiox_server_forget_copies(mpiox_server *server)
{
    for (int32_t file = 0; file < MPIOX_CACHE_MAX_FILES; file++) {
        if (is_open_replica(server, file) && !server->files[file].drain.restores)
            discard_all(server, file, false);
    }
}
