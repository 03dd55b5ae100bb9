"""What runs every time, what under a second MPI too, and what only with ``--run-slow`` (nightly: `make test-all`).

Every time: each path of the code once. The same path with other numbers is slow. The second MPI runs what depends on
the MPI in the core of the library; of each tool, and of what no MPI library decides, it runs one test.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

import pytest
from _pytest.mark import ParameterSet


def _table(rows: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the names of tests by the name of their file; both without "test_", and the names apart by spaces."""
    return {f"test_{file}.py": tuple(f"test_{name}" for name in names.split()) for file, names in rows.items()}


#: Modules of tests/mpi and tests/unit of which the second MPI runs these tests alone, named as in :data:`NIGHTLY`.
ONCE = _table(
    {
        "access_modes": "arguments_that_differ_where_mpi_opens_the_file who_differs",
        "advise": "",
        "analytics_bench": "",
        "arbiter_deaths": "",
        "arbiter_hosts": "",
        "arbiter_live": "world_rank_0_leads_no_file",
        "arbiter_slurm": "",
        "bench_arbitration": "",
        "bench_datatypes": "",
        "bench_explore": "",
        "bench_interrupt": "a_job_is_ended[started*",
        "bench_kernels": "",
        "bench_runs": "results_say_everything benchmark_memory",
        "bench_suites": "patterns_and_kernels_in_one_run",
        "bench_transposed": "",
        "build": "c_program_links_by_pkg_config_and_cmake library_and_package_agree "
        "modules_have_every_declared_function nothing_of_the_tools_is_in_the_library "
        "only_names_of_mpi_and_its_own_leave_the_library",
        "cases": "",
        "cluster": "two_hosts[2-multiple-two_phase]",
        "collective_cached": "no_byte_depends_on_who_is_late[1-thread-]",
        "containers": "a_file_beyond_the_largest_size",
        "delegates_crash": "the_end_of_the_file_waits_for_a_rescue[1]",
        "delegates_exchanged": "two_folders_are_exchanged[1-1* two_folders_are_exchanged[5-1*",
        "delegates_files": "a_passing_error_is_told_once",
        "delegates_hosts": "host_vanishes_with_memory",
        "delegates_hung": "a_system_call_that_hangs[sync-open-one* a_start_that_takes_long[3-0-1-*",
        "delegates_life": "modes started_by_the_first_file files_of_parts hdf5_file_that_is_never_closed split "
        "without_the_executable without_a_launcher hosts no_free_slots ranks_without_the_library "
        "program_with_children the_programs_heap_is_its_own slots_are_free_again job_that_dies "
        "killed_launcher killed_delegate killed_supervisor warned_delegates_go_on",
        "delegates_looked_for": "a_file_that_the_rank_itself_has_open a_rank_that_is_killed_while_it_holds_the_file",
        "delegates_places": "places[threads* places[ends*",
        "delegates_posix": "functions_find_what_is_closed[linked] python_finds_what_is_closed "
        "serial_libraries_find_what_is_closed[h5py] a_line_says_where_nobody_waits",
        "delegates_random": "a_few",
        "delegates_scheduled": "without_a_scheduler_nothing_is_counted",
        "delegates_soak": "",
        "delegates_staged": "what_is_closed_is_there[spawn-0-memory-0] ranks_of_a_node_claim_pages "
        "a_file_that_stays_open_is_written_while_nothing_comes[spawn-new]",
        "delegates_staged_again": "each_rank_makes_the_same_file "
        "a_file_is_opened_twice_and_the_only_delegate_dies_between",
        "delegates_staged_deaths": "what_was_closed_is_not_lost[rank-] what_was_closed_is_not_lost[everything* "
        "what_is_made_after_a_death_is_said[]",
        "delegates_staged_hosts": "host_is_lost[1-0]",
        "delegates_staged_moved": "the_job_renames_it the_program_removes_it",
        "delegates_staged_odd": "an_open_that_is_refused_after_the_library_has_opened_the_file",
        "delegates_staged_others": "the_next_job_writes_the_same_file",
        "delegates_staged_told": "",
        "delegates_staged_unnamed": "a_file_that_has_its_own_name_is_whole_when_it_is_closed[parts0]",
        "delegates_status": "a_running_job_is_seen[4-2-spawn]",
        "delegates_waiting": "",
        "diagnosis_corpus": "",
        "differential": "bounded beside_native delegates[mpiox_delegate_mode=thread* "
        "memory_of_a_gpu[Driver.CUDA-mpiox_device_buffer=97-* both_forms_reach_the_mpi_library",
        "docs_commands": "",
        "doctor": "job alone launcher_of_another_mpi",
        "doctor_job": "",
        "doctor_program": "",
        "exchange": "every_byte_arrives[4*ranks,*2*a*node* a_window_is_kept_until_the_other_node_has_its_bytes",
        "exchange_memory": "",
        "existing_codes": "hints_of_pnetcdf_are_not_swallowed",
        "far_pieces": "",
        "file_formats": "same_file[vpicio-transpose*",
        "gpu_memory": "bytes_and_counts[two_phase-DEVICE-Driver.CUDA] bytes_and_counts[independent-DEVICE-Driver.CUDA] "
        "a_driver_that_fails[two_phase-later-copy]",
        "hdf5": "datasets[4] methods[transpose] preloaded",
        "hint_ranges": "texts_that_are_counts[cb_config_list]",
        "layout_create": "all_servers",
        "ledger_traced": "",
        "library_suites": "h5py_parallel_tests netcdf4_example",
        "locks_requests": "requests_by_hand",
        "long_lives": "one_communicator_after_the_other many_communicators_together as_many_files_as_natively "
        "as_many_communicators_as_natively opening_with_many_ranks the_last_descriptors[all-]",
        "many_nodes": "",
        "model": "bounded[two*nodes] bounded[delegates,*two*nodes] a_wrong_library_is_found",
        "mpi4py_io": "default delegates",
        "netcdf4": "round_trip[NETCDF4-4] preloaded missing_file",
        "network_cards": "",
        "python_jobs": "",
        "partition_auto": "a_collective_does_what_the_rules_say",
        "pioneer_all": "from_a_trace_to_a_comparison",
        "pioneer_bench": "",
        "pioneer_killed": "",
        "pioneer_loop": "",
        "pioneer_parts": "",
        "pioneer_programs": "",
        "pioneer_refused": "",
        "pioneer_replay": "a_limit_on_bytes",
        "pioneer_standing": "",
        "pioneer_strace": "",
        "pioneer_tracers_agree": "",
        "posix_costs": "",
        "public_reports": "reported_programs[*-]",
        "recordings_run": "threads a_fortran_program",
        "run_calls": "failures_are_the_first_sentence",
        "run_darshan": "a_log_of_a_run a_rank_that_leaves a_fortran_program",
        "run_parts": "parts_of_the_time",
        "run_report": "what_the_library_did a_rank_that_aborts the_rank_that_failed_first_is_named "
        "a_fortran_program_ends_well",
        "shared_file_systems": "groups_within_a_node[6969-2*",
        "small_accesses": "small_access[write_at] small_access[read_at_all]",
        "statistics_lines": "bytes_of_direct_collectives_are_told accesses_of_the_mpi_library_have_no_end",
        "statistics_none": "a_program_that_opens_no_file one_rank_that_opens_a_file_is_enough ranks_on_other_nodes",
        "statistics_paying": "requests_that_wait_for_a_server_are[collective*",
        "statistics_text": "",
        "subfiles": "everything_of_mpi_io[*-3] files_that_are_closed_before_they_are_written[*-3] "
        "damage_is_told_by_the_opening[*-3] files_that_come_and_go[*-3]",
        "subfiles_changing": "it_is_opened_as_what_it_is_now[*RDWR|CREATE* an_index_that_the_mpi_library_would_have",
        "subfiles_deleted": "what_goes_on_close_is_the_file",
        "subfiles_failures": "a_subfile_that_cannot_be_written full_disk[plain] "
        "a_rank_that_cannot_open_what_was_made[plain] without_permission[first-plain]",
        "subfiles_formats": "is_written",
        "subfiles_hints": "names_that_subfiles_can_have",
        "subfiles_killed": "",
        "subfiles_openers": "two_writers_that_close_it_make_it_whole",
        "subfiles_tools": "what_programs_have_written_is_merged",
        "timeline": "run_makes_one",
        "top": "a_running_job_is_seen",
        "trace": "mpi_calls fortran_program",
        "trace_endings": "threads",
        "tune": "a_program_that_hardly_accesses_data_is_judged_by_that",
        "vectored_memory": "large_blocks[3-blocks-*",
        "view_rules": "texts overlaps_past_delegates",
    }
)

