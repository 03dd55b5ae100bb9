"""The mutants: a snippet of a C file, what takes its place, and the quick tests that must fail then."""

from __future__ import annotations

from dataclasses import dataclass

RANDOM = ("tests/differential/test_differential.py::test_bounded", "--cases=60")
ERRORS = "tests/mpi/test_errors.py"
SCHEDULING = ("tests/unit/test_scheduling.py",)
SHORT_FILE = f"{ERRORS}::test_file_shorter_than_the_read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one file; both texts may have several lines."""

    name: str
    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTANTS = (
    Mutant(
        name="window_count",
        what="a domain of one piece has one window too few",
        file="mpiox_plan_windows.c",
        old="return (end - 1) / window_bytes - first / window_bytes + 1;",
        new="return (end - 1) / window_bytes - first / window_bytes;",
        tests=("tests/unit/test_partition.py", "tests/unit/test_partition_methods.py"),
    ),
    Mutant(
        name="window_clipped",
        what="windows of large stripes forget that the region begins inside the first one",
        file="mpiox_plan_windows.c",
        old="index += windows_clipped_before(geometry, set, window_bytes);",
        new="index += 0;",
        tests=("tests/unit/test_partition.py", "tests/unit/test_partition_methods.py"),
    ),
    Mutant(
        name="coverage_kept",
        what="the coverage of a window is taken for that of the next one",
        file="mpiox_window_io.c",
        old="memset(map, 0, (size_t)(at / call->granule));",
        new="memset(map, 0, 0);",
        tests=RANDOM,
    ),
    Mutant(
        name="coverage_extent",
        what="all extents of a window use the coverage of the first one",
        file="mpiox_window_io.c",
        old="write_covered(call, buffer + at, map + at / call->granule, extents[i])",
        new="write_covered(call, buffer + at, map, extents[i])",
        tests=RANDOM,
    ),
    Mutant(
        name="window_read_error",
        what="an aggregator that cannot read tells nobody",
        file="mpiox_window_io.c",
        old="        mpiox_buffers_fail(call->b, &error);\n    return moved",
        new="        (void)0;\n    return moved",
        tests=(f"{ERRORS}::test_one_failing_request_fails_everywhere_once",),
    ),
    Mutant(
        name="end_of_file_not_told",
        what="where the file ended is not told to the other ranks",
        file="mpiox_window_io.c",
        old="    lower(&b->state->eof, eof);",
        new="    (void)lower;",
        tests=(SHORT_FILE,),
    ),
    Mutant(
        name="end_of_file_by_one",
        what="a read goes one byte beyond the end of the file",
        file="mpiox_windows.c",
        old="extent.length = eof - extent.offset;",
        new="extent.length = eof - extent.offset + 1;",
        tests=(SHORT_FILE, *RANDOM),
    ),
    Mutant(
        name="leader_does_not_hold",
        what="a window is written before the pieces of other nodes are in it",
        file="mpiox_rounds.c",
        old="    if (!call->hold)\n",
        new="    if (call->hold || true)\n",
        tests=("tests/mpi/test_overlapping_tiles.py",),
    ),
    Mutant(
        name="barrier_of_one",
        what="the barrier of a node waits for nobody",
        file="mpiox_topology_page.c",
        old="if (atomic_fetch_add(&page->arrived, 1) + 1 == (uint32_t)t->node_size) {",
        new="if (atomic_fetch_add(&page->arrived, 1) + 1 >= 1) {",
        tests=("tests/mpi/test_overlapping_tiles.py",),
    ),
    Mutant(
        name="write_of_nothing",
        what="a write that moves nothing is a success",
        file="mpiox_storage.c",
        old="            moved = -ENOSPC;",
        new="            moved = 0;",
        tests=("tests/mpi/test_faults.py::test_writes_that_move_nothing",),
    ),
    Mutant(
        name="short_transfers",
        what="the count of a request in several parts is that of the last one",
        file="mpiox_storage.c",
        old="        *done += moved;",
        new="        *done = moved;",
        tests=("tests/unit/test_storage.py",),
    ),
    Mutant(
        name="list_merges_gaps",
        what="pieces of a list become one request although there is a gap between them",
        file="mpiox_storage_list.c",
        old="call->offset + *bytes != piece->offset || ",
        new="",
        tests=("tests/unit/test_storage.py",),
    ),
    Mutant(
        name="independent_count",
        what="an independent read that met the end of the file reports all that was asked for",
        file="mpiox_independent.c",
        old="const int code = move_window(call, &window, &moved, error);\n        *done += moved;",
        new="const int code = move_window(call, &window, &moved, error);\n        *done += window.length;",
        tests=("tests/mpi/test_vectored_memory.py",),
    ),
    Mutant(
        name="status_of_collective",
        what="the status of a collective read says what was asked for",
        file="mpiox_mpi_access.c",
        old="mpiox_mpi_fill_status(status, outcome.bytes);",
        new="mpiox_mpi_fill_status(status, request->length);",
        tests=(SHORT_FILE,),
    ),
    Mutant(
        name="pointer_not_moved",
        what="the individual file pointer stays where it was",
        file="mpiox_mpi_pointer.c",
        old="    handle->pointer = etypes;",
        new="    (void)etypes;",
        tests=("tests/mpi/test_large_counts.py::test_beyond_two_gib[offsets-]",),
    ),
    Mutant(
        name="shared_pointer_by_one",
        what="the shared file pointer of one node moves one etype too far",
        file="mpiox_shared_pointer.c",
        old="*old = atomic_fetch_add(word(file, file->topology->views), etypes);",
        new="*old = atomic_fetch_add(word(file, file->topology->views), etypes + 1);",
        tests=("tests/mpi/test_progress.py::test_order",),
    ),
    Mutant(
        name="shared_pointer_of_nodes",
        what="the shared file pointer between nodes stays where it was",
        file="mpiox_shared_pointer.c",
        old="value = set ? change : value + change;",
        new="value = set ? change : value;",
        tests=("tests/mpi/test_progress.py::test_order",),
    ),
    Mutant(
        name="cursor_block",
        what="a part of a block counts as all of it",
        file="mpiox_typemap_cursor.c",
        old="*blocks = bytes == left;",
        new="*blocks = 1;",
        tests=("tests/unit/test_typemap_c.py",),
    ),
    Mutant(
        name="views_kept",
        what="leaders go on with the views of before when the call that brought new ones moved nothing",
        file="mpiox_collective_call.c",
        old="    if (call->summary.flags & MPIOX_POST_NEW_VIEW)",
        new="    if (call->summary.flags & MPIOX_POST_NEW_VIEW && call->summary.bytes > 0)",
        tests=("tests/mpi/test_collective_limits.py",),
    ),
    Mutant(
        name="schedule_overlaps",
        what="a request overtakes an older one that overlaps it",
        file="mpiox_schedule.c",
        old="        schedule->counters.held++;\n    else\n        make_ready",
        new="        schedule->counters.held++;\n    make_ready",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_patience",
        what="the oldest request waits for longer than the patience",
        file="mpiox_schedule.c",
        old="    if (now < due)\n",
        new="    if (now < due || due >= 0)\n",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_batch_bytes",
        what="a batch has more bytes than the options allow",
        file="mpiox_schedule.c",
        old="bytes > schedule->options.batch_bytes ||",
        new="bytes / 2 > schedule->options.batch_bytes ||",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_sjf",
        what="the longest job is first",
        file="mpiox_schedule_sjf.c",
        old="lane->bytes < best->bytes ||",
        new="lane->bytes > best->bytes ||",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_wfq_weight",
        what="weights do not count",
        file="mpiox_schedule_wfq.c",
        old="(double)entry->what.length / entry->what.weight",
        new="(double)entry->what.length",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_wfq_clock",
        what="a flow that was idle catches up with the others",
        file="mpiox_schedule_wfq.c",
        old="lane->finish > schedule->virtual_time ? lane->finish : schedule->virtual_time",
        new="lane->finish",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_hbrr_quantum",
        what="a turn does not end with its quantum",
        file="mpiox_schedule_hbrr.c",
        old="lane->used == 0 || lane->used >= quantum ||",
        new="lane->used == 0 ||",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_mlf_turns",
        what="a file has turns for as long as it has requests",
        file="mpiox_schedule_mlf.c",
        old="        schedule->turn = mpiox_schedule_lane_next(schedule, schedule->turn);\n        found",
        new="        if (schedule->lanes[schedule->turn].ready.count == 0)\n"
        "            schedule->turn = mpiox_schedule_lane_next(schedule, schedule->turn);\n        found",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_twins_window",
        what="a window without requests is passed over",
        file="mpiox_schedule_twins.c",
        old="    if (!hurry && window > 0) {",
        new="    if (!hurry && window > 0 && schedule->ready.count == 0) {",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_aioli_ahead",
        what="a file waits again and again for what lies before its first request",
        file="mpiox_schedule_aioli.c",
        old="        lane->waited_for = at->number + 1;",
        new="",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_aioli_turn",
        what="the quantum of a file does not follow its use",
        file="mpiox_schedule_aioli.c",
        old="    lane->quantum = within(quantum,",
        new="    (void)within(quantum,",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_lane_order",
        what="a request that was held is behind newer ones",
        file="mpiox_schedule_lane.c",
        old="while (previous != none && entries[previous].number > entries[entry].number)",
        new="while (false && entries[previous].number > entries[entry].number)",
        tests=SCHEDULING,
    ),
)
