/* mpiox_diff.c - see mpiox_diff.h. */
#include "mpiox_diff.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_error.h"

enum { MOST = 1 << 30 };

/* A sequence without the elements that the other one does not have. */
typedef struct side {
    int32_t *elements;
    int32_t *places; /* of each in the whole sequence */
    int32_t count;
    uint8_t *common; /* the caller's */
} side;

typedef struct work {
    side a, b;
    int32_t *forward, *backward; /* furthest reaching paths by diagonal; diagonal 0 is in the middle */
    int32_t middle, effort;
    bool minimal;
} work;

typedef struct box { /* elements [a0, a1) and [b0, b1) */
    int32_t a0, a1, b0, b1;
} box;

/* ---- what cannot correspond -------------------------------------------------------------------------------------- */

static bool mark_present(const mpiox_diff_sequence *whole, int32_t symbols, uint8_t *present, uint8_t bit)
{
    for (int64_t i = 0; i < whole->count; i++) {
        const int32_t element = whole->elements[i];
        if (element < 0 || element >= symbols)
            return false;
        present[element] |= bit;
    }
    return true;
}

static bool reduce(side *s, const mpiox_diff_sequence *whole, const uint8_t *present)
{
    const size_t bytes = (size_t)(whole->count > 0 ? whole->count : 1) * sizeof(int32_t);
    s->common = whole->common;
    s->elements = malloc(bytes);
    s->places = malloc(bytes);
    if (s->elements == NULL || s->places == NULL)
        return false;
    for (int64_t i = 0; i < whole->count; i++) {
        if (present[whole->elements[i]] != 3)
            continue;
        s->elements[s->count] = whole->elements[i];
        s->places[s->count++] = (int32_t)i;
    }
    return true;
}

/* ---- correspondences --------------------------------------------------------------------------------------------- */

static void match(work *w, int32_t i, int32_t j)
{
    w->a.common[w->a.places[i]] = 1;
    w->b.common[w->b.places[j]] = 1;
}

/* Take what is equal at both ends out of the box. */
static void trim(work *w, box *q)
{
    const int32_t *a = w->a.elements, *b = w->b.elements;
    while (q->a0 < q->a1 && q->b0 < q->b1 && a[q->a0] == b[q->b0])
        match(w, q->a0++, q->b0++);
    while (q->a0 < q->a1 && q->b0 < q->b1 && a[q->a1 - 1] == b[q->b1 - 1])
        match(w, --q->a1, --q->b1);
}

/* Is all of the shorter one found in the longer one, in order? Then that is the answer. */
static bool match_subsequence(work *w, const box *q)
{
    const int32_t *a = w->a.elements, *b = w->b.elements;
    const bool a_is_long = q->a1 - q->a0 >= q->b1 - q->b0;
    int32_t i = q->a0, j = q->b0;
    while (i < q->a1 && j < q->b1) {
        const bool equal = a[i] == b[j];
        i += equal || a_is_long;
        j += equal || !a_is_long;
    }
    if (a_is_long ? j < q->b1 : i < q->a1)
        return false;
    for (i = q->a0, j = q->b0; i < q->a1 && j < q->b1;) {
        const bool equal = a[i] == b[j];
        if (equal)
            match(w, i, j);
        i += equal || a_is_long;
        j += equal || !a_is_long;
    }
    return true;
}

/* ---- the middle of a shortest path ------------------------------------------------------------------------------- */

/* Paths from one corner of the box: reach[k] is how far along the first sequence the furthest one on diagonal k comes,
 * -1 where there is none. Diagonals -m - 1 .. n + 1 exist. */
typedef struct paths {
    const int32_t *a, *b; /* the elements next to the corner */
    int32_t n, m;
    int32_t *reach;
} paths;

/* One difference more on diagonal k, without what is equal behind it. */
static inline int32_t step_to(const paths *p, int32_t k)
{
    const int32_t right = p->reach[k - 1], down = p->reach[k + 1];
    int32_t i = right >= 0 && right < p->n ? right + 1 : -1;
    if (down > i && down - k <= p->m)
        i = down;
    return i;
}

/* And on as long as elements are equal; step 1 from the beginning, -1 from the end. */
static inline int32_t slide(const paths *p, int32_t k, int32_t i, int step)
{
    while (i < p->n && i - k < p->m && p->a[step * i] == p->b[step * (i - k)])
        i++;
    return i;
}

/* Extend the paths to d differences. True: one meets one of the other corner's, which have `others` differences: on
 * diagonal *diagonal, at *i from its own corner. */
static inline bool extend(paths *p, const paths *other, int32_t d, int32_t others, int step, int32_t *i,
                          int32_t *diagonal)
{
    const int32_t delta = p->n - p->m;
    const int32_t low = d <= p->m ? -d : -p->m + (d - p->m) % 2, high = d <= p->n ? d : p->n - (d - p->n) % 2;
    if (d <= p->m)
        p->reach[-d - 1] = -1;
    if (d <= p->n)
        p->reach[d + 1] = -1;
    for (int32_t k = low; k <= high; k += 2) {
        int32_t at = d == 0 ? 0 : step_to(p, k);
        if (at >= 0)
            at = slide(p, k, at, step);
        p->reach[k] = at;
        const int32_t opposite = delta - k;
        if (at < 0 || (delta - d - others) % 2 != 0 || opposite < -others || opposite > others ||
            other->reach[opposite] < 0 || at + other->reach[opposite] < p->n)
            continue;
        *i = at;
        *diagonal = k;
        return true;
    }
    return false;
}

