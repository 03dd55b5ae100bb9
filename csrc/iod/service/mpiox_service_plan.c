/* mpiox_service_plan.c - see mpiox_service_plan.h. */
#include "mpiox_service_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "mpiox_integer.h"
#include "mpiox_print.h"

enum {
    PAGE_LEAST = 64 << 10,
    PAGE_MOST = 4 << 20,
    PAGE_USUAL = 1 << 20,
    PAGES_WANTED = 16, /* of a cache: fewer, larger ones would wait for each other */
    SLOTS_LEAST = 16,
    SLOTS_MOST = 256,
    MANY_PER_CORE = 8, /* delegates */
    SPARE_S = 30       /* that a delegate waits for its first client beyond the deadlines of the steps */
};

int32_t mpiox_service_count(const char *text, int32_t ranks, int32_t nodes)
{
    static const char per_node[] = "per_node=";
    const bool each = strncasecmp(text, per_node, sizeof per_node - 1) == 0;
    char *end = NULL;
    const long value = strtol(each ? text + sizeof per_node - 1 : text, &end, 10);
    int64_t count = value;

    if (value <= 0)
        return 0;
    if (each)
        count = (int64_t)value * nodes;
    else if (*end == '%')
        count = (int64_t)ranks * value / 100;
    if (count > INT16_MAX) /* they are numbers in owner_of[] of a file */
        count = INT16_MAX;
    return count < 1 ? 1 : (int32_t)count;
}

static int64_t page_bytes(const mpiox_hints *hints)
{
    int64_t bytes = hints->striping_unit > 0 ? hints->striping_unit : PAGE_USUAL;

    if (hints->delegate_page > 0)
        return mpiox_round_up(hints->delegate_page, 4096);
    while (bytes > PAGE_MOST || (bytes > PAGE_LEAST && bytes * PAGES_WANTED > hints->delegate_cache))
        bytes /= 2;
    bytes = bytes < PAGE_LEAST ? PAGE_LEAST : bytes;
    return mpiox_round_up(bytes, 4096);
}

static int32_t within(int64_t value, int32_t least, int32_t most)
{
    return value < least ? least : value > most ? most : (int32_t)value;
}

/* Is every node a pretended one, or the only one? Then all ranks are on this host. */
static bool one_host(const mpiox_topology *topology, const mpiox_hints *hints)
{
    return topology->n_nodes == 1 || (hints->ranks_per_node > 0 && mpiox_topology_world_on_one_node(0));
}

/* The memory of this host for each of its delegates: a larger cache could not be filled, and the tables for its frames
 * alone may need more than there is. */
static int64_t share_of_memory(const mpiox_service_plan *plan, bool together)
{
    const int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    const int64_t hosts = together ? 1 : plan->topology->n_nodes, each = (plan->count + hosts - 1) / hosts;

    return bytes > 0 ? bytes / (each > 0 ? each : 1) : INT64_MAX;
}

void mpiox_service_plan_make(const mpiox_hints *hints, mpiox_topology *topology, const char *id,
                             mpiox_service_plan *out)
{
    mpiox_server_options *server = &out->orders.server;
    const bool elsewhere = hints->delegate_hosts[0] != '\0'; /* perhaps on hosts without ranks */

    memset(out, 0, sizeof *out); /* padding too: it is sent */
    out->topology = topology;
    out->count = mpiox_service_count(hints->delegates, topology->size, topology->n_nodes);
    out->seconds = hints->delegate_timeout;
    out->report_s = hints->delegate_report;
    out->orders.seconds = out->seconds;
    out->orders.listens = topology->n_nodes > 1 || elsewhere;
    out->orders.place.loopback = one_host(topology, hints) && !elsewhere;
    snprintf(out->orders.place.interfaces, sizeof out->orders.place.interfaces, "%s", hints->delegate_interface);
    snprintf(out->orders.service, sizeof out->orders.service, "%s", id);
    server->geometry.page_bytes = page_bytes(hints);
    server->memory_bytes = share_of_memory(out, one_host(topology, hints));
    if (server->memory_bytes > hints->delegate_cache)
        server->memory_bytes = hints->delegate_cache;
    server->keep = server->early = hints->close == MPIOX_CLOSE_BEHIND;
    snprintf(server->cache_dirs, sizeof server->cache_dirs, "%s", hints->delegate_cache_dir);
    server->geometry.cap_bytes = server->cache_dirs[0] != '\0' ? hints->delegate_cache : server->memory_bytes;
    server->geometry.slots = within(2 * (int64_t)topology->size, SLOTS_LEAST, SLOTS_MOST);
    server->delegates = out->count;
    server->io_threads = hints->delegate_threads;
    server->prefetch_pages = hints->delegate_prefetch;
    server->storage = (int32_t)hints->storage;
    mpiox_hint_format(mpiox_hints_spec(mpiox_hints_find("mpiox_delegate_scheduler")), hints, server->scheduler,
                      sizeof server->scheduler);
    server->quantum = hints->delegate_quantum;
    server->window_us = hints->delegate_time_slice;
    server->order_patience_ms = hints->delegate_patience;
    server->patience_s = 2 * out->seconds + SPARE_S;
}

