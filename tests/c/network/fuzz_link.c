/*
 * fuzz_link.c - libFuzzer harness of a link: whatever a delegate answers, the client writes nothing outside of the
 * memory that it was to read into, and every call returns.
 *
 * The answers are made beforehand: of the right kind and number more often than not, with results, lengths and bodies
 * that are sometimes right.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../typemap/random_trees.h"
#include "mpiox_link.h"
#include "mpiox_link_core.h"

enum { MAX_BYTES = 400000, PAGE = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

typedef struct answers {
    int fd;
    int64_t used;
    char bytes[MAX_BYTES];
} answers;

static void append(answers *out, const void *bytes, int64_t count)
{
    static const char zeros[30000];
    if (count < 0 || count > 30000 || out->used + count > MAX_BYTES)
        return;
    memcpy(out->bytes + out->used, bytes != NULL ? bytes : zeros, (size_t)count);
    out->used += count;
}

/* An answer to request `number`; body: as long as a right one would be. */
static void append_answer(answers *out, choices *c, int op, uint32_t number, int64_t body)
{
    static const int64_t values[] = {0, 1, 8, 80, 96, 4096, 30000, -1, INT32_MAX, INT64_MAX, INT64_MIN};
    mpiox_link_message head = {
        .magic = MPIOX_LINK_MAGIC, .version = MPIOX_LINK_VERSION, .op = (uint16_t)op, .number = number, .bytes = body};
    head.value = choose(c, 0, 2) > 0 ? 1 : values[choose(c, 0, 10)];
    switch (choose(c, 0, 12)) {
    case 0:
        head.bytes = values[choose(c, 0, 10)];
        break;
    case 1:
        head.result = -(int32_t)choose(c, 1, 9);
        head.bytes = sizeof(mpiox_error);
        break;
    case 2:
        head.result = (int32_t)choose(c, 1, 110);
        break;
    case 3:
        head.number += (uint32_t)choose(c, 0, 3);
        break;
    case 4:
        head.op = (uint16_t)choose(c, 0, 12);
        break;
    case 5:
        head.bytes = choose(c, 0, 200) * choose(c, 0, 200);
        break;
    default:
        break;
    }
    append(out, &head, sizeof head);
    if (head.op == MPIOX_LINK_READ) {
        append(out, NULL, head.bytes);
        return;
    }
    mpiox_link_call_body call = {.result = -3, .error = {.what = "x"}};
    memset(&call.text, 'x', sizeof call.text);
    memset(&call.error.what, 'x', sizeof call.error.what);
    append(out, head.bytes == sizeof call ? &call : NULL, head.bytes);
}

static void *send_answers(void *context)
{
    const answers *a = context;
    for (int64_t sent = 0; sent < a->used;) {
        const ssize_t got = send(a->fd, a->bytes + sent, (size_t)(a->used - sent), MSG_NOSIGNAL);
        if (got <= 0)
            break;
        sent += got;
    }
    shutdown(a->fd, SHUT_WR);
    return NULL;
}

static void *drop_requests(void *context)
{
    const answers *a = context;
    char buffer[65536];
    while (recv(a->fd, buffer, sizeof buffer, 0) > 0)
        continue;
    return NULL;
}

static int visit(void *context, const mpiox_link_access *access)
{
    *(int64_t *)context += access->length + ((const char *)access->memory.base)[access->length - 1];
    return 0;
}

/* What a client does; its memory is allocated with nothing to spare. */
static void use(mpiox_link *link, const mpiox_typemap *view)
{
    const int16_t owner[] = {0, 1};
    int16_t owners[2];
    mpiox_error error, errors[2];
    mpiox_slot slot = {.op = MPIOX_OP_PING};
    uint64_t bits[2];
    int more;
    int64_t end, sum = 0;
    char *memory = calloc(1, 20000);
    mpiox_link_access access = {
        .beyond = true, .length = 20000, .memory.base = memory, .unit_bytes = PAGE, .ranges = 2, .owner = owner};
    REQUIRE(memory != NULL);
    (void)mpiox_link_access_pages(link, &access, &error);
    access.view = view;
    access.length = 9000;
    (void)mpiox_link_access_pages(link, &access, &error);
    access.write = true;
    (void)mpiox_link_access_pages(link, &access, &error);
    (void)mpiox_link_call(link, &slot);
    REQUIRE(mpiox_link_take_errors(link, 0, errors, 2, &more) <= 2);
    (void)mpiox_link_end(link, 0, &end);
    (void)mpiox_link_owners(link, 0, owners, 2);
    (void)mpiox_link_has_pages(link, 0, 0, 100, bits);
    (void)mpiox_link_set_write_behind(link, 4096);
    access.length = 1000;
    for (int i = 0; i < 9; i++) {
        access.position = 1500 * i;
        (void)mpiox_link_access_pages(link, &access, &error);
    }
    (void)mpiox_link_drain(link, &error);
    (void)mpiox_link_take_undelivered(link, visit, &sum);
    free(memory);
}

static int64_t bytes_of(const mpiox_typemap *view, int64_t length)
{
    const mpiox_link_filter filter = {.unit_bytes = PAGE, .ranges = 2, .owner = {0, 1}};
    mpiox_link_walk walk = {.filter = &filter, .view = view, .end = length};
    int64_t position, step, sum = 0;
    while (mpiox_link_walk_next(&walk, INT64_MAX, &position, &step))
        sum += step;
    return sum;
}

static void make_answers(answers *out, choices *c, const mpiox_typemap *view)
{
    const struct {
        int op;
        int64_t body;
    } right[] = {{MPIOX_LINK_READ, bytes_of(NULL, 20000)},
                 {MPIOX_LINK_READ, bytes_of(view, 9000)},
                 {MPIOX_LINK_WRITE, 0},
                 {MPIOX_LINK_CALL, sizeof(mpiox_link_call_body)},
                 {MPIOX_LINK_ERRORS, 80},
                 {MPIOX_LINK_END, 0},
                 {MPIOX_LINK_OWNERS, 4},
                 {MPIOX_LINK_CACHED, 16},
                 {MPIOX_LINK_WRITE, 0},
                 {MPIOX_LINK_WRITE, 0},
                 {MPIOX_LINK_WRITE, 0},
                 {MPIOX_LINK_WRITE, 0}};
    for (uint32_t i = 0; i < sizeof right / sizeof right[0]; i++)
        append_answer(out, c, right[i].op, i + 1, right[i].body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static answers a;
    choices c = {data, bytes};
    pthread_t threads[2];
    mpiox_typemap *block = NULL, *view = NULL;
    int ends[2];
    mpiox_link *link = mpiox_link_new();
    REQUIRE(link != NULL && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    REQUIRE(mpiox_typemap_block(8, &block) == MPIOX_OK && mpiox_typemap_vector(3, 16, block, &view) == MPIOX_OK);
    mpiox_link_stream_init(&link->stream, ends[1]);
    atomic_store(&link->alive, true);
    a.used = 0;
    a.fd = ends[0];
    if (choose(&c, 0, 7) == 0)
        append(&a, c.data, (int64_t)c.left);
    else
        make_answers(&a, &c, view);
    REQUIRE(pthread_create(&threads[0], NULL, send_answers, &a) == 0);
    REQUIRE(pthread_create(&threads[1], NULL, drop_requests, &a) == 0);
    use(link, view);
    mpiox_link_close(link);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    close(ends[0]);
    mpiox_typemap_free(block);
    mpiox_typemap_free(view);
    return 0;
}

#include "../typemap/fuzz_main.h"
