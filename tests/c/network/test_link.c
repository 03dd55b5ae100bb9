/*
 * test_link.c - links and a listener in one process: control requests, who is admitted, several threads, pages that
 * have moved, reads that fail, writes that were collected and cannot be delivered.
 */
#include <errno.h>

#include "links.h"

enum { PAGE = 4096 };

/* Contiguous bytes of the file, all of which belong to delegate 0. */
static mpiox_link_access plain(const station *s, int64_t position, void *bytes, int64_t length)
{
    mpiox_link_access access = access_of(s, 1, PAGE);
    access.position = position;
    access.length = length;
    access.memory.base = bytes;
    return access;
}

static int write_bytes(const station *s, int64_t position, const void *bytes, int64_t length, mpiox_error *error)
{
    mpiox_link_access access = plain(s, position, (void *)(uintptr_t)bytes, length);
    access.write = true;
    return mpiox_link_access_pages(s->link, &access, error);
}

static int read_bytes(const station *s, int64_t position, void *bytes, int64_t length, mpiox_error *error)
{
    const mpiox_link_access access = plain(s, position, bytes, length);
    return mpiox_link_access_pages(s->link, &access, error);
}

static int ping(mpiox_link *link)
{
    mpiox_slot slot = {.op = MPIOX_OP_PING};
    return mpiox_link_call(link, &slot);
}

/* ---- control requests -------------------------------------------------------------------------------------------- */

static void check_control(void)
{
    station s;
    mpiox_error errors[4];
    int more = 7;
    int64_t end = -1;
    uint64_t bits[2] = {0};
    char data[3 * PAGE];
    station_start(&s, PAGE, 64, 0, 1, 1);
    CHECK_EQUAL(mpiox_link_page_bytes(s.link), PAGE);
    CHECK_EQUAL(ping(s.link), MPIOX_OK);
    CHECK_EQUAL(atomic_load(&s.delegate.pings), 1);
    mpiox_slot slot = {.op = MPIOX_OP_OPEN, .question.open = {3, 1, 1}, .text = "/full"};
    CHECK_EQUAL(mpiox_link_call(s.link, &slot), MPIOX_E_FULL);
    slot = (mpiox_slot){.op = MPIOX_OP_PAGE, .question.page.page = 1}; /* not for links */
    CHECK_EQUAL(mpiox_link_call(s.link, &slot), MPIOX_E_ARG);
    slot = (mpiox_slot){.op = MPIOX_OP_OPEN, .question.open = {3, 1, 1}, .text = "relative"};
    CHECK_EQUAL(mpiox_link_call(s.link, &slot), MPIOX_E_ARG);
    slot = (mpiox_slot){.op = MPIOX_OP_AHEAD_ONLY, .question.ahead_only = {2, {4, 5}}};
    CHECK_EQUAL(mpiox_link_call(s.link, &slot), MPIOX_OK);
    CHECK_EQUAL(ping(s.link), MPIOX_OK); /* in order: what was asked before it is done */
    CHECK_EQUAL(atomic_load(&s.delegate.aheads), 2);
    memset(data, 'x', sizeof data);
    CHECK_EQUAL(write_bytes(&s, 5, data, 2 * PAGE, NULL), MPIOX_OK);
    CHECK_EQUAL(write_bytes(&s, 5, data, 0, NULL), MPIOX_OK);
    CHECK_EQUAL(mpiox_link_end(s.link, s.file, &end), MPIOX_OK);
    CHECK_EQUAL(end, 2 * PAGE + 5);
    CHECK_EQUAL(mpiox_link_has_pages(s.link, s.file, 1, 70, bits), MPIOX_OK);
    CHECK_EQUAL(bits[0], 3);
    CHECK_EQUAL(bits[1], 0);
    mpiox_error deferred = {.code = MPIOX_E_IO, .offset = 77, .what = "pwrite"};
    mpiox_cache_add_error(&s.delegate.cache, s.file, &deferred);
    CHECK_EQUAL(mpiox_link_take_errors(s.link, s.file, errors, 4, &more), 1);
    CHECK_EQUAL(errors[0].offset, 77);
    CHECK_EQUAL(more, 0);
    CHECK_EQUAL(mpiox_link_is_alive(s.link), true);
    mpiox_link_close(s.link);
    mpiox_link_close(NULL);
    while (atomic_load(&s.delegate.detached) == 0)
        mock_sleep(1);
    mpiox_remote_stop(s.listener);
    mpiox_remote_stop(NULL);
    mock_stop(&s.delegate);
}

