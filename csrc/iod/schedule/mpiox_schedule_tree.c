/*
 * mpiox_schedule_tree.c - requests by their place: file, direction, offset.
 *
 * Problem.    Find the requests that overlap or continue a given one, and the first one of a file, among thousands of
 *             requests.
 * Algorithm.  A treap (mpiox_treap.h) ordered by (file, direction, offset, number). Each node counts the READY requests
 *             below it, so that a search skips the others at once, and knows which request below it reaches furthest,
 *             in the order (file, direction, end): an interval tree over all streams at once.
 * Guarantees. Logarithmic time, expected, plus the number of overlaps that are found.
 * Source.     T. Cormen et al., "Introduction to Algorithms", chapter on augmenting data structures (interval trees).
 */
#include "mpiox_schedule_tree.h"

static const uint32_t none = MPIOX_SCHEDULE_NONE;

typedef struct place {
    int64_t file;
    bool write;
    int64_t offset;
    uint64_t number;
} place;

static place place_of(const mpiox_schedule_entry *entry)
{
    return (place){entry->what.file, entry->what.write, entry->what.offset, entry->number};
}

static int compare_streams(int64_t file, bool write, int64_t other_file, bool other_write)
{
    if (file != other_file)
        return file < other_file ? -1 : 1;
    return (int)write - (int)other_write;
}

static bool is_before(const mpiox_schedule_entry *entry, const place *at)
{
    const int order = compare_streams(entry->what.file, entry->what.write, at->file, at->write);
    if (order != 0)
        return order < 0;
    if (entry->what.offset != at->offset)
        return entry->what.offset < at->offset;
    return entry->number < at->number;
}

/* Does the entry end behind this place, or belong to a later stream? */
static bool reaches(const mpiox_schedule_entry *entry, int64_t file, bool write, int64_t offset)
{
    const int order = compare_streams(entry->what.file, entry->what.write, file, write);
    return order > 0 || (order == 0 && mpiox_entry_end(entry) > offset);
}

/* ---- the treap --------------------------------------------------------------------------------------------------- */

static uint32_t further(const mpiox_schedule *schedule, uint32_t one, uint32_t other)
{
    if (other == none)
        return one;
    const mpiox_schedule_entry *at = &schedule->entries[one];
    return reaches(&schedule->entries[other], at->what.file, at->what.write, mpiox_entry_end(at)) ? other : one;
}

/* A node's facts about its subtree. */
static void renew(void *owner, uint32_t node)
{
    mpiox_schedule *schedule = owner;
    mpiox_schedule_entry *at = &schedule->entries[node];
    at->ready = at->state == MPIOX_ENTRY_READY;
    at->furthest = node;
    const uint32_t children[2] = {at->node.left, at->node.right};
    for (int i = 0; i < 2; i++) {
        if (children[i] == none)
            continue;
        at->ready += schedule->entries[children[i]].ready;
        at->furthest = further(schedule, at->furthest, schedule->entries[children[i]].furthest);
    }
}

static bool is_element_before(const void *owner, uint32_t element, const void *at)
{
    return is_before(&((const mpiox_schedule *)owner)->entries[element], at);
}

static mpiox_treap treap_of(mpiox_schedule *schedule)
{
    return (mpiox_treap){schedule, &schedule->entries[0].node, sizeof schedule->entries[0], is_element_before, renew};
}

void mpiox_schedule_tree_insert(mpiox_schedule *schedule, uint32_t entry)
{
    const mpiox_treap treap = treap_of(schedule);
    const place here = place_of(&schedule->entries[entry]);
    schedule->random = schedule->random * 1664525 + 1013904223;
    schedule->entries[entry].node.priority = schedule->random;
    mpiox_treap_insert(&treap, &schedule->tree, entry, &here);
}

void mpiox_schedule_tree_remove(mpiox_schedule *schedule, uint32_t entry)
{
    const mpiox_treap treap = treap_of(schedule);
    const place here = place_of(&schedule->entries[entry]);
    place behind = here;
    behind.number++;
    mpiox_treap_remove(&treap, &schedule->tree, &here, &behind);
}

/* Renew the nodes from the root to an entry. */
static void renew_path(mpiox_schedule *schedule, uint32_t tree, uint32_t entry, const place *at)
{
    if (tree != entry)
        renew_path(schedule,
                   is_before(&schedule->entries[tree], at) ? schedule->entries[tree].node.right
                                                           : schedule->entries[tree].node.left,
                   entry, at);
    renew(schedule, tree);
}

void mpiox_schedule_tree_set(mpiox_schedule *schedule, uint32_t entry, enum mpiox_entry_state state)
{
    const place here = place_of(&schedule->entries[entry]);
    schedule->entries[entry].state = state;
    renew_path(schedule, schedule->tree, entry, &here);
}

/* ---- READY ones -------------------------------------------------------------------------------------------------- */

