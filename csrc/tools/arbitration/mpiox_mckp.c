/*
 * mpiox_mckp.c - bound, core and solution; see the header.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_mckp.h"
#include "mpiox_mckp_dp.h"
#include "mpiox_mckp_relax.h"
#include "mpiox_mckp_table.h"

/* A core of up to this many operations goes through the dynamic programming at once: proving more options away first
 * would take as long. */
#define SMALL_CORE INT64_C(40000)

/* What is known of a class at the multiplier: its best option, what that is worth, and how far behind the next one
 * is. */
typedef struct standing {
    double best;
    double next;
    int32_t option;
} standing;

struct mpiox_mckp {
    mpiox_mckp_table table;
    mpiox_mckp_relax relax;
    mpiox_mckp_dp dp;
    bool sorted; /* the relaxation's steps are those of the table */
    /* scratch memory of a solution, by place in the order of keys */
    int64_t room;
    standing *standings;
    int32_t *choice;      /* kept option of each class */
    int64_t *core_place;  /* of the core: place in the order, */
    int64_t *core_first;  /* first of its options, */
    int32_t *core_choice; /* and what the dynamic programming says */
    int64_t option_room;
    int32_t *core_weight, *core_option;
    double *core_value;
    int64_t n_core;
};

int mpiox_mckp_create(int64_t capacity, mpiox_mckp **solver)
{
    *solver = calloc(1, sizeof **solver);
    if (*solver == NULL)
        return MPIOX_E_NOMEM;
    int rc = mpiox_mckp_table_init(&(*solver)->table, capacity);
    if (rc != MPIOX_OK) {
        free(*solver);
        *solver = NULL;
    }
    return rc;
}

void mpiox_mckp_free(mpiox_mckp *s)
{
    if (s == NULL)
        return;
    mpiox_mckp_table_clear(&s->table);
    mpiox_mckp_relax_clear(&s->relax);
    mpiox_mckp_dp_clear(&s->dp);
    free(s->standings);
    free(s->choice);
    free(s->core_place);
    free(s->core_first);
    free(s->core_choice);
    free(s->core_weight);
    free(s->core_option);
    free(s->core_value);
    free(s);
}

int mpiox_mckp_expect(mpiox_mckp *s, int64_t options)
{
    return mpiox_mckp_table_expect(&s->table, options);
}

int mpiox_mckp_add(mpiox_mckp *s, int64_t key, int64_t n, const int32_t *weights, const double *values)
{
    int32_t slot;
    int rc = mpiox_mckp_table_add(&s->table, key, n, weights, values, &slot);
    if (rc == MPIOX_OK && s->sorted)
        s->sorted = mpiox_mckp_relax_add(&s->relax, &s->table, slot) == MPIOX_OK; /* else sorted anew at the solution */
    return rc;
}

int mpiox_mckp_remove(mpiox_mckp *s, int64_t key)
{
    int32_t slot;
    int rc = mpiox_mckp_table_remove(&s->table, key, &slot);
    if (rc == MPIOX_OK && s->sorted)
        mpiox_mckp_relax_remove(&s->relax, slot);
    return rc;
}

void mpiox_mckp_empty(mpiox_mckp *s)
{
    mpiox_mckp_table_empty(&s->table);
    s->sorted = false;
}

int mpiox_mckp_set_capacity(mpiox_mckp *s, int64_t capacity)
{
    if (capacity < 0 || capacity > MPIOX_MCKP_MAX_CAPACITY)
        return MPIOX_E_ARG;
    if (capacity != s->table.capacity) {
        s->table.capacity = capacity;
        s->table.reduced = s->sorted = false;
    }
    return MPIOX_OK;
}

int64_t mpiox_mckp_keys(const mpiox_mckp *s, int64_t *keys, int64_t room)
{
    for (int64_t i = 0; i < s->table.n && i < room; i++)
        keys[i] = s->table.classes[s->table.order[i]].key;
    return s->table.n;
}

/* ---- memory ---- */

