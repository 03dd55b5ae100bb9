/*
 * mpiox_typemap_mpi.c - the typemap of a datatype, cached on the datatype.
 *
 * A user's datatype is decoded once (mpiox_typemap_decode.c); the description hangs on the handle as an attribute, is
 * shared with duplicates and dropped when MPI frees the type. The key is created at the first need. Predefined types
 * are so quick to describe that nothing is attached to them.
 */
#include "mpiox_typemap_mpi.h"

#include <pthread.h>

#include "mpiox_typemap_contents.h"
#include "mpiox_typemap_decode.h"

static pthread_mutex_t key_lock = PTHREAD_MUTEX_INITIALIZER;
static int cache_key = MPI_KEYVAL_INVALID;

static int copy_attribute(MPI_Datatype datatype, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)datatype;
    (void)key;
    (void)extra;
    *(void **)copy = mpiox_typemap_retain(value);
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_attribute(MPI_Datatype datatype, int key, void *value, void *extra)
{
    (void)datatype;
    (void)key;
    (void)extra;
    mpiox_typemap_free(value);
    return MPI_SUCCESS;
}

/* The attribute key, or MPI_KEYVAL_INVALID when MPI gives none. */
static int get_key(void)
{
    pthread_mutex_lock(&key_lock);
    if (cache_key == MPI_KEYVAL_INVALID &&
        PMPI_Type_create_keyval(copy_attribute, delete_attribute, &cache_key, NULL) != MPI_SUCCESS) {
        cache_key = MPI_KEYVAL_INVALID;
    }
    const int key = cache_key;
    pthread_mutex_unlock(&key_lock);
    return key;
}

void mpiox_typemap_mpi_finalize(void)
{
    pthread_mutex_lock(&key_lock);
    if (cache_key != MPI_KEYVAL_INVALID) {
        PMPI_Type_free_keyval(&cache_key); /* attributes that still exist keep it alive */
        cache_key = MPI_KEYVAL_INVALID;
    }
    pthread_mutex_unlock(&key_lock);
}

int mpiox_typemap_from_datatype(MPI_Datatype datatype, mpiox_typemap **out)
{
    void *cached = NULL;
    int found = 0;
    *out = NULL;
    if (datatype == MPI_DATATYPE_NULL) {
        return MPIOX_E_ARG;
    }
    mpiox_contents envelope = {.combiner = MPI_COMBINER_NAMED};
    if (mpiox_contents_envelope(datatype, &envelope) != MPIOX_OK) {
        return MPIOX_E_MPI;
    }
    if (mpiox_contents_are_predefined(&envelope)) {
        return mpiox_typemap_decode(datatype, out);
    }
    const int key = get_key();
    if (key != MPI_KEYVAL_INVALID && PMPI_Type_get_attr(datatype, key, &cached, &found) == MPI_SUCCESS && found) {
        *out = mpiox_typemap_retain(cached);
        return MPIOX_OK;
    }
    const int code = mpiox_typemap_decode(datatype, out);
    if (code == MPIOX_OK && key != MPI_KEYVAL_INVALID &&
        PMPI_Type_set_attr(datatype, key, mpiox_typemap_retain(*out)) != MPI_SUCCESS) {
        mpiox_typemap_free(*out); /* not cached: only the caller's reference is left */
    }
    return code;
}
