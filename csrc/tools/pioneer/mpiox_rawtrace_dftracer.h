/*
 * mpiox_rawtrace_dftracer.h - lines of DFTracer: JSON objects, one an event.
 *
 *   {"id":7,"name":"write","cat":"POSIX","pid":1,"tid":1,"ts":US,"dur":US,"ph":"X","args":{"fhash":9,"ret":32,...}}
 *   {"id":6,"name":"FH","cat":"dftracer","pid":1,"tid":1,"ph":"M","args":{"name":"/a/file","value":9}}
 *   {"id":"7","name":"write","cat":"POSIX","pid":"1","tid":"1","ts":"US","dur":"US","ph":"X",
 *    "args":{"hostname":"h","ret":"32","count":"32","fd":15,"fname":"/a/file"}}
 *
 * Problem.   File names are hashes, whose table may come after their first use; hashes are numbers (2024) or texts
 *            (later), phases letters or numbers (later); a hash of 16 bits may stand for two names of one process. In
 *            2023 there are no hashes, and numbers that are no int in C stand in quotes (the last example).
 * Algorithm. The reader goes through the files twice: first for the tables alone, then for the events, in which a table
 *            entry counts from its line on. A scanner that knows this one form; values that have no column go to
 *            `extra` as they are. yyjson would scan faster (1.4 against 0.8 GB/s, one line a document), but scanning is
 *            a quarter of what a row costs (0.21 GB/s in all), it refuses names that are not escaped, and its 18,000
 *            lines would replace 170.
 *            Categories and names of functions are read in any case of letters ("Fread"); a function of streams belongs
 *            to their layer whatever its category.
 * Guarantee. An event of a call is a row or a problem, even if its result, handle, size or offset is no number.
 *            Events of applications are counted by category; other metadata are handed on as notes. Names that
 *            DFTracer writes unescaped are read where that is possible.
 */
#ifndef MPIOX_RAWTRACE_DFTRACER_H
#define MPIOX_RAWTRACE_DFTRACER_H

#include "mpiox_rawtrace_call.h"
#include "mpiox_rawtrace_rows.h"

/* Zeroed memory is the state before a trace. */
typedef struct mpiox_rawtrace_dftracer {
    mpiox_rawtrace_names hashes; /* as written, without quotes */
    int32_t *file_of;            /* number of a hash -> number of a file, or -1 */
    int64_t file_capacity;       /* room in file_of */
    int64_t unit_ns;             /* of times; 0: microseconds */
} mpiox_rawtrace_dftracer;

void mpiox_rawtrace_dftracer_free(mpiox_rawtrace_dftracer *state);

/* One line without its end; tables_only: read metadata alone. MPIOX_E_NOMEM. */
int mpiox_rawtrace_dftracer_line(mpiox_rawtrace_dftracer *state, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows,
                                 const char *p, const char *end, bool tables_only);

#endif
