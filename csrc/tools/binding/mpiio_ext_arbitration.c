/*
 * mpiio_ext_arbitration.c - the exact knapsack of arbitration for callers outside the library: arrays of numbers.
 *
 * A mpiio_ext_mckp is a mpiox_mckp under a public name. Results leave as two arrays, one of reals and one of counts, so
 * that a caller in another language can keep them from one solution to the next.
 */
#include "mpiio_ext_tools.h"
#include "mpiox_mckp.h"
#include "mpiox_mckp_dp.h"
#include "mpiox_mckp_table.h"

static mpiox_mckp *solver_of(mpiio_ext_mckp *solver)
{
    return (mpiox_mckp *)solver;
}

int mpiio_ext_mckp_create(int64_t capacity, mpiio_ext_mckp **solver)
{
    mpiox_mckp *created;
    int rc = mpiox_mckp_create(capacity, &created);
    *solver = (mpiio_ext_mckp *)created;
    return rc;
}

void mpiio_ext_mckp_free(mpiio_ext_mckp *solver)
{
    mpiox_mckp_free(solver_of(solver));
}

int mpiio_ext_mckp_set_capacity(mpiio_ext_mckp *solver, int64_t capacity)
{
    return mpiox_mckp_set_capacity(solver_of(solver), capacity);
}

void mpiio_ext_mckp_empty(mpiio_ext_mckp *solver)
{
    mpiox_mckp_empty(solver_of(solver));
}

int mpiio_ext_mckp_add(mpiio_ext_mckp *solver, int64_t key, int64_t n, const int32_t *weights, const double *values)
{
    return mpiox_mckp_add(solver_of(solver), key, n, weights, values);
}

int mpiio_ext_mckp_add_all(mpiio_ext_mckp *solver, int64_t classes, const int64_t *first, const int32_t *weights,
                           const double *values, int64_t *refused)
{
    *refused = 0;
    int rc = mpiox_mckp_expect(solver_of(solver), first[classes]);
    for (int64_t i = 0; rc == MPIOX_OK && i < classes; i++) {
        *refused = i;
        rc = mpiox_mckp_add(solver_of(solver), i, first[i + 1] - first[i], &weights[first[i]], &values[first[i]]);
    }
    return rc;
}

int mpiio_ext_mckp_remove(mpiio_ext_mckp *solver, int64_t key)
{
    return mpiox_mckp_remove(solver_of(solver), key);
}

int64_t mpiio_ext_mckp_keys(const mpiio_ext_mckp *solver, int64_t *keys, int64_t room)
{
    return mpiox_mckp_keys((const mpiox_mckp *)solver, keys, room);
}

int mpiio_ext_mckp_solve(mpiio_ext_mckp *solver, int32_t *choices, int64_t room, double *reals, int64_t *counts)
{
    mpiox_mckp_result result;
    int rc = mpiox_mckp_solve(solver_of(solver), choices, room, &result);
    reals[0] = result.value;
    reals[1] = result.bound;
    counts[0] = result.weight;
    counts[1] = result.classes;
    counts[2] = result.core;
    counts[3] = result.operations;
    return rc;
}

int mpiio_ext_mckp_profiles(int64_t classes, const int64_t *first, const int32_t *weights, const double *values,
                            int64_t sets, int64_t n, const int32_t *members, int64_t capacity, double *best)
{
    mpiox_mckp_options options = {classes, first, weights, values};
    mpiox_mckp_dp dp = {0};
    if (capacity < 0 || capacity > MPIOX_MCKP_MAX_CAPACITY || n < 0 || sets < 0)
        return MPIOX_E_ARG;
    for (int64_t i = 0; i < sets * n; i++)
        if (members[i] < 0 || members[i] >= classes)
            return MPIOX_E_ARG;
    for (int64_t i = 0; i < classes; i++)
        for (int64_t j = first[i]; j < first[i + 1]; j++)
            if (weights[j] < 0 || (j > first[i] && weights[j] < weights[j - 1]))
                return MPIOX_E_ARG;
    for (int64_t i = 0; i < classes; i++)
        if (first[i + 1] <= first[i])
            return MPIOX_E_ARG;
    int rc = mpiox_mckp_dp_profiles(&dp, &options, sets, n, members, capacity, best);
    mpiox_mckp_dp_clear(&dp);
    return rc;
}
