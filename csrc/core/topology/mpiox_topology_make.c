/*
 * mpiox_topology_make.c - making the topology of a group; see mpiox_topology.h.
 *
 * Problem.   If ranks outnumber cores every collective of the MPI library takes milliseconds, and the opening of a file
 *            waits for all collectives here. Communicators are scarce.
 * Algorithm. Rank 0's choice contains the place of a page for the group. A rank that can attach to it shares a node
 *            with rank 0. One reduction, which also exchanges all other facts, shows whether all can: then the group is
 *            on one node. Otherwise the ranks query the MPI library which of them share a node, and every node makes a
 *            page of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_count.h"
#include "mpiox_integer.h"
#include "mpiox_topology.h"

/* ---- communicators ----------------------------------------------------------------------------------------------- */

/* The lowest code of all ranks; comm returns its errors. */
static int agree(MPI_Comm comm, int code)
{
    int worst = code;
    return PMPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS ? worst : MPIOX_E_MPI;
}

/* A split, not a dup: a dup would run the program's attribute callbacks. Its failure must come back as a code whatever
 * error handler the program has set. */
int mpiox_topology_copy_comm(MPI_Comm comm, MPI_Comm *out)
{
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    const int known = PMPI_Comm_get_errhandler(comm, &handler);
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    const int rc = PMPI_Comm_split(comm, 0, rank, out);
    if (known == MPI_SUCCESS) {
        PMPI_Comm_set_errhandler(comm, handler);
        if (handler != MPI_ERRORS_ARE_FATAL && handler != MPI_ERRORS_RETURN)
            PMPI_Errhandler_free(&handler);
    }
    if (rc != MPI_SUCCESS) {
        *out = MPI_COMM_NULL; /* MPI leaves it undefined */
        return MPIOX_E_MPI;
    }
    PMPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN);
    return MPIOX_OK;
}

int mpiox_topology_own_comm(mpiox_topology *t, MPI_Comm comm)
{
    if (t->comm != MPI_COMM_NULL)
        return MPIOX_OK;
    MPI_Comm mine = MPI_COMM_NULL;
    const mpiox_topology_room room = mpiox_topology_make_room();
    int values[] = {room.comms > 0, room.with_comms > 0};
    if (mpiox_topology_min(t, 2, values, NULL, 0) != MPIOX_OK || !values[0])
        return MPIOX_E_MPI;
    if (!values[1]) {
        t->temporary = true;
        t->one_opener = false;
    }
    const int code = mpiox_topology_lowest(t, mpiox_topology_copy_comm(comm, &mine));
    if (code == MPIOX_OK)
        t->comm = mine;
    else if (mine != MPI_COMM_NULL)
        PMPI_Comm_free(&mine);
    return code;
}

static int split(MPI_Comm comm, int color, int key, MPI_Comm *out)
{
    if (PMPI_Comm_split(comm, color, key, out) == MPI_SUCCESS)
        return MPIOX_OK;
    *out = MPI_COMM_NULL;
    return MPIOX_E_MPI;
}

/* The communicator of this rank's node: the real one, or the pretended part of it. */
static int split_node(mpiox_topology *t)
{
    MPI_Comm real = MPI_COMM_NULL;
    int within = 0;
    if (PMPI_Comm_split_type(t->comm, MPI_COMM_TYPE_SHARED, t->rank, MPI_INFO_NULL, &real) != MPI_SUCCESS)
        return MPIOX_E_MPI;
    if (t->ranks_per_node <= 0) {
        t->node_comm = real;
        return MPIOX_OK;
    }
    PMPI_Comm_rank(real, &within);
    const int code = split(real, within / t->ranks_per_node, within, &t->node_comm);
    PMPI_Comm_free(&real);
    return code;
}

static int split_nodes(mpiox_topology *t)
{
    const int code = split_node(t);
    if (code != MPIOX_OK)
        return code;
    PMPI_Comm_rank(t->node_comm, &t->node_rank);
    PMPI_Comm_size(t->node_comm, &t->node_size);
    if (t->node_size == t->size) /* one node: on all ranks or on none */
        return MPIOX_OK;
    return split(t->comm, t->node_rank == 0 ? 0 : MPI_UNDEFINED, t->rank, &t->leader_comm);
}

/* ---- the maps of ranks and nodes --------------------------------------------------------------------------------- */

