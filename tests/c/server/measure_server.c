/*
 * measure_server.c - how fast processes write and read interleaved blocks of one file through a delegate (by hand; no
 * test).
 *
 *   measure_server PATH PROCESSES BLOCK_BYTES FILE_MIB PAGE_BYTES CAP_BYTES [IO_THREADS]
 */
#include "harness.h"

#include <sys/mman.h>
#include <sys/wait.h>

typedef struct shared {
    pthread_barrier_t barrier;
    _Atomic int file;
    double times[8];
} shared;

static void stamp(shared *all, int index, int which)
{
    pthread_barrier_wait(&all->barrier);
    if (index == 0)
        all->times[which] = mpiox_now();
}

static void be_client(const mpiox_segment_address *address, shared *all, int index, int count, int64_t block,
                      int64_t bytes, const char *path)
{
    mpiox_segment segment;
    mpiox_cache cache;
    char *memory = malloc((size_t)block);
    char other[600];
    snprintf(other, sizeof other, "%s.direct", path);
    const int fd = open(other, O_RDWR);
    memset(memory, index + 1, (size_t)block);
    if (fd < 0 || mpiox_segment_attach(address, &segment, NULL) != 0 ||
        mpiox_cache_attach(segment.base, segment.bytes, &cache) != 0)
        _exit(1);
    const int id = mpiox_ring_join(&cache);
    while (all->file < 0)
        usleep(100);
    stamp(all, index, 0);
    for (int64_t at = index * block; at < bytes; at += count * block)
        (void)access_bytes(&cache, all->file, true, memory, at, block, NULL);
    stamp(all, index, 1);
    if (index == 0)
        (void)flush_file(&cache, all->file, false, true);
    stamp(all, index, 2);
    for (int64_t at = index * block; at < bytes; at += count * block) {
        const int64_t page = at / cache.page_bytes, ahead[2] = {page + 1, page + 2};
        access_how how = {.ahead = ahead, .ahead_count = 2};
        if (access_bytes(&cache, all->file, false, memory, at, block, &how) != 0 || memory[0] != index + 1)
            _exit(2);
    }
    stamp(all, index, 3);
    for (int64_t at = index * block; at < bytes; at += count * block)
        if (pwrite(fd, memory, (size_t)block, at) != block)
            _exit(3);
    stamp(all, index, 4);
    for (int64_t at = index * block; at < bytes; at += count * block)
        if (pread(fd, memory, (size_t)block, at) != block)
            _exit(4);
    stamp(all, index, 5);
    leave(&cache, id);
    _exit(0);
}

int main(int argc, char **argv)
{
    if (argc < 7)
        return 2;
    const int count = atoi(argv[2]);
    const int64_t block = atoll(argv[3]), bytes = atoll(argv[4]) << 20;
    mpiox_server_options options = {
        .geometry = {.page_bytes = atoll(argv[5]), .cap_bytes = atoll(argv[6]), .slots = 16},
        .delegates = 1,
        .io_threads = argc > 7 ? atoi(argv[7]) : 1,
        .prefetch_pages = 4,
        .patience_s = 5};
    shared *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t attributes;
    running delegate;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&all->barrier, &attributes, (unsigned)count);
    all->file = -1;
    char other[600];
    snprintf(other, sizeof other, "%s.direct", argv[1]);
    make_file(argv[1], NULL, 0);
    make_file(other, NULL, 0);
    const mpiox_cache *cache = create_server(&delegate, &options);
    for (int i = 0; i < count; i++) {
        if (fork() == 0)
            be_client(&delegate.address, all, i, count, block, bytes, argv[1]);
    }
    pthread_create(&delegate.thread, NULL, run_server, &delegate);
    all->file = open_shared(cache, argv[1], MPIOX_FILE_READABLE | MPIOX_FILE_WRITABLE, 1, 1);
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status;
    mpiox_cache_counters sum, *c = &sum;
    mpiox_cache_sum(cache, c);
    const double *t = all->times, mb = (double)bytes / 1e6;
    printf("write %.0f (with flush barrier %.0f) read %.0f; direct: write %.0f read %.0f MB/s%s\n", mb / (t[1] - t[0]),
           mb / (t[2] - t[0]), mb / (t[3] - t[2]), mb / (t[4] - t[3]), mb / (t[5] - t[4]), failed ? " FAILED" : "");
    printf("frames %d requests %lld waits %lld flush requests %lld of %.0f bytes, fill requests %lld, prefetched %lld "
           "used %lld\n",
           cache->frame_count, (long long)counter(&c->requests), (long long)counter(&c->waits),
           (long long)counter(&c->flush_requests),
           (double)counter(&c->flush_bytes) / (double)(counter(&c->flush_requests) + !counter(&c->flush_requests)),
           (long long)counter(&c->fill_requests), (long long)counter(&c->prefetched),
           (long long)counter(&c->prefetch_used));
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
    CHECK_EQUAL(failed, 0);
    return check_exit();
}
