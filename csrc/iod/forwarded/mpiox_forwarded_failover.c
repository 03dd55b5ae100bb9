/*
 * mpiox_forwarded_failover.c - the owner of a page range after the death of its last known owner.
 *
 * Problem.   Ranks learn that a range has another owner when its old owner redirects them. A dead one redirects no
 *            rank. A rank that then accessed the file would bypass the new owner's pages.
 * Algorithm. The rank queries all living delegates. If one owns the range, the rank continues there. If the range is
 *            moving at one, the rank waits; the process that moves it may be dead, so after a while the rank finishes
 *            the move. If none owns it, the rank queries again, and each delegate promises never to take the range
 *            over. When all have promised, the range is in the file for good, whatever message is still on its way, and
 *            for all ranks, since all do the same. The bytes of dead delegates are written to the file first.
 * Guarantee. All ranks access a range in the file, or none does. Blocking; as long as a move lasts.
 */
#include "mpiox_forwarded_impl.h"

static const double patience_s = 0.2; /* until the rank finishes another process's move */

enum { IN_THE_FILE = -1, MOVES = -2 };

/* The owner; IN_THE_FILE: no living delegate. `never`: nor will one ever be. */
static int32_t ask_all(mpiox_forwarded *forwarded, int32_t range, bool never, int32_t *moving)
{
    int32_t found = IN_THE_FILE;

    for (int32_t i = 0; i < forwarded->owners && found < 0; i++) {
        mpiox_range_state answer;
        const int code = mpiox_forwarded_ask_range(forwarded, range, i, never, &answer);

        if (code == MPIOX_E_UNSUPPORTED) {
            mpiox_forwarded_mark_failed(forwarded, i);
        } else if (code == MPIOX_OK && answer.owner == i) {
            found = i;
        } else if (code == MPIOX_OK && answer.owner == MPIOX_RANGE_MOVING) {
            found = MOVES;
            *moving = i;
        }
    }
    return found;
}

static int32_t find(mpiox_forwarded *forwarded, int32_t range)
{
    mpiox_backoff backoff = {0};
    double since = mpiox_now();

    for (bool never = false;;) {
        int32_t moving = -1;
        const int32_t found = ask_all(forwarded, range, never, &moving);

        if (found >= 0 || (found == IN_THE_FILE && never))
            return found;
        never = found == IN_THE_FILE;
        if (never)
            continue;
        if (mpiox_now() - since > patience_s) {
            (void)mpiox_forwarded_take_over(forwarded, range, moving);
            since = mpiox_now();
        }
        mpiox_wait_backoff(&backoff);
    }
}

bool mpiox_forwarded_failover(mpiox_forwarded *forwarded, int32_t owner)
{
    if (forwarded->replica != NULL || forwarded->shift > 0) /* copies stay where the first owners placed them */
        return true;
    for (int32_t r = 0; r < forwarded->ranges; r++) {
        if (atomic_load(&forwarded->owner_of[r]) != owner || atomic_load(&forwarded->in_file[r]))
            continue;
        const int32_t successor = find(forwarded, r);

        if (!mpiox_forwarded_begin_change(forwarded, owner))
            return false;
        if (successor < 0)
            atomic_store(&forwarded->in_file[r], true);
        else if (atomic_load(&forwarded->owner_of[r]) == owner)
            atomic_store(&forwarded->owner_of[r], (int16_t)successor);
        mpiox_forwarded_end_change(forwarded);
    }
    return true;
}
