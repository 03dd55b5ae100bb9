/* mpiox_service_spawn.c - see mpiox_service_spawn.h. */
#include "mpiox_service_spawn.h"

#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_print.h"
#include "mpiox_process_child.h"
#include "mpiox_service_check.h"
#include "mpiox_service_heap.h"
#include "mpiox_service_process.h"
#include "mpiox_service_starting.h"

static const double leaving_s = 5; /* limit on the exit of spawned processes */
static const double call_s = 30;   /* and to reach rank 0 */

enum { HOST_BYTES = 64, TAG_TEXT = 1 };

const char *mpiox_service_spawn_refusal(void)
{
    const char *reason;

    return mpiox_service_check_launcher(&reason) == MPIOX_LAUNCHER_NONE ? reason : mpiox_service_process_refusal();
}

/* ---- hosts ------------------------------------------------------------------------------------------------------- */

/* Rank 0's facts of the job's hosts. */
typedef struct host_table {
    char (*name)[HOST_BYTES];               /* [ranks] by gethostname() */
    char (*alias)[HOST_BYTES];              /* [ranks] by the launcher */
    mpiox_process_launcher_id *launcher_id; /* [ranks] */
    int32_t *place; /* [ranks] of its host among the job's hosts, in the order of their lowest ranks */
    int32_t hosts, ranks;
} host_table;

static void free_hosts(host_table *table)
{
    free(table->name);
    free(table->alias);
    free(table->place);
    free(table->launcher_id);
    *table = (host_table){.name = NULL};
}

static void own_names(char *name, char *alias)
{
    const char *host = getenv("PMI_HOSTNAME"); /* Hydra's name for this host */

    memset(name, 0, HOST_BYTES);
    memset(alias, 0, HOST_BYTES);
    gethostname(name, HOST_BYTES - 1);
    snprintf(alias, HOST_BYTES, "%s", host != NULL && host[0] != '\0' ? host : name);
}

static void place_hosts(host_table *table)
{
    for (int32_t r = 0; r < table->ranks; r++) {
        int32_t other = 0;

        while (strcmp(table->name[other], table->name[r]) != 0)
            other++;
        table->place[r] = other < r ? table->place[other] : table->hosts++;
    }
}

/* Collective; only rank 0 gets a table. 0 or MPIOX_E_*, not agreed. */
static int gather_hosts(const mpiox_topology *topology, host_table *table)
{
    const size_t ranks = topology->rank == 0 ? (size_t)topology->size : 1;
    const mpiox_process_launcher_id own = mpiox_process_launcher_id_self();
    char name[HOST_BYTES], alias[HOST_BYTES];
    int code = MPI_SUCCESS;

    *table = (host_table){.ranks = topology->size};
    table->name = calloc(ranks, HOST_BYTES);
    table->alias = calloc(ranks, HOST_BYTES);
    table->place = calloc(ranks, sizeof *table->place);
    table->launcher_id = calloc(ranks, sizeof *table->launcher_id);
    if (!mpiox_topology_all((mpiox_topology *)topology,
                            table->name && table->alias && table->place && table->launcher_id))
        return MPIOX_E_NOMEM;
    own_names(name, alias);
    code = PMPI_Gather(name, HOST_BYTES, MPI_CHAR, table->name, HOST_BYTES, MPI_CHAR, 0, topology->comm);
    if (code == MPI_SUCCESS)
        code = PMPI_Gather(alias, HOST_BYTES, MPI_CHAR, table->alias, HOST_BYTES, MPI_CHAR, 0, topology->comm);
    if (code == MPI_SUCCESS)
        code = PMPI_Gather(&own, sizeof own, MPI_BYTE, table->launcher_id, sizeof own, MPI_BYTE, 0, topology->comm);
    if (code != MPI_SUCCESS)
        return MPIOX_E_MPI;
    if (topology->rank == 0)
        place_hosts(table);
    return MPIOX_OK;
}

