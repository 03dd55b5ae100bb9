"""Where the ranks of a replay meet: before a file that others use is changed, and after."""

from __future__ import annotations

from typing import Any

from mpiio_ext.pioneer.engine.meetings import meetings
from mpiio_ext.pioneer.operations import operation_of
from mpiio_ext.pioneer.profile import find_sessions
from support.pioneer_paths import path_of, row

ROOT, CHILDREN, ALL = 1, 2, 3


def found(*rows: dict[str, Any]) -> list[int]:
    path = path_of(list(rows))
    kinds = [operation_of(item["layer"], item["operation"]) for item in rows]
    return meetings(path, kinds, find_sessions(path))


def made_by(groups: int, *words: Any, **values: Any) -> dict[str, Any]:
    return row(*words, **values) | {"groups": groups}


def session(file: str, *between: dict[str, Any]) -> list[dict[str, Any]]:
    return [row("open", file, "shared"), *between, row("close", file, "shared")]


def test_the_root_removes_what_all_have_used() -> None:
    unlink = made_by(ROOT, "unlink", "a", "shared")
    assert found(*session("a", row("read", "a", "shared", size=1)), unlink) == [3]
    assert found(*session("b"), unlink) == []
    assert found(unlink | {"groups": ALL}, *session("a")) == []


def test_others_wait_for_what_the_root_makes() -> None:
    """Before the first use by others; a file that is unlinked is opened by all afterwards."""
    made = [made_by(ROOT, "open", "a", "shared"), made_by(ROOT, "close", "a", "shared")]
    assert found(*made, *session("a")) == [2]
    assert found(*made, made_by(CHILDREN, "stat", "a", "shared")) == [2]
    assert found(*made, made_by(ROOT, "stat", "a", "shared")) == []
    assert found(made_by(ROOT, "unlink", "a", "shared"), *session("a")) == [1]


def test_what_was_written_is_read_by_others() -> None:
    write, read = row("write", "a", "shared", size=4), row("read", "a", "shared", size=4)
    assert found(*session("a", write), *session("a", read)) == [3]
    assert found(*session("a", read), *session("a", read)) == []
    assert found(*session("a", write), *session("a", write, read)) == []
    collective = row("MPI_File_open", "a", "shared", "mpiio")
    assert found(*session("a", write), collective, *session("a", read)) == []


def test_folders_and_private_files() -> None:
    rmdir = made_by(ROOT, "rmdir", "d", "root")
    assert found(*session("d/a"), rmdir) == [2]
    assert found(*session("e/a"), rmdir) == []
    own = [row("open", "a.{rank}", "private"), row("write", "a.{rank}", "private", size=1)]
    assert found(*own, made_by(ROOT, "unlink", "a.{rank}", "private")) == []


def test_one_group_meets_nowhere() -> None:
    rows = [item | {"groups": ROOT} for item in session("a", row("write", "a", "root", size=4))]
    path = path_of([*rows, made_by(ROOT, "unlink", "a", "root")], groups=1)
    kinds = [operation_of("posix", name) for name in ("open", "write", "close", "unlink")]
    assert meetings(path, kinds, find_sessions(path)) == []


def test_files_of_other_ranks() -> None:
    """Nobody waits for files that each rank has for itself; for one that others look at before they do, and after."""
    own = [row(name, "p.{rank}", "private") for name in ("open", "write", "close")]
    assert found(*own, row("unlink", "p.{rank}", "private")) == []
    look = [row(name, "p.{rank~1}", "private") for name in ("open", "read", "close")]
    assert found(*own, *look, *look) == [3]
    removed = [made_by(ROOT, "unlink", f"p.{{rank={rank}}}", "private") for rank in (1, 2)]
    assert found(*own, *look, *removed) == [3, 6]
    assert found(*own, made_by(ROOT, "stat", "p.{rank=1}", "private"), *own) == [3, 4]
    assert found(*own, *removed, row("stat", "p.{rank}", "private")) == [3, 5]
    assert found(*own, made_by(ROOT, "stat", "q.{rank=1}", "private")) == []
