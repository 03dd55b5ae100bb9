/*
 * mpiox_messages.c - the second level of the exchange: between nodes.
 *
 * Problem.   Pieces whose aggregator lies on another node must travel there with few, large messages.
 * Algorithm. Write: every rank packs its pieces for node d into the node's outgoing box for d (a shared-memory area; an
 *            atomic cursor hands out room), the leader sends the box as one message per node pair and round, and the
 *            receiving leader places the pieces in the collective buffers. Read: the aggregators' leader gathers the
 *            pieces of each other node from the loaded buffers, sends one message, and the receiving node's ranks copy
 *            their entries out of the box. An entry says (rank, aggregator, stream position, length): the receiver knows
 *            that rank's view, so that no offset-length list is sent. Views travel only after they were changed; per
 *            call a rank's position, length and range. Boxes are double: round r+1 is packed while r is on its way.
 * Errors.    A node that has failed goes on sending: its ranks' data is as good as before, and the others write only what
 *            they were sent. If a message cannot be put together, the message says so and the receiver stops writing.
 *            A leader whose collective over the leaders has failed takes part in those that follow, and says so at the
 *            end. Where it cannot know who sends, or take or send a message, the job ends: the others would wait.
 * Who sends. Node s sends to node d in a round if and only if a window of d (write) or s (read) in that round meets the
 *            file range of the other node's ranks. Both sides compute it, so nobody waits for a message that never comes.
 * Source.    Two-level aggregation: Kang, Lee, Lee, Agrawal, Choudhary, Liao, "Improving all-to-many personalized
 *            communication in two-phase I/O", SC20.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_exchange_impl.h"

typedef struct entry { /* followed by `length` bytes of data, padded to 8 */
    int32_t rank, aggregator;
    int64_t position, length;
} entry;

/* The only entry of a message whose sender could not put it together: the receiver must not use the round's data. */
static const entry failed_entry = {.rank = -1};

typedef struct rank_access { /* what leaders know of a rank in this call */
    int64_t position, length, first, last, displacement;
} rank_access;

struct mpiox_messages {
    rank_access *ranks;   /* [size], by rank */
    mpiox_typemap **views; /* [size], by rank; NULL = unusable */
    mpiox_interval *nodes; /* [n_nodes] file range of a node's ranks */
    char **outgoing;      /* [n_nodes] read: messages under way */
    int64_t *room;        /* [n_nodes] bytes allocated in outgoing */
    char *incoming;        /* write: one received message; as large as a box, of which only used pages take memory */
    MPI_Request *requests; /* [n_nodes] */
    rank_access *by_node;  /* [size] scratch, ranks in node order */
    int *sizes;            /* [size] scratch */
    int *counts;           /* [2 * n_nodes] scratch */
    mpiox_interval *windows; /* [n_aggregators] from first to last byte of every window of the round */
    mpiox_summary *summaries; /* [n_nodes] leaders: what they tell each other */
    int64_t *buffer_offsets; /* [offsets_max] where extents[0] of the window being placed lie in the buffer */
    int64_t offsets_max;
};

static int64_t padded(int64_t length) { return (length + 7) & ~(int64_t) 7; }

static int most_aggregators(const mpiox_exchange *x) {
    int most = 0;
    for (int n = 0; n < x->team->n_nodes; n++) {
        int here = 0;
        for (int a = 0; a < x->n_aggregators; a++)
            here += x->team->node_of[x->aggregators[a]] == n;
        most = here > most ? here : most;
    }
    return most;
}

static int largest_node(const mpiox_team *team) {
    int most = 0;
    for (int n = 0; n < team->n_nodes; n++) {
        const int here = team->node_start[n + 1] - team->node_start[n];
        most = here > most ? here : most;
    }
    return most;
}

/* Worst case of one message: every rank of a node accesses every byte of every window of another node. A window has at
 * most one extent per stripe plus the occupied intervals. */
int64_t mpiox_messages_area_bytes(const mpiox_exchange *x) {
    const int64_t extents = x->window_bytes / x->layout.stripe_size + 2 * MPIOX_OCCUPIED_MAX + 2;
    const int64_t window = x->window_bytes + extents * (int64_t) (sizeof(entry) + 8);
    return largest_node(x->team) * (int64_t) most_aggregators(x) * window;
}

