/*
 * test_critical_path.c - the sweep line against definitions: on small random sets of intervals with whole ends in 0 ..
 * GRID,
 * the exclusive parts tile the time in which anything is open, each lies inside its own interval, and no smaller set of
 * intervals covers that time (all subsets are tried). Arguments: number of sets, seed.
 */
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "mpiox_error.h"
#include "mpiox_critical_path.h"

enum { GRID = 12, MOST = 9, GROUPS = 5 };

static uint64_t state_of_random;

static int draw(int below)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (int)((state_of_random >> 33) % (uint64_t)below);
}

/* The cells [k, k + 1) of the grid inside [start, end), as bits. */
static unsigned cells(double start, double end)
{
    unsigned bits = 0;
    for (int k = 0; k < GRID; k++)
        if (start <= k && k + 1 <= end)
            bits |= 1u << k;
    return bits;
}

/* The least number of intervals whose cells are `all`. */
static int fewest(const unsigned *bits, int n, unsigned all)
{
    int best = n;
    for (unsigned subset = 0; subset < 1u << n; subset++) {
        unsigned covered = 0;
        int size = 0;
        for (int i = 0; i < n; i++)
            if (subset >> i & 1) {
                covered |= bits[i];
                size++;
            }
        if (covered == all && size < best)
            best = size;
    }
    return best;
}

static void check_group(const double *start, const double *end, int n, const double *exclusive, const double *since,
                        const int8_t *state)
{
    unsigned all = 0, tiled = 0, bits[MOST];
    int critical = 0, counted = 0;
    double total = 0;
    for (int i = 0; i < n; i++) {
        if (end[i] <= start[i] || isnan(start[i])) {
            CHECK_EQUAL(state[i], isnan(start[i])      ? MPIOX_CRITICAL_PATH_UNKNOWN
                                  : end[i] == start[i] ? MPIOX_CRITICAL_PATH_EMPTY
                                                       : MPIOX_CRITICAL_PATH_REVERSED);
            CHECK(exclusive[i] == 0 && isnan(since[i]));
            continue;
        }
        bits[counted] = cells(start[i], end[i]);
        all |= bits[counted++];
        if (state[i] != MPIOX_CRITICAL_PATH_CRITICAL) {
            CHECK(state[i] == MPIOX_CRITICAL_PATH_COVERED && exclusive[i] == 0 && isnan(since[i]));
            continue;
        }
        unsigned part = cells(since[i], end[i]);
        CHECK(since[i] >= start[i] && exclusive[i] == end[i] - since[i] && exclusive[i] > 0);
        CHECK((part & tiled) == 0);
        tiled |= part;
        total += exclusive[i];
        critical++;
    }
    CHECK(tiled == all);
    CHECK(total == __builtin_popcount(all));
    CHECK_EQUAL(critical, fewest(bits, counted, all));
}

static void check_random(void)
{
    double start[GROUPS * MOST], end[GROUPS * MOST], exclusive[GROUPS * MOST], since[GROUPS * MOST];
    int64_t group[GROUPS * MOST];
    int8_t state[GROUPS * MOST];
    int first[GROUPS + 1] = {0}, n = 0;
    for (int g = 0; g < GROUPS; g++) {
        for (int i = draw(MOST + 1); i > 0; i--, n++) {
            group[n] = 100 - g; /* groups need not ascend */
            start[n] = draw(20) == 0 ? (double)NAN : draw(GRID);
            end[n] = draw(GRID + 1);
        }
        first[g + 1] = n;
    }
    CHECK_EQUAL(mpiox_critical_path(group, start, end, n, exclusive, since, state), MPIOX_OK);
    for (int g = 0; g < GROUPS; g++) {
        int at = first[g];
        check_group(start + at, end + at, first[g + 1] - at, exclusive + at, since + at, state + at);
    }
}

/* Many intervals in one group, beyond the insertion sort, in two orders: the same answer. */
static void check_large(void)
{
    enum { N = 3000 };
    static double start[2][N], end[2][N], exclusive[2][N];
    static int8_t state[2][N];
    for (int i = 0; i < N; i++) {
        start[0][i] = start[1][N - 1 - i] = (i * 7919LL) % N + (draw(1000) + i * 1000) / 1e7;
        end[0][i] = end[1][N - 1 - i] = start[0][i] + draw(3);
    }
    for (int k = 0; k < 2; k++)
        CHECK_EQUAL(mpiox_critical_path(NULL, start[k], end[k], N, exclusive[k], NULL, state[k]), MPIOX_OK);
    for (int i = 0; i < N; i++)
        CHECK(exclusive[0][i] == exclusive[1][N - 1 - i] && state[0][i] == state[1][N - 1 - i]);
}

int main(int argc, char **argv)
{
    int sets = argc > 1 ? atoi(argv[1]) : 200;
    state_of_random = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (int i = 0; i < sets; i++)
        check_random();
    check_large();
    CHECK_EQUAL(mpiox_critical_path(NULL, NULL, NULL, 0, NULL, NULL, NULL), MPIOX_OK);
    return check_exit();
}
