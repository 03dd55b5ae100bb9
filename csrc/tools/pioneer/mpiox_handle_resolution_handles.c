/* mpiox_handle_resolution_handles.c - see mpiox_handle_resolution_handles.h. */
#include "mpiox_handle_resolution_handles.h"

#include <stdlib.h>

enum { FIRST_ROOM = 64, STEPS_OF_ROOM = 2 };

bool mpiox_handles_make(mpiox_handles *handles)
{
    *handles = (mpiox_handles){.entries = calloc(FIRST_ROOM, sizeof *handles->entries), .room = FIRST_ROOM};
    return handles->entries != NULL;
}

static void release(mpiox_description *is)
{
    if (is != NULL && --is->handles == 0)
        free(is);
}

void mpiox_handles_free(mpiox_handles *handles)
{
    for (int64_t i = 0; i < handles->room; i++)
        release(handles->entries[i].is);
    free(handles->entries);
}

static int64_t home_of(const mpiox_handles *handles, uint8_t space, int64_t handle)
{
    const uint64_t key = ((uint64_t)handle ^ (uint64_t)space << 56) * UINT64_C(0x9e3779b97f4a7c15);
    return (int64_t)(key >> 32) & (handles->room - 1);
}

mpiox_named_handle *mpiox_handles_find(const mpiox_handles *handles, uint8_t space, int64_t handle)
{
    const mpiox_named_handle *entries = handles->entries;
    int64_t i = home_of(handles, space, handle);
    while (entries[i].is != NULL && (entries[i].handle != handle || entries[i].space != space))
        i = (i + 1) & (handles->room - 1);
    return &handles->entries[i];
}

static bool grow(mpiox_handles *handles)
{
    mpiox_handles larger = {.room = STEPS_OF_ROOM * handles->room};
    larger.entries = calloc((size_t)larger.room, sizeof *larger.entries);
    if (larger.entries == NULL)
        return false;
    for (int64_t i = 0; i < handles->room; i++) {
        if (handles->entries[i].is != NULL)
            *mpiox_handles_find(&larger, handles->entries[i].space, handles->entries[i].handle) = handles->entries[i];
    }
    free(handles->entries);
    handles->entries = larger.entries;
    handles->room = larger.room;
    return true;
}

/* Close the gap that a handle leaves, so that what was put behind it is found. */
void mpiox_handles_take_out(mpiox_handles *handles, mpiox_named_handle *gone)
{
    int64_t hole = gone - handles->entries, i = hole;
    release(gone->is);
    gone->is = NULL;
    handles->used--;
    for (;;) {
        i = (i + 1) & (handles->room - 1);
        if (handles->entries[i].is == NULL)
            return;
        const int64_t home = home_of(handles, handles->entries[i].space, handles->entries[i].handle);
        if (((i - home) & (handles->room - 1)) >= ((i - hole) & (handles->room - 1))) {
            handles->entries[hole] = handles->entries[i];
            handles->entries[i].is = NULL;
            hole = i;
        }
    }
}

bool mpiox_handles_put(mpiox_handles *handles, uint8_t space, int64_t handle, mpiox_description *is)
{
    mpiox_named_handle *at = mpiox_handles_find(handles, space, handle);
    if (at->is == NULL && 2 * (handles->used + 1) > handles->room && !grow(handles))
        return false;
    at = mpiox_handles_find(handles, space, handle);
    handles->used += at->is == NULL;
    release(at->is);
    *at = (mpiox_named_handle){.handle = handle, .is = is, .space = space};
    return true;
}
