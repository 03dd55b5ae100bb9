"""Files of PIONEER are there whole or not at all, and a disk that is full is an error that names the file."""

from __future__ import annotations

import errno
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mpiio_ext.pioneer.profile import characterize
from mpiio_ext.pioneer.profile.document import save
from support.pioneer_paths import path_of, row

PATH = path_of([row("pwrite", "f", "shared", at=at, size=at % 97) for at in range(20_000)])


@contextmanager
def no_room() -> Iterator[None]:
    """Let no file grow beyond 1 KiB, as a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("name", ["path.parquet", "path.json", "profile.json"])
def test_a_full_disk(tmp_path: Path, name: str) -> None:
    """What was there before stays, nothing else is left, and the error says which file."""
    target = tmp_path / name
    target.write_text("old")
    profile = characterize(PATH)
    with no_room(), pytest.raises(OSError, match="cannot be written") as caught:
        save(profile, target) if name.startswith("profile") else PATH.save(target)
    assert caught.value.filename == str(target)
    assert caught.value.errno in (errno.EFBIG, None)
    assert [child.name for child in tmp_path.iterdir()] == [name] and target.read_text() == "old"
    save(profile, target) if name.startswith("profile") else PATH.save(target)
    assert target.stat().st_size > 1024
