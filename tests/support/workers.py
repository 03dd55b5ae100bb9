"""Which worker of pytest-xdist takes a test, and in which order: file by file, the longest files first.

A long file that starts last keeps one worker busy while the others have nothing left to do. Without an order of its own
pytest-xdist starts the files with the most tests, which are not those that take longest.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

#: Files that take more than half a minute, longest first: the table at the end of `.ci/run`'s log, where "mpi/tune" is
#: mpi/test_tune.py. One of the files of the queries stands for their group.
_LONGEST = """
differential/differential mpi/run_report mpi/delegates_staged mpi/bench_runs mpi/gpu_memory mpi/hint_ranges
analytics/query_operators mpi/delegates_staged_others unit/server_c mpi/mpi4py_io mpi/pioneer_replay
mpi/bench_suites unit/cache_c mpi/tune mpi/long_lives mpi/delegates_staged_deaths model/model
mpi/delegates_hung mpi/delegates_life analytics/analyze_cli mpi/containers mpi/advise unit/programs_c
mpi/cluster unit/network_c mpi/docs_commands unit/weak_memory mpi/delegates_files mpi/view_rules
mpi/bench_explore mpi/subfiles_killed unit/storage mpi/arbiter_live mpi/delegates_hosts mpi/subfiles_failures
mpi/delegates_crash mpi/subfiles_openers mpi/delegates_posix analytics/summaries mpi/pioneer_all
mpi/small_accesses mpi/bench_kernels unit/pages mpi/delegates_looked_for unit/pioneer_rawtrace_c
analytics/store_fill mpi/subfiles unit/cluster
"""
LONGEST = [f"{name.replace('/', '/test_')}.py" for name in _LONGEST.split()]
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
    return item.nodeid.partition("::")[0]  # pytest needs longer for item.location, of all tests
