/*
 * mpiox_service.c - the delegates of this process's job: choosing a mode, starting, ending; see mpiox_service.h.
 *
 * Agreement. Every rank must get the same answer, and several threads may open files concurrently. A rank that finds no
 *            service yet claims the right to start it and brings its state to one reduction over the ranks of the file:
 *            it is started only if all ranks have claimed it for this very opening. No rank waits for another opening's
 *            claim, which could wait for this one: such a file has no delegates.
 * Start.     The modes that may replace the requested one are tried in turn. Each ends with an agreement: all ranks are
 *            clients of all delegates, or the delegates end and the next mode is tried.
 */
#include "mpiox_service.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_print.h"
#include "mpiox_service_split.h"
#include "mpiox_service_join.h"
#include "mpiox_service_plan.h"
#include "mpiox_service_process.h"
#include "mpiox_service_spawn.h"
#include "mpiox_service_starting.h"
#include "mpiox_service_thread.h"
#include "mpiox_live.h"
#include "mpiox_topology.h"

enum { TEXT_BYTES = 256 };

typedef enum state { UNTRIED, CLAIMED, PRESENT, ABSENT } state;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static state now = UNTRIED; /* under the lock */
static mpiox_service own;   /* of this process; written while CLAIMED only */
static atomic_bool is_there;
static atomic_int asking; /* threads */
atomic_bool mpiox_service_was_there;

mpiox_service *mpiox_service_current(void)
{
    return atomic_load(&is_there) ? &own : NULL;
}

mpiox_service *mpiox_service_last(void)
{
    return atomic_load(&mpiox_service_was_there) ? &own : NULL;
}

void mpiox_service_begin_asking(void)
{
    atomic_fetch_add(&asking, 1);
}

void mpiox_service_end_asking(void)
{
    atomic_fetch_sub(&asking, 1);
}

bool mpiox_service_wanted(const mpiox_hints *hints)
{
    const mpiox_service *service = mpiox_service_current();
    const int index = mpiox_hints_find("mpiox_delegates");

    if (service != NULL && service->mode == MPIOX_SERVICE_SPLIT && hints->source[index] == MPIOX_HINT_DEFAULT)
        return true;
    return mpiox_service_count(hints->delegates, 1, 1) > 0;
}

const char *mpiox_service_reason(void)
{
    return own.reason;
}

/* ---- one mode ---------------------------------------------------------------------------------------------------- */

const char *mpiox_service_mode_name(mpiox_service_mode mode)
{
    static const char *const names[] = {"none", "spawn", "split", "process", "thread"};

    return names[mode];
}

/* All ranks become clients, or none. *error: of the lowest rank that could not. */
static int join(const mpiox_service_plan *plan, const mpiox_announcement *announced, mpiox_error *error)
{
    mpiox_error mine = {.code = MPIOX_OK};
    mpiox_topology *topology = plan->topology;
    int code = mpiox_announcements_code(announced, plan->count, error);

    if (code != MPIOX_OK)
        return code;
    const mpiox_service_patience patience = {.seconds = plan->report_s, .rank = topology->rank};
    mpiox_service_starting_for("it connects to them");
    mine.code = mpiox_service_join(own.delegates, announced, plan->count, topology->node, plan->seconds, &patience,
                                   &mine);
    mpiox_service_starting_for(NULL);
    code = mpiox_topology_agree_error(topology, &mine);
    if (code != MPIOX_OK) {
        *error = mine;
        mpiox_service_leave();
    }
    return code;
}

/* On ranks that go on; in a split the others call start_own(). Collective over plan->topology. */
static int join_hosted(const mpiox_service_plan *plan, mpiox_announcement *announced, mpiox_error *error)
{
    const int code = mpiox_announcements_gather(plan->topology, announced, plan->count);

    return code == MPIOX_OK ? join(plan, announced, error) : code;
}

static int try_processes(const mpiox_service_plan *plan, mpiox_announcement *announced, mpiox_error *error)
{
    int code;

    mpiox_service_starting_for("the process of a delegate has not answered");
    mpiox_service_process_start(plan, announced);
    mpiox_service_starting_for(NULL);
    code = join_hosted(plan, announced, error);
    mpiox_service_process_release(code == MPIOX_OK);
    return code;
}

