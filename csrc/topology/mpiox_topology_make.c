/* mpiox_topology_make.c - making and reusing topologies, and their shared memory; see mpiox_topology.h. */
#include "mpiox_topology.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Topologies that a process keeps for the next file of the same group; a program that makes a group for each file would
 * otherwise run out of communicators and memory. */
enum { KEPT = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mpiox_topology *topologies; /* every topology of this process */
static uint32_t made;              /* topologies made by this process, for ids */
static bool ending;                /* MPI_Finalize has begun: no topology is kept for later */
/* Chosen by this thread and not yet joined: if it chooses again, the program has left MPI_File_open by a longjmp
 * out of its error handler, on all ranks. */
static _Thread_local uint64_t chosen;

static bool same_group(MPI_Comm comm, const mpiox_topology *t, int ranks_per_node)
{
    int result = MPI_UNEQUAL;
    if (t->ranks_per_node != ranks_per_node)
        return false;
    PMPI_Comm_compare(comm, t->comm, &result);
    return result == MPI_CONGRUENT || result == MPI_IDENT;
}

mpiox_topology_choice mpiox_topology_choose(MPI_Comm comm, int ranks_per_node)
{
    mpiox_topology_choice choice = {.ranks_per_node = ranks_per_node};
    pthread_mutex_lock(&lock);
    for (mpiox_topology *t = topologies; t && chosen; t = t->next)
        if (t->id == chosen)
            t->in_use = false;
    for (mpiox_topology *t = topologies; t && !choice.id; t = t->next)
        if (!t->in_use && same_group(comm, t, ranks_per_node)) {
            t->in_use = true;
            choice.id = t->id;
        }
    choice.fresh = choice.id == 0;
    if (choice.fresh)
        choice.id = ((uint64_t)(uint32_t)getpid() << 32) | ++made;
    pthread_mutex_unlock(&lock);
    chosen = choice.id;
    return choice;
}

/* Of the topology that rank 0 has chosen. Another thread of this rank may not have released it yet, when rank 0's
 * has: it does so without waiting for any rank. `reserved`: this thread has chosen it itself. */
static mpiox_topology *find(MPI_Comm comm, const mpiox_topology_choice *choice, bool reserved)
{
    mpiox_topology *found = NULL;
    pthread_mutex_lock(&lock);
    for (mpiox_topology *t = topologies; t && !found; t = t->next)
        if (t->id == choice->id && same_group(comm, t, choice->ranks_per_node))
            found = t;
    while (found && found->in_use && !reserved) {
        pthread_mutex_unlock(&lock);
        sched_yield();
        pthread_mutex_lock(&lock);
    }
    if (found)
        found->in_use = true;
    pthread_mutex_unlock(&lock);
    return found;
}

static void free_comm(MPI_Comm *comm)
{
    if (*comm != MPI_COMM_NULL && *comm != MPI_COMM_SELF)
        PMPI_Comm_free(comm);
}

/* With one rank the page is ordinary memory. */
static void free_page(mpiox_topology *t)
{
    if (t->size == 1)
        free(t->page);
    mpiox_segment_free(&t->page_segment);
}

static void destroy(mpiox_topology *t)
{
    if (!t)
        return;
    mpiox_segment_free(&t->segment);
    free_page(t);
    free_comm(&t->leader_comm);
    if (t->node_comm != t->comm)
        free_comm(&t->node_comm);
    free_comm(&t->comm);
    free(t->node_of);
    free(t->local_of);
    free(t->node_start);
    free(t->node_ranks);
    free(t->node_name);
    free(t);
}

/* The communicator of this rank's node: the real one, or the pretended part of it. */
static int split_node(mpiox_topology *t)
{
    MPI_Comm real = MPI_COMM_NULL;
    if (PMPI_Comm_split_type(t->comm, MPI_COMM_TYPE_SHARED, t->rank, MPI_INFO_NULL, &real) != MPI_SUCCESS)
        return MPIOX_E_MPI;
    if (t->ranks_per_node <= 0) {
        t->node_comm = real;
        return MPIOX_OK;
    }
    int within;
    PMPI_Comm_rank(real, &within);
    int rc = PMPI_Comm_split(real, within / t->ranks_per_node, within, &t->node_comm);
    PMPI_Comm_free(&real);
    return rc == MPI_SUCCESS ? MPIOX_OK : MPIOX_E_MPI;
}

/* Communicators are scarce (MPICH has 2048 of a context), so a topology keeps as few as it needs: none of its own
 * with one rank, one with one node, three with several. */
static int split_nodes(mpiox_topology *t)
{
    if (t->size == 1) {
        t->node_comm = t->comm;
    } else {
        int code = split_node(t);
        if (code != MPIOX_OK)
            return code;
    }
    PMPI_Comm_rank(t->node_comm, &t->node_rank);
    PMPI_Comm_size(t->node_comm, &t->node_size);
    if (t->node_size == t->size) { /* one node: on all ranks or on none */
        if (t->node_comm != t->comm)
            PMPI_Comm_free(&t->node_comm);
        t->node_comm = t->comm;
        return MPIOX_OK;
    }
    int color = t->node_rank == 0 ? 0 : MPI_UNDEFINED;
    return PMPI_Comm_split(t->comm, color, t->rank, &t->leader_comm) == MPI_SUCCESS ? MPIOX_OK : MPIOX_E_MPI;
}

static bool allocate(mpiox_topology *t, int **all)
{
    const size_t size = (size_t)t->size;
    *all = malloc(sizeof(int) * 2 * size);
    t->node_of = malloc(sizeof(int) * size);
    t->local_of = malloc(sizeof(int) * size);
    t->node_ranks = malloc(sizeof(int) * size);
    t->node_start = calloc(size + 2, sizeof(int));
    return *all && t->node_of && t->local_of && t->node_ranks && t->node_start;
}

/* node_of, local_of, node_start, node_ranks from everyone's (leader's rank, rank in node); `all` is scratch. */
static int map_ranks(mpiox_topology *t, int *all)
{
    int mine[2] = {t->rank, t->node_rank};
    if (PMPI_Bcast(&mine[0], 1, MPI_INT, 0, t->node_comm) != MPI_SUCCESS) /* the leader's rank names the node */
        return MPIOX_E_MPI;
    if (PMPI_Allgather(mine, 2, MPI_INT, all, 2, MPI_INT, t->comm) != MPI_SUCCESS)
        return MPIOX_E_MPI;
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
    return MPIOX_OK;
}

/* The lowest code of all ranks; comm returns its errors. */
static int agree(MPI_Comm comm, int code)
{
    int worst = code;
    return PMPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS ? worst : MPIOX_E_MPI;
}

/* The topology's own communicator. A split, not a dup: a dup would run the program's attribute callbacks. Its
 * failure must come back as a code whatever error handler the program has set. */
static int own_comm(MPI_Comm comm, mpiox_topology *t)
{
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    PMPI_Comm_rank(comm, &t->rank);
    PMPI_Comm_size(comm, &t->size);
    if (t->size == 1) {
        t->comm = MPI_COMM_SELF;
        return MPIOX_OK;
    }
    PMPI_Comm_get_errhandler(comm, &handler);
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int rc = PMPI_Comm_split(comm, 0, t->rank, &t->comm);
    PMPI_Comm_set_errhandler(comm, handler);
    if (handler != MPI_ERRORS_ARE_FATAL && handler != MPI_ERRORS_RETURN)
        PMPI_Errhandler_free(&handler);
    if (rc != MPI_SUCCESS)
        return MPIOX_E_MPI;
    PMPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN);
    return MPIOX_OK;
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

/* One attempt; the same answer on all ranks of the node. */
static int try_share(const mpiox_topology *t, mpiox_segment_kind kind, int64_t bytes, mpiox_segment *out,
                     mpiox_error *error)
{
    struct {
        mpiox_segment_address address;
        int32_t code;
    } created;
    memset(&created, 0, sizeof created);
    if (t->node_rank == 0)
        created.code = mpiox_segment_create(kind, bytes, &created.address, out, error);
    if (PMPI_Bcast(&created, sizeof created, MPI_BYTE, 0, t->node_comm) != MPI_SUCCESS)
        created.code = mpiox_error_set(error, MPIOX_E_MPI, 0, -1, bytes, "announcing shared memory");
    int code = created.code, worst;
    if (code == MPIOX_OK && t->node_rank != 0)
        code = mpiox_segment_attach(&created.address, out, error);
    worst = code;
    if (PMPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MIN, t->node_comm) != MPI_SUCCESS)
        worst = MPIOX_E_MPI;
    if (t->node_rank == 0)
        mpiox_segment_seal(out, &created.address);
    if (worst == MPIOX_OK)
        return MPIOX_OK;
    mpiox_segment_free(out);
    return mpiox_error_set(error, worst, code == worst ? error->sys_errno : 0, -1, bytes, "shared memory on this node");
}