bool mpiox_service_plan_check(const mpiox_service_plan *plan, const mpiox_hints *hints, bool print, const char **reason)
{
    static char text[160];
    const mpiox_cache_geometry *geometry = &plan->orders.server.geometry;
    const int64_t least = mpiox_cache_least_bytes(geometry);
    const int64_t cores = (int64_t)sysconf(_SC_NPROCESSORS_ONLN) * plan->topology->n_nodes;

    if (hints->delegate_cache < least) {
        snprintf(text, sizeof text, "mpiox_delegate_cache=%lld is too small: pages of %lld bytes need %lld",
                 (long long)hints->delegate_cache, (long long)geometry->page_bytes, (long long)least);
        *reason = text;
        return false;
    }
    if (print && hints->delegate_cache > geometry->cap_bytes)
        mpiox_print(
            "mpiio_ext: mpiox_delegate_cache=%lld: the machine has only %lld bytes for each delegate; this value is "
            "in force\n",
            (long long)hints->delegate_cache, (long long)geometry->cap_bytes);
    if (print && plan->orders.place.loopback && hints->delegate_interface[0] != '\0' && /* else a delegate's error */
        !mpiox_rendezvous_has_interface(hints->delegate_interface))
        mpiox_print("mpiio_ext: mpiox_delegate_interface=%s: this host has no such network interface\n",
                    hints->delegate_interface);
    if (print && plan->count > plan->topology->size && plan->count > MANY_PER_CORE * cores)
        mpiox_print("mpiio_ext: mpiox_delegates=%s: %d delegates for %d ranks on %lld cores; the start may take long\n",
                    hints->delegates, (int)plan->count, (int)plan->topology->size, (long long)cores);
    return true;
}

int32_t mpiox_service_plan_node(const mpiox_service_plan *plan, int32_t delegate)
{
    return (int32_t)((int64_t)delegate * plan->topology->n_nodes / plan->count);
}

int32_t mpiox_service_plan_rank(const mpiox_service_plan *plan, int32_t delegate, bool last)
{
    const mpiox_topology *t = plan->topology;
    const int32_t node = mpiox_service_plan_node(plan, delegate);
    const int32_t size = t->node_start[node + 1] - t->node_start[node];
    int32_t before = 0; /* delegates of the node with lower indices */

    while (before < delegate && mpiox_service_plan_node(plan, delegate - before - 1) == node)
        before++;
    before %= size;
    return t->node_ranks[t->node_start[node] + (last ? size - 1 - before : before)];
}

mpiox_process_orders mpiox_service_plan_orders(const mpiox_service_plan *plan, int32_t delegate, const char *mode)
{
    mpiox_process_orders orders = plan->orders;

    orders.node = mpiox_service_plan_node(plan, delegate);
    orders.server.delegate = delegate;
    snprintf(orders.mode, sizeof orders.mode, "%s", mode);
    return orders;
}

int mpiox_announcements_gather(const mpiox_topology *topology, mpiox_announcement *all, int32_t count)
{
    const size_t bytes = (size_t)count * sizeof *all;

    if (topology->size == 1)
        return MPIOX_OK;
    return PMPI_Allreduce(MPI_IN_PLACE, all, (int)bytes, MPI_BYTE, MPI_BOR, topology->comm) == MPI_SUCCESS
               ? MPIOX_OK
               : MPIOX_E_MPI;
}

int mpiox_announcements_code(const mpiox_announcement *all, int32_t count, mpiox_error *error)
{
    for (int32_t i = 0; i < count; i++) {
        if (all[i].code != MPIOX_OK) {
            *error = all[i].error;
            return all[i].code;
        }
    }
    return MPIOX_OK;
}
