/*
 * mpiox_kernel.c - the micro-kernel of `python -m mpiio_ext.bench compare`: one collective write and read of a pattern.
 *
 * A plain MPI program with no tie to this library, so that the very same source runs on any MPI's own MPI-IO, under this
 * library, and, with the pattern's raw variant, as bare pwrite/pread of equal contiguous parts (the limit of the file
 * system). Every byte written has a value that depends on its file offset; what is read back is compared.
 *
 *   mpiox_kernel --pattern inter --block 8 --bytes 268435456 --repeats 3 --file /dev/shm/k [--raw] [--hint name=value]
 *
 * One JSON line per repetition on rank 0: seconds of write and read (the slowest rank, data access only), seconds of
 * open plus close, errors found, and the largest growth of a rank's resident memory in bytes.
 * Patterns: contiguous, inter (blocks of --block bytes dealt to ranks in turn), gaps (as inter, with one turn more that
 * nobody takes: holes of --block bytes), blocks3d (3-D block decomposition of
 * doubles), random (pieces of --block bytes dealt to ranks by a random permutation).
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct options {
    const char *pattern, *file;
    int64_t block, bytes;
    int repeats;
    bool raw, keep;
    MPI_Info info;
} options;

typedef struct pattern {
    MPI_Datatype filetype;   /* MPI_DATATYPE_NULL for contiguous */
    MPI_Offset displacement; /* bytes */
    int64_t bytes;           /* of this rank */
} pattern;

static int rank, size;

static void fail(const char *what) {
    fprintf(stderr, "mpiox_kernel: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void check(int code, const char *what) {
    char text[MPI_MAX_ERROR_STRING], line[MPI_MAX_ERROR_STRING + 64];
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    snprintf(line, sizeof line, "%s: %s", what, text);
    fail(line);
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

/* Blocks dealt in turn; with gaps, one more turn that nobody takes. */
static int turns(const options *o) { return size + (strcmp(o->pattern, "gaps") == 0); }

static void make_interleaved(const options *o, pattern *p) {
    MPI_Datatype block;
    MPI_Type_contiguous((int) o->block, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint) o->block * turns(o), &p->filetype);
    MPI_Type_free(&block);
    p->displacement = (MPI_Offset) o->block * rank;
    p->bytes = o->bytes / size / o->block * o->block;
}

static void make_blocks3d(const options *o, pattern *p) {
    int n = 1, grid[3] = {0, 0, 0}, sizes[3], subsizes[3], starts[3], at[3];
    while ((int64_t) (n + 1) * (n + 1) * (n + 1) * 8 <= o->bytes)
        n++;
    MPI_Dims_create(size, 3, grid);
    at[0] = rank / (grid[1] * grid[2]);
    at[1] = rank / grid[2] % grid[1];
    at[2] = rank % grid[2];
    p->bytes = 8;
    for (int d = 0; d < 3; d++) {
        sizes[d] = n;
        starts[d] = (int) ((int64_t) n * at[d] / grid[d]);
        subsizes[d] = (int) ((int64_t) n * (at[d] + 1) / grid[d]) - starts[d];
        p->bytes *= subsizes[d];
    }
    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &p->filetype);
}

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Piece i of the file belongs to rank mix(i) mod size: every rank computes the same. */
static void make_random(const options *o, pattern *p) {
    const int64_t pieces = o->bytes / o->block;
    MPI_Aint *displacements = malloc(sizeof *displacements * (size_t) pieces);
    int64_t n = 0;
    if (!displacements)
        fail("out of memory");
    for (int64_t i = 0; i < pieces; i++)
        if ((int) (mix((uint64_t) i + 1) % (uint64_t) size) == rank)
            displacements[n++] = i * o->block;
    MPI_Datatype block;
    MPI_Type_contiguous((int) o->block, MPI_BYTE, &block);
    MPI_Type_create_hindexed_block((int) n, 1, displacements, block, &p->filetype);
    MPI_Type_free(&block);
    free(displacements);
    p->bytes = n * o->block;
}

static void make_pattern(const options *o, pattern *p) {
    *p = (pattern) {MPI_DATATYPE_NULL, 0, 0};
    if (strcmp(o->pattern, "contiguous") == 0 || o->raw) {
        p->bytes = o->bytes / size;
        p->displacement = (MPI_Offset) p->bytes * rank;
    } else if (strcmp(o->pattern, "inter") == 0 || strcmp(o->pattern, "gaps") == 0)
        make_interleaved(o, p);
    else if (strcmp(o->pattern, "blocks3d") == 0)
        make_blocks3d(o, p);
    else if (strcmp(o->pattern, "random") == 0)
        make_random(o, p);
    else
        fail("unknown pattern (contiguous, inter, gaps, blocks3d, random)");
    if (p->filetype != MPI_DATATYPE_NULL)
        MPI_Type_commit(&p->filetype);
}

