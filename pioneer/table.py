"""The unified trace table: every reader produces it, every later phase starts from it.

Problem. Tracers differ in what they record and how. The phases after them must not know.

Content. One row for each call, in the order in which it was made by its rank. The seven dimensions of the paper come
first (He, Du, Narasimhamurthy, "PIONEER", section V-A: timestamp, operation type, file name, offset, request size,
execution time, extra), then what the sanitization needs. What a trace does not have is null, never 0.

Storage. Arrow in memory, Parquet in files. The schema's metadata (key ``pioneer``, JSON) has the version, the format
that was read, what its clock counts from, and what was lost.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mpiio_ext.common.units import count_text

__all__ = [
    "CLOCKS",
    "LAYERS",
    "SCHEMA",
    "VERSION",
    "Clock",
    "LeftOut",
    "Loss",
    "Problem",
    "Source",
    "TraceInfo",
    "encoded",
    "info_of",
    "with_info",
]

#: Raised whenever the meaning of a column changes.
VERSION = 1

#: Origin of `timestamp`: the Unix epoch, midnight of the first day (traces without dates), or any moment.
CLOCKS = ("unix", "midnight", "arbitrary")

#: The layer that offers the call. "extension": rounds, delegates and other work of mpiio_ext itself.
LAYERS = ("mpiio", "mpi", "stdio", "posix", "extension")

_TEXT = pa.dictionary(pa.int32(), pa.string())

SCHEMA = pa.schema(
    [
        # start of the call, ns
        pa.field("timestamp", pa.int64(), nullable=False),
        # name of the function: "open", "MPI_File_write_at_all"; without prefixes of tracers, and without "64"
        pa.field("operation", _TEXT, nullable=False),
        # name of the file as the program gave it, made absolute where the trace allows
        pa.field("file", _TEXT),
        # bytes from the start of the file; of MPI-IO: etypes of the view, as in the call
        pa.field("offset", pa.int64()),
        # requested bytes; of MPI-IO where the datatype's size is known
        pa.field("size", pa.int64()),
        # ns
        pa.field("duration", pa.int64()),
        # JSON object: flags, mode, whence, count, datatype, communicator, second name...
        pa.field("extra", pa.string()),
        # in MPI_COMM_WORLD
        pa.field("rank", pa.int32(), nullable=False),
        # of the process, 0 is the first that shows in its trace
        pa.field("thread", pa.int32(), nullable=False),
        # one of LAYERS
        pa.field("layer", _TEXT, nullable=False),
        # MPI-IO calls that this one was made inside of; 0: made by the application; null: the trace does not show it
        pa.field("depth", pa.int16()),
        # what it returned
        pa.field("result", pa.int64()),
        # file descriptor, FILE * or MPI_File of the call; of an open the new one
        pa.field("handle", pa.int64()),
        # line or record of the raw trace, from 1
        pa.field("line", pa.int64(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a raw trace that is no record.

    Attributes
    ----------
    line : line or record in the source, from 1.
    why : "truncated", "cannot be parsed: ...", ...
    text : the beginning of what stands there.
    """

    line: int
    why: str
    text: str = ""


