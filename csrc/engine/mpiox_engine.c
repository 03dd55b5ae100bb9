/* mpiox_engine.c - see mpiio_ext_engine.h: going through a plan. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_engine_impl.h"

enum { NS = 1000000000 };

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS + t.tv_nsec;
}

/* Operation number `index` of all tables. */
static const mpiox_engine_operation *find(int index)
{
    const mpiox_engine_operation *const tables[] = {mpiox_engine_posix, mpiox_engine_stdio, mpiox_engine_mpiio};
    for (size_t k = 0; k < sizeof tables / sizeof tables[0]; k++) {
        for (const mpiox_engine_operation *at = tables[k]; at->name != NULL; at++) {
            if (index-- == 0)
                return at;
        }
    }
    return NULL;
}

const char *mpiio_ext_engine_name(int index)
{
    const mpiox_engine_operation *found = index >= 0 ? find(index) : NULL;
    return found != NULL ? found->name : NULL;
}

/* Until `ns` have passed since `from`: asleep, but for the end of it where a core is free. */
static void pause_for(int64_t from, int64_t ns, int64_t spin_ns)
{
    const int64_t until = from + ns, sleeps = ns - spin_ns;
    if (sleeps > 0) {
        const struct timespec end = {.tv_sec = (from + sleeps) / NS, .tv_nsec = (from + sleeps) % NS};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0)
            continue;
    }
    while (spin_ns > 0 && now() < until)
        continue;
}

/* Memory of the nonblocking reads: each place has room for the longest call that it is used by. */
static bool prepare_requests(mpiox_engine *e, const mpiox_engine_operation *const *operations)
{
    const mpiio_ext_engine_plan *plan = e->plan;
    e->requests = calloc((size_t)plan->requests + 1, sizeof *e->requests);
    if (e->requests == NULL)
        return false;
    for (int32_t k = 0; k < plan->requests; k++)
        e->requests[k].request = MPI_REQUEST_NULL;
    for (int64_t i = 0; i < plan->count; i++) {
        const mpiox_engine_operation *operation = operations[plan->operation[i]];
        mpiox_engine_request *at = plan->request[i] >= 0 ? &e->requests[plan->request[i]] : NULL;
        if (at != NULL && operation != NULL && operation->reads && plan->size[i] >= at->bytes)
            at->bytes = plan->size[i] + 1;
    }
    for (int32_t k = 0; k < plan->requests; k++) {
        if (e->requests[k].bytes > 0 && (e->requests[k].room = malloc((size_t)e->requests[k].bytes)) == NULL)
            return false;
    }
    return true;
}

static bool prepare(mpiox_engine *e, const mpiox_engine_operation *const *operations)
{
    const mpiio_ext_engine_plan *plan = e->plan;
    e->room = 1;
    for (int64_t i = 0; i < plan->count; i++)
        e->room = plan->size[i] > e->room ? plan->size[i] : e->room;
    e->slots = calloc((size_t)plan->slots + 1, sizeof *e->slots);
    e->data = malloc((size_t)e->room + MPIOX_ENGINE_PATTERN);
    e->sink = malloc((size_t)e->room);
    if (e->slots == NULL || e->data == NULL || e->sink == NULL)
        return false;
    for (int64_t at = 0; at < e->room + MPIOX_ENGINE_PATTERN; at++)
        e->data[at] = (char)(at % MPIOX_ENGINE_PATTERN + 1);
    memset(e->sink, 0, (size_t)e->room); /* so that no page of it is first touched inside of a call */
    for (int32_t s = 0; s < plan->slots; s++)
        e->slots[s] = (mpiox_engine_slot){.fd = -1, .file = MPI_FILE_NULL};
    return prepare_requests(e, operations);
}

/* What the plan has left open: a file of all ranks cannot be closed by one of them, and is left to MPI_Finalize. */
static void close_all(mpiox_engine *e)
{
    (void)mpiox_engine_wait_for_slot(e, -1);
    for (int32_t s = 0; s < e->plan->slots; s++) {
        mpiox_engine_slot *slot = &e->slots[s];
        if (slot->map != NULL)
            munmap(slot->map, slot->map_bytes);
        if (slot->is_open && slot->stream != NULL)
            fclose(slot->stream);
        else if (slot->is_open && slot->folder != NULL)
            closedir(slot->folder);
        else if (slot->is_open && slot->file != MPI_FILE_NULL && slot->alone)
            MPI_File_close(&slot->file);
        else if (slot->is_open && slot->file == MPI_FILE_NULL && slot->fd >= 0)
            close(slot->fd);
    }
}

static void release(mpiox_engine *e)
{
    for (int32_t k = 0; e->requests != NULL && k < e->plan->requests; k++)
        free(e->requests[k].room);
    free(e->requests);
    free(e->slots);
    free(e->data);
    free(e->sink);
}

static bool can_be_made(const mpiox_engine *e, const mpiox_engine_operation *operation, int64_t i)
{
    const mpiio_ext_engine_plan *plan = e->plan;
    if (operation == NULL || (operation->needs_handle && (plan->slot[i] < 0 || !e->slots[plan->slot[i]].is_open)))
        return false;
    if (operation->opens && (plan->slot[i] < 0 || plan->file[i] < 0))
        return false;
    if (operation->two_names && (plan->second[i] < 0 || plan->file[i] < 0))
        return false;
    return true;
}

static bool is_too_much(const mpiio_ext_engine_plan *plan, const mpiox_engine_operation *operation, int64_t i)
{
    return operation->writes && plan->size[i] > plan->most_bytes - plan->bytes_written;
}

static void note(mpiio_ext_engine_plan *plan, const mpiox_engine_operation *operation, int64_t i, bool failed)
{
    plan->failed += failed;
    if (failed)
        return;
    plan->bytes_written += operation->writes ? plan->size[i] : 0;
    plan->bytes_read += operation->reads ? plan->size[i] : 0;
}

/* Make one call, or leave it out: what it needs is not there, or it would write too much. */
static void make(mpiox_engine *e, const mpiox_engine_operation *operation, int64_t i)
{
    mpiio_ext_engine_plan *plan = e->plan;
    bool failed = false;
    plan->result[i] = INT64_MIN;
    const bool possible = can_be_made(e, operation, i), too_much = possible && is_too_much(plan, operation, i);
    if (!possible || too_much)
        plan->left_out++;
    if (!possible || (too_much && !operation->collective))
        return;
    e->muted = too_much;
    const int64_t result = operation->call(e, i, &failed);
    if (too_much)
        return;
    plan->result[i] = result;
    note(plan, operation, i, failed);
}

int mpiio_ext_engine_run(mpiio_ext_engine_plan *plan)
{
    mpiox_engine e = {.plan = plan};
    const mpiox_engine_operation *operations[UINT8_MAX + 1];
    for (int k = 0; k <= UINT8_MAX; k++)
        operations[k] = find(k);
    plan->bytes_written = plan->bytes_read = plan->failed = plan->left_out = 0;
    if (!prepare(&e, operations)) {
        release(&e);
        return -1;
    }
    const int64_t begun = now();
    int64_t last = begun; /* end of the call before */
    for (int64_t i = 0; i < plan->count; i++) {
        if (plan->slack[i] > 0 && plan->time_scale > 0)
            pause_for(last, (int64_t)((double)plan->slack[i] * plan->time_scale), plan->spin_ns);
        const int64_t start = now();
        plan->start[i] = start - begun;
        make(&e, operations[plan->operation[i]], i);
        last = now();
        plan->duration[i] = last - start;
    }
    close_all(&e);
    release(&e);
    return 0;
}