/* Element `index` of a list a,b,c or a;b;c, which is taken round and round. */
static void element(const char *list, int32_t index, char *out)
{
    int32_t count = 1;

    for (const char *at = list; *at != '\0'; at++)
        count += *at == ',' || *at == ';';
    for (index %= count; index > 0; index--)
        list += strcspn(list, ",;") + 1;
    snprintf(out, HOST_BYTES, "%.*s", (int)strcspn(list, ",;"), list);
}

static int32_t rank_on(const host_table *table, const char *host)
{
    for (int32_t r = 0; r < table->ranks; r++) {
        if (strcmp(table->name[r], host) == 0 || strcmp(table->alias[r], host) == 0)
            return r;
    }
    return -1;
}

typedef struct target {    /* where a delegate is wanted */
    char host[HOST_BYTES]; /* as the launcher knows it */
    int32_t rank;          /* a rank there, or -1 */
} target;

static int not_found(const char *host, mpiox_error *error)
{
    char what[sizeof error->what];

    snprintf(what, sizeof what, "host %.63s of mpiox_delegate_hosts", host);
    return mpiox_error_set(error, MPIOX_E_UNSUPPORTED, 0, -1, -1, what);
}

/* A host that the launcher does not know would end the job. Rank 0. */
static int find_target(const mpiox_service_plan *plan, const host_table *table, const char *wanted, int32_t delegate,
                       target *out, mpiox_error *error)
{
    const char *reason;
    const bool by_place = mpiox_service_check_launcher(&reason) == MPIOX_LAUNCHER_ORTE;
    struct addrinfo *found = NULL;

    out->rank = mpiox_service_plan_rank(plan, delegate, false);
    if (wanted[0] != '\0') {
        element(wanted, delegate, out->host);
        if (by_place && out->host[0] == '+') /* of mpirun's own list, which may contain hosts without ranks */
            return MPIOX_OK;
        out->rank = rank_on(table, out->host);
    }
    if (out->rank >= 0) {
        if (by_place)
            snprintf(out->host, HOST_BYTES, "+n%d", (int)table->place[out->rank]);
        else
            snprintf(out->host, HOST_BYTES, "%s", table->alias[out->rank]);
        return MPIOX_OK;
    }
    if (by_place || getaddrinfo(out->host, NULL, NULL, &found) != 0)
        return not_found(out->host, error);
    freeaddrinfo(found);
    return MPIOX_OK;
}

/* The node of a delegate follows from the host that it announces. Rank 0. */
static void place_delegate(const mpiox_service_plan *plan, const host_table *table, mpiox_announcement *announced)
{
    const mpiox_topology *t = plan->topology;
    const int32_t node = mpiox_service_plan_node(plan, announced->index);

    if (strcmp(table->name[t->node_ranks[t->node_start[node]]], announced->host) == 0) {
        announced->node = node;
        return;
    }
    const int32_t rank = rank_on(table, announced->host);
    announced->node = rank >= 0 ? t->node_of[rank] : -1;
}

/* ---- rank 0 spawns ----------------------------------------------------------------------------------------------- */

/* A communicator of rank 0 alone whose errors come back, whatever the program has set for MPI_COMM_SELF. */
static int own_comm(MPI_Comm *comm)
{
    if (PMPI_Comm_split(MPI_COMM_SELF, 0, 0, comm) != MPI_SUCCESS)
        return MPIOX_E_MPI;
    PMPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
    return MPIOX_OK;
}

/* The arguments of a delegate's command line: the MPI library, where it is not linked to one (mpiox_any_mpi.h). */
static char **arguments(void)
{
    static char *list[2];

#ifdef MPIOX_ANY_MPI
    list[0] = (char *)mpiox_any_mpi_library();
#endif
    return list;
}