int mpiox_messages_create(mpiox_exchange *x) {
    const size_t size = (size_t) x->team->size, nodes = (size_t) x->team->n_nodes;
    mpiox_messages *m = calloc(1, sizeof *m);
    if (!m)
        return MPIOX_E_NOMEM;
    x->messages = m;
    m->ranks = calloc(size, sizeof *m->ranks);
    m->views = calloc(size, sizeof *m->views);
    m->nodes = calloc(nodes, sizeof *m->nodes);
    m->outgoing = calloc(nodes, sizeof *m->outgoing);
    m->room = calloc(nodes, sizeof *m->room);
    m->requests = calloc(nodes, sizeof *m->requests);
    m->by_node = calloc(size, sizeof *m->by_node);
    m->sizes = calloc(size, sizeof *m->sizes);
    m->counts = calloc(2 * nodes, sizeof *m->counts);
    m->windows = calloc((size_t) x->n_aggregators, sizeof *m->windows);
    m->incoming = x->team->node_rank == 0 ? malloc((size_t) mpiox_messages_area_bytes(x)) : NULL;
    m->summaries = x->team->node_rank == 0 ? calloc(nodes, sizeof *m->summaries) : NULL;
    return m->ranks && m->views && m->nodes && m->outgoing && m->room && m->requests && m->by_node && m->sizes &&
                   m->counts && m->windows && ((m->incoming && m->summaries) || x->team->node_rank != 0)
               ? MPIOX_OK
               : MPIOX_E_NOMEM;
}

void mpiox_messages_free(mpiox_exchange *x) {
    mpiox_messages *m = x->messages;
    if (!m)
        return;
    for (int r = 0; m->views && r < x->team->size; r++)
        mpiox_typemap_free(m->views[r]);
    for (int n = 0; m->outgoing && n < x->team->n_nodes; n++)
        free(m->outgoing[n]);
    free(m->ranks);
    free(m->views);
    free(m->nodes);
    free(m->outgoing);
    free(m->room);
    free(m->incoming);
    free(m->summaries);
    free(m->requests);
    free(m->by_node);
    free(m->sizes);
    free(m->counts);
    free(m->windows);
    free(m->buffer_offsets);
    free(m);
    x->messages = NULL;
}

void *mpiox_messages_scratch(mpiox_exchange *x) { return x->messages->summaries; }

static void fail(mpiox_exchange *x, int code, int64_t bytes, const char *what) {
    mpiox_error error = {.code = MPIOX_OK};
    mpiox_error_set(&error, code, 0, -1, bytes, what);
    mpiox_agree_fail(x, &error);
}

/* A nonblocking collective to its end: blocking ones of some libraries spin (mpiox_agree_finish). 0 or MPIOX_E_MPI. */
static int waited(int code, MPI_Request *request) {
    return code == MPI_SUCCESS ? mpiox_agree_finish(1, request, NULL, NULL) : MPIOX_E_MPI;
}

/* ---- before the rounds ------------------------------------------------------------------------------------------- */

/* counts[] and displs[] of a gather over nodes of one item per rank, in node order. */
static void node_counts(const mpiox_team *team, int item_bytes, int *counts, int *displs) {
    for (int n = 0; n < team->n_nodes; n++) {
        counts[n] = (team->node_start[n + 1] - team->node_start[n]) * item_bytes;
        displs[n] = team->node_start[n] * item_bytes;
    }
}

/* Leaders: everyone's range and position of this call, from the posts in shared memory. */
static void gather_ranges(mpiox_exchange *x) {
    mpiox_messages *m = x->messages;
    mpiox_team *team = x->team;
    for (int i = 0; i < team->node_size; i++) {
        const mpiox_post *post = &x->posts[i];
        m->by_node[team->node_start[team->node] + i] =
            (rank_access) {post->position, post->length, post->first, post->last, post->displacement};
    }
    node_counts(team, (int) sizeof *m->by_node, m->counts, m->counts + team->n_nodes);
    MPI_Request request;
    if (waited(PMPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, m->by_node, m->counts, m->counts + team->n_nodes, MPI_BYTE,
                                team->leader_comm, &request), &request) != MPIOX_OK)
        mpiox_agree_give_up(x, MPIOX_E_MPI, -1, -1, "agreeing on who sends to whom");
    for (int i = 0; i < team->size; i++)
        m->ranks[team->node_ranks[i]] = m->by_node[i];
    for (int n = 0; n < team->n_nodes; n++) {
        m->nodes[n] = (mpiox_interval) {INT64_MAX, INT64_MIN};
        for (int i = team->node_start[n]; i < team->node_start[n + 1]; i++) {
            if (m->by_node[i].length == 0)
                continue;
            m->nodes[n].first = m->by_node[i].first < m->nodes[n].first ? m->by_node[i].first : m->nodes[n].first;
            m->nodes[n].last = m->by_node[i].last > m->nodes[n].last ? m->by_node[i].last : m->nodes[n].last;
        }
    }
}

