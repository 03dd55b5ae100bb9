"""Parameter files: a suite as TOML, read and checked entry by entry.

A file has a title, ``[options]`` (defaults of the command line's options, by their long names; a list stands for a
comma-separated one) and any number of ``[[kernels]]``::

    title = "What this is"
    source = "where the parameters are from"

    [options]
    workload = "none"                     # patterns; "none" = kernels alone
    method = ["native", "auto"]
    repetitions = 3

    [[kernels]]
    kernel = "vpic"                       # a name of `--list`
    name = "vpic-large"                   # of its rows, where the kernel is there more than once
    interfaces = ["hdf5"]                 # default: all that the kernel has
    preset = "published"
    scale = 0.5
    parameters = { particles = 8388608 }  # on top of the preset

What is wrong is told with the file, the entry and what is known instead. Nothing is passed over.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.bench import interfaces as ways
from mpiio_ext.bench import kernels
from mpiio_ext.bench.arguments import one_of
from mpiio_ext.bench.kernels.request import DEFAULT_PRESET, KernelRequest, convert_parameter
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from importlib.abc import Traversable

__all__ = ["KernelEntry", "Suite", "load", "names"]

_toml: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")
_TOP_KEYS = {"title", "source", "options", "kernels"}
_ENTRY_KEYS = {"kernel", "name", "interfaces", "preset", "scale", "parameters"}
#: Options that belong to one run rather than to a suite, or that would have the suite begin itself.
_NOT_IN_FILES = {"path", "output", "archive", "suite", "quick", "dry_run", "list_kernels", "ranks", "keep", "progress",
                 "param", "help"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEntry:
    """One entry of ``[[kernels]]``; `preset` None = the command line's."""

    kernel: str
    name: str = ""
    interfaces: tuple[str, ...] = ()
    preset: str | None = None
    scale: float = 1.0
    parameters: Mapping[str, Any]

    def request(
        self, *, preset: str | None, fallback: str | None, scale: float, interfaces: tuple[str, ...]
    ) -> KernelRequest:
        """Return the entry as it is asked for.

        Parameters
        ----------
        preset : stronger than the entry's; None = not given
        fallback : weaker than the entry's; None = not given
        scale : on top of the entry's
        interfaces : only these; empty = not given
        """
        wanted = self.interfaces or kernels.kind_of(self.kernel).interfaces
        return KernelRequest(
            kernel=self.kernel, name=self.name, preset=preset or self.preset or fallback or DEFAULT_PRESET,
            interfaces=tuple(way for way in wanted if not interfaces or way in interfaces),
            parameters=self.parameters, scale=self.scale * scale, required=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A parameter file.

    Attributes
    ----------
    name : of the suite, and of its folder in the archive
    where : the file, for messages
    text : the file's content, which is kept beside the results
    title, source : for people
    options : name of an option of the command line -> its value as it would be typed
    entries : of ``[[kernels]]``
    """

    name: str
    where: str
    text: str
    title: str
    source: str
    options: Mapping[str, Any]
    entries: tuple[KernelEntry, ...]


def _data() -> Traversable:
    return resources.files("mpiio_ext.bench.suites") / "data"


def names() -> list[str]:
    """Return the names of the project's own suites."""
    return sorted(item.name.removesuffix(".toml") for item in _data().iterdir() if item.name.endswith(".toml"))


def _read(name: str) -> tuple[str, str, str]:
    """Return (name, where, text) of a suite by its name or its file."""
    if name.endswith(".toml"):
        path = Path(name)
        try:
            return path.stem, name, path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            raise ArgumentError(f"{name}: cannot be read ({reason})") from error
    try:
        one_of(names())(name)
    except ValueError as error:
        raise ArgumentError(f"{error}, or a parameter file FILE.toml") from error
    return name, f"suite {name}", (_data() / f"{name}.toml").read_text("utf-8")


def load(name: str) -> Suite:
    """Return a suite of the project by its name, or a user's by the path of its file, which ends in ``.toml``.

    Raises
    ------
    ArgumentError
        There is no such suite, or its file is wrong; file and entry are named.
    """
    short, where, text = _read(name)
    if not _NAME.fullmatch(short):
        raise ArgumentError(f"{where}: the name of the file names the suite: letters, digits, '.', '_', '-' only")
    try:
        document = _toml.loads(text)
    except _toml.TOMLDecodeError as error:
        raise ArgumentError(f"{where}: not TOML: {error}") from error
    _only(document, _TOP_KEYS, where, "")
    listed = document.get("kernels", [])
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise ArgumentError(f"{where}: kernels must be tables: [[kernels]]")
    entries = tuple(_entry(where, number, item) for number, item in enumerate(listed, 1))
    return Suite(
        name=short, where=where, text=text, title=_text(document, "title", where, short),
        source=_text(document, "source", where, ""), options=_options(document.get("options", {}), where),
        entries=entries,
    )


def _only(table: Mapping[str, Any], known: set[str], where: str, entry: str) -> None:
    for key in table:
        try:
            one_of(sorted(known))(key)
        except ValueError as error:
            raise ArgumentError(f"{where}: {entry}{error}") from error


def _text(table: Mapping[str, Any], key: str, where: str, default: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise ArgumentError(f"{where}: {key} must be a text, not {value!r}")
    return value


def _options(table: Any, where: str) -> dict[str, Any]:
    """Return options by the names that click uses, lists joined by commas; the command line checks names and values."""
    if not isinstance(table, dict):
        raise ArgumentError(f"{where}: options must be a table: [options]")
    out: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name in _NOT_IN_FILES:
            raise ArgumentError(f"{where}: options.{key}: belongs to the command line, not to a suite")
        if isinstance(value, (dict, list)) and name != "hint":
            if not isinstance(value, list) or not all(isinstance(item, (str, int)) for item in value):
                raise ArgumentError(f"{where}: options.{key}: must be one value or a list of names")
            value = ",".join(str(item) for item in value)
        out[name] = value
    return out


def _entry(where: str, number: int, table: Mapping[str, Any]) -> KernelEntry:
    place = f"kernels entry {number}"
    if "kernel" not in table:
        raise ArgumentError(f"{where}: {place} names no kernel: kernel = \"NAME\"")
    kernel = table["kernel"]
    place += f" ({kernel})"
    try:
        _only(table, _ENTRY_KEYS, where, f"{place}: ")
        return _checked(table, str(kernel))
    except ArgumentError as error:
        text = str(error)
        raise ArgumentError(text if text.startswith(where) else f"{where}: {place}: {text}") from error
    except ValueError as error:
        raise ArgumentError(f"{where}: {place}: {error}") from error


def _checked(table: Mapping[str, Any], kernel: str) -> KernelEntry:
    """Return the entry; raises ValueError without saying where."""
    kind = kernels.kind_of(kernels.kernel_name(kernel))
    interfaces = table.get("interfaces", [])
    if not isinstance(interfaces, list):
        raise ValueError(f"interfaces must be a list of names, not {interfaces!r}")
    for way in interfaces:
        one_of(ways.REGISTRY)(str(way))
        if way not in kind.interfaces:
            raise ValueError(f"interface '{way}': {kind.name} has {', '.join(kind.interfaces)} only")
    preset = table.get("preset")
    if preset is not None:
        try:
            one_of(kind.presets)(str(preset))
        except ValueError as error:
            raise ValueError(f"preset: {error}") from error
    scale = table.get("scale", 1.0)
    if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not 0 < scale < float("inf"):
        raise ValueError(f"scale must be a number above 0, not {scale!r}")
    name = table.get("name", "")
    if not isinstance(name, str) or (name and not _NAME.fullmatch(name)):
        raise ValueError(f"name must be made of letters, digits, '.', '_', '+', '-', not {name!r}")
    parameters = table.get("parameters", {})
    if not isinstance(parameters, dict):
        raise ValueError("parameters must be a table: parameters = { name = value }")
    return KernelEntry(
        kernel=kernel, name=name, interfaces=tuple(interfaces), preset=preset, scale=float(scale),
        parameters={key: convert_parameter(kind, key, value) for key, value in parameters.items()},
    )
