/*
 * test_paying.c - when statistics say that delegates would pay, and when there is no evidence for it.
 */
#include <string.h>

#include "check.h"
#include "mpiox_stats_paying.h"

/* Four ranks that have filled 4 MB by writes of 64 bytes, each of which waited 100 microseconds. */
static mpiox_stats_paying filling(void)
{
    mpiox_stats_paying seen = {.ranks = 4, .waits = 1.0};

    seen.ways[1] = (mpiox_stats_paying_way){
        .accesses = 65536, .bytes = 4194304, .near = 65536, .last = 4194304, .seconds = 65536 * 100e-6};
    return seen;
}

static int pays(const mpiox_stats_paying *seen)
{
    double least, most;
    char text[448];

    mpiox_stats_paying_text(seen, text, sizeof text);
    CHECK_EQUAL(text[0] != '\0', mpiox_stats_paying_times(seen, &least, &most));
    return text[0] != '\0';
}

static void test_evidence(void)
{
    mpiox_stats_paying seen = filling();
    double least, most;
    char text[448];

    CHECK(mpiox_stats_paying_times(&seen, &least, &most) && least > 10.0 && most > least && most < 100.0);
    mpiox_stats_paying_text(&seen, text, sizeof text);
    CHECK(strstr(text, "would pay here: 65536 accesses of 64 bytes took 100 us each; ") == text);
    seen.ways[0] = seen.ways[1];
    CHECK(pays(&seen));
    seen.ways[0].seconds *= 0.01; /* reads from a cache, among them: the writes alone are what waits */
    CHECK(pays(&seen));
}

static void test_no_evidence(void)
{
    mpiox_stats_paying seen = filling();

    seen.waits = 0.1; /* a busy machine: long, but nothing was waited for */
    CHECK(!pays(&seen));
    seen = filling();
    seen.ways[1].seconds = 65536 * 5e-6;
    CHECK(!pays(&seen));
    seen = filling();
    seen.ways[1].near = 1000; /* all over the file */
    CHECK(!pays(&seen));
    seen = filling();
    seen.ways[1].last *= 2.0; /* every other piece: a page with holes is many requests */
    CHECK(!pays(&seen));
    seen = filling();
    seen.ways[1].bytes = seen.ways[1].last = 65536.0 * 32768; /* large ones */
    CHECK(!pays(&seen));
    seen = filling();
    seen.ways[1].bytes = seen.ways[1].last = 65536.0 * 8192; /* 330 MB/s: no faster if 1 MiB takes 10 ms */
    CHECK(!pays(&seen));
    seen = filling();
    seen.ways[1].accesses = seen.ways[1].near = 500;
    seen.ways[1].bytes = seen.ways[1].last = 500 * 64;
    CHECK(!pays(&seen)); /* few */
    seen = filling();
    seen.ways[0] = seen.ways[1];
    seen.ways[0].near = 0; /* half of the time is in reads that jump about */
    CHECK(!pays(&seen));
    CHECK(!pays(&(mpiox_stats_paying){0}));
}

static void test_trail(void)
{
    mpiox_stats_trail trail = {0};

    for (int i = 0; i < 10; i++)
        mpiox_stats_trail_add(&trail, 1000 + 64 * i, 1064 + 64 * i, 7);
    mpiox_stats_trail_add(&trail, 10 << 20, (10 << 20) + 64, 7);
    mpiox_stats_trail_add(&trail, 500, 564, 7);
    CHECK_EQUAL(atomic_load(&trail.near), 10);
    CHECK_EQUAL(atomic_load(&trail.highest), (10 << 20) + 64);
    CHECK_EQUAL(INT64_MAX - atomic_load(&trail.lowest_from_top), 500);
    CHECK_EQUAL(atomic_load(&trail.nanoseconds), 84);
    CHECK(mpiox_stats_waits() >= 0);
}

int main(void)
{
    test_evidence();
    test_no_evidence();
    test_trail();
    return check_exit();
}
