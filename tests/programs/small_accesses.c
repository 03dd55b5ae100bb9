/*
 * small_accesses.c - one MPI-IO call, again and again: what a small access costs beside the bytes that it moves.
 *
 * Problem.   Of an access of 64 bytes the system call is nearly everything; whatever a layer above it adds is seen, as
 *            time, as instructions or as further system calls.
 * Algorithm. Every rank makes the same call COUNT times, on records of its own that follow each other from the start of
 *            its part of the file; reads find what was written before. Plain MPI: it knows nothing of the library, and
 *            runs with it and without. The first WARM calls do not count. SMALL_ACCESSES_MARK=1: SIGUSR2 is raised
 *            before and after each that does, for whoever watches (tests/programs/stepped.c).
 * Output.    Rank 0 prints `CALL COUNT MICROSECONDS`: of one call, on average, on the rank that took longest. Bytes
 *            that are read are compared; what does not fit ends the job.
 *
 *   mpicc -O2 -o small_accesses tests/programs/small_accesses.c
 *   mpirun -n 1 ./small_accesses /dev/shm/file write_at 100000 64
 *
 * CALL is write_at, read_at, write, read, write_at_all, read_at_all, write_all, read_all; strided_write, strided_read:
 * the same by write_all and read_all through a view in which the ranks' records take turns; strided_write_at,
 * strided_read_at: COUNT records by one call of one rank, through that view; open_close.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RECORDS = 1024, /* the part of the file that one rank goes through over and over */
    WARM = 8
};

typedef struct setup {
    const char *path, *call;
    int count, bytes, rank, ranks;
    MPI_Offset first; /* of this rank's part */
    char *buffer;
    MPI_File file;
} setup;

