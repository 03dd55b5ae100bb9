"""Files of results, read and checked by their types (`common.documents`).

Results come from other machines, other versions and runs that were cut short. Every file is either understood as a
whole or refused with one line that names the file and its first wrong place, without a guess. Two kinds are understood:

- ``results.json`` of ``mpiio-ext bench`` (`ResultSet`);
- the JSON of ``mpiio-ext bench compare --json -o`` (`PeerSet`).

The rows are made from ``runs``; ``summary``, which has the same numbers in another form, is not read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

from pydantic import Field
from typing_extensions import NotRequired, TypedDict

from mpiio_ext.common import documents
from mpiio_ext.common.documents import DocumentError, shown
from mpiio_ext.common.files import cannot_read
from mpiio_ext.common.results import SCHEMA_VERSION, Measured, Row, Spread, measure
from mpiio_ext.report.errors import ReportError

Form = TypeVar("Form")

_BUCKETS = 64
_LARGEST = 2**63
_Count = Annotated[int, Field(ge=0, lt=_LARGEST)]
_Number = Annotated[float, Field(ge=0, lt=_LARGEST, allow_inf_nan=False)]
#: A file that is cut off may end in part of a word or of an escape: an error so near to its end is reported as a cut.
_TOKEN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSet:
    """One run of the bench.

    Attributes
    ----------
    name : short name, unique on the page
    path : the file
    environment, configuration : as recorded
    absent : (what, why) of what was not run
    failure : why the bench ended early, or None
    rows : what was measured, in the order of the runs
    """

    name: str
    path: Path
    environment: dict[str, Any]
    configuration: dict[str, Any]
    absent: tuple[tuple[str, str], ...]
    failure: str | None
    rows: tuple[Measured, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerResult:
    """One pattern and operation under every peer; the meaning of each field is that of docs/reference/suites.md."""

    pattern: str
    op: str
    mbytes_per_s: dict[str, _Number]
    spread_mbytes_per_s: dict[str, tuple[_Number, _Number] | None] | None = None
    ours: Any = ""
    best_native: Any = None
    ratio_native: _Number | None = None
    ratio_raw: _Number | None = None
    scaled_bytes: dict[str, Any] | None = None
    absent: dict[str, Any] | None = None

    def bandwidth(self, peer: str) -> Spread | None:
        """Return the bandwidth of a peer (10⁶ bytes a second); its count is not recorded, and is 0."""
        if (median := self.mbytes_per_s.get(peer)) is None:
            return None
        low, high = (self.spread_mbytes_per_s or {}).get(peer) or (median, median)
        return Spread(median, low, high, 0)


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
    raise ReportError(f"{path}: the folder has no results.json{hint}")


def _document(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ReportError(f"{path}: not a text file in UTF-8, so not results of the bench") from error
    except OSError as error:
        raise ReportError(cannot_read(path, error)) from error
    if not text.strip():
        raise ReportError(f"{path}: the file is empty; was the bench ended before it wrote its results?")
    try:
        document = documents.from_json(text)
    except json.JSONDecodeError as error:
        behind = len(text.rstrip()) - error.pos
        if text.lstrip().startswith("{") and (behind < _TOKEN or error.msg.startswith("Unterminated")):
            raise ReportError(f"{path}: the JSON ends in the midst of line {error.lineno}: it is cut off") from error
        raise ReportError(f"{path}: is not JSON: {error}") from error
    except ValueError as error:
        raise ReportError(f"{path}: is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ReportError(f"{path}: JSON, but not results of the bench: a {type(document).__name__} at the top")
    return document


# ---- checking --------------------------------------------------------------------------------------------------------


_KINDS: Mapping[str, Any] = {
    "str": str,
    "bool": bool,
    "int": _Count,
    "float": _Number,
    "tuple[int, ...]": Annotated[tuple[_Count, ...], Field(max_length=_BUCKETS)],
}


class _Absent(TypedDict, total=False):
    what: Any
    reason: Any


def _form_of_results() -> Any:
    """Return the form of results; parts of an entry of ``runs`` that `Row` lacks are ignored."""
    form: Any = TypedDict  # its fields are those of Row
    found = {}
    for field in fields(Row):
        kind, _, optional = str(field.type).partition(" | ")
        may_lack = field.default is not MISSING
        found[field.name] = _KINDS[kind] | None if optional or may_lack else _KINDS[kind]
        if may_lack:
            found[field.name] = NotRequired[found[field.name]]
    runs: Any = list[form("Run", found)]  # type: ignore[misc]
    return form("Results", {"runs": runs, "absent": NotRequired[list[_Absent] | None]})


_Results = _form_of_results()


class _Comparison(TypedDict):
    peers: dict[str, str]
    results: list[PeerResult]


def _checked(path: Path, form: Callable[..., Form], document: Mapping[str, Any]) -> Form:
    """Return the kind of a document, without unchecked parts; its first mistake ends it, in one line."""
    parts = {name: document[name] for name in get_type_hints(form) if name in document}
    # Lone surrogates, as in names of files that are no UTF-8: a page has "?" for them.
    plain = json.loads(json.dumps(parts, ensure_ascii=False).encode("utf-8", "replace"))
    try:
        return documents.parse(form, plain)
    except DocumentError as error:
        more = f" (and {len(error.mistakes) - 1} more)" if len(error.mistakes) > 1 else ""
        raise ReportError(f"{path}: {error.problems[0]}{more}") from error


def _object(path: Path, document: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name) or {}
    if not isinstance(found, dict):
        raise ReportError(f"{path}: /{name}: {shown(found)} is not an object")
    return found


def rows_of(runs: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return the rows that checked entries of ``runs`` are."""
    return [Row(**{name: value for name, value in run.items() if value is not None}) for run in runs]


