/*
 * btio_like.c - the output of NAS BT, I/O type "full", as a plain MPI program that sets no hint.
 *
 * usage: btio_like FILE [GRID [STEPS]] [--read] [--verify]     defaults: 48 grid points a side, 4 time steps
 *
 * GRID^3 points of 5 doubles, x fastest, one copy per time step. p*p ranks; each owns one cell on every one of the p
 * z-levels, at x(c) = (rank mod p + c) mod p, y(c) = (rank div p - c) mod p (diagonal multi-partitioning: make_set.f of
 * the NAS Parallel Benchmarks 3). A step is one MPI_File_write_at_all of p subarrays; memory has no ghost points. With
 * more ranks than the largest square the others leave at once.
 *
 * Prints the bandwidth over all steps, open to close, of the slowest rank (10^6 bytes a second). --read reads the
 * file back, --verify compares every byte of that. Exit status: 1 when an MPI call fails (with MPI's text), 3 when a
 * byte is wrong.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPONENTS = 5 };

static MPI_Comm team;
static int rank, side;

static void must(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;

    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "btio_like: rank %d: %s: %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* First grid point and number of points at a process coordinate; the first `grid mod side` get one more. */
static void range_of(int grid, int coordinate, int *start, int *count)
{
    const int size = grid / side, excess = grid % side;

    *start = coordinate * size + (coordinate < excess ? coordinate : excess);
    *count = size + (coordinate < excess);
}

/* The rank's part of one time step: p subarrays of the grid, in file order. Returns its points. */
static int64_t file_type(int grid, MPI_Datatype point, MPI_Datatype *type)
{
    MPI_Datatype *cells = malloc((size_t)side * sizeof *cells);
    int *ones = malloc((size_t)side * sizeof *ones);
    MPI_Aint *zeros = calloc((size_t)side, sizeof *zeros);
    int64_t points = 0;

    if (cells == NULL || ones == NULL || zeros == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int c = 0; c < side; c++) {
        const int sizes[3] = {grid, grid, grid};
        int starts[3], counts[3];

        range_of(grid, c, &starts[0], &counts[0]);
        range_of(grid, (rank / side - c + side) % side, &starts[1], &counts[1]);
        range_of(grid, (rank % side + c) % side, &starts[2], &counts[2]);
        MPI_Type_create_subarray(3, sizes, counts, starts, MPI_ORDER_C, point, &cells[c]);
        points += (int64_t)counts[0] * counts[1] * counts[2];
        ones[c] = 1;
    }
    MPI_Type_create_struct(side, ones, zeros, cells, type);
    MPI_Type_commit(type);
    for (int c = 0; c < side; c++)
        MPI_Type_free(&cells[c]);
    free(cells);
    free(ones);
    free(zeros);
    return points;
}

/* A number that differs for every rank, step and component. */
static double value_of(int step, int64_t index)
{
    return (double)(index + 1) + 1e9 * step + 1e11 * rank;
}

static void fill(double *data, int step, int64_t numbers)
{
    for (int64_t i = 0; i < numbers; i++)
        data[i] = value_of(step, i);
}

static int64_t differences(const double *data, int step, int64_t numbers)
{
    int64_t wrong = 0;

    for (int64_t i = 0; i < numbers; i++)
        wrong += data[i] != value_of(step, i);
    return wrong;
}

/* One pass over the file, open to close. Returns the slowest rank's seconds in MPI; adds up wrong numbers. */
static double pass(const char *name, int grid, int steps, int reading, int verify, int64_t *wrong)
{
    MPI_Datatype point, type;
    MPI_File file;
    double seconds = 0.0, slowest, begin;
    double *data;
    int64_t points;

    MPI_Type_contiguous(COMPONENTS, MPI_DOUBLE, &point);
    MPI_Type_commit(&point);
    points = file_type(grid, point, &type);
    data = malloc((size_t)points * COMPONENTS * sizeof *data);
    if (data == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(data, 0, (size_t)points * COMPONENTS * sizeof *data);
    MPI_Barrier(team);
    begin = MPI_Wtime();
    must(MPI_File_open(team, name, reading ? MPI_MODE_RDONLY : MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file),
         "open");
    must(MPI_File_set_view(file, 0, point, type, "native", MPI_INFO_NULL), "set_view");
    seconds += MPI_Wtime() - begin;
    for (int step = 0; step < steps; step++) {
        if (!reading)
            fill(data, step, points * COMPONENTS);
        MPI_Barrier(team);
        begin = MPI_Wtime();
        if (reading)
            must(MPI_File_read_at_all(file, step * points, data, (int)points, point, MPI_STATUS_IGNORE), "read_at_all");
        else
            must(MPI_File_write_at_all(file, step * points, data, (int)points, point, MPI_STATUS_IGNORE),
                 "write_at_all");
        MPI_Barrier(team);
        seconds += MPI_Wtime() - begin;
        if (reading && verify)
            *wrong += differences(data, step, points * COMPONENTS);
    }
    begin = MPI_Wtime();
    must(MPI_File_close(&file), "close");
    seconds += MPI_Wtime() - begin;
    MPI_Type_free(&type);
    MPI_Type_free(&point);
    free(data);
    MPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, team);
    return slowest;
}

static int run(const char *name, int grid, int steps, int reading, int verify)
{
    const double megabytes = 1e-6 * grid * grid * grid * COMPONENTS * (double)sizeof(double) * steps;
    int64_t wrong = 0, all = 0;
    double seconds = pass(name, grid, steps, 0, 0, &wrong);

    if (rank == 0)
        printf("write %.1f MB in %.4f s: %.1f MB/s\n", megabytes, seconds, megabytes / seconds);
    if (!reading)
        return 0;
    seconds = pass(name, grid, steps, 1, verify, &wrong);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT64_T, MPI_SUM, team);
    if (rank == 0)
        printf("read %.1f MB in %.4f s: %.1f MB/s\n", megabytes, seconds, megabytes / seconds);
    if (rank == 0 && verify)
        printf("%s: %lld wrong numbers\n", all == 0 ? "verified" : "FAILED", (long long)all);
    return all == 0 ? 0 : 3;
}

int main(int argc, char **argv)
{
    const char *words[3] = {NULL, "48", "4"};
    int count = 0, reading = 0, verify = 0, ranks, status = 0, world;

    MPI_Init(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--read") == 0)
            reading = 1;
        else if (strcmp(argv[i], "--verify") == 0)
            reading = verify = 1;
        else if (count < 3)
            words[count++] = argv[i];
    }
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    while ((side + 1) * (side + 1) <= ranks)
        side++;
    if (words[0] == NULL || atoi(words[1]) < side || atoi(words[2]) < 1) {
        if (world == 0)
            fprintf(stderr, "usage: btio_like FILE [GRID [STEPS]] [--read] [--verify]\n");
        MPI_Finalize();
        return 2;
    }
    MPI_Comm_split(MPI_COMM_WORLD, world < side * side ? 0 : MPI_UNDEFINED, world, &team);
    if (team != MPI_COMM_NULL) {
        MPI_Comm_rank(team, &rank);
        status = run(words[0], atoi(words[1]), atoi(words[2]), reading, verify);
        MPI_Comm_free(&team);
    }
    MPI_Finalize();
    return status;
}
