"""A run for Python and notebooks: the parts of its page as objects that show themselves."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.report.timeline import rows_of
from mpiio_ext.analytics.run.gather import of_folder, of_log
from mpiio_ext.analytics.run.opening import help_sentence
from mpiio_ext.analytics.run.page import document_of
from mpiio_ext.common.files import cannot_read, missing
from mpiio_ext.common.recordings import has_recordings
from mpiio_ext.common.shown import Shown
from mpiio_ext.common.units import count_text
from mpiio_ext.errors import ArgumentError

_HEAD = b"<!doctype html>"


class Part(Shown):
    """A part of a run: sentences, and rows of which the names of columns carry the units."""

    __slots__ = ("_lines", "_rows", "title")

    def __init__(self, title: str, rows: Sequence[Mapping[str, Any]], lines: Sequence[str] = ()) -> None:
        self.title, self._rows, self._lines = title, rows, lines

    def lines(self) -> list[str]:
        """Return its sentences."""
        return [self.title, *(self._lines or [f"{count_text(len(self._rows), 'row')}: .table()"])]

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return its rows."""
        return self._rows


class Drawn(Part):
    """A figure of a run, with its numbers."""

    __slots__ = ("_chart",)

    def __init__(self, chart: Mapping[str, Any]) -> None:
        self._chart = chart
        super().__init__(chart["title"], _points(chart), [chart["data"].get("caption", "")])

    def _repr_html_(self) -> str:
        from mpiio_ext.analytics.analyses.result import Chart
        from mpiio_ext.analytics.report.drawing import draw

        return f"<p>{html.escape(self.title)}</p>{draw(Chart(**self._chart))}"


def _points(chart: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the numbers of a figure as rows."""
    data = chart["data"]
    if chart["kind"] == "steps":
        return [
            {"time_s": at} | {f"{one['name']}_bytes_per_s": one["y"][place] for one in data["series"]}
            for place, at in enumerate(data["x"])
        ]
    if chart["kind"] == "bars":
        names = ["requests_of", *(one["name"] for one in data["series"])]
        columns = [one["values"] for one in data["series"]]
        words = [label.replace("\n", " ") for label in data["labels"]]
        return [dict(zip(names, row, strict=True)) for row in zip(words, *columns, strict=True)]
    if chart["kind"] == "places":
        return [
            {"of": one["name"], "time_s": at, "offset_bytes": place}
            for one in data["series"]
            for at, place in zip(one["x"], one["y"], strict=True)
        ]
    unit = {"s": "time_s", "B": "bytes"}[data["exact"]["unit"]]
    return [
        {"what": what, "first_rank": first, "last_rank": last, "from_s": float(start), "to_s": float(end), unit: value}
        for what, first, last, start, end, value in rows_of(data)[1]
    ]


class RunReport(Shown):
    """What is known of a run.

    Attributes
    ----------
    sentence, advice : the first sentences of the page.
    parts, findings, files, library, storage, hints : tables.
    figures : mapping of str to Drawn
        The time line of ranks (``time-line-ranks``), ``bandwidth``, ``bandwidth-files``, ``heat``, as far as they are
        known.
    document : all of it as plain values.
    """

    __slots__ = ("document",)

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document

    @property
    def sentence(self) -> str:
        """Return the first sentence."""
        return str(self.document["sentence"])

    @property
    def advice(self) -> str:
        """Return the remedy, with its command; "" if nothing was found."""
        return help_sentence(self.document["help"])

    @property
    def findings(self) -> Part:
        """Return what was found, with evidence and next steps."""
        rows = [
            {"finding": one["title"], "evidence": "; ".join(one["evidence"]), "next_step": "; ".join(one["advice"])}
            for one in self.document["findings"]
        ]
        return Part("Findings", rows, [one["finding"] for one in rows])

    @property
    def parts(self) -> Part:
        """Return where the time of a rank went."""
        return Part("Where the time went", self.document.get("parts", []))

    @property
    def files(self) -> Part:
        """Return how each file was accessed."""
        return Part("Files", self.document["files"])

    @property
    def library(self) -> Part:
        """Return what the library did for each file."""
        return Part("What the library did", self.document["library"])

    @property
    def storage(self) -> Part:
        """Return how files lie on servers."""
        return Part("File system and stripes", self.document["storage"])

    @property
    def hints(self) -> Part:
        """Return the hints that are no defaults, and who set them."""
        return Part("Hints in force", self.document["hints"])

    @property
    def figures(self) -> dict[str, Drawn]:
        """Return the figures by name."""
        return {chart["name"]: Drawn(chart) for chart in self.document["charts"]}

    def lines(self) -> list[str]:
        """Return the first sentences, and what is not as it should be."""
        document = self.document
        texts = (
            self.sentence,
            document.get("spent_on", ""),
            self.advice,
            *document.get("at_end", ()),
            *document["notices"],
            *document["lacks"],
        )
        return [text for text in texts if text]

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the files."""
        rows: Sequence[Mapping[str, Any]] = self.document["files"]
        return rows


def document_at(path: Path) -> dict[str, Any]:
    """Return the document of a page, of a folder of recordings, or of a Darshan log.

    Raises
    ------
    ArgumentError
        The path does not exist, or is neither a page, a folder of recordings nor a Darshan log.
    MpiioExtError
        The page, recording or log cannot be read.
    """
    if path.is_dir():
        if not has_recordings(path):
            raise ArgumentError(
                f"{path}: is a folder without recordings of a run: name the one beside the page, .NAME.*.run, or use "
                "`mpiio-ext bench report` for results of the bench"
            )
        return of_folder(path)
    if not path.is_file():
        raise ArgumentError(cannot_read(path, missing()))
    with path.open("rb") as stream:
        is_page = stream.read(len(_HEAD)).lower() == _HEAD
    return document_of(path) if is_page else of_log(path)


def run_report(path: str | Path) -> RunReport:
    """Return what is known of a run.

    Parameters
    ----------
    path : a page of ``mpiio-ext run --report``, the folder that a killed run has left, or a Darshan log.

    Raises
    ------
    MpiioExtError
        The path is neither a page, a folder of recordings nor a Darshan log, or cannot be read.
    """
    return RunReport(document_at(Path(path)))