static int try_threads(const mpiox_service_plan *plan, mpiox_announcement *announced, mpiox_error *error)
{
    int code;

    mpiox_service_starting_for("its thread has not started one");
    mpiox_service_thread_start(plan, announced);
    mpiox_service_starting_for(NULL);
    code = join_hosted(plan, announced, error);
    if (code == MPIOX_OK)
        mpiox_service_thread_seal();
    else
        mpiox_service_thread_cancel();
    return code;
}

static int try_spawn(const mpiox_service_plan *plan, const char *hosts, mpiox_announcement *announced,
                     mpiox_error *error)
{
    mpiox_service_spawned spawned;
    int code = mpiox_service_spawn_start(plan, hosts, announced, &spawned, error);

    if (code == MPIOX_OK)
        code = join(plan, announced, error);
    mpiox_service_spawn_release(&spawned, code == MPIOX_OK);
    mpiox_topology_all(plan->topology, true); /* no rank spawns before rank 0 has found their slots free again */
    return code;
}

/* A folder without room for a cache costs speed, not data: rank 0 prints the first such delegate, and how many more
 * there are. */
static void report_folders(const mpiox_service_plan *plan, const mpiox_announcement *announced)
{
    int32_t refused = 0, first = -1;
    char others[32] = "";

    for (int32_t i = plan->count; i-- > 0;) {
        if (announced[i].error.code != MPIOX_OK) {
            refused++;
            first = i;
        }
    }
    if (refused == 0 || plan->topology->rank != 0)
        return;
    if (refused > 1)
        snprintf(others, sizeof others, ", and of %d more,", (int)refused - 1);
    mpiox_print("mpiio_ext: mpiox_delegate_cache_dir=%s: %s (%lld bytes); the cache of I/O delegate %d on %s%s is in "
                "memory, %lld bytes\n",
                plan->orders.server.cache_dirs, strerror(announced[first].error.sys_errno),
                (long long)announced[first].error.length, (int)first, announced[first].host, others,
                (long long)announced[first].cap_bytes);
}

/* The common end of try_mode() and the split: the service as it is now, or why there is none. */
static void conclude(const mpiox_service_plan *plan, mpiox_service_mode mode, const mpiox_announcement *announced,
                     const mpiox_error *error)
{
    char text[TEXT_BYTES];

    if (error->code == MPIOX_OK) {
        if (own.reason[0] == '\0')
            snprintf(own.reason, sizeof own.reason, "%s: as requested", mpiox_service_mode_name(mode));
        report_folders(plan, announced);
        own.count = plan->count;
        own.mode = mode;
        own.page_bytes = announced[0].page_bytes;
        own.cap_bytes = announced[0].cap_bytes;
        return;
    }
    for (int32_t i = 0; own.delegates != NULL && i < plan->count; i++)
        mpiox_process_detach(&own.delegates[i]);
    free(own.delegates);
    own.delegates = NULL;
    snprintf(own.reason, sizeof own.reason, "no %s: %s", mpiox_service_mode_name(mode),
             mpiox_error_text(error, NULL, text, (int64_t)sizeof text));
}

/* Memory for the announcements of the delegates and for the entries of this process; on all ranks or on none. */
static mpiox_announcement *allocate(const mpiox_service_plan *plan, mpiox_error *error)
{
    mpiox_announcement *announced = calloc((size_t)plan->count, sizeof *announced);

    *error = (mpiox_error){.code = MPIOX_OK};
    own.delegates = calloc((size_t)plan->count, sizeof *own.delegates);
    if (mpiox_topology_all(plan->topology, announced != NULL && own.delegates != NULL))
        return announced;
    mpiox_error_set(error, MPIOX_E_NOMEM, 0, -1, -1, "starting delegates");
    free(announced);
    return NULL;
}

