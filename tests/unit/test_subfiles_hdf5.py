"""Files of HDF5's subfiling driver, made here by its documented format: they are merged, shown and examined.

The bytes are those of a file of HDF5's, cut as the driver cuts them; its own tool puts them together by the same rule.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil

import pytest

from mpiio_ext.common import files
from support.made_subfiles import command

STRIPE, COUNT = 1000, 12


def store(folder: pathlib.Path, name: str, data: bytes, *, inode: int | None = None) -> pathlib.Path:
    """Write stub, configuration and subfiles; return the configuration."""
    stub = folder / name
    stub.write_bytes(data[:96])
    number = stub.stat().st_ino if inode is None else inode
    names = [f"{name}.subfile_{number}_{one + 1:02d}_of_{COUNT}" for one in range(COUNT)]
    for one, path in enumerate(names):
        rows = range(one * STRIPE, len(data), COUNT * STRIPE)
        (folder / path).write_bytes(b"".join(data[begin : begin + STRIPE] for begin in rows))
    config = folder / f"{name}.subfile_{number}.config"
    config.write_text(f"stripe_size={STRIPE}\naggregator_count=2\nsubfile_count={COUNT}\nhdf5_file={stub}\n"
                      f"subfile_dir={folder}\n" + "".join(f"{path}\n" for path in names), encoding="utf-8")  # fmt: skip
    return config


@pytest.fixture
def data(tmp_path: pathlib.Path) -> bytes:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "whole.h5", "w") as file:
        file["x"] = list(range(20_000))
    return (tmp_path / "whole.h5").read_bytes()


@pytest.mark.parametrize("by", ["stub", "config"])
def test_they_are_merged(by: str, data: bytes, tmp_path: pathlib.Path) -> None:
    import h5py

    config = store(tmp_path, "f.h5", data)
    given = config if by == "config" else tmp_path / "f.h5"
    done = command("merge", "--layout", "hdf5", given, "-o", tmp_path / "g.h5", "--verify")
    assert done.exit_code == 0 and (tmp_path / "g.h5").read_bytes() == data, done.output
    with h5py.File(tmp_path / "g.h5") as file:
        assert file["x"][-1] == 19_999
    found = json.loads(command("info", "--layout", "hdf5", given, "--json").stdout)
    assert (found["unit_bytes"], found["count"], found["size_bytes"]) == (STRIPE, COUNT, len(data))
    assert command("check", "--layout", "hdf5", given).exit_code == 0
    assert command("merge", "--layout", "hdf5", given, "--in-place").exit_code == 0
    assert (tmp_path / "f.h5").read_bytes() == data
    assert {one.name for one in tmp_path.iterdir()} == {"f.h5", "g.h5", "whole.h5"}


def test_what_was_moved_is_found(data: bytes, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stub has another inode, the folder another name; configurations may be in a folder of their own."""
    (tmp_path / "a").mkdir()
    config = store(tmp_path / "a", "f.h5", data, inode=77)
    (tmp_path / "a").rename(tmp_path / "b")
    assert command("merge", "--layout", "hdf5", tmp_path / "b" / "f.h5").exit_code == 0
    assert (tmp_path / "b" / "f.h5.merged").read_bytes() == data
    (tmp_path / "configs").mkdir()
    moved = tmp_path / "configs" / config.name
    (tmp_path / "b" / config.name).rename(moved)
    assert "has no configuration" in command("check", "--layout", "hdf5", tmp_path / "b" / "f.h5").stderr
    monkeypatch.setenv("H5FD_SUBFILING_CONFIG_FILE_PREFIX", str(tmp_path / "configs"))
    text = moved.read_text("utf-8")
    moved.write_text(text.replace(f"subfile_dir={tmp_path}/a", f"subfile_dir={tmp_path}/b"), "utf-8")
    assert command("check", "--layout", "hdf5", tmp_path / "b" / "f.h5").exit_code == 0
    (tmp_path / "configs" / config.name.replace("77", "78")).write_bytes(moved.read_bytes())
    assert "has 2 configurations" in command("check", "--layout", "hdf5", tmp_path / "b" / "f.h5").stderr


