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

Only ``store`` and ``inputs`` must be there. `FIELDS` of this module says what each field means.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.checker import Checker, escaped, shown, unique
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.site import FIELDS as SITE_FIELDS
from mpiio_ext.analytics.site import Site, StripeDefault, site_in_setup
from mpiio_ext.analytics.sources.registry import KINDS

__all__ = ["ENGINE_OPTIONS", "FIELDS", "Engine", "Input", "PlacementPlan", "Setup", "StripeDefault", "load_setup"]

#: What each field of setup.json means, by JSON pointer; ``*`` stands for any name or number.
FIELDS: dict[str, str] = {
    "/store": "folder of the store; made when it is missing",
    "/inputs/*": "logs of this kind (darshan, slurm, lmt, results): folders (searched below), files, or shell patterns",
    "/inputs/*/*/path": "the same, where the entry has options",
    "/inputs/*/*/date": "what dates a log: path (a date in it), mtime, any (belongs to every period), or auto, the "
    "default (the path; else for Darshan the start of the job, which the log has, for others any)",
    "/workers": "processes that convert logs; 0: this one; default: the processors this process may use",
    "/period": "logs of one day or month lie together in files: day, month (default)",
    "/engine": "duckdb (default) or spark; or an object with name and options of the engine: memory, temporary; "
    "threads (duckdb); master, configuration, verbose, dispatch (spark; target: a task reads from one storage target)",
    "/osts": "OSTs that the bitmap has at least; it grows by itself; default 0",
    "/timeout_s": "a chunk of logs whose conversion takes longer is tried log by log, and the log that takes longer is "
    "skipped; default 600",
    "/placement/targets": "storage targets over which the tables are placed: folders",
    "/placement/osts": "where the targets lie on Lustre: the OST of each, in the same order",
    "/placement/subtables": "subtables of each table; a multiple of the targets; default: one per target",
    "/site": "what is known of the machine: an object with the fields below, or the path of a file with it (site.json)",
    **{f"/site{place}": meaning for place, meaning in SITE_FIELDS.items()},
}

#: Options of each engine, and what they are; those of :mod:`mpiio_ext.analytics.query.engines` and ``.spark``.
ENGINE_OPTIONS: dict[str, dict[str, str]] = {
    "duckdb": {"memory": "memory", "threads": "count", "temporary": "text"},
    "spark": {"master": "text", "memory": "memory", "temporary": "text", "configuration": "settings",
              "dispatch": "dispatch", "verbose": "flag"},
}  # fmt: skip
#: How each engine has memory written, and an example.
_MEMORY = {"duckdb": (r"\d+(\.\d+)? ?([kmgt](i?b)?|%)", "4GB"), "spark": (r"\d+[kmgt]b?", "4g")}


@dataclasses.dataclass(frozen=True)
class Input:
    """Logs of one kind in one place: an absolute folder, file or shell pattern, and what dates them."""

    kind: str
    path: str
    date: str = "auto"


@dataclasses.dataclass(frozen=True)
class Engine:
    """Which query engine, and its options."""

    name: str = "duckdb"
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class PlacementPlan:
    """Over which storage targets the tables are placed; `osts` are those of Lustre, or empty."""

    targets: tuple[str, ...]
    subtables: int
    osts: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Setup:
    """A checked set-up; `FIELDS` says what each field means.

    Attributes
    ----------
    site : Site
        What is known of the machine; :meth:`stripe_default` knows the mount points that it does not name.
    """

    store: Path
    inputs: tuple[Input, ...]
    workers: int
    period: str = "month"
    engine: Engine = Engine()
    osts: int = 0
    timeout_s: float = 600.0
    placement: PlacementPlan | None = None
    site: Site = dataclasses.field(default_factory=Site)

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

    def stripe_default(self, mount: str) -> StripeDefault:
        """Return the default stripe settings of a mount point."""
        return self.mounts.get(mount, StripeDefault())

    def options(self) -> dict[str, Any]:
        """Return what changes the rows that connectors make: a store is filled with one value of each."""
        return {"time_zone": self.time_zone, "period": self.period}


def _inputs(check: Checker, value: Any) -> tuple[Input, ...]:
    found = []
    for kind, entries in check.object("/inputs", value, tuple(KINDS)).items():
        if kind not in KINDS:
            continue
        for number, entry in enumerate(check.list(f"/inputs/{kind}", entries)):
            where = f"/inputs/{kind}/{number}"
            if isinstance(entry, dict):
                check.object(where, entry, ("path", "date"))
                if "path" not in entry:
                    check.wrong(where, "has no path")
                path = check.path(f"{where}/path", entry.get("path", "."))
                date = check.choice(f"{where}/date", entry.get("date", "auto"), ("auto", "path", "mtime", "any"))
                found.append(Input(kind, path, date))
            else:
                found.append(Input(kind, check.path(where, entry)))
    return tuple(found)


