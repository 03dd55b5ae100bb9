/*
 * many_ranks.c - what opening, writing, reading and closing a file cost a rank; plain MPI.
 *
 *   many_ranks FILE BYTES PIECES    each rank writes PIECES pieces of BYTES bytes in turn, and reads them
 *
 * Every byte that is read, and every byte of the file, is checked. Rank 0 prints a line of JSON for each step of a
 * first file and of a second one, whose communicators and memory are there: most and mean of the ranks of
 *   begun, blocking   nonblocking operations and blocking collectives of the library, of inject.c if that is preloaded
 *   sent              bytes that the library has sent from rank to rank
 *   gathered          bytes that gathers of all ranks bring to one
 *   private, pss      KiB, private and proportional, since before the first file
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEGUN, BLOCKING, SENT, GATHERED, PRIVATE, PSS, NUMBERS };

static int rank, ranks;
static long before[NUMBERS];

static void must(const char *what, int fine)
{
    if (fine)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static long counter(const char *name)
{
    long (*get)(void);

    *(void **)&get = dlsym(RTLD_DEFAULT, name);
    return get != NULL ? get() : 0;
}

static void look(long now[NUMBERS])
{
    char line[256];
    long kib;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");

    memset(now, 0, sizeof *now * NUMBERS);
    now[BEGUN] = counter("inject_begun");
    now[BLOCKING] = counter("inject_blocking");
    now[SENT] = counter("inject_sent") + counter("inject_delivered");
    now[GATHERED] = counter("inject_gathered");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Private_%*[^:]: %ld", &kib) == 1)
            now[PRIVATE] += kib;
        else if (sscanf(line, "Pss: %ld", &kib) == 1)
            now[PSS] = kib;
    if (file != NULL)
        fclose(file);
}

/* What the step has cost; memory counts from the beginning. */
static void report(const char *step)
{
    static const char *names[] = {"begun", "blocking", "sent", "gathered", "private", "pss"};
    static double begun;
    long now[NUMBERS], cost[NUMBERS], most[NUMBERS], sum[NUMBERS];
    const double seconds = MPI_Wtime() - begun;

    look(now);
    for (int i = 0; i < NUMBERS; i++) {
        cost[i] = now[i] - before[i];
        before[i] = i < PRIVATE ? now[i] : before[i];
    }
    MPI_Reduce(cost, most, NUMBERS, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(cost, sum, NUMBERS, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < NUMBERS; i++)
        printf("%s\"%s\": [%ld, %.1f]", i == 0 ? "{" : ", ", names[i], most[i], (double)sum[i] / ranks);
    if (rank == 0)
        printf(", \"seconds\": %.1f, \"step\": \"%s\"}\n", seconds, step);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    begun = MPI_Wtime();
}

static unsigned char byte_at(long long position)
{
    return (unsigned char)(1 + ((unsigned long long)position * 0x9E3779B97F4A7C15ull >> 40) % 255);
}

/* This rank's bytes in the order of the file: set them, or count those that are wrong. */
static long each_byte(unsigned char *data, int bytes, int pieces, int set)
{
    long wrong = 0;

    for (long i = 0; i < (long)bytes * pieces; i++) {
        const unsigned char right = byte_at((i / bytes * ranks + rank) * (long long)bytes + i % bytes);

        wrong += !set && data[i] != right;
        data[i] = set ? right : data[i];
    }
    return wrong;
}

/* Rank 0, without MPI. */
static void check_file(const char *path, long long bytes)
{
    long long at = 0;
    int byte;
    FILE *file = fopen(path, "rb");

    must("the file cannot be opened", file != NULL);
    for (; (byte = fgetc(file)) != EOF; at++)
        must("a byte of the file is wrong", byte == byte_at(at));
    must("the file has another size", at == bytes);
    fclose(file);
}

static void access_file(const char *path, int bytes, int pieces, unsigned char *data, const char *steps[4])
{
    MPI_Datatype piece, turns;
    MPI_File file;

    MPI_Type_contiguous(bytes, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)bytes * ranks, &turns);
    MPI_Type_commit(&turns);
    must("open", MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) == 0);
    report(steps[0]);
    must("set_view", MPI_File_set_view(file, (MPI_Offset)rank * bytes, MPI_BYTE, turns, "native", MPI_INFO_NULL) == 0);
    each_byte(data, bytes, pieces, 1);
    must("write", MPI_File_write_at_all(file, 0, data, bytes * pieces, MPI_BYTE, MPI_STATUS_IGNORE) == 0);
    report(steps[1]);
    memset(data, 0, (size_t)bytes * (size_t)pieces);
    must("read", MPI_File_read_at_all(file, 0, data, bytes * pieces, MPI_BYTE, MPI_STATUS_IGNORE) == 0);
    must("a byte that was read is wrong", each_byte(data, bytes, pieces, 0) == 0);
    report(steps[2]);
    must("close", MPI_File_close(&file) == 0);
    report(steps[3]);
    MPI_Type_free(&piece);
    MPI_Type_free(&turns);
    if (rank == 0)
        check_file(path, (long long)bytes * pieces * ranks);
}

int main(int argc, char **argv)
{
    const char *steps[][4] = {{"open", "write", "read", "close"},
                              {"open again", "write again", "read again", "close again"}};
    char path[4096];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    must("FILE BYTES PIECES", argc == 4);
    const int bytes = atoi(argv[2]), pieces = atoi(argv[3]);
    unsigned char *data = calloc((size_t)bytes, (size_t)pieces);
    report("start");
    look(before);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; turn < 2; turn++) {
        snprintf(path, sizeof path, "%s.%d", argv[1], turn);
        access_file(path, bytes, pieces, data, steps[turn]);
    }
    free(data);
    MPI_Finalize();
    return 0;
}