static bool allocate(mpiox_topology *t)
{
    const size_t size = (size_t)t->size;
    t->node_of = calloc(size, sizeof(int));
    t->local_of = calloc(size, sizeof(int));
    t->node_ranks = calloc(size, sizeof(int));
    t->node_start = calloc(size + 2, sizeof(int));
    return t->node_of && t->local_of && t->node_ranks && t->node_start;
}

static void map_one_node(mpiox_topology *t)
{
    t->n_nodes = 1;
    t->node_rank = t->rank;
    t->node_start[1] = t->node_size = t->size;
    for (int r = 0; r < t->size; r++)
        t->local_of[r] = t->node_ranks[r] = r;
}

/* From everyone's (leader's rank, rank in node). */
static void map_nodes(mpiox_topology *t, const int *all)
{
    for (int r = 0; r < t->size; r++) { /* leaders have the lowest rank of their node, so they come first */
        if (all[2 * r] == r)
            t->node_of[r] = t->n_nodes++;
        else
            t->node_of[r] = t->node_of[all[2 * r]];
        t->local_of[r] = all[2 * r + 1];
        t->node_start[t->node_of[r] + 1]++;
    }
    for (int n = 0; n < t->n_nodes; n++)
        t->node_start[n + 1] += t->node_start[n];
    for (int r = 0; r < t->size; r++)
        t->node_ranks[t->node_start[t->node_of[r]] + t->local_of[r]] = r;
    t->node = t->node_of[t->rank];
}

