/*
 * test_access.c - accesses of pages, compared with a model of the file: by threads while pages are flushed and evicted,
 * by processes whose delegate is killed, and the rescue of what it leaves.
 *
 *   test_access threads|processes|holders|rescuers FILE SEED [ROUNDS [SHORTER]]
 *   test_access frames FILE SEED ROUNDS SHORTER FRAMES
 *
 * Every worker has bytes of its own, 8 out of every 8 * WORKERS, so that it knows what it must read. FILE is made.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"
#include "mock_delegate.h"

enum { WORKERS = 3, UNIT = 8, PERIOD = UNIT * WORKERS, PAGES = 24, MAX_LENGTH = 4096 };

typedef struct shared { /* by all processes of a test */
    _Atomic int64_t wrong, gone, rescued, accesses, bytes_written;
    _Atomic int32_t progress;
    unsigned char model[]; /* the file */
} shared;

static mock the;
static shared *all;
static int64_t file_bytes;

typedef struct worker {
    int index;
    int64_t accesses;
    uint64_t random;
    mpiox_typemap *view; /* its bytes */
    bool direct;         /* the delegate has gone: access the file */
} worker;

static int64_t up_to(worker *self, int64_t limit)
{
    return (int64_t)(mock_random(&self->random) % (uint64_t)limit);
}

static void make_worker(worker *self, int index, uint64_t seed, int64_t accesses)
{
    mpiox_typemap *unit = NULL, *view = NULL;
    *self = (worker){.index = index, .accesses = accesses, .random = seed * 1000 + 2 * (uint64_t)index + 1};
    if (mpiox_typemap_block(UNIT, &unit) != 0 || mpiox_typemap_resized(0, PERIOD, unit, &view) != 0)
        abort();
    mpiox_typemap_free(unit);
    self->view = view;
}

/* ---- one access -------------------------------------------------------------------------------------------------- */

static int64_t place(const worker *self, int64_t position)
{
    return position / UNIT * PERIOD + self->index * UNIT + position % UNIT;
}

/* Straight to the file, piece by piece. */
static void access_file(const worker *self, bool write, int64_t position, int64_t length, char *buffer)
{
    for (int64_t done = 0; done < length;) {
        const int64_t at = position + done;
        int64_t piece = UNIT - at % UNIT < length - done ? UNIT - at % UNIT : length - done;
        const off_t offset = (off_t)place(self, at);
        const ssize_t moved = write ? pwrite(the.fd, buffer + done, (size_t)piece, offset)
                                    : pread(the.fd, buffer + done, (size_t)piece, offset);
        if (moved != piece) {
            all->wrong++;
            return;
        }
        done += piece;
    }
}

/* Through the delegate's pages; false: it has gone, the rest is left to the caller. */
static bool access_pages(const worker *self, bool write, int64_t position, int64_t length, char *buffer)
{
    const int64_t page_bytes = the.cache.page_bytes;
    for (int64_t done = 0; done < length;) {
        const int64_t page = place(self, position + done) / page_bytes;
        int64_t part = mpiox_typemap_position(self->view, (page + 1) * page_bytes - self->index * UNIT);
        mpiox_page_access access = {.file = 0, .page = page, .write = write, .view = self->view};
        mpiox_error error;
        int64_t known;
        part -= position + done;
        part = part < length - done ? part : length - done;
        access.origin = self->index * UNIT;
        access.position = position + done;
        access.length = part;
        access.memory = (mpiox_memory_layout){.base = buffer, .position = done};
        const int code = mpiox_cache_access_page(&the.cache, &access, true, &known, &error);
        if (code == MPIOX_PAGE_GONE)
            return false;
        all->wrong += code != MPIOX_OK;
        all->accesses++;
        if (write)
            all->bytes_written += part;
        done += part;
    }
    return true;
}

static void one_access(worker *self)
{
    char buffer[MAX_LENGTH];
    const int64_t stream = file_bytes / PERIOD * UNIT;
    const bool write = up_to(self, 3) != 0;
    const int64_t limit = up_to(self, 4) == 0 ? MAX_LENGTH : 40, length = 1 + up_to(self, limit);
    const int64_t position = up_to(self, stream - length);
    for (int64_t i = 0; i < length && write; i++)
        buffer[i] = (char)(all->model[place(self, position + i)] = (unsigned char)mock_random(&self->random));
    if (!self->direct && !access_pages(self, write, position, length, buffer)) {
        self->direct = true;
        all->gone++;
        const int64_t rescued = mpiox_cache_rescue(&the.cache);
        all->rescued += rescued > 0 ? rescued : 0;
        all->wrong += mpiox_futex_get(&the.cache.header->state) != MPIOX_CACHE_RESCUED;
        access_file(self, write, position, length, buffer);
    } else if (self->direct) {
        access_file(self, write, position, length, buffer);
    }
    for (int64_t i = 0; i < length; i++)
        all->wrong += (unsigned char)buffer[i] != all->model[place(self, position + i)];
}