/* This rank's serialized view, to be freed. *bytes: its size, 0 for a view without data, -1 if it cannot be sent. */
static char *serialize_view(const mpiox_exchange *x, int *bytes) {
    const int64_t size = x->view ? mpiox_typemap_blob_bytes(x->view) : 0;
    char *blob = x->view && size > 0 && size <= INT32_MAX ? malloc((size_t) size) : NULL;
    *bytes = x->empty_view ? 0 : blob && mpiox_typemap_to_blob(x->view, blob, size) == MPIOX_OK ? (int) size : -1;
    return blob;
}

/* At the leader: where the node's views go, and room for them; NULL when one of them, or memory, is missing. */
static char *room_for_views(const mpiox_team *team, const int *sizes, int *displs, int64_t *total) {
    *total = 0;
    for (int i = 0; displs && i < team->node_size; *total += sizes[i++]) {
        if (sizes[i] < 0 || *total > INT32_MAX)
            return NULL;
        displs[i] = (int) *total;
    }
    return displs && *total <= INT32_MAX ? malloc((size_t) *total + 8) : NULL;
}

/* Every rank's serialized view to its leader, back to back; the leader gets them in *all and their sizes in m->sizes[0
 * .. node_size - 1], others NULL. If a view cannot be sent, or the leader has no memory, nothing is gathered and *total
 * is -1. */
static int gather_node_views(mpiox_exchange *x, char **all, int64_t *total) {
    mpiox_team *team = x->team;
    MPI_Request request;
    int mine, *sizes = x->messages->sizes, *displs = NULL, go = 1;
    char *blob = serialize_view(x, &mine);
    *all = NULL;
    *total = 0;
    int code = waited(PMPI_Igather(&mine, 1, MPI_INT, sizes, 1, MPI_INT, 0, team->node_comm, &request), &request);
    if (team->node_rank == 0) {
        displs = calloc((size_t) team->node_size, sizeof *displs);
        *all = code == MPIOX_OK ? room_for_views(team, sizes, displs, total) : NULL;
        go = *all != NULL;
    }
    const int told = waited(PMPI_Ibcast(&go, 1, MPI_INT, 0, team->node_comm, &request), &request);
    if (told != MPIOX_OK && team->node_rank != 0)
        go = 1; /* most likely */
    code = code == MPIOX_OK ? told : code;
    if (go) {
        const int moved = waited(PMPI_Igatherv(blob, mine < 0 ? 0 : mine, MPI_BYTE, *all, sizes, displs, MPI_BYTE, 0,
                                               team->node_comm, &request), &request);
        code = code == MPIOX_OK ? moved : code;
    }
    if (!go || (team->node_rank == 0 && code != MPIOX_OK))
        *total = -1;
    free(displs);
    free(blob);
    return code == MPIOX_OK && *total < 0 ? MPIOX_E_NOMEM : code;
}

/* Leaders: fine on all of them? *code becomes MPIOX_E_NOMEM if not; after a failure the others are taken to be fine. */
static bool all_leaders(const mpiox_exchange *x, int fine, int *code) {
    MPI_Request request;
    int all = fine;
    MPI_Comm comm = x->team->leader_comm;
    if (waited(PMPI_Iallreduce(&fine, &all, 1, MPI_INT, MPI_MIN, comm, &request), &request) != MPIOX_OK) {
        *code = MPIOX_E_MPI;
        all = fine;
    }
    if (!all && *code == MPIOX_OK)
        *code = MPIOX_E_NOMEM;
    return all != 0;
}

