"""Calls for the recorder in C and, the same, as rows of a trace; its sources apart from the tracer."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import pathlib
import resource
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.pioneer.darshan.calls import Module
from mpiio_ext.pioneer.darshan.meanings import Kind
from mpiio_ext.pioneer.darshan.records import Calls, Layout, Records
from mpiio_ext.pioneer.darshan.timeline import Heat
from mpiio_ext.pioneer.table import SCHEMA
from support import cbuild

_GENERATED = ("mpiox_recording_calls.h", "mpiox_trace_operation_names.h", "mpiox_trace_system_files.h")
_SOURCES = (
    "mpiox_recording",
    "mpiox_recording_file",
    "mpiox_recording_names",
    "mpiox_recording_tally",
    "mpiox_recording_time",
    "mpiox_trace_clock",
    "mpiox_trace_file",
    "mpiox_trace_lock",
    "mpiox_trace_names",
    "mpiox_trace_operations",
    "mpiox_trace_place",
    "mpiox_trace_system",
)
_STDIO = ("fopen", "fdopen", "fread", "fwrite", "fgets", "fputs", "fseek", "fflush", "fclose")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call; times in ns since the recording began, `file` and `file2` by number from 1 on, 0: none."""

    operation: str
    start: int
    duration: int = 1000
    depth: int = 0
    file: int = 1
    offset: int = -1
    size: int = -1
    result: int = 0
    count: int = -1
    mode: int = -1
    file2: int = -1
    comm_size: int = -1
    hints: int = -1
    offset2: int = -1
    error: int = -1

    @property
    def layer(self) -> str:
        """Return the layer of the schema."""
        if self.operation.startswith("MPI_"):
            return "mpiio" if self.operation.startswith("MPI_File") else "mpi"
        return "stdio" if self.operation in _STDIO else "posix"

    def line(self, since: int) -> str:
        """Return the line for the program in C."""
        numbers = (
            self.start + since,
            self.duration,
            self.depth,
            self.file,
            self.offset,
            self.size,
            self.result,
            self.count,
            self.mode,
            self.file2,
            self.comm_size,
            self.hints,
            self.offset2,
            self.error,
        )
        return f"C {self.operation} {' '.join(map(str, numbers))}"

    def row(self, since: int, names: Sequence[str]) -> dict[str, Any]:
        """Return the row of a trace."""
        mode = "amode" if self.layer == "mpiio" else "mode"
        more: dict[str, Any] = {
            "count": self.count,
            mode: self.mode,
            "comm_size": self.comm_size,
            "hints": self.hints,
            "offset2": self.offset2,
        }
        more = {name: value for name, value in more.items() if value >= 0}
        if self.file2 > 0:
            more["file2"] = names[self.file2 - 1]
        return {
            "timestamp": self.start + since,
            "operation": self.operation,
            "duration": self.duration,
            "rank": 0,
            "file": names[self.file - 1] if self.file else None,
            "offset": self.offset if self.offset >= 0 else None,
            "size": self.size if self.size >= 0 else None,
            "extra": json.dumps(more) if more else None,
            "thread": 0,
            "layer": self.layer,
            "depth": self.depth,
            "result": self.result,
            "line": 1,
        }


@functools.cache
def _generated() -> str:
    spec = importlib.util.spec_from_file_location("_mpiox_build", cbuild.CSRC.parent / "build.py")
    assert spec is not None and spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    folder = cbuild.scratch() / f"generated.{os.getpid()}"
    folder.mkdir(exist_ok=True)
    for name, text in build.outputs(_GENERATED).items():
        (folder / name).write_text(text, encoding="utf-8")
    return str(folder)


def recorder() -> pathlib.Path:
    """Return the program that records lines of calls, under sanitizers."""
    trace = cbuild.CSRC / "tools" / "trace"
    sources = [str(trace / f"{name}.c") for name in _SOURCES]
    more = (f"-I{trace}", f"-I{_generated()}", *sources)
    return cbuild.program("trace/write_recording.c", "pioneer", more=more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the library tells of the call of MPI-IO that follows: it has waited, or exchanged messages.

    Without a duration it still does.
    """

    waiting: bool
    start: int
    duration: int

    def line(self, since: int) -> str:
        """Return the line for the program in C."""
        end = self.start + self.duration + since if self.duration else 0
        return f"PART {int(self.waiting)} {self.start + since} {end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What the program in C is told as it stands, with times since the recording began: ENTER, LEAVE, ABORT."""

    words: str
    at: int = 0

    def line(self, since: int) -> str:
        """Return the line for the program in C."""
        return self.words.format(at=self.at + since)


def record(
    folder: pathlib.Path,
    names: Sequence[str],
    calls: Sequence[Call | Told | Line],
    *,
    since: int = 1000,
    end: str = "END 1",
    begin: str = "",
    variables: dict[str, str] | None = None,
    most_bytes: int = -1,
) -> subprocess.CompletedProcess[str]:
    """Record calls into a folder; returns what became of the program. `most_bytes`: of a file, -1: any number."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    lines = [*(f"F {name}" for name in names), *([begin] if begin else []), *(call.line(since) for call in calls), end]
    return subprocess.run(
        [str(recorder()), str(folder)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | (variables or {}),
        preexec_fn=limit if most_bytes >= 0 else None,
    )


def counted(
    names: Sequence[str], calls: Sequence[Call], module: str, origin: int, since: int
) -> tuple[Records, Heat, Calls]:
    """Return what the package makes of the same calls as a trace; `origin`: start of the job."""
    found, heat = Module(Layout(module)), Heat()
    rows = pa.Table.from_pylist([call.row(since, names) for call in calls], SCHEMA).combine_chunks()
    (batch,) = rows.to_batches()
    done = found.add(batch, origin)
    heat.add(done)
    return found.records, heat, done.take(np.isin(done.kind, (Kind.READ, Kind.WRITE)))