def test_a_copy_has_its_own_subfiles(data: bytes, tmp_path: pathlib.Path) -> None:
    """Its configuration still names the folder of the original."""
    (tmp_path / "a").mkdir()
    store(tmp_path / "a", "f.h5", data)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    first = next(path for path in (tmp_path / "b").iterdir() if path.name.endswith("_01_of_12"))
    first.write_bytes(b"changed" + first.read_bytes()[7:])
    before = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert command("merge", "--layout", "hdf5", "--in-place", tmp_path / "b" / "f.h5").exit_code == 0
    assert (tmp_path / "b" / "f.h5").read_bytes() == b"changed" + data[7:]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == before
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["f.h5"]


@pytest.mark.parametrize("has_stub", [False, True])
def test_subfiles_of_the_original_are_not_removed(has_stub: bool, data: bytes, tmp_path: pathlib.Path) -> None:
    """Of a copy that has none they can be merged to another name alone."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    config = store(tmp_path / "a", "f.h5", data, inode=77)
    for path in [config, *([tmp_path / "a" / "f.h5"] if has_stub else [])]:
        shutil.copy(path, tmp_path / "b")
    before = sorted(path.name for path in (tmp_path / "a").iterdir())
    given = tmp_path / "b" / ("f.h5" if has_stub else config.name)
    done = command("merge", "--layout", "hdf5", "--in-place", given)
    assert done.exit_code == 2 and "is not the file whose subfiles are in" in done.stderr
    assert command("merge", "--layout", "hdf5", given, "-o", tmp_path / "b" / "g.h5").exit_code == 0
    assert (tmp_path / "b" / "g.h5").read_bytes() == data
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == before


class Killed(BaseException):
    """Nothing of the product catches it."""


def killed_at(monkeypatch: pytest.MonkeyPatch, at: str, *words: object) -> None:
    """End a command at a step."""
    def step(name: str) -> None:
        if name == at:
            raise Killed

    with monkeypatch.context() as context, pytest.raises(Killed):
        context.setattr(files, "step", step)
        command(*words)


def test_a_merge_that_was_killed_goes_on_from_elsewhere(data: bytes, tmp_path: pathlib.Path,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths of the first command do not lead the second one to other files."""
    for name in ("x", "y"):
        (tmp_path / name / "c").mkdir(parents=True)
        store(tmp_path / name / "c", "f.h5", data, inode=77)
    before = sorted(path.name for path in (tmp_path / "y" / "c").iterdir())
    monkeypatch.chdir(tmp_path / "x")
    killed_at(monkeypatch, "merge: renamed", "merge", "--layout", "hdf5", "--in-place", "c/f.h5")
    monkeypatch.chdir(tmp_path / "y")
    done = command("merge", "--layout", "hdf5", "--in-place", "../x/c/f.h5")
    assert done.exit_code == 0 and "gone on with" in done.output
    assert sorted(path.name for path in (tmp_path / "y" / "c").iterdir()) == before
    assert [path.name for path in (tmp_path / "x" / "c").iterdir()] == ["f.h5"]


