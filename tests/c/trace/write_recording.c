/*
 * write_recording.c - a recording of calls that lines on standard input describe, at any times.
 *
 * PROGRAM FOLDER [PRINT]: F NAME (files have numbers from 1 on); C OPERATION START DURATION DEPTH FILE OFFSET SIZE
 * RESULT COUNT MODE FILE2 COMM_SIZE HINTS OFFSET2 ERROR (a negative number: none); ENTER OPERATION START DEPTH FILE and
 * LEAVE DEPTH, of a call that is recorded while it lasts; PART WAITING START END (0: it lasts); END STATE; KILL; ABORT
 * CODE TIME; RANK RANK RANKS. PRINT: offsets of the fields of a record instead.
 */
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_recording.h"
#include "mpiox_recording_calls.h"
#include "mpiox_recording_file.h"
#include "mpiox_trace_lock.h"
#include "mpiox_trace_names.h"
#include "mpiox_trace_place.h"

enum { LINE = 8192, FILES = 200000 };

static int32_t numbers[FILES];
static int repeats; /* accesses that were like the ones before */

static int operation_of(const char *name)
{
    for (int i = MPIOX_TRACEFILE_FIRST; i < MPIOX_TRACE_EVENTS; i++)
        if (mpiox_trace_operation_names[i] != NULL && strcmp(mpiox_trace_operation_names[i], name) == 0)
            return i;
    fprintf(stderr, "no operation %s\n", name);
    exit(2);
}

static void add(mpiox_tracefile_record *call, int key, int64_t value)
{
    if (value >= 0)
        call->extra[call->extras++] = (mpiox_tracefile_extra){.key = (uint8_t)key, .value = value};
}

/* As the tracer counts reads and writes, where they are like the ones before. */
static bool again(const mpiox_tracefile_record *call)
{
    const int64_t end = call->start + call->duration;
    const bool write = call->operation == OP_pwrite || call->operation == OP_write;

    if (!write && call->operation != OP_pread && call->operation != OP_read)
        return false;
    const bool done = write ? mpiox_recording_write_again(call->file, call->offset, call->result, call->start, end)
                            : mpiox_recording_read_again(call->file, call->offset, call->result, call->start, end);
    repeats += done;
    return done;
}

static void one(const char *line)
{
    char name[64];
    int64_t v[14];
    mpiox_tracefile_record call = {0};

    if (sscanf(line,
               "C %63s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
               " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64,
               name, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8], &v[9], &v[10], &v[11], &v[12],
               &v[13]) != 15) {
        fprintf(stderr, "not understood: %s\n", line);
        exit(2);
    }
    call.operation = (uint8_t)operation_of(name);
    call.start = v[0];
    call.duration = v[1];
    call.depth = v[2];
    call.file = numbers[v[3]];
    call.offset = v[4] < 0 ? MPIOX_TRACEFILE_NONE : v[4];
    call.size = v[5] < 0 ? MPIOX_TRACEFILE_NONE : v[5];
    call.result = v[6];
    add(&call, MPIOX_KEY_COUNT, v[7]);
    add(&call, strncmp(name, "MPI_", 4) == 0 ? MPIOX_KEY_AMODE : MPIOX_KEY_MODE, v[8]);
    add(&call, MPIOX_KEY_FILE2, v[9] < 0 ? -1 : numbers[v[9]]);
    add(&call, MPIOX_KEY_COMM_SIZE, v[10]);
    add(&call, MPIOX_KEY_HINTS, v[11]);
    add(&call, MPIOX_KEY_OFFSET2, v[12]);
    add(&call, MPIOX_KEY_ERRNO, v[13]);
    if (call.operation == OP_MPI_Finalize)
        mpiox_recording_stop(call.start);
    if (!again(&call))
        mpiox_recording_add(&call);
    if (strncmp(name, "MPI_", 4) == 0 && call.depth == 0) { /* the next one begins with nothing */
        mpiox_trace_self.in_files = mpiox_trace_self.unrecorded = mpiox_trace_self.reported = 0;
        mpiox_trace_self.waited = mpiox_trace_self.own = 0;
    }
}

static void enter(const char *name, int64_t start, int64_t depth, int file)
{
    mpiox_tracefile_record call = {.start = start, .depth = depth, .file = numbers[file]};

    call.operation = (uint8_t)operation_of(name);
    mpiox_recording_begin(&call, strncmp(name, "MPI_", 4) == 0 ? mpiox_trace_operation_names[call.operation] : NULL);
}

static int print_layout(void)
{
#define FIELD(name) printf("%s %zu\n", #name, offsetof(mpiox_recording_record, name))
    FIELD(module), FIELD(name), FIELD(values), FIELD(more), FIELD(counts), FIELD(mode), FIELD(renamed_from);
    FIELD(bytes), FIELD(max_byte), FIELD(consecutive), FIELD(sequential), FIELD(switches), FIELD(buckets);
    FIELD(aligned), FIELD(first), FIELD(last), FIELD(busy), FIELD(waited), FIELD(unrecorded);
    FIELD(longest), FIELD(longest_size), FIELD(value), FIELD(often), FIELD(last_byte), FIELD(busy_until);
    FIELD(last_kind);
    printf("sizes %zu %zu %zu %zu %zu %zu\n", sizeof(mpiox_recording_record), sizeof(mpiox_recording_values),
           sizeof(mpiox_recording_lane), sizeof(mpiox_recording_segment), sizeof(mpiox_recording_step),
           sizeof(mpiox_recording_tally));
    printf("header %zu %zu %zu %zu\n", offsetof(mpiox_recording_header, used), offsetof(mpiox_recording_header, others),
           offsetof(mpiox_recording_header, doing), sizeof(mpiox_recording_header));
    return 0;
}

int main(int argc, char **argv)
{
    static char line[LINE];
    int files = 0, rank, ranks, state, waiting, file;
    int64_t start, end, depth;
    char name[64];

    if (argc > 2)
        return print_layout();
    mpiox_trace_self.number = 1;
    mpiox_trace_place_folder(argv[1]);
    mpiox_trace_names_bound(mpiox_recording_bound(), MPIOX_RECORDING_OTHERS);
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == 'F') {
            numbers[++files] = mpiox_trace_names_number(line + 2);
        } else if (sscanf(line, "RANK %d %d", &rank, &ranks) == 2) {
            mpiox_trace_here.rank = rank;
            mpiox_trace_here.ranks = ranks;
            mpiox_recording_rank();
        } else if (sscanf(line, "PART %d %" SCNd64 " %" SCNd64, &waiting, &start, &end) == 3) {
            mpiox_trace_self.own = 1;
            mpiox_recording_in_own();
            if (end == 0)
                mpiox_recording_in_part(waiting, start);
            else
                mpiox_recording_add_part(waiting, start, end);
        } else if (sscanf(line, "ENTER %63s %" SCNd64 " %" SCNd64 " %d", name, &start, &depth, &file) == 4) {
            enter(name, start, depth, file);
        } else if (sscanf(line, "LEAVE %" SCNd64, &depth) == 1) {
            mpiox_recording_done(0, depth);
        } else if (sscanf(line, "ABORT %d %" SCNd64, &state, &start) == 2) {
            mpiox_recording_note_abort(state, start);
        } else if (sscanf(line, "END %d", &state) == 1) {
            mpiox_recording_end(state, true);
        } else if (strcmp(line, "KILL") == 0) {
            raise(SIGKILL);
        } else {
            one(line);
        }
    }
    printf("%d repeated\n", repeats);
    return 0;
}