static int map_ranks(mpiox_topology *t, int *all)
{
    int mine[2] = {t->rank, t->node_rank};
    if (PMPI_Bcast(&mine[0], 1, MPI_INT, 0, t->node_comm) != MPI_SUCCESS) /* the leader's rank names the node */
        return MPIOX_E_MPI;
    if (PMPI_Allgather(mine, 2, MPI_INT, all, 2, MPI_INT, t->comm) != MPI_SUCCESS)
        return MPIOX_E_MPI;
    map_nodes(t, all);
    return MPIOX_OK;
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

/* Each rank's values in the one reduction that all groups need; the lowest counts. */
enum { CODE, ATTACHED, ROOM, ROOM_WITH_COMMS, COMMS, THREADS, NO_THREADS, NICS, VALUES };

/* NULL: no memory. */
static mpiox_topology *new_topology(MPI_Comm comm, const mpiox_topology_choice *choice)
{
    mpiox_topology *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->group = MPI_GROUP_NULL;
    t->comm = t->node_comm = t->leader_comm = MPI_COMM_NULL;
    t->segment.fd = t->page_segment.fd = -1;
    t->id = choice->id;
    t->in_use = true;
    t->limit = (mpiox_wait_limit){.is_over = mpiox_topology_is_over, .awaited = t};
    t->ranks_per_node = choice->ranks_per_node;
    PMPI_Comm_rank(comm, &t->rank);
    PMPI_Comm_size(comm, &t->size);
    if (PMPI_Comm_group(comm, &t->group) != MPI_SUCCESS)
        t->group = MPI_GROUP_NULL;
    if (t->group != MPI_GROUP_NULL && allocate(t))
        return t;
    mpiox_topology_free(t);
    return NULL;
}

/* The page of the whole group, if it can be had here. */
static bool attach_page(mpiox_topology *t, const mpiox_topology_choice *choice)
{
    mpiox_error error;
    const bool attached = t->rank == 0 ? mpiox_topology_take_page(choice, &t->page_segment)
                                       : choice->page.bytes > 0 &&
                                             mpiox_segment_attach(&choice->page, &t->page_segment, &error) == MPIOX_OK;
    if (attached)
        mpiox_topology_introduce(t->page_segment.base, t->rank);
    return attached;
}

/* A single rank shares with no other. */
static int make_alone(mpiox_topology *t)
{
    enum { LINE = 64 }; /* as the page is aligned */
    const size_t bytes = (size_t)mpiox_round_up(mpiox_topology_page_bytes(1), LINE);
    t->comm = MPI_COMM_SELF;
    map_one_node(t);
    t->page = aligned_alloc(LINE, bytes);
    if (!t->page)
        return MPIOX_E_NOMEM;
    memset(t->page, 0, bytes);
    return MPIOX_OK;
}

static int make_one_node(mpiox_topology *t)
{
    map_one_node(t);
    t->page = t->page_segment.base;
    return MPIOX_OK;
}

/* A page for every node; where it turns out that there is one node, nothing but the page is kept. */
static int make_pages(mpiox_topology *t)
{
    mpiox_error error = {.code = MPIOX_OK};
    const int64_t bytes = mpiox_topology_page_bytes(t->node_size);
    int code = mpiox_topology_share(t, bytes, &t->page_segment, &error);
    if (code == MPIOX_OK)
        mpiox_topology_introduce(t->page_segment.base, t->node_rank);
    code = agree(t->comm, code);
    if (code != MPIOX_OK)
        return code;
    t->page = t->page_segment.base;
    if (t->n_nodes == 1) {
        PMPI_Comm_free(&t->node_comm);
        PMPI_Comm_free(&t->comm);
    }
    return MPIOX_OK;
}

static int make_several_nodes(MPI_Comm comm, mpiox_topology *t)
{
    int *all = malloc(sizeof *all * 2 * (size_t)t->size);
    int code = agree(comm, all ? MPIOX_OK : MPIOX_E_NOMEM);
    if (code == MPIOX_OK)
        code = agree(comm, mpiox_topology_copy_comm(comm, &t->comm));
    if (code == MPIOX_OK)
        code = agree(comm, split_nodes(t));
    if (code == MPIOX_OK)
        code = agree(comm, map_ranks(t, all));
    free(all);
    return code == MPIOX_OK ? make_pages(t) : code;
}

/* Every rank agrees that the others can, and learns what they are. */
static int meet(MPI_Comm comm, mpiox_topology *t, const mpiox_topology_choice *choice, int least[VALUES])
{
    int level = MPI_THREAD_MULTIPLE;
    const mpiox_topology_room room = mpiox_topology_make_room();
    PMPI_Query_thread(&level);
    if (level != MPI_THREAD_MULTIPLE)
        mpiox_count_one_thread();
    const int mine[VALUES] = {[CODE] = t ? MPIOX_OK : MPIOX_E_NOMEM,
                              [ATTACHED] = t && t->size > 1 && attach_page(t, choice),
                              [ROOM] = room.plain,
                              [ROOM_WITH_COMMS] = room.with_comms,
                              [COMMS] = room.comms,
                              [THREADS] = level == MPI_THREAD_MULTIPLE,
                              [NO_THREADS] = level != MPI_THREAD_MULTIPLE,
                              [NICS] = mpiox_topology_nics()};
    memcpy(least, mine, sizeof mine);
    if (t && t->size == 1)
        return MPIOX_OK;
    if (PMPI_Allreduce(mine, least, VALUES, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS)
        return MPIOX_E_MPI;
    if (t)
        mpiox_segment_seal(&t->page_segment, &choice->page);
    if (t && !least[ATTACHED])
        mpiox_segment_free(&t->page_segment);
    return least[CODE];
}

static int make(MPI_Comm comm, const mpiox_topology_choice *choice, mpiox_topology **out)
{
    char name[MPI_MAX_PROCESSOR_NAME + 1] = "";
    int length = 0, least[VALUES];
    mpiox_topology *t = new_topology(comm, choice);
    int code = meet(comm, t, choice, least);
    if (!t) /* then code is an error, on every rank */
        return code != MPIOX_OK ? code : MPIOX_E_NOMEM;
    if (code == MPIOX_OK && t->size == 1)
        code = make_alone(t);
    else if (code == MPIOX_OK && least[ATTACHED])
        code = make_one_node(t);
    else if (code == MPIOX_OK)
        code = least[COMMS] > 0 ? make_several_nodes(comm, t) : MPIOX_E_MPI;
    if (code != MPIOX_OK) {
        mpiox_topology_free(t);
        return code;
    }
    t->temporary = least[t->n_nodes == 1 ? ROOM : ROOM_WITH_COMMS] <= 0;
    t->threads = least[THREADS] != 0;
    t->nics = t->n_nodes > 1 ? least[NICS] : 0;
    t->one_opener = least[NO_THREADS] != 0 && !t->temporary;
    if (PMPI_Get_processor_name(name, &length) == MPI_SUCCESS)
        t->node_name = strdup(name); /* NULL matches no name in cb_config_list but '*' */
    mpiox_topology_keep(t);
    *out = t;
    return MPIOX_OK;
}

int mpiox_topology_join(MPI_Comm comm, const mpiox_topology_choice *choice, mpiox_topology **out)
{
    *out = mpiox_topology_find(comm, choice);
    return *out ? MPIOX_OK : make(comm, choice, out);
}
