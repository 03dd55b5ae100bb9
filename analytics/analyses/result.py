"""The result of an analysis: a table, its meaning, and its drawing.

A result holds numbers and words only. It is drawn, printed or written to a file elsewhere, so that a query needs no
plotting library, and so that a drawing needs no engine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The contents of a figure, as plain data for JSON.

    Attributes
    ----------
    kind : {"bars", "ranking", "lines", "parallel", "places", "files", "steps", "ranks"}
        Form of the figure; :mod:`mpiio_ext.analytics.report.drawing` lists the contents of `data` for each form.
    name : name of the figure, for files and references; letters, digits and hyphens.
    title : heading of the figure.
    data : numbers, labels and the texts of the axes with their units.
    """

    kind: str
    name: str
    title: str
    data: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of an analysis.

    Attributes
    ----------
    name : name of the analysis, as on the command line.
    title : heading.
    caption : what is seen, what was counted and what was left out, in sentences.
    unit : unit of the counted quantity.
    parameters : the values that the analysis was made with.
    table : the numbers.
    charts : its figures; none if there is nothing to draw.
    shown : the table as people read it, where that is not `table`.
    caption_first : the caption is the answer, and the table its evidence.
    """

    name: str
    title: str
    caption: str
    unit: str
    parameters: Mapping[str, Any]
    table: pa.Table
    charts: Sequence[Chart] = ()
    shown: pa.Table | None = None
    caption_first: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the result without its charts, as data for JSON."""
        return {
            "analysis": self.name,
            "title": self.title,
            "caption": self.caption,
            "unit": self.unit,
            "parameters": dict(self.parameters),
            "rows": self.table.to_pylist(),
        }
