"""What runs every time, what under a second MPI too, and what only with ``--run-slow`` (nightly: `make test-all`).

Every time: each path of the code once. The same path with other numbers is slow. The second MPI runs what depends on
the MPI in the core of the library; of each tool, and of what no MPI library decides, it runs one test.
"""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet

#: Modules of tests/mpi and tests/unit of which the second MPI runs these tests alone.
ONCE: dict[str, frozenset[str]] = {
    f"test_{name}.py": frozenset(f"test_{test}" for test in tests.split())
    for name, tests in {
        "advise": "a_budget_that_holds_nothing_is_refused_before_anything_runs",
        "analytics_bench": "a_run_of_the_bench_is_evaluated_in_its_report",
        "arbiter_deaths": "",
        "arbiter_hosts": "",
        "arbiter_live": "world_rank_0_leads_no_file",
        "arbiter_slurm": "",
        "bench_arbitration": "",
        "bench_datatypes": "",
        "bench_explore": "a_stonewall",
        "bench_interrupt": "a_job_is_ended",
        "bench_kernels": "kernels_written_independently",
        "bench_runs": "results_say_everything benchmark_memory",
        "bench_suites": "patterns_and_kernels_in_one_run",
        "cluster": "two_hosts",
        "containers": "a_file_beyond_the_largest_size",
        "delegates_files": "a_passing_error_is_told_once",
        "delegates_hosts": "host_vanishes_with_memory",
        "delegates_random": "a_few",
        "delegates_scheduled": "without_a_scheduler_nothing_is_counted",
        "delegates_status": "a_running_job_is_seen",
        "docs_commands": "",
        "doctor": "job alone launcher_of_another_mpi",
        "doctor_program": "",
        "doctor_job": "",
        "doctor_spawning": "",
        "hint_ranges": "texts_that_are_counts",
        "layout_create": "all_servers",
        "locks_requests": "requests_by_hand",
        "notebook": "",
        "partition_auto": "a_collective_does_what_the_rules_say",
        "pioneer_all": "from_a_trace_to_a_comparison",
        "pioneer_bench": "",
        "pioneer_killed": "",
        "pioneer_loop": "",
        "pioneer_parts": "",
        "pioneer_programs": "",
        "pioneer_refused": "",
        "pioneer_replay": "everything_is_done",
        "pioneer_standing": "",
        "pioneer_strace": "",
        "pioneer_tracers_agree": "",
        "run_darshan": "a_log_of_a_run a_rank_that_leaves",
        "run_report": "what_the_library_did a_rank_that_is_killed",
        "timeline": "run_makes_one",
        "top": "a_running_job_is_seen",
        "trace": "mpi_calls fortran_program",
        "tune": "a_program_that_hardly_accesses_data_is_judged_by_that",
    }.items()
}


def slow(*values: object) -> list[ParameterSet]:
    """Return values for parametrize() that are for ``--run-slow``; a tuple has one value for each name."""
    return [pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.slow) for each in values]


def runs_under_both(item: pytest.Item) -> bool:
    """Tell whether the second MPI runs a test, too."""
    if "mpi" not in item.keywords:
        return False
    only = ONCE.get(item.path.name)
    return only is None or item.name.partition("[")[0] in only
