"""The mutants: a snippet of a C file, what takes its place, and the quick tests that must fail then."""

from __future__ import annotations

from dataclasses import dataclass

RANDOM = ("tests/differential/test_differential.py::test_bounded", "--cases=60")
ERRORS = "tests/mpi/test_errors.py"
TEXTS = ("tests/unit/test_layout_texts.py",)
BRUTE_FORCE = ("tests/unit/test_locks_brute_force.py",)
DECISIONS = "tests/unit/test_partition_auto.py"
AUTO = (
    f"{DECISIONS}::test_near_the_best_fixed_method",
    f"{DECISIONS}::test_parts_of_a_block_are_never_chosen_where_nobody_locks",
)
HARD = (f"{DECISIONS}::test_points_that_were_hard",)
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
        name="window_count", file="mpiox_plan_windows.c",
        what="a domain of one piece has one window too few",
        old="return (end - 1) / window_bytes - first / window_bytes + 1;",
        new="return (end - 1) / window_bytes - first / window_bytes;",
        tests=("tests/unit/test_partition.py", "tests/unit/test_partition_methods.py"),
    ),
    Mutant(
        name="window_clipped", file="mpiox_plan_windows.c",
        what="windows of large stripes forget that the region begins inside the first one",
        old="index += windows_clipped_before(geometry, set, window_bytes);",
        new="index += 0;",
        tests=("tests/unit/test_partition.py", "tests/unit/test_partition_methods.py"),
    ),
    Mutant(
        name="coverage_kept", file="mpiox_window_io.c",
        what="the coverage of a window is taken for that of the next one",
        old="memset(map, 0, (size_t)(at / call->granule));",
        new="memset(map, 0, 0);",
        tests=RANDOM,
    ),
    Mutant(
        name="coverage_extent", file="mpiox_window_io.c",
        what="all extents of a window use the coverage of the first one",
        old="write_covered(call, buffer + at, map + at / call->granule, extents[i])",
        new="write_covered(call, buffer + at, map, extents[i])",
        tests=RANDOM,
    ),
    Mutant(
        name="window_read_error", file="mpiox_window_io.c",
        what="an aggregator that cannot read tells nobody",
        old="        mpiox_buffers_fail(call->b, &error);\n    return moved",
        new="        (void)0;\n    return moved",
        tests=(f"{ERRORS}::test_one_failing_request_fails_everywhere_once",),
    ),
    Mutant(
        name="end_of_file_not_told", file="mpiox_window_io.c",
        what="where the file ended is not told to the other ranks",
        old="    lower(&b->state->eof, eof);",
        new="    (void)lower;",
        tests=(SHORT_FILE,),
    ),
    Mutant(
        name="end_of_file_by_one", file="mpiox_windows.c",
        what="a read goes one byte beyond the end of the file",
        old="extent.length = eof - extent.offset;",
        new="extent.length = eof - extent.offset + 1;",
        tests=(SHORT_FILE, *RANDOM),
    ),
    Mutant(
        name="aggregator_does_not_hold", file="mpiox_rounds.c",
        what="a window is filled anew before the other nodes have their pieces of it",
        old="    if (local != call->held)\n",
        new="    if (local != call->held || true)\n",
        tests=("tests/mpi/test_exchange.py::test_a_window_is_kept_until_the_other_node_has_its_bytes",),
    ),
    Mutant(
        name="barrier_of_one", file="mpiox_topology_page.c",
        what="the barrier of a node waits for nobody",
        old="if (atomic_fetch_add(&page->arrived, 1) + 1 == (uint32_t)t->node_size) {",
        new="if (atomic_fetch_add(&page->arrived, 1) + 1 >= 1) {",
        tests=("tests/mpi/test_overlapping_tiles.py",),
    ),
    Mutant(
        name="write_of_nothing", file="mpiox_storage_transfer.c",
        what="a write that moves nothing is a success",
        old="            moved = -ENOSPC;",
        new="            moved = 0;",
        tests=("tests/mpi/test_faults.py::test_writes_that_move_nothing",),
    ),
    Mutant(
        name="short_transfers", file="mpiox_storage_transfer.c",
        what="the count of a request in several parts is that of the last one",
        old="        *done += moved;",
        new="        *done = moved;",
        tests=("tests/unit/test_storage.py",),
    ),
    Mutant(
        name="list_merges_gaps", file="mpiox_storage_list.c",
        what="pieces of a list become one request although there is a gap between them",
        old="call->offset + *bytes != piece->offset || ",
        new="",
        tests=("tests/unit/test_storage.py",),
    ),
    Mutant(
        name="independent_count", file="mpiox_independent.c",
        what="an independent read that met the end of the file reports all that was asked for",
        old="const int code = move_window(call, &window, &moved, error);\n        *done += moved;",
        new="const int code = move_window(call, &window, &moved, error);\n        *done += window.length;",
        tests=("tests/mpi/test_vectored_memory.py",),
    ),
    Mutant(
        name="status_of_collective", file="mpiox_mpi_access.c",
        what="the status of a collective read says what was asked for",
        old="mpiox_mpi_fill_status(status, outcome.bytes);",
        new="mpiox_mpi_fill_status(status, request->length);",
        tests=(SHORT_FILE,),
    ),
    Mutant(
        name="pointer_not_moved", file="mpiox_mpi_pointer.c",
        what="the individual file pointer stays where it was",
        old="    handle->pointer = etypes;",
        new="    (void)etypes;",
        tests=("tests/mpi/test_large_counts.py::test_beyond_two_gib[offsets-]",),
    ),
    Mutant(
        name="shared_pointer_by_one", file="mpiox_shared_pointer.c",
        what="the shared file pointer of one node moves one etype too far",
        old="*old = atomic_fetch_add(word(file, file->topology->views), etypes);",
        new="*old = atomic_fetch_add(word(file, file->topology->views), etypes + 1);",
        tests=("tests/mpi/test_progress.py::test_order",),
    ),
    Mutant(
        name="shared_pointer_of_nodes", file="mpiox_shared_pointer.c",
        what="the shared file pointer between nodes stays where it was",
        old="value = set ? change : value + change;",
        new="value = set ? change : value;",
        tests=("tests/mpi/test_progress.py::test_order",),
    ),
    Mutant(
        name="cursor_block", file="mpiox_typemap_cursor.c",
        what="a part of a block counts as all of it",
        old="*blocks = bytes == left;",
        new="*blocks = 1;",
        tests=("tests/unit/test_typemap_c.py",),
    ),
    Mutant(
        name="views_kept", file="mpiox_collective_call.c",
        what="leaders go on with the views of before when the call that brought new ones moved nothing",
        old="    if (call->reduction.flags & MPIOX_CONTRIBUTION_NEW_VIEW)",
        new="    if (call->reduction.flags & MPIOX_CONTRIBUTION_NEW_VIEW && call->reduction.bytes > 0)",
        tests=("tests/mpi/test_collective_limits.py",),
    ),
    Mutant(
        name="schedule_overlaps", file="mpiox_schedule.c",
        what="a request overtakes an older one that overlaps it",
        old="        schedule->counters.held++;\n    else\n        make_ready",
        new="        schedule->counters.held++;\n    make_ready",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_patience", file="mpiox_schedule.c",
        what="an overdue request is served only while the policy serves nothing",
        old="const bool its_turn = overdue &&",
        new="const bool its_turn = false &&",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_overdue_share", file="mpiox_schedule.c",
        what="with a deep queue overdue requests have all batches",
        old="        schedule->since_overdue += schedule->since_overdue < MPIOX_SCHEDULE_OVERDUE_EVERY;\n",
        new="        schedule->since_overdue = MPIOX_SCHEDULE_OVERDUE_EVERY;\n",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_overdue_bytes", file="mpiox_schedule.c",
        what="the batch of an overdue request is larger than the quantum",
        old="    schedule->allowance = schedule->options.quantum; /*",
        new="    /*",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_wfq_patience", file="mpiox_schedule_wfq.c",
        what="overdue requests take the weights away",
        old="    .fair = true,\n",
        new="",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_first_turn", file="mpiox_schedule.c",
        what="the second file has the first turn",
        old="    schedule->turn = MPIOX_SCHEDULE_LANES - 1;",
        new="    schedule->turn = 0;",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_mlf_quantum", file="mpiox_schedule_mlf.c",
        what="requests that touch are merged beyond the quantum",
        old="    schedule->allowance = mpiox_schedule_eligible_quantum(schedule, &schedule->entries[found]);\n",
        new="",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_twins_ids", file="mpiox_schedule_twins.c",
        what="servers have turns in the order in which they were met",
        old="schedule->lanes[order[at - 1]].key > schedule->lanes[lane].key",
        new="false",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_twins_stable", file="mpiox_schedule_twins.c",
        what="a server that is met within a window changes whose turn it is",
        old="(window != schedule->window && schedule->lanes_changed)",
        new="schedule->lanes_changed",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_twins_clock", file="mpiox_schedule_twins.c",
        what="windows begin by the delegate's own clock",
        old="divide_down(now + offset, length)",
        new="divide_down(now, length)",
        tests=SCHEDULING,
    ),
    Mutant(
        name="lov_targets", file="mpiox_layout_lustre.c",
        what="the generation of an object is taken for its target",
        old="#define LOV_OBJECT_TARGET 20 ",
        new="#define LOV_OBJECT_TARGET 16 ",
        tests=("tests/unit/test_layout_lustre.py",),
    ),
    Mutant(
        name="lov_room", file="mpiox_layout_lustre.c",
        what="a component that no write has reached has objects",
        old="    c->object_count = 0;\n    c->first = first_of_head(plain, c);",
        new="    (void)first_of_head;",
        tests=("tests/unit/test_layout_lustre.py",),
    ),
    Mutant(
        name="lov_mdt_first", file="mpiox_layout_lustre.c",
        what="data on the metadata server begins at the target that counts its changes",
        old="c->pattern & (MPIOX_LUSTRE_RELEASED | MPIOX_LUSTRE_MDT)",
        new="c->pattern & MPIOX_LUSTRE_RELEASED",
        tests=("tests/unit/test_layout_lustre.py",),
    ),
    Mutant(
        name="lov_file_bytes", file="mpiox_layout_lustre.c",
        what="the component that stands for a file does not depend on the file's size",
        old="file_bytes > 0 ? file_bytes : MPIOX_LUSTRE_NO_END",
        new="MPIOX_LUSTRE_NO_END",
        tests=("tests/unit/test_layout_lustre.py",),
    ),
    Mutant(
        name="lov_length", file="mpiox_layout_lustre.c",
        what="what stands behind a template in liblustreapi's block is its objects",
        old="c.object_count == 0 || is_untouched(&c, header, name)",
        new="c.object_count == 0 || (!is_untouched(&c, header, name) && false)",
        tests=("tests/unit/test_layout_lustre.py",),
    ),
    Mutant(
        name="lock_growth", file="mpiox_lock_model_server.c",
        what="locks of Lustre grow downwards however many clients meet",
        old="    if (most > system->forward_holders)\n        grown->low = range->first;",
        new="    (void)range;",
        tests=BRUTE_FORCE,
    ),
    Mutant(
        name="token_place", file="mpiox_lock_model_token.c",
        what="a holder that is at the requested unit itself keeps its token",
        old="if (first == place || lock->start >= first)\n            *free_at",
        new="if (lock->start >= first)\n            *free_at",
        tests=BRUTE_FORCE,
    ),
    Mutant(
        name="token_pass_over", file="mpiox_lock_model_token.c",
        what="a token ends where the client's own next one begins",
        old="lock != NULL ? lock->start : INT64_MAX;",
        new="lock != NULL ? lock->start : last;",
        tests=BRUTE_FORCE,
    ),
    Mutant(
        name="auto_parts_of_blocks", file="mpiox_auto_select.c",
        what="two clients' caches may share a block where nobody locks",
        old="return method != &mpiox_partition_even || c->facts->layout.lock != MPIOX_LOCK_NONE;",
        new="return true;",
        tests=AUTO,
    ),
    Mutant(
        name="auto_rounds", file="mpiox_auto_rounds.c",
        what="the first round stands for all",
        old="all > few && i > middle ? all - few + i : i",
        new="i - i",
        tests=AUTO,
    ),
    Mutant(
        name="auto_keep", file="mpiox_auto_select.c",
        what="the rules' method is left for what is hardly faster",
        old="if (c->candidates[i].method == c->preferred && CLEARLY * c->candidates[i].time <= best->time)",
        new="if (false)",
        tests=HARD,
    ),
    Mutant(
        name="auto_blocks", file="mpiox_auto_select.c",
        what="the fastest method is taken though it is `even`",
        old="if (blocks != NULL && CLEARLY * blocks->time <= best->time)",
        new="if (false)",
        tests=HARD,
    ),
    Mutant(
        name="auto_circle", file="mpiox_auto_rounds.c",
        what="requests that go past the last server are not the first one's",
        old="    if (behind > servers) {\n        t->load[0] += load;",
        new="    if (behind > servers) {\n        t->load[0] += 0;",
        tests=AUTO,
    ),
    Mutant(
        name="ceph_object_size", file="mpiox_layout_ceph.c",
        what="objects of CephFS may end within a stripe unit",
        old=" || found.object_size % found.stripe_unit != 0",
        new="",
        tests=TEXTS,
    ),
    Mutant(
        name="ceph_hashed", file="mpiox_layout_detect.c",
        what="the servers of CephFS' objects are taken for known",
        old="    out->hashed = true;",
        new="",
        tests=("tests/unit/test_layout.py",),
    ),
    Mutant(
        name="gluster_redundancy", file="mpiox_layout_gluster.c",
        what="a brick that keeps parity is counted as one of data",
        old="out->redundancy = (int32_t)l->redundancy;",
        new="out->redundancy = (int32_t)l->redundancy - 1;",
        tests=TEXTS,
    ),
    Mutant(
        name="gluster_shard", file="mpiox_layout_gluster.c",
        what="a volume file that leaves the size of shards out has none",
        old=".shard_size = DEFAULT_SHARD",
        new=".shard_size = 0 * DEFAULT_SHARD",
        tests=TEXTS,
    ),
    Mutant(
        name="mounts_optional", file="mpiox_layout_mounts.c",
        what="the type of a mount is what follows its options, whatever fields come between",
        old="if (mpiox_span_is(word, \"-\"))",
        new="if (mpiox_span_is(word, \"-\") || true)",
        tests=TEXTS,
    ),
    Mutant(
        name="mounts_octal", file="mpiox_layout_mounts.c",
        what="a blank in the name of a mount point stays as the kernel writes it",
        old="mpiox_span_copy(point, true, out->point",
        new="mpiox_span_copy(point, false, out->point",
        tests=TEXTS,
    ),
    Mutant(
        name="mounts_last", file="mpiox_layout_mounts.c",
        what="of two NFS mounts at one place the lower one counts",
        old="        rc = MPIOX_OK;\n    }\n    return rc;",
        new="        return MPIOX_OK;\n    }\n    return rc;",
        tests=TEXTS,
    ),
    Mutant(
        name="schedule_batch_bytes", file="mpiox_schedule.c",
        what="a batch has more bytes than the options allow",
        old="bytes > schedule->options.batch_bytes ||",
        new="bytes / 2 > schedule->options.batch_bytes ||",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_sjf", file="mpiox_schedule_sjf.c",
        what="the longest job is first",
        old="lane->bytes < best->bytes ||",
        new="lane->bytes > best->bytes ||",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_wfq_weight", file="mpiox_schedule_wfq.c",
        what="weights do not count",
        old="(double)entry->what.length / entry->what.weight",
        new="(double)entry->what.length",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_wfq_clock", file="mpiox_schedule_wfq.c",
        what="a flow that was idle catches up with the others",
        old="lane->finish > schedule->virtual_time ? lane->finish : schedule->virtual_time",
        new="lane->finish",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_hbrr_quantum", file="mpiox_schedule_hbrr.c",
        what="a turn does not end with its quantum",
        old="lane->used == 0 || lane->used >= quantum ||",
        new="lane->used == 0 ||",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_mlf_turns", file="mpiox_schedule_mlf.c",
        what="a file has turns for as long as it has requests",
        old="        schedule->turn = mpiox_schedule_lane_next(schedule, schedule->turn);\n        found",
        new="        if (schedule->lanes[schedule->turn].ready.count == 0)\n"
        "            schedule->turn = mpiox_schedule_lane_next(schedule, schedule->turn);\n        found",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_twins_window", file="mpiox_schedule_twins.c",
        what="a window without requests is passed over",
        old="i < (hurry ? schedule->known : 1)",
        new="i < schedule->known",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_aioli_ahead", file="mpiox_schedule_aioli.c",
        what="a file waits again and again for what lies before its first request",
        old="        lane->waited_for = at->number + 1;",
        new="",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_aioli_turn", file="mpiox_schedule_aioli.c",
        what="the quantum of a file does not follow its use",
        old="    lane->quantum = within(quantum,",
        new="    (void)within(quantum,",
        tests=SCHEDULING,
    ),
    Mutant(
        name="schedule_lane_order", file="mpiox_schedule_lane.c",
        what="a request that was held is behind newer ones",
        old="while (previous != none && entries[previous].number > entries[entry].number)",
        new="while (false && entries[previous].number > entries[entry].number)",
        tests=SCHEDULING,
    ),
)
