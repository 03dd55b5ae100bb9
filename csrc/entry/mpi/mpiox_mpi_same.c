/* mpiox_mpi_same.c - see mpiox_mpi_same.h. */
#include "mpiox_mpi_same.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_mpi_error.h"
#include "mpiox_mpi_path.h"
#include "mpiox_storage.h"

enum { OTHER_MODE = 1, OTHER_NAME = 2, KINDS = 2 };
/* Descriptors that opening a file takes beside the MPI library: a page's, those of libraries that the MPI library
 * loads, the file's; and those that the MPI library alone takes. */
enum { BESIDE = 8 };
#ifdef OPEN_MPI
enum { LIBRARY = 2 };
#else
enum { LIBRARY = 1 };
#endif

void mpiox_mpi_same_name(const char *filename, char *name, size_t bytes)
{
    const char *path = mpiox_mpi_path(filename);
    char folder[PATH_MAX];
    int used;

    if (path[0] == '/')
        used = snprintf(name, bytes, "%s", filename);
    else if (path[0] != '\0' && getcwd(folder, sizeof folder) != NULL)
        used = snprintf(name, bytes, "%.*s%s/%s", (int)(path - filename), filename, folder, path);
    else
        used = (int)bytes;
    if (used >= (int)bytes && bytes > 0)
        name[0] = '\0';
}

static bool is_one(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool find_folder(const char *path, struct stat *out)
{
    char folder[PATH_MAX];

    return mpiox_mpi_path_folder(path, folder) && stat(folder, out) == 0;
}

/* Do both lead to one file, or to one place without a file? */
static bool lead_to_one(const char *a, const char *b, const struct stat *folder_b)
{
    const char *name_a = strrchr(a, '/'), *name_b = strrchr(b, '/');
    struct stat status_a, status_b;

    if (stat(a, &status_a) == 0 && stat(b, &status_b) == 0)
        return is_one(&status_a, &status_b);
    return find_folder(a, &status_a) && is_one(&status_a, folder_b) &&
           strcmp(name_a != NULL ? name_a + 1 : a, name_b != NULL ? name_b + 1 : b) == 0;
}

static bool is_other_file(const char *filename, const char *name)
{
    char own[PATH_MAX];
    struct stat folder;

    if (filename[0] == '\0') /* rank 0 has given one */
        return true;
    if (name[0] == '\0')
        return false;
    mpiox_mpi_same_name(filename, own, sizeof own);
    return strcmp(own, name) != 0 && find_folder(mpiox_mpi_path(name), &folder) &&
           !lead_to_one(mpiox_mpi_path(filename), mpiox_mpi_path(name), &folder);
}

int mpiox_mpi_same_follow(int rank, const char *name, int amode0, const char **filename, int *amode)
{
    int kind = 0;

    if (*amode != amode0)
        kind = OTHER_MODE;
    *amode = amode0;
    if (rank != 0 && is_other_file(*filename, name)) {
        kind = OTHER_NAME;
        *filename = name[0] != '\0' ? name : *filename;
    }
    return kind != 0 ? -(KINDS * rank + kind) : 0;
}

bool mpiox_mpi_same_has_descriptors(void)
{
    return mpiox_storage_has_room(BESIDE);
}

/* A single rank does not wait for others: the MPI library reports whether it can open the file. */
int mpiox_mpi_same_agree(MPI_Comm comm, int differs, mpiox_error *error)
{
    enum { DIFFERS, LACKS, VALUES };
    int rank = 0, size = 1, lowest[VALUES];

    mpiox_error_clear(error);
    mpiox_storage_make_way();
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    if (size == 1)
        return MPIOX_OK;
    lowest[DIFFERS] = differs;
    lowest[LACKS] = mpiox_storage_has_room(LIBRARY) ? size : rank;
    if (PMPI_Allreduce(MPI_IN_PLACE, lowest, VALUES, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS)
        return mpiox_error_set(error, MPIOX_E_MPI, 0, -1, -1, "open (agreeing on the arguments)");
    if (lowest[DIFFERS] < 0) {
        const int first = (-lowest[DIFFERS] - 1) / KINDS, kind = -lowest[DIFFERS] - KINDS * first;

        mpiox_mpi_problem(error, MPI_ERR_NOT_SAME,
                          kind == OTHER_MODE ? "open with another access mode than rank 0"
                                             : "open of another file than rank 0");
        error->rank = first;
    } else if (lowest[LACKS] < size) {
        mpiox_error_set(error, MPIOX_E_IO, EMFILE, -1, -1, "open (few descriptors are left: raise ulimit -n)");
        error->rank = lowest[LACKS];
    }
    return error->code;
}
