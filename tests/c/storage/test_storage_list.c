/*
 * test_storage_list.c - the same conformance cases for every back end: lists of pieces against a model in memory, ends
 * of files, faults, direct I/O beside a neighbour, threads.
 *
 *   test_storage_list conformance BACK_END FOLDER    exit status 77, with the reason, when it cannot be had
 *   test_storage_list threads BACK_END FOLDER
 *   test_storage_list limits                         huge lengths and lists through a back end that only looks
 *   test_storage_list fallback WISH FOLDER           a wish (io_uring, direct-posix) that cannot be granted here;
 *                                                    WISH=refused: io_uring that the kernel refuses
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_fault.h"
#include "mpiox_storage.h"

enum { SPACE = 300000, PIECES = 400, SKIPPED = 77 };

static const struct back_end {
    const char *name;
    mpiox_storage_options options;
} back_ends[] = {
    {"posix", {.kind = MPIOX_STORAGE_POSIX}},
    {"auto", {.kind = MPIOX_STORAGE_AUTO}},
    {"io_uring", {.kind = MPIOX_STORAGE_IO_URING}},
    {"io_uring-1", {.kind = MPIOX_STORAGE_IO_URING, .io_uring_depth = 1}},
    {"io_uring-5", {.kind = MPIOX_STORAGE_IO_URING, .io_uring_depth = 5}},
    {"direct-posix", {.kind = MPIOX_STORAGE_POSIX, .direct_read = true, .direct_write = true}},
    {"direct-auto", {.kind = MPIOX_STORAGE_AUTO, .direct_read = true, .direct_write = true}},
    {"direct-io_uring", {.kind = MPIOX_STORAGE_IO_URING, .direct_read = true, .direct_write = true}},
    {"direct-read", {.kind = MPIOX_STORAGE_AUTO, .direct_read = true}},
    {"direct-write", {.kind = MPIOX_STORAGE_AUTO, .direct_write = true}},
    {"direct-changing", {.kind = MPIOX_STORAGE_AUTO, .direct_read = true, .direct_write = true, .changing = true}},
};

static const struct back_end *chosen;
static char path[512];
static unsigned char *source, *target, model[SPACE];
static int64_t model_size;
static mpiox_storage_piece pieces[PIECES];
static uint64_t seed = 20240229;

static int64_t draw(int64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

static mpiox_storage *open_existing(int flags)
{
    mpiox_storage *storage = NULL;
    mpiox_error error;
    CHECK_EQUAL(mpiox_storage_open(path, flags, 0, &chosen->options, &storage, &error), 0);
    return storage;
}

static mpiox_storage *open_empty(void)
{
    memset(model, 0, SPACE);
    model_size = 0;
    close(open(path, O_RDWR | O_CREAT | O_TRUNC, 0600));
    return open_existing(O_RDWR);
}

/* The same behind rules. */
static mpiox_storage *open_faulty(const char *rules)
{
    mpiox_storage *storage = NULL;
    CHECK_EQUAL(mpiox_storage_close(open_empty()), 0);
    CHECK_EQUAL(mpiox_fault_open(rules, path, O_RDWR, 0, &chosen->options, &storage, NULL), 0);
    return storage;
}

static int64_t size_of(mpiox_storage *storage)
{
    struct stat status;
    CHECK_EQUAL(fstat(storage->fd, &status), 0);
    return status.st_size;
}

/* ---- random lists ------------------------------------------------------------------------------------------------ */

static int64_t random_length(void)
{
    static const int64_t around[] = {0, 1, 8, 512, 4096, 8192, 20000};
    int64_t length = around[draw(7)];
    return draw(3) == 0 ? length : draw(length + 1);
}

/* Pieces that do not overlap, some touching in the file, some in memory too, some aligned to blocks, in any order. */
static int random_pieces(unsigned char *memory)
{
    int64_t at = draw(3) == 0 ? 0 : draw(SPACE / 2), in_memory = 0;
    int n = 0;
    while (n < PIECES) {
        if (draw(2) == 0)
            at += draw(2) == 0 ? random_length() : (4096 - at % 4096) % 4096;
        if (draw(2) == 0)
            in_memory += draw(2) == 0 ? draw(100) : (4096 - in_memory % 4096) % 4096;
        int64_t length = random_length();
        if (at + length > SPACE || in_memory + length > SPACE || draw(PIECES) == 0)
            break;
        pieces[n++] = (mpiox_storage_piece){memory + in_memory, length, at};
        at += length;
        in_memory += length;
    }
    for (int i = n - 1; i > 0 && draw(3) == 0; i--) { /* some lists are out of order */
        int j = (int)draw(i + 1);
        mpiox_storage_piece swapped = pieces[i];
        pieces[i] = pieces[j];
        pieces[j] = swapped;
    }
    return n;
}

