/*
 * mpiio_ext_lock_model.c - the lock model for Python: named plain structs in, rows of numbers out.
 */
#include <string.h>

#include "mpiio_ext_tools.h"
#include "mpiox_lock_model.h"

_Static_assert(sizeof(mpiox_lock_model_counts) == 12 * sizeof(int64_t), "a row of numbers");
_Static_assert(sizeof((mpiox_lock_model_outcome *)0)->sizes == sizeof((mpiio_ext_lock_model_outcome *)0)->sizes,
               "as many sizes");

int mpiio_ext_lock_model_simulate(const char *method, const mpiio_ext_lock_model_geometry *geometry,
                                  const mpiio_ext_lock_model_system *system, const mpiio_ext_lock_model_run *run,
                                  mpiio_ext_lock_model_outcome *outcome)
{
    const mpiox_geometry region = {.start = geometry->start,
                                   .end = geometry->end,
                                   .stripe_size = geometry->stripe_size,
                                   .servers = geometry->servers,
                                   .aggregators = geometry->aggregators};
    const mpiox_lock_model_system file_system = {.protocol = system->protocol,
                                                 .granularity = system->granularity_bytes,
                                                 .growth_bytes = system->growth_bytes,
                                                 .growth_holders = system->growth_holders,
                                                 .forward_holders = system->forward_holders,
                                                 .rpc_bytes = system->rpc_bytes,
                                                 .round_trip = system->round_trip_s,
                                                 .enqueue = system->enqueue_s,
                                                 .lock_service = system->lock_service_s,
                                                 .request_overhead = system->request_overhead_s,
                                                 .server_bandwidth = system->server_bandwidth_bytes_s,
                                                 .client_bandwidth = system->client_bandwidth_bytes_s,
                                                 .commit = system->commit_s,
                                                 .dirty_server = system->dirty_server_bytes,
                                                 .dirty_client = system->dirty_client_bytes};
    const mpiox_lock_model_run how = {.window_bytes = run->window_bytes,
                                      .stripe_size_io = run->stripe_size_io != 0,
                                      .reads = run->reads != 0,
                                      .synchronise = run->synchronise != 0,
                                      .collectives = run->collectives,
                                      .shuffle = run->shuffle != 0,
                                      .seed = run->seed,
                                      .stop = run->stop,
                                      .done_bytes = run->done_bytes};
    mpiox_lock_model_outcome counted = {.servers = (mpiox_lock_model_counts *)outcome->counts};
    int rc = mpiox_lock_model_simulate(mpiox_partition_find(method), &region, &file_system, &how, &counted);
    memcpy(outcome->sizes, counted.sizes, sizeof outcome->sizes);
    outcome->time_s = counted.time;
    outcome->rounds = counted.rounds;
    outcome->steps = counted.steps;
    outcome->aggregators_used = counted.aggregators_used;
    return rc;
}
