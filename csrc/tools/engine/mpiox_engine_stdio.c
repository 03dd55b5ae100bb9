/* mpiox_engine_stdio.c - buffered streams of the engine. */
#include "mpiox_engine_impl.h"

#define CALL(name) static int64_t call_##name(mpiox_engine *e, int64_t i, bool *failed)

enum { READS = 1, WRITES = 2, TRUNCATES = 4, APPENDS = 8 };

static FILE *stream_of(const mpiox_engine *e, int64_t i)
{
    return mpiox_engine_slot_of(e, i)->stream;
}

static const char *mode_of(int32_t flags)
{
    if (flags & APPENDS)
        return flags & READS ? "a+" : "a";
    if (flags & WRITES)
        return flags & TRUNCATES ? (flags & READS ? "w+" : "w") : "r+";
    return "r";
}

CALL(fopen)
{
    mpiox_engine_slot *slot = mpiox_engine_slot_of(e, i);
    slot->stream = fopen(mpiox_engine_path_of(e, i), mode_of(e->plan->flags[i]));
    slot->is_open = slot->stream != NULL;
    *failed = !slot->is_open;
    return slot->is_open ? 0 : -1;
}

CALL(fclose)
{
    const int result = fclose(stream_of(e, i));
    mpiox_engine_slot_of(e, i)->is_open = false;
    mpiox_engine_slot_of(e, i)->stream = NULL;
    *failed = result != 0;
    return result;
}

CALL(fread)
{
    *failed = false;
    return (int64_t)fread(e->sink, 1, (size_t)e->plan->size[i], stream_of(e, i));
}

CALL(fwrite)
{
    const int64_t done = (int64_t)fwrite(mpiox_engine_data_of(e, i), 1, (size_t)e->plan->size[i], stream_of(e, i));
    *failed = done < e->plan->size[i];
    return done;
}

_Static_assert(sizeof(long) == sizeof(int64_t), "fseek and ftell, as programs call them, have 64 bits");

CALL(fseek)
{
    const int result = fseek(stream_of(e, i), (long)e->plan->offset[i], e->plan->flags[i]);
    *failed = result != 0;
    return result;
}

CALL(ftell)
{
    const int64_t place = ftell(stream_of(e, i));
    *failed = place < 0;
    return place;
}

CALL(fflush)
{
    const int result = fflush(stream_of(e, i));
    *failed = result != 0;
    return result;
}

const mpiox_engine_operation mpiox_engine_stdio[] = {
    {.name = "fopen", .call = call_fopen, .opens = true},
    {.name = "fclose", .call = call_fclose, .needs_handle = true, .handle = STREAM},
    {.name = "fread", .call = call_fread, .needs_handle = true, .handle = STREAM, .reads = true},
    {.name = "fwrite", .call = call_fwrite, .needs_handle = true, .handle = STREAM, .writes = true},
    {.name = "fseek", .call = call_fseek, .needs_handle = true, .handle = STREAM},
    {.name = "ftell", .call = call_ftell, .needs_handle = true, .handle = STREAM},
    {.name = "fflush", .call = call_fflush, .needs_handle = true, .handle = STREAM},
    {.name = NULL},
};
