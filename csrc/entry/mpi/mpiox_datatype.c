/* mpiox_datatype.c - see mpiox_datatype.h. */
#include "mpiox_datatype.h"

#include <pthread.h>

#include "mpiox_typemap_contents.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static MPI_Comm asking;
static bool made;

static bool make_communicator(void)
{
    pthread_mutex_lock(&lock);
    if (!made && PMPI_Comm_dup(MPI_COMM_SELF, &asking) == MPI_SUCCESS) {
        PMPI_Comm_set_errhandler(asking, MPI_ERRORS_RETURN);
        made = true;
    }
    pthread_mutex_unlock(&lock);
    return made;
}

int64_t mpiox_datatype_plain_bytes(MPI_Datatype datatype)
{
    static _Thread_local MPI_Datatype last; /* predefined types are never freed, nor their handles used again */
    static _Thread_local int64_t last_bytes;
    MPI_Count size = 0, lb = 0, extent = 0;

    if (last_bytes > 0 && datatype == last)
        return last_bytes;
    if (!mpiox_contents_is_predefined(datatype) || PMPI_Type_size_x(datatype, &size) != MPI_SUCCESS ||
        PMPI_Type_get_extent_x(datatype, &lb, &extent) != MPI_SUCCESS || size <= 0 || lb != 0 || extent != size)
        return 0;
    last = datatype;
    last_bytes = (int64_t)size;
    return last_bytes;
}

bool mpiox_datatype_is_committed(MPI_Datatype datatype)
{
    char nothing = 0;

    if (mpiox_contents_is_predefined(datatype))
        return true;
    return !make_communicator() || PMPI_Send(&nothing, 1, datatype, MPI_PROC_NULL, 0, asking) == MPI_SUCCESS;
}

void mpiox_datatype_finalize(void)
{
    if (made)
        PMPI_Comm_free(&asking);
    made = false;
}