/* 0 or MPIOX_E_*, the same on all ranks; then why not is in own.reason. */
static int try_mode(const mpiox_service_plan *plan, const mpiox_hints *hints, mpiox_service_mode mode)
{
    mpiox_error error;
    mpiox_announcement *announced = allocate(plan, &error);

    if (announced != NULL && mode == MPIOX_SERVICE_SPAWN)
        error.code = try_spawn(plan, hints->delegate_hosts, announced, &error);
    else if (announced != NULL)
        error.code = mode == MPIOX_SERVICE_PROCESS ? try_processes(plan, announced, &error)
                                                   : try_threads(plan, announced, &error);
    conclude(plan, mode, announced, &error);
    free(announced);
    return error.code;
}

/* ---- all modes --------------------------------------------------------------------------------------------------- */

typedef struct opening_word { /* rank 0's message to the others */
    mpiox_topology_choice choice;
    char id[64];
} opening_word;

typedef struct mode_list {       /* and then */
    mpiox_service_mode modes[4]; /* to be tried in this order; the last is MPIOX_SERVICE_NONE */
    char reason[160];
} mode_list;

static void warn(int rank, const char *reason, mpiox_service_mode instead)
{
    if (rank != 0)
        return;
    if (instead == MPIOX_SERVICE_NONE)
        mpiox_print("mpiio_ext: no I/O delegates (%s): files are accessed without them\n", reason);
    else
        mpiox_print("mpiio_ext: I/O delegates: %s: mode %s is in force\n", reason, mpiox_service_mode_name(instead));
}

/* The modes to be tried, in this order. Rank 0. */
static void choose_modes(mpiox_delegate_start wanted, mode_list *list)
{
    static const char *const names[] = {"spawn", "spawn", "split", "process", "thread"};
    const bool spawns = wanted == MPIOX_START_SPAWN || wanted == MPIOX_START_AUTO;
    const char *process_refusal = mpiox_service_process_refusal(), *refusal = NULL;
    int n = 0;

    if (wanted == MPIOX_START_SPLIT)
        refusal = "a program does so itself, by mpiio_ext_group_split()";
    else if (wanted != MPIOX_START_THREAD)
        refusal = spawns ? mpiox_service_spawn_refusal() : process_refusal;
    if (spawns && refusal == NULL)
        list->modes[n++] = MPIOX_SERVICE_SPAWN;
    if (wanted != MPIOX_START_THREAD && process_refusal == NULL)
        list->modes[n++] = MPIOX_SERVICE_PROCESS;
    list->modes[n++] = MPIOX_SERVICE_THREAD;
    list->modes[n] = MPIOX_SERVICE_NONE;
    if (refusal == NULL)
        return;
    snprintf(list->reason, sizeof list->reason, "no %s: %s", names[wanted], refusal);
    if (wanted != MPIOX_START_AUTO)
        warn(0, list->reason, list->modes[0]);
}

/* False: nothing can be started with these settings. The same on all ranks. */
static bool make_plan(mpiox_topology *topology, const mpiox_hints *hints, mpiox_service_plan *plan)
{
    const char *reason = "";

    own.hints = *hints;
    own.process = getpid();
    mpiox_service_plan_make(hints, topology, own.id, plan);
    if (mpiox_service_plan_check(plan, hints, topology->rank == 0, &reason))
        return true;
    snprintf(own.reason, sizeof own.reason, "%s", reason);
    warn(topology->rank, own.reason, MPIOX_SERVICE_NONE);
    return false;
}

static bool start_on(mpiox_topology *topology, const mpiox_hints *hints)
{
    mpiox_service_plan plan;
    mode_list list;

    memset(&list, 0, sizeof list);
    if (!make_plan(topology, hints, &plan))
        return false;
    if (topology->rank == 0)
        choose_modes(hints->delegate_mode, &list);
    if (PMPI_Bcast(&list, sizeof list, MPI_BYTE, 0, topology->comm) != MPI_SUCCESS)
        return false;
    memcpy(own.reason, list.reason, sizeof own.reason);
    for (int i = 0; list.modes[i] != MPIOX_SERVICE_NONE; i++) {
        if (try_mode(&plan, hints, list.modes[i]) == MPIOX_OK)
            return true;
        warn(topology->rank, own.reason, list.modes[i + 1]);
    }
    return false;
}