static void check_read_list(mpiox_storage *storage, int64_t size)
{
    int n = random_pieces(target);
    int64_t end, expected = INT64_MAX;
    memset(target, 0xee, SPACE);
    CHECK_EQUAL(mpiox_storage_read_list(storage, pieces, n, &end, NULL), 0);
    for (int i = 0; i < n; i++) {
        int64_t there = size - pieces[i].offset;
        there = there < 0 ? 0 : there < pieces[i].length ? there : pieces[i].length;
        if (there < pieces[i].length && pieces[i].offset + there < expected)
            expected = pieces[i].offset + there;
        CHECK(memcmp(pieces[i].base, model + pieces[i].offset, (size_t)there) == 0);
    }
    CHECK_EQUAL(end, expected);
}

static void check_against_model(mpiox_storage *storage, int rounds)
{
    int64_t size = model_size, done;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < SPACE; i++)
            source[i] = (unsigned char)(i * 31 + i / 256 + round * 7 + 1);
        int n = random_pieces(source);
        CHECK_EQUAL(mpiox_storage_write_list(storage, pieces, n, NULL), 0);
        for (int i = 0; i < n; i++) {
            memcpy(model + pieces[i].offset, pieces[i].base, (size_t)pieces[i].length);
            if (pieces[i].length > 0 && pieces[i].offset + pieces[i].length > size)
                size = pieces[i].offset + pieces[i].length;
        }
        if (draw(3) == 0) { /* a plain write between the lists */
            int64_t at = draw(SPACE - 20000), length = random_length(), from = draw(100);
            CHECK_EQUAL(mpiox_storage_write(storage, source + from, length, at, NULL), 0);
            memcpy(model + at, source + from, (size_t)length);
            size = length > 0 && at + length > size ? at + length : size;
        }
        check_read_list(storage, size);
        CHECK_EQUAL(mpiox_storage_read(storage, target, SPACE, 0, &done, NULL), 0);
        CHECK_EQUAL(done, size);
        CHECK(memcmp(target, model, (size_t)size) == 0);
    }
    model_size = size;
}

static void test_random(void)
{
    mpiox_storage *storage = open_empty();
    check_against_model(storage, 60);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
    /* What the handle's owner sees is what others see. */
    memset(target, 0, SPACE);
    int fd = open(path, O_RDONLY);
    int64_t size = read(fd, target, SPACE);
    CHECK(size > 0 && memcmp(target, model, (size_t)size) == 0 && size == lseek(fd, 0, SEEK_END));
    close(fd);
}

/* Reads that must wait for the device. */
static void test_not_cached(void)
{
    mpiox_storage *storage = open_empty();
    check_against_model(storage, 10);
    for (int round = 0; round < 20; round++) {
        CHECK_EQUAL(mpiox_storage_sync(storage, NULL), 0);
        CHECK_EQUAL(posix_fadvise(storage->fd, 0, 0, POSIX_FADV_DONTNEED), 0);
        if (round % 2 == 0)
            CHECK(pread(storage->fd, target, 1, draw(SPACE)) >= 0); /* some of it is cached again */
        check_read_list(storage, model_size);
    }
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
}

static void test_random_with_faults(void)
{
    static const char *const rules[] = {"short=1000", "op=write,short=7,times=500;op=read,short=333", "errno=EINTR",
                                        "op=any,after=10,times=30,errno=EINTR;short=4097", "after=3,times=90,short=1"};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        mpiox_storage *storage = open_faulty(rules[i]);
        check_against_model(storage, 6);
        CHECK_EQUAL(mpiox_storage_close(storage), 0);
    }
}

/* ---- what the calls promise -------------------------------------------------------------------------------------- */

