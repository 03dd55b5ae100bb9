/* mpiox_recording_names.c - see mpiox_recording_names.h. */
#include "mpiox_recording_names.h"

#include <string.h>

#include "mpiox_recording_file.h"
#include "mpiox_recording_format.h"
#include "mpiox_trace_names.h"

bool mpiox_recording_put_name(int32_t file, const uint32_t *records, uint64_t spare)
{
    const char *text = mpiox_trace_names_text(file);

    for (int module = 0; module < MPIOX_RECORDING_MODULES; module++)
        if (records[module] >= MPIOX_RECORDING_NAMED)
            return true;
    mpiox_recording_name *name = mpiox_recording_take(MPIOX_RECORDING_NAME, sizeof *name + strlen(text) + 1, spare);
    if (name == NULL)
        return false;
    name->number = file;
    strcpy(name->text, text);
    mpiox_recording_publish();
    return true;
}

bool mpiox_recording_put_name_alone(int32_t file, uint64_t spare)
{
    uint32_t *records = mpiox_trace_names_records(file, mpiox_recording.generation);

    if (records == NULL || !mpiox_recording_put_name(file, records, spare))
        return false;
    if (records[MPIOX_RECORDING_POSIX] == 0)
        records[MPIOX_RECORDING_POSIX] = MPIOX_RECORDING_NAMED;
    return true;
}