static void name_service(char *id, size_t bytes)
{
    char host[32] = "";

    gethostname(host, sizeof host - 1);
    snprintf(id, bytes, "%s.%ld.%lld", host, (long)getpid(), (long long)time(NULL) % 1000000);
}

/* Broadcast rank 0's choice, and find which ranks share a node. Collective over comm; NULL: that is impossible. */
static mpiox_topology *meet(MPI_Comm comm, const mpiox_hints *hints, opening_word *word)
{
    mpiox_topology *topology = NULL;
    int rank = 0;

    memset(word, 0, sizeof *word);
    PMPI_Comm_rank(comm, &rank);
    mpiox_service_starting_begin(&(mpiox_service_patience){.seconds = hints->delegate_report, .rank = rank});
    if (rank == 0) {
        word->choice = mpiox_topology_choose(comm, hints->ranks_per_node);
        name_service(word->id, sizeof word->id);
    }
    snprintf(own.reason, sizeof own.reason, "the library could not find out which ranks share a node");
    if (PMPI_Bcast(word, sizeof *word, MPI_BYTE, 0, comm) != MPI_SUCCESS ||
        mpiox_topology_join(comm, &word->choice, &topology) != MPIOX_OK)
        return NULL;
    if (mpiox_topology_own_comm(topology, comm) != MPIOX_OK) {
        mpiox_topology_release(topology);
        return NULL;
    }
    memcpy(own.id, word->id, sizeof own.id);
    own.nodes = topology->n_nodes;
    own.reason[0] = '\0';
    return topology;
}

/* comm: of the program. */
static void note_place(MPI_Comm comm)
{
    int rank = 0, size = 1;

    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    own.first = rank == 0;
    own.ranks = size;
}

/* Collective over comm; the same answer on all ranks. */
static bool start(MPI_Comm comm, const mpiox_hints *hints)
{
    opening_word word;
    mpiox_topology *topology = meet(comm, hints, &word);
    bool started;

    started = topology != NULL && start_on(topology, hints);
    if (started)
        note_place(comm);
    mpiox_topology_release(topology);
    mpiox_service_starting_end();
    return started;
}

/* ---- asking for the service -------------------------------------------------------------------------------------- */

static bool is_world(MPI_Comm comm)
{
    int size = 0, all = 0, result = MPI_UNEQUAL;

    PMPI_Comm_size(comm, &size);
    PMPI_Comm_size(MPI_COMM_WORLD, &all);
    return size == all && PMPI_Comm_compare(comm, MPI_COMM_WORLD, &result) == MPI_SUCCESS && result != MPI_UNEQUAL;
}

/* This opening's state, claimed if the service may be started by it. */
static state claim(bool able)
{
    pthread_mutex_lock(&lock);
    const state found = now;
    if (found == UNTRIED && able)
        now = CLAIMED;
    pthread_mutex_unlock(&lock);
    return found;
}

static void settle(state result)
{
    pthread_mutex_lock(&lock);
    now = result;
    atomic_store(&is_there, now == PRESENT);
    if (now == PRESENT)
        atomic_store(&mpiox_service_was_there, true);
    pthread_mutex_unlock(&lock);
}

/* The lowest and the highest state of the ranks of comm. */
static bool compare_states(MPI_Comm comm, state mine, int *lowest, int *highest)
{
    int values[] = {(int)mine, -(int)mine};

    if (PMPI_Allreduce(MPI_IN_PLACE, values, 2, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS)
        return false;
    *lowest = values[0];
    *highest = -values[1];
    return true;
}

/* MPI_COMM_WORLD can be used, and no other process has spawned this one. */
static const char *why_impossible(void)
{
    int begun = 0, ended = 0;
    MPI_Comm parent = MPI_COMM_NULL;

    PMPI_Initialized(&begun);
    PMPI_Finalized(&ended);
    if (!begun || ended)
        return "MPI runs by a session alone, without MPI_Init";
    PMPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL)
        return "processes that a program has spawned start none";
    return NULL;
}

