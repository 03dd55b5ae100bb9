"""``mpiio-ext pioneer show``: a path as text, of which every line stands by itself."""

from __future__ import annotations

import json
import pathlib
import re

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
from support.small_paths import KERNEL, path_of, row

TEXT = """\
path      kernel: 14 operations, 14 shown; of 4 ranks; the fewest differences
group 0   root      ranks 0  represented by rank 0  13 operations
group 1   children  ranks 1-3  represented by rank 1  11 operations
file f0   root          3 operations    1 sessions  /d/log
file f1   shared        7 operations    1 sessions  /d/all.dat
file f2   private       3 operations    1 sessions  /d/own.{rank:03}  rank 1 has /d/own.001
file f3   child         1 operations    0 sessions  /d/else
session s0    f0   posix  root     ids 0..2  3 operations  0 reads  1 writes
session s1    f1   mpiio  shared   ids 3..9  7 operations  0 reads  5 writes
session s2    f2   posix  private  ids 10..12  3 operations  0 reads  1 writes
"""

FOLDED = [
    (
        "op 0",
        "root-exclusive",
        "s0",
        "1/3",
        "open",
        "-",
        "-",
        "2.5",
        "1.0",
        "f0:log",
        "flags=O_WRONLY|O_CREAT|O_TRUNC",
        "mode=0o666",
    ),
    ("op 1", "root-exclusive", "s0", "2/3", "write", "0", "5", "2.5", "1.0", "f0:log"),
    ("op 2", "root-exclusive", "s0", "3/3", "close", "-", "-", "2.5", "1.0", "f0:log"),
    (
        "op 3",
        "mimicked",
        "s1",
        "1/7",
        "MPI_File_open",
        "-",
        "-",
        "2.5",
        "1.0",
        "f1:all.dat",
        "amode=CREATE|RDWR",
        "comm=world",
    ),
    (
        "op 4..8",
        "mimicked",
        "s1",
        "2-6/7",
        "MPI_File_write_at_all",
        "0",
        "1000",
        "2.5",
        "1.0",
        "f1:all.dat",
        "times=5",
        "step=+4000",
        "+1000/rank",
    ),
    ("op 9", "mimicked", "s1", "7/7", "MPI_File_close", "-", "-", "2.5", "1.0", "f1:all.dat"),
    ("op 10", "mimicked", "s2", "1/3", "open", "-", "-", "2.5", "1.0", "f2:own.{rank:03}"),
    ("op 11", "mimicked", "s2", "2/3", "pwrite", "8", "7", "2.5", "1.0", "f2:own.{rank:03}", "g1:offset=9"),
    ("op 12", "mimicked", "s2", "3/3", "close", "-", "-", "2.5", "1.0", "f2:own.{rank:03}"),
    ("op 13", "child-exclusive", "-", "stat", "-", "-", "2.5", "1.0", "f3:else"),
]


def operations(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("op ")]


def words(line: str) -> tuple[str, ...]:
    first, number, *rest = line.split()
    return (f"{first} {number}", *rest)


def test_flags_have_the_names_of_their_calls() -> None:
    """Those of fopen are numbers in our trace; those of mmap, msync and unlinkat are none of open's."""
    rows = [
        row(name, "f", "root", layer, extra=extra)
        for name, layer, extra in (
            ("fopen", "stdio", {"flags": 577}),
            ("mmap", "posix", {"protection": 3, "flags": 1}),
            ("msync", "posix", {"flags": 4}),
            ("unlinkat", "posix", {"flags": 0x200}),
        )
    ]
    lines = operations(list(show(path_of(rows), "flags")))
    told = [[word for word in line.split() if "=" in word] for line in lines]
    assert told == [
        ["flags=O_WRONLY|O_CREAT|O_TRUNC"],
        ["protection=PROT_READ|PROT_WRITE", "flags=MAP_SHARED"],
        ["flags=MS_SYNC"],
        ["flags=AT_REMOVEDIR"],
    ]


def test_a_small_kernel() -> None:
    lines = list(show(path_of(KERNEL), "kernel", fold=True))
    assert "\n".join(lines[:10]) + "\n" == TEXT
    assert lines[10].split()[:3] == ["#", "id", "who"]
    assert [words(line) for line in lines[11:]] == FOLDED
    assert list(show(path_of(KERNEL), "kernel", brief=True)) == lines[:10]
    every = operations(list(show(path_of(KERNEL), "kernel")))
    assert [line.split()[1] for line in every] == [str(number) for number in range(14)]
    assert [line.split()[6] for line in every[4:9]] == ["0", "4000", "8000", "12000", "16000"]


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


