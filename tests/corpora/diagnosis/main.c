/*
 * main.c - run a program of the diagnosis corpus, or a mixture of several whose shares of the time are given.
 *
 * Problem.    A diagnosis is right when it says what a program did. So programs are needed that do one thing each, and
 *             programs of which it is known how long they do what.
 * Algorithm.  A kind is run once. Of a mixture each kind is run again and again until its share of the time is over, in
 *             a file of its own. Rank 0 prints how long each part took.
 *
 * Usage: mpirun -n RANKS diagnosis_kinds KIND|KIND:SHARE+KIND:SHARE FOLDER SIZE. SIZE scales the number of calls, and
 * the time of a mixture (SIZE times 2 s), not the length of the calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel.h"

int rank, ranks, size;
char folder[PATH_BYTES - 64], path[PATH_BYTES], input[PATH_BYTES];
char *data;

static const double MIXTURE_S = 2.0;

void check(int failed, const char *what)
{
    if (!failed)
        return;
    fprintf(stderr, "diagnosis_kinds: %s failed on rank %d\n", what, rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void put(int file, size_t bytes, off_t offset)
{
    check(pwrite(file, data, bytes, offset) != (ssize_t)bytes, "pwrite");
}

void get(int file, size_t bytes, off_t offset)
{
    check(pread(file, data, bytes, offset) != (ssize_t)bytes, "pread");
}

int open_posix(const char *name, int flags)
{
    int file = open(name, flags, 0600);

    check(file < 0, "open");
    return file;
}

MPI_File open_together(const char *name, int mode, const char *const *hints)
{
    MPI_File file;
    MPI_Info info;

    MPI_Info_create(&info);
    for (; hints != NULL && hints[0] != NULL; hints += 2)
        MPI_Info_set(info, hints[0], hints[1]);
    check(MPI_File_open(MPI_COMM_WORLD, name, mode, info, &file) != MPI_SUCCESS, "MPI_File_open");
    MPI_Info_free(&info);
    return file;
}

MPI_File open_shared(int mode, const char *const *hints)
{
    return open_together(path, mode, hints);
}

void view_pieces(MPI_File file, int bytes, int stride, int count)
{
    MPI_Datatype view;

    MPI_Type_vector(count, bytes, stride * ranks, MPI_BYTE, &view);
    MPI_Type_commit(&view);
    MPI_File_set_view(file, (MPI_Offset)rank * stride, MPI_BYTE, view, "native", MPI_INFO_NULL);
    MPI_Type_free(&view);
}

static const struct kind *find(const char *name, size_t length)
{
    const struct kind *const tables[] = {known_kinds, held_kinds,   later_kinds, last_kinds,
                                         fresh_kinds, second_kinds, third_kinds};

    for (size_t k = 0; k < sizeof(tables) / sizeof(tables[0]); k++)
        for (const struct kind *one = tables[k]; one->name != NULL; one++)
            if (strlen(one->name) == length && strncmp(one->name, name, length) == 0)
                return one;
    check(1, "no such kind:");
    return NULL;
}

/* Run a kind once, or until so much time is over; return how long that took. */
static double run_for(const struct kind *kind, double seconds)
{
    const double start = MPI_Wtime();
    int again;

    do {
        kind->run();
        again = MPI_Wtime() - start < seconds;
        MPI_Bcast(&again, 1, MPI_INT, 0, MPI_COMM_WORLD);
    } while (again);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - start;
}

static void run_parts(const char *text)
{
    const double all = strchr(text, ':') != NULL ? size * MIXTURE_S : 0;

    if (all > 0)
        size = 1;
    for (int part = 0; *text != '\0'; part++) {
        const size_t length = strcspn(text, ":+");
        const struct kind *kind = find(text, length);
        double share = 0;
        char *end = (char *)text + length;

        if (*end == ':')
            share = strtod(end + 1, &end);
        if (all > 0)
            snprintf(path, sizeof(path), "%s/data.%d", folder, part);
        const double seconds = run_for(kind, share * all);
        if (rank == 0)
            printf("%s %.3f\n", kind->name, seconds);
        text = *end == '+' ? end + 1 : end;
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    check(argc != 4, "usage: diagnosis_kinds KIND FOLDER SIZE;");
    snprintf(folder, sizeof(folder), "%s", argv[2]);
    snprintf(path, sizeof(path), "%s/data", folder);
    snprintf(input, sizeof(input), "%s/input", folder);
    size = atoi(argv[3]);
    data = malloc(DATA_BYTES);
    check(data == NULL, "malloc");
    memset(data, rank + 1, DATA_BYTES);
    run_parts(argv[1]);
    free(data);
    MPI_Finalize();
    return 0;
}
