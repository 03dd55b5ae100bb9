"""The form of parameter files, stated as types; further checks follow the types.

Guarantee. Every mistake is reported with its place: kernels and their presets, interfaces and parameters are
           those that there are. The command line checks the values of its options.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, Field, with_config
from typing_extensions import NotRequired, TypedDict

from mpiio_ext.bench import interfaces as ways
from mpiio_ext.bench import kernels
from mpiio_ext.bench.arguments import one_of
from mpiio_ext.bench.kernels.request import DEFAULT_PRESET, KernelRequest, convert_parameter
from mpiio_ext.common.documents import CLOSED, DocumentError, made_of, pointer

#: Characters in names of suites and of entries.
NAME = r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}"
#: Options that belong to one run rather than to a suite, or that would have the suite begin itself.
_NOT_IN_FILES = {
    "path",
    "output",
    "archive",
    "suite",
    "quick",
    "dry_run",
    "list_kernels",
    "ranks",
    "keep",
    "progress",
    "param",
    "help",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEntry:
    """One entry of ``[[kernels]]``; `preset` None = the command line's."""

    kernel: str
    name: str = ""
    about: str = ""
    interfaces: tuple[str, ...] = ()
    preset: str | None = None
    scale: float = 1.0
    parameters: Mapping[str, Any]

    def request(
        self, *, preset: str | None, fallback: str | None, scale: float, interfaces: tuple[str, ...]
    ) -> KernelRequest:
        """Return the entry as the user gives it.

        Parameters
        ----------
        preset : stronger than the entry's; None = not given
        fallback : weaker than the entry's; None = not given
        scale : on top of the entry's
        interfaces : only these; empty = not given
        """
        wanted = self.interfaces or kernels.kind_of(self.kernel).interfaces
        return KernelRequest(
            kernel=self.kernel,
            name=self.name,
            preset=preset or self.preset or fallback or DEFAULT_PRESET,
            interfaces=tuple(way for way in wanted if not interfaces or way in interfaces),
            parameters=self.parameters,
            scale=self.scale * scale,
            required=False,
            about=self.about,
        )


def _named(text: str) -> str:
    if text and not re.fullmatch(NAME, text):
        raise ValueError(f"{text!r} is not made of letters, digits, '.', '_', '+', '-'")
    return text


@with_config(CLOSED)
class _Entry(TypedDict):
    kernel: Annotated[str, AfterValidator(kernels.kernel_name)]
    name: NotRequired[Annotated[str, AfterValidator(_named)]]
    about: NotRequired[str]
    interfaces: NotRequired[list[Annotated[str, AfterValidator(one_of(ways.REGISTRY))]]]
    preset: NotRequired[str]
    scale: NotRequired[Annotated[float, Field(gt=0)]]
    parameters: NotRequired[dict[str, Any]]


def _entry(found: _Entry) -> KernelEntry:
    kind, place = kernels.kind_of(found["kernel"]), ""
    try:
        for at, way in enumerate(found.get("interfaces", ())):
            place = pointer("interfaces", at)
            if way not in kind.interfaces:
                raise ValueError(f"{kind.name} has {', '.join(kind.interfaces)} only")
        place = "/preset"
        preset = one_of(kind.presets)(found["preset"]) if "preset" in found else None
        place = "/parameters"
        parameters = {key: convert_parameter(kind, key, value) for key, value in found.get("parameters", {}).items()}
    except ValueError as error:
        raise DocumentError([(place, str(error))]) from error
    return KernelEntry(
        kernel=found["kernel"],
        name=found.get("name", ""),
        preset=preset,
        parameters=parameters,
        interfaces=tuple(found.get("interfaces", ())),
        scale=found.get("scale", 1.0),
        about=found.get("about", ""),
    )


def _options(found: dict[str, Any]) -> dict[str, Any]:
    """Return options by the names that click uses, lists joined by commas."""
    options: dict[str, Any] = {}
    for key, value in found.items():
        name = key.replace("-", "_")
        if name in _NOT_IN_FILES:
            raise DocumentError([(pointer(key), "belongs to the command line, not to a suite")])
        if isinstance(value, (dict, list)) and name != "hint":
            if not isinstance(value, list) or not all(isinstance(item, (str, int)) for item in value):
                raise DocumentError([(pointer(key), "is not one value or a list of names")])
            value = ",".join(str(item) for item in value)
        options[name] = value
    return options


@with_config(CLOSED)
class SuiteForm(TypedDict, total=False):
    """A parameter file."""

    title: str
    source: str
    about: str
    options: Annotated[dict[str, Any], made_of(dict[str, Any], _options)]
    kernels: list[Annotated[KernelEntry, made_of(_Entry, _entry)]]