/* Leaders: every rank's description from the blobs of all nodes. */
static int rebuild_views(mpiox_exchange *x, const char *blobs, const int *sizes) {
    mpiox_messages *m = x->messages;
    int64_t at = 0;
    int code = MPIOX_OK;
    for (int i = 0; i < x->team->size; at += sizes[i++]) {
        mpiox_typemap **view = &m->views[x->team->node_ranks[i]];
        mpiox_typemap_free(*view);
        *view = NULL;
        if (sizes[i] && code == MPIOX_OK) /* blob sizes are multiples of 8, so every blob is aligned */
            code = mpiox_typemap_from_blob(blobs + at, sizes[i], view);
    }
    return code;
}

/* Leaders: spread the blobs of all nodes and rebuild every rank's description. node_total < 0: this leader has none. */
static int spread_views(mpiox_exchange *x, const char *node_blobs, int64_t node_total) {
    mpiox_messages *m = x->messages;
    mpiox_team *team = x->team;
    MPI_Request request;
    int *sizes = calloc((size_t) team->size, sizeof *sizes), *displs = m->counts + team->n_nodes, code = MPIOX_OK;
    int64_t total = 0;
    if (!all_leaders(x, sizes != NULL && node_total >= 0, &code)) {
        free(sizes);
        return code;
    }
    node_counts(team, 1, m->counts, displs);
    const int sized = waited(PMPI_Iallgatherv(m->sizes, team->node_size, MPI_INT, sizes, m->counts, displs, MPI_INT,
                                              team->leader_comm, &request), &request);
    for (int n = 0; n < team->n_nodes; n++) {
        displs[n] = (int) total;
        m->counts[n] = 0;
        for (int i = team->node_start[n]; i < team->node_start[n + 1]; total += sizes[i++])
            m->counts[n] += sizes[i];
    }
    /* counts of MPI_Allgatherv are ints */
    char *all = sized == MPIOX_OK && total <= INT32_MAX ? malloc((size_t) total + 8) : NULL;
    code = code == MPIOX_OK ? sized : code;
    if (all_leaders(x, all != NULL, &code)) {
        const int moved = waited(PMPI_Iallgatherv(node_blobs, (int) node_total, MPI_BYTE, all, m->counts, displs,
                                                  MPI_BYTE, team->leader_comm, &request), &request);
        code = code == MPIOX_OK ? moved : code;
        if (code == MPIOX_OK)
            code = rebuild_views(x, all, sizes);
    }
    free(all);
    free(sizes);
    return code;
}

/* Leaders: is it proven that no two ranks' views share a byte, wherever they are accessed? About a microsecond a pair. */
static int all_views_disjoint(const mpiox_exchange *x) {
    enum { RANKS_MAX = 128 };
    const mpiox_messages *m = x->messages;
    for (int i = 0; i < x->team->size && x->team->size <= RANKS_MAX; i++)
        for (int j = i + 1; m->views[i] && j < x->team->size; j++)
            if (m->views[j] &&
                !mpiox_typemap_disjoint(m->views[i], m->ranks[i].displacement, m->views[j], m->ranks[j].displacement))
                return 0;
    return x->team->size <= RANKS_MAX;
}

void mpiox_messages_begin(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    const bool spreading = !x->views_spread;
    MPI_Request request;
    int code = MPIOX_OK;
    if (spreading) {
        int64_t total;
        char *blobs;
        code = gather_node_views(x, &blobs, &total);
        if (x->team->node_rank == 0) {
            const int spread = spread_views(x, blobs, code == MPIOX_OK ? total : -1);
            code = code == MPIOX_OK ? spread : code;
        }
        free(blobs);
        x->views_spread = true; /* taken back when the collective fails */
    }
    if (x->team->node_rank == 0)
        gather_ranges(x);
    if (spreading) {
        x->views_disjoint = x->team->node_rank == 0 && code == MPIOX_OK && all_views_disjoint(x);
        const int told = waited(PMPI_Ibcast(&x->views_disjoint, 1, MPI_INT, 0, x->team->node_comm, &request), &request);
        if (told != MPIOX_OK)
            x->views_disjoint = 0;
        code = code == MPIOX_OK ? told : code;
    }
    if (code == MPIOX_OK)
        return;
    fail(x, code, -1, "gathering the views of other nodes");
    for (int r = 0; r < x->team->size; r++) { /* old views would put data in wrong places */
        mpiox_typemap_free(x->messages->views[r]);
        x->messages->views[r] = NULL;
    }
}

/* ---- who sends --------------------------------------------------------------------------------------------------- */

