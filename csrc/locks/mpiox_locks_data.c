/*
 * mpiox_locks_data.c - the data of a step: through the aggregators' links and the servers' queues.
 *
 * A request's data starts when all its locks are held. A write leaves its aggregator piece after piece, in file order,
 * at the client's bandwidth; the aggregator's next request may be issued when the last has left (the file system writes
 * behind), but a round ends only when all is on the servers. A read is asked for at once; the next request is issued
 * when its data has come. A server takes the pieces of a step in the order in which they arrive, behind those of
 * earlier steps.
 */
#include <stdlib.h>

#include "mpiox_locks_state.h"

typedef struct arrival { /* in place of locks_range while the data is served */
    double at;
    int64_t piece;
} arrival;

_Static_assert(sizeof(arrival) <= sizeof(locks_range), "arrivals use the memory of ranges");

static int compare_arrivals(const void *a, const void *b)
{
    const arrival *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->piece > y->piece) - (x->piece < y->piece);
}

static void send(locks_state *state)
{
    const mpiox_locks_system *system = state->system;
    for (int64_t i = 0; i < state->n_requests; i++) {
        const locks_request *request = &state->requests[i];
        double t = request->locked;
        for (int32_t k = 0; k < request->pieces; k++) {
            locks_piece *piece = &state->pieces[request->first_piece + k];
            if (!state->run->reads)
                t += (double)(piece->to - piece->from) / system->client_bandwidth;
            piece->arrives = t + system->round_trip / 2;
        }
        state->clocks[request->aggregator] = t;
        if (state->run->reads)
            state->written[request->aggregator] = t + system->round_trip +
                                                  (double)request->length / system->client_bandwidth;
    }
}

static void serve(locks_state *state, int32_t server)
{
    arrival *queue = (arrival *)state->sorted;
    int64_t n = 0;
    bool ascending = true;
    for (int64_t p = state->heads[server]; p >= 0; p = state->pieces[p].next) {
        queue[n] = (arrival){.at = state->pieces[p].arrives, .piece = p};
        ascending = ascending && (n == 0 || compare_arrivals(&queue[n - 1], &queue[n]) < 0);
        n++;
    }
    if (!ascending)
        qsort(queue, (size_t)n, sizeof *queue, compare_arrivals);
    double clock = state->data_clocks[server];
    for (int64_t i = 0; i < n; i++) {
        const locks_piece *piece = &state->pieces[queue[i].piece];
        const int32_t aggregator = state->requests[piece->request].aggregator;
        clock = locks_later(clock, queue[i].at) + locks_data_time(state->system, piece->to - piece->from);
        state->written[aggregator] = locks_later(state->written[aggregator], clock + state->system->round_trip / 2);
    }
    state->data_clocks[server] = clock;
}

void mpiox_locks_data_step(locks_state *state)
{
    send(state);
    for (int32_t i = 0; i < state->n_touched; i++)
        serve(state, state->touched[i]);
    for (int64_t i = 0; state->run->reads && i < state->n_requests; i++) {
        const int32_t aggregator = state->requests[i].aggregator;
        state->clocks[aggregator] = state->written[aggregator];
    }
}
