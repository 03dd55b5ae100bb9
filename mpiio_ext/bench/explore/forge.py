"""FORGE's JSON: patterns for its emulator of I/O forwarding, read as patterns to explore.

Problem.    Three forms are in the wild: one pattern an object, all values texts (2019); the same with numbers,
            `operations`, `direct_io` and `stone_wall` (the runs on MareNostrum 4); phases of patterns with `operation`
            and `repetitions`. `listeners` became `handlers`. People put several into a list.
Algorithm.  An object with `phases` is that form, any other one is a pattern; a list is those of its items. Equal
            patterns that differ only in `forwarders` are one, with all those numbers.
Guarantees. A file is understood or refused with its name, each place in it and what is wrong there. A key that is not
            FORGE's is refused: a misspelt one would be an unintended pattern. Fields without a counterpart here are in
            `notes`.
Source.     README and parser of the public repository jeanbez/forge; FORGE is the tool of Section 2 of the arbitration
            paper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, with_config
from typing_extensions import NotRequired, TypedDict

from mpiio_ext.bench.explore.spec import Spec
from mpiio_ext.common import documents
from mpiio_ext.common.documents import CLOSED, DocumentError, made_of, pointer, shown
from mpiio_ext.delegates.arbitration.pattern import Layout, Spatiality
from mpiio_ext.errors import ArgumentError

_LAYOUTS: dict[str, Layout] = {"shared": "shared", "individual": "file-per-process"}
#: I/O threads of a delegate at most (the hint mpiox_delegate_threads).
MOST_THREADS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Forge:
    """The requests of a file.

    Attributes
    ----------
    specs : the patterns
    path : folder of the first pattern's `path`; None = no pattern says it
    threads : `dispatchers`: threads of a forwarder that issue requests; None = unknown
    notes : what is not carried out as it says
    """

    specs: tuple[Spec, ...]
    path: Path | None
    threads: int | None
    notes: tuple[str, ...]


def _number(value: object) -> object:
    text = value.strip() if isinstance(value, str) else ""
    return int(text) if text.isascii() and text.isdigit() else value


def _operations(text: str) -> tuple[str, ...]:
    found = tuple(name for name in ("write", "read") if name in text)
    if not found:
        raise ValueError(f"{text!r} is not write, read or both")
    return found


_Number = Annotated[int, BeforeValidator(_number), Field(ge=0, lt=2**62)]
_Stripped = BeforeValidator(lambda value: value.strip() if isinstance(value, str) else value)
_Operations = Annotated[tuple[str, ...], made_of(str, _operations)]


class _Both(TypedDict, total=False):
    forwarders: _Number
    handlers: _Number
    listeners: _Number
    dispatchers: _Number


@with_config(CLOSED)
class _Pattern(TypedDict):
    number_of_files: Annotated[Literal["shared", "individual"], _Stripped]
    spatiality: Annotated[Spatiality, _Stripped]
    total_size: _Number
    request_size: _Number
    operation: NotRequired[_Operations]
    operations: NotRequired[_Operations]
    path: NotRequired[str]
    validation: NotRequired[_Number]
    direct_io: NotRequired[_Number]
    stone_wall: NotRequired[_Number]


@with_config(CLOSED)
class _Single(_Pattern, _Both):
    pass


def _moves(step: object) -> object:
    return None if isinstance(step, dict) and step.get("operation") in ("open", "close") else step


@with_config(CLOSED)
class _Phase(TypedDict):
    repetitions: NotRequired[_Number]
    #: None: files are opened or closed, as each measurement does.
    patterns: list[Annotated[_Pattern | None, BeforeValidator(_moves)]]


@with_config(CLOSED)
class _Phases(_Both):
    phases: list[_Phase]


class _Patterns:
    """The requests of the objects of a document."""

    def __init__(self) -> None:
        self.specs: list[Spec] = []
        self.paths: list[Path] = []
        self.threads: dict[int, str] = {}
        self.notes: dict[str, None] = {}

    def take(self, place: str, value: object) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                self.take(place + pointer(index), item)
        elif not isinstance(value, dict):
            raise DocumentError([(place, f"an object or a list of objects is expected, not {shown(value)}")])
        else:
            try:
                self.several(place, value)
            except DocumentError as error:
                raise error.under(place) from error

    def several(self, place: str, value: object) -> None:
        if isinstance(value, dict) and "phases" in value:
            phases = documents.parse(_Phases, value)
            self.common(place, phases)
            for index, phase in enumerate(phases["phases"]):
                for number, step in enumerate(phase["patterns"]):
                    if step is not None:
                        self.pattern(
                            pointer("phases", index, "patterns", number),
                            step,
                            phases,
                            max(phase.get("repetitions", 1), 1),
                        )
        else:
            single = documents.parse(_Single, value)
            self.common(place, single)
            self.pattern("", single, single, None)

    def common(self, place: str, found: _Both) -> None:
        for key in ("handlers", "listeners"):
            if key in found:
                self.notes[f"{key}: ranks put their requests into a delegate's memory themselves; not used"] = None
        if "dispatchers" in found:
            self.threads.setdefault(found["dispatchers"], place)

    def pattern(self, place: str, found: _Pattern, both: _Both, repetitions: int | None) -> None:
        if found.get("path", "").strip():
            self.paths.append(Path(found["path"].strip()).parent)
        if not found.get("validation", 1):
            self.notes["validation 0: bytes are compared outside the time; --no-verify leaves that out"] = None
        # The first form did both, and has no field for it.
        for operation in found.get("operation", found.get("operations", ("write", "read"))):
            try:
                self.add(
                    Spec(
                        layout=_LAYOUTS[found["number_of_files"]],
                        spatiality=found["spatiality"],
                        request_bytes=found["request_size"],
                        total_bytes=found["total_size"],
                        operation=operation,
                        stonewall_s=float(found.get("stone_wall", 0)),
                        direct=found.get("direct_io", 0) > 0,
                        io_nodes=(both["forwarders"],) if "forwarders" in both else (),
                        repetitions=repetitions,
                    )
                )
            except ArgumentError as error:
                raise DocumentError([(place, str(error))]) from error

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
            raise DocumentError([("", "there is no pattern that writes or reads")])
        if len(self.threads) > 1:
            (one, first), (two, second) = list(self.threads.items())[:2]
            raise DocumentError(
                [
                    (
                        f"{second}/dispatchers",
                        f"is {two}, and {one} at {first or 'the top'}: the "
                        "delegates of a run are started once; explore them in runs of their own",
                    )
                ]
            )
        threads = next(iter(self.threads), None) or None
        if threads is not None and threads > MOST_THREADS:
            self.notes[f"dispatchers {threads}: a delegate has {MOST_THREADS} I/O threads at most"] = None
            threads = MOST_THREADS
        return Forge(
            specs=tuple(self.specs),
            path=self.paths[0] if self.paths else None,
            threads=threads,
            notes=tuple(self.notes),
        )


def read(file: Path) -> Forge:
    """Return the patterns of a file.

    Raises
    ------
    ArgumentError
        The file cannot be read, or is no valid list of patterns; the message has the file and the place.
    """
    found = _Patterns()
    try:
        found.take("", documents.read_json(file))
        return found.result()
    except DocumentError as error:
        raise ArgumentError(str(error.of(file))) from error
