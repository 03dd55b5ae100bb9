/*
 * mpiox_forwarded_failover.c - a rank goes to the owner of a page range, and it is dead: has somebody else the range?
 *
 * Problem.   Ranks learn that a range has changed hands when its old owner sends them on. When that is dead it sends
 *            nobody on. Who then goes to the file bypasses what the new owner holds.
 * Algorithm. Ask all that live. One has the range: go there. It is moving at one: wait; whoever moves it may be gone,
 *            then go on in its place. Nobody has it: ask again, and have each promise that it never will. When all
 *            have promised the range lies in the file for good, whatever message is still on its way, and for all
 *            ranks, since all do the same. What dead delegates held is brought to the file first.
 * Guarantee. A range is accessed in the file by all ranks or by none. Blocking; for as long as a move takes.
 */
#include "mpiox_forwarded_impl.h"

static const double patience_s = 0.2; /* until a move is asked for */

enum { IN_THE_FILE = -1, MOVES = -2 };

/* Who has it; IN_THE_FILE: nobody that lives. `never`: nor ever will. */
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
