/*
 * exchange_memory.c - how much memory the ranks take while nodes exchange data; plain MPI.
 *
 *   exchange_memory FILE PER_NODE same BYTES    every rank reads all of a file of BYTES bytes, collectively
 *   exchange_memory FILE PER_NODE woven BYTES   the ranks write pieces of 4 KiB in turns, BYTES bytes in sum
 *   exchange_memory FILE PER_NODE lists BYTES   the same in irregular pieces of 8 B, written and read: every view is a
 *                                               list far longer than what one node can tell another
 *
 * PER_NODE: ranks of a (pretended) node. The program's own buffers and types are there, and the MPI library's
 * connections made, before memory is first looked at. A thread looks every two milliseconds at the private memory; the
 * shared memory of the library (memfd mappings) is looked at before the file is closed.
 * Every byte is checked. Prints on rank 0 one line of words NAME=NUMBER, of growth in KiB:
 *   private_kib  of the rank that grew most, at its peak        shared_kib  of the node that has most, its ranks' sum
 *   data_kib     in rank 0's buffer, for scale
 */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "process.h"

enum { PIECE = 4096, CELL = 8, WARM = 1 << 20 };

static int rank, ranks;
static _Atomic long peak;
static atomic_int over;

static void stop(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;

    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length);
    fprintf(stderr, "rank %d: %s %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void must(const char *what, int code)
{
    if (code != MPI_SUCCESS)
        stop(what, code);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Of mappings without a name in a file system: this process's share, so that the sum over a node is what there is. */
static long shared_kib(void)
{
    char line[512];
    unsigned long first, last;
    long sum = 0, kib;
    int named = 0;
    FILE *file = fopen("/proc/self/smaps", "r");

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%lx-%lx", &first, &last) == 2)
            named = strstr(line, "memfd:") != NULL;
        else if (named && sscanf(line, "Pss: %ld", &kib) == 1)
            sum += kib;
    }
    if (file != NULL)
        fclose(file);
    return sum;
}

static void *watch(void *unused)
{
    const struct timespec pause = {0, 2000000};

    (void)unused;
    while (!atomic_load(&over)) {
        const long now = process_kib("RssAnon");

        if (now > atomic_load(&peak))
            atomic_store(&peak, now);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* Messages between all pairs, of all kinds, also such as nobody waits for yet: so that the MPI library has what it
 * takes for its connections, and its pools. */
static void warm_up(void)
{
    enum { KINDS = 8 };
    char *out = malloc(WARM), *in = malloc(WARM);
    MPI_Request *early = malloc(sizeof *early * KINDS * 2 * (size_t)ranks);
    int n = 0;

    memset(out, 1, WARM);
    memset(in, 1, WARM);
    for (int step = 1; step < ranks; step++)
        for (int kind = 0, bytes = 8; kind < KINDS; kind++, bytes *= 4) {
            MPI_Isend(out, bytes, MPI_BYTE, (rank + step) % ranks, kind, MPI_COMM_WORLD, &early[n++]);
            MPI_Issend(out, bytes, MPI_BYTE, (rank + step) % ranks, KINDS + kind, MPI_COMM_WORLD, &early[n++]);
        }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 1; step < ranks; step++)
        for (int kind = 2 * KINDS; kind-- > 0;)
            MPI_Recv(in, WARM, MPI_BYTE, (rank + ranks - step) % ranks, kind, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(n, early, MPI_STATUSES_IGNORE);
    free(early);
    free(out);
    free(in);
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

static unsigned char byte_at(long long position)
{
    return (unsigned char)(1 + (((unsigned long long)position + 1) * 0x9E3779B97F4A7C15ull >> 40) % 255);
}

/* Whose is the cell? Irregular, the same on all ranks. */
static int owner_of(long long cell)
{
    return (int)(((unsigned long long)cell * 0xD1342543DE82EF95ull >> 33) % (unsigned long long)ranks);
}

/* The whole file, woven. */
static MPI_Datatype woven(void)
{
    MPI_Datatype piece, kind;

    MPI_Type_contiguous(PIECE, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)PIECE * ranks, &kind);
    MPI_Type_commit(&kind);
    MPI_Type_free(&piece);
    return kind;
}

/* This rank's cells of a file of `bytes` bytes, and how many bytes they are. */
static MPI_Datatype listed(long long bytes, long long *mine)
{
    long long n = 0;
    MPI_Aint *at = malloc(sizeof *at * (size_t)(bytes / CELL));
    MPI_Datatype kind;

    for (long long cell = 0; cell < bytes / CELL; cell++)
        if (owner_of(cell) == rank)
            at[n++] = (MPI_Aint)(cell * CELL);
    MPI_Type_create_hindexed_block((int)n, CELL, at, MPI_BYTE, &kind);
    MPI_Type_commit(&kind);
    free(at);
    *mine = n * CELL;
    return kind;
}

/* Go through this rank's bytes in the order of the file: set them, or compare them. */
static int go_through(const char *how, unsigned char *data, long long bytes, int set)
{
    const int same = strcmp(how, "same") == 0, lists = strcmp(how, "lists") == 0;
    const long long part = same ? bytes : lists ? CELL : PIECE;
    long long done = 0;

    for (long long unit = 0; done < bytes; unit++) {
        if (!same && (lists ? owner_of(unit) : (int)(unit % ranks)) != rank)
            continue;
        for (long long i = 0; i < part; i++, done++) {
            if (set)
                data[done] = byte_at(unit * part + i);
            else if (data[done] != byte_at(unit * part + i))
                return 0;
        }
    }
    return 1;
}

/* Rank 0, without MPI. */
static void whole_file(const char *path, long long bytes, int make)
{
    unsigned char *part = malloc(WARM);
    FILE *file = fopen(path, make ? "wb" : "rb");

    if (file == NULL)
        stop("cannot open the file", MPI_SUCCESS);
    for (long long at = 0, n = 0; at < bytes; at += n) {
        n = bytes - at < WARM ? bytes - at : WARM;
        for (long long i = 0; make && i < n; i++)
            part[i] = byte_at(at + i);
        if ((long long)(make ? fwrite(part, 1, (size_t)n, file) : fread(part, 1, (size_t)n, file)) != n)
            stop("the file is too short", MPI_SUCCESS);
        for (long long i = 0; !make && i < n; i++)
            if (part[i] != byte_at(at + i))
                stop("a byte of the file is wrong", MPI_SUCCESS);
    }
    if (!make && fgetc(file) != EOF)
        stop("the file is too long", MPI_SUCCESS);
    fclose(file);
    free(part);
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

static void report(long before, long shared, int per_node, long long mine)
{
    const long grown = atomic_load(&peak) - before;
    long most[2] = {grown, 0}, all[2], node_shared = 0;
    MPI_Comm node;

    MPI_Comm_split(MPI_COMM_WORLD, rank / per_node, rank, &node);
    MPI_Allreduce(&shared, &node_shared, 1, MPI_LONG, MPI_SUM, node);
    MPI_Comm_free(&node);
    most[1] = node_shared;
    MPI_Reduce(most, all, 2, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("private_kib=%ld shared_kib=%ld data_kib=%lld\n", all[0], all[1], mine / 1024);
}

static void access_all(const char *path, const char *how, MPI_Datatype kind, unsigned char *data, long long mine,
                       long *shared)
{
    const int reads = strcmp(how, "woven") != 0, writes = strcmp(how, "same") != 0;
    MPI_Datatype big;
    MPI_File file;

    MPI_Type_contiguous((int)(mine / CELL), MPI_LONG_LONG, &big);
    MPI_Type_commit(&big);
    must("open", MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    if (kind != MPI_DATATYPE_NULL)
        must("set_view", MPI_File_set_view(file, !strcmp(how, "woven") ? (MPI_Offset)rank * PIECE : 0, MPI_BYTE, kind,
                                           "native", MPI_INFO_NULL));
    if (writes)
        must("write", MPI_File_write_at_all(file, 0, data, 1, big, MPI_STATUS_IGNORE));
    if (writes && reads)
        memset(data, 0, (size_t)mine);
    if (reads)
        must("read", MPI_File_read_at_all(file, 0, data, 1, big, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    *shared = shared_kib();
    MPI_Barrier(MPI_COMM_WORLD);
    must("close", MPI_File_close(&file));
    MPI_Type_free(&big);
}

int main(int argc, char **argv)
{
    pthread_t watcher;
    MPI_Datatype kind = MPI_DATATYPE_NULL;
    long shared = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5)
        stop("FILE PER_NODE same|woven|lists BYTES", MPI_SUCCESS);
    const char *path = argv[1], *how = argv[3];
    const long long bytes = atoll(argv[4]) / PIECE / ranks * PIECE * ranks;
    long long mine = strcmp(how, "same") == 0 ? bytes : bytes / ranks;
    if (strcmp(how, "woven") == 0)
        kind = woven();
    else if (strcmp(how, "lists") == 0)
        kind = listed(bytes, &mine);
    unsigned char *data = malloc((size_t)mine);
    memset(data, 0, (size_t)mine);
    if (strcmp(how, "same") != 0)
        go_through(how, data, mine, 1);
    else if (rank == 0)
        whole_file(path, bytes, 1);
    warm_up();
    MPI_Barrier(MPI_COMM_WORLD);
    const long before = process_kib("RssAnon");
    pthread_create(&watcher, NULL, watch, NULL);
    access_all(path, how, kind, data, mine, &shared);
    atomic_store(&over, 1);
    pthread_join(watcher, NULL);
    if (strcmp(how, "woven") != 0 && !go_through(how, data, mine, 0))
        stop("a byte that was read is wrong", MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        whole_file(path, bytes, 0);
    report(before, shared, atoi(argv[2]), mine);
    if (kind != MPI_DATATYPE_NULL)
        MPI_Type_free(&kind);
    free(data);
    MPI_Finalize();
    return 0;
}
