/*
 * mpiox_mckp_relax.c - steps in the order of their slopes, and the walk along them; see the header.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_mckp_relax.h"

#define INSERTION_UP_TO 40 /* steps that are sorted by insertion alone */
#define RADIX_BITS 11
#define RADIX (1 << RADIX_BITS)
/* Steps that are tried behind the first one that does not fit. More improve the solution no further worth its time. */
#define TRIED_BEHIND 64

void mpiox_mckp_relax_clear(mpiox_mckp_relax *r)
{
    free(r->steps);
    free(r->spare);
    free(r->sorting);
    free(r->corner);
    memset(r, 0, sizeof *r);
}

static int reserve(mpiox_mckp_relax *r, int64_t n)
{
    if (n < r->room)
        return MPIOX_OK;
    int64_t room = n + n / 2 + 64;
    mpiox_mckp_step *steps = realloc(r->steps, (size_t)room * sizeof *steps);
    r->steps = steps != NULL ? steps : r->steps;
    mpiox_mckp_step *spare = realloc(r->spare, (size_t)room * sizeof *spare);
    r->spare = spare != NULL ? spare : r->spare;
    uint64_t *sorting = realloc(r->sorting, 2 * (size_t)room * sizeof *sorting);
    r->sorting = sorting != NULL ? sorting : r->sorting;
    if (steps == NULL || spare == NULL || sorting == NULL)
        return MPIOX_E_NOMEM;
    r->room = room;
    return MPIOX_OK;
}

/* Steps of a class, in falling order of slopes. */
static int64_t steps_of(const mpiox_mckp_table *t, int32_t slot, mpiox_mckp_step *steps)
{
    const mpiox_mckp_class *c = &t->classes[slot];
    const int32_t *corner = &t->corner[c->first], *w = &t->weight[c->first];
    const double *slope = &t->slope[c->first];
    for (int32_t k = 0; k + 1 < c->corners; k++) {
        int32_t a = corner[k], b = corner[k + 1];
        steps[k] = (mpiox_mckp_step){slope[k + 1], slot, k, w[b] - w[a], 0};
    }
    return c->corners > 0 ? c->corners - 1 : 0;
}

static void insertion(mpiox_mckp_step *steps, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        if (!(steps[i].slope > steps[i - 1].slope))
            continue;
        mpiox_mckp_step x = steps[i];
        int64_t k = i;
        for (; k > 0 && x.slope > steps[k - 1].slope; k--)
            steps[k] = steps[k - 1];
        steps[k] = x;
    }
}

/* Sort by the slopes as floats, best first; stable. The order of what is equal as floats is left to insertion(). */
static void radix_sort(mpiox_mckp_relax *r)
{
    uint32_t place[3][RADIX];
    uint64_t *from = r->sorting, *to = r->sorting + r->n;
    memset(place, 0, sizeof place);
    for (int64_t i = 0; i < r->n; i++) {
        float slope = (float)r->steps[i].slope; /* positive: its bits are in its order */
        uint32_t bits;
        memcpy(&bits, &slope, sizeof bits);
        bits = ~bits;
        from[i] = (uint64_t)bits << 32 | (uint64_t)i;
        place[0][bits % RADIX]++;
        place[1][(bits >> RADIX_BITS) % RADIX]++;
        place[2][bits >> (2 * RADIX_BITS)]++;
    }
    for (int pass = 0; pass < 3; pass++) {
        uint32_t sum = 0;
        for (int b = 0; b < RADIX; b++) {
            uint32_t count = place[pass][b];
            place[pass][b] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < r->n; i++)
            to[place[pass][(from[i] >> (32 + pass * RADIX_BITS)) % RADIX]++] = from[i];
        uint64_t *other = from;
        from = to;
        to = other;
    }
    for (int64_t i = 0; i < r->n; i++)
        r->spare[i] = r->steps[(uint32_t)from[i]];
    mpiox_mckp_step *steps = r->steps;
    r->steps = r->spare;
    r->spare = steps;
}

int mpiox_mckp_relax_build(mpiox_mckp_relax *r, const mpiox_mckp_table *t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++)
        n += t->classes[t->order[i]].corners;
    int rc = reserve(r, n);
    if (rc != MPIOX_OK)
        return rc;
    r->n = 0;
    for (int64_t i = 0; i < t->n; i++)
        r->n += steps_of(t, t->order[i], &r->steps[r->n]);
    if (r->n > INSERTION_UP_TO)
        radix_sort(r);
    insertion(r->steps, r->n);
    return MPIOX_OK;
}

int mpiox_mckp_relax_add(mpiox_mckp_relax *r, const mpiox_mckp_table *t, int32_t slot)
{
    int rc = reserve(r, r->n + t->classes[slot].corners);
    if (rc != MPIOX_OK)
        return rc;
    int64_t last = r->n, more = steps_of(t, slot, r->spare);
    for (int64_t k = more - 1; k >= 0; k--) { /* from the back: each old step moves once */
        int64_t low = 0, high = last;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (r->steps[middle].slope >= r->spare[k].slope)
                low = middle + 1;
            else
                high = middle;
        }
        memmove(&r->steps[low + k + 1], &r->steps[low], (size_t)(last - low) * sizeof *r->steps);
        r->steps[low + k] = r->spare[k];
        last = low;
    }
    r->n += more;
    return MPIOX_OK;
}

void mpiox_mckp_relax_remove(mpiox_mckp_relax *r, int32_t slot)
{
    int64_t to = 0, start = 0;
    for (int64_t i = 0; i < r->n; i++) { /* runs between the steps that go are moved whole */
        if (r->steps[i].slot != slot)
            continue;
        if (to != start)
            memmove(&r->steps[to], &r->steps[start], (size_t)(i - start) * sizeof *r->steps);
        to += i - start;
        start = i + 1;
    }
    memmove(&r->steps[to], &r->steps[start], (size_t)(r->n - start) * sizeof *r->steps);
    r->n = to + r->n - start;
}

int mpiox_mckp_relax_solve(mpiox_mckp_relax *r, const mpiox_mckp_table *t, int64_t lightest)
{
    if (t->n_slots >= r->corner_room) {
        int32_t *corner = realloc(r->corner, (size_t)(2 * t->n_slots + 16) * sizeof *corner);
        if (corner == NULL)
            return MPIOX_E_NOMEM;
        r->corner = corner;
        r->corner_room = 2 * t->n_slots + 16;
    }
    memset(r->corner, 0, (size_t)t->n_slots * sizeof *r->corner);
    int64_t left = t->capacity - lightest, i = 0;
    for (; i < r->n && r->steps[i].weight <= left; i++) {
        left -= r->steps[i].weight;
        r->corner[r->steps[i].slot]++;
    }
    r->multiplier = i < r->n ? r->steps[i].slope : 0;
    int64_t end = r->n - i > TRIED_BEHIND ? i + TRIED_BEHIND : r->n;
    for (; i < end && left > 0; i++) {
        const mpiox_mckp_step *step = &r->steps[i];
        if (step->weight > left || r->corner[step->slot] != step->corner)
            continue;
        left -= step->weight;
        r->corner[step->slot]++;
    }
    return MPIOX_OK;
}
