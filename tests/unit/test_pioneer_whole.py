"""Files of PIONEER are there whole or not at all, and a disk that is full is an error that names the file."""

from __future__ import annotations

import errno
import re
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from mpiio_ext.cli import main
from mpiio_ext.pioneer.engine.room import MARK, claim
from mpiio_ext.pioneer.engine.run import _lengthen
from mpiio_ext.pioneer.profile import characterize
from mpiio_ext.pioneer.profile.document import save
from mpiio_ext.pioneer.sanitize.sanitize import SANITIZED
from mpiio_ext.pioneer.table import Source, TraceInfo
from mpiio_ext.pioneer.traces import save_sanitized
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


def rows_of_a_trace(broken: OSError | None = None) -> Iterator[pa.RecordBatch]:
    """Yield sanitized rows, more than there is room for; then an error of the trace, if there is to be one."""
    numbers = np.random.default_rng(1).integers(0, 1 << 60, 4000)
    for part in np.split(numbers, 4):
        rows = [
            {"timestamp": int(number), "operation": "pwrite", "rank": 0, "thread": 0, "layer": "posix", "line": 1}
            for number in part.tolist()
        ]
        yield from pa.Table.from_pylist(rows, SANITIZED).to_batches()
    if broken is not None:
        raise broken


def test_a_full_disk_under_a_sanitized_table(tmp_path: Path) -> None:
    """What was there before stays; the error names the file that cannot be written, not the trace."""
    target = tmp_path / "sanitized.parquet"
    target.write_text("old")
    info = TraceInfo(format="test", ranks=1, sources=[Source(path="x")])
    with no_room(), pytest.raises(OSError, match="cannot be written") as caught:
        save_sanitized(info, rows_of_a_trace(), target)
    assert caught.value.filename == str(target)
    assert [child.name for child in tmp_path.iterdir()] == [target.name] and target.read_text() == "old"
    assert save_sanitized(info, rows_of_a_trace(), target) == 4000


def test_a_trace_that_cannot_be_read_is_not_a_full_disk(tmp_path: Path) -> None:
    info = TraceInfo(format="test", ranks=1, sources=[Source(path="x")])
    with pytest.raises(OSError, match="gone") as caught:
        save_sanitized(info, rows_of_a_trace(OSError(errno.EIO, "gone", "trace.txt")), tmp_path / "sanitized.parquet")
    assert caught.value.filename == "trace.txt"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_whose_mark_cannot_be_written() -> None:
    """A folder of the kernel takes no files, whoever asks: the error names the mark, and nothing else was done."""
    with pytest.raises(OSError, match=MARK):
        claim(Path("/proc/self"), existing=True)


def test_a_trace_whose_mark_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank of a launcher that names its job marks the folder: an error that says what to do, no traceback."""
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("PMIX_NAMESPACE", "job.1")
    done = CliRunner().invoke(main, ["trace", "-o", "/proc/self", "--", "true"])
    assert done.exit_code == 2
    assert isinstance(done.exception, SystemExit)
    assert re.search(r"/proc/self/\.run.* cannot be\s+written", done.stderr.replace("│", "")), done.stderr
    assert "every node can" in done.stderr


def test_input_files_that_there_is_no_room_for(tmp_path: Path) -> None:
    with no_room(), pytest.raises(OSError, match="cannot be made 5,000 bytes long") as caught:
        _lengthen(str(tmp_path / "in.dat"), 0, 5000)
    assert caught.value.filename == str(tmp_path / "in.dat")
    _lengthen(str(tmp_path / "in.dat"), 1000, 5000)
    assert (tmp_path / "in.dat").read_bytes() == bytes(5000)
