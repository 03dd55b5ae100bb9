/*
 * lives.c - programs that open files on very many communicators, and very many files; plain MPI.
 *
 *   lives FILE successive COUNT  COUNT communicators one after the other, of dozens of groups, each with a file that is
 *                                opened, written by a collective, closed; every 16th is opened again at once
 *   lives FILE together COUNT    COUNT communicators with files on them, all open at the same time, each written
 *   lives FILE contexts          as many communicators with an open file each as the MPI library can make
 *   lives FILE descriptors COUNT COUNT files open, or (0) as many as there are descriptors for, each written, in turns;
 *                                a name is removed, another changed, a third given to another file while its file is
 *                                open, and from then on no rank has permission to open any of them
 *   lives FILE left WHO          files opened while WHO (a rank; -1: all) has ever fewer descriptors left: each is an
 *                                error on all ranks, or works
 *   lives FILE opens COUNT       seconds of COUNT openings on MPI_COMM_WORLD, the first apart; each file is written
 *
 * Prints on rank 0 one line of words NAME=NUMBER: how many there were, and of all ranks the largest resident memory in
 * KiB when a tenth was done and at the end, and the most descriptors. A case of tests/differential cannot express this:
 * it compares bytes, and neither takes descriptors, communicators and rights from a process nor measures its memory.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process.h"

enum { BLOCK = 64, ROOM = 4096, MOST_RANKS = 256, NOBODY = 65534, LEFT = 40 };

static int rank, ranks;
static const char *name;

static void fail(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;

    MPI_Error_string(code, text, &length);
    printf("rank %d: %s: %s\n", rank, what, text);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static long most(long mine)
{
    long all = 0;

    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static long resident(void)
{
    return most(process_kib("RssAnon") + process_kib("RssShmem"));
}

static long descriptors(void)
{
    return most(process_descriptors());
}

/* The ranks in the turn-th order, all of them or all but one, so that dozens of groups take turns. MPI_COMM_NULL on the
 * rank that is left out. */
static int make(int turn, MPI_Comm *out)
{
    int left[MOST_RANKS], place = 0, count = ranks, at = turn;
    const int without = ranks > 2 ? (turn / 7) % (ranks + 1) : ranks;

    for (int i = 0; i < ranks; i++)
        left[i] = i;
    for (int position = 0; count > 0; position++) {
        const int chosen = at % count;

        at /= count;
        if (left[chosen] == rank)
            place = position;
        memmove(&left[chosen], &left[chosen + 1], sizeof left[0] * (size_t)(count - chosen - 1));
        count--;
    }
    return MPI_Comm_split(MPI_COMM_WORLD, rank == without ? MPI_UNDEFINED : 0, place, out);
}

static int open_file(MPI_Comm comm, MPI_File *file)
{
    return MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, file);
}

/* Each rank its block, by its rank in the world, so that all files have the same content. */
static void use(MPI_File file)
{
    char data[BLOCK];
    int code;

    memset(data, 'a' + rank, sizeof data);
    code = MPI_File_write_at_all(file, (MPI_Offset)rank * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS)
        fail("write", code);
}

static void close_file(MPI_File *file)
{
    const int code = MPI_File_close(file);

    if (code != MPI_SUCCESS)
        fail("close", code);
}

static void open_and_use(MPI_Comm comm, MPI_File *file)
{
    const int code = open_file(comm, file);

    if (code != MPI_SUCCESS)
        fail("open", code);
    use(*file);
}

static void successive(int count)
{
    long early = 0;

    for (int i = 0; i < count; i++) {
        MPI_Comm comm;
        MPI_File file;
        int code = make(i, &comm);

        if (code != MPI_SUCCESS)
            fail("split", code);
        for (int again = 0; comm != MPI_COMM_NULL && again <= (i % 16 == 0); again++) {
            open_and_use(comm, &file);
            close_file(&file);
        }
        if (comm != MPI_COMM_NULL)
            MPI_Comm_free(&comm);
        if (i == count / 10)
            early = resident();
    }
    const long late = resident(), open = descriptors();
    if (rank == 0)
        printf("count=%d early_kib=%ld late_kib=%ld descriptors=%ld\n", count, early, late, open);
}

static void together(int count)
{
    MPI_Comm *comms = calloc((size_t)count, sizeof *comms);
    MPI_File *files = calloc((size_t)count, sizeof *files);

    for (int i = 0; i < count; i++) {
        const int code = make(i, &comms[i]);

        if (code != MPI_SUCCESS)
            fail("split", code);
        if (comms[i] != MPI_COMM_NULL)
            open_and_use(comms[i], &files[i]);
    }
    const long late = resident(), open = descriptors();
    for (int i = 0; i < count; i++) {
        if (comms[i] == MPI_COMM_NULL)
            continue;
        use(files[i]);
        close_file(&files[i]);
        MPI_Comm_free(&comms[i]);
    }
    if (rank == 0)
        printf("count=%d late_kib=%ld descriptors=%ld\n", count, late, open);
    free(comms);
    free(files);
}