static void test_illegal(void)
{
    mpiox_storage *storage = open_empty();
    mpiox_error error;
    int64_t end;
    mpiox_storage_piece bad[3] = {{source, 10, 0}, {source, 10, 100}, {source, -1, 200}};
    CHECK_EQUAL(mpiox_storage_write_list(storage, bad, 3, &error), MPIOX_E_ARG);
    CHECK(error.offset == 200 && error.length == -1);
    bad[2] = (mpiox_storage_piece){source, 10, -5};
    CHECK_EQUAL(mpiox_storage_write_list(storage, bad, 3, &error), MPIOX_E_ARG);
    bad[2] = (mpiox_storage_piece){source, 10, INT64_MAX - 9};
    CHECK_EQUAL(mpiox_storage_read_list(storage, bad, 3, &end, NULL), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_storage_write_list(storage, bad, -1, &error), MPIOX_E_ARG);
    CHECK_EQUAL(storage->counters.write_requests + storage->counters.read_requests, 0);
    CHECK_EQUAL(size_of(storage), 0);
    CHECK_EQUAL(mpiox_storage_write_list(storage, NULL, 0, &error), 0);
    CHECK_EQUAL(mpiox_storage_read_list(storage, NULL, 0, &end, &error), 0);
    CHECK(end == INT64_MAX);
    bad[2] = (mpiox_storage_piece){NULL, 0, INT64_MAX};
    CHECK_EQUAL(mpiox_storage_write_list(storage, bad + 2, 1, &error), 0);
    CHECK_EQUAL(size_of(storage), 0);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
}

/* Pieces that touch in the file become vector calls, and those that touch in memory, too, one vector. */
static void test_merging(void)
{
    enum { N = 3000 };
    static mpiox_storage_piece touching[N];
    mpiox_storage *storage = open_empty();
    int64_t end;
    for (int i = 0; i < N; i++) /* backwards in memory */
        touching[i] = (mpiox_storage_piece){source + (N - 1 - i) * 10, 10, 5 + i * 10};
    CHECK_EQUAL(mpiox_storage_write_list(storage, touching, N, NULL), 0);
    CHECK_EQUAL(storage->counters.write_bytes, N * 10);
    if (strncmp(chosen->name, "direct", 6) != 0)
        CHECK_EQUAL(storage->counters.write_requests, 3);
    for (int i = 0; i < N; i++)
        touching[i].base = target + (N - 1 - i) * 10;
    memset(target, 0, SPACE);
    CHECK_EQUAL(mpiox_storage_read_list(storage, touching, N, &end, NULL), 0);
    CHECK(memcmp(source, target, N * 10) == 0 && end == INT64_MAX);
    for (int i = 0; i < N; i++)
        touching[i] = (mpiox_storage_piece){source + i * 10, 10, i * 10};
    int64_t before = storage->counters.write_requests;
    CHECK_EQUAL(mpiox_storage_write_list(storage, touching, N, NULL), 0);
    if (strncmp(chosen->name, "direct", 6) != 0)
        CHECK_EQUAL(storage->counters.write_requests - before, 1);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
}

static void ten_pieces(unsigned char *memory)
{
    for (int i = 0; i < 10; i++)
        pieces[i] = (mpiox_storage_piece){memory + i * 100, 100, i * 200};
}

static void test_faults(void)
{
    mpiox_error error;
    int64_t end;
    mpiox_storage *storage = open_faulty("op=write,after=5,errno=ENOSPC");
    ten_pieces(source);
    CHECK_EQUAL(mpiox_storage_write_list(storage, pieces, 10, &error), MPIOX_E_IO);
    CHECK(error.sys_errno == ENOSPC && error.offset == 1000 && error.length == 100);
    CHECK(strcmp(error.what, "write") == 0);
    ten_pieces(target);
    CHECK_EQUAL(mpiox_storage_read_list(storage, pieces, 10, &end, &error), 0);
    CHECK_EQUAL(end, 1000); /* the file ends at 900, which no piece contains */
    for (int i = 0; i < 5; i++)
        CHECK(memcmp(target + i * 100, source + i * 100, 100) == 0);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
    /* Half of a piece, then an error: what is missing of it. Touching pieces stay calls of their own. */
    storage = open_faulty("op=write,after=3,times=1,short=30;op=write,after=4,errno=EIO");
    for (int i = 0; i < 10; i++)
        pieces[i] = (mpiox_storage_piece){source + i * 100, 100, i * 100};
    CHECK_EQUAL(mpiox_storage_write_list(storage, pieces, 10, &error), MPIOX_E_IO);
    CHECK(error.sys_errno == EIO && ((error.offset == 330 && error.length == 70) || error.offset == 400));
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
    storage = open_faulty("op=read,after=2,short=0");
    ten_pieces(source);
    CHECK_EQUAL(mpiox_storage_write_list(storage, pieces, 10, &error), 0);
    CHECK_EQUAL(mpiox_storage_read_list(storage, pieces, 10, &end, &error), 0);
    CHECK_EQUAL(end, 400);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
    storage = open_faulty("op=write,after=1,short=0");
    CHECK_EQUAL(mpiox_storage_write_list(storage, pieces, 10, &error), MPIOX_E_IO);
    CHECK(error.sys_errno == ENOSPC && error.offset == 200 && error.length == 100);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
}

