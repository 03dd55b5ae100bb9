"""The dataclasses of mpiio_ext.stats against the C list, and the total of a process without files."""

from __future__ import annotations

import dataclasses
import pathlib
import re

import pytest

from mpiio_ext import stats
from mpiio_ext.errors import LoadError

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "csrc" / "core" / "stats" / "mpiox_stats.h"


def test_numbers_are_the_c_list() -> None:
    text = HEADER.read_text(encoding="utf-8")
    counters = re.findall(r'^\s*X\((\w+), "(\w+)", (?:SUM|MAX), "([^"]+)"\)', text, re.MULTILINE)
    times = re.findall(r'^\s*X\((\w+_s), "([^"]+)"\)', text, re.MULTILINE)
    assert len(counters) == 55
    assert len(times) == 13
    expected = counters + [(name, "s", meaning) for name, meaning in times]
    assert [(number.name, number.unit, number.meaning) for number in stats.numbers()] == expected


def test_fields_are_documented_and_typed() -> None:
    assert stats._Stats.__doc__ is not None
    for field in dataclasses.fields(stats._Stats):
        assert re.search(rf"\b{field.name}\b", stats._Stats.__doc__), field.name
    for number in stats.numbers():
        assert number.unit == "s" or not number.name.endswith("_s")
        assert (number.unit == "bytes") == ("bytes" in number.name.split("_"))


def test_total_without_files() -> None:
    total = stats.total()
    assert dataclasses.is_dataclass(total)
    assert {getattr(total, number.name) for number in stats.numbers()} == {0}
    assert total.request_size_log2 == (0,) * 48
    texts = [field.name for field in dataclasses.fields(total) if field.type == "str"]
    assert len(texts) == 7
    assert {getattr(total, name) for name in texts} == {""}
    assert (total.write_stripe_size_io, total.read_stripe_size_io) == (False, False)
    assert total.calls == {}


def test_drift_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    stats.numbers.cache_clear()
    monkeypatch.setattr(stats, "_Stats", stats.Number)
    try:
        with pytest.raises(LoadError, match="list different numbers"):
            stats.numbers()
    finally:
        stats.numbers.cache_clear()
