"""The tiers name tests that exist: a name that nothing has would change nothing, silently."""

from __future__ import annotations

import ast
import fnmatch
import pathlib

import pytest

from support import tiers

TESTS = pathlib.Path(__file__).resolve().parents[1]
NAMES = [(module, name) for table in (tiers.ONCE, tiers.NIGHTLY) for module, names in table.items() for name in names]


@pytest.mark.parametrize("module", sorted(set(tiers.ONCE) | set(tiers.NIGHTLY)))
def test_names_are_of_tests(module: str) -> None:
    paths = list(TESTS.rglob(module))  # of one name, in two folders: the tables do not tell them apart
    nodes = (node for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef)]
    for name in (name for of, name in NAMES if of == module):
        assert fnmatch.filter(functions, name.partition("[")[0]), f"{module} has no test {name}"


def test_a_table_of_all_tests_would_be_no_tier() -> None:
    """Patterns match whole names, and those of no test match nothing."""
    pattern = tiers._named(tiers.NIGHTLY["test_arbiter_deaths.py"])
    assert pattern.fullmatch("test_a_flood") and pattern.fullmatch("test_killed_delegates[3-0]")
    assert not pattern.fullmatch("test_killed_delegates[3-1]") and not pattern.fullmatch("test_a_flood_of")
    assert not tiers._named(()).fullmatch("test_x")