static int reserve(mpiox_mckp *s)
{
    int64_t n = s->table.n, options = s->table.live;
    if (n > s->room || s->room == 0) {
        int64_t room = 2 * n + 16;
        size_t count = (size_t)room;
        free(s->standings), free(s->choice), free(s->core_place), free(s->core_first), free(s->core_choice);
        s->standings = malloc(count * sizeof *s->standings);
        s->choice = malloc(count * sizeof *s->choice);
        s->core_place = malloc(count * sizeof *s->core_place);
        s->core_first = malloc((count + 1) * sizeof *s->core_first);
        s->core_choice = malloc(count * sizeof *s->core_choice);
        s->room = s->standings != NULL && s->choice != NULL && s->core_place != NULL && s->core_first != NULL &&
                          s->core_choice != NULL
                      ? room
                      : 0;
        if (s->room == 0)
            return MPIOX_E_NOMEM;
    }
    if (options > s->option_room) {
        int64_t room = 2 * options;
        size_t count = (size_t)room;
        free(s->core_weight), free(s->core_option), free(s->core_value);
        s->core_weight = malloc(count * sizeof *s->core_weight);
        s->core_option = malloc(count * sizeof *s->core_option);
        s->core_value = malloc(count * sizeof *s->core_value);
        s->option_room = s->core_weight != NULL && s->core_option != NULL && s->core_value != NULL ? room : 0;
        if (s->option_room == 0)
            return MPIOX_E_NOMEM;
    }
    return MPIOX_OK;
}

/* ---- bound and core ---- */

/* Weight of the lightest options; -1 when a class has none. */
static int64_t lightest(const mpiox_mckp_table *t)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < t->n; i++) {
        const mpiox_mckp_class *c = &t->classes[t->order[i]];
        if (c->count == 0)
            return -1;
        sum += t->weight[c->first];
    }
    return sum;
}

/* Best and second best option of every class at the multiplier. Options ascend in weight and value: once even the
 * largest value at the present weight would be no second best, none behind it is. */
static void take_standings(mpiox_mckp *s, double *bound, double *solution, double *margin)
{
    const mpiox_mckp_table *t = &s->table;
    const double price = s->relax.multiplier;
    double sum = price * (double)t->capacity, size = sum, known = 0;
    for (int64_t i = 0; i < t->n; i++) {
        int32_t slot = t->order[i];
        const mpiox_mckp_class *c = &t->classes[slot];
        const int32_t *w = &t->weight[c->first];
        const double *p = &t->value[c->first];
        const double top = p[c->count - 1];
        standing st = {.best = p[0] - price * w[0], .next = -INFINITY, .option = 0};
        for (int32_t j = 1; j < c->count; j++) {
            double cost = price * w[j], q = p[j] - cost;
            if (q > st.best)
                st = (standing){.best = q, .next = st.best, .option = j};
            else if (q > st.next)
                st.next = q;
            else if (top - cost <= st.next)
                break;
        }
        s->standings[i] = st;
        sum += st.best;
        size += fabs(p[0]) + fabs(top);
        known += p[t->corner[c->first + s->relax.corner[slot]]];
    }
    *bound = sum;
    *solution = known;
    *margin = (double)(t->n + 8) * 0x1p-50 * size;
}

/* Fill the core with options that lose at most `loss`; return what its dynamic programming would cost, in operations.
 * The capacity that is left to the core is stored in *left, the value of everything that it does not decide in
 * *fixed. */
static int64_t fill_core(mpiox_mckp *s, double loss, int64_t *left, double *fixed)
{
    const mpiox_mckp_table *t = &s->table;
    const double price = s->relax.multiplier;
    int64_t n_core = 0, n = 0;
    *left = t->capacity;
    *fixed = 0;
    for (int64_t i = 0; i < t->n; i++) {
        const standing *st = &s->standings[i];
        const mpiox_mckp_class *c = &t->classes[t->order[i]];
        const int32_t *w = &t->weight[c->first];
        const double *p = &t->value[c->first];
        const double least = st->best - loss;
        if (st->next < least) {
            s->choice[i] = st->option;
            *left -= w[st->option];
            *fixed += p[st->option];
            continue;
        }
        s->core_place[n_core] = i;
        s->core_first[n_core++] = n;
        for (int32_t j = 0; j < c->count; j++) {
            if (p[j] - price * w[j] < least)
                continue;
            s->core_weight[n] = w[j];
            s->core_value[n] = p[j];
            s->core_option[n++] = j;
        }
        int64_t first = s->core_first[n_core - 1];
        int32_t lightest_weight = s->core_weight[first];
        *left -= lightest_weight;
        for (int64_t k = first; k < n; k++)
            s->core_weight[k] -= lightest_weight;
    }
    s->core_first[n_core] = n;
    s->n_core = n_core;
    return n * (*left + 1);
}

