/* mpiox_preload_check.c - see mpiox_preload_check.h. */
#include "mpiox_preload_check.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 1 << 18, ANCESTORS = 8, CHUNK = 256, UNKNOWN = -1 };

/* The variables of a launcher: those that are the same in all ranks of a job and differ between two jobs, and the one
 * that contains the rank in MPI_COMM_WORLD. Hydra names no job: its ranks descend from one proxy. */
static const struct launcher {
    const char *rank, *same[3];
    const char *local_size; /* how many ranks are on this node; need not be set */
    const char *ancestor;   /* NULL: the variables are enough */
} launchers[] = {
    {"PMIX_RANK", {"PMIX_NAMESPACE", NULL}, "OMPI_COMM_WORLD_LOCAL_SIZE", NULL},
    {"PMI_RANK", {"PMI_SIZE", "PMI_SPAWNED", NULL}, "MPI_LOCALNRANKS", "hydra_pmi_proxy"},
};

typedef struct local_rank { /* the state of a rank of this node */
    int rank;
    bool has_library, has_mpi;
} local_rank;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool looked;
static int own;      /* this process's number in /proc */
static int *lacking; /* ranks of MPI_COMM_WORLD that were started without the library */
static int lacking_count;

bool mpiox_preload_check_world(void)
{
    int begun = 0, ended = 0;

    PMPI_Initialized(&begun);
    PMPI_Finalized(&ended);
    return begun && !ended;
}

/* ---- processes of this node -------------------------------------------------------------------------------------- */

/* The file /proc/PID/NAME, cut at `bytes` - 1; 0 when it cannot be read. */
static size_t read_proc(int pid, const char *name, char *text, size_t bytes)
{
    char path[64];
    size_t used = 0;
    ssize_t got = 1;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && used + 1 < bytes && (got = read(fd, text + used, bytes - 1 - used)) > 0)
        used += (size_t)got;
    if (fd >= 0)
        close(fd);
    text[used] = '\0';
    return used;
}

/* The value of a variable in the text of /proc/PID/environ; NULL: it is not set. */
static const char *variable(const char *text, size_t bytes, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = text; at < text + bytes; at += strlen(at) + 1) {
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    }
    return NULL;
}

/* The process of this name from which pid descends, or 0. */
static int ancestor(int pid, const char *name)
{
    char text[512];

    for (int i = 0; i < ANCESTORS && pid > 1; i++) {
        const char *begin, *end;

        if (read_proc(pid, "stat", text, sizeof text) == 0 || (begin = strchr(text, '(')) == NULL ||
            (end = strrchr(text, ')')) == NULL)
            return 0;
        if ((size_t)(end - begin - 1) == strlen(name) && strncmp(begin + 1, name, strlen(name)) == 0)
            return pid;
        if (sscanf(end + 1, " %*c %d", &pid) != 1)
            return 0;
    }
    return 0;
}

