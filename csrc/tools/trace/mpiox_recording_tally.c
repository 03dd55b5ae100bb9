/*
 * mpiox_recording_tally.c - see mpiox_recording_tally.h.
 *
 * Problem.   A record has one time for all its calls on metadata, and counts neither calls that fail nor those that
 *            Darshan has no counter for: locks, unlink, msync.
 * Algorithm. Each function has a list of tallies. The first files of a function have tallies of their own, further ones
 *            one together for each outcome. The one that was used last is tried first.
 * Guarantee. Sums over a function's tallies are exact as long as the recording has room for their outcomes. Memory does
 *            not depend on the number of calls and files.
 */
#include "mpiox_recording_tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "mpiox_recording_file.h"
#include "mpiox_recording_format.h"
#include "mpiox_recording_names.h"
#include "mpiox_trace_error_classes.h"
#include "mpiox_trace_operations.h"

enum { MOST_NAMED = 8 }; /* tallies of a function that are of one file each */

static struct {
    mpiox_recording_tally *recent;
    uint32_t first, named; /* place of the list's first one, or 0 */
} functions[MPIOX_TRACE_EVENTS];

static const char *const classes[] = {"",
#define CLASS_NAME(name) #name,
                                      MPIOX_TRACE_ERROR_CLASSES(CLASS_NAME)};

void mpiox_recording_tally_renew(void)
{
    memset(functions, 0, sizeof functions);
}

static mpiox_recording_tally *listed(int operation, uint32_t name, int32_t error, uint32_t inside)
{
    for (uint32_t place = functions[operation].first; place != 0;) {
        mpiox_recording_tally *tally = mpiox_recording_at(place);

        if (tally->name == name && tally->error == error && tally->inside == inside)
            return tally;
        place = tally->next;
    }
    return NULL;
}

static mpiox_recording_tally *made(int operation, uint32_t name, int32_t error, uint32_t inside, uint64_t spare)
{
    mpiox_recording_tally *tally = mpiox_recording_take(MPIOX_RECORDING_TALLY, sizeof *tally, spare);

    if (tally == NULL)
        return NULL;
    tally->name = name;
    tally->next = functions[operation].first;
    tally->inside = inside;
    tally->error = error;
    strcpy(tally->operation, mpiox_trace_operation_names[operation]);
    if (strncmp(tally->operation, "MPI_", 4) == 0)
        strcpy(tally->class, error > 0 && error < MPIOX_TRACE_CLASSES ? classes[error] : "");
    mpiox_recording_publish();
    functions[operation].first = mpiox_recording_place(tally);
    functions[operation].named += name != 0;
    return tally;
}

__attribute__((noinline)) static mpiox_recording_tally *found(int operation, uint32_t name, int32_t error,
                                                              uint32_t inside, uint64_t spare)
{
    mpiox_recording_tally *tally = listed(operation, name, error, inside);

    if (tally == NULL && name != 0 && functions[operation].named < MOST_NAMED &&
        mpiox_recording_put_name_alone((int32_t)name, spare + sizeof *tally))
        tally = made(operation, name, error, inside, spare);
    if (tally == NULL)
        tally = listed(operation, 0, error, inside);
    return tally != NULL ? tally : made(operation, 0, error, inside, 0);
}

void mpiox_recording_tally_add(const mpiox_tracefile_record *call, int32_t error, uint64_t spare)
{
    const uint32_t name = call->file > 0 ? (uint32_t)call->file : 0, inside = call->depth > 0;
    mpiox_recording_tally *tally = functions[call->operation].recent;

    if (tally == NULL || tally->name != name || tally->error != error || tally->inside != inside)
        tally = functions[call->operation].recent = found(call->operation, name, error, inside, spare);
    if (tally == NULL)
        return;
    tally->calls++;
    tally->ns += call->duration;
}
