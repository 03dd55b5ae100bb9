/*
 * mpiox_engine_mpiio.c - MPI-IO calls of the engine. Data is bytes; offsets count bytes of the view's data stream.
 *
 * A view has the etype MPI_BYTE, so that offsets have the path's meaning, whatever etype the program had. Data too long
 * for a count of MPI-3 moves as one element of a datatype.
 */
#include <limits.h>

#include "mpiox_engine_impl.h"

enum { CHUNK = 1 << 20 };

#define CALL(name) static int64_t call_##name(mpiox_engine *e, int64_t i, bool *failed)

/* The data of a call. */
typedef struct message {
    MPI_Datatype type;
    int count;
} message;

static int64_t checked(int result, bool *failed)
{
    *failed = result != MPI_SUCCESS;
    return result;
}

static MPI_File file_of(const mpiox_engine *e, int64_t i)
{
    return mpiox_engine_slot_of(e, i)->file;
}

static message message_of(const mpiox_engine *e, int64_t i)
{
    const int64_t bytes = e->muted ? 0 : e->plan->size[i];
    if (bytes <= INT_MAX)
        return (message){.type = MPI_BYTE, .count = (int)bytes};
    MPI_Datatype chunk;
    message large = {.type = MPI_BYTE, .count = 0};
    int lengths[] = {(int)(bytes / CHUNK), (int)(bytes % CHUNK)};
    MPI_Aint places[] = {0, (MPI_Aint)(bytes / CHUNK * CHUNK)};
    if (MPI_Type_contiguous(CHUNK, MPI_BYTE, &chunk) != MPI_SUCCESS)
        return large;
    MPI_Datatype types[] = {chunk, MPI_BYTE};
    if (MPI_Type_create_struct(2, lengths, places, types, &large.type) == MPI_SUCCESS &&
        MPI_Type_commit(&large.type) == MPI_SUCCESS)
        large.count = 1;
    MPI_Type_free(&chunk);
    return large;
}

