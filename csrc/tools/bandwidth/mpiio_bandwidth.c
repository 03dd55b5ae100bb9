/*
 * mpiio_bandwidth.c - the micro-benchmark of `mpiio-ext bench compare`: one write and one read of a pattern, timed,
 * and the memory that they take.
 *
 * A plain MPI program with no tie to this library, so that the very same source runs on any MPI's own MPI-IO, under
 * this library, and, with the pattern's raw variant, as bare pwrite/pread of equal contiguous parts (the limit of the
 * file system). Every byte written has a value that depends on its file offset; what is read back is compared.
 *
 *   mpiio_bandwidth --pattern inter --block 8 --bytes 268435456 --repeats 3 --file /dev/shm/k [--raw] [--hint
 *                   name=value] [--access collective] [--calls whole] [--sync] [--rewrite]
 *                   [--time-limit SECONDS] [--apart BYTES] [--keep] [--wire]
 *
 * One JSON line per repetition on rank 0: seconds of write and read (first begin to last end, data access only; with
 * --sync the write ends with MPI_File_sync), seconds of open plus close, of them those of closing what was written and
 * what was read, errors found, and the largest growth of a rank's resident memory, in bytes, between the open before
 * the write and the close after the read: the peak, not the end.
 *
 * Patterns: contiguous, inter (blocks of --block bytes dealt to ranks in turn), gaps (as inter, with one turn that no
 * rank takes: holes of --block bytes), blocks3d (3-D block decomposition of doubles), random (pieces of --block bytes
 * dealt to ranks at random), random_gaps (as random, with one rank more, which is not there: holes), tiny (a call for
 * each block of --block bytes, dealt to ranks in turn, 24,000 calls at most: counters, headers, time series), and
 * climate_tiny, climate_long, climate_mixed: what a climate model flushes at once, hundreds of 2-D and 3-D variables
 * on an irregular grid, a rank's part as one hindexed type (PnetCDF's nonblocking calls and one wait); the view is set
 * anew for each flush, so the time has it in. --apart: a rank's parts of the variables of such a flush lie that many
 * bytes apart in memory, and the last one first. Accesses:
 * collective (MPI_File_write_at_all), independent (MPI_File_write_at), nonblocking (MPI_File_iwrite),
 * nonblocking_collective (MPI_File_iwrite_all), split (MPI_File_write_all_begin and _end). Calls: whole (a rank's data
 * in one), small (every piece in one of its own, as a loop over rows or particles does; independent and nonblocking
 * access only). --rewrite: the file is written twice, when it is new and again when its blocks exist (with other data,
 * which are those read back); a new file's time is largely that of finding and clearing its pages.
 * --time-limit: SIGALRM ends a rank that still runs after this many seconds, whatever became of its launcher.
 * --wire: also the bytes that all hosts sent over their network devices meanwhile, and the data that had to cross.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpiio_bandwidth_climate.h"
#include "mpiio_memory.h"
#include "mpiio_wire.h"

typedef enum access { COLLECTIVE, INDEPENDENT, NONBLOCKING, NONBLOCKING_COLLECTIVE, SPLIT, ACCESSES } access_kind;

static const char *const access_names[ACCESSES] = {"collective", "independent", "nonblocking", "nonblocking_collective",
                                                   "split"};

typedef struct options {
    const char *pattern, *file;
    int64_t block, bytes, apart;
    int repeats;
    access_kind access;
    bool raw, keep, sync, rewrite, small, wire;
    MPI_Info info;
} options;

typedef struct pattern {
    MPI_Datatype filetype;   /* MPI_DATATYPE_NULL for contiguous */
    MPI_Datatype memory;     /* MPI_DATATYPE_NULL: one piece */
    MPI_Offset displacement; /* bytes */
    int64_t bytes;           /* of this rank */
    int64_t room;            /* of the buffer; bytes unless the memory has gaps */
} pattern;

static int rank, size;
static wire network;

/* An error of one rank ends the whole job. MPICH's mpiexec kills its proxies at once and may lose output that they have
 * not passed on yet, so they get a moment. */