/* Errors of the system itself, not of rules: a descriptor that may not write, and a limit in the middle of a list. */
static void test_real_errors(void)
{
    mpiox_error error;
    struct rlimit old, low;
    close(open(path, O_RDWR | O_CREAT | O_TRUNC, 0600));
    mpiox_storage *storage = open_existing(O_RDONLY);
    ten_pieces(source);
    CHECK_EQUAL(mpiox_storage_write_list(storage, pieces, 10, &error), MPIOX_E_IO);
    CHECK(error.sys_errno == EBADF && error.offset == 0 && error.length == 100);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
    storage = open_empty();
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    low = (struct rlimit){.rlim_cur = 1050, .rlim_max = old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &low);
    int code = mpiox_storage_write_list(storage, pieces, 10, &error);
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK_EQUAL(code, MPIOX_E_IO);
    CHECK(error.sys_errno == EFBIG && error.offset == 1050 && error.length == 50);
    CHECK_EQUAL(size_of(storage), 1050);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
}

/* Beyond 2^31 and 2^32 in the file; more than one call may move: nobody looks at what goes to /dev/null. */
static void test_large(void)
{
    const int64_t far = (INT64_C(5) << 30) - 3000, huge = (INT64_C(3) << 30) + 1;
    int64_t end;
    mpiox_storage *storage = open_empty();
    mpiox_storage_piece list[] = {{source, 5000, far}, {source + 5000, 100, far + 7000}, {source + 6000, 50, 10}};
    CHECK_EQUAL(mpiox_storage_write_list(storage, list, 3, NULL), 0);
    CHECK_EQUAL(size_of(storage), far + 7100);
    for (int i = 0; i < 3; i++)
        list[i].base = target + ((unsigned char *)list[i].base - source);
    memset(target, 0, SPACE);
    CHECK_EQUAL(mpiox_storage_read_list(storage, list, 3, &end, NULL), 0);
    CHECK(memcmp(target, source, 5100) == 0 && memcmp(target + 6000, source + 6000, 50) == 0 && end == INT64_MAX);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
    void *memory = mmap(NULL, (size_t)huge, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK_EQUAL(mpiox_storage_open("/dev/null", O_WRONLY, 1, &chosen->options, &storage, NULL), 0);
    mpiox_storage_piece much[] = {{memory, huge, 0}, {memory, 10, huge + 5}, {memory, huge, huge + 15}};
    CHECK_EQUAL(mpiox_storage_write_list(storage, much, 3, NULL), 0);
    CHECK_EQUAL(storage->counters.write_bytes, 2 * huge + 10);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
    munmap(memory, (size_t)huge);
}

/* ---- direct I/O -------------------------------------------------------------------------------------------------- */

/* A handle of its own and the page cache see the same file at any time, in both directions. */
static void test_coherence(void)
{
    mpiox_storage *storage = open_empty();
    int fd = open(path, O_RDWR);
    int64_t done;
    for (int round = 0; round < 100; round++) {
        int64_t at = draw(20000), length = 1 + draw(40000);
        memset(source, round + 1, (size_t)length);
        CHECK(pread(fd, target, SPACE, 0) >= 0); /* fill the page cache */
        CHECK_EQUAL(mpiox_storage_write(storage, source, length, at, NULL), 0);
        CHECK(pread(fd, target, (size_t)length, at) == length && memcmp(source, target, (size_t)length) == 0);
        memset(source, round + 101, (size_t)length);
        CHECK(pwrite(fd, source, (size_t)length, at) == length); /* dirty in the page cache */
        CHECK_EQUAL(mpiox_storage_read(storage, target, length, at, &done, NULL), 0);
        CHECK(done == length && memcmp(source, target, (size_t)length) == 0);
    }
    close(fd);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
}

typedef struct neighbour {
    pthread_barrier_t *barrier;
    mpiox_storage *storage;
    const int64_t *borders; /* of every round: where the left one ends */
    int64_t rounds, end, failed;
    bool right;
} neighbour;

static unsigned char byte_of(bool right, int64_t round)
{
    return (unsigned char)(round * 2 + right + 1);
}

static void *write_beside(void *argument)
{
    neighbour *n = argument;
    unsigned char *memory = aligned_alloc(4096, 1 << 18);
    for (int64_t round = 0; round < n->rounds; round++) {
        int64_t from = n->right ? n->borders[round] : 0, to = n->right ? n->end : n->borders[round];
        memset(memory, byte_of(n->right, round), (size_t)(to - from));
        pthread_barrier_wait(n->barrier);
        n->failed += mpiox_storage_write(n->storage, memory, to - from, from, NULL) != MPIOX_OK;
        pthread_barrier_wait(n->barrier); /* the main thread looks */
        pthread_barrier_wait(n->barrier);
    }
    free(memory);
    return NULL;
}

/* Two ranks write the two parts of a range at the same time, the border being inside a block. */
static void test_neighbours(void)
{
    enum { ROUNDS = 200, END = 50001 };
    static int64_t borders[ROUNDS];
    pthread_barrier_t barrier;
    pthread_t threads[2];
    mpiox_storage *reader = open_empty();
    neighbour n[2];
    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < ROUNDS; i++)
        borders[i] = 1 + draw(END - 1);
    for (int i = 0; i < 2; i++) {
        n[i] = (neighbour){&barrier, open_existing(O_RDWR), borders, ROUNDS, END, 0, i == 1};
        pthread_create(&threads[i], NULL, write_beside, &n[i]);
    }
    for (int64_t round = 0; round < ROUNDS; round++) {
        int64_t done, wrong = 0;
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        CHECK_EQUAL(mpiox_storage_read(reader, target, SPACE, 0, &done, NULL), 0);
        CHECK_EQUAL(done, END); /* never longer than what was written */
        for (int64_t i = 0; i < END; i++)
            wrong += target[i] != byte_of(i >= borders[round], round);
        CHECK_EQUAL(wrong, 0);
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQUAL(n[i].failed, 0);
        CHECK_EQUAL(mpiox_storage_close(n[i].storage), 0);
    }
    CHECK_EQUAL(mpiox_storage_close(reader), 0);
    pthread_barrier_destroy(&barrier);
}

