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
    "analytics/test_query_operators.py",
    "unit/test_server_c.py",
    "mpi/test_delegates_staged.py",
    "differential/test_differential.py",
    "unit/test_typemap_c.py",
    "unit/test_network_c.py",
    "mpi/test_run_report.py",
    "mpi/test_bench_runs.py",
    "mpi/test_pioneer_replay.py",
    "analytics/test_analyze_cli.py",
    "unit/test_build.py",
    "unit/test_partition_methods.py",
    "unit/test_storage.py",
    "mpi/test_bench_suites.py",
    "unit/test_pioneer_rawtrace_c.py",
    "analytics/test_summarize_job_cli.py",
    "mpi/test_mpi4py_io.py",
    "model/test_model.py",
    "unit/test_partition_auto.py",
    "analytics/test_summaries.py",
    "mpi/test_docs_commands.py",
    "unit/test_tune.py",
    "unit/test_pages.py",
    "mpi/test_delegates_files.py",
    "unit/test_scheduling.py",
    "unit/test_cache_c.py",
    "mpi/test_delegates_life.py",
    "analytics/test_store_fill.py",
    "analytics/test_store_kill.py",
    "unit/test_imports.py",
    "mpi/test_containers.py",
    "mpi/test_hint_ranges.py",
    "unit/test_layout_cli.py",
    "mpi/test_diagnosis_corpus.py",
    "mpi/test_delegates_status.py",
    "unit/test_run_page.py",
    "mpi/test_file_formats.py",
    "mpi/test_notebook.py",
    "mpi/test_advise.py",
    "analytics/test_umami.py",
    "mpi/test_view_rules.py",
    "mpi/test_library_suites.py",
    "mpi/test_bench_kernels.py",
    "unit/test_cluster.py",
    "mpi/test_bench_explore.py",
    "unit/test_pioneer_fits.py",
    "mpi/test_run_darshan.py",
    "unit/test_recordings.py",
    "mpi/test_doctor.py",
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
    return _PLACES.get(item.location[0], len(_PLACES)), item.location[0]


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
