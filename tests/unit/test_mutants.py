"""The mutants of tests/mutants/mutants.py still fit the sources: running them takes minutes and is done by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mutants.mutants import MUTANTS, Mutant
from mutants.run import copy_tree

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_snippet_and_tests_are_there(mutant: Mutant) -> None:
    files = list((ROOT / "csrc").rglob(mutant.file))
    assert len(files) == 1, f"{mutant.file}: found {len(files)} times"
    assert files[0].read_text(encoding="utf-8").count(mutant.old) == 1, f"not once in {files[0]}"
    assert mutant.old != mutant.new
    for test in mutant.tests:
        path = test.split("::")[0]
        assert path.startswith("-") or (ROOT / path).exists(), path


def test_the_copy_can_generate_its_sources(tmp_path: Path) -> None:
    """The copy has what the generators of C sources read."""
    copy_tree(tmp_path / "copy")
    command = [sys.executable, "-B", tmp_path / "copy" / "build.py", "--output", tmp_path / "generated"]
    subprocess.run(command, check=True, timeout=120)
    assert (tmp_path / "generated" / "mpiox_wrappers.c").stat().st_size > 0