/* Once a round, leaders: the spans of all windows, so that deciding who sends costs O(aggregators) in all. */
static void span_windows(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    for (int a = 0; a < x->n_aggregators; a++) {
        const mpiox_extent *list = x->extents[0];
        const int64_t n = mpiox_rounds_extents(call, a, call->round, x->extents[0]);
        x->messages->windows[a] = (mpiox_interval) {INT64_MAX, INT64_MIN};
        if (n > 0)
            x->messages->windows[a] = (mpiox_interval) {list[0].offset, list[n - 1].offset + list[n - 1].length};
    }
}

/* Does a window of the round on node `owner` meet the range of node `other`? Leaders only. */
static bool meets(const mpiox_call *call, int owner, int other) {
    const mpiox_exchange *x = call->x;
    const mpiox_interval range = x->messages->nodes[other];
    for (int a = 0; a < x->n_aggregators; a++)
        if (x->team->node_of[x->aggregators[a]] == owner && x->messages->windows[a].first < range.last &&
            x->messages->windows[a].last > range.first)
            return true;
    return false;
}

static mpiox_box *box_of(mpiox_exchange *x, int64_t round, int node, char **area) {
    const int64_t index = (round & 1) * x->team->n_nodes + node;
    *area = x->box_areas + index * x->box_bytes;
    return &x->boxes[index];
}

static int tag_of(int64_t round) { return 1 + (int) (round & 0x3fff); }

/* ---- write ------------------------------------------------------------------------------------------------------- */

static void pack_extent(mpiox_call *call, int aggregator, mpiox_extent extent, mpiox_box *box, char *area) {
    mpiox_exchange *x = call->x;
    const mpiox_request *request = call->request;
    int64_t from, to;
    if (extent.offset >= call->last || extent.offset + extent.length <= call->first ||
        !mpiox_rounds_overlap(x->view, x->displacement, request->position, request->length, extent, &from, &to))
        return;
    const int64_t room = (int64_t) sizeof(entry) + padded(to - from), at = atomic_fetch_add(&box->used, room);
    if (at + room > x->box_bytes) { /* cannot happen: areas are sized for the worst case */
        fail(x, MPIOX_E_FULL, room, "packing for another node");
        return;
    }
    const entry head = {x->team->rank, aggregator, from, to - from};
    memcpy(area + at, &head, sizeof head);
    const mpiox_side target = {area + at + sizeof head, NULL, 0, 0};
    const mpiox_side source = {request->buffer, request->memory, 0, from - request->position};
    mpiox_copy(&target, &source, to - from);
}

static void pack(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    for (int a = 0; a < x->n_aggregators && call->first < call->last; a++) {
        const int node = x->team->node_of[x->aggregators[a]];
        if (node == x->team->node)
            continue;
        char *area;
        mpiox_box *box = box_of(x, call->round, node, &area);
        const int64_t n = mpiox_rounds_extents(call, a, call->round, x->extents[0]);
        for (int64_t i = 0; i < n; i++)
            pack_extent(call, a, x->extents[0][i], box, area);
    }
}

/* The slot that window call->round of local aggregator `local` was given by work_window(), or NULL. */
static mpiox_slot *slot_in_round(mpiox_call *call, int local) {
    mpiox_exchange *x = call->x;
    if (mpiox_rounds_extents(call, x->local[local], call->round, x->extents[0]) == 0)
        return NULL;
    return mpiox_slot_of(x, local, call->progress[local].begun - 1);
}

static int local_index(const mpiox_exchange *x, int aggregator) {
    for (int i = 0; i < x->n_local; i++)
        if (x->local[i] == aggregator)
            return i;
    return -1;
}

/* The window that entries are being placed into; its extents are in x->extents[0]. */
typedef struct placement {
    int aggregator; /* -1: none yet */
    mpiox_slot *slot;
    int64_t n;
} placement;

static bool begin_placement(mpiox_call *call, placement *to, int aggregator) {
    mpiox_exchange *x = call->x;
    mpiox_messages *m = x->messages;
    const int local = local_index(x, aggregator);
    to->aggregator = aggregator;
    to->slot = local < 0 ? NULL : slot_in_round(call, local);
    if (!to->slot)
        return false;
    to->n = mpiox_rounds_extents(call, aggregator, call->round, x->extents[0]);
    if (to->n > m->offsets_max) {
        int64_t *larger = realloc(m->buffer_offsets, sizeof *larger * (size_t) to->n);
        if (!larger)
            return false;
        m->buffer_offsets = larger;
        m->offsets_max = to->n;
    }
    for (int64_t i = 0, at = 0; i < to->n; at += x->extents[0][i++].length)
        m->buffer_offsets[i] = at;
    return true;
}

