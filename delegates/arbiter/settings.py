"""Settings of the arbiter: pool, policy, curves; changed while it runs by replacing one file.

Format. ``settings.json`` in the arbiter's folder, an object with the fields of :class:`Settings`.
Guarantees. A file that is wrong is refused as a whole, with what is wrong where; the settings before it stay in force.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from mpiio_ext.common import documents
from mpiio_ext.common.documents import CLOSED, DocumentError
from mpiio_ext.common.files import write_whole
from mpiio_ext.delegates.arbiter.mapfile import MOST_NODES
from mpiio_ext.delegates.arbitration.curves import Curve, Point
from mpiio_ext.delegates.arbitration.rules import policy, settings_of
from mpiio_ext.delegates.arbitration.rules.base import Policy
from mpiio_ext.errors import ArgumentError


@with_config(CLOSED)
class _Measured(TypedDict):
    mean: float
    deviation: float
    repetitions: int


#: Measurements with one number of I/O nodes.
Value = float | Annotated[list[float], Field(min_length=1)] | _Measured


#: Compute nodes of the largest machine that settings can describe.
MOST_COMPUTE_NODES = 2**31 - 1
Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings. Limits of numbers hold for what `decode` reads.

    Attributes
    ----------
    io_nodes : in the pool, 1 to `MOST_NODES`
    policy : name of a policy, as ``mpiio-ext delegates arbitrate`` has them
    lease_s : a job that has not touched its file for so long is taken for dead, s
    reserve_s : a job that the scheduler says has begun, and that has not announced itself, is counted for so long, s
    curves : program -> {number of I/O nodes: MB/s, or the MB/s of several repetitions, or their "mean", "deviation" and
        "repetitions"}
    weights : program -> what a MB/s of it counts for MCKP; 1 if nothing is said
    compute_nodes : of the whole machine, 1 to `MOST_COMPUTE_NODES`, for STATIC; None = those of the jobs that run
    most : I/O nodes that one job gets at most; None = no limit but the pool
    divisible : only numbers that divide a job's compute nodes
    user_share : part of the I/O nodes that the jobs of one user have at most, 0 to 1, while others want them; None =
        the same for all users whose jobs run
    jobs_per_user : jobs of one user that count, the first ones by name
    confidence, floor, migration_cost_s, horizon_s, hysteresis, shared_node : of MCKP, see
        :class:`mpiio_ext.delegates.arbitration.rules.mckp.Mckp`; the shared I/O node is the one of index 0
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    io_nodes: Annotated[int, Field(ge=1, le=MOST_NODES)]
    policy: str = "mckp"
    lease_s: Annotated[float, Field(gt=0)] = 10.0
    reserve_s: NotNegative = 0.0
    curves: Mapping[str, Mapping[int, Value]] = field(default_factory=dict)
    weights: Mapping[str, NotNegative] = field(default_factory=dict)
    compute_nodes: Annotated[int, Field(ge=1, le=MOST_COMPUTE_NODES)] | None = None
    most: Positive | None = None
    divisible: bool = False
    user_share: Annotated[float, Field(gt=0, le=1)] | None = None
    jobs_per_user: Positive = 256
    confidence: float | None = None
    floor: float = 0.0
    migration_cost_s: float = 0.0
    horizon_s: float = 600.0
    hysteresis: float = 0.0
    shared_node: bool = False

    def __post_init__(self) -> None:
        self.make_policy()
        for program in self.curves:
            try:
                self.curve(program)
            except ArgumentError as error:
                raise ArgumentError(f"curves: {program}: {error}") from error

    def make_policy(self) -> Policy:
        """Return the policy with its settings.

        Raises
        ------
        ArgumentError
            No policy has this name, or a setting is not valid.
        """
        return policy(
            self.policy, **{name: getattr(self, name) for name in settings_of(self.policy) if hasattr(self, name)}
        )

    def curve(self, program: str) -> Curve | None:
        """Return the bandwidth of a program; None: unknown."""
        points = self.curves.get(program)
        if points is None:
            return None
        return Curve({count: _point(value) for count, value in points.items()})

    def encode(self) -> str:
        """Return the file's content."""
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n"


def _point(value: Value) -> Point:
    if isinstance(value, Mapping):
        return Point(
            mean=value["mean"], best=value["mean"], deviation=value["deviation"], repetitions=value["repetitions"]
        )
    return Point.of(value if isinstance(value, list) else (value,))


def decode(text: str) -> Settings:
    """Return the settings in a file's content.

    Raises
    ------
    ArgumentError
        The content is not JSON of valid settings; the message has the place of the mistake.
    """
    try:
        given = documents.from_json(text)
    except json.JSONDecodeError as error:
        raise ArgumentError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except ValueError as error:
        raise ArgumentError(str(error)) from error
    try:
        return documents.parse(Settings, given)
    except DocumentError as error:
        raise ArgumentError("; ".join(error.problems)) from error


def read(folder: Path) -> Settings:
    """Return the settings in an arbiter's folder.

    Raises
    ------
    ArgumentError
        The settings in the file are not valid.
    OSError
        The file cannot be read.
    """
    path = folder / "settings.json"
    try:
        return decode(path.read_text(encoding="utf-8"))
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error}") from error


def write(folder: Path, settings: Settings) -> None:
    """Replace the settings: a running arbiter follows them at once."""
    write_whole(folder / "settings.json", settings.encode().encode(), follow=False, mode=0o644)