static void fail(const char *what)
{
    fprintf(stderr, "small_accesses: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void check(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "small_accesses: %s: %s\n", what, text);
    fail(what);
}

static MPI_Offset offset_of(const setup *s, int i)
{
    return s->first + (MPI_Offset)(i % RECORDS) * s->bytes;
}

static int one_call(setup *s, int i)
{
    const char *call = s->call;
    MPI_Status status;

    if (strcmp(call, "write_at") == 0)
        return MPI_File_write_at(s->file, offset_of(s, i), s->buffer, s->bytes, MPI_BYTE, &status);
    if (strcmp(call, "read_at") == 0)
        return MPI_File_read_at(s->file, offset_of(s, i), s->buffer, s->bytes, MPI_BYTE, &status);
    if (strcmp(call, "write_at_all") == 0)
        return MPI_File_write_at_all(s->file, offset_of(s, i), s->buffer, s->bytes, MPI_BYTE, &status);
    if (strcmp(call, "read_at_all") == 0)
        return MPI_File_read_at_all(s->file, offset_of(s, i), s->buffer, s->bytes, MPI_BYTE, &status);
    if (strcmp(call, "write") == 0)
        return MPI_File_write(s->file, s->buffer, s->bytes, MPI_BYTE, &status);
    if (strcmp(call, "read") == 0)
        return MPI_File_read(s->file, s->buffer, s->bytes, MPI_BYTE, &status);
    if (strcmp(call, "write_all") == 0 || strcmp(call, "strided_write") == 0)
        return MPI_File_write_all(s->file, s->buffer, s->bytes, MPI_BYTE, &status);
    if (strcmp(call, "read_all") == 0 || strcmp(call, "strided_read") == 0)
        return MPI_File_read_all(s->file, s->buffer, s->bytes, MPI_BYTE, &status);
    if (strcmp(call, "open_close") == 0) {
        MPI_File again;
        const int code = MPI_File_open(MPI_COMM_WORLD, s->path, MPI_MODE_RDWR, MPI_INFO_NULL, &again);
        return code == MPI_SUCCESS ? MPI_File_close(&again) : code;
    }
    fail("no such call");
    return MPI_ERR_OTHER;
}

/* This rank's part: the file is long enough for all reads afterwards. */
static void fill(setup *s, int records)
{
    const size_t bytes = (size_t)records * (size_t)s->bytes;
    char *all = malloc(bytes);

    if (all == NULL)
        fail("no memory");
    memset(all, 'x', bytes);
    check(MPI_File_write_at(s->file, (MPI_Offset)s->rank * (MPI_Offset)bytes, all, (int)bytes, MPI_BYTE,
                            MPI_STATUS_IGNORE),
          "filling");
    free(all);
    check(MPI_File_sync(s->file), "MPI_File_sync");
    MPI_Barrier(MPI_COMM_WORLD);
    check(MPI_File_sync(s->file), "MPI_File_sync");
}

static void set_strided_view(setup *s)
{
    MPI_Datatype record, spaced;

    MPI_Type_contiguous(s->bytes, MPI_BYTE, &record);
    MPI_Type_create_resized(record, 0, (MPI_Aint)s->bytes * s->ranks, &spaced);
    MPI_Type_commit(&spaced);
    check(MPI_File_set_view(s->file, (MPI_Offset)s->rank * s->bytes, MPI_BYTE, spaced, "native", MPI_INFO_NULL),
          "MPI_File_set_view");
    MPI_Type_free(&record);
    MPI_Type_free(&spaced);
}

/* COUNT records at once. */
static double time_strided(setup *s, int writes)
{
    const size_t bytes = (size_t)s->count * (size_t)s->bytes;
    char *all = malloc(bytes);
    double begun;

    if (all == NULL)
        fail("no memory");
    memset(all, 'x', bytes);
    begun = MPI_Wtime();
    check(writes ? MPI_File_write_at(s->file, 0, all, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                 : MPI_File_read_at(s->file, 0, all, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE),
          s->call);
    begun = MPI_Wtime() - begun;
    for (size_t i = 0; i < bytes; i++)
        if (all[i] != 'x')
            fail("wrong bytes read");
    free(all);
    return begun;
}

static void make_calls(setup *s, int from, int to, int marks)
{
    const int reads = strstr(s->call, "read") != NULL;

    for (int i = from; i < to; i++) {
        if (reads)
            s->buffer[0] = s->buffer[s->bytes - 1] = 0;
        if (marks)
            raise(SIGUSR2);
        const int code = one_call(s, i);
        if (marks)
            raise(SIGUSR2);
        check(code, s->call);
        if (s->buffer[0] != 'x' || s->buffer[s->bytes - 1] != 'x')
            fail("wrong bytes read");
    }
}

static double time_calls(setup *s)
{
    const int marks = getenv("SMALL_ACCESSES_MARK") != NULL;
    double begun;

    make_calls(s, 0, WARM, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    begun = MPI_Wtime();
    make_calls(s, WARM, WARM + s->count, marks);
    return MPI_Wtime() - begun;
}

int main(int argc, char **argv)
{
    setup s;
    double mine, longest = 0;
    int at_once, records;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
    if (argc != 5)
        fail("usage: small_accesses FILE CALL COUNT BYTES");
    s.path = argv[1];
    s.call = argv[2];
    s.count = atoi(argv[3]);
    s.bytes = atoi(argv[4]);
    if (s.count < 1 || s.bytes < 1 || (s.buffer = malloc((size_t)s.bytes)) == NULL)
        fail("COUNT and BYTES are 1 or more");
    memset(s.buffer, 'x', (size_t)s.bytes);
    at_once = strcmp(s.call, "strided_write_at") == 0 || strcmp(s.call, "strided_read_at") == 0;
    records = strstr(s.call, "_at") != NULL && !at_once ? RECORDS : s.count + WARM;
    s.first = (MPI_Offset)s.rank * records * s.bytes;
    check(MPI_File_open(MPI_COMM_WORLD, s.path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &s.file),
          "MPI_File_open");
    fill(&s, records);
    if (strncmp(s.call, "strided", 7) == 0)
        set_strided_view(&s);
    else
        check(MPI_File_seek(s.file, s.first, MPI_SEEK_SET), "MPI_File_seek");
    MPI_Barrier(MPI_COMM_WORLD);
    mine = at_once ? time_strided(&s, strcmp(s.call, "strided_write_at") == 0) : time_calls(&s);
    MPI_Reduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    check(MPI_File_close(&s.file), "MPI_File_close");
    if (s.rank == 0)
        printf("%s %d %.4f\n", s.call, s.count, 1e6 * longest / s.count);
    free(s.buffer);
    MPI_Finalize();
    return 0;
}