/* More pages than one question may be about, and reads that announce what comes next. */
static void check_pages(void)
{
    station s;
    static uint64_t bits[400];
    char data[3 * PAGE];
    station_start(&s, PAGE, 64, 0, 1, 1);
    CHECK_EQUAL(write_bytes(&s, 9000 * (int64_t)PAGE, "a", 1, NULL), MPIOX_OK);
    CHECK_EQUAL(mpiox_link_has_pages(s.link, s.file, 0, 20000, bits), MPIOX_OK);
    for (int i = 0; i < 20000; i++)
        CHECK(((bits[i / 64] >> i % 64) & 1) == (i == 9000));
    CHECK_EQUAL(read_bytes(&s, 0, data, 3 * PAGE, NULL), MPIOX_OK);
    CHECK_EQUAL(atomic_load(&s.delegate.aheads), 2 + 1 + 0);
    const int64_t later[] = {20, 21, 22};
    mpiox_link_access access = plain(&s, 10 * PAGE, data, 100);
    access.ahead = later;
    access.ahead_count = 3;
    CHECK_EQUAL(mpiox_link_access_pages(s.link, &access, NULL), MPIOX_OK);
    CHECK_EQUAL(atomic_load(&s.delegate.aheads), 3 + 3);
    station_stop(&s);
}

static void check_secret(void)
{
    station s;
    mpiox_link *link = NULL;
    mpiox_error error = {.code = 0};
    int died;
    station_start(&s, PAGE, 8, 0, 1, 1);
    mpiox_rendezvous_address wrong = s.address;
    wrong.secret[1] ^= 1;
    CHECK_EQUAL(mpiox_link_open(&wrong, 5, &link, &error), MPIOX_E_IO);
    CHECK_EQUAL(error.sys_errno, EACCES);
    CHECK(link == NULL);
    CHECK_EQUAL(mpiox_ring_clients(&s.delegate.cache, &died), 1);
    mpiox_rendezvous_address elsewhere = s.address; /* the first address does not lead there */
    elsewhere.count = 2;
    snprintf(elsewhere.host[0], sizeof elsewhere.host[0], "127.255.255.254");
    snprintf(elsewhere.host[1], sizeof elsewhere.host[1], "127.0.0.1");
    link = link_to(&elsewhere);
    CHECK_EQUAL(ping(link), MPIOX_OK);
    mpiox_link_close(link);
    station_stop(&s);
    CHECK_EQUAL(mpiox_link_open(&elsewhere, 5, &link, &error), MPIOX_E_IO); /* nobody listens any more */
}

/* ---- failures of an access --------------------------------------------------------------------------------------- */

