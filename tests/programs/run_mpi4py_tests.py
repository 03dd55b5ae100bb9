"""Run mpi4py's own test program on one rank of a launch and note the outcome of every test.

Usage: ``run_mpi4py_tests.py MAIN FOLDER [--stats] [--arrays]``: MAIN is test/main.py of mpi4py's source distribution; a
JSON file per rank is written into FOLDER: outcome by test name and, with --stats, what libmpiio_ext did (there by
LD_PRELOAD). --arrays: with every kind of array that mpi4py takes; otherwise with the first, the standard library's.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import runpy
import sys
import unittest
from typing import Any

OUTCOMES: dict[str, str] = {}


def note(name: str, outcome: str) -> None:
    """Wrap one method of unittest's result class so that it also notes the outcome."""
    original = getattr(unittest.TestResult, name)

    def wrapped(self: unittest.TestResult, test: unittest.TestCase, *details: Any) -> None:
        text = str(details[0][1])[:300] if outcome in ("failure", "error") and details else ""
        OUTCOMES[test.id()] = f"{outcome} {text}".strip()
        original(self, test, *details)

    setattr(unittest.TestResult, name, wrapped)


def main() -> None:
    """Run the suite and write the notes."""
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    stats, arrays = "--stats" in sys.argv, "--arrays" in sys.argv
    for name, outcome in {
        "addSuccess": "ok",
        "addFailure": "failure",
        "addError": "error",
        "addSkip": "skipped",
        "addExpectedFailure": "ok",
        "addUnexpectedSuccess": "failure",
    }.items():
        note(name, outcome)
    sys.path.insert(0, os.path.dirname(program))
    if not arrays:  # MPI gets an address, a count and a type from each
        import arrayimpl

        del arrayimpl.ArrayBackends[1:]
    sys.argv = [program, "-q", "-i", "test_io", "-i", "test_file"]
    with contextlib.suppress(SystemExit):
        runpy.run_path(program, run_name="__main__")
    from mpi4py import MPI

    result: dict[str, Any] = {"outcomes": OUTCOMES}
    if stats:
        import mpiio_ext.stats

        total = mpiio_ext.stats.total()
        result["stats"] = {
            name: getattr(total, name)
            for name in ("collective_writes", "collective_reads", "direct_calls", "native_calls", "delegated_writes")
        }
        result["interposed"] = mpiio_ext.interposed()
        result["partition"] = total.partition
    (folder / f"{MPI.COMM_WORLD.rank}.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
