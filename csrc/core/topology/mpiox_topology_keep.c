/*
 * mpiox_topology_keep.c - the topologies of this process, in use and stored for the next file; see mpiox_topology.h.
 *
 * Problem.   Making a topology takes collectives, so one stays when its file is closed. A program that opens files on
 *            thousands of groups must not collect thousands of them. But rank 0 of the group chooses a topology for
 *            all, so no other rank may drop one, and the ranks of a group never meet in order to drop.
 * Algorithm. Rank 0 of a topology without communicators gives it up, on its own, when it has more than KEPT idle ones:
 *            the least recently used ones go. Rank 0 writes this into their page, which the other ranks read when they
 *            next make a topology. A rank that has too many, whose rank 0 is another rank, requests their end in the
 *            same way. If none can be given up yet, a new one lives for one file only. So does one with communicators
 *            when there are KEPT of these, because their end is collective in MPI.
 * Guarantee. At most MOST without communicators and KEPT with them stay, beside those of open files.
 */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpiox_topology.h"

enum {
    KEPT = 32,
    MOST = 2 * KEPT, /* asking takes effect when the other rank makes a topology */
#ifdef OPEN_MPI
    COMMS = 4096 /* of 65536 */
#else
    COMMS = 256 /* of 2048 */
#endif
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mpiox_topology *topologies; /* every topology of this process */
static uint32_t made;              /* topologies made by this process, for ids */
static uint64_t uses;
static bool ending; /* MPI_Finalize has begun: no topology is kept for later */
/* Chosen by this thread and not yet joined: if it chooses again, the program has left MPI_File_open by a longjmp
 * out of its error handler, on all ranks. */
static _Thread_local struct {
    uint64_t id;
    mpiox_segment page; /* made for it, when it is fresh */
    mpiox_segment_address address;
} chosen = {.page = {.fd = -1}};

/* ---- groups ------------------------------------------------------------------------------------------------------ */

typedef struct wanted { /* the key of a search for a topology */
    MPI_Group group;
    int size, ranks_per_node;
} wanted;

static wanted want(MPI_Comm comm, int ranks_per_node)
{
    wanted w = {.group = MPI_GROUP_NULL, .ranks_per_node = ranks_per_node};
    if (PMPI_Comm_size(comm, &w.size) != MPI_SUCCESS || PMPI_Comm_group(comm, &w.group) != MPI_SUCCESS)
        w.group = MPI_GROUP_NULL;
    return w;
}

static void drop_group(MPI_Group *group)
{
    if (*group != MPI_GROUP_NULL && *group != MPI_GROUP_EMPTY)
        PMPI_Group_free(group);
}

static bool is_for(const mpiox_topology *t, const wanted *w)
{
    int result = MPI_UNEQUAL;
    return t->size == w->size && t->ranks_per_node == w->ranks_per_node && w->group != MPI_GROUP_NULL &&
           PMPI_Group_compare(w->group, t->group, &result) == MPI_SUCCESS && result == MPI_IDENT;
}

static bool has_comms(const mpiox_topology *t)
{
    return t->comm != MPI_COMM_NULL && t->comm != MPI_COMM_SELF;
}

/* ---- the end of one ---------------------------------------------------------------------------------------------- */

static void free_comm(MPI_Comm *comm)
{
    if (*comm != MPI_COMM_NULL && *comm != MPI_COMM_SELF)
        PMPI_Comm_free(comm);
}

static void destroy(mpiox_topology *t)
{
    mpiox_segment_free(&t->segment);
    if (t->size == 1) /* ordinary memory */
        free(t->page);
    mpiox_segment_free(&t->page_segment);
    free_comm(&t->leader_comm);
    free_comm(&t->node_comm);
    free_comm(&t->comm);
    drop_group(&t->group);
    free(t->node_of);
    free(t->local_of);
    free(t->node_start);
    free(t->node_ranks);
    free(t->node_name);
    free(t);
}

static void destroy_all(mpiox_topology *list)
{
    while (list) {
        mpiox_topology *next = list->next;
        destroy(list);
        list = next;
    }
}

/* Take one topology out of those of this process. Under the lock. */
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

void mpiox_topology_free(mpiox_topology *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&lock);
    take(t);
    pthread_mutex_unlock(&lock);
    destroy(t);
}

