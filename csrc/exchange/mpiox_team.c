/* mpiox_team.c - see mpiox_team.h. */
#include "mpiox_team.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Teams that a process keeps for the next file of the same group; a program that makes a group for each file would
 * otherwise run out of communicators and memory. */
enum { KEPT = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mpiox_team *teams; /* every team of this process */
static uint32_t made;     /* teams made by this process, for ids */
static bool ending;       /* MPI_Finalize has begun: no team is kept for later */
/* Offered by this thread and not yet joined: if it offers again, the program has left MPI_File_open by a longjmp out of its
 * error handler, on all ranks. */
static _Thread_local uint64_t offered;

static bool same_group(MPI_Comm comm, const mpiox_team *team, int ranks_per_node) {
    int result = MPI_UNEQUAL;
    if (team->ranks_per_node != ranks_per_node)
        return false;
    PMPI_Comm_compare(comm, team->comm, &result);
    return result == MPI_CONGRUENT || result == MPI_IDENT;
}

uint64_t mpiox_team_offer(MPI_Comm comm, int ranks_per_node, int32_t *fresh) {
    uint64_t id = 0;
    pthread_mutex_lock(&lock);
    for (mpiox_team *t = teams; t && offered; t = t->next)
        if (t->id == offered)
            t->in_use = false;
    for (mpiox_team *t = teams; t && !id; t = t->next)
        if (!t->in_use && same_group(comm, t, ranks_per_node)) {
            t->in_use = true;
            id = t->id;
        }
    *fresh = id == 0;
    if (*fresh)
        id = ((uint64_t) (uint32_t) getpid() << 32) | ++made;
    pthread_mutex_unlock(&lock);
    offered = id;
    return id;
}

static mpiox_team *find(MPI_Comm comm, uint64_t id, int ranks_per_node) {
    mpiox_team *found = NULL;
    pthread_mutex_lock(&lock);
    for (mpiox_team *t = teams; t && !found; t = t->next)
        if (t->id == id && same_group(comm, t, ranks_per_node)) {
            t->in_use = true;
            found = t;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

static void free_comm(MPI_Comm *comm) {
    if (*comm != MPI_COMM_NULL && *comm != MPI_COMM_SELF)
        PMPI_Comm_free(comm);
}

static void destroy(mpiox_team *team) {
    if (!team)
        return;
    mpiox_segment_free(&team->segment);
    mpiox_segment_free(&team->lobby_segment);
    free_comm(&team->leader_comm);
    if (team->node_comm != team->comm)
        free_comm(&team->node_comm);
    free_comm(&team->comm);
    free(team->node_of);
    free(team->local_of);
    free(team->node_start);
    free(team->node_ranks);
    free(team->node_name);
    free(team);
}

/* The communicator of this rank's node: the real one, or the pretended part of it. */
static int split_node(mpiox_team *team) {
    MPI_Comm real = MPI_COMM_NULL;
    if (PMPI_Comm_split_type(team->comm, MPI_COMM_TYPE_SHARED, team->rank, MPI_INFO_NULL, &real) != MPI_SUCCESS)
        return MPIOX_E_MPI;
    if (team->ranks_per_node <= 0) {
        team->node_comm = real;
        return MPIOX_OK;
    }
    int within;
    PMPI_Comm_rank(real, &within);
    int rc = PMPI_Comm_split(real, within / team->ranks_per_node, within, &team->node_comm);
    PMPI_Comm_free(&real);
    return rc == MPI_SUCCESS ? MPIOX_OK : MPIOX_E_MPI;
}

/* Communicators are scarce (MPICH has 2048 of a context), so a team keeps as few as it needs: none of its own with one
 * rank, one with one node, three with several. */
static int split_nodes(mpiox_team *team) {
    if (team->size == 1) {
        team->node_comm = team->comm;
    } else {
        int code = split_node(team);
        if (code != MPIOX_OK)
            return code;
    }
    PMPI_Comm_rank(team->node_comm, &team->node_rank);
    PMPI_Comm_size(team->node_comm, &team->node_size);
    if (team->node_size == team->size) { /* one node: on all ranks or on none */
        if (team->node_comm != team->comm)
            PMPI_Comm_free(&team->node_comm);
        team->node_comm = team->comm;
        return MPIOX_OK;
    }
    int color = team->node_rank == 0 ? 0 : MPI_UNDEFINED;
    return PMPI_Comm_split(team->comm, color, team->rank, &team->leader_comm) == MPI_SUCCESS ? MPIOX_OK : MPIOX_E_MPI;
}

static bool allocate(mpiox_team *team, int **all) {
    const size_t size = (size_t) team->size;
    *all = malloc(sizeof(int) * 2 * size);
    team->node_of = malloc(sizeof(int) * size);
    team->local_of = malloc(sizeof(int) * size);
    team->node_ranks = malloc(sizeof(int) * size);
    team->node_start = calloc(size + 2, sizeof(int));
    return *all && team->node_of && team->local_of && team->node_ranks && team->node_start;
}

/* node_of, local_of, node_start, node_ranks from everyone's (leader's rank, rank in node); `all` is scratch. */
static int map_ranks(mpiox_team *team, int *all) {
    int mine[2] = {team->rank, team->node_rank};
    if (PMPI_Bcast(&mine[0], 1, MPI_INT, 0, team->node_comm) != MPI_SUCCESS) /* the leader's rank names the node */
        return MPIOX_E_MPI;
    if (PMPI_Allgather(mine, 2, MPI_INT, all, 2, MPI_INT, team->comm) != MPI_SUCCESS)
        return MPIOX_E_MPI;
    for (int r = 0; r < team->size; r++) { /* leaders have the lowest rank of their node, so they come first */
        if (all[2 * r] == r)
            team->node_of[r] = team->n_nodes++;
        else
            team->node_of[r] = team->node_of[all[2 * r]];
        team->local_of[r] = all[2 * r + 1];
        team->node_start[team->node_of[r] + 1]++;
    }
    for (int n = 0; n < team->n_nodes; n++)
        team->node_start[n + 1] += team->node_start[n];
    for (int r = 0; r < team->size; r++)
        team->node_ranks[team->node_start[team->node_of[r]] + team->local_of[r]] = r;
    team->node = team->node_of[team->rank];
    return MPIOX_OK;
}

/* The lowest code of all ranks; comm returns its errors. */
static int agree(MPI_Comm comm, int code) {
    int worst = code;
    return PMPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS ? worst : MPIOX_E_MPI;
}

/* The team's own communicator. A split, not a dup: a dup would run the program's attribute callbacks. Its failure must
 * come back as a code whatever error handler the program has set. */
static int own_comm(MPI_Comm comm, mpiox_team *team) {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    PMPI_Comm_rank(comm, &team->rank);
    PMPI_Comm_size(comm, &team->size);
    if (team->size == 1) {
        team->comm = MPI_COMM_SELF;
        return MPIOX_OK;
    }
    PMPI_Comm_get_errhandler(comm, &handler);
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int rc = PMPI_Comm_split(comm, 0, team->rank, &team->comm);
    PMPI_Comm_set_errhandler(comm, handler);
    if (handler != MPI_ERRORS_ARE_FATAL && handler != MPI_ERRORS_RETURN)
        PMPI_Errhandler_free(&handler);
    if (rc != MPI_SUCCESS)
        return MPIOX_E_MPI;
    PMPI_Comm_set_errhandler(team->comm, MPI_ERRORS_RETURN);
    return MPIOX_OK;
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

/* One attempt; the same answer on all ranks of the node. */
static int try_share(const mpiox_team *team, mpiox_segment_kind kind, int64_t bytes, mpiox_segment *out, mpiox_error *error) {
    struct { mpiox_segment_address address; int32_t code; } offer;
    memset(&offer, 0, sizeof offer);
    if (team->node_rank == 0)
        offer.code = mpiox_segment_create(kind, bytes, &offer.address, out, error);
    if (PMPI_Bcast(&offer, sizeof offer, MPI_BYTE, 0, team->node_comm) != MPI_SUCCESS)
        offer.code = mpiox_error_set(error, MPIOX_E_MPI, 0, -1, bytes, "announcing shared memory");
    int code = offer.code, worst;
    if (code == MPIOX_OK && team->node_rank != 0)
        code = mpiox_segment_attach(&offer.address, out, error);
    worst = code;
    if (PMPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MIN, team->node_comm) != MPI_SUCCESS)
        worst = MPIOX_E_MPI;
    if (team->node_rank == 0)
        mpiox_segment_seal(out, &offer.address);
    if (worst == MPIOX_OK)
        return MPIOX_OK;
    mpiox_segment_free(out);
    return mpiox_error_set(error, worst, code == worst ? error->sys_errno : 0, -1, bytes, "shared memory on this node");
}

/* Collective over the node: zero-filled memory of all its ranks. */
static int share(const mpiox_team *team, int64_t bytes, mpiox_segment *out, mpiox_error *error) {
    int code = MPIOX_E_NOMEM;
    for (int kind = 0; kind < MPIOX_SEGMENT_KINDS && code != MPIOX_OK; kind++)
        code = try_share(team, kind, bytes, out, error);
    return code;
}

int mpiox_team_segment(mpiox_team *team, int64_t bytes, uint64_t layout, mpiox_error *error) {
    if (team->segment.base && team->segment.bytes == bytes && team->segment_layout == layout) /* alike on the node */
        return MPIOX_OK;
    team->segment_layout = layout;
    team->segment_placed = false;
    mpiox_segment_free(&team->segment);
    return share(team, bytes, &team->segment, error);
}

/* A team does without a lobby where there is no shared memory. */
static void make_lobby(mpiox_team *team) {
    mpiox_error error = {.code = MPIOX_OK};
    int level = MPI_THREAD_MULTIPLE;
    const int64_t bytes = mpiox_lobby_bytes(team->size);
    if (team->size == 1 || team->n_nodes > 1 || share(team, bytes, &team->lobby_segment, &error) != MPIOX_OK)
        return;
    mpiox_lobby_begin(&team->lobby, team->lobby_segment.base, team->comm, team->rank, team->size);
    PMPI_Query_thread(&level);
    int values[MPIOX_LOBBY_VOTES] = {level != MPI_THREAD_MULTIPLE}, nothing = 0;
    mpiox_lobby_vote(&team->lobby, values, &nothing, sizeof nothing);
    team->lobby_of_group = values[0] != 0 && !team->temporary;
}

mpiox_lobby *mpiox_team_lobby(MPI_Comm comm) {
    mpiox_lobby *oldest = NULL; /* the list begins with the youngest; a group's teams have the same order on its ranks */
    pthread_mutex_lock(&lock);
    for (mpiox_team *t = teams; t; t = t->next)
        if (t->lobby_of_group && same_group(comm, t, t->ranks_per_node))
            oldest = &t->lobby;
    pthread_mutex_unlock(&lock);
    return oldest;
}

/* ---- all of MPI_COMM_WORLD --------------------------------------------------------------------------------------- */

/* A number that a launcher has left in the environment; 0: none. */
static int launched(const char *name) {
    const char *text = getenv(name);
    char *end = NULL;
    const long number = text && *text ? strtol(text, &end, 10) : 0;
    return end && *end == '\0' && number > 0 && number <= INT_MAX ? (int) number : 0;
}

/* Has the launcher put all `size` ranks on this node? No rank may ask another one here. */
static bool launched_on_one_node(int size) {
#ifdef OPEN_MPI
    const int here = launched("OMPI_COMM_WORLD_LOCAL_SIZE");
#else
    const int here = launched("MPI_LOCALNRANKS"); /* MPICH's mpiexec and those made of it */
#endif
    if (here > 0)
        return here == size;
    return launched("SLURM_STEP_NUM_NODES") == 1 && launched("SLURM_STEP_NUM_TASKS") == size; /* srun */
}

bool mpiox_team_world_on_one_node(int ranks_per_node) {
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
    for (mpiox_team *t = teams; t && !one; t = t->next) { /* a file has been open on all of it */
        int result = MPI_UNEQUAL;
        if (t->size == size && t->n_nodes == 1 && PMPI_Comm_compare(MPI_COMM_WORLD, t->comm, &result) == MPI_SUCCESS)
            one = result == MPI_CONGRUENT || result == MPI_SIMILAR || result == MPI_IDENT;
    }
    pthread_mutex_unlock(&lock);
    return one;
}

/* The ranks of a group make their teams together, but each has those of other groups besides: one that has many already
 * says so for all. */
static int make_temporary(MPI_Comm comm, mpiox_team *team) {
    int room = KEPT, least = 0;
    pthread_mutex_lock(&lock);
    for (const mpiox_team *t = teams; t && room > 0; t = t->next)
        room--;
    pthread_mutex_unlock(&lock);
    if (PMPI_Allreduce(&room, &least, 1, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS)
        return MPIOX_E_MPI;
    team->temporary = least == 0;
    return MPIOX_OK;
}

/* ---- making one --------------------------------------------------------------------------------------------------- */

static int make(MPI_Comm comm, uint64_t id, int ranks_per_node, mpiox_team **out) {
    char name[MPI_MAX_PROCESSOR_NAME + 1] = "";
    int length = 0, *all = NULL;
    mpiox_team *team = calloc(1, sizeof *team);
    int code = agree(comm, team ? MPIOX_OK : MPIOX_E_NOMEM);
    if (code != MPIOX_OK || !team) {
        free(team);
        return code;
    }
    *team = (mpiox_team) {.comm = MPI_COMM_NULL, .node_comm = MPI_COMM_NULL, .leader_comm = MPI_COMM_NULL};
    team->segment.fd = team->lobby_segment.fd = -1;
    team->id = id;
    team->in_use = true;
    team->ranks_per_node = ranks_per_node;
    code = make_temporary(comm, team);
    if (code == MPIOX_OK)
        code = agree(comm, own_comm(comm, team));
    if (code == MPIOX_OK)
        code = agree(comm, split_nodes(team));
    if (code == MPIOX_OK)
        code = agree(comm, allocate(team, &all) ? MPIOX_OK : MPIOX_E_NOMEM);
    if (code == MPIOX_OK)
        code = agree(comm, map_ranks(team, all));
    free(all);
    if (code != MPIOX_OK) {
        destroy(team);
        return code;
    }
    PMPI_Get_processor_name(name, &length);
    team->node_name = strdup(name); /* NULL matches no name in cb_config_list but '*' */
    make_lobby(team);
    pthread_mutex_lock(&lock);
    team->next = teams;
    teams = team;
    pthread_mutex_unlock(&lock);
    *out = team;
    return MPIOX_OK;
}

int mpiox_team_join(MPI_Comm comm, uint64_t id, bool fresh, int ranks_per_node, mpiox_team **out) {
    offered = 0;
    *out = fresh ? NULL : find(comm, id, ranks_per_node);
    return *out ? MPIOX_OK : make(comm, id, ranks_per_node, out);
}

/* Take the teams that nobody uses out of the list, in its order. */
static mpiox_team *take_idle(void) {
    mpiox_team *idle = NULL, **end = &idle;
    for (mpiox_team **link = &teams; *link;) {
        mpiox_team *team = *link;
        if (team->in_use) {
            link = &team->next;
            continue;
        }
        *link = team->next;
        team->next = NULL;
        *end = team;
        end = &team->next;
    }
    return idle;
}

static void destroy_all(mpiox_team *list) {
    while (list) {
        mpiox_team *next = list->next;
        destroy(list);
        list = next;
    }
}

/* Take one team out of the list. */
static mpiox_team *take(mpiox_team *team) {
    mpiox_team **link = &teams;
    while (*link && *link != team)
        link = &(*link)->next;
    if (*link)
        *link = team->next;
    team->next = NULL;
    return team;
}

void mpiox_team_release(mpiox_team *team) {
    if (!team)
        return;
    pthread_mutex_lock(&lock);
    team->in_use = false;
    mpiox_team *idle = ending ? take_idle() : team->temporary ? take(team) : NULL;
    pthread_mutex_unlock(&lock);
    destroy_all(idle);
}

void mpiox_team_finalize(void) {
    pthread_mutex_lock(&lock);
    ending = true;
    mpiox_team *idle = take_idle();
    pthread_mutex_unlock(&lock);
    destroy_all(idle);
}
