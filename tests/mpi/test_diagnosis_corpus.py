"""The diagnosis of fresh logs: small programs with a known problem, run under Darshan's runtime."""

from __future__ import annotations

import argparse
import pathlib
import sys

import pytest

from support import cbuild
from support.darshan_records import darshan_runtime

sys.path.insert(0, str(cbuild.ROOT / "benchmarks"))
import diagnosis_corpus
import diagnosis_scores

pytestmark = pytest.mark.mpi


@pytest.fixture
def arguments(tmp_path: pathlib.Path) -> argparse.Namespace:
    """Return what a run needs: Darshan's runtime library, which is for Open MPI, the program, and folders."""
    path = darshan_runtime()
    wrapper = str(pathlib.Path(sys.prefix) / "bin" / "mpicc")
    program = cbuild.compile_c([wrapper, "-O2", *cbuild.FLAGS, *diagnosis_corpus.SOURCES], "diagnosis_kinds")
    slow = str(cbuild.ROOT / "benchmarks" / "slow_storage.c")
    shim = cbuild.compile_c([cbuild.compiler(), "-O2", "-shared", "-fPIC", slow, "-ldl"], "slow_storage.so")
    tools = {"darshan": path, "program": str(program), "slow_storage": str(shim)}
    return argparse.Namespace(tools=tools, path=tmp_path, logs=tmp_path)


@pytest.mark.parametrize(
    ("kind", "variant"),
    [
        ("few_aggregators", "dxt"),
        ("small_posix", "plain"),
        ("shared_opens", "bare"),
        ("metadata_storm", "plain"),
        ("read_modify_write", "plain"),
        ("large_independent", "slow"),
        ("little_io", "plain"),
        ("atomic_writes", "slow-dxt"),  # storage that sleeps: in memory the machine's turns are as long as the waits
        ("ranks_in_turn", "dxt"),
        ("metadata_storm:0.75+one_writer:0.25", "plain"),
    ],
)
def test_the_first_sentence_is_right(kind: str, variant: str, arguments: argparse.Namespace) -> None:
    """And nothing else is said with high confidence."""
    row = diagnosis_scores.judged(diagnosis_corpus.run(kind, 3, 1, variant, arguments), arguments.logs)
    assert row["right"] and not row["wrong"], row["sentences"]
    assert row["sentences"][0].startswith("No cause") == (not row["first"])
    assert list(row["seconds"]) == [part.split(":")[0] for part in kind.split("+")]
