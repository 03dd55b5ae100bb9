/*
 * model.c - several clients write and read one file through a delegate at random; an array of bytes says what they must
 * find, and what the file must hold in the end.
 *
 *   model PATH FRAMES CLIENTS PROCESSES(0|1) IO_THREADS ROUNDS SEED [io_uring|SCHEDULER]
 *
 * In a round each client writes and reads bytes that are its own alone (grains of a few bytes, dealt out in turn), all
 * at the same time; then all read anything, and one of them flushes behind a barrier, discards, drops, or opens and
 * closes once more.
 */
#include "harness.h"
#include "mpiox_storage.h"

#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGE = 4096, FILE_BYTES = 40 * PAGE + 777, GRAIN = 37, OPERATIONS = 60, LONGEST = 3 * PAGE };

typedef struct shared { /* by all clients */
    pthread_barrier_t barrier;
    _Atomic int failures;
    int64_t end; /* of the file as the model sees it */
    int cut;     /* bytes to cut off, or -1 */
    _Atomic int file;
    char model[FILE_BYTES];
} shared;

typedef struct client {
    const mpiox_cache *cache;
    shared *all;
    const char *path;
    int index, count, rounds;
    uint32_t seed;
    pthread_t thread;
} client;

static void fail(client *self, const char *what, int64_t offset)
{
    if (atomic_fetch_add(&self->all->failures, 1) < 5)
        fprintf(stderr, "client %d: %s at %lld\n", self->index, what, (long long)offset);
}

static void read_and_compare(client *self, int64_t offset, int64_t length)
{
    char found[LONGEST];
    int64_t ahead[3] = {offset / PAGE + 1, offset / PAGE + 2, offset / PAGE + 3};
    access_how how = {.ahead = ahead, .ahead_count = 3, .client = self->index + 1};
    const int code = access_bytes(self->cache, self->all->file, false, found, offset, length, &how);
    if (code != MPIOX_OK) {
        fail(self, "reading failed", code);
        return;
    }
    for (int64_t i = 0; i < length; i++) {
        if (found[i] != self->all->model[offset + i]) {
            fail(self, "wrong byte", offset + i);
            return;
        }
    }
}

/* A grain of this client's, somewhere. */
static int64_t random_grain(const client *self, uint32_t *random)
{
    return (int64_t)(next_random(random) % (FILE_BYTES / GRAIN / (uint32_t)self->count)) * self->count + self->index;
}

/* Write part of one grain, or all of a stretch's own grains. */
static void write_some(client *self, uint32_t *random)
{
    char *model = self->all->model;
    int64_t grain = random_grain(self, random);
    const int64_t grains = next_random(random) % 8 == 0 ? 150 : 1;
    for (int64_t k = 0; k < grains; k++, grain += self->count) {
        const int64_t offset = grain * GRAIN + (grains == 1 ? next_random(random) % 9 : 0);
        const int64_t length = grain * GRAIN + GRAIN - offset;
        if (offset + length > FILE_BYTES)
            return;
        for (int64_t i = 0; i < length; i++)
            model[offset + i] = (char)next_random(random);
        access_how how = {.client = self->index + 1};
        if (access_bytes(self->cache, self->all->file, true, model + offset, offset, length, &how) != MPIOX_OK)
            fail(self, "writing failed", offset);
    }
}

static void compare_file(client *self)
{
    static char found[FILE_BYTES];
    memset(found, 0, sizeof found);
    const int64_t length = read_whole(self->path, found, sizeof found);
    if (length < 0)
        fail(self, "file cannot be read", 0);
    for (int64_t i = 0; i < FILE_BYTES; i++) {
        if (found[i] != self->all->model[i]) {
            fail(self, "wrong byte in the file", i);
            return;
        }
    }
}

/* One client, while the others do nothing. */
static void act_alone(client *self, uint32_t *random)
{
    shared *all = self->all;
    const mpiox_cache *cache = self->cache;
    const uint32_t what = next_random(random) % 5;
    if (what <= 1) {
        if (flush_file(cache, all->file, what == 1, what == 1) != MPIOX_OK)
            fail(self, "flush", 0);
        compare_file(self);
    } else if (what == 2) {
        const int64_t from = next_random(random) % FILE_BYTES;
        if (request(cache, MPIOX_OP_DISCARD, all->file, (mpiox_op_question){.discard.byte = from}, NULL) != MPIOX_OK)
            fail(self, "discard", from);
        if (truncate(self->path, from) != 0 || truncate(self->path, FILE_BYTES) != 0)
            fail(self, "truncate", from);
        memset(all->model + from, 0, (size_t)(FILE_BYTES - from));
    } else if (what == 3) {
        if (open_shared(cache, self->path, MPIOX_FILE_READABLE | MPIOX_FILE_WRITABLE, 1, 1) != all->file)
            fail(self, "second opening", 0);
        if (close_shared(cache, all->file) != MPIOX_OK)
            fail(self, "close", 0);
        compare_file(self);
    } else if (request(cache, MPIOX_OP_PING, 0, nothing, NULL) != MPIOX_OK) {
        fail(self, "ping", 0);
    }
}

