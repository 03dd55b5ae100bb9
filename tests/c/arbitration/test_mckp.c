/*
 * test_mckp.c - the knapsack of arbitration under sanitizers, against all combinations and against itself.
 *
 * Small random instances are compared with every combination of options, ties included; larger ones with the table of
 * best values for every capacity, which excludes nothing; a solver whose classes came and went with a new one of the
 * same classes; checkpointed rows with rows that all fit.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "mpiox_mckp.h"
#include "mpiox_mckp_dp.h"
#include "mpiox_mckp_table.h"

enum { MOST_CLASSES = 3000, MOST_OPTIONS = 40000 };

static uint64_t random_state = 0x2545F4914F6CDD1DULL;

static int64_t random_below(int64_t bound) /* 0 .. bound - 1; xorshift64* */
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (int64_t)((random_state * UINT64_C(2685821657736338717) >> 1) % (uint64_t)bound);
}

typedef struct instance {
    int64_t n, capacity;
    int64_t first[MOST_CLASSES + 1];
    int32_t weight[MOST_OPTIONS];
    double value[MOST_OPTIONS];
} instance;

/* kind 0: many ties; 1: values proportional to weights; 2: anything; 3: concave, as bandwidths are. */
static void draw(instance *in, int64_t n, int64_t options, int64_t capacity, int kind)
{
    in->n = n;
    in->capacity = capacity;
    in->first[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t count = 1 + random_below(options), from = in->first[i];
        double scale = (double)(1 + random_below(1000));
        for (int64_t j = 0; j < count; j++) {
            int32_t w = (int32_t)random_below(capacity / 2 + 2);
            in->weight[from + j] = j == 0 && random_below(8) != 0 ? 0 : w;
            double v = (double)random_below(4);
            if (kind == 1)
                v = 3 * in->weight[from + j];
            else if (kind == 2)
                v = (double)random_below(1 << 20) - 1000;
            else if (kind == 3)
                v = scale * sqrt((double)in->weight[from + j]) + (double)random_below(10);
            in->value[from + j] = v;
        }
        in->first[i + 1] = from + count;
    }
}

static mpiox_mckp *solver_of(const instance *in)
{
    mpiox_mckp *solver;
    CHECK_EQUAL(mpiox_mckp_create(in->capacity, &solver), MPIOX_OK);
    for (int64_t i = 0; i < in->n; i++)
        CHECK_EQUAL(mpiox_mckp_add(solver, i, in->first[i + 1] - in->first[i], &in->weight[in->first[i]],
                                   &in->value[in->first[i]]),
                    MPIOX_OK);
    return solver;
}

/* ---- every combination ------------------------------------------------------------------------------------------- */

/* Whether a is the better choice: value, then weight, then lighter options from the last class on. */
static bool is_better(const instance *in, const int32_t *a, const int32_t *b)
{
    double va = 0, vb = 0;
    int64_t wa = 0, wb = 0;
    for (int64_t i = 0; i < in->n; i++) {
        va += in->value[in->first[i] + a[i]], vb += in->value[in->first[i] + b[i]];
        wa += in->weight[in->first[i] + a[i]], wb += in->weight[in->first[i] + b[i]];
    }
    if (va != vb || wa != wb)
        return va != vb ? va > vb : wa < wb;
    for (int64_t i = in->n - 1; i >= 0; i--) {
        int32_t x = in->weight[in->first[i] + a[i]], y = in->weight[in->first[i] + b[i]];
        if (x != y)
            return x < y;
    }
    for (int64_t i = in->n - 1; i >= 0; i--)
        if (a[i] != b[i])
            return a[i] < b[i];
    return false;
}

static bool best_of_all(const instance *in, int32_t *best)
{
    int32_t now[16] = {0};
    bool found = false;
    for (;;) {
        int64_t weight = 0, i = 0;
        for (int64_t k = 0; k < in->n; k++)
            weight += in->weight[in->first[k] + now[k]];
        if (weight <= in->capacity && (!found || is_better(in, now, best))) {
            memcpy(best, now, sizeof now);
            found = true;
        }
        while (i < in->n && now[i] + 1 == in->first[i + 1] - in->first[i])
            now[i++] = 0;
        if (i == in->n)
            return found;
        now[i]++;
    }
}

