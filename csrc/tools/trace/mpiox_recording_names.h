/* mpiox_recording_names.h - the names of files that a recording has. */
#ifndef MPIOX_RECORDING_NAMES_H
#define MPIOX_RECORDING_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/* In place of a record's place, of a name's notes (mpiox_trace_names_records()): the file has no record, and the
 * recording has its name. */
enum { MPIOX_RECORDING_NAMED = 1 };

/* Under mpiox_trace_lock(): bring the name of a file into the recording, unless it is there, and leave `spare` bytes.
 * `records`: its notes. False: there is no room. */
bool mpiox_recording_put_name(int32_t file, const uint32_t *records, uint64_t spare);
/* The same, where no record of the file follows. */
bool mpiox_recording_put_name_alone(int32_t file, uint64_t spare);

#endif
