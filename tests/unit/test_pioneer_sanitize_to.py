"""Phase A into a file: one pass where nothing has to be corrected, else two, and always the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mpiio_ext.pioneer import traces
from mpiio_ext.pioneer.sanitize.sanitize import SANITIZED
from mpiio_ext.pioneer.table import SCHEMA, TraceInfo
from mpiio_ext.pioneer.traces import open_trace, read_sanitized, sanitize_to

PLAIN = '12 1795249976.{n} openat(AT_FDCWD</s>, "/s/abc{n}", O_RDWR, 0644) = 3</s/abc{n}> <0.000012>\n'
CUT = '12 1795249976.5 openat(AT_FDCWD</s>, "/s/abc"..., O_RDONLY) = -1 ENOENT (No such file) <0.000001>\n'


def plain(folder: Path) -> Path:
    path = folder / "t.strace"
    path.write_text("".join(PLAIN.format(n=n) for n in range(9)))
    return path


def cut(folder: Path) -> Path:
    path = folder / "t.strace"
    path.write_text(PLAIN.format(n=1) + CUT)
    return path


def clocks_apart(_: Path) -> list[pa.RecordBatch]:
    """Barriers of two ranks, whose clocks are 2.5 s apart, and a write of each between them."""
    rows = []
    for rank in (0, 1):
        for k in range(5):
            at = 1_700_000_000_000_000_000 + (k * 10 + rank * 2.5) * 1e9
            same = {"rank": rank, "thread": 0, "depth": 0, "line": 2 * k + 1, "duration": 1000}
            rows += [
                same | {"operation": "MPI_Barrier", "layer": "mpi", "timestamp": int(at), "extra": '{"comm":"world"}'},
                same
                | {
                    "operation": "write",
                    "layer": "posix",
                    "timestamp": int(at) + 5000,
                    "handle": 3,
                    "file": "/s/f",
                    "size": 8,
                    "result": 8,
                    "line": 2 * k + 2,
                },
            ]
    return pa.Table.from_pylist(rows, SCHEMA).to_batches(max_chunksize=3)


@pytest.mark.parametrize(("make", "passes"), [(plain, 1), (cut, 2), (clocks_apart, 2)])
def test_the_rows_are_those_of_two_passes(
    make: Callable[[Path], Any], passes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(tmp_path)
    opened: list[Path] = []

    def opening(sources: Sequence[Path], name: str | None = None) -> tuple[TraceInfo, Iterable[pa.RecordBatch]]:
        opened.extend(sources)
        synthetic = sources[0].name == "synthetic"
        return (TraceInfo(format="test", ranks=2), iter(made)) if synthetic else open_trace(sources, name)

    monkeypatch.setattr(traces, "open_trace", opening)
    source = made if isinstance(made, Path) else tmp_path / "synthetic"
    said: list[str] = []
    info, batches = read_sanitized([source], say=said.append)
    expected = pa.Table.from_batches(list(batches), SANITIZED)
    assert len(opened) == 2
    told: list[str] = []
    rows: list[int] = []
    written = sanitize_to(tmp_path / "out.parquet", [source], say=told.append, progress=rows.append)
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == expected.to_pylist()
    assert (len(opened) - 2, told, rows[-1]) == (passes, said, len(expected))
    assert written.clocks == info.clocks
    stored, batches = read_sanitized([tmp_path / "out.parquet"])
    assert pa.Table.from_batches(list(batches), SANITIZED).to_pylist() == expected.to_pylist()
    assert stored.clocks == info.clocks
    assert not list(tmp_path.glob("*.partial"))