static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "mpiio_bandwidth: rank %d: %s\n", rank, what);
    usleep(100000);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

/* A wrong command line, which every rank finds alike: reported once, and nothing is aborted. */
static _Noreturn void refuse(const char *what)
{
    if (rank == 0)
        fprintf(stderr, "mpiio_bandwidth: %s\n", what);
    MPI_Barrier(MPI_COMM_WORLD); /* a launcher ends the others as soon as one has ended with an error */
    MPI_Finalize();
    exit(2);
}

static void check(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING], line[MPI_MAX_ERROR_STRING + 64];
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    snprintf(line, sizeof line, "%s: %s", what, text);
    fail(line);
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

/* The number of ranks to which the blocks are dealt, in turn or at random; with gaps one more, whose blocks no rank
 * accesses. */
static int turns(const options *o)
{
    return size + (strcmp(o->pattern, "gaps") == 0 || strcmp(o->pattern, "random_gaps") == 0);
}

static bool is_random(const options *o)
{
    return strcmp(o->pattern, "random") == 0 || strcmp(o->pattern, "random_gaps") == 0;
}

static bool is_tiny(const options *o)
{
    return strcmp(o->pattern, "tiny") == 0;
}

static void make_tiny(const options *o, pattern *p)
{
    enum { CALLS = 24000 };
    const int64_t calls = o->bytes / size / o->block;
    p->bytes = (calls < CALLS ? calls : CALLS) * o->block;
    p->displacement = o->raw ? (MPI_Offset)p->bytes * rank : 0;
}

static void make_interleaved(const options *o, pattern *p)
{
    MPI_Datatype block;
    MPI_Type_contiguous((int)o->block, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)o->block * turns(o), &p->filetype);
    MPI_Type_free(&block);
    p->displacement = (MPI_Offset)o->block * rank;
    p->bytes = o->bytes / size / o->block * o->block;
}

static void make_blocks3d(const options *o, pattern *p)
{
    int n = 1, grid[3] = {0, 0, 0}, sizes[3], subsizes[3], starts[3], at[3];
    while ((int64_t)(n + 1) * (n + 1) * (n + 1) * 8 <= o->bytes)
        n++;
    MPI_Dims_create(size, 3, grid);
    at[0] = rank / (grid[1] * grid[2]);
    at[1] = rank / grid[2] % grid[1];
    at[2] = rank % grid[2];
    p->bytes = 8;
    for (int d = 0; d < 3; d++) {
        sizes[d] = n;
        starts[d] = (int)((int64_t)n * at[d] / grid[d]);
        subsizes[d] = (int)((int64_t)n * (at[d] + 1) / grid[d]) - starts[d];
        p->bytes *= subsizes[d];
    }
    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &p->filetype);
}

/* Piece i of the file belongs to rank mix(i) mod turns: every rank computes the same. */
static bool is_mine(const options *o, int64_t i)
{
    return (int)(bandwidth_mix((uint64_t)i + 1) % (uint64_t)turns(o)) == rank;
}

static void make_random(const options *o, pattern *p)
{
    const int64_t pieces = o->bytes / o->block;
    MPI_Aint *displacements = malloc(sizeof *displacements * (size_t)pieces);
    int64_t n = 0;
    if (!displacements)
        fail("out of memory");
    for (int64_t i = 0; i < pieces; i++)
        if (is_mine(o, i))
            displacements[n++] = i * o->block;
    MPI_Datatype block;
    MPI_Type_contiguous((int)o->block, MPI_BYTE, &block);
    MPI_Type_create_hindexed_block((int)n, 1, displacements, block, &p->filetype);
    MPI_Type_free(&block);
    free(displacements);
    p->bytes = n * o->block;
}

static climate_flush flush_of(const options *o, const pattern *p)
{
    return (climate_flush){o->pattern, o->bytes, o->apart, p->room, rank, size};
}

