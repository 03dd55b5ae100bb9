"""The typemap module in C under sanitizers: random descriptions against a reference, serialized input under fuzzing."""

from __future__ import annotations

import pathlib

import pytest

from support import cbuild, fuzz
from support.marks import slow


@pytest.mark.parametrize(
    ("name", "cases"), [("random_operations", 1500), ("fuzz_blob", 20000), ("lists", 2000), ("runs", 5000)]
)
def test_random_input_under_sanitizers(name: str, cases: int) -> None:
    count = fuzz.examples(cases)
    path = cbuild.program(f"typemap/{name}.c", "typemap")
    assert cbuild.check(path, str(count), fuzz.seed(), timeout=300) == f"{count} cases passed\n"


@pytest.mark.parametrize(("name", "runs"), [("fuzz_blob", 20000), ("random_operations", 1500), *slow(("runs", 6000))])
def test_coverage_guided_fuzzing(name: str, runs: int, tmp_path: pathlib.Path) -> None:
    cbuild.fuzz(f"typemap/{name}.c", "typemap", folder=tmp_path, runs=runs, most=4096)
