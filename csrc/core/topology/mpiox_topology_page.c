/*
 * mpiox_topology_page.c - agreements of a topology's ranks: a page of shared memory per node.
 *
 * Problem.   Opening a file and every collective need agreements. If ranks outnumber cores an MPI library that spins
 *            takes milliseconds for each, because the late rank does not get the core.
 * Algorithm. A generation-counting barrier in shared memory; one rank works on the page while the others sleep
 *            (mpiox_wait.h). With one node the last to arrive does so (no wake-up on the way); with several the leader,
 *            since it communicates with the other leaders. Agreements are barriers whose serial part reduces the values
 *            that the ranks have put into the page.
 * Guarantee. A rank reads a result before it arrives at the next barrier, and results change only when all have
 *            arrived: one set of words is enough.
 *            Only rank 0 gives a page up, by its last message there, and only after the others have read all earlier
 *            ones. A rank that waits there for rank 0's next choice reads this message, and waits elsewhere, as rank 0
 *            does.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "mpiox_parts.h"
#include "mpiox_peer.h"
#include "mpiox_print.h"
#include "mpiox_topology.h"
#include "mpiox_wait.h"

enum { LINE = 64, FEW_NODES = 16, TAG_VALUES = 0, TAG_ERROR = 1, TAG_LOWEST = 2 };

typedef struct rank_values { /* of one rank; its own cache line */
    _Alignas(LINE) int values[MPIOX_TOPOLOGY_VALUES];
    int64_t sums[MPIOX_TOPOLOGY_SUMS];   /* its values for mpiox_topology_sums()... */
    int64_t before[MPIOX_TOPOLOGY_SUMS]; /* ...and what that of the lower ranks comes to */
    mpiox_peer process;
    _Atomic uint32_t arrived; /* the last barrier that it has arrived at */
} rank_values;

struct mpiox_topology_page {
    _Alignas(LINE) mpiox_futex published;             /* times that rank 0 has put something into `text` */
    _Alignas(LINE) mpiox_futex read;                  /* times that somebody has read it */
    _Alignas(LINE) _Atomic uint32_t given_up;         /* rank 0 will not use it any more */
    _Atomic uint32_t asked;                           /* somebody would rather not keep it */
    atomic_flag reported;                             /* a rank has printed that another one has died */
    _Alignas(LINE) _Atomic uint32_t arrived;          /* ranks at the barrier */
    _Alignas(LINE) mpiox_futex generation;            /* barriers completed */
    _Alignas(LINE) mpiox_futex gathered;              /* barriers whose ranks have all arrived (leaders wait on it) */
    _Alignas(LINE) mpiox_futex steps;                 /* that all ranks together have ended */
    _Alignas(LINE) _Atomic int64_t shared_pointer[2]; /* shared file pointer, etypes (file/mpiox_shared_pointer.c) */
    _Alignas(LINE) int lowest[MPIOX_TOPOLOGY_VALUES]; /* of the last mpiox_topology_min() */
    int lowest_here;                                  /* the first of them, of this node alone */
    int code;                                         /* of the last mpiox_topology_min() */
    int64_t totals[MPIOX_TOPOLOGY_SUMS];              /* of the last mpiox_topology_sums() */
    char root_note[MPIOX_TOPOLOGY_NOTE_BYTES];        /* rank 0's (of mpiox_topology_spread(): the root's), until the
                                                         barrier */
    char note[MPIOX_TOPOLOGY_NOTE_BYTES];             /* the same for all to read, after it */
    _Alignas(LINE) char text[MPIOX_TOPOLOGY_TEXT_BYTES];
    rank_values ranks[]; /* [node_size] */
};

int64_t mpiox_topology_page_bytes(int node_size)
{
    return (int64_t)sizeof(mpiox_topology_page) + (int64_t)node_size * (int64_t)sizeof(rank_values);
}

_Atomic int64_t *mpiox_topology_pointer(mpiox_topology *t, uint32_t view)
{
    return &t->page->shared_pointer[view & 1];
}

/* ---- dead ranks -------------------------------------------------------------------------------------------------- */