def test_many_groups_in_few_words() -> None:
    """What groups have in common stands once; long arguments are cut, and say so."""
    members = tuple((rank,) for rank in range(40))
    made = row("pwrite", "/d/all", "shared", groups=(1 << 40) - 1)
    views = row("MPI_File_set_view", "/d/all", "shared", "mpiio", extra={"filetype": "8," * 5000}, groups=(1 << 40) - 2)
    made |= {f"offset_{rank}": 100 * rank for rank in range(40)} | {f"size_{rank}": 8 for rank in range(39)}
    first, second = operations(list(show(path_of([made | {"size_39": 9}, views], members), "x")))
    assert first.split()[-2:] == ["g1-39:+100/rank", "g39:size=9"]
    assert "child-exclusive" in second and len(second) < 300
    assert second.endswith("…(10,000_characters)")
    lines = list(show(path_of([row("stat", "/d", "shared")], ((0,), tuple(range(1, 2000, 2)))), "x", brief=True))
    assert "ranks 1-1999:2  represented" in lines[2]


def test_columns_stand_below_their_names() -> None:
    lines = list(show(path_of(KERNEL), "kernel"))
    head, rows = lines[10], operations(lines)
    for name, column in (("offset[B]", 6), ("size[B]", 7)):
        end = head.index(name) + len(name)
        assert {line[:end].split()[-1] for line in rows[4:9]} == {line.split()[column] for line in rows[4:9]}


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


def test_a_rank_has_its_own_names_and_values() -> None:
    lines = operations(list(show(path_of(KERNEL), "kernel", Selection(rank=3))))
    assert "f2:own.003" in lines[7]
    assert [line.split()[6] for line in lines[1:3]] == ["1000", "5000"]
    assert not [line for line in lines if "rank" in line or "g1:" in line]


def test_names_that_would_break_a_line() -> None:
    lines = list(show(path_of([row("stat", "/d/a\nop 99\x1b[2J", "shared", extra={"x": "b\nc"})]), "kernel\n"))
    assert all(line.isprintable() for line in lines)
    assert len(operations(lines)) == 1


def test_a_path_without_operations() -> None:
    assert len(list(show(path_of([]), "nothing"))) == 3


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


def test_how_several_subgroups_differ() -> None:
    """By so much a rank in a shared file, if that is a whole number; else by the value."""
    values = {"offset_0": 0, "offset_1": 10, "offset_2": 30, "offset_3": 31, "size_0": 5, "size_1": 5, "size_2": 6}
    rows = [{"operation": "pwrite", "file": "a", "owner": "shared", "layer": "posix", "groups": 15, **values}]
    path = path_of(rows, members=((0,), (1,), (3,), (4,)))
    assert operations(list(show(path, "x")))[0].endswith("f0:a  g1-2:+10/rank g2:size=6 g3:offset=31")
    assert operations(list(show(path, "x", Selection(rank=3))))[0].split()[5:8] == ["pwrite", "30", "6"]


def test_command(tmp_path: pathlib.Path) -> None:
    path_of(KERNEL).save(tmp_path / "kernel.parquet")
    name = str(tmp_path / "kernel.parquet")
    result = CliRunner().invoke(main, ["pioneer", "show", name, "--fold"])
    assert result.exit_code == 0
    assert result.output.splitlines() == list(show(path_of(KERNEL), name, fold=True))
    result = CliRunner().invoke(main, ["pioneer", "show", name, "--operations", "4:6", "--file", "all", "--no-pager"])
    assert len(operations(result.output.splitlines())) == 3
    result = CliRunner().invoke(main, ["pioneer", "show", name, "--head", "3", "--tail", "2"])
    assert [line.split()[1] for line in operations(result.output.splitlines())] == ["1", "2"]
    result = CliRunner().invoke(main, ["pioneer", "show", name, "--head", "3", "--tail", "2", "--json"])
    assert json.loads(result.stdout) == path_of(KERNEL).table.slice(1, 2).to_pylist()
    result = CliRunner().invoke(main, ["pioneer", "show", name, "--json", "--fold"])
    assert result.exit_code == 2 and "neither --fold nor --brief" in result.output
    for text, said in (("6:4", "greater than the last"), ("a", "no range of global sequence IDs"), (":", "no range")):
        result = CliRunner().invoke(main, ["pioneer", "show", name, "--operations", text])
        assert result.exit_code == 2 and said in result.output
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
