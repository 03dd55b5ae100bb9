/*
 * mpiox_layout_probe_gpfs.c - GPFS (Spectrum Scale): the block size, and by gpfs_fcntl() pool and replicas.
 *
 * GPFS goes round all disks of a storage pool block by block, and its byte-range tokens are negotiated in whole blocks;
 * st_blksize is the block size of the file's pool. An ordinary process cannot query the disks. gpfs_fcntl() of libgpfs
 * (gpfs_fcntl.h, "GPFS programming interfaces") takes a head and inquiries behind it; the structures below are laid out
 * as in that header.
 */
#include "mpiox_layout_probe.h"

#include <string.h>
#include <sys/stat.h>

#include "mpiox_layout_library.h"

enum { FCNTL_VERSION = 1, GET_REPLICATION = 3001, GET_POOL = 3002, NAME_BYTES = 1024 };

typedef struct gpfs_head {
    int total_bytes, version, error_offset, reserved;
} gpfs_head;

typedef struct gpfs_pool {
    gpfs_head head;
    int bytes, type;
    char name[NAME_BYTES];
} gpfs_pool;

typedef struct gpfs_replication {
    gpfs_head head;
    int bytes, type;
    int metadata_replicas, most_metadata_replicas, data_replicas, most_data_replicas, status, reserved;
} gpfs_replication;

typedef int gpfs_fcntl_function(int fd, void *argument);

static void ask_library(int fd, gpfs_fcntl_function *gpfs_fcntl, mpiox_layout_facts *facts)
{
    gpfs_pool pool = {
        .head = {sizeof pool, FCNTL_VERSION, 0, 0}, .bytes = (int)(sizeof pool - sizeof pool.head), .type = GET_POOL};
    gpfs_replication copies = {.head = {sizeof copies, FCNTL_VERSION, 0, 0},
                               .bytes = (int)(sizeof copies - sizeof copies.head),
                               .type = GET_REPLICATION};
    if (gpfs_fcntl(fd, &pool) == 0) {
        pool.name[NAME_BYTES - 1] = '\0';
        mpiox_facts_set(facts, MPIOX_FACT_POOL, "gpfs_fcntl GPFS_FCNTL_GET_STORAGEPOOL", "%s", pool.name);
    }
    if (gpfs_fcntl(fd, &copies) == 0 && copies.data_replicas > 1)
        mpiox_facts_set(facts, MPIOX_FACT_REDUNDANCY, "gpfs_fcntl GPFS_FCNTL_GET_REPLICATION", "replicate %d",
                        copies.data_replicas);
}

void mpiox_layout_probe_gpfs(int fd, const mpiox_layout_mount *mount, mpiox_layout_facts *facts)
{
    static const char *const libraries[] = {"libgpfs.so.0", "libgpfs.so", NULL};
    void *function = mpiox_layout_library_function(libraries, "gpfs_fcntl");
    gpfs_fcntl_function *gpfs_fcntl;
    struct stat status;
    (void)mount;
    if (fstat(fd, &status) == 0 && status.st_blksize > 0) {
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_SIZE, "stat st_blksize (block size of the pool)",
                               status.st_blksize);
        mpiox_facts_set_number(facts, MPIOX_FACT_LOCK_GRANULARITY, "stat st_blksize (tokens cover whole blocks)",
                               status.st_blksize);
    }
    mpiox_facts_set(facts, MPIOX_FACT_PATTERN, "protocol: blocks go round all disks of the pool", "round-robin");
    if (function == NULL)
        return;
    memcpy(&gpfs_fcntl, &function, sizeof gpfs_fcntl);
    ask_library(fd, gpfs_fcntl, facts);
}