/* Options that cannot fit beside the lightest ones of the others are of no use to the dynamic programming. */
static void drop_too_heavy(mpiox_mckp *s, int64_t left)
{
    int64_t to = 0, from = 0;
    for (int64_t i = 0; i < s->n_core; i++) {
        int64_t end = s->core_first[i + 1];
        s->core_first[i] = to;
        for (; from < end; from++) {
            if (s->core_weight[from] > left)
                continue;
            s->core_weight[to] = s->core_weight[from];
            s->core_value[to] = s->core_value[from];
            s->core_option[to++] = s->core_option[from];
        }
    }
    s->core_first[s->n_core] = to;
}

/* Decide the core; the choice of every class is in s->choice then. */
static int solve_core(mpiox_mckp *s, double bound, double known, double margin, mpiox_mckp_result *result)
{
    const double gap = bound - known > 0 ? bound - known : 0;
    double loss = gap + margin, fixed, value;
    int64_t left;
    bool filled = fill_core(s, loss, &left, &fixed) <= SMALL_CORE;
    if (!filled)
        loss = gap / 16 + margin;
    for (;; filled = false) {
        if (!filled)
            fill_core(s, loss, &left, &fixed);
        drop_too_heavy(s, left);
        mpiox_mckp_options options = {s->n_core, s->core_first, s->core_weight, s->core_value};
        int rc = mpiox_mckp_dp_solve(&s->dp, &options, left, s->core_choice, &value);
        if (rc != MPIOX_OK)
            return rc;
        result->operations += s->dp.operations;
        value += fixed;
        double needed = bound - value + margin;
        if (needed <= loss)
            break;
        loss = needed < 4 * loss ? needed : 4 * loss; /* 4: a solution in between often proves that less is needed */
    }
    for (int64_t i = 0; i < s->n_core; i++)
        s->choice[s->core_place[i]] = s->core_option[s->core_first[i] + s->core_choice[i]];
    result->value = value;
    result->core = s->n_core;
    return MPIOX_OK;
}

static int prepare(mpiox_mckp *s)
{
    if (!mpiox_mckp_table_is_current(&s->table)) {
        mpiox_mckp_table_reduce(&s->table);
        s->sorted = false;
    }
    int rc = reserve(s);
    if (rc == MPIOX_OK && !s->sorted) {
        rc = mpiox_mckp_relax_build(&s->relax, &s->table);
        s->sorted = rc == MPIOX_OK;
    }
    return rc;
}

int mpiox_mckp_solve(mpiox_mckp *s, int32_t *choices, int64_t room, mpiox_mckp_result *result)
{
    const mpiox_mckp_table *t = &s->table;
    memset(result, 0, sizeof *result);
    if (room < t->n)
        return MPIOX_E_FULL;
    int rc = prepare(s);
    if (rc != MPIOX_OK)
        return rc;
    int64_t least = lightest(t);
    if (least < 0 || least > t->capacity)
        return MPIOX_MCKP_INFEASIBLE;
    rc = mpiox_mckp_relax_solve(&s->relax, t, least);
    if (rc != MPIOX_OK)
        return rc;
    double bound, known, margin;
    take_standings(s, &bound, &known, &margin);
    rc = solve_core(s, bound, known, margin, result);
    if (rc != MPIOX_OK)
        return rc;
    for (int64_t i = 0; i < t->n; i++) {
        const mpiox_mckp_class *c = &t->classes[t->order[i]];
        choices[i] = t->option[c->first + s->choice[i]];
        result->weight += t->weight[c->first + s->choice[i]];
    }
    result->classes = t->n;
    result->bound = ldexp(bound > result->value ? bound : result->value, -t->exponent);
    result->value = ldexp(result->value, -t->exponent);
    return MPIOX_OK;
}
