/*
 * mpiox_delegated_move.c - one page range changes hands.
 *
 * Algorithm. Three requests: the old owner keeps everybody off, brings the range's pages to the file and drops them;
 *            the new one takes it over; the old one sends on whoever asks. Accesses wait meanwhile.
 * Guarantee. A range has one owner at a time; its pages are in the file before the next one has it.
 */
#include <pthread.h>

#include "mpiox_delegated_impl.h"

static pthread_mutex_t moving = PTHREAD_MUTEX_INITIALIZER;

void mpiox_delegated_move_lock(void)
{
    pthread_mutex_lock(&moving);
}

void mpiox_delegated_move_unlock(void)
{
    pthread_mutex_unlock(&moving);
}

bool mpiox_delegated_move_range(mpiox_delegated *delegated, int32_t range, int32_t from, int32_t to)
{
    mpiox_slot give = {.op = MPIOX_OP_GIVE}, adopt = {.op = MPIOX_OP_ADOPT}, done = {.op = MPIOX_OP_GIVE};

    give.arg[0] = adopt.arg[0] = done.arg[0] = range;
    give.arg[1] = to;
    done.arg[2] = 1;
    if (mpiox_delegated_request(delegated, from, &give) != MPIOX_OK)
        return false;
    const bool adopted = mpiox_delegated_request(delegated, to, &adopt) == MPIOX_OK;
    done.arg[1] = adopted ? to : from;
    if (mpiox_delegated_request(delegated, from, &done) != MPIOX_OK)
        return false;
    atomic_store(&delegated->owner_of[range], (int16_t)done.arg[1]);
    return adopted;
}
