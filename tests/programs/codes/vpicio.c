/*
 * vpicio.c - particle output of a plasma simulation, written with parallel HDF5 and read back by an analysis.
 *
 * The pattern of VPIC-IO and BD-CATS-IO: one group per time step, in it eight one-dimensional datasets (x y z ux uy uz
 * as float, id1 id2 as int32), to which every rank contributes one contiguous hyperslab, collectively. The analysis
 * reads six of them; each rank reads what its neighbour wrote. Ranks have different numbers of particles.
 *
 * usage: vpicio FILE PARTICLES [STEPS]      PARTICLES per rank, about
 */
#include <hdf5.h>
#include <string.h>

#include "codes.h"

enum { PROPERTIES = 8, FLOATS = 6 };

static const char *const names[PROPERTIES] = {"x", "y", "z", "ux", "uy", "uz", "id1", "id2"};
static hsize_t first, count, total; /* this rank's particles, and those of all */

/* Values have 32 bits, and every one tells its step, property and particle. */
static void fill(void *values, int step, int property)
{
    float *real = values;
    int *whole = values;

    for (hsize_t i = 0; i < count; i++) {
        unsigned mixed = (unsigned)(first + i) * 2654435761u + (unsigned)(step * PROPERTIES + property) * 40503u;

        if (property < FLOATS)
            real[i] = (float)(mixed >> 8) + (float)property / 8;
        else
            whole[i] = (int)mixed;
    }
}

static hsize_t particles_of(int of_rank, int about)
{
    return (hsize_t)(about + of_rank % 3 * (about / 16));
}

static void share(int of_rank, int about)
{
    first = total = 0;
    for (int i = 0; i < ranks; i++) {
        first = i == of_rank ? total : first;
        total += particles_of(i, about);
    }
    count = particles_of(of_rank, about);
}

static hid_t quiet(hid_t properties) /* without time stamps: the same data make the same file */
{
    need(H5Pset_obj_track_times(properties, 0) >= 0, "H5Pset_obj_track_times");
    return properties;
}

static hid_t collective_list(void)
{
    hid_t list = H5Pcreate(H5P_DATASET_XFER);

    need(H5Pset_dxpl_mpio(list, H5FD_MPIO_COLLECTIVE) >= 0, "H5Pset_dxpl_mpio");
    return list;
}

static void write_step(hid_t file, int step, void *const values[PROPERTIES])
{
    hid_t creation = quiet(H5Pcreate(H5P_DATASET_CREATE)), group_creation = quiet(H5Pcreate(H5P_GROUP_CREATE));
    hid_t in_file = H5Screate_simple(1, &total, NULL), in_memory = H5Screate_simple(1, &count, NULL);
    hid_t transfer = collective_list(), group;
    char name[32];

    snprintf(name, sizeof name, "Step#%d", step);
    group = H5Gcreate2(file, name, H5P_DEFAULT, group_creation, H5P_DEFAULT);
    need(group >= 0, "H5Gcreate2");
    need(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &first, NULL, &count, NULL) >= 0, "H5Sselect_hyperslab");
    for (int p = 0; p < PROPERTIES; p++) {
        hid_t type = p < FLOATS ? H5T_NATIVE_FLOAT : H5T_NATIVE_INT;
        hid_t set = H5Dcreate2(group, names[p], type, in_file, H5P_DEFAULT, creation, H5P_DEFAULT);

        need(set >= 0, "H5Dcreate2");
        need(H5Dwrite(set, type, in_memory, in_file, transfer, values[p]) >= 0, "H5Dwrite");
        H5Dclose(set);
    }
    H5Gclose(group);
    H5Sclose(in_file);
    H5Sclose(in_memory);
    H5Pclose(transfer);
    H5Pclose(creation);
    H5Pclose(group_creation);
}

static int is_read(int property) /* the analysis needs no uy, uz */
{
    return property != 4 && property != 5;
}

static void read_step(hid_t file, int step, void *const values[PROPERTIES])
{
    hid_t in_file = H5Screate_simple(1, &total, NULL), in_memory = H5Screate_simple(1, &count, NULL);
    hid_t transfer = collective_list();
    char name[48];

    need(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &first, NULL, &count, NULL) >= 0, "H5Sselect_hyperslab");
    for (int p = 0; p < PROPERTIES; p++) {
        hid_t set, type = p < FLOATS ? H5T_NATIVE_FLOAT : H5T_NATIVE_INT;

        if (!is_read(p))
            continue;
        snprintf(name, sizeof name, "Step#%d/%s", step, names[p]);
        set = H5Dopen2(file, name, H5P_DEFAULT);
        need(set >= 0, "H5Dopen2");
        need(H5Dread(set, type, in_memory, in_file, transfer, values[p]) >= 0, "H5Dread");
        H5Dclose(set);
    }
    H5Sclose(in_file);
    H5Sclose(in_memory);
    H5Pclose(transfer);
}

static void write_all_steps(const char *path, hid_t list, int steps, void *const values[PROPERTIES])
{
    hid_t file, creation = quiet(H5Pcreate(H5P_FILE_CREATE)); /* HDF5 2 stamps the root group, too */

    start();
    file = H5Fcreate(path, H5F_ACC_TRUNC, creation, list);
    need(file >= 0, "H5Fcreate");
    H5Pclose(creation);
    stop();
    for (int step = 0; step < steps; step++) {
        compute();
        for (int p = 0; p < PROPERTIES; p++)
            fill(values[p], step, p);
        start();
        write_step(file, step, values);
        stop();
    }
    start();
    need(H5Fclose(file) >= 0, "H5Fclose");
    stop();
    end_loop("vpicio");
    say_bandwidth("vpicio", "write", 4.0 * PROPERTIES * (double)total * steps);
}

static long long read_all_steps(const char *path, hid_t list, int steps, void *const values[PROPERTIES])
{
    unsigned *expected = allocate(4 * count);
    long long wrong = 0;
    hid_t file;

    start();
    file = H5Fopen(path, H5F_ACC_RDONLY, list);
    need(file >= 0, "H5Fopen");
    stop();
    for (int step = 0; step < steps; step++) {
        for (int p = 0; p < PROPERTIES; p++)
            memset(values[p], 0xEE, 4 * count);
        start();
        read_step(file, step, values);
        stop();
        for (int p = 0; p < PROPERTIES; p++) {
            fill(expected, step, p);
            for (hsize_t i = 0; is_read(p) && i < count; i++)
                wrong += ((unsigned *)values[p])[i] != expected[i];
        }
    }
    start();
    need(H5Fclose(file) >= 0, "H5Fclose");
    stop();
    say_bandwidth("vpicio", "read", 4.0 * 6 * (double)total * steps);
    free(expected);
    return wrong;
}

int main(int argc, char **argv)
{
    void *values[PROPERTIES];
    long long wrong;
    int about, steps, failed;
    hid_t list;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    about = argument(argc, argv, 2, 1);
    steps = argc > 3 ? argument(argc, argv, 3, 1) : 1;
    for (int p = 0; p < PROPERTIES; p++)
        values[p] = allocate(8 * (size_t)about);
    list = H5Pcreate(H5P_FILE_ACCESS);
    need(H5Pset_fapl_mpio(list, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0, "H5Pset_fapl_mpio");

    share(rank, about);
    write_all_steps(argv[1], list, steps, values);
    share((rank + 1) % ranks, about);
    wrong = read_all_steps(argv[1], list, steps, values);

    H5Pclose(list);
    for (int p = 0; p < PROPERTIES; p++)
        free(values[p]);
    failed = say_verified("vpicio", wrong);
    MPI_Finalize();
    return failed;
}
