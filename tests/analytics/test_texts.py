"""Texts of `analyze` about ten logs, as files: `pytest tests/analytics/test_texts.py --update-texts`.


A change of a sentence is a diff of these files, which a reader reviews.
"""

from __future__ import annotations

import pathlib

import pytest
from click.testing import CliRunner

from mpiio_ext.cli import main

SAMPLES = pathlib.Path(__file__).parent.parent / "samples"
TEXTS = SAMPLES / "texts"
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
def test_texts_are_those_that_were_reviewed(name: str, request: pytest.FixtureRequest) -> None:
    done = CliRunner().invoke(main, ["analyze", "logs", str(SAMPLES / f"{name}.darshan")])
    assert done.exit_code == 0, done.output
    path = TEXTS / f"{name.rpartition('/')[2]}.txt"
    if request.config.getoption("--update-texts"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(done.stdout, encoding="utf-8")
    assert done.stdout == path.read_text(encoding="utf-8"), "--update-texts writes the file anew: review its diff"


def test_every_text_is_tested() -> None:
    assert {path.stem for path in TEXTS.iterdir()} == {name.rpartition("/")[2] for name in LOGS}