static void check_small(instance *in)
{
    for (int round = 0; round < 6000; round++) {
        int32_t expected[16] = {0}, got[16] = {0};
        mpiox_mckp_result result;
        draw(in, random_below(6), 5, random_below(14), round % 4);
        mpiox_mckp *solver = solver_of(in);
        int rc = mpiox_mckp_solve(solver, got, 16, &result);
        bool found = best_of_all(in, expected);
        CHECK_EQUAL(rc, found ? MPIOX_OK : MPIOX_MCKP_INFEASIBLE);
        if (found && rc == MPIOX_OK) {
            CHECK(!is_better(in, expected, got) && !is_better(in, got, expected));
            CHECK(result.bound >= result.value);
        }
        mpiox_mckp_free(solver);
    }
}

/* ---- large ones -------------------------------------------------------------------------------------------------- */

static int32_t *choices_of(mpiox_mckp *solver, int64_t n, int *rc, mpiox_mckp_result *result)
{
    int32_t *choices = calloc((size_t)n + 1, sizeof *choices);
    *rc = mpiox_mckp_solve(solver, choices, n, result);
    return choices;
}

/* Values are sums of whole numbers: the plain table is exact too. It wants ascending weights. */
static double plain_best(const instance *in)
{
    static instance sorted;
    mpiox_mckp_dp dp = {0};
    int32_t *members = malloc((size_t)in->n * sizeof *members + 1);
    double *best = malloc((size_t)(in->capacity + 1) * sizeof *best);
    sorted = *in;
    for (int64_t i = 0; i < in->n; i++) {
        members[i] = (int32_t)i;
        for (int64_t j = in->first[i] + 1; j < in->first[i + 1]; j++)
            for (int64_t k = j; k > in->first[i] && sorted.weight[k] < sorted.weight[k - 1]; k--) {
                int32_t w = sorted.weight[k];
                double v = sorted.value[k];
                sorted.weight[k] = sorted.weight[k - 1], sorted.value[k] = sorted.value[k - 1];
                sorted.weight[k - 1] = w, sorted.value[k - 1] = v;
            }
    }
    mpiox_mckp_options options = {in->n, sorted.first, sorted.weight, sorted.value};
    CHECK_EQUAL(mpiox_mckp_dp_profiles(&dp, &options, 1, in->n, members, in->capacity, best), MPIOX_OK);
    double value = best[in->capacity];
    mpiox_mckp_dp_clear(&dp);
    free(members);
    free(best);
    return value;
}

static void check_large(instance *in, int64_t n, int64_t options, int64_t capacity, int kind)
{
    mpiox_mckp_result result;
    int rc;
    draw(in, n, options, capacity, kind);
    for (int64_t k = 0; k < in->first[in->n]; k++)
        in->value[k] = floor(in->value[k]);
    mpiox_mckp *solver = solver_of(in);
    int32_t *choices = choices_of(solver, n, &rc, &result);
    double value = 0, expected = plain_best(in);
    int64_t weight = 0;
    CHECK_EQUAL(rc, expected == -INFINITY ? MPIOX_MCKP_INFEASIBLE : MPIOX_OK);
    if (rc == MPIOX_OK) {
        for (int64_t i = 0; i < n; i++) {
            value += in->value[in->first[i] + choices[i]];
            weight += in->weight[in->first[i] + choices[i]];
        }
        CHECK(value == expected && result.value == expected && result.bound >= expected);
        CHECK(weight == result.weight && weight <= capacity);
    }
    free(choices);
    mpiox_mckp_free(solver);
}

/* ---- coming and going -------------------------------------------------------------------------------------------- */

static void check_changes(instance *in, int64_t n, int64_t capacity, int kind)
{
    static bool there[MOST_CLASSES];
    mpiox_mckp_result after, fresh;
    mpiox_mckp *solver;
    int rc, expected;
    draw(in, n, 8, capacity, kind);
    memset(there, 0, sizeof there);
    CHECK_EQUAL(mpiox_mckp_create(capacity, &solver), MPIOX_OK);
    for (int step = 0; step < 200; step++) {
        int64_t i = random_below(n), from = in->first[i];
        if (there[i])
            CHECK_EQUAL(mpiox_mckp_remove(solver, i), MPIOX_OK);
        else
            CHECK_EQUAL(mpiox_mckp_add(solver, i, in->first[i + 1] - from, &in->weight[from], &in->value[from]),
                        MPIOX_OK);
        there[i] = !there[i];
        int64_t pool = capacity - step / 50; /* another one now and then */
        mpiox_mckp *other;
        CHECK_EQUAL(mpiox_mckp_create(pool, &other), MPIOX_OK);
        CHECK_EQUAL(mpiox_mckp_set_capacity(solver, pool), MPIOX_OK);
        for (int64_t k = n - 1; k >= 0; k--) /* the other way round: the order of coming must not matter */
            if (there[k])
                CHECK_EQUAL(mpiox_mckp_add(other, k, in->first[k + 1] - in->first[k], &in->weight[in->first[k]],
                                           &in->value[in->first[k]]),
                            MPIOX_OK);
        int32_t *a = choices_of(solver, n, &rc, &after), *b = choices_of(other, n, &expected, &fresh);
        CHECK_EQUAL(rc, expected);
        CHECK(after.value == fresh.value && after.weight == fresh.weight && after.classes == fresh.classes);
        CHECK(memcmp(a, b, (size_t)n * sizeof *a) == 0);
        free(a);
        free(b);
        mpiox_mckp_free(other);
    }
    mpiox_mckp_empty(solver);
    CHECK_EQUAL(mpiox_mckp_keys(solver, NULL, 0), 0);
    mpiox_mckp_free(solver);
}

