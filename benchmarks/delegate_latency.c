/*
 * delegate_latency.c - how long one small access through an I/O delegate takes, beside what it could be compared with.
 *
 * A plain MPI program of one rank. With this library under it (LD_PRELOAD) and a file that goes through a delegate:
 *
 *   ping        a request to the delegate and its answer, nothing else (mpiio_ext_delegates_ping)
 *   write_hit   MPI_File_write_at of 64 bytes to a page that is cached, the next 64 bytes each time
 *   read_hit    MPI_File_read_at of 64 bytes of such a page
 *   write_miss  MPI_File_write_at of 64 bytes to a page that is not cached: the delegate is asked for room
 *   read_miss   MPI_File_read_at of 64 bytes of a page that is not cached: the delegate reads it from the file
 *   write_1MiB, read_1MiB  of cached pages
 *   memcpy_1MiB from one buffer to as much other memory as these have, in the same order
 *
 * With --spawn, without the library: an 8-byte message to a child made by MPI_Comm_spawn and its answer.
 *
 *   delegate_latency --file FILE [--count 2000] [--page 1048576] [--cache 67108864]
 *   delegate_latency --spawn [--count 2000]
 *
 * The file is new, `page` and `cache` are set as hints, and nothing goes past the delegate. One JSON line per figure:
 * microseconds, smallest, median, 90th and 99th percentile. What is read is compared.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SMALL = 64, LARGE = 1 << 20, WARM = 50 };

typedef struct options {
    const char *file;
    bool spawn, child;
    int count;
    int64_t page, cache;
} options;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "delegate_latency: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static void check(int code, const char *what)
{
    if (code != MPI_SUCCESS)
        fail(what);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void say(const char *name, double *seconds, int count, int64_t bytes)
{
    qsort(seconds, (size_t)count, sizeof *seconds, by_value);
    printf(
        "{\"name\": \"%s\", \"count\": %d, \"bytes\": %lld, \"min_us\": %.3f, \"median_us\": %.3f, \"p90_us\": %.3f, "
        "\"p99_us\": %.3f}\n",
        name, count, (long long)bytes, 1e6 * seconds[0], 1e6 * seconds[count / 2], 1e6 * seconds[count * 9 / 10],
        1e6 * seconds[count * 99 / 100]);
    fflush(stdout);
}

/* ---- parent and child -------------------------------------------------------------------------------------------- */

static void answer(int count)
{
    MPI_Comm parent;
    int64_t word;
    MPI_Comm_get_parent(&parent);
    for (int i = 0; i < count + WARM; i++) {
        MPI_Recv(&word, 1, MPI_INT64_T, 0, 0, parent, MPI_STATUS_IGNORE);
        MPI_Send(&word, 1, MPI_INT64_T, 0, 0, parent);
    }
    MPI_Comm_disconnect(&parent);
}

static void ask_child(const char *self, int count, double *seconds)
{
    char number[32];
    char *arguments[] = {(char *)(uintptr_t)"--child", (char *)(uintptr_t)"--count", number, NULL};
    MPI_Comm child;
    int64_t word = 1;
    snprintf(number, sizeof number, "%d", count);
    check(MPI_Comm_spawn(self, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child, MPI_ERRCODES_IGNORE),
          "MPI_Comm_spawn");
    for (int i = -WARM; i < count; i++) {
        const double begun = now();
        MPI_Send(&word, 1, MPI_INT64_T, 0, 0, child);
        MPI_Recv(&word, 1, MPI_INT64_T, 0, 0, child, MPI_STATUS_IGNORE);
        seconds[i < 0 ? 0 : i] = now() - begun;
    }
    MPI_Comm_disconnect(&child);
    say("spawned_child", seconds, count, 8);
}

/* ---- delegates --------------------------------------------------------------------------------------------------- */

static void ping(int count, double *seconds)
{
    int (*ask)(int, int, double *);
    void *symbol = dlsym(RTLD_DEFAULT, "mpiio_ext_delegates_ping");
    if (!symbol)
        fail("the library is not under this program, or is too old");
    memcpy(&ask, &symbol, sizeof ask);
    if (ask(0, WARM, seconds) != 0 || ask(0, count, seconds) != 0)
        fail("there is no delegate (mpiio_ext_delegates_ping)");
    say("ping", seconds, count, 0);
}

