"""The set-up of the analytics: which logs, which store, which engine. Read from setup.json and checked field by field.

A wrong set-up is refused as a whole, with every problem on a line of its own that begins with the place as a JSON
pointer (RFC 6901): ``/inputs/darshan/0: …``. Relative paths are relative to the set-up's folder.

Example
-------
::

    {
      "store": "store",
      "inputs": {
        "darshan": ["/logs/darshan/2018", {"path": "more/*.darshan", "date": "mtime"}],
        "slurm": ["/logs/slurm"],
        "lmt": ["/logs/lmt/*.hdf5"],
        "results": ["bench-results"]
      },
      "workers": 16,
      "period": "month",
      "engine": {"name": "spark", "master": "spark://head:7077"},
      "osts": 248,
      "placement": {"targets": ["/scratch/ost1", "/scratch/ost2"], "subtables": 6},
      "site": {
        "time_zone": "America/Los_Angeles",
        "mounts": {"/scratch1": {"stripe_size": 1048576, "stripe_count": 1}},
        "lmt_mounts": {"snx11025": "/scratch1"}
      }
    }

``"site": "site.json"`` takes the same object from a file (:mod:`mpiio_ext.analytics.site`).

Only ``store`` and ``inputs`` must be there. `FIELDS` of this module has the meaning of each field.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, ValidationInfo

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.site import FIELDS as SITE_FIELDS
from mpiio_ext.analytics.site import Site, StripeDefault, Text, load_site, parse_site
from mpiio_ext.analytics.sources.registry import KINDS
from mpiio_ext.common import documents
from mpiio_ext.common.documents import CLOSED, DocumentError, given, shown

#: What each field of setup.json means, by JSON pointer; ``*`` stands for any name or number.
FIELDS: dict[str, str] = {
    "/store": "folder of the store; made when it is missing",
    "/inputs/*": "logs of this kind (darshan, slurm, cobalt, lmt, results): folders (searched below), files, "
    "or shell patterns",
    "/inputs/*/*/path": "the same, where the entry has options",
    "/inputs/*/*/date": "what dates a log: path (a date in it), mtime, any (belongs to every period), or auto, the "
    "default (the path; else for Darshan the start of the job, which the log has, for others any)",
    "/workers": "processes that convert logs; 0: this one; default: the processors this process may use",
    "/period": "logs of one day or month lie together in files: day, month (default)",
    "/engine": "duckdb (default) or spark; or an object with name and options of the engine: memory, temporary; "
    "threads (duckdb); master, configuration, verbose (spark)",
    "/osts": "OSTs that the bitmap has at least; it grows by itself; default 0",
    "/timeout_s": "a chunk of logs whose conversion takes longer is tried log by log, and the log that takes longer is "
    "skipped; default 600",
    "/placement/targets": "storage targets over which the tables are placed: folders",
    "/placement/osts": "where the targets lie on Lustre: the OST of each, in the same order",
    "/placement/subtables": "subtables of each table; a multiple of the targets; default: one per target",
    "/site": "what is known of the machine: an object with the fields below, or the path of a file with it (site.json)",
    **{f"/site{place}": meaning for place, meaning in SITE_FIELDS.items()},
}


def _path(text: str, info: ValidationInfo) -> str:
    """Return a path, absolute."""
    try:
        return str(given(info)["folder"] / Path(text).expanduser())
    except RuntimeError:
        raise ValueError(f"{shown(text)} names a user that is not there") from None


def _memory(pattern: str, example: str) -> BeforeValidator:
    def check(text: object) -> str:
        if not isinstance(text, str) or (text and not re.fullmatch(pattern, text.strip(), re.IGNORECASE)):
            raise ValueError(f'{shown(text)} is not a size such as "{example}"')
        return text

    return BeforeValidator(check)


_Folder = Annotated[Text, AfterValidator(_path)]


@dataclasses.dataclass(frozen=True)
class _DuckDB:
    __pydantic_config__ = CLOSED

    memory: Annotated[str, _memory(r"\d+(\.\d+)? ?([kmgt](i?b)?|%)", "4GB")] = ""
    threads: Annotated[int, Field(ge=0, le=4096)] = 0
    temporary: Text = ""


@dataclasses.dataclass(frozen=True)
class _Spark:
    __pydantic_config__ = CLOSED

    master: Text = ""
    memory: Annotated[str, _memory(r"\d+[kmgt]b?", "4g")] = ""
    temporary: Text = ""
    configuration: Mapping[str, str] = dataclasses.field(default_factory=dict)
    verbose: bool = False


#: Form of the options of each engine; their meaning, and what holds without them, is that of
#: :mod:`mpiio_ext.analytics.query.engines` and ``.spark``.
ENGINE_OPTIONS: dict[str, type[Any]] = {"duckdb": _DuckDB, "spark": _Spark}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Input:
    """Logs of one kind in one place: an absolute folder, file or shell pattern, and the source of their dates."""

    kind: str
    path: str
    date: str = "auto"


@dataclasses.dataclass(frozen=True)
class Engine:
    """Which query engine, and its options."""

    name: str = "duckdb"
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlacementPlan:
    """Over which storage targets the tables are placed; `osts` are those of Lustre, or empty."""

    __pydantic_config__ = CLOSED

    targets: Annotated[tuple[_Folder, ...], Field(min_length=1)]
    subtables: Annotated[int, Field(ge=1, le=100_000)] = 0
    osts: tuple[Annotated[int, Field(ge=0, le=65535)], ...] = ()


# ---- parts of the document whose form is another one -----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Entry:
    __pydantic_config__ = CLOSED

    path: _Folder
    date: Literal["auto", "path", "mtime", "any"] = "auto"


def _kind(name: str) -> str:
    if name not in KINDS:
        raise ValueError(f"there is no such name; there are {', '.join(KINDS)}")
    return name


_Entries = dict[
    Annotated[str, AfterValidator(_kind)],
    tuple[Annotated[_Entry, BeforeValidator(lambda entry: {"path": entry} if isinstance(entry, str) else entry)], ...],
]


def _inputs(value: Any, info: ValidationInfo) -> tuple[Input, ...]:
    found = documents.parse(_Entries, value, **given(info))
    return tuple(
        Input(kind=kind, path=entry.path, date=entry.date) for kind, entries in found.items() for entry in entries
    )


def _engine(value: Any) -> Engine:
    given = value if isinstance(value, dict) else {"name": value}
    name = given.get("name", "duckdb")
    if name not in tuple(ENGINE_OPTIONS):
        place = "/name" if given is value else ""
        raise DocumentError([(place, f"{shown(name)} is not one of {', '.join(map(shown, ENGINE_OPTIONS))}")])
    options = {key: option for key, option in given.items() if key != "name"}
    documents.parse(ENGINE_OPTIONS[name], options)
    return Engine(name, options)


def _placed(plan: PlacementPlan) -> PlacementPlan:
    count = len(plan.targets)
    mistakes = [("/targets", "names a folder twice")] if len(set(plan.targets)) < count else []
    if plan.subtables % count:
        shared = f"{plan.subtables} cannot be shared evenly by {count} targets; take a multiple of {count}"
        mistakes.append(("/subtables", shared))
    if plan.osts and len(plan.osts) != count:
        mistakes.append(("/osts", f"has {len(plan.osts)} entries for {count} targets"))
    if mistakes:
        raise DocumentError(mistakes)
    return dataclasses.replace(plan, subtables=plan.subtables or count)


def _site(value: Any, info: ValidationInfo) -> Site:
    if not isinstance(value, str):
        return parse_site(value, given(info)["folder"])
    try:
        return load_site(documents.parse(_Folder, value, **given(info)))
    except AnalyticsError as error:
        raise DocumentError([("", line) for line in str(error).splitlines()]) from error


@dataclasses.dataclass(frozen=True)
class Setup:
    """A checked set-up; `FIELDS` has the meaning of each field.

    Attributes
    ----------
    site : what is known of the machine; :meth:`stripe_default` knows the mount points that it does not name.
    """

    __pydantic_config__ = CLOSED

    store: Annotated[Path, PlainValidator(lambda value, info: Path(documents.parse(_Folder, value, **given(info))))]
    inputs: Annotated[tuple[Input, ...], PlainValidator(_inputs)]
    workers: Annotated[int, Field(ge=0, le=4096)] = dataclasses.field(
        default_factory=lambda: len(os.sched_getaffinity(0))
    )
    period: Literal["month", "day"] = "month"
    engine: Annotated[Engine, PlainValidator(_engine)] = Engine()
    osts: Annotated[int, Field(ge=0, le=3968)] = 0
    timeout_s: Annotated[float, Field(gt=0, lt=1e9)] = 600.0
    placement: Annotated[PlacementPlan, AfterValidator(_placed)] | None = None
    site: Annotated[Site, PlainValidator(_site)] = dataclasses.field(default_factory=Site)

    @property
    def time_zone(self) -> str:
        """Time zone of times without one."""
        return self.site.time_zone

    @property
    def mounts(self) -> Mapping[str, StripeDefault]:
        """Default stripe settings of the mount points that the site names."""
        return self.site.mounts

    @property
    def lmt_mounts(self) -> Mapping[str, str]:
        """LMT's name of a file system -> its mount point."""
        return self.site.lmt_mounts

    def options(self) -> dict[str, Any]:
        """Return the settings that change the rows of connectors: a store is filled with one value of each."""
        return {"time_zone": self.time_zone, "period": self.period}


def load_setup(source: str | os.PathLike[str] | Mapping[str, Any], folder: str | Path = ".") -> Setup:
    """Read and check a set-up.

    Parameters
    ----------
    source : the file, or what it would contain.
    folder : what relative paths of a mapping are relative to; of a file it is its own folder.

    Raises
    ------
    AnalyticsError
        The file cannot be read, is not JSON, or something in it is wrong: all problems are listed.
    """
    document: object
    if isinstance(source, Mapping):
        name, base, document = "set-up", Path(folder).absolute(), dict(source)
    else:
        path = Path(source).absolute()
        name, base = str(path), path.parent
        document = documents.read_json(path, AnalyticsError)
    try:
        return documents.parse(Setup, document, folder=base)
    except DocumentError as error:
        raise AnalyticsError(str(error.of(name))) from error
