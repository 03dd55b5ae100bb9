"""Which worker of pytest-xdist takes a test, and in which order: file by file, the longest files first.

A long file that starts last keeps one worker busy while the others have nothing left to do. Without an order of its own
pytest-xdist starts the files with the most tests, which are not those that take longest.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

#: Files that take more than half a minute, longest first: the table at the end of `.ci/run`'s log. The first stands for
#: its group.
LONGEST = (
    "mpi/test_delegates_staged.py",
    "mpi/test_gpu_memory.py",
    "mpi/test_run_report.py",
    "differential/test_differential.py",
    "mpi/test_bench_runs.py",
    "mpi/test_delegates_staged_others.py",
    "mpi/test_pioneer_replay.py",
    "mpi/test_bench_suites.py",
    "mpi/test_tune.py",
    "analytics/test_query_operators.py",
    "mpi/test_hint_ranges.py",
    "mpi/test_notebook.py",
    "unit/test_server_c.py",
    "unit/test_cache_c.py",
    "mpi/test_mpi4py_io.py",
    "mpi/test_delegates_life.py",
    "analytics/test_job_of_logs.py",
    "mpi/test_strangers.py",
    "mpi/test_cluster.py",
    "unit/test_network_c.py",
    "mpi/test_advise.py",
    "mpi/test_delegates_hosts.py",
    "mpi/test_delegates_scheduled.py",
    "mpi/test_pioneer_bench.py",
    "mpi/test_delegates_hung.py",
    "mpi/test_delegates_posix.py",
    "model/test_model.py",
    "mpi/test_lifetime.py",
    "mpi/test_delegates_crash.py",
    "mpi/test_docs_commands.py",
    "mpi/test_containers.py",
    "mpi/test_library_suites.py",
    "mpi/test_small_accesses.py",
    "unit/test_pages.py",
    "mpi/test_pioneer_programs.py",
    "mpi/test_access_modes.py",
    "mpi/test_subfiles_openers.py",
    "mpi/test_bench_kernels.py",
    "mpi/test_doctor.py",
    "mpi/test_killed_ranks.py",
    "mpi/test_arbiter_live.py",
    "mpi/test_delegates_staged_deaths.py",
    "unit/test_run_page.py",
    "analytics/test_store_kill.py",
    "mpi/test_subfiles_failures.py",
    "mpi/test_subfiles.py",
)
_PLACES = {f"tests/{name}": place for place, name in enumerate(LONGEST)}


class Turned(pytest.Dir):
    """A folder whose files each worker reads from another one on.

    pytest rewrites the assertions of a file, most of the work of a first collection, unless another worker has done so.
    """

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Return what is in the folder, from this worker's share of it on."""
        found = list(super().collect())
        given = self.config.workerinput  # type: ignore[attr-defined]
        first = len(found) * int(given["workerid"].removeprefix("gw")) // given["workercount"]
        return iter(found[first:] + found[:first])


def place(item: pytest.Item) -> tuple[int, str]:
    """Return where the file of a test stands in the order; files that are not listed come after the others, by name."""
    file = item.nodeid.partition("::")[0]  # not where an inherited test is written
    return _PLACES.get(file, len(_PLACES)), file


def group(item: pytest.Item, *, apart: bool) -> str:
    """Return the name of the tests that one worker takes together.

    Modules that run queries on each engine (`analytics_query.engine`) are one group, so that Spark, whose start takes
    longer than most of these tests, starts once. Where workers have no /dev/shm of their own (`apart` is false), one
    makes all launches: tests look at what is left there.
    """
    if "mpi" in item.keywords and not apart:
        return "mpi"
    if "analytics_query" in vars(getattr(item, "module", object)):
        return "engines"
    return item.location[0]