void mpiox_topology_introduce(mpiox_topology_page *page, int node_rank)
{
    mpiox_peer_introduce(&page->ranks[node_rank].process);
}

/* A rank that has ended well has done its part before, and the caller detects that between the two calls. A process
 * that does not recognise itself was restored from a checkpoint: then the numbers of the others mean nothing, too. */
bool mpiox_topology_is_over(void *topology, const char *what, bool again)
{
    const mpiox_topology *t = topology;
    const mpiox_peer *process = NULL;
    int r = 0;
    if (mpiox_peer_has_died(&t->page->ranks[t->node_rank].process))
        return false;
    while (r < t->node_size && !mpiox_peer_has_died(process = &t->page->ranks[r].process))
        r++;
    if (r == t->node_size || !again)
        return r < t->node_size;
    if (!atomic_flag_test_and_set(&t->page->reported))
        mpiox_print("mpiio_ext: rank %d on %s waits for %s: rank %d (process %" PRId64 ") has died; the job ends\n",
                    t->rank, t->node_name ? t->node_name : "its node", what ? what : "other ranks",
                    t->node_ranks[t->node_start[t->node] + r], atomic_load(&process->pid));
    mpiox_topology_abort(t);
}

/* ---- barrier ----------------------------------------------------------------------------------------------------- */

/* Other ranks bring the word there. */
static void reach(mpiox_futex *word, uint32_t target, mpiox_topology *t)
{
    const mpiox_idle idle = {mpiox_topology_progress, t};
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_WAITING);
    mpiox_wait_reach(word, target, &idle);
    mpiox_parts_on(before);
}

static void barrier(mpiox_topology *t, void (*serial)(void *), void *context)
{
    mpiox_topology_page *page = t->page;
    const bool by_leader = t->n_nodes > 1;
    const uint32_t next = mpiox_futex_get(&page->generation) + 1;
    atomic_store_explicit(&page->ranks[t->node_rank].arrived, next, memory_order_relaxed);
    if (atomic_fetch_add(&page->arrived, 1) + 1 == (uint32_t)t->node_size) {
        atomic_store(&page->arrived, 0);
        if (!by_leader) {
            if (serial)
                serial(context);
            mpiox_futex_set(&page->generation, next);
            return;
        }
        mpiox_futex_set(&page->gathered, next);
    }
    if (by_leader && t->node_rank == 0) {
        mpiox_wait_for("the other ranks of this node to arrive", -1);
        reach(&page->gathered, next, t);
        if (serial)
            serial(context);
        mpiox_futex_set(&page->generation, next);
    } else {
        mpiox_wait_for(by_leader ? "this node's lowest rank, which agrees with the other nodes" : "all ranks to arrive",
                       -1);
        reach(&page->generation, next, t);
    }
}

void mpiox_topology_barrier(mpiox_topology *t, void (*serial)(void *), void *context)
{
    const mpiox_wait_limit *before = mpiox_wait_set_limit(&t->limit);
    barrier(t, serial, context);
    mpiox_wait_for(NULL, -1);
    mpiox_wait_set_limit(before);
}

/* ---- the ranks that a barrier waits for -------------------------------------------------------------------------- */

/* Ascending ranks: those that follow each other as "3-5". */
typedef struct rank_list {
    mpiox_text *out;
    int first, last; /* of a run that is not put yet; last < 0: none */
    bool any;
} rank_list;

static bool put_run(rank_list *list)
{
    if (list->last >= 0)
        mpiox_text_put(list->out, list->first < list->last ? "%s%d-%d" : "%s%d", list->any ? ", " : "", list->first,
                       list->last);
    list->any |= list->last >= 0;
    list->last = -1;
    return list->any;
}

static void add_rank(rank_list *list, int rank)
{
    if (list->last < 0 || rank != list->last + 1) {
        put_run(list);
        list->first = rank;
    }
    list->last = rank;
}

static bool has_arrived(const mpiox_topology *t, int local)
{
    const uint32_t own = atomic_load(&t->page->ranks[t->node_rank].arrived);
    return (int32_t)(atomic_load(&t->page->ranks[local].arrived) - own) >= 0;
}

