"""What the arbiter is to do: pool, policy, curves; changed while it runs by replacing one file.

Format. ``settings.json`` in the arbiter's folder, an object with the fields of :class:`Settings`.
Guarantees. A file that is wrong is refused as a whole, with what is wrong where; the settings before it stay in force.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpiio_ext.delegates.arbiter.mapfile import MOST_NODES
from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.delegates.arbitration.registry import policy
from mpiio_ext.errors import ArgumentError

__all__ = ["Settings", "read", "write"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What to do.

    Attributes
    ----------
    io_nodes : in the pool, 1 to 240
    policy : name of a policy, as ``mpiio-ext arbitrate`` has them
    lease_s : a job that has not touched its file for so long is taken for dead, s
    curves : program -> {number of I/O nodes: MB/s}
    """

    io_nodes: int
    policy: str = "mckp"
    lease_s: float = 10.0
    curves: Mapping[str, Mapping[int, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= self.io_nodes <= MOST_NODES:
            raise ArgumentError(f"io_nodes must be 1 to {MOST_NODES}, not {self.io_nodes}")
        if not self.lease_s > 0:
            raise ArgumentError(f"lease_s must be above 0, not {self.lease_s}")
        policy(self.policy)
        for program, points in self.curves.items():
            try:
                Curve.of(points)
            except ArgumentError as error:
                raise ArgumentError(f"curves: {program}: {error}") from error

    def encode(self) -> str:
        """Return the file's content."""
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n"


def decode(text: str) -> Settings:
    """Return the settings in a file's content.

    Raises
    ------
    ArgumentError
        They are not what is expected; the message says where.
    """
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise ArgumentError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    if not isinstance(given, dict):
        raise ArgumentError("an object is expected")
    names = {item.name for item in dataclasses.fields(Settings)}
    for name in given:
        if name not in names:
            raise ArgumentError(f"/{name}: there is no such setting, only {', '.join(sorted(names))}")
    if "io_nodes" not in given:
        raise ArgumentError("/io_nodes is missing")
    _check_types(given)
    curves = {str(program): _points(program, points) for program, points in given.get("curves", {}).items()}
    return Settings(**{**given, "curves": curves})


def _check_types(given: Mapping[str, Any]) -> None:
    wanted: dict[str, tuple[type, ...]] = {
        "io_nodes": (int,), "policy": (str,), "lease_s": (int, float), "curves": (dict,)
    }
    for name, value in given.items():
        if not isinstance(value, wanted[name]) or isinstance(value, bool):
            raise ArgumentError(f"/{name}: {wanted[name][0].__name__} is expected, not {value!r}")


def _points(program: str, points: Any) -> dict[int, float]:
    if not isinstance(points, dict):
        raise ArgumentError(f"/curves/{program}: an object is expected: number of I/O nodes -> MB/s")
    found = {}
    for count, value in points.items():
        if not count.isdigit() or not isinstance(value, int | float) or isinstance(value, bool):
            raise ArgumentError(f"/curves/{program}/{count}: a number of I/O nodes and MB/s are expected")
        found[int(count)] = float(value)
    return found


def read(folder: Path) -> Settings:
    """Return the settings in an arbiter's folder.

    Raises
    ------
    ArgumentError
        The file is wrong.
    OSError
        It cannot be read.
    """
    path = folder / "settings.json"
    try:
        return decode(path.read_text(encoding="utf-8"))
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error}") from error


def write(folder: Path, settings: Settings) -> None:
    """Replace the settings: a running arbiter follows them at once."""
    draft = folder / ".settings.json"
    with draft.open("w", encoding="utf-8") as file:
        file.write(settings.encode())
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / "settings.json")
