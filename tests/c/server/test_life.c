/*
 * test_life.c - how a delegate ends, and what it does when clients die, in the middle of an access too.
 *
 *   test_life PATH
 */
#include "harness.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGE = 4096 };

static const char *path;

typedef struct state_words { /* shared with a child */
    _Atomic int state;
    _Atomic int file;
} state_words;

static state_words *make_shared(void)
{
    state_words *both = mmap(NULL, sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    both->file = -1;
    return both;
}

static void await(const _Atomic int *word, int value)
{
    while (atomic_load((_Atomic int *)word) != value)
        usleep(1000);
}

static mpiox_cache attach(const mpiox_segment_address *address)
{
    mpiox_segment segment;
    mpiox_cache cache;
    if (mpiox_segment_attach(address, &segment, NULL) != MPIOX_OK ||
        mpiox_cache_attach(segment.base, segment.bytes, &cache) != MPIOX_OK)
        _exit(1);
    return cache;
}

/* No client ever comes: the delegate ends by itself, and says that it lives until then. */
static void nobody_comes(void)
{
    mpiox_server_options options = options_for(PAGE, 4);
    running delegate;
    options.patience_s = 0.5;
    const mpiox_cache *cache = start_server(&delegate, &options);
    while (mpiox_futex_get(&cache->header->state) != MPIOX_CACHE_ENDED)
        usleep(10 * 1000);
    CHECK(atomic_load(&cache->header->beat) >= 2);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* A client leaves without a word (it does not close its file): all it deposited is in the file when the delegate ends.
 * */
static void last_one_leaves(void)
{
    static char bytes[100], found[100];
    const mpiox_server_options options = options_for(PAGE, 4);
    running delegate;
    memset(bytes, 3, sizeof bytes);
    make_file(path, NULL, 0);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache), file = open_shared(cache, path, MPIOX_FILE_WRITABLE, 1, 1);
    CHECK_EQUAL(access_bytes(cache, file, true, bytes, 0, 100, NULL), MPIOX_OK);
    mpiox_ring_leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
    CHECK_EQUAL(read_whole(path, found, 100), 100);
    CHECK(memcmp(bytes, found, 100) == 0);
}

typedef struct asker {
    const mpiox_cache *cache;
    int file;
    _Atomic int result, accesses;
    pthread_t thread;
} asker;

static void *write_until_gone(void *context)
{
    asker *self = context;
    char byte = 1;
    const int id = mpiox_ring_join(self->cache);
    int code;
    do { /* pages come and go */
        code = access_bytes(self->cache, self->file, true, &byte, (self->accesses % 50) * PAGE, 1, NULL);
    } while (code == MPIOX_OK && atomic_fetch_add(&self->accesses, 1) < 100000000);
    self->result = code;
    mpiox_ring_leave(self->cache, id);
    return NULL;
}

/* mpiox_server_stop() while clients are writing: they get an error, and their bytes are in the file. */
static void stop_amid(void)
{
    static char found[50 * PAGE];
    const mpiox_server_options options = options_for(PAGE, 5);
    running delegate;
    asker askers[3];
    make_file(path, NULL, 0);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int file = open_shared(cache, path, MPIOX_FILE_WRITABLE, 1, 1);
    for (int i = 0; i < 3; i++) {
        askers[i] = (asker){.cache = cache, .file = file};
        pthread_create(&askers[i].thread, NULL, write_until_gone, &askers[i]);
    }
    for (int i = 0; i < 3; i++)
        while (askers[i].accesses < 60)
            usleep(1000);
    mpiox_server_stop(delegate.server);
    for (int i = 0; i < 3; i++) {
        pthread_join(askers[i].thread, NULL);
        CHECK_EQUAL(askers[i].result, MPIOX_PAGE_GONE);
    }
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
    CHECK_EQUAL(read_whole(path, found, sizeof found), 49 * PAGE + 1);
    for (int page = 0; page < 50; page++)
        CHECK_EQUAL(found[page * PAGE], 1);
}

/* A child deposits bytes and is killed; nobody flush barriers: the bytes are in the file soon. Others go on. */
static void killed_client(void)
{
    static char bytes[100], found[PAGE];
    const mpiox_server_options options = options_for(PAGE, 8);
    running delegate;
    state_words *both = make_shared();
    memset(bytes, 4, sizeof bytes);
    make_file(path, NULL, 0);
    const mpiox_cache *cache = create_server(&delegate, &options);
    const pid_t child = fork();
    if (child == 0) {
        const mpiox_cache mine = attach(&delegate.address);
        if (mpiox_ring_join(&mine) < 0)
            _exit(1);
        while (both->file < 0)
            usleep(1000);
        if (access_bytes(&mine, both->file, true, bytes, 200, 100, NULL) != MPIOX_OK)
            _exit(1);
        both->state = 1;
        pause();
    }
    pthread_create(&delegate.thread, NULL, run_server, &delegate);
    const int id = mpiox_ring_join(cache);
    both->file = open_shared(cache, path, MPIOX_FILE_WRITABLE, 1, 1);
    await(&both->state, 1);
    CHECK_EQUAL(read_whole(path, found, PAGE), 0);
    kill(child, SIGKILL); /* not reaped yet */
    while (read_whole(path, found, PAGE) != 300)
        usleep(1000);
    CHECK(memcmp(bytes, found + 200, 100) == 0);
    waitpid(child, NULL, 0);
    CHECK_EQUAL(access_bytes(cache, both->file, true, bytes, 0, 100, NULL), MPIOX_OK);
    CHECK_EQUAL(close_shared(cache, both->file), MPIOX_OK);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* A child is killed while it holds the only frame, in the middle of a write: the others get the frame, and a flush
 * barrier comes to its end. */
static void killed_holder(void)
{
    static char bytes[100], found[3 * PAGE];
    const mpiox_server_options options = options_for(PAGE, 1);
    running delegate;
    state_words *both = make_shared();
    memset(bytes, 5, sizeof bytes);
    make_file(path, NULL, 0);
    const mpiox_cache *cache = create_server(&delegate, &options);
    CHECK_EQUAL(cache->frame_count, 1);
    const pid_t child = fork();
    if (child == 0) {
        const mpiox_cache mine = attach(&delegate.address);
        uint32_t frame;
        if (mpiox_ring_join(&mine) < 0)
            _exit(1);
        while (both->file < 0)
            usleep(1000);
        if (access_bytes(&mine, both->file, true, bytes, 0, 100, NULL) != MPIOX_OK ||
            mpiox_frame_pin(&mine, both->file, 0, true, &frame) != MPIOX_FRAME_HIT)
            _exit(1);
        (void)mpiox_dirty_mark(&mine, frame, 500, 50, 0, 1); /* marked, not counted */
        both->state = 1;
        pause();
    }
    pthread_create(&delegate.thread, NULL, run_server, &delegate);
    const int id = mpiox_ring_join(cache);
    both->file = open_shared(cache, path, MPIOX_FILE_WRITABLE, 1, 1);
    await(&both->state, 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK_EQUAL(flush_file(cache, both->file, false, false), MPIOX_OK);
    CHECK(read_whole(path, found, sizeof found) >= 100);
    CHECK_EQUAL(access_bytes(cache, both->file, true, bytes, 2 * PAGE, 100, NULL), MPIOX_OK);
    CHECK_EQUAL(flush_file(cache, both->file, false, true), MPIOX_OK);
    CHECK_EQUAL(close_shared(cache, both->file), MPIOX_OK);
    CHECK_EQUAL(read_whole(path, found, sizeof found), 2 * PAGE + 100);
    CHECK(memcmp(found, bytes, 100) == 0 && memcmp(found + 2 * PAGE, bytes, 100) == 0);
    for (int i = PAGE; i < 2 * PAGE; i++)
        CHECK_EQUAL(found[i], 0); /* no mark of the first page is left for the second */
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* A child is killed between the two steps of pinning a frame: it has raised the count of one whose page has left. A
 * page that comes into that frame can leave it all the same. */
static void killed_before_the_page(void)
{
    static char bytes[100], found[6 * PAGE];
    const mpiox_server_options options = options_for(PAGE, 2);
    running delegate;
    state_words *both = make_shared();
    memset(bytes, 9, sizeof bytes);
    make_file(path, NULL, 0);
    const mpiox_cache *cache = create_server(&delegate, &options);
    const pid_t child = fork();
    if (child == 0) {
        const mpiox_cache mine = attach(&delegate.address);
        if (mpiox_ring_join(&mine) < 0)
            _exit(1);
        while (both->file < 0)
            usleep(1000);
        if (access_bytes(&mine, both->file, true, bytes, 0, 100, NULL) != MPIOX_OK)
            _exit(1);
        const int empty = atomic_load(&mine.frames[0].file) < 0 ? 0 : 1;
        if (atomic_load(&mine.frames[empty].file) >= 0)
            _exit(1);
        atomic_fetch_add(&mine.frames[empty].pins, 1);
        both->state = 1;
        pause();
    }
    pthread_create(&delegate.thread, NULL, run_server, &delegate);
    const int id = mpiox_ring_join(cache);
    both->file = open_shared(cache, path, MPIOX_FILE_WRITABLE, 1, 1);
    await(&both->state, 1);
    kill(child, SIGKILL);
    while (read_whole(path, found, sizeof found) != 100) /* its death was found */
        usleep(1000);
    waitpid(child, NULL, 0);
    CHECK_EQUAL(access_bytes(cache, both->file, true, bytes, 5 * PAGE, 100, NULL), MPIOX_OK);
    CHECK_EQUAL(access_bytes(cache, both->file, true, bytes, 3 * PAGE, 100, NULL), MPIOX_OK);
    CHECK_EQUAL(flush_file(cache, both->file, false, true), MPIOX_OK);
    CHECK_EQUAL(atomic_load(&cache->frames[0].pins) & ~MPIOX_FRAME_EXCLUSIVE, 0);
    CHECK_EQUAL(atomic_load(&cache->frames[1].pins) & ~MPIOX_FRAME_EXCLUSIVE, 0);
    CHECK_EQUAL(close_shared(cache, both->file), MPIOX_OK);
    CHECK_EQUAL(read_whole(path, found, sizeof found), 5 * PAGE + 100);
    CHECK(memcmp(found + 3 * PAGE, bytes, 100) == 0 && memcmp(found + 5 * PAGE, bytes, 100) == 0);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* A child is killed while it waits for a page, which is served after its death was found: nobody would unpin it. */
static void killed_while_it_waits(void)
{
    static char bytes[100], found[6 * PAGE];
    const mpiox_server_options options = options_for(PAGE, 1);
    running delegate;
    state_words *both = make_shared();
    memset(bytes, 9, sizeof bytes);
    make_file(path, NULL, 0);
    const mpiox_cache *cache = create_server(&delegate, &options);
    const int id = mpiox_ring_join(cache);
    const pid_t child = fork();
    if (child == 0) {
        const mpiox_cache mine = attach(&delegate.address);
        const int client = mpiox_ring_join(&mine);
        access_how how = {.client = client + 1};
        if (client != 1)
            _exit(1);
        while (both->state == 0)
            usleep(1000);
        (void)access_bytes(&mine, both->file, true, bytes, 3 * PAGE, 100, &how);
        _exit(1);
    }
    pthread_create(&delegate.thread, NULL, run_server, &delegate);
    both->file = open_shared(cache, path, MPIOX_FILE_WRITABLE, 1, 1);
    CHECK_EQUAL(access_bytes(cache, both->file, true, bytes, 0, 100, NULL), MPIOX_OK);
    atomic_fetch_add(&cache->frames[0].pins, 1); /* the only one: there is no room for the child's page */
    both->state = 1;
    while (mpiox_ring_queued(cache) == 0)
        usleep(1000);
    usleep(50000); /* the delegate has seen the request */
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    while (atomic_load(&cache->ring->clients[1].state) != 0) /* its death was found */
        usleep(1000);
    mpiox_frame_unpin(cache, 0);
    CHECK_EQUAL(access_bytes(cache, both->file, true, bytes, 5 * PAGE, 100, NULL), MPIOX_OK);
    CHECK_EQUAL(flush_file(cache, both->file, false, true), MPIOX_OK);
    CHECK_EQUAL(atomic_load(&cache->frames[0].pins) & ~MPIOX_FRAME_EXCLUSIVE, 0);
    CHECK_EQUAL(mpiox_ring_queued(cache), 0);
    CHECK_EQUAL(close_shared(cache, both->file), MPIOX_OK);
    CHECK_EQUAL(read_whole(path, found, sizeof found), 5 * PAGE + 100);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* All clients are killed, one of them while it holds a frame: the delegate brings everything to the file and ends. */
static void all_killed(void)
{
    static char bytes[100], found[6 * PAGE];
    const mpiox_server_options options = options_for(PAGE, 16);
    running delegate;
    state_words *both = make_shared();
    pid_t children[3];
    memset(bytes, 6, sizeof bytes);
    make_file(path, NULL, 0);
    const mpiox_cache *cache = create_server(&delegate, &options);
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] != 0)
            continue;
        const mpiox_cache mine = attach(&delegate.address);
        uint32_t frame;
        if (mpiox_ring_join(&mine) < 0)
            _exit(1);
        while (both->file < 0)
            usleep(1000);
        if (access_bytes(&mine, both->file, true, bytes, 2 * i * PAGE, 100, NULL) != MPIOX_OK ||
            (i == 1 && mpiox_frame_pin(&mine, both->file, 2, true, &frame) != MPIOX_FRAME_HIT))
            _exit(1);
        atomic_fetch_add(&both->state, 1);
        pause();
    }
    pthread_create(&delegate.thread, NULL, run_server, &delegate);
    both->file = open_shared(cache, path, MPIOX_FILE_WRITABLE, 1, 1);
    await(&both->state, 3);
    for (int i = 0; i < 3; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
    CHECK_EQUAL(read_whole(path, found, sizeof found), 4 * PAGE + 100);
    for (int i = 0; i < 3; i++)
        CHECK(memcmp(found + 2 * i * PAGE, bytes, 100) == 0);
}

/* A client that is stopped while it holds a frame: a flush barrier covers what was deposited before it all the same,
 * and nothing of what the client does when it goes on is lost. */
static void stopped_holder(void)
{
    static char bytes[100], found[PAGE];
    const mpiox_server_options options = options_for(PAGE, 2);
    running delegate;
    state_words *both = make_shared();
    memset(bytes, 8, sizeof bytes);
    make_file(path, NULL, 0);
    const mpiox_cache *cache = create_server(&delegate, &options);
    const pid_t child = fork();
    if (child == 0) {
        const mpiox_cache mine = attach(&delegate.address);
        uint32_t frame;
        const int id = mpiox_ring_join(&mine);
        while (both->file < 0)
            usleep(1000);
        if (mpiox_frame_pin(&mine, both->file, 0, true, &frame) != MPIOX_FRAME_HIT)
            _exit(1);
        both->state = 1;
        while (both->state == 1)
            usleep(1000);
        memcpy(mpiox_cache_bytes_of(&mine, frame) + 500, bytes, 100);
        atomic_fetch_add(&mine.frames[frame].dirty, mpiox_dirty_mark(&mine, frame, 500, 100, 0, 1));
        atomic_fetch_add(&mine.frames[frame].writes, 1);
        mpiox_frame_unpin(&mine, frame);
        leave(&mine, id);
        _exit(0);
    }
    pthread_create(&delegate.thread, NULL, run_server, &delegate);
    const int id = mpiox_ring_join(cache), file = open_shared(cache, path, MPIOX_FILE_WRITABLE, 1, 1);
    CHECK_EQUAL(access_bytes(cache, file, true, bytes, 0, 100, NULL), MPIOX_OK);
    both->file = file;
    await(&both->state, 1);
    CHECK_EQUAL(flush_file(cache, file, false, false), MPIOX_OK);
    CHECK_EQUAL(read_whole(path, found, PAGE), 100);
    both->state = 2;
    waitpid(child, NULL, 0);
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    CHECK_EQUAL(read_whole(path, found, PAGE), 600);
    CHECK(memcmp(found, bytes, 100) == 0 && memcmp(found + 500, bytes, 100) == 0);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

static void bad_options(void)
{
    mpiox_server *server;
    mpiox_segment_address address;
    mpiox_error error;
    mpiox_server_options options = options_for(PAGE, 4);
    options.io_threads = MPIOX_CACHE_MAX_THREADS;
    CHECK_EQUAL(mpiox_server_create(&options, &server, &address, &error), MPIOX_E_ARG);
    options = options_for(PAGE, 4);
    options.geometry.cap_bytes = 20000;
    CHECK_EQUAL(mpiox_server_create(&options, &server, &address, &error), MPIOX_E_ARG);
    options = options_for(PAGE, 4);
    options.delegate = 1;
    CHECK_EQUAL(mpiox_server_create(&options, &server, &address, &error), MPIOX_E_ARG);
    mpiox_server_free(NULL);
    options = options_for(PAGE, 4);
    CHECK_EQUAL(mpiox_server_create(&options, &server, &address, &error), MPIOX_OK);
    mpiox_server_seal(server);
    mpiox_server_free(server); /* never run */
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    path = argv[1];
    bad_options();
    nobody_comes();
    last_one_leaves();
    stop_amid();
    killed_client();
    killed_holder();
    killed_before_the_page();
    killed_while_it_waits();
    all_killed();
    stopped_holder();
    return check_exit();
}