/* The path with d differences that has come furthest: i + j elements; *i and *diagonal of its end. */
static int32_t furthest(const paths *p, int32_t d, int32_t *i, int32_t *diagonal)
{
    int32_t most = -1;
    for (int32_t k = d <= p->m ? -d : -p->m + (d - p->m) % 2; k <= d && k <= p->n; k += 2) {
        if (p->reach[k] >= 0 && 2 * p->reach[k] - k > most) {
            most = 2 * p->reach[k] - k;
            *i = p->reach[k];
            *diagonal = k;
        }
    }
    return most;
}

/* Whichever corner's path has come further, seen from the last corner. Always true. */
static bool give_up(work *w, const paths *forward, const paths *backward, int32_t d, int32_t *i, int32_t *diagonal)
{
    int32_t ahead = 0, k = 0;
    w->minimal = false;
    if (furthest(forward, d, &ahead, &k) > furthest(backward, d, i, diagonal)) {
        *i = forward->n - ahead;
        *diagonal = forward->n - forward->m - k;
    }
    return true;
}

/* A point on a shortest path through the box that is neither its first nor its last corner: both sides have elements,
 * and two differences at least. */
static void find_middle(work *w, const box *q, int32_t *x, int32_t *y)
{
    const int32_t n = q->a1 - q->a0, m = q->b1 - q->b0, *a = w->a.elements, *b = w->b.elements;
    paths forward = {a + q->a0, b + q->b0, n, m, w->forward + w->middle},
          backward = {a + q->a1 - 1, b + q->b1 - 1, n, m, w->backward + w->middle};
    int32_t i = 0, k = 0;
    for (int32_t d = 0;; d++) {
        if (d > 0 && extend(&forward, &backward, d, d - 1, 1, &i, &k)) {
            *x = q->a0 + i;
            *y = q->b0 + i - k;
            return;
        }
        if (d == 0)
            (void)extend(&forward, &backward, 0, -1, 1, &i, &k);
        const bool met = extend(&backward, &forward, d, d, -1, &i, &k);
        if (met || (w->effort > 0 && d >= w->effort && give_up(w, &forward, &backward, d, &i, &k))) {
            *x = q->a1 - i;
            *y = q->b1 - (i - k);
            return;
        }
    }
}

/* The larger half goes on here, so that the depth is logarithmic. */
static void compare(work *w, box q)
{
    for (;;) {
        int32_t x, y;
        trim(w, &q);
        if (q.a0 == q.a1 || q.b0 == q.b1 || match_subsequence(w, &q))
            return;
        find_middle(w, &q, &x, &y);
        box head = {q.a0, x, q.b0, y}, tail = {x, q.a1, y, q.b1};
        const bool head_is_small = (x - q.a0) + (y - q.b0) < (q.a1 - x) + (q.b1 - y);
        compare(w, head_is_small ? head : tail);
        q = head_is_small ? tail : head;
    }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool prepare(work *w)
{
    const int64_t width = (int64_t)w->a.count + w->b.count + 3; /* diagonals -b.count - 1 .. a.count + 1 */
    w->forward = malloc((size_t)width * sizeof *w->forward);
    w->backward = malloc((size_t)width * sizeof *w->backward);
    w->middle = w->b.count + 1;
    return w->forward != NULL && w->backward != NULL;
}

static void release(work *w)
{
    free(w->a.elements);
    free(w->a.places);
    free(w->b.elements);
    free(w->b.places);
    free(w->forward);
    free(w->backward);
}

int mpiox_diff(const mpiox_diff_sequence *a, const mpiox_diff_sequence *b, int32_t symbols, int32_t effort,
               int *minimal)
{
    work w = {.effort = effort, .minimal = true};
    if (a->count < 0 || b->count < 0 || a->count > MOST || b->count > MOST || symbols < 0)
        return MPIOX_E_ARG;
    uint8_t *present = calloc((size_t)symbols + 1, 1);
    int code = present != NULL ? MPIOX_OK : MPIOX_E_NOMEM;
    if (code == MPIOX_OK && (!mark_present(a, symbols, present, 1) || !mark_present(b, symbols, present, 2)))
        code = MPIOX_E_ARG;
    if (code == MPIOX_OK && (!reduce(&w.a, a, present) || !reduce(&w.b, b, present) || !prepare(&w)))
        code = MPIOX_E_NOMEM;
    free(present);
    if (code == MPIOX_OK) {
        memset(a->common, 0, (size_t)a->count);
        memset(b->common, 0, (size_t)b->count);
        compare(&w, (box){0, w.a.count, 0, w.b.count});
        *minimal = w.minimal;
    }
    release(&w);
    return code;
}
