/*
 * mpiox_hints_names.c - hints of the MPI libraries that are passed on unread, and the nearest name to a misspelt one.
 *
 * Distance: optimal string alignment (insert, delete, replace, swap neighbours). A name is near if at most a third of
 * it, and never more than four characters, must change; the nearest differs only by our missing prefix.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "mpiox_hints.h"
#include "mpiox_hints_text.h"

typedef struct foreign {
    const char *name;
    bool is_bytes;
} foreign;

/* MPI-4.1 section 14.2.8, ROMIO's user guide, Open MPI's OMPIO, Cray's intro_mpi. */
static const foreign foreign_hints[] = {
    {"abort_on_rw_error", false},
    {"access_style", false},
    {"aggregator_placement_stride", false},
    {"collective_buffering", false},
    {"cb_block_size", true},
    {"chunked", false},
    {"chunked_item", false},
    {"chunked_size", false},
    {"cray_cb_nodes_multiplier", false},
    {"cray_cb_write_lock_mode", false},
    {"cray_fileoff_based_aggr", false},
    {"direct_io", false},
    {"filename", false},
    {"file_perm", false},
    {"io_node_list", false},
    {"nb_proc", false},
    {"num_io_nodes", false},
    {"overstriping_factor", false},
    {"romio_no_indep_rw", false},
    {"romio_cb_fr_types", false},
    {"romio_cb_fr_alignment", true},
    {"romio_cb_ds_threshold", true},
    {"romio_cb_alltoall", false},
    {"romio_cb_pfr", false},
    {"romio_min_fdomain_size", true},
    {"romio_synchronized_flush", false},
    {"romio_visibility_immediate", false},
    {"romio_filesystem_type", false},
    {"romio_aggregator_list", false},
    {"romio_lustre_co_ratio", false},
    {"romio_lustre_coll_threshold", false},
    {"romio_lustre_ds_in_coll", false},
    {"romio_lustre_start_iodevice", false},
    {"sharedfp", false},
    {"stripe_size", true},
};

enum { FOREIGN = (int)(sizeof foreign_hints / sizeof foreign_hints[0]), NAME_BYTES = 64 };

int mpiox_hints_is_foreign(const char *name, int *is_bytes)
{
    for (int i = 0; i < FOREIGN; i++) {
        if (strcmp(foreign_hints[i].name, name) == 0) {
            if (is_bytes != NULL)
                *is_bytes = foreign_hints[i].is_bytes;
            return 1;
        }
    }
    return 0;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static int distance(const char *a, const char *b)
{
    int rows[3][NAME_BYTES + 1];
    int n = (int)strlen(b);

    for (int j = 0; j <= n; j++)
        rows[0][j] = j;
    for (int i = 1; a[i - 1] != '\0'; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];

        row[0] = i;
        for (int j = 1; j <= n; j++) {
            row[j] = smaller(above[j - 1] + (a[i - 1] != b[j - 1]), 1 + smaller(above[j], row[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], second[j - 2] + 1);
        }
    }
    return rows[strlen(a) % 3][n];
}

const char *mpiox_hints_nearest(const char *name)
{
    char prefixed[NAME_BYTES + 1];
    const char *best = NULL;
    int length = (int)strlen(name), limit = smaller(4, length / 3), index;

    if (length > NAME_BYTES - 6)
        return NULL;
    snprintf(prefixed, sizeof prefixed, "mpiox_%s", name);
    index = mpiox_hints_find(prefixed);
    if (index >= 0)
        return mpiox_hints_spec(index)->name;
    for (int i = 0; i < mpiox_hints_count() + FOREIGN; i++) {
        const char *other = i < mpiox_hints_count() ? mpiox_hints_spec(i)->name
                                                    : foreign_hints[i - mpiox_hints_count()].name;
        int apart = smaller(distance(name, other), distance(prefixed, other));

        if (apart <= limit) {
            limit = apart - 1;
            best = other;
        }
    }
    return best;
}
