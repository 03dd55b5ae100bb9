/*
 * mpiox_server_unwritten.c - files that exist only as long as the job (mpiox_close=never).
 *
 * Problem.   A scratch file is only in the caches of the job's delegates. It must not use all frames, for then no other
 *            file would get one, and it must leave no trace.
 * Algorithm. In the file system an empty file under the hidden name stands for it. Its dirty pages never leave the
 *            cache by themselves: syncs and closes do not request it, and a page that finds no room is refused. An
 *            eighth of the frames, at least one, stays for other files. When all clients have left each delegate
 *            discards the pages, and removes the empty file if it is still there.
 *            Some accesses need the bytes in a file all the same (atomic mode, openings without delegates, a survivor
 *            of a dead delegate). They find them in the empty file: flush barriers that drop pages write them there.
 * Guarantee. Acknowledged bytes can be read until the job ends, or until a delegate and all processes that map its
 *            memory are killed.
 */
#include "mpiox_server_unwritten.h"

#include <errno.h>

#include "mpiox_server_evict.h"
#include "mpiox_server_hidden.h"

enum { OTHERS = 8 }; /* part of the frames that is not for scratch files */

/* Drop a page without dirty bytes. */
static bool make_room(mpiox_server *server, int32_t file)
{
    uint32_t next;
    for (uint32_t frame = server->files[file].frames.first; frame != MPIOX_CACHE_NO_FRAME; frame = next) {
        next = server->info[frame].links[MPIOX_LINK_FILE].next;
        if (mpiox_server_dirty_of(server, frame) == 0 && mpiox_server_reuse(server, frame))
            return true;
    }
    return false;
}

int32_t mpiox_server_unwritten_room(const mpiox_server *server)
{
    const int32_t frames = server->cache.frame_count;
    return frames - (frames >= OTHERS ? frames / OTHERS : 1);
}

bool mpiox_server_has_unwritten_room(mpiox_server *server, bool write, mpiox_error *error)
{
    const int32_t room = write ? mpiox_server_unwritten_room(server) : server->cache.frame_count - 1;
    int32_t used = 0;
    for (int32_t file = 0; file < MPIOX_CACHE_MAX_FILES; file++)
        used += mpiox_server_is_unwritten(server, file) ? server->files[file].frames.count : 0;
    if (used < room)
        return true;
    for (int32_t file = 0; file < MPIOX_CACHE_MAX_FILES; file++) {
        if (mpiox_server_is_unwritten(server, file) && make_room(server, file))
            return true;
    }
    (void)mpiox_error_set(error, MPIOX_E_IO, ENOSPC, -1, -1,
                          "mpiox_delegate_cache has no room for more of a scratch file: the access");
    return false;
}

bool mpiox_server_asks_to_keep(const mpiox_server *server, const mpiox_slot *slot)
{
    return slot->op == MPIOX_OP_FLUSH && mpiox_server_is_unwritten(server, slot->file) &&
           (slot->question.flush.stable == 1 || slot->question.flush.then == MPIOX_FLUSH_CACHES);
}

void mpiox_server_end_unwritten(mpiox_server *server, int32_t file)
{
    _Atomic int32_t *flags = &server->cache.header->files[file].flags;
    if (!mpiox_server_is_unwritten(server, file))
        return;
    atomic_fetch_and(flags, ~MPIOX_FILE_UNWRITTEN);
    if (server->files[file].drain.holds_unwritten)
        mpiox_server_begin_drain(server, file);
}

void mpiox_server_remove_unwritten(const mpiox_server *server)
{
    for (int32_t file = 0; file < MPIOX_CACHE_MAX_FILES && atomic_load(&server->clients) == 0; file++) {
        if (mpiox_server_is_unwritten(server, file))
            mpiox_server_remove_hidden(server, file);
    }
}
