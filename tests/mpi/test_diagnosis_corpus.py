"""The diagnosis of fresh logs: small programs with a known problem, run under Darshan's runtime."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys

import pytest

from mpiio_ext.analytics.diagnosis.activity import activity_of
from mpiio_ext.analytics.report.findings import diagnoses
from mpiio_ext.analytics.sources.darshan import convert
from support import cbuild
from support.launch import mpi_family

sys.path.insert(0, str(cbuild.ROOT / "benchmarks"))
import diagnosis_corpus

pytestmark = pytest.mark.mpi


@pytest.fixture
def darshan() -> str:
    """Return Darshan's runtime library, which is for Open MPI."""
    path = os.environ.get("MPIOX_TEST_DARSHAN") or cbuild.ROOT.parent / "shared/tools/darshan/libdarshan.so"
    if not pathlib.Path(path).exists():
        pytest.skip("no ../shared/tools/darshan/libdarshan.so (MPIOX_TEST_DARSHAN names another one)")
    if mpi_family() != "openmpi":
        pytest.skip("Darshan's runtime is there for Open MPI only")
    return str(path)


@pytest.mark.parametrize(
    "kind", ["few_aggregators", "small_posix", "shared_opens", "metadata_storm", "read_modify_write", "little_io"]
)
def test_the_first_sentence_is_right(kind: str, darshan: str, tmp_path: pathlib.Path) -> None:
    """And nothing else is said with high confidence."""
    source = str(cbuild.ROOT / "benchmarks" / "diagnosis_kinds.c")
    wrapper = str(pathlib.Path(sys.prefix) / "bin" / "mpicc")
    program = str(cbuild.compile_c([wrapper, "-O2", *cbuild.FLAGS, source], "diagnosis_kinds"))
    arguments = argparse.Namespace(darshan=darshan, path=tmp_path, logs=tmp_path)
    log = diagnosis_corpus.run(program, kind, 3, 1, False, arguments)
    tables = convert([log], str(tmp_path)).tables
    told = [one["document"] for one in diagnoses(tables, activity=activity_of(tmp_path / log, tables))]
    high = {each["cause"] for one in told for each in one["findings"] if each["confidence"] == "high"}
    assert high == {diagnosis_corpus.CAUSES[kind]} - {""}, told[0]["conclusion"]
    assert told[0]["conclusion"].startswith("No cause") == (not high)