/* Each process is an application of its own: Open MPI 4.1 cannot start one application that spans hosts. */
static int spawn_each(int32_t count, const char *path, const target *targets, const char *text, MPI_Comm comm,
                      MPI_Comm *inter)
{
    char **commands = calloc((size_t)count, sizeof *commands);
    char ***lists = calloc((size_t)count, sizeof *lists);
    int *ones = calloc((size_t)count, sizeof *ones);
    MPI_Info *infos = calloc((size_t)count, sizeof *infos);
    char variable[MPIOX_SERVICE_CALL_TEXT + sizeof MPIOX_SERVICE_CALL_VARIABLE + 1];
    int code = MPI_ERR_OTHER;

    snprintf(variable, sizeof variable, "%s=%s", MPIOX_SERVICE_CALL_VARIABLE, text);
    for (int32_t i = 0; commands && lists && ones && infos && i < count; i++) {
        commands[i] = (char *)path;
        lists[i] = arguments();
        ones[i] = 1;
        PMPI_Info_create(&infos[i]);
        PMPI_Info_set(infos[i], "host", targets[i].host);
        PMPI_Info_set(infos[i], "map_by", "slot:OVERSUBSCRIBE");
        PMPI_Info_set(infos[i], "bind_to", "none");
        PMPI_Info_set(infos[i], "env", variable);
    }
    if (commands && lists && ones && infos) {
        code = PMPI_Comm_spawn_multiple(count, commands, lists, ones, infos, 0, comm, inter, MPI_ERRCODES_IGNORE);
        for (int32_t i = 0; i < count; i++)
            PMPI_Info_free(&infos[i]);
    }
    free(commands);
    free(lists);
    free(ones);
    free(infos);
    return code == MPI_SUCCESS ? MPIOX_OK : MPIOX_E_MPI;
}

/* Hydra places all processes of a spawn by one list. */
static int spawn_listed(int32_t count, const char *path, const target *targets, MPI_Comm comm, MPI_Comm *inter)
{
    char *list = calloc((size_t)count, HOST_BYTES + 1);
    MPI_Info info = MPI_INFO_NULL;
    int code = MPI_ERR_OTHER;

    for (int32_t i = 0; list != NULL && i < count; i++) {
        strcat(list, i > 0 ? "," : "");
        strcat(list, targets[i].host);
    }
    if (list != NULL && PMPI_Info_create(&info) == MPI_SUCCESS) {
        PMPI_Info_set(info, "host", list);
        code = PMPI_Comm_spawn(path, arguments(), count, info, 0, comm, inter, MPI_ERRCODES_IGNORE);
        PMPI_Info_free(&info);
    }
    free(list);
    return code == MPI_SUCCESS ? MPIOX_OK : MPIOX_E_MPI;
}

/* Hydra's processes get the address to call. */
static int send_text(const char *text, int32_t count, MPI_Comm inter, mpiox_error *error)
{
    for (int32_t i = 0; i < count; i++) {
        if (PMPI_Send(text, (int)strlen(text) + 1, MPI_CHAR, i, TAG_TEXT, inter) != MPI_SUCCESS)
            return mpiox_error_set(error, MPIOX_E_MPI, 0, -1, -1, "exchanging messages with spawned delegates");
    }
    return MPIOX_OK;
}

static int spawn(const mpiox_service_plan *plan, const target *targets, const char *text, MPI_Comm *inter,
                 mpiox_error *error)
{
    MPI_Comm comm = MPI_COMM_NULL;
    char path[PATH_MAX];
    const char *reason;
    const bool orte = mpiox_service_check_launcher(&reason) == MPIOX_LAUNCHER_ORTE;
    int code = mpiox_process_executable(path, sizeof path, error);

    if (code != MPIOX_OK)
        return code;
    code = own_comm(&comm);
    if (code == MPIOX_OK) {
        code = orte ? spawn_each(plan->count, path, targets, text, comm, inter)
                    : spawn_listed(plan->count, path, targets, comm, inter);
        PMPI_Comm_free(&comm);
    }
    if (code != MPIOX_OK)
        return mpiox_error_set(error, code, 0, -1, -1, "MPI_Comm_spawn");
    PMPI_Comm_set_errhandler(*inter, MPI_ERRORS_RETURN);
    return orte ? MPIOX_OK : send_text(text, plan->count, *inter, error);
}

static mpiox_process_orders orders_of(const mpiox_service_plan *plan, const host_table *table, const target *where,
                                      int32_t delegate)
{
    mpiox_process_orders orders = mpiox_service_plan_orders(plan, delegate, "spawn");

    if (where->rank >= 0)
        orders.launcher_id = table->launcher_id[where->rank];
    return orders;
}

