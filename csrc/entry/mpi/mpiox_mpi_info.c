/*
 * mpiox_mpi_info.c - MPI_File_get_info, its result as text, and hints that are not followed; MPI_File_get_amode.
 */
#include "mpiox_mpi_info.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_collective.h"
#include "mpiox_forwarded.h"
#include "mpiox_print.h"
#include "mpiox_service.h"
#include "mpiox_service_settings.h"
#include "mpiox_handle.h"
#include "mpiox_handlers.h"
#include "mpiox_hints.h"
#include "mpiox_text.h"

enum { VALUE_BYTES = 1024, KEY_BYTES = MPI_MAX_INFO_KEY + 1 };

/* ROMIO's list names ranks of its own choice, which have nothing to do while this library carries collectives out. */
static void set_aggregators(MPI_Info info, const mpiox_collective *collective)
{
    char text[MPI_MAX_INFO_VAL] = "", rank[16];
    size_t used = 0;

    for (int i = 0; i < mpiox_collective_aggregators(collective); i++) {
        const int bytes = snprintf(rank, sizeof rank, "%d ", mpiox_collective_aggregator(collective, i));

        if (used + (size_t)bytes >= sizeof text) /* ROMIO cuts the list there, too */
            break;
        memcpy(text + used, rank, (size_t)bytes + 1);
        used += (size_t)bytes;
    }
    if (used > 0)
        PMPI_Info_set(info, "romio_aggregator_list", text);
}

static void set_choices(MPI_Info info, const mpiox_handle *handle)
{
    const int aggregators = mpiox_collective_aggregators(handle->collective);
    const int64_t bytes = mpiox_collective_buffer_bytes(handle->collective);
    char text[MPI_MAX_INFO_VAL] = ";";

    mpiox_hints_put_number(info, "cb_nodes", aggregators);
    mpiox_hints_put_number(info, "cb_buffer_size", bytes);
    if (handle->hints.cb_nodes == 0)
        snprintf(text, sizeof text, ";cb_nodes=%d;", aggregators);
    if (handle->hints.cb_buffer_size == 0)
        snprintf(text + strlen(text), sizeof text - strlen(text), "cb_buffer_size=%" PRId64 ";", bytes);
    PMPI_Info_set(info, MPIOX_HINTS_CHOSEN, text); /* the MPI library may have an earlier file's */
}

int mpiox_mpi_get_info(MPI_File fh, MPI_Info *info_used)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    int result = PMPI_File_get_info(fh, info_used);

    if (handle == NULL || result != MPI_SUCCESS || *info_used == MPI_INFO_NULL || handle->without_library)
        return result;
    mpiox_hints_to_info(&handle->hints, *info_used);
    if (mpiox_service_wanted(&handle->hints))
        mpiox_hints_put_number(*info_used, "mpiox_delegates",
                               handle->forwarded != NULL ? mpiox_forwarded_count(handle->forwarded) : 0);
    if (handle->forwarded != NULL)
        mpiox_forwarded_to_info(handle->forwarded, *info_used);
    else
        PMPI_Info_set(*info_used, "mpiox_close", "written");
    mpiox_opener_to_info(handle->opener, *info_used, handle->opener != NULL ? handle->file->layout.servers : 0,
                         handle->opener != NULL ? handle->file->layout.stripe_size : 0);
    if (handle->file != NULL) { /* the results of the library's own choices */
        set_choices(*info_used, handle);
        set_aggregators(*info_used, handle->collective);
        if (handle->file->layout.stripe_known) /* PnetCDF aligns its arrays to it */
            mpiox_hints_put_number(*info_used, "striping_unit", handle->file->layout.stripe_size);
        if (handle->file->layout.stripe_count > 0) /* a number from no source is left out */
            mpiox_hints_put_number(*info_used, "striping_factor", handle->file->layout.servers);
    }
    return result;
}

/* ---- as text ----------------------------------------------------------------------------------------------------- */

static bool is_on(const char *variable)
{
    const char *value = mpiox_text_variable(variable);

    return value != NULL && !mpiox_text_is_off(value);
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The names in an info object, sorted; free them. */
static char (*sorted_keys(MPI_Info info, int *n)) [KEY_BYTES] {
    char (*keys)[KEY_BYTES] = NULL;

    if (PMPI_Info_get_nkeys(info, n) != MPI_SUCCESS || *n <= 0 || (keys = calloc((size_t)*n, sizeof *keys)) == NULL) {
        *n = 0;
        return NULL;
    }
    for (int i = 0; i < *n; i++)
        PMPI_Info_get_nthkey(info, i, keys[i]);
    qsort(keys, (size_t)*n, sizeof *keys, compare_keys);
    return keys;
}

static void print_hint(FILE *out, MPI_Info info, const char *key, const mpiox_handle *handle)
{
    const int index = mpiox_hints_find(key);
    const int source = index >= 0 && handle != NULL ? handle->hints.source[index] : MPIOX_HINT_DEFAULT;
    char value[VALUE_BYTES] = "";
    int found = 0;

    if (mpiox_hints_info_get(info, key, value, (int)sizeof value, &found) != MPI_SUCCESS || !found)
        return;
    fprintf(out, "          %-24s = %s", key, value);
    if (source != MPIOX_HINT_DEFAULT)
        fprintf(out, " (%s)", mpiox_hints_source_name(source));
    fputc('\n', out);
}

/* One write: several files may be opened at the same time, by programs that share the terminal. */
static char *as_text(const char *filename, MPI_Info info, const mpiox_handle *handle)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    int n = 0;

    if (out == NULL)
        return NULL;
    fprintf(out, "mpiio_ext: PE 0: MPIIO hints for %s:\n", filename);
    char (*keys)[KEY_BYTES] = sorted_keys(info, &n);
    for (int i = 0; i < n; i++)
        print_hint(out, info, keys[i], handle);
    free(keys);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

void mpiox_mpi_show_hints(MPI_Comm comm, const char *filename, MPI_File fh)
{
    MPI_Info info = MPI_INFO_NULL;
    int rank = -1;
    char *text;

    if (PMPI_Comm_rank(comm, &rank) != MPI_SUCCESS || rank != 0 ||
        (!is_on("MPICH_MPIIO_HINTS_DISPLAY") && !is_on("ROMIO_PRINT_HINTS")) ||
        mpiox_mpi_get_info(fh, &info) != MPI_SUCCESS || info == MPI_INFO_NULL)
        return;
    text = as_text(filename, info, mpiox_handle_find(fh));
    if (text != NULL)
        mpiox_print("%s", text);
    free(text);
    PMPI_Info_free(&info);
}

/* As the program has opened it: the MPI library may have got another mode (amode_for_library). */
int mpiox_mpi_get_amode(MPI_File fh, int *amode)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    int result = PMPI_File_get_amode(fh, amode);

    if (handle != NULL && result == MPI_SUCCESS && amode != NULL)
        *amode = handle->opener != NULL ? handle->amode : *amode | (handle->amode & MPI_MODE_EXCL);
    return result;
}
