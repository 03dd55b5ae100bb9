/*
 * s3dio.c - checkpoints of a combustion simulation, written with PnetCDF's nonblocking interface.
 *
 * The pattern of S3D-IO: every checkpoint is a file with four variables of doubles over a cube of grid points, two of
 * three dimensions (pressure, temp) and two of four (yspecies with 11, u with 3 components); the cube is cut into
 * blocks of the ranks. All four are posted (iput) and carried out together (wait_all). After the run each checkpoint is
 * read the same way (iget); each rank reads what its neighbour wrote.
 *
 * usage: s3dio PREFIX N CHECKPOINTS      files PREFIX.0000.nc, PREFIX.0001.nc..., N^3 points
 */
#include <pnetcdf.h>
#include <string.h>

#include "codes.h"

enum { VARIABLES = 4, DIMS = 4 };

static const struct {
    const char *name;
    int components; /* 1: three dimensions */
} variables[VARIABLES] = {{"yspecies", 11}, {"temp", 1}, {"pressure", 1}, {"u", 3}};

typedef struct block { /* part of the cube: component, z, y, x */
    MPI_Offset start[DIMS], count[DIMS], points;
} block;

static int n;

static void nc(int code, const char *what)
{
    if (code != NC_NOERR)
        fprintf(stderr, "%s: %s\n", what, ncmpi_strerror(code));
    need(code == NC_NOERR, what);
}

static block block_of(int of_rank)
{
    int grid[3] = {0, 0, 0}, rest = of_rank;
    block b = {{0}, {0}, 1};

    MPI_Dims_create(ranks, 3, grid);
    for (int d = 2; d >= 0; d--) {
        int at = rest % grid[d];

        rest /= grid[d];
        b.start[d + 1] = (MPI_Offset)n * at / grid[d];
        b.count[d + 1] = (MPI_Offset)n * (at + 1) / grid[d] - b.start[d + 1];
        b.points *= b.count[d + 1];
    }
    return b;
}

static double value(int checkpoint, int variable, MPI_Offset component, MPI_Offset z, MPI_Offset y, MPI_Offset x)
{
    return (double)(((component * n + z) * n + y) * n + x) + variable / 8.0 + checkpoint * 1e9;
}

/* Fill, or count the differences, in the order of the block. */
static long long visit(double *data, const block *b, int checkpoint, int variable, int compare)
{
    long long wrong = 0;

    for (int c = 0; c < variables[variable].components; c++)
        for (MPI_Offset z = 0; z < b->count[1]; z++)
            for (MPI_Offset y = 0; y < b->count[2]; y++)
                for (MPI_Offset x = 0; x < b->count[3]; x++, data++) {
                    double expected = value(checkpoint, variable, c, b->start[1] + z, b->start[2] + y, b->start[3] + x);

                    if (!compare)
                        *data = expected;
                    else
                        wrong += *data != expected;
                }
    return wrong;
}

static void define(int file, int ids[VARIABLES])
{
    int dims[3], four[DIMS], component;
    static const char *const axes[3] = {"z", "y", "x"};
    char name[48];

    for (int d = 0; d < 3; d++)
        nc(ncmpi_def_dim(file, axes[d], n, &dims[d]), "def_dim");
    memcpy(four + 1, dims, sizeof dims);
    for (int v = 0; v < VARIABLES; v++) {
        if (variables[v].components > 1) {
            snprintf(name, sizeof name, "%s_components", variables[v].name);
            nc(ncmpi_def_dim(file, name, variables[v].components, &component), "def_dim");
            four[0] = component;
            nc(ncmpi_def_var(file, variables[v].name, NC_DOUBLE, 4, four, &ids[v]), "def_var");
        } else {
            nc(ncmpi_def_var(file, variables[v].name, NC_DOUBLE, 3, dims, &ids[v]), "def_var");
        }
    }
    nc(ncmpi_put_att_text(file, NC_GLOBAL, "title", 10, "checkpoint"), "put_att");
    nc(ncmpi_enddef(file), "enddef");
}

static void finish(int file, int requests[VARIABLES])
{
    int states[VARIABLES];

    nc(ncmpi_wait_all(file, VARIABLES, requests, states), "wait_all");
    for (int v = 0; v < VARIABLES; v++)
        nc(states[v], "request");
    nc(ncmpi_close(file), "close");
}

static void write_checkpoint(const char *path, const block *b, double *data[VARIABLES])
{
    int file, ids[VARIABLES], requests[VARIABLES];

    nc(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), "create");
    define(file, ids);
    for (int v = 0; v < VARIABLES; v++) {
        MPI_Offset start[DIMS], count[DIMS];
        int skip = variables[v].components > 1 ? 0 : 1;

        memcpy(start, b->start, sizeof start);
        memcpy(count, b->count, sizeof count);
        count[0] = variables[v].components;
        nc(ncmpi_iput_vara_double(file, ids[v], start + skip, count + skip, data[v], &requests[v]), "iput");
    }
    finish(file, requests);
}

static void read_checkpoint(const char *path, const block *b, double *data[VARIABLES])
{
    int file, id, requests[VARIABLES];

    nc(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file), "open");
    for (int v = 0; v < VARIABLES; v++) {
        MPI_Offset start[DIMS], count[DIMS];
        int skip = variables[v].components > 1 ? 0 : 1;

        memcpy(start, b->start, sizeof start);
        memcpy(count, b->count, sizeof count);
        count[0] = variables[v].components;
        nc(ncmpi_inq_varid(file, variables[v].name, &id), "inq_varid");
        nc(ncmpi_iget_vara_double(file, id, start + skip, count + skip, data[v], &requests[v]), "iget");
    }
    finish(file, requests);
}

int main(int argc, char **argv)
{
    double *data[VARIABLES], bytes;
    long long wrong = 0;
    block mine, other;
    char path[4096];
    int checkpoints, failed;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    n = argument(argc, argv, 2, 1);
    checkpoints = argument(argc, argv, 3, 1);
    mine = block_of(rank);
    other = block_of((rank + 1) % ranks);
    for (int v = 0; v < VARIABLES; v++) {
        size_t points = (size_t)(mine.points > other.points ? mine.points : other.points);

        data[v] = allocate(points * (size_t)variables[v].components * sizeof **data);
    }
    bytes = 16.0 * 8 * n * n * n * checkpoints;

    for (int c = 0; c < checkpoints; c++) {
        compute();
        for (int v = 0; v < VARIABLES; v++)
            visit(data[v], &mine, c, v, 0);
        snprintf(path, sizeof path, "%s.%04d.nc", argv[1], c);
        start();
        write_checkpoint(path, &mine, data);
        stop();
    }
    end_loop("s3dio");
    say_bandwidth("s3dio", "write", bytes);

    for (int c = 0; c < checkpoints; c++) {
        for (int v = 0; v < VARIABLES; v++)
            memset(data[v], 0xEE, (size_t)(other.points * variables[v].components) * sizeof *data[v]);
        snprintf(path, sizeof path, "%s.%04d.nc", argv[1], c);
        start();
        read_checkpoint(path, &other, data);
        stop();
        for (int v = 0; v < VARIABLES; v++)
            wrong += visit(data[v], &other, c, v, 1);
    }
    say_bandwidth("s3dio", "read", bytes);

    for (int v = 0; v < VARIABLES; v++)
        free(data[v]);
    failed = say_verified("s3dio", wrong);
    MPI_Finalize();
    return failed;
}