/* Orders to all, announcements from all, within the deadlines. */
static int talk(const mpiox_service_plan *plan, const host_table *table, const target *targets,
                mpiox_service_call *call, mpiox_announcement *announced, mpiox_error *error)
{
    mpiox_process_orders *orders = calloc((size_t)plan->count, sizeof *orders);
    int code;

    for (int32_t i = 0; orders != NULL && i < plan->count; i++)
        orders[i] = orders_of(plan, table, &targets[i], i);
    code = orders != NULL ? mpiox_service_call_orders(call, orders, plan->seconds, announced, error)
                          : mpiox_error_set(error, MPIOX_E_NOMEM, 0, -1, -1, "spawning delegates");
    free(orders);
    return code;
}

/* Those that MPI has spawned on this host. */
static void remember_spawned(const mpiox_announcement *announced, int32_t count, mpiox_service_spawned *out)
{
    char name[HOST_BYTES], alias[HOST_BYTES];

    own_names(name, alias);
    out->pids = calloc((size_t)count, sizeof *out->pids);
    for (int32_t i = 0; out->pids != NULL && i < count; i++) {
        if (strcmp(announced[i].host, name) == 0)
            out->pids[out->count++] = announced[i].spawned_pid;
    }
}

/* Rank 0. */
static int start_all(const mpiox_service_plan *plan, const char *wanted, const host_table *table,
                     mpiox_announcement *announced, mpiox_service_spawned *out, mpiox_error *error)
{
    mpiox_rendezvous_place place = plan->orders.place;
    target *targets = calloc((size_t)plan->count, sizeof *targets);
    int code = targets != NULL ? MPIOX_OK : mpiox_error_set(error, MPIOX_E_NOMEM, 0, -1, -1, "spawning delegates");
    char text[MPIOX_SERVICE_CALL_TEXT];

    place.loopback = table->hosts == 1 && wanted[0] == '\0';
    for (int32_t i = 0; code == MPIOX_OK && i < plan->count; i++)
        code = find_target(plan, table, wanted, i, &targets[i], error);
    if (code == MPIOX_OK)
        code = mpiox_service_call_open(plan->count, &place, &out->call, text, error);
    mpiox_service_starting_for("MPI_Comm_spawn has not returned");
    if (code == MPIOX_OK)
        code = spawn(plan, targets, text, &out->inter, error);
    mpiox_service_starting_for("the spawned delegates have not connected, or have not reported that they run");
    if (code == MPIOX_OK)
        code = talk(plan, table, targets, &out->call, announced, error);
    mpiox_service_starting_for(NULL);
    free(targets);
    if (code == MPIOX_OK) {
        remember_spawned(announced, plan->count, out);
        code = mpiox_announcements_code(announced, plan->count, error);
    }
    for (int32_t i = 0; code == MPIOX_OK && i < plan->count; i++)
        place_delegate(plan, table, &announced[i]);
    return code;
}

int mpiox_service_spawn_start(const mpiox_service_plan *plan, const char *hosts, mpiox_announcement *announced,
                              mpiox_service_spawned *out, mpiox_error *error)
{
    const mpiox_topology *topology = plan->topology;
    host_table table = {.name = NULL};
    mpiox_error first = {.code = gather_hosts(topology, &table)};

    *out = (mpiox_service_spawned){.inter = MPI_COMM_NULL};
    if (first.code != MPIOX_OK)
        mpiox_error_set(&first, first.code, 0, -1, -1, "gathering the ranks' hosts");
    else if (topology->rank == 0)
        first.code = start_all(plan, hosts, &table, announced, out, &first);
    free_hosts(&table);
    mpiox_topology_agree_error(plan->topology, &first);
    if (first.code == MPIOX_OK &&
        PMPI_Bcast(announced, plan->count * (int)sizeof *announced, MPI_BYTE, 0, topology->comm) != MPI_SUCCESS)
        mpiox_error_set(&first, MPIOX_E_MPI, 0, -1, -1, "announcing delegates");
    *error = first;
    return first.code;
}

