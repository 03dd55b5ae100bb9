"""What runs every time, what under a second MPI too, and what only with ``--run-slow`` (nightly: `make test-all`).

Every time: each path of the code once. The same path with other numbers is `slow`. The second MPI runs what depends on
the MPI in the core of the library; of each tool, and of what no MPI library decides, it runs one test: `both`.

A mark that ends in ``_with`` or ``_except`` names tests of one function by their parameters, as pytest writes them
between the brackets. `*` stands for anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from _pytest.mark import ParameterSet

#: {mark that names parameters: (mark of the tests, whether of those that are named or of the others)}
NAMING = {"slow_with": ("slow", True), "slow_except": ("slow", False), "both_with": ("both", True)}


def slow(*values: object) -> list[ParameterSet]:
    """Return values for parametrize() that are for ``--run-slow``; a tuple has one value for each name."""
    return [pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.slow) for each in values]


def mark_named(tests: Sequence[pytest.Function]) -> None:
    """Mark those tests of a function that a mark names; a name that no test has would change nothing, silently."""
    for given in [given for given in tests[0].iter_markers() if given.name in NAMING]:
        mark, named = NAMING[given.name]
        found: set[str] = set()
        for test in tests:
            parameters = test.callspec.id if hasattr(test, "callspec") else ""
            names = [name for name in given.args if re.fullmatch(re.escape(name).replace(r"\*", ".*"), parameters)]
            found.update(names)
            if bool(names) is named:
                test.add_marker(mark)
        if unknown := set(given.args) - found:
            raise pytest.Collector.CollectError(f"{tests[0].originalname}: {given.name} names no test: {unknown}")