def _engine(check: Checker, value: Any) -> Engine:
    names = tuple(ENGINE_OPTIONS)
    if not isinstance(value, dict):
        return Engine(check.choice("/engine", value, names))
    given = value.get("name", "duckdb")
    name = check.choice("/engine/name", given, names)
    options = {key: option for key, option in value.items() if key != "name"}
    if name == given:  # else nobody knows whose options they are
        for key, option in options.items():
            _engine_option(check, name, key, option)
    return Engine(name, options)


def _engine_option(check: Checker, engine: str, key: str, value: Any) -> None:
    where = f"/engine/{escaped(key)}"
    known = ENGINE_OPTIONS[engine]
    kind = known.get(key)
    if kind is None:
        check.wrong(where, f"is not known of {engine}; known are name, {', '.join(known)}")
    elif kind == "count":
        check.integer(where, value, 0, 4096)
    elif kind == "flag" and not isinstance(value, bool):
        check.wrong(where, f"is {shown(value)}, and true or false is wanted")
    elif kind == "dispatch":
        check.choice(where, value, ("target", "subtable", "spark"))
    elif kind == "memory":
        pattern, example = _MEMORY[engine]
        if not isinstance(value, str) or (value and not re.fullmatch(pattern, value.strip(), re.IGNORECASE)):
            check.wrong(where, f'is {shown(value)}, and a size such as "{example}" is wanted')
    elif kind == "settings":
        for name, setting in check.object(where, value).items():
            if not isinstance(setting, str):
                check.wrong(f"{where}/{escaped(name)}", f"is {shown(setting)}, and a text is wanted")
    elif kind == "text":
        check.text(where, value)


def _placement(check: Checker, value: Any) -> PlacementPlan | None:
    if value is None:
        return None
    found = check.object("/placement", value, ("targets", "osts", "subtables"))
    targets = [
        check.path(f"/placement/targets/{number}", item)
        for number, item in enumerate(check.list("/placement/targets", found.get("targets", [])))
    ]
    if not targets:
        check.wrong("/placement/targets", "is empty or missing; name the folders to place the tables on")
    if len(set(targets)) < len(targets):
        check.wrong("/placement/targets", "names a folder twice")
    subtables = check.integer("/placement/subtables", found.get("subtables", max(1, len(targets))), 1, 100_000)
    if targets and subtables % len(targets):
        check.wrong(
            "/placement/subtables",
            f"is {subtables}, which {len(targets)} targets cannot share evenly; take a multiple of {len(targets)}",
        )
    osts = tuple(
        check.integer(f"/placement/osts/{number}", item, 0, 65535)
        for number, item in enumerate(check.list("/placement/osts", found.get("osts", [])))
    )
    if osts and len(osts) != len(targets):
        check.wrong("/placement/osts", f"has {len(osts)} entries for {len(targets)} targets")
    return PlacementPlan(tuple(targets), subtables, osts)


def _parse(check: Checker, document: Any) -> Setup:
    known = ("store", "inputs", "workers", "period", "engine", "osts", "timeout_s", "placement", "site")
    found = check.object("", document, known)
    for name in ("store", "inputs"):
        if name not in found:
            check.wrong("", f"has no {name}")
    timeout = found.get("timeout_s", 600)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < 1e9:
        check.wrong("/timeout_s", f"is {shown(timeout)}, and a number of seconds above 0 is wanted")
        timeout = 600
    cores = len(os.sched_getaffinity(0))
    return Setup(
        store=Path(check.path("/store", found.get("store", "store"))),
        inputs=_inputs(check, found.get("inputs", {})),
        workers=check.integer("/workers", found.get("workers", cores), 0, 4096),
        period=check.choice("/period", found.get("period", "month"), ("month", "day")),
        engine=_engine(check, found.get("engine", "duckdb")),
        osts=check.integer("/osts", found.get("osts", 0), 0, 3968),
        timeout_s=float(timeout),
        placement=_placement(check, found.get("placement")),
        site=site_in_setup(check, found.get("site", {})),
    )


def load_setup(source: str | os.PathLike[str] | Mapping[str, Any], folder: str | Path = ".") -> Setup:
    """Read and check a set-up.

    Parameters
    ----------
    source : path or mapping
        The file, or what it would contain.
    folder : path
        What relative paths of a mapping are relative to; of a file it is its own folder.

    Raises
    ------
    AnalyticsError
        The file cannot be read, is not JSON, or something in it is wrong: all problems are listed.
    """
    if isinstance(source, Mapping):
        name, base, document = "set-up", Path(folder).absolute(), dict(source)
    else:
        path = Path(source).absolute()
        name, base = str(path), path.parent
        try:
            document = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique)
        except OSError as error:
            raise AnalyticsError(f"{path}: the set-up cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise AnalyticsError(f"{path}: the set-up is not JSON: {error}") from error
    check = Checker(base)
    setup = _parse(check, document)
    if check.problems:
        raise AnalyticsError("\n".join(f"{name}: {problem}" for problem in check.problems))
    return setup