/* Collective over the node: zero-filled memory of all its ranks. */
static int share(const mpiox_topology *t, int64_t bytes, mpiox_segment *out, mpiox_error *error)
{
    int code = MPIOX_E_NOMEM;
    for (int kind = 0; kind < MPIOX_SEGMENT_KINDS && code != MPIOX_OK; kind++)
        code = try_share(t, kind, bytes, out, error);
    return code;
}

static int renew_segment(mpiox_topology *t, int64_t bytes, uint64_t layout, mpiox_error *error)
{
    if (t->segment.base && t->segment.bytes == bytes && t->segment_layout == layout) /* alike on the node */
        return MPIOX_OK;
    t->segment_layout = layout;
    t->segment_placed = false;
    mpiox_segment_free(&t->segment);
    return share(t, bytes, &t->segment, error);
}

int mpiox_topology_segment(mpiox_topology *t, int64_t bytes, uint64_t layout, mpiox_error *error)
{
    const int code = renew_segment(t, bytes, layout, error),
              worst = t->n_nodes > 1 ? mpiox_topology_lowest(t, code) : code;
    if (code == MPIOX_OK && worst != MPIOX_OK)
        mpiox_error_set(error, worst, 0, -1, bytes, "shared memory on another node");
    return worst;
}

/* One rank shares with nobody. */
static mpiox_topology_page *private_page(int64_t bytes)
{
    enum { LINE = 64 }; /* as the page is aligned */
    void *page = aligned_alloc(LINE, (size_t)((bytes + LINE - 1) / LINE * LINE));
    if (page)
        memset(page, 0, (size_t)bytes);
    return page;
}

