/* mpiox_mpi_view_judge.c - see mpiox_mpi_view_judge.h. */
#include "mpiox_mpi_view_judge.h"

#include <string.h>

#include "mpiox_datatype.h"
#include "mpiox_mpi_error.h"
#include "mpiox_typemap_mpi.h"

/* ROMIO refuses file types that overlap where the file may be written to. OMPIO takes them, and programs that only
 * read through such a view go well there. */
#ifdef ROMIO_VERSION
enum { OVERLAP_IS_REFUSED = 1 };
#else
enum { OVERLAP_IS_REFUSED = 0 };
#endif

/* ---- data representations ---------------------------------------------------------------------------------------- */

/* A number for a data representation, from 0 on: the same for what every MPI library takes for the same. Which there
 * are is for the MPI library to say, which says the same on all ranks. */
static int number_of(const char *datarep)
{
    static const char *const known[][2] = {
        {"NATIVE", "native"}, {"INTERNAL", "internal"}, {"EXTERNAL32", "external32"}};
    uint32_t hash = UINT32_C(0x811c9dc5);

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (datarep != NULL && strcmp(datarep, known[i][0]) == 0)
            datarep = known[i][1];
    for (const char *at = datarep; at != NULL && *at != '\0'; at++)
        hash = (hash ^ (uint8_t)*at) * UINT32_C(0x01000193);
    return (int)(hash & INT32_MAX);
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

typedef struct type_order {
    bool reaches_back; /* has displacements before its origin */
    bool descends;     /* a piece begins before the one before it does */
    bool overlaps;
} type_order;

/* Pieces of one element in the order of the data; what follows the first that descends is not looked at. */
static type_order order_of(const mpiox_typemap *map)
{
    type_order found = {.reaches_back = mpiox_typemap_size(map) > 0 && mpiox_typemap_true_lb(map) < 0};
    int64_t left = mpiox_typemap_size(map), last = INT64_MIN, end = INT64_MIN;
    mpiox_cursor cursor;
    mpiox_run run;

    if (left == 0 || mpiox_typemap_is_monotonic(map))
        return found;
    mpiox_cursor_init(&cursor, map, 0, 0);
    while (left > 0 && !found.descends) {
        left -= mpiox_cursor_next(&cursor, left, &run);
        found.descends = run.offset < last || (run.count > 1 && run.stride < 0);
        found.overlaps |= run.offset < end || (run.count > 1 && run.stride < run.length);
        last = run.offset + (run.count - 1) * run.stride;
        end = last + run.length > end ? last + run.length : end;
    }
    return found;
}

/* What is wrong with an etype or a file type, with its MPI error class; NULL: nothing that is known. */
static const char *wrong_type(const mpiox_handle *handle, MPI_Datatype type, int *error_class)
{
    const bool writable = (handle->amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0;
    mpiox_typemap *map = NULL;

    *error_class = MPI_ERR_TYPE;
    if (type == MPI_DATATYPE_NULL)
        return "a view without a type";
    if (!mpiox_datatype_is_committed(type))
        return "a type that is not committed in a view";
    *error_class = MPI_ERR_IO;
    if (mpiox_typemap_from_datatype(type, &map) != MPIOX_OK)
        return NULL;
    const type_order order = order_of(map);
    mpiox_typemap_free(map);
    if (order.reaches_back)
        return "negative displacement in a file type";
    if (order.descends)
        return "displacements that descend in a file type";
    return OVERLAP_IS_REFUSED && writable && order.overlaps ? "a file type that overlaps, of a file open for writing"
                                                            : NULL;
}

/* ---- judging ----------------------------------------------------------------------------------------------------- */

void mpiox_mpi_view_judge(const mpiox_handle *handle, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                          const char *datarep, mpiox_error *error)
{
    const bool current = disp == MPI_DISPLACEMENT_CURRENT && (handle->amode & MPI_MODE_SEQUENTIAL);
    MPI_Count etype_bytes = 0, filetype_bytes = 0;
    const char *wrong;
    int error_class = 0;

    memset(error, 0, sizeof *error);
    if (disp < 0 && !current) {
        mpiox_mpi_problem(error, MPI_ERR_ARG, "negative displacement of a view");
        return;
    }
    if ((wrong = wrong_type(handle, etype, &error_class)) != NULL ||
        (wrong = wrong_type(handle, filetype, &error_class)) != NULL) {
        mpiox_mpi_problem(error, error_class, wrong);
        return;
    }
    PMPI_Type_size_x(etype, &etype_bytes);
    PMPI_Type_size_x(filetype, &filetype_bytes);
    if (etype_bytes > 0 && filetype_bytes % etype_bytes != 0)
        mpiox_mpi_problem(error, MPI_ERR_ARG, "a file type that is no multiple of its etype");
    else if (datarep == NULL)
        mpiox_mpi_problem(error, MPI_ERR_ARG, "a view without a data representation");
}

bool mpiox_mpi_view_agreed(const mpiox_handle *handle, const char *datarep, mpiox_error *error)
{
    int lowest[2] = {number_of(datarep), -number_of(datarep)}; /* the second: minus the highest */

    if (mpiox_topology_agree(handle->file->topology, error, 2, lowest) != MPIOX_OK)
        return false;
    if (lowest[0] == -lowest[1])
        return true;
    mpiox_mpi_problem(error, MPI_ERR_NOT_SAME, "other data representations on some ranks");
    error->rank = handle->file->topology->rank;
    return false;
}
