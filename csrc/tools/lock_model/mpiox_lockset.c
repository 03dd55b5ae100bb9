/*
 * mpiox_lockset.c - the three levels: the set has groups, a group has blocks, a block has locks.
 *
 * No level has an empty node, so that a search never has to check a neighbour: erasing the last lock of a block frees
 * the block, and so on. A full node is cut in two halves. If the new entry goes behind all others, only the new entry
 * goes to a new node: a set that grows at its end (tokens of a file that is written forwards) is packed.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_lockset.h"

#define LOCKS_OF_A_LINE 2 /* locks in 64 bytes, a line of the processor's cache */

typedef struct lock_block {
    int32_t n;
    mpiox_lockset_lock locks[MPIOX_LOCKSET_BLOCK];
} lock_block;

typedef struct mpiox_lockset_group {
    int32_t n, capacity;
    int64_t *firsts; /* start of each block's first lock */
    lock_block **blocks;
} lock_group;

/* The set's own copy of where a group starts: a search touches one array, not two lines of each group on its way. */
static void note_first(mpiox_lockset *set, int32_t place)
{
    set->firsts[place] = set->groups[place]->firsts[0];
}

mpiox_lockset_cursor mpiox_lockset_seek(const mpiox_lockset *set, int64_t position)
{
    mpiox_lockset_cursor at = {0, 0, 0};
    if (set->n_groups == 0)
        return at;
    int32_t low = 0, high = set->n_groups; /* the last group that starts at or before the position */
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (set->firsts[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    at.group = low;
    const lock_group *group = set->groups[low];
    for (low = 0, high = group->n; high - low > 1;) {
        int32_t middle = low + (high - low) / 2;
        if (group->firsts[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    at.block = low;
    const lock_block *block = group->blocks[low];
    for (int32_t i = 0; i < MPIOX_LOCKSET_BLOCK; i += LOCKS_OF_A_LINE) /* all at once: one miss instead of one a step */
        __builtin_prefetch(&block->locks[i]);
    for (low = 0, high = block->n; high - low > 1;) {
        int32_t middle = low + (high - low) / 2;
        if (block->locks[middle].start <= position)
            low = middle;
        else
            high = middle;
    }
    at.slot = low;
    return block->locks[low].end > position ? at : mpiox_lockset_next(set, at);
}

/* Searches wait for memory, each step for the one before. Many at once, a step of all before the next step of any, wait
 * together. */
void mpiox_lockset_warm(const mpiox_lockset *set, const int64_t *positions, int32_t n)
{
    const lock_group *groups[MPIOX_LOCKSET_WARM];
    const lock_block *blocks[MPIOX_LOCKSET_WARM];
    int32_t low[MPIOX_LOCKSET_WARM] = {0}, left[MPIOX_LOCKSET_WARM];
    if (set->n_groups == 0)
        return;
    for (int32_t size = set->n_groups, half; (half = size / 2) > 0; size -= half)
        for (int32_t q = 0; q < n; q++)
            low[q] += set->firsts[low[q] + half] <= positions[q] ? half : 0;
    for (int32_t q = 0; q < n; q++) {
        groups[q] = set->groups[low[q]];
        low[q] = 0;
    }
    for (int32_t q = 0; q < n; q++)
        left[q] = groups[q]->n;
    for (int32_t size = MPIOX_LOCKSET_GROUP; size > 1; size -= size / 2)
        for (int32_t q = 0; q < n; q++) {
            const int32_t half = left[q] / 2;
            low[q] += groups[q]->firsts[low[q] + half] <= positions[q] ? half : 0;
            left[q] -= half;
        }
    for (int32_t q = 0; q < n; q++) {
        blocks[q] = groups[q]->blocks[low[q]];
        low[q] = 0;
    }
    for (int32_t q = 0; q < n; q++)
        left[q] = blocks[q]->n;
    for (int32_t size = MPIOX_LOCKSET_BLOCK; size > 1; size -= size / 2)
        for (int32_t q = 0; q < n; q++) {
            const int32_t half = left[q] / 2;
            low[q] += blocks[q]->locks[low[q] + half].start <= positions[q] ? half : 0;
            left[q] -= half;
        }
    for (int32_t q = 0; q < n; q++)
        __builtin_prefetch(&blocks[q]->locks[low[q]]);
}

mpiox_lockset_lock *mpiox_lockset_at(const mpiox_lockset *set, mpiox_lockset_cursor at)
{
    return at.group < set->n_groups ? &set->groups[at.group]->blocks[at.block]->locks[at.slot] : NULL;
}

/* The cursor itself, or the first place of the next node when it points behind its own. */
static mpiox_lockset_cursor settle(const mpiox_lockset *set, mpiox_lockset_cursor at)
{
    if (at.group < set->n_groups && at.block < set->groups[at.group]->n &&
        at.slot == set->groups[at.group]->blocks[at.block]->n) {
        at.block++;
        at.slot = 0;
    }
    if (at.group < set->n_groups && at.block == set->groups[at.group]->n) {
        at.group++;
        at.block = 0;
        at.slot = 0;
    }
    return at;
}

mpiox_lockset_cursor mpiox_lockset_next(const mpiox_lockset *set, mpiox_lockset_cursor at)
{
    at.slot++;
    return settle(set, at);
}

bool mpiox_lockset_back(const mpiox_lockset *set, mpiox_lockset_cursor *at)
{
    if (at->slot == 0) {
        if (at->block == 0) {
            if (at->group == 0)
                return false;
            at->group--;
            at->block = set->groups[at->group]->n;
        }
        at->block--;
        at->slot = set->groups[at->group]->blocks[at->block]->n;
    }
    at->slot--;
    return true;
}

void mpiox_lockset_raise(mpiox_lockset *set, mpiox_lockset_cursor at, int64_t start)
{
    lock_group *group = set->groups[at.group];
    group->blocks[at.block]->locks[at.slot].start = start;
    if (at.slot == 0) {
        group->firsts[at.block] = start;
        note_first(set, at.group);
    }
}

static void free_group(lock_group *group)
{
    for (int32_t i = 0; i < group->n; i++)
        free(group->blocks[i]);
    free(group->firsts);
    free(group->blocks);
    free(group);
}

static void move_down(void *items, size_t size, int32_t from, int32_t n)
{
    memmove((char *)items + (size_t)from * size, (char *)items + (size_t)(from + 1) * size, (size_t)(n - from) * size);
}

static void move_up(void *items, size_t size, int32_t from, int32_t n)
{
    memmove((char *)items + (size_t)(from + 1) * size, (char *)items + (size_t)from * size, (size_t)(n - from) * size);
}

static void drop_group(mpiox_lockset *set, int32_t place)
{
    set->n_groups--;
    move_down(set->groups, sizeof(lock_group *), place, set->n_groups);
    move_down(set->firsts, sizeof *set->firsts, place, set->n_groups);
}

mpiox_lockset_cursor mpiox_lockset_erase(mpiox_lockset *set, mpiox_lockset_cursor at)
{
    lock_group *group = set->groups[at.group];
    lock_block *block = group->blocks[at.block];
    set->count--;
    block->n--;
    if (block->n > 0) {
        move_down(block->locks, sizeof *block->locks, at.slot, block->n);
        if (at.slot == 0) {
            group->firsts[at.block] = block->locks[0].start;
            note_first(set, at.group);
        }
        return settle(set, at);
    }
    free(block);
    group->n--;
    at.slot = 0;
    if (group->n > 0) {
        move_down(group->blocks, sizeof(lock_block *), at.block, group->n);
        move_down(group->firsts, sizeof *group->firsts, at.block, group->n);
        note_first(set, at.group);
        return settle(set, at);
    }
    free_group(group);
    drop_group(set, at.group);
    at.block = 0;
    return at;
}

/* Room for one more block in the group. */
static int widen_group(lock_group *group)
{
    if (group->n < group->capacity)
        return MPIOX_OK;
    int32_t capacity = group->capacity == 0 ? 2 : 2 * group->capacity;
    int64_t *firsts = realloc(group->firsts, (size_t)capacity * sizeof *firsts);
    if (firsts == NULL)
        return MPIOX_E_NOMEM;
    group->firsts = firsts;
    lock_block **blocks = realloc(group->blocks, (size_t)capacity * sizeof(lock_block *));
    if (blocks == NULL)
        return MPIOX_E_NOMEM;
    group->blocks = blocks;
    group->capacity = capacity;
    return MPIOX_OK;
}

static int add_group(mpiox_lockset *set, int32_t place, lock_group **out)
{
    if (set->n_groups == set->capacity) {
        int32_t capacity = set->capacity == 0 ? 1 : 2 * set->capacity;
        lock_group **groups = realloc(set->groups, (size_t)capacity * sizeof(lock_group *));
        if (groups == NULL)
            return MPIOX_E_NOMEM;
        set->groups = groups;
        int64_t *firsts = realloc(set->firsts, (size_t)capacity * sizeof *firsts);
        if (firsts == NULL)
            return MPIOX_E_NOMEM;
        set->firsts = firsts;
        set->capacity = capacity;
    }
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return MPIOX_E_NOMEM;
    if (widen_group(*out) != MPIOX_OK) {
        free_group(*out);
        return MPIOX_E_NOMEM;
    }
    move_up(set->groups, sizeof(lock_group *), place, set->n_groups);
    move_up(set->firsts, sizeof *set->firsts, place, set->n_groups);
    set->groups[place] = *out;
    set->n_groups++;
    return MPIOX_OK;
}

/* Cut a full group in two; *at follows its lock. */
static int split_group(mpiox_lockset *set, mpiox_lockset_cursor *at)
{
    lock_group *group = set->groups[at->group], *upper;
    const bool last = at->group == set->n_groups - 1 && at->block == group->n - 1;
    const int32_t keep = last ? group->n - 1 : group->n / 2, moved = group->n - keep;
    if (add_group(set, at->group + 1, &upper) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    for (int32_t i = 0; i < moved; i++) {
        if (widen_group(upper) != MPIOX_OK) { /* nothing has moved yet: no group may stay empty */
            free(upper->firsts);
            free(upper->blocks);
            free(upper);
            drop_group(set, at->group + 1);
            return MPIOX_E_NOMEM;
        }
        upper->firsts[i] = group->firsts[keep + i];
        upper->blocks[i] = group->blocks[keep + i];
        upper->n++;
    }
    group->n = keep;
    note_first(set, at->group + 1);
    if (at->block >= keep) {
        at->group++;
        at->block -= keep;
    }
    return MPIOX_OK;
}

/* Cut a full block in two; *at follows its lock. */
static int split_block(mpiox_lockset *set, mpiox_lockset_cursor *at)
{
    if (set->groups[at->group]->n == MPIOX_LOCKSET_GROUP && split_group(set, at) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    lock_group *group = set->groups[at->group];
    lock_block *block = group->blocks[at->block], *upper = malloc(sizeof *upper);
    if (upper == NULL || widen_group(group) != MPIOX_OK) {
        free(upper);
        return MPIOX_E_NOMEM;
    }
    const bool last = at->slot == block->n && at->block == group->n - 1;
    const int32_t keep = last ? block->n - 1 : block->n / 2;
    upper->n = block->n - keep;
    memcpy(upper->locks, block->locks + keep, (size_t)upper->n * sizeof *block->locks);
    block->n = keep;
    move_up(group->blocks, sizeof(lock_block *), at->block + 1, group->n);
    move_up(group->firsts, sizeof *group->firsts, at->block + 1, group->n);
    group->blocks[at->block + 1] = upper;
    group->firsts[at->block + 1] = upper->locks[0].start;
    group->n++;
    if (at->slot > keep) {
        at->block++;
        at->slot -= keep;
    }
    return MPIOX_OK;
}

int mpiox_lockset_insert(mpiox_lockset *set, mpiox_lockset_cursor at, const mpiox_lockset_lock *lock)
{
    if (set->n_groups == 0) {
        lock_group *group;
        lock_block *block = malloc(sizeof *block);
        if (block == NULL || add_group(set, 0, &group) != MPIOX_OK) {
            free(block);
            return MPIOX_E_NOMEM;
        }
        block->n = 0;
        group->n = 1;
        group->blocks[0] = block;
        at = (mpiox_lockset_cursor){0, 0, 0};
    } else if (mpiox_lockset_back(set, &at)) { /* behind the one before, where a block that grows is the earlier one */
        at.slot++;
    }
    if (set->groups[at.group]->blocks[at.block]->n == MPIOX_LOCKSET_BLOCK && split_block(set, &at) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    lock_group *group = set->groups[at.group];
    lock_block *block = group->blocks[at.block];
    move_up(block->locks, sizeof *block->locks, at.slot, block->n);
    block->locks[at.slot] = *lock;
    block->n++;
    if (at.slot == 0) {
        group->firsts[at.block] = lock->start;
        note_first(set, at.group);
    }
    set->count++;
    return MPIOX_OK;
}

void mpiox_lockset_free(mpiox_lockset *set)
{
    for (int32_t i = 0; i < set->n_groups; i++)
        free_group(set->groups[i]);
    free(set->groups);
    free(set->firsts);
    *set = (mpiox_lockset){0};
}
