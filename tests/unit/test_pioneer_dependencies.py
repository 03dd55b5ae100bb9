"""Hard dependencies of workload paths: Figures 1a and 1b of the paper."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.pioneer.cli import pioneer
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from mpiio_ext.pioneer.synthesis import dependencies, find_violations
from support import pioneer_paths

Row = tuple[Any, ...]


def path_of(rows: list[Row], ids: list[int] | None = None) -> WorkloadPath:
    """Return a path of rows (operation, file, layer, groups, extra, session); else posix, both groups, nothing."""
    filled = []
    for number, row in enumerate(rows):
        operation, file, layer, groups, extra, session = (*row, *(None, "posix", 3, None, None)[len(row) - 1 :])
        filled.append(
            {
                "id": ids[number] if ids else number,
                "operation": operation,
                "file": file,
                "layer": layer,
                "session": session,
                "groups": groups,
                "extra": None if extra is None else json.dumps(extra),
            }
        )
    return pioneer_paths.path_of(filled)


def said(rows: list[Row]) -> list[tuple[int, int, str]]:
    return [(item.id, item.group, item.why) for item in find_violations(path_of(rows))]


_LAYERS = {"MPI_File": "mpiio", "MPI_Wait": "mpi"} | dict.fromkeys(["fopen", "fread", "fwrite", "fclose"], "stdio")


def layer_of(operation: str) -> str:
    return _LAYERS.get(operation[:8], "posix")


def steps(text: str) -> list[Row]:
    """Return the rows of a text such as `open a @1 flags=0; MPI_Wait`: operation, file, @session and what is extra."""
    rows: list[Row] = []
    for operation, *words in (step.split() for step in text.split("; ")):
        file, session = (next((word for word in words if re.match(form, word)), None) for form in (r"\w$", "@"))
        named = dict(word.split("=") for word in words if "=" in word)
        extra = {name: int(value) if value.isdigit() else value for name, value in named.items()}
        rows.append((operation, file, layer_of(operation), 3, extra or None, session and int(session[1:])))
    return rows


def test_what_holds() -> None:
    path = (
        "stat a; open a flags=2; read a; write a; mmap a; munmap a; open a flags=O_RDONLY; read a; close a; "
        "write a; close a; unlink a; fopen a; fread a; fclose a; MPI_File_open b amode=9; "
        "MPI_File_write_all_begin b; MPI_File_write_all_end b; MPI_File_iread b; MPI_File_iread b; MPI_Waitall; "
        "MPI_File_close b; write"
    )
    assert said(steps(path)) == []


@pytest.mark.parametrize(
    ("path", "row", "why"),
    [
        ("read a", 0, "the file is not open"),
        ("open a; close a; fstat a", 2, "the file is not open"),
        ("open a; fread a", 1, "the file is not open"),
        ("open a; munmap a", 1, "nothing is mapped"),
        ("open a; msync a", 1, "nothing is mapped"),
        ("open a @0; mmap a @0; close a @0; msync a @0; munmap a @0; munmap a @0", 5, "the file is not open"),
        ("open a @0; mmap a @0; close a @0; write a @0", 3, "the file is not open"),
        ("fopen a flags=0; fwrite a", 1, "the file is open for reading only"),
        ("fopen a @0 flags=0; read a @0; write a @0", 2, "the file is open for reading only"),
        ("open a flags=0; pwrite a", 1, "the file is open for reading only"),
        ("open a flags=O_WRONLY|O_CREAT; read a", 1, "the file is open for writing only"),
        ("MPI_File_open a amode=2; MPI_File_write_all_begin a", 1, "the file is open for reading only"),
        ("MPI_File_open a amode=MPI_MODE_WRONLY; MPI_File_read a", 1, "the file is open for writing only"),
        ("MPI_File_open a; MPI_File_read_all_end a", 1, "it was not begun"),
        (
            "MPI_File_open a; MPI_File_read_all_begin a; MPI_File_write_all_begin a",
            2,
            "MPI_File_read_all has been begun and not ended",
        ),
        ("MPI_Wait", 0, "nothing waits to be completed"),
        (
            "MPI_File_open a; MPI_File_iwrite_at a request=5; MPI_Waitall a request=5; MPI_Waitall a request=5",
            3,
            "no operation with request 5 waits to be completed",
        ),
        ("MPI_File_open a; MPI_File_iread_at a request=5 complete=1; MPI_Wait", 2, "nothing waits to be completed"),
        ("open a @0 flags=1; open a @1 flags=0; write a @0; write a @1", 3, "the file is open for reading only"),
        ("open a @0; open a @1; close a @0; read a @0", 3, "the file is not open in session 0"),
        ("open a @0; dup a @0; close a @0; read a @0; close a @0; read a @0", 5, "the file is not open"),
        ("fopen a mode=r; fwrite a", 1, "the file is open for reading only"),
    ],
)
def test_what_does_not_hold(path: str, row: int, why: str) -> None:
    rows = steps(path)
    assert said(rows) == [(row, group, f"{rows[row][0]}: {why}") for group in (0, 1)]


def test_each_request_is_waited_for() -> None:
    """A row for each request that an MPI_Waitall has completed, in any order; two files may have the same numbers."""
    writes = [("MPI_File_iwrite_at", file, "mpiio", 3, {"request": number}) for file in "ab" for number in (4, 7, 9)]
    waits = [("MPI_Waitall", file, "mpi", 3, {"request": number}) for file in "ab" for number in (9, 4, 7)]
    opens = [("MPI_File_open", file, "mpiio") for file in "ab"]
    assert said([*opens, *writes, *waits]) == []
    assert said([*opens, *writes, ("MPI_Wait", None, "mpi", 3, {"request": 7}), ("MPI_Wait", None, "mpi")]) == []
    assert said([*opens, *writes, ("MPI_Waitall", None, "mpi"), ("MPI_Waitall", None, "mpi")]) == [
        (9, group, "MPI_Waitall: nothing waits to be completed") for group in (0, 1)
    ]


def check(path: pathlib.Path) -> tuple[int, str]:
    found = CliRunner().invoke(pioneer, ["check", str(path)])
    return found.exit_code, found.output.replace(f"{path}: ", "")


@pytest.mark.parametrize("name", ["path.parquet", "path.json"])
def test_command(tmp_path: pathlib.Path, name: str) -> None:
    """Paths in both forms; the status tells."""
    path = tmp_path / name
    path_of([("open", "a"), ("fsync", "a"), ("close", "a")]).save(path)
    assert check(path) == (0, "hard dependencies of 3 operations: all hold\n")
    path_of([("open", "a"), ("close", "a"), ("open", "a", "posix", 3, {"flags": 0}), ("write", "a")]).save(path)
    wrong = "".join(f"operation 3, group {group}: write: the file is open for reading only\n" for group in (0, 1))
    unsized = "1 data operations have no size and move nothing: write; the first one is operation 3\n"
    assert check(path) == (1, f"{wrong}{unsized}hard dependencies of 4 operations: 2 do not hold\n")
    path_of([("write", "a")] * 30 + [("munmap", "a")] * 15).save(path)  # as of a trace without opens
    status, text = check(path)
    assert (status, "1 open sessions have no open" in text, "all hold" in text) == (0, True, True), text
    path_of([("open", "a")] + [("munmap", "a")] * 15).save(path)
    status, text = check(path)
    assert (status, "and 10 more" in text, "30 do not hold" in text) == (1, True, True), text


def test_the_check_as_json(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "path.parquet"
    path_of([("open", "a"), ("close", "a"), ("open", "a", "posix", 3, {"flags": 0}), ("write", "a")]).save(path)
    done = CliRunner().invoke(pioneer, ["check", str(path), "--json"])
    found = json.loads(done.stdout)
    assert (done.exit_code, found["fine"], found["operations"], found["kind"]) == (1, False, 4, "path")
    assert found["violations"] == [
        {"operation": 3, "group": group, "why": "write: the file is open for reading only"} for group in (0, 1)
    ]
    assert found["not_made"] == ["1 data operations have no size and move nothing: write; the first one is operation 3"]
    path_of([("write", "a")] * 30 + [("munmap", "a")] * 15).save(path)
    done = CliRunner().invoke(pioneer, ["check", str(path), "--json"])
    found = json.loads(done.stdout)
    assert (done.exit_code, found["fine"], found["violations"], found["sessions_without_open"]) == (0, True, [], 1)


def test_synthesis_tells_what_it_has_broken(tmp_path: pathlib.Path) -> None:
    """The status is 1 where the new path is worse than the old one, which may have lost some of its opens."""
    path_of([("write", "a"), ("open", "b"), ("write", "b"), ("close", "b")]).save(tmp_path / "path.parquet")
    words = ["synthesize", str(tmp_path / "path.parquet"), "-o", str(tmp_path / "new.parquet"), "--mode", "quota"]
    found = CliRunner().invoke(pioneer, words)
    assert (found.exit_code, "do not hold: 2" in found.output) == (0, True), found.output


def test_each_group_by_itself() -> None:
    """What the root has opened is not open for the children."""
    assert said([("open", "a", "posix", 1), ("read", "a", "posix", 3)]) == [(1, 1, "read: the file is not open")]


def test_ids() -> None:
    found = find_violations(path_of([("stat", "a")] * 4, ids=[0, 2, 2, 1]))
    assert [(item.id, item.why) for item in found] == [
        (2, "its global sequence ID is not greater than the one before"),
        (1, "its global sequence ID is not greater than the one before"),
    ]


def test_no_more_than_asked_for() -> None:
    assert len(find_violations(path_of([("read", "a")] * 50), most=7)) == 14


_CALLS = [
    "open",
    "close",
    "read",
    "write",
    "mmap",
    "munmap",
    "msync",
    "dup",
    "ftruncate",
    "stat",
    "fopen",
    "fwrite",
    "fclose",
    "MPI_File_open",
    "MPI_File_write_all",
    "MPI_File_iwrite",
    "MPI_File_read_all_begin",
    "MPI_File_read_all_end",
    "MPI_File_close",
    "MPI_Wait",
]
_EXTRAS = [None, None, None, {"flags": "O_RDONLY"}, {"flags": "O_RDWR"}, {"errno": 9}, {"text": "errno"}, {"amode": 2}]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(_CALLS),
            st.sampled_from(["a", "b", None]),
            st.sampled_from([1, 2, 3, 3]),
            st.sampled_from(_EXTRAS),
            st.sampled_from([None, None, 0, 1]),
        ),
        max_size=40,
    ),
    st.integers(1, 5),
)
@settings(max_examples=300, deadline=None)
def test_what_is_left_out_changes_nothing(
    calls: list[tuple[str, str | None, int, dict[str, Any] | None, int | None]], most: int
) -> None:
    """The same violations as with each operation looked at."""
    rows: list[Row] = []
    for name, file, groups, extra, session in calls:  # each as often as that something can be left out
        rows += [(name, file, layer_of(name), groups, extra, session)] * (1 + len(name) % 3)
    path = path_of(rows)
    found = find_violations(path), find_violations(path, most=most)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dependencies, "_repeated", lambda path, _: np.zeros(path.table.num_rows, bool))
        assert found == (find_violations(path), find_violations(path, most=most))


def test_most_of_a_path_is_left_out() -> None:
    """Of many accesses to open files one of each kind is looked at, also where files take turns."""
    rows: list[Row] = [("open", "a"), ("open", "b", "posix", 1)]
    rows += [("write", "a"), ("pread", "b", "posix", 1), ("write", "a"), ("stat", "c")] * 50
    rows += [("close", "a"), ("open", "a"), ("write", "a"), ("close", "a"), ("close", "b", "posix", 1)]
    path = path_of(rows)
    kinds = dependencies._Kinds.in_path(path)
    assert np.flatnonzero(~dependencies._repeated(path, kinds)).tolist() == [0, 1, 2, 3, *range(202, 207)]
    assert find_violations(path) == []
