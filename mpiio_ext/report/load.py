"""Files of results, read and checked field by field.

Results come from other machines, other versions and runs that were cut short. Every file is either understood as a
whole or refused with one line that names the file and the field; nothing is guessed. Two kinds are understood:

- ``results.json`` of ``python -m mpiio_ext.bench``, schema versions 1 and 2 (`ResultSet`). Fields that version 1 lacks
  are "not known", except `noncontiguous`, which is known of patterns where a file does not say it: of the six patterns
  only "contiguous" is contiguous.
- the JSON of ``python -m mpiio_ext.bench compare --json`` (`PeerSet`).

The rows are made from ``runs``; ``summary``, which holds the same in other words, is not read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any

from mpiio_ext.common.results import SCHEMA_VERSION, Measured, Row, Spread, measure
from mpiio_ext.report.errors import ReportError

__all__ = ["PeerResult", "PeerSet", "ResultSet", "load", "load_all"]

_BUCKETS = 64
_LARGEST = 2**63
#: A file that is cut off may end in part of a word or of an escape: an error so near to its end is told as such.
_TOKEN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSet:
    """One run of the bench.

    Attributes
    ----------
    name : short name, unique on the page
    path : the file
    schema : version, 1 or 2
    environment, configuration : as recorded
    absent : (what, why) of what was not run
    failure : why the bench ended early, or None
    rows : what was measured, in the order of the runs
    """

    name: str
    path: Path
    schema: int
    environment: dict[str, Any]
    configuration: dict[str, Any]
    absent: tuple[tuple[str, str], ...]
    failure: str | None
    rows: tuple[Measured, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerResult:
    """One pattern and operation under every peer; the meaning of each field is that of docs/bench.md.

    `bandwidth` holds a spread per peer, in 10⁶ bytes a second; its count is not recorded, and is 0.
    """

    pattern: str
    operation: str
    bandwidth: dict[str, Spread]
    ours: str
    best_native: str | None
    ratio_native: float | None
    ratio_raw: float | None
    scaled: frozenset[str]
    absent: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSet:
    """One run of ``bench compare``: `peers` maps names to titles."""

    name: str
    path: Path
    environment: dict[str, Any]
    peers: dict[str, str]
    results: tuple[PeerResult, ...]


# ---- reading ---------------------------------------------------------------------------------------------------------


def _file_of(path: Path) -> Path:
    if not path.is_dir():
        return path
    inside = path / "results.json"
    if inside.exists():
        return inside
    below = sorted(path.glob("*/results.json"))
    hint = f"; did you mean {below[-1].parent}?" if below else ""
    raise ReportError(f"{path}: the folder holds no results.json{hint}")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")


def _document(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ReportError(f"{path}: not a text file in UTF-8, so not results of the bench") from error
    except OSError as error:
        raise ReportError(f"{path}: cannot be read: {error.strerror}") from error
    if not text.strip():
        raise ReportError(f"{path}: the file is empty; was the bench ended before it wrote its results?")
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        behind = len(text.rstrip()) - error.pos
        if text.lstrip().startswith("{") and (behind < _TOKEN or error.msg.startswith("Unterminated")):
            raise ReportError(f"{path}: the JSON ends in the midst of line {error.lineno}: it is cut off") from error
        raise ReportError(f"{path}: not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise ReportError(f"{path}: not readable as JSON: {error}") from error
    if not isinstance(document, dict):
        raise ReportError(f"{path}: JSON, but not results of the bench: a {type(document).__name__} at the top")
    return document


# ---- checking --------------------------------------------------------------------------------------------------------


class _Checker:
    """Takes values of known types out of a document and names the place of one that is wrong."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def wrong(self, place: str, wanted: str, value: Any) -> ReportError:
        shown = repr(value)
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        return ReportError(f"{self.path}: {place} is {shown}, which is not {wanted}")

    def mapping(self, place: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(place, "an object", value)
        return value

    def sequence(self, place: str, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise self.wrong(place, "a list", value)
        return value

    def text(self, place: str, value: Any) -> str:
        if not isinstance(value, str):
            raise self.wrong(place, "a text", value)
        return value

    def flag(self, place: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self.wrong(place, "true or false", value)
        return value

    def count(self, place: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST:
            raise self.wrong(place, "a count", value)
        return value

    def number(self, place: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _LARGEST:
            raise self.wrong(place, "a number from 0", value)
        if not math.isfinite(value):
            raise self.wrong(place, "a finite number", value)
        return float(value)

    def histogram(self, place: str, value: Any) -> tuple[int, ...]:
        counts = self.sequence(place, value)
        if len(counts) > _BUCKETS:
            raise self.wrong(place, f"a list of at most {_BUCKETS} counts", value)
        return tuple(self.count(f"{place}[{k}]", item) for k, item in enumerate(counts))

    def run(self, place: str, value: Any) -> Row:
        """Return one entry of ``runs``; fields that `Row` does not have are passed over."""
        record = self.mapping(place, value)
        taken: dict[str, Any] = {}
        readers = {"str": self.text, "bool": self.flag, "int": self.count, "float": self.number,
                   "tuple[int, ...]": self.histogram}
        for field in fields(Row):
            kind, _, optional = str(field.type).partition(" | ")
            if field.name not in record:
                if field.default is MISSING:
                    raise ReportError(f"{self.path}: {place} has no {field.name}")
                continue
            if record[field.name] is None and (optional or field.default is not MISSING):
                continue
            taken[field.name] = readers[kind](f"{place}.{field.name}", record[field.name])
        return Row(**taken)


def _absent(check: _Checker, document: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    out = []
    for k, item in enumerate(check.sequence("absent", document.get("absent") or [])):
        entry = check.mapping(f"absent[{k}]", item)
        out.append((str(entry.get("what", "")), str(entry.get("reason", ""))))
    return tuple(out)


def _schema_of(path: Path, document: Mapping[str, Any]) -> int:
    version = document["schema_version"]
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ReportError(f"{path}: schema_version is {version!r}, which is not a version")
    if version > SCHEMA_VERSION:
        raise ReportError(
            f"{path}: written with schema version {version}, and this mpiio_ext knows versions up to {SCHEMA_VERSION}: "
            "use a newer mpiio_ext"
        )
    return version


def _with_noncontiguous(run: Row) -> Row:
    if run.noncontiguous is not None or run.kind != "pattern":
        return run
    return replace(run, noncontiguous=run.workload != "contiguous")


def _result_set(path: Path, document: dict[str, Any]) -> ResultSet:
    check = _Checker(path)
    schema = _schema_of(path, document)
    if "runs" not in document:
        raise ReportError(f"{path}: JSON with a schema_version, but without runs: not results of the bench")
    items = check.sequence("runs", document["runs"])
    failure = document.get("failure")
    if not items:
        why = f": {failure}" if failure else ""
        raise ReportError(f"{path}: the bench recorded no run{why}")
    runs = [_with_noncontiguous(check.run(f"runs[{k}]", item)) for k, item in enumerate(items)]
    return ResultSet(
        name=path.parent.name if path.name == "results.json" and path.parent.name else path.stem,
        path=path,
        schema=schema,
        environment=check.mapping("environment", document.get("environment") or {}),
        configuration=check.mapping("configuration", document.get("configuration") or {}),
        absent=_absent(check, document),
        failure=None if failure is None else str(failure),
        rows=tuple(measure(runs)),
    )


# ---- bench compare ---------------------------------------------------------------------------------------------------


def _peer_result(check: _Checker, place: str, value: Any) -> PeerResult:
    record = check.mapping(place, value)
    for name in ("pattern", "op", "mbytes_per_s"):
        if name not in record:
            raise ReportError(f"{check.path}: {place} has no {name}")
    medians = check.mapping(f"{place}.mbytes_per_s", record["mbytes_per_s"])
    spreads = check.mapping(f"{place}.spread_mbytes_per_s", record.get("spread_mbytes_per_s") or {})
    bandwidth = {}
    for peer, value_ in medians.items():
        median = check.number(f"{place}.mbytes_per_s.{peer}", value_)
        ends = check.sequence(f"{place}.spread_mbytes_per_s.{peer}", spreads.get(peer) or [median, median])
        if len(ends) != 2:
            raise check.wrong(f"{place}.spread_mbytes_per_s.{peer}", "[smallest, largest]", ends)
        low, high = (check.number(f"{place}.spread_mbytes_per_s.{peer}", end) for end in ends)
        bandwidth[peer] = Spread(median, low, high, 0)

    def optional(name: str) -> float | None:
        return None if record.get(name) is None else check.number(f"{place}.{name}", record[name])

    return PeerResult(
        pattern=check.text(f"{place}.pattern", record["pattern"]),
        operation=check.text(f"{place}.op", record["op"]),
        bandwidth=bandwidth,
        ours=str(record.get("ours", "")),
        best_native=None if record.get("best_native") is None else str(record["best_native"]),
        ratio_native=optional("ratio_native"),
        ratio_raw=optional("ratio_raw"),
        scaled=frozenset(check.mapping(f"{place}.scaled_bytes", record.get("scaled_bytes") or {})),
        absent={str(k): str(v) for k, v in check.mapping(f"{place}.absent", record.get("absent") or {}).items()},
    )


def _peer_set(path: Path, document: dict[str, Any]) -> PeerSet:
    check = _Checker(path)
    items = check.sequence("results", document["results"])
    if not items:
        raise ReportError(f"{path}: the comparison holds no result")
    return PeerSet(
        name=path.stem,
        path=path,
        environment=check.mapping("environment", document.get("environment") or {}),
        peers={name: check.text(f"peers.{name}", title)
               for name, title in check.mapping("peers", document["peers"]).items()},
        results=tuple(_peer_result(check, f"results[{k}]", item) for k, item in enumerate(items)),
    )


# ---- all of it -------------------------------------------------------------------------------------------------------


def load(path: Path) -> ResultSet | PeerSet:
    """Read one file, or the results.json of a folder.

    Raises
    ------
    ReportError
        The file is missing, cut off, foreign, empty, newer than this program, or holds a wrong value.
    """
    path = _file_of(path)
    document = _document(path)
    if "schema_version" in document:
        return _result_set(path, document)
    if "peers" in document and "units" in document:
        raise ReportError(f"{path}: results of `bench scaling`, which the report does not show; see its --plot")
    if "peers" in document and "results" in document:
        return _peer_set(path, document)
    raise ReportError(f"{path}: JSON, but not results of the bench: it has no schema_version")


def load_all(paths: Iterable[Path]) -> tuple[list[ResultSet], list[PeerSet]]:
    """Read every file once and give the sets names that are unique.

    Raises
    ------
    ReportError
        As `load`.
    """
    loaded: dict[Path, ResultSet | PeerSet] = {}
    for path in paths:
        found = load(path)
        loaded.setdefault(found.path.resolve(), found)
    named = _uniquely_named(list(loaded.values()))
    return ([item for item in named if isinstance(item, ResultSet)],
            [item for item in named if isinstance(item, PeerSet)])


def _uniquely_named(sets: Sequence[ResultSet | PeerSet]) -> list[ResultSet | PeerSet]:
    seen: dict[str, int] = {}
    out: list[ResultSet | PeerSet] = []
    for item in sets:
        seen[item.name] = seen.get(item.name, 0) + 1
        out.append(item if seen[item.name] == 1 else replace(item, name=f"{item.name} ({seen[item.name]})"))
    return out