static void contexts(void)
{
    static MPI_Comm comms[ROOM];
    static MPI_File files[ROOM];
    int made = 0, opened = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (; made < ROOM && MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comms[made]) == MPI_SUCCESS; made++) {
        if (opened == made && open_file(comms[made], &files[made]) == MPI_SUCCESS)
            opened++;
    }
    for (int i = 0; i < opened; i++)
        use(files[i]);
    if (rank == 0)
        printf("made=%d opened=%d\n", made, opened);
    for (int i = 0; i < opened; i++)
        close_file(&files[i]);
    for (int i = 0; i < made; i++)
        MPI_Comm_free(&comms[i]);
}

/* A file of its own for each, with a character of its own. */
static void path_of(int number, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s.%d", name, number);
}

static void check_one(MPI_File file, int number)
{
    char data[BLOCK], wanted[BLOCK];
    int code;

    memset(wanted, 'a' + (number + rank) % 26, sizeof wanted);
    code = MPI_File_write_at_all(file, (MPI_Offset)rank * BLOCK, wanted, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS)
        code = MPI_File_read_at(file, (MPI_Offset)rank * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS)
        fail("use", code);
    if (memcmp(data, wanted, sizeof data) != 0)
        MPI_Abort(MPI_COMM_WORLD, 2);
}

/* What may happen to files that are open: one removed, one renamed, one replaced, one forbidden. There may be no
 * descriptor left to do it with. */
static void meddle(void)
{
    char path[512], other[520];

    path_of(1, path, sizeof path);
    if (remove(path) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    path_of(2, path, sizeof path);
    snprintf(other, sizeof other, "%s.new", path);
    if (rename(path, other) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    path_of(3, path, sizeof path);
    if (remove(path) != 0 || mknod(path, S_IFREG | 0600, 0) != 0 || truncate(path, BLOCK) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    path_of(4, path, sizeof path);
    if (chmod(path, 0) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
}

static void many_files(int count)
{
    static MPI_File files[ROOM];
    const int is_root = geteuid() == 0;
    char path[512];
    int opened = 0;

    for (; opened < count && opened < ROOM; opened++) {
        path_of(opened, path, sizeof path);
        if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &files[opened]) !=
            MPI_SUCCESS)
            break;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        meddle();
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_root && seteuid(NOBODY) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < opened; i++)
            check_one(files[i], i);
    if (is_root && seteuid(0) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (int i = 0; i < opened; i++)
        close_file(&files[i]);
    path_of(4, path, sizeof path);
    if (rank == 0 && chmod(path, 0600) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (rank == 0)
        printf("opened=%d\n", opened);
}

/* Take all descriptors but `left`. Returns how many it took. */
static int take(int *taken, int left)
{
    int count = 0;

    while (count < ROOM && (taken[count] = dup(STDOUT_FILENO)) >= 0)
        count++;
    for (; left > 0 && count > 0; left--)
        close(taken[--count]);
    return count;
}

static void few_left(int who)
{
    static int taken[ROOM];
    int opened = 0, refused = 0;
    char path[512];

    for (int left = LEFT; left >= 0; left--) {
        MPI_File file;
        int all[2], mine[2];

        path_of(left, path, sizeof path);
        MPI_Barrier(MPI_COMM_WORLD);
        int count = who < 0 || who == rank ? take(taken, left) : 0;
        const int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);

        while (count > 0)
            close(taken[--count]);
        mine[0] = code == MPI_SUCCESS;
        mine[1] = code != MPI_SUCCESS;
        MPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (all[0] > 0 && all[1] > 0)
            fail("some ranks have opened it", code);
        opened += mine[0];
        refused += mine[1];
        if (mine[0]) {
            check_one(file, left);
            close_file(&file);
        }
    }
    if (rank == 0)
        printf("opened=%d refused=%d\n", opened, refused);
}

static void opens(int count)
{
    double first = 0.0, rest = 0.0;

    for (int i = 0; i < count; i++) {
        MPI_File file;
        double begun;

        MPI_Barrier(MPI_COMM_WORLD);
        begun = MPI_Wtime();
        const int code = open_file(MPI_COMM_WORLD, &file);
        if (code != MPI_SUCCESS)
            fail("open", code);
        MPI_Barrier(MPI_COMM_WORLD);
        *(i == 0 ? &first : &rest) += MPI_Wtime() - begun;
        use(file);
        close_file(&file);
    }
    if (rank == 0)
        printf("first_s=%.4f next_s=%.4f\n", first, count > 1 ? rest / (count - 1) : 0.0);
}

int main(int argc, char **argv)
{
    const int count = argc > 3 ? atoi(argv[3]) : 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    name = argv[1];
    if (strcmp(argv[2], "successive") == 0)
        successive(count);
    else if (strcmp(argv[2], "together") == 0)
        together(count);
    else if (strcmp(argv[2], "contexts") == 0)
        contexts();
    else if (strcmp(argv[2], "descriptors") == 0)
        many_files(count > 0 ? count : ROOM);
    else if (strcmp(argv[2], "left") == 0)
        few_left(count);
    else
        opens(count);
    MPI_Finalize();
    return 0;
}
