/*
 * faults.c - what a program is told, and what is in the file, when storage fails (by MPIOX_FAULT, a full disk, a
 * limit).
 *
 * usage: faults FILE repeat [KIND]    the same calls several times: faults pass; KIND collective, independent or
 *                                     nonblocking, or all of them
 *        faults FILE beyond collective|independent [LIMIT] a small write, one too large for the disk or
 *                                     RLIMIT_FSIZE=LIMIT, the small one again
 *        faults @LIST                 the runs of a list (batch.h)
 *
 * Rank 0 prints "call NAME; RANK CLASS COUNT" for each rank, COUNT from the status, and the ok/FAILED lines of
 * report.h. After each write the file, read without MPI, may hold at each position only what some rank wrote there or
 * what was there before; the bytes a status speaks of must be there.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "batch.h"
#include "report.h"

enum { TURN = 64, BYTES = TURN * 256, LARGE = 1 << 20, FIRST_SEED = 10 };

static const char *path;
static unsigned char data[LARGE], back[LARGE], before[LARGE];
static int version; /* seed of the latest attempt to write */

static long long in_file(long long in_view)
{
    return (in_view / TURN * ranks + rank) * TURN + in_view % TURN;
}

static void fill_view(int bytes, int seed)
{
    for (int i = 0; i < bytes; i++)
        data[i] = byte_at(in_file(i), seed);
}

static int counted(const MPI_Status *status)
{
    int count = -1;

    MPI_Get_count(status, MPI_BYTE, &count);
    return count;
}

static void tell(const char *name, int code, const MPI_Status *status)
{
    int mine[2] = {class_of(code), counted(status)}, *all = malloc((size_t)ranks * sizeof mine);

    MPI_Gather(mine, 2, MPI_INT, all, 2, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < ranks; i++)
        printf("call %s; %d %s %d\n", name, i, class_name(all[2 * i]), all[2 * i + 1]);
    fflush(stdout);
    free(all);
}

static int known_byte(unsigned char byte, long long position)
{
    int fine = byte == 0;

    for (int seed = FIRST_SEED; seed <= version && !fine; seed++)
        fine = byte == byte_at(position, seed);
    return fine || byte == byte_at(position, 1);
}

/* Rank 0: no byte of the file that nobody wrote there. */
static int only_known_bytes(void)
{
    FILE *file = fopen(path, "rb");
    long long at = 0;
    int c, fine = file != NULL;

    while (fine && (c = getc(file)) != EOF)
        fine = known_byte((unsigned char)c, at++);
    if (file != NULL)
        fclose(file);
    return fine;
}

/* The first `count` bytes of this rank's view, read without MPI. Returns how many there are. */
static int read_view_plainly(unsigned char *into, int count)
{
    int fd = open(path, O_RDONLY), at = 0;

    while (fd >= 0 && at < count) {
        int bytes = count - at < TURN ? count - at : TURN;
        ssize_t moved = pread(fd, into + at, (size_t)bytes, in_file(at));

        if (moved != bytes)
            break;
        at += bytes;
    }
    if (fd >= 0)
        close(fd);
    return at;
}

static int holds_data(int count)
{
    return read_view_plainly(back, count) == count && memcmp(back, data, (size_t)count) == 0;
}

/* After a write: the bytes that the status speaks of are there, all of them after a success, no foreign ones ever. */
static void judge_write(const char *name, int code, const MPI_Status *status, int bytes)
{
    int count = counted(status);

    tell(name, code, status);
    MPI_Barrier(MPI_COMM_WORLD);
    check("what is reported as written is there",
          count >= 0 && count <= bytes && holds_data(count) && (code != MPI_SUCCESS || count == bytes));
    check("no foreign bytes", rank != 0 || only_known_bytes());
}

static int worst(int code)
{
    int error_class = class_of(code), highest;

    MPI_Allreduce(&error_class, &highest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return highest;
}

static void judge_read(const char *name, int code, const MPI_Status *status)
{
    int count = counted(status);

    tell(name, code, status);
    memcpy(before, back, BYTES);
    check("what is reported as read is right",
          count >= 0 && count <= BYTES && (code != MPI_SUCCESS || count == BYTES) &&
              read_view_plainly(back, count) == count && memcmp(back, before, (size_t)count) == 0);
}

static void new_version(int bytes)
{
    version++;
    fill_view(bytes, version);
    memset(back, 0xEE, sizeof back);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void clean(MPI_Status *status)
{
    memset(status, 0xFF, sizeof *status);
    MPI_Status_set_elements(status, MPI_BYTE, 0);
}

static void repeat_collectives(MPI_File file)
{
    int code = MPI_SUCCESS;
    MPI_Status status;

    for (int i = 0; i < ranks + 2; i++) {
        new_version(BYTES);
        clean(&status);
        code = MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, &status);
        judge_write("write collective", code, &status, BYTES);
    }
    for (int i = 0; i < ranks + 2; i++) {
        memset(back, 0xEE, sizeof back);
        clean(&status);
        code = MPI_File_read_at_all(file, 0, back, BYTES, MPI_BYTE, &status);
        judge_read("read collective", code, &status);
        check("reading fails on all ranks or on none", (code == MPI_SUCCESS) == (worst(code) == MPI_SUCCESS));
    }
    check("the last write and read succeed", code == MPI_SUCCESS && holds_data(BYTES));
}

static int independent(MPI_File file, int write, int nonblocking, MPI_Status *status)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code;

    if (!nonblocking)
        return write ? MPI_File_write_at(file, 0, data, BYTES, MPI_BYTE, status)
                     : MPI_File_read_at(file, 0, back, BYTES, MPI_BYTE, status);
    code = write ? MPI_File_iwrite_at(file, 0, data, BYTES, MPI_BYTE, &request)
                 : MPI_File_iread_at(file, 0, back, BYTES, MPI_BYTE, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, status) : code;
}