#: Tests that run with ``--run-slow`` only: the same path runs every time in another test, or with other numbers. `*`
#: stands for anything, a space too; without a bracket, a name stands for all of its tests.
NIGHTLY = _table(
    {
        "advise": "a_short_budget_is_enough_for_a_short_program a_short_budget_says_what_it_takes",
        "analyses_engines": "*[spark,*placed* an_analysis_is_the_same[spark-middleware] "
        "an_analysis_is_the_same[spark-read-ratio] an_analysis_is_the_same[spark-sequential] "
        "an_analysis_is_the_same[spark-sharing] batches_of_spark_hold_two_partitions "
        "factors_are_the_same[spark-options0] methods_are_the_same[spark*",
        "analytics_bench": "a_run_of_the_bench_is_evaluated_in_its_report",
        "arbiter_deaths": "a_flood killed_delegates[3-0] old_owners_die[0]",
        "arbiter_hosts": "ranges_move_between_hosts[thread]",
        "arbiter_live": "a_pool_of_256 between_nodes[3] opened_and_closed_all_the_time",
        "arbiter_strangers": "a_flood_is_one_line",
        "bench_arbitration": "two_jobs_in_the_report",
        "bench_explore": "direct_is_direct_in_delegates_too large_requests_go_past_the_delegates "
        "numbers_of_delegates[spawn* stronger_hints_are_found_out wrong_arguments[arguments1* "
        "wrong_arguments[arguments2* wrong_arguments[arguments3*",
        "bench_interrupt": "a_job_is_ended[kept-1.3* a_job_is_ended[measuring*",
        "bench_kernels": "every_kernel[4]",
        "bench_runs": "benchmark_independent_calls[small] default_output_folder error_of_one_rank_ends_all[5] "
        "every_pattern_under_every_method[1] native_size_is_marked "
        "wrong_argument_or_path[arguments10-* wrong_argument_or_path[arguments2-* "
        "wrong_argument_or_path[arguments3-* wrong_argument_or_path[arguments4-* wrong_argument_or_path[arguments5-* "
        "wrong_argument_or_path[arguments6-* wrong_argument_or_path[arguments7-* wrong_argument_or_path[arguments8-* "
        "wrong_argument_or_path[arguments9-*",
        "bench_suites": "h5py_that_cannot_be_used[missing] no_space_in_the_middle[mpiio-even* "
        "no_space_in_the_middle[pnetcdf* second_suite_ends_at_once",
        "bench_transposed": "every_grid[2] every_grid[4]",
        "build": "structure_of_the_sources",  # `make lint`
        "cache_c": "accesses_with_many_tokens[4097] accesses_with_many_tokens[7326] "
        "requests_of_processes_with_many_tokens[4095] requests_of_processes_with_many_tokens[7326] "
        "requests_with_many_tokens[checked-4095] requests_with_many_tokens[checked-7326] "
        "requests_with_many_tokens[raced-4095] requests_with_many_tokens[raced-4097] "
        "requests_with_many_tokens[raced-65000] that_search_finds_mistakes[a*leap*beyond*the*set] "
        "that_search_finds_mistakes[a*summary*cleared*",
        "climate": "the_published_year_as_a_page",
        "cluster": "killed_ranks_of_a_host[2] two_hosts[1-* two_hosts[2-single-two_phase]",
        "comings": "native preloaded[1*a*node]",
        "containers": "an_error_only_where_the_mpi_library_has_one[as=3145728] "
        "an_error_only_where_the_mpi_library_has_one[as=50331648] "
        "an_error_only_where_the_mpi_library_has_one[as=8388608] "
        "an_error_only_where_the_mpi_library_has_one[nofile=1] an_error_only_where_the_mpi_library_has_one[nofile=2] "
        "an_error_only_where_the_mpi_library_has_one[nofile=6] delegates[io_uring*forbidden-thread] "
        "delegates[no*/proc-thread] delegates[no*io_uring-thread] delegates[no*locked*memory-thread] "
        "delegates[no*memfd-thread] delegates[no*process_vm_readv-thread] delegates[own*process*ids-thread] "
        "delegates[process*ids*without*/proc*of*their*own-thread] delegates[read-only*and*no*memfd-thread] "
        "delegates[read-only-thread] delegates[small*/dev/shm*and*no*memfd-thread] delegates[small*/dev/shm-thread] "
        "delegates[users-thread]",
        "delegates_abort": "nothing_acknowledged_is_lost[1-1-spawn] nothing_acknowledged_is_lost[3-2-thread]",
        "delegates_crash": "killed_delegates[memory] killed_delegates_with_a_scheduler",
        "delegates_exchanged": "two_folders_are_exchanged[1-2* two_folders_are_exchanged[4-1* "
        "two_folders_are_exchanged[4-2* two_folders_are_exchanged[5-2* two_folders_are_exchanged[7-2* "
        "two_folders_are_exchanged[9-2*",
        "delegates_files": "a_busy_delegate_gives_ranges_away[3-0-spawn] "
        "a_busy_delegate_gives_ranges_away[4-2-thread] a_call_in_between_does_not_keep_it_to_itself[3-0] "
        "a_full_disk_and_a_killed_delegate[memory-0] a_full_disk_and_a_killed_delegate[memory-1] "
        "a_full_disk_and_a_killed_delegate[replica-0] a_passing_error_is_told_once[thread] caches_on_disks[thread] "
        "calls_are_told_before_the_sync[2-1-disk-spawn] calls_are_told_before_the_sync[2-1-memory-spawn] "
        "calls_are_told_before_the_sync[2-1-memory-thread] calls_are_told_before_the_sync[2-1-replica-spawn] "
        "calls_are_told_before_the_sync[2-1-replica-thread] calls_are_told_before_the_sync[3-0-disk-spawn] "
        "calls_are_told_before_the_sync[3-0-disk-thread] calls_are_told_before_the_sync[3-0-memory-spawn] "
        "calls_are_told_before_the_sync[3-0-replica-thread] collected_writes_follow_their_pages[4-2-thread] "
        "collected_writes_follow_their_pages[5* errors_of_closing_are_told[3-thread] "
        "errors_while_flushing[3-EIO-IO-spawn] errors_while_flushing[3-ENOSPC-NO_SPACE-thread] "
        "every_refused_range_is_told[2-3-spawn] every_refused_range_is_told[2-3-thread] "
        "every_refused_range_is_told[3-2-thread] full_disk[thread] owners_suit_the_servers[2-7-1] "
        "owners_suit_the_servers[3-6-3] owners_suit_the_servers[4-4-4] owners_suit_the_servers[5-1-5] "
        "settings_that_come_too_late[thread] what_is_written_again_is_not_lost[3-0]",
        "delegates_hosts": "access[1-thread] access[2-spawn] host_vanishes[disk] killed_delegate[replica]",
        "delegates_hung": "a_start_that_takes_long[0-3-1-* a_system_call_that_hangs[sync-delete-two* "
        "a_system_call_that_hangs[sync-open-two* a_system_call_that_hangs[sync-stat-* "
        "a_system_call_that_hangs[write-stat-one* both_delegates_hang[write]",
        "delegates_life": "files_of_parts[thread] hdf5_file_that_is_never_closed[thread] impossible_settings[thread] "
        "job_that_dies[abort-3-1-thread] job_that_dies[kill-3-2-thread] job_that_dies[kill-4-0-spawn] "
        "killed_delegate[1-0-0] killed_delegate[4-2-1] killed_delegate[7-3-2] killed_launcher[thread] "
        "killed_supervisor[both] modes[1-0-1-* modes[3-0-50%-nodes1-thread] modes[4-1-2-nodes2-spawn] "
        "modes[7-3-per_node=2-nodes3-spawn] program_with_children[thread] split[2-1-0] "
        "started_by_the_first_file[thread]",
        "delegates_places": "places[children-nodes] places[ends-nodes] places[handler-one*node] "
        "places[threads-one*node]",
        "delegates_posix": "functions_find_what_is_closed[plain] functions_find_what_is_closed[thread] "
        "scratch_files_that_are_looked_for[netCDF4* serial_libraries_find_what_is_closed[netCDF4*again]",
        "delegates_random": "a_cache_of_many_pages[0-thread] a_cache_of_many_pages[512-spawn] a_few[True] "
        "absurd_sizes[bypass] absurd_sizes[cache]",
        "delegates_scheduled": "every_byte_under_each_scheduler[aioli] every_byte_under_each_scheduler[hbrr] "
        "every_byte_under_each_scheduler[sjf] every_byte_under_each_scheduler[to_agg] "
        "in_processes_between_nodes_and_with_replicas[*spawn*",
        "delegates_soak": "short[thread]",
        "delegates_staged": "a_file_that_stays_open_is_written_while_nothing_comes[thread-new] "
        "a_full_scratch_file_is_read[1-380000-0] a_full_scratch_file_is_read[2-350000-1] "
        "an_fsync_that_fails_once[EIO-parts0] an_fsync_that_fails_once[ENFILE-parts1] "
        "disk_of_a_cache_does_not_take_it[replica-8192] disk_refuses[full-goes*on-parts3] "
        "disk_refuses[full-killed-parts1] it_is_seen_and_waited_for[parts0] scratch_files_go_with_the_job[parts0] "
        "what_is_closed_is_there[spawn-0-memory-3] what_is_closed_is_there[spawn-1-replica-0] "
        "what_is_closed_is_there[thread-1-memory-0] what_says_who_has_bytes_is_removed[parts0] "
        "what_the_file_system_refuses[parts0]",
        "delegates_staged_again": "scratch_files_are_found_when_all_delegates_have_died[1-0]",
        "delegates_staged_deaths": "deaths_on_full_disks[files-everything--1] recover_on_all_nodes_but_one[0-] "
        "restart_from_what_is_left[*-replica-] what_is_open_again_is_not_lost[both--False-3-24] "
        "what_is_open_again_is_not_lost[rank--True-1-10] what_was_closed_is_not_lost[both-] "
        "what_was_closed_is_not_lost[delegate-mpiox* what_was_closed_is_not_lost[everything-] "
        "what_was_closed_is_not_lost[node-mpiox* what_was_closed_is_not_lost[rank-mpiox*",
        "delegates_staged_hosts": "host_is_lost[0-4] what_is_closed_is_there[memory-0]",
        "delegates_staged_moved": "others_remove_it[parts0] the_folder_of_a_file_that_is_open[parts0] "
        "the_folder_of_a_file_that_is_written[parts0--memory] the_job_comes_back_to_it[parts1] "
        "the_program_removes_it[os.unlink(name)]",
        "delegates_staged_odd": "a_part_of_a_delegate_that_was_killed_in_an_open[0-parts0] "
        "a_part_of_a_delegate_that_was_killed_in_an_open[2-parts1] mv_to_another_file_system[False-parts1] "
        "mv_to_another_file_system[True-parts0] subfiles_that_somebody_has_locked[1]",
        "delegates_staged_others": "a_part_was_drained_before_others_wrote[0] nobody_else_has_written[20000-1] "
        "nodes_one_after_the_other[False] one_crash_after_the_other[] what_others_have_written_since_stays[3600.0]",
        "delegates_staged_told": "a_full_disk_takes_a_line_of_each_delegate[1] "
        "a_full_disk_takes_a_line_of_each_delegate[4]",
        "delegates_status": "a_running_job_is_seen[1-1-spawn] a_running_job_is_seen[4-2-thread] "
        "collectives_past_the_delegates_are_counted[spawn] "
        "the_run_says_what_its_delegates_have_counted[2-environment0-spawn] "
        "the_run_says_what_its_delegates_have_counted[4-environment1-thread] "
        "the_run_says_what_its_delegates_have_counted[5-environment2-*",
        "delegates_waiting": "a_slow_file_system a_stopped_delegate[0-2]",
        "diagnosis_corpus": "the_first_sentence_is_right[metadata_storm-plain] "
        "the_first_sentence_is_right[root_metadata* the_first_sentence_is_right[shared_opens*",
        "differential": "as_on_other_file_systems memory_of_a_gpu[Driver.HIP-* subfiles[3-4096-2]",
        "docs_commands": "commands_of_a_page[hdf5] commands_of_a_page[timeline]",
        "doctor": "job[1] rank_that_does_not_come",
        "error_handlers": "errors_of_nonblocking_calls[1] fatal_handlers_end_the_job[*-count-native] "
        "fatal_storage_error[1] preloaded[1] wrong_on_one_rank_only[2-2] wrong_on_one_rank_only[3-3] "
        "wrong_on_one_rank_only[4-4]",
        "existing_codes": "hints_by_file_name[btio* hints_by_file_name[climate* "
        "hints_by_file_name[flashio-mpiexec_run] hints_by_file_name[ipic3d* hints_by_file_name[ncmpigen-* "
        "hints_by_file_name[s3dio-run_mpiexec] hints_by_file_name[vpicio-mpiexec_run] "
        "staged_closes_change_no_byte[btio-4] staged_closes_change_no_byte[s3dio-2]",
        "factors_logs": "both_ways_give_the_same_factors[write-sample-badost]",
        "faults": "beyond_the_file_size_limit[1-* collectives_fail_alike_and_work_on[3-0-*EDQUOT* "
        "collectives_fail_alike_and_work_on[4-1-* collectives_fail_alike_and_work_on[7-3-* full_disk[1-0-* "
        "independent_calls_fail_by_themselves[*-1-nonblocking] independent_calls_fail_by_themselves[*-3-independent] "
        "native short_and_interrupted_transfers_are_finished[*-1]",
        "file_formats": "formats_of_netcdf[*-NETCDF3_CLASSIC] formats_of_netcdf[*-NETCDF4] "
        "formats_of_netcdf[*-NETCDF4_CLASSIC] same_file[btio-auto] same_file[btio-transpose* same_file[climate-auto] "
        "same_file[climate-transpose* same_file[flashio-auto] same_file[ipic3d-auto] same_file[ipic3d-transpose* "
        "same_file[ncmpigen-auto] same_file[s3dio-auto] same_file[vpicio-auto] stored_as_several[btio] "
        "stored_as_several[climate] stored_as_several[flashio] stored_as_several[ipic3d] stored_as_several[ncmpigen]",
        "gpu_memory": "a_driver_of_hip_that_fails[later-copy] a_driver_that_fails[cached-later-copy] "
        "a_driver_that_fails[direct-later-copy] a_driver_that_fails[nodes-later-copy] "
        "a_driver_that_fails[nonblocking-later-copy] a_driver_that_is_loaded_late[never] "
        "a_driver_that_is_loaded_late[replica] a_driver_that_no_longer_answers[delegates-cuP* "
        "a_driver_that_no_longer_answers[direct-* a_driver_that_no_longer_answers[independent-cuS* "
        "a_driver_that_no_longer_answers[nodes-* a_driver_that_no_longer_answers[two_phase-cuP* "
        "a_read_that_fails[delegates] a_read_that_fails[nodes] arrays_and_datasets[chunked-collective] "
        "arrays_and_datasets[contiguous-independent] bytes_and_counts[*-DEVICE-Driver.HIP] "
        "bytes_and_counts[cached-DEVICE-Driver.CUDA] bytes_and_counts[nodes-DEVICE-Driver.CUDA] "
        "bytes_and_counts[sieved-DEVICE-Driver.CUDA] bytes_and_counts[two_phase-POOL-Driver.CUDA] "
        "host_memory_is_no_more_than_the_access_needs[delegates] "
        "host_memory_is_no_more_than_the_access_needs[direct] host_memory_is_no_more_than_the_access_needs[nodes] "
        "host_memory_of_which_the_driver_says_nothing[delegates* "
        "host_memory_of_which_the_driver_says_nothing[independent* memory_that_no_driver_copies[direct] "
        "memory_that_no_driver_copies[independent] memory_that_the_processor_can_access[*PINNED] "
        "memory_that_the_processor_can_access[independent* one_datatype_with_memory_of_host_and_gpu[delegates-read] "
        "one_datatype_with_memory_of_host_and_gpu[independent-write] "
        "one_datatype_with_memory_of_host_and_gpu[two_phase-read] the_end_of_the_file[direct] "
        "the_end_of_the_file[nodes] the_next_access_works[independent] the_next_access_works[nodes]",
        "hdf5": "datasets[1] datasets[2] datasets[5]",
        "hint_ranges": "texts_that_are_counts[mpiox_delegates] smallest_usual_and_largest[mpiox_delegate_patience] "
        "smallest_usual_and_largest[mpiox_delegate_quantum] smallest_usual_and_largest[mpiox_delegate_report] "
        "smallest_usual_and_largest[mpiox_delegate_time* smallest_usual_and_largest[mpiox_delegate_weight]",
        "histories_published": "the_rows_of_five_file_systems_are_those_of_the_paper_in_one_command",
        "internal_failures": "a_leader_that_cannot_go_on[Isend-0-*",
        "interpose": "c_program_preloaded[1] fortran_calls[mpi] fortran_program[mpi-linked] "
        "fortran_program[mpi-preloaded] fortran_program[mpif.h-linked]",
        "job_of_logs": "report_and_analyze_begin_with_the_same_sentence[known_truth-one_writer* "
        "report_and_analyze_begin_with_the_same_sentence[known_truth-random_reads* "
        "report_and_analyze_begin_with_the_same_sentence[strangers-dfs* "
        "report_and_analyze_begin_with_the_same_sentence[strangers-python*",
        "killed_ranks": "a_dead_rank_ends_the_job[exit-inside-3-4-1-* a_dead_rank_ends_the_job[exit-opening* "
        "a_dead_rank_ends_the_job[kill-inside-0-3-0-* a_dead_rank_ends_the_job[kill-inside-6-*",
        "launched": "it_is_ended_with_the_command[1]",
        "ledger_bounds": "no_bound_excludes_the_truth[2] no_bound_excludes_the_truth[3]",
        "library_suites": "h5py_parallel_tests[transpose* netcdf4_compressed_example[transpose* "
        "netcdf4_example[auto-NETCDF3* netcdf4_example[transpose*",
        "lifetime": "closed_inside_finalize[*-2-0] closed_inside_finalize[*-2-1] closed_inside_finalize[behind-1-0] "
        "closed_inside_finalize[closed-4-0] h5py_without_close[2-1] h5py_without_close[4-0] never_closed[2-0] "
        "never_closed[4-0] sessions[*-0-2] sessions[*-1-1] statistics_on_one_rank[alone-1] "
        "statistics_on_one_rank[plain-0]",
        "long_lives": "the_last_descriptors[first-* the_last_descriptors[last-*cache*",
        "model": "bounded[delegates,*as*they*come] bounded[delegates,*some*opens] bounded[delegates,*threads* "
        "bounded[short*transfers]",
        "mpi4py_io": "delegates[thread-2-1]",
        "netcdf4": "methods_leave_the_native_bytes[aligned] methods_leave_the_native_bytes[even] "
        "methods_leave_the_native_bytes[static_cyclic] round_trip[*-1]",
        "network_c": "coverage_guided_fuzzing races[test_link-0] "
        "random_accesses_over_a_connection_that_suffers[short=777]",
        "opening": "many_files_on_many_communicators[1-multiple] many_files_on_many_communicators[2-* "
        "many_files_on_many_communicators[3-* many_files_on_many_communicators[7-multiple] "
        "many_files_on_many_communicators[7-serialized] one_rank_that_cannot_follow[2-0-* "
        "one_rank_that_cannot_follow[5-0-* one_rank_that_cannot_follow[5-1-serialized]",
        "overlapping_tiles": "overlapping_tiles[1-pretended_nodes] overlapping_tiles[2-* "
        "overlapping_tiles[3-one_node] overlapping_tiles[7-*",
        "partition_auto": "near_the_best_fixed_method[20081115]",
        "pioneer_all": "which_bytes_every_rank_touches",
        "pioneer_bench": "everything_but_names",
        "pioneer_fits": "the_test_rejects_as_often_as_it_says[exponential]",
        "pioneer_killed": "killed[TERM]",
        "pioneer_loop": "a_replay_records_the_path_alone several_handles_on_one_file[4]",
        "pioneer_parts": "an_odd_number_of_ranks_and_one the_loop_closes[8]",
        "pioneer_rawtrace_c": "coverage_guided_fuzzing",
        "pioneer_refused": "random_paths_are_refused_or_carried_out[3] random_paths_under_the_address_sanitizer",
        "pioneer_replay": "a_trace_without_opens[3] everything_is_done[1] files_of_other_ranks[5] "
        "limits_on_what_is_made ranks_keep_their_groups[8] slack_times_are_spun_for_as_asked[0] "
        "slack_times_are_spun_for_as_asked[None] the_extension_is_used_when_it_is_asked_for[] "
        "the_extension_is_used_when_it_is_asked_for[preloaded]",
        "pioneer_strace": "the_replay_makes_the_calls_of_the_trace[4]",
        "pioneer_tracers_agree": "ltrace_and_the_tracer_agree[files] ltrace_and_the_tracer_agree[interleaved]",
        "plain_init": "no_access_is_the_mpi_librarys[*-3-1] small_pieces_go_to_the_mpi_library[3-1]",
        "programs_c": "module_under_sanitizers[auto_select* module_under_sanitizers[common/test_wake*",
        "progress": "order[*-2-*",
        "public_reports": "reported_programs[*mpiox_exchange=direct] reported_programs[calls*direct] "
        "reported_programs[calls*static* reported_programs[hdf5-cartesian-*direct] reported_programs[hdf5-uneven-**",
        "query_algorithm1": "factors_*[spark] files_of_any_join[spark]",
        "query_analyses": "*[spark*",
        "query_gateway": "a_real_start_is_quiet",
        "query_operators": "*[spark] approximate_percentiles_keep_their_promise[*-spark]",
        "query_placed": "placed_tables_give_the_same_rows[spark*",
        "query_units": "*[spark]",
        "run_darshan": "a_fortran_program[True] a_rank_that_leaves[0-run_mpiexec] a_rank_that_leaves[1-mpiexec_run] "
        "the_counters_are_darshans[few_aggregators* the_counters_are_darshans[metadata_storm* "
        "the_counters_are_darshans[random_reads*",
        "run_report": "a_fortran_program_ends_well[2] a_rank_that_aborts[run_mpiexec] "
        "a_rank_that_is_killed[mpiexec_run] the_first_error_is_the_programs_own[--darshan* "
        "the_first_error_is_the_programs_own[--timeline* the_first_sentence_names_the_cause[imbalance] "
        "the_first_sentence_names_the_cause[metadata_storm] the_first_sentence_names_the_cause[mostly_compute] "
        "the_first_sentence_names_the_cause[one_writer] the_first_sentence_names_the_cause[random_reads] "
        "the_first_sentence_names_the_cause[read_modify_write] the_first_sentence_names_the_cause[shared_opens] "
        "the_first_sentence_names_the_cause[unaligned] the_first_sentence_names_the_cause[uneven_collective] "
        "the_rank_that_failed_first_is_named[kill-4-False] what_the_library_did[1-* "
        "what_the_library_did[4-mpiexec_run]",
        "server_c": "flush_barriers[raced] model[1-5-0-1] model[3-3-0-1] model[4081-4-0-2] model[7310-4-0-2] "
        "model_has_no_races[6] model_under_each_scheduler[1-3-1-* model_under_each_scheduler[100-* "
        "schedulers_have_no_races[wfq]",
        "shared_file_systems": "groups_within_a_node[*-ours10] groups_within_a_node[*-ours1] "
        "groups_within_a_node[*-ours2] groups_within_a_node[*-ours3] groups_within_a_node[*-ours4] "
        "groups_within_a_node[*-ours6] groups_within_a_node[*-ours8] groups_within_a_node[*-ours9]",
        "shared_memory": "containers[2]",
        "small_accesses": "small_access[read] small_access[read_all] small_access[write_all]",
        "sources_databases": "the_command_outlives_damaged_hdf5",
        "statistics_paying": "requests_that_wait_for_a_server_are[jumps-False]",
        "statistics_text": "levels[*-1] levels[False-true] levels[True-full] levels[True-line] levels[True-true] "
        "levels_of_one_file[true]",
        "strangers": "native",
        "subfiles": "*[*-4] *[*-7] an_index_that_was_emptied_is_made_anew[4]",
        "subfiles_changing": "it_is_opened_as_what_it_is_now[*-RDWR-* it_is_opened_as_what_it_is_now[*-WRONLY-* "
        "it_is_opened_as_what_it_is_now[none*-delegates] it_is_opened_as_what_it_is_now[plain*-delegates]",
        "subfiles_deleted": "subfiles_stay_when_the_index_goes_past_mpi[replaced] "
        "what_still_has_a_name_stays[a*copy-written] what_still_has_a_name_stays[a*file*that*was*renamed-staged] "
        "what_still_has_a_name_stays[a*hard*link-written] what_still_has_a_name_stays[a*symbolic*link-staged]",
        "subfiles_failures": "a_delegate_is_killed[memory-written] full_disk[nodes] "
        "the_folder_of_another_user[staged] the_name_of_the_folder_is_no_folder[file-staged] "
        "the_name_of_the_folder_is_no_folder[link-plain] without_permission[first-delegates] "
        "without_permission[folder-delegates] without_permission[other-plain]",
        "subfiles_merge": "the_extremes[1-4096]",
        "subfiles_openers": "an_unfinished_file_that_two_open_stays_unfinished[1] "
        "nobody_removes_what_is_open[merge*RDONLY] nobody_removes_what_is_open[rm-RDWR] "
        "who_opens_it_meanwhile_waits[work0-*RDONLY] who_opens_it_meanwhile_waits[work1-*RDONLY] "
        "who_opens_it_meanwhile_waits[work2-*RDONLY] who_opens_it_meanwhile_waits[work3-*RDWR] "
        "who_opens_it_meanwhile_waits[work4-*RDONLY]",
        "summarize_job": "no_damage_of_a_source_costs_another",
        "threads": "atomic_mode[1-0-True] atomic_mode[3-0-True] collective_opens[1] "
        "collectives_on_different_files[1-0-] collectives_on_different_files[1-0-mpiox* "
        "collectives_on_different_files[3-0-] collectives_on_different_files[3-0-mpiox* nonblocking[1-True] "
        "nonblocking[3-True] on_pretended_nodes[1] preloaded[1]",
        "timeline": "delegates[spawn] run_makes_one[mpiexec_run]",
        "top": "a_running_job_is_seen[1-1] a_running_job_is_seen[4-0]",
        "trace": "fortran_program[1-*",
        "trace_endings": "a_real_full_disk a_signal_handler_that_ends_the_process[1250] "
        "a_signal_handler_that_ends_the_process[1500] a_signal_handler_that_ends_the_process[2000] "
        "a_signal_handler_that_ends_the_process[2250] a_signal_handler_that_ends_the_process[2750] "
        "a_signal_handler_that_ends_the_process[3000] a_signal_handler_that_ends_the_process[3250] "
        "a_signal_handler_that_ends_the_process[3500]",
        "tune": "a_bad_hints_file_is_beaten",
        "tune_evidence": "two_equal_settings_win_at_most_as_often_as_the_confidence_says[10-*",
        "typemap_c": "coverage_guided_fuzzing[runs-6000]",
        "typemap_datatypes": "random_datatypes_against_pack",
        "view_rules": "overlaps_past_delegates[1] overlaps_past_delegates[2] overlaps_past_delegates[4] "
        "overlaps_past_delegates[5] texts[1]",
        "weak_memory": "protocols_and_their_mutants[agreement-NODES=2] protocols_and_their_mutants[individual-ALONE=7]",
    }
)


def slow(*values: object) -> list[ParameterSet]:
    """Return values for parametrize() that are for ``--run-slow``; a tuple has one value for each name."""
    return [pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.slow) for each in values]


@functools.cache
def _named(tests: tuple[str, ...]) -> re.Pattern[str]:
    """Return what the names of the tests look like that a row of a table has."""
    names = ("(?:\\[.*)?".join((re.escape(name).replace(r"\*", ".*"), "")) for name in tests)
    return re.compile("|".join(names) or "(?!)")


def is_nightly(item: pytest.Item) -> bool:
    """Tell whether :data:`NIGHTLY` names a test."""
    return _named(NIGHTLY.get(item.path.name, ())).fullmatch(item.name) is not None


def runs_under_both(item: pytest.Item) -> bool:
    """Tell whether the second MPI runs a test, too."""
    if "mpi" not in item.keywords:
        return False
    only = ONCE.get(item.path.name)
    return only is None or _named(only).fullmatch(item.name) is not None