/* `count` accesses of `bytes` bytes at at, at + step, ..., modulo `around`. */
static void access_all(const char *name, MPI_File file, bool write, int64_t at, int64_t step, int64_t around, int bytes,
                       int count, unsigned char *buffer, double *seconds)
{
    for (int i = 0; i < count; i++) {
        const MPI_Offset offset = at + i * step % around;
        memset(buffer, write ? (int)(offset / SMALL % 251) + 1 : 0, (size_t)bytes);
        const double begun = now();
        check(write ? MPI_File_write_at(file, offset, buffer, bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                    : MPI_File_read_at(file, offset, buffer, bytes, MPI_BYTE, MPI_STATUS_IGNORE),
              name);
        seconds[i] = now() - begun;
        if (!write && (buffer[0] != offset / SMALL % 251 + 1 || buffer[bytes - 1] != buffer[0]))
            fail("what was read is not what was written");
    }
    say(name, seconds, count, bytes);
}

static MPI_File open_file(const options *o)
{
    char text[32];
    MPI_Info info;
    MPI_File file;
    MPI_Info_create(&info);
    snprintf(text, sizeof text, "%lld", (long long)o->page);
    MPI_Info_set(info, "mpiox_delegate_page", text);
    snprintf(text, sizeof text, "%lld", (long long)o->cache);
    MPI_Info_set(info, "mpiox_delegate_cache", text);
    MPI_Info_set(info, "mpiox_delegate_bypass", "0");
    MPI_Info_set(info, "mpiox_delegate_prefetch", "0");
    check(MPI_File_open(MPI_COMM_WORLD, o->file, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file), "MPI_File_open");
    MPI_Info_free(&info);
    return file;
}

/* The cache holds so many pages and to spare, so that a miss takes a free one. */
static int pages_of(const options *o)
{
    const int64_t pages = o->cache / o->page * 3 / 4;
    return pages < 1 ? 1 : pages > o->count ? o->count : (int)pages;
}

static void copy_large(int count, int64_t around, unsigned char *buffer, double *seconds)
{
    unsigned char *memory = malloc((size_t)around);
    if (!memory)
        fail("out of memory");
    memset(memory, 1, (size_t)around);
    for (int i = 0; i < count; i++) {
        const double begun = now();
        memcpy(memory + (int64_t)i * LARGE % around, buffer, LARGE);
        seconds[i] = now() - begun;
    }
    say("memcpy_1MiB", seconds, count, LARGE);
    free(memory);
}

static void measure_accesses(const options *o, unsigned char *buffer, double *seconds)
{
    MPI_File file = open_file(o);
    const int pages = pages_of(o);
    const int64_t around = (int64_t)pages * o->page < LARGE ? LARGE : (int64_t)pages * o->page / LARGE * LARGE;
    const int large = o->count / 4 > 1 ? o->count / 4 : 1;
    ping(o->count, seconds);
    access_all("write_miss", file, true, 0, o->page, pages * o->page, SMALL, pages, buffer, seconds);
    access_all("write_hit", file, true, 0, SMALL, o->page, SMALL, o->count, buffer, seconds);
    access_all("read_hit", file, false, 0, SMALL, o->page, SMALL, o->count, buffer, seconds);
    check(MPI_File_close(&file), "MPI_File_close");
    file = open_file(o);
    access_all("read_miss", file, false, 0, o->page, pages * o->page, SMALL, pages, buffer, seconds);
    for (int64_t at = 0; at < around; at += LARGE) /* every page is there, and every byte of it is known */
        check(MPI_File_write_at(file, at, buffer, LARGE, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at");
    for (int i = 0; i < large; i++)
        seconds[i] = 0;
    memset(buffer, 1, LARGE);
    for (int write = 1; write >= 0; write--) {
        for (int i = 0; i < large; i++) {
            const MPI_Offset offset = (int64_t)i * LARGE % around;
            const double begun = now();
            check(write ? MPI_File_write_at(file, offset, buffer, LARGE, MPI_BYTE, MPI_STATUS_IGNORE)
                        : MPI_File_read_at(file, offset, buffer, LARGE, MPI_BYTE, MPI_STATUS_IGNORE),
                  "1 MiB");
            seconds[i] = now() - begun;
        }
        say(write ? "write_1MiB" : "read_1MiB", seconds, large, LARGE);
    }
    copy_large(large, around, buffer, seconds);
    check(MPI_File_close(&file), "MPI_File_close");
    unlink(o->file);
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static options parse(int argc, char **argv)
{
    options o = {.count = 2000, .page = 1 << 20, .cache = 64 << 20};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--spawn") == 0 || strcmp(argv[i], "--child") == 0) {
            *(strcmp(argv[i], "--spawn") == 0 ? &o.spawn : &o.child) = true;
            continue;
        }
        if (strcmp(argv[i], "--file") == 0)
            o.file = value;
        else if (strcmp(argv[i], "--count") == 0)
            o.count = atoi(value);
        else if (strcmp(argv[i], "--page") == 0)
            o.page = atoll(value);
        else if (strcmp(argv[i], "--cache") == 0)
            o.cache = atoll(value);
        else
            fail("unknown option (see the head of delegate_latency.c)");
        i++;
    }
    if (o.count < 1 || o.page < 4096 || o.cache < o.page || (!o.file && !o.spawn && !o.child))
        fail("bad or missing argument (see the head of delegate_latency.c)");
    return o;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const options o = parse(argc, argv);
    double *seconds = calloc((size_t)o.count + WARM, sizeof *seconds);
    unsigned char *buffer = malloc(LARGE);
    if (!seconds || !buffer)
        fail("out of memory");
    memset(buffer, 1, LARGE);
    if (o.child)
        answer(o.count);
    else if (o.spawn)
        ask_child(argv[0], o.count, seconds);
    else
        measure_accesses(&o, buffer, seconds);
    free(seconds);
    free(buffer);
    MPI_Finalize();
    return 0;
}
