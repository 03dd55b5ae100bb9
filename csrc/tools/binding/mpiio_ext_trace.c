/*
 * mpiio_ext_trace.c - trace files in the public interface. A mpiio_ext_trace is the reader itself.
 */
#include "mpiio_ext_tools.h"

#include <stddef.h>

#include "mpiox_tracefile_reader.h"

static mpiox_tracefile_reader *reader(mpiio_ext_trace *trace)
{
    return (mpiox_tracefile_reader *)trace;
}

static const mpiox_tracefile_reader *constant(const mpiio_ext_trace *trace)
{
    return (const mpiox_tracefile_reader *)trace;
}

static const mpiox_tracefile_header *header(const mpiio_ext_trace *trace)
{
    return mpiox_tracefile_reader_header(constant(trace));
}

int mpiio_ext_trace_open(const char *path, mpiio_ext_trace **trace)
{
    mpiox_tracefile_reader *opened = NULL;
    const int code = mpiox_tracefile_reader_open(path, &opened);

    *trace = (mpiio_ext_trace *)opened;
    return code;
}

void mpiio_ext_trace_close(mpiio_ext_trace *trace)
{
    mpiox_tracefile_reader_free(reader(trace));
}

int mpiio_ext_trace_rank(const mpiio_ext_trace *trace)
{
    return header(trace)->rank;
}

int mpiio_ext_trace_ranks(const mpiio_ext_trace *trace)
{
    return header(trace)->ranks;
}

int64_t mpiio_ext_trace_pid(const mpiio_ext_trace *trace)
{
    return header(trace)->pid;
}

const char *mpiio_ext_trace_host(const mpiio_ext_trace *trace)
{
    return header(trace)->host;
}

const char *mpiio_ext_trace_command(const mpiio_ext_trace *trace)
{
    return header(trace)->command;
}

int64_t mpiio_ext_trace_started(const mpiio_ext_trace *trace)
{
    return (int64_t)((uint64_t)header(trace)->started + (uint64_t)header(trace)->unix_minus_monotonic);
}

int mpiio_ext_trace_running(const mpiio_ext_trace *trace)
{
    return header(trace)->state == MPIOX_TRACEFILE_RUNNING;
}

int64_t mpiio_ext_trace_next(mpiio_ext_trace *trace, int64_t wanted)
{
    return mpiox_tracefile_reader_next(reader(trace), wanted);
}

const int64_t *mpiio_ext_trace_column(const mpiio_ext_trace *trace, int column)
{
    return mpiox_tracefile_reader_column(constant(trace), column);
}

const char *mpiio_ext_trace_extras(const mpiio_ext_trace *trace, const int32_t **offsets)
{
    return mpiox_tracefile_reader_extras(constant(trace), offsets);
}

const char *mpiio_ext_trace_operation(const mpiio_ext_trace *trace, int64_t index)
{
    return mpiox_tracefile_reader_operation(constant(trace), index);
}

const char *mpiio_ext_trace_file(const mpiio_ext_trace *trace, int64_t index)
{
    return mpiox_tracefile_reader_file(constant(trace), index);
}

int64_t mpiio_ext_trace_records(const mpiio_ext_trace *trace)
{
    return mpiox_tracefile_reader_records(constant(trace));
}

int64_t mpiio_ext_trace_lost(const mpiio_ext_trace *trace)
{
    return mpiox_tracefile_reader_lost(constant(trace));
}

int64_t mpiio_ext_trace_unread(const mpiio_ext_trace *trace)
{
    return mpiox_tracefile_reader_unread(constant(trace));
}

int64_t mpiio_ext_trace_missing(const mpiio_ext_trace *trace)
{
    return mpiox_tracefile_reader_missing(constant(trace));
}

int mpiio_ext_trace_truncated(const mpiio_ext_trace *trace)
{
    return mpiox_tracefile_reader_truncated(constant(trace));
}

int mpiio_ext_trace_selected(const mpiio_ext_trace *trace)
{
    return header(trace)->selected != 0;
}

const char *mpiio_ext_trace_left_out(const mpiio_ext_trace *trace, int64_t numbers[3])
{
    const mpiox_tracefile_left_out *found = &header(trace)->left_out;

    numbers[0] = found->calls;
    numbers[1] = found->files;
    numbers[2] = found->ns;
    return header(trace)->left_out_name;
}

const char *mpiio_ext_trace_problem(const mpiio_ext_trace *trace, int index, int64_t *line)
{
    const mpiox_tracefile_problem *problem = mpiox_tracefile_reader_problem(constant(trace), index);

    *line = problem != NULL ? problem->line : 0;
    return problem != NULL ? problem->why : NULL;
}