/* Collect unused topologies, in their order. Under the lock. */
static mpiox_topology *take_idle(void)
{
    mpiox_topology *idle = NULL, **end = &idle;
    for (mpiox_topology *t = topologies, *next; t; t = next) {
        next = t->next;
        if (t->in_use)
            continue;
        *end = take(t);
        end = &t->next;
    }
    return idle;
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

static void drop_chosen_page(void)
{
    mpiox_segment_seal(&chosen.page, &chosen.address);
    mpiox_segment_free(&chosen.page);
}

/* On one node the page is all that the ranks have to learn of: rank 0 makes it before it is known whether they are. */
static void make_page(int size, mpiox_topology_choice *choice)
{
    mpiox_error error;
    const bool one_node = choice->ranks_per_node <= 0 || choice->ranks_per_node >= size;
    if (size > 1 && one_node &&
        mpiox_segment_create(MPIOX_SEGMENT_MEMFD, mpiox_topology_page_bytes(size), &chosen.address, &chosen.page,
                             &error) == MPIOX_OK)
        choice->page = chosen.address;
}

bool mpiox_topology_take_page(const mpiox_topology_choice *choice, mpiox_segment *out)
{
    *out = chosen.page;
    chosen.page = (mpiox_segment){.fd = -1};
    return choice->page.bytes > 0 && out->base;
}

mpiox_topology_choice mpiox_topology_choose(MPI_Comm comm, int ranks_per_node)
{
    mpiox_topology_choice choice = {.ranks_per_node = ranks_per_node};
    wanted w = want(comm, ranks_per_node);
    drop_chosen_page();
    pthread_mutex_lock(&lock);
    for (mpiox_topology *t = topologies; t && chosen.id; t = t->next)
        if (t->id == chosen.id)
            t->in_use = false;
    for (mpiox_topology *t = topologies; t && !choice.id; t = t->next)
        if (!t->in_use && is_for(t, &w)) {
            t->in_use = true;
            choice.id = t->id;
            if (t->size > 1 && !has_comms(t))
                mpiox_topology_page_ask(t, false);
        }
    choice.fresh = choice.id == 0;
    if (choice.fresh)
        choice.id = ((uint64_t)(uint32_t)getpid() << 32) | ++made;
    pthread_mutex_unlock(&lock);
    drop_group(&w.group);
    chosen.id = choice.id;
    if (choice.fresh)
        make_page(w.size, &choice);
    return choice;
}

/* Another thread of this rank may not have released it yet, when rank 0's has: it does so without waiting for any
 * rank. */
mpiox_topology *mpiox_topology_find(MPI_Comm comm, const mpiox_topology_choice *choice)
{
    const bool reserved = chosen.id == choice->id; /* this thread has chosen it itself */
    mpiox_topology *found = NULL;
    wanted w = want(comm, choice->ranks_per_node);
    chosen.id = 0;
    pthread_mutex_lock(&lock);
    for (mpiox_topology *t = choice->fresh ? NULL : topologies; t && !found; t = t->next)
        if (t->id == choice->id && is_for(t, &w))
            found = t;
    while (found && found->in_use && !reserved) {
        pthread_mutex_unlock(&lock);
        sched_yield();
        pthread_mutex_lock(&lock);
    }
    if (found) {
        found->in_use = true;
        found->last_used = ++uses;
    }
    pthread_mutex_unlock(&lock);
    drop_group(&w.group);
    return found;
}

mpiox_topology *mpiox_topology_of(MPI_Comm comm)
{
    /* The list begins with the youngest; a group's topologies have the same order on its ranks. */
    mpiox_topology *oldest = NULL;
    wanted w = want(comm, 0);
    pthread_mutex_lock(&lock);
    for (mpiox_topology *t = topologies; t; t = t->next) {
        w.ranks_per_node = t->ranks_per_node;
        if (t->one_opener && t->n_nodes == 1 && t->size > 1 && is_for(t, &w))
            oldest = t;
    }
    pthread_mutex_unlock(&lock);
    drop_group(&w.group);
    return oldest;
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

void mpiox_topology_keep(mpiox_topology *t)
{
    pthread_mutex_lock(&lock);
    t->last_used = ++uses;
    t->next = topologies;
    topologies = t;
    pthread_mutex_unlock(&lock);
}

void mpiox_topology_release(mpiox_topology *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&lock);
    t->in_use = t->foreground = false;
    t->last_used = ++uses;
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

/* ---- making room ------------------------------------------------------------------------------------------------- */

/* Kept, idle, and without communicators. */
static bool is_spare(const mpiox_topology *t)
{
    return !t->in_use && !t->temporary && !has_comms(t);
}

/* Is it over with a spare one, or is it now? `longest`: this rank would like it to be. */
static bool goes(mpiox_topology *t, bool longest)
{
    if (t->size == 1)
        return longest;
    if (t->rank != 0) {
        if (mpiox_topology_page_given_up(t))
            return true;
        if (longest)
            mpiox_topology_page_ask(t, true);
        return false;
    }
    return (longest || mpiox_topology_page_asked(t)) && mpiox_topology_page_give_up(t);
}

/* How many spare ones were used later than this one. */
static int used_later(const mpiox_topology *t)
{
    int count = 0;
    for (const mpiox_topology *other = topologies; other; other = other->next)
        count += is_spare(other) && other->last_used > t->last_used;
    return count;
}

/* Under the lock. */
static mpiox_topology *take_spare(void)
{
    mpiox_topology *gone = NULL;
    for (mpiox_topology *t = topologies, *next; t; t = next) {
        next = t->next;
        if (is_spare(t) && goes(t, used_later(t) >= KEPT - 1)) {
            take(t)->next = gone;
            gone = t;
        }
    }
    return gone;
}

mpiox_topology_room mpiox_topology_make_room(void)
{
    mpiox_topology_room room = {.plain = MOST, .with_comms = KEPT, .comms = COMMS};
    pthread_mutex_lock(&lock);
    mpiox_topology *gone = take_spare();
    for (const mpiox_topology *t = topologies; t; t = t->next) {
        *(has_comms(t) ? &room.with_comms : &room.plain) -= !t->temporary;
        room.comms -= has_comms(t) ? (t->n_nodes > 1 ? 3 : 1) : 0;
    }
    pthread_mutex_unlock(&lock);
    destroy_all(gone);
    return room;
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
    wanted w = want(MPI_COMM_WORLD, 0);
    pthread_mutex_lock(&lock);
    for (mpiox_topology *t = topologies; t && !one; t = t->next) { /* a file has been open on all of it */
        int result = MPI_UNEQUAL;
        if (t->size == size && t->n_nodes == 1 && w.group != MPI_GROUP_NULL &&
            PMPI_Group_compare(w.group, t->group, &result) == MPI_SUCCESS)
            one = result == MPI_IDENT || result == MPI_SIMILAR;
    }
    pthread_mutex_unlock(&lock);
    drop_group(&w.group);
    return one;
}