/* ---- threads on one handle --------------------------------------------------------------------------------------- */

enum { THREADS = 2, LISTS = 40, CELLS = 100, CELL = 5000 };

typedef struct worker {
    mpiox_storage *storage;
    int index;
    int64_t wrong, bytes;
} worker;

/* Every thread has every THREADS-th cell: odd pieces of it, as a list, and then all of one cell as a plain request. */
static void *work(void *argument)
{
    worker *w = argument;
    unsigned char *memory = aligned_alloc(4096, CELLS * 8192), *back = aligned_alloc(4096, CELLS * 8192);
    mpiox_storage_piece list[CELLS];
    mpiox_error error;
    for (int round = 0; round < LISTS; round++) {
        int64_t end, done;
        memset(memory, round * THREADS + w->index + 1, CELLS * 8192);
        for (int i = 0; i < CELLS; i++)
            list[i] = (mpiox_storage_piece){memory + i * 8192, CELL - 1, (int64_t)(i * THREADS + w->index) * CELL};
        w->wrong += mpiox_storage_write_list(w->storage, list, CELLS, &error) != MPIOX_OK;
        for (int i = 0; i < CELLS; i++)
            list[i].base = back + i * 8192;
        w->wrong += mpiox_storage_read_list(w->storage, list, CELLS, &end, &error) != MPIOX_OK || end != INT64_MAX;
        for (int i = 0; i < CELLS; i++)
            w->wrong += memcmp(memory, list[i].base, CELL - 1) != 0;
        w->wrong += mpiox_storage_write(w->storage, memory, CELL - 1, w->index * CELL, &error) != MPIOX_OK;
        w->wrong += mpiox_storage_read(w->storage, back, CELL - 1, w->index * CELL, &done, &error) != MPIOX_OK;
        w->wrong += memcmp(memory, back, CELL - 1) != 0;
        w->bytes += (CELLS + 1) * (CELL - 1);
    }
    free(memory);
    free(back);
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    worker workers[THREADS];
    int64_t bytes = 0;
    mpiox_storage *storage = open_empty();
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.storage = storage, .index = i};
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQUAL(workers[i].wrong, 0);
        bytes += workers[i].bytes;
    }
    CHECK_EQUAL(storage->counters.write_bytes, bytes);
    CHECK_EQUAL(storage->counters.read_bytes, bytes);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
}

