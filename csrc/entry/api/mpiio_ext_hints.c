/*
 * mpiio_ext_hints.c - the hints registry, and the values in force, for the command line and for Python.
 *
 * No MPI call is made: resolving without MPI_Info needs none, so this works before MPI_Init and without mpirun.
 */
#include "mpiio_ext.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_handle.h"
#include "mpiox_hints.h"

enum { HINTS_MAX = sizeof(((mpiox_hints *)0)->source), VALUE_BYTES = 256, PROBLEMS_BYTES = 8192 };

struct mpiio_ext_hints {
    mpiox_hints values;
    char text[HINTS_MAX][VALUE_BYTES];
    char problems[PROBLEMS_BYTES];
};

#define ACCESSOR(member, field)                                                                                        \
    const char *mpiio_ext_hint_##member(int index)                                                                     \
    {                                                                                                                  \
        const mpiox_hint_spec *spec = mpiox_hints_spec(index);                                                         \
        return spec != NULL ? spec->field : NULL;                                                                      \
    }

ACCESSOR(name, name)
ACCESSOR(type, type)
ACCESSOR(values, values)
ACCESSOR(default, default_value)
ACCESSOR(description, description)

int mpiio_ext_hint_for_speed(int index)
{
    const mpiox_hint_spec *spec = mpiox_hints_spec(index);

    return spec != NULL && spec->for_speed;
}

int mpiio_ext_hint_canonical(const char *name, const char *value, char *text, int64_t text_bytes)
{
    int index = mpiox_hints_find(name);
    mpiox_hints scratch;

    mpiox_hints_defaults(&scratch);
    if (index < 0 || text_bytes <= 0 || mpiox_hint_parse(mpiox_hints_spec(index), value, &scratch) != MPIOX_OK)
        return MPIOX_E_ARG;
    mpiox_hint_format(mpiox_hints_spec(index), &scratch, text, text_bytes);
    return MPIOX_OK;
}

static mpiio_ext_hints *with_texts(mpiio_ext_hints *hints)
{
    for (int i = 0; i < mpiox_hints_count(); i++)
        mpiox_hint_format(mpiox_hints_spec(i), &hints->values, hints->text[i], VALUE_BYTES);
    return hints;
}

static void add_problem(const char *message, void *context)
{
    mpiio_ext_hints *hints = context;
    size_t used = strlen(hints->problems);

    snprintf(hints->problems + used, sizeof hints->problems - used, "%s%s", used > 0 ? "\n" : "", message);
}

mpiio_ext_hints *mpiio_ext_hints_resolve(const char *path)
{
    mpiio_ext_hints *hints = calloc(1, sizeof *hints);

    if (hints == NULL)
        return NULL;
    mpiox_hints_resolve_all(path, MPI_INFO_NULL, &hints->values, add_problem, hints);
    return with_texts(hints);
}

mpiio_ext_hints *mpiio_ext_hints_of(const void *handle)
{
    mpiio_ext_hints *hints;
    mpiox_handle *file;
    MPI_File fh;

    memcpy(&fh, handle, sizeof fh);
    file = mpiox_handle_find(fh);
    hints = file != NULL ? calloc(1, sizeof *hints) : NULL;
    if (hints == NULL)
        return NULL;
    hints->values = file->hints;
    return with_texts(hints);
}

const char *mpiio_ext_hints_value(const mpiio_ext_hints *hints, int index)
{
    return index >= 0 && index < mpiox_hints_count() ? hints->text[index] : NULL;
}

const char *mpiio_ext_hints_source(const mpiio_ext_hints *hints, int index)
{
    return index >= 0 && index < mpiox_hints_count() ? mpiox_hints_source_name(hints->values.source[index]) : NULL;
}

const char *mpiio_ext_hints_problems(const mpiio_ext_hints *hints)
{
    return hints->problems;
}

void mpiio_ext_hints_free(mpiio_ext_hints *hints)
{
    free(hints);
}
