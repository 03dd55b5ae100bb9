"""The operations of a workload path as lines of text, see `show`.

Problem.   A path has millions of operations. An interpreter that looks at each value of each row needs minutes.
Algorithm. Chunks of rows, column by column in NumPy. What few different values have (who makes it, the session, the
           name, the file, the arguments of the call) is put into words once for each value. A row is one formatted
           string. What is folded is found by `show_folding`.
Guarantee. Lines come one chunk after the other, in memory that does not grow with their number; a fold that goes
           on beyond its chunk is looked at again with a larger one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mpiio_ext.pioneer.engine.flags import TRACED
from mpiio_ext.pioneer.show_folding import Folds, fold, unfolded
from mpiio_ext.pioneer.table import encoded

if TYPE_CHECKING:
    from mpiio_ext.pioneer.path import WorkloadPath
    from mpiio_ext.pioneer.profile import Sessions

NULL = "-"
_AMODES = ("CREATE", "RDONLY", "WRONLY", "RDWR", "DELETE_ON_CLOSE", "UNIQUE_OPEN", "EXCL", "APPEND", "SEQUENTIAL")
_OPEN_FLAGS = (
    "O_CREAT",
    "O_EXCL",
    "O_TRUNC",
    "O_APPEND",
    "O_NONBLOCK",
    "O_SYNC",
    "O_DSYNC",
    "O_DIRECT",
    "O_DIRECTORY",
    "O_CLOEXEC",
    "O_NOFOLLOW",
)
#: Calls whose flags are those of open(2), as our tracer has them of streams, too; flags of others.
_OPENS = frozenset({"open", "openat", "creat", "fopen", "freopen", "fdopen"})
_FLAGS = {
    "mmap": ((0x01, "MAP_SHARED"), (0x02, "MAP_PRIVATE"), (0x10, "MAP_FIXED"), (0x8000, "MAP_POPULATE")),
    "msync": ((0x1, "MS_ASYNC"), (0x2, "MS_INVALIDATE"), (0x4, "MS_SYNC")),
    "unlinkat": ((0x200, "AT_REMOVEDIR"),),
    "unlink": ((0x200, "AT_REMOVEDIR"),),
}
_PROTECTIONS = ((0x1, "PROT_READ"), (0x2, "PROT_WRITE"), (0x4, "PROT_EXEC"))
#: Operations that are put into lines together. The first lines should come at once.
_CHUNK = 1 << 14
_NONE = np.iinfo(np.int64).min
_NOWHERE = f"{NULL:<4} {'':<9}"  # an operation outside of sessions
#: Ranges that are listed, and numbers an even distance apart that are one.
_MOST_RANGES, _LEAST_EVEN = 8, 3
#: Characters of an argument, a file type for one.
_MOST_TEXT = 100
#: Texts of arguments that are remembered.
_MOST_TEXTS = 1 << 16

HEAD = (
    f"#  {'id':<9} {'who':<15} {'sess':<4} {'place':<9} {'operation':<24} {'offset[B]':>11} {'size[B]':>9} "
    f"{'slack[us]':>11} {'time[us]':>9}  file  annotations"
)


def printable(text: str) -> str:
    """Return text without characters that would break its line."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


# ---- annotations -----------------------------------------------------------------------------------------------------


def _bits(value: int, names: Sequence[tuple[int, str]]) -> str:
    """Return the names of bits, and the rest as a number."""
    found = []
    for bit, name in names:
        if bit and value & bit == bit:
            found.append(name)
            value &= ~bit
    return "|".join(found + ([f"{value:#x}"] if value or not found else []))


def _open_flags(value: int) -> str:
    access = {os.O_RDONLY: "O_RDONLY", os.O_WRONLY: "O_WRONLY", os.O_RDWR: "O_RDWR"}.get(value & os.O_ACCMODE)
    known = [(TRACED.get(name) or int(getattr(os, name, 0)), name) for name in _OPEN_FLAGS]
    rest = value & ~os.O_ACCMODE
    return "|".join([access or "O_ACCMODE", *([_bits(rest, known)] if rest else [])])


