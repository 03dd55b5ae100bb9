"""How workers of pytest-xdist share the tests: each begins with a part of them, and takes from others when it is done.

A worker takes from the end of what another one has left (``--dist worksteal``): mostly whole files, and in the end
single tests of the longest ones.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator

import pytest

from support import cbuild


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


def place(item: pytest.Item) -> tuple[bool, str]:
    """Return where the file of a test stands in the order: by name, but first what runs queries on each engine.

    The first worker begins with these modules (`analytics_query.engine`), and nobody takes them from it: Spark, whose
    start takes longer than most of their tests, starts once.
    """
    of_engines = "analytics_query" in vars(getattr(item, "module", object))
    return not of_engines, item.nodeid.partition("::")[0]  # not where an inherited test is written


@contextlib.contextmanager
def alone(item: pytest.Item) -> Iterator[None]:
    """Keep workers that share /dev/shm from launching MPI programs meanwhile: tests look at what is left there."""
    if "mpi" not in item.keywords:
        yield
        return
    with (cbuild.scratch() / "launches").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
