"""What a split finds in the folder of its subfiles: another file's subfiles, a swapped folder, leftovers."""

from __future__ import annotations

import errno
import os
import pathlib
import re

import pytest

from mpiio_ext.subfiles.copying import Copier
from mpiio_ext.subfiles.journal import is_part
from support.made_subfiles import command


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Return the folder in which the commands run, with two plain files."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(name.encode() * 200_000)
    return tmp_path


def split(name: str, *more: object) -> list[object]:
    """Return the words of a split to T, in units that are copied one by one."""
    return ["split", name, *([] if "--in-place" in more else ["-o", "T"]), "--unit", 65536, "--count", 3, *more]


def test_what_stays_of_a_full_disk(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another file's subfiles in the folder are not counted, nor to be removed."""
    assert command(*split("a")).exit_code == 0
    (folder / "T").rename(folder / "c")
    others = {*(folder / "T.subfiles").iterdir()}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Copier, "copy", full)
    done = command(*split("b"))
    found = re.search(r"What was copied stays, 0 B in (.+)/([0-9a-f]{16}\.\*): the same command", done.stderr)
    assert done.exit_code == 2 and found is not None, done.output
    left = {*(folder / "T.subfiles").iterdir()} - others
    assert pathlib.Path(found[1]) == folder / "T.subfiles" and len(left) == 3
    assert {*(folder / "T.subfiles").glob(found[2])} == left


@pytest.mark.parametrize(("name", "part"), [
    (".f.0123456789abcdef.tmp", True), (".f.index-0123456789abcdef", True), (".f\n.0123456789abcdef.tmp", True),
    (".f.tmp", False), (".f.index-1", False), ("f.0123456789abcdef.tmp", False), (".f.0123456789ABCDEF.tmp", False),
])  # fmt: skip
def test_names_of_indexes_that_are_not_there_yet(name: str, part: bool) -> None:
    """A user's own name is none of them: his index counts."""
    assert is_part(name) == part
