/*
 * slabs_hdf5.c - datasets that ranks write in parts with parallel HDF5, and that one process checks.
 *
 * cartesian: open-mpi/ompi #12718. A two-dimensional array in blocks, written over a communicator of
 *            MPI_Cart_create; with three processes the dataset was wrong now and then. Many small files in turn.
 *            So does h5bench's exerciser write, of pmodels/mpich #6984: few large files; bandwidth is printed.
 * uneven:    HDFGroup/hdf5 #1227, AMReX-Codes/amrex #2491. One dimension, every rank a slab of another size, some of
 *            them none, collectively; 31 ranks waited for ever.
 * rows:      HDFGroup/hdf5 #5796. Files of one two-dimensional array, every rank a block of rows: fast on one node, ten
 *            times slower on several. Bandwidth is printed.
 *
 * usage: slabs_hdf5 cartesian|uneven|rows FILE SIZE FILES [independent]     SIZE: elements a side; for rows columns
 */
#include <hdf5.h>
#include <string.h>

#include "../codes/codes.h"

typedef struct {
    int dimensions;
    hsize_t whole[2], begin[2], count[2];
} slab;

static double value(hsize_t at, int file)
{
    return (double)at + 0.25 * (file % 4 + 1);
}

/* Sizes between 1 and 2 shares in an order without a pattern; every seventh rank has none. */
static hsize_t uneven(int of_rank, hsize_t share)
{
    return of_rank % 7 == 5 ? 0 : share + (hsize_t)(of_rank * 2654435761u) % share;
}

static slab of_uneven(hsize_t share)
{
    slab own = {.dimensions = 1};

    for (int i = 0; i < ranks; i++) {
        if (i == rank)
            own.begin[0] = own.whole[0];
        own.whole[0] += uneven(i, share);
    }
    own.count[0] = uneven(rank, share);
    return own;
}

static slab of_grid(MPI_Comm grid, hsize_t side)
{
    slab own = {.dimensions = 2, .whole = {side, side}};
    int sizes[2], periods[2], place[2];

    MPI_Cart_get(grid, 2, sizes, periods, place);
    for (int d = 0; d < 2; d++) {
        own.begin[d] = side * (hsize_t)place[d] / (hsize_t)sizes[d];
        own.count[d] = side * (hsize_t)(place[d] + 1) / (hsize_t)sizes[d] - own.begin[d];
    }
    return own;
}

static slab of_rows(hsize_t columns)
{
    return (slab){.dimensions = 2,
                  .whole = {16 * (hsize_t)ranks, columns},
                  .begin = {16 * (hsize_t)rank, 0},
                  .count = {16, columns}};
}

static double *filled(const slab *own, int file)
{
    const hsize_t columns = own->dimensions == 2 ? own->count[1] : own->count[0];
    const hsize_t rows = own->dimensions == 2 ? own->count[0] : 1;
    const hsize_t width = own->dimensions == 2 ? own->whole[1] : 0;
    double *data = allocate((size_t)(rows * columns) * sizeof *data);

    for (hsize_t y = 0; y < rows; y++)
        for (hsize_t x = 0; x < columns; x++)
            data[y * columns + x] = value(
                width * (own->begin[0] * (own->dimensions == 2) + y) + own->begin[own->dimensions - 1] + x, file);
    return data;
}

static void write_file(const char *path, MPI_Comm group, const slab *own, const double *data, int independent)
{
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
    const hid_t space = H5Screate_simple(own->dimensions, own->whole, NULL);
    const hid_t memory = H5Screate_simple(own->dimensions, own->count, NULL);
    hid_t file, dataset;

    need(H5Pset_fapl_mpio(access, group, MPI_INFO_NULL) >= 0, "H5Pset_fapl_mpio");
    need(H5Pset_dxpl_mpio(transfer, independent ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE) >= 0, "transfer list");
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    need(file >= 0, "H5Fcreate");
    dataset = H5Dcreate2(file, "data", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    need(dataset >= 0, "H5Dcreate2");
    if (own->count[0] > 0) {
        need(H5Sselect_hyperslab(space, H5S_SELECT_SET, own->begin, NULL, own->count, NULL) >= 0, "hyperslab");
    } else {
        H5Sselect_none(space);
        H5Sselect_none(memory);
    }
    need(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, transfer, data) >= 0, "H5Dwrite");
    need(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0, "closing");
    H5Sclose(memory);
    H5Sclose(space);
    H5Pclose(transfer);
    H5Pclose(access);
}

/* Read by one process without MPI-IO. */
static void check(const char *path, const slab *own, int number)
{
    const hsize_t elements = own->whole[0] * (own->dimensions == 2 ? own->whole[1] : 1);
    double *data = allocate((size_t)elements * sizeof *data);
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), dataset = H5Dopen2(file, "data", H5P_DEFAULT);

    need(dataset >= 0, "H5Dopen2");
    need(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0, "H5Dread");
    for (hsize_t i = 0; i < elements; i++)
        need(data[i] == value(i, number), "wrong value in the dataset");
    H5Dclose(dataset);
    H5Fclose(file);
    free(data);
}

static MPI_Comm grid_of_all(void)
{
    int sizes[2] = {0, 0}, periods[2] = {0, 0};
    MPI_Comm grid;

    MPI_Dims_create(ranks, 2, sizes);
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 1, &grid);
    MPI_Comm_rank(grid, &rank);
    return grid;
}

int main(int argc, char **argv)
{
    MPI_Comm group = MPI_COMM_WORLD;
    double bytes = 0;
    slab own;
    int size, files;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    need(argc >= 5, "usage: slabs_hdf5 cartesian|uneven|rows FILE SIZE FILES [independent]");
    size = argument(argc, argv, 3, 1);
    files = argument(argc, argv, 4, 1);
    if (strcmp(argv[1], "cartesian") == 0) {
        group = grid_of_all();
        own = of_grid(group, (hsize_t)size);
    } else {
        own = strcmp(argv[1], "uneven") == 0 ? of_uneven((hsize_t)size) : of_rows((hsize_t)size);
    }
    for (int n = 0; n < files; n++) {
        double *data = filled(&own, n);

        start();
        write_file(argv[2], group, &own, data, argc > 5);
        stop();
        free(data);
        if (rank == 0)
            check(argv[2], &own, n);
        bytes += (double)(own.whole[0] * (own.dimensions == 2 ? own.whole[1] : 1)) * sizeof(double);
    }
    say_bandwidth(argv[1], "write", bytes);
    if (group != MPI_COMM_WORLD)
        MPI_Comm_free(&group);
    if (rank == 0)
        puts("verified");
    MPI_Finalize();
    return 0;
}