/* This process's own number in /proc, which may be that of another process-id namespace than getpid()'s. 0: unknown. */
static int own_number(void)
{
    char text[32] = "";

    return readlink("/proc/self", text, sizeof text - 1) > 0 ? atoi(text) : 0;
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* The file's name of this library, under whatever name it was loaded. */
static const char *own_name(void)
{
    const char *slash;
    Dl_info info;

    if (dladdr((void *)(uintptr_t)own_name, &info) == 0 || info.dli_fname == NULL)
        return "libmpiio_ext.so";
    slash = strrchr(info.dli_fname, '/');
    return slash != NULL ? slash + 1 : info.dli_fname;
}

/* Does the text of an environment show that the process was started with this library? */
static bool is_preloaded(const char *text, size_t bytes)
{
    const char *preload = variable(text, bytes, "LD_PRELOAD"), *name = own_name();
    const char *found = preload != NULL ? strstr(preload, name) : NULL;

    return found != NULL && (found == preload || found[-1] == '/') && strchr(": ", found[strlen(name)]) != NULL;
}

/* The rank of a process in this job, or UNKNOWN. `proxy`: this process's own ancestor. *preloaded: its environment
 * shows that it has the library, which takes a tenth of the time of a search in its memory. */
static int rank_of(int pid, const struct launcher *launcher, int proxy, bool *preloaded)
{
    static char text[TEXT_BYTES]; /* under the lock */
    const size_t bytes = read_proc(pid, "environ", text, sizeof text);
    const char *rank = variable(text, bytes, launcher->rank);

    if (rank == NULL)
        return UNKNOWN;
    for (int i = 0; launcher->same[i] != NULL; i++) {
        if (!same_text(variable(text, bytes, launcher->same[i]), getenv(launcher->same[i])))
            return UNKNOWN;
    }
    if (launcher->ancestor != NULL && ancestor(pid, launcher->ancestor) != proxy)
        return UNKNOWN;
    *preloaded = is_preloaded(text, bytes);
    return atoi(rank);
}

/* A line of /proc/PID/maps ends with the path of the mapped file: is it this library, under whatever name it was
 * loaded? The tracer and the library for calls past MPI alone do not count. */
static bool is_own_name(const char *end_of_line)
{
    const char *name = own_name();

    return strncmp(end_of_line, name, strlen(name)) == 0 ||
           (strncmp(end_of_line, "libmpiio_ext", 12) == 0 && end_of_line[12] != '_');
}

/* Which of the two libraries a process has mapped. Their files' names show it: libmpi.so.40, libmpich.so.12, ... */
static void look_at_maps(int pid, local_rank *out)
{
    char path[64], *line = NULL;
    size_t bytes = 0;
    FILE *maps;

    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    maps = fopen(path, "re");
    while (maps != NULL && !out->has_library && getline(&line, &bytes, maps) > 0) {
        const char *slash = strrchr(line, '/');

        if (slash == NULL)
            continue;
        if (is_own_name(slash + 1))
            out->has_library = true;
        else if (strncmp(slash, "/libmpi.", 8) == 0 || strncmp(slash, "/libmpich.", 10) == 0 ||
                 strncmp(slash, "/libmpi_", 8) == 0)
            out->has_mpi = true;
    }
    free(line);
    if (maps != NULL)
        fclose(maps);
}

static local_rank *entry_of(local_rank **all, int *count, int rank)
{
    local_rank *more;

    for (int i = 0; i < *count; i++) {
        if ((*all)[i].rank == rank)
            return &(*all)[i];
    }
    more = realloc(*all, (size_t)(*count + 1) * sizeof **all);
    if (more == NULL)
        return NULL;
    *all = more;
    more[*count] = (local_rank){.rank = rank};
    return &more[(*count)++];
}

static int nearer(const void *a, const void *b)
{
    const int x = abs(*(const int *)a - own), y = abs(*(const int *)b - own);

    return (x > y) - (x < y);
}

/* A rank may have several processes (a shell around it, children): one that has the library is enough. */
static void keep_lacking(const local_rank *all, int count)
{
    lacking = malloc(sizeof(int) * (size_t)(count > 0 ? count : 1));
    for (int i = 0; i < count && lacking != NULL; i++) {
        if (all[i].has_mpi && !all[i].has_library)
            lacking[lacking_count++] = all[i].rank;
    }
}

/* Ids of the processes of this node, nearest to this one's first: a launcher's ranks follow each other. May be NULL. */
static int *processes(int *count)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    int *pids = NULL, room = 0;

    *count = 0;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (*count == room) {
            int *more = realloc(pids, sizeof *pids * (size_t)(room = 2 * room + 256));

            if (more == NULL)
                break;
            pids = more;
        }
        pids[(*count)++] = atoi(entry->d_name);
    }
    if (folder != NULL)
        closedir(folder);
    if (pids != NULL)
        qsort(pids, (size_t)*count, sizeof *pids, nearer);
    return pids;
}

