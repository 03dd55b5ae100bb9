/* mpiox_engine.c - see mpiio_ext_engine.h: going through a plan. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_engine_impl.h"

enum {
    NS = 1000000000,
    SLEEPS = 31,           /* that lateness is measured by: 2 ms in all */
    SLEEP_NS = 50000,      /* of each of them */
    MOST_SPIN_NS = 200000, /* that are spun for where a core is free, however late sleeps end */
    MOST_YIELD_NS = 20000, /* the same where none is free, */
    LEAST_YIELD_NS = 2000, /* and until when others are let before */
};

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

static void sleep_until(int64_t until)
{
    const struct timespec end = {.tv_sec = until / NS, .tv_nsec = until % NS};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
        continue;
}

/* Wait until `ns` have passed since `from`: asleep, but for the last plan->spun_ns. These are spun for if a core is
 * free; else the thread yields, but not for less time than a yield takes: 0.1 us would become 10. */
static void pause_for(const mpiio_ext_engine_plan *plan, int64_t from, int64_t ns)
{
    const int64_t until = ns < INT64_MAX - from ? from + ns : INT64_MAX;
    if (ns > plan->spun_ns)
        sleep_until(until - plan->spun_ns);
    for (int64_t left = until - now(); left > 0; left = until - now()) {
        if (!plan->cores_free && left > LEAST_YIELD_NS)
            sched_yield();
    }
}

static int ascending(const void *first, const void *second)
{
    const int64_t a = *(const int64_t *)first, b = *(const int64_t *)second;
    return (a > b) - (a < b);
}

/* How late sleeps end here and now: at the median, so that one which was late by chance counts for nothing; twice that
 * where a core is free, so that hardly any is late. */
static int64_t measured_spin(bool cores_free)
{
    int64_t late[SLEEPS];
    for (int k = 0; k < SLEEPS; k++) {
        const int64_t until = now() + SLEEP_NS;
        sleep_until(until);
        late[k] = now() - until;
    }
    qsort(late, SLEEPS, sizeof *late, ascending);
    const int64_t spin = late[SLEEPS / 2] * (cores_free ? 2 : 1), most = cores_free ? MOST_SPIN_NS : MOST_YIELD_NS;
    return spin < most ? spin : most;
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
        if (at != NULL && operation->reads && plan->size[i] >= at->bytes)
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
    for (int64_t i = 0; i < plan->count; i++) {
        const mpiox_engine_operation *operation = operations[plan->operation[i]];
        const bool moves = (operation->reads || operation->writes) && !operation->copies;
        e->room = moves && plan->size[i] > e->room ? plan->size[i] : e->room;
    }
    e->slots = calloc((size_t)plan->slots + 1, sizeof *e->slots);
    e->data = malloc((size_t)e->room + MPIOX_ENGINE_PATTERN);
    e->sink = malloc((size_t)e->room);
    e->mappings = calloc((size_t)plan->mappings + 1, sizeof *e->mappings);
    if (e->slots == NULL || e->mappings == NULL || e->data == NULL || e->sink == NULL)
        return false;
    for (int64_t at = 0; at < e->room + MPIOX_ENGINE_PATTERN; at++)
        e->data[at] = (char)(at % MPIOX_ENGINE_PATTERN + 1);
    memset(e->sink, 0, (size_t)e->room); /* so that no page of it is first touched inside of a call */
    for (int32_t s = 0; s < plan->slots; s++)
        e->slots[s] = (mpiox_engine_slot){.fd = -1, .file = MPI_FILE_NULL};
    return prepare_requests(e, operations);
}

/* Close handles that the plan leaves open: one rank cannot close a file of all ranks, which is left to MPI_Finalize. */
static void close_slot(mpiox_engine_slot *slot)
{
    if (slot->is_open && slot->stream != NULL)
        fclose(slot->stream);
    else if (slot->is_open && slot->folder != NULL)
        closedir(slot->folder);
    else if (slot->is_open && slot->file != MPI_FILE_NULL && slot->alone)
        MPI_File_close(&slot->file);
    else if (slot->is_open && slot->file == MPI_FILE_NULL && slot->fd >= 0)
        close(slot->fd);
    *slot = (mpiox_engine_slot){.fd = -1, .file = MPI_FILE_NULL};
}

/* All that the plan has left open. */
static void close_all(mpiox_engine *e)
{
    (void)mpiox_engine_wait_for_slot(e, -1);
    for (int32_t k = 0; k < e->plan->mappings; k++) {
        if (e->mappings[k].at != NULL)
            munmap(e->mappings[k].at, e->mappings[k].bytes);
    }
    for (int32_t s = 0; s < e->plan->slots; s++)
        close_slot(&e->slots[s]);
}

static void release(mpiox_engine *e)
{
    for (int32_t k = 0; e->requests != NULL && k < e->plan->requests; k++)
        free(e->requests[k].room);
    free(e->requests);
    free(e->slots);
    free(e->mappings);
    free(e->data);
    free(e->sink);
}

