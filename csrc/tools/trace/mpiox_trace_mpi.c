/*
 * mpiox_trace_mpi.c - calls on files, their names, errors, communicators and hints: see mpiox_trace_mpi.h.
 */
#include "mpiox_trace_mpi.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_trace_error_classes.h"
#include "mpiox_trace_members.h"
#include "mpiox_trace_mpi_world.h"
#include "mpiox_trace_names.h"
#include "mpiox_trace_sink.h"

BEHIND(int, PMPI_Comm_size, (MPI_Comm, int *))
BEHIND(int, PMPI_Comm_compare, (MPI_Comm, MPI_Comm, int *))
BEHIND(int, PMPI_Comm_group, (MPI_Comm, MPI_Group *))
BEHIND(int, PMPI_Group_translate_ranks, (MPI_Group, int, const int *, MPI_Group, int *))
BEHIND(int, PMPI_Group_free, (MPI_Group *))
BEHIND(int, PMPI_Error_class, (int, int *))

void mpiox_trace_mpi_enter(mpiox_tracefile_record *call, int operation, int64_t handle)
{
    mpiox_trace_enter_on(call, operation, MPIOX_TRACEFILE_MPIIO, mpiox_trace_handle_file(handle), handle);
}

void mpiox_trace_mpi_enter_name(mpiox_tracefile_record *call, int operation, const char *name)
{
    int32_t file = mpiox_trace_file_number(AT_FDCWD, name);

    mpiox_trace_mpi_learn_rank();
    if (file >= MPIOX_TRACE_LEFT_OUT) { /* the system's, and yet a file of the program */
        mpiox_trace_lock();
        file = mpiox_trace_names_claim(file);
        mpiox_trace_unlock();
    }
    if (file < 0 && name != NULL)
        file = mpiox_trace_text_number(name);
    mpiox_trace_enter(call, operation, MPIOX_TRACEFILE_MPIIO, file);
}

static int64_t class_number(int class)
{
    static const int classes[] = {
#define CLASS_VALUE(name) name,
        MPIOX_TRACE_ERROR_CLASSES(CLASS_VALUE)};

    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (classes[i] == class)
            return (int64_t)i + 1;
    return -1;
}

void mpiox_trace_mpi_leave(mpiox_tracefile_record *call, int result)
{
    int class = result;

    if (result != MPI_SUCCESS && mpiox_trace_sink_chosen->counts) {
        mpiox_trace_self.inside++;
        NEXT(PMPI_Error_class)(result, &class);
        mpiox_trace_self.inside--;
        mpiox_trace_extra(call, MPIOX_KEY_ERRNO, class_number(class));
    }
    mpiox_trace_leave(call, result);
}

enum { MEMBERS_BYTES = 4000 };

/* The ranks of MPI_COMM_WORLD that a communicator has, in its order: `ranks` has room for 2 * size. */
static bool ranks_of(MPI_Comm comm, int size, int *ranks)
{
    MPI_Group every, some;

    if (NEXT(PMPI_Comm_group)(mpiox_trace_mpi_world(), &every) != MPI_SUCCESS)
        return false;
    bool known = NEXT(PMPI_Comm_group)(comm, &some) == MPI_SUCCESS;
    if (known) {
        for (int i = 0; i < size; i++)
            ranks[size + i] = i;
        known = NEXT(PMPI_Group_translate_ranks)(some, size, ranks + size, every, ranks) == MPI_SUCCESS;
        NEXT(PMPI_Group_free)(&some);
    }
    NEXT(PMPI_Group_free)(&every);
    for (int i = 0; known && i < size; i++)
        known = ranks[i] >= 0; /* MPI_UNDEFINED: of a process that MPI_COMM_WORLD does not have */
    return known;
}

/* The ranks of a communicator, as member "members" of the JSON object. */
static void add_members(mpiox_tracefile_record *call, MPI_Comm comm, int size)
{
    static const char head[] = "\"members\":\"";
    enum { HEAD = sizeof head - 1 };
    int *ranks = malloc(2 * sizeof *ranks * (size_t)size);
    char *text = malloc(MEMBERS_BYTES + 1);

    mpiox_trace_self.inside++;
    const bool known = ranks != NULL && text != NULL && ranks_of(comm, size, ranks);
    mpiox_trace_self.inside--;
    if (known && mpiox_trace_members_text(ranks, size, text + HEAD, MEMBERS_BYTES - HEAD)) {
        memcpy(text, head, HEAD);
        strcat(text, "\"");
        mpiox_trace_extra_text(call, MPIOX_KEY_DETAILS, text);
    }
    free(ranks);
    free(text);
}

void mpiox_trace_mpi_opened(mpiox_tracefile_record *call, MPI_Comm comm, MPI_File file, int result)
{
    int size = 0, which = MPI_UNEQUAL;

    if (result != MPI_SUCCESS)
        return;
    call->handle = MPIOX_TRACE_HANDLE(file);
    mpiox_trace_handle_open(call->handle, (int32_t)call->file);
    mpiox_trace_self.inside++;
    NEXT(PMPI_Comm_size)(comm, &size);
    if (comm != mpiox_trace_mpi_world() && comm != mpiox_trace_mpi_self())
        NEXT(PMPI_Comm_compare)(comm, mpiox_trace_mpi_world(), &which);
    mpiox_trace_self.inside--;
    const bool all = comm == mpiox_trace_mpi_world() || which == MPI_CONGRUENT || which == MPI_IDENT;
    mpiox_trace_extra(call, MPIOX_KEY_COMM, mpiox_trace_mpi_kind_of(comm, all));
    mpiox_trace_extra(call, MPIOX_KEY_COMM_SIZE, size);
    if (comm != mpiox_trace_mpi_self() && !all && size > 0 && !mpiox_trace_sink_chosen->counts)
        add_members(call, comm, size);
}

void mpiox_trace_mpi_hints(mpiox_tracefile_record *call, MPI_Info info)
{
    if (info != mpiox_trace_mpi_no_info())
        mpiox_trace_extra(call, MPIOX_KEY_HINTS, 1);
}

int64_t mpiox_trace_mpi_amode(int amode)
{
    static const int modes[] = {MPI_MODE_CREATE, MPI_MODE_RDONLY,          MPI_MODE_WRONLY,
                                MPI_MODE_RDWR,   MPI_MODE_DELETE_ON_CLOSE, MPI_MODE_UNIQUE_OPEN,
                                MPI_MODE_EXCL,   MPI_MODE_APPEND,          MPI_MODE_SEQUENTIAL};
    int64_t value = 0;

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (amode & modes[i])
            value |= INT64_C(1) << i;
    return value;
}

int64_t mpiox_trace_mpi_whence(int whence)
{
    return whence == MPI_SEEK_SET   ? SEEK_SET
           : whence == MPI_SEEK_CUR ? SEEK_CUR
           : whence == MPI_SEEK_END ? SEEK_END
                                    : -1;
}