/* Their slots are free when mpirun has collected them: the program may spawn next. */
static void await_spawned(const mpiox_service_spawned *spawned)
{
    const double until = mpiox_now() + leaving_s;
    const struct timespec step = {.tv_nsec = 2 * 1000000}, last = {.tv_nsec = 30 * 1000000};
    const char *reason;
    char path[64];

    if (mpiox_service_check_launcher(&reason) != MPIOX_LAUNCHER_ORTE)
        return;
    for (int32_t i = 0; spawned->pids != NULL && i < spawned->count; i++) {
        snprintf(path, sizeof path, "/proc/%lld", (long long)spawned->pids[i]);
        while (access(path, F_OK) == 0 && mpiox_now() < until)
            nanosleep(&step, NULL);
    }
    nanosleep(&last, NULL); /* until mpirun has read the end of their output, too */
}

void mpiox_service_spawn_release(mpiox_service_spawned *spawned, bool go)
{
    mpiox_service_call_close(&spawned->call, go);
    if (spawned->inter == MPI_COMM_NULL)
        return;
    mpiox_service_starting_for("MPI_Comm_disconnect from the spawned delegates has not returned");
    PMPI_Comm_disconnect(&spawned->inter); /* which each of them calls, whatever has happened */
    mpiox_service_starting_for("the spawned delegates have not exited");
    await_spawned(spawned);
    mpiox_service_starting_for(NULL);
    free(spawned->pids);
    spawned->pids = NULL;
    mpiox_service_heap_settle();
}

/* ---- a spawned process ------------------------------------------------------------------------------------------- */

/* Rank 0's message, sent with the spawn or after it. */
static void receive_text(MPI_Comm parent, char *text)
{
    const char *place = getenv(MPIOX_SERVICE_CALL_VARIABLE);

    memset(text, 0, MPIOX_SERVICE_CALL_TEXT);
    if (place != NULL)
        snprintf(text, MPIOX_SERVICE_CALL_TEXT, "%s", place);
    else
        PMPI_Recv(text, MPIOX_SERVICE_CALL_TEXT - 1, MPI_CHAR, 0, TAG_TEXT, parent, MPI_STATUS_IGNORE);
}

/* Start the delegate that rank 0 wants of this process. */
static void start_delegate(const char *text, int index)
{
    mpiox_process_child process = {.socket = -1};
    mpiox_process_orders orders;
    mpiox_announcement announced;
    const int socket = mpiox_service_call_make(text, index, call_s, &orders);
    bool go;

    if (socket < 0)
        return; /* rank 0 does not hang either */
    unsetenv(MPIOX_SERVICE_CALL_VARIABLE);
    mpiox_process_child_start(&orders, false, orders.seconds, &process, &announced);
    announced.spawned_pid = getpid();
    go = mpiox_service_call_answer(socket, &announced);
    if (announced.code == MPIOX_OK)
        mpiox_process_child_release(&process, go);
    close(socket);
}

int mpiox_service_spawn_be_child(const char *library)
{
    char text[MPIOX_SERVICE_CALL_TEXT];
    MPI_Comm parent;
    int rank = 0;

#ifdef MPIOX_ANY_MPI /* before any MPI call: Open MPI's MPI_COMM_NULL is an address that the loader has to find, too */
    mpiox_any_mpi_open(library != NULL ? library : "");
#else
    (void)library;
#endif
    parent = MPI_COMM_NULL; /* Open MPI's is an object of its library, which is open from here on */
    if (PMPI_Init(NULL, NULL) != MPI_SUCCESS || PMPI_Comm_get_parent(&parent) != MPI_SUCCESS)
        return EXIT_FAILURE;
    if (parent == MPI_COMM_NULL) {
        mpiox_print("mpiio-ext-delegate: only the library starts this program\n");
        PMPI_Finalize();
        return EXIT_FAILURE;
    }
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    receive_text(parent, text);
    start_delegate(text, rank);
    PMPI_Comm_disconnect(&parent);
    PMPI_Finalize();
    return EXIT_SUCCESS;
}
