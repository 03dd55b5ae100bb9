"""python -m mpiio_ext.partitioning: text, JSON, pictures, errors."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from click.testing import CliRunner, Result

from mpiio_ext.cli import main
from support.partition_methods import METHODS

FIGURE2 = ["--servers", "3", "--aggregators", "6", "--stripes", "36"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["partitioning", *arguments], catch_exceptions=False)


def texts(path: pathlib.Path) -> list[str]:
    """Return the text of every text element of an SVG file, which must be well-formed."""
    root = ElementTree.parse(path).getroot()
    return ["".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")]


def test_text_drawing_is_the_matrix_of_figure_2() -> None:
    result = run("--servers", "3", "--aggregators", "5", "--stripes", "12", "--method", "transpose")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "transpose: 5 aggregators; changes of owner on a server: 1",
        "row  S0 S1 S2",
        "  0  P0 P1 P3",
        "  1  P0 P1 P3",
        "  2  P0 P2 P4",
        "  3  P1 P2 P4",
    ]


def test_text_drawing_shows_cut_and_shared_stripes_and_sub_regions() -> None:
    result = run("--servers", "3", "--aggregators", "5", "--start", "1500k", "--end", "12345678", "--method", "even")
    assert result.output.splitlines()[2:] == [
        "  0      .   ~P0    P0",
        "  1  P0|P1    P1 P1|P2",
        "  2     P2 P2|P3    P3",
        "  3  P3|P4    P4   P4~",
    ]
    result = run(*FIGURE2, "--method", "group_cyclic")
    lines = result.output.splitlines()
    assert lines[7:10] == ["  5  P0 P1 P2", "    --------- next sub-region", "  6  P3 P4 P5"]


def test_all_methods_side_by_side() -> None:
    heads = [line for line in run(*FIGURE2).output.splitlines() if "changes of owner" in line]
    assert [h.split(":")[0] for h in heads] == ["even", "aligned", "static-cyclic", "group-cyclic", "transpose"]


def test_auto_says_why() -> None:
    first = run("--servers", "3", "--aggregators", "5", "--stripes", "12", "--method", "auto").output.splitlines()[0]
    assert first.startswith("auto takes group_cyclic: 3 of 5 aggregators for 3 servers (factor), stripe 1 MiB, window ")
    assert "; server locks: least time by busiest servers, links and lock requests (model); estimated " in first
    first = run("--servers", "3", "--aggregators", "6", "--stripes", "36", "--method", "auto").output.splitlines()[0]
    assert first.startswith("auto takes group_cyclic: 6 of 6 aggregators for 3 servers (multiple), ")
    assert "; server locks, servers divide aggregators: " in first


def test_json() -> None:
    result = run(*FIGURE2, "--method", "static_cyclic", "--stripe-size", "64k", "--json")
    data = json.loads(result.output)
    assert data["geometry"] == {
        "start_bytes": 0,
        "end_bytes": 36 * 65536,
        "stripe_size_bytes": 65536,
        "servers": 3,
        "aggregators": 6,
    }
    (only,) = data["plans"]
    assert only["method"] == "static_cyclic"
    assert only["domains"][3] == {
        "aggregator": 3,
        "bytes": 6 * 65536,
        "sets": [{"offset_bytes": 3 * 65536, "length_bytes": 65536, "stride_bytes": 6 * 65536, "count": 6}],
    }


@pytest.mark.parametrize("method", METHODS)
def test_json_bytes_are_clipped(method: str) -> None:
    region = ["--start", "1500k", "--end", "12345678"]
    data = json.loads(run("--servers", "3", "--aggregators", "5", *region, "--method", method, "--json").output)
    total = sum(d["bytes"] for d in data["plans"][0]["domains"])
    assert total == 12345678 - 1500 * 1024


def test_json_of_a_huge_region_needs_no_drawing() -> None:
    data = json.loads(run("--servers", "3", "--aggregators", "5", "--end", "4096P", "--json").output)
    for each in data["plans"]:
        assert sum(d["bytes"] for d in each["domains"]) == 2**62


def test_svg_labels_every_stripe(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "out.svg"
    result = run(*FIGURE2, "--method", "group_cyclic", "--plot", str(path))
    assert result.output == f"wrote {path}\n"
    labels = texts(path)
    assert [labels.count(f"P{a}") for a in range(7)] == [6, 6, 6, 6, 6, 6, 0]
    for expected in ("S0", "S1", "S2", "stripe row", "file order →", "sub-region 0", "sub-region 1", "group-cyclic"):
        assert labels.count(expected) == 1
    assert "6 aggregators; changes of owner on a server: 1" in labels
    assert {str(s) for s in range(36)} <= set(labels)
    sizes = re.findall(r"font-size: ([\d.]+)px", path.read_text(encoding="utf-8"))
    assert min(map(float, sizes)) >= 7


def test_svg_is_reproducible(tmp_path: pathlib.Path) -> None:
    for name in ("a.svg", "b.svg"):
        run(*FIGURE2, "--plot", str(tmp_path / name))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("name", ["out.png", "out.pdf"])
def test_other_formats(tmp_path: pathlib.Path, name: str) -> None:
    path = tmp_path / name
    assert run(*FIGURE2, "--plot", str(path)).exit_code == 0
    assert path.read_bytes()[:4] in (b"\x89PNG", b"%PDF")


@pytest.mark.parametrize(
    "region", [["--stripes", "0"], ["--start", "7", "--end", "7"], ["--stripes", "1"], ["--end", "1"]]
)
def test_tiny_regions_are_drawn(tmp_path: pathlib.Path, region: list[str]) -> None:
    assert run("--servers", "40", "--aggregators", "50", *region).exit_code == 0
    assert run("--servers", "40", "--aggregators", "50", *region, "--plot", str(tmp_path / "a.svg")).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--servers", "0"], "--servers"),
        (["--aggregators", "x"], "--aggregators"),
        (["--method", "cyclic"], "--method"),
        (["--stripe-size", "0"], "a stripe has at least one byte"),
        (["--stripe-size", "-4"], "is less than 0 B"),
        (["--stripe-size", "8E"], "is more than 4 EiB"),
        (["--end", "10"], "either --stripes or --end"),
        (["--stripes", "5000"], "5000 stripes cannot be drawn (at most 4096)"),
        (["--stripes", "99999999999999"], "beyond 2^62 bytes"),
        (["--plot", "/no/such/folder/out.svg"], "/no/such/folder/out.svg: cannot be written: No such file"),
        (["--plot", "out.xyz"], "cannot draw out.xyz"),
        (["--plot", "out"], "cannot draw out: give the file a suffix"),
    ],
)
def test_errors_are_one_clear_line(
    arguments: list[str], message: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*(FIGURE2[:4] if "--stripes" in arguments else FIGURE2), *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_missing_and_reversed_region() -> None:
    assert "either --stripes or --end" in run("--servers", "3", "--aggregators", "6").output
    reversed_region = run("--servers", "3", "--aggregators", "6", "--start", "10", "--end", "9")
    assert "ends at 9 before it starts at 10" in reversed_region.output


def test_as_a_module() -> None:
    command = [sys.executable, "-m", "mpiio_ext.partitioning", *FIGURE2, "--method", "static_cyclic"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ | {"NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[2] == "  0  P0 P1 P2"