static void *run_client(void *context)
{
    client *self = context;
    uint32_t random = self->seed * 7919 + (uint32_t)self->index * 104729 + 1;
    const int id = mpiox_ring_join(self->cache);
    while (self->all->file < 0)
        usleep(1000);
    pthread_barrier_wait(&self->all->barrier);
    for (int round = 0; round < self->rounds; round++) {
        for (int i = 0; i < OPERATIONS; i++) {
            if (next_random(&random) % 3 != 0) {
                write_some(self, &random);
            } else {
                int64_t grain = random_grain(self, &random);
                for (int k = 0; k < 20 && (grain + 1) * GRAIN <= FILE_BYTES; k++, grain += self->count)
                    read_and_compare(self, grain * GRAIN, GRAIN);
            }
        }
        pthread_barrier_wait(&self->all->barrier);
        for (int i = 0; i < 10; i++) {
            const int64_t length = 1 + next_random(&random) % LONGEST;
            read_and_compare(self, next_random(&random) % (FILE_BYTES - length), length);
        }
        pthread_barrier_wait(&self->all->barrier);
        if (self->index == round % self->count)
            act_alone(self, &random);
        pthread_barrier_wait(&self->all->barrier);
    }
    if (self->index == 0 && close_shared(self->cache, self->all->file) != MPIOX_OK)
        fail(self, "last close", 0);
    pthread_barrier_wait(&self->all->barrier);
    leave(self->cache, id);
    return NULL;
}

static shared *make_shared(int clients)
{
    pthread_barrierattr_t attributes;
    shared *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    all->file = -1;
    pthread_barrier_init(&all->barrier, &attributes, (unsigned)clients);
    return all;
}

/* A client process: it attaches to the segment like any other. */
static int be_process(client *self, const mpiox_segment_address *address)
{
    mpiox_segment segment;
    mpiox_cache cache;
    if (mpiox_segment_attach(address, &segment, NULL) != MPIOX_OK ||
        mpiox_cache_attach(segment.base, segment.bytes, &cache) != MPIOX_OK)
        return 1;
    self->cache = &cache;
    run_client(self);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 8 && argc != 9)
        return 2;
    const char *path = argv[1];
    const int frames = atoi(argv[2]), clients = atoi(argv[3]), rounds = atoi(argv[6]);
    const bool processes = atoi(argv[4]) != 0;
    mpiox_server_options options = options_for(PAGE, frames);
    options.io_threads = atoi(argv[5]);
    const bool uring = argc == 9 && strcmp(argv[8], "io_uring") == 0;
    options.storage = uring ? MPIOX_STORAGE_IO_URING : MPIOX_STORAGE_AUTO;
    snprintf(options.scheduler, sizeof options.scheduler, "%s", argc == 9 && !uring ? argv[8] : "");
    options.quantum = 3 * PAGE;
    options.window_us = 300;
    options.order_patience_ms = 20;
    options.prefetch_pages = frames > 8 ? 4 : 0;
    shared *all = make_shared(clients);
    client list[32];
    pid_t pids[32];
    running delegate;
    make_file(path, NULL, 0);
    CHECK_EQUAL(truncate(path, FILE_BYTES), 0);
    const mpiox_cache *cache = create_server(&delegate, &options);
    for (int i = 0; i < clients; i++) {
        list[i] = (client){cache, all, path, i, clients, rounds, (uint32_t)atoi(argv[7]), 0};
        pids[i] = processes ? fork() : 0; /* before there are threads */
        if (processes && pids[i] == 0)
            _exit(be_process(&list[i], &delegate.address));
    }
    pthread_create(&delegate.thread, NULL, run_server, &delegate);
    all->file = open_shared(cache, path, MPIOX_FILE_READABLE | MPIOX_FILE_WRITABLE, 1, 1);
    CHECK_EQUAL(all->file, 0);
    for (int i = 0; i < clients && !processes; i++)
        pthread_create(&list[i].thread, NULL, run_client, &list[i]);
    for (int i = 0; i < clients; i++) {
        int status = 0;
        if (processes)
            waitpid(pids[i], &status, 0);
        else
            pthread_join(list[i].thread, NULL);
        CHECK_EQUAL(status, 0);
    }
    mpiox_cache_counters sum, *counters = &sum;
    mpiox_cache_sum(cache, counters);
    const bool ordered = options.scheduler[0] != '\0';
    CHECK(ordered == (counter(&counters->queued_most) > 0));
    printf("frames %d: writes %lld reads %lld hits %lld misses %lld flushes %lld fills %lld prefetched %lld used %lld "
           "evictions %lld waits %lld flush barriers %lld\n",
           cache->frame_count, (long long)counter(&counters->writes), (long long)counter(&counters->reads),
           (long long)counter(&counters->hits), (long long)counter(&counters->misses),
           (long long)counter(&counters->flushes), (long long)counter(&counters->fills),
           (long long)counter(&counters->prefetched), (long long)counter(&counters->prefetch_used),
           (long long)counter(&counters->evictions), (long long)counter(&counters->waits),
           (long long)counter(&counters->flush_barriers));
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
    compare_file(&list[0]);
    CHECK_EQUAL(all->failures, 0);
    return check_exit();
}
