"""The mutants of tests/mutants/mutants.py still fit the sources: running them takes minutes and is done by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from differential import text
from mutants.mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
CASES = {
    f"{path.name}:{entry.name}"
    for path in sorted((ROOT / "tests" / "differential" / "cases").glob("*.case"))
    for entry in text.read_file(path)
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_snippet_and_tests_are_there(mutant: Mutant) -> None:
    files = list((ROOT / "csrc").rglob(mutant.file))
    assert len(files) == 1, f"{mutant.file}: found {len(files)} times"
    assert files[0].read_text(encoding="utf-8").count(mutant.old) == 1, f"not once in {files[0]}"
    assert mutant.old != mutant.new
    for test in mutant.tests:
        path = test.split("::")[0]
        assert path.startswith("-") or path in CASES or (ROOT / path).exists(), path
