/*
 * measure_network.c - what a link costs on this machine: the time of a small request, the speed of large and of small
 * pieces, beside a bare connection that moves and copies the same bytes.
 *
 *   measure_network [repetitions [seconds of each]]
 *
 * The delegate is a thread of this process. Its pages are there already: what is measured is the way to them. The
 * figures take turns; the best repetition of each is printed, since whatever else the machine does can only slow it.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "links.h"

enum { PAGE = 1 << 20, PART = 1 << 20, PARTS = 16, PIECE = 64, CHUNK = 256 << 10 };

static double seconds = 0.05;
static char memory[PARTS * PART];

/* ---- a bare connection ------------------------------------------------------------------------------------------- */

static int ends[2];

static void connect_bare(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof at;
    const int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &bytes) != 0 || connect(ends[0], (struct sockaddr *)&at, bytes) != 0 ||
        (ends[1] = accept(fd, NULL, NULL)) < 0)
        abort();
    setsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(ends[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    close(fd);
}

static void *answer_bare(void *context)
{
    char byte;
    (void)context;
    while (recv(ends[1], &byte, 1, 0) == 1 && send(ends[1], &byte, 1, MSG_NOSIGNAL) == 1)
        continue;
    return NULL;
}

/* Receive into a buffer, copy to where the page would be; answer each part with a byte. */
static void *store_bare(void *context)
{
    static char target[PARTS * PART], buffer[CHUNK];
    int64_t at = 0;
    (void)context;
    for (;;) {
        const ssize_t got = recv(ends[1], buffer, CHUNK - at % CHUNK, 0);
        if (got <= 0)
            return NULL;
        memcpy(target + at % sizeof target, buffer, (size_t)got);
        at += got;
        if (at % PART == 0 && send(ends[1], "", 1, MSG_NOSIGNAL) != 1)
            return NULL;
    }
}

static double ping_bare(void)
{
    pthread_t thread;
    char byte = 0;
    int64_t count = 0;
    connect_bare();
    pthread_create(&thread, NULL, answer_bare, NULL);
    const double begun = mpiox_now();
    for (; mpiox_now() < begun + seconds; count++) {
        if (send(ends[0], &byte, 1, 0) != 1 || recv(ends[0], &byte, 1, 0) != 1)
            abort();
    }
    const double each = (mpiox_now() - begun) / (double)count;
    close(ends[0]);
    pthread_join(thread, NULL);
    close(ends[1]);
    return each;
}

/* Seconds of a part of 1 MiB. */
static double write_bare(int64_t piece)
{
    static char packed[CHUNK];
    pthread_t thread;
    int64_t parts = 0;
    connect_bare();
    pthread_create(&thread, NULL, store_bare, NULL);
    const double begun = mpiox_now();
    for (; mpiox_now() < begun + seconds; parts++) {
        for (int64_t at = 0; at < PART; at += CHUNK) {
            const char *from = memory + parts % PARTS * PART + at;
            for (int64_t k = 0; piece > 0 && k < CHUNK; k += piece)
                memcpy(packed + k, from + k, (size_t)piece);
            for (int64_t sent = 0; sent < CHUNK;) {
                const ssize_t got = send(ends[0], (piece > 0 ? packed : from) + sent, (size_t)(CHUNK - sent), 0);
                if (got <= 0)
                    abort();
                sent += got;
            }
        }
        char byte;
        if (recv(ends[0], &byte, 1, 0) != 1)
            abort();
    }
    const double each = (mpiox_now() - begun) / (double)parts;
    close(ends[0]);
    pthread_join(thread, NULL);
    close(ends[1]);
    return each;
}

/* ---- a link ------------------------------------------------------------------------------------------------------ */

static double ping_link(mpiox_link *link)
{
    int64_t count = 0;
    const double begun = mpiox_now();
    for (; mpiox_now() < begun + seconds; count++) {
        mpiox_slot slot = {.op = MPIOX_OP_PING};
        if (mpiox_link_call(link, &slot) != MPIOX_OK)
            abort();
    }
    return (mpiox_now() - begun) / (double)count;
}

/* Accesses of `length` bytes one after the other; seconds of each. */
static double transfer(const station *s, bool write, int64_t length, const mpiox_typemap *view,
                       const mpiox_typemap *memory_type)
{
    mpiox_link_access access = access_of(s, 1, PAGE);
    access.write = write;
    access.view = view;
    access.length = length;
    access.memory = (mpiox_memory_layout){.base = memory, .typemap = memory_type};
    const int64_t stream = view != NULL ? mpiox_typemap_position(view, PARTS * PART) : PARTS * PART;
    int64_t count = 0;
    const double begun = mpiox_now();
    for (; mpiox_now() < begun + seconds; count++) {
        access.position = count * length % (stream - length + 1) / length * length;
        access.memory.position = memory_type != NULL ? 0 : access.position % (PARTS * PART - length + 1);
        if (mpiox_link_access_pages(s->link, &access, NULL) != MPIOX_OK)
            abort();
    }
    (void)mpiox_link_drain(s->link, NULL);
    return (mpiox_now() - begun) / (double)count;
}

typedef struct figure {
    const char *name;
    int64_t length;
    bool has_view, has_type, collected;
    double written, found; /* best seconds */
} figure;

static void improve(double *best, double found)
{
    if (*best == 0 || found < *best)
        *best = found;
}

static void repeat(const station *s, figure *f, const mpiox_typemap *view, const mpiox_typemap *strided)
{
    const mpiox_typemap *file = f->has_view ? view : NULL, *type = f->has_type ? strided : NULL;
    if (mpiox_link_set_write_behind(s->link, f->collected ? 1 << 20 : 0) != MPIOX_OK)
        abort();
    improve(&f->written, transfer(s, true, f->length, file, type));
    improve(&f->found, transfer(s, false, f->length, file, type));
}

static void print(const figure *f)
{
    printf("%-42s write %8.0f MB/s (%7.1f us)   read %8.0f MB/s (%7.1f us)\n", f->name,
           (double)f->length / f->written / 1e6, f->written * 1e6, (double)f->length / f->found / 1e6, f->found * 1e6);
}

int main(int argc, char **argv)
{
    static figure figures[] = {
        {.name = "1 MiB", .length = PART},
        {.name = "16 MiB", .length = PARTS * PART},
        {.name = "1 MiB, file in pieces of 64 B", .length = PART, .has_view = true},
        {.name = "1 MiB, file and memory in pieces of 64 B", .length = PART, .has_view = true, .has_type = true},
        {.name = "64 B", .length = PIECE},
        {.name = "4 KiB", .length = 4096},
        {.name = "64 B, collected", .length = PIECE, .collected = true},
        {.name = "64 B of every 256, collected", .length = PIECE, .has_view = true, .collected = true},
        {.name = "4 KiB, collected", .length = 4096, .collected = true}};
    static station s;
    const int count = (int)(sizeof figures / sizeof figures[0]), repetitions = argc > 1 ? atoi(argv[1]) : 15;
    mpiox_typemap *block = NULL, *view = NULL, *strided = NULL;
    double ping[2] = {0}, bare[2] = {0};
    if (argc > 2)
        seconds = atof(argv[2]);
    memset(memory, 1, sizeof memory);
    station_start(&s, PAGE, PARTS + 1, 0, 1, 1);
    if (mpiox_typemap_block(PIECE, &block) != MPIOX_OK ||
        mpiox_typemap_vector(PARTS * PART / 4 / PIECE, 4 * PIECE, block, &view) != MPIOX_OK ||
        mpiox_typemap_vector(PART / PIECE, 2 * PIECE, block, &strided) != MPIOX_OK)
        abort();
    for (int i = 0; i < repetitions; i++) {
        improve(&ping[0], ping_link(s.link));
        improve(&ping[1], ping_bare());
        improve(&bare[0], write_bare(0));
        improve(&bare[1], write_bare(PIECE));
        for (int k = 0; k < count; k++)
            repeat(&s, &figures[k], view, strided);
    }
    printf("round trip: %.1f us over a link, %.1f us bare\n", ping[0] * 1e6, ping[1] * 1e6);
    printf("1 MiB: %.0f MB/s bare, %.0f MB/s bare and packed from pieces of 64 B\n", PART / bare[0] / 1e6,
           PART / bare[1] / 1e6);
    for (int k = 0; k < count; k++)
        print(&figures[k]);
    mpiox_typemap_free(block);
    mpiox_typemap_free(view);
    mpiox_typemap_free(strided);
    station_stop(&s);
    return check_exit();
}
