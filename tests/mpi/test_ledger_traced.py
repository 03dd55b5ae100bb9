"""Real programs, traced call by call and reduced to a log: the ledger and the first sentence beside the truth."""

from __future__ import annotations

import pathlib
import sys

import pytest

from corpora import diagnosis_corpus
from corpora.diagnosis_truth import KINDS as PROGRAMS
from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.ledger import of_log
from mpiio_ext.analytics.run import gather
from mpiio_ext.analytics.sources.darshan import convert
from support import cbuild
from support.launch import base_environment, launcher, run_bounded
from support.ledger_truth import outside
from support.sentence_truth import refuted
from support.traced_runs import reduced
from support.traced_truth import KINDS, LAYERS
from support.traces import DATA

pytestmark = pytest.mark.mpi

#: Programs of the corpus that run every time; those that make so many calls that a trace takes long.
QUICK = ("busy_rank", "shared_records", "view_sieved")
LONG = {"column_reads", "random_reads", "seek_mpi", "seek_writes", "stdio_bytes", "strided_reads", "text_seeks"}
REST = sorted(name for name in PROGRAMS if ":" not in name and name not in LONG | set(QUICK))
#: Programs of the shared data: ranks, and whether a first run makes their files.
STRANGERS = {
    "rotate": (4, False),
    "pairs": (4, False),
    "many": (4, False),
    "msync": (4, False),
    "loader": (1, True),
    "trickle": (1, True),
}


def _traced(words: list[str], ranks: int, folder: pathlib.Path, io: str) -> pathlib.Path:
    """Run a program under the tracer; return its traces."""
    traces = folder / "traces"
    command = [sys.executable, "-m", "mpiio_ext", "trace", "-o", str(traces), "--", str(launcher()), "-n", str(ranks)]
    run_bounded([*command, *words], env=base_environment() | {"OMPI_MCA_io": io}, timeout_s=120)
    return traces


def _hold(traces: pathlib.Path, log: pathlib.Path) -> None:
    """Check the ledgers of the log without and with DXT, and its first sentence."""
    for dxt in (False, True):
        truth = reduced(traces, log, dxt=dxt)
        activity = activity_of(log, convert([log.name], str(log.parent)).tables)
        assert activity is not None
        ledgers = [of_log(log)] + ([activity.ledger] if activity.ledger is not None else [])
        asked = [(kind, file, layer) for kind in (None, *KINDS) for file in (None, 0) for layer in (None, *LAYERS)]
        for ledger in ledgers:
            assert not [each for question in asked for each in outside(truth, ledger, question, files=True)]
        sentence = gather.of_log(log)["sentence"]
        assert not list(refuted(sentence, truth)), sentence


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in REST)])
def test_a_program_of_the_corpus(name: str, extension: str, tmp_path: pathlib.Path) -> None:
    data = tmp_path / "data"
    diagnosis_corpus.prepare(data)
    io = "romio321" if len(name) % 2 == 0 else "ompio"
    _hold(_traced([diagnosis_corpus.program(), name, str(data), "1"], 3, tmp_path, io), tmp_path / "log.darshan")


@pytest.mark.slow
@pytest.mark.parametrize("name", STRANGERS)
def test_a_program_of_the_shared_data(name: str, extension: str, tmp_path: pathlib.Path) -> None:
    source = DATA / "strangers5" / f"{name}.c"
    if not source.exists():
        pytest.skip(f"no strangers5/{name}.c in ../shared/data (MPIOX_TEST_DATA names another folder)")
    wrapper = str(pathlib.Path(sys.prefix) / "bin" / "mpicc")
    program, (ranks, twice) = str(cbuild.compile_c([wrapper, "-O1", str(source)], name)), STRANGERS[name]
    data = tmp_path / "data"
    data.mkdir()
    if twice:
        run_bounded([str(launcher()), "-n", "1", program, str(data), "x"], env=base_environment(), timeout_s=60)
    _hold(_traced([program, str(data)], ranks, tmp_path, "ompio"), tmp_path / "log.darshan")
