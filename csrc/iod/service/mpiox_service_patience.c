/* mpiox_service_patience.c - see mpiox_service_patience.h. */
#include "mpiox_service_patience.h"

#include <inttypes.h>
#include <stdio.h>

#include "mpiox_cache_waiting.h"
#include "mpiox_ring.h"

static mpiox_service_patience own;

static void tell(const mpiox_cache *cache, int32_t op, int32_t file, int64_t page, double seconds, bool runs)
{
    const mpiox_cache_header *header = cache->header;
    const char *path = file >= 0 && file < MPIOX_CACHE_MAX_FILES ? header->files[file].path : "";
    char place[64] = "";

    if (page >= 0)
        snprintf(place, sizeof place, ", offset %" PRId64 ", length %" PRId64, page * cache->page_bytes,
                 cache->page_bytes);
    fprintf(stderr,
            "mpiio_ext: rank %d has waited %.0f s for I/O delegate %d (process %" PRId64 " on %s): %s%s%.*s%s: it is "
            "alive %s; `mpiio-ext delegates status` there shows it. The rank goes on waiting\n",
            own.rank, seconds, header->delegate, header->pid, header->host, mpiox_ring_op_name(op),
            path[0] != '\0' ? ": " : "", MPIOX_CACHE_PATH_BYTES, path, place,
            runs ? "and runs, but has not answered: its file system may hang, or be slow"
                 : "but does not run: it may be stopped (SIGSTOP, a debugger), or its node overloaded");
}

void mpiox_service_patience_set(const mpiox_service_patience *patience)
{
    const mpiox_cache_patience of_caches = {.seconds = patience->seconds, .rank = patience->rank, .tell = tell};

    own = *patience;
    mpiox_cache_set_patience(&of_caches);
}

void mpiox_service_patience_look(mpiox_process *delegate)
{
    const double seconds = delegate->link != NULL ? mpiox_link_waits_s(delegate->link) : 0;

    if (seconds < own.seconds)
        delegate->told = false;
    if (own.seconds <= 0 || seconds < own.seconds || delegate->told || !mpiox_link_is_alive(delegate->link))
        return;
    delegate->told = true;
    fprintf(stderr,
            "mpiio_ext: rank %d has waited %.0f s for an answer of an I/O delegate of another node (process %" PRId64
            " on %s): its connection is open; it may be stopped, its node overloaded, or its file system may hang; "
            "`mpiio-ext delegates status` there shows it. The rank goes on waiting\n",
            own.rank, seconds, delegate->pid, delegate->host);
}