/* Value of the 8-byte word, or of the byte, at a file offset: found again without knowing who wrote it. The buffer is in
 * file order, so that filling it needs the pattern: the file offset of every piece. */
static unsigned char value_at(int64_t offset) { return (unsigned char) (mix((uint64_t) (offset >> 3)) >> (8 * (offset & 7))); }

/* Calls visit(offset, position, length) for every piece of this rank, in order. */
static void each_piece(const options *o, const pattern *p, void (*visit)(void *, int64_t, int64_t, int64_t), void *context) {
    if (p->filetype == MPI_DATATYPE_NULL) {
        visit(context, p->displacement, 0, p->bytes);
    } else if (strcmp(o->pattern, "inter") == 0 || strcmp(o->pattern, "gaps") == 0) {
        for (int64_t i = 0; i < p->bytes / o->block; i++)
            visit(context, p->displacement + i * o->block * turns(o), i * o->block, o->block);
    } else if (strcmp(o->pattern, "random") == 0) {
        int64_t n = 0;
        for (int64_t i = 0; i < o->bytes / o->block; i++)
            if ((int) (mix((uint64_t) i + 1) % (uint64_t) size) == rank)
                visit(context, i * o->block, o->block * n++, o->block);
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
                visit(context, 8 * (((start[0] + i) * sizes[1] + start[1] + j) * sizes[2] + start[2]), position, 8LL * sub[2]);
    }
}

static void fill_piece(void *context, int64_t offset, int64_t position, int64_t length) {
    unsigned char *buffer = context;
    for (int64_t i = 0; i < length; i++)
        buffer[position + i] = value_at(offset + i);
}

typedef struct comparison {
    const unsigned char *buffer;
    int64_t wrong;
} comparison;

static void compare_piece(void *context, int64_t offset, int64_t position, int64_t length) {
    comparison *c = context;
    for (int64_t i = 0; i < length; i++)
        c->wrong += c->buffer[position + i] != value_at(offset + i);
}

/* ---- access ------------------------------------------------------------------------------------------------------ */

static double slowest(double seconds) {
    double most;
    MPI_Allreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

static int64_t resident_peak(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t) usage.ru_maxrss * 1024;
}

static double access_raw(const options *o, const pattern *p, unsigned char *buffer, bool write) {
    enum { REQUEST = 1 << 20 };
    int fd = open(o->file, (write ? O_CREAT : 0) | O_RDWR, 0644);
    if (fd < 0)
        fail("cannot open the file");
    MPI_Barrier(MPI_COMM_WORLD);
    const double begun = MPI_Wtime();
    for (int64_t at = 0; at < p->bytes;) {
        const int64_t part = p->bytes - at < REQUEST ? p->bytes - at : REQUEST;
        const ssize_t done = write ? pwrite(fd, buffer + at, (size_t) part, p->displacement + at)
                                   : pread(fd, buffer + at, (size_t) part, p->displacement + at);
        if (done <= 0)
            fail("pwrite or pread failed");
        at += done;
    }
    const double seconds = slowest(MPI_Wtime() - begun);
    close(fd);
    return seconds;
}

static double access_mpi(const options *o, const pattern *p, unsigned char *buffer, bool write, double *open_close) {
    MPI_File file;
    MPI_Status status;
    MPI_Datatype chunk;
    int count = 0, unit = 8;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = MPI_Wtime();
    check(MPI_File_open(MPI_COMM_WORLD, o->file, write ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY, o->info,
                        &file), "MPI_File_open");
    if (p->filetype != MPI_DATATYPE_NULL)
        check(MPI_File_set_view(file, p->displacement, MPI_BYTE, p->filetype, "native", o->info), "MPI_File_set_view");
    *open_close = MPI_Wtime() - begun;
    while (p->bytes % unit)
        unit /= 2;
    MPI_Type_contiguous(unit, MPI_BYTE, &chunk);
    MPI_Type_commit(&chunk);
    const MPI_Offset offset = p->filetype == MPI_DATATYPE_NULL ? p->displacement : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    begun = MPI_Wtime();
    if (write)
        check(MPI_File_write_at_all(file, offset, buffer, (int) (p->bytes / unit), chunk, &status), "MPI_File_write_at_all");
    else
        check(MPI_File_read_at_all(file, offset, buffer, (int) (p->bytes / unit), chunk, &status), "MPI_File_read_at_all");
    const double seconds = slowest(MPI_Wtime() - begun);
    MPI_Get_count(&status, chunk, &count);
    if (count != p->bytes / unit)
        fail("the status counts fewer bytes than were asked for");
    begun = MPI_Wtime();
    check(MPI_File_close(&file), "MPI_File_close");
    *open_close = slowest(*open_close + MPI_Wtime() - begun);
    MPI_Type_free(&chunk);
    return seconds;
}

