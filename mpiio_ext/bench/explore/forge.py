"""FORGE's JSON: patterns for its emulator of I/O forwarding, read as patterns to explore.

Problem.    Three forms are in the wild: one pattern an object, all values texts (2019); the same with numbers,
            `operations`, `direct_io` and `stone_wall` (the runs on MareNostrum 4); phases of patterns with `operation`
            and `repetitions`. `listeners` became `handlers`. People put several into a list.
Algorithm.  An object with `phases` is that form, any other one is a pattern; a list is those of its items. Equal
            patterns that differ only in `forwarders` are one, with all those numbers.
Guarantees. A file is understood or refused with its name, the place in it and what is wrong. A key that is not FORGE's
            is refused: a misspelt one would be a pattern that nobody asked for. What has no counterpart here is told in
            `notes`.
Source.     README and parser of the public repository jeanbez/forge; FORGE is the tool of Section 2 of the arbitration
            paper.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mpiio_ext.bench.explore.spec import Spec
from mpiio_ext.delegates.arbitration.pattern import Layout, Spatiality
from mpiio_ext.errors import ArgumentError

__all__ = ["MOST_THREADS", "Forge", "read"]

_LAYOUTS: dict[str, Layout] = {"shared": "shared", "individual": "file-per-process"}
_SPATIALITIES: dict[str, Spatiality] = {"contiguous": "contiguous", "strided": "strided"}
_COMMON = {"forwarders", "handlers", "listeners", "dispatchers"}
_PATTERN = {"path", "number_of_files", "spatiality", "total_size", "request_size", "validation", "operation",
            "operations", "direct_io", "stone_wall"}
#: I/O threads of a delegate at most (the hint mpiox_delegate_threads).
MOST_THREADS = 15
_MOST = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Forge:
    """What a file asks for.

    Attributes
    ----------
    specs : the patterns
    path : folder of the first pattern's `path`; None = no pattern says it
    threads : `dispatchers`: threads of a forwarder that issue requests; None = not said
    notes : what is not carried out as it says
    """

    specs: tuple[Spec, ...]
    path: Path | None
    threads: int | None
    notes: tuple[str, ...]


class _Reader:
    """Takes values out of one file and names the place of one that is wrong."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.specs: list[Spec] = []
        self.paths: list[Path] = []
        self.threads: dict[int, str] = {}
        self.notes: dict[str, None] = {}

    def wrong(self, place: str, message: str) -> ArgumentError:
        return ArgumentError(f"{self.file}: {place or 'the document'}: {message}")

    def number(self, place: str, given: Mapping[str, Any], key: str, *, default: int | None = None) -> int:
        value = given.get(key, default)
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
            value = int(value.strip())
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
            what = "is missing" if key not in given else f"is {value!r}"
            raise self.wrong(f"{place}/{key}", f"{what}; a whole number of 0 or more is expected, as text or number")
        return value

    def word(self, place: str, given: Mapping[str, Any], key: str, words: Mapping[str, Any]) -> Any:
        value = given.get(key)
        if not isinstance(value, str) or value.strip() not in words:
            what = "is missing" if key not in given else f"is {value!r}"
            raise self.wrong(f"{place}/{key}", f"{what}; {' or '.join(words)} is expected")
        return words[value.strip()]

    def known(self, place: str, given: Mapping[str, Any], keys: set[str]) -> None:
        for key in given:
            if key not in keys:
                raise self.wrong(f"{place}/{key}", f"is no key of FORGE: it has {', '.join(sorted(keys))}")

    # ---- forms ----

    def document(self, place: str, value: Any) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                self.document(f"{place}/{index}", item)
        elif not isinstance(value, Mapping):
            raise self.wrong(place, f"an object or a list of objects is expected, not {type(value).__name__}")
        elif "phases" in value:
            self.phases(place, value)
        else:
            self.known(place, value, _COMMON | _PATTERN)
            self.common(place, value)
            self.pattern(place, value, self.forwarders(place, value), None)

    def phases(self, place: str, value: Mapping[str, Any]) -> None:
        self.known(place, value, _COMMON | {"phases"})
        self.common(place, value)
        for index, phase in enumerate(self.sequence(f"{place}/phases", value["phases"])):
            at = f"{place}/phases/{index}"
            self.known(at, self.mapping(at, phase), {"repetitions", "patterns"})
            repetitions = self.number(at, phase, "repetitions", default=1)
            for number, pattern in enumerate(self.sequence(f"{at}/patterns", phase.get("patterns"))):
                where = f"{at}/patterns/{number}"
                self.known(where, self.mapping(where, pattern), _PATTERN)
                if pattern.get("operation") not in ("open", "close"):  # each measurement opens and closes its files
                    self.pattern(where, pattern, self.forwarders(place, value), max(repetitions, 1))

    def sequence(self, place: str, value: Any) -> Sequence[Any]:
        if not isinstance(value, list):
            raise self.wrong(place, "a list is expected")
        return value

    def mapping(self, place: str, value: Any) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise self.wrong(place, "an object is expected")
        return value

    def forwarders(self, place: str, value: Mapping[str, Any]) -> tuple[int, ...]:
        return (self.number(place, value, "forwarders"),) if "forwarders" in value else ()

    def common(self, place: str, value: Mapping[str, Any]) -> None:
        for key in ("handlers", "listeners"):
            if key in value:
                self.number(place, value, key)
                self.notes[f"{key}: ranks put their requests into a delegate's memory themselves; not used"] = None
        if "dispatchers" in value:
            self.threads.setdefault(self.number(place, value, "dispatchers"), place)

    def pattern(self, place: str, value: Mapping[str, Any], io_nodes: tuple[int, ...], repetitions: int | None) -> None:
        if isinstance(value.get("path"), str) and value["path"].strip():
            self.paths.append(Path(value["path"].strip()).parent)
        if "validation" in value and not self.number(place, value, "validation"):
            self.notes["validation 0: bytes are compared outside the time; --no-verify leaves that out"] = None
        for operation in self.operations(place, value):
            try:
                spec = Spec(
                    layout=self.word(place, value, "number_of_files", _LAYOUTS),
                    spatiality=self.word(place, value, "spatiality", _SPATIALITIES),
                    request_bytes=self.number(place, value, "request_size"),
                    total_bytes=self.number(place, value, "total_size"), operation=operation,
                    stonewall_s=float(self.number(place, value, "stone_wall", default=0)),
                    direct=self.number(place, value, "direct_io", default=0) > 0, io_nodes=io_nodes,
                    repetitions=repetitions)
            except ArgumentError as error:
                if str(error).startswith(str(self.file)):
                    raise
                raise self.wrong(place, str(error)) from error
            self.add(spec)

    def operations(self, place: str, value: Mapping[str, Any]) -> list[str]:
        """Return write, read or both; the first form did both, and says nothing of it."""
        key = "operation" if "operation" in value else "operations"
        if key not in value:
            return ["write", "read"]
        text = value[key]
        found = [name for name in ("write", "read") if isinstance(text, str) and name in text]
        if not found:
            raise self.wrong(f"{place}/{key}", f"is {text!r}; write, read or both are expected")
        return found

    def add(self, spec: Spec) -> None:
        for index, known in enumerate(self.specs):
            if replace(known, io_nodes=(), repetitions=None) == replace(spec, io_nodes=(), repetitions=None):
                counts = tuple(sorted({*known.io_nodes, *spec.io_nodes}))
                most = max((each for each in (known.repetitions, spec.repetitions) if each is not None), default=None)
                self.specs[index] = replace(known, io_nodes=counts, repetitions=most)
                return
        self.specs.append(spec)

    def result(self) -> Forge:
        if not self.specs:
            raise self.wrong("", "there is no pattern that writes or reads")
        if len(self.threads) > 1:
            (one, first), (two, second) = list(self.threads.items())[:2]
            raise self.wrong(f"{second}/dispatchers", f"is {two}, and {one} at {first or 'the top'}: the delegates of "
                             "a run are started once; explore them in runs of their own")
        threads = next(iter(self.threads), None) or None
        if threads is not None and threads > MOST_THREADS:
            self.notes[f"dispatchers {threads}: a delegate has {MOST_THREADS} I/O threads at most"] = None
            threads = MOST_THREADS
        return Forge(specs=tuple(self.specs), path=self.paths[0] if self.paths else None, threads=threads,
                     notes=tuple(self.notes))


def read(file: Path) -> Forge:
    """Return the patterns of a file.

    Raises
    ------
    ArgumentError
        It cannot be read or understood; with file and place.
    """
    try:
        document = json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ArgumentError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{file}: is no text in UTF-8 (byte {error.start})") from error
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{file}: is no JSON: {error}") from error
    reader = _Reader(file)
    reader.document("", document)
    return reader.result()
