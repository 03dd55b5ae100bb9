"""What runs every time, what under a second MPI too, and what only with ``--run-slow`` (nightly: `make test-all`).

Every time: each path of the code once. The same path with other numbers is slow. The second MPI runs what depends on
the MPI in the core of the library; of each tool, and of what no MPI library decides, it runs one test.
"""

from __future__ import annotations

import functools
import re

import pytest
from _pytest.mark import ParameterSet

#: Modules of tests/mpi and tests/unit of which the second MPI runs these tests alone, named as in :data:`NIGHTLY`.
ONCE: dict[str, tuple[str, ...]] = {
    f"test_{name}.py": tuple(f"test_{test}" for test in tests.split())
    for name, tests in {
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
        "cases": "",
        "cluster": "two_hosts[2-multiple-two_phase]",
        "collective_cached": "no_byte_depends_on_who_is_late[1*",
        "containers": "a_file_beyond_the_largest_size",
        "delegates_crash": "the_end_of_the_file_waits_for_a_rescue[1]",
        "delegates_exchanged": "two_folders_are_exchanged[1-1* two_folders_are_exchanged[5-1*",
        "delegates_files": "a_passing_error_is_told_once",
        "delegates_hosts": "host_vanishes_with_memory",
        "delegates_hung": "a_system_call_that_hangs[sync-open* a_start_that_takes_long",
        "delegates_life": "modes started_by_the_first_file files_of_parts hdf5_file_that_is_never_closed split "
        "without_the_executable without_a_launcher hosts no_free_slots ranks_without_the_library "
        "program_with_children the_programs_heap_is_its_own slots_are_free_again job_that_dies "
        "killed_launcher killed_delegate killed_supervisor warned_delegates_go_on",
        "delegates_looked_for": "a_file_that_the_rank_itself_has_open a_rank_that_is_killed_while_it_holds_the_file",
        "delegates_places": "places[threads* places[ends*",
        "delegates_posix": "functions_find_what_is_closed[plain] functions_find_what_is_closed[linked] "
        "python_finds_what_is_closed serial_libraries_find_what_is_closed",
        "delegates_random": "a_few",
        "delegates_scheduled": "without_a_scheduler_nothing_is_counted",
        "delegates_soak": "",
        "delegates_staged": "what_is_closed_is_there[spawn-0-memory-0] ranks_of_a_node_claim_pages "
        "a_file_that_stays_open_is_written_while_nothing_comes[spawn-new] pnetcdf_finds_whole_files_alone",
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
        "docs_commands": "",
        "doctor": "job alone launcher_of_another_mpi",
        "doctor_job": "",
        "doctor_program": "",
        "exchange_memory": "",
        "existing_codes": "hints_of_pnetcdf_are_not_swallowed",
        "file_formats": "same_file[vpicio-transpose*",
        "hint_ranges": "texts_that_are_counts[cb_config_list]",
        "layout_create": "all_servers",
        "library_suites": "h5py_parallel_tests netcdf4_example",
        "locks_requests": "requests_by_hand",
        "long_lives": "one_communicator_after_the_other many_communicators_together as_many_files_as_natively "
        "as_many_communicators_as_natively opening_with_many_ranks the_last_descriptors[all-]",
        "many_nodes": "windows_of_rounds",
        "network_cards": "",
        "notebook": "",
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
        "run_darshan": "a_log_of_a_run a_rank_that_leaves a_fortran_program",
        "run_report": "what_the_library_did a_rank_that_aborts the_rank_that_failed_first_is_named "
        "a_fortran_program_ends_well",
        "shared_file_systems": "groups_within_a_node[6969-2*",
        "small_accesses": "small_access",
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
    }.items()
}

