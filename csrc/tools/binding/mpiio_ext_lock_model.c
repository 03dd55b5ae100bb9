/*
 * mpiio_ext_lock_model.c - the lock model for Python: named plain structs in, rows of numbers out.
 */
#include "mpiio_ext_tools.h"
#include "mpiox_lock_model.h"

_Static_assert(sizeof(mpiox_lock_model_counts) == 12 * sizeof(int64_t), "a row of numbers");

int mpiio_ext_lock_model_simulate(const char *method, int64_t start, int64_t end, int64_t stripe_size, int32_t servers,
                                  int32_t aggregators, const mpiio_ext_lock_model_system *system,
                                  const mpiio_ext_lock_model_run *run, int64_t *counts, int64_t *sizes,
                                  mpiio_ext_lock_model_totals *totals)
{
    const mpiox_geometry geometry = {
        .start = start, .end = end, .stripe_size = stripe_size, .servers = servers, .aggregators = aggregators};
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
    mpiox_lock_model_outcome outcome = {.servers = (mpiox_lock_model_counts *)counts};
    int rc = mpiox_lock_model_simulate(mpiox_partition_find(method), &geometry, &file_system, &how, &outcome);
    for (int i = 0; i < MPIOX_LOCK_MODEL_SIZES; i++)
        sizes[i] = outcome.sizes[i];
    totals->time_s = outcome.time;
    totals->rounds = outcome.rounds;
    totals->steps = outcome.steps;
    totals->aggregators_used = outcome.aggregators_used;
    return rc;
}
