/*
 * test_auto.c - decisions under sanitizers: facts up to the limits, and repeated ones.
 *
 * The Python tests judge decisions; this program looks for what they cannot see: overflow, reads out of bounds, leaks,
 * a decision that is remembered wrongly.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "mpiox_auto_select.h"
#include "mpiox_partition_methods.h"

static uint64_t random_state;

static int64_t random_below(int64_t bound) /* 0 .. bound - 1; xorshift64* */
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (int64_t)((random_state * UINT64_C(2685821657736338717) >> 1) % (uint64_t)bound);
}

static int64_t random_size(int bits) /* 1 .. 2^bits - 1, of all orders of magnitude */
{
    return 1 + random_below(INT64_C(1) << random_below(bits));
}

static mpiox_auto_facts random_facts(void)
{
    static const mpiox_lock_protocol locks[] = {MPIOX_LOCK_LOCAL, MPIOX_LOCK_SERVER, MPIOX_LOCK_TOKEN, MPIOX_LOCK_NONE};
    const bool any = random_below(4) == 0; /* as large as the limits allow; else what a collective may be */
    mpiox_auto_facts facts = {.write = random_below(2) != 0,
                              .aggregators = (int32_t)random_size(any ? 24 : 7),
                              .window_asked = random_size(any ? 62 : 12),
                              .stripe_size_io = (mpiox_auto_wish)random_below(3)};
    facts.layout.lock = locks[random_below(4)];
    facts.layout.coherent = random_below(2) != 0;
    facts.layout.stripe_known = random_below(4) != 0;
    facts.layout.stripe_size = random_size(any ? 62 : 12);
    facts.layout.servers = (int32_t)random_size(any ? 24 : 7);
    facts.method = random_below(4) == 0 ? mpiox_partition_get((int)random_below(mpiox_partition_count())) : NULL;
    facts.end = random_size(any ? 62 : 16);
    facts.start = random_below(facts.end + 1);
    facts.held = facts.end % 2 != 0 ? mpiox_partition_get((int)(facts.start % mpiox_partition_count())) : NULL;
    facts.held_bytes = (facts.end - facts.start) / (1 + facts.layout.servers % 3);
    return facts;
}

static void check_same(const mpiox_auto_decision *a, const mpiox_auto_decision *b)
{
    char texts[2][512];
    mpiox_auto_explain(a, texts[0], sizeof texts[0]);
    mpiox_auto_explain(b, texts[1], sizeof texts[1]);
    CHECK(strcmp(texts[0], texts[1]) == 0);
    CHECK(a->method == b->method && a->stripe_size_io == b->stripe_size_io && a->source == b->source);
    CHECK_EQUAL(a->window_bytes, b->window_bytes);
    CHECK_EQUAL(a->aggregators_use, b->aggregators_use);
    CHECK_EQUAL(a->alignment_bytes, b->alignment_bytes);
}

/* Decisions that are looked up are those that would be made, here and as far on as everything repeats after. */
static void test_decisions(int rounds)
{
    mpiox_auto_memory memory = {.n = 0};
    mpiox_auto_facts facts = random_facts();
    for (int i = 0; i < rounds; i++) {
        mpiox_auto_decision made, kept;
        if (random_below(3) == 0)
            facts = random_facts();
        else if (random_below(2) == 0)
            facts.write = !facts.write;
        const int64_t stripe = facts.layout.stripe_size, window = facts.window_asked;
        const int64_t cycle = (int64_t)facts.layout.servers * facts.aggregators;
        if (stripe < 5000 && window < 5000 && cycle < 20000 && facts.end < INT64_C(1) << 60) {
            facts.start += cycle * stripe * window;
            facts.end += cycle * stripe * window;
        }
        CHECK_EQUAL(mpiox_auto_decide(&facts, &made), MPIOX_OK);
        CHECK_EQUAL(mpiox_auto_decide_again(&memory, &facts, &kept), MPIOX_OK);
        check_same(&made, &kept);
        CHECK(facts.method == NULL || made.method == facts.method);
        CHECK(facts.stripe_size_io == MPIOX_AUTO_OPEN || made.stripe_size_io == (facts.stripe_size_io != 0));
    }
}

/* If a hash places stripes, methods do not differ by servers; if it does not, some decisions differ. */
static void test_hashed(int rounds)
{
    int differ = 0;
    for (int i = 0; i < rounds; i++) {
        mpiox_auto_facts facts = random_facts();
        mpiox_auto_decision placed, hashed;
        facts.layout.lock = MPIOX_LOCK_NONE;
        facts.method = facts.held = NULL;
        facts.stripe_size_io = MPIOX_AUTO_OPEN;
        CHECK_EQUAL(mpiox_auto_decide(&facts, &placed), MPIOX_OK);
        facts.layout.hashed = true;
        CHECK_EQUAL(mpiox_auto_decide(&facts, &hashed), MPIOX_OK);
        CHECK(hashed.method == &mpiox_partition_aligned && !hashed.stripe_size_io);
        differ += hashed.method != placed.method || hashed.stripe_size_io != placed.stripe_size_io;
    }
    CHECK(differ > 0);
}

/* What a handle holds: the last method, and the hull of what was written since that came. */
static void test_held(int rounds)
{
    const mpiox_partition_method *const methods[] = {mpiox_partition_get(0), mpiox_partition_get(1)};
    mpiox_auto_held held = {.method = NULL};
    bool written[64] = {false}; /* by the held method; blocks of 10 bytes */
    for (int i = 0; i < rounds; i++) {
        mpiox_auto_facts facts = {.start = 10 * random_below(64), .write = random_below(2) != 0};
        facts.end = facts.start + 10 * random_below(65 - facts.start / 10);
        const mpiox_partition_method *method = methods[random_below(8) == 0], *before = held.method;
        int first = 64, last = -1, common = 0;
        for (int k = 0; k < 64; k++) {
            first = written[k] && first == 64 ? k : first;
            last = written[k] ? k : last;
        }
        for (int k = (int)(facts.start / 10); k < facts.end / 10; k++)
            common += k >= first && k <= last;
        mpiox_auto_set_held(&held, &facts);
        CHECK(facts.held == before);
        CHECK_EQUAL(facts.held_bytes, 10 * common);
        mpiox_auto_hold(&held, &facts, method);
        CHECK(held.method == method);
        if (method != before)
            memset(written, 0, sizeof written);
        for (int k = (int)(facts.start / 10); facts.write && k < facts.end / 10; k++)
            written[k] = true;
    }
}

int main(int argc, char **argv)
{
    random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    printf("seed %" PRIu64 "\n", random_state);
    test_decisions(1000);
    test_hashed(300);
    test_held(1000);
    return check_exit();
}
