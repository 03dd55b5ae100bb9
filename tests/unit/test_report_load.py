"""What `bench report` refuses: one line, exit status 2, and no file; and that it never ends in another way."""

from __future__ import annotations

import copy
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpiio_ext.cli import main
from mpiio_ext.common.files import write_whole
from mpiio_ext.report.errors import ReportError
from mpiio_ext.report.load import load, load_all
from mpiio_ext.report.page import render
from support import report_results as results

GOOD = results.document([results.run("native", ratio_to_native=1.0), results.run("auto", ratio_to_native=2.0)])


def invoke(*arguments: object):
    return CliRunner().invoke(main, ["bench", "report", *map(str, arguments)])


def refused(folder: Path, *arguments: object) -> str:
    """Return the line of a refusal, and see to it that nothing was left in the folder of the output."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    result = invoke(*arguments, "-o", out / "report.html")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert list(out.iterdir()) == []
    (line,) = result.stderr.splitlines()
    assert line.startswith("mpiio-ext: ")
    return line


# ---- files ----


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "the file is empty"),
        (b"  \n", "the file is empty"),
        (b"hello", "is not JSON"),
        (b"\xff\xfe\x00bad", "not a text file in UTF-8"),
        (json.dumps(GOOD).encode()[:-1], "cut off"),
        (json.dumps(GOOD).encode()[:700], "cut off"),
        (b"[1, 2]", "a list at the top"),
        (b'{"a": 1}', "it has no schema_version"),
        (b'{"schema_version": 2}', "without runs"),
        (b'{"schema_version": 99, "runs": []}', "schema_version is 99, and this mpiio_ext reads 2"),
        (b'{"schema_version": "2", "runs": []}', "and this mpiio_ext reads 2"),
        (b'{"schema_version": true, "runs": []}', "and this mpiio_ext reads 2"),
        (b'{"schema_version": 2, "runs": []}', "recorded no run"),
        (b'{"schema_version": 2, "runs": [], "failure": "killed"}', "recorded no run: killed"),
        (b'{"schema_version": 2, "runs": {}}', "/runs: an object of 0 is not a list"),
        (b'{"schema_version": 2, "runs": [3]}', "/runs/0: 3 is not an object"),
        (b'{"schema_version": 2, "runs": [{}]}', '/runs/0: "workload" is missing'),
        (b'{"schema_version": 2, "runs": [NaN]}', "NaN is no number in JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"peers": {}, "results": []}', "has no result"),
        (b'{"peers": {}, "results": [{}]}', '/results/0: "pattern" is missing'),
    ],
)
def test_unusable_file(content, message, tmp_path):
    path = tmp_path / "results.json"
    path.write_bytes(content)
    line = refused(tmp_path, path)
    assert str(path) in line
    assert message in line


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("bandwidth_mb_per_s", "fast", '/runs/1/bandwidth_mb_per_s: "fast" is not a number'),
        ("bandwidth_mb_per_s", None, "/runs/1/bandwidth_mb_per_s: null is not a number"),
        ("bandwidth_mb_per_s", -1.0, "-1.0 is less than 0"),
        ("bandwidth_mb_per_s", True, "not a number"),
        ("bandwidth_mb_per_s", 10**400, "not a number"),
        ("ranks", 4.5, "not a whole number"),
        ("ranks", True, "not a whole number"),
        ("label", 7, "not a text"),
        ("scaled", 1, "not true or false"),
        ("request_size_log2", [1, -1], "request_size_log2/1: -1 is less than 0"),
        ("request_size_log2", [0] * 1000, "more than 64"),
        ("noncontiguous", "yes", "not true or false"),
    ],
)
def test_wrong_value_is_named_with_its_place(field, value, message, tmp_path):
    document = copy.deepcopy(GOOD)
    document["runs"][1][field] = value
    line = refused(tmp_path, results.write(tmp_path / "results.json", document))
    assert message in line
    assert len(line) < 300


def test_infinity_written_as_a_number_is_refused(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(GOOD).replace('"bandwidth_mb_per_s": 1000.0', '"bandwidth_mb_per_s": 1e999'))
    assert "bandwidth_mb_per_s: Infinity is not a number" in refused(tmp_path, path)


def test_missing_file_and_folders(tmp_path):
    assert "No such file" in refused(tmp_path, tmp_path / "nothing.json")
    (tmp_path / "empty").mkdir()
    assert "has no results.json" in refused(tmp_path, tmp_path / "empty")
    results.write(tmp_path / "all" / "one" / "results.json", GOOD)
    assert f"did you mean {tmp_path / 'all' / 'one'}?" in refused(tmp_path, tmp_path / "all")


def test_one_bad_file_among_good_ones_spoils_all(tmp_path):
    good = results.write(tmp_path / "good" / "results.json", GOOD)
    assert "nothing.json" in refused(tmp_path, good, tmp_path / "nothing.json")


def test_folders_files_and_names(tmp_path):
    first = results.write(tmp_path / "a" / "run" / "results.json", GOOD)
    second = results.write(tmp_path / "b" / "run" / "results.json", GOOD)
    third = results.write(tmp_path / "cmp.json", results.COMPARE)
    sets, peers = load_all([first.parent, first, second, third])
    assert [item.name for item in sets] == ["run", "run (2)"]
    assert [item.name for item in peers] == ["cmp"]


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(cut=st.floats(0, 1, exclude_max=True))
def test_a_file_that_is_cut_off_anywhere_is_refused(cut, tmp_path):
    text = json.dumps(GOOD, ensure_ascii=False)
    path = tmp_path / "results.json"
    path.write_text(text[: int(cut * len(text))], encoding="utf-8")
    with pytest.raises(ReportError, match=r"cut off|is empty"):
        load(path)


_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.lists(st.integers(-1, 3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
)


@settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_any_value_anywhere_is_shown_or_refused(data, tmp_path):
    document = copy.deepcopy(data.draw(st.sampled_from([GOOD, results.COMPARE])))
    place = document
    while True:  # walk down to some place and put another value there
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], (dict, list)) or not place[key] or data.draw(st.booleans()):
            place[key] = data.draw(_VALUES)
            break
        place = place[key]
    path = results.write(tmp_path / "results.json", document)
    try:
        sets, peers = load_all([path])
    except ReportError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert render(sets, peers, title="t").text.endswith("</html>")


# ---- output ----


def test_output_that_cannot_be(tmp_path):
    source = results.write(tmp_path / "results.json", GOOD)
    before = source.read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for target, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "report.html", "there is no folder"),
        (source, "is one of the inputs"),
        (pipe, "not a regular file"),
    ):
        result = invoke(source, "-o", target)
        assert result.exit_code == 2
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert source.read_bytes() == before
    assert sorted(item.name for item in tmp_path.iterdir()) == ["pipe", "results.json"]


def test_no_space_leaves_the_old_page_and_nothing_else(tmp_path):
    """A limit on the size of files stands for a full disk: the write fails after a part of the page."""
    source = results.write(tmp_path / "in" / "results.json", GOOD)
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.html").write_text("old")
    result = subprocess.run(
        [sys.executable, "-m", "mpiio_ext", "bench", "report", str(source), "-o", str(out / "report.html")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert "report.html: cannot be written: File too large" in line
    assert [item.name for item in out.iterdir()] == ["report.html"]
    assert (out / "report.html").read_text() == "old"


def test_a_page_is_replaced_whole_and_a_link_kept(tmp_path):
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "link.html").symlink_to("real.html")
    assert write_whole(tmp_path / "link.html", "né\ud800w") == 5
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_text(encoding="utf-8") == "né?w"
    assert len(list(tmp_path.iterdir())) == 2


def test_page_is_made(tmp_path, monkeypatch):
    source = results.write(tmp_path / "run" / "results.json", GOOD)
    monkeypatch.chdir(tmp_path)
    result = invoke(source.parent)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("report.html: 2 rows, ")
    assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o666 & ~_umask()
    assert (tmp_path / "report.html").read_text(encoding="utf-8").endswith("</html>")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