static void repeat_independent(MPI_File file, int nonblocking)
{
    static const char *names[] = {"read independent", "write independent", "read nonblocking", "write nonblocking"};
    MPI_Status status;
    int code = MPI_SUCCESS;

    for (int write = 0; write < 2; write++) {
        const char *name = names[2 * nonblocking + write];

        for (int i = 0; i < 4; i++) {
            if (write)
                new_version(BYTES);
            memset(back, 0xEE, sizeof back);
            clean(&status);
            code = independent(file, write, nonblocking, &status);
            if (write)
                judge_write(name, code, &status, BYTES);
            else
                judge_read(name, code, &status);
        }
        check("the last independent call succeeds", code == MPI_SUCCESS);
    }
}

static void repeat(MPI_File file, const char *kind)
{
    if (kind == NULL || strcmp(kind, "collective") == 0)
        repeat_collectives(file);
    if (kind == NULL || strcmp(kind, "independent") == 0)
        repeat_independent(file, 0);
    if (kind == NULL || strcmp(kind, "nonblocking") == 0)
        repeat_independent(file, 1);
}

static void set_limit(rlim_t bytes)
{
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};

    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        MPI_Abort(MPI_COMM_WORLD, 5);
}

static void write_and_judge(MPI_File file, const char *name, int bytes, int collective)
{
    MPI_Status status;
    int code;

    new_version(bytes);
    clean(&status);
    code = collective ? MPI_File_write_at_all(file, 0, data, bytes, MPI_BYTE, &status)
                      : MPI_File_write_at(file, 0, data, bytes, MPI_BYTE, &status);
    judge_write(name, code, &status, bytes);
}

static void beyond(MPI_File file, int collective, const char *limit)
{
    MPI_Status status;
    int code;

    write_and_judge(file, "small", BYTES, 1);
    if (limit != NULL)
        set_limit((rlim_t)atoll(limit));
    write_and_judge(file, "large", LARGE, collective);
    write_and_judge(file, "small", BYTES, collective);
    clean(&status);
    code = MPI_File_read_at_all(file, 0, back, BYTES, MPI_BYTE, &status);
    tell("read", code, &status);
    memcpy(before, back, BYTES);
    check("what is reported as read is right",
          code == MPI_SUCCESS && counted(&status) == BYTES && holds_data(BYTES) && memcmp(data, before, BYTES) == 0);
}

static void make_content(long long bytes)
{
    FILE *file = fopen(path, "wb");

    for (long long i = 0; file != NULL && i < bytes; i++)
        putc(byte_at(i, 1), file);
    if (file == NULL || fclose(file) != 0)
        MPI_Abort(MPI_COMM_WORLD, 4);
}

static void run(int argc, char **argv)
{
    MPI_Datatype turn, turns;
    MPI_File file;
    int repeated;

    path = argv[1];
    repeated = argc > 2 && strcmp(argv[2], "repeat") == 0;
    version = FIRST_SEED - 1;
    if (rank == 0)
        make_content(repeated ? (long long)BYTES * ranks : 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Type_contiguous(TURN, MPI_BYTE, &turn);
    MPI_Type_create_resized(turn, 0, (MPI_Aint)TURN * ranks, &turns);
    MPI_Type_commit(&turns);
    MPI_File_set_view(file, (MPI_Offset)rank * TURN, MPI_BYTE, turns, "native", MPI_INFO_NULL);
    if (repeated)
        repeat(file, argc > 3 ? argv[3] : NULL);
    else
        beyond(file, strcmp(argv[3], "collective") == 0, argc > 4 ? argv[4] : NULL);
    set_limit(RLIM_INFINITY);
    check("close", MPI_File_close(&file) == MPI_SUCCESS && file == MPI_FILE_NULL);
    MPI_Type_free(&turn);
    MPI_Type_free(&turns);
    if (rank == 0)
        puts("end");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argv[1][0] == '@')
        batch_run(argv[1] + 1, run);
    else
        run(argc, argv);
    MPI_Finalize();
    return failures;
}
