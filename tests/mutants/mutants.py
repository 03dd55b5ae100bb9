"""The mutants: a snippet of a C file, what takes its place, and the quick tests that must fail then."""

from __future__ import annotations

from dataclasses import dataclass

RANDOM = ("tests/differential/test_differential.py::test_bounded", "--cases=60")
ERRORS = "tests/mpi/test_errors.py"
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
)
