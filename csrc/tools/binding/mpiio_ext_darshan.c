/*
 * mpiio_ext_darshan.c - Darshan logs as rows, in the public interface.
 */
#include "mpiio_ext_tools.h"

#include <stddef.h>
#include <stdlib.h>

#include "mpiox_darshan_isolated.h"
#include "mpiox_error.h"

struct mpiio_ext_darshan {
    mpiox_darshan_library library;
    mpiox_darshan_rows rows;
};

int mpiio_ext_darshan_open(const char *library, mpiio_ext_darshan **reader, char *problem, int64_t problem_bytes)
{
    mpiio_ext_darshan *opened = calloc(1, sizeof(*opened));

    *reader = NULL;
    if (opened == NULL)
        return MPIOX_E_NOMEM;
    const int code = mpiox_darshan_library_open(library, &opened->library, problem, problem_bytes);
    if (code != MPIOX_OK) {
        free(opened);
        return code;
    }
    *reader = opened;
    return MPIOX_OK;
}

void mpiio_ext_darshan_free(mpiio_ext_darshan *reader)
{
    if (reader == NULL)
        return;
    mpiox_darshan_rows_release(&reader->rows);
    mpiox_darshan_library_close(&reader->library);
    free(reader);
}

const char *mpiio_ext_darshan_version(const mpiio_ext_darshan *reader)
{
    return reader->library.version;
}

const char *mpiio_ext_darshan_column(int table, int index, int *is_double)
{
    return mpiox_darshan_rows_column(table, index, is_double);
}

const char *mpiio_ext_darshan_buffer_name(int index)
{
    return mpiox_darshan_rows_buffer_name(index);
}

int64_t mpiio_ext_darshan_read(mpiio_ext_darshan *reader, const char *paths, int64_t count, double patience_s,
                               int64_t memory_bytes, int64_t rows_bytes)
{
    const mpiox_darshan_limits limits = {patience_s, memory_bytes, rows_bytes};

    mpiox_darshan_rows_clear(&reader->rows);
    return mpiox_darshan_isolated_read(&reader->library, paths, count, &limits, &reader->rows);
}

const void *mpiio_ext_darshan_buffer(const mpiio_ext_darshan *reader, int index, int64_t *bytes)
{
    if (index < 0 || index >= MPIOX_DARSHAN_BUFFER_COUNT)
        return NULL;
    *bytes = reader->rows.buffers[index].used;
    return reader->rows.buffers[index].data;
}
