"""Texts of `analyze` about ten logs."""

from __future__ import annotations

import pathlib

import pytest
from click.testing import CliRunner

from mpiio_ext.cli import main
from support.expected import Expected

SAMPLES = pathlib.Path(__file__).parent.parent / "samples"
LOGS = (
    "diagnosis/checkpoint-4-2-slow",
    "diagnosis/collective_holes-4-2-plain",
    "diagnosis/late_to_collectives-4-2-dxt",
    "diagnosis/one_reader-4-2-plain",
    "diagnosis/root_metadata-4-2-plain",
    "diagnosis/small_rounds-4-1-slow",
    "diagnosis/stdio_bytes-4-2-plain",
    "times/many",
    "times/rotate-slow",
    "times/trickle",
)


@pytest.mark.parametrize("name", LOGS)
def test_texts_are_those_that_were_reviewed(name: str, expected: Expected) -> None:
    done = CliRunner().invoke(main, ["analyze", "logs", str(SAMPLES / f"{name}.darshan")])
    assert done.exit_code == 0, done.output
    expected(done.stdout)