/* The page of this node, and what the ranks' MPI libraries can do with threads. The same answer on every rank. */
static int make_page(mpiox_topology *t)
{
    mpiox_error error = {.code = MPIOX_OK};
    int level = MPI_THREAD_MULTIPLE;
    const int64_t bytes = mpiox_topology_page_bytes(t->node_size);
    int code = MPIOX_OK;
    if (t->size == 1)
        t->page = private_page(bytes);
    else if ((code = share(t, bytes, &t->page_segment, &error)) == MPIOX_OK)
        t->page = t->page_segment.base;
    code = agree(t->comm, code == MPIOX_OK && !t->page ? MPIOX_E_NOMEM : code);
    if (code != MPIOX_OK)
        return code;
    PMPI_Query_thread(&level);
    int values[] = {level == MPI_THREAD_MULTIPLE, level != MPI_THREAD_MULTIPLE};
    const int agreed = mpiox_topology_min(t, 2, values, NULL, 0);
    t->threads = values[0] != 0;
    t->one_opener = values[1] != 0 && !t->temporary;
    return agreed;
}

mpiox_topology *mpiox_topology_of(MPI_Comm comm)
{
    /* The list begins with the youngest; a group's topologies have the same order on its ranks. */
    mpiox_topology *oldest = NULL;
    pthread_mutex_lock(&lock);
    for (mpiox_topology *t = topologies; t; t = t->next)
        if (t->one_opener && t->n_nodes == 1 && t->size > 1 && same_group(comm, t, t->ranks_per_node))
            oldest = t;
    pthread_mutex_unlock(&lock);
    return oldest;
}

/* ---- all of MPI_COMM_WORLD --------------------------------------------------------------------------------------- */

/* A number that a launcher has left in the environment; 0: none. */
static int launched(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    const long number = text && *text ? strtol(text, &end, 10) : 0;
    return end && *end == '\0' && number > 0 && number <= INT_MAX ? (int)number : 0;
}

/* Has the launcher put all `size` ranks on this node? No rank may ask another one here. */
static bool launched_on_one_node(int size)
{
#ifdef OPEN_MPI
    const int here = launched("OMPI_COMM_WORLD_LOCAL_SIZE");
#else
    const int here = launched("MPI_LOCALNRANKS"); /* MPICH's mpiexec and those made of it */
#endif
    if (here > 0)
        return here == size;
    return launched("SLURM_STEP_NUM_NODES") == 1 && launched("SLURM_STEP_NUM_TASKS") == size; /* srun */
}

