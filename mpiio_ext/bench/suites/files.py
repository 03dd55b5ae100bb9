"""Parameter files: a suite as TOML, read and checked entry by entry.

A file has a title, ``[options]`` (defaults of the command line's options, by their long names; a list stands for a
comma-separated one) and any number of ``[[kernels]]``::

    title = "What this is"
    source = "where the parameters are from"
    about = "why its patterns are run"    # a line above the table

    [options]
    workload = "none"                     # patterns; "none" = kernels alone
    method = ["native", "auto"]
    repeats = 3

    [[kernels]]
    kernel = "vpic"                       # a name of `--list`
    name = "vpic-large"                   # of its rows, where the kernel is there more than once
    about = "why it is run"               # a line above the table
    interfaces = ["hdf5"]                 # default: all that the kernel has
    preset = "published"
    scale = 0.5
    parameters = { particles = 8388608 }  # on top of the preset

A mistake is reported with the file, the place, counted from 0, and the known names. Nothing is ignored.
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

from mpiio_ext.bench.arguments import one_of
from mpiio_ext.common.files import cannot_read
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from importlib.abc import Traversable

    from mpiio_ext.bench.suites.form import KernelEntry

_toml: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A parameter file.

    Attributes
    ----------
    name : of the suite, and of its folder in the archive
    where : the file, for messages
    text : the file's content, which is kept beside the results
    title, source : for people
    about : a line on why its patterns are run, for people
    options : name of an option of the command line -> its value as it would be typed
    entries : of ``[[kernels]]``
    """

    name: str
    where: str
    text: str
    title: str
    source: str
    about: str
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
        except OSError as error:
            raise ArgumentError(cannot_read(name, error)) from error
        except UnicodeDecodeError as error:
            raise ArgumentError(f"{name}: cannot be read: not UTF-8") from error
    try:
        one_of(names())(name)
    except ValueError as error:
        text = str(error)
        mark = "?" if text.endswith("?") else ""
        raise ArgumentError(f"{text.removesuffix(mark)}, or a parameter file FILE.toml{mark}") from error
    return name, f"suite {name}", (_data() / f"{name}.toml").read_text("utf-8")


def load(name: str) -> Suite:
    """Return a suite of the project by its name, or a user's by the path of its file, which ends in ``.toml``.

    Raises
    ------
    ArgumentError
        The suite does not exist, or its file is wrong; the message names file and entry.
    """
    # With pydantic, which no rank needs without a suite.
    from mpiio_ext.bench.suites.form import NAME, SuiteForm
    from mpiio_ext.common.documents import DocumentError, parse

    short, where, text = _read(name)
    if not re.fullmatch(NAME, short):
        raise ArgumentError(f"{where}: the name of the file names the suite: letters, digits, '.', '_', '-' only")
    try:
        document = _toml.loads(text)
    except _toml.TOMLDecodeError as error:
        raise ArgumentError(f"{where}: not TOML: {error}") from error
    try:
        found = parse(SuiteForm, document)
    except DocumentError as error:
        raise ArgumentError(f"{where}: {'; '.join(error.problems)}") from error
    return Suite(
        name=short,
        where=where,
        text=text,
        title=found.get("title", short),
        source=found.get("source", ""),
        about=found.get("about", ""),
        options=found.get("options", {}),
        entries=tuple(found.get("kernels", ())),
    )
