"""The parsers of raw traces in C, under sanitizers: bytes of any kind, cut anywhere; rows that wait."""

from __future__ import annotations

import pathlib

import pytest

from support import cbuild, fuzz

MODULES = ("common", "typemap", "pioneer")


def test_rows_and_names() -> None:
    path = cbuild.program("pioneer/test_rows.c", *MODULES)
    assert cbuild.check(path).splitlines()[-1] == "rows and names passed"


@pytest.mark.parametrize(("name", "cases"), [("fuzz_rawtrace", 2000), ("fuzz_handle_resolution", 3000)])
def test_bytes_of_any_kind(name: str, cases: int) -> None:
    """Sanitization gives the same at once and in pieces, also where a nameless open waits for rows to come."""
    count = fuzz.examples(cases)
    path = cbuild.program(f"pioneer/{name}.c", *MODULES)
    assert cbuild.check(path, str(count), fuzz.seed(), timeout=300) == f"{count} cases passed\n"


@pytest.mark.slow
def test_coverage_guided_fuzzing(tmp_path: pathlib.Path) -> None:
    options = ["-len_control=0"]
    cbuild.fuzz("pioneer/fuzz_rawtrace.c", *MODULES, folder=tmp_path, runs=4000, most=600, options=options)
