"""Run h5py's own tests on one rank of a launch and note the outcome of every test.

Usage: ``run_h5py_tests.py FOLDER [--stats] [--on-mpio] PYTEST-ARGUMENT...``: a JSON file per rank is written into
FOLDER: outcome by test and, with --stats, what libmpiio_ext did (it is there by LD_PRELOAD).

With --on-mpio every file that a test opens without naming a driver is opened on MPI-IO, and every transfer that
goes through a property list is a collective one: h5py's whole suite becomes a test of MPI-IO. Each rank opens its files
alone: the tests were not written to keep several ranks in step.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import sys
from typing import Any

import pytest


class Recorder:
    """Pytest plugin: keeps the worst outcome of the phases of each test."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note one phase (setup, call, teardown)."""
        if report.failed:
            self.outcomes[report.nodeid] = f"failed {str(report.longrepr)[-300:]}"
        elif report.skipped or report.nodeid not in self.outcomes:
            self.outcomes[report.nodeid] = report.outcome


def put_on_mpio() -> list[str]:
    """Make MPI-IO the default driver of h5py.File; return the list of files that will be opened on it."""
    import h5py
    from mpi4py import MPI

    opened: list[str] = []
    open_file, open_dataset = h5py.File.__init__, h5py.Dataset.__init__

    @functools.wraps(open_file)
    def on_mpio(self: Any, name: Any, mode: str = "r", driver: str | None = None, *rest: Any, **options: Any) -> None:
        if driver is None and isinstance(name, (str, bytes, os.PathLike)) and not options.get("swmr"):
            driver, options = "mpio", {"comm": MPI.COMM_SELF, **options}
            opened.append(os.fsdecode(name))
        open_file(self, name, mode, driver, *rest, **options)

    @functools.wraps(open_dataset)
    def collective(self: Any, *arguments: Any, **options: Any) -> None:
        open_dataset(self, *arguments, **options)
        self._dxpl.set_dxpl_mpio(h5py.h5fd.MPIO_COLLECTIVE)

    h5py.File.__init__, h5py.Dataset.__init__ = on_mpio, collective
    return opened


def main() -> None:
    """Run the suite and write the notes."""
    folder, arguments = pathlib.Path(sys.argv[1]), sys.argv[2:]
    stats = "--stats" in arguments
    opened = put_on_mpio() if "--on-mpio" in arguments else []
    words = [word for word in arguments if word not in ("--stats", "--on-mpio")]
    empty = folder / "pytest.ini"  # neither this project's nor anybody's settings
    empty.write_text("[pytest]\n", encoding="utf-8")
    recorder = Recorder()
    common = ["-q", "-c", str(empty), f"--rootdir={folder}", "-p", "no:cacheprovider", "-W", "ignore", "--tb=line"]
    pytest.main([*common, *words], plugins=[recorder])

    from mpi4py import MPI

    result: dict[str, Any] = {"outcomes": recorder.outcomes, "opened": len(opened)}
    if stats:
        import mpiio_ext.stats

        total = mpiio_ext.stats.total()
        names = (
            "collective_writes",
            "collective_reads",
            "direct_calls",
            "native_calls",
            "errors",
            "independent_writes",
        )
        result["stats"] = {name: getattr(total, name) for name in names}
        result["interposed"] = mpiio_ext.interposed()
    path = folder / f"{MPI.COMM_WORLD.rank}.json"
    path.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
