"""Striping and interference against plain loops, on both engines; what LMT lost is not 0 and not the file's."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from mpiio_ext.analytics.analyses.interference import interference
from mpiio_ext.analytics.analyses.striping import custom_stripes, ost_union
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.query import load
from mpiio_ext.analytics.site import StripeDefault
from support import analytics_query
from support.analytics_query import Store
from support.marks import slow
from support.parts import require

require("ibis")

START = 1_500_000_000.0
STEPS = 30
_random = random.Random(5)

#: (size, count, offset, components) -> customised under Lustre's own default
LAYOUTS = {
    (1 << 20, 1, -1, 1): False,
    (1 << 20, 1, None, 1): False,
    (1 << 20, 1, None, None): False,
    (None, None, None, None): False,
    (1 << 22, 1, -1, 1): True,
    (1 << 20, 8, None, 1): True,
    (1 << 20, 1, 17, 1): True,
    (1 << 20, 1, -1, 2): True,
}
FILES: list[dict[str, Any]] = [
    {
        "job_id": number // 3,
        "log_id": number // 3,
        "file_id": number,
        "stripe_size": layout[0],
        "stripe_count": layout[1],
        "stripe_offset": layout[2],
        "components": layout[3],
        "osts": None if number % 9 == 0 else sorted(_random.sample(range(5), 1 + number % 3)),
        "bytes_written": 1000 * number,
        "write_start": None if number % 7 == 3 else START + _random.choice([-20, 0, 5, 12.5, 60, 144, 200]),
    }
    for number, layout in enumerate(list(LAYOUTS) * 4)
]
for file in FILES:
    file["ost_word_0"] = None if file["osts"] is None else sum(1 << ost for ost in file["osts"])
    file["write_end"] = (
        None if file["write_start"] is None else file["write_start"] + _random.choice([0, 2, 5, 40, 500])
    )


def lmt(lost: bool) -> list[dict[str, Any]]:
    """Return the steps of the OSTs 0 to 3; with `lost`, some have no bytes and some have no row."""
    return [
        {
            "time": START + 5 * step,
            "ost": ost,
            "file_system": "scratch",
            "bytes_written": None if lost and (step + ost) % 4 == 1 else 1e6 * ost + 10.0 * step,
        }
        for step in range(STEPS)
        for ost in range(4)
        if not (lost and (3 * step + ost) % 7 == 2)
    ]


def expected(rows: list[dict[str, Any]]) -> dict[tuple[int, int], tuple[float | None, float]]:
    """Return (traffic, coverage) by (file, OST), step by step."""
    moved = {(row["ost"], row["time"]): row["bytes_written"] for row in rows}
    found = {}
    for file in FILES:
        if file["write_start"] is None or not file["osts"]:
            continue
        first = math.floor(file["write_start"] / 5)
        steps = range(first, max(first, math.ceil(file["write_end"] / 5) - 1) + 1)
        for ost in file["osts"]:
            known = [moved[ost, 5.0 * step] for step in steps if moved.get((ost, 5.0 * step)) is not None]
            found[file["file_id"], ost] = (sum(known) if known else None, len(known) / len(steps))
    return found


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("name", ["duckdb", *slow("spark"), "duckdb by joins", *slow("spark by joins")])
def test_interference(name: str, lost: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if name.endswith(" by joins"):  # as where the traces are too long for arrays
        name = name.removesuffix(" by joins")
        monkeypatch.setattr("mpiio_ext.analytics.analyses.interference._IN_MEMORY", 0)
    store = Store(tmp_path)
    store.add("darshan_file", FILES, osts=80)
    store.add("lmt", lmt(lost))
    engine = analytics_query.engine(name)
    found = interference(load(engine, store, "darshan_file"), load(engine, store, "lmt")).rows()
    reference = expected(lmt(lost))
    assert {(row["file_id"], row["ost"]) for row in found} == reference.keys() and len(found) == len(reference)
    for row in found:
        traffic, coverage = reference[row["file_id"], row["ost"]]
        file = FILES[row["file_id"]]
        assert row["traffic"] == (None if traffic is None else pytest.approx(traffic, abs=1e-6))
        assert row["coverage"] == pytest.approx(coverage)
        assert row["own"] == pytest.approx(file["bytes_written"] / len(file["osts"]))
        assert row["share"] == (pytest.approx(row["own"] / traffic) if traffic else None)
    assert any(row["traffic"] is None for row in found) and any(0 < row["coverage"] < 1 for row in found)


def test_interference_refuses_what_it_cannot_tell_apart(tmp_path: Any) -> None:
    engine = analytics_query.engine("duckdb")
    for number, (rows, reason) in enumerate(
        [
            (lmt(False) + [{**row, "file_system": "home"} for row in lmt(False)], "holds 2 file systems"),
            (lmt(False) + lmt(False)[:1], "some occur twice"),
        ]
    ):
        (tmp_path / str(number)).mkdir()
        store = Store(tmp_path / str(number))
        store.add("darshan_file", FILES, osts=80)
        store.add("lmt", rows)
        with pytest.raises(AnalyticsError, match=reason):
            interference(load(engine, store, "darshan_file"), load(engine, store, "lmt")).rows()


@pytest.mark.parametrize("name", ["duckdb", *slow("spark")])
def test_striping(name: str, tmp_path: Any) -> None:
    store = Store(tmp_path)
    store.add("darshan_file", FILES, osts=80)
    files = load(analytics_query.engine(name), store, "darshan_file")
    customised = [number for number, layout in enumerate(list(LAYOUTS) * 4) if LAYOUTS[layout]]
    paper = StripeDefault(stripe_offset=-1)
    assert sorted(row["file_id"] for row in custom_stripes(files, paper)) == customised
    named = [number for number, layout in enumerate(list(LAYOUTS) * 4) if layout[2] == 17]
    assert sorted(row["file_id"] for row in custom_stripes(files)) == sorted(set(customised) - set(named))
    anywhere = {row["file_id"] for row in custom_stripes(files, StripeDefault(stripe_count=-1))}
    assert anywhere == {n for n, layout in enumerate(list(LAYOUTS) * 4) if layout[0] == 1 << 22 or layout[3] == 2}
    wide = {row["file_id"] for row in custom_stripes(files, StripeDefault(stripe_count=8, stripe_offset=-1))}
    layouts = list(LAYOUTS) * 4
    default = {None, (1 << 20, 8, None, 1)}
    assert wide == {n for n, layout in enumerate(layouts) if layout[0] is not None and layout not in default}
    used: dict[int, set[int]] = {}
    for file in FILES:
        used.setdefault(file["job_id"], set()).update(file["osts"] or [])
    assert {row["job_id"]: row["osts"] for row in ost_union(files)} == {j: len(o) or None for j, o in used.items()}
