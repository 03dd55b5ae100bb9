"""Sizes, durations and bandwidths: one meaning in options, hints and queries, and one way to write them."""

from __future__ import annotations

import re

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.common import units
from mpiio_ext.common.options import Bandwidth, Duration, Size
from mpiio_ext.common.units import count_text, digits_text, seconds_text, size_text
from support.cbuild import ROOT


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("1GB", 10**9, "B"),
        ("1GiB", 2**30, "B"),
        ("1.5TiB", 3 * 2**39, "B"),
        ("0.1kB", 100, "B"),
        ("1 mb", 10**6, "B"),
        ("8EB", 8 * 10**18, "B"),
        ("20GB/s", 20 * 10**9, "B/s"),
        ("5min", 300, "s"),
        ("1.5h", 5400, "s"),
        ("2d", 172800, "s"),
        ("250ms", 0.25, "s"),
        ("3us", 3e-6, "s"),
        ("42", 42, ""),
        ("1e3", 1000, ""),
        ("-1_000", -1000, ""),
    ],
)
def test_quantities(text: str, value: float, unit: str) -> None:
    found = units.parse(text)
    assert (found.value, found.unit) == (value, unit)
    assert type(found.value) is type(value)


@pytest.mark.parametrize("text", ["", "GB", "1G", "1m", "5 minutes", "1GB/h", "1.2.3", "0x10", "1 G B", "nan"])
def test_no_quantity(text: str) -> None:
    with pytest.raises(units.UnitError, match=r"number with a unit|is not a unit"):
        units.parse(text)


def test_quantities_of_a_kind() -> None:
    assert units.size("1GB") == 10**9 and units.size(7) == 7
    assert units.duration("5min") == 300
    assert units.bandwidth("1GB") == units.bandwidth("1GB/s") == 10**9
    assert units.bandwidth("0") == 0
    with pytest.raises(units.UnitError, match="not a duration"):
        units.duration("1GB")
    with pytest.raises(units.UnitError, match="not a size"):
        units.size("5min")


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("4096", 4096),
        ("64k", 65536),
        ("64K", 65536),
        ("64KiB", 65536),
        ("64Ki", 65536),
        ("64kB", 64000),
        ("1M", 2**20),
        ("1MB", 10**6),
        ("1.5GiB", 3 * 2**29),
        ("1.5GB", 1_500_000_000),
        ("2t", 2**41),
        ("1_000", 1000),
        ("7e", 7 * 2**60),
        ("1e3", 1000),
    ],
)
def test_sizes_of_options(text: str, size_bytes: int) -> None:
    assert Size().convert(text, None, None) == size_bytes == units.size(text)


