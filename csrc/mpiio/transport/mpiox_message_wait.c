/* mpiox_message_wait.c - see mpiox_message_wait.h. */
#include "mpiox_message_wait.h"

#include "mpiox_message_inbox.h"
#include "mpiox_message_sends.h"

bool mpiox_messages_idle(void *context)
{
    mpiox_messages *m = context;
    const bool worked = mpiox_inbox_progress(m);
    for (int half = 0; half < 2; half++) {
        if (m->call->write && !m->sends[half].reported)
            mpiox_sends_test(m, &m->sends[half], &m->exchange->released[half]);
        if (!m->call->write && !m->receives[half].reported)
            mpiox_sends_test(m, &m->receives[half], &m->exchange->arrived[half]);
    }
    return mpiox_slots_idle(m->call) || worked;
}