static void look_with(const struct launcher *launcher)
{
    const int proxy = launcher->ancestor != NULL ? ancestor(own, launcher->ancestor) : 0;
    const char *size = getenv(launcher->local_size);
    int count = 0, known = 0, pid_count = 0, *pids;
    local_rank *all = NULL;

    if (launcher->ancestor != NULL && proxy == 0)
        return;
    pids = processes(&pid_count);
    for (int i = 0; i < pid_count && (size == NULL || known < atoi(size)); i++) {
        bool preloaded = false;
        const int rank = rank_of(pids[i], launcher, proxy, &preloaded);
        local_rank *found = rank != UNKNOWN ? entry_of(&all, &count, rank) : NULL;

        if (found != NULL && !found->has_library) {
            if (preloaded)
                found->has_library = true;
            else
                look_at_maps(pids[i], found);
            known += found->has_library;
        }
    }
    keep_lacking(all, count);
    free(all);
    free(pids);
}

/* Once, by the first launcher whose variables fit the results of MPI. */
static void look(void)
{
    int rank = 0;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    own = own_number();
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const char *value = getenv(launchers[i].rank);

        if (value != NULL && atoi(value) == rank) {
            look_with(&launchers[i]);
            return;
        }
    }
}

/* ---- a group ----------------------------------------------------------------------------------------------------- */

static bool is_lacking(int world_rank)
{
    for (int i = 0; i < lacking_count; i++) {
        if (lacking[i] == world_rank)
            return true;
    }
    return false;
}

/* `ranks`: the places of the group's next `count` ranks in MPI_COMM_WORLD. */
static void judge(const int *ranks, int count, int from, int *first, mpiox_preload_check *out)
{
    for (int i = 0; i < count; i++) {
        if (ranks[i] == MPI_UNDEFINED)
            out->without_library = "native: ranks of another MPI_COMM_WORLD share the file";
        else if (is_lacking(ranks[i]))
            out->without_library = "native: some of the ranks were started without the library";
        else if (*first < 0)
            *first = from + i;
    }
}

static const char unknown_ranks[] = "native: the file's ranks cannot be found in MPI_COMM_WORLD";

static void judge_all(MPI_Comm comm, int size, mpiox_preload_check *out)
{
    MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
    int rank = 0, first = -1, places[CHUNK], world_places[CHUNK];

    PMPI_Comm_rank(comm, &rank);
    if (PMPI_Comm_group(comm, &group) != MPI_SUCCESS || PMPI_Comm_group(MPI_COMM_WORLD, &world) != MPI_SUCCESS) {
        out->without_library = unknown_ranks;
        size = 0;
    }
    for (int from = 0; from < size; from += CHUNK) {
        const int count = size - from < CHUNK ? size - from : CHUNK;

        for (int i = 0; i < count; i++)
            places[i] = from + i;
        if (PMPI_Group_translate_ranks(group, count, places, world, world_places) != MPI_SUCCESS) {
            out->without_library = unknown_ranks;
            break;
        }
        judge(world_places, count, from, &first, out);
    }
    if (group != MPI_GROUP_NULL)
        PMPI_Group_free(&group);
    if (world != MPI_GROUP_NULL)
        PMPI_Group_free(&world);
    out->first = first == rank;
}

void mpiox_preload_check_examine(MPI_Comm comm, mpiox_preload_check *out)
{
    int size = 0, all = 0, rank = 0, like_world = MPI_UNEQUAL;

    *out = (mpiox_preload_check){.without_library = NULL};
    PMPI_Comm_size(comm, &size);
    PMPI_Comm_rank(comm, &rank);
    out->first = rank == 0;
    if (!mpiox_preload_check_world()) {
        out->without_library = "native: MPI runs by a session alone, without MPI_Init";
        return;
    }
    PMPI_Comm_size(MPI_COMM_WORLD, &all);
    out->whole_world = size == all;
    if (size == 1)
        return;
    pthread_mutex_lock(&lock);
    if (!looked)
        look();
    looked = true;
    pthread_mutex_unlock(&lock);
    if (size == all)
        PMPI_Comm_compare(comm, MPI_COMM_WORLD, &like_world);
    if (lacking_count > 0 || like_world == MPI_UNEQUAL)
        judge_all(comm, size, out);
    out->whole_world &= out->without_library == NULL;
}