def ranges(numbers: Sequence[int]) -> str:
    """Return numbers in few words: 1-3,7; 1-511:2, every second one; of many irregular ones the first, and how many."""
    rest, parts = sorted(numbers), []
    while rest:
        step = rest[1] - rest[0] if len(rest) > 1 else 1
        count = next((at for at in range(1, len(rest)) if rest[at] - rest[at - 1] != step), len(rest))
        if step > 1 and count < _LEAST_EVEN:
            count = 1
        parts.append(str(rest[0]) if count == 1 else f"{rest[0]}-{rest[count - 1]}{f':{step}' if step > 1 else ''}")
        rest = rest[count:]
    if len(parts) > _MOST_RANGES:
        return f"{','.join(parts[: _MOST_RANGES - 1])},… ({len(numbers)} in all)"
    return ",".join(parts) or NULL


def _merged(notes: str) -> str:
    """Return the common part of several groups as one word: g1-3:+1000/rank."""
    groups: dict[str, list[int]] = {}
    for word in notes.split():
        group, _, text = word.partition(":")
        groups.setdefault(text, []).append(int(group[1:]))
    return "".join(f"g{ranges(several).replace(' ', '')}:{text} " for text, several in groups.items())


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 20]}…({len(text):,}_characters)"


def _arguments(operation: str, extra: str | None) -> list[str]:
    """Return the arguments of a call as words; a text that is no JSON object stays as it is."""
    try:
        found = json.loads(extra) if extra else {}
    except json.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        return [f"extra={extra}"]
    words = []
    for name, value in found.items():
        if name == "flags" and isinstance(value, int) and operation in _OPENS:
            text = _open_flags(value)
        elif name == "flags" and isinstance(value, int) and operation in _FLAGS:
            text = _bits(value, _FLAGS[operation])
        elif name == "protection" and isinstance(value, int):
            text = _bits(value, _PROTECTIONS) if value else "PROT_NONE"
        elif name == "amode" and isinstance(value, int):
            text = _bits(value, [(1 << at, item) for at, item in enumerate(_AMODES)])
        elif name == "mode" and isinstance(value, int):
            text = f"{value:#o}"
        else:
            text = value if isinstance(value, str) and " " not in value else json.dumps(value, separators=(",", ":"))
        words.append(f"{name}={_shortened(text)}")
    return words


# ---- operations ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Chunk:
    """Some operations, ready to be printed; of texts that stand in columns also the blanks."""

    ids: list[int]
    makers: NDArray[np.object_]
    sessions: NDArray[np.int64]
    places: NDArray[np.int64]
    names: NDArray[np.int64]
    files: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    slack: NDArray[np.int64]
    duration: NDArray[np.int64]
    notes: NDArray[np.object_]

    def keys(self) -> NDArray[np.int64]:
        """Return a number for each operation that only those have which differ in their offsets alone."""
        numbers: dict[tuple[object, ...], int] = {}
        known = self.offsets != _NONE
        columns = (self.sessions, self.names, self.files, self.sizes, known, self.makers, self.notes)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return np.array([numbers.setdefault(row, len(numbers)) for row in rows], np.int64)

    def folds(self, *, last: bool) -> Folds:
        """Return the folded operations; `last`: no operations follow."""
        return fold(self.keys(), self.offsets, self.offsets != _NONE, last=last)


