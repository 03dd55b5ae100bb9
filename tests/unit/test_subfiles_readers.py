"""Who reads a file of subfiles past MPI, a merge to another name or a mount, keeps it from who removes it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import struct
from collections.abc import Iterator

import pytest

from support import mounts
from support.made_subfiles import IDENT, child, command, content, make

RUNS, SIZE = {0: b"begin", 300: b"x" * 500}, 900
#: A child says that it has copied all, and waits for a file.
WAITS = """
import os, time
from mpiio_ext.common import files
def step(name):
    if name == "merge: copied":
        print("copied", flush=True)
        while not os.path.exists({gate!r}):
            time.sleep(0.01)
files.step = step
"""
REMOVING = (["rm"], ["mv"], ["merge", "--in-place"])


@pytest.fixture()
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "files").mkdir()
    make(tmp_path / "files" / "f", RUNS, SIZE, 64, 3)
    return tmp_path / "files" / "f"


def refused(path: pathlib.Path, who: str) -> None:
    """Each command that takes the file from its name says who has it."""
    for words in REMOVING:
        done = command(words[0], path, *words[1:], *([path.with_name("g")] if words == ["mv"] else []))
        assert done.exit_code == 2, done.output
        assert f"{path}: a program has it open: try again after that (process {who}" in done.stderr, done.output
    assert sorted(one.name for one in path.parent.iterdir()) == ["f", "f.subfiles"]


def test_a_merge_to_another_name(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """It ends well; then the file can go."""
    gate = tmp_path / "gate"
    with child("merge", path, "-o", tmp_path / "out", before=WAITS.format(gate=str(gate))) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"copied\n"
            refused(path, f"{process.pid}, ")
        finally:
            gate.touch()
        assert process.wait(60) == 0
    assert (tmp_path / "out").read_bytes() == content(RUNS, SIZE)
    assert command("rm", path).exit_code == 0 and not list(path.parent.iterdir())


@contextlib.contextmanager
def mounted(path: pathlib.Path, at: pathlib.Path) -> Iterator[None]:
    at.mkdir()
    try:
        mounts.mount(path, at)
    except mounts.NoMountError as error:
        pytest.skip(str(error))
    try:
        yield
    finally:
        mounts.unmount(at)


def test_a_reader_of_a_mount(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """As long as it has the file open, by whichever descriptor. Right after the close the file can go."""
    with mounted(path.parent, tmp_path / "at"):
        for _ in range(9):
            (tmp_path / "at" / "f").read_bytes()
        with (tmp_path / "at" / "f").open("rb") as stream, os.fdopen(os.dup(stream.fileno()), "rb") as other:
            stream.close()
            refused(path, "")
            assert other.read() == content(RUNS, SIZE)
        assert command("rm", path).exit_code == 0 and not list(path.parent.iterdir())


@pytest.mark.parametrize("words", [["merge", "-o"], ["mount"]], ids=["merge", "mount"])
def test_who_comes_while_it_is_removed(words: list[str], path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """It is told so, and does not begin with half of a file."""
    with contextlib.ExitStack() as stack:
        if words == ["mount"]:
            stack.enter_context(mounted(path.parent, tmp_path / "at"))
        stream = stack.enter_context((path.parent / "f.subfiles" / f"{IDENT}.0").open("r+b"))
        fcntl.fcntl(stream, 37, struct.pack("@hhqqi4x", fcntl.F_WRLCK, 0, 2**62 + 1, 3, 0))
        if words == ["mount"]:
            with pytest.raises(OSError, match="Input/output error"):
                (tmp_path / "at" / "f").read_bytes()
        else:
            done = command("merge", path, "-o", tmp_path / "out")
            assert done.exit_code == 2 and "f: is just being removed or renamed, or made one file" in done.stderr
            assert [one.name for one in tmp_path.iterdir()] == ["files"]
        stream.close()
        if words == ["mount"]:
            assert (tmp_path / "at" / "f").read_bytes() == content(RUNS, SIZE)
