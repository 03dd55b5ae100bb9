/*
 * mpiox_memory.c - sizes, addresses and placement in the node's shared memory (layout: mpiox_board.h).
 *
 * Boxes (messages between nodes) are sized for the worst case, every local rank filling every window of every other
 * node; only pages that are really used take memory, because the segment is not reserved.
 */
#include <stdlib.h>
#include <unistd.h>

#include "mpiox_exchange_impl.h"

static int64_t round_up(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

/* More than one memory node? Then it matters who touches a page first. */
static bool has_numa(void) {
    return access("/sys/devices/system/node/node1", F_OK) == 0;
}

/* Pages lie in the memory of whoever first touches them: every aggregator does so for its own collective buffers, once per
 * segment, so that its requests and most of its ranks' copies stay in that memory. The segment is all zeros still. */
static void place_buffers(mpiox_exchange *x) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    if (x->team->segment_placed || !has_numa())
        return;
    x->team->segment_placed = true;
    for (int local = 0; local < x->n_local; local++) {
        if (x->aggregators[x->local[local]] != x->team->rank)
            continue;
        volatile char *own = x->collective_buffers + (int64_t) local * x->buffers * x->window_bytes;
        for (int64_t at = 0; at < x->buffers * x->window_bytes; at += page)
            own[at] = 0;
    }
}

int mpiox_memory_attach(mpiox_exchange *x, mpiox_error *error) {
    enum { PAGE = 4096 };
    mpiox_team *team = x->team;
    if (x->board)
        return MPIOX_OK;
    const int64_t slots = (int64_t) x->n_local * x->buffers;
    const int64_t at_posts = round_up(sizeof(mpiox_board), MPIOX_LINE);
    const int64_t at_slots = round_up(at_posts + (int64_t) sizeof(mpiox_post) * team->node_size, MPIOX_LINE);
    const int64_t at_boxes = round_up(at_slots + (int64_t) sizeof(mpiox_slot) * slots, MPIOX_LINE);
    const int64_t n_boxes = team->n_nodes > 1 ? 2 * (int64_t) team->n_nodes : 0;
    const int64_t at_buffers = round_up(at_boxes + (int64_t) sizeof(mpiox_box) * n_boxes, PAGE);
    const int64_t at_maps = round_up(at_buffers + slots * x->window_bytes, PAGE);
    const int64_t at_areas = round_up(at_maps + slots * x->window_bytes, PAGE);
    const int64_t area = n_boxes ? mpiox_messages_area_bytes(x) : 0;
    /* Sizes follow from the number of buffers and the size of one; equal totals of different layouts are told apart. */
    const uint64_t layout = (uint64_t) x->window_bytes << 24 | (uint64_t) slots;
    int code = mpiox_team_segment(team, at_areas + n_boxes * area, layout, error), worst = code;
    if (team->n_nodes > 1 && PMPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MIN, team->comm) != MPI_SUCCESS)
        worst = MPIOX_E_MPI;
    if (code == MPIOX_OK && worst != MPIOX_OK)
        code = mpiox_error_set(error, worst, 0, -1, at_areas + n_boxes * area, "shared memory on another node");
    if (code != MPIOX_OK)
        return code;
    char *base = team->segment.base;
    x->board = (mpiox_board *) base;
    x->posts = (mpiox_post *) (base + at_posts);
    x->slots = (mpiox_slot *) (base + at_slots);
    x->boxes = (mpiox_box *) (base + at_boxes);
    x->collective_buffers = base + at_buffers;
    x->maps = (unsigned char *) base + at_maps;
    x->box_areas = base + at_areas;
    x->box_bytes = area;
    place_buffers(x);
    return MPIOX_OK;
}

void mpiox_memory_reset(mpiox_exchange *x) {
    for (int64_t i = 0; i < (int64_t) x->n_local * x->buffers; i++) {
        mpiox_slot *slot = &x->slots[i];
        atomic_store(&slot->phase.value, 0);
        atomic_store(&slot->arrived, 0);
        atomic_store(&slot->claimed, 0);
        atomic_store(&slot->window, -1);
        atomic_store(&slot->eof, INT64_MAX);
    }
    for (int i = 0; i < 2; i++) {
        atomic_store(&x->board->packed[i].value, 0);
        atomic_store(&x->board->shipped[i].value, 0);
    }
    if (x->team->n_nodes > 1)
        for (int i = 0; i < 2 * x->team->n_nodes; i++)
            atomic_store(&x->boxes[i].used, 0);
}