def test_the_original_of_a_copy_is_left_to_itself(data: bytes, tmp_path: pathlib.Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """Its merge was killed; that of a copy's configuration, which names it, is not about it."""
    (tmp_path / "a").mkdir()
    config = store(tmp_path / "a", "f.h5", data)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    killed_at(monkeypatch, "merge: renamed", "merge", "--layout", "hdf5", "--in-place", tmp_path / "a" / "f.h5")
    before = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert command("merge", "--layout", "hdf5", "--in-place", tmp_path / "b" / config.name).exit_code == 0
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["f.h5"]
    assert (tmp_path / "b" / "f.h5").read_bytes() == data
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == before


def test_a_merge_that_was_killed_before_its_last_step(data: bytes, tmp_path: pathlib.Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """The configuration that it is started again with is gone."""
    words = ("merge", "--layout", "hdf5", "--in-place", store(tmp_path, "f.h5", data))
    killed_at(monkeypatch, "merge: removed", *words)
    done = command(*words)
    assert done.exit_code == 0 and "gone on with" in done.output
    assert [path.name for path in tmp_path.iterdir() if "f.h5" in path.name] == ["f.h5"]


@pytest.mark.parametrize("where", ["configuration", "working directory"])
def test_a_relative_folder_of_subfiles(where: str, data: bytes, tmp_path: pathlib.Path,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    config, sub = store(tmp_path, "f.h5", data), tmp_path / "sub"
    (run := tmp_path / "run").mkdir()
    sub = (tmp_path if where == "configuration" else run) / "sub"
    sub.mkdir()
    for path in tmp_path.iterdir():
        if "_of_" in path.name:
            path.rename(sub / path.name)
    config.write_text(config.read_text("utf-8").replace(f"subfile_dir={tmp_path}", "subfile_dir=sub"), "utf-8")
    monkeypatch.chdir(run)
    assert command("merge", "--layout", "hdf5", config, "-o", "g.h5").exit_code == 0
    assert (run / "g.h5").read_bytes() == data


@pytest.mark.parametrize("at", ["", "merge: renamed", "subfile removed"])
def test_a_configuration_in_a_folder_of_its_own(at: str, data: bytes, tmp_path: pathlib.Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    """The merged file takes the place of the stub that it names, with its permissions, also after a kill."""
    for name in ("e", "configs"):
        (tmp_path / name).mkdir()
    config = store(tmp_path / "e", "f.h5", data)
    (tmp_path / "e" / "f.h5").chmod(0o640)
    config = config.rename(tmp_path / "configs" / config.name)
    words = ("merge", "--layout", "hdf5", "--in-place", config)
    if at:
        killed_at(monkeypatch, at, *words)
    assert command(*words).exit_code == 0
    assert (tmp_path / "e" / "f.h5").read_bytes() == data
    assert (tmp_path / "e" / "f.h5").stat().st_mode & 0o777 == 0o640
    assert [path.name for name in ("e", "configs") for path in (tmp_path / name).iterdir()] == ["f.h5"]


def test_in_its_own_folder_after_a_move(data: bytes, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    store(tmp_path / "a", "f.h5", data, inode=77)
    (tmp_path / "a").rename(tmp_path / "b")
    monkeypatch.chdir(tmp_path / "b")
    assert command("check", "--layout", "hdf5", "f.h5").exit_code == 0
    assert command("merge", "--layout", "hdf5", "--in-place", "f.h5").exit_code == 0
    assert (tmp_path / "b" / "f.h5").read_bytes() == data


@pytest.mark.parametrize(("old", "new", "words"), [
    ("stripe_size=1000\n", "", "without stripe_size"),
    ("stripe_size=1000", "stripe_size=0", "stripe_size is '0'"),
    ("stripe_size=1000", "stripe_size=-1", "stripe_size is '-1'"),
    ("subfile_count=12", "subfile_count=11", "counts 11 subfiles of stripes of 1000 B, and names 12"),
    ("_03_of_12", "/03_of_12", "names a subfile with a folder"),
    ("_03_of_12", "_04_of_12", "is a subfile of another file"),
])  # fmt: skip
def test_what_is_wrong_is_said(old: str, new: str, words: str, data: bytes, tmp_path: pathlib.Path) -> None:
    config = store(tmp_path, "f.h5", data)
    config.write_text(config.read_text("utf-8").replace(old, new), "utf-8")
    done = command("merge", "--layout", "hdf5", tmp_path / "f.h5")
    assert done.exit_code == 2 and words in done.stderr, done.output
    assert not (tmp_path / "f.h5.merged").exists()


def test_what_is_missing_is_said(data: bytes, tmp_path: pathlib.Path) -> None:
    config = store(tmp_path, "f.h5", data)
    first = next(path for path in sorted(tmp_path.iterdir()) if path.name.endswith("_05_of_12"))
    first.unlink()
    done = command("merge", "--layout", "hdf5", config)
    assert done.exit_code == 2 and f"{first}: is missing" in done.stderr
    config.unlink()
    os.mkfifo(config)
    assert "is no plain file" in command("merge", "--layout", "hdf5", config).stderr
