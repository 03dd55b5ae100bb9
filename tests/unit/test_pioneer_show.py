"""``mpiio-ext pioneer show``: a path as text, of which every line stands by itself."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.cli import main
from mpiio_ext.pioneer import show_operations
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.show import Selection, show
from mpiio_ext.pioneer.show_folding import fold
from mpiio_ext.pioneer.show_operations import ranges
from mpiio_ext.pioneer.table import SCHEMA, TraceInfo, with_info
from support.expected import Expected
from support.small_paths import KERNEL, path_of, row


def operations(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("op ")]


#: What groups have in common stands once; long arguments are cut.
MANY = row("pwrite", "/d/all", "shared", groups=(1 << 40) - 1) | {
    **{f"offset_{rank}": 100 * rank for rank in range(40)},
    **{f"size_{rank}": 8 for rank in range(39)},
    "size_39": 9,
}
VIEWS = row("MPI_File_set_view", "/d/all", "shared", "mpiio", extra={"filetype": "8," * 5000}, groups=(1 << 40) - 2)
#: By so much a rank in a shared file, if that is a whole number; else by the value.
OFFSETS = {"offset_0": 0, "offset_1": 10, "offset_2": 30, "offset_3": 31, "size_0": 5, "size_1": 5, "size_2": 6}
SUBGROUPS = {"operation": "pwrite", "file": "a", "owner": "shared", "layer": "posix", "groups": 15, **OFFSETS}
#: Those of fopen are numbers in our trace; those of mmap, msync and unlinkat are none of open's.
FLAGS = [
    row("fopen", "f", "root", "stdio", extra={"flags": 577}),
    row("mmap", "f", "root", extra={"protection": 3, "flags": 1}),
    row("msync", "f", "root", extra={"flags": 4}),
    row("unlinkat", "f", "root", extra={"flags": 0x200}),
]
BROKEN = row("stat", "/d/a\nop 99\x1b[2J", "shared", extra={"x": "b\nc"})
#: Paths, and what of them is shown.
SHOWN: dict[str, tuple[WorkloadPath, dict[str, Any]]] = {
    "a kernel": (path_of(KERNEL), {}),
    "a kernel, folded": (path_of(KERNEL), {"fold": True}),
    "a kernel, brief": (path_of(KERNEL), {"brief": True}),
    "a rank": (path_of(KERNEL), {"selection": Selection(rank=3)}),
    "flags": (path_of(FLAGS), {}),
    "many groups": (path_of([MANY, VIEWS], tuple((rank,) for rank in range(40))), {}),
    "every other rank": (path_of([row("stat", "/d", "shared")], ((0,), tuple(range(1, 2000, 2)))), {"brief": True}),
    "subgroups": (path_of([SUBGROUPS], members=((0,), (1,), (3,), (4,))), {}),
    "a rank of subgroups": (path_of([SUBGROUPS], members=((0,), (1,), (3,), (4,))), {"selection": Selection(rank=3)}),
    "names that would break a line": (path_of([BROKEN]), {}),
    "no operations": (path_of([]), {}),
}


@pytest.mark.parametrize("name", SHOWN)
def test_texts(name: str, expected: Expected) -> None:
    path, options = SHOWN[name]
    lines = list(show(path, "kernel\n", **options))
    assert all(line.isprintable() for line in lines)
    expected("\n".join(lines))


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], "-"),
        ([0], "0"),
        ([1, 2, 3], "1-3"),
        ([7, 1, 2, 3], "1-3,7"),
        (list(range(1, 512)), "1-511"),
        ([1, 3], "1,3"),
        (list(range(1, 512, 2)), "1-511:2"),
        ([1, 3, 5, 6, 7, 9], "1-5:2,6-7,9"),
        ([at * at for at in range(20)], "0-1,4,9,16,25,36,49,… (20 in all)"),
    ],
)
def test_ranges(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


@given(st.sets(st.integers(0, 200), max_size=60))
def test_ranges_tell_all_or_how_many(numbers: set[int]) -> None:
    """What is not cut gives the numbers back; a line stays short whatever there is."""
    text = ranges(list(numbers))
    assert len(text) < 100
    if "…" in text:
        assert text.endswith(f"({len(numbers)} in all)")
        return
    found: set[int] = set()
    for part in text.split(",") if numbers else []:
        ends, _, step = part.partition(":")
        first, _, last = ends.partition("-")
        found |= set(range(int(first), int(last or first) + 1, int(step or 1)))
    assert found == numbers


@pytest.mark.parametrize(
    ("selection", "ids"),
    [
        (Selection(first=4, last=6), [4, 5, 6]),
        (Selection(first=12), [12, 13]),
        (Selection(last=1), [0, 1]),
        (Selection(file="own"), [10, 11, 12]),
        (Selection(file="*.dat"), list(range(3, 10))),
        (Selection(file="x"), []),
        (Selection(rank=0), list(range(13))),
        (Selection(rank=2), list(range(3, 14))),
        (Selection(rank=9, file="own"), [10, 11, 12]),
        (Selection(head=3), [0, 1, 2]),
        (Selection(tail=2), [12, 13]),
        (Selection(file="*.dat", head=3, tail=1), [5]),
        (Selection(head=0), []),
        (Selection(tail=99), list(range(14))),
    ],
)
def test_selections(selection: Selection, ids: list[int]) -> None:
    """What is left out changes no other line, and files and sessions are those of what is shown."""
    lines = list(show(path_of(KERNEL), "kernel", selection))
    found = operations(lines)
    assert [int(line.split()[1]) for line in found] == ids
    assert f", {len(ids)} shown;" in lines[0]
    if selection.rank is None:
        everything = set(show(path_of(KERNEL), "kernel"))
        assert set(found) <= everything
    named = {match[1] for line in found if (match := re.search(r"  (f\d+):", line))}
    assert {line.split()[1] for line in lines if line.startswith("file ")} == named


def unfolded(lines: list[str]) -> list[tuple[int, str, int | None]]:
    """Return ID, name and offset of the operations that folded lines stand for, in order."""
    found, at = [], 0
    while at < len(lines):
        every = int(match[1]) if (match := re.search(r" every=(\d+)", lines[at])) else 1
        turn = []
        for line in lines[at : at + every]:
            parts = re.match(r"op (\d+)(?:\.\.(\d+))? .* (pwrite|lseek|read|stat) +(\S+)", line)
            times, step = re.search(r"times=(\d+)", line), re.search(r"step=(\S+)", line)
            assert parts is not None
            offset = None if parts[4] == "-" else int(parts[4])
            turn.append((int(parts[1]), parts[3], offset, int(step[1]) if step else 0, int(times[1]) if times else 1))
            assert int(parts[2] or parts[1]) == turn[-1][0] + (turn[-1][4] - 1) * every
        assert len({item[-1] for item in turn}) == 1
        for number in range(turn[0][-1]):
            found += [
                (first + number * every, name, None if offset is None else offset + number * step)
                for first, name, offset, step, _ in turn
            ]
        at += every
    return found


_CALL = st.tuples(st.sampled_from(["pwrite", "lseek", "read", "stat"]), st.integers(0, 3), st.booleans())


@st.composite
def loops(draw: st.DrawFn) -> list[tuple[str, int | None]]:
    """Draw operations: loops of up to ten of them, whose offsets go on by steps, and some between."""
    found: list[tuple[str, int | None]] = []
    for _ in range(draw(st.integers(0, 4))):
        turn = draw(st.lists(_CALL, min_size=1, max_size=10))
        steps = draw(st.lists(st.integers(-1, 2), min_size=len(turn), max_size=len(turn)))
        for number in range(draw(st.integers(1, 6))):
            found += [
                (name, 9 + at + number * step if known else None)
                for (name, at, known), step in zip(turn, steps, strict=True)
            ]
    return found


@given(loops())
@settings(max_examples=300)
def test_folding_loses_nothing(several: list[tuple[str, int | None]]) -> None:
    """Unfolded lines are the operations, in order."""
    rows = [row(name, "a", "shared", at=at, size=1) for name, at in several]
    found = unfolded(operations(list(show(path_of(rows), "x", fold=True))))
    assert found == [(number, *item) for number, item in enumerate(several)]


@pytest.mark.parametrize("period", range(1, 11))
def test_loops_are_a_line_for_each_operation(period: int) -> None:
    """Up to eight operations; of each the offsets go on by a step of its own."""
    rows = [row("open", "f", "root", groups=1)]
    for turn in range(6):
        rows += [row("pwrite", "f", "root", groups=1, at=100 * turn * at + at, size=1 + at) for at in range(period)]
    rows.append(row("close", "f", "root", groups=1))
    lines = operations(list(show(path_of(rows), "x", fold=True)))
    assert len(lines) == 2 + (period if period <= 8 else 6 * period)
    if 1 < period <= 8:
        last = 2 + 5 * period
        assert lines[2].split()[1:5] == [f"2..{last}", "root-exclusive", "s0", f"3-{last + 1}/{len(rows)}"]
        assert lines[2].endswith(f"times=6 every={period} step=+100")


def test_two_turns_are_no_loop_and_the_shortest_one_is_found() -> None:
    pair = [row("lseek", "f", "root", groups=1, at=0), row("write", "f", "root", groups=1, at=0, size=4)]
    assert len(operations(list(show(path_of(pair * 2), "x", fold=True)))) == 4
    assert [line.split()[1] for line in operations(list(show(path_of(pair * 6), "x", fold=True)))] == ["0..10", "1..11"]
    same = [row("write", "f", "root", groups=1, at=0, size=4)] * 12
    assert [line.split()[1] for line in operations(list(show(path_of(same), "x", fold=True)))] == ["0..11"]


@given(keys=st.lists(st.integers(0, 2), max_size=60), step=st.integers(0, 1), cut=st.integers(1, 60))
def test_what_is_folded_does_not_depend_on_what_is_looked_at(keys: list[int], step: int, cut: int) -> None:
    """Folds of the first rows are those of all rows, as far as they are decided."""
    numbers, offsets = np.array(keys, np.int64), np.arange(len(keys)) * step
    known = np.ones(len(keys), bool)
    whole = fold(numbers, offsets, known, last=True)
    part = fold(numbers[:cut], offsets[:cut], known[:cut], last=cut >= len(keys))
    count = part.begins.size
    assert part.begins.tolist() == whole.begins[:count].tolist()
    assert part.turns.tolist() == whole.turns[:count].tolist()
    assert whole.end == len(keys)
    assert int((whole.periods * whole.turns).sum()) == len(keys)


@given(
    rows=st.lists(st.tuples(st.sampled_from(["pwrite", "stat"]), st.integers(0, 1), st.integers(2, 3)), max_size=30),
    length=st.integers(1, 9),
    fold=st.booleans(),
    by=st.integers(0, 2),
)
def test_lines_do_not_depend_on_chunks(rows: list[tuple[str, int, int]], length: int, fold: bool, by: int) -> None:
    """Runs go on from one chunk to the next."""
    path = path_of([row(name, "a", "shared", at=at, step=by, groups=groups) for name, at, groups in rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(show_operations, "_CHUNK", length)
        pieces = list(show(path, "x", fold=fold))
    assert pieces == list(show(path, "x", fold=fold))


COMMANDS = (
    "--fold",
    "--operations 4:6 --file all --no-pager",
    "--head 3 --tail 2",
    "--head 3 --tail 2 --json",
    "--json --fold",
    "--operations 6:4",
    "--operations a",
    "--operations :",
)


@pytest.mark.parametrize("words", COMMANDS)
def test_command(words: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, expected: Expected) -> None:
    monkeypatch.chdir(tmp_path)
    path_of(KERNEL).save(tmp_path / "kernel.parquet")
    result = CliRunner().invoke(main, ["pioneer", "show", "kernel.parquet", *words.split()])
    usage, _, error = result.output.partition("Error: ")
    expected({"status": result.exit_code, "output": error or usage})


def test_what_is_no_path(tmp_path: pathlib.Path) -> None:
    (tmp_path / "text").write_text("x", encoding="utf-8")
    result = CliRunner().invoke(main, ["pioneer", "show", str(tmp_path / "text")])
    assert result.exit_code == 2 and "text" in result.output


@pytest.mark.parametrize("command", ["path", "synthesize"])
def test_the_extension_of_the_output_says_its_form(tmp_path: pathlib.Path, command: str) -> None:
    """Text, JSON and Parquet; anything else is refused before something is written."""
    path_of(KERNEL).save(tmp_path / "kernel.parquet")
    table = pa.Table.from_pylist(
        [
            {
                "timestamp": 10 * at,
                "operation": name,
                "file": "/d/a",
                "rank": 0,
                "thread": 0,
                "layer": "posix",
                "line": 1 + at,
                "duration": 1,
                "depth": 0,
            }
            for at, name in enumerate(("open", "write", "close"))
        ],
        SCHEMA,
    )
    pq.write_table(table.cast(with_info(SCHEMA, TraceInfo(format="made", ranks=1))), tmp_path / "trace.parquet")
    source = tmp_path / ("trace.parquet" if command == "path" else "kernel.parquet")

    def run(name: str) -> Result:
        return CliRunner().invoke(main, ["pioneer", command, str(source), "-o", str(tmp_path / name)])

    for name in ("out.parquet", "out.json", "out.txt"):
        result = run(name)
        assert result.exit_code == 0, result.output
    first = WorkloadPath.load(tmp_path / "out.parquet")
    assert WorkloadPath.load(tmp_path / "out.json").table.equals(first.table)
    assert (tmp_path / "out.txt").read_text("utf-8").splitlines() == list(show(first, "out.txt"))
    for name, said in (("out.csv", "has the extension .csv"), ("out", "has no extension")):
        result = run(name)
        assert result.exit_code == 2
        assert all(word in result.output for word in (*said.split(), ".parquet", ".json", ".txt"))
        assert not (tmp_path / name).exists()
    result = CliRunner().invoke(main, ["pioneer", "profile", str(tmp_path / "kernel.parquet"), "-o", "profile.yaml"])
    assert result.exit_code == 2 and ".json" in result.output