@pytest.mark.parametrize("text", ["", "1.0001k", "-1", "9e", "1Q", "1s", "nan", "64 KiB/s"])
def test_no_sizes_of_options(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Size().convert(text, None, None)


def test_bounds_of_sizes() -> None:
    bounded = Size(least=1, most=2**62)
    assert bounded.convert("4E", None, None) == 2**62 and bounded.convert("1", None, None) == 1
    for text, words in (("0", "less than 1 B"), ("5E", "more than 4 EiB")):
        with pytest.raises(click.BadParameter, match=words):
            bounded.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("5m", 300),
        ("5min", 300),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1h 30min 5s", 5405),
        ("0.5", 0.5),
        ("20us", 2e-5),
        ("20µs", 2e-5),
        ("3ns", 3e-9),
        ("1.5ms", 0.0015),
        ("1d", 86400),
    ],
)
def test_durations_of_options(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize("text", ["0", "-5", "5x", "1h30", "", "1GB", "m5", "inf"])
def test_no_durations_of_options(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Duration().convert(text, None, None)


def test_no_time_where_it_means_something() -> None:
    assert Duration(zero=True).convert("0", None, None) == 0
    with pytest.raises(click.BadParameter):
        Duration(zero=True).convert("-1s", None, None)


@pytest.mark.parametrize(
    ("text", "rate"),
    [("1GB/s", 1e9), ("1GB", 1e9), ("1G/s", 2**30), ("250", 250), ("1.5GiB/s", 1.5 * 2**30), ("inf", float("inf"))],
)
def test_bandwidths_of_options(text: str, rate: float) -> None:
    assert Bandwidth().convert(text, None, None) == rate


def test_hints_mean_the_same(extension: str) -> None:
    """The library's parser of hints, in C, beside the one of options: the same bytes, or refused by both."""
    from mpiio_ext import hints

    for text in ("4096", "64k", "64K", "64KiB", "64Ki", "64kB", "64KB", "1M", "1MB", "16MiB", "1g", "1GB", "1GiB"):
        assert int(hints._canonical("mpiox_delegate_bypass", text)) == Size().convert(text, None, None), text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (8, "8 B"),
        (1000, "1,000 B"),
        (1023, "1,023 B"),
        (1024, "1 KiB"),
        (1536, "1,536 B"),
        (16 << 20, "16 MiB"),
        (2**40, "1 TiB"),
        (3 * 2**50, "3 PiB"),
        (2**40 + 1, "1,099,511,627,777 B"),
    ],
)
def test_exact_sizes(count: int, text: str) -> None:
    assert size_text(count, exact=True) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(999, "999 B"), (999_499, "999 kB"), (999_999, "1 MB"), (999_500_000, "1 GB"), (65_536, "65,536 B")],
)
def test_rounded_sizes(count: int, text: str) -> None:
    assert size_text(count) == text


@given(st.integers(0, 2**62))
def test_exact_sizes_are_read_back(count: int) -> None:
    assert Size().convert(size_text(count, exact=True).replace(",", ""), None, None) == count


@given(st.one_of(st.just(0.0), st.floats(0.01, 1e19)))
def test_rounded_sizes_are_read_back(count: float) -> None:
    assert units.size(size_text(count).replace(",", "")) == pytest.approx(count, rel=0.005, abs=0.5)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5 s"),
        (0.012, "12 ms"),
        (3.14e-6, "3.14 µs"),
        (0.0, "0 µs"),
        (59.94, "59.9 s"),
        (12345.6, "12,346 s"),
        (0.99951, "1 s"),
    ],
)
def test_times(value: float, text: str) -> None:
    assert seconds_text(value) == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (112.6, 2, "113"),
        (-19.4, 2, "-19"),
        (1234567.8, 3, "1,234,568"),
        (6e8, 3, "600,000,000"),
        (999.7, 3, "1,000"),
        (9.996, 3, "10"),
        (1.5, 3, "1.5"),
        (0.000012345, 3, "0.0000123"),
        (0, 3, "0"),
        (float("inf"), 3, "inf"),
    ],
)
def test_no_number_has_a_power_of_ten(value: float, digits: int, text: str) -> None:
    assert digits_text(value, digits) == text


def test_numbers_of_things() -> None:
    assert [count_text(each, "file") for each in (0, 1, 2000)] == ["0 files", "1 file", "2,000 files"]
    assert [count_text(each, "process", "processes") for each in (1, 3)] == ["1 process", "3 processes"]


def test_one_place_reads_and_writes_them() -> None:
    """No other module of the product has a table of units, or writes a unit of sizes behind a quotient."""
    allowed = {"mpiio_ext/common/units.py"}
    table = re.compile(
        r"""["'][KMG]i?B["']\s*:\s*\d|["']kmgtp?e?["']|/ 1024:|["'] [KMGT]iB["']|\("[kMG]i?B", """
        r"""|1e\d[^"']*\} [kMG]B"""
    )
    found = set()
    for folder in ("mpiio_ext", "analytics", "pioneer", "partitioning", "delegates"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if name not in allowed and table.search(path.read_text(encoding="utf-8")):
                found.add(name)
    # Units of other programs' files, which are what those programs mean by them; a table of columns' units.
    assert found == {
        "analytics/cli_summarize.py",
        "analytics/sources/mmperfmon.py",
        "mpiio_ext/bench/explore/results.py",  # FORGE's columns
    }