/* A node answers when all of its ranks have arrived. */
static bool has_answered(const mpiox_topology *t, int node)
{
    int flag = 0;
    const MPI_Request request = t->answers[(node - t->node - 1 + t->n_nodes) % t->n_nodes];
    return request == MPI_REQUEST_NULL ||
           (PMPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag);
}

bool mpiox_topology_put_awaited(const mpiox_topology *t, mpiox_text *out)
{
    const int *ranks = t->node_ranks + t->node_start[t->node];
    rank_list list = {.out = out, .last = -1};
    int missing = 0;
    for (int r = 0; r < t->node_size; r++) {
        if (r < t->node_rank && has_arrived(t, r))
            return false;
        missing += !has_arrived(t, r);
    }
    if (missing == 0 && t->answers == NULL) {
        mpiox_text_put(out, "ranks of other nodes");
        return t->n_nodes > 1;
    }
    mpiox_text_put(out, missing == 0 ? "some of ranks " : missing == 1 ? "rank " : "ranks ");
    for (int r = 0; missing > 0 && r < t->node_size; r++)
        if (!has_arrived(t, r))
            add_rank(&list, ranks[r]);
    for (int r = 0; missing == 0 && r < t->size; r++)
        if (t->node_of[r] != t->node && !has_answered(t, t->node_of[r]))
            add_rank(&list, r);
    return put_run(&list);
}

/* ---- steps that overlap ------------------------------------------------------------------------------------------ */

void mpiox_topology_end_step(mpiox_topology *t)
{
    atomic_fetch_add(&t->steps, 1);
    mpiox_futex_add(&t->page->steps);
}

/* No rank ends a step before all have ended the one before, so that the sum shows how many each has ended. */
void mpiox_topology_wait_steps(mpiox_topology *t)
{
    const uint32_t all = atomic_load(&t->steps) * (uint32_t)t->size;
    if ((int32_t)(mpiox_futex_get(&t->page->steps) - all) >= 0)
        return;
    const mpiox_wait_limit *before = mpiox_wait_set_limit(&t->limit);
    mpiox_wait_for("the other ranks' parts of the last collective", -1);
    reach(&t->page->steps, all, t);
    mpiox_wait_for(NULL, -1);
    mpiox_wait_set_limit(before);
}

/* ---- between nodes ----------------------------------------------------------------------------------------------- */

/* The first n_nodes - 1 requests receive from the next node, the one after it, and so on. */
static int wait_for_nodes(mpiox_topology *t, int n, MPI_Request *requests)
{
    t->answers = requests;
    const int code = mpiox_topology_wait(n, requests, NULL, NULL);
    t->answers = NULL;
    return code;
}

/* Few nodes: one message from each to each, so that no leader waits for a message that another has to receive first:
 * that one may be asleep, or wait for a core. */
static bool gather_few(mpiox_topology *t, const void *mine, size_t bytes, void *all)
{
    MPI_Request requests[2 * FEW_NODES];
    int n = 0, code = MPI_SUCCESS;
    memcpy((char *)all + (size_t)t->node * bytes, mine, bytes);
    for (int i = 1; i < t->n_nodes; i++, n++) {
        const int from = (t->node + i) % t->n_nodes;
        if (PMPI_Irecv((char *)all + (size_t)from * bytes, (int)bytes, MPI_BYTE, from, TAG_VALUES, t->leader_comm,
                       &requests[n]) != MPI_SUCCESS) {
            requests[n] = MPI_REQUEST_NULL;
            code = MPI_ERR_OTHER;
        }
    }
    for (int i = 1; i < t->n_nodes; i++, n++)
        if (PMPI_Isend(mine, (int)bytes, MPI_BYTE, (t->node + i) % t->n_nodes, TAG_VALUES, t->leader_comm,
                       &requests[n]) != MPI_SUCCESS) {
            requests[n] = MPI_REQUEST_NULL;
            code = MPI_ERR_OTHER;
        }
    return wait_for_nodes(t, n, requests) == MPIOX_OK && code == MPI_SUCCESS;
}

