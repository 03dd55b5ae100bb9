"""Pages on factors and causes: the table is the registry's, the examples work, the causes are the rules'."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import pyarrow as pa
import pytest

from mpiio_ext.analytics import IOMiner
from mpiio_ext.analytics.diagnosis.causes import RULES
from mpiio_ext.analytics.factors import catalogue, extract, unregister
from support import cbuild, darshan_rows

DOCS = cbuild.ROOT / "docs"
METRICS = (DOCS / "explanation" / "metrics.md").read_text(encoding="utf-8")
DIAGNOSIS = (DOCS / "explanation" / "diagnosis.md").read_text(encoding="utf-8")
STORE = (DOCS / "howto" / "ask-a-store.md").read_text(encoding="utf-8")


def test_table_of_factors() -> None:
    found = METRICS.split("<!-- begin: factors -->\n")[1].split("\n<!-- end: factors -->")[0]
    assert found == catalogue.markdown_table()


def test_example_of_a_factor() -> None:
    """100 of 300 bytes lie in the file: two thirds were written again."""
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", METRICS, re.DOTALL) if "@factor" in block]
    scope: dict[str, Any] = {}
    try:
        exec(code, scope)
        times = {"write_start": [0.0], "write_end": [1.0]}
        table = pa.table({"job_id": [1], **times, "bytes_written": [300], "max_offset_written": [99]})
        assert extract(table, names=["rewritten"])["rewritten"].to_pylist() == [2 / 3]
        assert extract(table, names=["rewritten"], slack_bytes=100)["rewritten"].to_pylist() == [1 / 3]
    finally:
        unregister("rewritten")


def test_example_of_a_diagnosis(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """On a store of the sample job with a failing OST, in the folder where the set-up is."""
    log = darshan_rows.shared_data("tokio", "samples", "sample-badost.darshan")
    (tmp_path / "setup.json").write_text(json.dumps({"store": "store", "inputs": {"darshan": [str(log)]}}))
    monkeypatch.chdir(tmp_path)
    IOMiner("setup.json").init_stores()
    scope: dict[str, Any] = {}
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", STORE, re.DOTALL) if "import diagnose" in block]
    exec(code, scope)
    assert (scope["slow"].num_rows, scope["paths"].num_rows) == (1, 1)
    assert None not in scope["files"]["file"].to_pylist() != []
    assert "OST 14" in capsys.readouterr().out


def test_every_rule_is_described() -> None:
    described = set(re.findall(r"^\| `(\w+)` (?:\(`\w+`\) )?\|", DIAGNOSIS, re.MULTILINE))
    assert described == {rule.__name__ for rule in RULES} | {"slow_file", "dominant_file"}