def _check_version(path: Path, document: Mapping[str, Any]) -> None:
    version = document["schema_version"]
    if isinstance(version, bool) or version != SCHEMA_VERSION:
        raise ReportError(
            f"{path}: schema_version is {shown(version)}, and this mpiio_ext reads {SCHEMA_VERSION}: "
            "use the mpiio_ext that wrote it"
        )


def _result_set(path: Path, document: dict[str, Any]) -> ResultSet:
    _check_version(path, document)
    if "runs" not in document:
        raise ReportError(f"{path}: JSON with a schema_version, but without runs: not results of the bench")
    failure = document.get("failure")
    if document["runs"] == []:
        why = f": {failure}" if failure else ""
        raise ReportError(f"{path}: the bench recorded no run{why}")
    found = _checked(path, _Results, document)
    return ResultSet(
        name=path.parent.name if path.name == "results.json" and path.parent.name else path.stem,
        path=path,
        environment=_object(path, document, "environment"),
        configuration=_object(path, document, "configuration"),
        absent=tuple((str(item.get("what", "")), str(item.get("reason", ""))) for item in found.get("absent") or ()),
        failure=None if failure is None else str(failure),
        rows=tuple(measure(rows_of(found["runs"]))),
    )


def _peer_set(path: Path, document: dict[str, Any]) -> PeerSet:
    found = _checked(path, _Comparison, document)
    if not found["results"]:
        raise ReportError(f"{path}: the comparison has no result")
    return PeerSet(
        name=path.stem,
        path=path,
        environment=_object(path, document, "environment"),
        peers=found["peers"],
        results=tuple(found["results"]),
    )


# ---- all of it -------------------------------------------------------------------------------------------------------


def load(path: Path) -> ResultSet | PeerSet:
    """Read one file, or the results.json of a folder.

    Raises
    ------
    ReportError
        The file is missing, cut off, foreign, empty, of another version, or holds a wrong value.
    """
    path = _file_of(path)
    document = _document(path)
    if "schema_version" in document:
        return _result_set(path, document)
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
    return (
        [item for item in named if isinstance(item, ResultSet)],
        [item for item in named if isinstance(item, PeerSet)],
    )


def _uniquely_named(sets: Sequence[ResultSet | PeerSet]) -> list[ResultSet | PeerSet]:
    seen: dict[str, int] = {}
    out: list[ResultSet | PeerSet] = []
    for item in sets:
        seen[item.name] = seen.get(item.name, 0) + 1
        out.append(item if seen[item.name] == 1 else replace(item, name=f"{item.name} ({seen[item.name]})"))
    return out