/* Place one entry: it lies inside one extent of the window, because it was cut there when it was packed. */
static bool place(mpiox_call *call, placement *to, const entry *head, const char *data) {
    mpiox_exchange *x = call->x;
    mpiox_messages *m = x->messages;
    if (head->rank < 0 || head->rank >= x->team->size || !m->views[head->rank] ||
        (head->aggregator != to->aggregator && !begin_placement(call, to, head->aggregator)) || !to->slot)
        return false;
    const mpiox_typemap *view = m->views[head->rank];
    const int64_t displacement = m->ranks[head->rank].displacement;
    const int64_t first = displacement + mpiox_typemap_offset(view, head->position);
    int64_t low = 0, high = to->n;
    while (high - low > 1) { /* the extent that holds `first` */
        const int64_t middle = low + (high - low) / 2;
        if (x->extents[0][middle].offset <= first)
            low = middle;
        else
            high = middle;
    }
    const mpiox_extent extent = x->extents[0][low];
    const int64_t at = m->buffer_offsets[low];
    if (first < extent.offset || first >= extent.offset + extent.length)
        return false;
    const mpiox_side file = {mpiox_slot_buffer(x, to->slot) + at, view, displacement - extent.offset, head->position};
    const mpiox_side source = {(void *) data, NULL, 0, 0};
    mpiox_copy(&file, &source, head->length);
    if (call->mark)
        mpiox_copy_mark(mpiox_slot_map(x, to->slot) + at / call->granule, 0, call->granule, &file, head->length);
    return true;
}

static void place_message(mpiox_call *call, const char *message, int64_t bytes) {
    placement to = {.aggregator = -1};
    for (int64_t at = 0; at + (int64_t) sizeof(entry) <= bytes;) {
        entry head;
        memcpy(&head, message + at, sizeof head);
        if (!place(call, &to, &head, message + at + sizeof head)) {
            fail(call->x, MPIOX_E_CORRUPT, head.length, "placing data from another node");
            return;
        }
        at += (int64_t) sizeof head + padded(head.length);
    }
}

/* A message that does not fit the area made for the largest possible one: the nodes do not run the same program, and no
 * later word of the other side could be trusted. Ending the job is the only end that is neither a hang nor wrong data. */
static void protocol_error(mpiox_exchange *x, int source, int64_t bytes) {
    fprintf(stderr, "mpiio_ext: rank %d: %s: a message of %lld bytes from node %d does not fit; do all ranks run the same "
            "version of libmpiio_ext.so with the same hints?\n", x->team->rank, x->path, (long long) bytes, source);
    PMPI_Abort(x->team->comm, 1);
}

/* Receive the message of `source` for this round into `buffer` of box_bytes bytes. Polls, so that this rank's share of
 * the I/O goes on. Returns its bytes, 0 after a failure. */
