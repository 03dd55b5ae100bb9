"""Files of HDF5's subfiling driver, made here by its documented format: they are merged, shown and examined.

The bytes are those of a file of HDF5's, cut as the driver cuts them; its own tool puts them together by the same rule.
"""

from __future__ import annotations

import json
import os
import pathlib

import pytest

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