/* A type that a call uses may be freed while it is under way. */
static int64_t done(int result, message moved, bool *failed)
{
    if (moved.type != MPI_BYTE)
        MPI_Type_free(&moved.type);
    return checked(result, failed);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* The place of a request for row i; a call without a wait gives its place up. */
static mpiox_engine_request *start_of(mpiox_engine *e, int64_t i)
{
    mpiox_engine_request *at = &e->requests[e->plan->request[i]];
    (void)mpiox_engine_wait(at);
    at->slot = e->plan->slot[i];
    return at;
}

CALL(wait)
{
    const int32_t request = e->plan->request[i];
    if (request >= 0)
        return checked(mpiox_engine_wait(&e->requests[request]), failed);
    return checked(mpiox_engine_wait_for_slot(e, e->plan->slot[i]), failed);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

CALL(open)
{
    mpiox_engine_slot *slot = mpiox_engine_slot_of(e, i);
    const MPI_Comm communicator = COMM_OF(e->plan->communicator[i]);
    const int result = MPI_File_open(communicator, mpiox_engine_path_of(e, i), e->plan->flags[i],
                                     INFO_OF(e->plan->info), &slot->file);
    slot->is_open = result == MPI_SUCCESS;
    slot->alone = communicator == MPI_COMM_SELF;
    return checked(result, failed);
}

/* First wait for requests without a wait: MPI demands it. */
CALL(close)
{
    mpiox_engine_slot *slot = mpiox_engine_slot_of(e, i);
    (void)mpiox_engine_wait_for_slot(e, e->plan->slot[i]);
    slot->is_open = false;
    return checked(MPI_File_close(&slot->file), failed);
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

#define SINK(i) e->sink
#define DATA(i) mpiox_engine_data_of(e, i)

#define MOVE(name, function, memory)                                                                                   \
    CALL(name)                                                                                                         \
    {                                                                                                                  \
        const message m = message_of(e, i);                                                                            \
        return done(function(file_of(e, i), memory(i), m.count, m.type, MPI_STATUS_IGNORE), m, failed);                \
    }
#define MOVE_AT(name, function, memory)                                                                                \
    CALL(name)                                                                                                         \
    {                                                                                                                  \
        const message m = message_of(e, i);                                                                            \
        const MPI_Offset at = e->plan->offset[i];                                                                      \
        return done(function(file_of(e, i), at, memory(i), m.count, m.type, MPI_STATUS_IGNORE), m, failed);            \
    }
#define START(name, function, memory)                                                                                  \
    CALL(name)                                                                                                         \
    {                                                                                                                  \
        const message m = message_of(e, i);                                                                            \
        mpiox_engine_request *at = start_of(e, i);                                                                     \
        return done(function(file_of(e, i), memory, m.count, m.type, &at->request), m, failed);                        \
    }
#define START_AT(name, function, memory)                                                                               \
    CALL(name)                                                                                                         \
    {                                                                                                                  \
        const message m = message_of(e, i);                                                                            \
        mpiox_engine_request *at = start_of(e, i);                                                                     \
        const MPI_Offset place = e->plan->offset[i];                                                                   \
        return done(function(file_of(e, i), place, memory, m.count, m.type, &at->request), m, failed);                 \
    }
#define BEGIN(name, function, memory)                                                                                  \
    CALL(name)                                                                                                         \
    {                                                                                                                  \
        const message m = message_of(e, i);                                                                            \
        return done(function(file_of(e, i), memory(i), m.count, m.type), m, failed);                                   \
    }
#define BEGIN_AT(name, function, memory)                                                                               \
    CALL(name)                                                                                                         \
    {                                                                                                                  \
        const message m = message_of(e, i);                                                                            \
        return done(function(file_of(e, i), e->plan->offset[i], memory(i), m.count, m.type), m, failed);               \
    }
#define END(name, function, memory)                                                                                    \
    CALL(name)                                                                                                         \
    {                                                                                                                  \
        return checked(function(file_of(e, i), memory(i), MPI_STATUS_IGNORE), failed);                                 \
    }

/* A split collective names the same memory at its end as at its beginning: the beginning of what is written. */
#define WHOLE(i) ((void)(i), e->data)

MOVE(read, MPI_File_read, SINK)
MOVE(write, MPI_File_write, DATA)
MOVE(read_all, MPI_File_read_all, SINK)
MOVE(write_all, MPI_File_write_all, DATA)
MOVE(read_shared, MPI_File_read_shared, SINK)
MOVE(write_shared, MPI_File_write_shared, DATA)
MOVE(read_ordered, MPI_File_read_ordered, SINK)
MOVE(write_ordered, MPI_File_write_ordered, DATA)
MOVE_AT(read_at, MPI_File_read_at, SINK)
MOVE_AT(write_at, MPI_File_write_at, DATA)
MOVE_AT(read_at_all, MPI_File_read_at_all, SINK)
MOVE_AT(write_at_all, MPI_File_write_at_all, DATA)
START(iread, MPI_File_iread, at->room)
START(iwrite, MPI_File_iwrite, DATA(i))
START(iread_all, MPI_File_iread_all, at->room)
START(iwrite_all, MPI_File_iwrite_all, DATA(i))
START(iread_shared, MPI_File_iread_shared, at->room)
START(iwrite_shared, MPI_File_iwrite_shared, DATA(i))
START_AT(iread_at, MPI_File_iread_at, at->room)
START_AT(iwrite_at, MPI_File_iwrite_at, DATA(i))
START_AT(iread_at_all, MPI_File_iread_at_all, at->room)
START_AT(iwrite_at_all, MPI_File_iwrite_at_all, DATA(i))
BEGIN(read_all_begin, MPI_File_read_all_begin, SINK)
BEGIN(write_all_begin, MPI_File_write_all_begin, WHOLE)
BEGIN(read_ordered_begin, MPI_File_read_ordered_begin, SINK)
BEGIN(write_ordered_begin, MPI_File_write_ordered_begin, WHOLE)
BEGIN_AT(read_at_all_begin, MPI_File_read_at_all_begin, SINK)
BEGIN_AT(write_at_all_begin, MPI_File_write_at_all_begin, WHOLE)
END(read_all_end, MPI_File_read_all_end, SINK)
END(write_all_end, MPI_File_write_all_end, WHOLE)
END(read_ordered_end, MPI_File_read_ordered_end, SINK)
END(write_ordered_end, MPI_File_write_ordered_end, WHOLE)
END(read_at_all_end, MPI_File_read_at_all_end, SINK)
END(write_at_all_end, MPI_File_write_at_all_end, WHOLE)

/* ---- everything else --------------------------------------------------------------------------------------------- */

/* MPI has constants of its own for what <stdio.h> numbers. */
static int whence_of(const mpiox_engine *e, int64_t i)
{
    static const int whence[] = {MPI_SEEK_SET, MPI_SEEK_CUR, MPI_SEEK_END};
    return whence[(unsigned)e->plan->flags[i] % 3];
}

CALL(seek)
{
    return checked(MPI_File_seek(file_of(e, i), e->plan->offset[i], whence_of(e, i)), failed);
}

CALL(seek_shared)
{
    return checked(MPI_File_seek_shared(file_of(e, i), e->plan->offset[i], whence_of(e, i)), failed);
}

CALL(set_view)
{
    return checked(MPI_File_set_view(file_of(e, i), e->plan->offset[i], MPI_BYTE, TYPE_OF(e->plan->view[i]), "native",
                                     MPI_INFO_NULL),
                   failed);
}

static void free_type(MPI_Datatype type)
{
    int integers, addresses, types, combiner;
    if (MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
        combiner != MPI_COMBINER_NAMED)
        MPI_Type_free(&type);
}

CALL(get_view)
{
    MPI_Offset displacement;
    MPI_Datatype etype, filetype;
    char representation[MPI_MAX_DATAREP_STRING];
    const int result = MPI_File_get_view(file_of(e, i), &displacement, &etype, &filetype, representation);
    if (result == MPI_SUCCESS) {
        free_type(etype);
        free_type(filetype);
    }
    return checked(result, failed);
}

CALL(sync)
{
    return checked(MPI_File_sync(file_of(e, i)), failed);
}

static MPI_Offset length_of(const mpiox_engine *e, int64_t i)
{
    return e->plan->offset[i] >= 0 ? e->plan->offset[i] : e->plan->size[i];
}

CALL(set_size)
{
    return checked(MPI_File_set_size(file_of(e, i), length_of(e, i)), failed);
}

CALL(preallocate)
{
    return checked(MPI_File_preallocate(file_of(e, i), length_of(e, i)), failed);
}

CALL(set_atomicity)
{
    return checked(MPI_File_set_atomicity(file_of(e, i), e->plan->flags[i] != 0), failed);
}

CALL(get_atomicity)
{
    int atomic;
    return checked(MPI_File_get_atomicity(file_of(e, i), &atomic), failed);
}

CALL(get_size)
{
    MPI_Offset bytes;
    return checked(MPI_File_get_size(file_of(e, i), &bytes), failed);
}

CALL(get_position)
{
    MPI_Offset bytes;
    return checked(MPI_File_get_position(file_of(e, i), &bytes), failed);
}

CALL(get_position_shared)
{
    MPI_Offset bytes;
    return checked(MPI_File_get_position_shared(file_of(e, i), &bytes), failed);
}

CALL(get_byte_offset)
{
    MPI_Offset bytes;
    const MPI_Offset at = e->plan->offset[i] > 0 ? e->plan->offset[i] : 0;
    return checked(MPI_File_get_byte_offset(file_of(e, i), at, &bytes), failed);
}

CALL(get_type_extent)
{
    MPI_Aint extent;
    return checked(MPI_File_get_type_extent(file_of(e, i), MPI_BYTE, &extent), failed);
}

CALL(get_amode)
{
    int amode;
    return checked(MPI_File_get_amode(file_of(e, i), &amode), failed);
}

CALL(get_group)
{
    MPI_Group group;
    const int result = MPI_File_get_group(file_of(e, i), &group);
    if (result == MPI_SUCCESS)
        MPI_Group_free(&group);
    return checked(result, failed);
}

CALL(get_info)
{
    MPI_Info info = MPI_INFO_NULL;
    const int result = MPI_File_get_info(file_of(e, i), &info);
    if (result == MPI_SUCCESS && info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    return checked(result, failed);
}

/* The hints of the program are not in a trace: the call is made with those of the engine. */
CALL(set_info)
{
    const MPI_Info given = INFO_OF(e->plan->info);
    MPI_Info empty = MPI_INFO_NULL;
    if (given == MPI_INFO_NULL)
        MPI_Info_create(&empty);
    const int result = MPI_File_set_info(file_of(e, i), given == MPI_INFO_NULL ? empty : given);
    if (empty != MPI_INFO_NULL)
        MPI_Info_free(&empty);
    return checked(result, failed);
}

CALL(delete)
{
    const int result = MPI_File_delete(mpiox_engine_path_of(e, i), MPI_INFO_NULL);
    int class = MPI_ERR_OTHER;
    if (result != MPI_SUCCESS)
        (void)MPI_Error_class(result, &class);
    *failed = result != MPI_SUCCESS && class != MPI_ERR_NO_SUCH_FILE; /* another rank may have removed it */
    return result;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define ROW(what, ...)                                                                                                 \
    {.name = "MPI_File_" #what, .call = call_##what, .needs_handle = true, .handle = FILE_OF_MPI, __VA_ARGS__}
#define ALONE(what) ROW(what, .collective = false)
#define TOGETHER(what) ROW(what, .collective = true)
#define READ(what, all) ROW(what, .reads = true, .collective = all)
#define WRITE(what, all) ROW(what, .writes = true, .collective = all)
#define IREAD(what, all) ROW(what, .reads = true, .starts = true, .collective = all)
#define IWRITE(what, all) ROW(what, .writes = true, .starts = true, .collective = all)

const mpiox_engine_operation mpiox_engine_mpiio[] = {
    {.name = "MPI_File_open", .call = call_open, .opens = true, .collective = true},
    TOGETHER(close),
    READ(read, false),
    WRITE(write, false),
    READ(read_all, true),
    WRITE(write_all, true),
    READ(read_at, false),
    WRITE(write_at, false),
    READ(read_at_all, true),
    WRITE(write_at_all, true),
    READ(read_shared, false),
    WRITE(write_shared, false),
    READ(read_ordered, true),
    WRITE(write_ordered, true),
    IREAD(iread, false),
    IWRITE(iwrite, false),
    IREAD(iread_all, true),
    IWRITE(iwrite_all, true),
    IREAD(iread_at, false),
    IWRITE(iwrite_at, false),
    IREAD(iread_at_all, true),
    IWRITE(iwrite_at_all, true),
    IREAD(iread_shared, false),
    IWRITE(iwrite_shared, false),
    READ(read_all_begin, true),
    WRITE(write_all_begin, true),
    READ(read_ordered_begin, true),
    WRITE(write_ordered_begin, true),
    READ(read_at_all_begin, true),
    WRITE(write_at_all_begin, true),
    TOGETHER(read_all_end),
    TOGETHER(write_all_end),
    TOGETHER(read_ordered_end),
    TOGETHER(write_ordered_end),
    TOGETHER(read_at_all_end),
    TOGETHER(write_at_all_end),
    {.name = "MPI_Wait", .call = call_wait},
    ALONE(seek),
    TOGETHER(seek_shared),
    TOGETHER(set_view),
    ALONE(get_view),
    TOGETHER(sync),
    TOGETHER(set_size),
    ROW(preallocate, .collective = true, .preallocates = true),
    TOGETHER(set_atomicity),
    ALONE(get_atomicity),
    ALONE(get_size),
    ALONE(get_position),
    ALONE(get_position_shared),
    ALONE(get_byte_offset),
    ALONE(get_type_extent),
    ALONE(get_amode),
    ALONE(get_group),
    ALONE(get_info),
    TOGETHER(set_info),
    {.name = "MPI_File_delete", .call = call_delete, .named = true},
    {.name = NULL},
};