bool mpiox_topology_gather_nodes(mpiox_topology *t, const void *mine, size_t bytes, void *all)
{
    MPI_Request request;
    if (t->leader_comm == MPI_COMM_NULL) {
        memcpy(all, mine, bytes);
        return true;
    }
    mpiox_wait_for("an answer of the other nodes", -1);
    if (t->n_nodes <= FEW_NODES)
        return gather_few(t, mine, bytes, all);
    const int code = PMPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, t->leader_comm, &request);
    return mpiox_topology_finish(code, &request) == MPIOX_OK;
}

static bool lowest_of_few(mpiox_topology *t, int n, int64_t *values)
{
    int64_t all[FEW_NODES * MPIOX_TOPOLOGY_NODE_VALUES];
    if (!mpiox_topology_gather_nodes(t, values, sizeof *values * (size_t)n, all))
        return false;
    for (int i = 0; i < t->n_nodes * n; i++)
        if (all[i] < values[i % n])
            values[i % n] = all[i];
    return true;
}

bool mpiox_topology_lowest_of_nodes(mpiox_topology *t, int n, int64_t *values)
{
    MPI_Request request;
    t->agreements++;
    if (t->n_nodes <= FEW_NODES)
        return lowest_of_few(t, n, values);
    mpiox_wait_for("an answer of the other nodes", -1);
    const int code = PMPI_Iallreduce(MPI_IN_PLACE, values, n, MPI_INT64_T, MPI_MIN, t->leader_comm, &request);
    return mpiox_topology_finish(code, &request) == MPIOX_OK;
}

/* Messages of their own, not an operation of all leaders: a leader for which MPI failed in the agreement does not know
 * of it, and no leader waits for that one. A message to it stays unread until the next one. */
bool mpiox_topology_spread_error(mpiox_topology *t, int node, mpiox_error *error)
{
    struct {
        uint64_t agreement;
        mpiox_error error;
    } sent = {t->agreements, *error};
    MPI_Request request;
    if (t->leader_comm == MPI_COMM_NULL)
        return true;
    for (int i = 1; t->node == node && i < t->n_nodes; i++)
        mpiox_topology_finish(
            PMPI_Isend(&sent, (int)sizeof sent, MPI_BYTE, (node + i) % t->n_nodes, TAG_ERROR, t->leader_comm, &request),
            &request);
    if (t->node == node)
        return true;
    mpiox_wait_for("the error of another node", -1);
    do {
        const int code = PMPI_Irecv(&sent, (int)sizeof sent, MPI_BYTE, node, TAG_ERROR, t->leader_comm, &request);
        if (mpiox_topology_finish(code, &request) != MPIOX_OK)
            return false;
    } while (sent.agreement != t->agreements);
    *error = sent.error;
    return true;
}

/* ---- agreements -------------------------------------------------------------------------------------------------- */

typedef struct lowest {
    mpiox_topology *topology;
    int64_t note_bytes; /* 0: none */
} lowest;

/* A leader's message to each other one; the note is node 0's. */
typedef struct lowest_values {
    uint64_t agreement;
    int values[MPIOX_TOPOLOGY_VALUES];
    char note[MPIOX_TOPOLOGY_NOTE_BYTES];
} lowest_values;

static int receive_values(mpiox_topology *t, int node, lowest_values *out, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return PMPI_Irecv(out, (int)sizeof *out, MPI_BYTE, node, TAG_LOWEST, t->leader_comm, request);
}

