/* mpiox_mpi_view_judge.c - see mpiox_mpi_view_judge.h. */
#include "mpiox_mpi_view_judge.h"

#include <string.h>

#include "mpiox_datatype.h"
#include "mpiox_mpi_error.h"
#include "mpiox_typemap_contents.h"
#include "mpiox_typemap_mpi.h"
#include "mpiox_typemap_order.h"

/* OMPIO 4.1 divides by the size of an etype; ROMIO takes a view without data. */
#ifdef ROMIO_VERSION
enum { EMPTY_ETYPE_IS_REFUSED = 0 };
#else
enum { EMPTY_ETYPE_IS_REFUSED = 1 };
#endif

/* ---- data representations ---------------------------------------------------------------------------------------- */

/* A number for a data representation, from 0 on: the same for names that every MPI library takes for the same. The MPI
 * library decides which ones exist, alike on all ranks. */
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

/* An order of a type's pieces that MPI forbids, in ROMIO's words (check_type() in adio/common/ad_set_view.c); NULL: it
 * is allowed, or the type cannot be described. */
static const char *wrong_order(const mpiox_handle *handle, MPI_Datatype type)
{
    const bool writable = (handle->amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0;
    mpiox_typemap *map = NULL;

    if (mpiox_typemap_from_datatype(type, &map) != MPIOX_OK)
        return NULL;
    const mpiox_typemap_order order = mpiox_typemap_order_of(map);
    mpiox_typemap_free(map);
    if (order.reaches_back)
        return "MPI_File_set_view: negative displacement in an etype or file type";
    if (order.descends)
        return "MPI_File_set_view: displacements that descend in an etype or file type";
    return writable && order.overlaps
               ? "MPI_File_set_view: an etype or file type that overlaps, of a file open for writing"
               : NULL;
}

bool mpiox_mpi_view_bad_etype(const mpiox_handle *handle, MPI_Datatype etype)
{
    return !mpiox_contents_is_predefined(etype) && wrong_order(handle, etype) != NULL;
}

/* The mistake in an etype or a file type, with its MPI error class; NULL: none is known. */
static const char *wrong_type(const mpiox_handle *handle, MPI_Datatype type, int *error_class)
{
    *error_class = MPI_ERR_TYPE;
    if (type == MPI_DATATYPE_NULL)
        return "MPI_File_set_view: a view without a type";
    if (!mpiox_datatype_is_committed(type))
        return "MPI_File_set_view: a type that is not committed in a view";
    *error_class = MPI_ERR_IO;
    return wrong_order(handle, type);
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
        mpiox_mpi_problem(error, MPI_ERR_ARG,
                          disp == MPI_DISPLACEMENT_CURRENT
                              ? "MPI_File_set_view: MPI_DISPLACEMENT_CURRENT without MPI_MODE_SEQUENTIAL"
                              : "MPI_File_set_view: negative displacement of a view");
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
        mpiox_mpi_problem(error, MPI_ERR_ARG, "MPI_File_set_view: a file type that is no multiple of its etype");
    else if (etype_bytes == 0 && EMPTY_ETYPE_IS_REFUSED)
        mpiox_mpi_problem(error, MPI_ERR_ARG, "MPI_File_set_view: an etype without data");
    else if (datarep == NULL)
        mpiox_mpi_problem(error, MPI_ERR_ARG, "MPI_File_set_view: a view without a data representation");
}

bool mpiox_mpi_view_agreed(const mpiox_handle *handle, const char *datarep, mpiox_error *error)
{
    int lowest[2] = {number_of(datarep), -number_of(datarep)}; /* the second: minus the highest */

    if (mpiox_topology_agree(handle->file->topology, error, 2, lowest) != MPIOX_OK)
        return false;
    if (lowest[0] == -lowest[1])
        return true;
    mpiox_mpi_problem(error, MPI_ERR_NOT_SAME, "MPI_File_set_view: other data representations on some ranks");
    error->rank = handle->file->topology->rank;
    return false;
}
