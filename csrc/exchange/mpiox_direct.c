/*
 * mpiox_direct.c - a collective without exchange: every rank accesses its own pieces, as if alone.
 *
 * An error ends this rank's part; it is agreed at the end of the collective like any other.
 */
#include "mpiox_exchange_impl.h"

void mpiox_direct_run(mpiox_call *call, int64_t *done) {
    mpiox_exchange *x = call->x;
    const mpiox_independent_file file = mpiox_exchange_file(x);
    mpiox_error error;
    *done = 0;
    if (call->original->length == 0)
        return;
    const double begun = mpiox_now();
    if (mpiox_independent_access(&file, call->original, done, &error) != MPIOX_OK)
        mpiox_agree_fail(x, &error);
    x->stats.io_s += mpiox_now() - begun;
}
