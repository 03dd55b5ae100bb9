/*
 * test_line.c - the one line of a file's statistics, number by number.
 */
#include <string.h>

#include "check.h"
#include "mpiox_stats.h"

static int prints(const mpiox_stats *stats, const mpiox_stats_subject *about, const char *expected)
{
    char text[1024];
    const int64_t needed = mpiox_stats_line(stats, about, NULL, 0);
    const int64_t used = mpiox_stats_line(stats, about, text, sizeof text);

    if (strcmp(text, expected) != 0)
        fprintf(stderr, "said:     %sexpected: %s", text, expected);
    return needed == used && used == (int64_t)strlen(text) && strcmp(text, expected) == 0;
}

/* Two ranks; rank 1 has written for 2 s, rank 0 for 1 s and waited for 1 s. */
static mpiox_stats collective(void)
{
    return (mpiox_stats){.bytes_written = 100000000, .write_s = 4.0, .wait_s = 1.0, .plan_s = 0.25};
}

static void test_ranks(void)
{
    const mpiox_stats_slowest slowest = {.write_s = 2.0, .rank = 1, .own_s = 2.0};
    mpiox_stats_subject about = {.path = "a b", .ranks = 2, .slowest = &slowest};
    mpiox_stats stats = collective();

    CHECK(prints(&stats, &about,
                 "mpiio_ext: a b: 2 ranks wrote 100.0 MB at 50.0 MB/s; 2.00 s in I/O a rank, 500 ms of it waiting; "
                 "slowest rank 1: 2.00 s without waiting\n"));
    CHECK_EQUAL((int)(10 * mpiox_stats_in_io_s(&stats)), 40);
    CHECK_EQUAL((int)(10 * mpiox_stats_waiting_s(&stats)), 10);
    CHECK_EQUAL((int)(10 * mpiox_stats_own_s(&stats)), 30);
    about.slowest = NULL; /* not known: no speed is made up */
    CHECK(prints(&stats, &about, "mpiio_ext: a b: 2 ranks wrote 100.0 MB; 2.00 s in I/O\n"));
}

/* Bytes that each rank of a collective moved alone are in both counts. */
static void test_bytes_count_once(void)
{
    const mpiox_stats_slowest slowest = {.write_s = 0.5e-6, .read_s = 0.25, .own_s = 0.1};
    const mpiox_stats_subject about = {.ranks = 1, .files = 3, .slowest = &slowest};
    const mpiox_stats stats = {.bytes_read = 1500,
                               .independent_bytes_read = 1000,
                               .direct_bytes_read = 500,
                               .bytes_written = 7,
                               .write_s = 0.5e-6,
                               .read_s = 0.25,
                               .sync_s = 0.0123};

    CHECK(prints(&stats, &about,
                 "mpiio_ext: the run: 3 files, 1 rank wrote 7 B at 14.0 MB/s, read 2.0 kB at 0.008 MB/s; "
                 "262 ms in I/O\n"));
}

static void test_calls_of_the_mpi_library(void)
{
    const mpiox_stats_subject about = {.path = "x", .ranks = 4};
    mpiox_stats stats = {.native_calls = 1, .reason = "mpiox_enable=false"};

    CHECK(prints(&stats, &about,
                 "mpiio_ext: x: 4 ranks moved no data by this library; 1 call of the MPI library not counted "
                 "(mpiox_enable=false)\n"));
    stats.native_calls = 2;
    stats.collective_writes = 1; /* the reason is its own */
    CHECK(prints(&stats, &about,
                 "mpiio_ext: x: 4 ranks moved no data by this library; 2 calls of the MPI library not counted\n"));
    stats.native_calls = 0;
    CHECK(prints(&stats, &about, "mpiio_ext: x: 4 ranks moved no data\n"));
    stats.collective_writes = 0;
    CHECK(prints(&stats, &about, "mpiio_ext: x: 4 ranks moved no data: no data call reached this library\n"));
}

int main(void)
{
    test_ranks();
    test_bytes_count_once();
    test_calls_of_the_mpi_library();
    return check_exit();
}