/* As gather_few(). What lies there of an agreement in which MPI failed is passed over. */
static int spread_to_few(mpiox_topology *t, int64_t note_bytes)
{
    mpiox_topology_page *page = t->page;
    MPI_Request requests[2 * FEW_NODES];
    lowest_values all[FEW_NODES], *mine = &all[t->node];
    const size_t bytes = offsetof(lowest_values, note) + (t->node == 0 ? (size_t)note_bytes : 0);
    int n = 0, code = MPI_SUCCESS;
    mine->agreement = t->agreements;
    memcpy(mine->values, page->lowest, sizeof mine->values);
    memcpy(mine->note, page->note, (size_t)note_bytes);
    for (int i = 1; i < t->n_nodes && code == MPI_SUCCESS; i++, n++) {
        const int from = (t->node + i) % t->n_nodes;
        code = receive_values(t, from, &all[from], &requests[n]);
    }
    for (int i = 1; i < t->n_nodes; i++, n++) {
        requests[n] = MPI_REQUEST_NULL;
        if (PMPI_Isend(mine, (int)bytes, MPI_BYTE, (t->node + i) % t->n_nodes, TAG_LOWEST, t->leader_comm,
                       &requests[n]) != MPI_SUCCESS)
            code = MPI_ERR_OTHER;
    }
    bool good = wait_for_nodes(t, n, requests) == MPIOX_OK && code == MPI_SUCCESS;
    for (int i = 0; good && i < t->n_nodes; i++) {
        while (good && all[i].agreement != t->agreements)
            good = mpiox_topology_finish(receive_values(t, i, &all[i], requests), requests) == MPIOX_OK;
        for (int v = 0; good && v < MPIOX_TOPOLOGY_VALUES; v++)
            page->lowest[v] = all[i].values[v] < page->lowest[v] ? all[i].values[v] : page->lowest[v];
    }
    memcpy(page->note, all[0].note, good ? (size_t)note_bytes : 0);
    return good ? MPIOX_OK : MPIOX_E_MPI;
}

/* Leaders: the lowest values of all nodes, and rank 0's note, which is on node 0. */
static int spread_lowest(mpiox_topology *t, int64_t note_bytes)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    t->agreements++;
    mpiox_wait_for("an answer of the other nodes", -1);
    if (t->n_nodes <= FEW_NODES)
        return spread_to_few(t, note_bytes);
    int code = PMPI_Iallreduce(MPI_IN_PLACE, t->page->lowest, MPIOX_TOPOLOGY_VALUES, MPI_INT, MPI_MIN, t->leader_comm,
                               &requests[0]);
    if (code == MPI_SUCCESS && note_bytes > 0)
        code = PMPI_Ibcast(t->page->note, (int)note_bytes, MPI_BYTE, 0, t->leader_comm, &requests[1]);
    const int waited = mpiox_topology_wait(2, requests, NULL, NULL);
    return code == MPI_SUCCESS && waited == MPIOX_OK ? MPIOX_OK : MPIOX_E_MPI;
}

static void reduce_values(void *context)
{
    const lowest *mine = context;
    mpiox_topology *t = mine->topology;
    mpiox_topology_page *page = t->page;
    for (int v = 0; v < MPIOX_TOPOLOGY_VALUES; v++) {
        page->lowest[v] = INT_MAX;
        for (int r = 0; r < t->node_size; r++)
            if (page->ranks[r].values[v] < page->lowest[v])
                page->lowest[v] = page->ranks[r].values[v];
    }
    page->lowest_here = page->lowest[0];
    memcpy(page->note, page->root_note, (size_t)mine->note_bytes);
    page->code = t->leader_comm != MPI_COMM_NULL ? spread_lowest(t, mine->note_bytes) : MPIOX_OK;
}

int mpiox_topology_min(mpiox_topology *t, int n, int *values, void *note, int64_t bytes)
{
    if (t->size == 1)
        return MPIOX_OK;
    mpiox_topology_page *page = t->page;
    memset(page->ranks[t->node_rank].values, 0, sizeof page->ranks[0].values);
    memcpy(page->ranks[t->node_rank].values, values, sizeof *values * (size_t)n);
    if (t->rank == 0 && note)
        memcpy(page->root_note, note, (size_t)bytes);
    lowest mine = {t, note ? bytes : 0};
    mpiox_topology_barrier(t, reduce_values, &mine);
    const int code = page->code;
    if (code != MPIOX_OK) /* the page may contain anything */
        return code;
    memcpy(values, page->lowest, sizeof *values * (size_t)n);
    if (note)
        memcpy(note, page->note, (size_t)bytes);
    return MPIOX_OK;
}

