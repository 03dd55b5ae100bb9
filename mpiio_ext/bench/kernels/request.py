"""Requests for kernels: names, sizes and parameters, from a command line or a parameter file, and back.

A request says how to make a kernel for any number of ranks; `command_words` gives the options that make the same
request, so that one entry of a suite can be run by itself.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import click

from mpiio_ext.bench import kernels
from mpiio_ext.bench.kernels import Kernel
from mpiio_ext.common.options import Size
from mpiio_ext.errors import ArgumentError

DEFAULT_PRESET = "laptop"
#: What annotations of kernels may name although their modules import it for the type checker alone.
_NAMES = {"Any": Any, "ClassVar": ClassVar, "Mapping": Mapping}
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRequest:
    """One requested kernel.

    Attributes
    ----------
    kernel : name in the registry
    name : of its rows, where a suite has the kernel more than once; "" = the kernel's own
    interfaces : names
    preset, parameters, scale : as of `kernels.create`
    required : asked for by name: that it cannot be made for this number of ranks is an error, else it is left out
    about : a line on why it is run, for people
    """

    kernel: str
    name: str = ""
    interfaces: tuple[str, ...]
    preset: str = DEFAULT_PRESET
    parameters: Mapping[str, Any] = field(default_factory=dict)
    scale: float = 1.0
    required: bool = True
    about: str = ""

    def create(self, ranks: int) -> Kernel:
        """Return the kernel for `ranks` ranks; raises ArgumentError."""
        return kernels.create(self.kernel, ranks, preset=self.preset, parameters=self.parameters, scale=self.scale)


def parameter_kinds(kind: type[Kernel]) -> dict[str, Any]:
    """Return parameter -> type."""
    hints = typing.get_type_hints(kind, localns=_NAMES)
    return {item.name: hints[item.name] for item in dataclasses.fields(kind) if item.name != "ranks"}


def _known(kind: type[Kernel], name: str) -> object:
    kinds = parameter_kinds(kind)
    if name not in kinds:
        raise ArgumentError(f"{kind.name}: unknown parameter '{name}' (known: {', '.join(sorted(kinds))})")
    return kinds[name]


def _from_text(wanted: object, text: str) -> object:
    """Return the value that a text means for a parameter of this type; raises ValueError."""
    if wanted is bool:
        return _FLAGS[text.lower()]
    if wanted is int:
        try:
            return int(text)
        except ValueError:
            return Size().convert(text, None, None)
    if wanted is float:
        return float(text)
    if typing.get_origin(wanted) is tuple:
        return tuple(_from_text(typing.get_args(wanted)[0], part) for part in text.split(",") if part.strip())
    return text


def _name_of(wanted: Any) -> str:
    names = {bool: "true or false", int: "a whole number or a size such as 64KiB", float: "a number", str: "a text"}
    return names.get(wanted, "a comma-separated list" if typing.get_origin(wanted) is tuple else str(wanted))


def convert_parameter(kind: type[Kernel], name: str, value: object) -> object:
    """Return the value of a parameter from a parameter file, or from text.

    Raises
    ------
    ArgumentError
        The kernel has no such parameter, or the value is not of its type.
    """
    wanted = _known(kind, name)
    try:
        if isinstance(value, str):
            return _from_text(wanted, value)
        if typing.get_origin(wanted) is tuple and isinstance(value, (list, tuple)):
            item = typing.get_args(wanted)[0]
            return tuple(_from_text(item, str(part)) for part in value)
        if wanted is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if type(value) is wanted:
            return value
    except (ValueError, KeyError, click.BadParameter):
        pass
    raise ArgumentError(f"{kind.name}: {name} must be {_name_of(wanted)}, not {value!r}")


def parse_parameter(kind: type[Kernel], text: str) -> tuple[str, Any]:
    """Return (name, value) of ``name=value``; raises ArgumentError."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise ArgumentError(f"'{text}' is not of the form name=value")
    return name, convert_parameter(kind, name, value)


def _text_of(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(_text_of(part) for part in value)
    return str(value)


def command_words(request: KernelRequest) -> list[str]:
    """Return the options of the command line that request the same kernel (not its interface)."""
    words = ["-k", request.kernel, "--preset", request.preset]
    if request.scale != 1.0:
        words += ["--scale", repr(request.scale)]
    for name, value in request.parameters.items():
        words += ["-P", f"{name}={_text_of(value)}"]
    return words