/* ---- what breaks or is missing ----------------------------------------------------------------------------------- */

/* A descriptor of this process on `link` (as /proc/self/fd shows it) with all of `flags`, or -1. */
static int find_descriptor(const char *link, int flags)
{
    char name[64], text[600];
    for (int fd = 3; fd < 200; fd++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        ssize_t bytes = readlink(name, text, sizeof text - 1);
        text[bytes > 0 ? bytes : 0] = '\0';
        if (strcmp(text, link) == 0 && (fcntl(fd, F_GETFL) & flags) == flags)
            return fd;
    }
    return -1;
}

/* The ring fails under a handle: it goes on without. */
static void test_lost_ring(void)
{
    mpiox_storage *storage = open_empty();
    int ring = find_descriptor("anon_inode:[io_uring]", 0), null = open("/dev/null", O_RDWR);
    check_against_model(storage, 3);
    CHECK(ring >= 0 && dup2(null, ring) == ring);
    check_against_model(storage, 10);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
    close(null);
}

/* A file system that takes O_DIRECT at open and refuses it at a transfer. Stood in for by a file that answers EINVAL to
 * what is no number. */
static void test_refused_transfer(void)
{
    mpiox_storage *storage = open_empty();
    char real[512];
    int direct = realpath(path, real) != NULL ? find_descriptor(real, O_DIRECT) : -1;
    int refusing = open("/proc/self/oom_score_adj", O_WRONLY);
    CHECK(direct >= 0 && refusing >= 0);
    memset(source, 'x', SPACE);
    CHECK(direct < 0 || dup2(refusing, direct) == direct);
    CHECK_EQUAL(mpiox_storage_write(storage, source, 20000, 100, NULL), 0);
    CHECK_EQUAL(size_of(storage), 20100);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
    close(refusing);
}