/* Whether a slot has a handle of a kind. */
static bool has(const mpiox_engine *e, int32_t number, mpiox_engine_handle kind)
{
    const mpiox_engine_slot *slot = number >= 0 ? &e->slots[number] : NULL;
    if (slot == NULL || !slot->is_open)
        return false;
    return kind == STREAM        ? slot->stream != NULL
           : kind == FOLDER      ? slot->folder != NULL
           : kind == FILE_OF_MPI ? slot->file != MPI_FILE_NULL
                                 : slot->stream != NULL || slot->folder != NULL || slot->fd >= 0;
}

/* A call may need a handle that an earlier call did not return: the plan itself is right. */
static bool can_be_made(const mpiox_engine *e, const mpiox_engine_operation *operation, int64_t i)
{
    const mpiio_ext_engine_plan *plan = e->plan;
    if (operation->needs_handle && !has(e, plan->slot[i], operation->handle))
        return false;
    if (operation->opens && (plan->slot[i] < 0 || plan->file[i] < 0))
        return false;
    if (operation->named && plan->file[i] < 0)
        return false;
    if (operation->maps && plan->other[i] < 0)
        return false;
    if (operation->copies && !has(e, plan->other[i], DESCRIPTOR))
        return false;
    return !operation->two_names || plan->second[i] >= 0;
}

/* Bytes that a call writes or preallocates. */
static int64_t amount_of(const mpiio_ext_engine_plan *plan, const mpiox_engine_operation *operation, int64_t i)
{
    const bool is_length = operation->preallocates && operation->collective && plan->offset[i] >= 0;
    return is_length ? plan->offset[i] : plan->size[i];
}

/* A collective preallocation has the same length on all ranks and is judged by that alone, so that all judge alike. */
static bool is_too_much(const mpiio_ext_engine_plan *plan, const mpiox_engine_operation *operation, int64_t i)
{
    const int64_t made = operation->collective && operation->preallocates
                             ? 0
                             : plan->bytes_written + plan->bytes_preallocated;
    return (operation->writes || operation->preallocates) && amount_of(plan, operation, i) > plan->most_bytes - made;
}

static bool is_mpiio(const mpiox_engine_operation *operation)
{
    return strncmp(operation->name, "MPI_", 4) == 0;
}

/* Why a call has failed: errno, or the class of MPI's error. A call without a reason has EIO. */
static int32_t reason_of(const mpiox_engine_operation *operation, int64_t result)
{
    int class = MPI_ERR_OTHER;
    if (!is_mpiio(operation))
        return errno != 0 ? errno : EIO;
    (void)MPI_Error_class((int)result, &class);
    return class;
}

static void note(mpiio_ext_engine_plan *plan, const mpiox_engine_operation *operation, int64_t i, bool failed)
{
    plan->failed += failed;
    if (failed) {
        plan->error[i] = reason_of(operation, plan->result[i]);
        return;
    }
    if (operation->named && (is_mpiio(operation) ? plan->result[i] != MPI_SUCCESS : plan->result[i] < 0)) {
        plan->error[i] = -reason_of(operation, plan->result[i]);
        return;
    }
    const int64_t moved = is_mpiio(operation) ? plan->size[i] : plan->result[i];
    plan->bytes_written += operation->writes ? moved : 0;
    plan->bytes_read += operation->reads ? moved : 0;
    plan->bytes_preallocated += operation->preallocates ? amount_of(plan, operation, i) : 0;
}

/* Make one call, or leave it out: what it needs is not there, or it would write too much. */
static void make(mpiox_engine *e, const mpiox_engine_operation *operation, int64_t i)
{
    mpiio_ext_engine_plan *plan = e->plan;
    bool failed = false;
    plan->result[i] = INT64_MIN;
    plan->error[i] = 0;
    const bool possible = can_be_made(e, operation, i), too_much = possible && is_too_much(plan, operation, i);
    if (!possible || too_much)
        plan->left_out++;
    if (!possible || (too_much && (!operation->collective || operation->preallocates)))
        return;
    e->muted = too_much;
    if (operation->opens)
        close_slot(&e->slots[plan->slot[i]]);
    errno = 0;
    const int64_t result = operation->call(e, i, &failed);
    if (too_much)
        return;
    plan->result[i] = result;
    note(plan, operation, i, failed);
}

/* Where a rank changes what others use, as the program's barriers have had it. */
static void meet(const mpiio_ext_engine_plan *plan, int32_t times)
{
    for (int32_t k = 0; k < times; k++)
        (void)MPI_Barrier(COMM_OF(plan->everybody));
}

/* Parts of a row, as in `standing`. */
enum { IN_CALL, IN_MEETING, IN_SLACK };

static void stand(mpiio_ext_engine_plan *plan, int64_t row, int part)
{
    __atomic_store_n(&plan->standing, 4 * row + part, __ATOMIC_RELAXED);
}

