"""The registry of contributing factors: possible reasons why a job was slow.

Problem. The paper has five factors and says that there are more. Sites know theirs.

Content. A factor is a function from :class:`mpiio_ext.analytics.factors.files.Files` to one number a file, which is
then weighted by exclusive time over the critical files (Equation 2), or to one number a job. It is registered by the
decorator :func:`factor`, or by an installed distribution that names its functions under the entry-point group
``mpiio_ext.analytics.factors``. Thresholds are keyword parameters of the function with defaults: nothing is hidden.

Guarantees. Names are unique, and a threshold that two factors share has one default.

Source: IOMiner, Section II-D: "IOMiner is extensible to consider additional factors".
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import numpy as np

from mpiio_ext.analytics.factors.files import COLUMNS, Files, column_name
from mpiio_ext.analytics.tables.arrays import Numbers
from mpiio_ext.errors import ArgumentError

Weighting = Literal["exclusive", "job"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Factor:
    """A contributing factor.

    Attributes
    ----------
    name : str
        Name of the column in results.
    meaning : str
        One sentence for people.
    unit : str
        ``share`` (0 to 1), ``count``, ``ratio``, or a unit of the schema.
    bad : {"high", "low"}
        Which values are suspicious.
    weighting : {"exclusive", "job"}
        ``exclusive``: one value a file, weighted by exclusive time; ``job``: one value a job.
    directions : tuple of str
        ``read``, ``write``, or both.
    columns : tuple of str
        Columns of ``darshan_file`` and ``darshan_job`` that it reads, with placeholders such as ``{bytes}``.
    thresholds : mapping of str to number
        Parameters with their defaults.
    compute : callable
        ``compute(files, **thresholds)``: an array of float64, NaN for unknown.
    """

    name: str
    meaning: str
    unit: str
    bad: Literal["high", "low"]
    weighting: Weighting
    directions: tuple[str, ...]
    columns: tuple[str, ...]
    thresholds: Mapping[str, float]
    compute: Callable[..., Numbers]

    def needs(self, direction: str) -> set[str]:
        """Return the columns that the factor reads for a direction."""
        return {column_name(name, direction) for name in self.columns}

    def values(self, files: Files, thresholds: Mapping[str, float] | None = None) -> Numbers:
        """Return the function's values: one a file, or a job."""
        chosen = {name: (thresholds or {}).get(name, default) for name, default in self.thresholds.items()}
        values = np.asarray(self.compute(files, **chosen), dtype=np.float64)
        expected = len(files) if self.weighting == "exclusive" else files.jobs
        if values.shape != (expected,):
            kind = "file" if self.weighting == "exclusive" else "job"
            raise ArgumentError(f"factor {self.name}: {values.shape} values for {expected}, one a {kind}")
        return values

    def of_jobs(self, files: Files, thresholds: Mapping[str, float] | None = None) -> Numbers:
        """Return the factor of each job; NaN if it is unknown, and for a direction that it does not have."""
        if files.direction not in self.directions:
            return np.full(files.jobs, np.nan)
        values = self.values(files, thresholds)
        return files.weighted(values) if self.weighting == "exclusive" else values


_registered: dict[str, Factor] = {}


def register(new: Factor, *, replace: bool = False) -> Factor:
    """Add a factor.

    Raises
    ------
    ArgumentError
        The name is taken (unless `replace`), is no identifier, or a threshold clashes with that of another factor.
    """
    if not new.name.isidentifier():
        raise ArgumentError(f"factor {new.name!r}: a name is an identifier, since it names a column")
    if new.name in _registered and not replace:
        raise ArgumentError(f"factor {new.name} exists; pass replace=True to take its place")
    for name in new.directions:
        if name not in COLUMNS:
            raise ArgumentError(f"factor {new.name}: direction {name!r}; there are read and write")
    for other in _registered.values():
        for name, default in new.thresholds.items():
            if other.name != new.name and other.thresholds.get(name, default) != default:
                raise ArgumentError(f"factor {new.name}: threshold {name} has another default in {other.name}")
    _registered[new.name] = new
    return new


def registered() -> dict[str, Factor]:
    """Return the registered factors, in the order of registration; see :func:`mpiio_ext.analytics.factors.factors`."""
    return dict(_registered)


def unregister(name: str) -> None:
    """Remove a factor, whether or not it is there."""
    _registered.pop(name, None)


def factor(
    name: str,
    meaning: str,
    *,
    unit: str = "share",
    bad: Literal["high", "low"] = "high",
    weighting: Weighting = "exclusive",
    directions: Sequence[str] = ("read", "write"),
    columns: Sequence[str] = (),
) -> Callable[[Callable[..., Numbers]], Factor]:
    """Make a function a registered factor; its keyword parameters are the thresholds, and need defaults.

    Examples
    --------
    >>> @factor("rewrites", "bytes written more than once", columns=("{bytes}", "max_offset_written"))
    ... def rewrites(files, *, slack=0.0):
    ...     return 1 - ratio(files["max_offset_written"] + 1, files["{bytes}"])
    """

    def made(function: Callable[..., Numbers]) -> Factor:
        parameters = list(inspect.signature(function).parameters.values())[1:]
        for parameter in parameters:
            if parameter.default is inspect.Parameter.empty:
                raise ArgumentError(f"factor {name}: threshold {parameter.name} needs a default")
        thresholds = MappingProxyType({parameter.name: parameter.default for parameter in parameters})
        return register(
            Factor(
                name=name,
                meaning=meaning,
                unit=unit,
                bad=bad,
                weighting=weighting,
                directions=tuple(directions),
                columns=tuple(columns),
                thresholds=thresholds,
                compute=function,
            )
        )

    return made
