/*
 * mpiox_trace_mpi.c - see mpiox_trace_mpi.h; and MPI_Init and MPI_Finalize.
 *
 * Problem.   A nonblocking access ends in any of eight functions, which programs mostly call for messages.
 * Algorithm. A list has all accesses that have been started. A wait or test with one of them among its requests is a
 *            call in which accesses may be made; when it returns, every access that has changed its handle is complete.
 */
#include "mpiox_trace_mpi.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_recording.h"
#include "mpiox_recording_format.h"
#include "mpiox_trace_clock.h"
#include "mpiox_trace_descriptors.h"
#include "mpiox_trace_error_classes.h"
#include "mpiox_trace_members.h"
#include "mpiox_trace_names.h"
#include "mpiox_trace_requests.h"
#include "mpiox_trace_sink.h"
#include "mpiox_trace_system.h"
#include "mpiox_trace_view.h"
#include "mpiox_other_abi.h"

#ifndef MPI_VERSION
#error "mpi.h of an MPI library is needed"
#endif

BEHIND(int, PMPI_Initialized, (int *))
BEHIND(int, PMPI_Comm_rank, (MPI_Comm, int *))
BEHIND(int, PMPI_Comm_size, (MPI_Comm, int *))
BEHIND(int, PMPI_Comm_compare, (MPI_Comm, MPI_Comm, int *))
BEHIND(int, PMPI_Comm_group, (MPI_Comm, MPI_Group *))
BEHIND(int, PMPI_Group_translate_ranks, (MPI_Group, int, const int *, MPI_Group, int *))
BEHIND(int, PMPI_Group_free, (MPI_Group *))
BEHIND(int, PMPI_Error_class, (int, int *))
BEHIND(int, PMPI_Type_size_x, (MPI_Datatype, MPI_Count *))
BEHIND(int, PMPI_Type_get_extent_x, (MPI_Datatype, MPI_Count *, MPI_Count *))
BEHIND(int, PMPI_Type_get_name, (MPI_Datatype, char *, int *))

/* ---- who we are -------------------------------------------------------------------------------------------------- */

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

static MPI_Comm world(void)
{
    static _Atomic(void *) found;
    return (MPI_Comm)object_of(&found, "ompi_mpi_comm_world");
}

static MPI_Comm self(void)
{
    static _Atomic(void *) found;
    return (MPI_Comm)object_of(&found, "ompi_mpi_comm_self");
}

static MPI_Request no_request(void)
{
    static _Atomic(void *) found;
    return (MPI_Request)object_of(&found, "ompi_request_null");
}

static MPI_Info no_info(void)
{
    static _Atomic(void *) found;
    return (MPI_Info)object_of(&found, "ompi_mpi_info_null");
}
#else
static MPI_Info no_info(void)
{
    return MPI_INFO_NULL;
}

static MPI_Request no_request(void)
{
    return MPI_REQUEST_NULL;
}

static MPI_Comm world(void)
{
    return MPI_COMM_WORLD;
}

static MPI_Comm self(void)
{
    return MPI_COMM_SELF;
}
#endif