static void copy_note(void *context)
{
    mpiox_topology_page *page = ((mpiox_topology *)context)->page;
    memcpy(page->note, page->root_note, sizeof page->note);
}

int mpiox_topology_spread(mpiox_topology *t, int root, void *data, int64_t bytes)
{
    if (t->size == 1)
        return MPIOX_OK;
    if (t->n_nodes > 1)
        return PMPI_Bcast(data, (int)bytes, MPI_BYTE, root, t->comm) == MPI_SUCCESS ? MPIOX_OK : MPIOX_E_MPI;
    if (t->rank == root)
        memcpy(t->page->root_note, data, (size_t)bytes);
    mpiox_topology_barrier(t, copy_note, t);
    memcpy(data, t->page->note, (size_t)bytes);
    return MPIOX_OK;
}

static void add_up(void *context)
{
    const mpiox_topology *t = context;
    mpiox_topology_page *page = t->page;
    for (int i = 0; i < MPIOX_TOPOLOGY_SUMS; i++) {
        int64_t sum = 0;
        for (int r = 0; r < t->size; r++) {
            page->ranks[r].before[i] = sum;
            sum += page->ranks[r].sums[i];
        }
        page->totals[i] = sum;
    }
}

int mpiox_topology_sums(mpiox_topology *t, const int64_t mine[MPIOX_TOPOLOGY_SUMS], int64_t before[MPIOX_TOPOLOGY_SUMS],
                        int64_t total[MPIOX_TOPOLOGY_SUMS])
{
    const size_t bytes = sizeof *mine * MPIOX_TOPOLOGY_SUMS;
    memset(before, 0, bytes);
    memcpy(total, mine, bytes);
    if (t->size == 1)
        return MPIOX_OK;
    if (t->n_nodes > 1) {
        int code = PMPI_Exscan(mine, before, MPIOX_TOPOLOGY_SUMS, MPI_INT64_T, MPI_SUM, t->comm);
        if (t->rank == 0)
            memset(before, 0, bytes); /* MPI_Exscan leaves it undefined */
        if (code == MPI_SUCCESS)
            code = PMPI_Allreduce(mine, total, MPIOX_TOPOLOGY_SUMS, MPI_INT64_T, MPI_SUM, t->comm);
        return code == MPI_SUCCESS ? MPIOX_OK : MPIOX_E_MPI;
    }
    memcpy(t->page->ranks[t->rank].sums, mine, bytes);
    mpiox_topology_barrier(t, add_up, t);
    memcpy(before, t->page->ranks[t->rank].before, bytes);
    memcpy(total, t->page->totals, bytes);
    return MPIOX_OK;
}

bool mpiox_topology_all(mpiox_topology *t, bool mine)
{
    int value = mine;
    return mpiox_topology_min(t, 1, &value, NULL, 0) == MPIOX_OK && value != 0;
}

/* All are the same where the lowest is the highest, which is ~ of the lowest ~. */
bool mpiox_topology_same(mpiox_topology *t, int64_t value, int word)
{
    enum { PARTS = 3 };
    const int parts[PARTS] = {(int)(value >> 32), (int)(uint32_t)value, word};
    int lowest[2 * PARTS];
    _Static_assert(2 * (int)PARTS <= (int)MPIOX_TOPOLOGY_VALUES, "at once");
    for (int i = 0; i < PARTS; i++) {
        lowest[i] = parts[i];
        lowest[PARTS + i] = ~parts[i];
    }
    bool same = mpiox_topology_min(t, 2 * PARTS, lowest, NULL, 0) == MPIOX_OK;
    for (int i = 0; i < PARTS; i++)
        same &= lowest[i] == ~lowest[PARTS + i];
    return same;
}

int mpiox_topology_lowest(mpiox_topology *t, int code)
{
    if (mpiox_topology_min(t, 1, &code, NULL, 0) == MPIOX_OK)
        return code;
    return code < MPIOX_E_MPI ? code : MPIOX_E_MPI;
}