static void check_failures_of_access(void)
{
    station s;
    mpiox_error error = {.code = 0};
    static char data[64 * PAGE];
    station_start(&s, PAGE, 100, 0, 1, 1);
    if (pwrite(s.delegate.fd, data, 10 * PAGE + 100, 0) != 10 * PAGE + 100)
        abort();
    mpiox_link_access access = plain(&s, 9 * PAGE, data, PAGE + 101);
    access.beyond = false;
    CHECK_EQUAL(mpiox_link_access_pages(s.link, &access, &error), MPIOX_PAGE_SHORT);
    access.length--;
    CHECK_EQUAL(mpiox_link_access_pages(s.link, &access, &error), MPIOX_OK);
    atomic_store(&s.delegate.bad_page, 40);
    CHECK_EQUAL(read_bytes(&s, 0, data, sizeof data, &error), MPIOX_E_IO);
    CHECK_EQUAL(error.offset, 40 * PAGE);
    CHECK_EQUAL(error.sys_errno, 5);
    CHECK_EQUAL(strcmp(error.what, "mock fill"), 0);
    atomic_store(&s.delegate.bad_page, -1);
    CHECK_EQUAL(read_bytes(&s, 0, data, sizeof data, &error), MPIOX_OK);
    access = plain(&s, 0, data, 10);
    access.file = 7; /* not open */
    CHECK_EQUAL(mpiox_link_access_pages(s.link, &access, &error), MPIOX_E_ARG);
    access = plain(&s, INT64_MAX - 5, data, 10);
    CHECK_EQUAL(mpiox_link_access_pages(s.link, &access, &error), MPIOX_E_ARG);
    access = plain(&s, 0, data, 10);
    access.ranges = MPIOX_FILE_RANGES + 1;
    CHECK_EQUAL(mpiox_link_access_pages(s.link, &access, &error), MPIOX_E_ARG);
    CHECK_EQUAL(ping(s.link), MPIOX_OK); /* nothing of that has broken the connection */
    station_stop(&s);
}

/* The record says that odd units belong to delegate 1; this client believes that all are 0's. */
static void check_moved(void)
{
    station s;
    mpiox_error error;
    static char data[3000 * PAGE], found[PAGE];
    int16_t owner[MPIOX_FILE_RANGES];
    station_start(&s, PAGE, 3100, 0, 2, 1);
    memset(data, 'y', sizeof data);
    CHECK_EQUAL(write_bytes(&s, 0, data, PAGE, &error), MPIOX_OK);
    CHECK_EQUAL(write_bytes(&s, 0, data, sizeof data, &error), MPIOX_PAGE_MOVED); /* two parts are on their way */
    CHECK_EQUAL(read_bytes(&s, PAGE, found, 1, &error), MPIOX_PAGE_MOVED);
    CHECK_EQUAL(mpiox_link_owners(s.link, s.file, owner, mpiox_file_ranges(2)), MPIOX_OK);
    CHECK_EQUAL(owner[0], 0);
    CHECK_EQUAL(owner[1], 1);
    CHECK_EQUAL(mpiox_link_owners(s.link, s.file, owner, 7), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_link_owners(s.link, 9, owner, 2), MPIOX_E_ARG);
    CHECK_EQUAL(write_bytes(&s, 2 * PAGE, data, PAGE, &error), MPIOX_OK); /* a failure is not remembered */
    CHECK_EQUAL(read_bytes(&s, 2 * PAGE, found, PAGE, &error), MPIOX_OK);
    CHECK_EQUAL(memcmp(found, data, PAGE), 0);
    station_stop(&s);
}

/* Accesses of several parts, in pieces, of two delegates whose units alternate. */
static void check_large(void)
{
    enum { BYTES = 12 << 20, UNIT = 1 << 16, PIECE = 100 };
    station s[2];
    mpiox_typemap *block = NULL, *view = NULL, *memory = NULL;
    unsigned char *written = malloc(2 * BYTES), *found = calloc(2, BYTES);
    for (int d = 0; d < 2; d++)
        station_start(&s[d], UNIT, BYTES / UNIT * 3 / 2, d, 2, 1);
    if (written == NULL || found == NULL || mpiox_typemap_block(PIECE, &block) != MPIOX_OK ||
        mpiox_typemap_vector(1000, 3 * PIECE / 2, block, &view) != MPIOX_OK ||
        mpiox_typemap_vector(7, 2 * PIECE, block, &memory) != MPIOX_OK)
        abort();
    for (int64_t i = 0; i < 2 * BYTES; i++)
        written[i] = (unsigned char)(i * 7 + i / 251);
    for (int i = 0; i < 4; i++) {
        mpiox_link_access access = access_of(&s[i % 2], 2, UNIT);
        access.write = i < 2;
        access.view = view;
        access.origin = 33;
        access.length = BYTES;
        access.memory = (mpiox_memory_layout){.base = access.write ? written : found, .typemap = memory};
        CHECK_EQUAL(mpiox_link_access_pages(s[i % 2].link, &access, NULL), MPIOX_OK);
    }
    int64_t wrong = 0;
    for (int64_t k = 0; k < BYTES; k++) {
        const int64_t at = mpiox_typemap_offset(memory, k);
        wrong += found[at] != written[at];
    }
    CHECK_EQUAL(wrong, 0);
    mpiox_typemap_free(block);
    mpiox_typemap_free(view);
    mpiox_typemap_free(memory);
    free(written);
    free(found);
    for (int d = 0; d < 2; d++)
        station_stop(&s[d]);
}

