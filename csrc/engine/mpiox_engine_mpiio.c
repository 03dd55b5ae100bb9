/* mpiox_engine_mpiio.c - MPI-IO calls of the engine. Data is bytes; offsets count bytes. */
#include "mpiox_engine_impl.h"

#define CALL(name) static int64_t call_##name(mpiox_engine *e, int64_t i, bool *failed)

static int64_t checked(int result, bool *failed)
{
    *failed = result != MPI_SUCCESS;
    return result;
}

static MPI_File file_of(const mpiox_engine *e, int64_t i)
{
    return mpiox_engine_slot_of(e, i)->file;
}

static int count_of(const mpiox_engine *e, int64_t i)
{
    return e->muted ? 0 : (int)e->plan->size[i];
}

CALL(open)
{
    mpiox_engine_slot *slot = mpiox_engine_slot_of(e, i);
    const int result = MPI_File_open(MPI_Comm_f2c(e->plan->communicator[i]), mpiox_engine_path_of(e, i),
                                     e->plan->flags[i], MPI_INFO_NULL, &slot->file);
    slot->is_open = result == MPI_SUCCESS;
    slot->request = MPI_REQUEST_NULL;
    return checked(result, failed);
}

/* What nobody has waited for is, first: MPI demands it. */
CALL(close)
{
    mpiox_engine_slot *slot = mpiox_engine_slot_of(e, i);
    if (slot->request != MPI_REQUEST_NULL)
        MPI_Wait(&slot->request, MPI_STATUS_IGNORE);
    slot->is_open = false;
    return checked(MPI_File_close(&slot->file), failed);
}

#define MOVE(name, function, memory)                                                                                   \
    CALL(name)                                                                                                         \
    {                                                                                                                  \
        return checked(function(file_of(e, i), e->memory, count_of(e, i), MPI_BYTE, MPI_STATUS_IGNORE), failed);       \
    }
#define MOVE_AT(name, function, memory)                                                                                \
    CALL(name)                                                                                                         \
    {                                                                                                                  \
        return checked(                                                                                                \
            function(file_of(e, i), e->plan->offset[i], e->memory, count_of(e, i), MPI_BYTE, MPI_STATUS_IGNORE),       \
            failed);                                                                                                   \
    }
/* One request for each handle: an older one is waited for first. */
#define START(name, ...)                                                                                               \
    CALL(name)                                                                                                         \
    {                                                                                                                  \
        mpiox_engine_slot *slot = mpiox_engine_slot_of(e, i);                                                          \
        if (slot->request != MPI_REQUEST_NULL)                                                                         \
            MPI_Wait(&slot->request, MPI_STATUS_IGNORE);                                                               \
        return checked(__VA_ARGS__, failed);                                                                           \
    }

MOVE(read, MPI_File_read, sink)
MOVE(write, MPI_File_write, data)
MOVE(read_all, MPI_File_read_all, sink)
MOVE(write_all, MPI_File_write_all, data)
MOVE_AT(read_at, MPI_File_read_at, sink)
MOVE_AT(write_at, MPI_File_write_at, data)
MOVE_AT(read_at_all, MPI_File_read_at_all, sink)
MOVE_AT(write_at_all, MPI_File_write_at_all, data)
START(iread, MPI_File_iread(slot->file, e->sink, count_of(e, i), MPI_BYTE, &slot->request))
START(iwrite, MPI_File_iwrite(slot->file, e->data, count_of(e, i), MPI_BYTE, &slot->request))
START(iread_at, MPI_File_iread_at(slot->file, e->plan->offset[i], e->sink, count_of(e, i), MPI_BYTE, &slot->request))
START(iwrite_at, MPI_File_iwrite_at(slot->file, e->plan->offset[i], e->data, count_of(e, i), MPI_BYTE, &slot->request))

CALL(wait)
{
    int result = MPI_SUCCESS;
    for (int32_t slot = 0; slot < e->plan->slots; slot++) {
        if (e->slots[slot].is_open && e->slots[slot].file != MPI_FILE_NULL &&
            e->slots[slot].request != MPI_REQUEST_NULL)
            result = MPI_Wait(&e->slots[slot].request, MPI_STATUS_IGNORE);
    }
    (void)i;
    return checked(result, failed);
}

CALL(seek)
{
    static const int whence[] = {MPI_SEEK_SET, MPI_SEEK_CUR, MPI_SEEK_END};
    return checked(MPI_File_seek(file_of(e, i), e->plan->offset[i], whence[e->plan->flags[i] % 3]), failed);
}

CALL(sync)
{
    return checked(MPI_File_sync(file_of(e, i)), failed);
}

CALL(set_size)
{
    return checked(MPI_File_set_size(file_of(e, i), e->plan->offset[i] >= 0 ? e->plan->offset[i] : e->plan->size[i]),
                   failed);
}

CALL(get_size)
{
    MPI_Offset bytes;
    return checked(MPI_File_get_size(file_of(e, i), &bytes), failed);
}

CALL(delete)
{
    (void)MPI_File_delete(mpiox_engine_path_of(e, i), MPI_INFO_NULL);
    return checked(MPI_SUCCESS, failed);
}

const mpiox_engine_operation mpiox_engine_mpiio[] = {
    {.name = "MPI_File_open", .call = call_open, .opens = true, .collective = true},
    {.name = "MPI_File_close", .call = call_close, .needs_handle = true, .collective = true},
    {.name = "MPI_File_read", .call = call_read, .needs_handle = true, .reads = true},
    {.name = "MPI_File_write", .call = call_write, .needs_handle = true, .writes = true},
    {.name = "MPI_File_read_all", .call = call_read_all, .needs_handle = true, .collective = true, .reads = true},
    {.name = "MPI_File_write_all", .call = call_write_all, .needs_handle = true, .collective = true, .writes = true},
    {.name = "MPI_File_read_at", .call = call_read_at, .needs_handle = true, .reads = true},
    {.name = "MPI_File_write_at", .call = call_write_at, .needs_handle = true, .writes = true},
    {.name = "MPI_File_read_at_all", .call = call_read_at_all, .needs_handle = true, .collective = true, .reads = true},
    {.name = "MPI_File_write_at_all",
     .call = call_write_at_all,
     .needs_handle = true,
     .collective = true,
     .writes = true},
    {.name = "MPI_File_iread", .call = call_iread, .needs_handle = true, .reads = true},
    {.name = "MPI_File_iwrite", .call = call_iwrite, .needs_handle = true, .writes = true},
    {.name = "MPI_File_iread_at", .call = call_iread_at, .needs_handle = true, .reads = true},
    {.name = "MPI_File_iwrite_at", .call = call_iwrite_at, .needs_handle = true, .writes = true},
    {.name = "MPI_Wait", .call = call_wait},
    {.name = "MPI_File_seek", .call = call_seek, .needs_handle = true},
    {.name = "MPI_File_sync", .call = call_sync, .needs_handle = true, .collective = true},
    {.name = "MPI_File_set_size", .call = call_set_size, .needs_handle = true, .collective = true},
    {.name = "MPI_File_get_size", .call = call_get_size, .needs_handle = true},
    {.name = "MPI_File_delete", .call = call_delete},
    {.name = NULL},
};
