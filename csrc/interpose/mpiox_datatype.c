/* mpiox_datatype.c - see mpiox_datatype.h. */
#include "mpiox_datatype.h"

#include <pthread.h>

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

bool mpiox_datatype_is_committed(MPI_Datatype datatype)
{
    char nothing = 0;
    int integers = 0, addresses = 0, datatypes = 0, combiner = MPI_COMBINER_NAMED;

    if (PMPI_Type_get_envelope(datatype, &integers, &addresses, &datatypes, &combiner) == MPI_SUCCESS &&
        combiner == MPI_COMBINER_NAMED)
        return true;
    return !make_communicator() || PMPI_Send(&nothing, 1, datatype, MPI_PROC_NULL, 0, asking) == MPI_SUCCESS;
}

void mpiox_datatype_finalize(void)
{
    if (made)
        PMPI_Comm_free(&asking);
    made = false;
}