static void make_pattern(const options *o, pattern *p)
{
    *p = (pattern){.filetype = MPI_DATATYPE_NULL, .memory = MPI_DATATYPE_NULL};
    if (is_tiny(o)) {
        make_tiny(o, p);
    } else if (strcmp(o->pattern, "contiguous") == 0 || o->raw) {
        p->bytes = o->bytes / size;
        p->displacement = (MPI_Offset)p->bytes * rank;
    } else if (strcmp(o->pattern, "inter") == 0 || strcmp(o->pattern, "gaps") == 0)
        make_interleaved(o, p);
    else if (strcmp(o->pattern, "blocks3d") == 0)
        make_blocks3d(o, p);
    else if (is_random(o))
        make_random(o, p);
    else if (climate_is(o->pattern)) {
        const climate_flush flush = flush_of(o, p);
        if (!climate_types(&flush, &p->filetype, &p->memory, &p->bytes, &p->room))
            fail("out of memory");
    } else
        refuse("unknown pattern (contiguous, inter, gaps, blocks3d, random, random_gaps, tiny, climate_tiny, "
               "climate_long, climate_mixed)");
    if (!p->room)
        p->room = p->bytes;
    if (p->filetype != MPI_DATATYPE_NULL)
        MPI_Type_commit(&p->filetype);
}

static void free_types(pattern *p)
{
    if (p->filetype != MPI_DATATYPE_NULL)
        MPI_Type_free(&p->filetype);
    if (p->memory != MPI_DATATYPE_NULL)
        MPI_Type_free(&p->memory);
}

/* Value of the 8-byte word, or of the byte, at a file offset: found again without knowing who wrote it. The buffer
 * is in file order, so that filling it needs the pattern: the file offset of every piece. */
static unsigned char value_at(int64_t offset)
{
    return (unsigned char)(bandwidth_mix((uint64_t)(offset >> 3)) >> (8 * (offset & 7)));
}

/* Calls visit(offset, position, length) for every piece of this rank, in order. */
static void each_piece(const options *o, const pattern *p, void (*visit)(void *, int64_t, int64_t, int64_t),
                       void *context)
{
    if (is_tiny(o) && !o->raw) {
        for (int64_t at = 0; at < p->bytes; at += o->block)
            visit(context, at * size + o->block * rank, at, o->block);
    } else if (p->filetype == MPI_DATATYPE_NULL) {
        visit(context, p->displacement, 0, p->bytes);
    } else if (strcmp(o->pattern, "inter") == 0 || strcmp(o->pattern, "gaps") == 0) {
        for (int64_t i = 0; i < p->bytes / o->block; i++)
            visit(context, p->displacement + i * o->block * turns(o), i * o->block, o->block);
    } else if (is_random(o)) {
        int64_t n = 0;
        for (int64_t i = 0; i < o->bytes / o->block; i++)
            if (is_mine(o, i))
                visit(context, i * o->block, o->block * n++, o->block);
    } else if (climate_is(o->pattern)) {
        const climate_flush flush = flush_of(o, p);
        if (!climate_each(&flush, visit, context))
            fail("out of memory");
    } else {
        int n_integers, n_addresses, n_types, combiner;
        MPI_Type_get_envelope(p->filetype, &n_integers, &n_addresses, &n_types, &combiner);
        int values[16];
        MPI_Aint addresses[1];
        MPI_Datatype types[1];
        MPI_Type_get_contents(p->filetype, n_integers, n_addresses, n_types, values, addresses, types);
        const int *sizes = values + 1, *sub = values + 4, *start = values + 7;
        int64_t position = 0;
        for (int64_t i = 0; i < sub[0]; i++)
            for (int64_t j = 0; j < sub[1]; j++, position += 8LL * sub[2])
                visit(context, 8 * (((start[0] + i) * sizes[1] + start[1] + j) * sizes[2] + start[2]), position,
                      8LL * sub[2]);
    }
}

static void fill_piece(void *context, int64_t offset, int64_t position, int64_t length)
{
    unsigned char *buffer = context;
    for (int64_t i = 0; i < length; i++)
        buffer[position + i] = value_at(offset + i);
}

typedef struct comparison {
    const unsigned char *buffer;
    int64_t wrong;
} comparison;