int mpiox_topology_agree_error(mpiox_topology *t, mpiox_error *error)
{
    return mpiox_topology_agree(t, error, 0, NULL);
}

typedef struct teller {
    mpiox_topology *topology;
    int rank; /* whose error it is */
} teller;

static void publish_error(void *context)
{
    const teller *own = context;
    mpiox_topology *t = own->topology;
    mpiox_error error;
    memcpy(&error, t->page->root_note, sizeof error);
    t->page->code = mpiox_topology_spread_error(t, t->node_of[own->rank], &error) ? MPIOX_OK : MPIOX_E_MPI;
    memcpy(t->page->note, &error, sizeof error);
}

/* The error of a rank reaches every rank that knows of it. 0 or MPIOX_E_MPI. */
static int read_error(mpiox_topology *t, int rank, mpiox_error *error)
{
    teller own = {t, rank};
    if (t->rank == rank)
        memcpy(t->page->root_note, error, sizeof *error);
    mpiox_topology_barrier(t, publish_error, &own);
    if (t->page->code == MPIOX_OK)
        memcpy(error, t->page->note, sizeof *error);
    return t->page->code;
}

int mpiox_topology_agree(mpiox_topology *t, mpiox_error *error, int n, int *values)
{
    _Static_assert(sizeof *error <= MPIOX_TOPOLOGY_NOTE_BYTES, "an error is a note");
    int lowest[MPIOX_TOPOLOGY_VALUES];
    error->rank = t->rank;
    const int own = error->code;
    lowest[0] = own != MPIOX_OK ? t->rank : t->size;
    for (int i = 0; i < n; i++)
        lowest[1 + i] = values[i];
    int code = mpiox_topology_min(t, 1 + n, lowest, NULL, 0);
    /* Without an answer of the other nodes: they may wait for an error of this one all the same. */
    const int first = code == MPIOX_OK ? lowest[0] : t->page->lowest_here;
    if (t->size > 1 && first < t->size)
        code = read_error(t, first, error);
    if (code != MPIOX_OK)
        return mpiox_error_set(error, own != MPIOX_OK ? own : MPIOX_E_MPI, 0, -1, -1, "agreeing on an error");
    for (int i = 0; i < n; i++)
        values[i] = lowest[1 + i];
    return error->code;
}

/* ---- before a topology is chosen --------------------------------------------------------------------------------- */

bool mpiox_topology_publish(mpiox_topology *t, void *data, int64_t bytes)
{
    mpiox_topology_page *page = t->page;
    const uint32_t others = (uint32_t)t->size - 1;
    const mpiox_wait_limit *before = mpiox_wait_set_limit(&t->limit);
    if (t->rank == 0)
        reach(&page->read, t->published * others, t);
    else
        reach(&page->published, t->published + 1, t);
    mpiox_wait_set_limit(before);
    t->published++;
    if (t->rank == 0) {
        memcpy(page->text, data, (size_t)bytes);
        mpiox_futex_set(&page->published, t->published);
        return true;
    }
    if (mpiox_topology_page_given_up(t))
        return false;
    memcpy(data, page->text, (size_t)bytes);
    mpiox_futex_add(&page->read);
    return true;
}

/* ---- giving it up ------------------------------------------------------------------------------------------------ */

/* The last message: a rank that waits here for rank 0's next choice must not wait for ever. */
bool mpiox_topology_page_give_up(mpiox_topology *t)
{
    mpiox_topology_page *page = t->page;
    if (mpiox_futex_get(&page->read) != t->published * ((uint32_t)t->size - 1))
        return false;
    atomic_store(&page->given_up, 1);
    mpiox_futex_set(&page->published, ++t->published);
    return true;
}

bool mpiox_topology_page_given_up(const mpiox_topology *t)
{
    return atomic_load(&t->page->given_up) != 0;
}

void mpiox_topology_page_ask(mpiox_topology *t, bool give_up)
{
    atomic_store(&t->page->asked, give_up);
}

bool mpiox_topology_page_asked(const mpiox_topology *t)
{
    return atomic_load(&t->page->asked) != 0;
}
