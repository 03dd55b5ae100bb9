/*
 * mpiox_trace_mpi_view.c - datatypes of accesses and views: the functions of mpiox_trace_mpi.h about them.
 *
 * Problem.   A view has the shape of the data of a program, but a text of a trace has a largest length.
 * Algorithm. A trace has the whole file type, in parts. A recording has the first views of each file only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_recording.h"
#include "mpiox_recording_format.h"
#include "mpiox_trace_mpi.h"
#include "mpiox_trace_sink.h"
#include "mpiox_trace_view.h"

BEHIND(int, PMPI_Type_size_x, (MPI_Datatype, MPI_Count *))
BEHIND(int, PMPI_Type_get_extent_x, (MPI_Datatype, MPI_Count *, MPI_Count *))
BEHIND(int, PMPI_Type_get_name, (MPI_Datatype, char *, int *))

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
    if (mpiox_trace_sink_chosen->counts)
        record_view(call, etype, filetype);
    else
        add_filetype(call, filetype);
}