/* Go through the plan. */
static void carry_out(mpiox_engine *e, const mpiox_engine_operation *const *operations)
{
    mpiio_ext_engine_plan *plan = e->plan;
    stand(plan, 0, IN_MEETING);
    meet(plan, 1); /* ranks have needed unequal times until here: they begin together, as in the path's slack times */
    const int64_t begun = now();
    int64_t last = begun; /* end of the call before */
    for (int64_t i = 0; i < plan->count; i++) {
        stand(plan, i, IN_MEETING);
        meet(plan, plan->meets[i]);
        stand(plan, i, IN_SLACK);
        if (plan->slack[i] > 0 && plan->time_scale > 0)
            pause_for(plan, last, (int64_t)((double)plan->slack[i] * plan->time_scale));
        stand(plan, i, IN_CALL);
        const int64_t start = now();
        plan->start[i] = start - begun;
        make(e, operations[plan->operation[i]], i);
        last = now();
        plan->duration[i] = last - start;
    }
    stand(plan, plan->count, IN_MEETING);
    meet(plan, plan->meets_after);
}

/* Bytes of a call: buffers have that many and some more. */
#define MOST_BYTES (INT64_MAX / 4)

static bool is_index(int64_t number, int64_t count)
{
    return number >= 0 && number < count;
}

static bool is_index_or_none(int64_t number, int64_t count)
{
    return number == -1 || is_index(number, count);
}

/* The mistake in row i, NULL: none. */
static const char *wrong_with(const mpiio_ext_engine_plan *plan, const mpiox_engine_operation *operation, int64_t i)
{
    if (operation == NULL)
        return "there is no operation of that number";
    if (!is_index_or_none(plan->file[i], plan->files) || !is_index_or_none(plan->second[i], plan->files))
        return "it names a file that the plan does not have";
    if ((operation->named || operation->opens) && plan->file[i] < 0)
        return "it names no file";
    if (operation->two_names && plan->second[i] < 0)
        return "it has no second name";
    if (!is_index_or_none(plan->slot[i], plan->slots) || (operation->opens && plan->slot[i] < 0))
        return "it has a handle that the plan does not have";
    if (!is_index_or_none(plan->request[i], plan->requests) || (operation->starts && plan->request[i] < 0))
        return "it has a request that the plan does not have";
    if (!is_index_or_none(plan->other[i], operation->maps ? plan->mappings : operation->copies ? plan->slots : 0))
        return "it has a mapping or a target that the plan does not have";
    if (plan->size[i] < 0 || plan->size[i] > MOST_BYTES)
        return "its size is negative, or larger than any file";
    return plan->meets[i] < 0 ? "ranks meet a negative number of times" : NULL;
}

/* The first row of the plan with a value that the engine must not use: an index that is out of its range, a negative
 * size. With a plan without such a row the engine reads and writes within its arrays and buffers, whatever the calls
 * return. -1: there is none; *why: the mistake. Conditions that depend on the results of calls are checked before each
 * call (can_be_made). */
static int64_t wrong_row(const mpiio_ext_engine_plan *plan, const mpiox_engine_operation *const *operations,
                         const char **why)
{
    for (int64_t i = 0; i < plan->count; i++) {
        *why = wrong_with(plan, operations[plan->operation[i]], i);
        if (*why != NULL)
            return i;
    }
    *why = NULL;
    return -1;
}

/* If one rank cannot do it, none does. Collective. */
static int agreed(const mpiio_ext_engine_plan *plan, int own)
{
    int all = own;
    (void)MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, COMM_OF(plan->everybody));
    return all;
}

/* Go through the plan as exactly as the kernel lets sleeps end: 50 us late unless its timer slack is switched off. */
static void carry_out_in_time(mpiox_engine *e, const mpiox_engine_operation *const *operations)
{
    mpiio_ext_engine_plan *plan = e->plan;
    const int timer_slack = prctl(PR_GET_TIMERSLACK);
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    plan->spun_ns = plan->spin_ns >= 0 ? plan->spin_ns : plan->time_scale > 0 ? measured_spin(plan->cores_free) : 0;
    carry_out(e, operations);
    if (timer_slack > 0)
        (void)prctl(PR_SET_TIMERSLACK, (unsigned long)timer_slack);
}

int mpiio_ext_engine_run(mpiio_ext_engine_plan *plan)
{
    mpiox_engine *e = calloc(1, sizeof *e);
    const mpiox_engine_operation *operations[UINT8_MAX + 1];
    for (int k = 0; k <= UINT8_MAX; k++)
        operations[k] = find(k);
    plan->bytes_written = plan->bytes_read = plan->bytes_preallocated = plan->failed = plan->left_out = 0;
    plan->wrong = NULL;
    plan->state = e;
    plan->wrong_row = wrong_row(plan, operations, &plan->wrong);
    if (e != NULL)
        e->plan = plan;
    const bool prepared = plan->wrong_row < 0 && e != NULL && prepare(e, operations);
    const int result = agreed(plan, plan->wrong_row >= 0 ? -2 : prepared ? 0 : -1);
    if (result == 0)
        carry_out_in_time(e, operations);
    return result;
}

void mpiio_ext_engine_end(mpiio_ext_engine_plan *plan)
{
    mpiox_engine *e = plan->state;
    if (e == NULL)
        return;
    if (e->slots != NULL && e->requests != NULL && e->mappings != NULL)
        close_all(e);
    release(e);
    free(e);
    plan->state = NULL;
}
