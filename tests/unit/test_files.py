"""Files that are there whole or not at all: full disks, links, leftovers, permissions; and one place that does it."""

from __future__ import annotations

import errno
import os
import pathlib
import re

import pytest

from mpiio_ext.common import files
from mpiio_ext.common.locks import alone
from mpiio_ext.errors import FileSystemError
from support.cbuild import ROOT


@pytest.fixture()
def there(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "there"
    path.write_text("old")
    return path


def test_a_file_is_replaced_and_has_the_permissions_of_any_other(there: pathlib.Path, tmp_path: pathlib.Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    assert files.write_whole(there, "neu: ä") == 7
    assert there.read_text(encoding="utf-8") == "neu: ä"
    assert there.stat().st_mode == plain.stat().st_mode
    files.write_whole(there, b"\x00\xff", mode=0o604)
    assert there.read_bytes() == b"\x00\xff" and there.stat().st_mode & 0o777 == 0o604
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plain", "there"]


@pytest.mark.parametrize("follow", [True, False])
def test_links(there: pathlib.Path, tmp_path: pathlib.Path, follow: bool) -> None:
    link = tmp_path / "link"
    link.symlink_to(there)
    files.write_whole(link, "new", follow=follow)
    assert link.is_symlink() == follow
    assert link.read_text() == "new" and there.read_text() == ("new" if follow else "old")


@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
def test_what_was_there_stays_when_anything_fails(
    there: pathlib.Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if call == "write":
        monkeypatch.setattr(pathlib.Path, "write_bytes", full)
    elif call == "rename":
        monkeypatch.setattr(pathlib.Path, "replace", full)
    else:
        monkeypatch.setattr(os, call, full)
    with pytest.raises(FileSystemError) as caught:
        files.write_whole(there, "new")
    monkeypatch.undo()
    assert str(caught.value) == f"{there}: cannot be written: No space left on device"
    assert caught.value.errno == errno.ENOSPC
    assert there.read_text() == "old" and os.listdir(there.parent) == ["there"]


def test_any_error_of_the_writer_leaves_nothing(there: pathlib.Path) -> None:
    with pytest.raises(ZeroDivisionError), files.replacing(there) as part:
        part.write_text("half")
        raise ZeroDivisionError
    assert there.read_text() == "old" and os.listdir(there.parent) == ["there"]


def test_names_cannot_be_guessed_and_nothing_is_written_through_a_link(
    there: pathlib.Path, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    seen = []
    for _ in range(2):
        with files.replacing(there) as part:
            seen.append(part.name)
            part.write_text("new")
    assert len(set(seen)) == 2 and all(name.endswith(files.TEMPORARY) for name in seen)
    monkeypatch.setattr(os, "urandom", bytes)  # somebody has guessed it: zeros
    (tmp_path / f".there.{'00' * 8}{files.TEMPORARY}").symlink_to(tmp_path / "victim")
    with pytest.raises(FileSystemError, match="File exists"):
        files.write_whole(there, "newer")
    assert not (tmp_path / "victim").exists() and there.read_text() == "new"


def test_long_names(tmp_path: pathlib.Path) -> None:
    path = tmp_path / ("ä" * 127)
    files.write_whole(path, "x")
    assert path.read_text() == "x"


def test_targets_that_are_refused(there: pathlib.Path, tmp_path: pathlib.Path) -> None:
    files.check_target(there)
    files.check_target(tmp_path / "new", [there])
    for path, inputs, words in (
        (tmp_path, [], "is a folder"),
        (there, [there], "one of the inputs"),
        (pathlib.Path("/dev/null"), [], "regular"),
        (tmp_path / "no" / "new", [], "there is no folder"),
    ):
        with pytest.raises(FileSystemError, match=words):
            files.check_target(path, inputs)


def test_only_plain_files_are_read(there: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert files.read_plain(there, 3) == b"old"
    assert files.read_plain(there, 2) is None and files.read_plain(tmp_path, 100) is None
    (tmp_path / "link").symlink_to(there)
    os.mkfifo(tmp_path / "pipe")
    assert files.read_plain(tmp_path / "link", 100) is None and files.read_plain(tmp_path / "pipe", 100) is None
    with pytest.raises(FileNotFoundError):
        files.read_plain(tmp_path / "none", 100)


def test_one_place_replaces_files() -> None:
    """No other module of the product renames a file over another one."""
    renames = re.compile(r"os\.(?:replace|rename)\(|\b(?:part|partial|temporary|draft|beside)\.(?:replace|rename)\(")
    found = [
        str(path.relative_to(ROOT))
        for folder in ("mpiio_ext", "analytics", "pioneer", "partitioning", "delegates")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if renames.search(path.read_text(encoding="utf-8"))
    ]
    assert found == ["mpiio_ext/common/files.py"]


def test_a_lock_is_no_link_of_somebody_else(tmp_path: pathlib.Path) -> None:
    """The lock's name can be guessed: a link there must not make a file elsewhere."""
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / ".table.json.lock").symlink_to(elsewhere)
    with pytest.raises(FileSystemError) as caught, alone(tmp_path / "table.json"):
        pass
    assert caught.value.errno == errno.ELOOP and not elsewhere.exists()
    (tmp_path / ".table.json.lock").unlink()
    with alone(tmp_path / "table.json"):
        assert (tmp_path / ".table.json.lock").exists()
    assert not list(tmp_path.glob(".*"))
