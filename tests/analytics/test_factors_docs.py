"""Pages on factors and causes: the table is the registry's, the examples work, the causes are the rules'."""

from __future__ import annotations

import ast
import inspect
import json
import pathlib
import re
from typing import Any

import pyarrow as pa
import pytest

from mpiio_ext.analytics import IOMiner
from mpiio_ext.analytics.diagnosis import advice
from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.diagnosis.causes import named
from mpiio_ext.analytics.diagnosis.triggers import markdown
from mpiio_ext.analytics.factors import extract, factors, unregister
from mpiio_ext.analytics.report.findings import Known, diagnoses
from mpiio_ext.analytics.sources.darshan import convert
from support import cbuild, darshan_rows

DOCS = cbuild.ROOT / "docs"
METRICS = (DOCS / "explanation" / "metrics.md").read_text(encoding="utf-8")
STORE = (DOCS / "howto" / "ask-a-store.md").read_text(encoding="utf-8")


def test_table_of_factors() -> None:
    found = METRICS.split("<!-- begin: factors -->\n")[1].split("\n<!-- end: factors -->")[0]
    lines = ["| factor | meaning | unit | value | suspicious | thresholds |", "|---|---|---|---|---|---|"]
    for name, one in factors().items():
        thresholds = ", ".join(f"`{key}={value}`" for key, value in one.thresholds.items())
        meaning = one.meaning if len(one.directions) == 2 else f"{one.meaning} ({one.directions[0]}s)"
        lines.append(f"| `{name}` | {meaning} | {one.unit} | {one.weighting} | {one.bad} | {thresholds} |")
    assert found.splitlines() == lines


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


def test_every_advice_of_a_rule_is_offered() -> None:
    """Rules give advice, and the records behind them offer it: in the source it is `say.NAME` in both."""
    trees = [ast.parse(path.read_text()) for path in (cbuild.ROOT / "analytics" / "diagnosis").glob("causes_*.py")]
    rules = [node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    records = [node for tree in trees for node in tree.body if isinstance(node, ast.Assign)]
    given, offered = ({name for node in nodes for name in _advice_in(node)} for nodes in (rules, records))
    every = {name for name, one in vars(advice).items() if inspect.isfunction(one) or name.isupper()}
    assert given == offered == every


def _advice_in(node: ast.AST) -> set[str]:
    names = (one for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name))
    return {one.attr for one in names if isinstance(one.value, ast.Name) and one.value.id == "say"}


def test_the_page_of_triggers() -> None:
    """The page is that of the records: `python -m mpiio_ext.analytics.diagnosis.triggers` prints it."""
    page = (DOCS / "reference" / "triggers.md").read_text(encoding="utf-8")
    assert page.split("<!-- begin: triggers -->\n")[1] == markdown()


LOGS = [
    *(
        ("strangers", f"{name}.darshan")
        for name in ("collective-one-stripe-496", "sieved-no-gaps-192", "python-imports-3")
    ),
    *(("strangers", f"{name}.darshan") for name in ("ompio-locks-32-dxt", "dlio-reader-1")),
    *(
        ("known_truth", f"{name}-4.darshan")
        for name in ("one_writer", "random_reads", "metadata_storm", "few_aggregators")
    ),
    *(("known_truth", f"{name}-4.darshan") for name in ("small_independent", "read_modify_write")),
    ("tokio", "samples", "sample-badost.darshan"),
]


@pytest.mark.parametrize("place", LOGS, ids=[place[-1].partition(".")[0] for place in LOGS])
def test_findings_are_those_of_the_records(place: tuple[str, ...]) -> None:
    """Each finding has a sentence of its cause, and no advice that its record does not offer."""
    path = darshan_rows.shared_data(*place)
    tables = convert([path.name], str(path.parent)).tables
    for one in diagnoses(tables, Known(activity=activity_of(path, tables))):
        document = one["document"]
        for found in document["findings"]:
            cause = named(found["cause"])
            assert any(text in found["title"] for text in cause.sentences), found["title"]
            every = [_plain(offer.make(document["direction"]).text) for offer in cause.advice]
            for given in found["advice"]:
                text = _plain(given["text"])
                # of several reasons, the advice on metadata has a sentence each
                assert text in every or all(any(part in each for each in every) for part in text.split(". ")), text


def _plain(text: str) -> str:
    return re.sub(r"\d+", "N", text.rstrip("."))