/* From now on this process may not make a ring, as in many containers. */
static void refuse_rings(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
    CHECK_EQUAL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQUAL(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void test_fallback(const char *wish)
{
    static const struct back_end automatic = {"auto", {.kind = MPIOX_STORAGE_AUTO}};
    if (strcmp(wish, "refused") == 0)
        refuse_rings();
    for (int i = 0; i < 3; i++) { /* printed once only: the caller checks standard error */
        mpiox_storage *storage = open_empty();
        CHECK(strcmp(storage->backend->name, "posix") == 0);
        check_against_model(storage, 3);
        CHECK_EQUAL(mpiox_storage_close(storage), 0);
    }
    chosen = &automatic; /* says nothing */
    test_not_cached();
}

/* ---- a back end that only looks ---------------------------------------------------------------------------------- */

static int64_t seen_calls, seen_bytes;

static int64_t look_transfer(mpiox_storage *storage, bool write, const struct iovec *iov, int iov_count, int64_t offset)
{
    int64_t bytes = 0;
    (void)storage, (void)write, (void)offset;
    for (int i = 0; i < iov_count; i++)
        bytes += (int64_t)iov[i].iov_len;
    CHECK(iov_count <= 1024 && bytes > 0 && bytes <= 0x7ffff000);
    seen_calls++;
    seen_bytes += bytes;
    return bytes;
}

/* Every fourth call done, every fourth half done, the others left. */
static void look_many(mpiox_storage *storage, bool write, mpiox_storage_call *calls, int count)
{
    for (int i = 0; i < count; i++) {
        int64_t bytes = look_transfer(storage, write, calls[i].iov, calls[i].iov_count, calls[i].offset);
        calls[i].moved = i % 4 == 0 ? bytes : i % 4 == 1 ? (bytes + 1) / 2 : MPIOX_STORAGE_NOT_STARTED;
        seen_bytes -= calls[i].moved < 0 ? bytes : bytes - calls[i].moved;
        CHECK(!calls[i].skip && calls[i].fd == -1);
    }
}

static void test_limits(void)
{
    enum { N = 200000 };
    static const mpiox_storage_backend plain = {.name = "look", .transfer = look_transfer};
    static const mpiox_storage_backend together = {.name = "look", .transfer = look_transfer, .many = look_many};
    mpiox_storage_piece *list = calloc(N, sizeof *list);
    int64_t at = 0, total = 0;
    for (int i = 0; i < N; i++) { /* nobody looks behind the pointers */
        int64_t length = i % 5000 == 17 ? INT64_C(1) << 30 : i % 7 == 0 ? 0 : i % 900;
        at += i % 3 == 0 ? 1 : 0;
        list[i] = (mpiox_storage_piece){(void *)(uintptr_t)(4096 + i % 5), length, at};
        at += length;
        total += length;
    }
    for (int many = 0; many < 2; many++) {
        mpiox_storage storage = {.backend = many ? &together : &plain, .fd = -1};
        int64_t end;
        seen_calls = seen_bytes = 0;
        CHECK_EQUAL(mpiox_storage_write_list(&storage, list, N, NULL), 0);
        CHECK(seen_bytes == total && storage.counters.write_bytes == total);
        if (!many)
            CHECK_EQUAL(storage.counters.write_requests, seen_calls);
        CHECK_EQUAL(mpiox_storage_read_list(&storage, list, N, &end, NULL), 0);
        CHECK(seen_bytes == 2 * total && storage.counters.read_bytes == total && end == INT64_MAX);
    }
    free(list);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void choose(const char *name)
{
    for (size_t i = 0; i < sizeof back_ends / sizeof back_ends[0]; i++) {
        if (strcmp(name, back_ends[i].name) == 0)
            chosen = &back_ends[i];
    }
}

/* Ends the program when the back end cannot be had here. */
static void require(const char *name)
{
    const struct back_end *wanted = chosen;
    mpiox_storage *storage = open_empty();
    bool there = strncmp(name, "direct", 6) != 0 || strcmp(storage->backend->name, "direct") == 0;
    mpiox_storage_close(storage);
    if (strstr(name, "io_uring") != NULL) {
        choose("io_uring");
        storage = open_empty();
        if (strcmp(storage->backend->name, "io_uring") != 0) /* standard error says why */
            exit(SKIPPED);
        mpiox_storage_close(storage);
        chosen = wanted;
    }
    if (!there) {
        printf("no direct I/O on the file system of %s\n", path);
        exit(SKIPPED);
    }
}

static void conformance(void)
{
    test_random();
    test_random_with_faults();
    test_illegal();
    test_merging();
    test_faults();
    test_not_cached();
    test_real_errors();
    test_large();
    test_coherence();
    test_neighbours();
    if (strncmp(chosen->name, "io_uring", 8) == 0)
        test_lost_ring();
    if (chosen->options.direct_write)
        test_refused_transfer(); /* the last one: it changes `source` */
}

int main(int argc, char **argv)
{
    source = aligned_alloc(4096, (SPACE + 4095) / 4096 * 4096);
    target = aligned_alloc(4096, (SPACE + 4095) / 4096 * 4096);
    for (int i = 0; i < SPACE; i++)
        source[i] = (unsigned char)(i * 31 + i / 256 + 1);
    if (argc == 2 && strcmp(argv[1], "limits") == 0) {
        test_limits();
    } else if (argc == 4) {
        bool fallback = strcmp(argv[1], "fallback") == 0;
        snprintf(path, sizeof path, "%s/%s.dat", argv[3], argv[2]);
        choose(strcmp(argv[2], "refused") == 0 ? "io_uring" : argv[2]);
        if (chosen == NULL)
            return 2;
        if (!fallback)
            require(argv[2]);
        if (fallback)
            test_fallback(argv[2]);
        else if (strcmp(argv[1], "threads") == 0)
            test_threads();
        else
            conformance();
        unlink(path);
    }
    free(source);
    free(target);
    return check_exit();
}
