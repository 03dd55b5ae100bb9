/*
 * second.c - programs of a second reader, who had seen no rule: of 41 these six were judged wrongly, or not at
 * all, before the rules were mended with them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel.h"

/* Collective writes of 8 MiB a rank in the order of the ranks: the shared pointer is moved once for each. */
static void ordered_blocks(void)
{
    MPI_File file = open_shared(CREATE, NULL);

    for (int k = 0; k < 8 * size; k++)
        MPI_File_write_ordered(file, data, 8 * MIB, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Rank 0 fills the file when space is asked for (ROMIO); then each rank writes 4 MiB collectively. */
static void preallocated(void)
{
    MPI_File file = open_shared(CREATE, NULL);

    MPI_File_preallocate(file, (MPI_Offset)256 * size * MIB);
    MPI_File_write_at_all(file, (MPI_Offset)rank * 4 * MIB, data, 4 * MIB, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Collective writes to which the last rank gives everything. */
static void one_gives_all(void)
{
    MPI_File file = open_shared(CREATE, NULL);
    const int own = rank == ranks - 1 ? 8 * MIB : 0;

    for (int k = 0; k < 24 * size; k++)
        MPI_File_write_at_all(file, (MPI_Offset)k * 8 * MIB, data, own, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Writes of 4 KiB, one behind the other, past the page cache. */
static void direct_writes(void)
{
    void *page = NULL;
    char name[NAME_BYTES];

    check(posix_memalign(&page, 4 * KIB, 4 * KIB) != 0, "posix_memalign");
    memset(page, 1, 4 * KIB);
    snprintf(name, sizeof(name), "%s/direct.%d", folder, rank);
    const int file = open_posix(name, O_CREAT | O_RDWR | O_DIRECT);
    for (int k = 0; k < 2000 * size; k++)
        check(pwrite(file, page, 4 * KIB, (off_t)k * 4 * KIB) != 4 * KIB, "pwrite");
    close(file);
    free(page);
}

/* Split collective writes of pieces of 4 KiB through a view: one aggregator. */
static void split_writes(void)
{
    static const char *const hints[] = {"cb_nodes", "1", "romio_cb_write", "enable", NULL};
    MPI_File file = open_shared(CREATE, hints);

    view_pieces(file, 4 * KIB, 4 * KIB, 4096);
    for (int k = 0; k < 4 * size; k++) {
        MPI_File_write_all_begin(file, data, 16 * MIB, MPI_BYTE);
        MPI_File_write_all_end(file, data, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
}

/* Each rank writes files of 256 KiB, and syncs each once. */
static void synced_files(void)
{
    char name[NAME_BYTES];

    for (int k = 0; k < 40 * size; k++) {
        snprintf(name, sizeof(name), "%s/synced.%d.%d", folder, rank, k);
        const int file = open_posix(name, O_CREAT | O_WRONLY);
        put(file, 256 * KIB, 0);
        check(fsync(file) != 0, "fsync");
        close(file);
    }
}

const struct kind second_kinds[] = {
    {"ordered_blocks", ordered_blocks},
    {"preallocated", preallocated},
    {"one_gives_all", one_gives_all},
    {"direct_writes", direct_writes},
    {"split_writes", split_writes},
    {"synced_files", synced_files},
    {NULL, NULL},
};
