/*
 * test_share.c - who gets the next frame under weighted fair queueing: requests that wait, without a delegate running.
 */
#include "harness.h"

#include "mpiox_server_share.h"

enum { CLIENTS = 3, SLOTS = 16 };

static mpiox_slot *slots[SLOTS];

static mpiox_server *make_server(const char *scheduler)
{
    mpiox_server_options options = options_for(4096, 8);
    running delegate;
    snprintf(options.scheduler, sizeof options.scheduler, "%s", scheduler);
    const mpiox_cache *cache = create_server(&delegate, &options);
    mpiox_futex_set(&cache->header->state, MPIOX_CACHE_SERVING); /* for mpiox_ring_take() */
    for (int i = 0; i < SLOTS; i++)
        slots[i] = mpiox_ring_take(cache);
    for (int i = 0; i < CLIENTS; i++)
        delegate.server->files[i].weight = i + 1;
    return delegate.server;
}

/* Client c, of file c, waits. */
static void park(mpiox_server *server, int slot, int client)
{
    slots[slot]->question.page.client = client + 1;
    slots[slot]->file = client;
    mpiox_server_requests_append(server, &server->parked, slots[slot]);
}

/* Serve the one that is chosen; returns its client. */
static int serve_one(mpiox_server *server, int *slot)
{
    mpiox_server_share_choose(server);
    const mpiox_slot *chosen = mpiox_server_requests_take(server, &server->parked);
    const int client = (int)chosen->question.page.client - 1;
    for (*slot = 0; slots[*slot] != chosen; ++*slot) {
    }
    mpiox_server_share_charge(server, client + 1, client);
    return client;
}

static void test_shares_are_weights(void)
{
    mpiox_server *server = make_server("wfq");
    int served[CLIENTS] = {0}, slot;
    for (int i = 0; i < 2 * CLIENTS; i++)
        park(server, i, i % CLIENTS); /* two threads each */
    for (int i = 1; i <= 600; i++) {
        const int client = serve_one(server, &slot);
        served[client]++;
        park(server, slot, client);
        CHECK_EQUAL(server->parked.count, 2 * CLIENTS);
        for (int a = 0; a < CLIENTS; a++) {
            for (int b = 0; b < CLIENTS; b++)
                CHECK(served[a] * (b + 1) - served[b] * (a + 1) <= a + b + 2); /* by weight: one frame each */
        }
    }
    CHECK_EQUAL(served[0] + served[1] + served[2], 600);
    mpiox_server_free(server);
}

/* Who did not wait for long has saved nothing: it gets its share from now on. */
static void test_nothing_is_saved_up(void)
{
    mpiox_server *server = make_server("wfq");
    int slot, served = 0;
    park(server, 0, 0);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQUAL(serve_one(server, &slot), 0);
        park(server, slot, 0);
    }
    park(server, 1, 1);
    for (int i = 0; i < 30; i++) {
        const int client = serve_one(server, &slot);
        served += client == 0;
        park(server, slot, client);
    }
    CHECK(served >= 9 && served <= 11);
    mpiox_server_free(server);
}

/* Those of one client keep their order, and so do all of them without the scheduler. */
static void test_order_is_kept(void)
{
    static const char *const schedulers[] = {"wfq", "fifo", "elevator"};
    for (int k = 0; k < 3; k++) {
        mpiox_server *server = make_server(schedulers[k]);
        int slot;
        for (int i = 0; i < 6; i++)
            park(server, i, k == 0 ? 1 : i % CLIENTS);
        for (int i = 0; i < 6; i++) {
            (void)serve_one(server, &slot);
            CHECK_EQUAL(slot, i);
        }
        mpiox_server_free(server);
    }
}

int main(void)
{
    test_shares_are_weights();
    test_nothing_is_saved_up();
    test_order_is_kept();
    return check_exit();
}
