/*
 * mpiox_mckp_table.c - pools of options, dominance and hull of a class, the unit of values; see the header.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_mckp_table.h"

/* Sums stay below 2^52, so that half a unit more or less is still exact. */
#define SUM_BITS 52
#define MAX_EXPONENT 1000
/* The unit changes when the number of classes passes 2^STEP, 2^(2 STEP), ...: seldom, since all are reduced again
 * then. */
#define STEP 5
/* Adding and subtracting this rounds magnitudes below 2^51, which all values are, to whole numbers. */
#define ROUND 6755399441055744.0 /* 1.5 * 2^52 */

int mpiox_mckp_table_init(mpiox_mckp_table *table, int64_t capacity)
{
    memset(table, 0, sizeof *table);
    if (capacity < 0 || capacity > MPIOX_MCKP_MAX_CAPACITY)
        return MPIOX_E_ARG;
    table->capacity = capacity;
    return MPIOX_OK;
}

void mpiox_mckp_table_clear(mpiox_mckp_table *table)
{
    free(table->order);
    free(table->free_slots);
    free(table->classes);
    free(table->given_weight);
    free(table->given_value);
    free(table->weight);
    free(table->value);
    free(table->option);
    free(table->corner);
    free(table->slope);
    memset(table, 0, sizeof *table);
}

/* ---- memory ---- */

static bool grow(void *pointer, int64_t count, int64_t element_bytes)
{
    void *bigger = realloc(*(void **)pointer, (size_t)count * (size_t)element_bytes);
    if (bigger == NULL)
        return false;
    *(void **)pointer = bigger;
    return true;
}

static int reserve_slot(mpiox_mckp_table *t)
{
    if (t->n < t->max_classes)
        return MPIOX_OK;
    if (t->n >= MPIOX_MCKP_MAX_CLASSES)
        return MPIOX_E_FULL;
    int64_t room = t->max_classes > 0 ? 2 * t->max_classes : 32;
    if (!grow(&t->order, room, sizeof *t->order) || !grow(&t->free_slots, room, sizeof *t->free_slots) ||
        !grow(&t->classes, room, sizeof *t->classes))
        return MPIOX_E_NOMEM;
    t->max_classes = room;
    return MPIOX_OK;
}

static bool grow_pools(mpiox_mckp_table *t, int64_t room)
{
    if (!grow(&t->given_weight, room, sizeof *t->given_weight) ||
        !grow(&t->given_value, room, sizeof *t->given_value) || !grow(&t->weight, room, sizeof *t->weight) ||
        !grow(&t->value, room, sizeof *t->value) || !grow(&t->option, room, sizeof *t->option) ||
        !grow(&t->corner, room, sizeof *t->corner) || !grow(&t->slope, room, sizeof *t->slope))
        return false;
    t->room = room;
    return true;
}

static void move_class(mpiox_mckp_table *t, mpiox_mckp_class *c, int64_t to)
{
    size_t given = (size_t)c->given, count = (size_t)c->count, corners = (size_t)c->corners;
    memmove(&t->given_weight[to], &t->given_weight[c->first], given * sizeof *t->given_weight);
    memmove(&t->given_value[to], &t->given_value[c->first], given * sizeof *t->given_value);
    memmove(&t->weight[to], &t->weight[c->first], count * sizeof *t->weight);
    memmove(&t->value[to], &t->value[c->first], count * sizeof *t->value);
    memmove(&t->option[to], &t->option[c->first], count * sizeof *t->option);
    memmove(&t->corner[to], &t->corner[c->first], corners * sizeof *t->corner);
    memmove(&t->slope[to], &t->slope[c->first], corners * sizeof *t->slope);
    c->first = to;
}