static uint32_t first_ready(const mpiox_schedule *schedule, uint32_t tree, const place *from)
{
    if (tree == none || schedule->entries[tree].ready == 0)
        return none;
    const mpiox_schedule_entry *at = &schedule->entries[tree];
    if (is_before(at, from))
        return first_ready(schedule, at->node.right, from);
    const uint32_t found = first_ready(schedule, at->node.left, from);
    if (found != none)
        return found;
    return at->state == MPIOX_ENTRY_READY ? tree : first_ready(schedule, at->node.right, from);
}

static uint32_t first_from(const mpiox_schedule *schedule, const place *from)
{
    const uint32_t found = first_ready(schedule, schedule->tree, from);
    if (found == none)
        return none;
    const mpiox_schedule_request *what = &schedule->entries[found].what;
    return what->file == from->file && what->write == from->write ? found : none;
}

uint32_t mpiox_schedule_tree_first(const mpiox_schedule *schedule, int64_t file, bool write, int64_t offset)
{
    return first_from(schedule, &(place){file, write, offset, 0});
}

uint32_t mpiox_schedule_tree_next(const mpiox_schedule *schedule, uint32_t entry)
{
    place from = place_of(&schedule->entries[entry]);
    from.number++;
    return first_from(schedule, &from);
}

uint32_t mpiox_schedule_tree_after(const mpiox_schedule *schedule, uint32_t entry)
{
    const mpiox_schedule_entry *at = &schedule->entries[entry];
    const int64_t end = mpiox_entry_end(at);
    const uint32_t found = mpiox_schedule_tree_first(schedule, at->what.file, at->what.write, end);
    return found != none && schedule->entries[found].what.offset == end ? found : none;
}

/* ---- overlaps ---------------------------------------------------------------------------------------------------- */

typedef struct search {
    int64_t file;
    bool write;
    int64_t start, end;
    bool (*found)(struct search *search, mpiox_schedule *schedule, uint32_t entry); /* true: go on */
    uint64_t number;
    uint32_t result;
    void (*held)(mpiox_schedule *schedule, uint32_t entry);
} search;

/* Every request of the stream that overlaps the range, in the order of the tree. False: ended before. */
static bool visit(search *search, mpiox_schedule *schedule, uint32_t tree)
{
    if (tree == none ||
        !reaches(&schedule->entries[schedule->entries[tree].furthest], search->file, search->write, search->start))
        return true;
    const mpiox_schedule_entry *at = &schedule->entries[tree];
    const place end = {search->file, search->write, search->end, 0};
    if (!visit(search, schedule, at->node.left))
        return false;
    if (!is_before(at, &end))
        return true;
    if (compare_streams(at->what.file, at->what.write, search->file, search->write) == 0 &&
        mpiox_entry_end(at) > search->start && !search->found(search, schedule, tree))
        return false;
    return visit(search, schedule, at->node.right);
}

static bool ends_here(search *search, mpiox_schedule *schedule, uint32_t entry)
{
    const mpiox_schedule_entry *at = &schedule->entries[entry];
    if (at->state != MPIOX_ENTRY_READY || mpiox_entry_end(at) != search->end)
        return true;
    search->result = entry;
    return false;
}

uint32_t mpiox_schedule_tree_before(const mpiox_schedule *schedule, uint32_t entry)
{
    const mpiox_schedule_request *what = &schedule->entries[entry].what;
    search here = {.file = what->file, .write = what->write, .found = ends_here, .result = none};
    if (what->offset == 0)
        return none;
    here.start = what->offset - 1;
    here.end = what->offset;
    visit(&here, (mpiox_schedule *)(uintptr_t)schedule, schedule->tree); /* nothing is changed */
    return here.result;
}

static bool is_older(search *search, mpiox_schedule *schedule, uint32_t entry)
{
    if (schedule->entries[entry].number >= search->number)
        return true;
    search->result = entry;
    return false;
}

static search over(const mpiox_schedule_request *what, bool write)
{
    return (search){
        .file = what->file, .write = write, .start = what->offset, .end = what->offset + what->length, .result = none};
}

bool mpiox_schedule_tree_is_blocked(const mpiox_schedule *schedule, uint32_t entry)
{
    const mpiox_schedule_entry *at = &schedule->entries[entry];
    for (int write = at->what.write ? 0 : 1; write < 2; write++) {
        search here = over(&at->what, write != 0);
        here.found = is_older;
        here.number = at->number;
        visit(&here, (mpiox_schedule *)(uintptr_t)schedule, schedule->tree); /* nothing is changed */
        if (here.result != none)
            return true;
    }
    return false;
}

static bool pass_on(search *search, mpiox_schedule *schedule, uint32_t entry)
{
    if (schedule->entries[entry].state == MPIOX_ENTRY_HELD)
        search->held(schedule, entry);
    return true;
}

void mpiox_schedule_tree_held(mpiox_schedule *schedule, const mpiox_schedule_request *range,
                              void (*found)(mpiox_schedule *schedule, uint32_t entry))
{
    for (int write = range->write ? 0 : 1; write < 2; write++) {
        search here = over(range, write != 0);
        here.found = pass_on;
        here.held = found;
        visit(&here, schedule, schedule->tree);
    }
}
