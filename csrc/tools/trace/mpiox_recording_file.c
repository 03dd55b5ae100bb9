/*
 * mpiox_recording_file.c - see mpiox_recording_file.h.
 *
 * Problem.   However long a run, and however many its processes and files, its recordings on a node may take 64 MiB;
 *            and a store into a mapping without disk space kills.
 * Algorithm. A process has its share of the node, by the launcher's number of ranks. The file is mapped as a whole;
 *            disk space is taken in steps, before it is written to. Each step is charged to an account of the node, a
 *            word in a small mapped file beside the recordings.
 * Guarantee. The files of a node together take the account's bytes at most. Without more room the recording continues
 *            in its present space.
 */
#include "mpiox_recording_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_recording_calls.h"
#include "mpiox_trace_clock.h"
#include "mpiox_trace_lock.h"
#include "mpiox_trace_place.h"
#include "mpiox_trace_system.h"

enum {
    PAGE = 4096,
    FIRST_BYTES = 4 * PAGE,
    MOST_STEP = 64 * PAGE,
    LEAST_BYTES = 96 << 10,
    MOST_BYTES = 4 << 20,
    NODE_BYTES = 64 << 20,
    ACCOUNT_BYTES = PAGE,
    NOTED_MS = 300,
    NAMES = 4 /* one part in so many of the share is for names in memory */
};

static const char suffix[] = ".mpioxrec";
mpiox_recording_file mpiox_recording = {.generation = 1};
_Atomic(mpiox_recording_header *) mpiox_recording_page;
static mpiox_recording_file *const r = &mpiox_recording;
static mpiox_trace_place *const here = &mpiox_trace_here;
static int64_t wanted_bytes, node_bytes;
static _Atomic int64_t *account; /* of this node, mapped: bytes of all recordings, processes without; NULL: no bound */

_Static_assert(sizeof(mpiox_recording_header) <= MPIOX_RECORDING_HEADER_BYTES, "the items lie behind the header");

/* ---- how much ---------------------------------------------------------------------------------------------------- */

static int64_t number_of(const char *text, int64_t otherwise)
{
    char *end = NULL;
    const long long value = text != NULL ? strtoll(text, &end, 10) : -1;

    return text != NULL && end != text && value >= 0 ? (int64_t)value : otherwise;
}

/* Ranks of the program on this node, from the launchers' variables; 1: unknown. */
static int64_t local_ranks(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE",
                                            "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE"};

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const int64_t found = number_of(getenv(variables[i]), 0);

        if (found > 0)
            return found;
    }
    return 1;
}