/* The ranks of MPI_COMM_WORLD, when there are any: a program may use sessions alone. */
static void learn_rank(void)
{
    static atomic_bool known;
    int up = 0, rank = -1, ranks = 0;

    if (atomic_load_explicit(&known, memory_order_relaxed))
        return;
    mpiox_trace_self.inside++;
    const bool answered = NEXT(PMPI_Initialized) != NULL && NEXT(PMPI_Initialized)(&up) == MPI_SUCCESS && up &&
                          NEXT(PMPI_Comm_rank)(world(), &rank) == MPI_SUCCESS &&
                          NEXT(PMPI_Comm_size)(world(), &ranks) == MPI_SUCCESS;
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
    learn_rank();
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
    learn_rank();
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
    if (mpiox_trace_enabled() && mpiox_trace_to->counts)
        mpiox_recording_note_abort(code, mpiox_trace_now());
    return NEXT(MPI_Abort)(comm, code);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

void mpiox_trace_mpi_enter(mpiox_tracefile_record *call, int operation, int64_t handle)
{
    mpiox_trace_enter_on(call, operation, MPIOX_TRACEFILE_MPIIO, mpiox_trace_handle_file(handle), handle);
}

void mpiox_trace_mpi_enter_name(mpiox_tracefile_record *call, int operation, const char *name)
{
    int32_t file = mpiox_trace_file_number(AT_FDCWD, name);

    learn_rank();
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

    if (result != MPI_SUCCESS && mpiox_trace_to->counts) {
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

    if (NEXT(PMPI_Comm_group)(world(), &every) != MPI_SUCCESS)
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
    if (comm != world() && comm != self())
        NEXT(PMPI_Comm_compare)(comm, world(), &which);
    mpiox_trace_self.inside--;
    const bool all = comm == world() || which == MPI_CONGRUENT || which == MPI_IDENT;
    mpiox_trace_extra(call, MPIOX_KEY_COMM, comm == self() ? 2 : all ? 1 : 0);
    mpiox_trace_extra(call, MPIOX_KEY_COMM_SIZE, size);
    if (comm != self() && !all && size > 0 && !mpiox_trace_to->counts)
        add_members(call, comm, size);
}

void mpiox_trace_mpi_hints(mpiox_tracefile_record *call, MPI_Info info)
{
    if (info != no_info())
        mpiox_trace_extra(call, MPIOX_KEY_HINTS, 1);
}

static int64_t type_size(MPI_Datatype datatype)
{
    MPI_Count size = 0;

    mpiox_trace_self.inside++;
    const bool known = NEXT(PMPI_Type_size_x)(datatype, &size) == MPI_SUCCESS && size >= 0;
    mpiox_trace_self.inside--;
    return known ? (int64_t)size : MPIOX_TRACEFILE_NONE;
}

void mpiox_trace_mpi_data(mpiox_tracefile_record *call, int64_t count, MPI_Datatype datatype)
{
    const int64_t bytes = call->result == 0 ? type_size(datatype) : MPIOX_TRACEFILE_NONE;

    mpiox_trace_extra(call, MPIOX_KEY_COUNT, count);
    if (bytes != MPIOX_TRACEFILE_NONE) {
        mpiox_trace_extra(call, MPIOX_KEY_TYPE_SIZE, bytes);
        call->size = count * bytes;
    }
}

enum { VIEW_PARTS = 5, VIEW_PART_BYTES = 8000 };

/* The file type, as members "filetype", "filetype1" ... of the JSON object: a text of a trace has a largest length. */
static void add_filetype(mpiox_tracefile_record *call, MPI_Datatype filetype)
{
    char *text = malloc(VIEW_PARTS * VIEW_PART_BYTES), *part = malloc(VIEW_PART_BYTES + 64);

    mpiox_trace_self.inside++;
    const bool known = text != NULL && part != NULL &&
                       mpiox_trace_view_text(filetype, text, VIEW_PARTS * VIEW_PART_BYTES);
    mpiox_trace_self.inside--;
    const int length = known ? (int)strlen(text) : 0;
    for (int number = 0, at = 0; at < length; number++, at += VIEW_PART_BYTES) {
        snprintf(part, VIEW_PART_BYTES + 64, "\"filetype%.*d\":\"%.*s\"", number > 0, number, VIEW_PART_BYTES,
                 text + at);
        mpiox_trace_extra_text(call, MPIOX_KEY_DETAILS, part);
    }
    free(text);
    free(part);
}

/* The first views of a file show the shape of the arrays in it. */
static void record_view(const mpiox_tracefile_record *call, MPI_Datatype etype, MPI_Datatype filetype)
{
    char name[MPI_MAX_OBJECT_NAME] = "", text[MPIOX_RECORDING_VIEW_BYTES + MPI_MAX_OBJECT_NAME];
    int length = 0;

    mpiox_trace_lock();
    bool known = call->depth == 0 && mpiox_recording_wants_view(call->file);
    mpiox_trace_unlock();
    if (!known)
        return;
    mpiox_trace_self.inside++;
    if (NEXT(PMPI_Type_get_name)(etype, name, &length) != MPI_SUCCESS || strchr(name, ' ') != NULL)
        name[0] = 0;
    const int at = sprintf(text, "%s ", name);
    known = mpiox_trace_view_text(filetype, text + at, MPIOX_RECORDING_VIEW_BYTES);
    mpiox_trace_self.inside--;
    if (!known || (text[at] >= '0' && text[at] <= '9')) /* the file as it is */
        return;
    mpiox_trace_lock();
    mpiox_recording_add_view(call->file, text);
    mpiox_trace_unlock();
}

void mpiox_trace_mpi_view(mpiox_tracefile_record *call, int64_t displacement, MPI_Datatype etype, MPI_Datatype filetype,
                          const char *datarep)
{
    MPI_Count lower = 0, extent = 0;

    mpiox_trace_extra(call, MPIOX_KEY_DISPLACEMENT, displacement);
    mpiox_trace_extra_text(call, MPIOX_KEY_DATAREP, datarep);
    if (call->result != 0) /* the types may be wrong: MPI would call an error handler */
        return;
    mpiox_trace_extra(call, MPIOX_KEY_ETYPE_SIZE, type_size(etype));
    mpiox_trace_extra(call, MPIOX_KEY_FILETYPE_SIZE, type_size(filetype));
    mpiox_trace_self.inside++;
    NEXT(PMPI_Type_get_extent_x)(filetype, &lower, &extent);
    mpiox_trace_self.inside--;
    mpiox_trace_extra(call, MPIOX_KEY_FILETYPE_EXTENT, (int64_t)extent);
    if (mpiox_trace_to->counts)
        record_view(call, etype, filetype);
    else
        add_filetype(call, filetype);
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

/* ---- requests ---------------------------------------------------------------------------------------------------- */

void mpiox_trace_mpi_request(mpiox_tracefile_record *call, MPI_Request request, int result)
{
    if (result != MPI_SUCCESS)
        return;
    if (request == no_request()) {
        mpiox_trace_extra(call, MPIOX_KEY_COMPLETE, 1);
        return;
    }
    const int64_t number = mpiox_trace_request_add(MPIOX_TRACE_HANDLE(request), call->handle, (int32_t)call->file);
    if (number > 0)
        mpiox_trace_extra(call, MPIOX_KEY_REQUEST, number);
}

/* Room for one more. Without memory for more the others are completed without a record of their own. */
static bool has_room(mpiox_trace_waiting *waiting)
{
    if (waiting->n < waiting->capacity)
        return true;
    const int64_t bytes = (int64_t)waiting->capacity * (int64_t)sizeof *waiting->noted;
    mpiox_trace_noted *more = mpiox_trace_map(-1, 0, 2 * bytes);
    if (more == NULL)
        return false;
    memcpy(more, waiting->noted, (size_t)bytes);
    if (waiting->noted != waiting->few)
        mpiox_trace_unmap(waiting->noted, bytes);
    waiting->noted = more;
    waiting->capacity *= 2;
    return true;
}

static void forget(mpiox_trace_waiting *waiting)
{
    if (waiting->noted != waiting->few)
        mpiox_trace_unmap(waiting->noted, (int64_t)waiting->capacity * (int64_t)sizeof *waiting->noted);
}

bool mpiox_trace_mpi_wait(mpiox_trace_waiting *waiting, int operation, int count, const MPI_Request *requests)
{
    if (!mpiox_trace_enabled() || !mpiox_trace_requests_any() || requests == NULL)
        return false;
    waiting->requests = requests;
    waiting->n = 0;
    waiting->capacity = MPIOX_TRACE_REQUESTS;
    waiting->noted = waiting->few;
    for (int i = 0; i < count; i++) {
        const int64_t request = MPIOX_TRACE_HANDLE(requests[i]);

        if (mpiox_trace_request_is(request)) {
            if (!has_room(waiting))
                break;
            waiting->noted[waiting->n++] = (mpiox_trace_noted){.index = i, .request = request};
        }
    }
    if (waiting->n > 0)
        mpiox_trace_enter(&waiting->call, operation, MPIOX_TRACEFILE_MPI, 0);
    return waiting->n > 0;
}

void mpiox_trace_mpi_waited(mpiox_trace_waiting *waiting, int result)
{
    mpiox_tracefile_record *call = &waiting->call;
    bool first = true;

    mpiox_trace_stop(call);
    for (int i = 0; i < waiting->n; i++) {
        const mpiox_trace_noted *noted = &waiting->noted[i];
        mpiox_trace_request found;

        if (MPIOX_TRACE_HANDLE(waiting->requests[noted->index]) == noted->request ||
            !mpiox_trace_request_take(noted->request, &found))
            continue;
        call->handle = found.handle;
        call->file = found.file;
        call->closes = first;
        call->extras = 0;
        mpiox_trace_extra(call, MPIOX_KEY_REQUEST, found.number);
        mpiox_trace_mpi_leave(call, result);
        first = false;
    }
    if (first)
        mpiox_trace_leave_without(call);
    forget(waiting);
}

void mpiox_trace_mpi_looked(mpiox_trace_waiting *waiting, int result, bool found)
{
    mpiox_tracefile_record *call = &waiting->call;

    mpiox_trace_stop(call);
    forget(waiting);
    if (!found || result != MPI_SUCCESS) {
        mpiox_trace_leave_without(call);
        return;
    }
    mpiox_trace_extra(call, MPIOX_KEY_VALUE, 1);
    mpiox_trace_mpi_leave(call, result);
}

/* The access goes on; its number is free for another one. */
WRAP(int, MPI_Request_free, (MPI_Request * request))
{
    mpiox_trace_request found;
    const int64_t freed = mpiox_trace_enabled() && request != NULL ? MPIOX_TRACE_HANDLE(*request) : 0;
    const int result = NEXT(MPI_Request_free)(request);

    if (freed != 0 && result == MPI_SUCCESS && mpiox_trace_requests_any())
        (void)mpiox_trace_request_take(freed, &found);
    return result;
}

/* ---- barriers: the moments by which clocks are compared ---------------------------------------------------------- */

WRAP(int, MPI_Barrier, (MPI_Comm comm))
{
    mpiox_tracefile_record call;

    if (!mpiox_trace_enabled())
        return NEXT(MPI_Barrier)(comm);
    mpiox_trace_enter(&call, OP_MPI_Barrier, MPIOX_TRACEFILE_MPI, 0);
    const int result = NEXT(MPI_Barrier)(comm);
    mpiox_trace_stop(&call);
    mpiox_trace_extra(&call, MPIOX_KEY_COMM, comm == self() ? 2 : comm == world() ? 1 : 0);
    mpiox_trace_leave(&call, result);
    return result;
}
