"""The mutants: a snippet of a C file, what takes its place, and the quick tests that must fail then."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one file; both texts may have several lines."""

    name: str
    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


#: Tests ("="), and what makes them fail: the mutant's name, its file and what it does, the lines of the file, others.
_TEXT = """
= tests/unit/test_partition.py tests/unit/test_partition_methods.py
window_count mpiox_plan_windows.c: a domain of one piece has one window too few
-return (end - 1) / window_bytes - first / window_bytes + 1;
+return (end - 1) / window_bytes - first / window_bytes;
window_clipped mpiox_plan_windows.c: windows of large stripes forget that the region begins inside the first one
-index += windows_clipped_before(geometry, set, window_bytes);
+index += 0;
= tests/differential/test_differential.py::test_bounded --cases=60
coverage_kept mpiox_window_io.c: the coverage of a window is taken for that of the next one
-memset(map, 0, (size_t)(at / call->granule));
+memset(map, 0, 0);
coverage_extent mpiox_window_io.c: all extents of a window use the coverage of the first one
-write_covered(call, buffer + at, map + at / call->granule, extents[i])
+write_covered(call, buffer + at, map, extents[i])
= tests/mpi/test_errors.py::test_one_failing_request_fails_everywhere_once
window_read_error mpiox_window_io.c: an aggregator that cannot read tells nobody
-        mpiox_buffers_fail(call->b, &error);
-    return moved
+        (void)0;
+    return moved
= tests/mpi/test_errors.py::test_file_shorter_than_the_read
end_of_file_not_told mpiox_window_io.c: where the file ended is not told to the other ranks
-    lower(&b->state->eof, eof);
+    (void)lower;
= tests/mpi/test_errors.py::test_file_shorter_than_the_read
  tests/differential/test_differential.py::test_bounded --cases=60
end_of_file_by_one mpiox_windows.c: a read goes one byte beyond the end of the file
-extent.length = eof - extent.offset;
+extent.length = eof - extent.offset + 1;
= tests/mpi/test_exchange.py::test_a_window_is_kept_until_the_other_node_has_its_bytes
aggregator_does_not_hold mpiox_rounds.c: a window is filled anew before the other nodes have their pieces of it
-    if (local != call->held)
-
+    if (local != call->held || true)
+
= tests/mpi/test_overlapping_tiles.py
barrier_of_one mpiox_topology_page.c: the barrier of a node waits for nobody
-if (atomic_fetch_add(&page->arrived, 1) + 1 == (uint32_t)t->node_size) {
+if (atomic_fetch_add(&page->arrived, 1) + 1 >= 1) {
= tests/mpi/test_faults.py::test_writes_that_move_nothing
write_of_nothing mpiox_storage_transfer.c: a write that moves nothing is a success
-            moved = -ENOSPC;
+            moved = 0;
= tests/unit/test_storage.py
short_transfers mpiox_storage_transfer.c: the count of a request in several parts is that of the last one
-        *done += moved;
+        *done = moved;
list_merges_gaps mpiox_storage_list.c: pieces of a list become one request although there is a gap between them
-call->offset + *bytes != piece->offset ||
= tests/mpi/test_vectored_memory.py
independent_count mpiox_independent.c: an independent read that met the end of the file reports all that was asked for
-const int code = move_window(call, &window, &moved, error);
-        *done += moved;
+const int code = move_window(call, &window, &moved, error);
+        *done += window.length;
= tests/mpi/test_errors.py::test_file_shorter_than_the_read
status_of_collective mpiox_mpi_access.c: the status of a collective read says what was asked for
-mpiox_mpi_fill_status(status, outcome.bytes);
+mpiox_mpi_fill_status(status, request->length);
= tests/mpi/test_large_counts.py::test_beyond_two_gib[offsets-]
pointer_not_moved mpiox_mpi_pointer.c: the individual file pointer stays where it was
-    handle->pointer = etypes;
+    (void)etypes;
= tests/mpi/test_progress.py::test_order
shared_pointer_by_one mpiox_shared_pointer.c: the shared file pointer of one node moves one etype too far
-*old = atomic_fetch_add(word(file, file->topology->views), etypes);
+*old = atomic_fetch_add(word(file, file->topology->views), etypes + 1);
shared_pointer_of_nodes mpiox_shared_pointer.c: the shared file pointer between nodes stays where it was
-value = set ? change : value + change;
+value = set ? change : value;
= tests/unit/test_typemap_c.py
cursor_block mpiox_typemap_cursor.c: a part of a block counts as all of it
-*blocks = bytes == left;
+*blocks = 1;
= tests/mpi/test_collective_limits.py
views_kept mpiox_collective_call.c: leaders go on with old views when the call that brought new ones moved nothing
-    if (call->reduction.flags & MPIOX_CONTRIBUTION_NEW_VIEW)
+    if (call->reduction.flags & MPIOX_CONTRIBUTION_NEW_VIEW && call->reduction.bytes > 0)
= tests/unit/test_scheduling.py
schedule_overlaps mpiox_schedule.c: a request overtakes an older one that overlaps it
-        schedule->counters.held++;
-    else
-        make_ready
+        schedule->counters.held++;
+    make_ready
schedule_patience mpiox_schedule.c: an overdue request is served only while the policy serves nothing
-const bool its_turn = overdue &&
+const bool its_turn = false &&
schedule_overdue_share mpiox_schedule.c: with a deep queue overdue requests have all batches
-        schedule->since_overdue += schedule->since_overdue < MPIOX_SCHEDULE_OVERDUE_EVERY;
-
+        schedule->since_overdue = MPIOX_SCHEDULE_OVERDUE_EVERY;
+
schedule_overdue_bytes mpiox_schedule.c: the batch of an overdue request is larger than the quantum
-    schedule->allowance = schedule->options.quantum; /*
+    /*
schedule_wfq_patience mpiox_schedule_wfq.c: overdue requests take the weights away
-    .fair = true,
-
schedule_first_turn mpiox_schedule.c: the second file has the first turn
-    schedule->turn = MPIOX_SCHEDULE_LANES - 1;
+    schedule->turn = 0;
schedule_mlf_quantum mpiox_schedule_mlf.c: requests that touch are merged beyond the quantum
-    schedule->allowance = mpiox_schedule_eligible_quantum(schedule, &schedule->entries[found]);
-
schedule_twins_ids mpiox_schedule_twins.c: servers have turns in the order in which they were met
-schedule->lanes[order[at - 1]].key > schedule->lanes[lane].key
+false
schedule_twins_stable mpiox_schedule_twins.c: a server that is met within a window changes whose turn it is
-(window != schedule->window && schedule->lanes_changed)
+schedule->lanes_changed
schedule_twins_clock mpiox_schedule_twins.c: windows begin by the delegate's own clock
-divide_down(now + offset, length)
+divide_down(now, length)
= tests/unit/test_layout_lustre.py
lov_targets mpiox_layout_lustre.c: the generation of an object is taken for its target
-#define LOV_OBJECT_TARGET 20
+#define LOV_OBJECT_TARGET 16
lov_room mpiox_layout_lustre.c: a component that no write has reached has objects
-    c->object_count = 0;
-    c->first = first_of_head(plain, c);
+    (void)first_of_head;
lov_mdt_first mpiox_layout_lustre.c: data on the metadata server begins at the target that counts its changes
-c->pattern & (MPIOX_LUSTRE_RELEASED | MPIOX_LUSTRE_MDT)
+c->pattern & MPIOX_LUSTRE_RELEASED
lov_file_bytes mpiox_layout_lustre.c: the component that stands for a file does not depend on the file's size
-file_bytes > 0 ? file_bytes : MPIOX_LUSTRE_NO_END
+MPIOX_LUSTRE_NO_END
lov_length mpiox_layout_lustre.c: what stands behind a template in liblustreapi's block is its objects
-c.object_count == 0 || is_untouched(&c, header, name)
+c.object_count == 0 || (!is_untouched(&c, header, name) && false)
= tests/unit/test_locks_brute_force.py
lock_growth mpiox_lock_model_server.c: locks of Lustre grow downwards however many clients meet
-    if (most > system->forward_holders)
-        grown->low = range->first;
+    (void)range;
token_place mpiox_lock_model_token.c: a holder that is at the requested unit itself keeps its token
-if (first == place || lock->start >= first)
-            *free_at
+if (lock->start >= first)
+            *free_at
token_pass_over mpiox_lock_model_token.c: a token ends where the client's own next one begins
-lock != NULL ? lock->start : INT64_MAX;
+lock != NULL ? lock->start : last;
= tests/unit/test_partition_auto.py::test_near_the_best_fixed_method
  tests/unit/test_partition_auto.py::test_parts_of_a_block_are_never_chosen_where_nobody_locks
auto_parts_of_blocks mpiox_auto_select.c: two clients' caches may share a block where nobody locks
-return method != &mpiox_partition_even || c->facts->layout.lock != MPIOX_LOCK_NONE;
+return true;
auto_rounds mpiox_auto_rounds.c: the first round stands for all
-all > few && i > middle ? all - few + i : i
+i - i
= tests/unit/test_partition_auto.py::test_points_that_were_hard
auto_keep mpiox_auto_select.c: the rules' method is left for what is hardly faster
-if (c->candidates[i].method == c->preferred && CLEARLY * c->candidates[i].time <= best->time)
+if (false)
auto_blocks mpiox_auto_select.c: the fastest method is taken though it is `even`
-if (blocks != NULL && CLEARLY * blocks->time <= best->time)
+if (false)
= tests/unit/test_partition_auto.py::test_near_the_best_fixed_method
  tests/unit/test_partition_auto.py::test_parts_of_a_block_are_never_chosen_where_nobody_locks
auto_circle mpiox_auto_rounds.c: requests that go past the last server are not the first one's
-    if (behind > servers) {
-        t->load[0] += load;
+    if (behind > servers) {
+        t->load[0] += 0;
= tests/unit/test_layout_texts.py
ceph_object_size mpiox_layout_ceph.c: objects of CephFS may end within a stripe unit
- || found.object_size % found.stripe_unit != 0
= tests/unit/test_layout.py
ceph_hashed mpiox_layout_detect.c: the servers of CephFS' objects are taken for known
-    out->hashed = true;
= tests/unit/test_layout_texts.py
gluster_redundancy mpiox_layout_gluster.c: a brick that keeps parity is counted as one of data
-out->redundancy = (int32_t)l->redundancy;
+out->redundancy = (int32_t)l->redundancy - 1;
gluster_shard mpiox_layout_gluster.c: a volume file that leaves the size of shards out has none
-.shard_size = DEFAULT_SHARD
+.shard_size = 0 * DEFAULT_SHARD
mounts_optional mpiox_layout_mounts.c: the type of a mount is what follows its options, whatever fields come between
-if (mpiox_span_is(word, "-"))
+if (mpiox_span_is(word, "-") || true)
mounts_octal mpiox_layout_mounts.c: a blank in the name of a mount point stays as the kernel writes it
-mpiox_span_copy(point, true, out->point
+mpiox_span_copy(point, false, out->point
mounts_last mpiox_layout_mounts.c: of two NFS mounts at one place the lower one counts
-        rc = MPIOX_OK;
-    }
-    return rc;
+        return MPIOX_OK;
+    }
+    return rc;
= tests/unit/test_scheduling.py
schedule_batch_bytes mpiox_schedule.c: a batch has more bytes than the options allow
-bytes > schedule->options.batch_bytes ||
+bytes / 2 > schedule->options.batch_bytes ||
schedule_sjf mpiox_schedule_sjf.c: the longest job is first
-lane->bytes < best->bytes ||
+lane->bytes > best->bytes ||
schedule_wfq_weight mpiox_schedule_wfq.c: weights do not count
-(double)entry->what.length / entry->what.weight
+(double)entry->what.length
schedule_wfq_clock mpiox_schedule_wfq.c: a flow that was idle catches up with the others
-lane->finish > schedule->virtual_time ? lane->finish : schedule->virtual_time
+lane->finish
schedule_hbrr_quantum mpiox_schedule_hbrr.c: a turn does not end with its quantum
-lane->used == 0 || lane->used >= quantum ||
+lane->used == 0 ||
schedule_mlf_turns mpiox_schedule_mlf.c: a file has turns for as long as it has requests
-        schedule->turn = mpiox_schedule_lane_next(schedule, schedule->turn);
-        found
+        if (schedule->lanes[schedule->turn].ready.count == 0)
+            schedule->turn = mpiox_schedule_lane_next(schedule, schedule->turn);
+        found
schedule_twins_window mpiox_schedule_twins.c: a window without requests is passed over
-i < (hurry ? schedule->known : 1)
+i < schedule->known
schedule_aioli_ahead mpiox_schedule_aioli.c: a file waits again and again for what lies before its first request
-        lane->waited_for = at->number + 1;
schedule_aioli_turn mpiox_schedule_aioli.c: the quantum of a file does not follow its use
-    lane->quantum = within(quantum,
+    (void)within(quantum,
schedule_lane_order mpiox_schedule_lane.c: a request that was held is behind newer ones
-while (previous != none && entries[previous].number > entries[entry].number)
+while (false && entries[previous].number > entries[entry].number)
"""


def _mutants() -> Iterator[Mutant]:
    tests: tuple[str, ...] = ()
    for part in re.split(r"\n(?=[^-+ ])", _TEXT.strip()):
        if part.startswith("="):
            tests = tuple(part[1:].split())
            continue
        head, *changed = part.split("\n")
        about, _, what = head.partition(": ")
        name, file = about.split()
        old, new = ("\n".join(line[1:] for line in changed if line[0] == sign) for sign in "-+")
        yield Mutant(name=name, what=what, file=file, old=old, new=new, tests=tests)


MUTANTS = tuple(_mutants())