/* ---- write-behind ------------------------------------------------------------------------------------------------ */

typedef struct replay {
    int count;
    int64_t position[20];
    char byte[20];
} replay;

static int visit(void *context, const mpiox_link_access *access)
{
    replay *r = context;
    if (r->count < 20) {
        r->position[r->count] = access->position;
        r->byte[r->count++] = ((char *)access->memory.base)[access->memory.position];
    }
    return access->position == 3 * PAGE ? 17 : 0;
}

static void check_collected(void)
{
    station s;
    char found[100] = {0};
    station_start(&s, PAGE, 100, 0, 1, 1);
    CHECK_EQUAL(mpiox_link_set_write_behind(s.link, 8192), MPIOX_OK);
    const int64_t before = atomic_load(&s.delegate.cache.header->counters.messages);
    for (int i = 0; i < 100; i++) {
        const char byte = (char)i;
        CHECK_EQUAL(write_bytes(&s, i, &byte, 1, NULL), MPIOX_OK);
    }
    CHECK(atomic_load(&s.delegate.cache.header->counters.messages) <= before + 1); /* the filter */
    CHECK_EQUAL(read_bytes(&s, 0, found, 100, NULL), MPIOX_OK);                    /* sends them first */
    for (int i = 0; i < 100; i++)
        CHECK_EQUAL(found[i], i);
    CHECK_EQUAL(mpiox_link_drain(s.link, NULL), MPIOX_OK);
    CHECK_EQUAL(write_bytes(&s, 0, "b", 1, NULL), MPIOX_OK);
    mpiox_link_access access = plain(&s, 0, "c", 1);
    access.write = access.at_once = true;
    CHECK_EQUAL(mpiox_link_access_pages(s.link, &access, NULL), MPIOX_OK); /* after what was collected */
    CHECK_EQUAL(mpiox_link_set_write_behind(s.link, 0), MPIOX_OK);
    CHECK_EQUAL(read_bytes(&s, 0, found, 1, NULL), MPIOX_OK);
    CHECK_EQUAL(found[0], 'c');
    CHECK_EQUAL(mpiox_link_take_undelivered(s.link, visit, NULL), MPIOX_OK); /* none */
    station_stop(&s);
}

/* Pages 1 and 3 are not the delegate's any more: the writes from the first of them on come back in order. */
static void check_undelivered(bool two_batches)
{
    station s;
    replay r = {.count = 0};
    static char data[PAGE];
    mpiox_error error = {.code = 0};
    const int pages[] = {0, 2, 3, 2, 0, 1};
    station_start(&s, PAGE, 100, 0, 2, 1);
    CHECK_EQUAL(mpiox_link_set_write_behind(s.link, two_batches ? 4096 : 100000), MPIOX_OK);
    int code = MPIOX_OK;
    int collected = 0;
    for (int i = 0; i < 6 && code == MPIOX_OK; i++) {
        memset(data, 'a' + i, sizeof data);
        code = write_bytes(&s, pages[i] * PAGE, data, two_batches ? 1500 : 100, &error);
        collected += code == MPIOX_OK;
    }
    CHECK_EQUAL(mpiox_link_drain(s.link, &error), MPIOX_PAGE_MOVED);
    CHECK(error.code != MPIOX_OK);
    CHECK_EQUAL(write_bytes(&s, 0, data, 1, &error), MPIOX_PAGE_MOVED);
    CHECK_EQUAL(read_bytes(&s, 0, data, 1, &error), MPIOX_PAGE_MOVED);
    CHECK_EQUAL(mpiox_link_take_undelivered(s.link, visit, &r), 17);
    CHECK_EQUAL(r.count, collected - 2);
    for (int i = 0; i < r.count; i++) {
        CHECK_EQUAL(r.position[i], pages[i + 2] * PAGE);
        CHECK_EQUAL(r.byte[i], 'a' + i + 2);
    }
    CHECK_EQUAL(read_bytes(&s, 2 * PAGE, data, 1, &error), MPIOX_OK);
    CHECK_EQUAL(data[0], 'b'); /* 'd' was not deposited behind the failure */
    CHECK_EQUAL(write_bytes(&s, 2 * PAGE, "z", 1, &error), MPIOX_OK);
    CHECK_EQUAL(mpiox_link_drain(s.link, &error), MPIOX_OK);
    station_stop(&s);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 150, SHARE = 20000 };

