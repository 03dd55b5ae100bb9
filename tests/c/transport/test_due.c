/*
 * test_due.c - what an aggregator does to learn who sends to it: 10,000 pretended nodes are asked for their windows
 * once a call, and none again in any of its rounds.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "mpiox_message_inbox.c"

enum { NODES = 10000, ROUNDS = 50, EACH = 4 };

static int64_t asked;
static mpiox_extent extent = {0, 100};

/* Node n has something in rounds [n % (ROUNDS - EACH), + EACH); node 3 has nothing. */
bool mpiox_exchange_rounds_due(const mpiox_call *call, int aggregator, mpiox_interval range, int64_t *first,
                               int64_t *last)
{
    (void)call, (void)aggregator;
    asked++;
    *first = range.first % (ROUNDS - EACH);
    *last = *first + EACH;
    return range.first != 3;
}

int64_t mpiox_window_extents(const mpiox_call *call, int aggregator, int64_t round, mpiox_extent *out)
{
    (void)call, (void)aggregator, (void)round;
    *out = extent;
    return 1;
}

static _Noreturn void unexpected(const char *what)
{
    printf("%s was called\n", what);
    exit(1);
}

/* Not reached in what is tested. */
void mpiox_file_give_up(const mpiox_file *file, int code, int64_t offset, int64_t length, const char *what)
{
    (void)file, (void)code, (void)offset, (void)length;
    unexpected(what);
}

void mpiox_messages_fail(mpiox_messages *m, int code, int64_t bytes, const char *what)
{
    (void)m, (void)code, (void)bytes;
    unexpected(what);
}

int mpiox_messages_tag_data(int64_t turn)
{
    (void)turn;
    unexpected(__func__);
}

int mpiox_messages_tag_reply(int64_t turn)
{
    (void)turn;
    unexpected(__func__);
}

bool mpiox_entry_place(const mpiox_messages *m, const mpiox_message_entry *entry, const char *runs, const char *data)
{
    (void)m, (void)entry, (void)runs, (void)data;
    unexpected(__func__);
}

bool mpiox_entry_fetch(const mpiox_messages *m, mpiox_message_entry *entry, const char *runs, char *data)
{
    (void)m, (void)entry, (void)runs, (void)data;
    unexpected(__func__);
}

void mpiox_slot_arrive(mpiox_call *call, mpiox_buffer_slot *slot)
{
    (void)call, (void)slot;
    unexpected(__func__);
}

mpiox_part mpiox_parts_on(mpiox_part part)
{
    return part;
}

void mpiox_wait_backoff(mpiox_backoff *backoff)
{
    (void)backoff;
    unexpected(__func__);
}

int main(void)
{
    static mpiox_node_access nodes[NODES];
    mpiox_topology topology = {.n_nodes = NODES, .node = 0, .size = NODES};
    mpiox_file file = {.topology = &topology};
    mpiox_extent room[1];
    mpiox_buffer_slot slots[4];
    mpiox_buffers buffers = {.file = &file, .nodes = nodes, .extents = {room}, .slots = slots, .per_aggregator = 2};
    mpiox_progress progress = {.begun = 1};
    mpiox_call call = {.b = &buffers, .progress = &progress};
    mpiox_messages m = {
        .base = {.b = &buffers}, .call = &call, .half_bytes = 4096, .inbox = {.request = MPI_REQUEST_NULL}};

    for (int n = 0; n < NODES; n++)
        nodes[n] = (mpiox_node_access){{n, n + 1}, 1};
    CHECK_EQUAL(mpiox_inbox_begin(&m), MPIOX_OK);
    CHECK_EQUAL(asked, NODES - 1); /* not itself */
    for (call.round = 0; call.round < ROUNDS; call.round++) {
        int64_t expected = 0;

        for (int n = 1; n < NODES; n++)
            expected += n != 3 && n % (ROUNDS - EACH) <= call.round && call.round < n % (ROUNDS - EACH) + EACH;
        m.inbox.open = false; /* the test receives nothing, and ends each round itself */
        mpiox_inbox_open(&m);
        CHECK_EQUAL(m.inbox.expected, expected);
    }
    CHECK_EQUAL(asked, NODES - 1);
    mpiox_inbox_free(&m.inbox);
    return check_exit();
}
