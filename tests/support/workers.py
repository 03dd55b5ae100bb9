"""Which tests one worker of pytest-xdist takes together: those of a file, so that what a module prepares is made once.

pytest-xdist gives out the groups with the most tests first.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest


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


def group(item: pytest.Item, *, apart: bool) -> str:
    """Return the name of the tests that one worker takes together.

    Modules that run queries on each engine (`analytics_query.engine`) are one group: Spark, whose start takes longer
    than most of their tests, starts once. Where workers have no /dev/shm of their own (`apart` is false), one worker
    makes all launches: tests check what is left there.
    """
    if "mpi" in item.keywords and not apart:
        return "mpi"
    if "analytics_query" in vars(getattr(item, "module", object)):
        return "engines"
    return item.nodeid.partition("::")[0]  # not where an inherited test is written