static int by_place(const void *a, const void *b)
{
    const mpiox_mckp_class *x = *(mpiox_mckp_class *const *)a, *y = *(mpiox_mckp_class *const *)b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Close the holes that classes left which are gone. */
static bool compact(mpiox_mckp_table *t)
{
    mpiox_mckp_class **sorted = malloc((size_t)t->n * sizeof *sorted + 1);
    if (sorted == NULL)
        return false;
    for (int64_t i = 0; i < t->n; i++)
        sorted[i] = &t->classes[t->order[i]];
    qsort(sorted, (size_t)t->n, sizeof *sorted, by_place);
    int64_t to = 0;
    for (int64_t i = 0; i < t->n; i++) {
        move_class(t, sorted[i], to);
        to += sorted[i]->given;
    }
    t->used = to;
    free(sorted);
    return true;
}

static int reserve_pools(mpiox_mckp_table *t, int64_t n)
{
    if (t->live + n > MPIOX_MCKP_MAX_OPTIONS)
        return MPIOX_E_FULL;
    if (t->used + n <= t->room)
        return MPIOX_OK;
    if (t->live + n <= t->room / 2)
        return compact(t) ? MPIOX_OK : MPIOX_E_NOMEM;
    int64_t room = 2 * (t->used + n);
    return grow_pools(t, room < 256 ? 256 : room) ? MPIOX_OK : MPIOX_E_NOMEM;
}

/* ---- one class ---- */

/* Sort indices by weight, the better value first among equals, then the earlier one. Few options, mostly in order:
 * insertion; many out of order would take quadratic time, so that they are merged. */
static bool before(const mpiox_mckp_table *t, const mpiox_mckp_class *c, int32_t a, int32_t b)
{
    int32_t wa = t->given_weight[c->first + a], wb = t->given_weight[c->first + b];
    double pa = t->given_value[c->first + a], pb = t->given_value[c->first + b];
    return wa != wb ? wa < wb : pa != pb ? pa > pb : a < b;
}

static void merge_sort(const mpiox_mckp_table *t, const mpiox_mckp_class *c, int32_t *index, int32_t *spare, int64_t n)
{
    if (n <= 16) {
        for (int64_t i = 1; i < n; i++) {
            int32_t x = index[i];
            int64_t k = i;
            for (; k > 0 && before(t, c, x, index[k - 1]); k--)
                index[k] = index[k - 1];
            index[k] = x;
        }
        return;
    }
    int64_t half = n / 2, a = 0, b = half;
    merge_sort(t, c, index, spare, half);
    merge_sort(t, c, index + half, spare, n - half);
    if (before(t, c, index[half - 1], index[half]))
        return; /* in order already: the usual case, since options come by number of I/O nodes */
    memcpy(spare, index, (size_t)n * sizeof *index);
    for (int64_t i = 0; i < n; i++) {
        bool left = b >= n || (a < half && before(t, c, spare[a], spare[b]));
        index[i] = left ? spare[a++] : spare[b++];
    }
}

/* Of the kept options, those on the upper hull: from one to the next the gain per weight falls strictly. */
static void find_corners(mpiox_mckp_table *t, mpiox_mckp_class *c)
{
    const int32_t *w = &t->weight[c->first];
    const double *p = &t->value[c->first];
    double *slope = &t->slope[c->first], last = 0; /* slope[k]: from corner k - 1 to corner k */
    int32_t *corner = &t->corner[c->first], n = 0;
    for (int32_t j = 0; j < c->count; j++) {
        for (; n >= 1; n--) {
            last = (p[j] - p[corner[n - 1]]) / (w[j] - w[corner[n - 1]]);
            if (n == 1 || slope[n - 1] > last)
                break;
        }
        slope[n] = last;
        corner[n++] = j;
    }
    c->corners = n;
}

static void reduce_class(mpiox_mckp_table *t, mpiox_mckp_class *c)
{
    int32_t *index = &t->option[c->first], *spare = &t->corner[c->first];
    const double unit = ldexp(1, t->exponent);
    const int32_t *given = &t->given_weight[c->first];
    bool ascending = true;
    for (int32_t j = 0; j < c->given; j++) {
        index[j] = j;
        ascending = ascending && (j == 0 || given[j] > given[j - 1]);
    }
    if (!ascending)
        merge_sort(t, c, index, spare, c->given);
    int32_t n = 0;
    for (int32_t k = 0; k < c->given; k++) { /* n <= k: what is written has been read */
        int32_t j = index[k], weight = t->given_weight[c->first + j];
        double value = (t->given_value[c->first + j] * unit + ROUND) - ROUND;
        if (weight > t->capacity)
            break;
        if (n > 0 && value <= t->value[c->first + n - 1])
            continue;
        t->weight[c->first + n] = weight;
        t->value[c->first + n] = value;
        t->option[c->first + n] = j;
        n++;
    }
    c->count = n;
    find_corners(t, c);
}

/* ---- the unit ---- */

static int wanted_exponent(const mpiox_mckp_table *t)
{
    double largest = 0;
    int value_bits, class_bits;
    for (int64_t i = 0; i < t->n; i++) {
        double each = t->classes[t->order[i]].largest;
        largest = each > largest ? each : largest;
    }
    if (largest == 0)
        return 0;
    (void)frexp(largest, &value_bits);      /* largest < 2^value_bits */
    (void)frexp((double)t->n, &class_bits); /* n < 2^class_bits */
    class_bits = (class_bits + STEP - 1) / STEP * STEP;
    int exponent = SUM_BITS - value_bits - class_bits;
    return exponent < MAX_EXPONENT ? exponent : MAX_EXPONENT;
}

bool mpiox_mckp_table_is_current(const mpiox_mckp_table *t)
{
    return t->reduced && wanted_exponent(t) == t->exponent;
}

void mpiox_mckp_table_reduce(mpiox_mckp_table *t)
{
    t->exponent = wanted_exponent(t);
    t->reduced = true;
    for (int64_t i = 0; i < t->n; i++)
        reduce_class(t, &t->classes[t->order[i]]);
}

/* ---- coming and going ---- */

int64_t mpiox_mckp_table_find(const mpiox_mckp_table *t, int64_t key)
{
    int64_t low = 0, high = t->n;
    if (t->n > 0 && t->classes[t->order[t->n - 1]].key < key)
        return -1 - t->n; /* classes mostly come in order */
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (t->classes[t->order[middle]].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->n && t->classes[t->order[low]].key == key ? low : -1 - low;
}

int mpiox_mckp_table_expect(mpiox_mckp_table *t, int64_t options)
{
    return reserve_pools(t, options);
}

int mpiox_mckp_table_add(mpiox_mckp_table *t, int64_t key, int64_t n, const int32_t *weights, const double *values,
                         int32_t *slot)
{
    int64_t place = mpiox_mckp_table_find(t, key);
    double largest = 0;
    if (n < 1 || n > INT32_MAX || place >= 0)
        return MPIOX_E_ARG;
    for (int64_t j = 0; j < n; j++) {
        double size = fabs(values[j]);
        if (weights[j] < 0 || !(size <= 1e300))
            return MPIOX_E_ARG;
        largest = size > largest ? size : largest;
    }
    place = -1 - place;
    int rc = reserve_slot(t);
    rc = rc != MPIOX_OK ? rc : reserve_pools(t, n);
    if (rc != MPIOX_OK)
        return rc;
    *slot = t->n_free > 0 ? t->free_slots[--t->n_free] : (int32_t)t->n_slots++;
    memmove(&t->order[place + 1], &t->order[place], (size_t)(t->n - place) * sizeof *t->order);
    t->order[place] = *slot;
    t->n++;
    mpiox_mckp_class *c = &t->classes[*slot];
    *c = (mpiox_mckp_class){.key = key, .first = t->used, .given = (int32_t)n, .largest = largest};
    memcpy(&t->given_weight[c->first], weights, (size_t)n * sizeof *weights);
    memcpy(&t->given_value[c->first], values, (size_t)n * sizeof *values);
    t->used += n;
    t->live += n;
    if (t->reduced)
        reduce_class(t, c);
    return MPIOX_OK;
}

int mpiox_mckp_table_remove(mpiox_mckp_table *t, int64_t key, int32_t *slot)
{
    int64_t place = mpiox_mckp_table_find(t, key);
    if (place < 0)
        return MPIOX_E_ARG;
    *slot = t->order[place];
    t->n--;
    memmove(&t->order[place], &t->order[place + 1], (size_t)(t->n - place) * sizeof *t->order);
    t->free_slots[t->n_free++] = *slot;
    t->live -= t->classes[*slot].given;
    return MPIOX_OK;
}

void mpiox_mckp_table_empty(mpiox_mckp_table *t)
{
    t->n = t->n_free = t->n_slots = t->used = t->live = 0;
    t->reduced = false;
}