@dataclass(slots=True, kw_only=True)
class Loss:
    """The part of one source that was not understood: everything dropped is counted here.

    Attributes
    ----------
    skipped : lines or records that are in no row and should be.
    truncated : the source ends in the middle of a record, or lacks its end.
    unread_bytes : bytes of the source's file that were not understood and left out, as far as the format shows.
    missing_bytes : bytes that the file should have, and has not; 0 if the format does not have it.
    problems : the first `MOST` of them.
    """

    MOST = 20

    skipped: int = 0
    truncated: bool = False
    unread_bytes: int = 0
    missing_bytes: int = 0
    problems: list[Problem] = field(default_factory=list)

    def add(self, line: int, why: str, text: str = "", *, count: int = 1) -> None:
        """Count `count` lines from `line` on; remember the first ones."""
        self.skipped += count
        if len(self.problems) < self.MOST:
            self.problems.append(Problem(line=line, why=why, text=text[:200]))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Operations of a program on files of the system (`sanitize.system_files`), which no other figure counts.

    Attributes
    ----------
    operations, files, ns : how many, on how many files, and their time.
    name : the file with the longest of them, as the tracer knows it; else that with most of them.
    """

    operations: int = 0
    files: int = 0
    ns: int = 0
    name: str = ""

    def __str__(self) -> str:
        """Return the part as the subject of a sentence; "": there is none."""
        such = f", such as {self.name}" if self.name else ""
        of = f"{count_text(self.files, 'file')} of the system{such}"
        return f"{count_text(self.operations, 'operation')} on {of}" if self.operations else ""


@dataclass(slots=True, kw_only=True)
class Source:
    """One file of a raw trace.

    Attributes
    ----------
    path : its name.
    rank, host : of the process it is about; rank -1: of several.
    lines : lines or records that were read.
    rows : that became rows.
    loss : what did not.
    left_out : what the tracer did not record.
    """

    path: str
    rank: int = -1
    host: str = ""
    lines: int = 0
    rows: int = 0
    loss: Loss = field(default_factory=Loss)
    left_out: LeftOut = field(default_factory=LeftOut)


@dataclass(slots=True, kw_only=True)
class Clock:
    """How the clock of a rank is related to that of the first one; see `mpiio_ext.pioneer.clocks`.

    Attributes
    ----------
    rank, host : whose clock it is.
    points : moments that it was estimated from; 0: nothing is known, and nothing is corrected.
    offset_ns : how far it is ahead at `origin_ns` of its own time.
    drift : how much faster it runs: seconds a second.
    spread_ns : robust standard deviation of the moments from the estimate.
    """

    rank: int
    host: str = ""
    points: int = 0
    origin_ns: int = 0
    offset_ns: int = 0
    drift: float = 0.0
    spread_ns: int = 0


@dataclass(slots=True, kw_only=True)
class TraceInfo:
    """The facts of a trace as a whole: the metadata of its table.

    Attributes
    ----------
    format : name of the reader.
    clock : one of CLOCKS.
    ranks : number of ranks of the program, as far as the trace shows; 0: unknown.
    sources : files that were read.
    lacks : what the format does not record, for people.
    clocks : estimates by which the times were corrected.
    selected : the user chose the files that are recorded, those of the system among them.
    """

    format: str
    clock: str = "unix"
    ranks: int = 0
    sources: list[Source] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)
    clocks: list[Clock] = field(default_factory=list)
    selected: bool = False
    version: int = VERSION

    @property
    def skipped(self) -> int:
        """Lines of all sources that are in no row and should be."""
        return sum(source.loss.skipped for source in self.sources)

    @property
    def left_out(self) -> str:
        """The calls that the tracer has not recorded, for people, of the process with most of them; "": none."""
        most = max((source.left_out for source in self.sources), key=lambda one: one.operations, default=LeftOut())
        return f"{most}: not recorded; `mpiio-ext trace --only GLOB` records them" if most.operations else ""

    def to_json(self) -> str:
        """Return it as one JSON object."""
        return json.dumps(asdict(self))


def with_info(schema: pa.Schema, info: TraceInfo) -> pa.Schema:
    """Return the schema with the metadata."""
    return schema.with_metadata({**(schema.metadata or {}), b"pioneer": info.to_json().encode()})


def _source_of(values: dict[str, Any]) -> Source:
    loss = values.pop("loss")
    problems = [Problem(**item) for item in loss.pop("problems")]
    left_out = LeftOut(**values.pop("left_out", {}))
    return Source(**values, loss=Loss(**loss, problems=problems), left_out=left_out)


def info_of(schema: pa.Schema) -> TraceInfo:
    """Return the metadata of a table that a reader has made.

    Raises
    ------
    ValueError
        The table has no metadata of a reader, or metadata of another version.
    """
    text = (schema.metadata or {}).get(b"pioneer")
    if text is None:
        raise ValueError("no trace table: the metadata 'pioneer' is missing")
    values = json.loads(text)
    if values.get("version") != VERSION:
        raise ValueError(f"a trace table of version {values.get('version')}; this release reads version {VERSION}")
    sources = [_source_of(item) for item in values.pop("sources")]
    clocks = [Clock(**item) for item in values.pop("clocks", [])]
    return TraceInfo(**values, sources=sources, clocks=clocks)


def encoded(column: pa.Array | pa.ChunkedArray) -> tuple[NDArray[np.int64], list[Any]]:
    """Return a column of texts as numbers, -1 for null, and the texts."""
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # without rows
        column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64), column.dictionary.to_pylist()