mpiox_service *mpiox_service_get(MPI_Comm comm, const mpiox_hints *hints, const char **reason)
{
    const char *impossible = why_impossible();
    const bool world = impossible == NULL && is_world(comm);
    const state mine = claim(world);
    int lowest = ABSENT, highest = ABSENT;
    const bool known = compare_states(comm, mine, &lowest, &highest);

    if (known && lowest == UNTRIED && highest == UNTRIED && world) {
        const bool started = start(comm, hints);

        if (started)
            mpiox_live_delegates(own.id, own.hints.arbiter);
        settle(started ? PRESENT : ABSENT);
        lowest = highest = started ? PRESENT : ABSENT;
    } else if (mine == UNTRIED && world) {
        settle(UNTRIED);
    }
    *reason = own.reason;
    if (known && lowest == PRESENT && highest == PRESENT)
        return &own;
    if (impossible != NULL)
        *reason = impossible;
    else if (!known || lowest != highest)
        *reason = "they are starting for another file";
    else if (!world && lowest == UNTRIED)
        *reason = "they start when a file is opened by all ranks of MPI_COMM_WORLD";
    return NULL;
}

/* For a file whose name fits no pattern but "*". Problems of the hints are reported when a file is opened. */
static void resolve(mpiox_hints *hints)
{
    mpiox_hints_resolve("", MPI_INFO_NULL, hints, NULL, NULL);
}

bool mpiox_service_is_asked_for(void)
{
    mpiox_hints hints;

    resolve(&hints);
    return mpiox_service_wanted(&hints) && why_impossible() == NULL;
}

void mpiox_service_init(void)
{
    mpiox_hints hints;
    const char *reason;

    memset(&hints, 0, sizeof hints);
    resolve(&hints);
    if (PMPI_Bcast(&hints, sizeof hints, MPI_BYTE, 0, MPI_COMM_WORLD) == MPI_SUCCESS && mpiox_service_wanted(&hints) &&
        hints.delegate_mode != MPIOX_START_SPLIT) /* the program has yet to call mpiox_service_split() */
        mpiox_service_get(MPI_COMM_WORLD, &hints, &reason);
}

/* ---- split ------------------------------------------------------------------------------------------------------- */

/* On a rank that serves. */
static int start_own(const mpiox_service_plan *plan, int32_t index, mpiox_announcement *announced, mpiox_error *error)
{
    int code;

    mpiox_service_starting_for("the process of a delegate has not answered");
    mpiox_service_split_start(plan, index, &announced[index]);
    mpiox_service_starting_for(NULL);
    code = mpiox_announcements_gather(plan->topology, announced, plan->count);
    if (code == MPIOX_OK)
        code = mpiox_announcements_code(announced, plan->count, error);
    if (code == MPIOX_OK)
        code = mpiox_topology_agree_error(plan->topology, error); /* with join() of the others */
    return code;
}

static int32_t index_of(const int32_t *ranks, int32_t count, int32_t rank)
{
    for (int32_t i = 0; i < count; i++) {
        if (ranks[i] == rank)
            return i;
    }
    return -1;
}

/* Returns whether this rank serves; own.mode shows whether there are delegates. */
static bool split_on(mpiox_topology *topology, const mpiox_hints *hints)
{
    mpiox_service_plan plan;
    mpiox_error error;
    int32_t index = -1;

    if (!make_plan(topology, hints, &plan))
        return false;
    mpiox_announcement *announced = allocate(&plan, &error);
    int32_t *ranks = calloc((size_t)plan.count, sizeof *ranks);

    if (announced != NULL) {
        mpiox_error mine = {.code = ranks != NULL ? mpiox_service_split_ranks(&plan, ranks) : MPIOX_E_NOMEM};

        error.code = mpiox_topology_agree_error(topology, &mine);
        if (error.code == MPIOX_OK) {
            index = index_of(ranks, plan.count, topology->rank);
            error.code = index >= 0 ? start_own(&plan, index, announced, &error)
                                    : join_hosted(&plan, announced, &error);
        }
    }
    conclude(&plan, MPIOX_SERVICE_SPLIT, announced, &error);
    if (error.code != MPIOX_OK)
        warn(topology->rank, own.reason, MPIOX_SERVICE_NONE);
    if (error.code != MPIOX_OK && index >= 0)
        mpiox_service_split_serve(false);
    free(ranks);
    free(announced);
    return error.code == MPIOX_OK && index >= 0;
}