static void compare_piece(void *context, int64_t offset, int64_t position, int64_t length)
{
    comparison *c = context;
    for (int64_t i = 0; i < length; i++)
        c->wrong += c->buffer[position + i] != value_at(offset + i);
}

/* ---- access ------------------------------------------------------------------------------------------------------ */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Seconds from the first rank's begin to the last rank's end. With more ranks than processors some begin when others
 * have ended, so that no rank's own time is the duration. On hosts without a common clock: the slowest rank's own time,
 * which is too short if ranks do not wait for each other. */
static double span(double begun)
{
    const double ended = now();
    double mine[3] = {-begun, ended, ended - begun}, most[3];
    MPI_Allreduce(mine, most, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return network.one_clock ? most[0] + most[1] : most[2];
}

typedef struct times {
    double open, data, close; /* seconds */
    int64_t sent;             /* bytes that this rank's host sent during the data access; on one rank of each host */
} times;

static times access_raw(const options *o, const pattern *p, unsigned char *buffer, bool write)
{
    const int64_t request = is_tiny(o) ? o->block : 1 << 20;
    int fd = open(o->file, (write ? O_CREAT : 0) | O_RDWR, 0644);
    if (fd < 0)
        fail("cannot open the file");
    MPI_Barrier(MPI_COMM_WORLD);
    const double begun = now();
    for (int64_t at = 0; at < p->bytes;) {
        const int64_t part = p->bytes - at < request ? p->bytes - at : request;
        const ssize_t done = write ? pwrite(fd, buffer + at, (size_t)part, p->displacement + at)
                                   : pread(fd, buffer + at, (size_t)part, p->displacement + at);
        if (done <= 0)
            fail("pwrite or pread failed");
        at += done;
    }
    if (write && o->sync && fsync(fd) != 0)
        fail("fsync failed");
    const double seconds = span(begun);
    close(fd);
    return (times){.data = seconds};
}

/* The calls that move one rank's data. */
typedef struct calls {
    const options *o;
    const pattern *p;
    MPI_File file;
    MPI_Offset base; /* of the rank's first byte in the view */
    unsigned char *buffer;
    bool write;
} calls;

/* One access of `count` chunks at `offset` of the view, whose elementary type is a byte. */
static void transfer(const calls *c, MPI_Offset offset, void *buffer, int count, MPI_Datatype chunk, MPI_Status *status)
{
    const int access = c->o->access;
    const char *name = access_names[access];
    const MPI_File file = c->file;
    const bool write = c->write;
    MPI_Request request;
    if (access == COLLECTIVE) {
        check(write ? MPI_File_write_at_all(file, offset, buffer, count, chunk, status)
                    : MPI_File_read_at_all(file, offset, buffer, count, chunk, status),
              name);
        return;
    }
    if (access == INDEPENDENT) {
        check(write ? MPI_File_write_at(file, offset, buffer, count, chunk, status)
                    : MPI_File_read_at(file, offset, buffer, count, chunk, status),
              name);
        return;
    }
    check(MPI_File_seek(file, offset, MPI_SEEK_SET), "MPI_File_seek");
    if (access == SPLIT) {
        check(write ? MPI_File_write_all_begin(file, buffer, count, chunk)
                    : MPI_File_read_all_begin(file, buffer, count, chunk),
              name);
        check(write ? MPI_File_write_all_end(file, buffer, status) : MPI_File_read_all_end(file, buffer, status), name);
        return;
    }
    if (access == NONBLOCKING)
        check(write ? MPI_File_iwrite(file, buffer, count, chunk, &request)
                    : MPI_File_iread(file, buffer, count, chunk, &request),
              name);
    else
        check(write ? MPI_File_iwrite_all(file, buffer, count, chunk, &request)
                    : MPI_File_iread_all(file, buffer, count, chunk, &request),
              name);
    check(MPI_Wait(&request, status), name);
}

/* One call, in elements of up to 8 bytes, so that a large one fits an int. */
static void call(const calls *c, int64_t position, int64_t length)
{
    MPI_Status status;
    MPI_Datatype chunk;
    int count = 0, unit = 8;
    while (length % unit)
        unit /= 2;
    const int64_t wanted = length / unit;
    MPI_Type_contiguous(unit, MPI_BYTE, &chunk);
    MPI_Type_commit(&chunk);
    if (c->p->memory != MPI_DATATYPE_NULL)
        transfer(c, c->base + position, c->buffer + position, 1, c->p->memory, &status);
    else
        transfer(c, c->base + position, c->buffer + position, (int)wanted, chunk, &status);
    MPI_Get_count(&status, chunk, &count);
    if (count != wanted)
        fail("the status counts fewer bytes than were requested");
    MPI_Type_free(&chunk);
}

static void set_view(const calls *c)
{
    if (c->p->filetype != MPI_DATATYPE_NULL)
        check(MPI_File_set_view(c->file, c->p->displacement, MPI_BYTE, c->p->filetype, "native", c->o->info),
              "MPI_File_set_view");
}

/* A call of its own for a piece, and nothing but the call, since there may be millions of them. The one piece of the
 * contiguous pattern has one for every --block bytes. */
static void call_piece(void *context, int64_t offset, int64_t position, int64_t length)
{
    const calls *c = context;
    MPI_Status status;
    int count = 0;
    const int64_t place = c->p->filetype == MPI_DATATYPE_NULL ? offset : c->base + position; /* in the view */
    for (int64_t at = 0; at < length; at += c->o->block) {
        const int part = (int)(length - at < c->o->block ? length - at : c->o->block);
        transfer(c, place + at, c->buffer + position + at, part, MPI_BYTE, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        if (count != part)
            fail("the status counts fewer bytes than were requested");
    }
}

static times access_mpi(const options *o, pattern *p, unsigned char *buffer, bool write)
{
    calls c = {.o = o, .p = p, .buffer = buffer, .write = write};
    const bool flush = climate_is(o->pattern);
    times took;
    if (flush) { /* every flush has a type of its own, which no library has seen before */
        free_types(p);
        make_pattern(o, p);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    check(MPI_File_open(MPI_COMM_WORLD, o->file, write ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY, o->info,
                        &c.file),
          "MPI_File_open");
    if (!flush)
        set_view(&c);
    took.open = span(begun);
    c.base = p->filetype == MPI_DATATYPE_NULL ? p->displacement : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const int64_t sent = o->wire ? wire_sent(&network) : 0;
    begun = now();
    if (flush)
        set_view(&c);
    if (o->small || is_tiny(o))
        each_piece(o, p, call_piece, &c);
    else
        call(&c, 0, p->bytes);
    if (write && o->sync)
        check(MPI_File_sync(c.file), "MPI_File_sync");
    took.data = span(begun);
    took.sent = o->wire ? wire_sent(&network) - sent : 0;
    begun = now();
    check(MPI_File_close(&c.file), "MPI_File_close");
    took.close = span(begun);
    return took;
}

static void widen_by_piece(void *context, int64_t offset, int64_t position, int64_t length)
{
    (void)position;
    wire_widen(context, offset, length);
}

static void add_piece(void *context, int64_t offset, int64_t position, int64_t length)
{
    (void)position;
    wire_add(context, offset, length);
}

/* Rank 0 prints what the hosts sent, and what had to cross. */
static void report_wire(const options *o, const pattern *p, const times *written, const times *read)
{
    int64_t sent[3] = {written[0].sent, written[1].sent, read->sent}, all[3], even, least;
    crossing c = {.start = INT64_MAX, .end = INT64_MIN};
    MPI_Reduce(sent, all, 3, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    each_piece(o, p, widen_by_piece, &c);
    if (!wire_begin(&c, &network))
        fail("out of memory");
    each_piece(o, p, add_piece, &c);
    wire_end(&c, &network, &even, &least);
    if (rank == 0)
        printf(", \"hosts\": %d, \"write_sent_bytes\": %lld, \"rewrite_sent_bytes\": %lld, \"read_sent_bytes\": %lld, "
               "\"cross_even_bytes\": %lld, \"cross_least_bytes\": %lld",
               network.hosts, (long long)all[0], (long long)all[1], (long long)all[2], (long long)even,
               (long long)least);
}

/* Rank 0 prints what the repetition took; `growth` is of this rank. */
static void report(const options *o, int repetition, const pattern *p, const times *written, const times *read,
                   int64_t mistakes, int64_t growth)
{
    int64_t sums[2] = {p->bytes, mistakes}, total[2], most;
    MPI_Reduce(sums, total, 2, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&growth, &most, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank) {
        if (o->wire)
            report_wire(o, p, written, read);
        return;
    }
    printf("{\"pattern\": \"%s\", \"access\": \"%s\", \"calls\": \"%s\", \"block_bytes\": %lld, \"bytes\": %lld, "
           "\"ranks\": %d, \"repetition\": %d, \"write_s\": %.9f, \"read_s\": %.9f, \"open_close_s\": %.9f, "
           "\"write_close_s\": %.9f, \"read_close_s\": %.9f, \"wrong_bytes\": %lld, \"memory_growth_bytes\": %lld",
           o->pattern, o->raw ? "raw" : access_names[o->access], o->small ? "small" : "whole", (long long)o->block,
           (long long)total[0], size, repetition, written[0].data, read->data,
           written[0].open + written[0].close + read->open + read->close, written[0].close, read->close,
           (long long)total[1], (long long)most);
    if (o->rewrite)
        printf(", \"rewrite_s\": %.9f, \"rewrite_close_s\": %.9f", written[1].data, written[1].close);
    if (o->wire)
        report_wire(o, p, written, read);
    printf("}\n");
    fflush(stdout);
}

static times access_any(const options *o, pattern *p, unsigned char *buffer, bool write)
{
    return o->raw ? access_raw(o, p, buffer, write) : access_mpi(o, p, buffer, write);
}

static void repeat(const options *o, pattern *p, unsigned char *buffer, int repetition)
{
    times written[2] = {{0, 0, 0, 0}, {0, 0, 0, 0}}; /* the file when it is new, and again */
    if (rank == 0)
        unlink(o->file);
    MPI_Barrier(MPI_COMM_WORLD); /* no rank opens the old file */
    each_piece(o, p, fill_piece, buffer);
    const int64_t before = memory_begin(rank);
    for (int64_t i = 0; o->rewrite && i < p->room; i++)
        buffer[i] ^= 0xFF;
    written[0] = access_any(o, p, buffer, true);
    if (o->rewrite) {
        each_piece(o, p, fill_piece, buffer);
        written[1] = access_any(o, p, buffer, true);
    }
    memset(buffer, 0, (size_t)p->room);
    MPI_Barrier(MPI_COMM_WORLD);
    const times read = access_any(o, p, buffer, false);
    const int64_t growth = memory_growth(before);
    comparison c = {buffer, 0};
    each_piece(o, p, compare_piece, &c);
    report(o, repetition, p, written, &read, c.wrong, growth);
    if (rank == 0 && !o->keep)
        unlink(o->file);
}

static int64_t number(const char *text)
{
    char *end;
    const long long value = strtoll(text, &end, 10);
    if (!*text || *end || value <= 0)
        refuse("a number must be a positive integer");
    return value;
}

static access_kind access_of(const char *name)
{
    for (int kind = 0; kind < ACCESSES; kind++)
        if (strcmp(access_names[kind], name) == 0)
            return (access_kind)kind;
    refuse("unknown access (collective, independent, nonblocking, nonblocking_collective, split)");
    return COLLECTIVE;
}

static bool is_small(const char *calls)
{
    if (strcmp(calls, "small") != 0 && strcmp(calls, "whole") != 0)
        refuse("unknown calls (whole, small)");
    return strcmp(calls, "small") == 0;
}

static void set_hint(options *o, const char *text)
{
    char *name = strdup(text), *equals = strchr(name, '=');
    if (!equals)
        refuse("a hint is name=value");
    *equals = 0;
    if (o->info == MPI_INFO_NULL)
        MPI_Info_create(&o->info);
    MPI_Info_set(o->info, name, equals + 1);
    free(name);
}

static bool parse_flag(const char *name, options *o)
{
    if (strcmp(name, "--raw") == 0)
        o->raw = true;
    else if (strcmp(name, "--keep") == 0)
        o->keep = true;
    else if (strcmp(name, "--sync") == 0)
        o->sync = true;
    else if (strcmp(name, "--rewrite") == 0)
        o->rewrite = true;
    else if (strcmp(name, "--wire") == 0)
        o->wire = true;
    else
        return false;
    return true;
}

static void parse(int argc, char **argv, options *o)
{
    *o = (options){.pattern = "contiguous", .block = 8, .bytes = 1 << 26, .repeats = 1, .info = MPI_INFO_NULL};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (parse_flag(argv[i], o))
            continue;
        if (strcmp(argv[i], "--pattern") == 0)
            o->pattern = value;
        else if (strcmp(argv[i], "--file") == 0)
            o->file = value;
        else if (strcmp(argv[i], "--block") == 0)
            o->block = number(value);
        else if (strcmp(argv[i], "--bytes") == 0)
            o->bytes = number(value);
        else if (strcmp(argv[i], "--repeats") == 0)
            o->repeats = (int)number(value);
        else if (strcmp(argv[i], "--apart") == 0)
            o->apart = number(value);
        else if (strcmp(argv[i], "--time-limit") == 0)
            alarm((unsigned)number(value));
        else if (strcmp(argv[i], "--access") == 0)
            o->access = access_of(value);
        else if (strcmp(argv[i], "--calls") == 0)
            o->small = is_small(value);
        else if (strcmp(argv[i], "--hint") == 0)
            set_hint(o, value);
        else
            refuse("unknown option (see the head of mpiio_bandwidth.c)");
        i++;
    }
    if (!o->file)
        refuse("--file is missing");
    if (o->apart && !climate_is(o->pattern))
        refuse("--apart goes with the climate patterns");
    if (o->small && (o->apart || climate_is(o->pattern)))
        refuse("--calls small does not go with the climate patterns: a flush is one call");
    if (o->small && o->access != INDEPENDENT && o->access != NONBLOCKING)
        refuse("--calls small goes with independent or nonblocking access: ranks have different numbers of pieces");
}

/* The first use of communicators costs an MPI library memory that has nothing to do with files (MPICH: 1.9 MB at
 * the ninth that lives at once): it is used beforehand. */
static void warm_up(void)
{
    enum { ALL = 10, NODE, PART, COMMS };
    MPI_Comm comms[COMMS];
    int one = 1, sum, *many = malloc(sizeof *many * (size_t)size);
    if (!many)
        fail("out of memory");
    for (int i = 0; i <= ALL; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    MPI_Comm_split_type(comms[ALL], MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comms[NODE]);
    MPI_Comm_split(comms[ALL], rank % 2, 0, &comms[PART]);
    for (int i = ALL; i < COMMS; i++) {
        MPI_Bcast(&one, 1, MPI_INT, 0, comms[i]);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[i]);
        MPI_Allgather(&one, 1, MPI_INT, many, 1, MPI_INT, comms[i]);
        MPI_Gather(&one, 1, MPI_INT, many, 1, MPI_INT, 0, comms[i]);
        MPI_Barrier(comms[i]);
    }
    wire_find_hosts(&network);
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_free(&comms[i]);
    free(many);
}

int main(int argc, char **argv)
{
    options o;
    pattern p;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    parse(argc, argv, &o);
    make_pattern(&o, &p);
    unsigned char *buffer = malloc((size_t)p.room + 8);
    if (!buffer)
        fail("out of memory");
    memset(buffer, 1, (size_t)p.room);
    warm_up();
    for (int i = 0; i < o.repeats; i++)
        repeat(&o, &p, buffer, i);
    free(buffer);
    free_types(&p);
    if (o.info != MPI_INFO_NULL)
        MPI_Info_free(&o.info);
    MPI_Finalize();
    return 0;
}