static int64_t receive(mpiox_call *call, int source, char *buffer) {
    mpiox_exchange *x = call->x;
    MPI_Message message;
    MPI_Status status;
    MPI_Count bytes = 0;
    int there = 0;
    mpiox_backoff backoff = {0};
    while (!there) {
        if (PMPI_Improbe(source, tag_of(call->round), x->team->leader_comm, &there, &message, &status) != MPI_SUCCESS)
            mpiox_agree_give_up(x, MPIOX_E_MPI, -1, -1, "looking for a message from another node");
        if (!there && !mpiox_rounds_idle(call))
            mpiox_wait_backoff(&backoff); /* ranks may outnumber cores, and the sender may be one of this machine's */
    }
    if (PMPI_Get_elements_x(&status, MPI_BYTE, &bytes) != MPI_SUCCESS) /* of any length, unlike MPI_Get_count */
        bytes = -1;
    if (bytes < 0 || bytes > x->box_bytes)
        protocol_error(x, source, bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    if (PMPI_Imrecv(buffer, (int) bytes, MPI_BYTE, &message, &request) != MPI_SUCCESS)
        mpiox_agree_give_up(x, MPIOX_E_MPI, -1, bytes, "receiving a message from another node");
    if (mpiox_agree_finish(1, &request, mpiox_rounds_idle, call) != MPIOX_OK) {
        fail(x, MPIOX_E_MPI, bytes, "receiving from another node");
        return 0;
    }
    if (bytes == (MPI_Count) sizeof failed_entry && ((const entry *) (const void *) buffer)->rank < 0) {
        fail(x, MPIOX_E_IO, -1, "collecting data on another node");
        return 0;
    }
    return bytes;
}

/* Send `length` bytes, or word that there is nothing to be used when this node could not put the message together. */
static void send_to(mpiox_call *call, int node, const char *bytes, int64_t length, bool complete) {
    mpiox_exchange *x = call->x;
    if (!complete || length > INT32_MAX) {
        bytes = (const char *) &failed_entry;
        length = sizeof failed_entry;
    }
    if (PMPI_Isend(bytes, (int) length, MPI_BYTE, node, tag_of(call->round), x->team->leader_comm,
                   &x->messages->requests[node]) != MPI_SUCCESS)
        mpiox_agree_give_up(x, MPIOX_E_MPI, -1, length, "sending a message to another node");
    x->stats.messages++;
    x->stats.message_bytes += length;
}

static void finish_sending(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    if (mpiox_agree_finish(x->team->n_nodes, x->messages->requests, mpiox_rounds_idle, call) != MPIOX_OK)
        fail(x, MPIOX_E_MPI, -1, "sending to another node");
}

static void leader_write(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    mpiox_messages *m = x->messages;
    mpiox_team *team = x->team;
    char *area;
    for (int node = 0; node < team->n_nodes; node++) {
        m->requests[node] = MPI_REQUEST_NULL;
        if (node == team->node || !meets(call, node, team->node))
            continue;
        mpiox_box *box = box_of(x, call->round, node, &area);
        const int64_t used = atomic_load(&box->used);
        send_to(call, node, area, used, used <= x->box_bytes);
    }
    for (int node = 0; node < team->n_nodes; node++)
        if (node != team->node && meets(call, team->node, node)) {
            const int64_t bytes = receive(call, node, m->incoming);
            place_message(call, m->incoming, bytes);
        }
    for (int local = 0; local < x->n_local; local++) {
        mpiox_slot *slot = slot_in_round(call, local);
        if (slot)
            mpiox_rounds_arrive(call, slot);
    }
    finish_sending(call);
    for (int node = 0; node < team->n_nodes; node++)
        atomic_store(&box_of(x, call->round, node, &area)->used, 0);
}

/* ---- read -------------------------------------------------------------------------------------------------------- */

bool mpiox_messages_hold(const mpiox_call *call) {
    return !call->write && call->x->messages && call->x->team->node_rank == 0;
}

static bool append(mpiox_messages *m, int node, int64_t *used, const entry *head, const mpiox_side *file) {
    const int64_t need = *used + (int64_t) sizeof *head + padded(head->length);
    if (need > m->room[node]) {
        const int64_t room = need + need / 2 + 4096;
        char *larger = realloc(m->outgoing[node], (size_t) room);
        if (!larger)
            return false;
        m->outgoing[node] = larger;
        m->room[node] = room;
    }
    memcpy(m->outgoing[node] + *used, head, sizeof *head);
    const mpiox_side target = {m->outgoing[node] + *used + sizeof *head, NULL, 0, 0};
    mpiox_copy(&target, file, head->length);
    *used = need;
    return true;
}

/* Append what one rank of another node wants of one loaded window. */
static bool gather_rank(mpiox_call *call, int rank, int local, mpiox_slot *slot, int64_t n, int64_t *used) {
    mpiox_exchange *x = call->x;
    mpiox_messages *m = x->messages;
    const rank_access *want = &m->ranks[rank];
    const int64_t eof = atomic_load(&slot->eof);
    if (want->length > 0 && !m->views[rank]) /* it has a view, which has not come here */
        return false;
    for (int64_t i = 0, at = 0; i < n && want->length > 0; at += x->extents[0][i++].length) {
        mpiox_extent extent = x->extents[0][i];
        int64_t from, to;
        if (extent.offset >= eof)
            break;
        if (extent.offset + extent.length > eof)
            extent.length = eof - extent.offset;
        if (!mpiox_rounds_overlap(m->views[rank], want->displacement, want->position, want->length, extent, &from, &to))
            continue;
        const entry head = {rank, x->local[local], from, to - from};
        const mpiox_side file = {mpiox_slot_buffer(x, slot) + at, m->views[rank], want->displacement - extent.offset,
                                 from};
        if (!append(m, x->team->node_of[rank], used, &head, &file))
            return false;
    }
    return true;
}

static void gather_node(mpiox_call *call, int node) {
    mpiox_exchange *x = call->x;
    mpiox_team *team = x->team;
    int64_t used = 0;
    bool good = true;
    for (int local = 0; local < x->n_local && good; local++) {
        mpiox_slot *slot = slot_in_round(call, local); /* leaves the window's extents in extents[0] */
        if (!slot)
            continue;
        const int64_t n = mpiox_rounds_extents(call, x->local[local], call->round, x->extents[0]);
        for (int i = team->node_start[node]; i < team->node_start[node + 1] && good; i++)
            good = gather_rank(call, team->node_ranks[i], local, slot, n, &used);
    }
    if (!good)
        fail(x, MPIOX_E_NOMEM, used, "gathering data for another node");
    send_to(call, node, x->messages->outgoing[node], used, good);
}

static void leader_read(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    mpiox_messages *m = x->messages;
    mpiox_team *team = x->team;
    const int parity = (int) (call->round & 1);
    const mpiox_idle idle = {mpiox_rounds_idle, call};
    for (int node = 0; node < team->n_nodes; node++) {
        m->requests[node] = MPI_REQUEST_NULL;
        if (node != team->node && meets(call, team->node, node))
            gather_node(call, node);
    }
    for (int local = 0; local < x->n_local; local++) {
        mpiox_slot *slot = slot_in_round(call, local);
        if (slot)
            mpiox_rounds_arrive(call, slot);
    }
    /* The boxes of this parity are free when all ranks have copied out of them two rounds ago. */
    mpiox_wait_reach(&x->board->packed[parity], (uint32_t) (call->round / 2) * (uint32_t) team->node_size, &idle);
    for (int node = 0; node < team->n_nodes; node++) {
        char *area;
        mpiox_box *box = box_of(x, call->round, node, &area);
        atomic_store(&box->used, 0);
        if (node != team->node && meets(call, node, team->node))
            atomic_store(&box->used, receive(call, node, area));
    }
    mpiox_word_set(&x->board->shipped[parity], (uint32_t) (call->round / 2) + 1);
    finish_sending(call);
}

/* Copy this rank's entries out of the boxes of the round. */
static void unpack(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    const mpiox_request *request = call->request;
    for (int node = 0; node < x->team->n_nodes; node++) {
        char *area;
        const int64_t used = atomic_load(&box_of(x, call->round, node, &area)->used);
        for (int64_t at = 0; at + (int64_t) sizeof(entry) <= used;) {
            entry head;
            memcpy(&head, area + at, sizeof head);
            if (head.rank == x->team->rank) {
                const mpiox_side source = {area + at + sizeof head, NULL, 0, 0};
                const mpiox_side memory = {request->buffer, request->memory, 0, head.position - request->position};
                mpiox_copy(&memory, &source, head.length);
            }
            at += (int64_t) sizeof head + padded(head.length);
        }
    }
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

void mpiox_messages_round(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    mpiox_board *board = x->board;
    const mpiox_idle idle = {mpiox_rounds_idle, call};
    const int parity = (int) (call->round & 1);
    const uint32_t turn = (uint32_t) (call->round / 2);
    const bool leader = x->team->node_rank == 0;
    const double begun = mpiox_now();
    if (leader)
        span_windows(call);
    if (call->write) {
        mpiox_wait_reach(&board->shipped[parity], turn, &idle);
        pack(call); /* after an error too: other nodes go on writing, and must not write windows with holes */
        mpiox_word_add(&board->packed[parity]);
        if (leader) {
            mpiox_wait_reach(&board->packed[parity], (turn + 1) * (uint32_t) x->team->node_size, &idle);
            leader_write(call);
            mpiox_word_set(&board->shipped[parity], turn + 1);
        }
    } else {
        if (leader)
            leader_read(call);
        mpiox_wait_reach(&board->shipped[parity], turn + 1, &idle);
        if (!mpiox_agree_failed(x))
            unpack(call);
        mpiox_word_add(&board->packed[parity]);
    }
    x->stats.exchange_s += mpiox_now() - begun;
}