#: Tests that run with ``--run-slow`` only: the same path runs every time in another test, or with other numbers. `*`
#: stands for anything; without a bracket, a name stands for all of its tests.
NIGHTLY: dict[str, tuple[str, ...]] = {
    f"test_{name}.py": tuple(f"test_{test}" for test in tests)
    for name, tests in {
        "advise": ("a_short_budget_says_what_it_takes", "a_short_budget_is_enough_for_a_short_program"),
        "analyses_engines": ("*[spark, placed*", "batches_of_spark_hold_two_partitions", "methods_are_the_same[spark*"),
        "arbiter_deaths": ("killed_delegates[3-0]", "a_flood"),
        "arbiter_live": ("a_pool_of_256", "between_nodes[3]", "opened_and_closed_all_the_time"),
        "arbiter_strangers": ("a_flood_is_one_line",),
        "bench_arbitration": ("two_jobs_in_the_report",),
        "bench_explore": (
            "direct_is_direct_in_delegates_too",
            "large_requests_go_past_the_delegates",
            "numbers_of_delegates[spawn*",
            "stronger_hints_are_found_out",
            "wrong_arguments[arguments1*",
            "wrong_arguments[arguments2*",
            "wrong_arguments[arguments3*",
        ),
        "bench_interrupt": ("a_job_is_ended[measuring*", "a_job_is_ended[kept*launcher]"),
        "bench_kernels": ("every_kernel[4]",),
        "bench_runs": (
            "benchmark_independent_calls[small]",
            "default_output_folder",
            "error_of_one_rank_ends_all[5]",
            "every_pattern_under_every_method[1]",
            "native_size_is_marked",
            "scaling_quick",
            *(f"wrong_argument_or_path[arguments{number}-*" for number in range(2, 11)),
        ),
        "bench_suites": (
            "h5py_that_cannot_be_used[missing]",
            "no_space_in_the_middle[mpiio-even*",
            "no_space_in_the_middle[pnetcdf*",
            "second_suite_ends_at_once",
        ),
        "bench_transposed": ("every_grid[4]",),
        "cache_c": (
            "that_search_finds_mistakes[a leap beyond the set]",
            "that_search_finds_mistakes[a summary cleared*",
        ),
        "climate": ("the_published_year_as_a_page",),
        "cluster": ("killed_ranks_of_a_host[2]",),
        "comings": ("native",),
        "delegates_crash": ("killed_delegates[memory]", "killed_delegates_with_a_scheduler"),
        "delegates_files": ("collected_writes_follow_their_pages[5*",),
        "delegates_hosts": ("host_vanishes[disk]",),
        "delegates_random": ("a_few[True]",),
        "delegates_scheduled": ("in_processes_between_nodes_and_with_replicas[*spawn*",),
        "differential": ("as_on_other_file_systems",),
        "delegates_waiting": ("a_slow_file_system",),
        "docs_commands": ("commands_of_a_page[hdf5]", "commands_of_a_page[timeline]"),
        "doctor": ("rank_that_does_not_come",),
        "existing_codes": (
            "hints_by_file_name[ipic3d*",
            "hints_by_file_name[climate-mpiexec_run]",
            "hints_by_file_name[btio-run_mpiexec]",
            "hints_by_file_name[flashio-mpiexec_run]",
        ),
        "factors_logs": ("both_ways_give_the_same_factors[write-sample-badost]",),
        "faults": ("native",),
        "file_formats": ("same_file[climate-auto]", "same_file[ipic3d-auto]"),
        "hdf5": ("datasets[1]",),
        "hint_ranges": (
            "smallest_usual_and_largest[mpiox_delegate_patience]",
            "smallest_usual_and_largest[mpiox_delegate_quantum]",
            "smallest_usual_and_largest[mpiox_delegate_report]",
            "smallest_usual_and_largest[mpiox_delegate_time*",
            "smallest_usual_and_largest[mpiox_delegate_weight]",
        ),
        "histories_published": ("the_rows_of_five_file_systems_are_those_of_the_paper_in_one_command",),
        "library_suites": (
            "netcdf4_example[transpose+mpiox_ranks_per_node=1-NETCDF4]",
            "netcdf4_compressed_example[transpose*",
        ),
        "model": ("bounded[delegates, as they come]", "bounded[delegates, threads*", "bounded[short transfers]"),
        "mpi4py_io": ("delegates[thread-2-1]",),
        "network_c": ("races[test_link-0]",),
        "network_cards": ("cards_are_counted[0-*", "cards_are_counted[1-*"),
        "opening": ("many_files_on_many_communicators[7-serialized]",),
        "partition_auto": ("near_the_best_fixed_method[20081115]",),
        "pioneer_all": ("which_bytes_every_rank_touches",),
        "pioneer_bench": ("everything_but_names",),
        "pioneer_killed": ("killed[TERM]",),
        "pioneer_loop": ("a_replay_records_the_path_alone", "several_handles_on_one_file[4]"),
        "pioneer_parts": ("an_odd_number_of_ranks_and_one",),
        "pioneer_refused": ("random_paths_are_refused_or_carried_out[3]", "random_paths_under_the_address_sanitizer"),
        "pioneer_replay": (
            "a_trace_without_opens[3]",
            "files_of_other_ranks[5]",
            "limits_on_what_is_made",
            "ranks_keep_their_groups[8]",
            "slack_times_are_spun_for_as_asked[0]",
            "slack_times_are_spun_for_as_asked[None]",
        ),
        "pioneer_strace": ("the_replay_makes_the_calls_of_the_trace[4]",),
        "programs_c": ("module_under_sanitizers[auto_select*",),
        "public_reports": ("reported_programs[calls*direct]", "reported_programs[hdf5-uneven-**"),
        "query_algorithm1": ("factors_*[spark]", "files_of_any_join[spark]"),
        "query_analyses": ("*[spark*",),
        "query_dispatch": ("placed_tables_give_the_same_rows[spark*",),
        "query_operators": (
            "*[spark]",
            "approximate_percentiles_keep_their_promise[even-spark]",
            "approximate_percentiles_keep_their_promise[long tail-spark]",
        ),
        "query_gateway": ("a_real_start_is_quiet",),
        "query_units": ("*[spark]",),
        "run_darshan": ("the_counters_are_darshans[few_aggregators*", "the_counters_are_darshans[random_reads*"),
        "run_report": (
            "the_first_sentence_names_the_cause[imbalance]",
            "the_first_sentence_names_the_cause[mostly_compute]",
            "the_first_sentence_names_the_cause[one_writer]",
            "the_first_sentence_names_the_cause[read_modify_write]",
            "the_first_sentence_names_the_cause[shared_opens]",
            "the_first_sentence_names_the_cause[unaligned]",
            "the_first_sentence_names_the_cause[uneven_collective]",
            "the_first_error_is_the_programs_own[--timeline*",
            "what_the_library_did[1-*",
            "a_rank_that_is_killed[mpiexec_run]",
        ),
        "server_c": ("flush_barriers[raced]", "model[1-5-0-1]", "schedulers_have_no_races[wfq]"),
        "shared_memory": ("containers[2]",),
        "shared_file_systems": tuple(f"groups_within_a_node[*-ours{number}]" for number in (1, 2, 3, 4, 6, 8, 9, 10)),
        "sources_databases": ("the_command_outlives_damaged_hdf5",),
        "strangers": ("native",),
        "summarize_job": ("no_damage_of_a_source_costs_another",),
        "trace_endings": ("a_real_full_disk",),
        "tune": ("a_bad_hints_file_is_beaten",),
        "typemap_datatypes": ("random_datatypes_against_pack",),
    }.items()
}


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