static void repeat(const options *o, const pattern *p, unsigned char *buffer, int repetition) {
    double open_close = 0, read_open_close = 0;
    if (rank == 0)
        unlink(o->file);
    MPI_Barrier(MPI_COMM_WORLD); /* nobody opens the old file */
    each_piece(o, p, fill_piece, buffer);
    const int64_t before = resident_peak();
    const double write_s = o->raw ? access_raw(o, p, buffer, true) : access_mpi(o, p, buffer, true, &open_close);
    memset(buffer, 0, (size_t) p->bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    const double read_s = o->raw ? access_raw(o, p, buffer, false) : access_mpi(o, p, buffer, false, &read_open_close);
    int64_t mine[2] = {0, resident_peak() - before}, wrong, growth, total;
    comparison c = {buffer, 0};
    each_piece(o, p, compare_piece, &c);
    mine[0] = c.wrong;
    MPI_Reduce(&mine[0], &wrong, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine[1], &growth, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&p->bytes, &total, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank)
        return;
    printf("{\"pattern\": \"%s\", \"block_bytes\": %lld, \"bytes\": %lld, \"ranks\": %d, \"repetition\": %d, \"write_s\": %.9f, "
           "\"read_s\": %.9f, \"open_close_s\": %.9f, \"wrong_bytes\": %lld, \"memory_growth_bytes\": %lld}\n",
           o->pattern, (long long) o->block, (long long) total, size, repetition, write_s, read_s,
           open_close + read_open_close, (long long) wrong, (long long) growth);
    fflush(stdout);
    if (!o->keep)
        unlink(o->file);
}

static int64_t number(const char *text) {
    char *end;
    const long long value = strtoll(text, &end, 10);
    if (!*text || *end || value <= 0)
        fail("a number must be a positive integer");
    return value;
}

static void parse(int argc, char **argv, options *o) {
    *o = (options) {.pattern = "contiguous", .file = NULL, .block = 8, .bytes = 1 << 26, .repeats = 1, .info = MPI_INFO_NULL};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--raw") == 0) { o->raw = true; continue; }
        if (strcmp(argv[i], "--keep") == 0) { o->keep = true; continue; }
        if (strcmp(argv[i], "--pattern") == 0) o->pattern = value;
        else if (strcmp(argv[i], "--file") == 0) o->file = value;
        else if (strcmp(argv[i], "--block") == 0) o->block = number(value);
        else if (strcmp(argv[i], "--bytes") == 0) o->bytes = number(value);
        else if (strcmp(argv[i], "--repeats") == 0) o->repeats = (int) number(value);
        else if (strcmp(argv[i], "--hint") == 0 && strchr(value, '=')) {
            char *name = strdup(value), *equals = strchr(name, '=');
            *equals = 0;
            if (o->info == MPI_INFO_NULL)
                MPI_Info_create(&o->info);
            MPI_Info_set(o->info, name, equals + 1);
            free(name);
        } else
            fail("unknown option (see the head of mpiox_kernel.c)");
        i++;
    }
    if (!o->file)
        fail("--file is missing");
}

int main(int argc, char **argv) {
    options o;
    pattern p;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    parse(argc, argv, &o);
    make_pattern(&o, &p);
    unsigned char *buffer = malloc((size_t) p.bytes + 8);
    if (!buffer)
        fail("out of memory");
    memset(buffer, 1, (size_t) p.bytes);
    for (int i = 0; i < o.repeats; i++)
        repeat(&o, &p, buffer, i);
    free(buffer);
    if (p.filetype != MPI_DATATYPE_NULL)
        MPI_Type_free(&p.filetype);
    if (o.info != MPI_INFO_NULL)
        MPI_Info_free(&o.info);
    MPI_Finalize();
    return 0;
}