typedef struct user {
    const station *station;
    mpiox_link *link;
    int index;
    bool failed;
} user;

static void *use(void *context)
{
    user *u = context;
    uint64_t state = (uint64_t)u->index * 77 + 1;
    static _Thread_local unsigned char model[SHARE], bytes[SHARE];
    for (int i = 0; i < ROUNDS; i++) {
        const int64_t at = mock_pick(&state, 0, SHARE - 1), length = mock_pick(&state, 1, SHARE - at);
        const bool write = mock_pick(&state, 0, 1) == 1;
        mpiox_link_access access = plain(u->station, u->index * SHARE + at, write ? model + at : bytes, length);
        access.write = write;
        for (int64_t k = 0; write && k < length; k++)
            model[at + k] = (unsigned char)mock_random(&state);
        u->failed |= mpiox_link_access_pages(u->link, &access, NULL) != MPIOX_OK;
        u->failed |= !write && memcmp(bytes, model + at, (size_t)length) != 0;
        if (i % 40 == 0)
            u->failed |= ping(u->link) != MPIOX_OK;
    }
    return NULL;
}

/* Two threads share each of two links. */
static void check_threads(int64_t behind)
{
    station s;
    pthread_t threads[THREADS];
    user users[THREADS];
    station_start(&s, PAGE, 10, 0, 1, 1); /* and pages come and go meanwhile */
    mpiox_link *other = link_to(&s.address);
    CHECK_EQUAL(mpiox_link_set_write_behind(s.link, behind), MPIOX_OK);
    for (int i = 0; i < THREADS; i++) {
        users[i] = (user){&s, i % 2 == 0 ? s.link : other, i, false};
        CHECK_EQUAL(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQUAL(users[i].failed, false);
    }
    mpiox_link_close(other);
    station_stop(&s);
}

static void *flush(void *context)
{
    const station *s = context;
    mpiox_slot slot = {
        .op = MPIOX_OP_FLUSH, .file = s->file, .question.flush = {.end = INT64_MAX, .then = MPIOX_FLUSH_DROPS}};
    return (void *)(intptr_t)mpiox_link_call(s->link, &slot);
}

/* A request that takes longer than a vanished host would: the delegate is alive, others wait for their turn. */
static void check_long_request(void)
{
    station s;
    pthread_t thread;
    station_start(&s, PAGE, 10, 0, 1, 1);
    CHECK_EQUAL(write_bytes(&s, 0, "q", 1, NULL), MPIOX_OK);
    atomic_store(&s.delegate.flush_ms, 2600);
    CHECK_EQUAL(pthread_create(&thread, NULL, flush, &s), 0);
    mock_sleep(100);
    CHECK_EQUAL(ping(s.link), MPIOX_OK);
    CHECK_EQUAL(mpiox_link_is_alive(s.link), true);
    void *result;
    pthread_join(thread, &result);
    CHECK_EQUAL((intptr_t)result, MPIOX_OK);
    station_stop(&s);
}

int main(void)
{
    check_control();
    check_pages();
    check_secret();
    check_failures_of_access();
    check_moved();
    check_large();
    check_collected();
    check_undelivered(false);
    check_undelivered(true);
    check_threads(0);
    check_threads(10000);
    check_long_request();
    return check_exit();
}
