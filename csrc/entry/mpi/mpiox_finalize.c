/*
 * mpiox_finalize.c - MPI_Init and MPI_Finalize: the last moment at which the library may communicate.
 *
 * Problem.   Programs close files inside MPI_Finalize: HDF5 closes what was left open when an attribute of
 *            MPI_COMM_SELF is deleted, and so does every h5py script that forgets close(). Communicators and shared
 *            memory must last until then.
 * Algorithm. MPI deletes the attributes of MPI_COMM_SELF first of all, the last one set first. An attribute of our
 *            own, set as soon as MPI_Init is done, is deleted after all others: then the library cleans up.
 * Promise.   The library may set the attribute late, if it has missed the initialisation of MPI. Files that are closed
 *            after the clean-up still find what they need: the library frees the memory of an open file when the file
 *            is closed. It carries out the nonblocking accesses of a file that the program never closes.
 */
#include <mpi.h>
#include <pthread.h>

#include "mpiox_print.h"
#include "mpiox_typemap_mpi.h"
#include "mpiox_datatype.h"
#include "mpiox_topology.h"
#include "mpiox_mpi_report.h"
#include "mpiox_forwarded.h"
#include "mpiox_service.h"
#include "mpiox_handle.h"
#include "mpiox_finalize.h"
#include "mpiox_preload_check.h"
#include "mpiox_nonblocking.h"
#include "mpiox_launcher.h"
#include "mpiox_live.h"
#include "mpiox_memory.h"
#include "mpiox_tools.h"
#include "mpiox_witness.h"

#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool prepared, seen_from_init;

static void finish_accesses(mpiox_handle *handle, void *context)
{
    (void)context;
    mpiox_nonblocking_drain(handle);
}

/* One line for each file of several ranks, and for those that rank 0 of all has alone. */
static void report_unclosed(mpiox_handle *handle, void *context)
{
    const int *world_rank = context;
    const char *fate = mpiox_forwarded_is_hidden(handle->forwarded) ? "; it stays under its hidden name"
                       : handle->opened_as != NULL                  ? handle->opener->unclosed
                                                                    : "";

    if (handle->rank == 0 && (handle->ranks > 1 || *world_rank == 0))
        mpiox_print("mpiio_ext: %s: not closed before MPI_Finalize: call MPI_File_close%s\n", handle->path, fate);
}

static void finish_files(void)
{
    int rank = 0;

    mpiox_handle_each(finish_accesses, NULL);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (seen_from_init) /* else other attributes may close them yet */
        mpiox_handle_each(report_unclosed, &rank);
}

/* With MPI_COMM_WORLD. */
static void begin_live_page(void)
{
    int rank = 0, ranks = 1;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    mpiox_live_begin(rank, ranks);
}

/* The run statistics use collectives on MPI_COMM_WORLD, the topologies drop communicators and shared memory, the
 * datatype cache drops its attribute key. */
static int clean_up(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    finish_files();
    mpiox_mpi_run_finalize();
    mpiox_forwarded_end();
    mpiox_service_finalize();
    mpiox_topology_finalize();
    mpiox_typemap_mpi_finalize();
    mpiox_datatype_finalize();
    mpiox_live_end();
    mpiox_memory_finalize();
    return MPI_SUCCESS;
}

void mpiox_finalize_prepare(void)
{
    int key = MPI_KEYVAL_INVALID;

    pthread_mutex_lock(&lock);
    if (!prepared && mpiox_preload_check_world() &&
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, clean_up, &key, NULL) == MPI_SUCCESS) {
        prepared = PMPI_Comm_set_attr(MPI_COMM_SELF, key, NULL) == MPI_SUCCESS;
        PMPI_Comm_free_keyval(&key); /* the attribute keeps it alive */
        begin_live_page();
    }
    pthread_mutex_unlock(&lock);
}

/* Print a line if the launcher is not this MPI's. Start the delegates that the environment requests, unless ranks
 * without this library would not take part. */
static void begun(int result)
{
    mpiox_preload_check preload;

    seen_from_init = !prepared;
    mpiox_finalize_prepare();
    if (result != MPI_SUCCESS)
        return;
    mpiox_witness_report(MPIOX_WITNESSED_INIT);
    mpiox_launcher_check();
    if (!mpiox_service_is_asked_for())
        return;
    mpiox_preload_check_examine(MPI_COMM_WORLD, &preload);
    if (preload.without_library == NULL)
        mpiox_service_init();
}

EXPORT int MPI_Init(int *argc, char ***argv)
{
    const int result = PMPI_Init(argc, argv);

    begun(result);
    return result;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    const int result = PMPI_Init_thread(argc, argv, required, provided);

    begun(result);
    return result;
}

EXPORT int MPI_Finalize(void)
{
    mpiox_tools_finalize();
    return PMPI_Finalize();
}