/* No other opening starts the service, which all ranks have claimed. */
static int split(MPI_Comm comm, const mpiox_hints *hints, MPI_Comm *mine)
{
    opening_word word;
    mpiox_topology *topology = meet(comm, hints, &word);
    bool serves = false;
    int rank = 0, result;

    PMPI_Comm_rank(comm, &rank);
    if (topology != NULL)
        serves = split_on(topology, hints);
    const bool present = topology != NULL && own.mode == MPIOX_SERVICE_SPLIT;
    mpiox_topology_release(topology);
    result = PMPI_Comm_split(comm, serves ? MPI_UNDEFINED : 0, rank, mine);
    mpiox_service_starting_end();
    settle(!present || serves ? ABSENT : PRESENT);
    if (present && !serves && result == MPI_SUCCESS)
        note_place(*mine);
    if (serves) {
        mpiox_service_split_serve(true);
        snprintf(own.reason, sizeof own.reason, "this rank was a delegate");
    }
    return result == MPI_SUCCESS ? MPIOX_OK : MPIOX_E_MPI;
}

int mpiox_service_split(MPI_Comm comm, int delegates, MPI_Comm *mine)
{
    int size = 0, rank = 0, lowest = ABSENT, highest = ABSENT;
    mpiox_hints hints;

    *mine = MPI_COMM_NULL;
    if (why_impossible() != NULL)
        return MPIOX_E_UNSUPPORTED;
    PMPI_Comm_size(comm, &size);
    PMPI_Comm_rank(comm, &rank);
    if (delegates < 0 || delegates >= size)
        return MPIOX_E_ARG;
    if (delegates == 0)
        return PMPI_Comm_split(comm, 0, rank, mine) == MPI_SUCCESS ? MPIOX_OK : MPIOX_E_MPI;
    memset(&hints, 0, sizeof hints);
    resolve(&hints);
    snprintf(hints.delegates, sizeof hints.delegates, "%d", delegates);
    const state found = claim(true);
    if (!compare_states(comm, found, &lowest, &highest) || lowest != UNTRIED || highest != UNTRIED) {
        if (found == UNTRIED)
            settle(UNTRIED);
        return MPIOX_E_ARG;
    }
    if (PMPI_Bcast(&hints, sizeof hints, MPI_BYTE, 0, comm) != MPI_SUCCESS) {
        settle(ABSENT);
        return MPIOX_E_MPI;
    }
    return split(comm, &hints, mine);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Delegates of other nodes get no requests any more. A request under way has a second; then this continues. */
static void leave_others(void)
{
    const double until = mpiox_now() + 1;

    for (int32_t i = 0; i < own.count; i++)
        atomic_store(&own.delegates[i].left, !own.delegates[i].local);
    for (bool cut = false; atomic_load(&asking) > 0; poll(NULL, 0, 1)) {
        for (int32_t i = 0; i < own.count && !cut && mpiox_now() > until; i++) {
            if (own.delegates[i].link != NULL)
                mpiox_link_give_up(own.delegates[i].link);
        }
        cut |= mpiox_now() > until;
    }
}

void mpiox_service_finalize(void)
{
    if (mpiox_service_current() == NULL)
        return;
    settle(ABSENT);
    leave_others();
    mpiox_service_leave();
    if (own.mode == MPIOX_SERVICE_THREAD)
        mpiox_service_thread_await();
    if (own.mode == MPIOX_SERVICE_PROCESS)
        mpiox_service_process_await(own.delegates, own.hints.delegate_report);
    snprintf(own.reason, sizeof own.reason, "MPI_Finalize has begun");
}