def _or_zero(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(values == _NONE, 0, values)


class OperationLines:
    """Lines of a path's operations.

    Parameters
    ----------
    path, sessions : of which they are.
    who : who makes an operation, by the bits of its groups.
    files : what is shown of each file, by its number in `encoded`.
    group : whose values are shown; None: those of the first group that makes an operation, and how others differ.
    """

    def __init__(
        self, path: WorkloadPath, sessions: Sessions, who: dict[int, str], files: Sequence[str], group: int | None
    ) -> None:
        self._path, self._sessions, self._who, self._group = path, sessions, who, group
        self._groups = path.table["groups"].to_numpy()
        self._names, words = encoded(path.table["operation"])
        self._name_words = words
        self._name_texts = [f"{word:<24}" for word in words]
        self._files = encoded(path.table["file"])[0]
        self._file_texts = [*files, NULL]
        owners, owner_words = encoded(path.table["owner"])
        self._shared = np.array([*(word == "shared" for word in owner_words), False], bool)[owners]
        self._lengths = [len(session.members) for session in sessions.sessions]
        self._places = np.zeros(self._groups.size, np.int64)
        for session in sessions.sessions:
            self._places[session.members] = np.arange(1, 1 + len(session.members))
        self._arguments: dict[tuple[int, str | None], str] = {}

    # ---- columns

    def _chunk(self, rows: NDArray[np.int64]) -> _Chunk:
        contiguous = int(rows[-1]) - int(rows[0]) + 1 == rows.size
        table = self._path.table
        part = table.slice(int(rows[0]), rows.size) if contiguous else table.take(pa.array(rows))
        masks, which = np.unique(self._groups[rows], return_inverse=True)
        mine = [self._groups_in(int(mask)) for mask in masks]
        makers = np.array([f"{self._who[int(mask)]:<15}" for mask in masks], object)
        values = {
            name: self._own(part, name, [groups[0] for groups in mine], which)
            for name in ("offset", "size", "slack", "duration")
        }
        notes = self._differences(part, rows, mine, which) + self._words(part, rows)
        return _Chunk(
            part["id"].to_pylist(),
            makers[which],
            self._sessions.of[rows],
            self._places[rows],
            self._names[rows],
            self._files[rows],
            values["offset"],
            values["size"],
            _or_zero(values["slack"]),
            _or_zero(values["duration"]),
            notes,
        )

    def _groups_in(self, mask: int) -> list[int]:
        """Return the groups that make an operation, first the one whose values are shown."""
        if self._group is not None:
            return [self._group]
        return [group for group in range(self._path.group_count) if mask >> group & 1] or [0]

    @staticmethod
    def _values(part: pa.Table, name: str, group: int) -> NDArray[np.int64]:
        return np.asarray(part[f"{name}_{group}"].fill_null(_NONE).to_numpy(), np.int64)

    def _own(self, part: pa.Table, name: str, first: list[int], which: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the values that are shown."""
        found = np.full(part.num_rows, _NONE, np.int64)
        for group in set(first):
            chosen = np.isin(which, [place for place, own in enumerate(first) if own == group])
            found[chosen] = self._values(part, name, group)[chosen]
        return found

    # ---- annotations

    def _words(self, part: pa.Table, rows: NDArray[np.int64]) -> NDArray[np.object_]:
        """Return the arguments of the calls."""
        numbers, texts = encoded(part["extra"])
        pairs, inverse = np.unique(self._names[rows] * (len(texts) + 1) + numbers, return_inverse=True)
        # -1 of null is in the place of the last text of the name before.
        words = [self._text_of(*divmod(int(pair) + 1, len(texts) + 1), texts) for pair in pairs]
        found: NDArray[np.object_] = np.array([*words, ""], object)[inverse]
        return found

    def _text_of(self, name: int, number: int, texts: list[str]) -> str:
        extra = texts[number - 1] if number else None
        found = self._arguments.get((name, extra))
        if found is None:
            if len(self._arguments) >= _MOST_TEXTS:
                self._arguments.clear()
            found = " ".join(printable(word) for word in _arguments(self._name_words[name], extra))
            self._arguments[name, extra] = found
        return found

    def _differences(
        self, part: pa.Table, rows: NDArray[np.int64], mine: list[list[int]], which: NDArray[np.int64]
    ) -> NDArray[np.object_]:
        """Return the values in which other groups differ."""
        found: NDArray[np.object_] = np.full(rows.size, "", object)
        shared = self._shared[rows]
        for place, (first, *others) in enumerate(mine):
            of_mask = which == place
            for group in others:
                for name in ("offset", "size"):
                    one, other = self._values(part, name, first), self._values(part, name, group)
                    differ = np.flatnonzero(of_mask & (one != other) & (other != _NONE))
                    if differ.size:
                        moves = shared[differ] & (one[differ] != _NONE) & (name == "offset")
                        found[differ] += self._changes(group, first, name, one[differ], other[differ], moves)
        if self._path.group_count > 2:
            each, inverse = np.unique(found.astype(str), return_inverse=True)
            found = np.array([_merged(notes) for notes in each.tolist()], object)[inverse.reshape(-1)]
        return found

    def _changes(
        self,
        group: int,
        first: int,
        name: str,
        one: NDArray[np.int64],
        other: NDArray[np.int64],
        moves: NDArray[np.bool_],
    ) -> NDArray[np.object_]:
        """Return how values differ: by so much a rank, where they may, else the value."""
        representatives = self._path.info.representatives
        apart = max(1, representatives[group] - representatives[first])
        tag = "" if self._path.group_count == 2 else f"g{group}:"
        steps = other - one
        evenly = moves & (steps % apart == 0)
        each, inverse = np.unique(np.where(evenly, steps, other), return_inverse=True)
        by_rank = np.array([f"{tag}{step // apart:+d}/rank " for step in each.tolist()], object)[inverse]
        by_value = np.array([f"g{group}:{name}={value} " for value in each.tolist()], object)[inverse]
        found: NDArray[np.object_] = np.where(evenly, by_rank, by_value)
        return found

    # ---- lines

    def _lines(self, chunk: _Chunk, folds: Folds) -> Iterator[str]:
        """Yield the lines of folds: one for each operation of a turn."""
        if not folds.end:
            return
        begins, periods, turns, order = folds.lines()
        slack, took = (
            (np.add.reduceat(values[order], np.cumsum(turns) - turns) / 1000 / turns).tolist()
            for values in (chunk.slack, chunk.duration)
        )
        columns = zip(
            begins.tolist(),
            periods.tolist(),
            turns.tolist(),
            chunk.makers[begins],
            chunk.sessions[begins].tolist(),
            chunk.names[begins].tolist(),
            chunk.files[begins].tolist(),
            chunk.offsets[begins].tolist(),
            chunk.sizes[begins].tolist(),
            slack,
            took,
            chunk.notes[begins],
            strict=True,
        )
        names, files, ids, places = self._name_texts, self._file_texts, chunk.ids, chunk.places.tolist()
        for at, period, times, maker, session, name, file, offset, size, pause, time, notes in columns:
            number, text, place = str(ids[at]), notes, str(places[at])
            if times > 1:
                end = at + (times - 1) * period
                number, place = f"{number}..{ids[end]}", f"{place}-{places[end]}"
                step = f" step={int(chunk.offsets[at + period]) - offset:+d}" if offset != _NONE else ""
                text = f"times={times}{f' every={period}' if period > 1 else ''}{step} {notes}"
            stands = _NOWHERE if session < 0 else f"s{session:<3} {f'{place}/{self._lengths[session]}':<9}"
            yield (
                f"op {number:<9} {maker} {stands} {names[name]} {NULL if offset == _NONE else offset:>11} "
                f"{NULL if size == _NONE else size:>9} {pause:>11.1f} {time:>9.1f}  {files[file]}  "
                f"{text}"
            ).rstrip()

    def lines(self, rows: NDArray[np.int64], *, fold: bool) -> Iterator[str]:
        """Yield the lines of these rows."""
        begin, length = 0, _CHUNK
        while begin < rows.size:
            part = rows[begin : begin + length]
            chunk = self._chunk(part)
            folds = chunk.folds(last=begin + part.size == rows.size) if fold else unfolded(part.size)
            yield from self._lines(chunk, folds)
            begin += folds.end
            # The folding at the next row depends on the rows behind this chunk: more rows are read.
            length = _CHUNK if folds.end else 2 * length