static int64_t within(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

int64_t mpiox_recording_bound(void)
{
    node_bytes = number_of(getenv("MPIOX_RECORDING_NODE_BYTES"), NODE_BYTES);
    const int64_t share = node_bytes / local_ranks();
    const int64_t given = number_of(getenv("MPIOX_RECORDING_BYTES"),
                                    within(share - share / NAMES, LEAST_BYTES, MOST_BYTES));

    wanted_bytes = within(given, LEAST_BYTES, INT64_C(1) << 31) & -(int64_t)PAGE;
    return wanted_bytes / (NAMES - 1);
}

/* Charge the node for more; false: its recordings have what they may have. */
static bool charge(int64_t bytes)
{
    if (account == NULL)
        return true;
    if (atomic_fetch_add_explicit(account, bytes, memory_order_relaxed) + bytes <= node_bytes)
        return true;
    atomic_fetch_sub_explicit(account, bytes, memory_order_relaxed);
    return false;
}

/* The first process of the node without room reports it for all. */
static void refuse(void)
{
    if (account == NULL)
        mpiox_trace_place_stop("no space is left here: free space");
    else if (atomic_fetch_add_explicit(account + 1, 1, memory_order_relaxed) == 0)
        mpiox_trace_place_stop("no space is left here, or none for more recordings of this node; further processes "
                               "leave no recording: free space");
    here->stopped = true;
}

static void open_account(void)
{
    char path[MPIOX_TRACE_PATH_BYTES];

    if (node_bytes == 0 || account != NULL)
        return;
    snprintf(path, sizeof path, "%s/%s.mpioxnode", here->folder, here->host);
    const int fd = mpiox_trace_share(path);
    if (fd < 0)
        return;
    if (mpiox_trace_allocate(fd, 0, ACCOUNT_BYTES) == 0)
        account = mpiox_trace_map(fd, 0, ACCOUNT_BYTES);
    mpiox_trace_close(fd);
}

/* Disk space for `bytes` of the file in all, and some more. */
static bool grow(int fd, uint64_t bytes)
{
    const uint64_t step = r->taken / 2 < MOST_STEP ? r->taken / 2 : MOST_STEP;
    uint64_t end = (bytes > r->taken + step ? bytes : r->taken + step) + PAGE - 1;

    end = end < r->capacity ? end & -(uint64_t)PAGE : r->capacity;
    if (end < bytes || !charge((int64_t)(end - r->taken)))
        return false;
    if (mpiox_trace_allocate(fd, (int64_t)r->taken, (int64_t)end) != 0) {
        charge(-(int64_t)(end - r->taken));
        return false;
    }
    r->taken = end;
    return true;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

void mpiox_recording_measure(int which)
{
    mpiox_recording_header *header = r->header;
    char text[96], *behind = text;
    struct rusage used;
    struct timespec cpu;

    if (header == NULL)
        return;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0)
        header->cpu[which] = cpu.tv_sec * INT64_C(1000000000) + cpu.tv_nsec;
    if (mpiox_trace_read_text("/proc/self/schedstat", text, sizeof text) > 0) {
        strtoll(text, &behind, 10);
        header->queued[which] = strtoll(behind, NULL, 10);
    }
    if (getrusage(RUSAGE_SELF, &used) == 0)
        header->switches[which] = used.ru_nivcsw;
}

static pid_t watched; /* this process, where it is watched */

/* A socket of the process that watches the run on this host, if there is one: it is closed when this process dies, in
 * which Linux begins with the descriptors of the highest numbers. So the watcher learns of it before a launcher does,
 * which has a connection of its own to the rank, and can end the others. The program may close the descriptor: no code
 * uses it. */
static void let_watch(void)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    char name[64];

    for (const char *at = here->folder; *at != '\0'; at++)
        sum = (sum ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
    snprintf(name, sizeof name, "mpiio_ext.run.%016" PRIx64, sum);
    if (watched != getpid() && mpiox_trace_connect(name) >= 0)
        watched = getpid();
}

/* A process that watches the folder detects that a rank fails, before a launcher can end the others. */
static void call_attention(void)
{
    if (here->rank >= 0)
        mpiox_trace_touch(here->path);
}

void mpiox_recording_note_exit(int status)
{
    mpiox_trace_lock();
    if (r->header != NULL && !r->header->exited) {
        r->header->exit_status = status & 0xff;
        r->header->left = mpiox_trace_now();
        r->header->exited = 1;
        if (status != 0 || r->header->stopped == 0)
            call_attention();
    }
    mpiox_trace_unlock();
}

/* The launcher may end at once, and with it the watcher's terminal: so the watcher prints first. */
void mpiox_recording_note_abort(int code, int64_t now)
{
    bool watches = false;

    mpiox_trace_lock();
    if (mpiox_recording_ready(now) && r->header->aborted == 0) {
        r->header->abort_code = code;
        r->header->aborted = now;
        call_attention();
        watches = watched == getpid();
    }
    mpiox_trace_unlock();
    const mpiox_recording_header *page = atomic_load_explicit(&mpiox_recording_page, memory_order_relaxed);
    for (int ms = 0; watches && page != NULL && ms < NOTED_MS; ms++) {
        watches = atomic_load_explicit((const _Atomic uint32_t *)(const void *)&page->heard, memory_order_acquire) == 0;
        mpiox_trace_rest();
    }
}

#ifdef __GLIBC__
static void exits(int status, void *nothing)
{
    (void)nothing;
    mpiox_recording_note_exit(status);
}
#endif

/* The end of main() calls no function that could be wrapped; what is registered when libraries are loaded comes after
 * the recording has been ended. */
static void catch_exit(void)
{
#ifdef __GLIBC__
    static bool registered;

    if (!registered)
        on_exit(exits, NULL);
    registered = true;
#endif
}

static void fill_header(int64_t now)
{
    static const char *const counts[] = MPIOX_RECORDING_COUNTERS;
    mpiox_recording_header *header = r->header;

    header->version = MPIOX_RECORDING_VERSION;
    header->header_bytes = MPIOX_RECORDING_HEADER_BYTES;
    header->capacity = r->capacity;
    header->used = r->used = MPIOX_RECORDING_HEADER_BYTES;
    header->started = header->last = now;
    header->unix_minus_monotonic = mpiox_trace_unix() - mpiox_trace_monotonic();
    header->pid = getpid();
    header->parent = getppid();
    header->rank = here->rank;
    header->ranks = here->ranks;
    header->bin_ns = MPIOX_RECORDING_FIRST_BIN;
    memcpy(header->host, here->host, sizeof header->host);
    mpiox_trace_place_command(header->command, sizeof header->command);
    for (int module = 0; module < MPIOX_RECORDING_MODULES; module++)
        strcpy(header->counts[module], counts[module]);
    atomic_thread_fence(memory_order_release);
    memcpy(header->magic, MPIOX_RECORDING_MAGIC, sizeof header->magic);
}

/* As much as the process may have of addresses. */
static bool map(int fd)
{
    r->header = mpiox_trace_map(fd, 0, (int64_t)r->capacity);
    while (r->header == NULL && r->capacity / 2 >= LEAST_BYTES) {
        r->capacity = r->capacity / 2 & -(uint64_t)PAGE;
        r->header = mpiox_trace_map(fd, 0, (int64_t)r->capacity);
    }
    return r->header != NULL;
}

bool mpiox_recording_ready(int64_t now)
{
    if (r->header != NULL || here->stopped)
        return r->header != NULL && !here->stopped;
    const int fd = mpiox_trace_place_create(suffix);
    if (fd < 0) {
        mpiox_trace_place_stop("no file can be created here, check that the folder can be written");
        return false;
    }
    r->capacity = (uint64_t)wanted_bytes;
    r->taken = 0;
    open_account();
    if (!grow(fd, FIRST_BYTES) || !map(fd)) {
        mpiox_trace_remove(here->path);
        mpiox_trace_close(fd);
        refuse();
        return false;
    }
    mpiox_recording_header *page = mpiox_trace_map(fd, 0, MPIOX_RECORDING_HEADER_BYTES);
    mpiox_trace_close(fd);
    fill_header(now);
    atomic_store_explicit(&mpiox_recording_page, page, memory_order_release);
    mpiox_recording_measure(0);
    catch_exit();
    let_watch();
    return true;
}

void *mpiox_recording_take(int kind, uint64_t bytes, uint64_t spare)
{
    bytes = (bytes + 7) & ~UINT64_C(7);
    if (r->used + bytes + spare > r->taken) {
        const int fd = r->used + bytes + spare <= r->capacity ? mpiox_trace_open(here->path) : -1;
        const bool grown = fd >= 0 && grow(fd, r->used + bytes + spare);

        if (fd >= 0)
            mpiox_trace_close(fd);
        if (!grown) {
            if (fd >= 0)
                r->capacity = r->taken; /* do not ask again for each call */
            return NULL;
        }
    }
    mpiox_recording_item *item = mpiox_recording_at((uint32_t)r->used);
    item->kind = (uint32_t)kind;
    item->bytes = (uint32_t)bytes;
    r->used += bytes;
    return item;
}

void mpiox_recording_publish(void)
{
    atomic_store_explicit((_Atomic uint64_t *)(void *)&r->header->used, r->used, memory_order_release);
}

void mpiox_recording_restart(int64_t now)
{
    mpiox_recording_header *header = r->header;

    if (header == NULL)
        return;
    const uint64_t used = r->used;
    r->used = MPIOX_RECORDING_HEADER_BYTES;
    mpiox_recording_publish();
    memset((uint8_t *)header + MPIOX_RECORDING_HEADER_BYTES, 0, used - MPIOX_RECORDING_HEADER_BYTES);
    header->started = header->last = now;
    header->others = header->unkept = 0;
    header->left_out = (mpiox_tracefile_left_out){0};
    header->bin_ns = MPIOX_RECORDING_FIRST_BIN;
    mpiox_recording_measure(0);
    let_watch(); /* where rank 0 begins to watch, it has begun by now */
    r->generation++;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

void mpiox_recording_rank(void)
{
    if (r->header == NULL)
        return;
    r->header->rank = here->rank;
    r->header->ranks = here->ranks;
    mpiox_trace_place_rename(suffix);
}

void mpiox_recording_mark(int state)
{
    if (r->header != NULL)
        r->header->state = (uint32_t)state;
}

void mpiox_recording_forget(void)
{
    atomic_store_explicit(&mpiox_recording_page, NULL, memory_order_relaxed);
    mpiox_trace_self.doing = NULL;
    mpiox_trace_unmap(r->header, r->header != NULL ? (int64_t)r->header->capacity : 0);
    r->header = NULL;
    r->generation++;
}

void mpiox_recording_end(int state, bool again)
{
    if (r->header != NULL) {
        const int fd = mpiox_trace_open(here->path);

        mpiox_recording_mark(state);
        if (r->header->stopped == 0)
            mpiox_recording_measure(1);
        if (fd >= 0) {
            if (mpiox_trace_cut(fd, (int64_t)r->used) == 0)
                charge(-(int64_t)(r->taken - r->used));
            mpiox_trace_close(fd);
        }
        mpiox_recording_forget();
    }
    here->stopped = here->stopped || !again;
}
