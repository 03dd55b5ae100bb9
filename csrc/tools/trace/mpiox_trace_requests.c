/*
 * mpiox_trace_requests.c - see mpiox_trace_requests.h.
 *
 * Algorithm. A list, hashed by the request. A program that has none waits for its messages at the cost of one test.
 */
#include "mpiox_trace_requests.h"

#include <stdatomic.h>

#include "mpiox_trace_lock.h"

enum { SLOTS = 16384, REQUESTS = SLOTS / 2 };

static mpiox_trace_request slots[SLOTS]; /* request 0: free, number 0: was taken */
static atomic_int n_requests;
static int n_used;
static int64_t last_number;

static uint32_t slot_of(int64_t request)
{
    return (uint32_t)((uint64_t)request * UINT64_C(0x9e3779b97f4a7c15) >> 40) % SLOTS;
}

static mpiox_trace_request *find(int64_t request)
{
    for (uint32_t at = slot_of(request); slots[at].request != 0; at = (at + 1) % SLOTS)
        if (slots[at].request == request)
            return &slots[at];
    return 0;
}

/* Take out the slots of what has been completed. */
static void clean(void)
{
    if (atomic_load(&n_requests) == 0) {
        for (int i = 0; i < SLOTS; i++)
            slots[i] = (mpiox_trace_request){.request = 0};
        n_used = 0;
    }
}

int64_t mpiox_trace_request_add(int64_t request, int64_t handle, int32_t file)
{
    int64_t number = 0;

    if (request == 0)
        return 0;
    mpiox_trace_lock();
    mpiox_trace_request *slot = find(request);
    if (slot == 0 && n_used >= REQUESTS)
        clean();
    if (slot == 0 && n_used < REQUESTS) {
        uint32_t at = slot_of(request);
        while (slots[at].request != 0)
            at = (at + 1) % SLOTS;
        slot = &slots[at];
        slot->number = 0;
        n_used++;
    }
    if (slot != 0) {
        if (slot->number == 0)
            atomic_fetch_add(&n_requests, 1);
        number = ++last_number;
        *slot = (mpiox_trace_request){.request = request, .number = number, .handle = handle, .file = file};
    }
    mpiox_trace_unlock();
    return number;
}

bool mpiox_trace_requests_any(void)
{
    return atomic_load_explicit(&n_requests, memory_order_relaxed) > 0;
}

bool mpiox_trace_request_is(int64_t request)
{
    mpiox_trace_lock();
    const mpiox_trace_request *slot = request != 0 ? find(request) : 0;
    const bool is = slot != 0 && slot->number > 0;
    mpiox_trace_unlock();
    return is;
}

bool mpiox_trace_request_take(int64_t request, mpiox_trace_request *found)
{
    mpiox_trace_lock();
    mpiox_trace_request *slot = request != 0 ? find(request) : 0;
    const bool is = slot != 0 && slot->number > 0;
    if (is) {
        *found = *slot;
        slot->number = 0;
        atomic_fetch_sub(&n_requests, 1);
    }
    mpiox_trace_unlock();
    return is;
}