static void *work(void *context)
{
    worker *self = context;
    for (int64_t i = 0; i < self->accesses; i++)
        one_access(self);
    return NULL;
}

/* ---- set up, compare --------------------------------------------------------------------------------------------- */

static void set_up(const char *path, int64_t page_bytes, int32_t frames)
{
    mock_make(&the, page_bytes, frames, WORKERS);
    file_bytes = PAGES * page_bytes / PERIOD * PERIOD;
    const size_t bytes = sizeof *all + (size_t)file_bytes;
    all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    the.fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (all == MAP_FAILED || the.fd < 0 || ftruncate(the.fd, file_bytes) != 0)
        abort();
    mpiox_file_record *record = &the.cache.header->files[0];
    struct stat status;
    fstat(the.fd, &status);
    record->device = (uint64_t)status.st_dev;
    record->inode = (uint64_t)status.st_ino;
    snprintf(record->path, sizeof record->path, "%s", path);
    atomic_store(&record->openers, 1);
}

static void compare_and_free(void)
{
    if (mpiox_futex_get(&the.cache.header->state) == MPIOX_CACHE_RESCUED)
        CHECK_EQUAL(atomic_load(&the.cache.header->dirty_frames), 0);
    char *found = malloc((size_t)file_bytes);
    int64_t different = 0;
    CHECK_EQUAL(all->wrong, 0);
    CHECK(found != NULL && pread(the.fd, found, (size_t)file_bytes, 0) == (ssize_t)file_bytes);
    for (int64_t i = 0; found != NULL && i < file_bytes; i++)
        different += (unsigned char)found[i] != all->model[i];
    CHECK_EQUAL(different, 0);
    CHECK_EQUAL(atomic_load(&the.cache.header->files[0].error_count), 0);
    free(found);
    munmap(all, sizeof *all + (size_t)file_bytes);
    close(the.fd);
    mock_free(&the);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void check_counts(void)
{
    mpiox_cache_counters sum;
    int64_t dirty_frames = 0;
    mpiox_cache_sum(&the.cache, &sum);
    CHECK_EQUAL(sum.writes + sum.reads, all->accesses);
    CHECK_EQUAL(sum.hits + sum.misses, all->accesses);
    CHECK_EQUAL(sum.bytes_written, all->bytes_written);
    for (int32_t i = 0; i < the.cache.frame_count; i++) {
        int64_t offset = 0, length = 0, dirty = 0;
        while (mpiox_dirty_run(&the.cache, (uint32_t)i, offset + length, &offset, &length))
            dirty += length;
        CHECK_EQUAL(atomic_load(&the.cache.frames[i].dirty), dirty);
        CHECK_EQUAL(atomic_load(&the.cache.frames[i].pins), 0);
        dirty_frames += dirty > 0;
    }
    CHECK_EQUAL(atomic_load(&the.cache.header->dirty_frames), dirty_frames);
    CHECK(atomic_load(&the.cache.header->files[0].end) <= file_bytes);
}

static void threads(const char *path, uint64_t seed, int64_t page_bytes, int32_t frames, int64_t accesses)
{
    worker workers[WORKERS];
    pthread_t running[WORKERS], server;
    set_up(path, page_bytes, frames);
    CHECK(the.cache.frame_count >= frames && the.cache.page_bytes == page_bytes);
    pthread_create(&server, NULL, mock_run, &the);
    for (int i = 0; i < WORKERS; i++) {
        make_worker(&workers[i], i, seed, accesses);
        pthread_create(&running[i], NULL, work, &workers[i]);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(running[i], NULL);
        mpiox_typemap_free(workers[i].view);
    }
    mpiox_slot *slot = mpiox_ring_take(&the.cache);
    CHECK(slot != NULL && mpiox_ring_call(&the.cache, slot, NULL) == 0); /* nothing is pending any more */
    check_counts();
    slot->op = MPIOX_OP_FLUSH;
    CHECK_EQUAL(mpiox_ring_call(&the.cache, slot, NULL), 0);
    mpiox_ring_give_back(slot);
    atomic_store(&the.stop, true);
    pthread_join(server, NULL);
    CHECK_EQUAL(all->gone, 0);
    CHECK_EQUAL(atomic_load(&the.cache.header->dirty_frames), 0);
    compare_and_free();
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static pid_t start_delegate(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(100);
        mock_run(&the);
        _exit(0);
    }
    while (mpiox_futex_get(&the.cache.header->state) != MPIOX_CACHE_SERVING)
        usleep(100);
    return pid;
}

static pid_t start_worker(int index, uint64_t seed, int64_t accesses)
{
    const pid_t pid = fork();
    if (pid == 0) {
        worker mine;
        alarm(100);
        make_worker(&mine, index, seed, accesses);
        work(&mine);
        all->progress++;
        for (int i = 0; i < 50; i++) { /* until the delegate has gone: the rest is written to the file */
            while (!mine.direct)
                one_access(&mine);
            one_access(&mine);
        }
        mpiox_typemap_free(mine.view);
        _exit(0);
    }
    return pid;
}

static void kill_delegate_while(const char *path, uint64_t seed, int32_t frames)
{
    pid_t workers[WORKERS];
    int status;
    set_up(path, 4096, frames);
    const pid_t delegate = start_delegate();
    for (int i = 0; i < WORKERS; i++)
        workers[i] = start_worker(i, seed, 1);
    while (all->progress < WORKERS)
        usleep(100);
    usleep((useconds_t)(seed * 7919 % 3000));
    kill(delegate, SIGKILL);
    for (int i = 0; i < WORKERS; i++) {
        CHECK_EQUAL(waitpid(workers[i], &status, 0), workers[i]);
        CHECK_EQUAL(status, 0);
    }
    CHECK_EQUAL(waitpid(delegate, &status, 0), delegate);
    CHECK_EQUAL(all->gone, WORKERS);
    CHECK(!mpiox_cache_is_serving(&the.cache, true));
    CHECK_EQUAL(mpiox_cache_rescue(&the.cache), -1); /* once */
    compare_and_free();
}

/* A client has died as well, with a frame in its hands: the rescue does not wait for it for ever. */
static void client_died(const char *path, uint64_t seed)
{
    uint32_t frame;
    int status;
    set_up(path, 4096, 8);
    const pid_t delegate = start_delegate(), writer = start_worker(0, seed, 40);
    while (all->progress < 1)
        usleep(100);
    for (int64_t page = 0; page < PAGES; page++) {
        if (mpiox_frame_pin(&the.cache, 0, page, true, &frame) == MPIOX_FRAME_HIT)
            break; /* for good */
    }
    kill(delegate, SIGKILL);
    CHECK_EQUAL(waitpid(writer, &status, 0), writer);
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(waitpid(delegate, &status, 0), delegate);
    CHECK_EQUAL(atomic_load(&the.cache.frames[frame].pins) & ~MPIOX_FRAME_EXCLUSIVE, 1);
    compare_and_free();
}

/* A client that stops in the middle of its write until the others have waited long enough: its bytes are not among
 * the rescued ones, and its write must return that. */
static char *stopping; /* memory that cannot be read yet */
static pid_t stopped_delegate;

static void stop_here(int signal)
{
    (void)signal;
    kill(stopped_delegate, SIGKILL);
    while (mpiox_cache_is_serving(&the.cache, true))
        usleep(1000);
    mpiox_cache_rescue(&the.cache);
    if (mprotect(stopping, 4096, PROT_READ | PROT_WRITE) != 0)
        _exit(1);
    memset(stopping, 'x', 4096);
}

static void writer_stops(const char *path)
{
    const struct sigaction stop = {.sa_handler = stop_here};
    mpiox_error error;
    int64_t known;
    char byte = 0;
    int status;
    set_up(path, 4096, 2);
    stopped_delegate = start_delegate();
    stopping = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_EQUAL(sigaction(SIGSEGV, &stop, NULL), 0);
    const mpiox_page_access access = {
        .page = 1, .write = true, .position = 4096, .length = 100, .memory = {.base = stopping}};
    CHECK_EQUAL(mpiox_cache_access_page(&the.cache, &access, false, &known, &error), MPIOX_PAGE_GONE);
    signal(SIGSEGV, SIG_DFL);
    CHECK_EQUAL(stopping[0], 'x');
    CHECK_EQUAL(pread(the.fd, &byte, 1, 4096), 1);
    CHECK_EQUAL(byte, 0);
    CHECK_EQUAL(waitpid(stopped_delegate, &status, 0), stopped_delegate);
    munmap(stopping, 4096);
    mpiox_dirty_clear(&the.cache, mpiox_frame_find(&the.cache, 0, 1));
    compare_and_free();
}

/* ---- survivors that die ------------------------------------------------------------------------------------------ */

static void rescuer_dies(const char *path, uint64_t seed)
{
    worker mine;
    int status;
    set_up(path, 4096, PAGES);
    make_worker(&mine, 0, seed, 300);
    const pid_t delegate = start_delegate();
    work(&mine);
    kill(delegate, SIGKILL);
    CHECK_EQUAL(waitpid(delegate, &status, 0), delegate);
    CHECK(!mpiox_cache_is_serving(&the.cache, true));
    const pid_t first = fork();
    if (first == 0) {
        mpiox_cache_rescue(&the.cache);
        _exit(0);
    }
    usleep((useconds_t)(seed * 7919 % 6000));
    kill(first, SIGKILL);
    const int64_t rescued = mpiox_cache_rescue(&the.cache); /* waits for the first, or takes over */
    CHECK_EQUAL(waitpid(first, &status, 0), first);
    CHECK_EQUAL(mpiox_futex_get(&the.cache.header->state), MPIOX_CACHE_RESCUED);
    CHECK(rescued >= -1 && rescued <= file_bytes);
    CHECK(atomic_load(&the.cache.header->counters.rescued_bytes) <= file_bytes);
    mpiox_typemap_free(mine.view);
    compare_and_free();
}

/* The file has gone, or another one has its name: an error for each page, and nothing is written anywhere. */
static void no_file(const char *path, bool another)
{
    const char bytes[] = "0123456789";
    mpiox_error errors[MPIOX_CACHE_ERRORS];
    int64_t known;
    int status, more;
    set_up(path, 4096, 4);
    const pid_t delegate = start_delegate();
    for (int64_t page = 0; page < 2; page++) {
        for (int64_t k = 0; k < 2; k++) {
            const mpiox_page_access access = {.page = page,
                                              .write = true,
                                              .position = page * 4096 + 100 + 50 * k,
                                              .length = 10,
                                              .memory = {.base = (void *)(uintptr_t)bytes}};
            CHECK_EQUAL(mpiox_cache_access_page(&the.cache, &access, false, &known, &errors[0]), 0);
        }
    }
    CHECK_EQUAL(unlink(path), 0);
    if (another)
        close(open(path, O_WRONLY | O_CREAT, 0600));
    kill(delegate, SIGKILL);
    CHECK_EQUAL(waitpid(delegate, &status, 0), delegate);
    CHECK(!mpiox_cache_is_serving(&the.cache, true));
    CHECK_EQUAL(mpiox_cache_rescue(&the.cache), 0);
    CHECK_EQUAL(mpiox_cache_take_errors(&the.cache, 0, errors, MPIOX_CACHE_ERRORS, &more), 2);
    CHECK_EQUAL(more, 0);
    CHECK_EQUAL(errors[1].offset, 4096 + 100);
    CHECK_EQUAL(errors[1].length, 60);
    CHECK_EQUAL(errors[1].code, MPIOX_E_IO);
    struct stat now;
    CHECK_EQUAL(stat(path, &now), another ? 0 : -1);
    CHECK(!another || now.st_size == 0);
    compare_and_free();
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const uint64_t seed = (uint64_t)atoll(argv[3]) + 1;
    const int64_t rounds = argc > 4 ? atoll(argv[4]) : 1, shorter = argc > 5 ? atoll(argv[5]) : 1;
    for (int64_t i = 0; i < rounds; i++) {
        const uint64_t round_seed = seed * 1000 + (uint64_t)i;
        if (strcmp(argv[1], "threads") == 0) {
            threads(argv[2], round_seed, 4096, 1, 3000 / shorter);
            threads(argv[2], round_seed, 4096, 2, 10000 / shorter);
            threads(argv[2], round_seed, 4096, PAGES - 4, 20000 / shorter);
            threads(argv[2], round_seed, 3 * 4096, 5, 10000 / shorter);
        } else if (strcmp(argv[1], "frames") == 0) {
            threads(argv[2], round_seed, 4096, atoi(argv[6]), 2000 / shorter);
        } else if (strcmp(argv[1], "processes") == 0) {
            kill_delegate_while(argv[2], round_seed, i % 3 == 0 ? 1 : i % 3 == 1 ? 5 : PAGES);
        } else if (strcmp(argv[1], "holders") == 0) {
            client_died(argv[2], round_seed);
            writer_stops(argv[2]);
        } else if (strcmp(argv[1], "rescuers") == 0) {
            rescuer_dies(argv[2], round_seed);
            no_file(argv[2], i % 2 == 0);
        }
    }
    return check_exit();
}
