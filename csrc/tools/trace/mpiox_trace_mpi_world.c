/*
 * mpiox_trace_mpi_world.c - see mpiox_trace_mpi_world.h; and the calls of MPI that concern a whole process.
 *
 * MPI_Init gives the rank. Clocks of processes are compared by the moments at which they leave a barrier.
 */
#include "mpiox_trace_mpi_world.h"

#include <dlfcn.h>

#include "mpiox_recording.h"
#include "mpiox_trace_clock.h"
#include "mpiox_trace_sink.h"
#include "mpiox_trace_wrap.h"
#include "mpiox_other_abi.h"

BEHIND(int, PMPI_Initialized, (int *))
BEHIND(int, PMPI_Comm_rank, (MPI_Comm, int *))
BEHIND(int, PMPI_Comm_size, (MPI_Comm, int *))

#ifdef OPEN_MPI
/* A program may contain a copy of the object, which then is the one that counts: so the global scope comes first. The
 * look-up takes longer than most calls do: once. */
static void *object_of(_Atomic(void *) *found, const char *name)
{
    void *object = atomic_load_explicit(found, memory_order_acquire);

    if (object == NULL) {
        object = dlsym(RTLD_DEFAULT, name);
        if (object == NULL)
            return mpiox_trace_next(found, name);
        atomic_store_explicit(found, object, memory_order_release);
    }
    return object;
}

MPI_Comm mpiox_trace_mpi_world(void)
{
    static _Atomic(void *) found;
    return (MPI_Comm)object_of(&found, "ompi_mpi_comm_world");
}

MPI_Comm mpiox_trace_mpi_self(void)
{
    static _Atomic(void *) found;
    return (MPI_Comm)object_of(&found, "ompi_mpi_comm_self");
}

MPI_Request mpiox_trace_mpi_no_request(void)
{
    static _Atomic(void *) found;
    return (MPI_Request)object_of(&found, "ompi_request_null");
}

MPI_Info mpiox_trace_mpi_no_info(void)
{
    static _Atomic(void *) found;
    return (MPI_Info)object_of(&found, "ompi_mpi_info_null");
}
#else
MPI_Info mpiox_trace_mpi_no_info(void)
{
    return MPI_INFO_NULL;
}

MPI_Request mpiox_trace_mpi_no_request(void)
{
    return MPI_REQUEST_NULL;
}

MPI_Comm mpiox_trace_mpi_world(void)
{
    return MPI_COMM_WORLD;
}

MPI_Comm mpiox_trace_mpi_self(void)
{
    return MPI_COMM_SELF;
}
#endif

int mpiox_trace_mpi_kind_of(MPI_Comm comm, bool all)
{
    if (comm == mpiox_trace_mpi_self())
        return MPIOX_COMM_SELF;
    return all ? MPIOX_COMM_WORLD : MPIOX_COMM_OTHER;
}

/* The ranks of MPI_COMM_WORLD, when there are any: a program may use sessions alone. */
void mpiox_trace_mpi_learn_rank(void)
{
    static atomic_bool known;
    int up = 0, rank = -1, ranks = 0;

    if (atomic_load_explicit(&known, memory_order_relaxed))
        return;
    mpiox_trace_self.inside++;
    const bool answered = NEXT(PMPI_Initialized) != NULL && NEXT(PMPI_Initialized)(&up) == MPI_SUCCESS && up &&
                          NEXT(PMPI_Comm_rank)(mpiox_trace_mpi_world(), &rank) == MPI_SUCCESS &&
                          NEXT(PMPI_Comm_size)(mpiox_trace_mpi_world(), &ranks) == MPI_SUCCESS;
    mpiox_trace_self.inside--;
    if (!answered)
        return;
    mpiox_trace_lock();
    if (!atomic_exchange(&known, true))
        mpiox_trace_rank(rank, ranks);
    mpiox_trace_unlock();
}

WRAP(int, MPI_Init, (int *argc, char ***argv))
{
    mpiox_tracefile_record call;

    if (!mpiox_trace_enabled())
        return NEXT(MPI_Init)(argc, argv);
    mpiox_other_abi_refuse((const void *)NEXT(PMPI_Initialized));
    mpiox_trace_enter(&call, OP_MPI_Init, MPIOX_TRACEFILE_MPI, 0);
    const int result = NEXT(MPI_Init)(argc, argv);
    mpiox_trace_stop(&call);
    mpiox_trace_mpi_learn_rank();
    mpiox_trace_leave(&call, result);
    return result;
}

WRAP(int, MPI_Init_thread, (int *argc, char ***argv, int required, int *provided))
{
    mpiox_tracefile_record call;

    if (!mpiox_trace_enabled())
        return NEXT(MPI_Init_thread)(argc, argv, required, provided);
    mpiox_other_abi_refuse((const void *)NEXT(PMPI_Initialized));
    mpiox_trace_enter(&call, OP_MPI_Init_thread, MPIOX_TRACEFILE_MPI, 0);
    const int result = NEXT(MPI_Init_thread)(argc, argv, required, provided);
    mpiox_trace_stop(&call);
    mpiox_trace_mpi_learn_rank();
    mpiox_trace_extra(&call, MPIOX_KEY_REQUIRED, required);
    mpiox_trace_extra(&call, MPIOX_KEY_PROVIDED, *provided);
    mpiox_trace_leave(&call, result);
    return result;
}

WRAP(int, MPI_Finalize, (void))
{
    mpiox_tracefile_record call;

    if (!mpiox_trace_enabled())
        return NEXT(MPI_Finalize)();
    mpiox_trace_finalizing();
    mpiox_trace_enter(&call, OP_MPI_Finalize, MPIOX_TRACEFILE_MPI, 0);
    const int result = NEXT(MPI_Finalize)();
    mpiox_trace_leave(&call, result);
    return result;
}

/* The end of the others is recorded before they can be ended. */
WRAP(int, MPI_Abort, (MPI_Comm comm, int code))
{
    if (mpiox_trace_enabled() && mpiox_trace_sink_chosen->counts)
        mpiox_recording_note_abort(code, mpiox_trace_now());
    return NEXT(MPI_Abort)(comm, code);
}

WRAP(int, MPI_Barrier, (MPI_Comm comm))
{
    mpiox_tracefile_record call;

    if (!mpiox_trace_enabled())
        return NEXT(MPI_Barrier)(comm);
    mpiox_trace_enter(&call, OP_MPI_Barrier, MPIOX_TRACEFILE_MPI, 0);
    const int result = NEXT(MPI_Barrier)(comm);
    mpiox_trace_stop(&call);
    mpiox_trace_extra(&call, MPIOX_KEY_COMM, mpiox_trace_mpi_kind_of(comm, comm == mpiox_trace_mpi_world()));
    mpiox_trace_leave(&call, result);
    return result;
}