bool mpiox_topology_world_on_one_node(int ranks_per_node)
{
    int initialized = 0, size = 0;
    bool one = false;
    if (PMPI_Initialized(&initialized) != MPI_SUCCESS || !initialized ||
        PMPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS)
        return false;
    if (ranks_per_node > 0 && size > ranks_per_node)
        return false;
    if (size == 1 || launched_on_one_node(size))
        return true;
    pthread_mutex_lock(&lock);
    for (mpiox_topology *t = topologies; t && !one; t = t->next) { /* a file has been open on all of it */
        int result = MPI_UNEQUAL;
        if (t->size == size && t->n_nodes == 1 && PMPI_Comm_compare(MPI_COMM_WORLD, t->comm, &result) == MPI_SUCCESS)
            one = result == MPI_CONGRUENT || result == MPI_SIMILAR || result == MPI_IDENT;
    }
    pthread_mutex_unlock(&lock);
    return one;
}

/* The ranks of a group make their topologies together, but each has those of other groups besides: one that has
 * many already says so for all. */
static int judge_temporary(MPI_Comm comm, mpiox_topology *t)
{
    int room = KEPT, least = 0;
    pthread_mutex_lock(&lock);
    for (const mpiox_topology *kept = topologies; kept && room > 0; kept = kept->next)
        room--;
    pthread_mutex_unlock(&lock);
    if (PMPI_Allreduce(&room, &least, 1, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS)
        return MPIOX_E_MPI;
    t->temporary = least == 0;
    return MPIOX_OK;
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

static int make(MPI_Comm comm, const mpiox_topology_choice *choice, mpiox_topology **out)
{
    char name[MPI_MAX_PROCESSOR_NAME + 1] = "";
    int length = 0, *all = NULL;
    mpiox_topology *t = calloc(1, sizeof *t);
    int code = agree(comm, t ? MPIOX_OK : MPIOX_E_NOMEM);
    if (code != MPIOX_OK || !t) {
        free(t);
        return code;
    }
    *t = (mpiox_topology){.comm = MPI_COMM_NULL, .node_comm = MPI_COMM_NULL, .leader_comm = MPI_COMM_NULL};
    t->segment.fd = t->page_segment.fd = -1;
    t->id = choice->id;
    t->in_use = true;
    t->ranks_per_node = choice->ranks_per_node;
    code = judge_temporary(comm, t);
    if (code == MPIOX_OK)
        code = agree(comm, own_comm(comm, t));
    if (code == MPIOX_OK)
        code = agree(comm, split_nodes(t));
    if (code == MPIOX_OK)
        code = agree(comm, allocate(t, &all) ? MPIOX_OK : MPIOX_E_NOMEM);
    if (code == MPIOX_OK)
        code = agree(comm, map_ranks(t, all));
    free(all);
    if (code == MPIOX_OK)
        code = make_page(t);
    if (code != MPIOX_OK) {
        destroy(t);
        return code;
    }
    PMPI_Get_processor_name(name, &length);
    t->node_name = strdup(name); /* NULL matches no name in cb_config_list but '*' */
    pthread_mutex_lock(&lock);
    t->next = topologies;
    topologies = t;
    pthread_mutex_unlock(&lock);
    *out = t;
    return MPIOX_OK;
}

int mpiox_topology_join(MPI_Comm comm, const mpiox_topology_choice *choice, mpiox_topology **out)
{
    const bool reserved = chosen == choice->id;
    chosen = 0;
    *out = choice->fresh ? NULL : find(comm, choice, reserved);
    return *out ? MPIOX_OK : make(comm, choice, out);
}

/* Take the topologies that nobody uses out of the list, in its order. */
static mpiox_topology *take_idle(void)
{
    mpiox_topology *idle = NULL, **end = &idle;
    for (mpiox_topology **link = &topologies; *link;) {
        mpiox_topology *t = *link;
        if (t->in_use) {
            link = &t->next;
            continue;
        }
        *link = t->next;
        t->next = NULL;
        *end = t;
        end = &t->next;
    }
    return idle;
}

static void destroy_all(mpiox_topology *list)
{
    while (list) {
        mpiox_topology *next = list->next;
        destroy(list);
        list = next;
    }
}

/* Take one topology out of the list. */
static mpiox_topology *take(mpiox_topology *t)
{
    mpiox_topology **link = &topologies;
    while (*link && *link != t)
        link = &(*link)->next;
    if (*link)
        *link = t->next;
    t->next = NULL;
    return t;
}

void mpiox_topology_release(mpiox_topology *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&lock);
    t->in_use = t->foreground = false;
    mpiox_topology *idle = ending ? take_idle() : t->temporary ? take(t) : NULL;
    pthread_mutex_unlock(&lock);
    destroy_all(idle);
}

void mpiox_topology_finalize(void)
{
    pthread_mutex_lock(&lock);
    ending = true;
    mpiox_topology *idle = take_idle();
    pthread_mutex_unlock(&lock);
    destroy_all(idle);
}