/* A solver whose classes have gone, all at once, is as good as a new one. */
static void check_emptied(instance *in, int64_t capacity)
{
    mpiox_mckp_result after, fresh;
    mpiox_mckp *solver, *other;
    int rc, expected;
    CHECK_EQUAL(mpiox_mckp_create(capacity, &solver), MPIOX_OK);
    for (int64_t n = 1; n <= 40; n += 3) {
        draw(in, n, 8, capacity, (int)(n % 2));
        CHECK_EQUAL(mpiox_mckp_create(capacity, &other), MPIOX_OK);
        mpiox_mckp_empty(solver);
        for (int64_t k = 0; k < n; k++) {
            int64_t from = in->first[k], count = in->first[k + 1] - from;
            CHECK_EQUAL(mpiox_mckp_add(solver, k, count, &in->weight[from], &in->value[from]), MPIOX_OK);
            CHECK_EQUAL(mpiox_mckp_add(other, k, count, &in->weight[from], &in->value[from]), MPIOX_OK);
        }
        int32_t *a = choices_of(solver, n, &rc, &after), *b = choices_of(other, n, &expected, &fresh);
        CHECK_EQUAL(rc, expected);
        CHECK(after.value == fresh.value && after.weight == fresh.weight && after.classes == fresh.classes);
        CHECK(memcmp(a, b, (size_t)n * sizeof *a) == 0);
        free(a);
        free(b);
        mpiox_mckp_free(other);
    }
    mpiox_mckp_free(solver);
}

static void check_refusals(void)
{
    const int32_t good[2] = {0, 1}, bad[2] = {0, -1};
    const double value[2] = {1, 2}, nan_value[2] = {1, NAN}, infinite[2] = {INFINITY, 1};
    mpiox_mckp *solver;
    mpiox_mckp_result result;
    int32_t choice;
    CHECK_EQUAL(mpiox_mckp_create(-1, &solver), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_mckp_create(MPIOX_MCKP_MAX_CAPACITY + 1, &solver), MPIOX_E_ARG);
    mpiox_mckp_free(solver);
    CHECK_EQUAL(mpiox_mckp_create(0, &solver), MPIOX_OK);
    CHECK_EQUAL(mpiox_mckp_solve(solver, NULL, 0, &result), MPIOX_OK);
    CHECK_EQUAL(result.classes, 0);
    CHECK_EQUAL(mpiox_mckp_add(solver, 5, 0, good, value), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_mckp_add(solver, 5, 2, bad, value), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_mckp_add(solver, 5, 2, good, nan_value), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_mckp_add(solver, 5, 2, good, infinite), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_mckp_add(solver, 5, 2, good, value), MPIOX_OK);
    CHECK_EQUAL(mpiox_mckp_add(solver, 5, 2, good, value), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_mckp_remove(solver, 4), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_mckp_solve(solver, &choice, 0, &result), MPIOX_E_FULL);
    CHECK_EQUAL(mpiox_mckp_solve(solver, &choice, 1, &result), MPIOX_OK);
    CHECK_EQUAL(choice, 0);
    CHECK_EQUAL(mpiox_mckp_add(solver, 6, 1, good + 1, value), MPIOX_OK);
    CHECK_EQUAL(mpiox_mckp_solve(solver, (int32_t[2]){0}, 2, &result), MPIOX_MCKP_INFEASIBLE);
    mpiox_mckp_free(solver);
    mpiox_mckp_free(NULL);
}

int main(void)
{
    static instance in;
    check_refusals();
    check_small(&in);
    for (int kind = 0; kind < 4; kind++) {
        for (int round = 0; round < 10; round++)
            check_large(&in, 1 + random_below(300), 12, random_below(400), kind);
        check_large(&in, 2500, 10, 700, kind); /* more rows than are kept */
        check_changes(&in, 60, 90, kind);
        check_emptied(&in, 50 + kind);
    }
    return check_exit();
}
