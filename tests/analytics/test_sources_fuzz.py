"""Damaged inputs of every monitoring source: what is lost is named, and nothing but SourceError is raised."""

from __future__ import annotations

import gzip
import json
import pathlib
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.sources import Records, SourceError
from support import source_texts as texts

ALL = pytest.mark.parametrize(("source", "text"), texts.FORMS.values(), ids=texts.FORMS)
#: Sources whose rows are independent lines: the end of a file between two of them cannot be told from a whole one.
BY_LINE = ("lctl-dl", "xtdb2proc", "ggiostat", "csv", "slurm", "mmlsdisk", "cobalt")
#: Tables whose rows are made of several lines: where the later ones are cut off, a row knows less.
JOINED = ("slurm", "cobalt")
FUZZ = settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def folder() -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory() as name:
        yield pathlib.Path(name)


def try_to_read(folder: pathlib.Path, data: bytes, source: str | None) -> Records | None:
    path = folder / "input"
    path.write_bytes(data)
    try:
        records = sources.read(path, source)
    except SourceError as error:
        assert str(path) in str(error)
        assert error.what and error.line >= 0
        return None
    for table in records.tables.values():
        table.validate(full=True)
    assert records.lost >= 0
    again = Records.from_json(records.to_json())
    assert again.equals(records) and again.problems == records.problems
    return records


def rows_of(records: Records) -> dict[str, Counter[str]]:
    return {
        name: Counter(json.dumps(row, sort_keys=True) for row in table.to_pylist())
        for name, table in records.tables.items()
    }


@ALL
@FUZZ
@given(st.data())
def test_a_cut_file_is_not_taken_for_a_whole_one(folder: pathlib.Path, source: str, text: bytes, data: Any) -> None:
    whole = try_to_read(folder, text, source)
    assert whole is not None and whole.status == "whole"
    at = data.draw(st.integers(1, len(text) - 1))
    packed = data.draw(st.booleans())
    cut = text[:at] if not packed else gzip.compress(text)[: -(at % 20 + 9)]
    found = try_to_read(folder, cut, source)
    if found is None or found.problems:
        return
    assert not packed
    rows, all_rows = rows_of(found), rows_of(whole)
    between = text[at - 1 : at] == b"\n"
    for name, mine in rows.items():
        if name in JOINED:
            continue
        assert mine <= all_rows[name]
        if mine != all_rows[name]:
            assert between and (source in BY_LINE or b"BEGIN" in text), (name, at)


@ALL
@FUZZ
@given(st.data())
def test_changed_bytes_raise_nothing_else(folder: pathlib.Path, source: str, text: bytes, data: Any) -> None:
    damaged = bytearray(text)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        new = data.draw(st.binary(max_size=3))
        damaged[at : at + data.draw(st.integers(0, 3))] = new
        if not damaged:
            return
    try_to_read(folder, bytes(damaged), source)
    try_to_read(folder, bytes(damaged), None)
    try_to_read(folder, gzip.compress(text)[:10] + bytes(damaged), source)


@ALL
@FUZZ
@given(data=st.binary(max_size=200))
def test_any_bytes_raise_nothing_else(folder: pathlib.Path, source: str, text: bytes, data: bytes) -> None:
    try_to_read(folder, data, source)
    try_to_read(folder, text[:20] + data, source)


HEADINGS = ("#", "BEGIN", "UUID", "filesystem", "disk ", "name ", "--")
LINES = {
    "lctl-dl": "devices",
    "xtdb2proc": "processors",
    "ggiostat": "node_io",
    "lfs-df": "targets",
    "mmlsdisk": "disk_states",
    "cobalt": "slurm",
}


@pytest.mark.parametrize("source", LINES)
@FUZZ
@given(st.data())
def test_every_line_is_a_row_or_a_lost_one(folder: pathlib.Path, source: str, data: Any) -> None:
    """Letters of any lines are changed; no line is added or taken away."""
    lines = texts.TEXTS[source].decode().split("\n")
    wanted = try_to_read(folder, texts.TEXTS[source], source)
    assert wanted is not None
    numbers = data.draw(st.sets(st.integers(1, len(lines) - 2), min_size=1, max_size=4))
    for number in numbers:
        line = lines[number]
        if not line or line.startswith(HEADINGS) or "_UUID:" in line:
            continue
        at = data.draw(st.integers(0, len(line) - 1))
        letter = data.draw(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#"))
        lines[number] = line[:at] + letter + line[at + 1 :]
    found = try_to_read(folder, "\n".join(lines).encode(), source)
    if found is not None:  # else every line is bad
        assert found.tables[LINES[source]].num_rows + found.lost == wanted.tables[LINES[source]].num_rows


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["matrix", "success"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "values",
                    "value",
                    "jobs",
                    "job",
                    "job_id",
                    "jobidraw",
                    "host",
                    "nodelist",
                    "start",
                    "format",
                    "tables",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@FUZZ
@example(document=2**53 + 1)
@example(document=10**400)
@given(document=VALUES)
def test_any_json_raises_nothing_else(folder: pathlib.Path, document: Any) -> None:
    try_to_read(folder, json.dumps(document).encode(), "slurm")
    for change in ({"jobs": [document]}, {"5": document}, {"5": {"nodelist": document}, "6": {"nodelist": "x"}}):
        try_to_read(folder, json.dumps(change).encode(), "slurm")


@FUZZ
@given(document=VALUES)
def test_records_of_any_json(document: Any) -> None:
    whole = {
        "format": "mpiio_ext.records",
        "version": 1,
        "source": "x",
        "path": "y",
        "header": {},
        "problems": [],
        "tables": {},
    }
    for field in whole:
        with_it = whole | {field: document}
        try:
            Records.from_json(json.dumps(with_it))
        except SourceError as error:
            assert re.match("records: no records as this package writes them", str(error))
